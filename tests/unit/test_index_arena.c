/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <hapax/store.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/random.h"
#include "support/random_record.h"
#include "support/store_case.h"

enum { LARGE_BODY = 3 * HX_CHUNK_SIZE / 2 };

struct fixture {
	struct hx_scope_table scopes;
	struct hx_profile_table profiles;
	struct hx_epoch epoch;
	struct hx_arena arena;
};

static void begin(struct fixture *f)
{
	assert_int_equal(hx_scope_table_init(&f->scopes), HAPAX_OK);
	assert_int_equal(hx_profile_table_init(&f->profiles, &f->scopes), HAPAX_OK);
	hx_epoch_init(&f->epoch);
	assert_int_equal(hx_arena_init(&f->arena, 256 << 20, &f->epoch), HAPAX_OK);
}

static void end(struct fixture *f)
{
	hx_arena_done(&f->arena);
	hx_profile_table_done(&f->profiles);
	hx_scope_table_done(&f->scopes);
}

static uint32_t write_record(struct fixture *f, struct hapax_record *record, int64_t now_ms)
{
	struct hx_scope *scope = hx_scope_table_get(&f->scopes, 0);
	uint32_t profile = hx_profile_intern(&f->profiles, 0, record->ttl_ms);
	struct hx_packed_key key;

	record->tenant = scope->tenant;
	record->group = scope->group;
	hx_packed_key_init(&key, 0, record->key);
	return hx_arena_write(
		&f->arena, record, NULL, &key, profile,
		hx_profile_get(&f->profiles, profile)->ttl_ms == 0, now_ms);
}

static void must_read(struct fixture *f, uint32_t place, const struct hapax_record *expected)
{
	const unsigned char *at = hx_arena_at(&f->arena, place);
	unsigned char text[HX_KEY_TEXT_SIZE];
	struct hapax_record read;

	hx_packed_read(at, hx_arena_base(&f->arena, place), &f->profiles, &read);
	read.key = hx_packed_read_text(at, text);
	assert_null(random_record_difference(expected, &read, HAPAX_FINGERPRINT_SHORT_SIZE));
}

static void records_are_kept_until_they_die(void **state)
{
	enum { COUNT = 4000 };
	struct random_record *records = calloc(COUNT, sizeof(*records));
	uint32_t *places = calloc(COUNT, sizeof(*places));
	struct hx_prng prng;
	static struct fixture f; /* static: cache lines are not aligned on the stack under ASan */
	uint32_t chunks = 0;

	(void)state;
	assert_true(records && places);
	begin(&f);
	hx_prng_seed(&prng, 31);
	for (int round = 0; round < 10; round++) {
		for (size_t i = 0; i < COUNT; i++) {
			random_record_make(&records[i], &prng, CASE_EPOCH_MS);
			places[i] = write_record(&f, &records[i].record, CASE_EPOCH_MS);
			assert_true(places[i] != 0);
		}
		for (size_t i = 0; i < COUNT; i++)
			must_read(&f, places[i], &records[i].record);
		assert_true(f.arena.live_bytes > 0);
		assert_true(f.arena.used_bytes >= f.arena.live_bytes);
		/* In any order. */
		for (size_t i = 0; i < COUNT; i++)
			hx_arena_kill(&f.arena, places[i * 7 % COUNT]);
		assert_int_equal(f.arena.live_bytes, 0);
		/* Without readers what died is used again, and the arena stops growing. */
		if (round == 2)
			chunks = f.arena.chunk_count;
		if (round > 2)
			assert_true(f.arena.chunk_count <= chunks + 2 * HX_CLASS_COUNT);
	}
	end(&f);
	free(records);
	free(places);
}

