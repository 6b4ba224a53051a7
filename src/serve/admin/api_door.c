/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_door.c - the native API behind the admin door (src/api).
 */
#include <string.h>

#include "api/api.h"
#include "observe/feed.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"
#include "serve/admin/auth.h"
#include "serve/daemon/daemon.h"

void hx_admin_answered(void *context, unsigned status, int64_t took_ns)
{
	struct hx_serve *serve = context;

	hx_metrics_add(
		serve->cells, HX_METRIC_REQUESTS, 0, hx_metrics_request(HX_DOOR_ADMIN, status), 1);
	hx_metrics_observe_ns(serve->cells, HX_METRIC_REQUEST_DURATION, 0, HX_DOOR_ADMIN, took_ns);
	hx_metrics_add(serve->cells, HX_METRIC_IN_PROGRESS, 0, HX_DOOR_ADMIN, -1);
}

static void suspect(void *context)
{
	hx_serve_suspect(context);
}

static enum hapax_status reload(void *context, struct hapax_error *err)
{
	return hx_serve_reload(context, err);
}

static bool tell_outbox(
	void *context, struct hapax_relay_stats *ret_stats, struct hapax_error *ret_trouble)
{
	struct hx_serve *serve = context;

	return hx_outbox_relay_stats(&serve->outbox, ret_stats) &&
		hx_background_look(&serve->outbox.background, ret_trouble);
}

static void list_consumers(void *context, hx_api_consumer_fn *each, void *each_context)
{
	struct hx_serve *serve = context;

	hx_consumers_list(&serve->consumers, each, each_context);
}

static bool pause_consumer(void *context, const char *name, const struct hx_pause *pause)
{
	struct hx_serve *serve = context;

	return hx_consumers_pause(&serve->consumers, name, pause);
}

enum hapax_status hx_serve_open_api(struct hx_serve *serve, struct hapax_error *err)
{
	const struct hx_api_options options = {
		.store = serve->store,
		.reactor = &serve->reactor,
		.budget = &serve->memory.listeners,
		.log = serve->log,
		.decisions = serve->decisions.log,
		.cells = serve->cells,
		.conditions = &serve->conditions,
		.feed = serve->feed,
		.writer = serve->loop_count,
		.current = &serve->current,
		.source = serve->source,
		.audit_path = serve->config->log.audit,
		.outbox = tell_outbox,
		.consumers = list_consumers,
		.pause = pause_consumer,
		.reload = reload,
		.answered = hx_admin_answered,
		.suspect = suspect,
		.context = serve,
	};

	return hx_api_open(&options, &serve->api, err);
}

/* False: refused. */
static bool identify(
	struct hx_serve *serve, struct hx_http_exchange *exchange, struct hx_api_caller *ret_caller)
{
	struct hx_auth_identity identity;

	_Static_assert((int)HX_ROLE_ADMIN == (int)HX_API_ROLE_ADMIN, "the same roles");
	if (!hx_admin_identify(serve, exchange, &identity))
		return false;
	*ret_caller = (struct hx_api_caller){
		.role = (enum hx_api_role)identity.role, .is_read_only = identity.is_open};
	memcpy(ret_caller->who, identity.name, sizeof(identity.name));
	memcpy(ret_caller->tenant, identity.tenant, sizeof(identity.tenant));
	return true;
}

bool hx_serve_handle_api(struct hx_serve *serve, struct hx_http_exchange *exchange)
{
	struct hx_api_caller caller;

	if (!hx_api_has(exchange->head.path))
		return false;
	hx_metrics_add(serve->cells, HX_METRIC_IN_PROGRESS, 0, HX_DOOR_ADMIN, 1);
	if (identify(serve, exchange, &caller))
		hx_api_handle(serve->api, exchange, &caller);
	else
		hx_admin_answered(serve, 429, 0);
	return true;
}

void hx_serve_api_gone(struct hx_http_exchange *exchange)
{
	struct hx_serve *serve = exchange->server->context;

	hx_api_gone(serve->api, exchange);
}
