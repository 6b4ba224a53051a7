/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an event to scope, key and fingerprint: content keys, policies, limits. B2,
 * C1, E2, E21.
 */
#include "support/key_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/uuid7.h"
#include "support/virtual_clock.h"

static void assert_digest(const unsigned char *digest, const char *text)
{
	unsigned char expected[HX_SHA256_SIZE];

	hx_sha256(text, strlen(text), expected);
	assert_memory_equal(digest, expected, HX_SHA256_SIZE);
}

static void content_keys_are_the_digest_of_the_canonical_text(void **state)
{
	char expected[65];
	unsigned char digest[HX_SHA256_SIZE];

	(void)state;
	hx_sha256("{\"a\":1,\"b\":[true,\"\xc3\xa9\"]}", 23, digest);
	hx_hex_encode(digest, sizeof(digest), expected);
	expected[64] = '\0';
	assert_string_equal(
		key_case_of("content", " {\"b\":[ true, \"\\u00e9\" ],\n\"a\":1.0}"), expected);
}

/* C1: the key of document C's Python, which puts blanks behind commas and colons. */
static void python_keys_are_those_of_document_c(void **state)
{
	struct hapax_key_options options = key_case_relative();
	static const char *const exclude[] = {"ts", "trace_id"};
	struct hapax_event event =
		key_case_event("{\"ts\":1,\"b\":2.0,\"a\":\"\xc3\xa9\",\"trace_id\":\"x\"}");
	struct hapax_key_strategy *strategy;
	struct hapax_key key;
	unsigned char digest[HX_SHA256_SIZE];
	char expected[65];

	(void)state;
	options.canonical = HAPAX_CANONICAL_PYTHON;
	options.exclude = exclude;
	options.exclude_count = 2;
	strategy = key_case_strategy("content", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	hx_sha256("{\"a\": \"\\u00e9\", \"b\": 2.0}", 25, digest);
	hx_hex_encode(digest, sizeof(digest), expected);
	expected[64] = '\0';
	assert_string_equal(key.key, expected);
	/* The fingerprint is lossless all the same. */
	assert_digest(key.fingerprint, "{\"a\":\"\xc3\xa9\",\"b\":2}");
	assert_false(key.is_fingerprint);
	hapax_key_strategy_free(strategy);
}

static void fingerprints_are_of_the_data_only(void **state)
{
	const struct hapax_field attributes[] = {
		{HX_BYTES_LIT("source"), HX_BYTES_LIT("/s")},
		{HX_BYTES_LIT("id"), HX_BYTES_LIT("1")},
		{HX_BYTES_LIT("traceparent"), HX_BYTES_LIT("changes")},
	};
	struct hapax_key_strategy *strategy = key_case_strategy("event-id", NULL);
	struct hapax_event event = key_case_event("{\"b\":2,\"a\":1.0}");
	struct hapax_key key;

	(void)state;
	event.attributes = attributes;
	event.attribute_count = 3;
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_string_equal(key.key, "/s:1");
	assert_true(key.has_fingerprint);
	assert_digest(key.fingerprint, "{\"a\":1,\"b\":2}");
	/* What is not JSON, or has no canonical form, is taken as it came. */
	event.data = HX_BYTES_LIT("{\"a\":1,\"a\":2}");
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_digest(key.fingerprint, "{\"a\":1,\"a\":2}");
	event.data = HX_BYTES_LIT("1e999999999999999999");
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_digest(key.fingerprint, "1e999999999999999999");
	event.data = HX_BYTES_LIT("{\"b\":2,\"a\":1.0}");
	event.data_kind = HAPAX_DATA_BYTES;
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_digest(key.fingerprint, "{\"b\":2,\"a\":1.0}");
	event.data = hx_bytes(NULL, 0);
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_digest(key.fingerprint, "");
	hapax_key_strategy_free(strategy);
}

static void fingerprints_can_be_had_alone_or_not_at_all(void **state)
{
	struct hapax_key_options options = key_case_relative();
	struct hapax_buf *scratch = hapax_buf_new(1 << 20);
	struct hapax_event event = key_case_event("{\"b\":2,\"a\":1.0}");
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	struct hapax_key_strategy *strategy;
	struct hapax_key key;

	(void)state;
	assert_int_equal(hapax_event_fingerprint(&event, scratch, fingerprint, NULL), HAPAX_OK);
	assert_digest(fingerprint, "{\"a\":1,\"b\":2}");
	options.flags |= HAPAX_KEY_NO_FINGERPRINT;
	strategy = key_case_strategy("content", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_false(key.has_fingerprint);
	hapax_key_strategy_free(strategy);
	hapax_buf_free(scratch);
}

/* Not stored twice when the key is the full content hash. */
static void content_keys_know_that_they_are_the_fingerprint(void **state)
{
	static const char *const a[] = {"a"};
	struct hapax_key_options options = key_case_relative();
	struct hapax_event event = key_case_event("{\"b\":2,\"a\":1.0}");
	struct hapax_key_strategy *strategy = key_case_strategy("content", &options);
	struct hapax_key key;
	char digits[65];

	(void)state;
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_true(key.is_fingerprint);
	hx_hex_encode(key.fingerprint, sizeof(key.fingerprint), digits);
	digits[64] = '\0';
	assert_string_equal(key.key, digits);
	hapax_key_strategy_free(strategy);
	/* Chosen fields are less than the payload: a mismatch can be noticed (E14). */
	options.include = a;
	options.include_count = 1;
	strategy = key_case_strategy("content", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_false(key.is_fingerprint);
	assert_digest(key.fingerprint, "{\"a\":1,\"b\":2}");
	hapax_key_strategy_free(strategy);
}

/* C1: what does not matter is in neither; with any strategy. */
static void excluded_fields_are_not_in_the_fingerprint(void **state)
{
	static const char *const exclude[] = {"**.at"};
	struct hapax_key_options options = key_case_relative();
	struct hapax_event event = key_case_event("{\"id\":7,\"at\":1,\"x\":[{\"at\":2,\"y\":3}]}");
	struct hapax_key_strategy *strategy;
	struct hapax_key key;

	(void)state;
	options.exclude = exclude;
	options.exclude_count = 1;
	strategy = key_case_strategy("field:id", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_string_equal(key.key, "7");
	assert_digest(key.fingerprint, "{\"id\":7,\"x\":[{\"y\":3}]}");
	hapax_key_strategy_free(strategy);
	strategy = key_case_strategy("content", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_true(key.is_fingerprint);
	hapax_key_strategy_free(strategy);
}

/* E21: what becomes of an event without a key is a policy, and it is marked. */
static void policies_for_what_is_missing(void **state)
{
	struct hapax_key_options options = key_case_relative();
	struct hapax_event event = key_case_event("{\"a\":1}");
	struct hapax_key_strategy *strategy;
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_key key;

	(void)state;
	strategy = key_case_strategy("field:id", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, &err), HAPAX_ERR_INVALID);
	assert_string_equal(err.message, "'id' is missing");
	hapax_key_strategy_free(strategy);

	options.on_missing = HAPAX_ON_MISSING_PASS;
	strategy = key_case_strategy("field:id", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, &err), HAPAX_OK);
	assert_int_equal(key.kind, HAPAX_KEY_NONE);
	assert_int_equal(key.key_size, 0);
	assert_string_equal(key.missing, "'id' is missing");
	assert_true(key.has_fingerprint);
	hapax_key_strategy_free(strategy);

	options.on_missing = HAPAX_ON_MISSING_CONTENT;
	strategy = key_case_strategy("field:id", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, &err), HAPAX_OK);
	assert_int_equal(key.kind, HAPAX_KEY_CONTENT);
	assert_int_equal(key.key_size, 72);
	assert_memory_equal(key.key, "content:", 8);
	assert_string_equal(key.key + 8, key_case_of("content", "{\"a\":1.0}"));
	assert_string_equal(key.missing, "'id' is missing");
	/* Data that is not JSON has bytes at least; no data has nothing. */
	event.data = HX_BYTES_LIT("{broken");
	assert_int_equal(key_case_make(strategy, &event, &key, &err), HAPAX_OK);
	assert_int_equal(key.kind, HAPAX_KEY_CONTENT);
	assert_non_null(strstr(key.missing, "line 1, column 2"));
	event.data = hx_bytes(NULL, 0);
	assert_int_equal(key_case_make(strategy, &event, &key, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "no data"));
	hapax_key_strategy_free(strategy);
}

/* The content key of the rest when what is included is missing: canonical, and without
 * what is excluded, as the policy says. */
static void policy_content_without_what_is_included(void **state)
{
	static const char *const include[] = {"id"};
	static const char *const exclude[] = {"ts"};
	static const char *const texts[] = {
		"{\"a\":1,\"b\":2,\"ts\":1}", "{\"b\":2.0,\"a\":1,\"ts\":1}",
		"{\"a\":1,\"b\":2,\"ts\":9}", " {\"ts\":9, \"b\":20e-1,\"a\":1}"};
	static const char *const strategies[] = {"content", "hybrid", "field:id"};

	(void)state;
	for (size_t s = 0; s < 3; s++) {
		struct hapax_key_options options = key_case_relative();
		struct hapax_key_strategy *strategy;
		struct hapax_event event;
		struct hapax_key key;
		char digits[65] = "";

		options.on_missing = HAPAX_ON_MISSING_CONTENT;
		options.include = include;
		options.include_count = 1;
		options.exclude = exclude;
		options.exclude_count = 1;
		strategy = key_case_strategy(strategies[s], &options);
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			event = key_case_event(texts[i]);
			assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
			assert_int_equal(key.kind, HAPAX_KEY_CONTENT);
			assert_string_equal(key.missing, "'id' is missing");
			assert_digest(key.fingerprint, "{\"a\":1,\"b\":2}");
			hx_hex_encode(key.fingerprint, sizeof(key.fingerprint), digits);
			assert_memory_equal(key.key, "content:", 8);
			assert_string_equal(key.key + 8, digits);
		}
		/* What has no canonical form has its bytes. */
		event = key_case_event("{\"a\":1e999999999999999999,\"ts\":1}");
		assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
		assert_digest(key.fingerprint, "{\"a\":1e999999999999999999,\"ts\":1}");
		hx_hex_encode(key.fingerprint, sizeof(key.fingerprint), digits);
		assert_string_equal(key.key + 8, digits);
		/* And what has nothing but what does not matter has nothing. */
		event = key_case_event("{\"ts\":1}");
		assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_ERR_INVALID);
		hapax_key_strategy_free(strategy);
	}
}

