/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of TLS in one process, over a network that cuts and refuses.
 */
#include "net/tls/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <hapax/clock.h>

#include "base/bytes.h"
#include "net/connection.h"
#include "support/fault_net.h"
#include "support/temp_dir.h"

enum { TURNS_MAX = 100000, WORD_SIZE = 5, REPLY_SIZE = 20000 };

static struct temp_dir folder;

/* One end: counts what comes, and answers the word with much. */
struct end {
	struct hx_connection connection;
	bool is_server;
	bool is_closed;
	bool was_ended; /* the other side said that it was all */
	bool is_secured;
	size_t received;
	struct hapax_error why;
};

struct bench {
	struct fault_net fault;
	struct hx_reactor reactor;
	struct hx_tls_context *server_context;
	struct hx_tls_context *client_context;
	struct end server;
	struct end client;
};

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct end *end = (struct end *)connection;
	static char reply[REPLY_SIZE];

	end->was_ended = end->was_ended || is_end;
	if (!end->is_server) {
		end->received += input.size;
		return input.size;
	}
	if (input.size < WORD_SIZE)
		return 0;
	end->received += WORD_SIZE;
	assert_int_equal(hx_connection_write(connection, reply, sizeof(reply)), HAPAX_OK);
	return WORD_SIZE;
}

static void on_secured(struct hx_connection *connection)
{
	struct end *end = (struct end *)connection;

	assert_false(end->is_secured);
	assert_int_equal(end->received, 0);
	end->is_secured = true;
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct end *end = (struct end *)connection;

	assert_false(end->is_closed);
	end->is_closed = true;
	end->why = *why;
}

static const struct hx_connection_ops ops = {
	.on_input = on_input, .on_secured = on_secured, .on_close = on_close};

static const char *file(const char *name)
{
	static char paths[8][600];
	static unsigned next;
	char *path = paths[next++ % 8];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", folder.path, name);
	return path;
}

static bool make_certificate(const char *name, const char *subject)
{
	char command[2000];

	(void)snprintf(
		command, sizeof(command),
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
		"-subj '%s' -addext subjectAltName=DNS:localhost -keyout %s/%s.key -out %s/%s.pem "
		"2>/dev/null",
		subject, folder.path, name, folder.path, name);
	return system(command) == 0; /* NOLINT(cert-env33-c): a test's own certificates */
}

static int make_all(void **state)
{
	(void)state;
	temp_dir_init(&folder);
	return make_certificate("one", "/CN=one") && make_certificate("two", "/CN=two") &&
			make_certificate("client", "/O=Acme, Inc/CN=client")
		? 0
		: -1;
}

static int drop_all(void **state)
{
	(void)state;
	temp_dir_done(&folder);
	return 0;
}

static struct hx_tls_context *serve_with(const char *name, enum hx_tls_client_auth client_auth)
{
	char pem[40], key[40];
	struct hx_tls_options options = {.client_auth = client_auth};
	struct hx_tls_context *context = NULL;
	struct hapax_error err;

