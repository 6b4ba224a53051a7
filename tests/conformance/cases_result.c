/* SPDX-License-Identifier: Apache-2.0 */
/* cases_result.c - B5: a duplicate gets the result of the first run, byte by byte. */
#include "conformance/cases.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static void complete_with(struct store_case *c, const char *key, const struct hapax_result *result)
{
	struct hapax_op op = case_op_token(c, HAPAX_OP_COMPLETE, key, must_claim(c, key));

	op.result = result;
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
}

/* A claim of the key must replay exactly this. */
static void must_replay(struct store_case *c, const char *key, const struct hapax_result *result)
{
	const struct hapax_result *kept = &c->record.result;

	assert_int_equal(case_claim(c, key, NULL), HAPAX_OUTCOME_REPLAY);
	assert_int_equal(kept->kind, result->kind);
	assert_int_equal(kept->result_class, result->result_class);
	assert_int_equal(kept->status, result->status);
	assert_int_equal(kept->omitted_bytes, result->omitted_bytes);
	assert_true(case_bytes_are(kept->headers, result->headers.data, result->headers.size));
	assert_true(case_bytes_are(kept->body, result->body.data, result->body.size));
}

/* Around every size at which a store may change its way of keeping a body. */
static const size_t sizes[] = {
	0,    1,    2,    15,    16,    17,    63,    64,    65,     100,    120,
	121,  122,  123,  124,   125,   126,   127,   128,   129,    130,    191,
	192,  255,  256,  257,   511,   512,   1000,  1023,  1024,   2048,   4095,
	4096, 4097, 8192, 32767, 32768, 65535, 65536, 65537, 100000, 262143, 262144,
};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void make_body(unsigned char *body, size_t size)
{
	for (size_t i = 0; i < size; i++)
		body[i] = (unsigned char)(i * 31 + size + (i >> 8));
}

/* B5: every size, NULs and all, under every kind. */
static void result_is_replayed_byte_by_byte(void **state)
{
	struct store_case *c = *state;
	static unsigned char body[262144];
	char key[32];

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < SIZES; i++) {
			struct hapax_result result = {
				.kind = (enum hapax_result_kind)(1 + i % 3),
				.result_class = (enum hapax_result_class)(i % 2),
				.status = (int32_t)i * 1000 - 20000,
				.body = {body, sizes[i]}};

			make_body(body, sizes[i]);
			if (result.kind == HAPAX_RESULT_HTTP)
				result.headers = (struct hapax_bytes){"a: b\r\n\0c: d", 11};
			snprintf(key, sizeof(key), "key %zu", i);
			if (round == 0)
				complete_with(c, key, &result);
			must_replay(c, key, &result);
		}
		/* What is durable is so in every byte. */
		if (store_case_is_durable(c))
			store_case_reopen(c);
	}
}

static void result_may_be_none_or_empty(void **state)
{
	struct store_case *c = *state;
	struct hapax_result none = {.kind = HAPAX_RESULT_NONE};
	struct hapax_result empty = {.kind = HAPAX_RESULT_BYTES};
	struct hapax_result extreme = {
		.kind = HAPAX_RESULT_EXEC,
		.result_class = HAPAX_RESULT_DEFINITIVE,
		.status = INT32_MIN,
		.headers = hapax_bytes_from_text("private")};

	complete_with(c, "null", NULL);
	must_replay(c, "null", &none);
	complete_with(c, "none", &none);
	must_replay(c, "none", &none);
	complete_with(c, "empty", &empty);
	must_replay(c, "empty", &empty);
	complete_with(c, "extreme", &extreme);
	must_replay(c, "extreme", &extreme);
	extreme.status = INT32_MAX;
	complete_with(c, "other extreme", &extreme);
	must_replay(c, "other extreme", &extreme);
}

/* Over result_size_max: DONE all the same, status and headers kept, the body counted. */
static void large_result_becomes_a_tombstone(void **state)
{
	struct store_case *c = *state;
	static unsigned char body[1001];
	struct hapax_result result = {
		.kind = HAPAX_RESULT_HTTP,
		.status = 201,
		.headers = hapax_bytes_from_text("location: /orders/17"),
		.body = {body, 1000}};

	c->options.result_size_max = 1000;
	store_case_reopen(c);
	make_body(body, sizeof(body));
	complete_with(c, "fits", &result);
	must_replay(c, "fits", &result);
	result.body.size = 1001;
	complete_with(c, "large", &result);
	result.body = (struct hapax_bytes){NULL, 0};
	result.omitted_bytes = 1001;
	must_replay(c, "large", &result);
	/* A caller that only counted says so itself. */
	result.omitted_bytes = UINT64_C(1) << 40;
	complete_with(c, "counted", &result);
	must_replay(c, "counted", &result);
	assert_int_equal(case_state(c, "counted"), HAPAX_STATE_DONE);
}

