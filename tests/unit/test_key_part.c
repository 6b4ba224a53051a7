/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of keys: escaped, joined, taken apart. B2.
 */
#include "support/key_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/hex.h"
#include "support/scale.h"

enum { PARTS_MAX = 5, PART_SIZE_MAX = 12 };

/* Parts from a small alphabet, in which what must be escaped is frequent. */
static size_t draw(struct hx_prng *prng, unsigned char *out)
{
	static const char *const atoms[] = {":",  "%",    "%3A",      "%25",    "a",  "b",       "",
					    "\n", "\x7f", "\xc3\xa9", "sha256", "3A", "\xc2\x80"};
	size_t size = 0;
	size_t count = hx_prng_below(prng, 4);

	for (size_t i = 0; i < count; i++) {
		const char *atom = atoms[hx_prng_below(prng, sizeof(atoms) / sizeof(atoms[0]))];

		memcpy(out + size, atom, strlen(atom));
		size += strlen(atom);
	}
	return size;
}

/* Join as event fields: any bytes can be given so. */
static void join(const struct hapax_bytes *parts, size_t count, struct hapax_key *ret)
{
	static const char *const names[] = {"p0", "p1", "p2", "p3", "p4"};
	struct hapax_field fields[PARTS_MAX];
	struct hapax_event event = HAPAX_EVENT_INIT;
	char text[128] = "composite:";
	struct hapax_key_strategy *strategy;

	for (size_t i = 0; i < count; i++) {
		size_t used = strlen(text);

		(void)snprintf(
			text + used, sizeof(text) - used, "%sattr.%s", i == 0 ? "" : ",", names[i]);
		fields[i] = (struct hapax_field){hapax_bytes_from_text(names[i]), parts[i]};
	}
	event.attributes = fields;
	event.attribute_count = count;
	strategy = key_case_strategy(text, NULL);
	if (key_case_make(strategy, &event, ret, NULL) != HAPAX_OK)
		ret->key_size = 0;
	hapax_key_strategy_free(strategy);
}

static bool is_same(
	const struct hapax_bytes *a, size_t a_count, const struct hapax_bytes *b, size_t b_count)
{
	if (a_count != b_count)
		return false;
	for (size_t i = 0; i < a_count; i++) {
		if (!hx_bytes_equal(a[i], b[i]))
			return false;
	}
	return true;
}

/* B2: what was joined can be taken apart again, so that no two lists share a key. */
static void joined_parts_come_apart_again(void **state)
{
	uint64_t count = scale_count(300000, 10000);
	struct hapax_buf *buf = hapax_buf_new(1024);
	uint64_t seed = 9;
	struct hx_prng prng;

	(void)state;
	(void)scale_seed(&seed);
	hx_prng_seed(&prng, seed);
	for (uint64_t i = 0; i < count; i++) {
		unsigned char bytes[PARTS_MAX][64];
		struct hapax_bytes parts[PARTS_MAX];
		struct hapax_bytes back[PARTS_MAX + 1];
		size_t part_count = 1 + hx_prng_below(&prng, PARTS_MAX);
		struct hapax_key key;
		size_t back_count = 0;

		for (size_t p = 0; p < part_count; p++)
			parts[p] = hx_bytes(bytes[p], draw(&prng, bytes[p]));
		join(parts, part_count, &key);
		if (part_count == 1 && parts[0].size == 0) {
			assert_int_equal(key.key_size, 0); /* nothing is not a key */
			continue;
		}
		assert_int_equal(
			hapax_key_check_text(
				hx_bytes(key.key, key.key_size), HAPAX_KEY_SIZE_MAX, NULL),
			HAPAX_OK);
		assert_int_equal(
			hapax_key_split(
				hx_bytes(key.key, key.key_size), buf, back, PARTS_MAX + 1,
				&back_count, NULL),
			HAPAX_OK);
		if (!is_same(parts, part_count, back, back_count))
			fail_msg("seed %llu: %s", (unsigned long long)seed, key.key);
	}
	hapax_buf_free(buf);
}

