/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer_loop.c - the consumer of the API: the core, a reactor, a processor, and a handler.
 *
 * The source, the processor, the workers and the HTTP client wake the core by posting one task,
 * which makes a turn; a timer posts it when something is due.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <hapax/source.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/thread.h"
#include "net/reactor.h"
#include "net/resolver.h"
#include "source/handler/command_handler.h"
#include "source/consume/consumer.h"
#include "source/handler/http_handler.h"
#include "source/handler/tx_session.h"
#include "source/handler/workers.h"

#define TTL_MS_DEFAULT     (7 * HX_MS_PER_DAY)
#define MAX_RUN_MS_DEFAULT (15 * HX_MS_PER_MIN)

enum {
	PREFETCH_DEFAULT = 256,
	PREFETCH_MAX = 10000, /* about 20 KiB each */
	PARALLEL_DEFAULT = 16,
	THREADS_MAX = 256,
	ATTEMPTS_DEFAULT = 10,
	BACKOFF_MS_DEFAULT = 200,
	BACKOFF_MS_MAX_DEFAULT = 60 * 1000,
	DRAIN_MS_DEFAULT = 30 * 1000,
	/* Longest time between two turns, for the source. */
	TURN_MS_MAX = 1000,
	LAST_TURNS_MAX = 1000,
	/* Pause before asking an unavailable database again; and how often to check for a stop. */
	ASK_AGAIN_MS = 1000,
	LOOK_MS = 50,
};

struct hapax_consumer {
	struct hx_consumer core;
	const struct hapax_clock *clock;
	struct hx_reactor reactor;
	bool has_reactor;
	struct hx_resolver resolver;
	bool has_resolver;
	struct hx_task turn;
	struct hx_timer timer;
	struct hx_workers workers;
	struct hx_http_handler http;
	struct hx_command command;
	struct hx_tx_sessions tx_sessions;
	bool has_core;
	bool is_hurried;
	bool has_run;
	_Atomic int is_stopped;
	_Atomic int is_paused;
	_Atomic int is_resumed;
	struct hx_lock lock;
	struct hapax_consumer_stats stats; /* Locks: lock. As of the last turn */
};

/* Threads: any. */
static void wake(void *context)
{
	struct hapax_consumer *consumer = context;

	hx_reactor_post(&consumer->reactor, &consumer->turn);
}

static void on_source_failed(void *context, const char *text, int is_fatal)
{
	struct hapax_consumer *consumer = context;

	hx_consumer_source_failed(&consumer->core, text, is_fatal);
}

/* False: the consumer must stop. */
static bool rest(struct hapax_consumer *consumer, int64_t ms)
{
	int64_t end_ns = hx_clock_mono_ns() + ms * HX_NS_PER_MS;
	struct hx_mutex mutex = HX_MUTEX_INIT;
	struct hx_cond cond;

	hx_cond_init(&cond);
	hx_mutex_lock(&mutex);
	while (!atomic_load(&consumer->is_stopped) && hx_clock_mono_ns() < end_ns)
		(void)hx_cond_wait_until_ns(
			&cond, &mutex, hx_clock_mono_ns() + LOOK_MS * HX_NS_PER_MS);
	hx_mutex_unlock(&mutex);
	hx_cond_done(&cond);
	return !atomic_load(&consumer->is_stopped);
}

/*
 * The database's start offset of a partition. While the database is unavailable, no other partition
 * could run either, so wait for it. On a stop, return none.
 */
static int64_t on_begin(void *context, const char *topic, int32_t partition)
{
	struct hapax_consumer *consumer = context;
	struct hapax_error err;
	int64_t next = -1;

	while (hx_tx_sessions_offset(&consumer->tx_sessions, topic, partition, &next, &err) !=
	       HAPAX_OK) {
		hx_consumer_source_failed(&consumer->core, err.message, 0);
		if (!rest(consumer, ASK_AGAIN_MS))
			return -1;
	}
	return next;
}

