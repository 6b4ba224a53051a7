/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family.c - the families of metrics that are counted in cells.
 */
#include "observe/metrics/family.h"

#include "base/macros.h"

#define US     INT64_C(1000)
#define MS     (1000 * US)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static const char *const doors[HX_DECIDER_COUNT] = {
	"gateway", "admin", "resp", "proxy", "consumer"};

static const char *const event_outcomes[HX_EVENT_OUTCOME_COUNT] = {
	"processed", "duplicate", "failed"};

/* In the order of enum hapax_decision; later ones are not a door's. */
static const char *const decisions[] = {
	"acquired", "replay", "in_progress", "mismatch", "parked", "fenced"};

static const char *const check_errors[HX_CHECK_ERROR_COUNT] = {
	"check_failed", "uncertain", "limit", "other"};

static const char *const unprotected[HX_UNPROTECTED_COUNT] = {"no_key", "disabled"};

static const char *const invalid[HX_INVALID_COUNT] = {
	"other",      "malformed", "media_type", "too_large", "no_key", "key",
	"credential", "signature", "no_route",   "path",      "method"};
/* In the order of enum hx_divergence, which begins with none. */
static const char *const divergences[] = {"new", "old", "different"};

static const char *const runs[HX_RUN_COUNT] = {
	"ok", "definitive", "transient", "ambiguous", "unstored"};

/* In the order of enum hapax_op_type, which begins with 1. */
static const char *const operations[] = {"claim", "renew",  "complete", "release", "park",
					 "check", "lookup", "forget",   "set",     "expire"};

static const char *const results[] = {"ok", "error"};

static const char *const refused[HX_REFUSED_COUNT] = {
	"address",      "tenant",       "requests",  "memory",     "file",   "head_timeout",
	"body_timeout", "send_timeout", "handshake", "credential", "locked", "idle"};

/* The three of document A, and decades around them. */
static const int64_t check_bounds[] = {10 * US,  25 * US,  50 * US,   100 * US, 250 * US,
				       500 * US, 1 * MS,   2500 * US, 5 * MS,   10 * MS,
				       50 * MS,  100 * MS, 1 * SECOND};

static const int64_t request_bounds[] = {100 * US,   500 * US,   1 * MS,      5 * MS,     10 * MS,
					 25 * MS,    50 * MS,    100 * MS,    250 * MS,   500 * MS,
					 1 * SECOND, 5 * SECOND, 10 * SECOND, 60 * SECOND};

static const int64_t ttl_bounds[] = {
	MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY};

