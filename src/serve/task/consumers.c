/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumers.c - the consumers of the daemon.
 */
#include "serve/task/consumers.h"

#include <stdio.h>
#include <string.h>

#include <hapax/source.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "config/config.h"
#include "observe/condition.h"
#include "observe/logger/logger.h"
#include "serve/task/background.h"
#include "serve/task/consumer_task.h"
#include "serve/daemon/daemon.h"

enum {
	/* The part of the drain time reserved to store the results of stopped runs. */
	LAST_MS_MAX = 2000,
};

static const struct hx_config_consumer *find(const struct hx_config *config, const char *name)
{
	for (size_t i = 0; i < config->consumer_count; i++) {
		if (strcmp(config->consumers[i].name, name) == 0)
			return &config->consumers[i];
	}
	return NULL;
}

/* Leaves enough time to store the results of stopped runs before the daemon gives up. */
static int64_t drain_ms(const struct hx_config *config)
{
	int64_t timeout_ms = config->drain.timeout_ms;
	int64_t last_ms = timeout_ms / 4 < LAST_MS_MAX ? timeout_ms / 4 : LAST_MS_MAX;

	return timeout_ms - last_ms > 0 ? timeout_ms - last_ms : 1;
}

/* ------------------------------------------------------------------ its own thread */

/* The store or the broker became unavailable, or available again. */
static void take_note(struct hx_consumer_task *task, const struct hapax_consumer_event *event)
{
	hx_lock_acquire(&task->lock);
	if (event->fact == HAPAX_FACT_STORE_AWAY || event->fact == HAPAX_FACT_STORE_BACK)
		task->is_paused = event->fact == HAPAX_FACT_STORE_AWAY;
	if (event->fact == HAPAX_FACT_SOURCE_FAILED) {
		task->failed_ns = hx_clock_mono_ns();
		task->is_news = true;
	}
	if (event->fact == HAPAX_FACT_SOURCE_REACHED) {
		task->is_reached = true;
		task->failed_ns = 0;
	}
	if (event->fact == HAPAX_FACT_STORE_AWAY || event->fact == HAPAX_FACT_SOURCE_FAILED)
		(void)snprintf(task->why, sizeof(task->why), "%s", event->why);
	if (event->fact == HAPAX_FACT_NO_KEY) {
		task->is_halted = true;
		(void)snprintf(
			task->halt, sizeof(task->halt),
			"paused at a message without an ID: set key, for example to '%s', and "
			"reload, or run 'hapax consume resume %s'",
			event->strategy, task->name);
	}
	hx_lock_release(&task->lock);
}

/* The log line of a fact; decisions and ends of runs are reported separately. */
struct line {
	enum hx_logger_level level;
	const char *msg;
};

static const struct line lines[] = {
	[HAPAX_FACT_RETRY] = {HX_LOGGER_WARN, "message will be retried"},
	[HAPAX_FACT_DEAD_LETTER] = {HX_LOGGER_WARN, "message moved to dead letters"},
	[HAPAX_FACT_UNDELIVERED] = {HX_LOGGER_ERROR, "message could not be published"},
	[HAPAX_FACT_STORE_AWAY] = {HX_LOGGER_ERROR, "consumer paused: store unavailable"},
	[HAPAX_FACT_STORE_BACK] = {HX_LOGGER_INFO, "consumer resumed"},
	[HAPAX_FACT_SOURCE_FAILED] = {HX_LOGGER_WARN, "source failed"},
	[HAPAX_FACT_KEYS_DIFFER] = {HX_LOGGER_INFO, "key strategies disagree"},
	[HAPAX_FACT_UNPROTECTED] = {HX_LOGGER_INFO, "message ran without a key"},
	[HAPAX_FACT_NO_KEY] = {HX_LOGGER_ERROR, "consumer paused: message without an ID"},
	[HAPAX_FACT_PLACE_KEY] = {HX_LOGGER_WARN, "message without an ID: its position is its key"},
	[HAPAX_FACT_SOURCE_REACHED] = {HX_LOGGER_INFO, "consumer ready"},
};

