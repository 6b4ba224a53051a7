/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/exec_result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "base/random.h"
#include "support/scale.h"

enum { ROOM = 4096 };

static void add(struct hx_exec_recorder *recorder, enum hx_exec_stream stream, const char *text)
{
	hx_exec_recorder_add(recorder, stream, text, strlen(text));
}

/* The pieces of a result as "o:text e:text ", which is what a replay writes. */
static void assert_pieces(const struct hapax_result *result, const char *expected)
{
	struct hx_exec_reader reader;
	enum hx_exec_stream stream;
	struct hapax_bytes piece;
	char text[ROOM] = "";
	size_t size = 0;

	assert_int_equal(hx_exec_reader_init(&reader, result, NULL), HAPAX_OK);
	while (hx_exec_reader_next(&reader, &stream, &piece)) {
		assert_true(piece.size > 0);
		size += (size_t)snprintf(
			text + size, sizeof(text) - size, "%c:%.*s ",
			stream == HX_EXEC_STDOUT ? 'o' : 'e', (int)piece.size,
			(const char *)piece.data);
	}
	assert_string_equal(text, expected);
}

static void order_of_the_streams_is_kept(void **state)
{
	struct hx_exec_recorder recorder;
	struct hapax_result result;

	(void)state;
	hx_exec_recorder_init(&recorder, ROOM);
	add(&recorder, HX_EXEC_STDOUT, "one");
	add(&recorder, HX_EXEC_STDOUT, "two");
	add(&recorder, HX_EXEC_STDERR, "oops");
	add(&recorder, HX_EXEC_STDERR, "");
	add(&recorder, HX_EXEC_STDOUT, "three");
	hx_exec_recorder_finish(&recorder, 7, 0, &result);
	assert_int_equal(result.kind, HAPAX_RESULT_EXEC);
	assert_int_equal(result.status, 7);
	assert_int_equal(result.omitted_bytes, 0);
	/* What a person reads, and what it takes to tell the streams apart. */
	assert_memory_equal(result.body.data, "onetwooopsthree", 15);
	assert_int_equal(result.body.size, 15);
	assert_int_equal(result.headers.size, 5);
	assert_memory_equal(result.headers.data, "\x01\x00\x06\x04\x05", 5);
	assert_pieces(&result, "o:onetwo e:oops o:three ");
	hx_exec_recorder_done(&recorder);
}

static void standard_error_may_come_first(void **state)
{
	struct hx_exec_recorder recorder;
	struct hapax_result result;

	(void)state;
	hx_exec_recorder_init(&recorder, ROOM);
	add(&recorder, HX_EXEC_STDERR, "oops");
	hx_exec_recorder_finish(&recorder, 0, 0, &result);
	assert_memory_equal(result.headers.data, "\x01\x00\x00\x04", 4);
	assert_pieces(&result, "e:oops ");
	hx_exec_recorder_done(&recorder);
}

static void silence_is_a_result(void **state)
{
	struct hx_exec_recorder recorder;
	struct hx_exec_reader reader;
	struct hapax_result result;

	(void)state;
	hx_exec_recorder_init(&recorder, ROOM);
	hx_exec_recorder_add(&recorder, HX_EXEC_STDERR, NULL, 0);
	hx_exec_recorder_finish(&recorder, -1, 9, &result);
	assert_int_equal(result.status, 137);
	assert_int_equal(result.body.size, 0);
	assert_int_equal(hx_exec_reader_init(&reader, &result, NULL), HAPAX_OK);
	assert_int_equal(reader.signal, 9);
	assert_pieces(&result, "");
	hx_exec_recorder_done(&recorder);
}

