/* SPDX-License-Identifier: Apache-2.0 */
/* cases_input.c - bad input: a definite status, a message, and nothing done. */
#include "conformance/cases.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"

static struct hapax_op check_of(const void *key, size_t size)
{
	return (struct hapax_op){.type = HAPAX_OP_CHECK, .key = {key, size}, .ttl_ms = 60000};
}

/* A key is bytes: any of them, a NUL too, and nothing is taken for the same. */
static void key_may_be_any_bytes(void **state)
{
	struct store_case *c = *state;
	static const struct hapax_bytes near_equals[] = {
		{"key", 3},
		{"key\0", 4},
		{"key\0\0", 5},
		{"\0key", 4},
		{"KEY", 3},
		{"0198c1a2-7b3c-7def-8123-456789abcdef", 36},
		{"0198c1a27b3c7def8123456789abcdef", 32},
		{"0198C1A2-7B3C-7DEF-8123-456789ABCDEF", 36},
		{"0198c1a2-7b3c-7def-8123-456789ABCDEF", 36},
		{"\x01\x98\xc1\xa2\x7b\x3c\x7d\xef\x81\x23\x45\x67\x89\xab\xcd\xef", 16},
		{"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 64},
		{"E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855", 64},
		{"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85", 63},
		{"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8550", 65},
	};

	for (int byte = 0; byte < 256; byte++) {
		unsigned char key = (unsigned char)byte;
		struct hapax_op op = check_of(&key, 1);

		must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
		assert_true(case_bytes_are(c->record.key, &key, 1));
		must_run(c, &op, HAPAX_OUTCOME_REPLAY);
		assert_true(case_bytes_are(c->record.key, &key, 1));
	}
	for (size_t i = 0; i < sizeof(near_equals) / sizeof(near_equals[0]); i++) {
		struct hapax_op op = check_of(near_equals[i].data, near_equals[i].size);

		must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
		must_run(c, &op, HAPAX_OUTCOME_REPLAY);
		assert_true(
			case_bytes_are(c->record.key, near_equals[i].data, near_equals[i].size));
	}
}

/* Every length from 1 to 1,024 is good, and each length is another key. */
static void key_has_bounds(void **state)
{
	struct store_case *c = *state;
	static unsigned char key[HX_KEY_SIZE_MAX + 1];
	struct hapax_op op;

	memset(key, 'a', sizeof(key));
	for (size_t size = 1; size <= HX_KEY_SIZE_MAX; size++) {
		op = check_of(key, size);
		must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
		assert_true(case_bytes_are(c->record.key, key, size));
	}
	op = check_of(key, HX_KEY_SIZE_MAX);
	must_run(c, &op, HAPAX_OUTCOME_REPLAY);
	assert_true(case_bytes_are(c->record.key, key, HX_KEY_SIZE_MAX));

	for (unsigned type = HAPAX_OP_CLAIM; type <= HAPAX_OP_EXPIRE; type++) {
		static const struct hapax_bytes bad[] = {
			{NULL, 0}, {"", 0}, {NULL, 5}, {key, HX_KEY_SIZE_MAX + 1}};

		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			op = case_op_token(c, (enum hapax_op_type)type, "", 1);
			op.key = bad[i];
			assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
			assert_int_equal(op.outcome, HAPAX_OUTCOME_NONE);
		}
	}
	assert_int_equal(case_stats(c).keys, HX_KEY_SIZE_MAX);
}

static void scope_has_bounds(void **state)
{
	struct store_case *c = *state;
	static char name[HX_SCOPE_PART_SIZE_MAX + 1];
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");

	memset(name, 'n', sizeof(name));
	name[5] = '\0';
	op.tenant = (struct hapax_bytes){name, HX_SCOPE_PART_SIZE_MAX};
	op.group = (struct hapax_bytes){name, HX_SCOPE_PART_SIZE_MAX};
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_true(case_bytes_are(c->record.tenant, name, HX_SCOPE_PART_SIZE_MAX));
	assert_true(case_bytes_are(c->record.group, name, HX_SCOPE_PART_SIZE_MAX));
	for (int i = 0; i < 4; i++) {
		struct hapax_bytes bad = i < 2 ? (struct hapax_bytes){name, sizeof(name)}
					       : (struct hapax_bytes){NULL, 3};

		op = case_op(c, HAPAX_OP_CHECK, "k");
		*(i % 2 ? &op.tenant : &op.group) = bad;
		assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
	}
	assert_int_equal(case_stats(c).keys, 1);
}