/* Report the start and the end of the warm-up. */
static void tell_warm_up(struct hx_consumer *core, uint64_t warming)
{
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_WARM_UP};
	char why[96];

	if ((warming > 0) != (core->stats.warming > 0)) {
		(void)snprintf(
			why, sizeof(why),
			warming > 0 ? "reading the past of %" PRIu64 " partitions"
				    : "%" PRIu64 " past messages marked",
			warming > 0 ? warming : core->stats.warmed);
		event.why = why;
		hx_consumer_tell(core, NULL, &event);
	}
	core->stats.warming = warming;
}

static void publish_stats(struct hapax_consumer *consumer)
{
	struct hx_consumer *core = &consumer->core;
	struct hapax_source_stats source = HAPAX_SOURCE_STATS_INIT;

	core->source->ops->stats(core->source, &source);
	core->stats.in_hand = hx_consumer_in_hand(core);
	core->stats.running = core->running;
	core->stats.waiting = core->waiting.count;
	core->stats.lag = source.lag;
	core->stats.failures = source.failures;
	if (source.changes > core->stats.rebalances)
		hx_consumer_source_reached(core);
	core->stats.rebalances = source.changes;
	tell_warm_up(core, source.warming);
	hx_lock_acquire(&consumer->lock);
	consumer->stats = core->stats;
	hx_lock_release(&consumer->lock);
}

static bool is_over(struct hapax_consumer *consumer, int64_t now_ms)
{
	struct hx_consumer *core = &consumer->core;

	if (!core->is_stopping)
		return false;
	if (now_ms >= core->stop_at_ms && !consumer->is_hurried) {
		consumer->is_hurried = true;
		hx_consumer_hurry(core);
	}
	return hx_consumer_is_idle(core);
}

static void on_turn(struct hx_task *task)
{
	struct hapax_consumer *consumer = task->context;
	int64_t now_ms = consumer->clock->boot_ms(consumer->clock->context);
	int64_t due_ms;

	/* A late wake-up while the consumer is being freed. */
	if (consumer->core.source == NULL)
		return;
	if (atomic_load(&consumer->is_stopped) || consumer->core.is_failed)
		hx_consumer_stop(&consumer->core);
	hx_consumer_pause(&consumer->core, atomic_load(&consumer->is_paused) != 0);
	if (atomic_exchange(&consumer->is_resumed, 0) != 0)
		hx_consumer_resume(&consumer->core);
	due_ms = hx_consumer_turn(&consumer->core, now_ms);
	publish_stats(consumer);
	if (is_over(consumer, now_ms)) {
		hx_reactor_stop(&consumer->reactor);
		return;
	}
	if (due_ms <= now_ms) {
		hx_reactor_post(&consumer->reactor, &consumer->turn);
		return;
	}
	if (due_ms - now_ms > TURN_MS_MAX)
		due_ms = now_ms + TURN_MS_MAX;
	hx_timer_set(
		&consumer->reactor.timers, &consumer->timer,
		hx_reactor_now_ns(&consumer->reactor) + (due_ms - now_ms) * HX_NS_PER_MS);
}

static void on_timer(struct hx_timer *timer)
{
	struct hapax_consumer *consumer = timer->context;

	hx_reactor_post(&consumer->reactor, &consumer->turn);
}

static void complete_run(struct hapax_run_options *run)
{
	if (run->ttl_ms == 0)
		run->ttl_ms = TTL_MS_DEFAULT;
	if (run->max_run_ms == 0)
		run->max_run_ms = MAX_RUN_MS_DEFAULT;
}