/* Brackets and names alone are one key for all: that is not a key. */
static void a_key_is_made_of_values(void **state)
{
	static const struct {
		const char *include;
		const char *exclude;
		const char *json;
		bool is_made;
	} cases[] = {
		{NULL, "a", "{\"a\":1}", false},
		{NULL, "a", "{\"a\":1,\"b\":{\"c\":[]}}", false},
		{NULL, "**.a", "[{\"a\":1},{\"a\":2}]", false},
		{NULL, "a", "{\"a\":1,\"b\":{\"c\":[null]}}", true},
		{NULL, "a", "{}", true},
		{NULL, "a", "{\"b\":[]}", true},
		{"items.*.sku", NULL, "{\"id\":7,\"items\":[]}", false},
		{"items.*.sku", NULL, "{\"id\":7,\"items\":[{\"sku\":{}}]}", false},
		{"items.*.sku", NULL, "{\"id\":7,\"items\":[{\"sku\":0}]}", true},
		{"items", "items.*.at", "{\"id\":7,\"items\":[{\"at\":0}]}", false},
		{"items", NULL, "{\"items\":[]}", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_key_options options = key_case_relative();
		struct hapax_event event = key_case_event(cases[i].json);
		struct hapax_error err = {HAPAX_OK, 0, ""};
		struct hapax_key_strategy *strategy;
		struct hapax_key key;

		options.include = &cases[i].include;
		options.include_count = cases[i].include != NULL;
		options.exclude = &cases[i].exclude;
		options.exclude_count = cases[i].exclude != NULL;
		strategy = key_case_strategy("content", &options);
		if ((key_case_make(strategy, &event, &key, &err) == HAPAX_OK) != cases[i].is_made)
			fail_msg("%s: %s", cases[i].json, err.message);
		if (!cases[i].is_made)
			assert_string_equal(
				err.message,
				"cannot make a key: include and exclude leave no value");
		hapax_key_strategy_free(strategy);
	}
}

static void data_that_is_not_json(void **state)
{
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *field = key_case_strategy("field:a", &options);
	struct hapax_key_strategy *content = key_case_strategy("content", &options);
	struct hapax_event event = key_case_event("{\"a\":1,}");
	struct hapax_error err;
	struct hapax_key key;
	unsigned char digest[HX_SHA256_SIZE];
	char digits[65];

	(void)state;
	assert_int_equal(key_case_make(field, &event, &key, &err), HAPAX_ERR_INVALID);
	assert_string_equal(
		err.message,
		"cannot find 'a': data: line 1, column 8: '}' found where a member name was expected");
	assert_int_equal(key_case_make(content, &event, &key, &err), HAPAX_ERR_INVALID);
	assert_string_equal(
		err.message, "data: line 1, column 8: '}' found where a member name was expected");
	/* Bytes that are not marked as JSON are hashed as they are. */
	event.data_kind = HAPAX_DATA_BYTES;
	assert_int_equal(key_case_make(content, &event, &key, &err), HAPAX_OK);
	hx_sha256("{\"a\":1,}", 8, digest);
	hx_hex_encode(digest, sizeof(digest), digits);
	digits[64] = '\0';
	assert_string_equal(key.key, digits);
	assert_int_equal(key_case_make(field, &event, &key, &err), HAPAX_ERR_INVALID);
	assert_string_equal(err.message, "cannot find 'a': data is not JSON");
	event.data = hx_bytes(NULL, 0);
	assert_int_equal(key_case_make(content, &event, &key, &err), HAPAX_ERR_INVALID);
	hapax_key_strategy_free(field);
	hapax_key_strategy_free(content);
}

/* attr., header. and meta. have their own names and nothing in common. */
static void parts_of_the_event_are_kept_apart(void **state)
{
	const struct hapax_field attributes[] = {{HX_BYTES_LIT("key"), HX_BYTES_LIT("A")}};
	const struct hapax_field headers[] = {
		{HX_BYTES_LIT("Key"), HX_BYTES_LIT("H")},
		{HX_BYTES_LIT("X-Two"), HX_BYTES_LIT("1")},
		{HX_BYTES_LIT("x-two"), HX_BYTES_LIT("2")},
		{HX_BYTES_LIT("Empty"), HX_BYTES_LIT("")}};
	const struct hapax_field meta[] = {
		{HX_BYTES_LIT("topic"), HX_BYTES_LIT("t")},
		{HX_BYTES_LIT("partition"), HX_BYTES_LIT("3")},
		{HX_BYTES_LIT("offset"), HX_BYTES_LIT("42")},
		{HX_BYTES_LIT("key"), HX_BYTES_LIT("M")}};
	static const char *const cases[][2] = {
		{"field:data.key", "D"},
		{"field:data/key", "D"},
		{"field:attr.key", "A"},
		{"field:header.key", "H"},
		{"field:header.KEY", "H"},
		{"header:kEY", "H"},
		{"field:meta.key", "M"},
		{"composite:meta.topic,meta.partition,meta.offset", "t:3:42"},
		{"field:attr.KEY", "!'attr.KEY' is missing"},
		{"header:X-Two", "!'header.X-Two' occurs twice"},
		{"header:X-Three", "!'header.X-Three' is missing"},
		{"header:Empty", "!'header.Empty' is empty"},
		{"field:data.topic", "!'data.topic' is missing"},
		{"field:data",
		 "!cannot use 'data' in a key: it is an object; select a string, number or boolean inside it"},
	};
	struct hapax_event event = key_case_event("{\"key\":\"D\"}");

	(void)state;
	event.attributes = attributes;
	event.attribute_count = 1;
	event.headers = headers;
	event.header_count = 4;
	event.meta = meta;
	event.meta_count = 4;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_key_strategy *strategy = key_case_strategy(cases[i][0], NULL);
		struct hapax_error err = {HAPAX_OK, 0, ""};
		struct hapax_key key;
		enum hapax_status status = key_case_make(strategy, &event, &key, &err);

		if (cases[i][1][0] == '!')
			assert_string_equal(err.message, cases[i][1] + 1);
		else
			assert_string_equal(
				status == HAPAX_OK ? key.key : err.message, cases[i][1]);
		hapax_key_strategy_free(strategy);
	}
}