/* Types, flags, enums and pointers that mean nothing. */
static void bad_operations_are_refused(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[16];
	size_t count = 0;

	ops[count++] = case_op(c, (enum hapax_op_type)0, "k");
	ops[count++] = case_op(c, (enum hapax_op_type)11, "k");
	ops[count++] = case_op(c, (enum hapax_op_type) - 1, "k");
	ops[count] = case_op(c, HAPAX_OP_CLAIM, "k");
	ops[count++].attempt_id = NULL;
	ops[count] = case_op(c, HAPAX_OP_CLAIM, "k");
	ops[count++].attempt_id = (const unsigned char[HAPAX_ATTEMPT_ID_SIZE]){0};
	ops[count] = case_op(c, HAPAX_OP_CLAIM, "k");
	ops[count++].on_lapse = (enum hapax_on_lapse)2;
	ops[count] = case_op(c, HAPAX_OP_CLAIM, "k");
	ops[count++].flags = HAPAX_OP_FORCE;
	ops[count] = case_op(c, HAPAX_OP_CHECK, "k");
	ops[count++].flags = 1u << 30;
	ops[count] = case_op(c, HAPAX_OP_SET, "k");
	ops[count++].set_if = (enum hapax_set_if)4;
	ops[count] = case_op(c, HAPAX_OP_SET, "k");
	ops[count++].expected = (struct hapax_bytes){NULL, 4};
	ops[count] = case_op(c, HAPAX_OP_CLAIM, "k");
	ops[count++].owner = (struct hapax_bytes){NULL, 4};
	ops[count++] = case_op_token(c, HAPAX_OP_COMPLETE, "k", 0);
	ops[count++] = case_op_token(c, HAPAX_OP_RENEW, "k", UINT64_C(1) << 53);
	ops[count++] = case_op_token(c, HAPAX_OP_PARK, "k", UINT64_MAX);
	ops[count] = case_op_token(c, HAPAX_OP_RELEASE, "k", 1);
	ops[count++].error = (struct hapax_bytes){NULL, 4};

	struct hapax_error err = {0};
	assert_int_equal(hapax_store_run(c->store, ops, count, &err), HAPAX_ERR_INVALID);
	assert_int_equal(err.status, HAPAX_ERR_INVALID);
	assert_true(err.message[0] != '\0');
	assert_null(strchr(err.message, '\n'));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(ops[i].status, HAPAX_ERR_INVALID);
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_NONE);
	}
	/* A record without a buffer for its bytes. */
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");
	op.record = &c->record;
	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_stats(c).keys, 0);
}

/* "Zero it, then set what its type needs": what it does not need is not read. */
static void unused_members_are_not_read(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");

	op.on_lapse = (enum hapax_on_lapse)77;
	op.set_if = (enum hapax_set_if)77;
	op.lease_ms = -1;
	op.owner = (struct hapax_bytes){NULL, 4};
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(c->record.on_lapse, HAPAX_ON_LAPSE_RETRY);
	op = case_op(c, HAPAX_OP_LOOKUP, "k");
	op.ttl_ms = op.lease_ms = -1;
	must_run(c, &op, HAPAX_OUTCOME_FOUND);
}

/* A refused operation does not disturb its neighbors. */
static void refused_operation_is_left_out(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[] = {
		case_op(c, HAPAX_OP_CHECK, "a"), case_op(c, HAPAX_OP_CHECK, ""),
		case_op(c, HAPAX_OP_CHECK, "a"), case_op_token(c, HAPAX_OP_COMPLETE, "b", 1),
		case_op(c, HAPAX_OP_CHECK, "b"),
	};
	struct hapax_error err = {0};

	/* The first status that is not OK. */
	assert_int_equal(hapax_store_run(c->store, ops, 5, &err), HAPAX_ERR_INVALID);
	assert_int_equal(err.status, HAPAX_ERR_INVALID);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[1].status, HAPAX_ERR_INVALID);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(ops[3].status, HAPAX_ERR_FENCED);
	assert_int_equal(ops[4].outcome, HAPAX_OUTCOME_ACQUIRED);
}

/* One submit takes at most 65,536 operations, and none is a submit too. */
static void submit_has_bounds(void **state)
{
	struct store_case *c = *state;
	size_t count = HX_SUBMIT_OPS_MAX + 1;
	struct hapax_op *ops = calloc(count, sizeof(*ops));
	struct hapax_error err = {0};

	assert_non_null(ops);
	assert_int_equal(hapax_store_run(c->store, NULL, 0, &err), HAPAX_OK);
	for (size_t i = 0; i < count; i++)
		ops[i] = check_of(i % 3 ? "a" : "b", 1);
	assert_int_equal(hapax_store_run(c->store, ops, count, &err), HAPAX_ERR_INVALID);
	assert_true(err.message[0] != '\0');
	assert_int_equal(case_stats(c).keys, 0);
	assert_int_equal(hapax_store_run(c->store, ops, count - 1, &err), HAPAX_OK);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_ACQUIRED);
	for (size_t i = 2; i < count - 1; i++)
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_REPLAY);
	free(ops);
}