	(void)snprintf(pem, sizeof(pem), "%s.pem", name);
	(void)snprintf(key, sizeof(key), "%s.key", name);
	options.certificate_file = file(pem);
	options.key_file = file(key);
	options.authority_file = client_auth == HX_TLS_CLIENT_OFF ? NULL : file("client.pem");
	if (hx_tls_server_context_new(&options, &context, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	return context;
}

static void bench_init(struct bench *bench, enum hx_tls_client_auth client_auth, const char *client)
{
	struct hx_tls_options options = {.authority_file = file("one.pem")};
	struct hapax_error err;

	memset(bench, 0, sizeof(*bench));
	fault_net_init(&bench->fault);
	assert_int_equal(hx_reactor_init(&bench->reactor, &bench->fault.net, NULL), HAPAX_OK);
	bench->server_context = serve_with("one", client_auth);
	if (client != NULL) {
		char pem[40], key[40];

		(void)snprintf(pem, sizeof(pem), "%s.pem", client);
		(void)snprintf(key, sizeof(key), "%s.key", client);
		options.certificate_file = file(pem);
		options.key_file = file(key);
	}
	if (hx_tls_client_context_new(&options, &bench->client_context, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

static void open_end(struct bench *bench, struct end *end, int fd, bool is_server)
{
	struct hx_tls *tls = NULL;

	memset(end, 0, sizeof(*end));
	end->is_server = is_server;
	assert_int_equal(
		hx_tls_new(
			is_server ? bench->server_context : bench->client_context,
			is_server ? NULL : "localhost", &tls, NULL),
		HAPAX_OK);
	assert_int_equal(
		hx_connection_open(&end->connection, &bench->reactor, fd, tls, &ops, NULL, NULL),
		HAPAX_OK);
}

static void open_both(struct bench *bench, struct end *server, struct end *client)
{
	int fds[2];

	fault_net_pair(fds);
	open_end(bench, server, fds[0], true);
	open_end(bench, client, fds[1], false);
}

static void turn_until(struct bench *bench, const bool *condition)
{
	for (int i = 0; i < TURNS_MAX && !*condition; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_true(*condition);
}

/* Ask, and take the whole answer. */
static void exchange_words(struct bench *bench, struct end *client)
{
	size_t wanted = client->received + REPLY_SIZE;

	assert_int_equal(hx_connection_write(&client->connection, "word\n", WORD_SIZE), HAPAX_OK);
	for (int i = 0; i < TURNS_MAX && client->received < wanted; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(client->received, wanted);
}

static void close_both(struct bench *bench, struct end *server, struct end *client)
{
	hx_connection_close(&server->connection, NULL);
	hx_connection_close(&client->connection, NULL);
	turn_until(bench, &server->is_closed);
	turn_until(bench, &client->is_closed);
}

static void bench_done(struct bench *bench)
{
	hx_tls_context_free(bench->server_context);
	hx_tls_context_free(bench->client_context);
	hx_reactor_done(&bench->reactor);
}

/* Records in pieces, the kernel saying "not now" in between: the handshake and the end, too. */
static void pieces_make_no_difference(void **state)
{
	static const size_t sizes[] = {0, 1, 7, 1000};
	struct bench bench;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		bench_init(&bench, HX_TLS_CLIENT_REQUIRED, "client");
		bench.fault.send_size_max = sizes[i];
		bench.fault.recv_size_max = sizes[i];
		bench.fault.refuses_every_second = true;
		open_both(&bench, &bench.server, &bench.client);
		exchange_words(&bench, &bench.client);
		assert_true(bench.server.is_secured && bench.client.is_secured);
		hx_connection_finish(&bench.server.connection);
		turn_until(&bench, &bench.client.is_closed);
		turn_until(&bench, &bench.server.is_closed);
		/* It was told that this was all. */
		assert_true(bench.client.was_ended);
		assert_int_equal(bench.client.why.status, HAPAX_OK);
		assert_int_equal(bench.server.why.status, HAPAX_OK);
		bench_done(&bench);
	}
}

static void a_cut_is_no_end(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, HX_TLS_CLIENT_OFF, NULL);
	open_both(&bench, &bench.server, &bench.client);
	exchange_words(&bench, &bench.client);
	/* FIN, and no word. */
	assert_int_equal(shutdown(bench.client.connection.watch.fd, SHUT_WR), 0);
	turn_until(&bench, &bench.server.is_closed);
	assert_false(bench.server.was_ended);
	assert_int_equal(bench.server.why.status, HAPAX_ERR_UNAVAILABLE);
	hx_connection_close(&bench.client.connection, NULL);
	turn_until(&bench, &bench.client.is_closed);
	bench_done(&bench);
}

static void clients_are_known_by_their_certificate(void **state)
{
	const struct hx_tls_peer *peer;
	struct bench bench;

	(void)state;
	bench_init(&bench, HX_TLS_CLIENT_OPTIONAL, "client");
	open_both(&bench, &bench.server, &bench.client);
	assert_null(hx_tls_peer(bench.server.connection.tls));
	exchange_words(&bench, &bench.client);
	peer = hx_tls_peer(bench.server.connection.tls);
	assert_non_null(peer);
	assert_string_equal(peer->subject, "CN=client,O=Acme\\, Inc");
	/* It is about clients. */
	assert_null(hx_tls_peer(bench.client.connection.tls));
	close_both(&bench, &bench.server, &bench.client);
	bench_done(&bench);
	/* A client without one has no name. */
	bench_init(&bench, HX_TLS_CLIENT_OPTIONAL, NULL);
	open_both(&bench, &bench.server, &bench.client);
	exchange_words(&bench, &bench.client);
	assert_null(hx_tls_peer(bench.server.connection.tls));
	close_both(&bench, &bench.server, &bench.client);
	bench_done(&bench);
}

/* Whatever the client shows: how it ends for the server. */
static void expect_refusal(enum hx_tls_client_auth client_auth, const char *client)
{
	struct bench bench;

	bench_init(&bench, client_auth, client);
	open_both(&bench, &bench.server, &bench.client);
	assert_int_equal(
		hx_connection_write(&bench.client.connection, "word\n", WORD_SIZE), HAPAX_OK);
	turn_until(&bench, &bench.server.is_closed);
	turn_until(&bench, &bench.client.is_closed);
	assert_false(bench.server.is_secured);
	assert_int_equal(bench.server.received, 0);
	assert_non_null(strstr(bench.server.why.message, "certificate"));
	assert_int_equal(bench.client.why.status, HAPAX_ERR_UNAVAILABLE);
	bench_done(&bench);
}

static void strangers_are_refused(void **state)
{
	(void)state;
	expect_refusal(HX_TLS_CLIENT_REQUIRED, NULL);
	expect_refusal(HX_TLS_CLIENT_REQUIRED, "two");
	expect_refusal(HX_TLS_CLIENT_OPTIONAL, "two");
}

/* New connections get the new certificate, which this client does not trust; old ones live on. */
static void contexts_change_places(void **state)
{
	struct hx_tls_context *other;
	struct end server, client;
	struct bench bench;

	(void)state;
	bench_init(&bench, HX_TLS_CLIENT_OFF, NULL);
	open_both(&bench, &bench.server, &bench.client);
	exchange_words(&bench, &bench.client);
	other = serve_with("two", HX_TLS_CLIENT_OFF);
	hx_tls_context_exchange(bench.server_context, other);
	hx_tls_context_free(other);
	open_both(&bench, &server, &client);
	turn_until(&bench, &client.is_closed);
	turn_until(&bench, &server.is_closed);
	assert_non_null(strstr(client.why.message, "certificate"));
	exchange_words(&bench, &bench.client);
	close_both(&bench, &bench.server, &bench.client);
	bench_done(&bench);
}

static void files_are_checked(void **state)
{
	static const struct {
		const char *certificate, *key, *word;
	} cases[] = {
		{"one.pem", "two.key", "does not belong"},
		{"one.pem", "one.pem", "could not read a private key"},
		{"one.key", "one.key", "could not read a certificate"},
		{"none", "one.key", "none"},
		{"one.pem", "none", "none"},
	};
	struct hx_tls_context *context = NULL;
	struct hapax_error err;
	int64_t left_ms;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct hx_tls_options options = {
			.certificate_file = file(cases[i].certificate),
			.key_file = file(cases[i].key)};

		assert_int_equal(
			hx_tls_server_context_new(&options, &context, &err), HAPAX_ERR_INVALID);
		if (strstr(err.message, cases[i].word) == NULL)
			fail_msg("'%s' does not say '%s'", err.message, cases[i].word);
	}
	context = serve_with("one", HX_TLS_CLIENT_OFF);
	/* Within two days of now, whenever that is. */
	left_ms = hx_tls_context_expires_ms(context) -
		hapax_clock_system()->wall_ms(hapax_clock_system()->context);
	assert_in_range(left_ms, 47 * 3600 * 1000, 48 * 3600 * 1000);
	hx_tls_context_free(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_make_no_difference),
		cmocka_unit_test(a_cut_is_no_end),
		cmocka_unit_test(clients_are_known_by_their_certificate),
		cmocka_unit_test(strangers_are_refused),
		cmocka_unit_test(contexts_change_places),
		cmocka_unit_test(files_are_checked),
	};

	return cmocka_run_group_tests_name("tls", tests, make_all, drop_all);
}
