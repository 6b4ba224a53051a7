/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - every setting there is.
 */
#include "config/schema/schema.h"

#include <string.h>

#include "base/limits.h"
#include "config/config_check.h"
#include "config/config.h"
#include "config/schema/schema_auth.h"
#include "config/schema/schema_consumers.h"
#include "config/schema/schema_outbox.h"
#include "config/schema/schema_proxy.h"
#include "config/schema/schema_resp.h"
#include "config/schema/schema_tls.h"
#include "config/schema/schema_traces.h"
#include "config/schema/schema_unit.h"

/* Values of enums, in their order. */
static const char *const evicts[] = {"none", "lru", NULL};
static const char *const syncs[] = {"always", "unsafe-interval", NULL};
static const char *const on_lapses[] = {"retry", "park", NULL};
static const char *const on_store_failures[] = {"refuse", "continue", NULL};
static const char *const on_mismatches[] = {"reject", "duplicate", NULL};
static const char *const on_missings[] = {"reject", "pass", "content", NULL};
static const char *const canonicals[] = {"lossless", "python", NULL};
static const char *const fingerprints[] = {"data", "none", NULL};
static const char *const log_formats[] = {"auto", "json", "logfmt", NULL};
static const char *const log_levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const log_keys[] = {"full", "hash", "none", NULL};

#define AT(member) .offset = offsetof(struct hx_config_listen, member)
static const struct hx_setting listen_settings[] = {
	{.name = "gateway",
         .type = HX_SETTING_ADDRESS,
         .flags = HX_SETTING_RESTART,
         AT(gateway),
         .fallback = "127.0.0.1:8080",
         .doc = "where CloudEvents come in: HOST:PORT, unix:PATH or off"},
	{.name = "proxy",
         .type = HX_SETTING_ADDRESS,
         .flags = HX_SETTING_RESTART,
         AT(proxy),
         .fallback = "off",
         .doc = "where requests with an Idempotency-Key come in: HOST:PORT, unix:PATH or off"},
	{.name = "resp",
         .type = HX_SETTING_ADDRESS,
         .flags = HX_SETTING_RESTART,
         AT(resp),
         .fallback = "off",
         .doc = "where clients of Redis come in: HOST:PORT, unix:PATH or off"},
	{.name = "admin",
         .type = HX_SETTING_ADDRESS,
         .flags = HX_SETTING_RESTART,
         AT(admin),
         .fallback = "127.0.0.1:8099",
         .doc = "where metrics, probes and the API are: HOST:PORT, unix:PATH or off"},
	{.name = NULL},
};
#undef AT
static const struct hx_section listen_section = {
	.name = "listen", .settings = listen_settings, .size = sizeof(struct hx_config_listen)};