/* A URL that opens nothing says why, and leaves nothing behind. */
static void bad_urls_are_refused(void **state)
{
	struct store_case *c = *state;
	static const char *const unknown[] = {"", "memory", "redis", "nothing:x", ":", "MEMORY:"};
	struct hapax_store *const untouched = (struct hapax_store *)(uintptr_t)1;
	struct hapax_store *store = untouched;
	struct hapax_error err;

	(void)c;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		memset(&err, 0, sizeof(err));
		assert_int_equal(
			hapax_store_open(unknown[i], NULL, &store, &err), HAPAX_ERR_UNSUPPORTED);
		assert_int_equal(err.status, HAPAX_ERR_UNSUPPORTED);
		/* The message lists the known ones. */
		assert_non_null(strstr(err.message, "memory:"));
		assert_true(store == untouched);
	}
	assert_int_equal(hapax_store_open(NULL, NULL, &store, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_store_open("memory:", NULL, NULL, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_store_open("memory:path", NULL, &store, &err), HAPAX_ERR_INVALID);
	assert_true(store == untouched);
	hapax_store_close(NULL);
}

static void bad_options_are_refused(void **state)
{
	struct store_case *c = *state;
	struct hapax_store *store = NULL;
	struct hapax_store_options bad[8];
	struct hapax_error err;

	for (size_t i = 0; i < 8; i++)
		bad[i] = c->options;
	bad[0].size = 0;
	bad[1].size = sizeof(bad[1]) + 8;
	bad[2].evict = (enum hapax_evict)2;
	bad[3].clock_step_ms_max = -1;
	bad[4].sweep_interval_ms = -1;
	bad[5].timeout_ms = -1;
	bad[6].timeout_ms = INT64_MAX;
	bad[7].result_size_max = UINT64_MAX;
	for (size_t i = 0; i < 8; i++) {
		memset(&err, 0, sizeof(err));
		assert_int_equal(
			hapax_store_open(c->url, &bad[i], &store, &err), HAPAX_ERR_INVALID);
		assert_true(err.message[0] != '\0');
		assert_null(store);
	}
}

/* A store with files: what is not there is not made unless asked for. */
static void missing_place_is_refused(void **state)
{
	struct store_case *c = *state;
	struct hapax_store_options options = c->options;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char url[512];

	options.flags |= HAPAX_STORE_MUST_EXIST;
	snprintf(url, sizeof(url), "%s%s/absent.db", c->kind, c->dir.path);
	assert_true(hapax_store_open(url, &options, &store, &err) != HAPAX_OK);
	assert_true(err.message[0] != '\0');
	assert_null(store);
	assert_int_equal(access(url + strlen(c->kind), F_OK), -1);
	snprintf(url, sizeof(url), "%s%s/no/such/folder/x.db", c->kind, c->dir.path);
	options.flags &= ~(unsigned)HAPAX_STORE_MUST_EXIST;
	assert_true(hapax_store_open(url, &options, &store, &err) != HAPAX_OK);
	assert_null(store);
	snprintf(url, sizeof(url), "%s", c->kind);
	assert_true(hapax_store_open(url, &options, &store, &err) != HAPAX_OK);
	assert_null(store);
	snprintf(url, sizeof(url), "%s%s", c->kind, c->dir.path);
	assert_true(hapax_store_open(url, &options, &store, &err) != HAPAX_OK);
	assert_null(store);
	/* Eviction would forget what was promised to be kept. */
	options.evict = HAPAX_EVICT_LRU;
	assert_true(hapax_store_open(c->url, &options, &store, &err) != HAPAX_OK);
	assert_null(store);
}

/* A group without all-or-nothing goes on beside a member that cannot even be read. */
static void group_goes_on_beside_a_bad_key(void **state)
{
	struct store_case *c = *state;
	static const struct hapax_bytes bad[] = {{NULL, 5}, {NULL, 1}, {NULL, 0}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hapax_op ops[3];

		ops[0] = case_op(c, HAPAX_OP_CHECK, (const char *[]){"first", "f", "F"}[i]);
		ops[1] = case_op(c, HAPAX_OP_CHECK, "");
		ops[2] = case_op(c, HAPAX_OP_CHECK, (const char *[]){"third", "t", "T"}[i]);
		ops[1].key = bad[i];
		ops[0].flags = ops[1].flags = HAPAX_OP_LINKED;
		assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_ERR_INVALID);
		assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(ops[1].status, HAPAX_ERR_INVALID);
		assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_ACQUIRED);
	}
}

