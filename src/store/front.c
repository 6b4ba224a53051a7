/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.c - what every store in front of another one leaves to that store.
 */
#include "store/front.h"

#include <assert.h>

static struct hx_front *front_of(struct hapax_store *store)
{
	assert(store->ops == &((struct hx_front *)store)->ops);
	return (struct hx_front *)store;
}

static enum hapax_status front_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	return hapax_store_scan(front_of(store)->store, scan, cursor, each, context, err);
}

static enum hapax_status front_stats(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	return hapax_store_stats(front_of(store)->store, stats, each, context, err);
}

static enum hapax_status front_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err)
{
	return hapax_store_sweep(front_of(store)->store, sweep, err);
}

static enum hapax_status front_count(
	struct hapax_store *store, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	struct hapax_store *inner = front_of(store)->store;

	return inner->ops->count == NULL ? HAPAX_OK : inner->ops->count(inner, rows, count, err);
}

static void front_guarantee(struct hapax_store *store, char *ret_text, size_t size)
{
	hapax_store_guarantee(front_of(store)->store, ret_text, size);
}

static void pass_on(
	struct hapax_bytes tenant, struct hapax_bytes group, struct hapax_bytes key, void *context)
{
	hapax_store_announce(context, tenant, group, key);
}

static void front_watch(struct hapax_store *store)
{
	struct hx_front *front = front_of(store);

	if (atomic_exchange(&front->is_watching, 1) == 0)
		hapax_store_watch(front->store, &front->watcher);
}

void hx_front_init(
	struct hx_front *front, struct hapax_store *store, hapax_store_submit_fn *submit,
	hapax_store_close_fn *close)
{
	front->store = store;
	front->watcher = (struct hapax_watcher){.fn = pass_on, .context = &front->base};
	front->ops = (struct hapax_store_ops){
		.version = HAPAX_STORE_OPS_VERSION,
		.name = hapax_store_name(store),
		.capabilities = hapax_store_capabilities(store),
		.submit = submit,
		.scan = front_scan,
		.stats = front_stats,
		.sweep = front_sweep,
		.close = close,
		.count = front_count,
		.guarantee = front_guarantee,
		.watch = front_watch,
	};
}

enum hapax_status hx_front_attach(
	struct hx_front *front, const struct hapax_store_options *options, struct hapax_error *err)
{
	return hapax_store_attach(
		&front->base, &front->ops, hapax_store_url(front->store), options, err);
}

void hx_front_detach(struct hx_front *front)
{
	if (atomic_load(&front->is_watching) != 0)
		hapax_store_unwatch(front->store, &front->watcher);
	hapax_store_detach(&front->base);
}
