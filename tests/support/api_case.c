/* SPDX-License-Identifier: Apache-2.0 */
#include "support/api_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/thread.h"
#include "net/http/http_server.h"
#include "support/store_case.h"

struct api_case {
	struct hapax_store *store;
	struct hx_reactor reactor;
	struct hx_http_server server;
	struct hx_api *api;
	struct hx_thread thread;
	char url[64];
};

static void give_up(const char *what, const struct hapax_error *err)
{
	printf("# api_case: %s: %s\n", what, err->message);
	fflush(stdout);
	abort();
}

static void handle(struct hx_http_exchange *exchange)
{
	struct api_case *c = exchange->server->context;
	const struct hx_api_caller caller = {.role = HX_API_ROLE_ADMIN, .who = "test"};

	hx_api_handle(c->api, exchange, &caller);
}

static void run(void *arg)
{
	struct api_case *c = arg;

	hx_reactor_run(&c->reactor);
}

struct api_case *api_case_begin(const char *url, const struct hapax_store_options *options)
{
	const struct hx_http_server_options server = {.body_max = 24 * 1024 * 1024};
	struct api_case *c = calloc(1, sizeof(*c));
	struct hx_api_options api = {.clock = options->clock};
	char text[HX_ADDRESS_TEXT_SIZE];
	struct hx_endpoint endpoint;
	struct hx_address address;
	struct hapax_error err = {.message = ""};

	if (c == NULL || hapax_store_open(url, options, &c->store, &err) != HAPAX_OK ||
	    hx_reactor_init(&c->reactor, hx_net_system(), &err) != HAPAX_OK)
		give_up(url, &err);
	api.store = c->store;
	api.reactor = &c->reactor;
	if (hx_api_open(&api, &c->api, &err) != HAPAX_OK ||
	    hx_endpoint_parse(HX_BYTES_LIT("127.0.0.1:0"), -1, &endpoint, &err) != HAPAX_OK ||
	    !hx_endpoint_address(&endpoint, &address) ||
	    hx_http_server_open(
		    &c->server, &c->reactor, &address, false, &server, handle, NULL, c, &err) !=
		    HAPAX_OK ||
	    hx_thread_start(&c->thread, run, c, "api", &err) != HAPAX_OK)
		give_up("the server", &err);
	hx_address_format(&c->server.listener.address, text);
	snprintf(c->url, sizeof(c->url), "http://%.50s", text);
	return c;
}

void api_case_end(struct api_case *c)
{
	if (c == NULL)
		return;
	hx_reactor_stop(&c->reactor);
	hx_thread_join(&c->thread);
	if (!hx_api_close(c->api, hx_clock_mono_ns() + INT64_C(60000000000)))
		abort();
	hx_http_server_close(&c->server);
	for (int i = 0; i < 1000 && c->server.peer_count > 0; i++)
		hx_reactor_turn(&c->reactor, 0);
	hx_http_server_done(&c->server);
	hx_reactor_done(&c->reactor);
	hapax_store_close(c->store);
	free(c);
}

const char *api_case_url(const struct api_case *c)
{
	return c->url;
}

struct hapax_store *api_case_store(struct api_case *c)
{
	return c->store;
}

/* ------------------------------------------------------------------ the kind "http:" */

/* A new server for each store that is opened: what is in memory ends with it, as it does. */
static struct hapax_store *open_server(struct store_case *c)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {.message = ""};

	c->server = api_case_begin("memory:", &c->options);
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.clock = c->options.clock;
	/* On a busy machine a large result takes its time. */
	options.timeout_ms = 60000;
	snprintf(c->url, sizeof(c->url), "%s", api_case_url(c->server));
	if (hapax_store_open(c->url, &options, &store, &err) != HAPAX_OK)
		give_up(c->url, &err);
	return store;
}

static void close_server(struct store_case *c)
{
	api_case_end(c->server);
	c->server = NULL;
}

__attribute__((constructor)) static void introduce(void)
{
	store_case_open_server = open_server;
	store_case_close_server = close_server;
}