#define AT(member) .offset = offsetof(struct hx_config_store, member)
static const struct hx_setting store_settings[] = {
	{.name = "url",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_RESTART | HX_SETTING_SECRET,
         AT(url),
         .fallback = "",
         .max = TEXT_MAX,
         .variable = "HAPAX_STORE",
         .doc = "where records are kept; empty: file: in the state directory"},
	{.name = "max_bytes",
         .type = HX_SETTING_SIZE,
         .flags = HX_SETTING_RESTART | HX_SETTING_NONE_IS_0 | HX_SETTING_AUTO,
         AT(max_bytes),
         .fallback = "auto",
         .max = INT64_MAX,
         .doc = "size of file: (in memory) or memory: at which new keys are refused; auto: half of "
                "memory.limit"},
	{.name = "max_keys",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_RESTART | HX_SETTING_NONE_IS_0,
         AT(max_keys),
         .fallback = "none",
         .max = INT64_MAX,
         .doc = "how many keys it may hold before new ones are refused"},
	{.name = "max_keys_per_tenant",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_RESTART | HX_SETTING_NONE_IS_0,
         AT(max_keys_per_tenant),
         .fallback = "none",
         .max = INT64_MAX,
         .doc = "keys of one tenant within their ttl, by the hour, before new ones are refused"},
	{.name = "evict",
         .type = HX_SETTING_CHOICE,
         .flags = HX_SETTING_RESTART,
         AT(evict),
         .fallback = "none",
         .choices = evicts,
         .doc = "what a full store does: refuse new keys, or forget done ones used least lately"},
	{.name = "max_result",
         .type = HX_SETTING_SIZE,
         .flags = HX_SETTING_RESTART,
         AT(max_result),
         .fallback = "256KiB",
         .min = 1,
         .max = HX_RESULT_SIZE_LIMIT,
         .doc = "results above this are kept without their body"},
	{.name = "parked_max",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_RESTART,
         AT(parked_max),
         .fallback = "10000",
         .min = 1,
         .max = MANY,
         .doc = "how many parked keys a scope may have before it takes no new claims"},
	{.name = "sync",
         .type = HX_SETTING_CHOICE,
         .flags = HX_SETTING_RESTART,
         AT(sync),
         .fallback = "always",
         .choices = syncs,
         .doc = "file: only; unsafe-interval answers before it is durable"},
	{.name = "unsafe_interval",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RESTART,
         AT(unsafe_interval_ms),
         .fallback = "1s",
         .min = 1,
         .max = HOUR,
         .doc = "how much a crash may take back with sync: unsafe-interval"},
	{.name = "segment_bytes",
         .type = HX_SETTING_SIZE,
         .flags = HX_SETTING_RESTART,
         AT(segment_bytes),
         .fallback = "64MiB",
         /* Below, each pass would write more of a manifest than it gives up of the log. */
         .min = MIB,
         .max = 1024 * MIB,
         .doc = "file: only; the size of a file of the log"},
	{.name = "max_clock_step",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RESTART,
         AT(max_clock_step_ms),
         .fallback = "7d",
         .min = SECOND,
         .max = HX_TTL_MS_MAX,
         .doc = "how far ahead a clock is believed at once after a reboot"},
	{.name = "timeout",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RESTART,
         AT(timeout_ms),
         .fallback = "5s",
         .min = 1,
         .max = HOUR,
         .doc = "how long a call waits for a busy store"},
	{.name = "cleanup_interval",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RESTART,
         AT(cleanup_interval_ms),
         .fallback = "5m",
         .min = 100,
         .max = DAY,
         .variable = "HAPAX_CLEANUP_INTERVAL",
         .document_variable = "IDEMPOTENCY_CLEANUP_INTERVAL",
         .doc = "how often expired keys are removed"},
	{.name = "journal",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_RESTART | HX_SETTING_SECRET,
         AT(journal),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "URL of the store that keeps what goes on while this one is away"},
	{.name = "near_cache",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RESTART,
         AT(near_cache_ms),
         .fallback = "0s",
         .max = SECOND,
         .doc = "how long what is done is answered from memory; 0s: never"},
	{.name = "max_clock_skew",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RUNTIME,
         AT(max_clock_skew_ms),
         .fallback = "5s",
         .min = 1,
         .max = DAY,
         .doc = "how far its clock and ours may be apart before /readyz says so"},
	{.name = NULL},
};
#undef AT
static const struct hx_section store_section = {
	.name = "store", .settings = store_settings, .size = sizeof(struct hx_config_store)};

#define AT(member) .offset = offsetof(struct hx_config_upstream, member)
static const struct hx_setting upstream_settings[] = {
	{.name = "url",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_FILE_ONLY | HX_SETTING_SECRET,
         AT(url),
         .fallback = "",
         .max = TEXT_MAX,
         .check = hx_check_url,
         .variable = "HAPAX_UPSTREAM",
         .doc = "where events and requests of routes without an upstream of their own go"},
	{.name = "connect_timeout",
         .type = HX_SETTING_DURATION,
         AT(connect_timeout_ms),
         .fallback = "5s",
         .min = 1,
         .max = HOUR,
         .doc = "how long to wait for a connection"},
	{.name = "idle_timeout",
         .type = HX_SETTING_DURATION,
         AT(idle_timeout_ms),
         .fallback = "4s",
         .min = 1,
         .max = DAY,
         .doc = "a connection that was not used that long is closed"},
	{.name = "max_connections",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_NONE_IS_0,
         AT(max_connections),
         .fallback = "1024",
         .max = MANY,
         .doc = "to one upstream; above it requests wait"},
	{.name = "max_idle",
         .type = HX_SETTING_COUNT,
         AT(max_idle),
         .fallback = "256",
         .max = MANY,
         .doc = "connections to one upstream that each loop keeps open while idle"},
	{.name = NULL},
};
#undef AT
static const struct hx_section upstream_section = {
	.name = "upstream",
	.settings = upstream_settings,
	.size = sizeof(struct hx_config_upstream)};