static void hybrid_runs_take_their_time_from_the_clock(void **state)
{
	struct hapax_key_options options = key_case_relative();
	struct hapax_event event = key_case_event("{}");
	struct hx_virtual_clock clock;
	struct hapax_key_strategy *strategy;
	struct hapax_key key;
	int64_t time_ms;

	(void)state;
	hx_virtual_clock_init(&clock, 1794774135123);
	options.clock = hx_virtual_clock_clock(&clock);
	strategy = key_case_strategy("hybrid", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_true(key.has_run_id);
	assert_true(hx_uuid7_time_ms(key.run_id, &time_ms));
	assert_int_equal(time_ms, 1794774135123);
	hapax_key_strategy_free(strategy);
}

/* D1, E2: keys for producers. */
static void producers_get_a_new_key_each_time(void **state)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_event event = HAPAX_EVENT_INIT;
	struct hapax_key_strategy *strategy;
	struct hapax_key first;
	struct hapax_key second;

	(void)state;
	options.flags = HAPAX_KEY_PRODUCER;
	strategy = key_case_strategy("uuid7", &options);
	assert_int_equal(key_case_make(strategy, &event, &first, NULL), HAPAX_OK);
	assert_int_equal(key_case_make(strategy, &event, &second, NULL), HAPAX_OK);
	assert_int_equal(first.key_size, 36);
	assert_true(strcmp(first.key, second.key) < 0);
	hapax_key_strategy_free(strategy);
}

