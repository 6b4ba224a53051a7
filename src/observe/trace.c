/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/bytes.h"
#include "base/hex.h"
#include "base/sha256.h"

/*
 * From OTLP; enums are numbers in its JSON.
 */
enum {
	KIND_INTERNAL = 1,
	KIND_SERVER = 2,
	KIND_CLIENT = 3,
	KIND_CONSUMER = 5,
	STATUS_ERROR = 2,
};

const char hx_trace_error_status[] = "status";

unsigned hx_trace_note_spans(const struct hx_trace_note *note)
{
	return 1U + note->has_check + note->has_call;
}

void hx_trace_hash_key(struct hapax_bytes key, char out[HX_TRACE_KEY_HASH_SIZE])
{
	static const char prefix[] = "sha256:";
	enum { DIGITS = 16 };
	unsigned char digest[HX_SHA256_SIZE];

	_Static_assert(sizeof(prefix) + DIGITS == HX_TRACE_KEY_HASH_SIZE, "with its NUL");
	hx_sha256(key.data, key.size, digest);
	memcpy(out, prefix, strlen(prefix));
	hx_hex_encode(digest, DIGITS / 2, out + strlen(prefix));
	out[strlen(prefix) + DIGITS] = '\0';
}

/* A 64-bit number is a string in OTLP's JSON. */
static void put_number(struct hx_json_write *json, const char *name, uint64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRIu64, value);
	hx_json_write_text(json, name, digits);
}

static void begin_attribute(struct hx_json_write *json, const char *key)
{
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_text(json, "key", key);
	hx_json_write_begin(json, "value", '{');
}

static void end_attribute(struct hx_json_write *json)
{
	hx_json_write_end(json, '}');
	hx_json_write_end(json, '}');
}

static void put_text(struct hx_json_write *json, const char *key, const char *value)
{
	if (value == NULL || value[0] == '\0')
		return;
	begin_attribute(json, key);
	hx_json_write_text(json, "stringValue", value);
	end_attribute(json);
}

static void put_count(struct hx_json_write *json, const char *key, uint64_t value)
{
	if (value == 0)
		return;
	begin_attribute(json, key);
	put_number(json, "intValue", value);
	end_attribute(json);
}

static void put_error(struct hx_json_write *json, const char *error, unsigned status)
{
	char digits[16];

	(void)snprintf(digits, sizeof(digits), "%u", status);
	put_text(json, "error.type", error == hx_trace_error_status ? digits : error);
}

static void begin_span(
	struct hx_json_write *json, const struct hx_trace_note *note, const unsigned char *id,
	const unsigned char *parent_id, const char *name, unsigned kind)
{
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_hex(json, "traceId", note->context.trace_id, HX_TRACE_ID_SIZE);
	hx_json_write_hex(json, "spanId", id, HX_SPAN_ID_SIZE);
	if (parent_id != NULL)
		hx_json_write_hex(json, "parentSpanId", parent_id, HX_SPAN_ID_SIZE);
	hx_json_write_text(json, "name", name);
	hx_json_write_unsigned(json, "kind", kind);
}

static void put_times(struct hx_json_write *json, int64_t begin_ns, int64_t end_ns)
{
	put_number(json, "startTimeUnixNano", (uint64_t)begin_ns);
	/* The clock may have been set back. */
	put_number(json, "endTimeUnixNano", (uint64_t)(end_ns > begin_ns ? end_ns : begin_ns));
}

static void end_span(struct hx_json_write *json, const char *error)
{
	if (error != NULL) {
		hx_json_write_begin(json, "status", '{');
		hx_json_write_unsigned(json, "code", STATUS_ERROR);
		hx_json_write_end(json, '}');
	}
	hx_json_write_end(json, '}');
}

static void put_link(struct hx_json_write *json, const struct hx_trace_context *original)
{
	hx_json_write_begin(json, "links", '[');
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_hex(json, "traceId", original->trace_id, HX_TRACE_ID_SIZE);
	hx_json_write_hex(json, "spanId", original->span_id, HX_SPAN_ID_SIZE);
	hx_json_write_end(json, '}');
	hx_json_write_end(json, ']');
}

