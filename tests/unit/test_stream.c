/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

static const int64_t ns_per_ms = 1000000;

static void bytes_flow(void **state)
{
	char text[16] = "";
	int ends[2];

	(void)state;
	assert_int_equal(hx_stream_pipe(ends, 0), 0);
	assert_int_equal(hx_stream_write(ends[1], "hello", 5), 5);
	assert_int_equal(hx_stream_read(ends[0], text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	hx_stream_close(ends[1]);
	assert_int_equal(hx_stream_read(ends[0], text, sizeof(text)), 0);
	hx_stream_close(ends[0]);
	assert_int_equal(hx_stream_read(ends[0], text, sizeof(text)), -EBADF);
	hx_stream_close(-1);
}

static void pipes_are_private(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(hx_stream_pipe(ends, HX_STREAM_READ_NOWAIT), 0);
	for (int i = 0; i < 2; i++)
		assert_true(fcntl(ends[i], F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
	hx_stream_close(ends[0]);
	hx_stream_close(ends[1]);
	assert_int_equal(hx_stream_set_private(ends[0]), -EBADF);
}

static void nothing_waits_that_must_not(void **state)
{
	char text[16];
	int ends[2], size = 0;

	(void)state;
	errno = 77;
	assert_int_equal(hx_stream_pipe(ends, HX_STREAM_READ_NOWAIT | HX_STREAM_WRITE_NOWAIT), 0);
	assert_int_equal(hx_stream_read(ends[0], text, sizeof(text)), -EAGAIN);
	while (hx_stream_write(ends[1], "xxxxxxxxxxxxxxxx", 16) == 16)
		size++;
	assert_true(size > 100);
	assert_int_equal(hx_stream_write(ends[1], "x", 1), -EAGAIN);
	assert_int_equal(errno, 77);
	hx_stream_close(ends[0]);
	hx_stream_close(ends[1]);
}

/* On a second open file: no process that shares the first is surprised. */
static void a_pipe_is_written_without_waiting(void **state)
{
	int ends[2], own, size = 0;

	(void)state;
	assert_int_equal(hx_stream_pipe(ends, 0), 0);
	errno = 77;
	own = hx_stream_open_nowait(ends[1]);
	assert_true(own >= 0);
	assert_true(fcntl(own, F_GETFD) & FD_CLOEXEC);
	assert_false(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
	while (hx_stream_write(own, "xxxxxxxxxxxxxxxx", 16) == 16)
		size++;
	assert_true(size > 100);
	assert_int_equal(hx_stream_write(own, "x", 1), -EAGAIN);
	assert_int_equal(hx_stream_open_nowait(ends[0]), -EBADF);
	assert_int_equal(hx_stream_send_nowait(ends[1], "x", 1), -ENOTSOCK);
	assert_int_equal(errno, 77);
	hx_stream_close(own);
	hx_stream_close(ends[0]);
	hx_stream_close(ends[1]);
	assert_int_equal(hx_stream_open_nowait(ends[1]), -EBADF);
}

/* The other side of a terminal is not a terminal to write to: opened, it would be a new one. */
static void a_terminal_is_written_without_waiting(void **state)
{
	int screen = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), terminal, own;
	char text[16] = "";

	(void)state;
	assert_true(screen >= 0);
	assert_int_equal(grantpt(screen), 0);
	assert_int_equal(unlockpt(screen), 0);
	terminal = open(ptsname(screen), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal >= 0);
	own = hx_stream_open_nowait(terminal);
	assert_true(own >= 0);
	assert_int_equal(hx_stream_write(own, "hello", 5), 5);
	assert_int_equal(hx_stream_read(screen, text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	while (hx_stream_write(own, "xxxxxxxxxxxxxxxx", 16) > 0)
		continue;
	assert_int_equal(hx_stream_write(own, "x", 1), -EAGAIN);
	assert_int_equal(hx_stream_open_nowait(screen), -EOPNOTSUPP);
	hx_stream_close(own);
	hx_stream_close(terminal);
	hx_stream_close(screen);
}

static void a_socket_is_written_without_waiting(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(hx_stream_open_nowait(ends[0]), -EOPNOTSUPP);
	while (hx_stream_send_nowait(ends[0], "xxxxxxxxxxxxxxxx", 16) > 0)
		continue;
	assert_int_equal(hx_stream_send_nowait(ends[0], "x", 1), -EAGAIN);
	/* Nor does a reader that has gone end us. */
	hx_stream_close(ends[1]);
	assert_int_equal(hx_stream_send_nowait(ends[0], "x", 1), -EPIPE);
	hx_stream_close(ends[0]);
}

static void waits_until_the_deadline_and_no_longer(void **state)
{
	struct pollfd fds[2] = {{.fd = -1}, {.fd = -1}};
	int64_t begin_ns = hx_clock_mono_ns();
	int ends[2];

	(void)state;
	assert_int_equal(hx_stream_pipe(ends, 0), 0);
	fds[1] = (struct pollfd){.fd = ends[0], .events = POLLIN};
	assert_int_equal(hx_stream_wait(fds, 2, begin_ns + 20 * ns_per_ms), 0);
	assert_true(hx_clock_mono_ns() >= begin_ns + 20 * ns_per_ms);
	/* A deadline that has passed does not wait, and one that has not may not be needed. */
	assert_int_equal(hx_stream_wait(fds, 2, 0), 0);
	assert_int_equal(hx_stream_write(ends[1], "x", 1), 1);
	assert_int_equal(hx_stream_wait(fds, 2, INT64_MAX), 1);
	assert_int_equal(fds[1].revents, POLLIN);
	hx_stream_close(ends[0]);
	hx_stream_close(ends[1]);
}

static int handler_end = -1;

static void write_from_handler(int number)
{
	unsigned char byte = (unsigned char)number;

	(void)hx_stream_write(handler_end, &byte, 1);
}

/* The pipe of a handler ends the wait; the signal itself does not. */
static void a_signal_comes_through_a_pipe(void **state)
{
	struct sigaction action = {.sa_handler = write_from_handler}, before;
	struct pollfd fd;
	unsigned char byte = 0;
	int ends[2];

	(void)state;
	assert_int_equal(hx_stream_pipe(ends, HX_STREAM_READ_NOWAIT | HX_STREAM_WRITE_NOWAIT), 0);
	handler_end = ends[1];
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	(void)ualarm(10000, 0);
	fd = (struct pollfd){.fd = ends[0], .events = POLLIN};
	assert_int_equal(hx_stream_wait(&fd, 1, INT64_MAX), 1);
	assert_int_equal(hx_stream_read(ends[0], &byte, 1), 1);
	assert_int_equal(byte, SIGALRM);
	(void)sigaction(SIGALRM, &before, NULL);
	hx_stream_close(ends[0]);
	hx_stream_close(ends[1]);
}

static void only_files_have_an_offset(void **state)
{
	int ends[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char byte;

	(void)state;
	assert_int_equal(hx_stream_pipe(ends, 0), 0);
	assert_int_equal(hx_stream_offset(ends[0]), -ESPIPE);
	assert_int_equal(hx_stream_read(file, &byte, 1), 1);
	assert_int_equal(hx_stream_offset(file), 1);
	hx_stream_close(file);
	hx_stream_close(ends[0]);
	hx_stream_close(ends[1]);
}

static void a_file_writes_to_its_descriptor(void **state)
{
	char text[16] = "";
	int ends[2];
	FILE *file;

	(void)state;
	assert_int_equal(hx_stream_pipe(ends, 0), 0);
	file = hx_stream_file(ends[1]);
	assert_non_null(file);
	assert_true(fputs("hello", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(hx_stream_read(ends[0], text, sizeof(text)), 5);
	assert_int_equal(hx_stream_read(ends[0], text, sizeof(text)), 0);
	hx_stream_close(ends[0]);
	assert_null(hx_stream_file(ends[1]));
}

static void deadlines_beyond_all_time_are_the_last_one(void **state)
{
	int64_t before_ns = hx_clock_mono_ns();
	int64_t second_ns = hx_stream_after_ms(1000);

	(void)state;
	assert_true(second_ns >= before_ns + 1000000000);
	assert_true(second_ns <= hx_clock_mono_ns() + 1000000000);
	assert_true(hx_stream_after_ms(INT64_MAX) == INT64_MAX);
	assert_true(hx_stream_after_ms(INT64_MAX / 1000000) == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_flow),
		cmocka_unit_test(pipes_are_private),
		cmocka_unit_test(nothing_waits_that_must_not),
		cmocka_unit_test(a_pipe_is_written_without_waiting),
		cmocka_unit_test(a_terminal_is_written_without_waiting),
		cmocka_unit_test(a_socket_is_written_without_waiting),
		cmocka_unit_test(waits_until_the_deadline_and_no_longer),
		cmocka_unit_test(deadlines_beyond_all_time_are_the_last_one),
		cmocka_unit_test(a_signal_comes_through_a_pipe),

		cmocka_unit_test(only_files_have_an_offset),
		cmocka_unit_test(a_file_writes_to_its_descriptor),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
