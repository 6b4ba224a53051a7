/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/probe.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "serve/daemon/daemon.h"

enum {
	/* A loop that has not turned for this long is stuck; the longest turns take a second. */
	STALL_SECONDS_MAX = 5,

	/* Added to the store's timeout. */
	GRACE_MS = 1000,
};

static struct hx_health_component *add(struct hx_probe *probe, const char *name, bool is_ok)
{
	struct hx_health_component *component = &probe->components[probe->count];

	assert(probe->count < HX_PROBE_COMPONENTS_MAX);
	probe->count++;
	*component = (struct hx_health_component){.name = name, .is_ok = is_ok};
	return component;
}

/* The text buffer of the last component. */
static char *text_of(struct hx_probe *probe)
{
	char *text = probe->texts[probe->count - 1];

	probe->components[probe->count - 1].reason = text;
	return text;
}

void hx_probe_live(struct hx_probe *probe, const struct hx_serve *serve)
{
	int64_t now_ns = hx_clock_mono_ns();
	int64_t worst_ns = 0;
	size_t worst = 0;
	size_t turning = 0;
	char *text;

	for (size_t i = 0; i < serve->loop_count; i++) {
		int64_t stalled_ns = hx_loop_stalled_ns(&serve->loops[i], now_ns);

		turning += stalled_ns <= STALL_SECONDS_MAX * HX_NS_PER_S;
		if (stalled_ns > worst_ns) {
			worst_ns = stalled_ns;
			worst = i;
		}
	}
	(void)add(probe, "loops", turning == serve->loop_count);
	text = text_of(probe);
	if (turning == serve->loop_count)
		(void)snprintf(
			text, HX_PROBE_TEXT_SIZE, "%zu of %zu running", turning, serve->loop_count);
	else
		(void)snprintf(
			text, HX_PROBE_TEXT_SIZE,
			"%zu of %zu running; loop %zu has been blocked for %" PRId64 " s", turning,
			serve->loop_count, worst, worst_ns / HX_NS_PER_S);
}

/* The last component, which has a text, decides on a condition. */
static void take_condition(
	const struct hx_probe *probe, struct hx_conditions *conditions, enum hx_condition condition,
	const char *subject)
{
	const struct hx_health_component *component = &probe->components[probe->count - 1];

	hx_condition_set(conditions, condition, subject, !component->is_ok, component->reason);
}

/* The reason why the store counts as unavailable; NULL: it does not. */
static const char *why_away(const struct hx_serve *serve, const struct hx_store_facts *facts)
{
	int64_t patience_ns = (serve->config->store.timeout_ms + GRACE_MS) * HX_NS_PER_MS;

	if (facts->answered != 0 && facts->status != HAPAX_OK)
		return facts->error.message;
	if (facts->has_outage && facts->outage.is_away)
		return "the store did not answer; hapax retries at intervals";
	if (facts->asked_ns != INT64_MAX && hx_clock_mono_ns() - facts->asked_ns > patience_ns)
		return "the store does not answer within store.timeout";
	return NULL;
}

static bool is_continued(const struct hx_config *config)
{
	if (config->defaults.on_store_failure == HX_CONFIG_ON_STORE_FAILURE_CONTINUE)
		return true;
	for (size_t i = 0; i < config->scope_count; i++) {
		if (config->scopes[i].on_store_failure == HX_CONFIG_ON_STORE_FAILURE_CONTINUE)
			return true;
	}
	return false;
}

/*
 * In an outage a daemon that continues is ready, even if some of its scopes refuse: otherwise no
 * daemon would accept the events of the other scopes.
 */
static void look_at_store(
	struct hx_probe *probe, struct hx_serve *serve, const struct hx_store_facts *facts)
{
	const char *why = why_away(serve, facts);
	bool goes_on = facts->has_outage && facts->has_journal &&
		facts->journal_status == HAPAX_OK && is_continued(serve->config);

	probe->is_store_up = why == NULL && atomic_load(&serve->is_latched) == 0;
	hx_condition_set(
		&serve->conditions, HX_CONDITION_STORE_DOWN, NULL, !probe->is_store_up,
		why == NULL ? "it failed permanently; restart the daemon" : why);
	hx_condition_set(
		&serve->conditions, HX_CONDITION_JOURNAL_IN_USE, NULL, why != NULL && goes_on,
		"scopes with on_store_failure: continue run without the store");
	if (atomic_load(&serve->is_latched) != 0) {
		(void)add(probe, "store", false);
		(void)snprintf(
			text_of(probe), HX_PROBE_TEXT_SIZE,
			"failed permanently; restart the daemon: %s",
			why == NULL ? "the log has the reason" : why);
	} else if (why == NULL) {
		(void)add(probe, "store", true);
	} else if (goes_on) {
		add(probe, "store", false)->is_optional = true;
		(void)snprintf(
			text_of(probe), HX_PROBE_TEXT_SIZE,
			"unavailable: %s; scopes with on_store_failure: continue use the journal",
			why);
	} else {
		(void)add(probe, "store", false);
		(void)snprintf(text_of(probe), HX_PROBE_TEXT_SIZE, "unavailable: %s", why);
	}
}

