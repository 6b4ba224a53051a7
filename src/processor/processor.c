/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.c - creates and frees a processor; options, timers and ticks.
 */
#include "processor/processor.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/process.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/time.h"
#include "processor/steps.h"

#define POLL_MS_DEFAULT    100
#define TIMEOUT_MS_DEFAULT 5000

/* Long enough for slow work, short enough to notice a hung run. */
#define MAX_RUN_MS_DEFAULT (15 * HX_MS_PER_MIN)

/* Consumers that share a transaction see redeliveries for as long as brokers keep messages. */
#define TTL_MS_TRANSACTION (7 * HX_MS_PER_DAY)

/*
 * What holds between two events. Locks: the mutex is held.
 */
static void processor_assert(const struct hapax_processor *processor)
{
	const struct hapax_processor_stats *stats = &processor->stats;

	assert(processor->options.poll_ms > 0);
	assert(processor->options.timeout_ms > 0);
	assert(processor->options.owner == processor->owner);
	assert((processor->pool == NULL) == (processor->pool_count == 0));
	/* Each open run is in one state. */
	assert(stats->running + stats->waiting <= stats->open);
	assert(stats->open <= processor->sequence);
	assert(stats->attached <= processor->sequence);
	/* Each set timer is that of a run or a queue, which has reserved its room. */
	assert(processor->timers.count <= processor->timers.introduced);
	assert(processor->queues.count <= processor->timers.introduced);
	hx_key_queues_assert(&processor->queues);
}

static bool span_is_valid(int64_t span_ms, int64_t span_ms_max, int64_t open_end)
{
	assert(span_ms_max > 0);
	return span_ms >= 0 && (span_ms <= span_ms_max || span_ms == open_end);
}

static const char *what_is_wrong(const struct hapax_run_options *options)
{
	if (!span_is_valid(options->lease_ms, HX_LEASE_MS_MAX, 0))
		return "the lease must be 0 to 7 days";
	if (!span_is_valid(options->ttl_ms, HX_TTL_MS_MAX, HAPAX_TTL_FOREVER))
		return "the TTL must be 0 to 100 years";
	if (options->wait_ms < 0 || options->max_run_ms < 0)
		return "times must not be negative";
	if (options->result_size_max > HX_RESULT_SIZE_LIMIT)
		return "the maximum result must be at most 16 MiB";
	if ((unsigned)options->on_lapse > HAPAX_ON_LAPSE_PARK)
		return "on_lapse has an unknown value; use one of enum hapax_on_lapse";
	if ((unsigned)options->on_mismatch > HAPAX_ON_MISMATCH_DUPLICATE)
		return "on_mismatch has an unknown value; use one of enum hapax_on_mismatch";
	return NULL;
}

enum hapax_status hx_run_options_complete(
	const struct hapax_processor *processor, const struct hapax_run_options *options,
	struct hapax_run_options *ret_options, struct hapax_error *err)
{
	struct hapax_run_options complete = HAPAX_RUN_OPTIONS_INIT;
	const char *wrong;

	if (options == NULL) {
		*ret_options = processor->options.run;
		return HAPAX_OK;
	}
	if (options->size < sizeof(options->size) || options->size > sizeof(complete))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"run options of unknown size %zu; use HAPAX_RUN_OPTIONS_INIT",
			options->size);
	memcpy(&complete, options, options->size);
	complete.size = sizeof(complete);
	wrong = what_is_wrong(&complete);
	if (wrong != NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "%s", wrong);
	if (complete.lease_ms == 0)
		complete.lease_ms = HX_LEASE_MS_DEFAULT;
	if (complete.ttl_ms == 0)
		complete.ttl_ms = processor->has_lease ? HX_TTL_MS_DEFAULT : TTL_MS_TRANSACTION;
	if (complete.max_run_ms == 0)
		complete.max_run_ms = MAX_RUN_MS_DEFAULT;
	/* A run that waited for a transaction of its own thread would wait forever. */
	if (!processor->has_lease)
		complete.wait_ms = 0;
	assert(complete.lease_ms > 0);
	assert(complete.lease_ms <= HX_LEASE_MS_MAX);
	assert(complete.ttl_ms > 0);
	assert(complete.max_run_ms > 0);
	*ret_options = complete;
	return HAPAX_OK;
}

static void system_random(void *out, size_t size, void *context)
{
	(void)context;
	hx_random_bytes(out, size);
}

static enum hapax_status take_options(
	struct hapax_processor *processor, const struct hapax_processor_options *options,
	struct hapax_error *err)
{
	struct hapax_processor_options *mine = &processor->options;
	struct hapax_run_options run;

