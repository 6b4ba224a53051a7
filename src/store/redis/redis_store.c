/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_store.c - "redis://", one ledger for many machines.
 *
 * Submits go to the client (redis_client.c), which talks to the server on its own thread. The
 * rules run in the server, as scripts. Walks over the whole ledger block the caller
 * (redis_walk.c).
 */
#include "store/redis/redis_store.h"

#include <assert.h>
#include <string.h>

#include <hapax/ext/store_ops.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/core.h"
#include "store/redis/redis_client.h"
#include "store/redis/redis_walk.h"

static hapax_store_submit_fn redis_submit;

struct redis_store {
	struct hapax_store base;
	struct hapax_store_ops ops;
	struct hapax_store_options options; /* complete */
	struct hx_redis_place place;
	struct hx_redis_client client;
};

static struct redis_store *downcast(struct hapax_store *store)
{
	assert(store->ops->submit == redis_submit);
	return (struct redis_store *)store;
}

static void redis_submit(
	struct hapax_store *base, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	hx_redis_client_submit(&downcast(base)->client, ops, count, completion);
}

static enum hapax_status redis_scan(
	struct hapax_store *base, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	return hx_redis_scan(&downcast(base)->client, scan, cursor, each, context, err);
}

static enum hapax_status redis_stats(
	struct hapax_store *base, struct hapax_stats *stats, hapax_counters_fn *each, void *context,
	struct hapax_error *err)
{
	return hx_redis_stats(&downcast(base)->client, stats, each, context, err);
}

static enum hapax_status redis_sweep(
	struct hapax_store *base, struct hapax_sweep *sweep, struct hapax_error *err)
{
	return hx_redis_sweep(&downcast(base)->client, sweep, err);
}

static enum hapax_status redis_count(
	struct hapax_store *base, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	return hx_redis_count(&downcast(base)->client, rows, count, err);
}

static void store_free(struct redis_store *store)
{
	/* It holds a password. */
	explicit_bzero(&store->place, sizeof(store->place));
	hx_free(store);
}

static void redis_close(struct hapax_store *base)
{
	struct redis_store *store = downcast(base);

	/* Announcements would reach a detached store. */
	hx_redis_subscriber_mute(&store->client.subscriber);
	hapax_store_detach(base);
	hx_redis_client_close(&store->client);
	store_free(store);
}

static void redis_guarantee(struct hapax_store *base, char *ret_text, size_t size)
{
	hx_redis_client_guarantee(&downcast(base)->client, ret_text, size);
}

static void redis_watch(struct hapax_store *base)
{
	hx_redis_subscriber_want(&downcast(base)->client.subscriber);
}

/*
 * The server's settings decide whether answers survive a power cut. In a Cluster, records share
 * neither a token counter nor a server.
 */
static void fill_ops(struct redis_store *store)
{
	store->ops = (struct hapax_store_ops){
		.version = HAPAX_STORE_OPS_VERSION,
		.name = "redis",
		.capabilities = HAPAX_STORE_CLOCK,
		.submit = redis_submit,
		.scan = redis_scan,
		.stats = redis_stats,
		.sweep = redis_sweep,
		.count = redis_count,
		.close = redis_close,
		.guarantee = redis_guarantee,
		.watch = redis_watch,
	};
	if (!store->place.is_cluster)
		store->ops.capabilities |= HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY;
	if (store->client.is_durable)
		store->ops.capabilities |= HAPAX_STORE_DURABLE;
}

/* Counts per partition cannot limit the total. */
static enum hapax_status fit_cluster(struct hapax_store_options *options, struct hapax_error *err)
{
	if (options->keys_max != 0 || options->bytes_max != 0)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"a Redis Cluster cannot limit keys or bytes over all servers; remove "
			"the limits, and set maxmemory");
	/* Twice its share: names are unevenly spread, and too late is better than too early. */
	options->parked_max = options->parked_max / (HX_REDIS_PARTITIONS / 2) + 1;
	return HAPAX_OK;
}

enum hapax_status hx_redis_open_on(
	const struct hx_net *net, const char *url, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store_options complete;
	struct redis_store *store;
	enum hapax_status status = hx_store_options_complete(options, &complete, err);

	if (status != HAPAX_OK)
		return status;
	if (complete.evict != HAPAX_EVICT_NONE)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"a Redis store cannot evict; use memory:, or no eviction");
	store = hx_alloc_zero(1, sizeof(*store));
	if (store == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	store->options = complete;
	status = hx_redis_place_parse(url, &store->place, err);
	if (status == HAPAX_OK && store->place.is_cluster)
		status = fit_cluster(&store->options, err);
	if (status == HAPAX_OK)
		status = hx_redis_client_open(
			&store->client, &store->base, &store->place, &store->options, net, err);
	if (status != HAPAX_OK) {
		store_free(store);
		return status;
	}
	fill_ops(store);
	status = hapax_store_attach(&store->base, &store->ops, url, &complete, err);
	if (status != HAPAX_OK) {
		hx_redis_client_close(&store->client);
		store_free(store);
		return status;
	}
	*ret_store = &store->base;
	return HAPAX_OK;
}

enum hapax_status hx_redis_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	(void)path;
	return hx_redis_open_on(hx_net_system(), url, options, ret_store, err);
}
