/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/model.h"
#include "support/store_case.h"
#include "support/virtual_clock.h"

enum {
	BATCH_MAX = 16,
	KEYS_MAX = 8,
	SCOPES_MAX = 3,
	OP_TYPES = HAPAX_OP_EXPIRE + 1,
	RING_SIZE = 40,
	OLD_TOKENS = 8,
	GROUP_MAX = 4,
};

/* Keys that a packing index could confuse: equal but for case, dashes, length, a NUL. */
static const struct hapax_bytes key_names[KEYS_MAX] = {
	{"k", 1},
	{"0198c1a2-7b3c-7def-8123-456789abcdef", 36},
	{"0198c1a27b3c7def8123456789abcdef", 32},
	{"0198C1A2-7B3C-7DEF-8123-456789ABCDEF", 36},
	{"0198c1a2-7b3c-7def-8123-456789abcdeg", 36},
	{"k\0", 2},
	{"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 64},
	{"\xff\x00\x80-order:17/\n", 13},
};

static const struct {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
} scopes[SCOPES_MAX] = {
	{{NULL, 0}, {NULL, 0}},
	{{"acme", 4}, {NULL, 0}},
	{{"acme", 4}, {"billing", 7}},
};

/* Of cause.c's form: none, an id alone, all of it, a time alone. */
static const struct hapax_bytes causes[] = {
	{NULL, 0},
	{"\5\0\0\0\0\0\0\0\0\0\0evt_1", 16},
	{"\5\13\5\1\2\3\4\5\0\0\0evt_2order.paid\"/sho\n", 32},
	{"\0\0\0\1\0\0\0\0\0\0\0", 11},
};

#define DAY_MS INT64_C(86400000)

/* 24 h is the default; above 49.7 d 32 bits of milliseconds are too few. */
static const int64_t ttl_choices[] = {
	1, 3, 10, 40, 200, 5000, 0, 2 * DAY_MS, 49 * DAY_MS, 60 * DAY_MS, HAPAX_TTL_FOREVER};
static const int64_t lease_choices[] = {1, 2, 5, 20, 100, 0};
static const int64_t step_choices[] = {
	0, 0, 1, 1, 2, 5, 19, 20, 100, 1000, 40000, 90000000, 30 * DAY_MS};

/* What one operation points at, kept until the next submit. */
struct slot {
	struct hapax_bytes tenant; /* as asked; the store writes its own into the operation */
	struct hapax_bytes group;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	unsigned char body[MODEL_BODY_MAX];
	unsigned char expected[MODEL_BODY_MAX];
	char headers[24];
	char owner[24];
	char error[24];
	struct hapax_result result;
	struct hapax_record record;
	struct hapax_buf *buf;
};

/* The last claim of a key, to be repeated as it was. */
struct last_claim {
	bool is_set;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op;
	char owner[24];
};

struct history {
	struct store_case c;
	struct model model;
	struct choices *choices;
	struct history_report *report;

	/* The shape. */
	bool is_cluster; /* no groups, no limits, tokens for each key */
	size_t key_count;
	size_t scope_count;
	size_t batch_max;
	unsigned weights[OP_TYPES];
	unsigned weight_sum;
	unsigned group_percent;
	unsigned step_percent;
	unsigned sweep_percent;
	unsigned record_percent;
	unsigned repeat_percent;
	unsigned park_percent;
	size_t ttl_first, ttl_count;
	size_t lease_first, lease_count;
	size_t step_count;
	size_t body_max;

	struct slot slots[BATCH_MAX];
	struct hapax_op ops[BATCH_MAX];
	struct last_claim claims[SCOPES_MAX][KEYS_MAX];
	uint64_t old_tokens[OLD_TOKENS];
	bool hours_may_go; /* so long ago that a store may have dropped their counters */
	uint64_t attempts;
	struct hapax_op ring[RING_SIZE];
	int64_t ring_ms[RING_SIZE];
	uint64_t ring_next;
};

/* ------------------------------------------------------------------ choices */

void choices_from_seed(struct choices *choices, uint64_t seed)
{
	*choices = (struct choices){0};
	hx_prng_seed(&choices->prng, seed);
}

void choices_from_bytes(struct choices *choices, const unsigned char *data, size_t size)
{
	*choices = (struct choices){.data = data, .size = size};
}

static bool choices_are_over(const struct choices *choices)
{
	return choices->data && choices->used >= choices->size;
}

/* 0 .. n - 1; n is at most 65,536. Zero when the bytes have come to their end. */
static unsigned choose(struct history *h, size_t n)
{
	struct choices *choices = h->choices;
	unsigned value = 0;

	if (!choices->data)
		return (unsigned)hx_prng_below(&choices->prng, n);
	for (size_t range = 1; range < n && choices->used < choices->size; range <<= 8)
		value = value << 8 | choices->data[choices->used++];
	return (unsigned)(value % n);
}

static bool chance(struct history *h, unsigned percent)
{
	return choose(h, 100) < percent;
}

/* ------------------------------------------------------------------ the shape */

/* Limits of every kind, alone and together; what only memory: has, only there. */
static void choose_limits(struct history *h, struct hapax_store_options *options)
{
	bool memory = !h->c.has_dir;

	/* Its keys are counted apart. */
	if (h->is_cluster)
		return;
	if (choose(h, 6) == 0)
		options->keys_max = 1 + choose(h, h->key_count * h->scope_count);
	if (!store_case_has_limits(&h->c))
		options->keys_max = 0;
	if (choose(h, 8) == 0)
		options->parked_max = 1 + choose(h, 3);
	/* So few that some of the records fit, buckets included. */
	if (choose(h, 8) == 0 && memory)
		options->bytes_max = 2048 + 1024 * choose(h, 8);
	if (choose(h, 2) == 0 && memory && (options->keys_max || options->bytes_max))
		options->evict = HAPAX_EVICT_LRU;
}

static void choose_shape(struct history *h)
{
	struct hapax_store_options *options = &h->c.options;

	h->key_count = 1 + choose(h, KEYS_MAX);
	h->scope_count = 1 + choose(h, SCOPES_MAX);
	h->batch_max = (size_t[]){1, 2, 5, BATCH_MAX}[choose(h, 4)];
	for (unsigned type = HAPAX_OP_CLAIM; type < OP_TYPES; type++) {
		h->weights[type] = choose(h, 9);
		if (type == HAPAX_OP_CLAIM)
			h->weights[type] += 4;
		h->weight_sum += h->weights[type];
	}
	h->group_percent = (unsigned[]){0, 10, 40}[choose(h, 3)];
	h->step_percent = (unsigned[]){2, 20, 60}[choose(h, 3)];
	h->sweep_percent = (unsigned[]){0, 1, 10}[choose(h, 3)];
	h->record_percent = (unsigned[]){20, 60, 100}[choose(h, 3)];
	h->repeat_percent = (unsigned[]){5, 25}[choose(h, 2)];
	h->park_percent = (unsigned[]){0, 20, 70}[choose(h, 3)];
	h->ttl_first = choose(h, 6);
	h->ttl_count = 1 + choose(h, sizeof(ttl_choices) / sizeof(*ttl_choices) - h->ttl_first);
	h->lease_first = choose(h, 4);
	h->lease_count =
		1 + choose(h, sizeof(lease_choices) / sizeof(*lease_choices) - h->lease_first);
	h->step_count = 4 + choose(h, sizeof(step_choices) / sizeof(*step_choices) - 3);
	h->body_max = (size_t[]){8, 100, 200, MODEL_BODY_MAX}[choose(h, 4)];

	options->result_size_max = (uint64_t[]){16, 64, 180, 1024}[choose(h, 4)];
	choose_limits(h, options);
	/* Small segments, so that old ones are copied out and merged while it goes on. */
	if (strcmp(h->c.kind, "file:") == 0)
		options->segment_bytes = (uint64_t[]){16384, 24576, 65536, 0}[choose(h, 4)];
}

/* ------------------------------------------------------------------ one operation */

static int64_t now_ms(const struct history *h)
{
	return CASE_EPOCH_MS + h->c.clock.boot_ms;
}

static const unsigned char *choose_fingerprint(struct history *h)
{
	static const char letters[] = {'A', 'A', 'A', 'A', 'B', 0};

	return case_fingerprint(letters[choose(h, sizeof(letters))]);
}

/* The record's own token mostly; else an old one, another key's, or one without a holder. */
static uint64_t choose_token(struct history *h, const struct hapax_op *op)
{
	const struct model_record *record =
		model_find(&h->model, now_ms(h), op->tenant, op->group, op->key);
	uint64_t token = 0;

	switch (choose(h, 10)) {
	default: token = record ? record->token : 0; break;
	case 0:
	case 1: token = h->old_tokens[choose(h, OLD_TOKENS)]; break;
	case 2: token = h->model.keys[choose(h, KEYS_MAX)].token_max; break;
	case 3: token = h->model.token_max + 1 + choose(h, 3); break;
	}
	return token ? token : 1;
}

static void choose_body(struct history *h, unsigned char *body, struct hapax_bytes *ret)
{
	size_t size = choose(h, 4) ? choose(h, 4) : choose(h, h->body_max + 1);

	/* A few values only, so that "equal" and "not equal" both happen. */
	memset(body, (int)choose(h, 3), size);
	*ret = (struct hapax_bytes){body, size};
}

static void fill_result(struct history *h, struct hapax_op *op, struct slot *slot)
{
	struct hapax_result *result = &slot->result;

	if (op->type == HAPAX_OP_COMPLETE && choose(h, 6) == 0)
		return;
	*result = (struct hapax_result){.kind = HAPAX_RESULT_BYTES};
	choose_body(h, slot->body, &result->body);
	if (op->type == HAPAX_OP_COMPLETE) {
		result->kind = (enum hapax_result_kind)(1 + choose(h, 3));
		result->result_class = (enum hapax_result_class)choose(h, 2);
		result->status = (int32_t)choose(h, 600);
		if (result->kind == HAPAX_RESULT_HTTP) {
			int size = snprintf(
				slot->headers, sizeof(slot->headers), "x: %u", choose(h, 3));

			result->headers = (struct hapax_bytes){slot->headers, (size_t)size};
		}
	}
	op->result = result;
}

/* The same point in time, said as one; now and then one that has passed. */
static void choose_time(struct history *h, struct hapax_op *op)
{
	int64_t left_ms = op->ttl_ms;

	if (left_ms == 0 || left_ms == HAPAX_TTL_FOREVER || choose(h, 3) != 0)
		return;
	op->flags |= HAPAX_OP_TTL_IS_TIME;
	op->ttl_ms = now_ms(h) + (choose(h, 8) == 0 ? -left_ms : left_ms);
}

static void fill_claim(struct history *h, struct hapax_op *op, struct slot *slot)
{
	int size = snprintf(slot->owner, sizeof(slot->owner), "worker-%u", choose(h, 4));
	uint64_t number = ++h->attempts;

	op->fingerprint = choose_fingerprint(h);
	op->owner = (struct hapax_bytes){slot->owner, choose(h, 4) ? (size_t)size : 0};
	op->cause = causes[choose(h, sizeof(causes) / sizeof(*causes))];
	op->lease_ms = lease_choices[h->lease_first + choose(h, h->lease_count)];
	op->ttl_ms = ttl_choices[h->ttl_first + choose(h, h->ttl_count)];
	/* A store with files that is full may sweep by itself: then no claim may come due. */
	if (h->c.options.keys_max && h->c.has_dir)
		op->ttl_ms = HAPAX_TTL_FOREVER;
	op->on_lapse = chance(h, h->park_percent) ? HAPAX_ON_LAPSE_PARK : HAPAX_ON_LAPSE_RETRY;
	memset(slot->attempt_id, 0xa7, sizeof(slot->attempt_id));
	memcpy(slot->attempt_id, &number, sizeof(number));
	op->attempt_id = slot->attempt_id;
}

/* The last claim of this key once more, in every word. */
static void repeat_claim(struct hapax_op *op, struct slot *slot, const struct last_claim *claim)
{
	struct hapax_op repeated = claim->op;

	memcpy(slot->attempt_id, claim->attempt_id, sizeof(slot->attempt_id));
	memcpy(slot->owner, claim->owner, sizeof(slot->owner));
	repeated.tenant = op->tenant;
	repeated.group = op->group;
	repeated.attempt_id = slot->attempt_id;
	repeated.owner.data = slot->owner;
	*op = repeated;
}

static void remember_claim(struct last_claim *claim, const struct hapax_op *op)
{
	struct slot *slot = op->context;

	claim->is_set = true;
	claim->op = *op;
	claim->op.flags = 0;
	claim->op.record = NULL;
	claim->op.buf = NULL;
	memcpy(claim->attempt_id, slot->attempt_id, sizeof(claim->attempt_id));
	memcpy(claim->owner, slot->owner, sizeof(claim->owner));
}

/* The outputs hold rubbish, so that one that is left unwritten shows. */
static void spoil_answer(struct hapax_op *op)
{
	op->status = HAPAX_ERR_HANDLER;
	op->outcome = HAPAX_OUTCOME_SKIPPED;
	op->attempt = 0xdeadbeef;
	op->unverified = 77;
	op->repeated = 77;
	op->first_seen_ms = -77;
	op->expires_ms = -78;
	op->lease_left_ms = -79;
	if (op->record)
		op->record->state = HAPAX_STATE_ABSENT;
}

static void place_op(
	struct history *h, struct hapax_op *op, struct slot *slot, unsigned scope, unsigned key)
{
	op->tenant = scopes[scope].tenant;
	op->group = scopes[scope].group;
	/* The default's name and no name are the same scope. */
	if (!op->tenant.size && choose(h, 4) == 0)
		op->tenant = (struct hapax_bytes){"default", 7};
	op->key = key_names[key];
	slot->tenant = op->tenant;
	slot->group = op->group;
}

static void fill_op(
	struct history *h, struct hapax_op *op, struct slot *slot, enum hapax_op_type type,
	unsigned scope, unsigned key)
{
	struct last_claim *claim = &h->claims[scope][key];

	*op = (struct hapax_op){.type = type};
	place_op(h, op, slot, scope, key);
	switch (type) {
	case HAPAX_OP_CLAIM:
		if (claim->is_set && chance(h, h->repeat_percent)) {
			repeat_claim(op, slot, claim);
		} else {
			fill_claim(h, op, slot);
			op->context = slot;
			remember_claim(claim, op);
		}
		break;
	case HAPAX_OP_RENEW:
		op->lease_ms = lease_choices[h->lease_first + choose(h, h->lease_count)];
		op->token = choose_token(h, op);
		break;
	case HAPAX_OP_COMPLETE:
		fill_result(h, op, slot);
		op->token = choose_token(h, op);
		break;
	case HAPAX_OP_RELEASE:
	case HAPAX_OP_PARK: {
		int size = snprintf(slot->error, sizeof(slot->error), "error %u", choose(h, 3));

		op->error = (struct hapax_bytes){slot->error, choose(h, 3) ? (size_t)size : 0};
		op->token = choose_token(h, op);
		break;
	}
	case HAPAX_OP_CHECK:
		op->fingerprint = choose_fingerprint(h);
		op->ttl_ms = ttl_choices[h->ttl_first + choose(h, h->ttl_count)];
		break;
	case HAPAX_OP_LOOKUP: break;
	case HAPAX_OP_FORGET:
		op->flags |= (unsigned[]){0, 0, HAPAX_OP_FORCE, HAPAX_OP_SET_ONLY}[choose(h, 4)];
		if ((op->flags & HAPAX_OP_SET_ONLY) && choose(h, 2) == 0) {
			op->set_if = HAPAX_SET_IF_EQUAL;
			choose_body(h, slot->expected, &op->expected);
		}
		break;
	case HAPAX_OP_SET:
		fill_result(h, op, slot);
		op->ttl_ms = ttl_choices[h->ttl_first + choose(h, h->ttl_count)];
		op->set_if = (enum hapax_set_if)choose(h, 4);
		choose_body(h, slot->expected, &op->expected);
		/* Whether a value was there is not told, so what it would leave is not known. */
		if (choose(h, 4) == 0 && h->c.options.evict == HAPAX_EVICT_NONE)
			op->flags |= HAPAX_OP_KEEP_TTL;
		choose_time(h, op);
		break;
	case HAPAX_OP_EXPIRE:
		op->ttl_ms = ttl_choices[h->ttl_first + choose(h, h->ttl_count)];
		choose_time(h, op);
		break;
	case HAPAX_OP_LOAD: break;
	}
	op->context = slot;
	if (chance(h, h->record_percent)) {
		op->record = &slot->record;
		op->buf = slot->buf;
	}
	spoil_answer(op);
}

static enum hapax_op_type choose_type(struct history *h)
{
	unsigned at = choose(h, h->weight_sum);

	for (unsigned type = HAPAX_OP_CLAIM; type < OP_TYPES; type++) {
		if (at < h->weights[type])
			return (enum hapax_op_type)type;
		at -= h->weights[type];
	}
	return HAPAX_OP_LOOKUP;
}

/*
 * A group of different keys. Of the all-or-nothing kind half are claims alone, one
 * execution over several keys; their attempt_id is one and new.
 */
static size_t fill_group(struct history *h, size_t first, size_t room)
{
	size_t places = h->key_count * h->scope_count;
	size_t count = 2 + choose(h, GROUP_MAX - 1);
	bool together = choose(h, 2);
	bool claims = together && choose(h, 2);
	unsigned start = choose(h, places);

	if (count > places)
		count = places;
	if (count > room)
		count = room;
	for (size_t i = 0; i < count; i++) {
		struct hapax_op *op = &h->ops[first + i];
		struct slot *slot = &h->slots[first + i];
		unsigned place = (unsigned)((start + i) % places);
		enum hapax_op_type type = claims ? HAPAX_OP_CLAIM : choose_type(h);
		unsigned scope = place % (unsigned)h->scope_count;
		unsigned key = place / (unsigned)h->scope_count;

		/* Only claims share a token: a group of several kinds keeps to one claim. */
		if (together && !claims && i > 0 &&
		    (type == HAPAX_OP_CLAIM || type == HAPAX_OP_CHECK || type == HAPAX_OP_SET))
			type = HAPAX_OP_COMPLETE;
		if (together && type == HAPAX_OP_CLAIM)
			h->claims[scope][key].is_set = false;
		fill_op(h, op, slot, type, scope, key);
		if (claims && i > 0) {
			memcpy(slot->attempt_id, h->slots[first].attempt_id,
			       sizeof(slot->attempt_id));
			remember_claim(&h->claims[scope][key], op);
		}
		if (i + 1 < count)
			op->flags |= HAPAX_OP_LINKED;
	}
	if (together)
		h->ops[first].flags |= HAPAX_OP_ALL_OR_NOTHING;
	return count;
}

static size_t fill_batch(struct history *h)
{
	size_t wanted = 1 + choose(h, h->batch_max);
	size_t count = 0;
	/* Now and then all of it on one key, where array order decides. */
	bool one_place = choose(h, 5) == 0;
	/* And now and then checks alone, which a store may have a faster way for. */
	bool checks = choose(h, 8) == 0;
	unsigned scope = choose(h, h->scope_count);
	unsigned key = choose(h, h->key_count);

	while (count < wanted) {
		if (wanted - count >= 2 && !checks && !h->is_cluster &&
		    chance(h, h->group_percent)) {
			count += fill_group(h, count, wanted - count);
			continue;
		}
		if (!one_place) {
			scope = choose(h, h->scope_count);
			key = choose(h, h->key_count);
		}
		fill_op(h, &h->ops[count], &h->slots[count],
			checks ? HAPAX_OP_CHECK : choose_type(h), scope, key);
		count++;
	}
	return count;
}

/* ------------------------------------------------------------------ running */

static void mix(struct history *h, uint64_t value)
{
	for (int i = 0; i < 8; i++) {
		h->report->trace ^= value >> (8 * i) & 0xff;
		h->report->trace *= UINT64_C(0x100000001b3);
	}
}

static void note_batch(struct history *h, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct hapax_op *op = &h->ops[i];
		const struct slot *slot = op->context;

		op->tenant = slot->tenant;
		op->group = slot->group;
		mix(h, op->type);
		mix(h, (uint64_t)(int64_t)op->status);
		mix(h, op->outcome);
		mix(h, op->token);
		if (op->status == HAPAX_OK && op->outcome == HAPAX_OUTCOME_ACQUIRED) {
			mix(h, op->attempt);
			mix(h, (uint64_t)op->first_seen_ms);
			mix(h, (uint64_t)op->expires_ms);
			mix(h, (uint64_t)op->lease_left_ms);
			h->old_tokens[choose(h, OLD_TOKENS)] = op->token;
		}
		h->ring[h->ring_next % RING_SIZE] = *op;
		h->ring_ms[h->ring_next++ % RING_SIZE] = now_ms(h) - CASE_EPOCH_MS;
	}
}

