/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_demo_upstream.c - hapax demo-upstream: a service to put hapax in front of.
 *
 * It does what a service must not do: it runs every request as often as it arrives, and counts. The
 * numbers show how many duplicates hapax stopped.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include <hapax/hapax.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/duration.h"
#include "base/sha256.h"
#include "base/time.h"
#include "cli/frame/command.h"
#include "cli/input/digest_table.h"
#include "cli/frame/report.h"
#include "net/http/http_server.h"
#include "net/signals.h"

enum { OPTION_LISTEN = 1, OPTION_DELAY, OPTION_FAIL_FIRST };

enum {
	DELAY_MS_MAX = 3600 * 1000,
	KEYS_BYTES_MAX = 512 * 1024 * 1024, /* tens of millions of keys */
	LAST_TURNS_MAX = 1000,
};

static const struct hx_option options[] = {
	{OPTION_LISTEN, "listen", 0, HX_OPTION_TEXT, "ADDR",
	 "HOST:PORT or unix:PATH; port 0 picks a free port", NULL},
	{OPTION_DELAY, "delay", 0, HX_OPTION_TEXT, "T",
	 "answer each request after T (at most 1h; default: at once)", NULL},
	{OPTION_FAIL_FIRST, "fail-first", 0, HX_OPTION_COUNT, "N",
	 "answer the first N requests with status 500", NULL},
	{0, NULL, 0, HX_OPTION_FLAG, NULL, NULL, NULL},
};

struct later;

struct upstream {
	struct hx_reactor reactor;
	struct hx_http_server server;
	struct hx_signals signals;
	struct hx_digest_table keys;
	int64_t delay_ms;
	uint64_t fail_first;
	uint64_t received;
	uint64_t executed;
	uint64_t key_count;
	struct hapax_buf scratch; /* a large body, contiguous */
	struct later *later;      /* requests to be answered later */
};

/* A request that is answered later. */
struct later {
	struct upstream *upstream;
	struct hx_http_exchange *exchange;
	struct hx_timer timer;
	bool fails;
	struct later *next;
	struct later *back;
};

static void reply(struct hx_http_exchange *exchange, unsigned status, const char *text, size_t size)
{
	const struct hapax_field field = {
		HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT("application/json")};

	hx_http_reply(
		exchange,
		&(struct hx_http_reply){
			.status = status,
			.fields = &field,
			.field_count = 1,
			.body = {text, size}});
}

static void reply_count(struct upstream *upstream, struct hx_http_exchange *exchange)
{
	char text[160];
	int size = snprintf(
		text, sizeof(text),
		"{\"received\":%" PRIu64 ",\"executed\":%" PRIu64 ",\"keys\":%" PRIu64 "}\n",
		upstream->received, upstream->executed, upstream->key_count);

	reply(exchange, 200, text, (size_t)size);
}

static struct hapax_bytes field_of(const struct hx_http_exchange *exchange, struct hapax_bytes name)
{
	size_t index = hx_http1_find(&exchange->head, name, 0);

	return index < exchange->head.field_count ? exchange->head.fields[index].value
						  : hx_bytes(NULL, 0);
}

/* Identity of a request: source and id of the event, else its key, else its body. */
static void note_key(struct upstream *upstream, const struct hx_http_exchange *exchange)
{
	struct hapax_bytes source = field_of(exchange, HX_BYTES_LIT("ce-source"));
	struct hapax_bytes id = field_of(exchange, HX_BYTES_LIT("ce-id"));
	struct hapax_bytes key = field_of(exchange, HX_BYTES_LIT("Idempotency-Key"));
	unsigned char digest[HX_SHA256_SIZE];
	struct hx_digest_table *keys = &upstream->keys;
	struct hx_digest entry;
	struct hx_sha256 sha = {NULL};
	bool is_new = false;

	if (hx_sha256_init(&sha) != HAPAX_OK)
		return;
	if (source.data != NULL && id.data != NULL) {
		hx_sha256_update(&sha, source.data, source.size);
		hx_sha256_update(&sha, "\n", 1);
		hx_sha256_update(&sha, id.data, id.size);
	} else if (key.data != NULL) {
		hx_sha256_update(&sha, "\nkey\n", 5);
		hx_sha256_update(&sha, key.data, key.size);
	} else if (
		hx_http_body_whole(&exchange->body, &upstream->scratch, &key, NULL) == HAPAX_OK) {
		hx_sha256_update(&sha, "\nbody\n", 6);
		hx_sha256_update(&sha, key.data, key.size);
	}
	hx_sha256_final(&sha, digest);
	hx_sha256_done(&sha);
	entry = hx_digest_of(digest);
	if (hx_digest_table_at(keys, &entry, &is_new) != NULL && is_new)
		upstream->key_count++;
}

