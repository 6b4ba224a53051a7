/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uuid7.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/random.h"

#define TIME_MAX ((INT64_C(1) << 48) - 1)

static const char sample[] = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";

/* The example of RFC 9562, appendix A.6: 2022-02-22T19:22:22Z. */
static void rfc_example(void **state)
{
	static const unsigned char expected[HX_UUID_SIZE] = {0x01, 0x7f, 0x22, 0xe2, 0x79, 0xb0,
							     0x7c, 0xc3, 0x98, 0xc4, 0xdc, 0x0c,
							     0x0c, 0x07, 0x39, 0x8f};
	unsigned char uuid[HX_UUID_SIZE];
	char text[HX_UUID_TEXT_SIZE + 1];
	int64_t ms;

	(void)state;
	assert_true(hx_uuid7_parse(HX_BYTES_LIT("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), uuid));
	assert_memory_equal(uuid, expected, sizeof(uuid));
	assert_true(hx_uuid7_time_ms(uuid, &ms));
	assert_int_equal(ms, INT64_C(1645557742000));
	hx_uuid7_format(uuid, text);
	assert_string_equal(text, sample);
}

static void next_has_version_variant_and_time(void **state)
{
	struct hx_uuid7 gen;
	unsigned char uuid[HX_UUID_SIZE];
	int64_t ms;

	(void)state;
	hx_uuid7_init(&gen);
	for (int64_t wall_ms = 1; wall_ms <= TIME_MAX; wall_ms *= 3) {
		hx_uuid7_next(&gen, wall_ms, uuid);
		assert_int_equal(uuid[6] >> 4, 7);
		assert_int_equal(uuid[8] >> 6, 2);
		assert_true(hx_uuid7_time_ms(uuid, &ms));
		assert_int_equal(ms, wall_ms);
	}
}

static void grows_whatever_the_clock_does(void **state)
{
	struct hx_uuid7 gen;
	struct hx_prng prng;
	unsigned char last[HX_UUID_SIZE] = {0}, uuid[HX_UUID_SIZE];
	int64_t wall_ms = INT64_C(1794774135123);

	(void)state;
	hx_uuid7_init(&gen);
	hx_prng_seed(&prng, 9);
	for (int i = 0; i < 50000; i++) {
		/* Stands for long stretches; now and then it jumps, as often back as ahead. */
		if (hx_prng_below(&prng, 1000) == 0)
			wall_ms += (int64_t)hx_prng_below(&prng, 20001) - 10000;
		hx_uuid7_next(&gen, wall_ms, uuid);
		assert_true(memcmp(uuid, last, sizeof(uuid)) > 0);
		memcpy(last, uuid, sizeof(uuid));
	}
}

static void a_full_counter_borrows_from_the_future(void **state)
{
	struct hx_uuid7 gen;
	unsigned char uuid[HX_UUID_SIZE];
	int64_t ms = 0;

	(void)state;
	hx_uuid7_init(&gen);
	/* The counter begins in its lower half, so 2048 fit at least and 4096 at most. */
	for (int i = 0; i < 2048; i++)
		hx_uuid7_next(&gen, 1000, uuid);
	assert_true(hx_uuid7_time_ms(uuid, &ms));
	assert_int_equal(ms, 1000);
	for (int i = 0; i < 2049; i++)
		hx_uuid7_next(&gen, 1000, uuid);
	assert_true(hx_uuid7_time_ms(uuid, &ms));
	assert_int_equal(ms, 1001);
	/* The clock catches up and is believed again. */
	hx_uuid7_next(&gen, 5000, uuid);
	assert_true(hx_uuid7_time_ms(uuid, &ms));
	assert_int_equal(ms, 5000);
}

static void times_out_of_range_are_clamped(void **state)
{
	struct hx_uuid7 gen;
	unsigned char uuid[HX_UUID_SIZE], other[HX_UUID_SIZE];
	int64_t ms;

	(void)state;
	hx_uuid7_init(&gen);
	hx_uuid7_next(&gen, INT64_MIN, uuid);
	assert_true(hx_uuid7_time_ms(uuid, &ms));
	assert_int_equal(ms, 0);
	for (int i = 0; i < 10000; i++) {
		hx_uuid7_next(&gen, INT64_MAX, other);
		assert_true(hx_uuid7_time_ms(other, &ms));
		assert_int_equal(ms, TIME_MAX);
		assert_memory_not_equal(uuid, other, sizeof(uuid));
		memcpy(uuid, other, sizeof(uuid));
	}
}

enum { THREADS = 4, PER_THREAD = 5000 };

static struct hx_uuid7 shared_gen;
static unsigned char made[THREADS][PER_THREAD][HX_UUID_SIZE];

static void make_uuids(void *arg)
{
	unsigned char(*mine)[HX_UUID_SIZE] = arg;

	for (int i = 0; i < PER_THREAD; i++)
		hx_uuid7_next(&shared_gen, 1000 + i / 100, mine[i]);
}

static int compare_uuids(const void *a, const void *b)
{
	return memcmp(a, b, HX_UUID_SIZE);
}

static void threads_share_a_generator(void **state)
{
	struct hx_thread threads[THREADS];
	unsigned char *all = &made[0][0][0];

	(void)state;
	hx_uuid7_init(&shared_gen);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			hx_thread_start(&threads[i], make_uuids, made[i], "uuid", NULL), HAPAX_OK);
	for (int i = 0; i < THREADS; i++)
		hx_thread_join(&threads[i]);
	for (int i = 0; i < THREADS; i++) {
		for (int j = 1; j < PER_THREAD; j++)
			assert_true(compare_uuids(made[i][j - 1], made[i][j]) < 0);
	}
	/* Time and counter alone must differ; the random part would hide a race. */
	qsort(all, (size_t)THREADS * PER_THREAD, HX_UUID_SIZE, compare_uuids);
	for (size_t i = 1; i < (size_t)THREADS * PER_THREAD; i++)
		assert_true(memcmp(all + (i - 1) * HX_UUID_SIZE, all + i * HX_UUID_SIZE, 8) < 0);
}

static void other_versions_have_no_time(void **state)
{
	unsigned char uuid[HX_UUID_SIZE];
	int64_t ms = 77;

	(void)state;
	assert_true(hx_uuid7_pack(sample, uuid));
	for (int version = 0; version < 16; version++) {
		uuid[6] = (unsigned char)(version << 4 | 0x0c);
		if (version != 7)
			assert_false(hx_uuid7_time_ms(uuid, &ms));
	}
	uuid[6] = 0x7c;
	for (int variant = 0; variant < 4; variant++) {
		uuid[8] = (unsigned char)(variant << 6);
		if (variant != 2)
			assert_false(hx_uuid7_time_ms(uuid, &ms));
	}
	assert_int_equal(ms, 77);
}

/* Both implementations and the chosen one say the same, and out is written only on success. */
static bool pack_all(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE])
{
	unsigned char before[HX_UUID_SIZE], scalar[HX_UUID_SIZE], other[HX_UUID_SIZE];
	bool packed;

	memset(before, 0x5a, sizeof(before));
	memcpy(scalar, before, sizeof(before));
	packed = hx_uuid7_pack_scalar(text, scalar);
	if (!packed)
		assert_memory_equal(scalar, before, sizeof(before));

	memcpy(other, before, sizeof(before));
	assert_int_equal(hx_uuid7_pack(text, other), packed);
	assert_memory_equal(other, scalar, sizeof(scalar));
	if (hx_uuid7_pack_x86_usable()) {
		memcpy(other, before, sizeof(before));
		assert_int_equal(hx_uuid7_pack_x86(text, other), packed);
		assert_memory_equal(other, scalar, sizeof(scalar));
	}
	memcpy(out, scalar, sizeof(scalar));
	return packed;
}

static void pack_and_unpack_are_inverse(void **state)
{
	unsigned char uuid[HX_UUID_SIZE], back[HX_UUID_SIZE];
	char text[HX_UUID_TEXT_SIZE + 2];

	(void)state;
	text[0] = text[HX_UUID_TEXT_SIZE + 1] = '#';
	for (int i = 0; i < 10000; i++) {
		hx_random_bytes(uuid, sizeof(uuid));
		hx_uuid7_unpack(uuid, text + 1);
		assert_true(pack_all(text + 1, back));
		assert_memory_equal(back, uuid, sizeof(uuid));
	}
	assert_int_equal(text[0], '#');
	assert_int_equal(text[HX_UUID_TEXT_SIZE + 1], '#');
}

/* Every byte value at every place: packed exactly when unpacking gives the same text. */
static void pack_takes_only_what_unpack_gives(void **state)
{
	(void)state;
	for (size_t place = 0; place < HX_UUID_TEXT_SIZE; place++) {
		bool is_hyphen = sample[place] == '-';

		for (int byte = 0; byte < 256; byte++) {
			char text[HX_UUID_TEXT_SIZE], back[HX_UUID_TEXT_SIZE];
			bool is_digit = byte != 0 && strchr("0123456789abcdef", byte) != NULL;
			unsigned char uuid[HX_UUID_SIZE];

			memcpy(text, sample, sizeof(text));
			text[place] = (char)byte;
			assert_int_equal(pack_all(text, uuid), is_hyphen ? byte == '-' : is_digit);
			if (is_hyphen ? byte == '-' : is_digit) {
				hx_uuid7_unpack(uuid, back);
				assert_memory_equal(text, back, sizeof(text));
			}
		}
	}
}

/* At the very end of an allocation, so that ASan sees a load beyond it. */
static void pack_reads_36_bytes(void **state)
{
	unsigned char uuid[HX_UUID_SIZE];
	char *text = malloc(HX_UUID_TEXT_SIZE);

	(void)state;
	assert_non_null(text);
	memcpy(text, sample, HX_UUID_TEXT_SIZE);
	assert_true(pack_all(text, uuid));
	free(text);
}

static void parse_is_strict_but_for_case(void **state)
{
	static const char *const wrong[] = {
		"",
		"017f22e2",
		"017f22e279b07cc398c4dc0c0c07398f",
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398",
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398f0",
		"{017f22e2-79b0-7cc3-98c4-dc0c0c0739}",
		"urn:uuid:017f22e2-79b0-7cc3-98c4-dc0",
		"017f22e27-9b0-7cc3-98c4-dc0c0c07398f",
		"017g22e2-79b0-7cc3-98c4-dc0c0c07398f",
		"017G22E2-79B0-7CC3-98C4-DC0C0C07398F",
		" 17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
		"017f22e2_79b0_7cc3_98c4_dc0c0c07398f",
	};
	unsigned char uuid[HX_UUID_SIZE], mixed[HX_UUID_SIZE];

	(void)state;
	assert_true(hx_uuid7_parse(hapax_bytes_from_text(sample), uuid));
	assert_true(hx_uuid7_parse(HX_BYTES_LIT("017f22E2-79b0-7Cc3-98c4-dC0C0c07398F"), mixed));
	assert_memory_equal(uuid, mixed, sizeof(uuid));
	memset(mixed, 0x5a, sizeof(mixed));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(hx_uuid7_parse(hapax_bytes_from_text(wrong[i]), mixed));
	for (size_t i = 0; i < sizeof(mixed); i++)
		assert_int_equal(mixed[i], 0x5a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rfc_example),
		cmocka_unit_test(next_has_version_variant_and_time),
		cmocka_unit_test(grows_whatever_the_clock_does),
		cmocka_unit_test(a_full_counter_borrows_from_the_future),
		cmocka_unit_test(times_out_of_range_are_clamped),
		cmocka_unit_test(threads_share_a_generator),
		cmocka_unit_test(other_versions_have_no_time),
		cmocka_unit_test(pack_and_unpack_are_inverse),
		cmocka_unit_test(pack_takes_only_what_unpack_gives),
		cmocka_unit_test(pack_reads_36_bytes),
		cmocka_unit_test(parse_is_strict_but_for_case),
	};

	return cmocka_run_group_tests_name("uuid7", tests, NULL, NULL);
}
