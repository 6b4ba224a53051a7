/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.c - from the outbox to a sink: fetch, publish, wait for the confirmation, mark.
 *
 *  (1) A row is marked sent only after the sink has confirmed it. A crash in between publishes it
 *      again, under the same id.
 *  (2) The relay fetches rows only from partitions whose lease it holds. Publishing ends before the
 *      lease does. Partitions are given up between batches.
 *  (3) Each ordering key has one row in progress at a time: the next row follows when the earlier
 *      one is confirmed. A failing row holds up its own key and no other.
 *  (4) An outage of the sink or database counts against no row. A partial outage of the sink does:
 *      a row that was handed over and is not confirmed in time, while later ones are, would block
 *      all others until the outage ends.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <hapax/clock.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/uuid7.h"
#include "outbox/outbox.h"
#include "outbox/retention.h"
#include "outbox/sink.h"

enum {
	LEASE_MS = 30 * 1000,
	RETRY_MS = 1000,
	RETRY_MS_MAX = 5 * 60 * 1000,
	ATTEMPTS_MAX = 10,
	OUTAGE_MS_FIRST = 50,
	OUTAGE_MS_LAST = 5000,
	PUBLISH_MS_MAX = 20 * 1000,
	LATE_MS = 2, /* sinks measure the remaining time in milliseconds */
	/* A fetch of so many rows ends the idle state: no notification per row is needed. */
	BUSY_ROWS = 32,
	KEY_SLOTS = 2048, /* more than twice the rows of a batch */
	/* The backlog is counted every LOOK_MS, using at most a twentieth of the time. */
	LOOK_MS = 2000,
	LOOK_SHARE = 20,
};

#define RETENTION_MS (INT64_C(7) * 24 * 3600 * 1000)

struct hapax_relay {
	struct hapax_relay_options options; /* complete; the relay owns the texts */
	char *url;
	char *owner;
	char name[HX_OUTBOX_RELAY_SIZE];
	struct hapax_outbox *outbox;
	struct hx_sink *sink;
	_Atomic uint32_t is_stopped;

	struct hx_mutex mutex;
	struct hapax_relay_stats stats; /* Locks: mutex */
	struct hapax_outbox *wake;      /* the outbox while the relay runs. Locks: mutex */
	int64_t seen_ns;                /* time of stats.backlog; 0: never. Locks: mutex */

	bool is_idle; /* as last reported to the outbox */
	bool is_away; /* an outage was reported */
	unsigned failures;
	bool is_late;       /* the last batch was not confirmed in time */
	unsigned batch_now; /* rows to fetch: fewer after a late batch */
	int64_t renew_at_ns;
	int64_t lease_ends_ns;
	int64_t look_at_ns;
	struct hx_retention retention;
	struct hx_prng jitter;
	struct hx_outbox_batch batch;
	struct hx_outbox_row *wave[HX_OUTBOX_BATCH_MAX];
	uint16_t slots[KEY_SLOTS];            /* the last row of a key, from 1 */
	uint16_t before[HX_OUTBOX_BATCH_MAX]; /* the previous row of its key, from 1; 0: none */
};

/* What holds between two steps of a relay, on its own thread. */
static void relay_assert(const struct hapax_relay *relay)
{
	const struct hapax_relay_options *options = &relay->options;

	assert(options->batch_max > 0);
	assert(options->batch_max <= HX_OUTBOX_BATCH_MAX);
	assert(relay->batch_now > 0);
	assert(relay->batch_now <= options->batch_max);
	assert(relay->batch.count <= HX_OUTBOX_BATCH_MAX);
	assert(options->lease_ms > 0);
	/* Each row is tried at least once. */
	assert(options->attempts_max > 0);
	/* An outage begins with a failure and ends with progress. */
	assert(relay->is_away == (relay->failures > 0));
	assert(relay->seen_ns == 0 || relay->seen_ns < relay->look_at_ns);
}