#define AT(member) .offset = offsetof(struct hx_config_type, member)
static const struct hx_setting type_settings[] = {
	{.name = "type",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_REQUIRED,
         AT(type),
         .min = 1,
         .max = TEXT_MAX,
         .check = hx_check_pattern,
         .doc = "the type of an event, or a prefix that ends with *"},
	{.name = "ttl",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_REQUIRED | HX_SETTING_FOREVER,
         AT(ttl_ms),
         .min = 1,
         .max = HX_TTL_MS_MAX,
         .doc = "how long its keys are kept"},
	{.name = NULL},
};
#undef AT
static const struct hx_section type_section = {
	.name = "a type", .settings = type_settings, .size = sizeof(struct hx_config_type)};

/* Of `defaults`, and of each of `scopes`. */
#define AT(member) .offset = offsetof(struct hx_config_scope, member)
static const struct hx_setting default_settings[] = {
	{.name = "enabled",
         .type = HX_SETTING_BOOLEAN,
         AT(enabled),
         .fallback = "true",
         .doc = "false: every event runs, nothing is asked or kept"},
	{.name = "ttl",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_FOREVER,
         AT(ttl_ms),
         .fallback = "24h",
         .min = 1,
         .max = HX_TTL_MS_MAX,
         .variable = "HAPAX_TTL",
         .document_variable = "IDEMPOTENCY_TTL",
         .doc = "how long a finished key is remembered"},
	{.name = "types",
         .type = HX_SETTING_LIST,
         AT(types),
         .count_offset = offsetof(struct hx_config_scope, type_count),
         .max = LIST_MAX,
         .section = &type_section,
         .doc = "another ttl for some types of events"},
	{.name = "lease",
         .type = HX_SETTING_DURATION,
         AT(lease_ms),
         .fallback = "30s",
         .min = 100,
         .max = HX_LEASE_MS_MAX,
         .doc = "how long a claim holds when hapax dies; renewed at a third of it"},
	{.name = "max_run",
         .type = HX_SETTING_DURATION,
         AT(max_run_ms),
         .fallback = "60s",
         .min = 1,
         .max = HX_LEASE_MS_MAX,
         .doc = "how long an upstream may take"},
	{.name = "wait",
         .type = HX_SETTING_DURATION,
         AT(wait_ms),
         .fallback = "0s",
         .max = HOUR,
         .doc = "how long a duplicate waits for the run in progress before 409"},
	{.name = "on_lapse",
         .type = HX_SETTING_CHOICE,
         AT(on_lapse),
         .fallback = "retry",
         .choices = on_lapses,
         .doc = "after a lost reply or a crash: run again, or park"},
	{.name = "on_mismatch",
         .type = HX_SETTING_CHOICE,
         AT(on_mismatch),
         .fallback = "reject",
         .choices = on_mismatches,
         .doc = "the same key with another payload"},
	{.name = "on_missing",
         .type = HX_SETTING_CHOICE,
         AT(on_missing),
         .fallback = "reject",
         .choices = on_missings,
         .doc = "an event that lacks a part of its key"},
	{.name = "on_store_failure",
         .type = HX_SETTING_CHOICE,
         AT(on_store_failure),
         .fallback = "refuse",
         .choices = on_store_failures,
         .doc = "while the store is away: refuse, or go on by store.journal"},
	{.name = NULL},
};
static const struct hx_section default_section = {
	.name = "defaults", .settings = default_settings, .size = sizeof(struct hx_config_scope)};

static const struct hx_setting scope_settings[] = {
	{.name = "scope",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_REQUIRED,
         AT(scope),
         .min = 1,
         .max = TEXT_MAX,
         .check = hx_check_scope,
         .doc = "TENANT/GROUP; * for either stands for any"},
	{.name = NULL},
};
#undef AT
static const struct hx_section scope_section = {
	.name = "a scope",
	.settings = scope_settings,
	.also = default_settings,
	.size = sizeof(struct hx_config_scope),
	.place_offset = offsetof(struct hx_config_scope, place)};

