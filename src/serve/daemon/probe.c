/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/probe.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

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
	struct hx_probe *probe, const struct hx_serve *serve, const struct hx_store_facts *facts)
{
	const char *why = why_away(serve, facts);
	bool goes_on = facts->has_outage && facts->has_journal &&
		facts->journal_status == HAPAX_OK && is_continued(serve->config);

	probe->is_store_up = why == NULL && atomic_load(&serve->is_latched) == 0;
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
	struct hx_probe *probe, const struct hx_serve *serve, const struct hx_store_facts *facts)
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
}

static void look_at_journal(struct hx_probe *probe, const struct hx_store_facts *facts)
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
}

/* Optional: the doors work regardless of it. */
static void look_at_background(struct hx_probe *probe, struct hx_background *background)
{
	struct hapax_error trouble;

	if (!hx_background_look(background, &trouble))
		return;
	add(probe, background->ops->name, trouble.status == HAPAX_OK)->is_optional = true;
	if (trouble.status != HAPAX_OK)
		(void)snprintf(text_of(probe), HX_PROBE_TEXT_SIZE, "degraded: %s", trouble.message);
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

void hx_probe_ready(
	struct hx_probe *probe, struct hx_serve *serve, const struct hx_store_facts *facts)
{
	hx_probe_live(probe, serve);
	look_at_store(probe, serve, facts);
	look_at_clock(probe, serve, facts);
	look_at_journal(probe, facts);
	look_at_background(probe, &serve->outbox.background);
	look_at_consumers(probe, &serve->consumers);
	if (atomic_load(&serve->is_draining) != 0)
		add(probe, "drain", false)->reason = "the daemon is shutting down";
	else
		(void)add(probe, "drain", true);
}
