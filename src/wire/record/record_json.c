/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_json.c - records and results as JSON.
 */
#include "wire/record/record_json.h"

#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"

/* Values of enums, in their order. */
static const char *const kinds[] = {"none", "bytes", "http", "exec", NULL};
static const char *const classes[] = {"ok", "definitive", NULL};
static const char *const states[] = {"absent", "claimed", "done", "failed", "parked", NULL};
static const char *const origins[] = {"claim", "check", "set", NULL};
static const char *const on_lapses[] = {"retry", "park", NULL};

#define AT(member) .uses = HX_JSON_FIELD_ALWAYS, .offset = offsetof(struct hx_result_json, member)
static const struct hx_json_field result_fields[] = {
	{"kind", HX_JSON_FIELD_CHOICE, AT(kind), .choices = kinds,
	 .doc = "the kind of result (default: bytes)"},
	{"class", HX_JSON_FIELD_CHOICE, AT(result_class), .choices = classes,
	 .doc = "definitive: a permanent failure"},
	{"status", HX_JSON_FIELD_INTEGER, AT(status), .min = INT32_MIN, .max = INT32_MAX,
	 .doc = "the HTTP status or the exit status"},
	{"headers", HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS, AT(headers),
	 .max = HX_RESULT_HEADERS_SIZE_MAX,
	 .doc = "kind http: header fields, each 'Name: value' and CRLF"},
	{"body", HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS, AT(body),
	 .max = HX_JSON_SIZE_MAX, .doc = "the bytes that duplicates get"},
	{"omitted_bytes", HX_JSON_FIELD_INTEGER, AT(omitted_bytes), .max = INT64_MAX,
	 .doc = "the size of a body that was too large to store"},
	{.name = NULL},
};
#undef AT
const struct hx_json_section hx_result_json_section = {
	"a result", .fields = result_fields,
	.given_offset = offsetof(struct hx_result_json, given)};

#define AT(member) .uses = HX_JSON_FIELD_ALWAYS, .offset = offsetof(struct hx_event_json, member)
/* Longer texts are cut by hapax_cause_write(). */
#define CUT                                                                        \
	HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS | HX_JSON_FIELD_UTF8, \
			     .max = HX_JSON_SIZE_MAX
static const struct hx_json_field event_fields[] = {
	{"id", CUT, AT(id), .doc = "its ID, cut at 255 bytes"},
	{"type", CUT, AT(type), .doc = "its type, cut at 255 bytes"},
	{"source", CUT, AT(source), .doc = "where it came from, cut at 255 bytes"},
	{"time", HX_JSON_FIELD_TIME, AT(time_ms), .doc = "when the sender says it happened"},
	{.name = NULL},
};
#undef CUT
#undef AT
const struct hx_json_section hx_event_json_section = {
	"an event", .fields = event_fields, .given_offset = offsetof(struct hx_event_json, given)};

