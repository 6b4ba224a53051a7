/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_store.c - "postgres://", one ledger in a database.
 *
 * Submits go to the client (postgres_client.c), which talks to the server on its own thread. The
 * rules run in the server (operate.sql). Walks over the whole ledger block the caller
 * (postgres_walk.c).
 */
#include "store/postgres/postgres_store.h"

#include <assert.h>
#include <string.h>

#include <hapax/ext/store_ops.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/core.h"
#include "store/postgres/postgres_client.h"
#include "store/postgres/postgres_walk.h"

static hapax_store_submit_fn postgres_submit;

struct postgres_store {
	struct hapax_store base;
	struct hapax_store_ops ops;
	struct hapax_store_options options; /* complete */
	struct hx_postgres_place place;
	struct hx_postgres_client client;
	_Atomic uint64_t swept;
};

static struct postgres_store *downcast(struct hapax_store *store)
{
	assert(store->ops->submit == postgres_submit);
	return (struct postgres_store *)store;
}

static void postgres_submit(
	struct hapax_store *base, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	hx_postgres_client_submit(&downcast(base)->client, ops, count, completion);
}

static enum hapax_status run_call(
	void *context, struct hx_postgres_call *call, struct hapax_error *err)
{
	return hx_postgres_client_call(context, call, err);
}

static struct hx_postgres_walk walk_of(struct postgres_store *store)
{
	return (struct hx_postgres_walk){
		.run = run_call,
		.context = &store->client,
		.session = &store->client.session,
		.options = &store->options,
		.schema = store->place.schema,
	};
}

static enum hapax_status postgres_scan(
	struct hapax_store *base, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct hx_postgres_walk walk = walk_of(downcast(base));

	return hx_postgres_scan(&walk, scan, cursor, each, context, err);
}

static enum hapax_status postgres_stats(
	struct hapax_store *base, struct hapax_stats *stats, hapax_counters_fn *each, void *context,
	struct hapax_error *err)
{
	struct postgres_store *store = downcast(base);
	struct hx_postgres_walk walk = walk_of(store);

	stats->swept = atomic_load_explicit(&store->swept, memory_order_relaxed);
	return hx_postgres_stats(&walk, stats, each, context, err);
}

static enum hapax_status postgres_sweep(
	struct hapax_store *base, struct hapax_sweep *sweep, struct hapax_error *err)
{
	struct postgres_store *store = downcast(base);
	struct hx_postgres_walk walk = walk_of(store);
	enum hapax_status status = hx_postgres_sweep(&walk, sweep, err);

	atomic_fetch_add_explicit(&store->swept, sweep->removed, memory_order_relaxed);
	return status;
}

static enum hapax_status postgres_count(
	struct hapax_store *base, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	struct hx_postgres_walk walk = walk_of(downcast(base));

	return hx_postgres_count(&walk, rows, count, err);
}

static void store_free(struct postgres_store *store)
{
	/* It holds a password. */
	explicit_bzero(&store->place, sizeof(store->place));
	hx_free(store);
}

static void postgres_close(struct hapax_store *base)
{
	struct postgres_store *store = downcast(base);

	/* Announcements would reach a detached store. */
	hx_postgres_listener_mute(&store->client.listener);
	hapax_store_detach(base);
	hx_postgres_client_close(&store->client);
	store_free(store);
}

static void postgres_guarantee(struct hapax_store *base, char *ret_text, size_t size)
{
	hx_postgres_client_guarantee(&downcast(base)->client, ret_text, size);
}

static void postgres_watch(struct hapax_store *base)
{
	hx_postgres_listener_want(&downcast(base)->client.listener);
}

/* Whether answers survive a power cut depends on the server's settings. */
static void fill_ops(struct postgres_store *store)
{
	store->ops = (struct hapax_store_ops){
		.version = HAPAX_STORE_OPS_VERSION,
		.name = "postgres",
		.capabilities =
			HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY | HAPAX_STORE_CLOCK,
		.submit = postgres_submit,
		.scan = postgres_scan,
		.stats = postgres_stats,
		.sweep = postgres_sweep,
		.count = postgres_count,
		.close = postgres_close,
		.guarantee = postgres_guarantee,
		.watch = postgres_watch,
	};
	if (store->client.session.is_durable)
		store->ops.capabilities |= HAPAX_STORE_DURABLE;
}

const struct hx_postgres_place *hx_postgres_place_of(const struct hapax_store *store)
{
	if (store->ops->submit != postgres_submit)
		return NULL;
	return &((const struct postgres_store *)store)->place;
}

enum hapax_status hx_postgres_refuse_options(
	const struct hapax_store_options *options, struct hapax_error *err)
{
	if (options->evict != HAPAX_EVICT_NONE)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"a PostgreSQL store cannot evict; use memory:, or no eviction");
	if (options->keys_max != 0 || options->bytes_max != 0)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"a PostgreSQL store has no limit of its own; limit its database or "
			"tablespace instead");
	return HAPAX_OK;
}

enum hapax_status hx_postgres_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store_options complete;
	struct postgres_store *store;
	enum hapax_status status = hx_store_options_complete(options, &complete, err);

	(void)path;
	if (status == HAPAX_OK)
		status = hx_postgres_refuse_options(&complete, err);
	if (status != HAPAX_OK)
		return status;
	store = hx_alloc_zero(1, sizeof(*store));
	if (store == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	store->options = complete;
	status = hx_postgres_place_parse(url, &store->place, err);
	if (status == HAPAX_OK)
		status = hx_postgres_client_open(
			&store->client, &store->base, &store->place, &store->options, err);
	if (status != HAPAX_OK) {
		store_free(store);
		return status;
	}
	fill_ops(store);
	status = hapax_store_attach(&store->base, &store->ops, url, &store->options, err);
	if (status != HAPAX_OK) {
		hx_postgres_client_close(&store->client);
		store_free(store);
		return status;
	}
	*ret_store = &store->base;
	return HAPAX_OK;
}