#define AT(member)       .offset = offsetof(struct hx_config_route, member)
#define COUNT_AT(member) .count_offset = offsetof(struct hx_config_route, member)
static const struct hx_setting route_settings[] = {
	{.name = "name",
         .type = HX_SETTING_TEXT,
         AT(name),
         .fallback = "",
         .max = NAME_MAX_SIZE,
         .check = hx_check_name,
         .doc = "for metrics and logs; empty: its number, as in route-1"},
	{.name = "path",
         .type = HX_SETTING_TEXT,
         AT(path),
         .fallback = "/",
         .min = 1,
         .max = TEXT_MAX,
         .check = hx_check_path,
         .doc = "requests whose path begins with it, by whole segments"},
	{.name = "types",
         .type = HX_SETTING_TEXTS,
         AT(types),
         COUNT_AT(type_count),
         .max = LIST_MAX,
         .check = hx_check_pattern,
         .doc = "events of these types, or prefixes that end with *; empty: all"},
	{.name = "sources",
         .type = HX_SETTING_TEXTS,
         AT(sources),
         COUNT_AT(source_count),
         .max = LIST_MAX,
         .check = hx_check_pattern,
         .doc = "events of these sources, or prefixes that end with *; empty: all"},
	{.name = "upstream",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_SECRET,
         AT(upstream),
         .fallback = "",
         .max = TEXT_MAX,
         .check = hx_check_url,
         .doc = "where they go; empty: upstream.url"},
	{.name = "key",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_RUNTIME,
         AT(key),
         .fallback = "event-id",
         .min = 1,
         .max = TEXT_MAX,
         .check = hx_check_strategy,
         .doc = "the strategy: what makes two events the same"},
	{.name = "include",
         .type = HX_SETTING_TEXTS,
         AT(include),
         COUNT_AT(include_count),
         .max = LIST_MAX,
         .doc = "content and hybrid keys: only these paths"},
	{.name = "exclude",
         .type = HX_SETTING_TEXTS,
         AT(exclude),
         COUNT_AT(exclude_count),
         .max = LIST_MAX,
         .doc = "paths that matter neither to content keys nor to fingerprints"},
	{.name = "canonical",
         .type = HX_SETTING_CHOICE,
         AT(canonical),
         .fallback = "lossless",
         .choices = canonicals,
         .doc = "how content is written before it is hashed"},
	{.name = "fingerprint",
         .type = HX_SETTING_CHOICE,
         AT(fingerprint),
         .fallback = "data",
         .choices = fingerprints,
         .doc = "what must be equal where the key is"},
	{.name = "tenant",
         .type = HX_SETTING_TEXT,
         AT(tenant),
         .fallback = "",
         .max = HX_SCOPE_PART_SIZE_MAX,
         .check = hx_check_scope_part,
         .doc = "the tenant of all events; with tenant_from, of those that have none"},
	{.name = "tenant_from",
         .type = HX_SETTING_TEXT,
         AT(tenant_from),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "where an event has its tenant: header.X-Tenant"},
	{.name = "group",
         .type = HX_SETTING_TEXT,
         AT(group),
         .fallback = "",
         .max = HX_SCOPE_PART_SIZE_MAX,
         .check = hx_check_scope_part,
         .doc = "as tenant"},
	{.name = "group_from",
         .type = HX_SETTING_TEXT,
         AT(group_from),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "as tenant_from"},
	{.name = NULL},
};
#undef COUNT_AT
#undef AT
static const struct hx_section route_section = {
	.name = "a route",
	.settings = route_settings,
	.size = sizeof(struct hx_config_route),
	.place_offset = offsetof(struct hx_config_route, place)};

#define AT(member) .offset = offsetof(struct hx_config_webhook, member)
static const struct hx_setting webhook_settings[] = {
	{.name = "allowed_origins",
         .type = HX_SETTING_TEXTS,
         .flags = HX_SETTING_FILE_ONLY,
         AT(allowed_origins),
         .count_offset = offsetof(struct hx_config_webhook, allowed_origin_count),
         .max = LIST_MAX,
         .check = hx_check_name,
         .doc = "who may send, as the OPTIONS handshake asks; * is anybody"},
	{.name = "allowed_rate",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_NONE_IS_0,
         AT(allowed_rate),
         .fallback = "none",
         .max = MANY,
         .doc = "requests a minute that the handshake allows"},
	{.name = NULL},
};
#undef AT
static const struct hx_section webhook_section = {
	.name = "webhook", .settings = webhook_settings, .size = sizeof(struct hx_config_webhook)};

#define AT(member) .offset = offsetof(struct hx_config_gateway, member)
static const struct hx_setting gateway_settings[] = {
	{.name = "webhook",
         .type = HX_SETTING_SECTION,
         AT(webhook),
         .section = &webhook_section,
         .doc = "the handshake of CloudEvents webhooks"},
	{.name = "routes",
         .type = HX_SETTING_LIST,
         .flags = HX_SETTING_FILE_ONLY,
         AT(routes),
         .count_offset = offsetof(struct hx_config_gateway, route_count),
         .max = LIST_MAX,
         .section = &route_section,
         .doc = "which events go where; the first that matches counts"},
	{.name = NULL},
};
#undef AT
static const struct hx_section gateway_section = {
	.name = "gateway", .settings = gateway_settings, .size = sizeof(struct hx_config_gateway)};