static void long_keys_are_hashed(void **state)
{
	char json[400];
	char expected[72] = "sha256:";
	char text[300];
	unsigned char digest[HX_SHA256_SIZE];

	(void)state;
	(void)snprintf(json, sizeof(json), "{\"a\":\"%0253d\",\"b\":1}", 0);
	(void)snprintf(text, sizeof(text), "%0253d:1", 0);
	assert_int_equal(strlen(text), 255);
	assert_string_equal(key_case_of("composite:a,b", json), text);
	(void)snprintf(json, sizeof(json), "{\"a\":\"%0254d\",\"b\":1}", 0);
	(void)snprintf(text, sizeof(text), "%0254d:1", 0);
	hx_sha256(text, strlen(text), digest);
	hx_hex_encode(digest, sizeof(digest), expected + 7);
	expected[71] = '\0';
	assert_string_equal(key_case_of("composite:a,b", json), expected);
}

/* A text of the form of a digest is made by a digest only. */
static void digests_cannot_be_imitated(void **state)
{
	char long_json[600];
	char json[400];
	char victim[HAPAX_KEY_SIZE_MAX + 1];
	const char *forged;

	(void)state;
	(void)snprintf(long_json, sizeof(long_json), "{\"a\":\"%0300d\",\"b\":1}", 0);
	(void)snprintf(victim, sizeof(victim), "%s", key_case_of("composite:a,b", long_json));
	assert_memory_equal(victim, "sha256:", 7);
	(void)snprintf(json, sizeof(json), "{\"a\":\"sha256\",\"b\":\"%s\"}", victim + 7);
	forged = key_case_of("composite:a,b", json);
	assert_string_not_equal(forged, victim);
	assert_memory_equal(forged, "%73ha256:", 9);
	(void)snprintf(json, sizeof(json), "{\"a\":\"%s\"}", victim);
	assert_string_not_equal(key_case_of("field:a", json), victim);
	(void)snprintf(json, sizeof(json), "{\"a\":\"content:%s\"}", victim + 7);
	assert_memory_equal(key_case_of("field:a", json), "sha256:", 7);
	/* Parts that only look like one are not taken for it (B2: reversible). */
	(void)snprintf(json, sizeof(json), "{\"a\":\"sha256\",\"b\":\"%.63sg\"}", victim + 7);
	forged = key_case_of("composite:a,b", json);
	assert_memory_equal(forged, "sha256:", 7);
	/* What only looks a little like one stays. */
	assert_string_equal(key_case_of("field:a", "{\"a\":\"sha256:abc\"}"), "sha256:abc");
}

static void single_values_stay_as_they_are(void **state)
{
	(void)state;
	assert_string_equal(key_case_of("field:a", "{\"a\":\"x:y%z\"}"), "x:y%z");
	assert_string_equal(
		key_case_of("field:a", "{\"a\":\"\\u00e9 \\ud83d\\ude00\"}"),
		"\xc3\xa9 \xf0\x9f\x98\x80");
	assert_string_equal(key_case_of("field:a", "{\"a\":1.50}"), "1.5");
	assert_string_equal(key_case_of("field:a", "{\"a\":1e3}"), "1000");
	assert_string_equal(key_case_of("field:a", "{\"a\":true}"), "true");
	assert_memory_equal(key_case_of("field:a", "{\"a\":\"x\\ny\"}"), "sha256:", 7);
	assert_string_not_equal(
		key_case_of("field:a", "{\"a\":\"x\\ny\"}"),
		key_case_of("field:a", "{\"a\":\"x\\ty\"}"));
	assert_string_equal(key_case_of("field:a", "{\"a\":\"\"}"), "!'a' is empty");
	assert_string_equal(
		key_case_of("field:a", "{\"a\":[]}"),
		"!cannot use 'a' in a key: it is an array; select a string, number or boolean inside it");
	assert_string_equal(
		key_case_of("field:a", "{\"a\":{}}"),
		"!cannot use 'a' in a key: it is an object; select a string, number or boolean inside it");
	assert_string_equal(
		key_case_of("field:a", "{\"a\":1e999999999999999999}"),
		"!cannot use 'a' in a key: the number is beyond 10 to the 10^17");
}

/* Documented: a string and a number of the same text are the same part. */
static void numbers_and_strings_of_one_text_are_one(void **state)
{
	(void)state;
	assert_string_equal(
		key_case_of("composite:a,b", "{\"a\":\"1\",\"b\":\"1000\"}"),
		key_case_of("composite:a,b", "{\"a\":1,\"b\":1e3}"));
}

struct split_case {
	const char *key;
	const char *parts[4];
	enum hapax_status status;
};

