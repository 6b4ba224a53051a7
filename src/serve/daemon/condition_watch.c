/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/condition_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "observe/metrics/metrics.h"
#include "observe/metrics/process_facts.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/probe.h"

enum {
	/* The store is asked this often without probes and scrapes; a failure asks at once. */
	ASK_SECONDS = 10,

	/* A refusal counts for this long if no later claim shows the contrary. */
	REFUSED_SECONDS = 60,

	/* Overload of the doors counts for this long after the last refused request. */
	OVERLOAD_SECONDS = 10,

	/* A clock that has not moved for this long does not move. */
	FROZEN_SECONDS = 3,

	/* More than this share of a limit is used up. */
	NEAR_PERCENT = 90,
	HALF_PERCENT = 50,

	/* Descriptors are counted this often, which is not free with many of them. */
	COUNT_SECONDS = 10,
};

static int64_t sum_errors(const struct hx_serve *serve, enum hx_check_error reason)
{
	int64_t sum = 0;

	for (unsigned door = 0; door < HX_DECIDER_COUNT; door++)
		sum += hx_metrics_sum(
			serve->metrics, HX_METRIC_CHECK_ERRORS, 0,
			door * HX_CHECK_ERROR_COUNT + (unsigned)reason);
	return sum;
}

/* ------------------------------------------------------------------ the store */

static int64_t slow_ns(const struct hx_serve *serve)
{
	return serve->config->store.timeout_ms * HX_NS_PER_MS / 2;
}

/* Now and then, and each time while something is wrong: its end must be noticed. */
static void ask_store(struct hx_serve *serve, const struct hx_store_facts *facts)
{
	struct hx_condition_watch *watch = &serve->condition_watch;
	int64_t failed = sum_errors(serve, HX_CHECK_ERROR_CHECK_FAILED) +
		sum_errors(serve, HX_CHECK_ERROR_UNCERTAIN);
	bool is_old = facts->answered == 0 ||
		hx_clock_mono_ns() - facts->answered_ns >= ASK_SECONDS * HX_NS_PER_S;
	bool is_ill = facts->status != HAPAX_OK || facts->took_ns > slow_ns(serve) ||
		failed != watch->failed || watch->is_asking || watch->shortage != HX_SHORTAGE_NONE;

	if (facts->asked_ns == INT64_MAX && (is_old || is_ill))
		(void)hx_store_view_ask(&serve->view);
	watch->failed = failed;
}

static void look_at_speed(struct hx_serve *serve, const struct hx_store_facts *facts)
{
	int64_t took_ns = facts->asked_ns == INT64_MAX ? facts->took_ns
						       : hx_clock_mono_ns() - facts->asked_ns;
	char reason[HX_CONDITION_REASON_SIZE];

	(void)snprintf(
		reason, sizeof(reason),
		"the store takes %" PRId64 " ms to answer, which is more than half of "
		"store.timeout",
		took_ns / HX_NS_PER_MS);
	hx_condition_set(
		&serve->conditions, HX_CONDITION_STORE_SLOW, NULL, took_ns > slow_ns(serve),
		reason);
}

/* Whether at least percent of a limit is used up. */
static bool is_used(const struct hapax_stats *stats, enum hx_shortage shortage, uint64_t percent)
{
	bool is_keys = shortage == HX_SHORTAGE_KEYS;
	uint64_t max = is_keys ? stats->keys_max : stats->bytes_max;

	return max != 0 &&
		(double)(is_keys ? stats->keys : stats->bytes) >=
		(double)max / 100 * (double)percent;
}

/*
 * A refusal has no reason. Unless the store says that its disk is full, it is the limit that is
 * reached. The store may have deleted keys since, so a limit that is nearly reached will do.
 */
