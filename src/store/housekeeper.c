/* SPDX-License-Identifier: Apache-2.0 */
/*
 * housekeeper.c - the thread that keeps a store tidy in the background.
 *
 * Once a second it moves counters to where they are kept. Every sweep_interval_ms it removes
 * expired records, in pieces so small that no request waits for them. After each piece it rests
 * for as long as the piece took: half of a store's time is left to requests. It measures its own
 * intervals by the monotonic clock: they decide nothing.
 */
#include "base/clock.h"
#include "store/core_private.h"
#include "store/counting.h"

static bool keeper_must_stop(struct hx_store_core *core)
{
	bool stops;

	hx_mutex_lock(&core->keeper_mutex);
	stops = core->keeper_stops;
	hx_mutex_unlock(&core->keeper_mutex);
	return stops;
}

/* Wait until then, or until the thread must stop. */
static void keeper_rest(struct hx_store_core *core, int64_t until_ns)
{
	hx_mutex_lock(&core->keeper_mutex);
	while (!core->keeper_stops && hx_clock_mono_ns() < until_ns)
		(void)hx_cond_wait_until_ns(&core->keeper_wake, &core->keeper_mutex, until_ns);
	hx_mutex_unlock(&core->keeper_mutex);
}

/* Errors are counted here, and reported by the operations that meet them. */
static bool sweep_all(struct hapax_store *store, struct hapax_sweep *sum)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	int64_t begun_ns, ended_ns;

	do {
		begun_ns = hx_clock_mono_ns();
		if (hapax_store_sweep(store, &sweep, NULL) != HAPAX_OK)
			return false;
		ended_ns = hx_clock_mono_ns();
		sum->looked += sweep.looked;
		sum->removed += sweep.removed;
		sum->lapsed += sweep.lapsed;
		sum->remaining = sweep.remaining;
		keeper_rest(store->core, ended_ns + (ended_ns - begun_ns));
	} while (!sweep.done && !keeper_must_stop(store->core));
	return true;
}

static void sweep_and_count(struct hapax_store *store)
{
	struct hx_store_core *core = store->core;
	struct hapax_sweep sum = HAPAX_SWEEP_INIT;
	int64_t begin_ns = hx_clock_mono_ns();
	int64_t took_ns;
	bool is_whole = sweep_all(store, &sum);

	if (!is_whole)
		atomic_fetch_add(&core->sweep_failures, 1);
	took_ns = hx_clock_mono_ns() - begin_ns;
	atomic_fetch_add(&core->sweep_ns, (uint64_t)took_ns);
	atomic_fetch_add(&core->sweeps, 1);
	if (is_whole && core->options.swept != NULL)
		core->options.swept(&sum, took_ns / HX_NS_PER_MS, core->options.swept_context);
}

static void keeper_run(void *arg)
{
	struct hapax_store *store = arg;
	struct hx_store_core *core = store->core;
	int64_t sweep_at_ns = hx_clock_mono_ns() + core->options.sweep_interval_ms * HX_NS_PER_MS;

	while (!keeper_must_stop(core)) {
		(void)hx_counting_flush(store, NULL);
		if (hx_clock_mono_ns() >= sweep_at_ns) {
			sweep_and_count(store);
			sweep_at_ns =
				hx_clock_mono_ns() + core->options.sweep_interval_ms * HX_NS_PER_MS;
		}
		keeper_rest(core, hx_clock_mono_ns() + HX_NS_PER_S);
	}
}

/* Added, not set: a store in front of another one has no housekeeper of its own. */
void hx_housekeeper_report(const struct hapax_store *store, struct hapax_stats *stats)
{
	const struct hx_store_core *core = store->core;

	stats->sweeps += atomic_load(&core->sweeps);
	stats->sweep_ns += atomic_load(&core->sweep_ns);
	stats->sweep_failures += atomic_load(&core->sweep_failures);
}

enum hapax_status hx_housekeeper_start(struct hapax_store *store, struct hapax_error *err)
{
	struct hx_store_core *core = store->core;
	enum hapax_status status =
		hx_thread_start(&core->keeper, keeper_run, store, "hapax-keeper", err);

	core->keeper_runs = status == HAPAX_OK;
	return status;
}

void hx_housekeeper_stop(struct hapax_store *store)
{
	struct hx_store_core *core = store->core;

	if (!core->keeper_runs)
		return;
	hx_mutex_lock(&core->keeper_mutex);
	core->keeper_stops = true;
	hx_cond_signal(&core->keeper_wake);
	hx_mutex_unlock(&core->keeper_mutex);
	hx_thread_join(&core->keeper);
	core->keeper_runs = false;
}
