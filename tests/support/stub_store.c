/* SPDX-License-Identifier: Apache-2.0 */
#include "support/stub_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stub_store *stub_of(struct hapax_store *store)
{
	return (struct stub_store *)store;
}

static void stub_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_OK)
			ops[i].outcome = stub_of(store)->outcome;
	}
	hapax_store_complete(store, ops, count, completion);
}

static enum hapax_status stub_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	(void)store;
	(void)scan;
	(void)each;
	(void)context;
	(void)err;
	cursor->done = 1;
	return HAPAX_OK;
}

static enum hapax_status stub_stats(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	(void)store;
	(void)stats;
	(void)each;
	(void)context;
	(void)err;
	return HAPAX_OK;
}

static enum hapax_status stub_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err)
{
	(void)err;
	sweep->done = 1;
	hx_event_set(&stub_of(store)->swept);
	return HAPAX_OK;
}

static enum hapax_status stub_count(
	struct hapax_store *store, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	struct stub_store *stub = stub_of(store);

	(void)err;
	if (stub->count_status != HAPAX_OK)
		return stub->count_status;
	for (size_t i = 0; i < count; i++) {
		size_t used = strlen(stub->names);

		snprintf(
			stub->names + used, sizeof(stub->names) - used, "%.*s/%.*s ",
			(int)rows[i].tenant.size, (const char *)rows[i].tenant.data,
			(int)rows[i].group.size, (const char *)rows[i].group.data);
		for (size_t k = 0; k < HAPAX_DECISION_COUNT; k++)
			stub->kept[k] += rows[i].counts[k];
	}
	return HAPAX_OK;
}

static void stub_close(struct hapax_store *store)
{
	hapax_store_detach(store);
}

void stub_store_open(struct stub_store *stub, unsigned flags)
{
	static const struct hapax_store_ops ops = {
		.version = HAPAX_STORE_OPS_VERSION,
		.name = "stub",
		.capabilities = HAPAX_STORE_MULTI_KEY,
		.submit = stub_submit,
		.scan = stub_scan,
		.stats = stub_stats,
		.sweep = stub_sweep,
		.close = stub_close,
		.count = stub_count,
		.is_synchronous = 1,
	};
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;

	memset(stub, 0, sizeof(*stub));
	options.flags = flags;
	options.sweep_interval_ms = 1;
	if (hapax_store_attach(&stub->base, &ops, "stub:", &options, NULL) != HAPAX_OK)
		abort();
}
