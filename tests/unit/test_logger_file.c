/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log with a file of its own: appended to, locked, gone on with after a rotation; keys that only
 * the holder of a secret can look for.
 */
#include "observe/logger/logger_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/io.h"
#include "observe/logger/logger.h"
#include "support/temp_dir.h"

#define SECOND_NS INT64_C(1000000000)

struct fixture {
	struct temp_dir dir;
	char path[256];
	char old_path[260];
	struct hx_logger_options options;
	struct hx_logger *log;
	struct hapax_buf text;
};

static void open_log(struct fixture *fixture, enum hx_logger_keys keys)
{
	temp_dir_init(&fixture->dir);
	(void)snprintf(fixture->path, sizeof(fixture->path), "%s/d.log", fixture->dir.path);
	(void)snprintf(fixture->old_path, sizeof(fixture->old_path), "%s.1", fixture->path);
	fixture->options = (struct hx_logger_options){.keys = keys};
	fixture->options.hmac_key = HX_BYTES_LIT("a secret");
	hx_buf_init(&fixture->text, 1 << 20);
	assert_int_equal(
		hx_logger_open(fixture->path, &fixture->options, &fixture->log, NULL), HAPAX_OK);
}

static void close_log(struct fixture *fixture)
{
	hx_logger_close(fixture->log, 60000);
	hx_buf_done(&fixture->text);
	temp_dir_done(&fixture->dir);
}

static void write_line(struct fixture *fixture, const char *key)
{
	const struct hx_logger_field field = HX_LOGGER_KEY("key", hapax_bytes_from_text(key));

	hx_logger(fixture->log, HX_LOGGER_INFO, "decision", &field, 1);
	assert_true(hx_logger_flush(fixture->log, hx_clock_mono_ns() + 60 * SECOND_NS));
}

static const char *text_of(struct fixture *fixture, const char *path)
{
	hx_buf_clear(&fixture->text);
	assert_int_equal(
		hx_io_read_all(hx_io_system(), path, 1 << 20, &fixture->text, NULL), HAPAX_OK);
	assert_int_equal(hx_buf_append(&fixture->text, "", 1), HAPAX_OK);
	return (const char *)fixture->text.data;
}

static void rotate(struct fixture *fixture)
{
	const struct hx_io *io = hx_io_system();

	assert_int_equal(io->ops->rename(io->context, fixture->path, fixture->old_path), 0);
}

static void a_rotated_file_is_written_until_the_next_is_opened(void **state)
{
	struct fixture fixture;

	(void)state;
	open_log(&fixture, HX_LOGGER_KEYS_FULL);
	write_line(&fixture, "one");
	/* The same file: nothing to do, and its own lock does not refuse it. */
	assert_int_equal(hx_logger_reopen(fixture.log, fixture.path, NULL), HAPAX_OK);
	rotate(&fixture);
	write_line(&fixture, "two");
	assert_int_equal(hx_logger_reopen(fixture.log, fixture.path, NULL), HAPAX_OK);
	write_line(&fixture, "three");
	assert_non_null(strstr(text_of(&fixture, fixture.old_path), "\"key\":\"one\""));
	assert_non_null(strstr(text_of(&fixture, fixture.old_path), "\"key\":\"two\""));
	assert_null(strstr(text_of(&fixture, fixture.old_path), "\"key\":\"three\""));
	assert_non_null(strstr(text_of(&fixture, fixture.path), "\"key\":\"three\""));
	assert_null(strstr(text_of(&fixture, fixture.path), "\"key\":\"two\""));
	assert_int_equal(hx_logger_lost(fixture.log), 0);
	close_log(&fixture);
}

static void a_file_that_cannot_be_opened_leaves_the_old_one(void **state)
{
	struct fixture fixture;
	struct hapax_error err;
	char path[300];

	(void)state;
	open_log(&fixture, HX_LOGGER_KEYS_FULL);
	(void)snprintf(path, sizeof(path), "%s/absent/d.log", fixture.dir.path);
	assert_int_not_equal(hx_logger_reopen(fixture.log, path, &err), HAPAX_OK);
	assert_non_null(strstr(err.message, "absent/d.log"));
	write_line(&fixture, "still here");
	assert_non_null(strstr(text_of(&fixture, fixture.path), "still here"));
	close_log(&fixture);
}

static void two_logs_do_not_share_a_file(void **state)
{
	struct fixture fixture;
	struct hapax_error err;
	struct hx_logger *other;

	(void)state;
	open_log(&fixture, HX_LOGGER_KEYS_FULL);
	assert_int_equal(
		hx_logger_open(fixture.path, &fixture.options, &other, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "another process is writing"));
	write_line(&fixture, "one");
	hx_logger_close(fixture.log, 60000);
	/* What is there stays. */
	assert_int_equal(
		hx_logger_open(fixture.path, &fixture.options, &fixture.log, NULL), HAPAX_OK);
	write_line(&fixture, "two");
	assert_non_null(strstr(text_of(&fixture, fixture.path), "one"));
	assert_non_null(strstr(text_of(&fixture, fixture.path), "two"));
	close_log(&fixture);
}

static void a_line_that_a_crash_cut_is_ended(void **state)
{
	const struct hx_io *io = hx_io_system();
	struct fixture fixture;
	int file;

	(void)state;
	open_log(&fixture, HX_LOGGER_KEYS_FULL);
	hx_logger_close(fixture.log, 60000);
	file = io->ops->open(io->context, fixture.path, HX_IO_WRITE, 0);
	assert_true(file >= 0);
	assert_int_equal(hx_io_write_full(io, file, "{\"key\":\"cut", 11, 0), 0);
	(void)io->ops->close(io->context, file);
	assert_int_equal(
		hx_logger_open(fixture.path, &fixture.options, &fixture.log, NULL), HAPAX_OK);
	write_line(&fixture, "next");
	assert_int_equal(strncmp(text_of(&fixture, fixture.path), "{\"key\":\"cut\n{", 13), 0);
	close_log(&fixture);
}

static void keys_as_hmac(void **state)
{
	struct fixture fixture;

	(void)state;
	open_log(&fixture, HX_LOGGER_KEYS_HMAC);
	write_line(&fixture, "order-17");
	assert_non_null(
		strstr(text_of(&fixture, fixture.path),
		       "\"key\":\"hmac:7c76faca0d346b1ad5ec7f90e56fd3af\""));
	assert_null(strstr(text_of(&fixture, fixture.path), "order-17"));
	close_log(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rotated_file_is_written_until_the_next_is_opened),
		cmocka_unit_test(a_file_that_cannot_be_opened_leaves_the_old_one),
		cmocka_unit_test(two_logs_do_not_share_a_file),
		cmocka_unit_test(a_line_that_a_crash_cut_is_ended),
		cmocka_unit_test(keys_as_hmac),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
