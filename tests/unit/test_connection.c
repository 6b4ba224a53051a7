/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "net/connection.h"
#include "net/dial.h"
#include "net/listener.h"
#include "support/fault_net.h"
#include "support/temp_dir.h"

enum { TURNS_MAX = 100000 };

/* A peer of the test's own and a connection that answers each line with itself. */
struct echo {
	struct hx_connection connection;
	struct hapax_error why;
	bool is_closed;
	bool pauses_at_end; /* answers later, as after a request that takes time */
	unsigned lines;
	unsigned drained;
};

struct bench {
	struct fault_net fault;
	struct hx_reactor reactor;
	struct echo echo;
	int peer;
};

static size_t echo_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct echo *echo = (struct echo *)connection;
	size_t consumed = 0;
	const char *at = input.data;
	const char *end;

	while (consumed < input.size &&
	       (end = memchr(at + consumed, '\n', input.size - consumed)) != NULL) {
		size_t size = (size_t)(end - at) + 1 - consumed;

		if (hx_connection_write(connection, at + consumed, size) != HAPAX_OK)
			break;
		consumed += size;
		echo->lines++;
	}
	if (is_end && echo->pauses_at_end)
		hx_connection_pause(connection);
	return consumed;
}

static void echo_drained(struct hx_connection *connection)
{
	((struct echo *)connection)->drained++;
}

static void echo_closed(struct hx_connection *connection, const struct hapax_error *why)
{
	struct echo *echo = (struct echo *)connection;

	assert_false(echo->is_closed);
	echo->is_closed = true;
	echo->why = *why;
}

static const struct hx_connection_ops echo_ops = {
	.on_input = echo_input,
	.on_drained = echo_drained,
	.on_close = echo_closed,
};

static int set_up(void **state)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));

	bench->peer = -1;
	fault_net_init(&bench->fault);
	*state = bench;
	return hx_reactor_init(&bench->reactor, &bench->fault.net, NULL);
}

static void turn(struct bench *bench)
{
	hx_reactor_turn(&bench->reactor, 0);
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	if (bench->echo.connection.state != HX_CONNECTION_NONE) {
		hx_connection_close(&bench->echo.connection, NULL);
		turn(bench);
	}
	if (bench->peer >= 0)
		close(bench->peer);
	hx_reactor_done(&bench->reactor);
	test_free(bench);
	return 0;
}

static void open_echo(struct bench *bench, const struct hx_connection_limits *limits)
{
	int fds[2];

	fault_net_pair(fds);
	bench->peer = fds[1];
	assert_int_equal(
		hx_connection_open(
			&bench->echo.connection, &bench->reactor, fds[0], NULL, &echo_ops, limits,
			NULL),
		HAPAX_OK);
}

static void send_text(struct bench *bench, const char *text)
{
	assert_int_equal(write(bench->peer, text, strlen(text)), strlen(text));
}

/* Turn until size bytes came back, and compare. */
static void expect(struct bench *bench, const void *data, size_t size)
{
	char *got = test_calloc(1, size + 1);
	size_t held = 0;

	for (int i = 0; held < size && i < TURNS_MAX; i++) {
		turn(bench);
		ssize_t count = read(bench->peer, got + held, size - held);
		if (count > 0)
			held += (size_t)count;
	}
	assert_int_equal(held, size);
	assert_memory_equal(got, data, size);
	test_free(got);
}

static void turn_until_closed(struct bench *bench)
{
	for (int i = 0; !bench->echo.is_closed && i < TURNS_MAX; i++)
		turn(bench);
	assert_true(bench->echo.is_closed);
}

