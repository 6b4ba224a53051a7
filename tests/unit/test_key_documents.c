/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrong keys of the documents (REQUIREMENTS X3, X7, X10; peers.md 5): each test
 * re-enacts the document's own key and shows the collision, then ours.
 */
#include "support/key_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/uuid7.h"

/*
 * A JavaScript value as the documents' code sees it: NULL is undefined. Falsy are
 * undefined, null, 0, false and the empty string.
 */
static bool is_falsy(const char *value)
{
	return value == NULL || strcmp(value, "null") == 0 || strcmp(value, "0") == 0 ||
		strcmp(value, "false") == 0 || value[0] == '\0';
}

/* The text of a member of a flat JSON object, or NULL: what payload[name] is there. */
static const char *js_member(const char *json, const char *name, char *out, size_t size)
{
	char quoted[64];
	const char *at;

	(void)snprintf(quoted, sizeof(quoted), "\"%s\":", name);
	at = strstr(json, quoted);
	if (at == NULL)
		return NULL;
	at += strlen(quoted);
	(void)snprintf(out, size, "%.*s", (int)strcspn(at, ",}"), at);
	return out;
}

/* String(payload[name]) of document B's payloadFieldStrategy. */
static const char *b_field_key(const char *json, const char *name, char *out, size_t size)
{
	const char *value = js_member(json, name, out, size);

	return value == NULL ? "undefined" : value;
}

/* X7, peers 1-4: String(undefined) is "undefined" for every event without the field. */
static void b_events_without_the_field_collide(void **state)
{
	static const char *const payments[] = {
		"{\"order_id\":1,\"amount\":5}", "{\"order_id\":2,\"amount\":9}"};
	char first[32];
	char second[32];

	(void)state;
	/* Two payments; neither has orderId, because a sender renamed it. */
	assert_string_equal(
		b_field_key(payments[0], "order_id", first, sizeof(first)), "1"); /* as it was */
	assert_string_equal(
		b_field_key(payments[0], "orderId", first, sizeof(first)),
		b_field_key(payments[1], "orderId", second, sizeof(second)));
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(
			key_case_of("field:orderId", payments[i]), "!'orderId' is missing");
	/* Nor is the text "undefined", which may be a real id, taken for nothing. */
	assert_string_equal(
		key_case_of("field:orderId", "{\"orderId\":\"undefined\"}"), "undefined");
	assert_string_equal(
		key_case_of("field:orderId", "{\"orderId\":null}"), "!'orderId' is null");
}

static const char *b_aggregate_key(char *out, size_t size, const char *version)
{
	(void)snprintf(out, size, "Order:7:%s", is_falsy(version) ? "0" : version);
	return out;
}

/* X7, peers 1-3: version || 0. All events of an aggregate share a key. */
static void b_events_without_a_version_collide(void **state)
{
	static const char *const documents[] = {
		"{\"aggregateType\":\"Order\",\"aggregateId\":7,\"note\":\"created\"}",
		"{\"aggregateType\":\"Order\",\"aggregateId\":7,\"note\":\"paid\"}",
		"{\"aggregateType\":\"Order\",\"aggregateId\":7,\"version\":null}",
	};
	char first[64];
	char second[64];

	(void)state;
	assert_string_equal(
		b_aggregate_key(first, sizeof(first), NULL),
		b_aggregate_key(second, sizeof(second), "null"));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(key_case_of("aggregate-version", documents[i])[0], '!');
	/* Version 0 is one like any other. */
	assert_string_equal(
		key_case_of(
			"aggregate-version",
			"{\"aggregateType\":\"Order\",\"aggregateId\":7,\"version\":0}"),
		"Order:7:0");
	assert_string_equal(
		key_case_of(
			"aggregate-version",
			"{\"aggregateType\":\"Order\",\"aggregateId\":7,\"version\":1}"),
		"Order:7:1");
}

/* payload[f] || event[f] || '', joined by ':'. */
static const char *b_composite(
	char *out, size_t size, const char *const payload[2], const char *const envelope[2])
{
	const char *parts[2];

	for (size_t i = 0; i < 2; i++) {
		parts[i] = !is_falsy(payload[i]) ? payload[i] : envelope[i];
		parts[i] = is_falsy(parts[i]) ? "" : parts[i];
	}
	(void)snprintf(out, size, "%s:%s", parts[0], parts[1]);
	return out;
}

