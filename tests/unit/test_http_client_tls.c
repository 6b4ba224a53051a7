/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call over TLS whose handshake takes its time: it may be sent when that began, and not when it
 * ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "net/connection.h"
#include "net/http/http_client.h"
#include "net/tls/tls.h"
#include "support/fault_net.h"
#include "support/temp_dir.h"

enum { TURNS_MAX = 100000 };

#define SECOND_NS INT64_C(1000000000)

/* A server whose accept the test holds back; the kernel answers for it, TLS does not. */
struct bench {
	struct hx_connection server; /* first: they are the same address */
	bool is_secured;
	bool is_closed; /* the server's connection */
	size_t received;
	struct fault_net fault;
	struct hx_reactor reactor;
	struct hx_tls_context *server_context;
	struct hx_tls_context *client_context;
	struct hx_http_client client;
	struct hx_http_call call;
	int listener;
	bool is_revoked;
	unsigned asked;
	unsigned ends;
	enum hx_http_call_end end;
	char why[HAPAX_ERROR_MESSAGE_SIZE];
};

static struct temp_dir folder;
static char pem[600], key[600];

static int make_certificate(void **state)
{
	char command[2000];

	(void)state;
	temp_dir_init(&folder);
	(void)snprintf(pem, sizeof(pem), "%s/one.pem", folder.path);
	(void)snprintf(key, sizeof(key), "%s/one.key", folder.path);
	(void)snprintf(
		command, sizeof(command),
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
		"-subj /CN=one -addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s 2>/dev/null",
		key, pem);
	return system(command) == 0 ? 0 : -1; /* NOLINT(cert-env33-c): a test's own certificate */
}

static int drop_certificate(void **state)
{
	(void)state;
	temp_dir_done(&folder);
	return 0;
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
	struct bench *bench = (struct bench *)connection;

	(void)is_end;
	bench->received += input.size;
	if (bench->received == bench->call.head.size)
		assert_int_equal(hx_connection_write(connection, answer, strlen(answer)), HAPAX_OK);
	return input.size;
}

static void on_secured(struct hx_connection *connection)
{
	((struct bench *)connection)->is_secured = true;
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	(void)why;
	((struct bench *)connection)->is_closed = true;
}

static const struct hx_connection_ops server_ops = {
	.on_input = on_input, .on_secured = on_secured, .on_close = on_close};

static bool may_send(struct hx_http_call *call)
{
	struct bench *bench = call->context;

	bench->asked++;
	return !bench->is_revoked;
}

static void on_head(struct hx_http_call *call, const struct hx_http1_head *head)
{
	(void)call;
	assert_int_equal(head->status, 204);
}

static void on_data(struct hx_http_call *call, struct hapax_bytes data)
{
	(void)call;
	(void)data;
}

static void on_end(
	struct hx_http_call *call, enum hx_http_call_end end, const struct hapax_error *err)
{
	struct bench *bench = call->context;

	bench->ends++;
	bench->end = end;
	if (err != NULL)
		(void)snprintf(bench->why, sizeof(bench->why), "%s", err->message);
}

static const struct hx_http_call_ops call_ops = {
	.may_send = may_send, .on_head = on_head, .on_data = on_data, .on_end = on_end};

static uint16_t listen_on_any(struct bench *bench)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bench->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(bench->listener >= 0);
	assert_int_equal(bind(bench->listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(bench->listener, 8), 0);
	assert_int_equal(fcntl(bench->listener, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(getsockname(bench->listener, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

static int set_up(void **state)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));
	struct hx_endpoint endpoint = {.host = "127.0.0.1"};
	struct hx_tls_options server = {.certificate_file = pem, .key_file = key};
	struct hx_tls_options client = {.authority_file = pem};
	struct hx_http_client_options options = {0};

	*state = bench;
	fault_net_init(&bench->fault);
	endpoint.port = listen_on_any(bench);
	if (hx_reactor_init(&bench->reactor, &bench->fault.net, NULL) != HAPAX_OK ||
	    hx_tls_server_context_new(&server, &bench->server_context, NULL) != HAPAX_OK ||
	    hx_tls_client_context_new(&client, &bench->client_context, NULL) != HAPAX_OK)
		return -1;
	options.tls = bench->client_context;
	hx_http_client_init(&bench->client, &bench->reactor, NULL, &endpoint, &options);
	return hx_http_call_init(&bench->call, &bench->reactor, &call_ops, bench);
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hx_http_call_done(&bench->call, &bench->reactor);
	hx_http_client_close(&bench->client);
	hx_connection_close(&bench->server, NULL);
	for (int i = 0; i < TURNS_MAX && (bench->client.link_count > 0 || !bench->is_closed); i++)
		hx_reactor_turn(&bench->reactor, 0);
	hx_http_client_done(&bench->client);
	hx_reactor_done(&bench->reactor);
	hx_tls_context_free(bench->client_context);
	hx_tls_context_free(bench->server_context);
	close(bench->listener);
	test_free(bench);
	return 0;
}

/* The connection is there, and the first words of the handshake are said. */
static void begin(struct bench *bench)
{
	bench->call.head = HX_BYTES_LIT("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(
		hx_http_call_begin(
			&bench->call, &bench->client,
			hx_reactor_now_ns(&bench->reactor) + 10 * SECOND_NS, NULL),
		HAPAX_OK);
	for (int i = 0; bench->fault.sends == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_true(bench->fault.sends > 0);
	assert_int_equal(bench->ends, 0);
}

/* The server takes the connection, and makes the handshake. */
static void answer(struct bench *bench)
{
	int fd = accept(bench->listener, NULL, NULL);
	struct hx_tls *tls;
	int yes = 1;

	assert_true(fd >= 0);
	/* Else the kernel keeps the answer back until the tickets of the handshake are acknowledged. */
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(hx_tls_new(bench->server_context, NULL, &tls, NULL), HAPAX_OK);
	assert_int_equal(
		hx_connection_open(
			&bench->server, &bench->reactor, fd, tls, &server_ops, NULL, NULL),
		HAPAX_OK);
	for (int i = 0; bench->ends == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->ends, 1);
}

static void a_call_that_may_be_sent_after_the_handshake(void **state)
{
	struct bench *bench = *state;

	begin(bench);
	answer(bench);
	assert_int_equal(bench->end, HX_HTTP_CALL_COMPLETE);
	assert_int_equal(bench->received, bench->call.head.size);
	assert_true(bench->asked > 0);
}

/* The same where every word of it takes several calls. */
static void a_call_over_a_slow_network(void **state)
{
	struct bench *bench = *state;

	bench->fault.send_size_max = 7;
	bench->fault.recv_size_max = 7;
	bench->fault.refuses_every_second = true;
	a_call_that_may_be_sent_after_the_handshake(state);
}

/* Nothing of it is sent, though the connection was there when it still might have been. */
static void a_call_that_may_not_be_sent_after_the_handshake(void **state)
{
	struct bench *bench = *state;

	begin(bench);
	bench->is_revoked = true;
	answer(bench);
	assert_int_equal(bench->end, HX_HTTP_CALL_UNSENT);
	assert_true(bench->call.is_revoked);
	assert_string_equal(bench->why, "the lease lapsed before the request was sent");
	for (int i = 0; !bench->is_closed && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_true(bench->is_closed && bench->is_secured);
	assert_int_equal(bench->received, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_call_that_may_be_sent_after_the_handshake),
		CASE(a_call_over_a_slow_network),
		CASE(a_call_that_may_not_be_sent_after_the_handshake),
	};

	return cmocka_run_group_tests_name(
		"http_client_tls", tests, make_certificate, drop_certificate);
}