static void bytes_go_both_ways(void **state)
{
	struct bench *bench = *state;

	open_echo(bench, NULL);
	send_text(bench, "one\ntwo\nthr");
	expect(bench, "one\ntwo\n", 8);
	send_text(bench, "ee\n");
	expect(bench, "three\n", 6);
	assert_int_equal(bench->echo.lines, 3);
	/* Both answers of the first turn went out together. */
	assert_int_equal(bench->fault.sends, 2);
	/* Idle: nothing is held. */
	assert_int_equal(bench->reactor.blocks.lent_count, 0);
	assert_int_equal(bench->echo.connection.received_bytes, 14);
	assert_int_equal(bench->echo.connection.sent_bytes, 14);
}

/* Pieces of every size, with the kernel saying "not now" between them. */
static void pieces_make_no_difference(void **state)
{
	struct bench *bench = *state;
	char text[512];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "abcdefghijklmnopqrstuvwxyz\n"
			[i % 37 == 36 || i == sizeof(text) - 1 ? 26 : i % 26];
	open_echo(bench, NULL);
	for (size_t size = 1; size < 80; size++) {
		bench->fault.send_size_max = size;
		bench->fault.recv_size_max = 80 - size;
		bench->fault.refuses_every_second = size % 2;
		assert_int_equal(write(bench->peer, text, sizeof(text)), sizeof(text));
		expect(bench, text, sizeof(text));
	}
}

static void peer_that_ends_ends_it(void **state)
{
	struct bench *bench = *state;

	open_echo(bench, NULL);
	send_text(bench, "last\nhalf");
	assert_int_equal(shutdown(bench->peer, SHUT_WR), 0);
	expect(bench, "last\n", 5);
	turn_until_closed(bench);
	assert_int_equal(bench->echo.why.status, HAPAX_OK);
}

/* An answer that comes after the peer has ended its side still goes out. */
static void answer_after_the_end(void **state)
{
	struct bench *bench = *state;

	bench->echo.pauses_at_end = true;
	open_echo(bench, NULL);
	assert_int_equal(shutdown(bench->peer, SHUT_WR), 0);
	for (int i = 0; i < 10; i++)
		turn(bench);
	assert_false(bench->echo.is_closed);
	assert_int_equal(hx_connection_write(&bench->echo.connection, "late\n", 5), HAPAX_OK);
	hx_connection_finish(&bench->echo.connection);
	expect(bench, "late\n", 5);
	turn_until_closed(bench);
	assert_int_equal(bench->echo.why.status, HAPAX_OK);
}

/* Finishing with unread input: the peer gets everything, then the end. */
static void finish_waits_for_the_peer(void **state)
{
	struct bench *bench = *state;
	char byte;

	open_echo(bench, NULL);
	assert_int_equal(hx_connection_write(&bench->echo.connection, "bye\n", 4), HAPAX_OK);
	hx_connection_finish(&bench->echo.connection);
	assert_int_equal(hx_connection_write(&bench->echo.connection, "no\n", 3), HAPAX_ERR_FAILED);
	expect(bench, "bye\n", 4);
	turn(bench);
	assert_int_equal(read(bench->peer, &byte, 1), 0);
	send_text(bench, "ignored\n");
	turn(bench);
	assert_false(bench->echo.is_closed);
	fault_net_advance(&bench->fault, 2000);
	turn_until_closed(bench);
	assert_int_equal(bench->echo.why.status, HAPAX_OK);
	assert_int_equal(bench->echo.lines, 0);
}

static void endless_message_is_cut_off(void **state)
{
	struct bench *bench = *state;
	struct hx_connection_limits limits = {.input_size_max = 100};
	char text[200];

	memset(text, 'x', sizeof(text));
	open_echo(bench, &limits);
	assert_int_equal(write(bench->peer, text, sizeof(text)), sizeof(text));
	turn_until_closed(bench);
	assert_int_equal(bench->echo.why.status, HAPAX_ERR_LIMIT);
	assert_non_null(strstr(bench->echo.why.message, "100"));
}

