/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.c - the thread that maintains the files in the background: segments ahead of need,
 * passes over old ones, a last frame when the log is idle.
 *
 * It measures its own intervals by the monotonic clock: they decide nothing.
 */
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/io.h"
#include "store/core.h"
#include "store/log/log_private.h"

/* Failed passes are retried after 2 s, then after twice as long, up to four minutes. */
enum { PAUSE_DOUBLINGS = 8 };

/* How far, after a crash, a clock may be behind a time that a caller has seen (I8). */
#define CLOCK_AGE_MS INT64_C(10000)

/* Has a caller seen a time much later than the last one in the log? */
static bool clock_is_old(struct hx_log *log)
{
	if (hx_log_now(log) - log->writer.mark.store_ms < CLOCK_AGE_MS)
		return false;
	return atomic_exchange_explicit(&log->was_read, 0, memory_order_relaxed) != 0;
}

/* Once a second, by the leader: is the log idle, and does its last frame lack a witness? */
struct tick_task {
	struct hx_log *log;
	uint64_t frame_count; /* at the last tick */
};

static enum hapax_status run_tick(void *context)
{
	struct tick_task *tick = context;
	struct hx_log_writer *writer = &tick->log->writer;
	bool is_idle = tick->frame_count == writer->frame_count;

	assert(tick->frame_count <= writer->frame_count);
	assert(writer->witnessed_lsn <= writer->durable_lsn);
	tick->frame_count = writer->frame_count;
	/* Anything written now would be lost at close, or land in another directory. */
	if (hx_log_directory_is_gone(&tick->log->directory)) {
		hx_log_writer_latch(writer, ENOENT, "the directory");
		return HAPAX_ERR_FAILED;
	}
	hx_log_writer_look_for_space(writer);
	if (writer->sync == HX_LOG_SYNC_LATER)
		return hx_log_writer_sync(writer);
	/* Such frames would take the room of ends. */
	if (writer->active.file < 0 || hx_log_writer_is_short(writer))
		return HAPAX_OK;
	if ((is_idle && writer->witnessed_lsn != writer->next_lsn) || clock_is_old(tick->log))
		return hx_log_writer_force(writer, 0);
	return HAPAX_OK;
}

/* Wait until there is work, or the time has come. False: stop. */
static bool wait_for_work(struct hx_log *log, int64_t deadline_ns)
{
	bool goes_on;

	hx_mutex_lock(&log->keeper_mutex);
	while (!log->keeper_stops && !log->keeper_is_called) {
		if (!hx_cond_wait_until_ns(&log->keeper_wake, &log->keeper_mutex, deadline_ns))
			break;
	}
	log->keeper_is_called = false;
	goes_on = !log->keeper_stops;
	hx_mutex_unlock(&log->keeper_mutex);
	return goes_on;
}

static bool must_stop(struct hx_log *log)
{
	bool stops;

	hx_mutex_lock(&log->keeper_mutex);
	stops = log->keeper_stops;
	hx_mutex_unlock(&log->keeper_mutex);
	return stops;
}

uint64_t hx_log_keeper_failures(struct hx_log *log, struct hapax_error *err)
{
	uint64_t failures;

	hx_mutex_lock(&log->keeper_mutex);
	failures = log->pass_failures;
	if (failures != 0 && err != NULL)
		*err = log->pass_error;
	assert(failures == 0 || log->pass_error.status != HAPAX_OK);
	hx_mutex_unlock(&log->keeper_mutex);
	return failures;
}

/*
 * The cause is a segment that has become unreadable, or a full disk: stats count it and sweep
 * reports it. Returns how long to wait: copying the same every second would only wear the disk,
 * and fill the log.
 */
static int64_t note_passes(
	struct hx_log *log, enum hapax_status status, const struct hapax_error *err)
{
	uint64_t failures;

	assert(status == HAPAX_OK || err->status != HAPAX_OK);
	hx_mutex_lock(&log->keeper_mutex);
	failures = status == HAPAX_OK ? 0 : log->pass_failures + 1;
	log->pass_failures = failures;
	if (failures != 0)
		log->pass_error = *err;
	hx_mutex_unlock(&log->keeper_mutex);
	if (failures == 0)
		return 0;
	return HX_NS_PER_S << (failures < PAUSE_DOUBLINGS ? failures : PAUSE_DOUBLINGS);
}

static enum hapax_status run_passes(struct hx_log *log, struct hapax_error *err)
{
	struct hx_log_round round = {0};
	enum hapax_status status = HAPAX_OK;
	bool more = true;

	while (more && status == HAPAX_OK && !must_stop(log) &&
	       !hx_log_writer_is_latched(&log->writer)) {
		hx_mutex_lock(&log->sweep_mutex);
		status = hx_log_pass(log, &round, &more, err);
		hx_mutex_unlock(&log->sweep_mutex);
	}
	/* Passes do not report that the store has failed. */
	return hx_log_writer_is_latched(&log->writer) ? HAPAX_OK : status;
}

static void keeper_run(void *arg)
{
	struct hx_log *log = arg;
	struct tick_task tick = {.log = log};
	int64_t unsafe_ms = hx_store_options(&log->base)->unsafe_interval_ms;
	int64_t interval_ns = unsafe_ms != 0 && unsafe_ms * HX_NS_PER_MS < HX_NS_PER_S
		? unsafe_ms * HX_NS_PER_MS
		: HX_NS_PER_S;
	int64_t tick_at_ns = hx_clock_mono_ns() + interval_ns;
	int64_t pass_at_ns = 0;

	assert(interval_ns > 0);
	assert(interval_ns <= HX_NS_PER_S);
	while (wait_for_work(log, tick_at_ns)) {
		(void)hx_log_writer_make_spare_if_wanted(&log->writer);
		if (hx_clock_mono_ns() >= tick_at_ns) {
			(void)hx_log_queue_task(&log->queue, run_tick, &tick);
			tick_at_ns = hx_clock_mono_ns() + interval_ns;
		}
		if (hx_clock_mono_ns() >= pass_at_ns) {
			struct hapax_error err = {0};
			enum hapax_status status = run_passes(log, &err);

			pass_at_ns = hx_clock_mono_ns() + note_passes(log, status, &err);
		}
	}
}

enum hapax_status hx_log_keeper_start(struct hx_log *log, struct hapax_error *err)
{
	enum hapax_status status = hx_thread_start(&log->keeper, keeper_run, log, "hapax-log", err);

	assert(!log->keeper_runs);
	assert(!log->keeper_stops);
	log->keeper_runs = status == HAPAX_OK;
	return status;
}

void hx_log_keeper_call(struct hx_log *log)
{
	if (!log->keeper_runs)
		return;
	hx_mutex_lock(&log->keeper_mutex);
	log->keeper_is_called = true;
	hx_cond_signal(&log->keeper_wake);
	hx_mutex_unlock(&log->keeper_mutex);
}

void hx_log_keeper_stop(struct hx_log *log)
{
	if (!log->keeper_runs)
		return;
	hx_mutex_lock(&log->keeper_mutex);
	assert(!log->keeper_stops);
	log->keeper_stops = true;
	hx_cond_signal(&log->keeper_wake);
	hx_mutex_unlock(&log->keeper_mutex);
	hx_thread_join(&log->keeper);
	log->keeper_runs = false;
}