/* Fill in the defaults. */
static enum hapax_status complete(
	struct hapax_consumer_options *options, const struct hapax_consumer_options *given,
	struct hapax_error *err)
{
	*options = (struct hapax_consumer_options)HAPAX_CONSUMER_OPTIONS_INIT;
	if (given == NULL || given->size < sizeof(size_t) || given->size > sizeof(*options))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"options of unknown size; use HAPAX_CONSUMER_OPTIONS_INIT");
	memcpy(options, given, given->size);
	if ((options->row_count > 0) + (options->to != NULL) + (options->exec != NULL) != 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a consumer needs one handler: rows, a URL or a command");
	if (options->flags & HAPAX_CONSUMER_TRANSACTIONS &&
	    (options->row_count == 0 || options->flags & HAPAX_CONSUMER_INLINE ||
	     options->on_duplicate == HAPAX_ON_DUPLICATE_TAG))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"transactions need functions on the consumer's threads, and "
			"on_duplicate cannot be tag");
	complete_run(&options->run);
	if (options->prefetch == 0)
		options->prefetch = PREFETCH_DEFAULT;
	if (options->prefetch > PREFETCH_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "prefetch must be at most %d", PREFETCH_MAX);
	if (options->parallel == 0)
		options->parallel = PARALLEL_DEFAULT;
	if (options->parallel > options->prefetch)
		options->parallel = options->prefetch;
	if (options->attempts_max == 0)
		options->attempts_max = ATTEMPTS_DEFAULT;
	if (options->backoff_ms <= 0)
		options->backoff_ms = BACKOFF_MS_DEFAULT;
	if (options->backoff_ms_max <= 0)
		options->backoff_ms_max = BACKOFF_MS_MAX_DEFAULT;
	if (options->drain_ms <= 0)
		options->drain_ms = DRAIN_MS_DEFAULT;
	if (options->clock == NULL)
		options->clock = hapax_clock_system();
	return HAPAX_OK;
}

static void set_run(struct hx_route *route, const struct hapax_run_options *run)
{
	route->run = *run;
	complete_run(&route->run);
	route->unprotected = route->run;
	route->unprotected.is_disabled = 1;
}

static enum hapax_status make_route(
	const struct hx_consumer *core, struct hx_route *route,
	const struct hapax_registration *row, struct hapax_error *err)
{
	const struct hapax_consumer_options *options = &core->options;
	const char *strategy = row != NULL ? row->strategy : options->strategy;
	const struct hapax_key_options *key_options = options->key_options;
	bool has_type = row != NULL && row->type != NULL;

	if (row != NULL && row->key_options != NULL)
		key_options = row->key_options;
	if (key_options != NULL && key_options->also != NULL &&
	    !(hapax_store_capabilities(core->store) & HAPAX_STORE_MULTI_KEY))
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"key_also needs a store that claims two keys in one step; %s cannot",
			hapax_store_name(core->store));
	set_run(route, row != NULL && row->options != NULL ? row->options : &options->run);
	if (row != NULL && row->flags & HAPAX_REGISTRATION_UNPROTECTED)
		route->run.is_disabled = 1;
	if (row != NULL) {
		route->fn = row->handler;
		route->context = row->context;
	}
	route->identity = hx_alloc_zero(1, sizeof(*route->identity));
	if (has_type)
		route->type = hx_alloc_text(row->type);
	if (route->identity == NULL || (has_type && route->type == NULL))
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a route");
	return hx_identity_init(route->identity, strategy, key_options, err);
}

static enum hapax_status make_routes(struct hx_consumer *core, struct hapax_error *err)
{
	const struct hapax_consumer_options *options = &core->options;
	size_t count = options->row_count > 0 ? options->row_count : 1;
	enum hapax_status status = HAPAX_OK;

	core->routes = hx_alloc_zero(count, sizeof(*core->routes));
	if (core->routes == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a consumer");
	for (size_t i = 0; i < count && status == HAPAX_OK; i++) {
		const struct hapax_registration *row =
			options->row_count > 0 ? &options->rows[i] : NULL;

		core->route_count++;
		if (row != NULL && (row->size != sizeof(*row) || row->handler == NULL))
			status = hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "registration %zu has %s", i,
				row->handler == NULL ? "no handler" : "an unknown size");
		else
			status = make_route(core, &core->routes[i], row, err);
	}
	return status;
}

static void free_routes(struct hx_consumer *core)
{
	for (size_t i = 0; i < core->route_count; i++) {
		if (core->routes[i].identity != NULL)
			hx_identity_done(core->routes[i].identity);
		hx_free(core->routes[i].identity);
		hx_free(core->routes[i].type);
	}
	hx_free(core->routes);
}

