/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of the proxy whose claim is answered on the store's thread, while its loop stands: it
 * is posted there, and what the loop does with it when it turns again. The loop is the daemon's
 * own, turned by the test; processor and store are on a clock that the test moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "config/config.h"
#include "observe/feed.h"
#include "observe/metrics/metrics.h"
#include "serve/daemon/daemon.h"
#include "serve/http/delivery.h"
#include "support/processor_case.h"

enum { TURNS_MAX = 100000, LEASE_MS = 1000 };

static struct processor_case c;
static struct hx_serve serve;
static struct hx_loop loop;
static int listener; /* of the service behind */
static int service;  /* its connection */
static int client;

static unsigned listen_on_any(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

/* Of both, the service behind and the proxy before it. */
static void configure(void)
{
	char text[200];
	struct hapax_bytes bytes;
	struct hx_config_source source = {.path = "h.yaml", .text = &bytes};
	struct hapax_error err;

	(void)snprintf(
		text, sizeof(text),
		"upstream: {url: 'http://127.0.0.1:%u'}\n"
		"defaults: {lease: 1s}\n"
		"listen: {proxy: '127.0.0.1:0'}\n",
		listen_on_any());
	bytes = hapax_bytes_from_text(text);
	if (hx_config_load(&source, &serve.config, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	hx_config_current_init(&serve.current, hx_config_keep(serve.config));
}

static void connect_client(void)
{
	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(client >= 0);
	assert_int_equal(
		connect(client, (const struct sockaddr *)&loop.proxy.listener.address.storage,
			loop.proxy.listener.address.size),
		0);
	assert_int_equal(fcntl(client, F_SETFL, O_NONBLOCK), 0);
}

static int set_up(void **state)
{
	struct hx_address address;

	(void)state;
	processor_case_begin(&c);
	memset(&serve, 0, sizeof(serve));
	memset(&loop, 0, sizeof(loop));
	configure();
	service = -1;
	serve.processor = c.processor;
	serve.loops = &loop;
	serve.loop_count = 1;
	hx_quota_init(&serve.tenants);
	hx_peers_init(&serve.peers);
	hx_memory_plan(&serve.memory, serve.config);
	if (hx_metrics_new(&(struct hx_metrics_options){0}, &serve.metrics, NULL) != HAPAX_OK ||
	    hx_feed_new(1, &serve.feed, NULL) != HAPAX_OK ||
	    hx_loop_init(&loop, &serve, 0, NULL) != HAPAX_OK ||
	    !hx_endpoint_address(&serve.config->listen.proxy.endpoint, &address) ||
	    hx_loop_listen(&loop, &loop.proxy, &address, NULL) != HAPAX_OK)
		return -1;
	loop.thread_id = hx_thread_id();
	connect_client();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(client);
	close(listener);
	if (service >= 0)
		close(service);
	hx_loop_done(&loop);
	processor_case_done(&c);
	hx_feed_free(serve.feed);
	hx_metrics_free(serve.metrics);
	hx_peers_done(&serve.peers);
	hx_quota_done(&serve.tenants);
	hx_config_current_done(&serve.current);
	hx_config_release(serve.config);
	return 0;
}

static void answer_claim(void *context)
{
	held_store_pass(context);
}

/* A request comes, and its claim is granted by another thread; ms pass until the loop turns. */
static void ask(const char *key, int64_t ms)
{
	char request[256];
	struct hx_thread thread;
	int size = snprintf(
		request, sizeof(request),
		"POST /charges HTTP/1.1\r\nHost: charges.test\r\nAuthorization: Bearer client\r\n"
		"Idempotency-Key: %s\r\nContent-Length: 2\r\n\r\n{}",
		key);

	c.held.holds = true;
	assert_int_equal(write(client, request, (size_t)size), size);
	for (int i = 0; c.held.count == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&loop.reactor, 0);
	assert_int_equal(c.held.count, 1);
	c.held.holds = false;
	assert_int_equal(hx_thread_start(&thread, answer_claim, &c.held, "store", NULL), HAPAX_OK);
	hx_thread_join(&thread);
	store_case_advance(&c.store, ms);
}

/* The service has the request, whole, and answers it. */
static void serve_one(void)
{
	static const char answer[] = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok";
	char text[1024];
	size_t size = 0;

	text[0] = '\0';
	for (int i = 0; strstr(text, "\r\n\r\n{}") == NULL && i < TURNS_MAX; i++) {
		ssize_t count = -1;

		hx_reactor_turn(&loop.reactor, 0);
		if (service < 0)
			service = accept(listener, NULL, NULL);
		if (service >= 0)
			count = recv(service, text + size, sizeof(text) - 1 - size, MSG_DONTWAIT);
		size += count > 0 ? (size_t)count : 0;
		text[size] = '\0';
	}
	assert_non_null(strstr(text, "\r\n\r\n{}"));
	assert_int_equal(write(service, answer, strlen(answer)), strlen(answer));
}

/* What the client gets, whose body ends so. */
static const char *read_reply(const char *end)
{
	static char text[4096];
	size_t size = 0;

	text[0] = '\0';
	for (int i = 0;
	     (size < strlen(end) || strcmp(text + size - strlen(end), end) != 0) && i < TURNS_MAX;
	     i++) {
		ssize_t count;

		hx_reactor_turn(&loop.reactor, 0);
		count = read(client, text + size, sizeof(text) - 1 - size);
		size += count > 0 ? (size_t)count : 0;
		text[size] = '\0';
	}
	return text;
}

static void expect_in(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' has no '%s'", text, part);
}

/* A kept connection to the service: what is forwarded on it is sent at once. */
static void run_one(int64_t ms)
{
	ask("first", ms);
	serve_one();
	expect_in(read_reply("ok"), "HTTP/1.1 201 ");
}

static void a_request_that_is_posted_within_its_lease_is_forwarded(void **state)
{
	(void)state;
	run_one(0);
	ask("second", LEASE_MS - 1);
	serve_one();
	expect_in(read_reply("ok"), "HTTP/1.1 201 ");
	assert_int_equal(loop.upstreams->client.dialed, 1);
}

/* I1: another daemon may have taken over, and forwarded it. */
static void a_request_that_is_posted_past_its_lease_is_not_forwarded(void **state)
{
	const char *reply;
	char byte;

	(void)state;
	run_one(0);
	ask("second", LEASE_MS);
	reply = read_reply("}\n");
	expect_in(reply, "HTTP/1.1 503 ");
	expect_in(reply, "Retry-After: 1\r\n");
	expect_in(reply, "Stripe-Should-Retry: true\r\n");
	expect_in(reply, "Content-Type: application/problem+json\r\n");
	expect_in(reply, "\"type\":\"urn:hapax:problem:lease-lapsed\"");
	expect_in(reply, "\"title\":\"The lease lapsed before the request was sent\"");
	expect_in(
		reply,
		"\"error\":{\"type\":\"api_error\",\"message\":\"The lease lapsed before the ");
	assert_int_equal(recv(service, &byte, 1, MSG_DONTWAIT), -1);
	/* It did not run: the retry does. */
	ask("second", 0);
	serve_one();
	expect_in(read_reply("ok"), "HTTP/1.1 201 ");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_request_that_is_posted_within_its_lease_is_forwarded),
		CASE(a_request_that_is_posted_past_its_lease_is_not_forwarded),
	};

	return cmocka_run_group_tests_name("serve_delivery", tests, NULL, NULL);
}