static enum hx_shortage find_shortage(
	const struct hx_serve *serve, const struct hx_store_facts *facts)
{
	const struct hapax_stats *stats = &facts->stats;

	if (stats->disk_full)
		return HX_SHORTAGE_DISK;
	if (is_used(stats, HX_SHORTAGE_KEYS, 100))
		return HX_SHORTAGE_KEYS;
	if (is_used(stats, HX_SHORTAGE_BYTES, NEAR_PERCENT))
		return HX_SHORTAGE_BYTES;
	if (serve->stack.limit != NULL)
		return HX_SHORTAGE_TENANT;
	if (is_used(stats, HX_SHORTAGE_KEYS, HALF_PERCENT) ||
	    (!serve->can_latch && stats->keys_max != 0))
		return HX_SHORTAGE_KEYS;
	if (is_used(stats, HX_SHORTAGE_BYTES, HALF_PERCENT))
		return HX_SHORTAGE_BYTES;
	/* A local store would say so: there is room again. */
	return serve->can_latch ? HX_SHORTAGE_NONE : HX_SHORTAGE_DISK;
}

/* Whether the store would still refuse, as far as known. */
static bool is_still_short(const struct hx_serve *serve, const struct hx_store_facts *facts)
{
	const struct hx_condition_watch *watch = &serve->condition_watch;
	bool is_old = hx_clock_mono_ns() - watch->refused_ns >= REFUSED_SECONDS * HX_NS_PER_S;

	if (watch->is_disk_full)
		return facts->stats.disk_full;
	if (facts->stats.counts[HAPAX_DECISION_ACQUIRED] != watch->acquired)
		return false;
	if (watch->shortage == HX_SHORTAGE_KEYS)
		return is_used(&facts->stats, HX_SHORTAGE_KEYS, 100);
	if (watch->shortage == HX_SHORTAGE_BYTES)
		return is_used(&facts->stats, HX_SHORTAGE_BYTES, NEAR_PERCENT);
	return !is_old;
}

/* Looks for refused claims, then, when the store has answered since, for the reason. */
static void note_refusals(struct hx_serve *serve, const struct hx_store_facts *facts)
{
	struct hx_condition_watch *watch = &serve->condition_watch;
	int64_t refused = sum_errors(serve, HX_CHECK_ERROR_LIMIT);

	if (refused != watch->refused) {
		watch->refused = refused;
		watch->refused_ns = hx_clock_mono_ns();
		/* Further refusals do not put the answer off. */
		if (!watch->is_asking)
			watch->asked_ns = watch->refused_ns;
		watch->is_asking = true;
	}
	if (watch->is_asking && facts->has_stats && facts->stats_ns > watch->asked_ns) {
		watch->is_asking = false;
		watch->shortage = find_shortage(serve, facts);
		watch->is_disk_full = facts->stats.disk_full;
		watch->acquired = facts->stats.counts[HAPAX_DECISION_ACQUIRED];
	} else if (watch->shortage != HX_SHORTAGE_NONE && !is_still_short(serve, facts)) {
		watch->shortage = HX_SHORTAGE_NONE;
	}
}

static void look_at_room(struct hx_serve *serve, const struct hx_store_facts *facts)
{
	static const char *const limits[] = {
		[HX_SHORTAGE_KEYS] = "store.max_keys",
		[HX_SHORTAGE_BYTES] = "store.max_bytes",
		[HX_SHORTAGE_TENANT] = "store.max_keys_per_tenant",
	};
	char reason[HX_CONDITION_REASON_SIZE];

	note_refusals(serve, facts);
	for (size_t i = HX_SHORTAGE_KEYS; i < HX_COUNT(limits); i++) {
		(void)snprintf(
			reason, sizeof(reason), "%s is reached, new keys are refused", limits[i]);
		hx_condition_set(
			&serve->conditions, HX_CONDITION_LIMIT_REACHED, limits[i],
			serve->condition_watch.shortage == (enum hx_shortage)i, reason);
	}
	(void)snprintf(
		reason, sizeof(reason), "the store '%s' has no room for new keys, they are refused",
		hapax_store_url(serve->store));
	hx_condition_set(
		&serve->conditions, HX_CONDITION_DISK_FULL, NULL,
		serve->condition_watch.shortage == HX_SHORTAGE_DISK, reason);
}