/* The transaction claims the key, not the consumer. */
static void put_inside(struct hx_route *route, struct hx_tx_sessions *tx_sessions)
{
	route->inner = route->fn;
	route->inner_context = route->context;
	route->inner_run = route->run;
	route->run.is_disabled = 1;
	route->fn = hx_tx_session_run_work;
	route->context = tx_sessions;
}

static enum hapax_status make_handler(struct hapax_consumer *consumer, struct hapax_error *err)
{
	struct hx_consumer *core = &consumer->core;
	const struct hapax_consumer_options *options = &core->options;
	uint64_t size_max = options->run.result_size_max;
	size_t threads = options->parallel < THREADS_MAX ? options->parallel : THREADS_MAX;
	enum hapax_status status;

	if (size_max == 0)
		size_max = HX_RESULT_SIZE_DEFAULT;
	if (options->to != NULL) {
		status = hx_http_handler_init(
			&consumer->http, &consumer->reactor, &consumer->resolver, options->to,
			options->parallel, err);
		consumer->http.form = options->form;
		consumer->http.max_run_ms = options->run.max_run_ms;
		consumer->http.result_size_max = size_max;
		core->handler = &consumer->http.base;
		return status;
	}
	for (size_t i = 0; options->flags & HAPAX_CONSUMER_TRANSACTIONS && i < core->route_count;
	     i++)
		put_inside(&core->routes[i], &consumer->tx_sessions);
	if (options->exec != NULL) {
		consumer->command =
			(struct hx_command){options->exec, options->run.max_run_ms, size_max};
		core->routes[0].fn = hx_command_run_work;
		core->routes[0].context = &consumer->command;
	} else if (options->flags & HAPAX_CONSUMER_INLINE) {
		threads = 0;
	}
	status = hx_workers_init(&consumer->workers, threads, wake, consumer, err);
	core->handler = &consumer->workers.base;
	return status;
}

static enum hapax_status make_loop(struct hapax_consumer *consumer, struct hapax_error *err)
{
	enum hapax_status status = hx_reactor_init(&consumer->reactor, hx_net_system(), err);

	consumer->has_reactor = status == HAPAX_OK;
	if (status != HAPAX_OK)
		return status;
	hx_resolver_init(&consumer->resolver, hx_net_system());
	consumer->has_resolver = true;
	consumer->turn.fn = on_turn;
	consumer->turn.context = consumer;
	status =
		hx_timer_introduce(&consumer->reactor.timers, &consumer->timer, on_timer, consumer);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory for a timer");
	return HAPAX_OK;
}

static enum hapax_status make_core(
	struct hapax_consumer *consumer, struct hapax_store *store, struct hapax_error *err)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hx_consumer *core = &consumer->core;
	enum hapax_status status;

	options.flags = HAPAX_PROCESSOR_STEPS_IN_TICK;
	options.run = core->options.run;
	options.clock = core->options.clock;
	options.wake = wake;
	options.wake_context = consumer;
	status = hapax_processor_new(store, &options, &core->processor, err);
	if (status != HAPAX_OK)
		return status;
	core->dead_letter = core->options.dead_letter == NULL ? "" : core->options.dead_letter;
	if (strcmp(core->dead_letter, "off") == 0)
		core->dead_letter = NULL;
	core->divert = core->options.divert == NULL ? "" : core->options.divert;
	core->wake = wake;
	core->wake_context = consumer;
	status = hx_consumer_init(core, hx_random_u64(), err);
	consumer->has_core = status == HAPAX_OK;
	return status;
}

enum hapax_status hapax_consumer_new(
	struct hapax_source *source, struct hapax_store *store,
	const struct hapax_consumer_options *options, struct hapax_consumer **ret_consumer,
	struct hapax_error *err)
{
	struct hapax_consumer *consumer;
	enum hapax_status status;

