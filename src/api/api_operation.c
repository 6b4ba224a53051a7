/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_operation.c - read operations from JSON.
 */
#include "api/api_operation.h"

#include <assert.h>
#include <string.h>

#include "api/route.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/clock.h"
#include "base/limits.h"
#include "config/config.h"
#include "wire/scope_name.h"

/* In the order of their enums. */
static const char *const types[] = {"claim",  "renew",  "complete", "release", "park", "check",
				    "lookup", "forget", "set",      "expire",  "load", NULL};
static const char *const resolutions[] = {"done", "retry", NULL};
static const char *const on_lapses[] = {"retry", "park", NULL};
static const char *const conditions[] = {"always", "absent", "present", "equal", NULL};

enum {
	ALL = HX_USE_CLAIM | HX_USE_RENEW | HX_USE_COMPLETE | HX_USE_RELEASE | HX_USE_PARK |
		HX_USE_CHECK | HX_USE_RESOLVE | HX_USE_ANY,
	HOLDERS = HX_USE_RENEW | HX_USE_COMPLETE | HX_USE_RELEASE | HX_USE_PARK,
};

#define AT(member) .offset = offsetof(struct hx_operation, member)
static const struct hx_json_field fields[] = {
	{"op", HX_JSON_FIELD_CHOICE, .uses = HX_USE_ANY, .required = HX_USE_ANY, AT(type),
	 .min = HAPAX_OP_CLAIM, .choices = types, .doc = "which operation"},
	{"tenant", HX_JSON_FIELD_BYTES, .uses = ALL, AT(tenant), .min = 1,
	 .max = HX_SCOPE_PART_SIZE_MAX, .doc = "default: 'default'"},
	{"group", HX_JSON_FIELD_BYTES, .uses = ALL, AT(group), .min = 1,
	 .max = HX_SCOPE_PART_SIZE_MAX, .doc = "default: 'default'"},
	{"key", HX_JSON_FIELD_BYTES, .uses = ALL, .required = ALL, AT(key), .min = 1,
	 .max = HX_KEY_SIZE_MAX, .doc = "the name of one operation; key_base64 takes any bytes"},
	{"fingerprint", HX_JSON_FIELD_HEX, .flags = HX_JSON_FIELD_NULLABLE,
	 .uses = HX_USE_CLAIM | HX_USE_CHECK | HX_USE_ANY, AT(fingerprint),
	 .min = HAPAX_FINGERPRINT_SIZE, .max = HAPAX_FINGERPRINT_SIZE,
	 .doc = "SHA-256 of the payload; without it a mismatch is not detected"},
	{"attempt_id", HX_JSON_FIELD_HEX, .uses = HX_USE_CLAIM | HX_USE_ANY, AT(attempt_id),
	 .min = HAPAX_ATTEMPT_ID_SIZE, .max = HAPAX_ATTEMPT_ID_SIZE,
	 .doc = "random, new for each claim; use the same one to repeat a call whose answer was "
		"lost"},
	{"owner", HX_JSON_FIELD_BYTES, .uses = HX_USE_CLAIM | HX_USE_ANY, AT(owner),
	 .max = HX_OWNER_SIZE_MAX, .doc = "text for people: who holds the claim"},
	{"event", HX_JSON_FIELD_OBJECT, .flags = HX_JSON_FIELD_NULLABLE,
	 .uses = HX_USE_CLAIM | HX_USE_ANY, AT(event), .section = &hx_event_json_section,
	 .doc = "the event that the key is claimed for; the record remembers it"},
	{"lease_ms", HX_JSON_FIELD_INTEGER, .uses = HX_USE_CLAIM | HX_USE_RENEW | HX_USE_ANY,
	 AT(lease_ms), .min = 1, .max = HX_LEASE_MS_MAX,
	 .doc = "how long the claim lasts without renewal (default: that of the scope, or 30 s)"},
	{"ttl_ms", HX_JSON_FIELD_INTEGER, .flags = HX_JSON_FIELD_NULLABLE,
	 .uses = HX_USE_CLAIM | HX_USE_CHECK | HX_USE_ANY, AT(ttl_ms), .min = 1,
	 .max = HX_TTL_MS_MAX,
	 .doc = "how long a finished key is remembered; null: forever (default: that of the scope, or 24 h)"},
	{"on_lapse", HX_JSON_FIELD_CHOICE, .uses = HX_USE_CLAIM | HX_USE_ANY, AT(on_lapse),
	 .choices = on_lapses, .doc = "what happens to a claim whose lease lapsed"},
	{"token", HX_JSON_FIELD_INTEGER, .uses = HOLDERS | HX_USE_ANY, .required = HOLDERS,
	 AT(token), .min = 1, .max = HX_TOKEN_MAX, .doc = "the fencing token of the claim"},
	{"result", HX_JSON_FIELD_OBJECT, .flags = HX_JSON_FIELD_NULLABLE,
	 .uses = HX_USE_COMPLETE | HX_USE_RESOLVE | HX_USE_ANY, AT(result),
	 .section = &hx_result_json_section,
	 .doc = "what the run returned; duplicates get it as a replay"},
	{"error", HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS,
	 .uses = HX_USE_RELEASE | HX_USE_PARK | HX_USE_RESOLVE | HX_USE_ANY, AT(error),
	 .max = HX_ERROR_TEXT_SIZE_MAX, .doc = "text for people: what went wrong"},
	{"as", HX_JSON_FIELD_CHOICE, .uses = HX_USE_RESOLVE, .required = HX_USE_RESOLVE, AT(as),
	 .choices = resolutions,
	 .doc = "done: it happened; retry: it did not, and the next claim runs"},
	{"force", HX_JSON_FIELD_BOOLEAN, .uses = HX_USE_RESOLVE | HX_USE_ANY, AT(force),
	 .doc = "even while the claim has a live holder"},
	{"set_if", HX_JSON_FIELD_CHOICE, .uses = HX_USE_ANY, AT(set_if), .choices = conditions,
	 .doc = "set, forget: the condition"},
	{"expected", HX_JSON_FIELD_BYTES, .flags = HX_JSON_FIELD_CONTROLS, .uses = HX_USE_ANY,
	 AT(expected), .max = HX_JSON_SIZE_MAX,
	 .doc = "set, forget: the value to compare with if the condition is equal"},
	{"set_only", HX_JSON_FIELD_BOOLEAN, .uses = HX_USE_ANY, AT(set_only),
	 .doc = "forget: only a record made by set"},
	{"keep_ttl", HX_JSON_FIELD_BOOLEAN, .uses = HX_USE_ANY, AT(keep_ttl),
	 .doc = "set: keep the expiry"},
	{"expires_ms", HX_JSON_FIELD_INTEGER, .uses = HX_USE_ANY, AT(expires_ms), .min = 1,
	 .max = HX_UTC_MS_MAX,
	 .doc = "set, expire: when it expires, in milliseconds since 1970, instead of ttl_ms"},
	{"linked", HX_JSON_FIELD_BOOLEAN, .uses = HX_USE_ANY, AT(linked),
	 .doc = "this operation and the next one take effect in one step"},
	{"all_or_nothing", HX_JSON_FIELD_BOOLEAN, .uses = HX_USE_ANY, AT(all_or_nothing),
	 .doc = "on the first operation of a group: all of the group or nothing"},
	{"load", HX_JSON_FIELD_OBJECT, .uses = HX_USE_ANY, AT(load),
	 .section = &hx_record_json_section, .doc = "load: the record to write as it is"},
	{"record", HX_JSON_FIELD_BOOLEAN, .uses = HX_USE_ANY, AT(record),
	 .doc = "answer with the whole record"},
	{"record_max", HX_JSON_FIELD_INTEGER, .uses = HX_USE_ANY, AT(record_max), .min = 1,
	 .max = INT64_MAX,
	 .doc = "maximum size of the record in bytes; an operation that needs more is not done"},
	{.name = NULL},
};
#undef AT