/* A fact without its own line is logged with the consumer's text. */
static struct line line_of(enum hapax_consumer_fact fact)
{
	static const struct line other = {HX_LOGGER_INFO, "consumer report"};
	size_t index = (size_t)fact;

	return index < HX_COUNT(lines) && lines[index].msg != NULL ? lines[index] : other;
}

/* A decision, or the end of a run, to report while the daemon is there. */
struct report {
	struct hx_consumer_work *work;
	const struct hapax_consumer_event *event;
};

static enum hapax_decision decision_of(const struct hapax_answer *answer)
{
	switch (answer->outcome) {
	case HAPAX_OUTCOME_REPLAY: return HAPAX_DECISION_REPLAY;
	case HAPAX_OUTCOME_IN_PROGRESS: return HAPAX_DECISION_IN_PROGRESS;
	case HAPAX_OUTCOME_MISMATCH: return HAPAX_DECISION_MISMATCH;
	case HAPAX_OUTCOME_PARKED: return HAPAX_DECISION_PARKED;
	default: return HAPAX_DECISION_ACQUIRED;
	}
}

static struct hx_decision describe(const struct report *report)
{
	const struct hapax_consumer_event *event = report->event;
	const struct hapax_answer *answer = event->answer;
	bool is_acquired = answer->outcome == HAPAX_OUTCOME_ACQUIRED;
	struct hapax_cause original;
	unsigned flags = 0;

	(void)hapax_cause_read(answer->original_cause, &original);
	if (answer->flags & HAPAX_ANSWER_UNPROTECTED)
		flags |= HX_DECISION_UNPROTECTED;
	if (answer->flags & HAPAX_ANSWER_CONTINUED)
		flags |= HX_DECISION_CONTINUED;
	if (answer->flags & HAPAX_ANSWER_UNVERIFIED)
		flags |= HX_DECISION_UNVERIFIED;
	return (struct hx_decision){
		.door = HX_DOOR_CONSUMER,
		.consumer = report->work->task->name,
		.place = event->place,
		.tenant = event->tenant,
		.group = event->group,
		.key = event->key,
		.event =
			{.id = event->id,
			 .type = event->type,
			 .source = event->source,
			 .time_ms = event->time_ms},
		.status = is_acquired ? HAPAX_OK : answer->status,
		.decision = decision_of(answer),
		.flags = flags,
		.attempt = answer->attempt,
		.token = is_acquired ? answer->token : answer->original_token,
		.ttl_ms = report->work->run.ttl_ms,
		.took_ns = event->took_ns,
		.expires_ms = answer->expires_ms,
		.first_seen_ms = answer->first_seen_ms,
		.original = original,
		.original_place = event->original,
		.cause = event->cause,
	};
}

/* The store operation at the end of a run. */
static enum hapax_op_type operation_of(
	const struct hx_consumer_work *work, enum hapax_run_outcome outcome)
{
	if (outcome == HAPAX_RUN_OK || outcome == HAPAX_RUN_DEFINITIVE)
		return HAPAX_OP_COMPLETE;
	return outcome == HAPAX_RUN_AMBIGUOUS && work->run.on_lapse == HAPAX_ON_LAPSE_PARK
		? HAPAX_OP_PARK
		: HAPAX_OP_RELEASE;
}

static void tell_report(struct hx_logger *log, const void *context)
{
	const struct report *report = context;
	const struct hapax_answer *answer = report->event->answer;
	struct hx_consumers *consumers = report->work->task->consumers;
	struct hx_decision decision = describe(report);
	bool has_ended = report->event->fact == HAPAX_FACT_ENDED;
	struct hx_observer *observer = &consumers->observer;

	(void)log;
	hx_message_trace_tell(&report->work->trace, report->event);
	hx_lock_acquire(&consumers->observer_lock);
	if (!(decision.flags & HX_DECISION_UNPROTECTED))
		hx_metrics_operation(
			observer->cells,
			has_ended ? operation_of(report->work, answer->run_outcome)
				  : HAPAX_OP_CLAIM,
			answer->status);
	if (has_ended)
		hx_decision_end(
			observer, &decision,
			&(struct hx_decision_end){
				.status = answer->status,
				.outcome = answer->run_outcome,
				.took_ns = report->event->took_ns,
				.why = answer->error,
			});
	else
		hx_decision_tell(observer, &decision);
	hx_lock_release(&consumers->observer_lock);
}