	*mine = (struct hapax_processor_options)HAPAX_PROCESSOR_OPTIONS_INIT;
	if (options != NULL) {
		if (options->size < sizeof(options->size) || options->size > sizeof(*mine))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"options of unknown size %zu; use HAPAX_PROCESSOR_OPTIONS_INIT",
				options->size);
		memcpy(mine, options, options->size);
		mine->size = sizeof(*mine);
	}
	if (mine->poll_ms < 0 || mine->timeout_ms < 0)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "times must not be negative");
	if (mine->clock == NULL)
		mine->clock = hapax_clock_system();
	if (mine->random_bytes == NULL)
		mine->random_bytes = system_random;
	if (mine->poll_ms == 0)
		mine->poll_ms = POLL_MS_DEFAULT;
	if (mine->timeout_ms == 0)
		mine->timeout_ms = TIMEOUT_MS_DEFAULT;
	if (mine->owner != NULL)
		(void)snprintf(processor->owner, sizeof(processor->owner), "%s", mine->owner);
	else
		(void)snprintf(
			processor->owner, sizeof(processor->owner), "pid %ld",
			(long)hx_process_id());
	mine->owner = processor->owner;
	run = mine->run;
	return hx_run_options_complete(processor, &run, &mine->run, err);
}

/* The store reports that a record ended, perhaps by another process. */
static void on_event(
	struct hapax_bytes tenant, struct hapax_bytes group, struct hapax_bytes key, void *context)
{
	struct hapax_processor *processor = context;
	const struct hx_run_key name = {.tenant = tenant, .group = group, .key = key};
	struct hx_key_queue *queue;
	int64_t now_ms;

	hx_mutex_lock(&processor->mutex);
	now_ms = hx_processor_now(processor);
	queue = hx_key_queues_find(&processor->queues, &name);
	assert(queue == NULL || queue->members->run->processor == processor);
	/* A run about to wait claims again; a waiter wakes as if its timer had fired. */
	if (queue != NULL)
		queue->turns++;
	if (queue != NULL && queue->first != NULL && queue->holder == NULL &&
	    queue->scout == NULL && (queue->timer.place == 0 || now_ms < queue->timer.at)) {
		hx_timer_set(&processor->timers, &queue->timer, now_ms);
		if (!processor->is_ticking) {
			processor->is_wake_due = false;
			processor->tick_at_ms = INT64_MIN;
			hx_processor_wake(processor);
		} else {
			processor->is_wake_due = true;
		}
	}
	hx_mutex_unlock(&processor->mutex);
}

enum hapax_status hapax_processor_new(
	struct hapax_store *store, const struct hapax_processor_options *options,
	struct hapax_processor **ret_processor, struct hapax_error *err)
{
	struct hapax_processor *processor;
	enum hapax_status status;
	unsigned missing;

	if (store == NULL || ret_processor == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a store and space for the processor are required");
	processor = hx_alloc_zero(1, sizeof(*processor));
	if (processor == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	processor->store = store;
	processor->has_lease = !(hapax_store_capabilities(store) & HAPAX_STORE_TRANSACTIONS);
	processor->tick_at_ms = HAPAX_TIME_NEVER;
	status = take_options(processor, options, err);
	missing = processor->options.needs & ~hapax_store_capabilities(store);
	if (status == HAPAX_OK && missing != 0)
		status = hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"store '%s' lacks required capabilities (0x%x)", hapax_store_url(store),
			missing);
	if (status != HAPAX_OK) {
		hx_free(processor);
		return status;
	}
	assert(processor->options.random_bytes != NULL);
	processor->options.random_bytes(
		processor->queues.hash_key, sizeof(processor->queues.hash_key),
		processor->options.random_context);
	processor->options.random_bytes(
		processor->random_key, sizeof(processor->random_key),
		processor->options.random_context);
	hx_mutex_init(&processor->mutex);
	hx_cond_init(&processor->idle);
	hx_ticker_init(&processor->ticker);
	processor->watcher = (struct hapax_watcher){.fn = on_event, .context = processor};
	processor_assert(processor);
	hapax_store_watch(store, &processor->watcher);
	*ret_processor = processor;
	return HAPAX_OK;
}

void hx_processor_abandon(struct hapax_processor *processor)
{
	hapax_store_unwatch(processor->store, &processor->watcher);
	hx_ticker_done(&processor->ticker);
	hx_runs_free(processor);
	hx_pump_batches_free(processor);
	hx_key_queues_done(&processor->queues);
	hx_timer_heap_done(&processor->timers);
	hx_cond_done(&processor->idle);
	hx_mutex_done(&processor->mutex);
	hx_free(processor);
}

void hapax_processor_free(struct hapax_processor *processor)
{
	if (processor == NULL)
		return;
	hx_mutex_lock(&processor->mutex);
	/* The thread that reported the last END may still be returning. */
	while (processor->pumps > 0)
		hx_cond_wait(&processor->idle, &processor->mutex);
	assert(processor->stats.open == 0 && "freed while runs were open");
	/* Without runs no key is in use, and no timer is set. */
	assert(processor->queues.count == 0);
	assert(processor->timers.count == 0);
	assert(processor->tell.first == NULL);
	processor_assert(processor);
	hx_mutex_unlock(&processor->mutex);
	hx_processor_abandon(processor);
}

void hx_processor_wake(struct hapax_processor *processor)
{
	if (processor->options.wake != NULL)
		processor->options.wake(processor->options.wake_context);
	else
		hx_ticker_wake(&processor->ticker);
}

uint64_t hx_processor_random(struct hapax_processor *processor)
{
	uint64_t count =
		atomic_fetch_add_explicit(&processor->random_count, 1, memory_order_relaxed);

	return hx_siphash13(processor->random_key, &count, sizeof(count));
}

void hx_processor_attempt_id(
	struct hapax_processor *processor, unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE])
{
	uint64_t words[2] = {hx_processor_random(processor), hx_processor_random(processor)};

