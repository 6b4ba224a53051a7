/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/packed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <hapax/store.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "store/index/packed_key.h"
#include "store/index/packed_mark.h"
#include "support/random_record.h"
#include "support/scale.h"
#include "support/store_case.h"

struct fixture {
	struct hx_scope_table scopes;
	struct hx_profile_table profiles;
};

static void begin(struct fixture *f)
{
	assert_int_equal(hx_scope_table_init(&f->scopes), HAPAX_OK);
	assert_int_equal(hx_profile_table_init(&f->profiles, &f->scopes), HAPAX_OK);
}

static void end(struct fixture *f)
{
	hx_profile_table_done(&f->profiles);
	hx_scope_table_done(&f->scopes);
}

/* A record made for one of a few scopes, so that the tables stay small. */
static uint32_t give_scope(struct fixture *f, struct hapax_record *record, uint64_t number)
{
	static const char *const names[] = {"default", "orders", "billing"};
	enum hapax_status status;
	struct hx_scope *scope = hx_scope_table_intern(
		&f->scopes, hapax_bytes_from_text("default"),
		hapax_bytes_from_text(names[number % 3]), &status);

	assert_non_null(scope);
	record->tenant = scope->tenant;
	record->group = scope->group;
	return scope->id;
}

/* Pack into memory of exactly the size that was announced, and read it again. */
static void round_trip(
	struct fixture *f, const struct hapax_record *record, uint32_t scope_id,
	const struct hx_packed_base *base)
{
	struct hx_packed_key key;
	struct hx_packed_key read_key;
	struct hapax_record read;
	unsigned char text[HX_KEY_TEXT_SIZE];
	uint32_t profile = hx_profile_intern(&f->profiles, scope_id, record->ttl_ms);

	assert_true(profile != HX_PROFILE_NONE);
	bool ttl_is_own = hx_profile_get(&f->profiles, profile)->ttl_ms == 0;
	hx_packed_key_init(&key, scope_id, record->key);
	struct hx_packed_shape shape =
		hx_packed_shape(record, NULL, &key, base, profile, ttl_is_own);
	assert_int_equal(shape.size % 2, 0);
	unsigned char *at = malloc(shape.size);
	assert_non_null(at);
	hx_packed_write(at, record, NULL, &key, base, profile, shape);
	assert_int_equal(hx_packed_read_size(at), shape.size);

	hx_packed_read(at, base, &f->profiles, &read);
	read.key = hx_packed_read_text(at, text);
	const char *field = random_record_difference(record, &read, HAPAX_FINGERPRINT_SHORT_SIZE);
	if (field)
		print_message("# %s\n", field);
	assert_null(field);
	assert_int_equal(hx_packed_state(at), record->state);
	assert_int_equal(hx_packed_expires_ms(at, base), record->expires_ms);
	assert_int_equal(hx_packed_scope(at, &f->profiles)->id, scope_id);
	assert_true(hx_packed_key_matches(at, &f->profiles, &key));
	hx_packed_read_key(at, &f->profiles, &read_key);
	assert_true(hx_packed_key_matches(at, &f->profiles, &read_key));
	static const uint64_t hash_key[2] = {1, 2};
	assert_true(hx_packed_key_hash(&read_key, hash_key) == hx_packed_key_hash(&key, hash_key));
	free(at);
}

static void nothing_is_lost(void **state)
{
	static struct random_record random;
	uint64_t count = scale_count(2000000, 60000);
	struct hx_prng prng;
	struct fixture f;

	(void)state;
	begin(&f);
	hx_prng_seed(&prng, 11);
	for (uint64_t i = 0; i < count; i++) {
		/* The base is near, far, or on the wrong side. */
		struct hx_packed_base base = {CASE_EPOCH_MS, 1000};

		random_record_make(&random, &prng, CASE_EPOCH_MS);
		switch (hx_prng_below(&prng, 4)) {
		case 0: base.token = random.record.token; break;
		case 1: base.token = HX_TOKEN_MAX; break;
		case 2: base.ms = random.record.changed_ms + 17; break;
		default: base.ms = 0; break;
		}
		/* Most tokens are close to the chunk's. */
		if (hx_prng_below(&prng, 2))
			base.token = random.record.token + hx_prng_below(&prng, 1000) - 500;
		round_trip(&f, &random.record, give_scope(&f, &random.record, i), &base);
	}
	end(&f);
}

