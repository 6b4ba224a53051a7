/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_out.c - a record on the output.
 */
#include "cli/print/record_out.h"

#include <assert.h>
#include <string.h>

#include <hapax/store.h>

#include "base/bytes.h"
#include "base/hex.h"

/* What is longer than allowed can only come from a damaged store; it is cut. */
static size_t append_part(char *out, struct hapax_bytes part)
{
	size_t size = part.size < HX_SCOPE_PART_SIZE_MAX ? part.size : HX_SCOPE_PART_SIZE_MAX;

	if (size > 0)
		memcpy(out, part.data, size);
	return size;
}

struct hapax_bytes hx_record_out_scope(
	struct hapax_bytes tenant, struct hapax_bytes group, char out[HX_SCOPE_SIZE_MAX])
{
	size_t size = append_part(out, tenant);

	out[size++] = '/';
	size += append_part(out + size, group);
	return hx_bytes(out, size);
}

void hx_record_out_name(
	struct hx_json_out *json, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key)
{
	char scope[HX_SCOPE_SIZE_MAX];

	hx_json_out_bytes(json, "key", key);
	hx_json_out_bytes(json, "scope", hx_record_out_scope(tenant, group, scope));
}

static void write_hex(
	struct hx_json_out *json, const char *name, const unsigned char *data, size_t size)
{
	char text[2 * HAPAX_FINGERPRINT_SIZE + 1];

	assert(2 * size < sizeof(text));
	hx_hex_encode(data, size, text);
	text[2 * size] = '\0';
	hx_json_out_text(json, name, text);
}

void hx_record_out_result(struct hx_json_out *json, const struct hapax_result *result)
{
	if (result->kind == HAPAX_RESULT_NONE) {
		hx_json_out_null(json, "result");
		return;
	}
	hx_json_out_object_begin(json, "result");
	hx_json_out_text(json, "kind", hapax_result_kind_name(result->kind));
	hx_json_out_text(json, "class", hapax_result_class_name(result->result_class));
	hx_json_out_signed(json, "status", result->status);
	/* Of an exec they are private to `run`. */
	if (result->kind == HAPAX_RESULT_HTTP)
		hx_json_out_bytes(json, "headers", result->headers);
	hx_json_out_bytes(json, "body", result->body);
	if (result->omitted_bytes > 0)
		hx_json_out_unsigned(json, "omitted_bytes", result->omitted_bytes);
	hx_json_out_object_end(json);
}

void hx_record_out_json(
	struct hx_json_out *json, const struct hapax_record *record, bool with_result)
{
	hx_record_out_name(json, record->tenant, record->group, record->key);
	hx_json_out_text(json, "state", hapax_state_name(record->state));
	hx_json_out_text(json, "origin", hapax_origin_name(record->origin));
	hx_json_out_unsigned(json, "token", record->token);
	hx_json_out_unsigned(json, "attempt", record->attempt);
	hx_json_out_time(json, "first_seen", record->first_seen_ms);
	hx_json_out_time(json, "changed_at", record->changed_ms);
	hx_json_out_time(json, "expires_at", record->expires_ms);
	if (record->ttl_ms == HAPAX_TTL_FOREVER)
		hx_json_out_null(json, "ttl_ms");
	else
		hx_json_out_signed(json, "ttl_ms", record->ttl_ms);
	if (record->state == HAPAX_STATE_CLAIMED)
		hx_json_out_time(json, "lease_ends_at", record->lease_ends_ms);
	if (record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED)
		hx_json_out_text(json, "on_lapse", hapax_on_lapse_name(record->on_lapse));
	if (record->fingerprint_size)
		write_hex(json, "fingerprint", record->fingerprint, record->fingerprint_size);
	else
		hx_json_out_null(json, "fingerprint");
	if (record->owner.size > 0)
		hx_json_out_bytes(json, "owner", record->owner);
	if (record->error.size > 0)
		hx_json_out_bytes(json, "error", record->error);
	if (with_result)
		hx_record_out_result(json, &record->result);
}

enum hx_colour hx_record_out_colour(enum hapax_state state)
{
	switch (state) {
	case HAPAX_STATE_ABSENT: return HX_COLOUR_NONE;
	case HAPAX_STATE_CLAIMED: return HX_COLOUR_BLUE;
	case HAPAX_STATE_DONE: return HX_COLOUR_GREEN;
	case HAPAX_STATE_FAILED: return HX_COLOUR_RED;
	case HAPAX_STATE_PARKED: return HX_COLOUR_YELLOW;
	}
	return HX_COLOUR_NONE;
}
