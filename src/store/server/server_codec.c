/* SPDX-License-Identifier: Apache-2.0 */
#include "store/server/server_codec.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "record/record.h"
#include "wire/record/record_json.h"
#include "record/transition.h"
#include "store/core.h"

/* ------------------------------------------------------------------ operations */

static void write_claim(struct hx_json_write *json, const struct hapax_op *op)
{
	if (op->type == HAPAX_OP_CLAIM) {
		hx_json_write_hex(json, "attempt_id", op->attempt_id, HAPAX_ATTEMPT_ID_SIZE);
		hx_json_write_text(json, "on_lapse", hapax_on_lapse_name(op->on_lapse));
		if (op->owner.size > 0)
			hx_json_write_any(json, "owner", op->owner);
		hx_record_cause_write_json(json, op->cause);
	}
	if ((op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK) && op->fingerprint != NULL)
		hx_json_write_hex(json, "fingerprint", op->fingerprint, HAPAX_FINGERPRINT_SIZE);
	if (op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_RENEW)
		hx_json_write_signed(json, "lease_ms", op->lease_ms);
	if (op->type == HAPAX_OP_RENEW || op->type == HAPAX_OP_LOOKUP ||
	    op->type == HAPAX_OP_COMPLETE || op->type == HAPAX_OP_RELEASE ||
	    op->type == HAPAX_OP_PARK || op->type == HAPAX_OP_FORGET || op->type == HAPAX_OP_LOAD)
		return;
	if (op->flags & HAPAX_OP_TTL_IS_TIME)
		hx_json_write_signed(json, "expires_ms", op->ttl_ms);
	else if (op->ttl_ms == HAPAX_TTL_FOREVER)
		hx_json_write_null(json, "ttl_ms");
	else
		hx_json_write_signed(json, "ttl_ms", op->ttl_ms);
}

static void write_condition(struct hx_json_write *json, const struct hapax_op *op)
{
	static const char *const conditions[] = {"always", "absent", "present", "equal"};

	if (op->type != HAPAX_OP_SET && op->type != HAPAX_OP_FORGET)
		return;
	hx_json_write_text(json, "set_if", conditions[op->set_if]);
	if (op->set_if == HAPAX_SET_IF_EQUAL)
		hx_json_write_body(json, "expected", op->expected);
	if (op->flags & HAPAX_OP_KEEP_TTL)
		hx_json_write_boolean(json, "keep_ttl", true);
	if (op->flags & HAPAX_OP_SET_ONLY)
		hx_json_write_boolean(json, "set_only", true);
	if (op->flags & HAPAX_OP_FORCE)
		hx_json_write_boolean(json, "force", true);
}

static void write_load(struct hx_json_write *json, const struct hapax_op *op)
{
	struct hapax_record record = *op->load;

	record.tenant = op->tenant;
	record.group = op->group;
	record.key = op->key;
	hx_json_write_begin(json, "load", '{');
	hx_record_write_json(
		json, &record, HX_RECORD_JSON_WITH_RESULT | HX_RECORD_JSON_WITH_SECRETS);
	hx_json_write_end(json, '}');
}

void hx_server_write_op(
	struct hx_json_write *json, const struct hapax_op *op, struct hx_server_group group)
{
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_text(json, "op", hapax_op_type_name(op->type));
	hx_json_write_any(json, "tenant", op->tenant);
	hx_json_write_any(json, "group", op->group);
	hx_json_write_any(json, "key", op->key);
	if (hx_transition_has_token(op))
		hx_json_write_unsigned(json, "token", op->token);
	write_claim(json, op);
	write_condition(json, op);
	if ((op->type == HAPAX_OP_COMPLETE || op->type == HAPAX_OP_SET) && op->result != NULL)
		hx_record_result_write_json(json, op->result, 0);
	if ((op->type == HAPAX_OP_RELEASE || op->type == HAPAX_OP_PARK) && op->error.size > 0)
		hx_json_write_body(json, "error", op->error);
	if (op->type == HAPAX_OP_LOAD)
		write_load(json, op);
	if (group.is_linked)
		hx_json_write_boolean(json, "linked", true);
	if (group.is_all_or_nothing)
		hx_json_write_boolean(json, "all_or_nothing", true);
	if (op->record != NULL) {
		hx_json_write_boolean(json, "record", true);
		if (op->buf->size_max > 0 && op->buf->size_max <= INT64_MAX)
			hx_json_write_unsigned(json, "record_max", op->buf->size_max);
	}
	hx_json_write_end(json, '}');
}

/* ------------------------------------------------------------------ answers */

struct answer {
	uint64_t given;
	int outcome; /* enum hapax_outcome */
	struct hapax_bytes failure;
	struct hapax_bytes detail;
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	int64_t token;
	int64_t attempt;
	int64_t first_seen_ms;
	int64_t expires_ms;
	int64_t lease_left_ms;
	bool unverified;
	bool repeated;
	struct hx_record_json record;
};

static const char *const outcomes[] = {"acquired", "replay",  "in_progress", "mismatch",
				       "parked",   "applied", "found",       "absent",
				       "busy",     "not_met", "skipped",     NULL};