static void too_much_is_counted(void **state)
{
	struct hx_exec_recorder recorder;
	struct hx_exec_reader reader;
	struct hapax_result result;
	char text[ROOM];

	(void)state;
	memset(text, 'x', sizeof(text));
	hx_exec_recorder_init(&recorder, ROOM);
	hx_exec_recorder_add(&recorder, HX_EXEC_STDOUT, text, sizeof(text));
	assert_false(recorder.is_omitted);
	add(&recorder, HX_EXEC_STDERR, "y");
	assert_true(recorder.is_omitted);
	assert_null(recorder.output.data);
	for (int i = 0; i < 1000; i++)
		hx_exec_recorder_add(&recorder, HX_EXEC_STDOUT, text, sizeof(text));
	hx_exec_recorder_finish(&recorder, -1, 15, &result);
	assert_int_equal(result.omitted_bytes, 1001 * ROOM + 1);
	assert_int_equal(result.body.size, 0);
	assert_int_equal(result.status, 143);
	assert_int_equal(hx_exec_reader_init(&reader, &result, NULL), HAPAX_OK);
	assert_int_equal(reader.signal, 15);
	hx_exec_recorder_done(&recorder);
}

/* Bytes by turns fill the headers long before the body. */
static void too_many_turns_are_counted(void **state)
{
	struct hx_exec_recorder recorder;
	struct hapax_result result;
	uint64_t turns = 0;

	(void)state;
	hx_exec_recorder_init(&recorder, HX_RESULT_SIZE_LIMIT);
	for (; !recorder.is_omitted && turns < HX_RESULT_SIZE_LIMIT; turns++)
		add(&recorder, turns % 2 ? HX_EXEC_STDERR : HX_EXEC_STDOUT, "x");
	assert_true(turns > HX_RESULT_HEADERS_SIZE_MAX - 100);
	assert_true(turns <= HX_RESULT_HEADERS_SIZE_MAX);
	hx_exec_recorder_finish(&recorder, 0, 0, &result);
	assert_int_equal(result.omitted_bytes, turns);
	assert_int_equal(result.headers.size, 2);
	hx_exec_recorder_done(&recorder);
}

/* The largest headers that are not too large still have room for their end. */
static void the_last_run_fits(void **state)
{
	struct hx_exec_recorder recorder;
	struct hapax_result result;
	struct hx_exec_reader reader;
	size_t room = HX_RESULT_HEADERS_SIZE_MAX - 2 - 10;

	(void)state;
	hx_exec_recorder_init(&recorder, HX_RESULT_SIZE_LIMIT);
	for (size_t i = 0; i <= room; i++)
		add(&recorder, i % 2 ? HX_EXEC_STDERR : HX_EXEC_STDOUT, "x");
	assert_false(recorder.is_omitted);
	assert_int_equal(recorder.runs.size, room);
	hx_exec_recorder_finish(&recorder, 0, 0, &result);
	assert_int_equal(result.body.size, room + 1);
	assert_int_equal(hx_exec_reader_init(&reader, &result, NULL), HAPAX_OK);
	hx_exec_recorder_done(&recorder);
}

static void without_memory_it_still_counts(void **state)
{
	struct hx_exec_recorder recorder;
	struct hapax_result result;

	(void)state;
	for (uint64_t nth = 1; nth <= 3; nth++) {
		hx_exec_recorder_init(&recorder, ROOM);
		hx_alloc_fail_at(nth, 1);
		add(&recorder, HX_EXEC_STDOUT, "one");
		add(&recorder, HX_EXEC_STDERR, "two");
		hx_exec_recorder_finish(&recorder, 3, 0, &result);
		hx_alloc_fail_at(0, 0);
		assert_int_equal(result.status, 3);
		assert_true(result.omitted_bytes == 6 || result.body.size == 6);
		hx_exec_recorder_done(&recorder);
	}
	assert_int_equal(hx_alloc_live(), 0);
}

static void output_of_others_is_standard_output(void **state)
{
	struct hapax_result result = {
		.kind = HAPAX_RESULT_EXEC, .status = 3, .body = HX_BYTES_LIT("hello")};

	(void)state;
	assert_pieces(&result, "o:hello ");
}