static bool is_stopping(struct hapax_relay *relay)
{
	const struct hapax_relay_options *options = &relay->options;

	return atomic_load(&relay->is_stopped) != 0 ||
		(options->stop != NULL && options->stop(options->context) != 0);
}

static void report(struct hapax_relay *relay, enum hapax_relay_event event, const char *text)
{
	if (relay->options.report != NULL)
		relay->options.report(relay->options.context, event, text);
}

/* The sink or the database is unavailable: report it once, and back off. */
static void wait_out(struct hapax_relay *relay, const struct hapax_error *err)
{
	int64_t wait_ms = hx_backoff(
		OUTAGE_MS_FIRST, OUTAGE_MS_LAST, relay->failures++, hx_prng_next(&relay->jitter));

	assert(relay->is_away == (relay->failures > 1));
	assert(wait_ms <= OUTAGE_MS_LAST);
	if (!relay->is_away) {
		report(relay, HAPAX_RELAY_OUTAGE, err->message);
		hx_mutex_lock(&relay->mutex);
		relay->stats.outages++;
		hx_mutex_unlock(&relay->mutex);
	}
	relay->is_away = true;
	/* The leases may have lapsed when it is available again. */
	relay->renew_at_ns = 0;
	if (!is_stopping(relay))
		hx_reactor_turn(&relay->outbox->reactor, wait_ms * HX_NS_PER_MS);
}

static void note_progress(struct hapax_relay *relay)
{
	if (relay->is_away)
		report(relay, HAPAX_RELAY_RESUMED, "database and sink are available again");
	relay->is_away = false;
	relay->failures = 0;
}

/* ------------------------------------------------------------------ waves */

/* Give each row its position within its key; returns the number of waves. */
static unsigned number_waves(struct hapax_relay *relay)
{
	struct hx_outbox_batch *batch = &relay->batch;
	unsigned waves = 0;

	memset(relay->slots, 0, sizeof(relay->slots));
	for (size_t i = 0; i < batch->count; i++) {
		struct hx_outbox_row *row = &batch->rows[i];
		uint32_t slot =
			hx_crc32c(0, row->ordering_key.data, row->ordering_key.size) % KEY_SLOTS;

		row->outcome = HX_OUTBOX_UNDECIDED;
		row->is_awaited = false;
		row->is_parked = false;
		row->pause_ms = 0;
		row->wave = 0;
		relay->before[i] = 0;
		if (row->ordering_key.size > 0) {
			while (relay->slots[slot] != 0 &&
			       !hx_bytes_equal(
				       batch->rows[relay->slots[slot] - 1].ordering_key,
				       row->ordering_key))
				slot = (slot + 1) % KEY_SLOTS;
			relay->before[i] = relay->slots[slot];
			if (relay->before[i] != 0)
				row->wave = batch->rows[relay->before[i] - 1].wave + 1;
			relay->slots[slot] = (uint16_t)(i + 1);
		}
		/* The row before it in its key was fetched before it. */
		assert(relay->before[i] <= i);
		assert((row->wave == 0) == (relay->before[i] == 0));
		if (row->wave + 1 > waves)
			waves = row->wave + 1;
	}
	assert(waves <= batch->count);
	assert((waves == 0) == (batch->count == 0));
	return waves;
}

/* Collect the rows of a wave whose predecessors are sent. */
static size_t gather_wave(struct hapax_relay *relay, unsigned wave)
{
	size_t count = 0;

	for (size_t i = 0; i < relay->batch.count; i++) {
		uint16_t before = relay->before[i];

		assert(before == 0 ||
		       relay->batch.rows[before - 1].wave + 1 == relay->batch.rows[i].wave);
		if (relay->batch.rows[i].wave == wave &&
		    relay->batch.rows[i].outcome == HX_OUTBOX_UNDECIDED &&
		    (before == 0 || relay->batch.rows[before - 1].outcome == HX_OUTBOX_SENT))
			relay->wave[count++] = &relay->batch.rows[i];
	}
	return count;
}