	if (source == NULL || store == NULL || ret_consumer == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a consumer needs a source and a store");
	consumer = hx_alloc_zero(1, sizeof(*consumer));
	if (consumer == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	hx_lock_init(&consumer->lock);
	consumer->stats = (struct hapax_consumer_stats)HAPAX_CONSUMER_STATS_INIT;
	status = complete(&consumer->core.options, options, err);
	consumer->clock = consumer->core.options.clock;
	consumer->core.store = store;
	if (status == HAPAX_OK)
		status = make_loop(consumer, err);
	if (status == HAPAX_OK)
		status = make_routes(&consumer->core, err);
	if (status == HAPAX_OK)
		status = make_handler(consumer, err);
	if (status == HAPAX_OK)
		status = make_core(consumer, store, err);
	if (status == HAPAX_OK && consumer->core.options.flags & HAPAX_CONSUMER_TRANSACTIONS)
		status = hx_tx_sessions_open(
			&consumer->tx_sessions, store,
			source->ops->position == NULL ? NULL : source->group, err);
	if (status != HAPAX_OK) {
		hapax_consumer_free(consumer);
		return status;
	}
	consumer->core.source = source;
	source->hooks = (struct hapax_source_hooks){
		.wake = wake, .failed = on_source_failed, .context = consumer};
	if (consumer->tx_sessions.group != NULL)
		source->hooks.begin = on_begin;
	*ret_consumer = consumer;
	return HAPAX_OK;
}

void hapax_consumer_free(struct hapax_consumer *consumer)
{
	struct hx_consumer *core;

	if (consumer == NULL)
		return;
	core = &consumer->core;
	/* Free the source first: its threads wake the reactor. */
	if (core->source != NULL)
		hapax_source_close(core->source);
	core->source = NULL;
	hapax_processor_free(core->processor);
	if (consumer->has_core)
		hx_consumer_done(core);
	hx_workers_done(&consumer->workers);
	hx_tx_sessions_close(&consumer->tx_sessions);
	if (consumer->http.base.ops != NULL) {
		hx_http_client_close(&consumer->http.client);
		for (int i = 0; i < LAST_TURNS_MAX && consumer->http.client.link_count > 0; i++)
			hx_reactor_turn(&consumer->reactor, 0);
		hx_http_handler_done(&consumer->http);
	}
	free_routes(core);
	if (consumer->has_reactor)
		hx_timer_retire(&consumer->reactor.timers, &consumer->timer);
	if (consumer->has_resolver)
		hx_resolver_done(&consumer->resolver);
	if (consumer->has_reactor)
		hx_reactor_done(&consumer->reactor);
	hx_free(consumer);
}

enum hapax_status hapax_consumer_run(struct hapax_consumer *consumer, struct hapax_error *err)
{
	if (consumer == NULL || consumer->has_run)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a consumer can run only once");
	consumer->has_run = true;
	hx_reactor_post(&consumer->reactor, &consumer->turn);
	hx_reactor_run(&consumer->reactor);
	if (consumer->core.is_failed)
		return hx_error_set(
			err, consumer->core.failure.status, 0, "%s",
			consumer->core.failure.message);
	if (consumer->is_hurried)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0,
			"handlers that still ran after drain_ms were stopped");
	return HAPAX_OK;
}

void hapax_consumer_stop(struct hapax_consumer *consumer)
{
	atomic_store(&consumer->is_stopped, 1);
	hx_reactor_post(&consumer->reactor, &consumer->turn);
}

void hapax_consumer_pause(struct hapax_consumer *consumer, int is_paused)
{
	if (atomic_exchange(&consumer->is_paused, is_paused) != 0 && is_paused == 0)
		atomic_store(&consumer->is_resumed, 1);
	hx_reactor_post(&consumer->reactor, &consumer->turn);
}

void hapax_consumer_stats(struct hapax_consumer *consumer, struct hapax_consumer_stats *ret_stats)
{
	size_t size = ret_stats->size;

	if (size > sizeof(consumer->stats))
		size = sizeof(consumer->stats);
	hx_lock_acquire(&consumer->lock);
	memcpy(ret_stats, &consumer->stats, size);
	hx_lock_release(&consumer->lock);
	ret_stats->size = size;
}
