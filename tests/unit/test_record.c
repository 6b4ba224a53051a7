/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <hapax/store.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "support/random_record.h"
#include "support/store_case.h"

static struct hapax_record make(enum hapax_state state)
{
	struct hapax_record record = {
		.state = state,
		.attempt = 1,
		.token = 7,
		.first_seen_ms = 100,
		.changed_ms = 200,
		.expires_ms = HAPAX_TIME_NEVER,
		.ttl_ms = 1000,
		.tenant = HX_BYTES_LIT("t"),
		.group = HX_BYTES_LIT("g"),
		.key = HX_BYTES_LIT("k")};

	if (state == HAPAX_STATE_CLAIMED)
		record.lease_ends_ms = 300;
	if (state == HAPAX_STATE_DONE || state == HAPAX_STATE_FAILED)
		record.expires_ms = 1200;
	if (state == HAPAX_STATE_CLAIMED || state == HAPAX_STATE_PARKED)
		record.attempt_id[0] = 1;
	return record;
}

static void every_random_record_is_valid(void **state)
{
	static struct random_record random;
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 1);
	for (int i = 0; i < 20000; i++) {
		random_record_make(&random, &prng, CASE_EPOCH_MS);
		assert_true(hx_record_is_valid(&random.record));
		hx_record_assert(&random.record);
	}
}

/* Rules 1 to 3 of record.h, broken in turn. */
static void break_head(struct hapax_record good)
{
	struct hapax_record bad;

	/* (1) */
	bad = good;
	bad.state = HAPAX_STATE_ABSENT;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.state = (enum hapax_state)5;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.token = 0;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.token = HX_TOKEN_MAX + 1;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.attempt = 0;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.origin = (enum hapax_origin)3;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.on_lapse = (enum hapax_on_lapse)2;
	assert_false(hx_record_is_valid(&bad));
	/* (2) */
	if (good.state == HAPAX_STATE_CLAIMED || good.state == HAPAX_STATE_PARKED) {
		bad = good;
		bad.expires_ms = 5000;
		assert_false(hx_record_is_valid(&bad));
	}
	/* (3) */
	if (good.state != HAPAX_STATE_CLAIMED) {
		bad = good;
		bad.lease_ends_ms = 300;
		assert_false(hx_record_is_valid(&bad));
	}
}

/* Rule 4, of a record that may have a result. */
static void break_done(struct hapax_record good)
{
	static unsigned char much[HX_RESULT_SIZE_LIMIT + 1];
	struct hapax_record bad;

	bad = good;
	bad.owner = HX_BYTES_LIT("o");
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.error = HX_BYTES_LIT("e");
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.kind = (enum hapax_result_kind)4;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.result_class = (enum hapax_result_class)2;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.body = HX_BYTES_LIT("b");
	bad.result.omitted_bytes = 1;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.body = hx_bytes(much, sizeof(much));
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.headers = hx_bytes(much, HX_RESULT_HEADERS_SIZE_MAX + 1);
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.body = hx_bytes(NULL, 1);
	assert_false(hx_record_is_valid(&bad));
}

/* Rule 4, of one that may not. */
static void break_not_done(struct hapax_record good)
{
	struct hapax_record bad;

	bad = good;
	bad.result.kind = HAPAX_RESULT_BYTES;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.status = 1;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.body = HX_BYTES_LIT("b");
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.headers = HX_BYTES_LIT("h");
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.omitted_bytes = 1;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.result.result_class = HAPAX_RESULT_DEFINITIVE;
	assert_false(hx_record_is_valid(&bad));
}

/* Rule 5. */
static void break_prints(struct hapax_record good)
{
	struct hapax_record bad;

	/* (5) */
	bad = good;
	bad.fingerprint[31] = 1;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.fingerprint_size = 16;
	bad.fingerprint[16] = 1;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.fingerprint_size = 8;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.fingerprint_size = 33;
	assert_false(hx_record_is_valid(&bad));
	if (good.state == HAPAX_STATE_DONE || good.state == HAPAX_STATE_FAILED) {
		bad = good;
		bad.attempt_id[15] = 1;
		assert_false(hx_record_is_valid(&bad));
	}
}