/* A peer that does not read is dropped after a while; one that reads slowly is not. */
static void slow_peers_are_dropped(void **state)
{
	struct bench *bench = *state;
	struct hx_connection_limits limits = {.output_size_max = 4 << 20, .stall_ms_max = 1000};
	static char text[3 << 20];
	static char sink[1 << 16];

	open_echo(bench, &limits);
	assert_int_equal(
		hx_connection_write(&bench->echo.connection, text, sizeof(text)), HAPAX_OK);
	assert_int_equal(
		hx_connection_write(&bench->echo.connection, text, sizeof(text)), HAPAX_ERR_LIMIT);
	for (int i = 0; i < 10; i++) {
		turn(bench);
		fault_net_advance(&bench->fault, 900);
		/* The kernel reports room only when much of it is free: take all there is. */
		assert_true(read(bench->peer, sink, sizeof(sink)) > 0);
		while (read(bench->peer, sink, sizeof(sink)) > 0)
			continue;
		turn(bench);
		assert_false(bench->echo.is_closed);
	}
	fault_net_advance(&bench->fault, 1001);
	turn_until_closed(bench);
	assert_int_equal(bench->echo.why.status, HAPAX_ERR_UNAVAILABLE);
}

/* Turn, with turn_ms between them and bytes a turn, until it is closed or all is taken. */
static void trickle(struct bench *bench, size_t size, size_t bytes, int turn_ms)
{
	struct hx_connection_limits limits = {.stall_ms_max = 1000, .rate_min = 4};
	static char text[40 * 1000];
	static char sink[1 << 16];

	bench->echo = (struct echo){.is_closed = false};
	open_echo(bench, &limits);
	bench->fault.refuses_every_second = true;
	bench->fault.send_size_max = bytes;
	assert_int_equal(hx_connection_write(&bench->echo.connection, text, size), HAPAX_OK);
	for (int i = 0; i < TURNS_MAX && !bench->echo.is_closed &&
	     hx_connection_unsent(&bench->echo.connection) > 0;
	     i++) {
		turn(bench);
		fault_net_advance(&bench->fault, turn_ms);
		while (read(bench->peer, sink, sizeof(sink)) > 0)
			continue;
	}
}

/* Some of it again and again is not enough: memory would be held for as long as it likes. */
static void peers_that_take_too_little_are_dropped(void **state)
{
	struct bench *bench = *state;

	trickle(bench, 40 * 1000, 100, 100);
	turn_until_closed(bench);
	assert_int_equal(bench->echo.why.status, HAPAX_ERR_UNAVAILABLE);
	close(bench->peer);
	trickle(bench, 40 * 1000, 1000, 100);
	assert_false(bench->echo.is_closed);
	assert_int_equal(hx_connection_unsent(&bench->echo.connection), 0);
	/* Nothing waits: nothing is asked of it. */
	fault_net_advance(&bench->fault, 3600 * 1000);
	for (int i = 0; i < 10; i++)
		turn(bench);
	assert_false(bench->echo.is_closed);
}

static void deadline_ends_it(void **state)
{
	struct bench *bench = *state;
	int64_t second = 1000000000;

	open_echo(bench, NULL);
	hx_connection_set_deadline(
		&bench->echo.connection, hx_reactor_now_ns(&bench->reactor) + second);
	hx_connection_set_deadline(
		&bench->echo.connection, hx_reactor_now_ns(&bench->reactor) + 3600 * second);
	fault_net_advance(&bench->fault, 3599000);
	turn(bench);
	assert_false(bench->echo.is_closed);
	fault_net_advance(&bench->fault, 1000);
	turn_until_closed(bench);
	assert_int_equal(bench->echo.why.status, HAPAX_ERR_UNAVAILABLE);
}

static void errors_end_it_once(void **state)
{
	struct bench *bench = *state;

	open_echo(bench, NULL);
	bench->fault.recv_errno = ECONNRESET;
	send_text(bench, "x\n");
	turn_until_closed(bench);
	assert_int_equal(bench->echo.why.os_errno, ECONNRESET);
	close(bench->peer);
	bench->fault.recv_errno = 0;
	bench->echo = (struct echo){.is_closed = false};
	open_echo(bench, NULL);
	bench->fault.send_errno = EPIPE;
	send_text(bench, "x\n");
	turn_until_closed(bench);
	assert_int_equal(bench->echo.why.os_errno, EPIPE);
}