/* With a maximum that is too small: LIMIT, whatever the policy; never another key. */
static void scratch_is_a_limit_and_not_a_policy(void **state)
{
	struct hapax_key_options options = key_case_relative();
	struct hapax_event event =
		key_case_event("{\"a\":[1,2,3,4,5,6,7,8,9,{\"b\":\"cccccccccccc\"}]}");
	char expected[HAPAX_KEY_SIZE_MAX + 1] = "";
	struct hapax_key_strategy *strategy;

	(void)state;
	options.on_missing = HAPAX_ON_MISSING_CONTENT;
	strategy = key_case_strategy("content", &options);
	for (size_t size = 16; size < 8192; size += 16) {
		struct hapax_buf *scratch = hapax_buf_new(size);
		struct hapax_key key = HAPAX_KEY_INIT;
		struct hapax_error err = {HAPAX_OK, 0, ""};
		enum hapax_status status = hapax_key_make(strategy, &event, scratch, &key, &err);

		assert_true(status == HAPAX_OK || status == HAPAX_ERR_LIMIT);
		assert_int_equal(err.status, status);
		if (status == HAPAX_OK && expected[0] == '\0')
			memcpy(expected, key.key, sizeof(expected));
		assert_string_equal(key.key, status == HAPAX_OK ? expected : "");
		assert_true(status == HAPAX_OK || expected[0] == '\0'); /* more never hurts */
		hapax_buf_free(scratch);
	}
	assert_int_equal(strlen(expected), 64);
	hapax_key_strategy_free(strategy);
}

