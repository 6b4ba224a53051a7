/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

static const enum hapax_status statuses[] = {
	HAPAX_OK,          HAPAX_ERR_INVALID,     HAPAX_ERR_NO_MEMORY,
	HAPAX_ERR_LIMIT,   HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNCERTAIN,
	HAPAX_ERR_FENCED,  HAPAX_ERR_CORRUPT,     HAPAX_ERR_UNSUPPORTED,
	HAPAX_ERR_HANDLER, HAPAX_ERR_FAILED,
};

enum { STATUSES = sizeof(statuses) / sizeof(statuses[0]) };

static void returns_and_fills(void **state)
{
	struct hapax_error err = {.status = HAPAX_OK};

	(void)state;
	assert_int_equal(
		hx_error_set(&err, HAPAX_ERR_LIMIT, 0, "key had %d bytes", 7), HAPAX_ERR_LIMIT);
	assert_int_equal(err.status, HAPAX_ERR_LIMIT);
	assert_int_equal(err.os_errno, 0);
	assert_string_equal(err.message, "key had 7 bytes");
}

static void appends_what_the_system_said(void **state)
{
	struct hapax_error err;

	(void)state;
	hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, ENOENT, "could not open '%s'", "a");
	assert_int_equal(err.os_errno, ENOENT);
	assert_string_equal(err.message, "could not open 'a': No such file or directory");
	hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, 99999, "x");
	assert_non_null(strstr(err.message, "99999"));
}

static void takes_no_error(void **state)
{
	(void)state;
	assert_int_equal(hx_error_set(NULL, HAPAX_ERR_CORRUPT, EIO, "gone"), HAPAX_ERR_CORRUPT);
}

static void stays_on_one_line(void **state)
{
	struct hapax_error err;

	(void)state;
	hx_error_set(&err, HAPAX_ERR_INVALID, 0, "a\nb\r\tc\x1b[0m\x7f\xc3\xa4\n\r\n");
	assert_string_equal(err.message, "a b  c [0m \xc3\xa4");
	hx_error_set(&err, HAPAX_ERR_INVALID, ENOMEM, "a\n");
	assert_string_equal(err.message, "a: Cannot allocate memory");
	hx_error_set(&err, HAPAX_ERR_INVALID, 0, "\n\n");
	assert_string_equal(err.message, "");
}

static void cuts_what_does_not_fit(void **state)
{
	char text[2 * HAPAX_ERROR_MESSAGE_SIZE];
	struct hapax_error err;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	hx_error_set(&err, HAPAX_ERR_INVALID, EIO, "%s", text);
	assert_int_equal(strlen(err.message), HAPAX_ERROR_MESSAGE_SIZE - 1);
	text[HAPAX_ERROR_MESSAGE_SIZE - 1 - 4] = '\0';
	hx_error_set(&err, HAPAX_ERR_INVALID, EIO, "%s", text);
	assert_int_equal(strlen(err.message), HAPAX_ERROR_MESSAGE_SIZE - 1);
	assert_string_equal(err.message + HAPAX_ERROR_MESSAGE_SIZE - 1 - 4, ": In");
}

/* Whatever it quotes, a message can be put on a terminal and into a JSON text. */
static void is_always_text(void **state)
{
	char text[2 * HAPAX_ERROR_MESSAGE_SIZE] = "";
	struct hapax_error err;

	(void)state;
	hx_error_set(
		&err, HAPAX_ERR_INVALID, 0, "'%s' %.2s|", "a\xff\xc3,\xc2\x85", "\xe2\x82\xac");
	assert_string_equal(err.message, "'a??, ' ??|");
	for (size_t before = 0; before < 8; before++) {
		size_t size = before;

		memset(text, 'x', before);
		while (size + 4 < sizeof(text)) {
			memcpy(text + size, "\xf0\x9f\x98\x80", 5);
			size += 4;
		}
		hx_error_set(&err, HAPAX_ERR_INVALID, 0, "%s", text);
		assert_true(hx_utf8_is_valid(hapax_bytes_from_text(err.message)));
		assert_null(strchr(err.message, '?'));
		assert_in_range(
			strlen(err.message), HAPAX_ERROR_MESSAGE_SIZE - 4,
			HAPAX_ERROR_MESSAGE_SIZE - 1);
	}
}

