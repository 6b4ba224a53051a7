/* SPDX-License-Identifier: Apache-2.0 */
#include "record/codec.h"

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
#include "record/record.h"
#include "support/random_record.h"
#include "support/scale.h"
#include "support/store_case.h"

static struct hapax_record small_record(void)
{
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.origin = HAPAX_ORIGIN_CLAIM,
		.attempt = 3,
		.token = 0x0102030405,
		.first_seen_ms = 1000,
		.changed_ms = 2000,
		.expires_ms = 5000,
		.ttl_ms = 3000,
		.fingerprint_size = HAPAX_FINGERPRINT_SIZE,
		.tenant = HX_BYTES_LIT("tenant"),
		.group = HX_BYTES_LIT("group"),
		.key = HX_BYTES_LIT("key"),
		.result = {
			.kind = HAPAX_RESULT_HTTP,
			.status = -2,
			.headers = HX_BYTES_LIT("a: b"),
			.body = HX_BYTES_LIT("body")}};

	memset(record.fingerprint, 'f', sizeof(record.fingerprint));
	return record;
}

static void what_was_encoded_is_decoded(void **state)
{
	static struct random_record random;
	uint64_t count = scale_count(2000000, 50000);
	struct hx_prng prng;
	struct hapax_buf buf;
	struct hapax_buf again;

	(void)state;
	hx_buf_init(&buf, 1 << 20);
	hx_buf_init(&again, 1 << 20);
	hx_prng_seed(&prng, 3);
	for (uint64_t i = 0; i < count; i++) {
		struct hapax_record decoded;
		size_t size = 0;

		random_record_make(&random, &prng, CASE_EPOCH_MS);
		hx_buf_clear(&buf);
		assert_int_equal(hx_record_encode(&random.record, &buf), HAPAX_OK);
		assert_int_equal(buf.size, hx_record_encoded_size(&random.record));
		/* What follows belongs to the caller. */
		assert_int_equal(hx_buf_append(&buf, "more", 4), HAPAX_OK);
		assert_int_equal(
			hx_record_decode(hapax_buf_bytes(&buf), &decoded, &size, NULL), HAPAX_OK);
		assert_int_equal(size, buf.size - 4);
		assert_null(
			random_record_difference(&random.record, &decoded, HAPAX_FINGERPRINT_SIZE));
		assert_int_equal(decoded.fingerprint_size, random.record.fingerprint_size);
		hx_buf_clear(&again);
		assert_int_equal(hx_record_encode(&decoded, &again), HAPAX_OK);
		assert_int_equal(again.size, size);
		assert_memory_equal(again.data, buf.data, size);
	}
	hx_buf_done(&buf);
	hx_buf_done(&again);
}

/* I16: version 1 wrote these very bytes; they must be readable forever. */
static void format_is_fixed(void **state)
{
	static const unsigned char head[HX_RECORD_HEADER_SIZE] = {
		[0] = 1,      [1] = 2,     [4] = 32,   [5] = 2,      [8] = 198,    [12] = 3,
		[16] = 5,     [17] = 4,    [18] = 3,   [19] = 2,     [20] = 1,     [24] = 0xe8,
		[25] = 3,     [32] = 0xd0, [33] = 7,   [48] = 0x88,  [49] = 0x13,  [56] = 0xb8,
		[57] = 0x0b,  [64] = 'f',  [65] = 'f', [66] = 'f',   [67] = 'f',   [68] = 'f',
		[69] = 'f',   [70] = 'f',  [71] = 'f', [72] = 'f',   [73] = 'f',   [74] = 'f',
		[75] = 'f',   [76] = 'f',  [77] = 'f', [78] = 'f',   [79] = 'f',   [80] = 'f',
		[81] = 'f',   [82] = 'f',  [83] = 'f', [84] = 'f',   [85] = 'f',   [86] = 'f',
		[87] = 'f',   [88] = 'f',  [89] = 'f', [90] = 'f',   [91] = 'f',   [92] = 'f',
		[93] = 'f',   [94] = 'f',  [95] = 'f', [112] = 0xfe, [113] = 0xff, [114] = 0xff,
		[115] = 0xff, [116] = 4,   [128] = 4,  [132] = 6,    [134] = 5,    [136] = 3};
	static const char tail[] = "tenantgroupkeya: bbody";
	struct hapax_record record = small_record();
	struct hapax_record decoded;
	struct hapax_buf buf;
	size_t size = 0;

	(void)state;
	hx_buf_init(&buf, 4096);
	assert_int_equal(hx_record_encode(&record, &buf), HAPAX_OK);
	assert_int_equal(buf.size, sizeof(head) + sizeof(tail) - 1);
	assert_memory_equal(buf.data, head, sizeof(head));
	assert_memory_equal(buf.data + sizeof(head), tail, sizeof(tail) - 1);
	assert_int_equal(hx_record_decode(hapax_buf_bytes(&buf), &decoded, &size, NULL), HAPAX_OK);
	assert_null(random_record_difference(&record, &decoded, HAPAX_FINGERPRINT_SIZE));
	hx_buf_done(&buf);
}