static char *append(char *to, const char *text)
{
	size_t size = strlen(text);

	memcpy(to, text, size + 1);
	return to + size;
}

/* before, count times unit, after. */
static char *text_of(const char *before, const char *unit, size_t count, const char *after)
{
	size_t size = strlen(before) + count * strlen(unit) + strlen(after);
	char *text = malloc(size + 1);
	char *at = text;

	assert_non_null(text);
	at = append(at, before);
	for (size_t i = 0; i < count; i++)
		at = append(at, unit);
	(void)append(at, after);
	return text;
}

/* What key.h says is enough in any case is enough. */
static void scratch_that_is_promised_to_be_enough(void **state)
{
	static const char *const units[][3] = {
		{"[1", ",1", "]"},        {"[1", ",1e20", "]"},
		{"[1", ",1e15", "]"},     {"[{}", ",{}", "]"},
		{"[\"", "\x7f", "\"]"},   {"[\"", "\xc3\xa9", "\"]"},
		{"[\"\"", ",\"\"", "]"},  {"[\"", "\\n", "\"]"},
		{"{\"a\":1.5", " ", "}"}, {"[[[[[[[[[1", ",1", "]]]]]]]]]"}};
	static const size_t counts[] = {0, 1, 2, 100, 5000, 100000};

	(void)state;
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		for (size_t c = 0; c < 2 * sizeof(counts) / sizeof(counts[0]); c++) {
			struct hapax_key_options options = key_case_relative();
			char *text = text_of(units[u][0], units[u][1], counts[c / 2], units[u][2]);
			struct hapax_buf *scratch = hapax_buf_new(27 * strlen(text) + 8192);
			struct hapax_event event = key_case_event(text);
			struct hapax_key key = HAPAX_KEY_INIT;
			struct hapax_error err = {HAPAX_OK, 0, ""};
			struct hapax_key_strategy *strategy;

			options.canonical = (enum hapax_canonical)(c % 2);
			strategy = key_case_strategy("content", &options);
			if (hapax_key_make(strategy, &event, scratch, &key, &err) != HAPAX_OK)
				fail_msg(
					"%zu times %s: %s", counts[c / 2], units[u][1],
					err.message);
			hapax_key_strategy_free(strategy);
			hapax_buf_free(scratch);
			free(text);
		}
	}
}

