/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole gateway when memory is short: an event gets 503, or its connection is closed;
 * the daemon lives, and the event is accepted when it is delivered again.
 *
 * Allocations fail by hx_alloc_fail_at(), which counts those of all threads: the client and
 * the upstream here use none.
 */
#include "serve/daemon/serve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/thread.h"
#include "support/scale.h"
#include "support/temp_dir.h"

enum {
	/* Above what the gateway keeps for the next event, so that each needs memory of its own. */
	LARGE = 60 * 1024,
	BATCH = 3,
	TEXT_MAX = 8 * 1024 * 1024,
};

static struct {
	struct temp_dir dir;
	char config[1024];
	struct hapax_bytes config_bytes;
	struct hx_config_source source;
	struct hx_thread daemon;
	enum hx_serve_end end;
	struct hapax_error err;

	struct hx_thread upstream;
	int listener;
	_Atomic unsigned received;
	_Atomic unsigned
		starves; /* N: when the next event has come, all from the Nth allocation fail */
	char buffer[TEXT_MAX]; /* the upstream's */

	char request[TEXT_MAX];
	char reply[64 * 1024];
} all;

/* On a port that is free, which it returns. */
static unsigned open_listener(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);

	all.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(all.listener >= 0);
	assert_int_equal(bind(all.listener, (const struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(all.listener, 64), 0);
	assert_int_equal(getsockname(all.listener, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

static int connect_to(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/%s", all.dir.path, name);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* ------------------------------------------------------------------ the upstream */

/* Read one request; false: there is none. */
static bool take_request(int fd)
{
	size_t size = 0;

	for (;;) {
		const char *end, *length;
		ssize_t count = read(fd, all.buffer + size, sizeof(all.buffer) - 1 - size);

		if (count <= 0)
			return false;
		size += (size_t)count;
		all.buffer[size] = '\0';
		end = strstr(all.buffer, "\r\n\r\n");
		if (end == NULL)
			continue;
		length = strcasestr(all.buffer, "\r\ncontent-length:");
		if (length == NULL || length > end ||
		    size - (size_t)(end + 4 - all.buffer) == strtoul(length + 17, NULL, 10))
			return true;
	}
}

/* One connection after the other, one request on each: nothing is kept between events. */
static void serve_upstream(void *arg)
{
	static const char reply[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
	int fd;

	(void)arg;
	while ((fd = accept(all.listener, NULL, NULL)) >= 0) {
		if (take_request(fd)) {
			unsigned nth = atomic_exchange(&all.starves, 0);

			atomic_fetch_add(&all.received, 1);
			if (nth != 0)
				hx_alloc_fail_at(nth, 1);
			(void)!write(fd, reply, sizeof(reply) - 1);
		}
		close(fd);
	}
}

/* ------------------------------------------------------------------ the client */

/* The status of the reply; 0: the connection was closed without one. */
static unsigned post(size_t size)
{
	int fd = connect_to("gateway");
	size_t got = 0;
	size_t sent = 0;
	ssize_t count;

	assert_true(fd >= 0);
	while (sent < size && (count = send(fd, all.request + sent, size - sent, MSG_NOSIGNAL)) > 0)
		sent += (size_t)count;
	(void)shutdown(fd, SHUT_WR);
	while ((count = read(fd, all.reply + got, sizeof(all.reply) - 1 - got)) > 0)
		got += (size_t)count;
	close(fd);
	all.reply[got] = '\0';
	return strncmp(all.reply, "HTTP/1.1 ", 9) == 0 ? (unsigned)strtoul(all.reply + 9, NULL, 10)
						       : 0;
}

static size_t write_request(const char *fields, const char *body, size_t body_size)
{
	int size = snprintf(
		all.request, sizeof(all.request),
		"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n",
		fields, body_size);

	memcpy(all.request + size, body, body_size);
	return (size_t)size + body_size;
}

static size_t write_event(unsigned number)
{
	static const char body[] = "{\"total\":42}";
	char fields[256];

	(void)snprintf(
		fields, sizeof(fields),
		"ce-specversion: 1.0\r\nce-type: t\r\nce-source: /s\r\nce-id: %u\r\n"
		"Content-Type: application/json\r\n",
		number);
	return write_request(fields, body, sizeof(body) - 1);
}

/* Strings with an escape have to be decoded, so each event needs memory when it is read. */
static size_t write_batch(unsigned number, size_t data_size)
{
	static char body[TEXT_MAX / 2];
	size_t size = 0;

	for (int i = 0; i < BATCH; i++) {
		size += (size_t)snprintf(
			body + size, sizeof(body) - size,
			"%c{\"specversion\":\"1.0\",\"type\":\"t\",\"source\":\"/batch\",\"id\":\"%u-%d\","
			"\"datacontenttype\":\"text/plain\",\"data\":\"\\n",
			i == 0 ? '[' : ',', number, i);
		memset(body + size, 'x', data_size);
		size += data_size;
		memcpy(body + size, "\"}", 2);
		size += 2;
	}
	body[size++] = ']';
	return write_request("Content-Type: application/cloudevents-batch+json\r\n", body, size);
}

/* ------------------------------------------------------------------ the daemon */

static void run_daemon(void *arg)
{
	struct hx_config *config;

	(void)arg;
	if (hx_config_load(&all.source, &config, NULL, &all.err) != HAPAX_OK)
		all.end = HX_SERVE_FAILED;
	else
		all.end = hx_serve_run(config, &all.source, &all.err);
}

static int start(void **state)
{
	static const char probe[] =
		"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	sigset_t signals;
	int fd;

	(void)state;
	/* The daemon takes them from a descriptor; no other thread may. */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
	temp_dir_init(&all.dir);
	(void)snprintf(
		all.config, sizeof(all.config),
		"loops: 1\nlisten: {gateway: 'unix:%s/gateway', admin: 'unix:%s/admin'}\n"
		"store: {url: 'memory:'}\nupstream: {url: 'http://127.0.0.1:%u'}\n"
		"log: {level: error}\nhttp: {max_requests_per_tenant: 1000}\n",
		all.dir.path, all.dir.path, open_listener());
	all.config_bytes = hapax_bytes_from_text(all.config);
	all.source.text = &all.config_bytes;
	assert_int_equal(
		hx_thread_start(&all.upstream, serve_upstream, NULL, "upstream", NULL), HAPAX_OK);
	assert_int_equal(hx_thread_start(&all.daemon, run_daemon, NULL, "daemon", NULL), HAPAX_OK);
	while ((fd = connect_to("admin")) < 0) {
		if (all.end == HX_SERVE_FAILED)
			fail_msg("%s", all.err.message);
		hx_thread_yield();
	}
	/* The control loop answers once the start is over, so that no allocation of it fails. */
	assert_int_equal(write(fd, probe, sizeof(probe) - 1), sizeof(probe) - 1);
	while (read(fd, all.reply, sizeof(all.reply)) > 0)
		;
	close(fd);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	hx_thread_join(&all.daemon);
	assert_int_equal(all.end, HX_SERVE_STOPPED);
	(void)shutdown(all.listener, SHUT_RDWR);
	hx_thread_join(&all.upstream);
	close(all.listener);
	temp_dir_done(&all.dir);
	return 0;
}

/* ------------------------------------------------------------------ tests */

/* How many were not done; that none is would mean that nothing failed. */
static unsigned refused;

static void expect_refused(unsigned status)
{
	refused += status != 200;
	/* 200: it did without; else nothing is known to be done. */
	if (status != 0 && status != 200 && status != 502 && status != 503)
		fail_msg("%s", all.reply);
}

/* A client that is dropped cancels nothing: its event may be under way still. */
static unsigned post_until_settled(size_t size)
{
	unsigned status;

	while ((status = post(size)) == 409)
		hx_thread_yield();
	return status;
}

/* It comes, with the nth allocation failing; then again, and again: done, once and for all. */
static void send_thrice(size_t size, unsigned nth, int forever)
{
	unsigned before;

	hx_alloc_fail_at(nth, forever);
	expect_refused(post(size));
	hx_alloc_fail_at(0, 0);
	assert_int_equal(post_until_settled(size), 200);
	before = atomic_load(&all.received);
	assert_int_equal(post(size), 200);
	assert_int_equal(atomic_load(&all.received), before);
}

static void any_allocation_of_an_event_fails(void **state)
{
	unsigned count = (unsigned)scale_count(1000, 100);
	unsigned number = 0;

	(void)state;
	refused = 0;
	for (int forever = 0; forever < 2; forever++) {
		for (unsigned nth = 1; nth <= count; nth++) {
			send_thrice(write_event(++number), nth, forever);
			assert_non_null(strstr(all.reply, "Hapax-Decision: replay"));
		}
	}
	assert_int_not_equal(refused, 0);
}

static void any_allocation_of_a_batch_fails(void **state)
{
	unsigned count = (unsigned)scale_count(1000, 100);
	unsigned number = 0;

	(void)state;
	refused = 0;
	for (int forever = 0; forever < 2; forever++) {
		for (unsigned nth = 1; nth <= count; nth++)
			send_thrice(write_batch(++number, 100), nth, forever);
	}
	assert_int_not_equal(refused, 0);
}

/*
 * With the first event of a batch on its way, memory ends: while its response is handled, or when
 * the second event is read, and so on. A batch that is done has run all its events.
 */
static void memory_ends_within_a_batch(void **state)
{
	unsigned count = (unsigned)scale_count(200, 40);

	(void)state;
	refused = 0;
	for (unsigned nth = 1; nth <= count; nth++) {
		size_t size = write_batch(1000000 + nth, LARGE);
		unsigned before = atomic_load(&all.received);
		unsigned status;

		atomic_store(&all.starves, nth);
		status = post(size);
		hx_alloc_fail_at(0, 0);
		expect_refused(status);
		if (status == 200)
			assert_int_equal(atomic_load(&all.received), before + BATCH);
		assert_int_equal(post_until_settled(size), 200);
		/* The one whose response could not be handled may run again. */
		assert_in_range(atomic_load(&all.received), before + BATCH, before + BATCH + 1);
		before = atomic_load(&all.received);
		assert_int_equal(post(size), 200);
		assert_int_equal(atomic_load(&all.received), before);
	}
	assert_int_not_equal(refused, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_allocation_of_an_event_fails),
		cmocka_unit_test(any_allocation_of_a_batch_fails),
		cmocka_unit_test(memory_ends_within_a_batch),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