/* Rules 6 and 7. */
static void break_lengths(struct hapax_record good)
{
	static unsigned char much[HX_RESULT_SIZE_LIMIT + 1];
	struct hapax_record bad;

	/* (6) */
	bad = good;
	bad.key.size = 0;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.key = hx_bytes(much, HX_KEY_SIZE_MAX + 1);
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.key = hx_bytes(NULL, 1);
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.tenant.size = 0;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.tenant = hx_bytes(much, HX_SCOPE_PART_SIZE_MAX + 1);
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.group.size = 0;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.group = hx_bytes(much, HX_SCOPE_PART_SIZE_MAX + 1);
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.owner = hx_bytes(much, HX_OWNER_SIZE_MAX + 1);
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.error = hx_bytes(much, HX_ERROR_TEXT_SIZE_MAX + 1);
	assert_false(hx_record_is_valid(&bad));
	/* (7) */
	bad = good;
	bad.first_seen_ms = 201;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.ttl_ms = 0;
	assert_false(hx_record_is_valid(&bad));
	bad = good;
	bad.ttl_ms = -1;
	assert_false(hx_record_is_valid(&bad));
}

static void broken_rules_are_noticed(void **state)
{
	(void)state;
	for (unsigned s = HAPAX_STATE_CLAIMED; s <= HAPAX_STATE_PARKED; s++) {
		struct hapax_record good = make((enum hapax_state)s);

		assert_true(hx_record_is_valid(&good));
		break_head(good);
		if (s == HAPAX_STATE_DONE)
			break_done(good);
		else
			break_not_done(good);
		break_prints(good);
		break_lengths(good);
	}
}

static void expiry_and_lapse_begin_at_their_moment(void **state)
{
	struct hapax_record record = make(HAPAX_STATE_DONE);

	(void)state;
	assert_false(hx_record_is_expired(&record, 1199));
	assert_true(hx_record_is_expired(&record, 1200));
	assert_false(hx_record_is_lapsed(&record, 1200));
	record = make(HAPAX_STATE_FAILED);
	assert_true(hx_record_is_expired(&record, 1200));
	record = make(HAPAX_STATE_CLAIMED);
	assert_false(hx_record_is_lapsed(&record, 299));
	assert_true(hx_record_is_lapsed(&record, 300));
	assert_false(hx_record_is_expired(&record, INT64_MAX - 1));
	record = make(HAPAX_STATE_PARKED);
	assert_false(hx_record_is_expired(&record, INT64_MAX - 1));
	assert_false(hx_record_is_lapsed(&record, INT64_MAX - 1));
	record = make(HAPAX_STATE_DONE);
	record.ttl_ms = HAPAX_TTL_FOREVER;
	record.expires_ms = HAPAX_TIME_NEVER;
	assert_false(hx_record_is_expired(&record, INT64_MAX - 1));
}

static bool lies_in(struct hapax_bytes bytes, const struct hapax_buf *buf)
{
	const unsigned char *at = bytes.data;

	return bytes.size == 0 || (at >= buf->data && at + bytes.size <= buf->data + buf->size);
}

static void copy_is_whole_and_its_own(void **state)
{
	static struct random_record random;
	struct hx_prng prng;
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 1 << 20);
	hx_prng_seed(&prng, 2);
	for (int i = 0; i < 2000; i++) {
		struct hapax_record copy;

		random_record_make(&random, &prng, CASE_EPOCH_MS);
		assert_int_equal(hx_record_copy(&random.record, &copy, &buf), HAPAX_OK);
		assert_null(
			random_record_difference(&random.record, &copy, HAPAX_FINGERPRINT_SIZE));
		assert_true(lies_in(copy.tenant, &buf) && lies_in(copy.group, &buf));
		assert_true(lies_in(copy.key, &buf) && lies_in(copy.owner, &buf));
		assert_true(lies_in(copy.error, &buf));
		assert_true(lies_in(copy.result.headers, &buf) && lies_in(copy.result.body, &buf));
		assert_true(hx_record_is_valid(&copy));
	}
	hx_buf_done(&buf);
}

static void copy_that_does_not_fit_writes_nothing(void **state)
{
	struct hapax_record record = make(HAPAX_STATE_DONE);
	struct hapax_record copy;
	struct hapax_record before;
	struct hapax_buf buf;

	(void)state;
	memset(&copy, 0x5a, sizeof(copy));
	memcpy(&before, &copy, sizeof(copy));
	hx_buf_init(&buf, 2);
	assert_int_equal(hx_record_copy(&record, &copy, &buf), HAPAX_ERR_LIMIT);
	assert_memory_equal(&copy, &before, sizeof(copy));
	hx_buf_done(&buf);
	hx_buf_init(&buf, 3);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_record_copy(&record, &copy, &buf), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_memory_equal(&copy, &before, sizeof(copy));
	assert_int_equal(hx_record_copy(&record, &copy, &buf), HAPAX_OK);
	hx_buf_done(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_random_record_is_valid),
		cmocka_unit_test(broken_rules_are_noticed),
		cmocka_unit_test(expiry_and_lapse_begin_at_their_moment),
		cmocka_unit_test(copy_is_whole_and_its_own),
		cmocka_unit_test(copy_that_does_not_fit_writes_nothing),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