static void what_no_recorder_makes_is_refused(void **state)
{
	static const struct {
		struct hapax_bytes headers;
		struct hapax_bytes body;
		int32_t status;
	} wrong[] = {
		{HX_BYTES_LIT("\x01"), {NULL, 0}, 0},
		{HX_BYTES_LIT("\x02\x00"), {NULL, 0}, 0},
		{HX_BYTES_LIT("\x01\x09"), {NULL, 0}, 9},
		{HX_BYTES_LIT("\x01\x80"), {NULL, 0}, 256},
		{HX_BYTES_LIT("\x01\x00\x05"), HX_BYTES_LIT("four"), 0},
		{HX_BYTES_LIT("\x01\x00\x03"), HX_BYTES_LIT("four"), 0},
		{HX_BYTES_LIT("\x01\x00"), HX_BYTES_LIT("four"), 0},
		{HX_BYTES_LIT("\x01\x00\x00"), {NULL, 0}, 0},
		{HX_BYTES_LIT("\x01\x00\x02\x00\x02"), HX_BYTES_LIT("four"), 0},
		{HX_BYTES_LIT("\x01\x00\x84\x00"), HX_BYTES_LIT("four"), 0},
		{HX_BYTES_LIT("\x01\x00\x84"), HX_BYTES_LIT("four"), 0},
		{HX_BYTES_LIT("\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		 HX_BYTES_LIT("four"), 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct hapax_result result = {
			.kind = HAPAX_RESULT_EXEC,
			.status = wrong[i].status,
			.headers = wrong[i].headers,
			.body = wrong[i].body,
		};
		struct hx_exec_reader reader;
		struct hapax_error err = {HAPAX_OK, 0, ""};

		assert_int_equal(hx_exec_reader_init(&reader, &result, &err), HAPAX_ERR_CORRUPT);
		assert_true(err.message[0] != '\0');
	}
}

/* Whatever is recorded comes back, stream by stream and in one order. */
static void random_output_comes_back(void **state)
{
	uint64_t rounds = scale_count(200000, 5000), seed = 11;
	double begin = scale_seconds();
	static unsigned char data[ROOM];
	struct hx_exec_recorder recorder;
	struct hx_prng prng;

	(void)state;
	(void)scale_seed(&seed);
	print_message("# seed %llu\n", (unsigned long long)seed);
	hx_prng_seed(&prng, seed);
	for (uint64_t round = 0; round < rounds; round++) {
		unsigned char sides[ROOM];
		size_t size = 0, at = 0;
		struct hx_exec_reader reader;
		struct hapax_result result;
		struct hapax_bytes piece;
		enum hx_exec_stream stream;

		hx_exec_recorder_init(&recorder, ROOM);
		while (size < ROOM - 300 && hx_prng_below(&prng, 12) != 0) {
			size_t part = (size_t)hx_prng_below(&prng, 300);
			int side = (int)hx_prng_below(&prng, 2);

			for (size_t i = 0; i < part; i++)
				data[size + i] = (unsigned char)hx_prng_next(&prng);
			memset(sides + size, side, part);
			hx_exec_recorder_add(
				&recorder, (enum hx_exec_stream)side, data + size, part);
			size += part;
		}
		hx_exec_recorder_finish(&recorder, (int)hx_prng_below(&prng, 256), 0, &result);
		assert_int_equal(hx_exec_reader_init(&reader, &result, NULL), HAPAX_OK);
		while (hx_exec_reader_next(&reader, &stream, &piece)) {
			assert_memory_equal(piece.data, data + at, piece.size);
			for (size_t i = 0; i < piece.size; i++)
				assert_int_equal(sides[at + i], stream);
			at += piece.size;
		}
		assert_int_equal(at, size);
		hx_exec_recorder_done(&recorder);
	}
	scale_report("outputs of commands come back", rounds, scale_seconds() - begin, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_of_the_streams_is_kept),
		cmocka_unit_test(standard_error_may_come_first),
		cmocka_unit_test(silence_is_a_result),
		cmocka_unit_test(too_much_is_counted),
		cmocka_unit_test(too_many_turns_are_counted),
		cmocka_unit_test(the_last_run_fits),
		cmocka_unit_test(without_memory_it_still_counts),
		cmocka_unit_test(output_of_others_is_standard_output),
		cmocka_unit_test(what_no_recorder_makes_is_refused),
		cmocka_unit_test(random_output_comes_back),
	};

	return cmocka_run_group_tests_name("exec_result", tests, NULL, NULL);
}
