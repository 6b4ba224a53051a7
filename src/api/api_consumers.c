/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_consumers.c - GET /consumers, POST /consumers/{name}/pause and /resume.
 *
 * A pause is a record of the store (pause.h). It is answered when the store has it, and this daemon
 * obeys at once; others on the same store notice it within a second.
 */
#include <stdio.h>
#include <string.h>

#include "api/api_request.h"
#include "api/pause.h"
#include "base/bytes.h"
#include "config/config.h"

/* ------------------------------------------------------------------ GET */

static void write_optional(struct hx_json_write *json, const char *name, const char *text)
{
	if (text[0] == '\0')
		hx_json_write_null(json, name);
	else
		hx_json_write_any(json, name, hapax_bytes_from_text(text));
}

struct listing {
	struct hx_config *config; /* kept */
	struct hx_json_write json;
};

static void write_scope(struct listing *listing, const char *name)
{
	const struct hx_config_consumer *consumer =
		hx_api_consumer_named(listing->config, hapax_bytes_from_text(name));
	char scope[HX_API_SCOPE_SIZE] = "";

	if (consumer != NULL)
		(void)hx_api_consumer_scope(consumer, scope);
	write_optional(&listing->json, "scope", scope);
}

static void write_consumer(void *context, const struct hx_api_consumer *consumer)
{
	const struct hapax_consumer_stats *stats = &consumer->stats;
	const struct hx_pause *pause = &consumer->pause;
	struct listing *listing = context;
	struct hx_json_write *json = &listing->json;

	hx_json_write_begin(json, NULL, '{');
	hx_json_write_text(json, "name", consumer->name);
	hx_json_write_text(json, "state", consumer->state);
	write_optional(json, "reason", consumer->reason);
	write_scope(listing, consumer->name);
	if (pause->is_paused) {
		hx_json_write_any(json, "paused_by", hapax_bytes_from_text(pause->who));
		hx_json_write_time(json, "paused_at", pause->at_ms);
	}
	hx_json_write_unsigned(json, "received", stats->received);
	hx_json_write_unsigned(json, "acknowledged", stats->acknowledged);
	hx_json_write_unsigned(json, "dead_letters", stats->dead_letters);
	hx_json_write_unsigned(json, "in_hand", stats->in_hand);
	hx_json_write_unsigned(json, "running", stats->running);
	hx_json_write_unsigned(json, "waiting", stats->waiting);
	if (stats->lag >= 0)
		hx_json_write_signed(json, "lag", stats->lag);
	else
		hx_json_write_null(json, "lag");
	hx_json_write_end(json, '}');
}

void hx_api_get_consumers(struct hx_api_request *request)
{
	const struct hx_api_options *options = &request->api->options;
	struct listing listing = {.config = hx_config_current_keep(options->current)};

	hx_api_json(request, &listing.json);
	hx_json_write_begin(&listing.json, "consumers", '[');
	if (options->consumers != NULL)
		options->consumers(options->context, write_consumer, &listing);
	hx_json_write_end(&listing.json, ']');
	hx_config_release(listing.config);
	hx_api_reply_json(request, &listing.json);
}

/* ------------------------------------------------------------------ POST */

#define AT(member) .offset = offsetof(struct hx_pause_json, member)
static const struct hx_json_field pause_fields[] = {
	{"reason", HX_JSON_FIELD_TEXT, .uses = HX_JSON_FIELD_ALWAYS, AT(reason),
	 .max = HX_PAUSE_REASON_SIZE - 1, .doc = "why, for other people"},
	{.name = NULL},
};
#undef AT
const struct hx_json_section hx_pause_json_section = {
	"the body", .fields = pause_fields, .given_offset = offsetof(struct hx_pause_json, given)};

/* A change of one consumer's record. */
struct change {
	char name[HX_API_NAME_SIZE];
	struct hx_pause pause; /* wanted */
	char value[HX_PAUSE_VALUE_SIZE];
	struct hapax_result result;
	struct hapax_op op;
};

/* Has the store done it? A record that another client has claimed stays as it is. */
static bool is_stored(const struct change *change)
{
	const struct hapax_op *op = &change->op;

	return op->status == HAPAX_OK &&
		(op->outcome == HAPAX_OUTCOME_APPLIED ||
		 (op->outcome == HAPAX_OUTCOME_ABSENT && !change->pause.is_paused));
}

static void write_audit(struct hx_json_write *json, const struct hx_api_request *request)
{
	const struct change *change = request->extra;

	hx_json_write_text(json, "consumer", change->name);
	if (change->pause.reason[0] != '\0')
		hx_json_write_any(json, "reason", hapax_bytes_from_text(change->pause.reason));
}