/* The default is 256 KiB, the most 16 MiB. */
static void result_size_has_bounds(void **state)
{
	struct store_case *c = *state;
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES};
	unsigned char *body = calloc(1, HX_RESULT_SIZE_LIMIT);
	struct hapax_store *store = NULL;

	assert_non_null(body);
	result.body = (struct hapax_bytes){body, HX_RESULT_SIZE_DEFAULT + 1};
	complete_with(c, "default", &result);
	assert_int_equal(case_claim(c, "default", NULL), HAPAX_OUTCOME_REPLAY);
	assert_int_equal(c->record.result.omitted_bytes, HX_RESULT_SIZE_DEFAULT + 1);

	c->options.result_size_max = HX_RESULT_SIZE_LIMIT;
	store_case_reopen(c);
	make_body(body, HX_RESULT_SIZE_LIMIT);
	result.body.size = HX_RESULT_SIZE_LIMIT;
	complete_with(c, "most", &result);
	must_replay(c, "most", &result);
	free(body);

	c->options.result_size_max = HX_RESULT_SIZE_LIMIT + 1;
	assert_int_equal(hapax_store_open("memory:", &c->options, &store, NULL), HAPAX_ERR_INVALID);
	assert_null(store);
}

/* What no result can be is refused, and the claim lives on. */
static void bad_result_is_refused(void **state)
{
	struct store_case *c = *state;
	static char headers[HX_RESULT_HEADERS_SIZE_MAX + 1];
	uint64_t token = must_claim(c, "k");
	struct hapax_result bad[] = {
		{.kind = (enum hapax_result_kind)4},
		{.kind = HAPAX_RESULT_BYTES, .result_class = (enum hapax_result_class)2},
		{.kind = HAPAX_RESULT_HTTP, .headers = {headers, sizeof(headers)}},
		{.kind = HAPAX_RESULT_HTTP, .headers = {NULL, 1}},
		{.kind = HAPAX_RESULT_BYTES, .body = {NULL, 1}},
		{.kind = HAPAX_RESULT_BYTES, .body = {"x", 1}, .omitted_bytes = 1},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hapax_op op = case_op_token(c, HAPAX_OP_COMPLETE, "k", token);

		op.result = &bad[i];
		assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
		assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
	}
	bad[2].headers.size--;
	memset(headers, 'h', sizeof(headers));
	complete_with(c, "headers", &bad[2]);
	must_replay(c, "headers", &bad[2]);
}

/* Text for people is cut, never a reason to fail; its bytes are kept as they are. */
static void people_text_is_kept_and_cut(void **state)
{
	struct store_case *c = *state;
	static char text[HX_ERROR_TEXT_SIZE_MAX + 100];
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");

	memset(text, 'x', sizeof(text));
	text[3] = '\0';
	op.owner = (struct hapax_bytes){text, sizeof(text)};
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_true(case_bytes_are(c->record.owner, text, HX_OWNER_SIZE_MAX));
	uint64_t token = op.token;
	op = case_op_token(c, HAPAX_OP_PARK, "k", token);
	op.error = (struct hapax_bytes){text, sizeof(text)};
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_PARKED);
	assert_true(case_bytes_are(c->record.error, text, HX_ERROR_TEXT_SIZE_MAX));
	op = case_op_token(c, HAPAX_OP_RELEASE, "k", token);
	op.error = hapax_bytes_from_text("later");
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_FAILED);
	assert_true(case_bytes_are(c->record.error, "later", 5));
	assert_true(case_bytes_are(c->record.owner, text, HX_OWNER_SIZE_MAX));
	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.owner.size, 0);
	assert_int_equal(c->record.error.size, 0);
}

const struct conformance_case result_cases[] = {
	{"B5: a result is replayed byte by byte", result_is_replayed_byte_by_byte, NEEDS_NOTHING},
	{"B5: a result may be none or empty", result_may_be_none_or_empty, NEEDS_NOTHING},
	{"B5 I12: a large result becomes a tombstone", large_result_becomes_a_tombstone,
	 NEEDS_NOTHING},
	{"I12: result size has bounds", result_size_has_bounds, NEEDS_NOTHING},
	{"I13: a bad result is refused", bad_result_is_refused, NEEDS_NOTHING},
	{"E5: text for people is kept and cut", people_text_is_kept_and_cut, NEEDS_NOTHING},
	{NULL, NULL, NEEDS_NOTHING},
};