const struct hx_json_section hx_operation_section = {
	"an operation", .fields = fields, .given_offset = offsetof(struct hx_operation, given)};

struct hx_api_batch *hx_api_batch_new(size_t count, bool is_array, struct hx_budget *budget)
{
	struct hx_api_batch *batch = hx_alloc_zero(1, sizeof(*batch));

	if (batch == NULL)
		return NULL;
	batch->is_array = is_array;
	batch->ops = hx_alloc_zero(count, sizeof(batch->ops[0]));
	batch->items = hx_alloc_zero(count, sizeof(batch->items[0]));
	if (batch->ops == NULL || batch->items == NULL) {
		hx_api_batch_free(batch);
		return NULL;
	}
	batch->count = count;
	for (size_t i = 0; i < count; i++)
		hx_buf_init_budget(
			&batch->items[i].buf, HX_RESULT_SIZE_LIMIT + 1024 * 1024, budget);
	return batch;
}

void hx_api_batch_free(struct hx_api_batch *batch)
{
	if (batch == NULL)
		return;
	assert(batch->count == 0 || batch->items != NULL);
	for (size_t i = 0; i < batch->count; i++) {
		hx_buf_done(&batch->items[i].buf);
		hx_free(batch->items[i].cause);
	}
	hx_free(batch->ops);
	hx_free(batch->items);
	hx_free(batch->indexes);
	hx_free(batch->second);
	hx_free(batch);
}