/* X7, peers 1-5: 0, false, null, "" and nothing at all are one. */
static void b_falsy_values_collide(void **state)
{
	static const char *const payloads[][2] = {
		{"0", "x"}, {"false", "x"}, {"null", "x"}, {"", "x"}, {NULL, "x"}};
	static const char *const nothing[2] = {NULL, NULL};
	char first[64];
	char other[64];

	(void)state;
	(void)b_composite(first, sizeof(first), payloads[0], nothing);
	for (size_t i = 1; i < 5; i++)
		assert_string_equal(b_composite(other, sizeof(other), payloads[i], nothing), first);
	assert_string_equal(key_case_of("composite:a,b", "{\"a\":0,\"b\":\"x\"}"), "0:x");
	assert_string_equal(key_case_of("composite:a,b", "{\"a\":false,\"b\":\"x\"}"), "false:x");
	assert_string_equal(key_case_of("composite:a,b", "{\"a\":\"\",\"b\":\"x\"}"), ":x");
	assert_string_equal(
		key_case_of("composite:a,b", "{\"a\":null,\"b\":\"x\"}"), "!'a' is null");
	assert_string_equal(key_case_of("composite:a,b", "{\"b\":\"x\"}"), "!'a' is missing");
	assert_string_equal(key_case_of("composite:a,b", "{}"), "!'a' is missing");
}

/* X7, peers 1-5: a missing payload field falls through to the envelope's namesake. */
static void b_fields_fall_through_to_the_envelope(void **state)
{
	static const char *const with[2] = {"e1", "x"};
	static const char *const without[2] = {NULL, "x"};
	static const char *const envelope[2] = {"e1", NULL};
	const struct hapax_field attributes[] = {{HX_BYTES_LIT("id"), HX_BYTES_LIT("e1")}};
	struct hapax_key_strategy *data = key_case_strategy("composite:data.id,data.b", NULL);
	struct hapax_key_strategy *attr = key_case_strategy("composite:attr.id,data.b", NULL);
	struct hapax_event event = key_case_event("{\"b\":\"x\"}");
	struct hapax_error err;
	struct hapax_key key;
	char first[64];
	char second[64];

	(void)state;
	assert_string_equal(
		b_composite(first, sizeof(first), with, envelope),
		b_composite(second, sizeof(second), without, envelope));
	event.attributes = attributes;
	event.attribute_count = 1;
	assert_int_equal(key_case_make(data, &event, &key, &err), HAPAX_ERR_INVALID);
	assert_string_equal(err.message, "'data.id' is missing");
	assert_int_equal(key_case_make(attr, &event, &key, &err), HAPAX_OK);
	assert_string_equal(key.key, "e1:x");
	hapax_key_strategy_free(data);
	hapax_key_strategy_free(attr);
}

/* B2, peers 1-6: a join by ':' that does not escape. */
static void b_joins_are_ambiguous(void **state)
{
	static const char *const one[2] = {"a:b", "c"};
	static const char *const two[2] = {"a", "b:c"};
	static const char *const nothing[2] = {NULL, NULL};
	char first[64];
	char second[64];

	(void)state;
	assert_string_equal(
		b_composite(first, sizeof(first), one, nothing),
		b_composite(second, sizeof(second), two, nothing));
	assert_string_equal(key_case_of("composite:x,y", "{\"x\":\"a:b\",\"y\":\"c\"}"), "a%3Ab:c");
	assert_string_equal(key_case_of("composite:x,y", "{\"x\":\"a\",\"y\":\"b:c\"}"), "a:b%3Ac");
}

/* X3, A1, peers 0-5: two sources count their events from 1. */
static void a_ids_of_two_sources_collide(void **state)
{
	static const char first[] = "{\"source\":\"/sensors/1\",\"id\":\"17\"}";
	static const char second[] = "{\"source\":\"/sensors/2\",\"id\":\"17\"}";

	(void)state;
	assert_string_equal(key_case_of("field:id", first), key_case_of("field:id", second));
	assert_string_not_equal(key_case_of("event-id", first), key_case_of("event-id", second));
	/* Nor does a source end where an id begins. */
	assert_string_not_equal(
		key_case_of("event-id", "{\"source\":\"a:b\",\"id\":\"c\"}"),
		key_case_of("event-id", "{\"source\":\"a\",\"id\":\"b:c\"}"));
	assert_string_not_equal(
		key_case_of("event-id", "{\"source\":\"ab\",\"id\":\"c\"}"),
		key_case_of("event-id", "{\"source\":\"a\",\"id\":\"bc\"}"));
	assert_string_equal(key_case_of("event-id", "{\"id\":\"17\"}"), "!'source' is missing");
}