static int stop_at_once(const struct hapax_record *record, void *context)
{
	(void)record;
	(void)context;
	return 1;
}

/* A length without data is refused, not followed. */
static void scan_of_nothing_is_refused(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");

	op.tenant = op.group = hapax_bytes_from_text("t");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	for (int i = 0; i < 3; i++) {
		struct hapax_scan scan = HAPAX_SCAN_INIT;
		struct hapax_cursor cursor = {0};

		*(struct hapax_bytes *[]){&scan.tenant, &scan.group, &scan.prefix}[i] =
			(struct hapax_bytes){NULL, 1};
		assert_int_equal(
			hapax_store_scan(c->store, &scan, &cursor, stop_at_once, NULL, NULL),
			HAPAX_ERR_INVALID);
	}
}

/* Too many keys for a group are refused before they are sorted. */
static void claim_of_too_many_keys_is_refused(void **state)
{
	struct store_case *c = *state;
	enum { COUNT = 1025 };
	struct hapax_op *ops = calloc(COUNT, sizeof(*ops));
	enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;
	struct hapax_error err = {0};
	size_t index = 0;

	assert_non_null(ops);
	for (size_t i = 0; i < COUNT; i++)
		ops[i] = case_op(c, HAPAX_OP_CLAIM, i ? "a" : "z");
	assert_int_equal(
		hapax_store_claim_all(c->store, ops, COUNT, &outcome, &index, &err),
		HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "1024"));
	assert_true(case_bytes_are(ops[0].key, "z", 1));
	free(ops);
}

/* Asking about scopes without records: nothing is there, and nothing is kept of it. */
static void unknown_scopes_are_empty(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[4];
	uint64_t fenced = case_stats(c).counts[HAPAX_DECISION_FENCED];

	for (int i = 0; i < 4; i++) {
		ops[i] = case_op_token(
			c,
			(enum hapax_op_type[]){
				HAPAX_OP_LOOKUP, HAPAX_OP_FORGET, HAPAX_OP_EXPIRE,
				HAPAX_OP_COMPLETE}[i],
			"k", 1);
		ops[i].tenant = hapax_bytes_from_text((const char *[]){"a", "b", "c", "d"}[i]);
		ops[i].flags = i < 3 ? HAPAX_OP_LINKED : 0;
	}
	/* Four scopes: the same key is not the same record. */
	assert_int_equal(hapax_store_run(c->store, ops, 4, NULL), HAPAX_ERR_FENCED);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_ABSENT);
	assert_int_equal(ops[3].status, HAPAX_ERR_FENCED);
	assert_int_equal(case_stats(c).counts[HAPAX_DECISION_FENCED], fenced + 1);
	/* The same scope is met as soon as something is written there, in the same array too. */
	ops[0] = case_op(c, HAPAX_OP_CHECK, "k");
	ops[1] = case_op(c, HAPAX_OP_LOOKUP, "k");
	ops[0].tenant = ops[1].tenant = hapax_bytes_from_text("a");
	assert_int_equal(hapax_store_run(c->store, ops, 2, NULL), HAPAX_OK);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_FOUND);
}

const struct conformance_case input_cases[] = {
	{"I13: a key may be any bytes", key_may_be_any_bytes, NEEDS_NOTHING},
	{"I13: a key has bounds", key_has_bounds, NEEDS_NOTHING},
	{"I13: a scope has bounds", scope_has_bounds, NEEDS_NOTHING},
	{"I13: bad operations are refused", bad_operations_are_refused, NEEDS_NOTHING},
	{"I13: unused members are not read", unused_members_are_not_read, NEEDS_NOTHING},
	{"I13: a refused operation is left out", refused_operation_is_left_out, NEEDS_NOTHING},
	{"I13: a submit has bounds", submit_has_bounds, NEEDS_NOTHING},
	{"I13: bad URLs are refused", bad_urls_are_refused, NEEDS_NOTHING},
	{"I13: bad options are refused", bad_options_are_refused, NEEDS_NOTHING},
	{"I13: a missing place is refused", missing_place_is_refused, NEEDS_FILES},
	{"a group goes on beside a bad key", group_goes_on_beside_a_bad_key, NEEDS_WHOLE},
	{"a scan of nothing is refused", scan_of_nothing_is_refused, NEEDS_NOTHING},
	{"a claim of too many keys is refused", claim_of_too_many_keys_is_refused, NEEDS_NOTHING},
	{"unknown scopes are empty", unknown_scopes_are_empty, NEEDS_WHOLE},
	{NULL, NULL, NEEDS_NOTHING},
};
