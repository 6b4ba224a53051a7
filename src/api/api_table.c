/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_table.c - every path of the API: role, request and reply.
 *
 * To add one: a row, its handler, the schema of its reply in api_schema.c. /openapi.json and the
 * tests that compare handlers with it follow.
 */
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
	 .doc = "only in this state; parked: the keys that wait for a decision"},
	{"prefix", HX_API_PARAMETER_TEXT, .max = HX_KEY_SIZE_MAX,
	 .doc = "only keys that begin with this"},
	{"limit", HX_API_PARAMETER_COUNT, .min = 1, .max = 1000,
	 .doc = "maximum number of records (default: 100)"},
	{"cursor", HX_API_PARAMETER_TEXT, .min = 1, .max = 4096,
	 .doc = "of the previous reply: continue there, with the same other parameters"},
	{"expired", HX_API_PARAMETER_BOOLEAN,
	 .doc = "also expired records that were not deleted yet"},
	{"whole", HX_API_PARAMETER_BOOLEAN,
	 .doc = "with results; for the role write, also with attempt ids"},
	{.name = NULL},
};

static const struct hx_api_parameter delete_parameters[] = {
	{"force", HX_API_PARAMETER_BOOLEAN,
	 .doc = "also if the key is claimed or parked; its holder is fenced; role admin only"},
	{.name = NULL},
};

static const struct hx_api_parameter stats_parameters[] = {
	{"hours", HX_API_PARAMETER_BOOLEAN,
	 .doc = "a row for each scope and stored hour, and totals that ignore a reset"},
	{.name = NULL},
};

static const struct hx_api_parameter duplicates_parameters[] = {
	{"limit", HX_API_PARAMETER_COUNT, .min = 1, .max = HX_DUPLICATES_KEPT_MAX,
	 .doc = "maximum number of entries (default: 100)"},
	{"tenant", NAME, .doc = "only of this tenant"},
	{"group", NAME, .doc = "only of this group"},
	{.name = NULL},
};

static const struct hx_api_parameter events_parameters[] = {
	{"decision", HX_API_PARAMETER_TEXT, .min = 1, .max = 128,
	 .doc = "only these, separated by commas: acquired, replay, in_progress, mismatch, parked, fenced"},
	{"tenant", NAME, .doc = "only of this tenant"},
	{"group", NAME, .doc = "only of this group"},
	{"last_event_id", HX_API_PARAMETER_TEXT, .max = 64,
	 .doc = "as the field Last-Event-ID: continue after this event"},
	{.name = NULL},
};

static const struct hx_api_parameter audit_parameters[] = {
	{"limit", HX_API_PARAMETER_COUNT, .min = 1, .max = HX_AUDIT_ENTRIES_MAX,
	 .doc = "maximum number of entries (default: 100)"},
	{"before", HX_API_PARAMETER_COUNT, .min = 1, .max = INT64_MAX,
	 .doc = "only entries with a smaller number"},
	{.name = NULL},
};

static const struct hx_api_parameter outbox_parameters[] = {
	{"limit", HX_API_PARAMETER_COUNT, .min = 1, .max = 1000,
	 .doc = "maximum number of parked events (default: 100)"},
	{.name = NULL},
};

static const struct hx_api_parameter letters_parameters[] = {
	{"limit", HX_API_PARAMETER_COUNT, .min = 1, .max = 1000,
	 .doc = "maximum number of letters (default: 100)"},
	{"match", HX_API_PARAMETER_TEXT, .min = 1, .max = 4096,
	 .doc = "only letters whose reason, error, key or place has this text"},
	{.name = NULL},
};

/* One operation, or an array of them. */
#define BATCH(what, used) \
	.body = HX_API_BODY_BATCH, .section = &hx_operation_section, .use = (used), .reply = (what)

#define KEY_PATH "/api/v1/keys/{tenant}/{group}/{key}"