static void execute(struct upstream *upstream, struct hx_http_exchange *exchange, bool fails)
{
	static const char failure[] = "{\"error\":\"the demo was told to fail\"}\n";
	char text[64];
	int size;

	if (fails) {
		reply(exchange, 500, failure, sizeof(failure) - 1);
		return;
	}
	upstream->executed++;
	size = snprintf(text, sizeof(text), "{\"executed\":%" PRIu64 "}\n", upstream->executed);
	reply(exchange, 200, text, (size_t)size);
}

static void on_later(struct hx_timer *timer)
{
	struct later *later = timer->context;
	struct upstream *upstream = later->upstream;

	execute(upstream, later->exchange, later->fails);
	if (later->back != NULL)
		later->back->next = later->next;
	else
		upstream->later = later->next;
	if (later->next != NULL)
		later->next->back = later->back;
	hx_timer_retire(&upstream->reactor.timers, timer);
	hx_free(later);
}

static void execute_later(struct upstream *upstream, struct hx_http_exchange *exchange, bool fails)
{
	struct later *later = hx_alloc_zero(1, sizeof(*later));

	if (later == NULL ||
	    hx_timer_introduce(&upstream->reactor.timers, &later->timer, on_later, later) !=
		    HAPAX_OK) {
		hx_free(later);
		execute(upstream, exchange, true);
		return;
	}
	later->upstream = upstream;
	later->exchange = exchange;
	later->fails = fails;
	later->next = upstream->later;
	if (later->next != NULL)
		later->next->back = later;
	upstream->later = later;
	hx_timer_set(
		&upstream->reactor.timers, &later->timer,
		hx_reactor_now_ns(&upstream->reactor) + upstream->delay_ms * HX_NS_PER_MS);
}

static void handle(struct hx_http_exchange *exchange)
{
	struct upstream *upstream = exchange->server->context;
	const struct hapax_field allow = {HX_BYTES_LIT("Allow"), HX_BYTES_LIT("POST, GET")};
	bool fails;

	if (hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("GET")) ||
	    hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("HEAD"))) {
		if (hx_bytes_equal(exchange->head.path, HX_BYTES_LIT("/count")))
			reply_count(upstream, exchange);
		else
			hx_http_reply_problem(
				exchange,
				&(struct hx_http_problem){
					.status = 404, .detail = "GET /count counts"},
				NULL, 0);
		return;
	}
	if (!hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("POST"))) {
		hx_http_reply_problem(
			exchange, &(struct hx_http_problem){.status = 405}, &allow, 1);
		return;
	}
	upstream->received++;
	note_key(upstream, exchange);
	fails = upstream->received <= upstream->fail_first;
	if (upstream->delay_ms > 0)
		execute_later(upstream, exchange, fails);
	else
		execute(upstream, exchange, fails);
}

static void on_drained(struct hx_http_server *server)
{
	struct upstream *upstream = server->context;

	hx_reactor_stop(&upstream->reactor);
}

static void on_signal(struct hx_signals *signals, int number)
{
	struct upstream *upstream = signals->context;

	(void)number;
	/* A second signal waits for nothing. */
	if (upstream->server.is_draining)
		hx_reactor_stop(&upstream->reactor);
	hx_http_server_drain(&upstream->server);
}

static int read_options(
	struct hx_invocation *inv, struct upstream *upstream, struct hx_address *ret_address)
{
	const struct hx_option_value *listen = hx_options_get(&inv->options, OPTION_LISTEN);
	const struct hx_option_value *delay = hx_options_get(&inv->options, OPTION_DELAY);
	const struct hx_option_value *fail_first = hx_options_get(&inv->options, OPTION_FAIL_FIRST);
	struct hx_endpoint endpoint;
	struct hapax_error err;