static void on_changed(struct hx_api_request *request)
{
	const struct hx_api_options *options = &request->api->options;
	const struct change *change = request->extra;
	struct hx_json_write json;

	hx_api_audit_detail(
		request, change->pause.is_paused ? "consumer.pause" : "consumer.resume",
		is_stored(change) ? "applied" : hx_api_outcome_name(&change->op), write_audit);
	if (change->op.status != HAPAX_OK) {
		hx_api_fail(request, change->op.status, NULL);
		return;
	}
	if (!is_stored(change)) {
		hx_api_problem(
			request, 409, HX_API_PROBLEM("busy"),
			"nothing changed: the key '%s' of the scope hapax/consumers, which keeps the "
			"pause, is claimed or parked by another client; forget it by force",
			change->name);
		return;
	}
	/* A reload may have removed it meanwhile. */
	(void)options->pause(options->context, change->name, &change->pause);
	hx_api_json(request, &json);
	hx_json_write_text(&json, "outcome", "applied");
	hx_json_write_text(&json, "name", change->name);
	hx_json_write_text(&json, "state", change->pause.is_paused ? "paused" : "resumed");
	hx_api_reply_json(request, &json);
}

/* False: answered. */
static bool read_reason(struct hx_api_request *request, struct hx_pause *pause)
{
	struct hx_pause_json said = {.given = 0};
	enum hapax_status status;

	if (request->body.size == 0)
		return true;
	status = hx_json_object_read(
		&request->reader, &request->reader.tree.nodes[0], request->route->section,
		request->route->use, &said, &request->err);
	if (status != HAPAX_OK) {
		hx_api_fail(request, status, request->err.message);
		return false;
	}
	(void)snprintf(
		pause->reason, sizeof(pause->reason), "%.*s", (int)said.reason.size,
		said.reason.size == 0 ? "" : (const char *)said.reason.data);
	return true;
}

const struct hx_config_consumer *hx_api_consumer_named(
	const struct hx_config *config, struct hapax_bytes name)
{
	for (size_t i = 0; i < config->consumer_count; i++) {
		if (hx_bytes_equal(hapax_bytes_from_text(config->consumers[i].name), name))
			return &config->consumers[i];
	}
	return NULL;
}

bool hx_api_consumer_scope(const struct hx_config_consumer *consumer, char out[HX_API_SCOPE_SIZE])
{
	const struct hx_config_keying *keying = &consumer->keying;
	struct hapax_bytes tenant = hx_config_scope_part(keying->tenant);
	struct hapax_bytes group = hx_config_scope_part(keying->group);

	out[0] = '\0';
	if (keying->tenant_from[0] != '\0' || keying->group_from[0] != '\0')
		return false;
	(void)snprintf(
		out, HX_API_SCOPE_SIZE, "%.*s/%.*s", (int)tenant.size, (const char *)tenant.data,
		(int)group.size, (const char *)group.data);
	return true;
}

void hx_api_no_consumer(struct hx_api_request *request)
{
	hx_api_problem(
		request, 404, HX_API_PROBLEM("no-consumer"),
		"this daemon has no consumer of that name; GET /consumers lists them");
}

void hx_api_post_pause(struct hx_api_request *request)
{
	const struct hx_api_options *options = &request->api->options;
	struct hapax_bytes name = request->names[0];
	struct change *change = hx_api_extra(request, sizeof(*change), NULL);
	struct hx_pause *pause;

	if (change == NULL)
		return;
	(void)snprintf(
		change->name, sizeof(change->name), "%.*s", (int)name.size,
		(const char *)name.data);
	if (options->pause == NULL || !options->pause(options->context, change->name, NULL)) {
		hx_api_no_consumer(request);
		return;
	}
	pause = &change->pause;
	pause->is_known = true;
	pause->is_paused = request->route->use == HX_CONSUMER_PAUSE;
	pause->at_ms = hx_api_now_ms(request->api);
	memcpy(pause->who, request->caller.who, sizeof(pause->who));
	if (!read_reason(request, pause))
		return;
	hx_pause_name(&change->op, pause->is_paused ? HAPAX_OP_SET : HAPAX_OP_FORGET, change->name);
	change->result = (struct hapax_result){
		.kind = HAPAX_RESULT_BYTES, .body = hx_pause_value(pause, change->value)};
	if (pause->is_paused)
		change->op.result = &change->result;
	hx_api_submit(request, &change->op, 1, on_changed);
}