const struct hx_api_route hx_api_routes[] = {
	{"POST", "/api/v1/claim", HX_API_ROLE_WRITE, "claim", "Claim a key", hx_api_post_operations,
	 BATCH("Answer", HX_USE_CLAIM), .statuses = "413 415 503"},
	{"POST", "/api/v1/renew", HX_API_ROLE_WRITE, "renew", "Extend the lease of a claim",
	 hx_api_post_operations, BATCH("Answer", HX_USE_RENEW), .statuses = "409 413 415 503"},
	{"POST", "/api/v1/complete", HX_API_ROLE_WRITE, "complete",
	 "Mark the work of a claim done and store its result", hx_api_post_operations,
	 BATCH("Answer", HX_USE_COMPLETE), .statuses = "409 413 415 503"},
	{"POST", "/api/v1/release", HX_API_ROLE_WRITE, "release",
	 "Mark the work of a claim failed; the next claim runs", hx_api_post_operations,
	 BATCH("Answer", HX_USE_RELEASE), .statuses = "409 413 415 503"},
	{"POST", "/api/v1/park", HX_API_ROLE_WRITE, "park",
	 "Mark the outcome of a claim unknown; a person decides", hx_api_post_operations,
	 BATCH("Answer", HX_USE_PARK), .statuses = "409 413 415 503"},
	{"POST", "/api/v1/check", HX_API_ROLE_WRITE, "check",
	 "Mark a key as seen and report whether it is new (at most once)", hx_api_post_operations,
	 BATCH("Answer", HX_USE_CHECK), .statuses = "413 415 503"},
	{"POST", "/api/v1/resolve", HX_API_ROLE_WRITE, "resolve",
	 "Decide the outcome of a parked key, or of a claim whose lease has lapsed",
	 hx_api_post_resolve, BATCH("Answer", HX_USE_RESOLVE), .statuses = "404 409 413 415 503"},
	{"POST", "/api/v1/operations", HX_API_ROLE_READ, "operations",
	 "Run any store operations in one submit; lookup needs the role read, load and force need "
	 "admin, all others write",
	 hx_api_post_operations, BATCH("Answer", HX_USE_ANY), .statuses = "409 413 415 501 503"},
	{"GET", "/api/v1/keys", HX_API_ROLE_READ, "listKeys",
	 "List records, in no particular order", hx_api_get_keys, .parameters = keys_parameters,
	 .reply = "Keys", .statuses = "503"},
	{"GET", KEY_PATH, HX_API_ROLE_READ, "getKey", "Return the record of a key", hx_api_get_key,
	 .reply = "Record", .statuses = "404 503"},
	{"DELETE", KEY_PATH, HX_API_ROLE_WRITE, "forgetKey",
	 "Delete the record of a key; the next delivery counts as the first", hx_api_delete_key,
	 .parameters = delete_parameters, .statuses = "404 409 503"},
	{"GET", KEY_PATH "/explain", HX_API_ROLE_READ, "explainKey",
	 "Describe the state of a key and what happens next", hx_api_get_explain,
	 .reply = "Explanation", .statuses = "503"},
	{"GET", "/api/v1/stats", HX_API_ROLE_READ, "getStats",
	 "Return totals of the store and of its decisions", hx_api_get_stats, .is_whole = true,
	 .parameters = stats_parameters, .reply = "Stats", .statuses = "503"},
	{"GET", "/api/v1/conditions", HX_API_ROLE_READ, "listConditions",
	 "List what is wrong with the daemon now; the store is not asked", hx_api_get_conditions,
	 .is_whole = true, .reply = "Conditions"},
	{"POST", "/api/v1/stats/reset", HX_API_ROLE_ADMIN, "resetStats",
	 "Count decisions from zero; metrics do not change", hx_api_post_reset, .is_whole = true,
	 .reply = "Since", .statuses = "503"},
	{"POST", "/api/v1/gc", HX_API_ROLE_ADMIN, "gc", "Delete expired records now",
	 hx_api_post_gc, .is_whole = true, .body = HX_API_BODY_OPTIONAL,
	 .section = &hx_gc_json_section, .use = 1, .reply = "Sweep", .statuses = "415 503"},
	{"GET", "/api/v1/duplicates", HX_API_ROLE_READ, "listDuplicates",
	 "List the latest duplicates at every listener, newest first", hx_api_get_duplicates,
	 .parameters = duplicates_parameters, .reply = "Duplicates"},
	{"GET", "/api/v1/events", HX_API_ROLE_READ, "listen",
	 "Stream decisions as they are made (server-sent events)", hx_api_get_events,
	 .parameters = events_parameters, .reply = "Stream", .content_type = "text/event-stream",
	 .statuses = "503"},
	{"GET", "/api/v1/outbox", HX_API_ROLE_READ, "getOutbox",
	 "Return the state of the daemon's outbox: pending events, relays, parked events",
	 hx_api_get_outbox, .is_whole = true, .parameters = outbox_parameters, .reply = "Outbox",
	 .statuses = "404 503"},
	{"POST", "/api/v1/outbox/{id}/retry", HX_API_ROLE_WRITE, "retryOutboxEvent",
	 "Publish a parked event again, and the events that wait behind it", hx_api_post_outbox,
	 .use = HX_OUTBOX_RETRY, .is_whole = true, .reply = "OutboxChange",
	 .statuses = "404 409 503"},
	{"POST", "/api/v1/outbox/{id}/park", HX_API_ROLE_WRITE, "parkOutboxEvent",
	 "Park an event that was not published yet; its ordering key waits", hx_api_post_outbox,
	 .use = HX_OUTBOX_PARK, .is_whole = true, .reply = "OutboxChange",
	 .statuses = "404 409 503"},
	{"GET", "/api/v1/consumers", HX_API_ROLE_READ, "listConsumers",
	 "List the consumers of the daemon with their state", hx_api_get_consumers,
	 .is_whole = true, .reply = "Consumers"},
	{"POST", "/api/v1/consumers/{name}/pause", HX_API_ROLE_WRITE, "pauseConsumer",
	 "Pause a consumer: runs in progress finish, nothing new begins, also after a restart",
	 hx_api_post_pause, .is_whole = true, .body = HX_API_BODY_OPTIONAL,
	 .section = &hx_pause_json_section, .use = HX_CONSUMER_PAUSE, .reply = "ConsumerChange",
	 .statuses = "404 409 415 503"},
	{"POST", "/api/v1/consumers/{name}/resume", HX_API_ROLE_WRITE, "resumeConsumer",
	 "Resume a paused consumer", hx_api_post_pause, .is_whole = true, .use = HX_CONSUMER_RESUME,
	 .reply = "ConsumerChange", .statuses = "404 409 503"},
	{"GET", "/api/v1/consumers/{name}/dead-letters", HX_API_ROLE_WRITE, "listDeadLetters",
	 "List the dead letters of a consumer with payload and reason, oldest first",
	 hx_api_get_letters, .is_whole = true, .parameters = letters_parameters,
	 .reply = "DeadLetters", .statuses = "404 503"},
	{"POST", "/api/v1/consumers/{name}/retry", HX_API_ROLE_WRITE, "retryDeadLetters",
	 "Send dead letters again, at most 1,000 of them; a parked key is released, a stored "
	 "permanent failure is forgotten",
	 hx_api_post_retry, .is_whole = true, .body = HX_API_BODY_OBJECT,
	 .section = &hx_retry_json_section, .use = 1, .reply = "Retried",
	 .statuses = "404 413 415 503"},
	{"POST", "/api/v1/consumers/{name}/rebuild", HX_API_ROLE_ADMIN, "rebuildConsumer",
	 "Let a consumer that is not enabled start over: set its offsets back, forget its scope; "
	 "repeat until done",
	 hx_api_post_rebuild, .is_whole = true, .body = HX_API_BODY_OBJECT,
	 .section = &hx_rebuild_json_section, .use = 1, .reply = "Rebuilt",
	 .statuses = "404 409 413 415 501 503"},
	{"GET", "/api/v1/audit", HX_API_ROLE_READ, "listAudit",
	 "List the latest administrative changes, newest first", hx_api_get_audit, .is_whole = true,
	 .parameters = audit_parameters, .reply = "Audit"},
	{"GET", "/api/v1/config", HX_API_ROLE_READ, "getConfig",
	 "Return the active configuration, without secrets", hx_api_get_config, .is_whole = true,
	 .reply = "Config"},
	{"PATCH", "/api/v1/config", HX_API_ROLE_ADMIN, "patchConfig",
	 "Change settings and store them in conf.d/99-runtime.yaml (RFC 7396)", hx_api_patch_config,
	 .is_whole = true, .body = HX_API_BODY_ANY, .reply = "Config",
	 .statuses = "409 413 415 422 503"},
	{"GET", "/openapi.json", HX_API_ROLE_NONE, "getOpenapi", "Return this description",
	 hx_api_get_openapi, .reply = "Config"},
};

const size_t hx_api_route_count = HX_COUNT(hx_api_routes);