static void print_op(const struct hapax_op *op, int64_t at_ms)
{
	printf("# %8" PRId64 " %-8s %.*s/%.*s/", at_ms, hapax_op_type_name(op->type),
	       (int)op->tenant.size, (const char *)op->tenant.data, (int)op->group.size,
	       (const char *)op->group.data);
	for (size_t i = 0; i < op->key.size; i++) {
		unsigned char byte = ((const unsigned char *)op->key.data)[i];

		printf(byte > ' ' && byte < 0x7f ? "%c" : "\\x%02x", byte);
	}
	printf(" flags %x token %" PRIu64 " fingerprint %c lease %" PRId64 " ttl %" PRId64,
	       op->flags, op->token, op->fingerprint ? op->fingerprint[0] : '-', op->lease_ms,
	       op->ttl_ms);
	if (op->type == HAPAX_OP_CLAIM)
		printf(" %s", hapax_on_lapse_name(op->on_lapse));
	if (op->type == HAPAX_OP_SET)
		printf(" if %d", (int)op->set_if);
	printf(" -> %s %s attempt %u\n", hapax_status_name(op->status),
	       hapax_outcome_name(op->outcome), op->attempt);
}

static bool fail(struct history *h, const char *what)
{
	uint64_t first = h->ring_next > RING_SIZE ? h->ring_next - RING_SIZE : 0;

	snprintf(h->report->why, sizeof(h->report->why), "%s: %s", what, h->model.why);
	printf("# %s\n# keys %zu scopes %zu batch %zu result_size_max %" PRIu64 " keys_max %" PRIu64
	       " bytes_max %" PRIu64 " evict %d parked_max %" PRIu64
	       " hours_may_go %d; the last operations:\n",
	       h->report->why, h->key_count, h->scope_count, h->batch_max,
	       h->c.options.result_size_max, h->c.options.keys_max, h->c.options.bytes_max,
	       (int)h->c.options.evict, h->c.options.parked_max, h->hours_may_go);
	printf("# the model holds %zu claimed, %zu done, %zu failed, %zu parked\n",
	       model_count(&h->model, now_ms(h), HAPAX_STATE_CLAIMED),
	       model_count(&h->model, now_ms(h), HAPAX_STATE_DONE),
	       model_count(&h->model, now_ms(h), HAPAX_STATE_FAILED),
	       model_count(&h->model, now_ms(h), HAPAX_STATE_PARKED));
	for (uint64_t i = first; i < h->ring_next; i++)
		print_op(&h->ring[i % RING_SIZE], h->ring_ms[i % RING_SIZE]);
	fflush(stdout);
	return false;
}