/* Times at the ends of what int64 and the short form can hold. */
static void extremes_are_kept(void **state)
{
	static const int64_t bases[] = {0, CASE_EPOCH_MS, INT64_MIN / 2, INT64_MAX / 2};
	static const int64_t offsets[] = {
		0,
		1,
		-1,
		INT32_MAX,
		(int64_t)UINT32_MAX - 1,
		UINT32_MAX,
		(int64_t)UINT32_MAX + 1,
		INT64_C(1) << 40,
		-(INT64_C(1) << 40),
		INT32_MIN};
	struct fixture f;

	(void)state;
	begin(&f);
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++) {
			struct hx_packed_base base = {bases[i], UINT64_C(1) << 52};
			struct hapax_record record = {
				.state = HAPAX_STATE_DONE,
				.origin = HAPAX_ORIGIN_CHECK,
				.attempt = UINT32_MAX,
				.token =
					(uint64_t)((int64_t)base.token + offsets[k] % (INT64_C(1) << 51)),
				.first_seen_ms = bases[i] - 1000,
				.changed_ms = bases[i],
				.expires_ms = bases[i] + offsets[k],
				.ttl_ms = 1 + (offsets[k] & INT32_MAX),
				.key = HX_BYTES_LIT("k")};

			round_trip(&f, &record, give_scope(&f, &record, 0), &base);
			record.state = HAPAX_STATE_CLAIMED;
			record.origin = HAPAX_ORIGIN_CLAIM;
			record.expires_ms = HAPAX_TIME_NEVER;
			record.lease_ends_ms = bases[i] + offsets[k];
			record.attempt_id[3] = 9;
			round_trip(&f, &record, give_scope(&f, &record, 0), &base);
		}
	}
	end(&f);
}

/* So many different times to live that they no longer fit the table of profiles. */
static void any_ttl_is_kept(void **state)
{
	struct hx_packed_base base = {CASE_EPOCH_MS, 5};
	struct fixture f;

	(void)state;
	begin(&f);
	for (int64_t i = 1; i < 100000; i += i < 3000 ? 1 : 97) {
		struct hapax_record record = {
			.state = HAPAX_STATE_DONE,
			.attempt = 1,
			.token = 6,
			.first_seen_ms = CASE_EPOCH_MS,
			.changed_ms = CASE_EPOCH_MS,
			.expires_ms = CASE_EPOCH_MS + i,
			.ttl_ms = i,
			.key = HX_BYTES_LIT("k")};

		round_trip(&f, &record, give_scope(&f, &record, (uint64_t)i), &base);
	}
	end(&f);
}

/* Two keys are one only if every byte of text and the scope are. */
static void keys_that_look_alike_are_apart(void **state)
{
	static const struct hapax_bytes keys[] = {
		{"0198c1a2-7b3c-7def-8123-456789abcdef", 36},
		{"0198C1A2-7B3C-7DEF-8123-456789ABCDEF", 36},
		{"0198c1a2-7b3c-7def-8123-456789abcdeF", 36},
		{"0198c1a27b3c7def8123456789abcdef", 32},
		{"0198C1A27B3C7DEF8123456789ABCDEF", 32},
		{"0198c1a2-7b3c-7def-8123+456789abcdef", 36},
		{"\x01\x98\xc1\xa2\x7b\x3c\x7d\xef\x81\x23\x45\x67\x89\xab\xcd\xef", 16},
		{"0198c1a27b3c7def8123456789abcde", 31},
		{"0198c1a27b3c7def8123456789abcdef0", 33},
		{"00", 2},
		{"\0", 1},
		{"0000000000000000", 16},
		{"\0\0\0\0\0\0\0\0", 8},
	};
	enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
	struct hx_packed_base base = {0, 0};
	struct fixture f;

	(void)state;
	begin(&f);
	for (size_t i = 0; i < KEYS; i++) {
		struct hapax_record record = {
			.state = HAPAX_STATE_DONE,
			.attempt = 1,
			.token = 1,
			.expires_ms = 5,
			.ttl_ms = 5,
			.key = keys[i]};
		unsigned char at[256];
		struct hx_packed_key key;
		uint32_t profile = hx_profile_intern(&f.profiles, 0, record.ttl_ms);

		give_scope(&f, &record, 0);
		hx_packed_key_init(&key, 0, keys[i]);
		struct hx_packed_shape shape =
			hx_packed_shape(&record, NULL, &key, &base, profile, false);
		assert_true(shape.size <= sizeof(at));
		hx_packed_write(at, &record, NULL, &key, &base, profile, shape);
		for (size_t k = 0; k < KEYS; k++) {
			struct hx_packed_key other;

			hx_packed_key_init(&other, 0, keys[k]);
			assert_int_equal(hx_packed_key_matches(at, &f.profiles, &other), i == k);
			hx_packed_key_init(&other, 1, keys[k]);
			assert_false(hx_packed_key_matches(at, &f.profiles, &other));
		}
	}
	end(&f);
}