/* Document E's content hash: values that are not nil, one after the other, 64 bits. */
static const char *e_hash(char out[17], const char *const *values, size_t count)
{
	unsigned char digest[HX_SHA256_SIZE];
	char text[256] = "";
	size_t size = 0;

	for (size_t i = 0; i < count; i++) {
		if (values[i] != NULL)
			size += (size_t)snprintf(text + size, sizeof(text) - size, "%s", values[i]);
	}
	hx_sha256(text, size, digest);
	hx_hex_encode(digest, 8, out);
	out[16] = '\0';
	return out;
}

static const char *our_hash(const char *json)
{
	static const char *const include[] = {"user", "order"};
	static char ring[2][65];
	static size_t next;
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *strategy;
	struct hapax_event event = key_case_event(json);
	struct hapax_key key;
	char *out = ring[next++ % 2];

	options.include = include;
	options.include_count = 2;
	strategy = key_case_strategy("content", &options);
	assert_int_equal(key_case_make(strategy, &event, &key, NULL), HAPAX_OK);
	assert_int_equal(key.key_size, 64); /* peers 4-11: all 256 bits */
	memcpy(out, key.key, 65);
	hapax_key_strategy_free(strategy);
	return out;
}

/* X10, peers 4-9: ("user1","23") is ("user12","3"). */
static void e_values_without_separators_collide(void **state)
{
	static const char *const one[] = {"user1", "23"};
	static const char *const two[] = {"user12", "3"};
	char first[17];
	char second[17];

	(void)state;
	assert_string_equal(e_hash(first, one, 2), e_hash(second, two, 2));
	assert_string_not_equal(
		our_hash("{\"user\":\"user1\",\"order\":\"23\"}"),
		our_hash("{\"user\":\"user12\",\"order\":\"3\"}"));
}

/* X10, peers 4-9: without names it does not matter which field a value stands in. */
static void e_values_without_names_collide(void **state)
{
	static const char *const one[] = {"a", NULL, "b"};
	static const char *const two[] = {NULL, "a", "b"};
	static const char *const three[] = {"ab", NULL, NULL};
	char first[17];
	char second[17];
	char third[17];

	(void)state;
	assert_string_equal(e_hash(first, one, 3), e_hash(second, two, 3));
	assert_string_equal(e_hash(first, one, 3), e_hash(third, three, 3));
	assert_string_not_equal(
		our_hash("{\"user\":\"a\",\"order\":null}"),
		our_hash("{\"user\":null,\"order\":\"a\"}"));
	assert_string_not_equal(
		our_hash("{\"user\":\"a\",\"order\":\"b\"}"),
		our_hash("{\"user\":\"ab\",\"order\":\"\"}"));
	assert_string_not_equal(
		our_hash("{\"user\":\"1\",\"order\":1}"), our_hash("{\"user\":1,\"order\":\"1\"}"));
}

/* X10, peers 4-9: a field that is missing is skipped, and all events without it are one. */
static void e_missing_fields_are_skipped(void **state)
{
	static const char *const documents[] = {
		"{\"user\":1,\"orderNo\":7}", "{\"user\":1,\"orderNo\":8}"};
	static const char *const include[] = {"user", "order"};
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *strategy;
	char hashes[2][17];

	(void)state;
	options.include = include;
	options.include_count = 2;
	strategy = key_case_strategy("content", &options);
	for (size_t i = 0; i < 2; i++) {
		struct hapax_event event = key_case_event(documents[i]);
		char members[2][32];
		const char *values[2];
		struct hapax_error err;
		struct hapax_key key;

		for (size_t m = 0; m < 2; m++)
			values[m] =
				js_member(documents[i], include[m], members[m], sizeof(members[m]));
		(void)e_hash(hashes[i], values, 2);
		assert_int_equal(key_case_make(strategy, &event, &key, &err), HAPAX_ERR_INVALID);
		assert_string_equal(err.message, "'order' is missing");
	}
	/* Two orders of one user. */
	assert_string_equal(hashes[0], hashes[1]);
	hapax_key_strategy_free(strategy);
	/* With the field that they do have, ours differ. */
	assert_string_not_equal(
		key_case_of("composite:user,orderNo", documents[0]),
		key_case_of("composite:user,orderNo", documents[1]));
}

