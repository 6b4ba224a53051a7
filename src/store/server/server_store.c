/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_store.c - "http://", "https://", "http+unix:": the ledger of a daemon, over its API.
 *
 * Submits go to the client (server_client.c), which talks to the daemon on its own thread. The
 * daemon decides everything, with its store, its clock and its settings.
 */
#include "store/server/server_store.h"

#include <assert.h>
#include <string.h>

#include <hapax/ext/store_ops.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/core.h"
#include "store/server/server_client.h"
#include "store/server/server_place.h"
#include "store/server/server_walk.h"

/* A daemon may have to ask a broker. */
enum { CALL_MS_MAX = 60 * 1000 };

static hapax_store_submit_fn server_submit;

struct server_store {
	struct hapax_store base;
	struct hapax_store_ops ops;
	struct hx_server_place place;
	struct hx_server_client client;
};

static struct server_store *downcast(struct hapax_store *store)
{
	assert(store->ops->submit == server_submit);
	return (struct server_store *)store;
}

static void server_submit(
	struct hapax_store *base, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	hx_server_client_submit(&downcast(base)->client, ops, count, completion);
}

static enum hapax_status server_scan(
	struct hapax_store *base, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	return hx_server_scan(&downcast(base)->client, scan, cursor, each, context, err);
}

static enum hapax_status server_stats(
	struct hapax_store *base, struct hapax_stats *stats, hapax_counters_fn *each, void *context,
	struct hapax_error *err)
{
	const struct hapax_clock *clock = hx_store_options(base)->clock;
	enum hapax_status status =
		hx_server_stats(&downcast(base)->client, stats, each, context, NULL, err);

	if (status == HAPAX_OK)
		stats->skew_ms = stats->now_ms - clock->wall_ms(clock->context);
	return status;
}

static enum hapax_status server_sweep(
	struct hapax_store *base, struct hapax_sweep *sweep, struct hapax_error *err)
{
	return hx_server_sweep(&downcast(base)->client, sweep, err);
}

enum hapax_status hapax_store_call(
	struct hapax_store *base, const char *method, const char *path, struct hapax_bytes body,
	struct hapax_buf *reply, struct hapax_error *err)
{
	if (base == NULL || base->ops->submit != server_submit)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0, "only a daemon's store has an API to call");
	return hx_server_client_call(
		&downcast(base)->client, method, path, body, CALL_MS_MAX, reply, err);
}

/* The daemon counted them when it decided. */
static enum hapax_status server_count(
	struct hapax_store *base, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	(void)base;
	(void)rows;
	(void)count;
	(void)err;
	return HAPAX_OK;
}

static void server_close(struct hapax_store *base)
{
	struct server_store *store = downcast(base);

	hapax_store_detach(base);
	hx_server_client_close(&store->client);
	hx_free(store);
}

/* Ask what the daemon's store can do. It cannot join a transaction of ours. */
static enum hapax_status greet(struct server_store *store, struct hapax_error *err)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	unsigned capabilities = 0;
	enum hapax_status status =
		hx_server_stats(&store->client, &stats, NULL, NULL, &capabilities, err);

	store->ops = (struct hapax_store_ops){
		.version = HAPAX_STORE_OPS_VERSION,
		.name = "http",
		.capabilities =
			(capabilities &
			 (HAPAX_STORE_DURABLE | HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY)) |
			HAPAX_STORE_CLOCK,
		.submit = server_submit,
		.scan = server_scan,
		.stats = server_stats,
		.sweep = server_sweep,
		.count = server_count,
		.close = server_close,
	};
	/* The request changes nothing, so it cannot be uncertain. */
	return status == HAPAX_ERR_UNCERTAIN ? HAPAX_ERR_UNAVAILABLE : status;
}

static enum hapax_status check_options(
	const struct hapax_store_options *options, struct hapax_error *err)
{
	if (options->evict != HAPAX_EVICT_NONE || options->keys_max != 0 || options->bytes_max != 0)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"limits belong to the server; set them there");
	return HAPAX_OK;
}

enum hapax_status hx_server_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store_options complete;
	struct server_store *store;
	enum hapax_status status = hx_store_options_complete(options, &complete, err);

	(void)path;
	if (status == HAPAX_OK)
		status = check_options(&complete, err);
	if (status != HAPAX_OK)
		return status;
	/* The daemon does its own housekeeping. */
	complete.flags |= HAPAX_STORE_NO_HOUSEKEEPING;
	store = hx_alloc_zero(1, sizeof(*store));
	if (store == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	status = hx_server_place_parse(url, &store->place, err);
	if (status == HAPAX_OK)
		status = hx_server_client_open(
			&store->client, &store->base, &store->place, complete.timeout_ms, err);
	if (status != HAPAX_OK) {
		hx_free(store);
		return status;
	}
	status = greet(store, err);
	if (status == HAPAX_OK)
		status = hapax_store_attach(&store->base, &store->ops, url, &complete, err);
	if (status != HAPAX_OK) {
		hx_server_client_close(&store->client);
		hx_free(store);
		return status;
	}
	*ret_store = &store->base;
	return HAPAX_OK;
}
