/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "wire/resp/resp_reply.h"

enum { REPLY_SIZE_MAX = 4096 };

#define LIT(text) text, sizeof(text) - 1

struct text {
	const char *data;
	size_t size;
};

/* Whole messages, each alone. */
static const struct text good[] = {
	{LIT("+OK\r\n")},
	{LIT("+\r\n")},
	{LIT("-ERR wrong\r\n")},
	{LIT(":0\r\n")},
	{LIT(":-9223372036854775808\r\n")},
	{LIT(":9223372036854775807\r\n")},
	{LIT("$0\r\n\r\n")},
	{LIT("$3\r\na\r\n\r\n")},
	{LIT("$5\r\n\0\r\n\0x\r\n")},
	{LIT("$-1\r\n")},
	{LIT("*-1\r\n")},
	{LIT("_\r\n")},
	{LIT("#t\r\n")},
	{LIT("#f\r\n")},
	{LIT(",3.25\r\n")},
	{LIT(",inf\r\n")},
	{LIT("(3492890328409238509324850943850943825024385\r\n")},
	{LIT("!10\r\nERR a\r\nbcd\r\n")},
	{LIT("=8\r\ntxt:some\r\n")},
	{LIT("=4\r\ntxt:\r\n")},
	{LIT("*0\r\n")},
	{LIT("*3\r\n:1\r\n$1\r\nx\r\n*1\r\n_\r\n")},
	{LIT("%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:1\r\n:2\r\n")},
	{LIT("%0\r\n")},
	{LIT("~2\r\n+a\r\n+b\r\n")},
	{LIT(">2\r\n+message\r\n+x\r\n")},
	{LIT("|1\r\n+ttl\r\n:3600\r\n:7\r\n")},
	{LIT("|0\r\n:7\r\n")},
	{LIT("*2\r\n|1\r\n+a\r\n|1\r\n+b\r\n:0\r\n:1\r\n:2\r\n:3\r\n")},
	{LIT("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*0\r\n")},
};

/* No message begins like this. */
static const struct text bad[] = {
	{LIT("x\r\n")},
	{LIT("\r\n")},
	{LIT("OK\r\n")},
	{LIT(":\r\n")},
	{LIT(":+1\r\n")},
	{LIT(":01\r\n")},
	{LIT(":-0\r\n")},
	{LIT(":1x\r\n")},
	{LIT(": 1\r\n")},
	{LIT(":9223372036854775808\r\n")},
	{LIT(":-9223372036854775809\r\n")},
	{LIT(":1\n")},
	{LIT(":1\rx\n")},
	{LIT("+a\nb\r\n")},
	{LIT("$-2\r\n")},
	{LIT("$?\r\n")},
	{LIT("$\r\n")},
	{LIT("$4\r\nabcde\r\n")},
	{LIT("$4\r\nabcd\rx")},
	{LIT("$4097\r\n")},
	{LIT("$9223372036854775807\r\n")},
	{LIT("$111111111111111111111111111\r\n")},
	{LIT("*?\r\n")},
	{LIT("*-2\r\n")},
	{LIT("*2000\r\n")},
	{LIT("*4611686018427387904\r\n")},
	{LIT("%-1\r\n")},
	{LIT("%4611686018427387904\r\n")},
	{LIT("~-1\r\n")},
	{LIT(">-1\r\n")},
	{LIT("!-1\r\n")},
	{LIT("=-1\r\n")},
	{LIT("=3\r\ntxt\r\n")},
	{LIT("=4\r\ntxt;\r\n")},
	{LIT("_x\r\n")},
	{LIT("#\r\n")},
	{LIT("#x\r\n")},
	{LIT("#tt\r\n")},
	{LIT("*1\r\nx\r\n")},
	{LIT("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n")},
};

