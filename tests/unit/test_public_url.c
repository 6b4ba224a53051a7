/* SPDX-License-Identifier: Apache-2.0 */
/* What people may see of a URL. */
#include "wire/public_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

static enum hx_option_view view(struct hapax_bytes name)
{
	if (hx_bytes_equal(name, HX_BYTES_LIT("mine")))
		return HX_OPTION_SHOWN;
	return hx_bytes_equal(name, HX_BYTES_LIT("mine.secret")) ? HX_OPTION_SECRET
								 : HX_OPTION_HIDDEN;
}

static void check(const char *url, const char *expected, hx_option_view_fn *more)
{
	struct hapax_buf text;

	hx_buf_init(&text, 1024);
	assert_int_equal(hx_buf_append(&text, url, strlen(url)), HAPAX_OK);
	assert_int_equal(hx_public_url(&text, more), HAPAX_OK);
	assert_int_equal(hx_buf_append_byte(&text, '\0'), HAPAX_OK);
	assert_string_equal((const char *)text.data, expected);
	hx_buf_done(&text);
}

static void passwords_are_hidden(void **state)
{
	static const char *const urls[][2] = {
		{"redis://u:secret@h:1/2?db=3", "redis://u:***@h:1/2?db=3"},
		{"rediss://:se@cret@h", "rediss://:***@h"},
		{"redis://:s/e?cret@h", "redis://:***@h"},
		{"redis://:se?c=ret@h", "redis://:***@h"},
		{"redis://:se?c=ret@h?db=1", "redis://:***@h?db=1"},
		{"redis://u@h:1", "redis://u@h:1"},
		{"http://u:secret", "http://u:***"},
		{"http://u:secret/x?ca=1", "http://u:***?ca=1"},
		{"http://h:80/x:y?ca=1", "http://h:80/x:y?ca=1"},
		{"http://h/x:y", "http://h/x:y"},
		{"amqps://u%40:secret@h/v?queue=q", "amqps://u%40:***@h/v?queue=q"},
		{"redis://h:1?prefix=a@b", "redis://h:1?prefix=a@b"},
		{"redis://[::1]:1?prefix=a@b", "redis://[::1]:1?prefix=a@b"},
		{"kafka://h:1,g:2/t?group=a@b", "kafka://h:1,g:2/t?group=a@b"},
		{"redis://:secret@h:1?prefix=a@b", "redis://:***@h:1?prefix=a@b"},
		{"redis+unix:/a:b@c", "redis+unix:/a:b@c"},
		{"postgres:///d?password=", "postgres:///d?password=***"},
		{"mine://u:secret@h", "mine://u:***@h"},
		{"memory:", "memory:"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		check(urls[i][0], urls[i][1], NULL);
}

static void options_that_are_not_known_are_hidden(void **state)
{
	static const char *const urls[][2] = {
		{"postgres://u:secret@h/d?sslmode=require&password=secret&sslpassword=secret&y=2",
		 "postgres://u:***@h/d?sslmode=require&password=***&sslpassword=***&***"},
		/* It was not percent-encoded. */
		{"postgres://h/d?password=se&cret&db=1", "postgres://h/d?password=***&***&db=1"},
		{"http://h/p?token=secret", "http://h/p?***"},
		{"http://h?auth_file=/a&token_file=/b", "http://h?auth_file=/a&***"},
		{"http://h/p?secret", "http://h/p?***"},
		{"redis://h?db", "redis://h?***"},
		{"http://h/p?pass%77ord=secret", "http://h/p?***"},
		{"redis+unix:/a?prefix=x&secret", "redis+unix:/a?prefix=x&***"},
		{"kafka://h/t?mine=1", "kafka://h/t?***"},
		{"postgres://h/d?options=-c%20x.y%3Dsecret", "postgres://h/d?options=***"},
		{"http://h/?", "http://h/?"},
		{"http://h/?&&ca=1&", "http://h/?&&ca=1&"},
		{"https://h/p?key=secret&user=secret", "https://h/p?key=***&***"},
		{"HTTP://h/p?group=secret", "HTTP://h/p?***"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		check(urls[i][0], urls[i][1], NULL);
	check("kafka://h/t?mine=1&mine.secret=2&mine.other=3&db=4",
	      "kafka://h/t?mine=1&mine.secret=***&***&db=4", view);
}

/* Rather nothing than a part that is not hidden. */
static void without_room_there_is_nothing(void **state)
{
	struct hapax_buf text;

	(void)state;
	hx_buf_init(&text, 12);
	assert_int_equal(hx_buf_append(&text, "a://b:c@d?ef", 12), HAPAX_OK);
	assert_int_equal(hx_public_url(&text, NULL), HAPAX_ERR_LIMIT);
	assert_int_equal(text.size, 0);
	hx_buf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passwords_are_hidden),
		cmocka_unit_test(options_that_are_not_known_are_hidden),
		cmocka_unit_test(without_room_there_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