static void judge(struct hapax_relay *relay, struct hx_outbox_row *row)
{
	const struct hapax_relay_options *options = &relay->options;
	char text[HX_OUTBOX_ERROR_SIZE + 300];

	assert(row->outcome <= HX_OUTBOX_REFUSED);
	assert(!row->is_parked);
	if (row->outcome != HX_OUTBOX_FAILED && row->outcome != HX_OUTBOX_REFUSED)
		return;
	row->is_parked = row->outcome == HX_OUTBOX_REFUSED ||
		row->attempts + 1 >= (int64_t)options->attempts_max;
	row->pause_ms = row->is_parked
		? 0
		: hx_backoff(
			  options->retry_ms, options->retry_ms_max, (uint64_t)row->attempts,
			  hx_prng_next(&relay->jitter));
	/* A row that failed is parked, or paused: at once it would come first in the next batch. */
	assert(row->is_parked == (row->pause_ms == 0));
	assert(row->pause_ms <= options->retry_ms_max);
	/* The next step renews, and so sets aside the rows behind it: a fetch must not scan them. */
	if (row->is_parked)
		relay->renew_at_ns = 0;
	(void)snprintf(
		text, sizeof(text), "event %.*s, attempt %" PRId64 ": %s", (int)row->id.size,
		(const char *)row->id.data, row->attempts + 1, row->error);
	report(relay, row->is_parked ? HAPAX_RELAY_PARKED : HAPAX_RELAY_RETRY, text);
}

/* Rows that were not added by hapax_outbox_add() may be invalid. */
static void refuse_unfit(struct hx_outbox_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		const char *fault = hx_outbox_row_fault(&batch->rows[i]);

		assert(batch->rows[i].outcome == HX_OUTBOX_UNDECIDED);
		if (fault != NULL)
			hx_sink_decide(&batch->rows[i], HX_OUTBOX_REFUSED, "%s", fault);
	}
}

/* Time that a sink gets before its silence counts; an older lease leaves less. */
static int64_t full_time_ns(const struct hapax_relay *relay)
{
	int64_t lease_ns = relay->options.lease_ms * HX_NS_PER_MS / 3 * 2;

	return lease_ns < PUBLISH_MS_MAX * HX_NS_PER_MS ? lease_ns : PUBLISH_MS_MAX * HX_NS_PER_MS;
}

/*
 * A wave has timed out. A row that was sent but not confirmed, while later rows were, has failed. A
 * row that was never sent has not: a sink may start with a later row.
 */
static void count_silent(struct hapax_relay *relay, size_t count)
{
	bool has_sent = false;

	assert(relay->is_late);
	assert(count <= relay->batch.count);
	for (size_t i = count; i > 0; i--) {
		struct hx_outbox_row *row = relay->wave[i - 1];

		if (row->outcome == HX_OUTBOX_SENT)
			has_sent = true;
		else if (row->outcome == HX_OUTBOX_UNDECIDED && row->is_awaited && has_sent)
			hx_sink_decide(
				row, HX_OUTBOX_FAILED,
				"the sink did not confirm it in time, but confirmed later ones");
	}
}

/* A sink has published the wave. */
static void assert_published(
	const struct hapax_relay *relay, size_t count, enum hapax_status status)
{
	for (size_t i = 0; i < count; i++) {
		const struct hx_outbox_row *row = relay->wave[i];

		assert(row >= relay->batch.rows);
		assert(row < relay->batch.rows + relay->batch.count);
		/* A sink that is not down has decided all rows. */
		assert(status != HAPAX_OK || row->outcome != HX_OUTBOX_UNDECIDED);
		assert(!row->is_parked);
	}
}

static enum hapax_status publish(struct hapax_relay *relay, struct hapax_error *err)
{
	unsigned waves = number_waves(relay);
	enum hapax_status status = HAPAX_OK;