	_Static_assert(sizeof(words) == HAPAX_ATTEMPT_ID_SIZE, "all of it is filled");
	memcpy(attempt_id, words, sizeof(words));
}

static void run_due(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms)
{
	assert(run->processor == pump->processor);
	assert(run->timer.at <= now_ms);
	switch (run->state) {
	case HX_RUN_CLAIMING:
	case HX_RUN_WAITING: hx_claim_due(pump, run, now_ms); return;
	case HX_RUN_RUNNING: hx_lease_due(pump, run, now_ms); return;
	case HX_RUN_FINISHING: hx_finish_due(pump, run); return;
	case HX_RUN_ENDED: break;
	}
	assert(false && "a run that has ended has no timer");
}

static void do_what_is_due(struct hx_pump *pump, int64_t now_ms)
{
	struct hapax_processor *processor = pump->processor;
	struct hx_timer *timer;

	while ((timer = hx_timer_heap_take(&processor->timers, now_ms)) != NULL) {
		if (timer->context != NULL)
			run_due(pump, timer->context, now_ms);
		else
			hx_key_queue_due(pump, HX_CONTAINER(timer, struct hx_key_queue, timer));
	}
	hx_pump_tell_waiting(pump);
}

int64_t hapax_processor_tick(struct hapax_processor *processor)
{
	/* Steps cause more steps; after so many rounds the caller's loop gets a turn. */
	enum { ROUNDS_MAX = 16 };
	struct hx_pump pump;
	int64_t next_ms;
	int64_t now_ms;

	for (int round = 0;; round++) {
		now_ms = hx_processor_now(processor);
		hx_pump_enter(&pump, processor);
		assert((round > 0 || !processor->is_ticking) && "one tick at a time");
		processor_assert(processor);
		processor->is_ticking = true;
		do_what_is_due(&pump, now_ms);
		hx_pump_leave(&pump);

		hx_mutex_lock(&processor->mutex);
		if (processor->tell.first == NULL || round == ROUNDS_MAX)
			break;
		hx_mutex_unlock(&processor->mutex);
	}
	/* Return now, not 0, for "at once": callers subtract. */
	next_ms = processor->tell.first != NULL ? now_ms : hx_timer_heap_next(&processor->timers);
	processor->is_ticking = false;
	processor->is_wake_due = false;
	processor->tick_at_ms = next_ms;
	processor_assert(processor);
	hx_mutex_unlock(&processor->mutex);
	return next_ms;
}

void hapax_processor_stats(
	struct hapax_processor *processor, struct hapax_processor_stats *ret_stats)
{
	struct hapax_processor_stats stats;
	size_t size = ret_stats->size;

	assert(size >= sizeof(size));
	assert(size <= sizeof(stats));
	hx_mutex_lock(&processor->mutex);
	stats = processor->stats;
	hx_mutex_unlock(&processor->mutex);
	stats.size = size;
	memcpy(ret_stats, &stats, size);
}
