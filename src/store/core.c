/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.c - the common part of every store: options, scopes, counters, a housekeeper.
 */
#include "store/core.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/time.h"
#include "store/core_private.h"
#include "store/counting.h"
#include "wire/public_url.h"

#define SWEEP_INTERVAL_MS_DEFAULT (5 * HX_MS_PER_MIN)
#define TIMEOUT_MS_DEFAULT        INT64_C(5000)

/* Large, so that the work at the ends of a segment is rare. */
#define SEGMENT_BYTES_DEFAULT (UINT64_C(64) << 20)
#define SEGMENT_BYTES_MIN     (UINT64_C(16) << 10)
#define SEGMENT_BYTES_MAX     (UINT64_C(1) << 30)

/* Any span above this is a mistake in units. */
#define INTERVAL_MS_MAX (366 * HX_MS_PER_DAY)

const struct hapax_store_options *hx_store_options(const struct hapax_store *store)
{
	return &store->core->options;
}

struct hx_scope_table *hx_store_scopes(const struct hapax_store *store)
{
	return &store->core->scopes;
}

static bool span_is_valid(int64_t span_ms)
{
	return span_ms > 0 && span_ms <= INTERVAL_MS_MAX;
}

static void fill_defaults(struct hapax_store_options *options)
{
	if (options->clock == NULL)
		options->clock = hapax_clock_system();
	if (options->parked_max == 0)
		options->parked_max = HX_PARKED_MAX_DEFAULT;
	if (options->result_size_max == 0)
		options->result_size_max = HX_RESULT_SIZE_DEFAULT;
	if (options->clock_step_ms_max == 0)
		options->clock_step_ms_max = HX_CLOCK_STEP_MS_DEFAULT;
	if (options->sweep_interval_ms == 0)
		options->sweep_interval_ms = SWEEP_INTERVAL_MS_DEFAULT;
	if (options->timeout_ms == 0)
		options->timeout_ms = TIMEOUT_MS_DEFAULT;
	if (options->segment_bytes == 0)
		options->segment_bytes = SEGMENT_BYTES_DEFAULT;
}

enum hapax_status hx_store_options_complete(
	const struct hapax_store_options *options, struct hapax_store_options *ret_options,
	struct hapax_error *err)
{
	struct hapax_store_options complete = HAPAX_STORE_OPTIONS_INIT;

	if (options != NULL) {
		/*
		 * An older caller knows fewer members. A caller newer than this library is
		 * refused.
		 */
		if (options->size < sizeof(options->size) || options->size > sizeof(complete))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the store options have an unknown size; use "
				"HAPAX_STORE_OPTIONS_INIT");
		memcpy(&complete, options, options->size);
	}
	fill_defaults(&complete);
	if (complete.result_size_max > HX_RESULT_SIZE_LIMIT)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "result_size_max must be at most 16 MiB");
	if (!span_is_valid(complete.clock_step_ms_max) ||
	    !span_is_valid(complete.sweep_interval_ms) || !span_is_valid(complete.timeout_ms))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"intervals in the store options must be 0 to one year");
	if (complete.evict != HAPAX_EVICT_NONE && complete.evict != HAPAX_EVICT_LRU)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "unknown eviction policy");
	if (complete.segment_bytes < SEGMENT_BYTES_MIN ||
	    complete.segment_bytes > SEGMENT_BYTES_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "segment_bytes must be 16 KiB to 1 GiB");
	if (complete.unsafe_interval_ms < 0 || complete.unsafe_interval_ms > INTERVAL_MS_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "unsafe_interval_ms must be 0 to one year");
	*ret_options = complete;
	return HAPAX_OK;
}

static void core_free(struct hx_store_core *core)
{
	hx_scope_table_done(&core->scopes);
	hx_counter_book_done(&core->book);
	hx_mutex_done(&core->watch_mutex);
	hx_mutex_done(&core->flush_mutex);
	hx_mutex_done(&core->keeper_mutex);
	hx_cond_done(&core->keeper_wake);
	hx_free(core->url);
	hx_free(core);
}

/* The part of a URL that users may see in logs, replies and messages. NULL: no memory. */
static char *public_url(const char *url)
{
	struct hapax_buf text;
	char *copy = NULL;

	hx_buf_init(&text, SIZE_MAX);
	if (hx_buf_append(&text, url, strlen(url)) == HAPAX_OK &&
	    hx_public_url(&text, NULL) == HAPAX_OK && hx_buf_append_byte(&text, '\0') == HAPAX_OK)
		copy = hx_alloc(text.size);
	if (copy != NULL)
		memcpy(copy, text.data, text.size);
	if (text.capacity > 0)
		explicit_bzero(text.data, text.capacity);
	hx_buf_done(&text);
	return copy;
}

