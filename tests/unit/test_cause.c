/* SPDX-License-Identifier: Apache-2.0 */
#include "record/cause.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

static void assert_text(struct hapax_bytes bytes, const char *text)
{
	assert_true(hx_bytes_equal(bytes, hapax_bytes_from_text(text)));
}

/* A10: what was packed reads back. */
static void parts_read_back(void **state)
{
	const struct hapax_cause cause = {
		.id = HX_BYTES_LIT("evt_1"),
		.type = HX_BYTES_LIT("order.created"),
		.source = HX_BYTES_LIT("/shop"),
		.time_ms = -1234567890123,
	};
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_bytes packed = hapax_cause_write(&cause, buffer);
	struct hapax_cause back;

	(void)state;
	assert_int_equal(packed.size, 11 + 5 + 13 + 5);
	assert_true(hx_cause_is_valid(packed));
	assert_int_equal(hapax_cause_read(packed, &back), 1);
	assert_text(back.id, "evt_1");
	assert_text(back.type, "order.created");
	assert_text(back.source, "/shop");
	assert_int_equal(back.time_ms, cause.time_ms);
}

static void nothing_packs_to_nothing(void **state)
{
	const struct hapax_cause none = {.time_ms = 0};
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_bytes packed = hapax_cause_write(&none, buffer);
	struct hapax_cause back = {.time_ms = 7};

	(void)state;
	assert_int_equal(packed.size, 0);
	assert_true(hx_cause_is_valid(packed));
	assert_int_equal(hapax_cause_read(packed, &back), 0);
	assert_int_equal(back.time_ms, 0);
}

static void long_texts_are_cut_between_characters(void **state)
{
	char text[300];
	struct hapax_cause cause = {.time_ms = 0};
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_cause back;

	(void)state;
	memset(text, 'a', sizeof(text));
	cause.id = hx_bytes(text, sizeof(text));
	/* The euro sign takes three bytes, 254 to 256: it does not fit whole. */
	memcpy(text + 254, "\xe2\x82\xac", 3);
	cause.type = cause.id;
	assert_int_equal(hapax_cause_read(hapax_cause_write(&cause, buffer), &back), 1);
	assert_int_equal(back.type.size, 254);
	memset(text, 'a', sizeof(text));
	assert_int_equal(hapax_cause_read(hapax_cause_write(&cause, buffer), &back), 1);
	assert_int_equal(back.id.size, HAPAX_CAUSE_PART_SIZE_MAX);
}

static void what_is_not_text_is_left_out(void **state)
{
	const struct hapax_cause cause = {
		.id = HX_BYTES_LIT("\xff\xfe"),
		.type = HX_BYTES_LIT("a\0b"),
		.source = HX_BYTES_LIT("/shop"),
	};
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_cause back;

	(void)state;
	assert_int_equal(hapax_cause_read(hapax_cause_write(&cause, buffer), &back), 1);
	assert_int_equal(back.id.size, 0);
	assert_int_equal(back.type.size, 0);
	assert_text(back.source, "/shop");
}

/* Stores that write it as RFC 3339 keep the same one as the others. */
static void time_without_a_date_is_left_out(void **state)
{
	static const int64_t kept[] = {-62135596800000, -1, 1, 253402300799999};
	static const int64_t dropped[] = {INT64_MIN, -62135596800001, 253402300800000, INT64_MAX};
	struct hapax_cause cause = {.id = HX_BYTES_LIT("evt_1")};
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_cause back;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		cause.time_ms = kept[i];
		assert_int_equal(hapax_cause_read(hapax_cause_write(&cause, buffer), &back), 1);
		assert_int_equal(back.time_ms, kept[i]);
		cause.time_ms = dropped[i];
		assert_int_equal(hapax_cause_read(hapax_cause_write(&cause, buffer), &back), 1);
		assert_int_equal(back.time_ms, 0);
		/* Another writer's. */
		memcpy(buffer + 3, &dropped[i], sizeof(dropped[i]));
		assert_false(hx_cause_is_valid(hx_bytes(buffer, 11 + 5)));
	}
}

/* Bytes from a disk or a peer. */
static void damage_is_seen(void **state)
{
	const struct hapax_cause cause = {.id = HX_BYTES_LIT("evt_1")};
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_bytes packed = hapax_cause_write(&cause, buffer);
	struct hapax_cause back;

	(void)state;
	for (size_t size = 1; size < packed.size; size++) {
		assert_false(hx_cause_is_valid(hx_bytes(buffer, size)));
		assert_int_equal(hapax_cause_read(hx_bytes(buffer, size), &back), 0);
	}
	buffer[11] = 0xff;
	assert_true(hx_cause_fits(packed));
	assert_false(hx_cause_is_valid(packed));
	buffer[11] = '\0';
	assert_false(hx_cause_is_valid(packed));
	buffer[11] = 'e';
	buffer[0]++;
	assert_false(hx_cause_fits(packed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_read_back),
		cmocka_unit_test(nothing_packs_to_nothing),
		cmocka_unit_test(long_texts_are_cut_between_characters),
		cmocka_unit_test(what_is_not_text_is_left_out),
		cmocka_unit_test(time_without_a_date_is_left_out),
		cmocka_unit_test(damage_is_seen),
	};

	return cmocka_run_group_tests_name("cause", tests, NULL, NULL);
}