/* A record larger than a chunk has chunks of its own, and gives them back. */
static void large_records_have_chunks_of_their_own(void **state)
{
	unsigned char *body = malloc(LARGE_BODY);
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.attempt = 1,
		.token = 9,
		.first_seen_ms = CASE_EPOCH_MS,
		.changed_ms = CASE_EPOCH_MS,
		.expires_ms = CASE_EPOCH_MS + 1000,
		.ttl_ms = 1000,
		.key = HX_BYTES_LIT("large")};
	static struct fixture f; /* static: cache lines are not aligned on the stack under ASan */
	uint32_t chunks = 0;

	(void)state;
	assert_non_null(body);
	for (size_t i = 0; i < LARGE_BODY; i++)
		body[i] = (unsigned char)(i * 7);
	record.result.kind = HAPAX_RESULT_BYTES;
	begin(&f);
	for (size_t round = 0; round < 200; round++) {
		uint32_t places[3];

		for (size_t i = 0; i < 3; i++) {
			record.result.body = hx_bytes(body, LARGE_BODY >> (i * 2));
			places[i] = write_record(&f, &record, CASE_EPOCH_MS);
			assert_true(places[i] != 0);
		}
		for (size_t i = 0; i < 3; i++) {
			record.result.body = hx_bytes(body, LARGE_BODY >> (i * 2));
			must_read(&f, places[i], &record);
			hx_arena_kill(&f.arena, places[i]);
		}
		if (round == 20)
			chunks = f.arena.chunk_count;
		if (round > 20)
			assert_true(f.arena.chunk_count <= chunks + 8);
	}
	end(&f);
	free(body);
}

/* Six records of 40 KB fit into a chunk and share it; what they take is what is counted. */
static void large_records_share_chunks(void **state)
{
	enum { COUNT = 600, BODY = 40 * 1000 };
	static unsigned char body[BODY];
	static uint32_t places[COUNT];
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.attempt = 1,
		.token = 9,
		.first_seen_ms = CASE_EPOCH_MS,
		.changed_ms = CASE_EPOCH_MS,
		.expires_ms = CASE_EPOCH_MS + 1000,
		.ttl_ms = 1000,
		.result = {.kind = HAPAX_RESULT_BYTES, .body = {body, BODY}},
		.key = HX_BYTES_LIT("large")};
	static struct fixture f; /* static: cache lines are not aligned on the stack under ASan */

	(void)state;
	begin(&f);
	for (size_t i = 0; i < COUNT; i++) {
		body[0] = (unsigned char)i;
		places[i] = write_record(&f, &record, CASE_EPOCH_MS);
		assert_true(places[i] != 0);
	}
	assert_true(f.arena.chunk_count <= COUNT / 6 + 2);
	assert_in_range(
		f.arena.live_bytes, (uint64_t)COUNT / 6 * HX_CHUNK_SIZE * 99 / 100,
		(uint64_t)COUNT / 6 * HX_CHUNK_SIZE);
	for (size_t i = 0; i < COUNT; i++) {
		body[0] = (unsigned char)i;
		must_read(&f, places[i], &record);
		hx_arena_kill(&f.arena, places[i]);
	}
	assert_int_equal(f.arena.live_bytes, 0);
	end(&f);
}

/* What is taken is never less than the record, and never more than twice it. */
static void room_is_counted_in_shares(void **state)
{
	(void)state;
	for (size_t size = 16; size < 20 * HX_CHUNK_SIZE; size += size / 64 * 2 + 2) {
		uint32_t room = hx_arena_room(size);

		assert_true(room >= size && room % HX_PLACE_UNIT == 0);
		assert_true(size > HX_CHUNK_RECORD_MAX ? room <= 2 * size : room == size);
	}
}

/* Out of chunks is LIMIT, not a lack of memory. */
static void full_arena_says_limit(void **state)
{
	static struct fixture f; /* static: cache lines are not aligned on the stack under ASan */
	static unsigned char body[HX_CHUNK_SIZE];
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.attempt = 1,
		.token = 9,
		.first_seen_ms = CASE_EPOCH_MS,
		.changed_ms = CASE_EPOCH_MS,
		.expires_ms = CASE_EPOCH_MS + 1000,
		.ttl_ms = 1000,
		.result = {.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}},
		.key = HX_BYTES_LIT("large")};
	int count = 0;

	(void)state;
	begin(&f);
	while (write_record(&f, &record, CASE_EPOCH_MS) != 0)
		assert_true(++count < 1000);
	assert_int_equal(f.arena.failure, HAPAX_ERR_LIMIT);
	assert_int_equal(count, (256 << 20) / HX_CHUNK_SIZE / 2 - 1);
	end(&f);
}