#define AT(member) .uses = HX_JSON_FIELD_ALWAYS, .offset = offsetof(struct answer, member)
/* Any bytes. */
#define ANY HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS, .max = HX_JSON_SIZE_MAX
static const struct hx_json_field fields[] = {
	{"outcome", HX_JSON_FIELD_CHOICE, AT(outcome), .min = HAPAX_OUTCOME_ACQUIRED,
	 .choices = outcomes},
	{"failure", ANY, AT(failure)},
	{"detail", ANY, AT(detail)},
	{"tenant", ANY, AT(tenant)},
	{"group", ANY, AT(group)},
	{"key", ANY, AT(key)},
	{"token", HX_JSON_FIELD_INTEGER, AT(token), .max = HX_TOKEN_MAX},
	{"attempt", HX_JSON_FIELD_INTEGER, AT(attempt), .max = UINT32_MAX},
	{"first_seen", HX_JSON_FIELD_TIME, AT(first_seen_ms)},
	{"expires_at", HX_JSON_FIELD_TIME, AT(expires_ms)},
	{"lease_left_ms", HX_JSON_FIELD_INTEGER, AT(lease_left_ms), .max = INT64_MAX},
	{"unverified", HX_JSON_FIELD_BOOLEAN, AT(unverified)},
	{"repeated", HX_JSON_FIELD_BOOLEAN, AT(repeated)},
	{"record", HX_JSON_FIELD_OBJECT, AT(record), .section = &hx_record_json_section},
	{.name = NULL},
};
#undef ANY
#undef AT
static const struct hx_json_section answer_section = {
	"an answer", .fields = fields, .given_offset = offsetof(struct answer, given)};

enum hapax_status hx_server_status_of(struct hapax_bytes name)
{
	static const struct hapax_bytes prefix = {"urn:hapax:problem:", 18};
	const char *data = name.data;

	if (name.size > prefix.size && memcmp(data, prefix.data, prefix.size) == 0)
		name = hx_bytes(data + prefix.size, name.size - prefix.size);
	if (hx_bytes_equal(name, HX_BYTES_LIT("no-memory")))
		return HAPAX_ERR_NO_MEMORY;
	for (int status = HAPAX_ERR_INVALID; status >= HAPAX_ERR_FAILED; status--) {
		if (hx_bytes_equal(
			    name,
			    hapax_bytes_from_text(hapax_status_name((enum hapax_status)status))))
			return (enum hapax_status)status;
	}
	return HAPAX_ERR_UNCERTAIN;
}

void hx_server_refuse(struct hapax_op *op, enum hapax_status status)
{
	bool is_harmless = status == HAPAX_ERR_UNCERTAIN && op->type == HAPAX_OP_LOOKUP;

	hx_store_refuse(op, is_harmless ? HAPAX_ERR_UNAVAILABLE : status);
}

bool hx_server_read_record(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX], struct hapax_record *ret_record)
{
	struct hx_record_json said;

	memset(&said, 0, sizeof(said));
	if (hx_json_object_read(
		    reader, node, &hx_record_json_section, HX_JSON_FIELD_ALWAYS, &said, NULL) !=
	    HAPAX_OK)
		return false;
	hx_record_from_json(&said, buffer, ret_record);
	return hx_record_is_valid(ret_record);
}

bool hx_server_read_answer(
	struct hx_json_reader *reader, const struct hx_json_node *node, struct hapax_op *op)
{
	struct answer answer;
	struct hapax_record record;

	memset(&answer, 0, sizeof(answer));
	answer.expires_ms = HAPAX_TIME_NEVER;
	if (hx_json_object_read(
		    reader, node, &answer_section, HX_JSON_FIELD_ALWAYS, &answer, NULL) != HAPAX_OK)
		return false;
	if (answer.failure.size > 0) {
		hx_server_refuse(op, hx_server_status_of(answer.failure));
		return true;
	}
	if (answer.outcome == HAPAX_OUTCOME_NONE)
		return false;
	if (op->record != NULL && answer.record.given != 0) {
		unsigned char cause[HAPAX_CAUSE_SIZE_MAX];
		enum hapax_status status;

		hx_record_from_json(&answer.record, cause, &record);
		if (!hx_record_is_valid(&record))
			return false;
		status = hx_record_copy(&record, op->record, op->buf);
		if (status != HAPAX_OK) {
			/* It may have taken effect; only a lookup changes nothing. */
			hx_store_refuse(
				op, op->type == HAPAX_OP_LOOKUP ? status : HAPAX_ERR_UNCERTAIN);
			return true;
		}
	}
	op->status = HAPAX_OK;
	op->outcome = (enum hapax_outcome)answer.outcome;
	op->attempt = (uint32_t)answer.attempt;
	op->unverified = answer.unverified;
	op->repeated = answer.repeated;
	op->first_seen_ms = answer.first_seen_ms;
	op->expires_ms = answer.expires_ms;
	op->lease_left_ms = answer.lease_left_ms;
	if (!hx_transition_has_token(op))
		op->token = hx_transition_tells_token(op) && answer.token > 0
			? (uint64_t)answer.token
			: 0;
	return true;
}