	relay->is_late = false;
	refuse_unfit(&relay->batch);

	for (unsigned wave = 0; wave < waves && status == HAPAX_OK; wave++) {
		size_t count = gather_wave(relay, wave);
		int64_t now_ns = hx_clock_mono_ns();
		int64_t deadline_ns = now_ns + PUBLISH_MS_MAX * HX_NS_PER_MS;

		/* Publishing must end before the lease does. */
		if (deadline_ns > relay->lease_ends_ns)
			deadline_ns = relay->lease_ends_ns;
		if (count == 0 ||
		    relay->lease_ends_ns - now_ns < relay->options.lease_ms * HX_NS_PER_MS / 4)
			break;
		assert(count <= relay->batch.count);
		assert(deadline_ns > now_ns);
		status = relay->sink->ops->publish(
			relay->sink, relay->wave, count, deadline_ns, err);
		assert_published(relay, count, status);
		relay->is_late = status != HAPAX_OK &&
			deadline_ns - hx_clock_mono_ns() < LATE_MS * HX_NS_PER_MS;
		if (relay->is_late && deadline_ns - now_ns >= full_time_ns(relay))
			count_silent(relay, count);
	}
	for (size_t i = 0; i < relay->batch.count; i++)
		judge(relay, &relay->batch.rows[i]);
	return status;
}

/* ------------------------------------------------------------------ mark */

static void count_batch(struct hapax_relay *relay)
{
	const struct hapax_clock *clock = hapax_clock_system();
	struct hapax_relay_stats *stats = &relay->stats;
	uint64_t before = stats->published + stats->parked + stats->retried;
	size_t decided = 0;

	hx_mutex_lock(&relay->mutex);
	stats->batches++;
	for (size_t i = 0; i < relay->batch.count; i++) {
		const struct hx_outbox_row *row = &relay->batch.rows[i];

		decided += row->outcome != HX_OUTBOX_UNDECIDED;
		stats->published += row->outcome == HX_OUTBOX_SENT;
		stats->parked += row->is_parked;
		stats->retried += row->outcome == HX_OUTBOX_FAILED && !row->is_parked;
		if (row->outcome == HX_OUTBOX_SENT)
			stats->lag_ms = clock->wall_ms(clock->context) - row->created_ms;
		/* The database has its own clock. */
		if (stats->lag_ms < 0)
			stats->lag_ms = 0;
	}
	/* Each decided row counts once. */
	assert(stats->published + stats->parked + stats->retried == before + decided);
	hx_mutex_unlock(&relay->mutex);
}

/* (3): a row is sent only behind the one before it in its key, and a sent row is not parked. */
static void assert_order(const struct hapax_relay *relay, size_t index)
{
	const struct hx_outbox_row *row = &relay->batch.rows[index];
	uint16_t before = relay->before[index];

	assert(row->outcome != HX_OUTBOX_SENT || before == 0 ||
	       relay->batch.rows[before - 1].outcome == HX_OUTBOX_SENT);
	assert(row->outcome != HX_OUTBOX_SENT || !row->is_parked);
	assert(row->outcome != HX_OUTBOX_REFUSED || row->is_parked);
	assert(row->outcome != HX_OUTBOX_UNDECIDED || row->pause_ms == 0);
}

/* Retry persistently: a confirmed row that is not marked would be published again. */
static void mark(struct hapax_relay *relay)
{
	size_t decided = 0;
	char text[64];

	for (size_t i = 0; i < relay->batch.count; i++) {
		assert_order(relay, i);
		decided += relay->batch.rows[i].outcome != HX_OUTBOX_UNDECIDED;
	}
	if (decided == 0)
		return;
	(void)snprintf(text, sizeof(text), "%zu rows are decided, and marked next", decided);
	report(relay, HAPAX_RELAY_CONFIRMED, text);
	for (;;) {
		struct hapax_error err;

		if (relay->outbox->ops->mark(relay->outbox, &relay->batch, &err) == HAPAX_OK)
			break;
		wait_out(relay, &err);
		if (is_stopping(relay))
			return;
	}
	count_batch(relay);
	note_progress(relay);
	relay_assert(relay);
}

