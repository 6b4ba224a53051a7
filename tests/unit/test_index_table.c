/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "support/scale.h"

/* Places are numbers from 1; the hash of each is kept beside the table. */
struct fixture {
	struct hx_table table;
	uint64_t *hashes;
	uint32_t count;
};

static uint64_t hash_of(uint32_t place, void *context)
{
	const struct fixture *f = context;

	return f->hashes[place];
}

static void begin(struct fixture *f, uint32_t count)
{
	memset(f, 0, sizeof(*f));
	f->count = count;
	f->hashes = calloc(count + 1, sizeof(*f->hashes));
	assert_non_null(f->hashes);
	assert_int_equal(hx_table_init(&f->table, count, 16), HAPAX_OK);
}

static void end(struct fixture *f)
{
	hx_table_done(&f->table);
	free(f->hashes);
}

static void add(struct fixture *f, uint32_t place)
{
	assert_int_equal(hx_table_reserve(&f->table, 1, hash_of, f), HAPAX_OK);
	hx_table_begin(&f->table);
	hx_table_insert(&f->table, f->hashes[place], place);
	hx_table_end(&f->table);
}

/* Is place among the candidates that a reader of hash meets? */
static bool is_found(const struct fixture *f, uint64_t hash, uint32_t place)
{
	uint64_t count = atomic_load(&f->table.bucket_count);
	const struct hx_bucket *bucket = &f->table.buckets[hx_table_bucket_of(hash, count)];

	uint16_t tag = hx_table_tag(hash);
	unsigned slots = hx_bucket_candidates(bucket, tag);

	for (; slots != 0; slots &= slots - 1)
		if (hx_bucket_place(bucket, (unsigned)__builtin_ctz(slots)) == place)
			return true;
	if (!hx_bucket_overflows(bucket, tag))
		return false;
	for (uint32_t next = hx_bucket_next(bucket); next != 0;) {
		const struct hx_overflow *overflow = hx_table_overflow(&f->table, next);

		slots = hx_overflow_candidates(overflow, tag);
		for (; slots != 0; slots &= slots - 1)
			if (hx_overflow_place(overflow, (unsigned)__builtin_ctz(slots)) == place)
				return true;
		next = hx_overflow_next(overflow);
	}
	return false;
}

static void what_was_inserted_is_found(void **state)
{
	uint32_t count = (uint32_t)scale_count(2000000, 100000);
	struct hx_prng prng;
	struct fixture f;

	(void)state;
	begin(&f, count);
	hx_prng_seed(&prng, 21);
	for (uint32_t place = 1; place <= count; place++) {
		f.hashes[place] = hx_prng_next(&prng);
		add(&f, place);
		assert_true(is_found(&f, f.hashes[place], place));
	}
	assert_int_equal(f.table.slot_count, count);
	for (uint32_t place = 1; place <= count; place++)
		assert_true(is_found(&f, f.hashes[place], place));
	/* The load stays below one full bucket. */
	assert_true(atomic_load(&f.table.bucket_count) * HX_BUCKET_SLOTS >= count);
	/* Replaced and removed ones are gone. */
	for (uint32_t place = 1; place <= count; place += 2) {
		hx_table_begin(&f.table);
		hx_table_remove(&f.table, f.hashes[place], place);
		hx_table_end(&f.table);
	}
	for (uint32_t place = 1; place <= count; place++)
		assert_int_equal(is_found(&f, f.hashes[place], place), place % 2 == 0);
	assert_int_equal(f.table.slot_count, count / 2);
	end(&f);
}

/* A table that was told how much comes finds the same, and goes on growing. */
static void expected_records_are_found(void **state)
{
	static const uint32_t expected[] = {1, 100, 5000, 20000, 100000};
	struct hx_prng prng;
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		hx_prng_seed(&prng, i);
		begin(&f, 20000);
		hx_table_expect(&f.table, expected[i]);
		for (uint32_t place = 1; place <= f.count; place++) {
			f.hashes[place] = hx_prng_next(&prng);
			add(&f, place);
		}
		for (uint32_t place = 1; place <= f.count; place++)
			assert_true(is_found(&f, f.hashes[place], place));
		assert_int_equal(f.table.slot_count, f.count);
		end(&f);
	}
}

/* Equal hashes, equal tags, equal buckets: chains grow, and nothing is lost. */
static void chains_hold_what_collides(void **state)
{
	enum { COUNT = 500 };
	struct fixture f;

	(void)state;
	begin(&f, COUNT);
	for (uint32_t place = 1; place <= COUNT; place++) {
		/* All in one bucket; some with one tag, some with several. */
		f.hashes[place] = UINT64_C(0xabcdef) << 40 | (uint64_t)(place % 7) << 29;
		add(&f, place);
	}
	for (uint32_t place = 1; place <= COUNT; place++)
		assert_true(is_found(&f, f.hashes[place], place));
	for (uint32_t place = COUNT; place >= 1; place--) {
		hx_table_begin(&f.table);
		hx_table_remove(&f.table, f.hashes[place], place);
		hx_table_end(&f.table);
		assert_false(is_found(&f, f.hashes[place], place));
		if (place > 1)
			assert_true(is_found(&f, f.hashes[place - 1], place - 1));
	}
	assert_int_equal(f.table.slot_count, 0);
	end(&f);
}

