/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of queues and streams, taken apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <hapax/source.h>

#include "base/alloc.h"
#include "source/rabbit/queue_place.h"
#include "source/redis/stream_place.h"

#if HX_HAVE_RABBITMQ
static void check_queue(const char *url, const char *vhost, const char *queue, const char *shown)
{
	struct hx_queue_place place;
	struct hapax_error err;

	if (hx_queue_place_parse(url, &place, &err) != HAPAX_OK)
		fail_msg("%s: %s", url, err.message);
	assert_string_equal(place.rabbit.vhost, vhost);
	assert_string_equal(place.rabbit.queue, queue);
	assert_string_equal(place.shown, shown);
	assert_null(strstr(place.shown, "s3cret"));
}

static void the_last_part_of_a_path_is_the_queue(void **state)
{
	(void)state;
	check_queue("amqp://h/q", "/", "q", "amqp://h:5672/q");
	check_queue("amqp://h/%2f/q", "/", "q", "amqp://h:5672/q");
	check_queue("amqp://u:s3cret@h:1/shop/q", "shop", "q", "amqp://h:1/shop/q");
	check_queue("amqps://h/a%2Fb/c%2Fd", "a/b", "c/d", "amqps://h:5671/a/b/c/d");
	check_queue("amqp://[::1]/q?declare=quorum", "/", "q", "amqp://[::1]:5672/q");
	/* A password may look like a path. */
	check_queue("amqp://u:s3cret%2F@h/q", "/", "q", "amqp://h:5672/q");
}

static void options_of_a_queue_are_read(void **state)
{
	struct hx_queue_place place;

	(void)state;
	assert_int_equal(
		hx_queue_place_parse(
			"amqps://h/q?prefetch=7&ca=%2Fc&size_max=9&held_max=8&dead_exchange=d%20x",
			&place, NULL),
		HAPAX_OK);
	assert_int_equal(place.prefetch, 7);
	assert_int_equal(place.size_max, 9);
	assert_int_equal(place.held_max, 8);
	assert_string_equal(place.rabbit.exchange, "d x");
	assert_string_equal(place.rabbit.authority_file, "/c");
	assert_int_equal(hx_queue_place_parse("amqp://h/q", &place, NULL), HAPAX_OK);
	assert_int_equal(place.prefetch, 256);
	assert_int_equal(place.size_max, 64 << 20);
	assert_int_equal(place.held_max, 128 << 20);
	assert_string_equal(place.rabbit.exchange, "");
}
#endif

static void streams_are_taken_apart(void **state)
{
	struct hx_stream_place place;

	(void)state;
	assert_int_equal(
		hx_stream_place_parse(
			"rediss://u:s3cret@h:1/a%2Fb?group=g%20h&instance=i&start=latest&min_idle=5s"
			"&prefetch=9&db=3&ca=/c&size_max=77",
			&place, NULL),
		HAPAX_OK);
	assert_string_equal(place.stream, "a/b");
	assert_string_equal(place.group, "g h");
	assert_string_equal(place.instance, "i");
	assert_true(place.starts_latest && place.redis.has_tls);
	assert_int_equal(place.min_idle_ms, 5000);
	assert_int_equal(place.prefetch, 9);
	assert_int_equal(place.size_max, 77);
	assert_int_equal(place.redis.db, 3);
	assert_string_equal(place.redis.user, "u");
	assert_string_equal(place.redis.password, "s3cret");
	assert_string_equal(place.redis.authority_file, "/c");
	assert_string_equal(place.shown, "rediss://h:1/3/a/b?group=g h");
	assert_int_equal(
		hx_stream_place_parse("redis+unix:///run/r.sock?stream=s", &place, NULL), HAPAX_OK);
	assert_true(place.redis.endpoints[0].is_unix);
	assert_string_equal(place.stream, "s");
	assert_string_equal(place.group, "hapax");
	assert_string_equal(place.instance, "");
	assert_false(place.starts_latest);
	assert_int_equal(place.min_idle_ms, 30000);
	assert_int_equal(place.size_max, 64 << 20);
	assert_int_equal(
		hx_stream_place_parse("redis+cluster://h/s", &place, NULL), HAPAX_ERR_INVALID);
}

/* The n-th allocation fails, for every n: it is refused whole, and nothing is left behind. */
static void opening_survives_want_of_memory(void **state)
{
	static const char *const urls[] = {
#if HX_HAVE_RABBITMQ
		"amqp://h/q",
#endif
		"redis://h/s?group=g",
		"redis+unix:/run/r.sock?stream=s",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		enum hapax_status status = HAPAX_ERR_NO_MEMORY;
		uint64_t nth = 0;

		while (status != HAPAX_OK) {
			int64_t live = hx_alloc_live();
			struct hapax_source *source = NULL;
			struct hapax_error err = {.status = HAPAX_OK};

			hx_alloc_fail_at(++nth, 0);
			status = hapax_source_open(urls[i], &source, &err);
			hx_alloc_fail_at(0, 0);
			if (status == HAPAX_OK)
				hapax_source_close(source);
			else
				assert_int_equal(status, HAPAX_ERR_NO_MEMORY);
			assert_int_equal(hx_alloc_live(), live);
		}
		assert_true(nth > 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if HX_HAVE_RABBITMQ
		cmocka_unit_test(the_last_part_of_a_path_is_the_queue),
		cmocka_unit_test(options_of_a_queue_are_read),
#endif
		cmocka_unit_test(streams_are_taken_apart),
		cmocka_unit_test(opening_survives_want_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