/* X10, E2, peers 4-7: with a random suffix no two deliveries have one key. */
static void e_hybrid_keys_never_match(void **state)
{
	static const char *const values[] = {"a", "b"};
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *strategy = key_case_strategy("hybrid", &options);
	struct hapax_event event = key_case_event("{\"a\":1}");
	struct hapax_event other = key_case_event("{\"a\":2}");
	struct hapax_key first;
	struct hapax_key second;
	struct hapax_key third;
	char keys[2][32];

	(void)state;
	for (int i = 0; i < 2; i++) {
		char hash[17];
		uint32_t suffix;

		hx_random_bytes(&suffix, sizeof(suffix));
		(void)snprintf(
			keys[i], sizeof(keys[i]), "%s_%08x", e_hash(hash, values, 2), suffix);
	}
	assert_string_not_equal(keys[0], keys[1]);
	assert_int_equal(key_case_make(strategy, &event, &first, NULL), HAPAX_OK);
	assert_int_equal(key_case_make(strategy, &event, &second, NULL), HAPAX_OK);
	assert_int_equal(key_case_make(strategy, &other, &third, NULL), HAPAX_OK);
	assert_string_equal(first.key, second.key);
	assert_string_not_equal(first.key, third.key);
	/* The run has its own id beside it, and the fingerprint is whole. */
	assert_true(first.has_run_id);
	assert_memory_not_equal(first.run_id, second.run_id, HAPAX_RUN_ID_SIZE);
	assert_memory_equal(first.fingerprint, second.fingerprint, HAPAX_FINGERPRINT_SIZE);
	hapax_key_strategy_free(strategy);
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int compare_uuid(const void *a, const void *b)
{
	return memcmp(a, b, HX_UUID_SIZE);
}

/* Peers 4-8: eight digits of a UUID are 32 bits; in 200,000 two agree (99 %). */
static void e_cut_uuids_collide(void **state)
{
	enum { COUNT = 200000 };
	uint32_t *cut = malloc(COUNT * sizeof(*cut));
	unsigned char *whole = malloc(COUNT * (size_t)HX_UUID_SIZE);
	struct hx_uuid7 generator;
	struct hx_prng prng;
	size_t cut_twice = 0;

	(void)state;
	assert_non_null(cut);
	assert_non_null(whole);
	hx_prng_seed(&prng, 1);
	hx_uuid7_init(&generator);
	for (size_t i = 0; i < COUNT; i++) {
		cut[i] = (uint32_t)hx_prng_next(&prng);
		hx_uuid7_next(&generator, 1794774135123, whole + i * HX_UUID_SIZE);
	}
	qsort(cut, COUNT, sizeof(*cut), compare_u32);
	qsort(whole, COUNT, HX_UUID_SIZE, compare_uuid);
	for (size_t i = 1; i < COUNT; i++) {
		cut_twice += cut[i] == cut[i - 1];
		assert_true(
			compare_uuid(whole + (i - 1) * HX_UUID_SIZE, whole + i * HX_UUID_SIZE) < 0);
	}
	assert_true(cut_twice > 0);
	free(cut);
	free(whole);
}

/* E21, peers 4-6: without a key document E draws a random one, which matches nothing. */
static void e_random_keys_protect_nothing(void **state)
{
	static const enum hapax_on_missing policies[] = {
		HAPAX_ON_MISSING_REJECT, HAPAX_ON_MISSING_PASS, HAPAX_ON_MISSING_CONTENT};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct hapax_key_options options = key_case_relative();
		struct hapax_event event = key_case_event("{\"a\":1}");
		struct hapax_key_strategy *strategy;
		struct hapax_key first;
		struct hapax_key second;

		options.on_missing = policies[i];
		strategy = key_case_strategy("field:id", &options);
		if (policies[i] == HAPAX_ON_MISSING_REJECT) {
			assert_int_equal(
				key_case_make(strategy, &event, &first, NULL), HAPAX_ERR_INVALID);
		} else {
			assert_int_equal(key_case_make(strategy, &event, &first, NULL), HAPAX_OK);
			assert_int_equal(key_case_make(strategy, &event, &second, NULL), HAPAX_OK);
			assert_string_equal(first.key, second.key);
			assert_int_equal(
				first.kind,
				(enum hapax_key_kind)(i == 1 ? HAPAX_KEY_NONE : HAPAX_KEY_CONTENT));
		}
		hapax_key_strategy_free(strategy);
	}
	/* A receiver cannot have the strategy that does it. */
	assert_non_null(strstr(key_case_refusal("uuid7", NULL), "in producers"));
}