/* Random inserts, replacements and removals against an array. */
static void random_changes_match_an_array(void **state)
{
	enum { PLACES = 3000 };
	uint64_t steps = scale_count(5000000, 300000);
	uint32_t *holds = calloc(PLACES + 1, sizeof(*holds)); /* key i is at this place */
	struct hx_prng prng;
	struct fixture f;

	(void)state;
	assert_non_null(holds);
	begin(&f, PLACES * 2);
	hx_prng_seed(&prng, 22);
	uint64_t present = 0;
	for (uint64_t step = 0; step < steps; step++) {
		uint32_t key = 1 + (uint32_t)hx_prng_below(&prng, PLACES);
		uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
		/* Two places belong to each key, in turn. */
		uint32_t other = holds[key] == key ? key + PLACES : key;

		f.hashes[key] = f.hashes[key + PLACES] = hash;
		if (holds[key] == 0) {
			add(&f, key);
			holds[key] = key;
			present++;
		} else if (hx_prng_below(&prng, 3)) {
			hx_table_begin(&f.table);
			hx_table_replace(&f.table, hash, holds[key], other);
			hx_table_end(&f.table);
			holds[key] = other;
		} else {
			hx_table_begin(&f.table);
			hx_table_remove(&f.table, hash, holds[key]);
			hx_table_end(&f.table);
			holds[key] = 0;
			present--;
		}
		assert_int_equal(is_found(&f, hash, key), holds[key] == key);
		assert_int_equal(is_found(&f, hash, key + PLACES), holds[key] == key + PLACES);
	}
	assert_int_equal(f.table.slot_count, present);
	end(&f);
	free(holds);
}

/* A walk by rising bucket meets what stays, however the table grows meanwhile. */
static void walk_meets_what_stays(void **state)
{
	enum { STAYING = 2000, COMING = 60000 };
	unsigned char *seen = calloc(STAYING + COMING + 1, 1);
	uint32_t places[HX_CHAIN_SLOTS_MAX];
	struct hx_prng prng;
	struct fixture f;
	uint32_t next = STAYING + 1;

	(void)state;
	assert_non_null(seen);
	begin(&f, STAYING + COMING);
	hx_prng_seed(&prng, 23);
	for (uint32_t place = 1; place <= STAYING; place++) {
		f.hashes[place] = hx_prng_next(&prng);
		add(&f, place);
	}
	for (uint64_t bucket = 0; bucket < atomic_load(&f.table.bucket_count); bucket++) {
		size_t count = hx_table_places(&f.table, bucket, places);

		for (size_t i = 0; i < count; i++)
			seen[places[i]] = 1;
		for (int i = 0; i < 40 && next <= STAYING + COMING; i++, next++) {
			f.hashes[next] = hx_prng_next(&prng);
			add(&f, next);
		}
	}
	for (uint32_t place = 1; place <= STAYING; place++)
		assert_true(seen[place]);
	end(&f);
	free(seen);
}

/* No memory: reserve says so or not, inserts that were reserved always fit. */
static void reserved_inserts_fit_without_memory(void **state)
{
	enum { COUNT = 20000 };
	struct hx_prng prng;

	(void)state;
	for (uint64_t nth = 1; nth <= 30; nth++) {
		struct fixture f;
		uint32_t placed = 0;

		begin(&f, COUNT);
		hx_prng_seed(&prng, nth);
		hx_alloc_fail_at(nth, 1);
		for (uint32_t place = 1; place <= COUNT; place++) {
			f.hashes[place] = hx_prng_next(&prng);
			if (hx_table_reserve(&f.table, 1, hash_of, &f) != HAPAX_OK)
				break;
			hx_table_begin(&f.table);
			hx_table_insert(&f.table, f.hashes[place], place);
			hx_table_end(&f.table);
			placed = place;
		}
		hx_alloc_fail_at(0, 0);
		for (uint32_t place = 1; place <= placed; place++)
			assert_true(is_found(&f, f.hashes[place], place));
		/* With memory again it goes on. */
		for (uint32_t place = placed + 1; place <= COUNT; place++) {
			f.hashes[place] = hx_prng_next(&prng);
			add(&f, place);
		}
		for (uint32_t place = 1; place <= COUNT; place++)
			assert_true(is_found(&f, f.hashes[place], place));
		end(&f);
	}
}

/* A number with its bits spread out. */
static uint64_t mixed(uint64_t number)
{
	number *= UINT64_C(0x9e3779b97f4a7c15);
	number = (number ^ number >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return number ^ number >> 32;
}

/* Once it is large, a table has half a huge page ready behind what is in use. */
static void buckets_are_ready_ahead(void **state)
{
	enum { COUNT = 600000 };
	struct fixture f;
	size_t ranges = 0;

	(void)state;
	begin(&f, COUNT);
	for (uint32_t place = 1; place <= COUNT; place++) {
		struct hx_ahead_pages pages[2];
		size_t count;

		f.hashes[place] = mixed(place);
		add(&f, place);
		if (place % 1000 != 0)
			continue;
		count = hx_table_commit_ahead(&f.table, pages);
		for (size_t i = 0; i < count; i++)
			memset(pages[i].at, 0, pages[i].bytes);
		ranges += count;
		assert_int_equal(hx_table_commit_ahead(&f.table, pages), 0);
		if (f.table.buckets_committed > HX_PAGES_HUGE_SIZE)
			assert_true(
				f.table.buckets_committed -
					f.table.bucket_count * sizeof(struct hx_bucket) >=
				HX_PAGES_HUGE_SIZE / 2);
	}
	assert_true(ranges >= 2);
	for (uint32_t place = 1; place <= COUNT; place++)
		assert_true(is_found(&f, f.hashes[place], place));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_inserted_is_found),
		cmocka_unit_test(expected_records_are_found),
		cmocka_unit_test(chains_hold_what_collides),
		cmocka_unit_test(random_changes_match_an_array),
		cmocka_unit_test(walk_meets_what_stays),
		cmocka_unit_test(reserved_inserts_fit_without_memory),
		cmocka_unit_test(buckets_are_ready_ahead),
	};

	return cmocka_run_group_tests_name("index_table", tests, NULL, NULL);
}