/* A composite may name a large value again and again. */
static void scratch_for_composites(void **state)
{
	enum { COUNT = 16, SIZE = 100000 };
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *strategy =
		key_case_strategy("composite:a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", &options);
	char *text = text_of("{\"a\":\"", ":", SIZE, "\"}");
	struct hapax_buf *small = hapax_buf_new(27 * strlen(text) + 8192);
	struct hapax_buf *enough = hapax_buf_new(27 * strlen(text) + 8192 + 4 * COUNT * SIZE);
	struct hapax_event event = key_case_event(text);
	struct hapax_key key = HAPAX_KEY_INIT;

	(void)state;
	assert_int_equal(hapax_key_make(strategy, &event, small, &key, NULL), HAPAX_ERR_LIMIT);
	assert_int_equal(hapax_key_make(strategy, &event, enough, &key, NULL), HAPAX_OK);
	assert_memory_equal(key.key, "sha256:", 7);
	hapax_key_strategy_free(strategy);
	hapax_buf_free(small);
	hapax_buf_free(enough);
	free(text);
}

/* Many values in few bytes need more than is usual; scratch grows, and stays. */
static void scratch_grows_once(void **state)
{
	enum { COUNT = 20000 };
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *strategy = key_case_strategy("content", &options);
	struct hapax_buf *scratch = hapax_buf_new((size_t)1 << 26);
	struct hapax_event event = HAPAX_EVENT_INIT;
	struct hapax_key key = HAPAX_KEY_INIT;
	char *text = malloc(2 * COUNT + 2);
	uint64_t allocations;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i <= 2 * COUNT; i++)
		text[i] = i % 2 == 0 ? ',' : '1';
	text[0] = '[';
	text[2 * COUNT] = ']';
	event.data = hx_bytes(text, 2 * COUNT + 1);
	assert_int_equal(hapax_key_make(strategy, &event, scratch, &key, NULL), HAPAX_OK);
	allocations = hx_alloc_count();
	for (int i = 0; i < 3; i++)
		assert_int_equal(hapax_key_make(strategy, &event, scratch, &key, NULL), HAPAX_OK);
	assert_int_equal(hx_alloc_count(), allocations);
	free(text);
	hapax_buf_free(scratch);
	hapax_key_strategy_free(strategy);
}