static void count_dead(struct hx_logger *log, const void *context)
{
	const struct report *report = context;
	struct hx_consumers *consumers = report->work->task->consumers;
	enum hx_invalid reason = hx_invalid_of(report->event->reason);

	(void)log;
	/* The others had a claim. */
	if (reason == HX_INVALID_OTHER)
		return;
	hx_lock_acquire(&consumers->observer_lock);
	hx_metrics_invalid(consumers->observer.cells, HX_DOOR_CONSUMER, reason);
	hx_lock_release(&consumers->observer_lock);
}

static void log_event(struct hx_consumer_task *task, const struct hapax_consumer_event *event)
{
	bool has_delay =
		(event->fact == HAPAX_FACT_RETRY || event->fact == HAPAX_FACT_UNDELIVERED) &&
		event->delay_ms >= 0;
	const char *target = event->target == NULL ? "" : event->target;
	struct line line = line_of(event->fact);
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("consumer", task->name),
		HX_LOGGER_BYTES(event->place.size == 0 ? NULL : "place", event->place),
		HX_LOGGER_KEY(event->key.size == 0 ? NULL : "idempotency_key", event->key),
		HX_LOGGER_UNSIGNED(event->attempt == 0 ? NULL : "attempt", event->attempt),
		HX_LOGGER_TEXT(event->why[0] == '\0' ? NULL : "why", event->why),
		HX_LOGGER_TEXT(target[0] == '\0' ? NULL : "target", target),
		HX_LOGGER_TEXT(event->strategy == NULL ? NULL : "strategy", event->strategy),
		HX_LOGGER_DURATION(has_delay ? "again_in" : NULL, event->delay_ms),
	};

	hx_background_say(&task->background, line.level, line.msg, fields, HX_COUNT(fields));
}

static void on_told(const struct hapax_consumer_event *event, void *context)
{
	struct hx_consumer_work *work = context;
	struct hx_consumer_task *task = work->task;

	take_note(task, event);
	/* It may have failed permanently: then only a restart helps. */
	if (event->fact == HAPAX_FACT_STORE_AWAY)
		hx_serve_suspect(task->consumers->serve);
	if (event->fact == HAPAX_FACT_NO_KEY) {
		/* What resumes it ends this pause. */
		hapax_consumer_pause(work->consumer, 1);
		hx_condition_begin(
			&task->consumers->serve->conditions, HX_CONDITION_CONSUMER_PAUSED,
			task->name, task->halt);
	}
	if (event->fact == HAPAX_FACT_DEAD_LETTER && event->reason != NULL)
		hx_background_tell(&task->background, count_dead, &(struct report){work, event});
	if (event->answer != NULL)
		hx_background_tell(&task->background, tell_report, &(struct report){work, event});
	else
		log_event(task, event);
}

static int on_trace(struct hapax_bytes traceparent, struct hapax_trace *ret_trace, void *context)
{
	struct hx_consumer_work *work = context;

	return hx_message_trace_begin(&work->trace, traceparent, ret_trace);
}