const struct hx_family hx_families[HX_METRIC_COUNT] = {
	[HX_METRIC_DECISIONS] =
		{.name = "hapax_decisions",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Decisions about deliveries.",
		 .numbering = HX_NUMBERED_SCOPE,
		 .fixed =
			 {{"door", doors, HX_COUNT(doors)},
			  {"decision", decisions, HX_COUNT(decisions)}}},
	[HX_METRIC_EVENTS] =
		{.name = "hapax_events",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Deliveries, by event type, group and outcome.",
		 .numbering = HX_NUMBERED_EVENT,
		 .fixed = {{"outcome", event_outcomes, HX_COUNT(event_outcomes)}}},
	[HX_METRIC_DUPLICATES] =
		{.name = "hapax_duplicates",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Deliveries that did not run again, by event type.",
		 .alias = "duplicate_events_skipped",
		 .numbering = HX_NUMBERED_TYPE},
	[HX_METRIC_CHECK_DURATION] =
		{.name = "hapax_check_duration_seconds",
		 .unit = "seconds",
		 .kind = HX_PROMTEXT_HISTOGRAM,
		 .help = "Time from the claim to its answer.",
		 .alias = "idempotency_check_duration_seconds",
		 .fixed = {{"door", doors, HX_COUNT(doors)}},
		 .bounds_ns = check_bounds,
		 .bound_count = HX_COUNT(check_bounds)},
	[HX_METRIC_CHECK_ERRORS] =
		{.name = "hapax_check_errors",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Claims that the store did not answer.",
		 .alias = "idempotency_errors",
		 .fixed =
			 {{"door", doors, HX_COUNT(doors)},
			  {"reason", check_errors, HX_COUNT(check_errors)}}},
	[HX_METRIC_UNPROTECTED] =
		{.name = "hapax_unprotected_runs",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Deliveries that ran without a claim.",
		 .numbering = HX_NUMBERED_SCOPE,
		 .fixed = {{"reason", unprotected, HX_COUNT(unprotected)}}},
	[HX_METRIC_UNVERIFIED] =
		{.name = "hapax_unverified",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Duplicates whose payload could not be compared.",
		 .numbering = HX_NUMBERED_SCOPE},
	[HX_METRIC_KEY_DIVERGENCE] =
		{.name = "hapax_key_divergence",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Duplicates whose old and new key (key_also) disagree.",
		 .numbering = HX_NUMBERED_SCOPE,
		 .fixed = {{"known", divergences, HX_COUNT(divergences)}}},
	[HX_METRIC_RUNS] =
		{.name = "hapax_runs",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Finished runs, by outcome.",
		 .numbering = HX_NUMBERED_SCOPE,
		 .fixed = {{"outcome", runs, HX_COUNT(runs)}}},
	[HX_METRIC_OPERATIONS] =
		{.name = "hapax_store_operations",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Store operations requested by listeners.",
		 .fixed =
			 {{"operation", operations, HX_COUNT(operations)},
			  {"result", results, HX_COUNT(results)}}},
	[HX_METRIC_KEY_DURATION] =
		{.name = "hapax_key_derivation_duration_seconds",
		 .unit = "seconds",
		 .kind = HX_PROMTEXT_HISTOGRAM,
		 .help = "Time to compute key and fingerprint of an event.",
		 .bounds_ns = check_bounds,
		 .bound_count = HX_COUNT(check_bounds)},
	[HX_METRIC_KEY_TTL] =
		{.name = "hapax_key_ttl_seconds",
		 .unit = "seconds",
		 .kind = HX_PROMTEXT_HISTOGRAM,
		 .help = "TTL of claimed keys; keys that never expire add nothing to the sum.",
		 .bounds_ns = ttl_bounds,
		 .bound_count = HX_COUNT(ttl_bounds)},
	[HX_METRIC_UPSTREAM_DURATION] =
		{.name = "hapax_upstream_duration_seconds",
		 .unit = "seconds",
		 .kind = HX_PROMTEXT_HISTOGRAM,
		 .help = "Time until the whole response of an upstream arrived.",
		 .numbering = HX_NUMBERED_ROUTE,
		 .bounds_ns = request_bounds,
		 .bound_count = HX_COUNT(request_bounds)},
	[HX_METRIC_HANDLER_DURATION] =
		{.name = "hapax_consumer_handler_duration_seconds",
		 .unit = "seconds",
		 .kind = HX_PROMTEXT_HISTOGRAM,
		 .help = "Time that the handler of a consumer took.",
		 .numbering = HX_NUMBERED_CONSUMER,
		 .bounds_ns = request_bounds,
		 .bound_count = HX_COUNT(request_bounds)},
	[HX_METRIC_UPSTREAM_FAILURES] =
		{.name = "hapax_handler_failures",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Failed responses of upstreams; code none: no response.",
		 .numbering = HX_NUMBERED_ROUTE,
		 .fixed = {{"code", NULL, HX_CODE_COUNT}}},
	[HX_METRIC_INVALID_EVENTS] =
		{
			.name = "hapax_invalid_events",
			.kind = HX_PROMTEXT_COUNTER,
			.help = "Deliveries refused before a claim, by what was wrong.",
			.fixed =
				{{"door", doors, HX_COUNT(doors)},
				 {"reason", invalid, HX_COUNT(invalid)}}},
	[HX_METRIC_REQUESTS] =
		{.name = "hapax_http_requests",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Requests answered.",
		 .fixed = {{"door", doors, HX_DOOR_COUNT}, {"code", NULL, HX_CODE_COUNT}}},
	[HX_METRIC_REQUEST_DURATION] =
		{.name = "hapax_http_request_duration_seconds",
		 .unit = "seconds",
		 .kind = HX_PROMTEXT_HISTOGRAM,
		 .help = "Time from the complete request to its response.",
		 .fixed = {{"door", doors, HX_DOOR_COUNT}},
		 .bounds_ns = request_bounds,
		 .bound_count = HX_COUNT(request_bounds)},
	[HX_METRIC_CONNECTIONS] =
		{.name = "hapax_connections",
		 .kind = HX_PROMTEXT_GAUGE,
		 .help = "Open connections.",
		 .fixed = {{"door", doors, HX_DOOR_COUNT}}},
	[HX_METRIC_REFUSED] =
		{.name = "hapax_refused",
		 .kind = HX_PROMTEXT_COUNTER,
		 .help = "Connections and requests refused by a limit.",
		 .fixed = {{"reason", refused, HX_COUNT(refused)}}},
	[HX_METRIC_IN_PROGRESS] =
		{.name = "hapax_http_requests_in_progress",
		 .kind = HX_PROMTEXT_GAUGE,
		 .help = "Requests in progress.",
		 .fixed = {{"door", doors, HX_DOOR_COUNT}}},
};

const char *hx_door_name(enum hx_door door)
{
	return doors[door];
}

size_t hx_family_fixed_count(const struct hx_family *family)
{
	size_t count = 1;

	for (size_t i = 0; i < HX_FIXED_LABELS_MAX; i++)
		count *= family->fixed[i].name == NULL ? 1 : family->fixed[i].count;
	return count;
}

size_t hx_family_series_cells(const struct hx_family *family)
{
	return family->kind == HX_PROMTEXT_HISTOGRAM ? family->bound_count + 2 : 1;
}