/* Each allocation fails in turn: an error, no leak, and then it works. */
static void every_allocation_may_fail(void **state)
{
	static const char *const texts[] = {
		"content",           "hybrid",   "composite:a,b",           "field:a", "event-id",
		"aggregate-version", "header:X", "template:x-{a}-{date:%Y}"};
	static const char *const include[] = {"a", "b"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int64_t live = hx_alloc_live();
		enum hapax_status status = HAPAX_ERR_NO_MEMORY;

		for (uint64_t nth = 1; status != HAPAX_OK; nth++) {
			struct hapax_key_options options = key_case_relative();
			struct hapax_key_strategy *strategy = NULL;
			struct hapax_error err;

			assert_true(nth < 50);
			options.exclude = include;
			options.exclude_count = 2;
			options.tenant_from = "t";
			options.group_from = "g";
			hx_alloc_fail_at(nth, 0);
			status = hapax_key_strategy_new(texts[i], &options, &strategy, &err);
			hx_alloc_fail_at(0, 0);
			assert_true(status == HAPAX_OK || status == HAPAX_ERR_NO_MEMORY);
			hapax_key_strategy_free(strategy);
			assert_int_equal(hx_alloc_live(), live);
		}
	}
}

static void memory_for_scratch_may_fail(void **state)
{
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *strategy = key_case_strategy("content", &options);
	struct hapax_event event = key_case_event("{\"a\":1}");
	struct hapax_buf *scratch = hapax_buf_new(1 << 20);
	struct hapax_key key = HAPAX_KEY_INIT;
	struct hapax_error err;

	(void)state;
	hx_alloc_fail_at(1, 1);
	assert_int_equal(
		hapax_key_make(strategy, &event, scratch, &key, &err), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(hapax_key_make(strategy, &event, scratch, &key, &err), HAPAX_OK);
	hapax_buf_free(scratch);
	hapax_key_strategy_free(strategy);
}

static void broken_contracts_are_refused(void **state)
{
	struct hapax_key_strategy *strategy = key_case_strategy("content", NULL);
	struct hapax_event event = key_case_event("{}");
	struct hapax_buf *scratch = hapax_buf_new(1 << 20);
	struct hapax_key key = HAPAX_KEY_INIT;
	struct hapax_key zero = {0};
	struct hapax_event bad = event;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];

	(void)state;
	assert_int_equal(hapax_key_make(NULL, &event, scratch, &key, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_key_make(strategy, NULL, scratch, &key, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_key_make(strategy, &event, NULL, &key, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_key_make(strategy, &event, scratch, NULL, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_key_make(strategy, &event, scratch, &zero, NULL), HAPAX_ERR_INVALID);
	bad.size = 0;
	assert_int_equal(hapax_key_make(strategy, &bad, scratch, &key, NULL), HAPAX_ERR_INVALID);
	bad = event;
	bad.header_count = 1;
	assert_int_equal(hapax_key_make(strategy, &bad, scratch, &key, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_event_fingerprint(&bad, scratch, fingerprint, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_key_canonical_text(strategy, &event, scratch, scratch, NULL),
		HAPAX_ERR_INVALID);
	hapax_key_strategy_free(NULL);
	hapax_buf_free(scratch);
	hapax_key_strategy_free(strategy);
}

/* Structs of a caller that was built when they had fewer members. */
static void older_callers_are_served(void **state)
{
	struct hapax_buf *scratch = hapax_buf_new(1 << 20);
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_event event = key_case_event("{\"id\":7}");
	struct hapax_key_strategy *strategy;
	struct hapax_key key;
	struct hapax_error err;

	(void)state;
	options.flags = HAPAX_KEY_RELATIVE;
	options.size = offsetof(struct hapax_key_options, tenant);
	options.tenant = "/"; /* not there as far as this caller knows */
	strategy = key_case_strategy("field:id", &options);
	event.size = offsetof(struct hapax_event, time_ms);
	memset(&key, 0x5a, sizeof(key));
	key.size = offsetof(struct hapax_key, has_run_id);
	assert_int_equal(hapax_key_make(strategy, &event, scratch, &key, &err), HAPAX_OK);
	assert_string_equal(key.key, "7");
	assert_string_equal(key.tenant, "default");
	assert_int_equal(key.size, offsetof(struct hapax_key, has_run_id));
	for (size_t i = key.size; i < sizeof(key); i++)
		assert_int_equal(((unsigned char *)&key)[i], 0x5a);
	/* A newer one than we are is told so. */
	key.size = sizeof(key) + 1;
	assert_int_equal(hapax_key_make(strategy, &event, scratch, &key, &err), HAPAX_ERR_INVALID);
	key.size = sizeof(key);
	event.size = sizeof(event) + 1;
	assert_int_equal(hapax_key_make(strategy, &event, scratch, &key, &err), HAPAX_ERR_INVALID);
	options.size = sizeof(options) + 1;
	(void)key_case_refusal("content", &options);
	hapax_key_strategy_free(strategy);
	hapax_buf_free(scratch);
}

static void canonical_text_can_be_seen(void **state)
{
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *strategy = key_case_strategy("content", &options);
	struct hapax_key_strategy *field = key_case_strategy("field:a", &options);
	struct hapax_event event = key_case_event("{\"b\":1e0,\"a\":null}");
	struct hapax_buf *scratch = hapax_buf_new(1 << 20);
	struct hapax_buf *out = hapax_buf_new(1 << 10);
	struct hapax_bytes text;

	(void)state;
	assert_int_equal(hapax_key_canonical_text(strategy, &event, scratch, out, NULL), HAPAX_OK);
	text = hapax_buf_bytes(out);
	assert_true(hx_bytes_equal(text, HX_BYTES_LIT("{\"a\":null,\"b\":1}")));
	assert_int_equal(
		hapax_key_canonical_text(field, &event, scratch, out, NULL), HAPAX_ERR_INVALID);
	hapax_buf_free(out);
	hapax_buf_free(scratch);
	hapax_key_strategy_free(strategy);
	hapax_key_strategy_free(field);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_keys_are_the_digest_of_the_canonical_text),
		cmocka_unit_test(python_keys_are_those_of_document_c),
		cmocka_unit_test(fingerprints_are_of_the_data_only),
		cmocka_unit_test(fingerprints_can_be_had_alone_or_not_at_all),
		cmocka_unit_test(content_keys_know_that_they_are_the_fingerprint),
		cmocka_unit_test(excluded_fields_are_not_in_the_fingerprint),
		cmocka_unit_test(policies_for_what_is_missing),
		cmocka_unit_test(policy_content_without_what_is_included),
		cmocka_unit_test(a_key_is_made_of_values),
		cmocka_unit_test(data_that_is_not_json),
		cmocka_unit_test(parts_of_the_event_are_kept_apart),
		cmocka_unit_test(hybrid_runs_take_their_time_from_the_clock),
		cmocka_unit_test(producers_get_a_new_key_each_time),
		cmocka_unit_test(scratch_is_a_limit_and_not_a_policy),
		cmocka_unit_test(scratch_that_is_promised_to_be_enough),
		cmocka_unit_test(scratch_for_composites),
		cmocka_unit_test(scratch_grows_once),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(memory_for_scratch_may_fail),
		cmocka_unit_test(broken_contracts_are_refused),
		cmocka_unit_test(older_callers_are_served),
		cmocka_unit_test(canonical_text_can_be_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