static void fill_options(
	struct hx_consumer_work *work, const struct hx_config *config,
	const struct hx_config_consumer *from, struct hapax_consumer_options *to)
{
	*to = (struct hapax_consumer_options)HAPAX_CONSUMER_OPTIONS_INIT;
	to->flags = HAPAX_CONSUMER_HALTS;
	if (from->to[0] != '\0') {
		to->to = from->to;
	} else {
		work->argv[0] = "sh";
		work->argv[1] = "-c";
		work->argv[2] = from->exec;
		to->exec = work->argv;
	}
	to->form = from->form;
	to->strategy = from->keying.key[0] == '\0' ? NULL : from->keying.key;
	to->key_options = &from->key_options;
	to->run = from->run;
	to->prefetch = (size_t)from->prefetch;
	to->parallel = (size_t)from->parallel;
	to->order = from->order;
	to->attempts_max = (uint32_t)from->attempts;
	to->backoff_ms = from->backoff_ms;
	to->backoff_ms_max = from->backoff_max_ms;
	to->drain_ms = drain_ms(config);
	to->dead_letter = from->dead_letter[0] == '\0' ? NULL : from->dead_letter;
	to->on_duplicate = from->on_duplicate;
	to->divert = from->divert[0] == '\0' ? NULL : from->divert;
	to->told = on_told;
	to->told_context = work;
	hx_message_trace_init(
		&work->trace, &work->task->consumers->serve->exporter, work->task->name, from->to,
		config->traces.sample_billionths);
	if (work->trace.exporter != NULL)
		to->trace = on_trace;
	work->run = from->run;
}

static enum hapax_status open_work(
	struct hx_background *background, const struct hx_config *config, void **ret_work,
	struct hapax_error *err)
{
	struct hx_consumer_task *task = (struct hx_consumer_task *)background;
	const struct hx_config_consumer *settings = find(config, task->name);
	struct hapax_consumer_options options;
	struct hapax_source *source = NULL;
	struct hx_consumer_work *work = hx_alloc_zero(1, sizeof(*work));
	enum hapax_status status;

	if (work == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "out of memory");
	work->task = task;
	fill_options(work, config, settings, &options);
	status = hapax_source_open(settings->from, &source, err);
	if (status == HAPAX_OK)
		status = hapax_consumer_new(
			source, task->consumers->serve->store, &options, &work->consumer, err);
	if (status != HAPAX_OK) {
		hapax_source_close(source);
		hx_free(work);
		return status;
	}
	hx_lock_acquire(&task->lock);
	task->starts++;
	hx_lock_release(&task->lock);
	*ret_work = work;
	return HAPAX_OK;
}

/* Nothing begins before the store has said that it is not paused. Locks: task->lock held. */
static void obey_pause(const struct hx_consumer_task *task, struct hapax_consumer *consumer)
{
	hapax_consumer_pause(
		consumer, !task->pause.is_known || task->pause.is_paused || task->is_halted);
}

static enum hapax_status run_work(void *arg, struct hapax_error *err)
{
	struct hx_consumer_work *work = arg;
	enum hapax_status status;

	hx_lock_acquire(&work->task->lock);
	obey_pause(work->task, work->consumer);
	hx_lock_release(&work->task->lock);
	status = hapax_consumer_run(work->consumer, err);

	/* It was stopped, and some runs did not end in time: their messages will be redelivered. */
	return status == HAPAX_ERR_LIMIT ? HAPAX_OK : status;
}

static void stop_work(void *arg)
{
	struct hx_consumer_work *work = arg;

	hapax_consumer_stop(work->consumer);
}

static void clear_halt(struct hx_consumer_task *task)
{
	hx_lock_acquire(&task->lock);
	task->is_halted = false;
	hx_lock_release(&task->lock);
	hx_condition_end(
		&task->consumers->serve->conditions, HX_CONDITION_CONSUMER_PAUSED, task->name);
}

static void retire_work(struct hx_background *background, void *arg)
{
	struct hx_consumer_task *task = (struct hx_consumer_task *)background;
	struct hapax_consumer_stats stats = HAPAX_CONSUMER_STATS_INIT;
	struct hx_consumer_work *work = arg;

	hapax_consumer_stats(work->consumer, &stats);
	clear_halt(task);
	hx_lock_acquire(&task->lock);
	hx_consumer_task_add(&task->before, &stats);
	task->is_paused = false;
	task->is_reached = false;
	task->failed_ns = 0;
	hx_lock_release(&task->lock);
}