/* Leases and TTLs use the store's clock, so a wrong clock here affects only displayed times. */
static void look_at_clock(
	struct hx_probe *probe, struct hx_serve *serve, const struct hx_store_facts *facts)
{
	int64_t skew_ms = facts->stats.skew_ms;
	int64_t limit_ms = serve->config->store.max_clock_skew_ms;

	if (!facts->has_stats)
		return;
	add(probe, "clock", skew_ms <= limit_ms && -skew_ms <= limit_ms)->is_optional = true;
	(void)snprintf(
		text_of(probe), HX_PROBE_TEXT_SIZE,
		"the store's clock minus the clock of this host is %" PRId64 " ms, "
		"store.max_clock_skew is %" PRId64 " ms",
		skew_ms, limit_ms);
	take_condition(probe, &serve->conditions, HX_CONDITION_CLOCK_SKEW, NULL);
}

static void look_at_journal(
	struct hx_probe *probe, struct hx_serve *serve, const struct hx_store_facts *facts)
{
	if (!facts->has_journal)
		return;
	add(probe, "journal", facts->journal_status == HAPAX_OK)->is_optional = true;
	if (facts->journal_status == HAPAX_OK)
		(void)snprintf(
			text_of(probe), HX_PROBE_TEXT_SIZE, "%" PRIu64 " records",
			facts->journal_records);
	else
		(void)snprintf(
			text_of(probe), HX_PROBE_TEXT_SIZE,
			"the journal cannot be read; on_store_failure: continue has no effect");
	take_condition(probe, &serve->conditions, HX_CONDITION_JOURNAL_FAILED, NULL);
}

/* Optional: the doors work regardless of it. */
static void look_at_outbox(struct hx_probe *probe, struct hx_serve *serve)
{
	struct hx_background *background = &serve->outbox.background;
	struct hapax_error trouble;
	bool is_wanted = hx_background_look(background, &trouble);

	if (is_wanted) {
		add(probe, background->ops->name, trouble.status == HAPAX_OK)->is_optional = true;
		if (trouble.status != HAPAX_OK)
			(void)snprintf(
				text_of(probe), HX_PROBE_TEXT_SIZE, "degraded: %s",
				trouble.message);
	}
	hx_condition_set(
		&serve->conditions, HX_CONDITION_OUTBOX_PAUSED, NULL,
		is_wanted && trouble.status != HAPAX_OK && trouble.os_errno != EINPROGRESS,
		trouble.message);
}

/* The same for consumers: a broker outage does not affect HTTP senders. */
static void look_at_consumers(struct hx_probe *probe, struct hx_consumers *consumers)
{
	struct hx_health_component *component;

	if (!hx_consumers_exist(consumers))
		return;
	component = add(probe, "consumers", true);
	component->is_optional = true;
	component->is_ok =
		hx_consumers_troubled(consumers, text_of(probe), HX_PROBE_TEXT_SIZE) == 0;
}

static struct hx_health_component *find(struct hx_probe *probe, const char *name)
{
	for (size_t i = 0; i < probe->count; i++) {
		if (strcmp(probe->components[i].name, name) == 0)
			return &probe->components[i];
	}
	return NULL;
}

/* A part has the reason of its first condition, unless it has a reason of its own. */
static void look_at_conditions(struct hx_probe *probe, struct hx_conditions *conditions)
{
	probe->condition_count = hx_conditions_list(conditions, probe->conditions);
	for (size_t i = 0; i < probe->condition_count; i++) {
		const struct hx_condition_row *row = &probe->conditions[i];
		const struct hx_condition_kind *kind = &hx_condition_kinds[row->condition];
		struct hx_health_component *component = find(probe, kind->part);

		/* It is held only for the log. */
		if (row->ended_ms != INT64_MAX || kind->severity == HX_SEVERITY_INFO)
			continue;
		if (component == NULL)
			component = add(probe, kind->part, true);
		else if (!component->is_ok)
			continue;
		component->is_ok = false;
		component->is_optional = true;
		component->reason = row->reason;
	}
}

void hx_probe_ready(
	struct hx_probe *probe, struct hx_serve *serve, const struct hx_store_facts *facts)
{
	hx_probe_live(probe, serve);
	look_at_store(probe, serve, facts);
	look_at_clock(probe, serve, facts);
	look_at_journal(probe, serve, facts);
	look_at_outbox(probe, serve);
	look_at_consumers(probe, &serve->consumers);
	look_at_conditions(probe, &serve->conditions);
	if (atomic_load(&serve->is_draining) != 0)
		add(probe, "drain", false)->reason = "the daemon is shutting down";
	else
		(void)add(probe, "drain", true);
}

void hx_probe_health(struct hx_probe *probe)
{
	for (size_t i = 0; i < probe->condition_count; i++) {
		const struct hx_condition_row *row = &probe->conditions[i];
		const struct hx_condition_kind *kind = &hx_condition_kinds[row->condition];
		struct hx_health_component *component = find(probe, kind->part);

		/* One that has ended is held only for the log. */
		if (row->ended_ms == INT64_MAX && kind->severity == HX_SEVERITY_CRITICAL &&
		    component != NULL)
			component->is_optional = false;
	}
}