#define AT(member) .uses = HX_JSON_FIELD_ALWAYS, .offset = offsetof(struct hx_record_json, member)
static const struct hx_json_field record_fields[] = {
	{"tenant", HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS, AT(tenant), .min = 1,
	 .max = HX_SCOPE_PART_SIZE_MAX},
	{"group", HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS, AT(group), .min = 1,
	 .max = HX_SCOPE_PART_SIZE_MAX},
	{"key", HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS, AT(key), .min = 1,
	 .max = HX_KEY_SIZE_MAX},
	{"state", HX_JSON_FIELD_CHOICE, .required = HX_JSON_FIELD_ALWAYS, AT(state),
	 .choices = states},
	{"origin", HX_JSON_FIELD_CHOICE, .required = HX_JSON_FIELD_ALWAYS, AT(origin),
	 .choices = origins},
	{"on_lapse", HX_JSON_FIELD_CHOICE, AT(on_lapse), .choices = on_lapses},
	{"token", HX_JSON_FIELD_INTEGER, .required = HX_JSON_FIELD_ALWAYS, AT(token), .min = 0,
	 .max = HX_TOKEN_MAX},
	{"attempt", HX_JSON_FIELD_INTEGER, .required = HX_JSON_FIELD_ALWAYS, AT(attempt),
	 .max = UINT32_MAX},
	{"first_seen", HX_JSON_FIELD_TIME, .required = HX_JSON_FIELD_ALWAYS, AT(first_seen_ms)},
	{"changed_at", HX_JSON_FIELD_TIME, .required = HX_JSON_FIELD_ALWAYS, AT(changed_ms)},
	{"expires_at", HX_JSON_FIELD_TIME, .required = HX_JSON_FIELD_ALWAYS, AT(expires_ms)},
	{"ttl_ms", HX_JSON_FIELD_INTEGER, .flags = HX_JSON_FIELD_NULLABLE,
	 .required = HX_JSON_FIELD_ALWAYS, AT(ttl_ms), .min = 0, .max = HX_TTL_MS_MAX},
	{"lease_ends_at", HX_JSON_FIELD_TIME, AT(lease_ends_ms)},
	{"fingerprint", HX_JSON_FIELD_HEX, .flags = HX_JSON_FIELD_NULLABLE, AT(fingerprint),
	 .size_offset = offsetof(struct hx_record_json, fingerprint_size),
	 .min = HAPAX_FINGERPRINT_SHORT_SIZE, .max = HAPAX_FINGERPRINT_SIZE},
	{"attempt_id", HX_JSON_FIELD_HEX, AT(attempt_id), .min = HAPAX_ATTEMPT_ID_SIZE,
	 .max = HAPAX_ATTEMPT_ID_SIZE},
	{"owner", HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS, AT(owner),
	 .max = HX_OWNER_SIZE_MAX},
	{"error", HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS, AT(error),
	 .max = HX_ERROR_TEXT_SIZE_MAX},
	{"event", HX_JSON_FIELD_OBJECT, AT(event), .section = &hx_event_json_section},
	{"result", HX_JSON_FIELD_OBJECT, .flags = HX_JSON_FIELD_NULLABLE, AT(result),
	 .section = &hx_result_json_section},
	{.name = NULL},
};
#undef AT
const struct hx_json_section hx_record_json_section = {
	"a record", .fields = record_fields,
	.given_offset = offsetof(struct hx_record_json, given)};

void hx_record_result_from_json(const struct hx_result_json *json, struct hapax_result *ret_result)
{
	*ret_result = (struct hapax_result){
		.kind = (enum hapax_result_kind)json->kind,
		.result_class = (enum hapax_result_class)json->result_class,
		.status = (int32_t)json->status,
		.omitted_bytes = (uint64_t)json->omitted_bytes,
		.headers = json->headers,
		.body = json->body,
	};
	if (json->given != 0 && !hx_json_object_has(&hx_result_json_section, json, "kind"))
		ret_result->kind = HAPAX_RESULT_BYTES;
}

struct hapax_bytes hx_record_cause_from_json(
	const struct hx_event_json *json, unsigned char buffer[HAPAX_CAUSE_SIZE_MAX])
{
	const struct hapax_cause cause = {
		.id = json->id,
		.type = json->type,
		.source = json->source,
		.time_ms = json->time_ms,
	};

	return hapax_cause_write(&cause, buffer);
}

void hx_record_from_json(
	const struct hx_record_json *json, unsigned char buffer[HAPAX_CAUSE_SIZE_MAX],
	struct hapax_record *ret_record)
{
	*ret_record = (struct hapax_record){
		.state = (enum hapax_state)json->state,
		.origin = (enum hapax_origin)json->origin,
		.on_lapse = (enum hapax_on_lapse)json->on_lapse,
		.attempt = (uint32_t)json->attempt,
		.token = (uint64_t)json->token,
		.first_seen_ms = json->first_seen_ms,
		.changed_ms = json->changed_ms,
		.lease_ends_ms = json->lease_ends_ms,
		.expires_ms = json->expires_ms,
		.ttl_ms = json->ttl_ms,
		.fingerprint_size = json->fingerprint_size,
		.tenant = json->tenant,
		.group = json->group,
		.key = json->key,
		.owner = json->owner,
		.error = json->error,
		.cause = hx_record_cause_from_json(&json->event, buffer),
	};
	memcpy(ret_record->fingerprint, json->fingerprint, sizeof(json->fingerprint));
	memcpy(ret_record->attempt_id, json->attempt_id, sizeof(json->attempt_id));
	hx_record_result_from_json(&json->result, &ret_record->result);
}

/* Is there nothing to write? A result of kind none may still be a failure. */
static bool is_empty(const struct hapax_result *result, bool is_brief)
{
	if (result->kind != HAPAX_RESULT_NONE || is_brief)
		return result->kind == HAPAX_RESULT_NONE;
	return result->result_class == HAPAX_RESULT_OK && result->status == 0 &&
		result->body.size == 0 && result->headers.size == 0 && result->omitted_bytes == 0;
}

