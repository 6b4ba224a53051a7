/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_table.c - every path of the API: role, request and reply.
 *
 * To add one: a row, its handler, the schema of its reply in api_schema.c. /openapi.json and the
 * tests that compare handlers with it follow.
 */
#include "api/gc.h"
#include "api/api_operation.h"
#include "api/api_request.h"
#include "api/route.h"
#include "base/limits.h"
#include "base/macros.h"

static const char *const states[] = {"claimed", "done", "failed", "parked", NULL};

/* A tenant or a group. */
#define NAME HX_API_PARAMETER_TEXT, .min = 1, .max = HX_SCOPE_PART_SIZE_MAX

static const struct hx_api_parameter keys_parameters[] = {
	{"tenant", NAME, .doc = "only of this tenant"},
	{"group", NAME, .doc = "only of this group"},
	{"state", HX_API_PARAMETER_CHOICE, .choices = states,
	 .doc = "only in this state; parked: the queue of what waits for a decision"},
	{"prefix", HX_API_PARAMETER_TEXT, .max = HX_KEY_SIZE_MAX, .doc = "only keys that begin so"},
	{"limit", HX_API_PARAMETER_COUNT, .min = 1, .max = 1000,
	 .doc = "how many at once; 100 unless it is given"},
	{"cursor", HX_API_PARAMETER_TEXT, .min = 1, .max = 4096,
	 .doc = "of the reply before this one: go on there; the other parameters stay as they were"},
	{"expired", HX_API_PARAMETER_BOOLEAN,
	 .doc = "also those that have expired and were not swept yet"},
	{"whole", HX_API_PARAMETER_BOOLEAN,
	 .doc = "with results, and for whoever may write with attempt ids"},
	{.name = NULL},
};

static const struct hx_api_parameter delete_parameters[] = {
	{"force", HX_API_PARAMETER_BOOLEAN,
	 .doc = "also while it is claimed or parked; whoever holds it is fenced; for the role admin"},
	{.name = NULL},
};

static const struct hx_api_parameter stats_parameters[] = {
	{"hours", HX_API_PARAMETER_BOOLEAN,
	 .doc = "a row for each scope and hour that is kept, and totals without regard to a reset"},
	{.name = NULL},
};

static const struct hx_api_parameter duplicates_parameters[] = {
	{"limit", HX_API_PARAMETER_COUNT, .min = 1, .max = HX_DUPLICATES_KEPT_MAX,
	 .doc = "how many; 100 unless it is given"},
	{"tenant", NAME, .doc = "only of this tenant"},
	{"group", NAME, .doc = "only of this group"},
	{.name = NULL},
};

static const struct hx_api_parameter events_parameters[] = {
	{"decision", HX_API_PARAMETER_TEXT, .min = 1, .max = 128,
	 .doc = "only these, with commas: acquired, replay, in_progress, mismatch, parked, fenced"},
	{"tenant", NAME, .doc = "only of this tenant"},
	{"group", NAME, .doc = "only of this group"},
	{"last_event_id", HX_API_PARAMETER_TEXT, .max = 64,
	 .doc = "as the field Last-Event-ID: go on behind it"},
	{.name = NULL},
};

static const struct hx_api_parameter audit_parameters[] = {
	{"limit", HX_API_PARAMETER_COUNT, .min = 1, .max = HX_AUDIT_ENTRIES_MAX,
	 .doc = "how many; 100 unless it is given"},
	{"before", HX_API_PARAMETER_COUNT, .min = 1, .max = INT64_MAX,
	 .doc = "only those with a smaller number"},
	{.name = NULL},
};

static const struct hx_api_parameter outbox_parameters[] = {
	{"limit", HX_API_PARAMETER_COUNT, .min = 1, .max = 1000,
	 .doc = "how many parked events at most; 100 unless it is given"},
	{.name = NULL},
};

/* One operation, or an array of them. */
#define BATCH(what, used) \
	.body = HX_API_BODY_BATCH, .section = &hx_operation_section, .use = (used), .reply = (what)

#define KEY_PATH "/api/v1/keys/{tenant}/{group}/{key}"