static void pause_stops_reading(void **state)
{
	struct bench *bench = *state;

	open_echo(bench, NULL);
	hx_connection_pause(&bench->echo.connection);
	send_text(bench, "x\n");
	for (int i = 0; i < 10; i++)
		turn(bench);
	assert_int_equal(bench->echo.lines, 0);
	hx_connection_resume(&bench->echo.connection);
	expect(bench, "x\n", 2);
	/* A peer that disconnects while the connection is not read is noticed all the same. */
	hx_connection_pause(&bench->echo.connection);
	close(bench->peer);
	bench->peer = -1;
	turn_until_closed(bench);
}

static void no_memory_ends_it(void **state)
{
	struct bench *bench = *state;

	open_echo(bench, NULL);
	hx_alloc_fail_at(1, 1);
	send_text(bench, "x\n");
	turn_until_closed(bench);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(bench->echo.why.status, HAPAX_ERR_NO_MEMORY);
}

/* ---------------------------------------------------------------- listen and dial */

struct meeting {
	struct bench *bench;
	struct hx_listener listener;
	struct hx_dial dial;
	struct hx_resolver resolver;
	int accepted[8];
	size_t accepted_count;
	int dialled;
	unsigned reports;
	struct hapax_error err;
};

static void on_accept(struct hx_listener *listener, int fd, const struct hx_address *peer)
{
	struct meeting *meeting = listener->context;

	(void)peer;
	meeting->accepted[meeting->accepted_count++] = fd;
}

static void on_dialled(struct hx_dial *dial, int fd, const struct hapax_error *err)
{
	struct meeting *meeting = dial->context;

	meeting->dialled = fd;
	meeting->err = *err;
	meeting->reports++;
}

static void meeting_init(struct meeting *meeting, struct bench *bench)
{
	*meeting = (struct meeting){.bench = bench, .dialled = -1};
	hx_resolver_init(&meeting->resolver, &bench->fault.net);
	assert_int_equal(
		hx_dial_init(
			&meeting->dial, &bench->reactor, &meeting->resolver, on_dialled, meeting),
		HAPAX_OK);
}

static void meeting_done(struct meeting *meeting)
{
	hx_resolver_done(&meeting->resolver);
	hx_reactor_turn(&meeting->bench->reactor, 0);
	hx_dial_done(&meeting->dial);
	hx_listener_close(&meeting->listener);
	for (size_t i = 0; i < meeting->accepted_count; i++)
		close(meeting->accepted[i]);
	if (meeting->dialled >= 0)
		close(meeting->dialled);
}

static void listen_on(struct meeting *meeting, const char *text)
{
	struct hx_endpoint endpoint;
	struct hx_address address;

	assert_int_equal(
		hx_endpoint_parse(hx_bytes(text, strlen(text)), -1, &endpoint, NULL), HAPAX_OK);
	assert_true(hx_endpoint_address(&endpoint, &address));
	assert_int_equal(
		hx_listener_open(
			&meeting->listener, &meeting->bench->reactor, &address, true, on_accept,
			meeting, NULL),
		HAPAX_OK);
}

static void dial_to(struct meeting *meeting, const char *text, int64_t span_ms)
{
	struct hx_endpoint endpoint;

	assert_int_equal(
		hx_endpoint_parse(hx_bytes(text, strlen(text)), -1, &endpoint, NULL), HAPAX_OK);
	meeting->reports = 0;
	hx_dial_begin(
		&meeting->dial, &endpoint,
		hx_reactor_now_ns(&meeting->bench->reactor) + span_ms * 1000000);
	assert_int_equal(meeting->reports, 0);
	for (int i = 0; meeting->reports == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&meeting->bench->reactor, 10 * 1000000);
	assert_int_equal(meeting->reports, 1);
}