/* Peers 4-10: %v prints 1 and 1.0 as one, and a map in any order. */
static void e_formatting_is_not_identity(void **state)
{
	(void)state;
	assert_string_equal(
		key_case_of("content", "{\"a\":1,\"b\":{\"x\":1,\"y\":2}}"),
		key_case_of("content", "{\"b\":{\"y\":2,\"x\":1},\"a\":1.0}"));
	assert_string_not_equal(
		key_case_of("content", "{\"a\":1}"), key_case_of("content", "{\"a\":\"1\"}"));
	assert_string_not_equal(
		key_case_of("content", "{\"a\":1e400}"), key_case_of("content", "{\"a\":2e400}"));
}

/* Peers 4-12: a time stamp in the key makes each redelivery new work. */
static void e_time_stamps_make_duplicates_new(void **state)
{
	static const char *const exclude[] = {"sent_at"};
	struct hapax_key_options options = key_case_relative();
	struct hapax_event first_event = key_case_event("{\"a\":1,\"sent_at\":1000}");
	struct hapax_event again_event = key_case_event("{\"a\":1,\"sent_at\":2000}");
	struct hapax_key_strategy *strategy;
	struct hapax_key first;
	struct hapax_key again;

	(void)state;
	assert_string_not_equal(
		key_case_of("content", "{\"a\":1,\"sent_at\":1000}"),
		key_case_of("content", "{\"a\":1,\"sent_at\":2000}"));
	options.exclude = exclude;
	options.exclude_count = 1;
	strategy = key_case_strategy("content", &options);
	assert_int_equal(key_case_make(strategy, &first_event, &first, NULL), HAPAX_OK);
	assert_int_equal(key_case_make(strategy, &again_event, &again, NULL), HAPAX_OK);
	assert_string_equal(first.key, again.key);
	/* Nor is it a mismatch: what does not matter is not in the fingerprint. */
	assert_memory_equal(first.fingerprint, again.fingerprint, HAPAX_FINGERPRINT_SIZE);
	hapax_key_strategy_free(strategy);
}

/* C1, peers 2-4: doubles take two identifiers for one; document C's Python does not. */
static void numbers_keep_their_digits(void **state)
{
	(void)state;
	assert_true((double)9007199254740993.0 == (double)9007199254740992.0);
	assert_string_not_equal(
		key_case_of("content", "{\"id\":9007199254740993}"),
		key_case_of("content", "{\"id\":9007199254740992}"));
	assert_string_not_equal(
		key_case_of("content", "{\"id\":9007199254740993.0}"),
		key_case_of("content", "{\"id\":9007199254740992.0}"));
	assert_string_not_equal(
		key_case_of("field:id", "{\"id\":9007199254740993}"),
		key_case_of("field:id", "{\"id\":9007199254740992}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b_events_without_the_field_collide),
		cmocka_unit_test(b_events_without_a_version_collide),
		cmocka_unit_test(b_falsy_values_collide),
		cmocka_unit_test(b_fields_fall_through_to_the_envelope),
		cmocka_unit_test(b_joins_are_ambiguous),
		cmocka_unit_test(a_ids_of_two_sources_collide),
		cmocka_unit_test(e_values_without_separators_collide),
		cmocka_unit_test(e_values_without_names_collide),
		cmocka_unit_test(e_missing_fields_are_skipped),
		cmocka_unit_test(e_hybrid_keys_never_match),
		cmocka_unit_test(e_cut_uuids_collide),
		cmocka_unit_test(e_random_keys_protect_nothing),
		cmocka_unit_test(e_formatting_is_not_identity),
		cmocka_unit_test(e_time_stamps_make_duplicates_new),
		cmocka_unit_test(numbers_keep_their_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
