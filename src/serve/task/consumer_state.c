/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer_state.c - the state of the daemon's consumers: for metrics, probes and listings.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "config/config.h"
#include "observe/metrics/metrics_consumers.h"
#include "serve/daemon/daemon.h"
#include "serve/task/consumer_task.h"
#include "serve/task/consumers.h"

/* How long a broker that failed and has been silent since counts as unavailable. */
enum { SOURCE_SECONDS = 60 };

/* Its name, and a reason. */
enum { WHY_SIZE = HX_CONSUMER_LABEL_SIZE + HAPAX_ERROR_MESSAGE_SIZE + 64 };

void hx_consumer_task_add(
	struct hapax_consumer_stats *sum, const struct hapax_consumer_stats *stats)
{
	sum->received += stats->received;
	sum->acknowledged += stats->acknowledged;
	sum->given_back += stats->given_back;
	for (size_t i = 0; i < HX_COUNT(sum->runs); i++)
		sum->runs[i] += stats->runs[i];
	for (size_t i = 0; i < HAPAX_CAUSE_COUNT; i++)
		sum->duplicates[i] += stats->duplicates[i];
	sum->in_progress += stats->in_progress;
	sum->mismatches += stats->mismatches;
	sum->parked += stats->parked;
	sum->retries += stats->retries;
	sum->refused += stats->refused;
	sum->unstored += stats->unstored;
	sum->dead_letters += stats->dead_letters;
	sum->diverted += stats->diverted;
	sum->tagged += stats->tagged;
	sum->unreadable += stats->unreadable;
	sum->diverged += stats->diverged;
	sum->placed += stats->placed;
	sum->failures += stats->failures;
	sum->rebalances += stats->rebalances;
}

bool hx_consumers_exist(const struct hx_consumers *consumers)
{
	return consumers->tasks != NULL;
}

/* Nothing is retired meanwhile, so nothing is counted twice or missed. */
static void look(struct hx_background *background, void *arg, void *context)
{
	struct hx_consumer_task *task = (struct hx_consumer_task *)background;
	struct hx_consumer_view *view = context;
	struct hx_consumer_work *work = arg;

	view->runs = work != NULL;
	view->now = (struct hapax_consumer_stats)HAPAX_CONSUMER_STATS_INIT;
	if (view->runs)
		hapax_consumer_stats(work->consumer, &view->now);
	view->sum = view->now;
	hx_lock_acquire(&task->lock);
	hx_consumer_task_add(&view->sum, &task->before);
	hx_lock_release(&task->lock);
}

void hx_consumer_task_look(struct hx_consumer_task *task, struct hx_consumer_view *ret_view)
{
	/* One that is not enabled has its past. */
	if (!hx_background_visit(&task->background, look, ret_view))
		look(&task->background, NULL, ret_view);
}

static void tell_one(struct hx_consumer_task *task, struct hx_consumer_facts *facts)
{
	struct hx_consumer_view view;

	hx_consumer_task_look(task, &view);
	facts->name = task->name;
	facts->is_up = view.runs;
	facts->stats = view.sum;
	hx_lock_acquire(&task->lock);
	facts->is_paused = task->pause.is_paused;
	facts->is_waiting = task->is_paused;
	facts->is_halted = task->is_halted;
	facts->starts = task->starts;
	hx_lock_release(&task->lock);
}

struct hx_consumer_facts *hx_consumers_facts(struct hx_consumers *consumers, size_t *ret_count)
{
	struct hx_consumer_facts *facts = NULL;
	size_t count = 0;

	for (const struct hx_consumer_task *at = consumers->tasks; at != NULL; at = at->next)
		count++;
	if (count > 0)
		facts = hx_alloc_zero(count, sizeof(*facts));
	*ret_count = facts == NULL ? 0 : count;
	count = 0;
	for (struct hx_consumer_task *at = consumers->tasks; at != NULL && facts != NULL;
	     at = at->next)
		tell_one(at, &facts[count++]);
	return facts;
}

/*
 * A broker that recovers does not report it: a new message shows it, or no further failure for a
 * while.
 * Locks: task->lock held.
 */
static bool is_source_away(struct hx_consumer_task *task, uint64_t received)
{
	if (task->is_news)
		task->received = received;
	task->is_news = false;
	if (received != task->received ||
	    hx_clock_mono_ns() - task->failed_ns >= SOURCE_SECONDS * HX_NS_PER_S)
		task->failed_ns = 0;
	return task->failed_ns != 0;
}