/* ------------------------------------------------------------------ run */

static enum hapax_status lease(
	struct hapax_relay *relay, unsigned *ret_partitions, struct hapax_error *err)
{
	/* The lease counts from before the request. */
	int64_t now_ns = hx_clock_mono_ns();
	enum hapax_status status = relay->outbox->ops->keep_alive(
		relay->outbox, relay->name, relay->owner, relay->options.lease_ms, relay->is_idle,
		ret_partitions, err);

	if (status == HAPAX_OK) {
		/* A renewal never makes the lease shorter. */
		assert(relay->lease_ends_ns <= now_ns + relay->options.lease_ms * HX_NS_PER_MS);
		relay->lease_ends_ns = now_ns + relay->options.lease_ms * HX_NS_PER_MS;
	}
	return status;
}

/* Renew the leases after a third of their time. */
static enum hapax_status keep_alive(struct hapax_relay *relay, struct hapax_error *err)
{
	int64_t now_ns = hx_clock_mono_ns();
	int64_t lease_ns = relay->options.lease_ms * HX_NS_PER_MS;
	unsigned partitions = 0;
	enum hapax_status status;

	if (now_ns < relay->renew_at_ns)
		return HAPAX_OK;
	status = lease(relay, &partitions, err);
	if (status == HAPAX_OK)
		status = relay->outbox->ops->settle(
			relay->outbox, relay->name, relay->options.retry_ms_max, err);
	/* If the database was slow, too little of the lease is left to publish. */
	if (status == HAPAX_OK && hx_clock_mono_ns() - now_ns > lease_ns / 8)
		status = lease(relay, &partitions, err);
	if (status != HAPAX_OK)
		return status;
	/* Notice soon when another relay joins or leaves. */
	relay->renew_at_ns =
		hx_clock_mono_ns() + lease_ns / (partitions < HX_OUTBOX_PARTITIONS ? 12 : 3);
	assert(relay->renew_at_ns > now_ns);
	hx_mutex_lock(&relay->mutex);
	relay->stats.partitions = partitions;
	hx_mutex_unlock(&relay->mutex);
	return HAPAX_OK;
}

/* Count the backlog for the statistics. Errors are ignored: the next operation reports them. */
static void look(struct hapax_relay *relay)
{
	struct hapax_outbox_status backlog = HAPAX_OUTBOX_STATUS_INIT;
	int64_t begin_ns = hx_clock_mono_ns();
	int64_t end_ns;
	enum hapax_status status;

	if (begin_ns < relay->look_at_ns)
		return;
	status = relay->outbox->ops->status(relay->outbox, false, &backlog, NULL);
	end_ns = hx_clock_mono_ns();
	relay->look_at_ns = end_ns + LOOK_MS * HX_NS_PER_MS;
	if (relay->look_at_ns < end_ns + (end_ns - begin_ns) * LOOK_SHARE)
		relay->look_at_ns = end_ns + (end_ns - begin_ns) * LOOK_SHARE;
	assert(relay->look_at_ns > end_ns);
	if (status != HAPAX_OK)
		return;
	hx_mutex_lock(&relay->mutex);
	assert(relay->seen_ns <= end_ns);
	relay->stats.backlog = backlog;
	relay->seen_ns = end_ns;
	hx_mutex_unlock(&relay->mutex);
}