void hx_record_result_write_json(
	struct hx_json_write *json, const struct hapax_result *result, unsigned flags)
{
	bool is_brief = (flags & HX_RECORD_JSON_BRIEF) != 0;

	if (is_empty(result, is_brief)) {
		hx_json_write_null(json, "result");
		return;
	}
	hx_json_write_begin(json, "result", '{');
	hx_json_write_text(json, "kind", hapax_result_kind_name(result->kind));
	hx_json_write_text(json, "class", hapax_result_class_name(result->result_class));
	hx_json_write_signed(json, "status", result->status);
	if (is_brief ? result->kind == HAPAX_RESULT_HTTP : result->headers.size > 0)
		hx_json_write_body(json, "headers", result->headers);
	hx_json_write_body(json, "body", result->body);
	if (result->omitted_bytes > 0)
		hx_json_write_unsigned(json, "omitted_bytes", result->omitted_bytes);
	hx_json_write_end(json, '}');
}

void hx_record_event_write_json(
	struct hx_json_write *json, const char *name, const struct hapax_cause *event)
{
	if (event->id.size == 0 && event->type.size == 0 && event->source.size == 0 &&
	    event->time_ms == 0)
		return;
	hx_json_write_begin(json, name, '{');
	if (event->id.size > 0)
		hx_json_write_any(json, "id", event->id);
	if (event->type.size > 0)
		hx_json_write_any(json, "type", event->type);
	if (event->source.size > 0)
		hx_json_write_any(json, "source", event->source);
	if (event->time_ms != 0)
		hx_json_write_time(json, "time", event->time_ms);
	hx_json_write_end(json, '}');
}

void hx_record_cause_write_json(struct hx_json_write *json, struct hapax_bytes cause)
{
	struct hapax_cause event;

	if (hapax_cause_read(cause, &event))
		hx_record_event_write_json(json, "event", &event);
}

static void write_ends(
	struct hx_json_write *json, const struct hapax_record *record, unsigned flags)
{
	if (record->state == HAPAX_STATE_CLAIMED)
		hx_json_write_time(json, "lease_ends_at", record->lease_ends_ms);
	if (record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED ||
	    (flags & HX_RECORD_JSON_WITH_SECRETS))
		hx_json_write_text(json, "on_lapse", hapax_on_lapse_name(record->on_lapse));
	if ((record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED) &&
	    (flags & HX_RECORD_JSON_WITH_SECRETS))
		hx_json_write_hex(json, "attempt_id", record->attempt_id, HAPAX_ATTEMPT_ID_SIZE);
}

void hx_record_write_json(
	struct hx_json_write *json, const struct hapax_record *record, unsigned flags)
{
	if (!(flags & HX_RECORD_JSON_BRIEF)) {
		hx_json_write_any(json, "tenant", record->tenant);
		hx_json_write_any(json, "group", record->group);
		hx_json_write_any(json, "key", record->key);
	}
	hx_json_write_text(json, "state", hapax_state_name(record->state));
	hx_json_write_text(json, "origin", hapax_origin_name(record->origin));
	hx_json_write_unsigned(json, "token", record->token);
	hx_json_write_unsigned(json, "attempt", record->attempt);
	hx_json_write_time(json, "first_seen", record->first_seen_ms);
	hx_json_write_time(json, "changed_at", record->changed_ms);
	hx_json_write_time(json, "expires_at", record->expires_ms);
	if (record->ttl_ms == INT64_MAX)
		hx_json_write_null(json, "ttl_ms");
	else
		hx_json_write_signed(json, "ttl_ms", record->ttl_ms);
	write_ends(json, record, flags);
	if (record->fingerprint_size > 0)
		hx_json_write_hex(
			json, "fingerprint", record->fingerprint, record->fingerprint_size);
	else
		hx_json_write_null(json, "fingerprint");
	if (record->owner.size > 0)
		hx_json_write_any(json, "owner", record->owner);
	if (record->error.size > 0)
		hx_json_write_body(json, "error", record->error);
	hx_record_cause_write_json(json, record->cause);
	if (flags & HX_RECORD_JSON_WITH_RESULT)
		hx_record_result_write_json(json, &record->result, flags);
}