/* ------------------------------------------------------------------ clocks */

static void look_at_clocks(struct hx_serve *serve, const struct hx_store_facts *facts)
{
	struct hx_condition_watch *watch = &serve->condition_watch;
	int64_t now_ms = facts->stats.now_ms;

	hx_condition_set(
		&serve->conditions, HX_CONDITION_CLOCK_UNSYNCED, NULL, !hx_clock_is_synchronized(),
		"the kernel reports that no time source keeps the clock of this host; only "
		"displayed times are affected");
	if (!facts->has_stats)
		return;
	if (watch->moved_ns == 0 || now_ms != watch->store_ms) {
		watch->store_ms = now_ms;
		watch->moved_ns = facts->stats_ns;
	}
	hx_condition_set(
		&serve->conditions, HX_CONDITION_CLOCK_FROZEN, NULL,
		facts->stats_ns - watch->moved_ns >= FROZEN_SECONDS * HX_NS_PER_S,
		"the store's clock stands still, so no key expires and no lease lapses; a process "
		"with a boot clock that was ahead has used it; stop its users and copy it with "
		"'hapax store copy'");
}

/* ------------------------------------------------------------------ the doors */

/* Requests that were refused because all of them together were too many. */
static void look_at_overload(struct hx_serve *serve)
{
	static const struct {
		enum hx_refused refused;
		const char *limit;
	} rows[] = {
		{HX_REFUSED_REQUESTS, "http.max_requests"},
		{HX_REFUSED_MEMORY, "memory.listeners"},
	};
	struct hx_condition_watch *watch = &serve->condition_watch;
	int64_t now_ns = hx_clock_mono_ns();

	static_assert(HX_COUNT(rows) == HX_COUNT(watch->overloads), "one count each");
	for (size_t i = 0; i < HX_COUNT(rows); i++) {
		int64_t count =
			hx_metrics_sum(serve->metrics, HX_METRIC_REFUSED, 0, rows[i].refused);
		char reason[HX_CONDITION_REASON_SIZE];

		if (count != watch->overloads[i])
			watch->overload_ns[i] = now_ns;
		watch->overloads[i] = count;
		(void)snprintf(
			reason, sizeof(reason), "%s is reached, requests are refused",
			rows[i].limit);
		hx_condition_set(
			&serve->conditions, HX_CONDITION_LIMIT_REACHED, rows[i].limit,
			watch->overload_ns[i] != 0 &&
				now_ns - watch->overload_ns[i] < OVERLOAD_SECONDS * HX_NS_PER_S,
			reason);
	}
}

/*
 * A door that is nearly full: because descriptors are short, or by its setting, wanted. True: by its
 * setting; reason says how full.
 */
static bool look_at_door(
	struct hx_serve *serve, enum hx_door door, uint64_t wanted,
	char reason[HX_CONDITION_REASON_SIZE])
{
	uint64_t max = hx_descriptors_connections(&serve->descriptors, serve->config, door);
	uint64_t open =
		(uint64_t)hx_metrics_sum(serve->metrics, HX_METRIC_CONNECTIONS, 0, (unsigned)door);
	bool is_full = serve->descriptors.is_open[door] && open * 100 >= max * NEAR_PERCENT;
	bool is_short = wanted == 0 || max < wanted;

	(void)snprintf(
		reason, HX_CONDITION_REASON_SIZE,
		"the %s listener has %" PRIu64 " of at most %" PRIu64 " connections%s",
		hx_door_name(door), open, max,
		is_short ? ", for lack of file descriptors; raise LimitNOFILE or ulimit -n" : "");
	hx_condition_set(
		&serve->conditions, HX_CONDITION_DESCRIPTORS_SHORT, hx_door_name(door),
		is_full && is_short, reason);
	return is_full && !is_short;
}