#define AT(member) .offset = offsetof(struct hx_config_log, member)
static const struct hx_setting log_settings[] = {
	{.name = "format",
         .type = HX_SETTING_CHOICE,
         AT(format),
         .fallback = "auto",
         .choices = log_formats,
         .doc = "auto: logfmt on a terminal, else json"},
	{.name = "level",
         .type = HX_SETTING_CHOICE,
         AT(level),
         .fallback = "info",
         .choices = log_levels,
         .doc = "what is below it is not logged"},
	{.name = "keys",
         .type = HX_SETTING_CHOICE,
         AT(keys),
         .fallback = "full",
         .choices = log_keys,
         .doc = "how keys, which may be secrets, are logged"},
	{.name = "rate",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_NONE_IS_0,
         AT(rate),
         .fallback = "20",
         .max = MANY,
         .doc = "lines a second of one kind; the rest is counted"},
	{.name = "duplicate_percent",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_NONE_IS_0,
         AT(duplicate_percent),
         .fallback = "20",
         .max = 100,
         .doc = "a scope with more duplicates in a minute gets a warning"},
	{.name = "audit",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_RESTART | HX_SETTING_FILE_ONLY,
         AT(audit),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "the file that administrative changes are appended to; empty: the log"},
	{.name = NULL},
};
#undef AT
static const struct hx_section log_section = {
	.name = "log", .settings = log_settings, .size = sizeof(struct hx_config_log)};

#define AT(member) .offset = offsetof(struct hx_config_metrics, member)
static const struct hx_setting metrics_settings[] = {
	{.name = "aliases",
         .type = HX_SETTING_BOOLEAN,
         .flags = HX_SETTING_RESTART,
         AT(aliases),
         .fallback = "true",
         .doc = "idempotency_cache_size and its kin, beside hapax_*"},
	{.name = "max_scopes",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_RESTART,
         AT(max_scopes),
         .fallback = "1000",
         .min = 1,
         .max = HX_COUNTED_SCOPES_MAX,
         .doc = "scopes with labels of their own; the rest is other"},
	{.name = "max_event_types",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_RESTART,
         AT(max_event_types),
         .fallback = "100",
         .min = 1,
         .max = HX_COUNTED_SCOPES_MAX,
         .doc = "types of events with labels of their own; the rest is other"},
	{.name = NULL},
};
#undef AT
static const struct hx_section metrics_section = {
	.name = "metrics", .settings = metrics_settings, .size = sizeof(struct hx_config_metrics)};

#define AT(member) .offset = offsetof(struct hx_config_drain, member)
static const struct hx_setting drain_settings[] = {
	{.name = "delay",
         .type = HX_SETTING_DURATION,
         AT(delay_ms),
         .fallback = "0s",
         .max = HOUR,
         .doc = "after TERM: not ready, but still serving, until balancers have noticed"},
	{.name = "timeout",
         .type = HX_SETTING_DURATION,
         AT(timeout_ms),
         .fallback = "30s",
         .max = HOUR,
         .doc = "then: how long requests in progress may take to end"},
	{.name = NULL},
};
#undef AT
static const struct hx_section drain_section = {
	.name = "drain", .settings = drain_settings, .size = sizeof(struct hx_config_drain)};