static void close_work(void *arg)
{
	struct hx_consumer_work *work = arg;

	hapax_consumer_free(work->consumer);
	hx_free(work);
}

static bool is_wanted(const struct hx_background *background, const struct hx_config *config)
{
	const struct hx_consumer_task *task = (const struct hx_consumer_task *)background;
	const struct hx_config_consumer *settings = find(config, task->name);

	return settings != NULL && settings->enabled;
}

static const struct hx_background_ops task_ops = {
	.section = "consumers",
	.is_wanted = is_wanted,
	.open = open_work,
	.run = run_work,
	.stop = stop_work,
	.retire = retire_work,
	.close = close_work,
};

/* ------------------------------------------------------------------ the control loop's */

/* Threads: any. */
static void one_ended(struct hx_consumers *consumers)
{
	if (atomic_fetch_sub(&consumers->open, 1) == 1)
		consumers->ended(consumers->context);
}

static void on_ended(void *context)
{
	struct hx_consumer_task *task = context;

	one_ended(task->consumers);
}

/* Settings for the first start, or for another life with a new configuration. */
static void take_settings(struct hx_consumer_task *task, struct hx_config *config)
{
	struct hx_config *old = task->config;

	task->config = hx_config_keep(config);
	task->settings = find(config, task->name);
	hx_config_release(old);
}

static void free_task(struct hx_consumer_task *task)
{
	hx_config_release(task->config);
	hx_free(task);
}

static enum hapax_status start_task(
	struct hx_consumers *consumers, struct hx_config *config,
	const struct hx_config_consumer *settings, struct hapax_error *err)
{
	struct hx_consumer_task **last = &consumers->tasks;
	struct hx_consumer_task *task = hx_alloc_zero(1, sizeof(*task));
	enum hapax_status status;

	if (task == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "out of memory");
	(void)snprintf(task->label, sizeof(task->label), "consumer %s", settings->name);
	task->name = strchr(task->label, ' ') + 1;
	task->consumers = consumers;
	task->ops = task_ops;
	task->ops.name = task->label;
	task->before = (struct hapax_consumer_stats)HAPAX_CONSUMER_STATS_INIT;
	hx_lock_init(&task->lock);
	take_settings(task, config);
	atomic_fetch_add(&consumers->open, 1);
	status = hx_background_start(
		&task->background, &task->ops, config, consumers->serve->log, on_ended, task, err);
	if (status != HAPAX_OK) {
		hx_background_drain(&task->background);
		(void)hx_background_join(&task->background, 0);
		free_task(task);
		return status;
	}
	while (*last != NULL)
		last = &(*last)->next;
	*last = task;
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ pauses */

static void pause_work(struct hx_background *background, void *arg, void *context)
{
	struct hx_consumer_task *task = (struct hx_consumer_task *)background;
	struct hx_consumer_work *work = arg;

	(void)context;
	if (work == NULL)
		return;
	hx_lock_acquire(&task->lock);
	obey_pause(task, work->consumer);
	hx_lock_release(&task->lock);
}

static void say_pause(struct hx_consumer_task *task, const struct hx_pause *pause)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("consumer", task->name),
		HX_LOGGER_TEXT(pause->is_paused ? "who" : NULL, pause->who),
		HX_LOGGER_TEXT(pause->reason[0] != '\0' ? "why" : NULL, pause->reason),
	};

	hx_logger(
		task->consumers->serve->log, HX_LOGGER_INFO,
		pause->is_paused ? "consumer paused" : "consumer resumed", fields,
		HX_COUNT(fields));
}

static void take_pause(struct hx_consumer_task *task, const struct hx_pause *pause)
{
	bool is_news;

	hx_lock_acquire(&task->lock);
	is_news = task->pause.is_paused != pause->is_paused;
	task->pause = *pause;
	hx_lock_release(&task->lock);
	if (is_news)
		say_pause(task, pause);
	(void)hx_background_visit(&task->background, pause_work, NULL);
}

static struct hx_consumer_task *task_of(const struct hx_consumers *consumers, const char *name)
{
	struct hx_consumer_task *at = consumers->tasks;