static void dial_meets_listener(void **state)
{
	struct bench *bench = *state;
	struct meeting meeting;
	char text[HX_ADDRESS_TEXT_SIZE];
	char name[HX_ADDRESS_TEXT_SIZE];

	meeting_init(&meeting, bench);
	listen_on(&meeting, "127.0.0.1:0");
	hx_address_format(&meeting.listener.address, text);
	assert_null(strstr(text, ":0"));
	dial_to(&meeting, text, 10000);
	assert_true(meeting.dialled >= 0);
	close(meeting.dialled);
	/* By name, through the resolver. */
	(void)snprintf(name, sizeof(name), "localhost%s", strrchr(text, ':'));
	dial_to(&meeting, name, 10000);
	assert_true(meeting.dialled >= 0);
	for (int i = 0; meeting.accepted_count < 2 && i < TURNS_MAX; i++)
		turn(bench);
	assert_int_equal(meeting.accepted_count, 2);
	meeting_done(&meeting);
}

static void dial_says_why_not(void **state)
{
	struct bench *bench = *state;
	struct meeting meeting;
	char text[HX_ADDRESS_TEXT_SIZE];

	meeting_init(&meeting, bench);
	listen_on(&meeting, "127.0.0.1:0");
	hx_address_format(&meeting.listener.address, text);
	hx_listener_close(&meeting.listener);
	dial_to(&meeting, text, 10000);
	assert_int_equal(meeting.dialled, -1);
	assert_int_equal(meeting.err.status, HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(meeting.err.os_errno, ECONNREFUSED);
	assert_non_null(strstr(meeting.err.message, text));
	dial_to(&meeting, "unix:/nowhere/at/all.sock", 10000);
	assert_int_equal(meeting.err.os_errno, ENOENT);
	meeting_done(&meeting);
}

static void unix_sockets_are_private_and_replaced(void **state)
{
	struct bench *bench = *state;
	struct meeting meeting, second;
	struct temp_dir dir;
	struct hx_address address;
	struct hapax_error err = {0};
	struct stat status;
	char text[256];
	int abandoned;

	temp_dir_init(&dir);
	meeting_init(&meeting, bench);
	meeting_init(&second, bench);
	(void)snprintf(text, sizeof(text), "unix:%s/s", dir.path);
	listen_on(&meeting, text);
	assert_int_equal(stat(text + 5, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	dial_to(&meeting, text, 10000);
	assert_true(meeting.dialled >= 0);
	/* In use: refused. */
	address = meeting.listener.address;
	assert_int_equal(
		hx_listener_open(
			&second.listener, &bench->reactor, &address, true, on_accept, &second,
			&err),
		HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "in use"));
	hx_listener_close(&meeting.listener);
	assert_int_equal(access(text + 5, F_OK), -1);
	/* Left behind by a process that died: replaced. */
	abandoned = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(abandoned, (struct sockaddr *)&address.storage, address.size), 0);
	close(abandoned);
	listen_on(&second, text);
	meeting_done(&second);
	meeting_done(&meeting);
	temp_dir_done(&dir);
}

/* A path that is not a socket is a user's file: it stays. */
static void listener_replaces_no_file(void **state)
{
	struct bench *bench = *state;
	struct meeting meeting;
	struct temp_dir dir;
	struct hx_endpoint endpoint;
	struct hx_address address;
	struct hapax_error err = {0};
	char text[256], target[256];
	struct stat status;
	int fd;

	temp_dir_init(&dir);
	meeting_init(&meeting, bench);
	(void)snprintf(text, sizeof(text), "unix:%s/s", dir.path);
	(void)snprintf(target, sizeof(target), "%s/t", dir.path);
	assert_int_equal(
		hx_endpoint_parse(hapax_bytes_from_text(text), -1, &endpoint, &err), HAPAX_OK);
	assert_true(hx_endpoint_address(&endpoint, &address));
	for (int is_link = 0; is_link < 2; is_link++) {
		fd = open(is_link ? target : text + 5, O_CREAT | O_WRONLY, 0600);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, "data", 4), 4);
		close(fd);
		if (is_link)
			assert_int_equal(symlink(target, text + 5), 0);
		assert_int_equal(
			hx_listener_open(
				&meeting.listener, &bench->reactor, &address, false, on_accept,
				&meeting, &err),
			HAPAX_ERR_INVALID);
		assert_non_null(strstr(err.message, "not a socket"));
		assert_int_equal(stat(text + 5, &status), 0);
		assert_true(S_ISREG(status.st_mode));
		assert_int_equal(status.st_size, 4);
		assert_int_equal(unlink(text + 5), 0);
	}
	assert_int_equal(unlink(target), 0);
	meeting_done(&meeting);
	temp_dir_done(&dir);
}