static bool has(const struct hx_operation *said, const char *name)
{
	return hx_json_object_has(&hx_operation_section, said, name);
}

static enum hapax_op_type type_of(enum hx_operation_use use, const struct hx_operation *said)
{
	switch (use) {
	case HX_USE_CLAIM: return HAPAX_OP_CLAIM;
	case HX_USE_RENEW: return HAPAX_OP_RENEW;
	case HX_USE_COMPLETE: return HAPAX_OP_COMPLETE;
	case HX_USE_RELEASE: return HAPAX_OP_RELEASE;
	case HX_USE_PARK: return HAPAX_OP_PARK;
	case HX_USE_CHECK: return HAPAX_OP_CHECK;
	case HX_USE_RESOLVE: return HAPAX_OP_LOOKUP;
	case HX_USE_ANY: break;
	}
	return (enum hapax_op_type)said->type;
}

static unsigned flags_of(enum hapax_op_type type, const struct hx_operation *said)
{
	unsigned flags = 0;

	flags |= said->linked ? (unsigned)HAPAX_OP_LINKED : 0;
	flags |= said->all_or_nothing ? (unsigned)HAPAX_OP_ALL_OR_NOTHING : 0;
	flags |= said->set_only ? (unsigned)HAPAX_OP_SET_ONLY : 0;
	flags |= said->keep_ttl ? (unsigned)HAPAX_OP_KEEP_TTL : 0;
	flags |= has(said, "expires_ms") ? (unsigned)HAPAX_OP_TTL_IS_TIME : 0;
	flags |= said->force && type == HAPAX_OP_FORGET ? (unsigned)HAPAX_OP_FORCE : 0;
	return flags;
}

static const struct hx_config_scope *scope_of(
	const struct hx_config *config, const struct hapax_op *op)
{
	struct hapax_bytes name = HX_BYTES_LIT("default");

	return hx_config_scope_find(
		config, op->tenant.size > 0 ? op->tenant : name,
		op->group.size > 0 ? op->group : name);
}

/* A scope's settings are in one place, for all doors. */
static void apply_scope(
	const struct hx_config *config, const struct hx_operation *said, struct hapax_op *op)
{
	const struct hx_config_scope *scope = scope_of(config, op);

	if (!has(said, "lease_ms") && (op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_RENEW))
		op->lease_ms = scope->lease_ms;
	if (!has(said, "ttl_ms") && (op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK))
		op->ttl_ms = scope->ttl_ms;
	if (!has(said, "on_lapse") && op->type == HAPAX_OP_CLAIM)
		op->on_lapse = scope->on_lapse;
}

/* Pack the event of the claim, unless its scope forbids it, or of the record to load. */
static enum hapax_status fill_cause(
	struct hx_api_item *item, const struct hx_config *config, struct hapax_op *op,
	struct hapax_error *err)
{
	bool is_load = op->type == HAPAX_OP_LOAD;
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_bytes cause = hx_record_cause_from_json(
		is_load ? &item->said.load.event : &item->said.event, buffer);

	item->load.cause = hx_bytes(NULL, 0);
	if (cause.size == 0 ||
	    (!is_load && config != NULL &&
	     scope_of(config, op)->remember == HX_CONFIG_REMEMBER_OFF))
		return HAPAX_OK;
	item->cause = hx_alloc(cause.size);
	if (item->cause == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0,
			"not enough memory for an event; nothing changed");
	memcpy(item->cause, cause.data, cause.size);
	*(is_load ? &item->load.cause : &op->cause) = hx_bytes(item->cause, cause.size);
	return HAPAX_OK;
}

