/* SPDX-License-Identifier: Apache-2.0 */
#include "store/scan_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/limits.h"

static struct hx_scan_place place_of(const char *tenant, const char *group, const char *key)
{
	return (struct hx_scan_place){
		hapax_bytes_from_text(tenant), hapax_bytes_from_text(group),
		hapax_bytes_from_text(key)};
}

static void assert_place(const struct hx_scan_place *place, const struct hx_scan_place *expected)
{
	assert_true(hx_bytes_equal(place->tenant, expected->tenant));
	assert_true(hx_bytes_equal(place->group, expected->group));
	assert_true(hx_bytes_equal(place->key, expected->key));
}

static void a_place_comes_back(void **state)
{
	struct hx_scan_place place = place_of("acme", "orders", "a");
	struct hapax_cursor cursor = {.size = 0};
	struct hx_scan_place read;

	(void)state;
	assert_int_equal(hx_scan_place_partition(&cursor), 0);
	assert_true(hx_scan_place_put(&cursor, 513, &place));
	assert_true(hx_scan_place_get(&cursor, &read));
	assert_place(&read, &place);
	assert_int_equal(hx_scan_place_partition(&cursor), 513);
	/* From within the cursor, too. */
	assert_true(hx_scan_place_put(&cursor, 1, &read));
	assert_true(hx_scan_place_get(&cursor, &read));
	assert_place(&read, &place);
	/* An empty one is a place. */
	assert_true(hx_scan_place_put(&cursor, 2, &(struct hx_scan_place){0}));
	assert_true(hx_scan_place_get(&cursor, &read));
	assert_int_equal(read.key.size, 0);
}

static void the_longest_names_fit(void **state)
{
	char text[HX_KEY_SIZE_MAX + 1];
	struct hx_scan_place place = {
		{text, HX_SCOPE_PART_SIZE_MAX},
		{text, HX_SCOPE_PART_SIZE_MAX},
		{text, HX_KEY_SIZE_MAX}};
	struct hapax_cursor cursor = {.size = 0};
	struct hx_scan_place read;

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_true(hx_scan_place_put(&cursor, UINT16_MAX, &place));
	assert_true(hx_scan_place_get(&cursor, &read));
	assert_place(&read, &place);
	assert_true(cursor.size < sizeof(cursor.place));
	place.key.size++;
	assert_false(hx_scan_place_put(&cursor, 0, &place));
	assert_true(hx_scan_place_get(&cursor, &read));
	place.key.size--;
	place.tenant.size++;
	assert_false(hx_scan_place_put(&cursor, 0, &place));
}

static void cursors_of_others_are_refused(void **state)
{
	struct hx_scan_place place = place_of("acme", "orders", "a");
	struct hapax_cursor cursor = {.size = 0};
	struct hx_scan_place read;

	(void)state;
	assert_false(hx_scan_place_get(&cursor, &read));
	assert_true(hx_scan_place_put(&cursor, 0, &place));
	cursor.size--;
	assert_false(hx_scan_place_get(&cursor, &read));
	cursor.size += 2;
	assert_false(hx_scan_place_get(&cursor, &read));
	memset(cursor.place, 0xff, sizeof(cursor.place));
	cursor.size = sizeof(cursor.place);
	assert_false(hx_scan_place_get(&cursor, &read));
}

static void a_scan_begins_where_it_can_match(void **state)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hx_scan_place first;

	(void)state;
	scan.group = HX_BYTES_LIT("orders");
	scan.prefix = HX_BYTES_LIT("a");
	first = hx_scan_place_first(&scan);
	assert_int_equal(first.tenant.size + first.group.size + first.key.size, 0);
	scan.tenant = HX_BYTES_LIT("acme");
	first = hx_scan_place_first(&scan);
	assert_true(hx_bytes_equal(first.key, scan.prefix));
	scan.group = hx_bytes(NULL, 0);
	first = hx_scan_place_first(&scan);
	assert_true(hx_bytes_equal(first.tenant, scan.tenant));
	assert_int_equal(first.group.size + first.key.size, 0);
}

static void a_scan_ends_behind_its_range(void **state)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	const struct {
		struct hx_scan_place place;
		bool is_behind;
	} cases[] = {
		{place_of("acme", "orders", "a"), false},  {place_of("acme", "orders", "b"), false},
		{place_of("acme", "orders", "bz"), false}, {place_of("acme", "orders", "c"), true},
		{place_of("acme", "other", "a"), true},    {place_of("b", "orders", "b"), true},
	};

	(void)state;
	scan.tenant = HX_BYTES_LIT("acme");
	scan.prefix = HX_BYTES_LIT("b");
	/* Without a whole scope, later scopes may match. */
	for (size_t i = 0; i < HX_COUNT(cases); i++)
		assert_false(hx_scan_place_is_behind(&scan, &cases[i].place));
	scan.group = HX_BYTES_LIT("orders");
	for (size_t i = 0; i < HX_COUNT(cases); i++)
		assert_int_equal(
			hx_scan_place_is_behind(&scan, &cases[i].place), cases[i].is_behind);
}

static void the_filter_has_five_conditions(void **state)
{
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.expires_ms = 100,
		.tenant = HX_BYTES_LIT("acme"),
		.group = HX_BYTES_LIT("orders"),
		.key = HX_BYTES_LIT("b1")};
	struct hapax_scan scan = HAPAX_SCAN_INIT;

	(void)state;
	assert_true(hx_scan_place_accepts(&scan, &record, 99));
	assert_false(hx_scan_place_accepts(&scan, &record, 100));
	scan.flags = HAPAX_SCAN_EXPIRED;
	assert_true(hx_scan_place_accepts(&scan, &record, 100));
	scan.state = HAPAX_STATE_FAILED;
	assert_false(hx_scan_place_accepts(&scan, &record, 0));
	scan.state = HAPAX_STATE_DONE;
	scan.tenant = HX_BYTES_LIT("acm");
	assert_false(hx_scan_place_accepts(&scan, &record, 0));
	scan.tenant = HX_BYTES_LIT("acme");
	scan.group = HX_BYTES_LIT("other");
	assert_false(hx_scan_place_accepts(&scan, &record, 0));
	scan.group = HX_BYTES_LIT("orders");
	scan.prefix = HX_BYTES_LIT("b12");
	assert_false(hx_scan_place_accepts(&scan, &record, 0));
	scan.prefix = HX_BYTES_LIT("b");
	assert_true(hx_scan_place_accepts(&scan, &record, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_comes_back),
		cmocka_unit_test(the_longest_names_fit),
		cmocka_unit_test(cursors_of_others_are_refused),
		cmocka_unit_test(a_scan_begins_where_it_can_match),
		cmocka_unit_test(a_scan_ends_behind_its_range),
		cmocka_unit_test(the_filter_has_five_conditions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