static void good_messages_are_found_at_every_split(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		/* With something behind it, and in memory that ends where the bytes end. */
		for (size_t behind = 0; behind < 2; behind++) {
			size_t size = good[i].size + behind;

			for (size_t split = 0; split <= size; split++) {
				struct hx_resp_scan scan = {0};
				char *part = malloc(split ? split : 1);
				char *whole = malloc(size);

				assert_non_null(part);
				assert_non_null(whole);
				memcpy(whole, good[i].data, good[i].size);
				if (behind)
					whole[size - 1] = '*';
				memcpy(part, whole, split);
				assert_int_equal(
					hx_resp_scan(&scan, hx_bytes(part, split), REPLY_SIZE_MAX),
					split < good[i].size ? HX_RESP_MORE : HX_RESP_DONE);
				if (split < good[i].size)
					assert_int_equal(
						hx_resp_scan(
							&scan, hx_bytes(whole, size),
							REPLY_SIZE_MAX),
						HX_RESP_DONE);
				assert_int_equal(scan.size, good[i].size);
				free(part);
				free(whole);
			}
		}
	}
}

/* Byte by byte, the scan of a message looks no further than it must. */
static void good_messages_come_byte_by_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct hx_resp_scan scan = {0};

		for (size_t size = 0; size < good[i].size; size++)
			assert_int_equal(
				hx_resp_scan(&scan, hx_bytes(good[i].data, size), REPLY_SIZE_MAX),
				HX_RESP_MORE);
		assert_int_equal(
			hx_resp_scan(&scan, hx_bytes(good[i].data, good[i].size), REPLY_SIZE_MAX),
			HX_RESP_DONE);
	}
}

static void bad_messages_are_refused_at_every_split(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (size_t split = 0; split <= bad[i].size; split++) {
			struct hx_resp_scan scan = {0};
			enum hx_resp_result result =
				hx_resp_scan(&scan, hx_bytes(bad[i].data, split), REPLY_SIZE_MAX);

			assert_int_not_equal(result, HX_RESP_DONE);
			if (result == HX_RESP_MORE)
				result = hx_resp_scan(
					&scan, hx_bytes(bad[i].data, bad[i].size), REPLY_SIZE_MAX);
			assert_int_equal(result, HX_RESP_BAD);
			assert_non_null(scan.why);
		}
	}
}

static void sizes_are_bounded(void **state)
{
	static char line[HX_RESP_LINE_SIZE_MAX + 100];
	struct hx_resp_scan scan = {0};

	(void)state;
	memset(line, 'x', sizeof(line));
	line[0] = '+';
	assert_int_equal(hx_resp_scan(&scan, hx_bytes(line, sizeof(line)), SIZE_MAX), HX_RESP_BAD);
	scan = (struct hx_resp_scan){0};
	assert_int_equal(hx_resp_scan(&scan, hx_bytes(line, 1000), 500), HX_RESP_BAD);
	scan = (struct hx_resp_scan){0};
	assert_int_equal(hx_resp_scan(&scan, hx_bytes("*2\r\n$300\r\n", 10), 400), HX_RESP_MORE);
	scan = (struct hx_resp_scan){0};
	assert_int_equal(hx_resp_scan(&scan, hx_bytes("*2\r\n$300\r\n", 10), 300), HX_RESP_BAD);
}

/* Walking a message ends where its scan ends. */
static void walk_ends_where_the_scan_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct hapax_bytes rest = {good[i].data, good[i].size};
		struct hx_resp_value value;

		assert_true(hx_resp_next(&rest, &value));
		hx_resp_skip(&rest, &value);
		assert_int_equal(rest.size, 0);
		assert_false(hx_resp_next(&rest, &value));
	}
}