static void write_process(struct hx_json_write *json, const struct hx_trace_note *note)
{
	begin_span(
		json, note, note->context.span_id, note->has_parent ? note->parent_id : NULL,
		note->name, note->is_message ? KIND_CONSUMER : KIND_SERVER);
	put_times(json, note->began_ns, note->ended_ns);
	hx_json_write_begin(json, "attributes", '[');
	put_text(json, "cloudevents.event_id", note->event_id);
	put_text(json, "cloudevents.event_source", note->event_source);
	put_text(json, "cloudevents.event_type", note->event_type);
	if (note->event_id[0] != '\0')
		put_text(json, "messaging.operation.type", "process");
	if (!note->is_message)
		put_text(json, "http.request.method", note->method);
	put_count(json, "http.response.status_code", note->reply_status);
	put_text(json, note->is_message ? "hapax.consumer" : "hapax.route", note->route);
	put_text(json, "hapax.scope", note->scope);
	put_text(json, "hapax.decision", note->decision);
	put_error(json, note->error, note->reply_status);
	hx_json_write_end(json, ']');
	if (note->has_original)
		put_link(json, &note->original);
	end_span(json, note->error);
}

static void write_check(struct hx_json_write *json, const struct hx_trace_note *note)
{
	begin_span(
		json, note, note->check_id, note->context.span_id, "idempotency_check",
		KIND_INTERNAL);
	put_times(json, note->asked_ns, note->decided_ns);
	hx_json_write_begin(json, "attributes", '[');
	put_text(json, "hapax.decision", note->decision);
	put_text(json, "hapax.scope", note->scope);
	put_text(json, "hapax.key_hash", note->key_hash);
	put_count(json, "hapax.token", note->token);
	put_count(json, "hapax.attempt", note->attempt);
	put_error(json, note->check_error, 0);
	hx_json_write_end(json, ']');
	end_span(json, note->check_error);
}

static void write_call(struct hx_json_write *json, const struct hx_trace_note *note)
{
	begin_span(json, note, note->call_id, note->context.span_id, note->method, KIND_CLIENT);
	put_times(json, note->sent_ns, note->answered_ns);
	hx_json_write_begin(json, "attributes", '[');
	put_text(json, "http.request.method", note->method);
	put_text(json, "server.address", note->upstream_host);
	put_count(json, "server.port", note->upstream_port);
	put_count(json, "http.response.status_code", note->upstream_status);
	put_error(json, note->call_error, note->upstream_status);
	hx_json_write_end(json, ']');
	end_span(json, note->call_error);
}

void hx_trace_write_begin(struct hx_json_write *json, const char *service_name)
{
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_begin(json, "resourceSpans", '[');
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_begin(json, "resource", '{');
	hx_json_write_begin(json, "attributes", '[');
	put_text(json, "service.name", service_name);
	put_text(json, "service.version", hapax_version());
	hx_json_write_end(json, ']');
	hx_json_write_end(json, '}');
	hx_json_write_begin(json, "scopeSpans", '[');
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_begin(json, "scope", '{');
	hx_json_write_text(json, "name", "hapax");
	hx_json_write_text(json, "version", hapax_version());
	hx_json_write_end(json, '}');
	hx_json_write_begin(json, "spans", '[');
}

void hx_trace_write_note(struct hx_json_write *json, const struct hx_trace_note *note)
{
	write_process(json, note);
	if (note->has_check)
		write_check(json, note);
	if (note->has_call)
		write_call(json, note);
}

void hx_trace_write_end(struct hx_json_write *json)
{
	hx_json_write_end(json, ']');
	hx_json_write_end(json, '}');
	hx_json_write_end(json, ']');
	hx_json_write_end(json, '}');
	hx_json_write_end(json, ']');
	hx_json_write_end(json, '}');
}