static bool submit_batch(struct history *h)
{
	size_t count = fill_batch(h);

	hapax_store_run(h->c.store, h->ops, count, NULL);
	h->report->submits++;
	h->report->operations += count;
	note_batch(h, count);
	if (!model_submit(&h->model, now_ms(h), h->ops, count)) {
		char what[64];

		snprintf(
			what, sizeof(what), "after %" PRIu64 " operations, batch of %zu",
			h->report->operations, count);
		return fail(h, what);
	}
	return true;
}

static int scan_each(const struct hapax_record *record, void *context)
{
	struct history *h = context;

	return !model_scan_record(&h->model, now_ms(h), record);
}

static bool check_content(struct history *h)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {0};

	scan.count_max = choose(h, 2) ? 0 : 1 + choose(h, 3);
	h->model.why[0] = '\0';
	model_scan_begin(&h->model);
	while (!cursor.done) {
		if (hapax_store_scan(h->c.store, &scan, &cursor, scan_each, h, NULL) != HAPAX_OK)
			return fail(h, "scan failed");
		if (h->model.why[0])
			return fail(h, "scan");
	}
	return model_scan_end(&h->model, now_ms(h)) || fail(h, "scan");
}

static bool check_stats(struct history *h)
{
	struct hapax_stats stats = case_stats(&h->c);
	int64_t now = now_ms(h);

	h->model.why[0] = '\0';
	if (stats.now_ms != now)
		return fail(h, "stats: now_ms is not the store's time");
	/* A refused operation may have used one up. */
	if (stats.token < h->model.token_max)
		return fail(h, "stats: token is below one that was given out");
	if (stats.token > h->model.token_max)
		h->model.token_max = h->model.token_high = stats.token;
	if (stats.claimed != model_count(&h->model, now, HAPAX_STATE_CLAIMED) ||
	    stats.parked != model_count(&h->model, now, HAPAX_STATE_PARKED))
		return fail(h, "stats: claimed or parked");
	if (stats.evicted < h->model.evicted || (stats.evicted && !h->model.evicts))
		return fail(h, "stats: evicted");
	if (h->model.keys_max && stats.keys > h->model.keys_max)
		return fail(h, "stats: more keys than keys_max");
	if (stats.done + stats.evicted < model_count(&h->model, now, HAPAX_STATE_DONE) ||
	    stats.failed < model_count(&h->model, now, HAPAX_STATE_FAILED))
		return fail(h, "stats: done or failed");
	if (stats.claimed + stats.parked + stats.done + stats.failed != stats.keys)
		return fail(h, "stats: keys is not the sum of the states");
	for (unsigned i = 0; i < HAPAX_DECISION_COUNT; i++) {
		uint64_t counted = stats.counts[i];
		uint64_t expected = h->model.counts[i];

		if (h->hours_may_go ? counted > expected : counted != expected) {
			snprintf(
				h->model.why, sizeof(h->model.why),
				"%s %" PRIu64 ", expected %" PRIu64,
				hapax_decision_name((enum hapax_decision)i), counted, expected);
			return fail(h, "stats");
		}
	}
	return true;
}