static void may_quote_itself(void **state)
{
	struct hapax_error err;

	(void)state;
	hx_error_set(&err, HAPAX_ERR_LIMIT, 0, "inner");
	hx_error_set(&err, HAPAX_ERR_FAILED, 0, "outer: %s", err.message);
	assert_string_equal(err.message, "outer: inner");
}

static void leaves_errno_and_allocates_nothing(void **state)
{
	uint64_t count = hx_alloc_count();
	struct hapax_error err;

	(void)state;
	errno = EDOM;
	hx_error_set(&err, HAPAX_ERR_INVALID, 99999, "x");
	assert_int_equal(errno, EDOM);
	/* Text that the C locale cannot write: formatting itself fails. */
	hx_error_set(&err, HAPAX_ERR_INVALID, 0, "%ls", L"\u20ac");
	assert_int_equal(errno, EDOM);
	assert_string_equal(err.message, "");
	assert_int_equal(hx_alloc_count(), count);
}

static void names_are_distinct_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < STATUSES; i++) {
		const char *name = hapax_status_name(statuses[i]);

		assert_true(strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name));
		assert_string_not_equal(name, "");
		assert_string_not_equal(name, "unknown");
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(name, hapax_status_name(statuses[j]));
	}
	assert_string_equal(hapax_status_name((enum hapax_status)(-99)), "unknown");
	assert_string_equal(hapax_status_name(HAPAX_OK), "ok");
	assert_string_equal(hapax_status_name(HAPAX_ERR_NO_MEMORY), "no_memory");
}

static void classes_do_not_blur(void **state)
{
	(void)state;
	for (size_t i = 0; i < STATUSES; i++) {
		enum hapax_status s = statuses[i];
		int retryable = s == HAPAX_ERR_UNAVAILABLE || s == HAPAX_ERR_LIMIT ||
			s == HAPAX_ERR_NO_MEMORY;

		assert_int_equal(hapax_status_is_retryable(s), retryable);
		assert_int_equal(hapax_status_is_uncertain(s), s == HAPAX_ERR_UNCERTAIN);
	}
	assert_false(hapax_status_is_retryable((enum hapax_status)(-99)));
	assert_false(hapax_status_is_uncertain((enum hapax_status)(-99)));
}

static void errno_gets_a_status(void **state)
{
	(void)state;
	assert_int_equal(hx_error_status_of(ENOMEM), HAPAX_ERR_NO_MEMORY);
	assert_int_equal(hx_error_status_of(ENOSPC), HAPAX_ERR_LIMIT);
	assert_int_equal(hx_error_status_of(EMFILE), HAPAX_ERR_LIMIT);
	assert_int_equal(hx_error_status_of(ENAMETOOLONG), HAPAX_ERR_INVALID);
	assert_int_equal(hx_error_status_of(ENOENT), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(hx_error_status_of(EIO), HAPAX_ERR_UNAVAILABLE);
	/* Never one that claims to know more than "nothing was done". */
	for (int os_errno = 1; os_errno < 200; os_errno++)
		assert_false(hapax_status_is_uncertain(hx_error_status_of(os_errno)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(returns_and_fills),
		cmocka_unit_test(appends_what_the_system_said),
		cmocka_unit_test(takes_no_error),
		cmocka_unit_test(stays_on_one_line),
		cmocka_unit_test(cuts_what_does_not_fit),
		cmocka_unit_test(is_always_text),
		cmocka_unit_test(may_quote_itself),
		cmocka_unit_test(leaves_errno_and_allocates_nothing),
		cmocka_unit_test(names_are_distinct_words),
		cmocka_unit_test(classes_do_not_blur),
		cmocka_unit_test(errno_gets_a_status),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