enum trouble {
	TROUBLE_NONE,
	TROUBLE_START,  /* it has not reported yet */
	TROUBLE_BROKER, /* it does not run, or its broker fails */
	TROUBLE_STORE,
	TROUBLE_MESSAGE, /* it stopped at one; it has begun a condition itself */
};

static enum trouble why_not(struct hx_consumer_task *task, char *reason, size_t size)
{
	struct hapax_error trouble = {.status = HAPAX_OK};
	struct hx_consumer_view view;
	enum trouble kind = TROUBLE_NONE;

	hx_consumer_task_look(task, &view);
	if (!hx_background_look(&task->background, &trouble))
		return TROUBLE_NONE;
	hx_lock_acquire(&task->lock);
	if (!view.runs && trouble.status != HAPAX_OK) {
		(void)snprintf(reason, size, "%s: %s", task->name, trouble.message);
		kind = trouble.os_errno == EINPROGRESS ? TROUBLE_START : TROUBLE_BROKER;
	} else if (view.runs && task->is_paused) {
		(void)snprintf(
			reason, size, "%s: paused, the store is unavailable (%s)", task->name,
			task->why);
		kind = TROUBLE_STORE;
	} else if (view.runs && task->is_halted) {
		(void)snprintf(reason, size, "%s: %s", task->name, task->halt);
		kind = TROUBLE_MESSAGE;
	} else if (view.runs && is_source_away(task, view.now.received)) {
		(void)snprintf(reason, size, "%s: %s", task->name, task->why);
		kind = TROUBLE_BROKER;
	} else if (view.runs && !task->is_reached) {
		(void)snprintf(reason, size, "%s: waiting for its broker", task->name);
		kind = TROUBLE_START;
	}
	hx_lock_release(&task->lock);
	return kind;
}

size_t hx_consumers_troubled(struct hx_consumers *consumers, char *reason, size_t size)
{
	size_t troubled = 0;
	size_t count = 0;
	size_t idle = 0; /* disabled or paused, which is not a fault */

	reason[0] = '\0';
	for (struct hx_consumer_task *at = consumers->tasks; at != NULL; at = at->next) {
		char why[WHY_SIZE] = "";
		enum trouble trouble = why_not(at, why, sizeof(why));

		count++;
		idle += !at->settings->enabled || at->pause.is_paused;
		hx_condition_set(
			&consumers->serve->conditions, HX_CONDITION_BROKER_AWAY, at->name,
			trouble == TROUBLE_BROKER, why);
		/* For the others their number is enough. */
		if (trouble != TROUBLE_NONE && troubled++ == 0)
			(void)snprintf(reason, size, "%s", why);
	}
	if (troubled > 1) {
		size_t used = strlen(reason);

		(void)snprintf(
			reason + used, size - used, "; and %zu others of %zu", troubled - 1, count);
	} else if (troubled == 0) {
		(void)snprintf(reason, size, "%zu of %zu running", count - idle, count);
	}
	return troubled;
}

static const char *state_of(struct hx_consumer_task *task, const char *reason)
{
	if (!task->settings->enabled)
		return "disabled";
	if (task->pause.is_paused || task->is_halted)
		return "paused";
	if (task->is_paused || !task->pause.is_known || (!task->is_reached && task->failed_ns == 0))
		return "waiting";
	return reason[0] != '\0' ? "failed" : "running";
}

void hx_consumers_list(struct hx_consumers *consumers, hx_api_consumer_fn *each, void *context)
{
	for (struct hx_consumer_task *at = consumers->tasks; at != NULL; at = at->next) {
		char reason[WHY_SIZE] = "";
		struct hx_consumer_facts facts = {.name = NULL};
		struct hx_api_consumer consumer = {.name = at->name, .reason = reason};

		tell_one(at, &facts);
		if (why_not(at, reason, sizeof(reason)) == TROUBLE_NONE)
			reason[0] = '\0';
		hx_lock_acquire(&at->lock);
		consumer.state = state_of(at, reason);
		consumer.pause = at->pause;
		hx_lock_release(&at->lock);
		if (consumer.pause.is_paused)
			consumer.reason = consumer.pause.reason;
		consumer.stats = facts.stats;
		consumer.is_open = hx_background_works(&at->background);
		each(context, &consumer);
	}
}