/* Delete rows that were sent long ago. A failure stops nothing else; it is reported once. */
static void purge(struct hapax_relay *relay)
{
	struct hx_retention *retention = &relay->retention;
	struct hapax_error err;
	uint64_t count;
	char text[64];
	bool has_failed =
		hx_retention_step(retention, relay->outbox, relay->name, &count, &err) != HAPAX_OK;

	if (has_failed && !retention->has_failed)
		report(relay, HAPAX_RELAY_UNPURGED, err.message);
	retention->has_failed = has_failed;
	if (count == 0)
		return;
	hx_mutex_lock(&relay->mutex);
	relay->stats.purged += count;
	hx_mutex_unlock(&relay->mutex);
	if (retention->is_unfinished)
		return;
	(void)snprintf(text, sizeof(text), "%" PRIu64 " rows", retention->deleted);
	report(relay, HAPAX_RELAY_PURGED, text);
}

static enum hapax_status set_idle(struct hapax_relay *relay, bool is_idle, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	if (relay->is_idle != is_idle && relay->outbox->ops->set_idle != NULL)
		status = relay->outbox->ops->set_idle(relay->outbox, relay->name, is_idle, err);
	if (status == HAPAX_OK)
		relay->is_idle = is_idle;
	return status;
}

/* Nothing to do: wait for a notification, or poll. */
static enum hapax_status rest(struct hapax_relay *relay, bool *is_done, struct hapax_error *err)
{
	struct hapax_outbox_status outbox_status = HAPAX_OUTBOX_STATUS_INIT;
	int64_t wait_ns = relay->options.poll_ms * HX_NS_PER_MS;
	int64_t left_ns = relay->retention.due_ns - hx_clock_mono_ns();
	bool was_idle = relay->is_idle;
	enum hapax_status status = relay->sink->ops->keep_alive(relay->sink, err);

	assert(relay->batch.count == 0);
	assert(!*is_done);
	if (status == HAPAX_OK && relay->options.is_finite) {
		status = relay->outbox->ops->status(relay->outbox, false, &outbox_status, err);
		*is_done = status == HAPAX_OK && outbox_status.pending == 0 &&
			!relay->retention.is_unfinished;
	}
	if (status == HAPAX_OK && !*is_done)
		status = set_idle(relay, true, err);
	if (status != HAPAX_OK || *is_done)
		return status;
	assert(relay->is_idle);
	note_progress(relay);
	/* Rows added before we were marked idle caused no notification: look once more. */
	if (!was_idle && relay->outbox->ops->set_idle != NULL)
		wait_ns = 0;
	if (relay->retention.is_unfinished && wait_ns > left_ns)
		wait_ns = left_ns > 0 ? left_ns : 0;
	relay->outbox->ops->wait(relay->outbox, wait_ns);
	return HAPAX_OK;
}

/*
 * Ask less of a slow sink, so that some rows are marked before the lease ends. If even a single row
 * is not confirmed, the sink is not just slow: give other rows a turn.
 */
static void adapt(struct hapax_relay *relay)
{
	unsigned batch_max = relay->options.batch_max;

	if (relay->is_late && relay->batch_now > 1)
		relay->batch_now = relay->batch_now > 4 ? relay->batch_now / 4 : 1;
	else if (relay->is_late)
		relay->batch_now = batch_max;
	else if (relay->batch_now < batch_max)
		relay->batch_now =
			relay->batch_now < batch_max / 2 ? relay->batch_now * 2 : batch_max;
	assert(relay->batch_now > 0);
	assert(relay->batch_now <= batch_max);
}

static enum hapax_status step(struct hapax_relay *relay, bool *is_done, struct hapax_error *err)
{
	struct hx_outbox_batch *batch = &relay->batch;
	enum hapax_status status = keep_alive(relay, err);

	if (status == HAPAX_OK) {
		look(relay);
		purge(relay);
		status = relay->outbox->ops->fetch(
			relay->outbox, relay->name, relay->batch_now, batch, err);
	}
	if (status != HAPAX_OK)
		return status;
	assert(batch->count <= relay->batch_now);
	if (batch->count == 0)
		return rest(relay, is_done, err);
	/* Unpublished rows have the outcomes of the batch before: they must not be marked. */
	if (batch->count >= BUSY_ROWS)
		status = set_idle(relay, false, err);
	if (status != HAPAX_OK)
		return status;
	status = publish(relay, err);
	adapt(relay);
	mark(relay);
	return status;
}