/* A mark that no chunk can hold in its short form opens none: 60 days do not fit 32 bits of ms. */
static void mark_that_does_not_fit_opens_nothing(void **state)
{
	static struct fixture f; /* static: cache lines are not aligned on the stack under ASan */
	struct hx_packed_mark mark = {.token = 1};
	struct hx_packed_key key;

	(void)state;
	begin(&f);
	hx_packed_key_init(&key, 0, HX_BYTES_LIT("key"));
	for (int i = 0; i < 1000; i++) {
		mark.expires_ms = CASE_EPOCH_MS + INT64_C(60) * 24 * 3600 * 1000;
		mark.token++;
		assert_int_equal(hx_arena_write_mark(&f.arena, &key, &mark, CASE_EPOCH_MS), 0);
		/* One that fits stays in the chunk that is open. */
		mark.expires_ms = CASE_EPOCH_MS + INT64_C(40) * 24 * 3600 * 1000;
		assert_true(hx_arena_write_mark(&f.arena, &key, &mark, CASE_EPOCH_MS) != 0);
		assert_int_equal(f.arena.chunk_count, 2);
	}
	end(&f);
}

/* What a reader has found stays readable until it leaves, whatever is written. */
static void readers_keep_what_they_look_at(void **state)
{
	static struct random_record first;
	static struct random_record other;
	struct hx_prng prng;
	static struct fixture f; /* static: cache lines are not aligned on the stack under ASan */

	(void)state;
	begin(&f);
	hx_prng_seed(&prng, 32);
	random_record_make(&first, &prng, CASE_EPOCH_MS);
	uint32_t place = write_record(&f, &first.record, CASE_EPOCH_MS);
	assert_true(place != 0);
	unsigned seat = hx_epoch_enter(&f.epoch);
	hx_arena_kill(&f.arena, place);
	for (int i = 0; i < 3000; i++) {
		random_record_make(&other, &prng, CASE_EPOCH_MS);
		uint32_t at = write_record(&f, &other.record, CASE_EPOCH_MS);
		assert_true(at != 0 && at != place);
		hx_arena_kill(&f.arena, at);
	}
	must_read(&f, place, &first.record);
	hx_epoch_leave(&f.epoch, seat);
	end(&f);
}

static void epoch_waits_for_those_inside(void **state)
{
	static struct hx_epoch epoch;
	unsigned early, late;

	(void)state;
	hx_epoch_init(&epoch);
	uint64_t before = hx_epoch_retire(&epoch);
	assert_true(hx_epoch_is_past(&epoch, before));
	early = hx_epoch_enter(&epoch);
	uint64_t stamp = hx_epoch_retire(&epoch);
	assert_false(hx_epoch_is_past(&epoch, stamp));
	/* Who enters afterwards cannot have seen it. */
	late = hx_epoch_enter(&epoch);
	assert_int_not_equal(early, late);
	hx_epoch_leave(&epoch, early);
	assert_true(hx_epoch_is_past(&epoch, stamp));
	uint64_t next = hx_epoch_retire(&epoch);
	assert_false(hx_epoch_is_past(&epoch, next));
	hx_epoch_leave(&epoch, late);
	assert_true(hx_epoch_is_past(&epoch, next));
}

