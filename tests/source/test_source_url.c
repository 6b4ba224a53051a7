/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_url.c - URLs of sources, as far as no broker need be asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hapax/source.h>

static void must_be(const char *url, enum hapax_status status, const char *part)
{
	struct hapax_error err = {0};

	assert_int_equal(hapax_source_check(url, &err), status);
	if (part != NULL)
		assert_non_null(strstr(err.message, part));
	assert_null(strstr(err.message, "secret"));
}

static void what_can_be_a_source_is_known_without_a_broker(void **state)
{
	(void)state;
	must_be("redis://ann:secret@nowhere.invalid:6380/orders?group=g", HAPAX_OK, NULL);
	must_be("redis+unix:/nowhere?stream=orders&group=g", HAPAX_OK, NULL);
#if HX_HAVE_RABBITMQ
	must_be("amqp://ann:secret@nowhere.invalid/shop/orders?prefetch=7", HAPAX_OK, NULL);
#endif
}

static void what_cannot_is_told(void **state)
{
	(void)state;
	must_be("redis://ann:secret@h/?group=g", HAPAX_ERR_INVALID, NULL);
	must_be("redis://ann:secret@h/orders?group=g&min_idle=soon", HAPAX_ERR_INVALID, "min_idle");
#if HX_HAVE_RABBITMQ
	must_be("amqp://ann:secret@h/", HAPAX_ERR_INVALID, NULL);
	must_be("amqp://ann:secret@h/orders?prefetch=many", HAPAX_ERR_INVALID, "prefetch");
#else
	must_be("amqp://h/orders", HAPAX_ERR_UNSUPPORTED, "-Drabbitmq=enabled");
#endif
	must_be("nats://ann:secret@h/orders", HAPAX_ERR_UNSUPPORTED, "redis://");
	must_be(NULL, HAPAX_ERR_INVALID, "URL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_can_be_a_source_is_known_without_a_broker),
		cmocka_unit_test(what_cannot_is_told),
	};

	return cmocka_run_group_tests_name("source_url", tests, NULL, NULL);
}