/* Gateway and proxy have one setting: the door that is not full must not end the condition. */
static void look_at_doors(struct hx_serve *serve)
{
	uint64_t wanted = serve->config->http.max_connections;
	char reasons[2][HX_CONDITION_REASON_SIZE];
	bool is_gateway = look_at_door(serve, HX_DOOR_GATEWAY, wanted, reasons[0]);
	bool is_proxy = look_at_door(serve, HX_DOOR_PROXY, wanted, reasons[1]);
	bool is_resp;

	hx_condition_set(
		&serve->conditions, HX_CONDITION_LIMIT_REACHED, "http.max_connections",
		is_gateway || is_proxy, reasons[is_gateway ? 0 : 1]);
	wanted = serve->config->resp.max_connections;
	is_resp = look_at_door(serve, HX_DOOR_RESP, wanted, reasons[0]);
	hx_condition_set(
		&serve->conditions, HX_CONDITION_LIMIT_REACHED, "resp.max_connections", is_resp,
		reasons[0]);
}

static void look_at_descriptors(struct hx_serve *serve)
{
	struct hx_process_facts facts;
	char reason[HX_CONDITION_REASON_SIZE];

	if (serve->condition_watch.looks % COUNT_SECONDS != 0 ||
	    !hx_process_facts_read(hx_io_system(), &facts))
		return;
	(void)snprintf(
		reason, sizeof(reason),
		"%" PRIu64 " of %" PRIu64 " file descriptors are open; raise LimitNOFILE or ulimit "
		"-n",
		facts.open_fds, facts.max_fds);
	hx_condition_set(
		&serve->conditions, HX_CONDITION_DESCRIPTORS_SHORT, NULL,
		facts.max_fds != 0 && facts.open_fds * 100 >= facts.max_fds * NEAR_PERCENT, reason);
}

/* ------------------------------------------------------------------ the rest */

static void look_at_audits(struct hx_serve *serve)
{
	size_t count;
	struct hx_audit_facts *audits = hx_outbox_audits_facts(&serve->audits, &count);
	char reason[HX_CONDITION_REASON_SIZE];

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(
			reason, sizeof(reason), "%" PRIu64 " of %" PRIu64 " rows have no event",
			audits[i].missing, audits[i].checked);
		hx_condition_set(
			&serve->conditions, HX_CONDITION_OUTBOX_INCOMPLETE, audits[i].name,
			audits[i].missing > 0, reason);
	}
	hx_free(audits);
}

void hx_condition_watch_look(struct hx_serve *serve)
{
	struct hx_probe probe = {.count = 0};
	struct hx_store_facts facts;

	hx_store_view_look(&serve->view, &facts);
	look_at_room(serve, &facts);
	ask_store(serve, &facts);
	look_at_speed(serve, &facts);
	look_at_clocks(serve, &facts);
	look_at_overload(serve);
	look_at_doors(serve);
	look_at_descriptors(serve);
	look_at_audits(serve);
	hx_tls_set_watch(&serve->door_tls, serve->config, &serve->service, &serve->conditions);
	hx_probe_ready(&probe, serve, &facts);
	hx_conditions_tick(&serve->conditions);
	serve->condition_watch.looks++;
}

void hx_condition_watch_reload(struct hx_serve *serve)
{
	static const enum hx_condition by_name[] = {
		HX_CONDITION_UPSTREAM_DOWN, HX_CONDITION_UPSTREAM_SLOW,
		HX_CONDITION_CERT_EXPIRED,  HX_CONDITION_CERT_EXPIRING,
		HX_CONDITION_BROKER_AWAY,   HX_CONDITION_OUTBOX_INCOMPLETE,
	};

	for (size_t i = 0; i < HX_COUNT(by_name); i++)
		hx_condition_end_all(&serve->conditions, by_name[i]);
	hx_condition_end(&serve->conditions, HX_CONDITION_RELOAD_REFUSED, NULL);
}