static bool sweep(struct history *h)
{
	struct hapax_sweep swept = case_sweep(&h->c);
	size_t settled = model_sweep(&h->model, now_ms(h));

	h->model.why[0] = '\0';
	if (swept.lapsed != settled)
		return fail(h, "sweep: lapsed claims settled");
	if (h->model.evicts
		    ? swept.remaining > model_count(&h->model, now_ms(h), HAPAX_STATE_ABSENT)
		    : swept.remaining != model_count(&h->model, now_ms(h), HAPAX_STATE_ABSENT))
		return fail(h, "sweep: remaining");
	return true;
}

static void pass_time(struct history *h)
{
	store_case_advance(&h->c, step_choices[choose(h, h->step_count)]);
	/* The wall clock is not to be trusted: back, ahead, to 1970 (I8). */
	if (choose(h, 10) == 0) {
		static const int64_t walls[] = {
			0, CASE_EPOCH_MS - 86400000, CASE_EPOCH_MS,
			CASE_EPOCH_MS + INT64_C(315360000000)};

		hx_virtual_clock_set_wall(&h->c.clock, walls[choose(h, 4)]);
		h->hours_may_go = h->hours_may_go || h->c.has_dir;
	}
	if (h->c.has_dir && h->c.clock.boot_ms > INT64_C(7) * 86400 * 1000)
		h->hours_may_go = true;
}