	if (listen == NULL)
		return hx_report_usage(inv->command->name, "missing option --listen");
	if (hx_endpoint_parse(hapax_bytes_from_text(listen->text), -1, &endpoint, &err) != HAPAX_OK)
		return hx_report_usage(inv->command->name, "--listen: %s", err.message);
	if (!hx_endpoint_address(&endpoint, ret_address))
		return hx_report_usage(
			inv->command->name, "--listen: '%s' is not a numeric address",
			endpoint.host);
	if (delay != NULL &&
	    hx_duration_parse(hapax_bytes_from_text(delay->text), &upstream->delay_ms, &err) !=
		    HAPAX_OK)
		return hx_report_usage(inv->command->name, "--delay: %s", err.message);
	if (upstream->delay_ms > DELAY_MS_MAX)
		return hx_report_usage(inv->command->name, "--delay must be at most 1h");
	if (fail_first != NULL)
		upstream->fail_first = (uint64_t)fail_first->number;
	return HX_EXIT_OK;
}

static enum hapax_status open_all(
	struct upstream *upstream, const struct hx_address *address, struct hapax_error *err)
{
	static const int wanted[] = {SIGTERM, SIGINT, 0};
	enum hapax_status status = hx_signals_open(
		&upstream->signals, &upstream->reactor, wanted, on_signal, upstream, err);

	if (status == HAPAX_OK)
		status = hx_http_server_open(
			&upstream->server, &upstream->reactor, address, false, NULL, handle,
			on_drained, upstream, err);
	return status;
}

static int serve(
	struct hx_invocation *inv, struct upstream *upstream, const struct hx_address *address)
{
	char text[HX_ADDRESS_TEXT_SIZE];
	struct hapax_error err;
	int code = HX_EXIT_OK;

	if (hx_reactor_init(&upstream->reactor, hx_net_system(), &err) != HAPAX_OK)
		return hx_report_error(inv->command->name, &err);
	hx_digest_table_init(&upstream->keys, sizeof(struct hx_digest), KEYS_BYTES_MAX);
	hx_buf_init(&upstream->scratch, HX_HTTP_BODY_MEMORY_MAX * 64);
	if (open_all(upstream, address, &err) == HAPAX_OK) {
		hx_address_format(&upstream->server.listener.address, text);
		hx_report(inv->command->name, "ready on %s", text);
		hx_reactor_run(&upstream->reactor);
	} else {
		code = hx_report_error(inv->command->name, &err);
	}
	hx_http_server_close(&upstream->server);
	/* Requests that wait to be answered have lost their connections. */
	for (int i = 0; i < LAST_TURNS_MAX && upstream->server.peer_count > 0; i++)
		hx_reactor_turn(&upstream->reactor, 0);
	while (upstream->later != NULL)
		on_later(&upstream->later->timer);
	hx_http_server_done(&upstream->server);
	hx_signals_close(&upstream->signals);
	hx_reactor_done(&upstream->reactor);
	hx_digest_table_done(&upstream->keys);
	hx_buf_done(&upstream->scratch);
	return code;
}

static int run_demo_upstream(struct hx_invocation *inv)
{
	struct upstream *upstream = hx_alloc_zero(1, sizeof(*upstream));
	struct hx_address address = {.size = 0};
	int code;

	if (upstream == NULL)
		return hx_report_no_memory(inv->command->name);
	code = read_options(inv, upstream, &address);
	if (code == HX_EXIT_OK)
		code = serve(inv, upstream, &address);
	hx_free(upstream);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "stopped by TERM or INT"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax demo-upstream --listen 127.0.0.1:0", "listen on a free port"},
	{"hapax demo-upstream --listen 127.0.0.1:0 --delay 2s", "answer slowly"},
	{NULL, NULL},
};

const struct command hx_cmd_demo_upstream = {
	.name = "demo-upstream",
	.summary = "start a demo service that counts the requests it receives",
	.usage = "--listen ADDR [OPTION]...",
	.description =
		"Answers every POST with 200 and counts it. GET /count returns three numbers: received\n"
		"(all POSTs), executed (POSTs answered with 200) and keys (distinct requests, by\n"
		"ce-source and ce-id, by Idempotency-Key, or by body). If executed equals keys, no\n"
		"request ran twice. The address is printed to standard error when the service is ready.\n",
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_demo_upstream,
};