static void values_are_read(void **state)
{
	static const char text[] =
		"*9\r\n:-7\r\n$2\r\n42\r\n+x\r\n=6\r\ntxt:hi\r\n#t\r\n-NOSCRIPT no "
		"such script\r\n|1\r\n+a\r\n+b\r\n$-1\r\n,1.5\r\n%1\r\n+k\r\n:1\r\n";
	struct hapax_bytes rest = {text, sizeof(text) - 1};
	struct hapax_bytes found;
	struct hx_resp_value value;
	int64_t integer = 0;

	(void)state;
	assert_true(hx_resp_next(&rest, &value));
	assert_int_equal(value.type, HX_RESP_ARRAY);
	assert_int_equal(value.integer, 9);
	assert_true(hx_resp_next(&rest, &value) && hx_resp_integer(&value, &integer));
	assert_int_equal(integer, -7);
	assert_false(hx_resp_text(&value, &found));
	assert_true(hx_resp_next(&rest, &value) && hx_resp_integer(&value, &integer));
	assert_int_equal(integer, 42);
	assert_true(hx_resp_next(&rest, &value) && hx_resp_text(&value, &found));
	assert_true(hx_bytes_equal(found, HX_BYTES_LIT("x")));
	assert_false(hx_resp_integer(&value, &integer));
	assert_true(hx_resp_next(&rest, &value) && hx_resp_text(&value, &found));
	assert_true(hx_bytes_equal(found, HX_BYTES_LIT("hi")));
	assert_true(hx_resp_next(&rest, &value));
	assert_int_equal(value.integer, 1);
	assert_true(hx_resp_next(&rest, &value));
	assert_true(hx_resp_is_error(&value, "NOSCRIPT"));
	assert_false(hx_resp_is_error(&value, "NOSCRIP"));
	assert_false(hx_resp_is_error(&value, "NOSCRIPTS"));
	/* The attribute is passed over. */
	assert_true(hx_resp_next(&rest, &value));
	assert_int_equal(value.type, HX_RESP_NULL);
	assert_true(hx_resp_next(&rest, &value));
	assert_int_equal(value.type, HX_RESP_DOUBLE);
	assert_true(hx_resp_next(&rest, &value));
	assert_int_equal(value.type, HX_RESP_MAP);
	assert_int_equal(value.integer, 2);
	hx_resp_skip(&rest, &value);
	assert_int_equal(rest.size, 0);
}

static void written(struct hapax_buf *buf, const char *text, size_t size)
{
	assert_int_equal(buf->size, size);
	assert_memory_equal(buf->data, text, size);
	hx_buf_clear(buf);
}

static void writers_write_both_protocols(void **state)
{
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 1000);
	assert_int_equal(hx_resp_put_simple(&buf, "OK"), HAPAX_OK);
	written(&buf, LIT("+OK\r\n"));
	assert_int_equal(hx_resp_put_error(&buf, "ERR a\r\nb"), HAPAX_OK);
	written(&buf, LIT("-ERR a  b\r\n"));
	assert_int_equal(hx_resp_put_integer(&buf, INT64_MIN), HAPAX_OK);
	assert_int_equal(hx_resp_put_integer(&buf, 0), HAPAX_OK);
	written(&buf, LIT(":-9223372036854775808\r\n:0\r\n"));
	assert_int_equal(hx_resp_put_bulk(&buf, hx_bytes("a\0b", 3)), HAPAX_OK);
	assert_int_equal(hx_resp_put_bulk(&buf, hx_bytes(NULL, 0)), HAPAX_OK);
	written(&buf, LIT("$3\r\na\0b\r\n$0\r\n\r\n"));
	assert_int_equal(hx_resp_put_bulk_integer(&buf, -12), HAPAX_OK);
	written(&buf, LIT("$3\r\n-12\r\n"));
	assert_int_equal(hx_resp_put_null(&buf, 2), HAPAX_OK);
	assert_int_equal(hx_resp_put_null(&buf, 3), HAPAX_OK);
	written(&buf, LIT("$-1\r\n_\r\n"));
	assert_int_equal(hx_resp_put_verbatim(&buf, HX_BYTES_LIT("hi"), 2), HAPAX_OK);
	assert_int_equal(hx_resp_put_verbatim(&buf, HX_BYTES_LIT("hi"), 3), HAPAX_OK);
	written(&buf, LIT("$2\r\nhi\r\n=6\r\ntxt:hi\r\n"));
	assert_int_equal(hx_resp_put_array(&buf, 3), HAPAX_OK);
	assert_int_equal(hx_resp_put_map(&buf, 3, 2), HAPAX_OK);
	assert_int_equal(hx_resp_put_map(&buf, 3, 3), HAPAX_OK);
	assert_int_equal(hx_resp_put_set(&buf, 3, 3), HAPAX_OK);
	written(&buf, LIT("*3\r\n*6\r\n%3\r\n~3\r\n"));
	hx_buf_done(&buf);
}