#define SIXTY_THREE "000000000000000000000000000000000000000000000000000000000000000"

static const struct split_case splits[] = {
	{"a", {"a"}, HAPAX_OK},
	{"a:b", {"a", "b"}, HAPAX_OK},
	{":", {"", ""}, HAPAX_OK},
	{"a:", {"a", ""}, HAPAX_OK},
	{"%3A:%25", {":", "%"}, HAPAX_OK},
	{"%0A", {"\n"}, HAPAX_OK},
	{"%73ha256:x", {"sha256", "x"}, HAPAX_OK},
	{"a:b:c:d", {"a", "b", "c", "d"}, HAPAX_OK},
	{"sha256:" SIXTY_THREE "g", {"sha256", SIXTY_THREE "g"}, HAPAX_OK},
	{"sha256:" SIXTY_THREE "A", {"sha256", SIXTY_THREE "A"}, HAPAX_OK},
	{"sha256:" SIXTY_THREE, {"sha256", SIXTY_THREE}, HAPAX_OK},
	{"sha256:" SIXTY_THREE "0", {NULL}, HAPAX_ERR_UNSUPPORTED},
	{"content:" SIXTY_THREE "0", {NULL}, HAPAX_ERR_UNSUPPORTED},
	{"a:b:c:d:e", {NULL}, HAPAX_ERR_LIMIT},
	{"%", {NULL}, HAPAX_ERR_INVALID},
	{"%3", {NULL}, HAPAX_ERR_INVALID},
	{"%3a", {NULL}, HAPAX_ERR_INVALID},
	{"%zz", {NULL}, HAPAX_ERR_INVALID},
	{"", {NULL}, HAPAX_ERR_INVALID},
	{"a\nb", {NULL}, HAPAX_ERR_INVALID},
};

static void keys_are_taken_apart(void **state)
{
	struct hapax_buf *buf = hapax_buf_new(1024);

	(void)state;
	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
		struct hapax_bytes parts[4];
		size_t count = 0;
		struct hapax_error err;

		assert_int_equal(
			hapax_key_split(
				hapax_bytes_from_text(splits[i].key), buf, parts, 4, &count, &err),
			splits[i].status);
		for (size_t p = 0; p < 4 && splits[i].parts[p] != NULL; p++) {
			assert_true(p < count);
			assert_true(hx_bytes_equal(
				parts[p], hapax_bytes_from_text(splits[i].parts[p])));
		}
		assert_true(count == 4 || splits[i].parts[count] == NULL);
	}
	hapax_buf_free(buf);
}

/* E2: keys are validated. */
static void keys_that_people_type(void **state)
{
	struct hapax_error err;
	char longest[257];

	(void)state;
	assert_int_equal(hapax_key_check_text(HX_BYTES_LIT("k"), 255, &err), HAPAX_OK);
	assert_int_equal(hapax_key_check_text(HX_BYTES_LIT("\xc3\xa9"), 255, &err), HAPAX_OK);
	assert_int_equal(hapax_key_check_text(HX_BYTES_LIT(""), 255, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_key_check_text(HX_BYTES_LIT("a\tb"), 255, &err), HAPAX_ERR_INVALID);
	assert_string_equal(err.message, "key has a control character at offset 1 (U+0009)");
	assert_int_equal(
		hapax_key_check_text(HX_BYTES_LIT("ab\xc2\x85"), 255, &err), HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_key_check_text(HX_BYTES_LIT("ab\xff"), 255, &err), HAPAX_ERR_INVALID);
	assert_string_equal(err.message, "key is not UTF-8 at offset 2 (byte 0xff)");
	memset(longest, 'k', sizeof(longest));
	assert_int_equal(hapax_key_check_text(hx_bytes(longest, 255), 255, &err), HAPAX_OK);
	assert_int_equal(
		hapax_key_check_text(hx_bytes(longest, 256), 255, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_key_check_text(hx_bytes(longest, 256), 1024, &err), HAPAX_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joined_parts_come_apart_again),
		cmocka_unit_test(long_keys_are_hashed),
		cmocka_unit_test(digests_cannot_be_imitated),
		cmocka_unit_test(single_values_stay_as_they_are),
		cmocka_unit_test(numbers_and_strings_of_one_text_are_one),
		cmocka_unit_test(keys_are_taken_apart),
		cmocka_unit_test(keys_that_people_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