static bool step(struct history *h)
{
	if (chance(h, h->step_percent))
		pass_time(h);
	if (chance(h, h->sweep_percent) && !sweep(h))
		return false;
	switch (choose(h, 200)) {
	case 0: return check_content(h);
	case 1: return check_stats(h);
	case 2:
		if (h->c.has_dir)
			store_case_reopen(&h->c);
		return true;
	default: return submit_batch(h);
	}
}

static bool check_end(struct history *h)
{
	return check_content(h) && check_stats(h) && sweep(h) && check_content(h) && check_stats(h);
}

bool history_run(
	const char *kind, struct choices *choices, uint64_t operations,
	struct history_report *ret_report)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		abort();
	h->choices = choices;
	h->report = ret_report;
	*ret_report = (struct history_report){.ok = true, .trace = UINT64_C(0xcbf29ce484222325)};
	store_case_init(&h->c, kind);
	h->is_cluster = strcmp(kind, "redis+cluster:") == 0;
	choose_shape(h);
	for (size_t i = 0; i < BATCH_MAX; i++) {
		h->slots[i].buf = hapax_buf_new(65536);
		if (!h->slots[i].buf)
			abort();
	}
	model_init(&h->model);
	h->model.tokens_per_key = h->is_cluster;
	h->model.result_size_max = h->c.options.result_size_max;
	h->model.keys_max = h->c.options.keys_max;
	h->model.parked_max = h->c.options.parked_max;
	h->model.has_bytes_max = h->c.options.bytes_max != 0;
	h->model.evicts = h->c.options.evict == HAPAX_EVICT_LRU;
	/* Which records share a bucket decides what is evicted first. */
	hx_random_seed_for_tests(1 + choose(h, 65536));
	store_case_open(&h->c);

	while (ret_report->ok && ret_report->operations < operations && !choices_are_over(choices))
		ret_report->ok = step(h);
	ret_report->ok = ret_report->ok && check_end(h);
	ret_report->fenced = h->model.counts[HAPAX_DECISION_FENCED];

	for (size_t i = 0; i < BATCH_MAX; i++)
		hapax_buf_free(h->slots[i].buf);
	store_case_done(&h->c);
	hx_random_seed_for_tests(0);
	free(h);
	return ret_report->ok;
}