static struct hx_store_core *core_new(const char *url, const struct hapax_store_options *options)
{
	struct hx_store_core *core = hx_alloc_zero(1, sizeof(*core));

	if (core == NULL)
		return NULL;
	core->url = public_url(url);
	if (core->url == NULL || hx_scope_table_init(&core->scopes) != HAPAX_OK) {
		hx_free(core->url);
		hx_free(core);
		return NULL;
	}
	core->options = *options;
	hx_clock_mark_init(&core->mark, options->clock);
	hx_counter_book_init(&core->book);
	hx_mutex_init(&core->flush_mutex);
	hx_mutex_init(&core->watch_mutex);
	hx_mutex_init(&core->keeper_mutex);
	hx_cond_init(&core->keeper_wake);
	return core;
}

enum hapax_status hx_store_attach_quietly(
	struct hapax_store *store, const struct hapax_store_ops *ops, const char *url,
	const struct hapax_store_options *options, struct hapax_error *err)
{
	struct hapax_store_options complete = HAPAX_STORE_OPTIONS_INIT;
	enum hapax_status status;

	if (store == NULL || ops == NULL || url == NULL ||
	    ops->version != HAPAX_STORE_OPS_VERSION || ops->name == NULL || ops->submit == NULL ||
	    ops->scan == NULL || ops->stats == NULL || ops->sweep == NULL || ops->close == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the store does not implement all operations");
	status = hx_store_options_complete(options, &complete, err);
	if (status != HAPAX_OK)
		return status;
	store->core = core_new(url, &complete);
	if (store->core == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	store->ops = ops;
	return HAPAX_OK;
}

enum hapax_status hx_store_start_housekeeping(struct hapax_store *store, struct hapax_error *err)
{
	if (store->core->options.flags & HAPAX_STORE_NO_HOUSEKEEPING)
		return HAPAX_OK;
	return hx_housekeeper_start(store, err);
}

enum hapax_status hapax_store_attach(
	struct hapax_store *store, const struct hapax_store_ops *ops, const char *url,
	const struct hapax_store_options *options, struct hapax_error *err)
{
	enum hapax_status status = hx_store_attach_quietly(store, ops, url, options, err);

	if (status == HAPAX_OK)
		status = hx_store_start_housekeeping(store, err);
	if (status != HAPAX_OK && store != NULL)
		hapax_store_detach(store);
	return status;
}

void hapax_store_detach(struct hapax_store *store)
{
	if (store->core == NULL)
		return;
	hx_housekeeper_stop(store);
	core_free(store->core);
	store->core = NULL;
}

void hapax_store_close(struct hapax_store *store)
{
	if (store == NULL)
		return;
	hx_housekeeper_stop(store);
	(void)hx_counting_flush(store, NULL);
	store->ops->close(store);
}

const char *hapax_store_url(const struct hapax_store *store)
{
	return store->core->url;
}

const char *hapax_store_name(const struct hapax_store *store)
{
	return store->ops->name;
}

unsigned hapax_store_capabilities(const struct hapax_store *store)
{
	return store->ops->capabilities;
}

void hapax_store_guarantee(struct hapax_store *store, char *ret_text, size_t size)
{
	bool is_durable = (store->ops->capabilities & HAPAX_STORE_DURABLE) != 0;

	if (store->ops->guarantee != NULL)
		store->ops->guarantee(store, ret_text, size);
	else
		(void)snprintf(
			ret_text, size, "%s",
			is_durable ? "answers survive a power cut"
				   : "answers do not survive a power cut");
}

void hapax_store_watch(struct hapax_store *store, struct hapax_watcher *watcher)
{
	struct hx_store_core *core = store->core;

	if (store->ops->watch == NULL)
		return;
	hx_mutex_lock(&core->watch_mutex);
	watcher->next = core->watchers;
	core->watchers = watcher;
	hx_mutex_unlock(&core->watch_mutex);
	store->ops->watch(store);
}

void hapax_store_unwatch(struct hapax_store *store, struct hapax_watcher *watcher)
{
	struct hx_store_core *core = store->core;

	if (store->ops->watch == NULL)
		return;
	hx_mutex_lock(&core->watch_mutex);
	for (struct hapax_watcher **at = &core->watchers; *at != NULL; at = &(*at)->next) {
		if (*at == watcher) {
			*at = watcher->next;
			break;
		}
	}
	hx_mutex_unlock(&core->watch_mutex);
}

void hapax_store_announce(
	struct hapax_store *store, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key)
{
	struct hx_store_core *core = store->core;

	hx_mutex_lock(&core->watch_mutex);
	for (struct hapax_watcher *item = core->watchers; item != NULL; item = item->next)
		item->fn(tenant, group, key, item->context);
	hx_mutex_unlock(&core->watch_mutex);
}