static void listener_stops_at_its_limit(void **state)
{
	struct bench *bench = *state;
	struct meeting meeting;
	struct temp_dir dir;
	char text[256];
	int fds[3];

	temp_dir_init(&dir);
	meeting_init(&meeting, bench);
	(void)snprintf(text, sizeof(text), "unix:%s/s", dir.path);
	meeting.listener.open_max = 2;
	listen_on(&meeting, text);
	for (int i = 0; i < 3; i++) {
		dial_to(&meeting, text, 10000);
		fds[i] = meeting.dialled;
		assert_true(fds[i] >= 0);
	}
	for (int i = 0; i < 10; i++)
		turn(bench);
	assert_int_equal(meeting.accepted_count, 2);
	hx_listener_ended(&meeting.listener);
	for (int i = 0; i < 10; i++)
		turn(bench);
	assert_int_equal(meeting.accepted_count, 3);
	close(fds[0]);
	close(fds[1]);
	meeting_done(&meeting);
	temp_dir_done(&dir);
}

/* Out of descriptors: wait a moment instead of spinning, then go on. */
static void listener_waits_for_descriptors(void **state)
{
	struct bench *bench = *state;
	struct meeting meeting;
	struct temp_dir dir;
	char text[256];

	temp_dir_init(&dir);
	meeting_init(&meeting, bench);
	(void)snprintf(text, sizeof(text), "unix:%s/s", dir.path);
	bench->fault.accept_errno = EMFILE;
	listen_on(&meeting, text);
	dial_to(&meeting, text, 10000);
	for (int i = 0; i < 10; i++)
		turn(bench);
	assert_int_equal(meeting.accepted_count, 0);
	assert_int_equal(meeting.listener.refused, 1);
	bench->fault.accept_errno = 0;
	fault_net_advance(&bench->fault, 50);
	for (int i = 0; i < 10; i++)
		turn(bench);
	assert_int_equal(meeting.accepted_count, 1);
	meeting_done(&meeting);
	temp_dir_done(&dir);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(bytes_go_both_ways),
		CASE(pieces_make_no_difference),
		CASE(peer_that_ends_ends_it),
		CASE(answer_after_the_end),
		CASE(finish_waits_for_the_peer),
		CASE(endless_message_is_cut_off),
		CASE(slow_peers_are_dropped),
		CASE(deadline_ends_it),
		CASE(peers_that_take_too_little_are_dropped),
		CASE(deadline_ends_it),
		CASE(errors_end_it_once),
		CASE(pause_stops_reading),
		CASE(no_memory_ends_it),
		CASE(dial_meets_listener),
		CASE(dial_says_why_not),
		CASE(unix_sockets_are_private_and_replaced),
		CASE(listener_replaces_no_file),
		CASE(listener_stops_at_its_limit),
		CASE(listener_waits_for_descriptors),
	};

	return cmocka_run_group_tests_name("connection", tests, NULL, NULL);
}