static void writers_write_all_or_nothing(void **state)
{
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 10);
	assert_int_equal(hx_resp_put_bulk(&buf, HX_BYTES_LIT("12345")), HAPAX_ERR_LIMIT);
	assert_int_equal(hx_resp_put_error(&buf, "ERR 1234"), HAPAX_ERR_LIMIT);
	assert_int_equal(hx_resp_put_verbatim(&buf, HX_BYTES_LIT("1"), 3), HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, 0);
	assert_int_equal(hx_resp_put_bulk(&buf, HX_BYTES_LIT("1234")), HAPAX_OK);
	hx_buf_done(&buf);
	hx_buf_init(&buf, 10);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_resp_put_array(&buf, 1), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	hx_buf_done(&buf);
}

/* Of an argument that is empty, too, which has no address: "$0\r\n\r\n". */
static void integers_are_read_from_texts(void **state)
{
	static const struct {
		struct hapax_bytes text;
		int64_t value; /* 0: it is none */
	} cases[] = {
		{{NULL, 0}, 0},
		{HX_BYTES_LIT("-"), 0},
		{HX_BYTES_LIT("-0"), 0},
		{HX_BYTES_LIT("01"), 0},
		{HX_BYTES_LIT("+1"), 0},
		{HX_BYTES_LIT("9223372036854775807"), INT64_MAX},
		{HX_BYTES_LIT("9223372036854775808"), 0},
		{HX_BYTES_LIT("-9223372036854775808"), INT64_MIN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = 0;

		assert_int_equal(hx_resp_parse_integer(cases[i].text, &value), cases[i].value != 0);
		assert_int_equal(value, cases[i].value);
	}
}

/* The first failure stays, and nothing is written after it. */
static void words_keep_their_first_failure(void **state)
{
	struct hx_resp_words words;
	struct hapax_bytes rest, text;
	struct hapax_buf buf;
	int64_t number = 0;

	(void)state;
	hx_buf_init(&buf, 64);
	hx_resp_words_begin(&words, &buf, 3);
	hx_resp_word_text(&words, "SET");
	hx_resp_word(&words, HX_BYTES_LIT("k"));
	hx_resp_word_integer(&words, -12);
	assert_int_equal(words.status, HAPAX_OK);
	assert_int_equal(buf.size, strlen("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n-12\r\n"));
	rest = hx_bytes(buf.data + 4, buf.size - 4);
	assert_true(hx_resp_next_text(&rest, &text));
	assert_true(hx_bytes_equal(text, HX_BYTES_LIT("SET")));
	assert_false(hx_resp_next_integer(&rest, &number));
	assert_true(hx_resp_next_integer(&rest, &number));
	assert_int_equal(number, -12);
	assert_false(hx_resp_next_text(&rest, &text));
	hx_buf_clear(&buf);
	hx_resp_words_begin(&words, &buf, 2);
	hx_resp_word(
		&words,
		HX_BYTES_LIT(
			"a word that is longer than the sixty-four bytes of this small buffer"));
	assert_int_equal(words.status, HAPAX_ERR_LIMIT);
	hx_resp_word_text(&words, "k");
	hx_resp_word_integer(&words, 1);
	assert_int_equal(words.status, HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, 4);
	hx_buf_done(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_messages_are_found_at_every_split),
		cmocka_unit_test(good_messages_come_byte_by_byte),
		cmocka_unit_test(bad_messages_are_refused_at_every_split),
		cmocka_unit_test(sizes_are_bounded),
		cmocka_unit_test(walk_ends_where_the_scan_ends),
		cmocka_unit_test(values_are_read),
		cmocka_unit_test(integers_are_read_from_texts),
		cmocka_unit_test(writers_write_both_protocols),
		cmocka_unit_test(writers_write_all_or_nothing),
		cmocka_unit_test(words_keep_their_first_failure),
	};

	return cmocka_run_group_tests_name("resp", tests, NULL, NULL);
}