/* A copy that ends where the bytes end, so that a sanitizer sees a read beyond. */
static enum hapax_status decode_exact(
	const unsigned char *data, size_t size, struct hapax_record *record, size_t *ret_size,
	struct hapax_error *err)
{
	unsigned char *exact = malloc(size ? size : 1);
	enum hapax_status status;

	assert_non_null(exact);
	if (size)
		memcpy(exact, data, size);
	status = hx_record_decode(hx_bytes(exact, size), record, ret_size, err);
	free(exact);
	return status;
}

static void cut_record_is_corrupt(void **state)
{
	struct hapax_record record = small_record();
	struct hapax_record untouched;
	struct hapax_record out;
	struct hapax_buf buf;
	struct hapax_error err;

	(void)state;
	memset(&untouched, 0x77, sizeof(untouched));
	hx_buf_init(&buf, 4096);
	assert_int_equal(hx_record_encode(&record, &buf), HAPAX_OK);
	for (size_t size = 0; size < buf.size; size++) {
		size_t used = 4711;

		memcpy(&out, &untouched, sizeof(out));
		memset(&err, 0, sizeof(err));
		assert_int_equal(
			decode_exact(buf.data, size, &out, &used, &err), HAPAX_ERR_CORRUPT);
		assert_int_equal(err.status, HAPAX_ERR_CORRUPT);
		assert_non_null(strstr(err.message, "offset"));
		/* Nothing is written but err. */
		assert_memory_equal(&out, &untouched, sizeof(out));
		assert_int_equal(used, 4711);
	}
	hx_buf_done(&buf);
}

/* I10: a flipped bit is noticed, or is another record that encodes to these very bytes. */
static void flipped_bit_does_not_hide(void **state)
{
	static struct random_record random;
	struct hx_prng prng;
	struct hapax_buf buf;
	struct hapax_buf again;

	(void)state;
	hx_buf_init(&buf, 1 << 20);
	hx_buf_init(&again, 1 << 20);
	hx_prng_seed(&prng, 4);
	for (uint64_t round = 0; round < scale_count(200, 20); round++) {
		random_record_make(&random, &prng, CASE_EPOCH_MS);
		hx_buf_clear(&buf);
		assert_int_equal(hx_record_encode(&random.record, &buf), HAPAX_OK);
		size_t bits = (buf.size < 600 ? buf.size : 600) * 8;
		for (size_t bit = 0; bit < bits; bit++) {
			struct hapax_record decoded;
			size_t size = 0;

			buf.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
			if (hx_record_decode(hapax_buf_bytes(&buf), &decoded, &size, NULL) ==
			    HAPAX_OK) {
				hx_buf_clear(&again);
				assert_int_equal(size, buf.size);
				assert_int_equal(hx_record_encode(&decoded, &again), HAPAX_OK);
				assert_memory_equal(again.data, buf.data, size);
			}
			buf.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
	}
	hx_buf_done(&buf);
	hx_buf_done(&again);
}

static void encode_that_does_not_fit_changes_nothing(void **state)
{
	struct hapax_record record = small_record();
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 3 + hx_record_encoded_size(&record) - 1);
	assert_int_equal(hx_buf_append(&buf, "abc", 3), HAPAX_OK);
	assert_int_equal(hx_record_encode(&record, &buf), HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, 3);
	assert_memory_equal(buf.data, "abc", 3);
	hx_buf_done(&buf);
	hx_buf_init(&buf, 4096);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_record_encode(&record, &buf), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(buf.size, 0);
	/* It appends. */
	assert_int_equal(hx_record_encode(&record, &buf), HAPAX_OK);
	assert_int_equal(hx_record_encode(&record, &buf), HAPAX_OK);
	assert_int_equal(buf.size, 2 * hx_record_encoded_size(&record));
	hx_buf_done(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_encoded_is_decoded),
		cmocka_unit_test(format_is_fixed),
		cmocka_unit_test(cut_record_is_corrupt),
		cmocka_unit_test(flipped_bit_does_not_hide),
		cmocka_unit_test(encode_that_does_not_fit_changes_nothing),
	};

	return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