const struct hx_api_route hx_api_routes[] = {
	{"POST", "/api/v1/claim", HX_API_ROLE_WRITE, "claim", "Ask for the right to run",
	 hx_api_post_operations, BATCH("Answer", HX_USE_CLAIM), .statuses = "413 415 503"},
	{"POST", "/api/v1/renew", HX_API_ROLE_WRITE, "renew", "Restart the lease of a claim",
	 hx_api_post_operations, BATCH("Answer", HX_USE_RENEW), .statuses = "409 413 415 503"},
	{"POST", "/api/v1/complete", HX_API_ROLE_WRITE, "complete",
	 "The run has ended for good: keep its result", hx_api_post_operations,
	 BATCH("Answer", HX_USE_COMPLETE), .statuses = "409 413 415 503"},
	{"POST", "/api/v1/release", HX_API_ROLE_WRITE, "release",
	 "The run failed without effect: the next claim runs", hx_api_post_operations,
	 BATCH("Answer", HX_USE_RELEASE), .statuses = "409 413 415 503"},
	{"POST", "/api/v1/park", HX_API_ROLE_WRITE, "park",
	 "Nobody knows whether it happened: wait for a decision", hx_api_post_operations,
	 BATCH("Answer", HX_USE_PARK), .statuses = "409 413 415 503"},
	{"POST", "/api/v1/check", HX_API_ROLE_WRITE, "check",
	 "Is this the first time? Claim and complete in one step: at most once",
	 hx_api_post_operations, BATCH("Answer", HX_USE_CHECK), .statuses = "413 415 503"},
	{"POST", "/api/v1/resolve", HX_API_ROLE_WRITE, "resolve",
	 "Decide what became of a parked key, or of a claim whose lease has ended",
	 hx_api_post_resolve, BATCH("Answer", HX_USE_RESOLVE), .statuses = "404 409 413 415 503"},
	{"POST", "/api/v1/operations", HX_API_ROLE_READ, "operations",
	 "Any operations of a store in one submit; all but lookup take the role write, load and "
	 "forced ones admin",
	 hx_api_post_operations, BATCH("Answer", HX_USE_ANY), .statuses = "409 413 415 501 503"},
	{"GET", "/api/v1/keys", HX_API_ROLE_READ, "listKeys",
	 "Records, in no order that means anything", hx_api_get_keys, .parameters = keys_parameters,
	 .reply = "Keys", .statuses = "503"},
	{"GET", KEY_PATH, HX_API_ROLE_READ, "getKey", "The record of a key", hx_api_get_key,
	 .reply = "Record", .statuses = "404 503"},
	{"DELETE", KEY_PATH, HX_API_ROLE_WRITE, "forgetKey",
	 "Remove the record of a key: the next delivery counts as the first", hx_api_delete_key,
	 .parameters = delete_parameters, .statuses = "404 409 503"},
	{"GET", KEY_PATH "/explain", HX_API_ROLE_READ, "explainKey",
	 "What became of a key, in words, and what happens next", hx_api_get_explain,
	 .reply = "Explanation", .statuses = "503"},
	{"GET", "/api/v1/stats", HX_API_ROLE_READ, "getStats",
	 "What the store holds, and what was decided", hx_api_get_stats, .is_whole = true,
	 .parameters = stats_parameters, .reply = "Stats", .statuses = "503"},
	{"POST", "/api/v1/stats/reset", HX_API_ROLE_ADMIN, "resetStats",
	 "Count decisions from now on; metrics go on as they are", hx_api_post_reset,
	 .is_whole = true, .reply = "Since", .statuses = "503"},
	{"POST", "/api/v1/gc", HX_API_ROLE_ADMIN, "gc", "Remove what has expired, now",
	 hx_api_post_gc, .is_whole = true, .body = HX_API_BODY_OPTIONAL,
	 .section = &hx_gc_json_section, .use = 1, .reply = "Sweep", .statuses = "415 503"},
	{"GET", "/api/v1/duplicates", HX_API_ROLE_READ, "listDuplicates",
	 "The last duplicates at every door, the newest first", hx_api_get_duplicates,
	 .parameters = duplicates_parameters, .reply = "Duplicates"},
	{"GET", "/api/v1/events", HX_API_ROLE_READ, "listen",
	 "Decisions as they are made (server-sent events)", hx_api_get_events,
	 .parameters = events_parameters, .reply = "Stream", .content_type = "text/event-stream",
	 .statuses = "503"},
	{"GET", "/api/v1/outbox", HX_API_ROLE_READ, "getOutbox",
	 "The outbox that the daemon relays: what is pending, who relays, what is parked",
	 hx_api_get_outbox, .is_whole = true, .parameters = outbox_parameters, .reply = "Outbox",
	 .statuses = "404 503"},
	{"POST", "/api/v1/outbox/{id}/retry", HX_API_ROLE_WRITE, "retryOutboxEvent",
	 "A parked event goes out again, and so do those that wait behind it",
	 hx_api_post_outbox_retry, .is_whole = true, .reply = "OutboxChange",
	 .statuses = "404 409 503"},
	{"POST", "/api/v1/outbox/{id}/park", HX_API_ROLE_WRITE, "parkOutboxEvent",
	 "An event that has not gone out stays, and its ordering key waits",
	 hx_api_post_outbox_park, .is_whole = true, .reply = "OutboxChange",
	 .statuses = "404 409 503"},
	{"GET", "/api/v1/audit", HX_API_ROLE_READ, "listAudit",
	 "The last administrative changes, the newest first", hx_api_get_audit, .is_whole = true,
	 .parameters = audit_parameters, .reply = "Audit"},
	{"GET", "/api/v1/config", HX_API_ROLE_READ, "getConfig",
	 "The configuration in force, without secrets", hx_api_get_config, .is_whole = true,
	 .reply = "Config"},
	{"PATCH", "/api/v1/config", HX_API_ROLE_ADMIN, "patchConfig",
	 "Change settings, and keep them in conf.d/99-runtime.yaml (RFC 7396)", hx_api_patch_config,
	 .is_whole = true, .body = HX_API_BODY_ANY, .reply = "Config",
	 .statuses = "409 413 415 422 503"},
	{"GET", "/openapi.json", HX_API_ROLE_NONE, "getOpenapi", "This description",
	 hx_api_get_openapi, .reply = "Config"},
};

const size_t hx_api_route_count = HX_COUNT(hx_api_routes);
