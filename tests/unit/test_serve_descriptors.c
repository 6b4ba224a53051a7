/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/config.h"
#include "serve/daemon/descriptors.h"

enum { LOOPS = 2 };

static struct hx_config config_of(uint64_t http, uint64_t resp)
{
	struct hx_config config = {.http = {.max_connections = http}};

	config.resp.max_connections = resp;
	return config;
}

static void is(
	const struct hx_descriptors *descriptors, const struct hx_config *config, enum hx_door door,
	uint64_t expected)
{
	assert_int_equal(hx_descriptors_connections(descriptors, config, door), expected);
}

static void what_fits_is_as_it_is_set(void **state)
{
	struct hx_config config = config_of(20000, 10000);
	struct hx_descriptors all = {.is_open = {true, true, true, true}};

	(void)state;
	hx_descriptors_init(&all, 65535, LOOPS);
	is(&all, &config, HX_DOOR_GATEWAY, 20000);
	is(&all, &config, HX_DOOR_PROXY, 20000);
	is(&all, &config, HX_DOOR_RESP, 10000);
	is(&all, &config, HX_DOOR_ADMIN, (65535 - HX_DESCRIPTORS_KEPT_MAX) / 8);
}

static void what_does_not_is_shared(void **state)
{
	struct hx_config config = config_of(20000, 10000);
	struct hx_descriptors gateway = {.is_open = {[HX_DOOR_GATEWAY] = true}};
	struct hx_descriptors two = {.is_open = {[HX_DOOR_GATEWAY] = true, [HX_DOOR_RESP] = true}};

	(void)state;
	hx_descriptors_init(&gateway, 1024, LOOPS);
	is(&gateway, &config, HX_DOOR_GATEWAY, 448);
	is(&gateway, &config, HX_DOOR_ADMIN, 64);
	hx_descriptors_init(&two, 1024, LOOPS);
	is(&two, &config, HX_DOOR_GATEWAY, 224);
	is(&two, &config, HX_DOOR_RESP, 224);
	/* One that wants little leaves the other its part. */
	config = config_of(0, 64);
	is(&two, &config, HX_DOOR_GATEWAY, 448 * 448 / (448 + 64));
	is(&two, &config, HX_DOOR_RESP, 64 * 448 / (448 + 64));
}

/* Whatever the limit: all doors together leave what is kept, and a client is let in. */
static void something_is_always_left(void **state)
{
	static const uint64_t limits[] = {0, 1, 7, 63, 80, 81, 160, 161, 256, 8192, 8193, 1 << 30};
	static const uint64_t settings[] = {0, 1, 100, 20000, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		for (size_t k = 0; k < 25; k++) {
			struct hx_config config = config_of(settings[k % 5], settings[k / 5]);
			struct hx_descriptors all = {.is_open = {true, true, true, true}};
			uint64_t sum = 0;

			hx_descriptors_init(&all, limits[i], LOOPS);
			for (unsigned door = 0; door < HX_DOOR_COUNT; door++) {
				uint64_t has = hx_descriptors_connections(
					&all, &config, (enum hx_door)door);

				assert_true(has >= 1);
				sum += has;
			}
			assert_true(sum <= all.doors || sum == HX_DOOR_COUNT || all.doors < 16);
			assert_true(
				all.doors <= limits[i] - limits[i] / 2 ||
				all.doors == limits[i] - HX_DESCRIPTORS_KEPT_MAX);
		}
	}
}

static void one_address_has_a_part(void **state)
{
	struct hx_config config = config_of(20000, 10000);
	struct hx_descriptors two = {.is_open = {[HX_DOOR_GATEWAY] = true, [HX_DOOR_RESP] = true}};

	(void)state;
	config.http.max_connections_per_address = 2500;
	config.resp.max_connections_per_address = 4;
	hx_descriptors_init(&two, 65535, LOOPS);
	assert_int_equal(hx_descriptors_per_address(&two, &config, HX_DOOR_GATEWAY), 2500);
	assert_int_equal(hx_descriptors_per_address(&two, &config, HX_DOOR_RESP), 4);
	assert_int_equal(
		hx_descriptors_per_address(&two, &config, HX_DOOR_ADMIN),
		(65535 - HX_DESCRIPTORS_KEPT_MAX) / 8 / 8);
	/* 224 for each of the two: an eighth of it, and what is low anyway. */
	hx_descriptors_init(&two, 1024, LOOPS);
	assert_int_equal(hx_descriptors_per_address(&two, &config, HX_DOOR_GATEWAY), 28);
	assert_int_equal(hx_descriptors_per_address(&two, &config, HX_DOOR_RESP), 4);
	/* Nearly all of them, because a setting says so. */
	config.http.max_connections_per_address = 15000;
	assert_int_equal(
		hx_descriptors_per_address(&two, &config, HX_DOOR_GATEWAY), 15000 * 224 / 20000);
	config.http.max_connections_per_address = 0;
	assert_int_equal(hx_descriptors_per_address(&two, &config, HX_DOOR_GATEWAY), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_as_it_is_set),
		cmocka_unit_test(what_does_not_is_shared),
		cmocka_unit_test(something_is_always_left),
		cmocka_unit_test(one_address_has_a_part),
	};

	return cmocka_run_group_tests_name("serve_descriptors", tests, NULL, NULL);
}