/* What the way for marks writes is what the way for any record would write. */
static void mark_is_written_the_same_both_ways(void **state)
{
	struct hx_packed_base base = {CASE_EPOCH_MS, 100};
	static struct random_record random;
	struct hx_prng prng;
	struct fixture f;
	uint64_t marks = 0;

	(void)state;
	begin(&f);
	hx_prng_seed(&prng, 12);
	for (int i = 0; i < 20000; i++) {
		struct hapax_record *record = &random.record;

		random_record_make(&random, &prng, CASE_EPOCH_MS);
		uint32_t scope_id = give_scope(&f, record, (uint64_t)i);
		int64_t ttl_ms = record->ttl_ms;
		unsigned char print[HAPAX_FINGERPRINT_SIZE];

		memcpy(print, record->fingerprint, sizeof(print));
		bool has_print = record->fingerprint_size != 0;
		uint32_t profile = hx_profile_intern(&f.profiles, scope_id, ttl_ms);
		bool ttl_is_own = hx_profile_get(&f.profiles, profile)->ttl_ms == 0;
		struct hapax_record plain = {
			.state = HAPAX_STATE_DONE,
			.origin = HAPAX_ORIGIN_CHECK,
			.attempt = 1,
			.token = base.token + hx_prng_below(&prng, 100000),
			.first_seen_ms = CASE_EPOCH_MS + i,
			.changed_ms = CASE_EPOCH_MS + i,
			.ttl_ms = ttl_ms,
			.expires_ms = ttl_ms == HAPAX_TTL_FOREVER ? HAPAX_TIME_NEVER
								  : CASE_EPOCH_MS + i + ttl_ms,
			.fingerprint_size = has_print ? HAPAX_FINGERPRINT_SIZE : 0,
			.tenant = record->tenant,
			.group = record->group,
			.key = record->key};
		if (has_print)
			memcpy(plain.fingerprint, print, sizeof(print));
		struct hx_packed_mark mark = {
			.fingerprint = has_print ? print : NULL,
			.expires_ms = plain.expires_ms,
			.token = plain.token,
			.profile_id = profile,
			.first_seen_ms = plain.first_seen_ms};
		struct hx_packed_key key;
		unsigned char both[2][2048];

		hx_packed_key_init(&key, scope_id, record->key);
		size_t size = hx_packed_mark_size(&key, &mark, &base);
		struct hx_packed_shape shape =
			hx_packed_shape(&plain, NULL, &key, &base, profile, ttl_is_own);
		if (size == 0)
			continue;
		marks++;
		assert_int_equal(size, shape.size);
		memset(both, 0, sizeof(both));
		hx_packed_write_mark(both[0], &key, &mark, &base);
		hx_packed_write(both[1], &plain, NULL, &key, &base, profile, shape);
		assert_memory_equal(both[0], both[1], size);

		struct hx_packed_mark read;
		assert_true(hx_packed_read_mark(both[0], &base, &f.profiles, &read));
		assert_int_equal(read.expires_ms, mark.expires_ms);
		assert_true(read.token == mark.token);
		assert_int_equal(read.first_seen_ms, mark.first_seen_ms);
		assert_int_equal(read.fingerprint != NULL, has_print);
		if (has_print)
			assert_memory_equal(read.fingerprint, print, HAPAX_FINGERPRINT_SHORT_SIZE);
	}
	assert_true(marks > 1000);
	end(&f);
}

static void bits_in_the_head_change_nothing_else(void **state)
{
	static struct random_record random;
	struct hx_packed_base base = {CASE_EPOCH_MS, 1};
	struct hx_prng prng;
	struct fixture f;

	(void)state;
	begin(&f);
	hx_prng_seed(&prng, 13);
	for (int i = 0; i < 1000; i++) {
		unsigned char at[16384];
		struct hx_packed_key key;
		struct hapax_record read;
		unsigned char text[HX_KEY_TEXT_SIZE];

		random_record_make(&random, &prng, CASE_EPOCH_MS);
		uint32_t scope_id = give_scope(&f, &random.record, 0);
		uint32_t profile = hx_profile_intern(&f.profiles, scope_id, random.record.ttl_ms);
		hx_packed_key_init(&key, scope_id, random.record.key);
		struct hx_packed_shape shape = hx_packed_shape(
			&random.record, NULL, &key, &base, profile,
			hx_profile_get(&f.profiles, profile)->ttl_ms == 0);
		assert_true(shape.size <= sizeof(at));
		hx_packed_write(at, &random.record, NULL, &key, &base, profile, shape);
		assert_false(hx_packed_is_dead(at));
		hx_packed_raise_use(at, 2);
		assert_int_equal(hx_packed_use(at), 2);
		hx_packed_raise_use(at, 1);
		assert_int_equal(hx_packed_use(at), 2);
		for (unsigned use = 2; use > 0; use--) {
			hx_packed_fade_use(at);
			assert_int_equal(hx_packed_use(at), use - 1);
		}
		hx_packed_raise_use(at, 1);
		assert_int_equal(hx_packed_use(at), 1);
		hx_packed_set_dead(at);
		assert_int_equal(hx_packed_use(at), 1);
		assert_true(hx_packed_is_dead(at));
		hx_packed_read(at, &base, &f.profiles, &read);
		read.key = hx_packed_read_text(at, text);
		assert_null(random_record_difference(
			&random.record, &read, HAPAX_FINGERPRINT_SHORT_SIZE));
	}
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(extremes_are_kept),
		cmocka_unit_test(any_ttl_is_kept),
		cmocka_unit_test(keys_that_look_alike_are_apart),
		cmocka_unit_test(mark_is_written_the_same_both_ways),
		cmocka_unit_test(bits_in_the_head_change_nothing_else),
	};

	return cmocka_run_group_tests_name("index_packed", tests, NULL, NULL);
}