	while (at != NULL && strcmp(at->name, name) != 0)
		at = at->next;
	return at;
}

/* Try again: the message may be gone. */
static void end_halt(struct hx_consumer_task *task)
{
	clear_halt(task);
	(void)hx_background_visit(&task->background, pause_work, NULL);
}

bool hx_consumers_pause(
	struct hx_consumers *consumers, const char *name, const struct hx_pause *pause)
{
	struct hx_consumer_task *task = task_of(consumers, name);

	if (task != NULL && pause != NULL) {
		task->is_outdated = consumers->pauses.is_asking;
		if (!pause->is_paused)
			end_halt(task);
		take_pause(task, pause);
	}
	return task != NULL;
}

/*
 * A store that does not answer changes nothing. If events may run without it, and if it never has
 * such records (it belongs to one tenant), its consumers are not paused.
 */
static void on_pause_told(
	void *context, const char *name, const struct hx_pause *pause, enum hapax_status status)
{
	struct hx_consumers *consumers = context;
	struct hx_consumer_task *task = task_of(consumers, name);
	struct hx_pause none = {.is_known = true};

	if (task == NULL || task->is_outdated)
		return;
	if (pause->is_known)
		take_pause(task, pause);
	else if (
		!task->pause.is_known &&
		(status == HAPAX_ERR_INVALID || consumers->serve->stack.guard != NULL))
		take_pause(task, &none);
	else if (!task->pause.is_known)
		take_note(
			task,
			&(struct hapax_consumer_event){
				.fact = HAPAX_FACT_STORE_AWAY, .why = hapax_status_name(status)});
	if (pause->is_known && task->is_unread)
		take_note(task, &(struct hapax_consumer_event){.fact = HAPAX_FACT_STORE_BACK});
	task->is_unread = !task->pause.is_known;
}

static void on_pauses_told(void *context)
{
	one_ended(context);
}

static void ask_pauses(struct hx_consumers *consumers)
{
	struct hx_pauses *pauses = &consumers->pauses;
	size_t count = 0;

	for (const struct hx_consumer_task *at = consumers->tasks; at != NULL; at = at->next)
		count++;
	if (consumers->is_draining || !hx_pauses_begin(pauses, count))
		return;
	for (struct hx_consumer_task *at = consumers->tasks; at != NULL; at = at->next) {
		at->is_outdated = false;
		hx_pauses_add(pauses, at->name);
	}
	atomic_fetch_add(&consumers->open, 1);
	hx_pauses_ask(pauses);
}

/* ------------------------------------------------------------------ start, reload, drain */

enum hapax_status hx_consumers_start(
	struct hx_consumers *consumers, struct hx_serve *serve, struct hx_config *config,
	void (*ended)(void *context), void *context, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	consumers->serve = serve;
	hx_lock_init(&consumers->observer_lock);
	consumers->observer = (struct hx_observer){
		.cells = hx_metrics_cells(serve->metrics, serve->loop_count + 1),
		.log = serve->log,
		.decisions = serve->decisions.log,
		.feed = serve->feed,
		.writer = serve->loop_count + 1};
	consumers->ended = ended;
	consumers->context = context;
	consumers->pauses = (struct hx_pauses){
		.store = serve->store,
		.reactor = &serve->reactor,
		.told = on_pause_told,
		.ended = on_pauses_told,
		.context = consumers,
	};
	atomic_store(&consumers->open, 1);
	for (size_t i = 0; i < config->consumer_count && status == HAPAX_OK; i++)
		status = start_task(consumers, config, &config->consumers[i], err);
	return status;
}

static void say(struct hx_consumers *consumers, const char *msg, const char *name)
{
	const struct hx_logger_field field = HX_LOGGER_TEXT("consumer", name);

	hx_logger(consumers->serve->log, HX_LOGGER_INFO, msg, &field, 1);
}

static void say_failed(
	struct hx_consumers *consumers, const char *name, const struct hapax_error *err)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("consumer", name), HX_LOGGER_TEXT("error", err->message)};

	hx_logger(
		consumers->serve->log, HX_LOGGER_ERROR, "consumer could not be started", fields, 2);
}