enum hapax_status hapax_relay_run(struct hapax_relay *relay, struct hapax_error *err)
{
	struct hapax_error own;
	bool is_done = false;
	enum hapax_status status;

	if (relay == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a relay is required");
	if (err == NULL)
		err = &own;
	status = hapax_outbox_open(relay->url, &relay->outbox, err);
	if (status != HAPAX_OK)
		return status;
	hx_mutex_lock(&relay->mutex);
	relay->wake = relay->outbox;
	hx_mutex_unlock(&relay->mutex);
	status = relay->sink->ops->connect(relay->sink, err);
	if (status == HAPAX_OK) {
		report(relay, HAPAX_RELAY_READY, relay->outbox->ops->name);
		while (!is_done && !is_stopping(relay)) {
			struct hapax_error why;

			if (step(relay, &is_done, &why) != HAPAX_OK)
				wait_out(relay, &why);
			relay_assert(relay);
		}
		(void)relay->outbox->ops->leave(relay->outbox, relay->name, NULL);
	}
	hx_mutex_lock(&relay->mutex);
	relay->wake = NULL;
	hx_mutex_unlock(&relay->mutex);
	hx_outbox_batch_done(&relay->batch);
	hapax_outbox_close(relay->outbox);
	relay->outbox = NULL;
	return status;
}

void hapax_relay_stop(struct hapax_relay *relay)
{
	atomic_store(&relay->is_stopped, 1);
	hx_mutex_lock(&relay->mutex);
	if (relay->wake != NULL)
		hx_outbox_wake(relay->wake);
	hx_mutex_unlock(&relay->mutex);
}

void hapax_relay_stats(struct hapax_relay *relay, struct hapax_relay_stats *ret_stats)
{
	struct hapax_relay_stats stats;
	size_t size = ret_stats->size < sizeof(stats) ? ret_stats->size : sizeof(stats);

	hx_mutex_lock(&relay->mutex);
	stats = relay->stats;
	stats.backlog_age_ms =
		relay->seen_ns == 0 ? -1 : (hx_clock_mono_ns() - relay->seen_ns) / HX_NS_PER_MS;
	hx_mutex_unlock(&relay->mutex);
	stats.size = ret_stats->size;
	memcpy(ret_stats, &stats, size);
}

/* ------------------------------------------------------------------ open */

static char *copy_of(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = hx_alloc(size);

	if (copy != NULL)
		memcpy(copy, text, size);
	return copy;
}

static enum hapax_status check_options(
	const struct hapax_relay_options *options, struct hapax_error *err)
{
	if (options == NULL || options->size != sizeof(*options) || options->sink == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a relay needs a sink, such as amqp://HOST");
	if (options->batch_max > HX_OUTBOX_BATCH_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a batch must have at most %d rows",
			HX_OUTBOX_BATCH_MAX);
	if (options->lease_ms < 0 || (options->lease_ms > 0 && options->lease_ms < 100) ||
	    options->retry_ms < 0 || options->retry_ms_max < 0 || options->poll_ms < 0 ||
	    options->retention_ms < 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"times must not be negative, and the lease must be at least 100 ms");
	/* In nanoseconds they must fit, too. */
	if (options->lease_ms > HX_TTL_MS_MAX || options->poll_ms > HX_TTL_MS_MAX ||
	    options->retry_ms > HX_TTL_MS_MAX || options->retry_ms_max > HX_TTL_MS_MAX)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "times must be at most 100 years");
	return HAPAX_OK;
}

static void complete_options(struct hapax_relay_options *options, int64_t poll_ms)
{
	if (options->batch_max == 0)
		options->batch_max = HX_OUTBOX_BATCH_MAX;
	if (options->attempts_max == 0)
		options->attempts_max = ATTEMPTS_MAX;
	if (options->lease_ms == 0)
		options->lease_ms = LEASE_MS;
	if (options->retry_ms == 0)
		options->retry_ms = RETRY_MS;
	if (options->retry_ms_max == 0)
		options->retry_ms_max = RETRY_MS_MAX;
	if (options->poll_ms == 0)
		options->poll_ms = poll_ms;
	if (options->retention_ms == 0)
		options->retention_ms = RETENTION_MS;
	assert(options->batch_max <= HX_OUTBOX_BATCH_MAX);
	assert(options->lease_ms > 0);
	assert(options->retry_ms > 0);
	assert(options->retry_ms_max > 0);
	assert(options->poll_ms > 0);
}

enum hapax_status hx_relay_new(
	const char *url, const struct hapax_relay_options *options, struct hx_sink *sink,
	struct hapax_relay **ret_relay, struct hapax_error *err)
{
	const struct hapax_clock *clock = hapax_clock_system();
	struct hapax_relay *relay = hx_alloc_zero(1, sizeof(*relay));
	unsigned char uuid[HX_UUID_SIZE];
	struct hx_uuid7 ids = {0};