static void due_time_follows_the_state(void **state)
{
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE, .expires_ms = 5000, .ttl_ms = 1000, .changed_ms = 4000};

	(void)state;
	assert_int_equal(hx_arena_due(&record), 5000);
	record.state = HAPAX_STATE_FAILED;
	assert_int_equal(hx_arena_due(&record), 5000);
	record.expires_ms = HAPAX_TIME_NEVER;
	record.state = HAPAX_STATE_PARKED;
	assert_int_equal(hx_arena_due(&record), HAPAX_TIME_NEVER);
	record.state = HAPAX_STATE_CLAIMED;
	record.lease_ends_ms = 4500;
	assert_int_equal(hx_arena_due(&record), 5500);
	record.ttl_ms = HAPAX_TTL_FOREVER;
	assert_int_equal(hx_arena_due(&record), HAPAX_TIME_NEVER);
	/* A loaded lease may have ended at any time. The sum would be a time of its own. */
	record.lease_ends_ms = -HAPAX_TTL_FOREVER;
	assert_int_equal(hx_arena_due(&record), HAPAX_TIME_NEVER);
	record.lease_ends_ms = 4500;
	record.ttl_ms = 1000;
	assert_int_equal(hx_arena_class(&record, 4000), HX_CLASS_HELD);
	record.state = HAPAX_STATE_DONE;
	record.expires_ms = 4000 + 60000;
	assert_int_equal(hx_arena_class(&record, 4000), HX_CLASS_HOUR);
	record.expires_ms = HAPAX_TIME_NEVER;
	assert_int_equal(hx_arena_class(&record, 4000), HX_CLASS_EVER);
}

/* Fill chunks with large records until so many were taken. */
static void fill_until(struct fixture *f, uint32_t chunks)
{
	static unsigned char body[HX_CHUNK_SIZE / 2];
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.attempt = 1,
		.token = 9,
		.first_seen_ms = CASE_EPOCH_MS,
		.changed_ms = CASE_EPOCH_MS,
		.expires_ms = CASE_EPOCH_MS + 1000,
		.ttl_ms = 1000,
		.result = {.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}},
		.key = HX_BYTES_LIT("large")};

	while (f->arena.chunk_count < chunks)
		assert_int_not_equal(write_record(f, &record, CASE_EPOCH_MS), 0);
}

/* A small arena stays small; a large one has half a huge page ready, and is given no more. */
static void chunks_are_ready_ahead(void **state)
{
	enum { HALF = HX_PAGES_HUGE_SIZE / HX_CHUNK_SIZE / 2 };
	static struct fixture f; /* static: cache lines are not aligned on the stack under ASan */
	struct hx_ahead_pages pages;

	(void)state;
	begin(&f);
	assert_int_equal(hx_arena_commit_ahead(&f.arena, &pages), 0);
	for (uint32_t chunks = HALF; chunks < 8 * HALF; chunks++) {
		uint32_t committed;

		fill_until(&f, chunks);
		committed = f.arena.committed_count;
		if (hx_arena_commit_ahead(&f.arena, &pages) == 0)
			pages.bytes = 0;
		else
			assert_ptr_equal(
				pages.at, f.arena.memory + (uint64_t)committed * HX_CHUNK_SIZE);
		assert_int_equal(f.arena.committed_count, committed + pages.bytes / HX_CHUNK_SIZE);
		assert_in_range(f.arena.committed_count - f.arena.chunk_count, HALF, 3 * HALF);
		assert_int_equal(hx_arena_commit_ahead(&f.arena, &pages), 0);
	}
	fill_until(&f, f.arena.chunk_count_max);
	assert_int_equal(hx_arena_commit_ahead(&f.arena, &pages), 0);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_kept_until_they_die),
		cmocka_unit_test(large_records_have_chunks_of_their_own),
		cmocka_unit_test(large_records_share_chunks),
		cmocka_unit_test(room_is_counted_in_shares),
		cmocka_unit_test(full_arena_says_limit),
		cmocka_unit_test(mark_that_does_not_fit_opens_nothing),
		cmocka_unit_test(readers_keep_what_they_look_at),
		cmocka_unit_test(epoch_waits_for_those_inside),
		cmocka_unit_test(due_time_follows_the_state),
		cmocka_unit_test(chunks_are_ready_ahead),
	};

	return cmocka_run_group_tests_name("index_arena", tests, NULL, NULL);
}