static bool is_same(const struct hx_consumer_task *task, const struct hx_config *config)
{
	const struct hx_config_consumer *settings = find(config, task->name);

	return hx_config_consumer_is_same(task->settings, settings) &&
		drain_ms(task->config) == drain_ms(config);
}

/* Removes it from the list at link, and stops it. */
static void dismiss(struct hx_consumers *consumers, struct hx_consumer_task **link)
{
	struct hx_consumer_task *task = *link;

	*link = task->next;
	task->next = consumers->leaving;
	consumers->leaving = task;
	say(consumers, "consumer removed", task->name);
	hx_background_drain(&task->background);
}

static void change(
	struct hx_consumers *consumers, struct hx_consumer_task *task, struct hx_config *config)
{
	struct hapax_error err;

	say(consumers, "consumer changed", task->name);
	take_settings(task, config);
	if (hx_background_renew(&task->background, config, &err) != HAPAX_OK)
		say_failed(consumers, task->name, &err);
}

void hx_consumers_reload(struct hx_consumers *consumers, struct hx_config *config)
{
	struct hx_consumer_task **link = &consumers->tasks;

	if (consumers->is_draining)
		return;
	while (*link != NULL) {
		struct hx_consumer_task *task = *link;

		if (find(config, task->name) == NULL) {
			dismiss(consumers, link);
			continue;
		}
		if (!is_same(task, config))
			change(consumers, task, config);
		else
			end_halt(task);
		link = &task->next;
	}
	for (size_t i = 0; i < config->consumer_count; i++) {
		const struct hx_config_consumer *settings = &config->consumers[i];
		struct hapax_error err;

		if (task_of(consumers, settings->name) != NULL)
			continue;
		say(consumers, "consumer added", settings->name);
		if (start_task(consumers, config, settings, &err) != HAPAX_OK)
			say_failed(consumers, settings->name, &err);
	}
	ask_pauses(consumers);
}

/* A past failure is over once something has been done since. */
static void forgive(struct hx_consumer_task *task)
{
	struct hx_consumer_view view;

	hx_consumer_task_look(task, &view);
	if (view.runs && view.now.acknowledged > 0)
		hx_background_trouble(&task->background, NULL);
}

void hx_consumers_tidy(struct hx_consumers *consumers)
{
	struct hx_consumer_task **link = &consumers->leaving;

	ask_pauses(consumers);
	for (struct hx_consumer_task *at = consumers->tasks; at != NULL; at = at->next)
		forgive(at);
	while (*link != NULL) {
		struct hx_consumer_task *task = *link;

		if (!hx_event_is_set(&task->background.has_ended)) {
			link = &task->next;
			continue;
		}
		(void)hx_background_join(&task->background, 0);
		*link = task->next;
		free_task(task);
	}
}

void hx_consumers_drain(struct hx_consumers *consumers)
{
	if (consumers->serve == NULL || consumers->is_draining)
		return;
	consumers->is_draining = true;
	for (struct hx_consumer_task *at = consumers->tasks; at != NULL; at = at->next)
		hx_background_drain(&at->background);
	one_ended(consumers);
}

/* Joins the members of a list that have ended by deadline_ns. False: not all have. */
static bool join_all(struct hx_consumer_task **link, int64_t deadline_ns)
{
	bool have_ended = true;

	while (*link != NULL) {
		struct hx_consumer_task *task = *link;

		if (hx_background_join(&task->background, deadline_ns)) {
			*link = task->next;
			free_task(task);
		} else {
			have_ended = false;
			link = &task->next;
		}
	}
	return have_ended;
}

bool hx_consumers_join(struct hx_consumers *consumers, int64_t deadline_ns)
{
	bool have_ended = join_all(&consumers->tasks, deadline_ns);

	return join_all(&consumers->leaving, deadline_ns) && have_ended &&
		!consumers->pauses.is_asking;
}