	if (relay == NULL) {
		hx_sink_close(sink);
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a relay");
	}
	hx_mutex_init(&relay->mutex);
	hx_outbox_batch_init(&relay->batch);
	relay->sink = sink;
	relay->stats = (struct hapax_relay_stats)HAPAX_RELAY_STATS_INIT;
	relay->options = *options;
	complete_options(&relay->options, strncmp(url, "sqlite:", 7) == 0 ? 10 : 1000);
	relay->batch_now = relay->options.batch_max;
	relay->retention.age_ms = relay->options.retention_ms;
	relay->url = copy_of(url);
	relay->owner = copy_of(options->owner == NULL ? "" : options->owner);
	hx_uuid7_next(&ids, clock->wall_ms(clock->context), uuid);
	hx_uuid7_format(uuid, relay->name);
	hx_prng_seed(&relay->jitter, hx_random_u64());
	if (relay->url == NULL || relay->owner == NULL) {
		hapax_relay_close(relay);
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a relay");
	}
	assert(strlen(relay->name) < sizeof(relay->name));
	relay_assert(relay);
	*ret_relay = relay;
	return HAPAX_OK;
}

enum hapax_status hapax_relay_open(
	const char *url, const struct hapax_relay_options *options, struct hapax_relay **ret_relay,
	struct hapax_error *err)
{
	enum hapax_status status = check_options(options, err);
	struct hx_sink *sink = NULL;

	if (status != HAPAX_OK)
		return status;
	if (url == NULL || ret_relay == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "missing URL of the database");
	status = hx_outbox_check_url(url, err);
	if (status != HAPAX_OK)
		return status;
	status = hx_sink_open(
		options->sink, options->source == NULL ? "/hapax/outbox" : options->source, &sink,
		err);
	if (status != HAPAX_OK)
		return status;
	if (options->headers != NULL)
		status = hx_outbox_message_add(&sink->message, options->headers, err);
	if (status != HAPAX_OK) {
		hx_sink_close(sink);
		return status;
	}
	return hx_relay_new(url, options, sink, ret_relay, err);
}

static void free_text(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
	hx_free(text);
}

void hapax_relay_close(struct hapax_relay *relay)
{
	if (relay == NULL)
		return;
	assert(relay->outbox == NULL && "closed while it runs");
	assert(relay->wake == NULL);
	hx_sink_close(relay->sink);
	hx_outbox_batch_done(&relay->batch);
	hx_mutex_done(&relay->mutex);
	free_text(relay->url);
	free_text(relay->owner);
	hx_free(relay);
}