static void fill(
	struct hx_api_item *item, enum hx_operation_use use, const struct hx_config *config,
	struct hapax_op *op)
{
	struct hx_operation *said = &item->said;
	unsigned char cause[HAPAX_CAUSE_SIZE_MAX];

	op->type = type_of(use, said);
	op->flags = flags_of(op->type, said);
	op->tenant = said->tenant;
	op->group = said->group;
	op->key = said->key;
	op->fingerprint = has(said, "fingerprint") ? said->fingerprint : NULL;
	if (op->type == HAPAX_OP_CLAIM && !has(said, "attempt_id"))
		hapax_attempt_id(said->attempt_id);
	op->attempt_id = said->attempt_id;
	hx_record_result_from_json(&said->result, &item->result);
	op->result = has(said, "result") ? &item->result : NULL;
	op->owner = said->owner;
	op->error = said->error;
	op->expected = said->expected;
	hx_record_from_json(&said->load, cause, &item->load);
	op->load = has(said, "load") ? &item->load : NULL;
	op->lease_ms = said->lease_ms;
	op->ttl_ms = has(said, "expires_ms") ? said->expires_ms : said->ttl_ms;
	op->on_lapse = (enum hapax_on_lapse)said->on_lapse;
	op->set_if = (enum hapax_set_if)said->set_if;
	op->token = (uint64_t)said->token;
	if (use != HX_USE_ANY || said->record) {
		op->record = &item->record;
		op->buf = &item->buf;
		if (said->record_max > 0 && (uint64_t)said->record_max < item->buf.size_max)
			item->buf.size_max = (size_t)said->record_max;
	}
	if (config != NULL && use != HX_USE_ANY)
		apply_scope(config, said, op);
}

/* The store refuses such a name, too, but without a reason. */
static enum hapax_status check_scope(const struct hapax_op *op, struct hapax_error *err)
{
	const char *tenant = hx_scope_name_fault(op->tenant);
	const char *group = hx_scope_name_fault(op->group);

	if ((op->type != HAPAX_OP_CLAIM && op->type != HAPAX_OP_CHECK) ||
	    (tenant == NULL && group == NULL))
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "the %s %s", tenant != NULL ? "tenant" : "group",
		tenant != NULL ? tenant : group);
}

/* The number of items; 0: an empty array. */
static size_t count_items(const struct hx_json_tree *tree, const struct hx_json_node *array)
{
	size_t count = 0;

	for (uint32_t at = array->child; at != 0; at = tree->nodes[at].next)
		count++;
	return count;
}

enum hapax_status hx_api_batch_read(
	struct hx_json_reader *reader, enum hx_operation_use use, const struct hx_config *config,
	struct hx_api_batch **ret_batch, struct hapax_error *err)
{
	const struct hx_json_tree *tree = &reader->tree;
	const struct hx_json_node *node = &tree->nodes[0];
	bool is_array = node->token.type == HX_JSON_ARRAY;
	size_t count = is_array ? count_items(tree, node) : 1;
	struct hx_api_batch *batch;
	enum hapax_status status = HAPAX_OK;

	if (count > HX_API_BATCH_MAX)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0,
			"too many operations in one request: %zu, limit %d", count,
			HX_API_BATCH_MAX);
	/* The same budget as for its text. */
	batch = hx_api_batch_new(count, is_array, reader->scratch.budget);
	if (batch == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0,
			"not enough memory for a request of %zu operations; nothing changed",
			count);
	if (is_array)
		node = &tree->nodes[node->child];
	for (size_t i = 0; i < count && status == HAPAX_OK; i++, node = &tree->nodes[node->next]) {
		status = hx_json_object_read(
			reader, node, &hx_operation_section, use, &batch->items[i].said, err);
		if (status == HAPAX_OK) {
			fill(&batch->items[i], use, config, &batch->ops[i]);
			status = use == HX_USE_ANY ? HAPAX_OK : check_scope(&batch->ops[i], err);
		}
		if (status == HAPAX_OK)
			status = fill_cause(&batch->items[i], config, &batch->ops[i], err);
	}
	if (status != HAPAX_OK) {
		hx_api_batch_free(batch);
		return status;
	}
	*ret_batch = batch;
	return HAPAX_OK;
}