#define AT(member) .offset = offsetof(struct hx_config, member)
static const struct hx_setting settings[] = {
	{.name = "enabled",
         .type = HX_SETTING_BOOLEAN,
         AT(enabled),
         .fallback = "true",
         .doc = "false: every event runs, nothing is asked or kept, in every scope"},
	{.name = "loops",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_RESTART,
         AT(loops),
         .fallback = "0",
         .max = 256,
         .doc = "threads that serve; 0: one for each processor"},
	{.name = "listen",
         .type = HX_SETTING_SECTION,
         .flags = HX_SETTING_FILE_ONLY,
         AT(listen),
         .section = &listen_section,
         .doc = "the doors"},
	{.name = "tls",
         .type = HX_SETTING_SECTION,
         .flags = HX_SETTING_FILE_ONLY,
         AT(tls),
         .section = &hx_config_tls_section,
         .doc = "encryption, and who clients are by their certificates"},
	{.name = "store",
         .type = HX_SETTING_SECTION,
         .flags = HX_SETTING_FILE_ONLY,
         AT(store),
         .section = &store_section,
         .doc = "the ledger"},
	{.name = "upstream",
         .type = HX_SETTING_SECTION,
         AT(upstream),
         .section = &upstream_section,
         .doc = "the services behind, and connections to them"},
	{.name = "memory",
         .type = HX_SETTING_SECTION,
         AT(memory),
         .section = &hx_config_schema_memory,
         .doc = "how much memory the daemon uses"},
	{.name = "http",
         .type = HX_SETTING_SECTION,
         AT(http),
         .section = &hx_config_schema_http,
         .doc = "limits of every HTTP door"},
	{.name = "defaults",
         .type = HX_SETTING_SECTION,
         AT(defaults),
         .section = &default_section,
         .doc = "settings of every scope that says nothing else"},
	{.name = "scopes",
         .type = HX_SETTING_LIST,
         .flags = HX_SETTING_INHERITS,
         AT(scopes),
         .count_offset = offsetof(struct hx_config, scope_count),
         .max = LIST_MAX,
         .section = &scope_section,
         .doc = "settings of some scopes; the first that matches counts"},
	{.name = "gateway",
         .type = HX_SETTING_SECTION,
         AT(gateway),
         .section = &gateway_section,
         .doc = "CloudEvents by HTTP"},
	{.name = "proxy",
         .type = HX_SETTING_SECTION,
         AT(proxy),
         .section = &hx_config_proxy_section,
         .doc = "any HTTP API, by Idempotency-Key"},
	{.name = "resp",
         .type = HX_SETTING_SECTION,
         AT(resp),
         .section = &hx_config_resp_section,
         .doc = "the Redis protocol"},
	{.name = "consumers",
         .type = HX_SETTING_LIST,
         .flags = HX_SETTING_FILE_ONLY,
         AT(consumers),
         .count_offset = offsetof(struct hx_config, consumer_count),
         .max = HX_CONFIG_CONSUMERS_MAX,
         .section = &hx_config_consumer_section,
         .doc = "brokers whose messages the daemon takes, and who handles them"},
	{.name = "auth",
         .type = HX_SETTING_SECTION,
         .flags = HX_SETTING_FILE_ONLY,
         AT(auth),
         .section = &hx_config_auth_section,
         .doc = "who may ask for what at the admin door"},
	{.name = "log",
         .type = HX_SETTING_SECTION,
         AT(log),
         .section = &log_section,
         .doc = "lines on standard error"},
	{.name = "metrics",
         .type = HX_SETTING_SECTION,
         AT(metrics),
         .section = &metrics_section,
         .doc = "GET /metrics"},
	{.name = "traces",
         .type = HX_SETTING_SECTION,
         .flags = HX_SETTING_FILE_ONLY,
         AT(traces),
         .section = &hx_config_traces_section,
         .doc = "spans of events for a collector"},
	{.name = "outbox",
         .type = HX_SETTING_SECTION,
         .flags = HX_SETTING_FILE_ONLY,
         AT(outbox),
         .section = &hx_config_outbox_section,
         .doc = "an outbox whose rows are published"},
	{.name = "drain",
         .type = HX_SETTING_SECTION,
         AT(drain),
         .section = &drain_section,
         .doc = "the end of the daemon"},
	{.name = NULL},
};
#undef AT

const struct hx_section hx_config_schema = {
	.name = "the file", .settings = settings, .size = sizeof(struct hx_config)};

const struct hx_setting *hx_section_setting(const struct hx_section *section, size_t index)
{
	const struct hx_setting *at = section->settings;

	while (at->name != NULL && index > 0) {
		at++;
		index--;
	}
	if (at->name == NULL && section->also != NULL) {
		at = section->also;
		while (at->name != NULL && index > 0) {
			at++;
			index--;
		}
	}
	return at->name == NULL ? NULL : at;
}

bool hx_config_has_setting(const char *path)
{
	const struct hx_section *section = &hx_config_schema;

	for (;;) {
		const struct hx_setting *setting = NULL;
		size_t size = strcspn(path, ".");

		for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
			if (strlen(setting->name) == size && memcmp(setting->name, path, size) == 0)
				break;
		}
		if (setting == NULL || setting->type == HX_SETTING_LIST)
			return false;
		if (setting->type != HX_SETTING_SECTION)
			return path[size] == '\0';
		if (path[size] == '\0')
			return false;
		section = setting->section;
		path += size + 1;
	}
}
