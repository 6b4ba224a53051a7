/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_store.c - "memory:", the index without files.
 *
 * The caller's thread decides every operation before submit returns (index/work.c).
 */
#include "store/memory/memory_store.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "store/clock_mark.h"
#include "store/core.h"
#include "store/index/work.h"

static const struct hapax_store_ops memory_ops;

struct memory_store {
	struct hapax_store base;
	struct hx_index *index;
	const struct hapax_clock *clock; /* used by this process only, so a cheap clock is enough */
	struct hx_clock_mark mark;
};

static struct memory_store *memory_of(struct hapax_store *store)
{
	assert(store->ops == &memory_ops);
	return (struct memory_store *)store;
}

static int64_t now_of(struct memory_store *memory)
{
	return hx_clock_mark_now(&memory->mark, memory->clock);
}

static struct hx_work_context context_of(struct memory_store *memory)
{
	const struct hapax_store_options *options = hx_store_options(&memory->base);

	return (struct hx_work_context){
		.index = memory->index,
		.rules =
			{
				.now_ms = now_of(memory),
				.result_size_max = options->result_size_max,
				.fresh_token = HX_TOKEN_MAX, /* taken later */
			},
		.parked_max = options->parked_max,
	};
}

static void memory_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct memory_store *memory = memory_of(store);
	bool is_single = count == 1 && !(ops[0].flags & HAPAX_OP_ALL_OR_NOTHING);
	struct hx_index_key key;
	struct hx_work_context context;

	/* Prefetch the bucket of a single operation while the clock is read. */
	if (is_single) {
		hx_index_key_init(memory->index, &key, ops[0].private_scope, ops[0].key);
		hx_index_prefetch_bucket(&key);
	}
	context = context_of(memory);
	if (is_single) {
		unsigned seat = hx_epoch_enter(&memory->index->epoch);

		hx_index_run_one(&context, &key, ops);
		hx_epoch_leave(&memory->index->epoch, seat);
	} else {
		(void)hx_index_run_all(&context, ops, count);
	}
	hapax_store_complete(store, ops, count, completion);
}

struct scan {
	hapax_scan_fn *each;
	void *context;
};

/* Every result is in its record. */
static int hand_out(
	const struct hapax_record *record, const struct hx_elsewhere *elsewhere, void *context)
{
	const struct scan *scan = context;

	assert(elsewhere == NULL);
	(void)elsewhere;
	return scan->each(record, scan->context);
}

static enum hapax_status memory_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct memory_store *memory = memory_of(store);
	struct scan out = {each, context};

	(void)err;
	hx_index_scan(memory->index, scan, cursor, now_of(memory), hand_out, &out);
	return HAPAX_OK;
}

static enum hapax_status memory_stats(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	struct memory_store *memory = memory_of(store);

	(void)each; /* the core keeps the rows, since the table has no count */
	(void)context;
	(void)err;
	stats->now_ms = now_of(memory);
	stats->skew_ms = stats->now_ms - memory->clock->wall_ms(memory->clock->context);
	hx_index_stats(memory->index, stats, stats->now_ms);
	return HAPAX_OK;
}

static enum hapax_status memory_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err)
{
	struct memory_store *memory = memory_of(store);

	(void)err;
	hx_index_sweep(memory->index, sweep, now_of(memory));
	return HAPAX_OK;
}

static void memory_close(struct hapax_store *store)
{
	struct memory_store *memory = memory_of(store);

	hapax_store_detach(store);
	hx_index_free(memory->index);
	hx_free(memory);
}

/*
 * Tokens begin at the time in microseconds. A caller that remembers its largest token stays
 * correct after a restart, unless the wall clock went back or a million tokens a second were
 * granted.
 */
static uint64_t first_token(const struct hapax_clock *clock)
{
	int64_t wall_ms = clock->wall_ms(clock->context);

	return wall_ms > 0 && wall_ms < (int64_t)(HX_TOKEN_MAX / 2000) ? (uint64_t)wall_ms * 1000
								       : 0;
}

static const struct hapax_store_ops memory_ops = {
	.version = HAPAX_STORE_OPS_VERSION,
	.name = "memory",
	.capabilities = HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY | HAPAX_STORE_CLOCK,
	.submit = memory_submit,
	.scan = memory_scan,
	.stats = memory_stats,
	.sweep = memory_sweep,
	.close = memory_close,
	.is_synchronous = 1,
};

enum hapax_status hx_memory_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct memory_store *memory;
	const struct hapax_store_options *complete;
	enum hapax_status status;

	if (*path != '\0')
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid store URL: nothing may follow 'memory:'");
	memory = hx_alloc_zero(1, sizeof(*memory));
	if (memory == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	/* The index needs the scopes of the core; the housekeeper needs the index. */
	status = hx_store_attach_quietly(&memory->base, &memory_ops, url, options, err);
	if (status != HAPAX_OK) {
		hx_free(memory);
		return status;
	}
	complete = hx_store_options(&memory->base);
	memory->clock = hx_clock_cheap(complete->clock);
	hx_clock_mark_init(&memory->mark, memory->clock);
	status = hx_index_new(
		&(struct hx_index_setup){
			.scopes = hx_store_scopes(&memory->base),
			.bytes_max = complete->bytes_max,
			.keys_max = complete->keys_max,
			.evict = complete->evict,
			.token = first_token(complete->clock),
		},
		&memory->index, err);
	if (status != HAPAX_OK) {
		memory_close(&memory->base);
		return status;
	}
	status = hx_store_start_housekeeping(&memory->base, err);
	if (status == HAPAX_OK && !(complete->flags & HAPAX_STORE_NO_HOUSEKEEPING))
		status = hx_ahead_start(memory->index, err);
	if (status != HAPAX_OK) {
		memory_close(&memory->base);
		return status;
	}
	*ret_store = &memory->base;
	return HAPAX_OK;
}
