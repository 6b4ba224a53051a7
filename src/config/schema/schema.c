/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - every setting.
 */
#include "config/schema/schema.h"

#include <string.h>

#include "base/bytes.h"
#include "config/schema/schema_row.h"

/* Values of enums, in their order. */
static const char *const evicts[] = {"none", "lru", NULL};
static const char *const syncs[] = {"always", "unsafe-interval", NULL};
static const char *const on_lapses[] = {"retry", "park", NULL};
static const char *const on_store_failures[] = {"refuse", "continue", NULL};
static const char *const on_mismatches[] = {"reject", "duplicate", NULL};
static const char *const remembers[] = {"on", "off", NULL};
static const char *const on_missings[] = {"reject", "pass", "content", NULL};
static const char *const canonicals[] = {"lossless", "python", NULL};
static const char *const fingerprints[] = {"data", "none", NULL};
static const char *const log_formats[] = {"auto", "json", "logfmt", NULL};
static const char *const log_levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const log_keys[] = {"full", "hash", "none", NULL};

static const struct hx_setting listen_settings[] = {
	{"gateway", AT(listen, gateway), ADDRESS("127.0.0.1:8080"), RESTART,
	 "address for CloudEvents: HOST:PORT, unix:PATH or off"},
	{"proxy", AT(listen, proxy), ADDRESS("off"), RESTART,
	 "address for requests with an Idempotency-Key: HOST:PORT, unix:PATH or off"},
	{"resp", AT(listen, resp), ADDRESS("off"), RESTART,
	 "address for Redis clients: HOST:PORT, unix:PATH or off"},
	{"admin", AT(listen, admin), ADDRESS("127.0.0.1:8099"), RESTART,
	 "address for metrics, probes and the API: HOST:PORT, unix:PATH or off"},
	{.name = NULL},
};
static const struct hx_section listen_section = {
	"listen", .settings = listen_settings, .size = sizeof(struct hx_config_listen)};

static const struct hx_setting store_settings[] = {
	{"url", AT(store, url), TEXT("", 0, TEXT_MAX, NULL), RESTART | SECRET,
	 "URL of the store; empty: file: in the state directory", .variable = "HAPAX_STORE"},
	{"max_bytes", AT(store, max_bytes), SIZE("auto", 0, INT64_MAX), RESTART | NONE_IS_0 | AUTO,
	 "maximum size of file: (in memory) or memory:; new keys are then refused; auto: half of "
	 "memory.limit"},
	{"max_keys", AT(store, max_keys), COUNT("none", 0, INT64_MAX), RESTART | NONE_IS_0,
	 "maximum number of keys; new keys are then refused"},
	{"max_keys_per_tenant", AT(store, max_keys_per_tenant), COUNT("none", 0, INT64_MAX),
	 RESTART | NONE_IS_0,
	 "maximum number of keys per tenant, exact to an hour; new keys are then refused"},
	{"evict", AT(store, evict), CHOICE("none", evicts), RESTART,
	 "what a full store does: refuse new keys, or evict the least recently used done keys"},
	{"max_result", AT(store, max_result), SIZE("256KiB", 1, HX_RESULT_SIZE_LIMIT), RESTART,
	 "maximum size of a stored result; larger ones are stored without their body"},
	{"parked_max", AT(store, parked_max), COUNT("10000", 1, MANY), RESTART,
	 "maximum number of parked keys per scope; new claims are then refused"},
	{"sync", AT(store, sync), CHOICE("always", syncs), RESTART,
	 "file: only; unsafe-interval answers before data is durable"},
	{"unsafe_interval", AT(store, unsafe_interval_ms), DURATION("1s", 1, HOUR), RESTART,
	 "what a crash may lose with sync: unsafe-interval"},
	{"segment_bytes", AT(store, segment_bytes), SIZE("64MiB", MIB, 1024 * MIB), RESTART,
	 /* Below 1 MiB, each pass would write more manifest than it frees log. */
	 "file: only; size of a log segment"},
	{"max_clock_step", AT(store, max_clock_step_ms), DURATION("7d", SECOND, HX_TTL_MS_MAX),
	 RESTART, "maximum forward step of the clock that is trusted after a reboot"},
	{"timeout", AT(store, timeout_ms), DURATION("5s", 1, HOUR), RESTART,
	 "how long an operation waits for a busy store"},
	{"cleanup_interval", AT(store, cleanup_interval_ms), DURATION("5m", 100, DAY), RESTART,
	 "how often expired keys are deleted", .variable = "HAPAX_CLEANUP_INTERVAL",
	 .document_variable = "IDEMPOTENCY_CLEANUP_INTERVAL"},
	{"journal", AT(store, journal), TEXT("", 0, TEXT_MAX, NULL), RESTART | SECRET,
	 "URL of the store that records keys while this one is unavailable"},
	{"near_cache", AT(store, near_cache_ms), DURATION("0s", 0, SECOND), RESTART,
	 "how long finished keys are answered from memory; 0s: never"},
	{"max_clock_skew", AT(store, max_clock_skew_ms), DURATION("5s", 1, DAY), RUNTIME,
	 "difference between the clocks of store and host that /readyz reports"},
	{.name = NULL},
};
static const struct hx_section store_section = {
	"store", .settings = store_settings, .size = sizeof(struct hx_config_store)};

static const struct hx_setting upstream_settings[] = {
	{"url", AT(upstream, url), TEXT("", 0, TEXT_MAX, hx_config_check_url), FILE_ONLY | SECRET,
	 "upstream for routes without their own", .variable = "HAPAX_UPSTREAM"},
	{"connect_timeout", AT(upstream, connect_timeout_ms), DURATION("5s", 1, HOUR), 0,
	 "maximum time to connect"},
	{"idle_timeout", AT(upstream, idle_timeout_ms), DURATION("4s", 1, DAY), 0,
	 "idle connections are closed after this time"},
	{"max_connections", AT(upstream, max_connections), COUNT("1024", 0, MANY), NONE_IS_0,
	 "maximum number of connections per upstream; further requests wait"},
	{"max_idle", AT(upstream, max_idle), COUNT("256", 0, MANY), 0,
	 "maximum number of idle connections per upstream and thread"},
	{.name = NULL},
};
static const struct hx_section upstream_section = {
	"upstream", .settings = upstream_settings, .size = sizeof(struct hx_config_upstream)};

static const struct hx_setting type_settings[] = {
	{"type", AT(type, type), TEXT(NULL, 1, TEXT_MAX, hx_config_check_pattern), REQUIRED,
	 "event type, or a prefix that ends with *"},
	{"ttl", AT(type, ttl_ms), DURATION(NULL, 1, HX_TTL_MS_MAX), REQUIRED | FOREVER,
	 "how long a finished key is remembered"},
	{.name = NULL},
};
static const struct hx_section type_section = {
	"a type", .settings = type_settings, .size = sizeof(struct hx_config_type)};

/* Shared by `defaults` and each of `scopes`. */
static const struct hx_setting default_settings[] = {
	{"enabled", AT(scope, enabled), BOOLEAN("true"), 0,
	 "false: every event runs; nothing is checked or stored"},
	{"ttl", AT(scope, ttl_ms), DURATION("24h", 1, HX_TTL_MS_MAX), FOREVER,
	 "how long a finished key is remembered", .variable = "HAPAX_TTL",
	 .document_variable = "IDEMPOTENCY_TTL"},
	{"types", LIST_AT(scope, types, type_count), LIST(LIST_MAX, &type_section), 0,
	 "TTLs for single event types"},
	{"lease", AT(scope, lease_ms), DURATION("30s", 100, HX_LEASE_MS_MAX), 0,
	 "how long a claim lasts if hapax dies; renewed every third of this time"},
	{"max_run", AT(scope, max_run_ms), DURATION("60s", 1, HX_LEASE_MS_MAX), 0,
	 "maximum time for one upstream request"},
	{"wait", AT(scope, wait_ms), DURATION("0s", 0, HOUR), 0,
	 "how long a duplicate waits for the run in progress before it gets 409"},
	{"on_lapse", AT(scope, on_lapse), CHOICE("retry", on_lapses), 0,
	 "after an unknown outcome: run again, or park the key"},
	{"on_mismatch", AT(scope, on_mismatch), CHOICE("reject", on_mismatches), 0,
	 "same key, different payload: reject, or treat as a duplicate"},
	{"on_missing", AT(scope, on_missing), CHOICE("reject", on_missings), 0,
	 "event without a part of its key"},
	{"on_store_failure", AT(scope, on_store_failure), CHOICE("refuse", on_store_failures), 0,
	 "while the store is unavailable: refuse, or continue with store.journal"},
	{"remember", AT(scope, remember), CHOICE("on", remembers), 0,
	 "whether a record keeps id, type, source and time of its event"},
	{.name = NULL},
};
static const struct hx_section default_section = {
	"defaults", .settings = default_settings, .size = sizeof(struct hx_config_scope)};

static const struct hx_setting scope_settings[] = {
	{"scope", AT(scope, scope), TEXT(NULL, 1, TEXT_MAX, hx_config_check_scope), REQUIRED,
	 "TENANT/GROUP; * matches any tenant or group"},
	{.name = NULL},
};
static const struct hx_section scope_section = {
	"a scope", .settings = scope_settings, .also = default_settings,
	.size = sizeof(struct hx_config_scope),
	.place_offset = offsetof(struct hx_config_scope, place)};

static const struct hx_setting route_settings[] = {
	{"name", AT(route, name), TEXT("", 0, NAME_MAX_SIZE, hx_config_check_name), 0,
	 "for metrics and logs; empty: its number, as in route-1"},
	{"path", AT(route, path), TEXT("/", 1, TEXT_MAX, hx_config_check_path), 0,
	 "path prefix, in whole segments"},
	{"types", LIST_AT(route, types, type_count), TEXTS(LIST_MAX, hx_config_check_pattern), 0,
	 "event types, or prefixes that end with *; empty: all"},
	{"sources", LIST_AT(route, sources, source_count), TEXTS(LIST_MAX, hx_config_check_pattern),
	 0, "event sources, or prefixes that end with *; empty: all"},
	{"upstream", AT(route, upstream), TEXT("", 0, TEXT_MAX, hx_config_check_url), SECRET,
	 "upstream of this route; empty: upstream.url"},
	{"key", AT(route, keying.key), TEXT("event-id", 1, TEXT_MAX, hx_config_check_strategy),
	 RUNTIME,
	 "key strategy: what makes two events the same; data.body|json.id is in the JSON in data.body"},
	{"key_also", AT(route, keying.key_also), TEXT("", 0, TEXT_MAX, hx_config_check_strategy), 0,
	 "while key changes: the old strategy; an event is a duplicate by either key"},
	{"key_also_until", AT(route, keying.key_also_until),
	 TEXT("", 0, TEXT_MAX, hx_config_check_date), 0,
	 "when key_also ends: at least a ttl after the change"},
	{"include", LIST_AT(route, keying.include, keying.include_count), TEXTS(LIST_MAX, NULL), 0,
	 "content and hybrid keys: only these paths"},
	{"exclude", LIST_AT(route, keying.exclude, keying.exclude_count), TEXTS(LIST_MAX, NULL), 0,
	 "paths that are ignored in content keys and fingerprints"},
	{"canonical", AT(route, keying.canonical), CHOICE("lossless", canonicals), 0,
	 "canonical form of the content before it is hashed"},
	{"fingerprint", AT(route, keying.fingerprint), CHOICE("data", fingerprints), 0,
	 "what must match when the key matches"},
	{"tenant", AT(route, keying.tenant),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "tenant of all events; with tenant_from, of events without one"},
	{"tenant_from", AT(route, keying.tenant_from), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "where an event has its tenant: header.X-Tenant"},
	{"group", AT(route, keying.group),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0, "like tenant"},
	{"group_from", AT(route, keying.group_from), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "like tenant_from"},
	{"outcomes", AT(route, outcomes), SECTION(&hx_config_outcome_section), 0,
	 "what a status means, if not as usual"},
	{.name = NULL},
};
static const struct hx_section route_section = {
	"a route", .settings = route_settings, .size = sizeof(struct hx_config_route),
	.place_offset = offsetof(struct hx_config_route, place)};

static const struct hx_setting webhook_settings[] = {
	{"allowed_origins", LIST_AT(webhook, allowed_origins, allowed_origin_count),
	 TEXTS(LIST_MAX, hx_config_check_name), FILE_ONLY,
	 "allowed senders in the OPTIONS handshake; *: all"},
	{"allowed_rate", AT(webhook, allowed_rate), COUNT("none", 0, MANY), NONE_IS_0,
	 "requests per minute that the handshake allows"},
	{.name = NULL},
};
static const struct hx_section webhook_section = {
	"webhook", .settings = webhook_settings, .size = sizeof(struct hx_config_webhook)};

static const struct hx_setting gateway_settings[] = {
	{"webhook", AT(gateway, webhook), SECTION(&webhook_section), 0,
	 "handshake of CloudEvents webhooks"},
	{"routes", LIST_AT(gateway, routes, route_count), LIST(LIST_MAX, &route_section), FILE_ONLY,
	 "routes of events; the first match counts"},
	{.name = NULL},
};
static const struct hx_section gateway_section = {
	"gateway", .settings = gateway_settings, .size = sizeof(struct hx_config_gateway)};

static const struct hx_setting log_settings[] = {
	{"format", AT(log, format), CHOICE("auto", log_formats), 0,
	 "auto: logfmt on a terminal, else json"},
	{"level", AT(log, level), CHOICE("info", log_levels), 0, "minimum level of a log line"},
	{"keys", AT(log, keys), CHOICE("full", log_keys), 0,
	 "how keys, which may be secrets, are logged"},
	{"rate", AT(log, rate), COUNT("20", 0, MANY), NONE_IS_0,
	 "maximum log lines per second and kind; the others are counted"},
	{"duplicate_percent", AT(log, duplicate_percent), COUNT("20", 0, 100), NONE_IS_0,
	 "percentage of duplicates per minute and scope that causes a warning"},
	{"audit", AT(log, audit), TEXT("", 0, TEXT_MAX, NULL), RESTART | FILE_ONLY,
	 "file for administrative changes; empty: the log"},
	{"decisions", AT(log, decisions), TEXT("", 0, TEXT_MAX, NULL), RESTART | FILE_ONLY,
	 "file for each decision and each end of a run, a line of JSON each; empty: none"},
	{"decisions_secret", AT(log, decisions_secret), TEXT("", 0, TEXT_MAX, NULL),
	 RESTART | FILE_ONLY,
	 "file with a secret: decisions have the HMAC of a key instead of the key; empty: the key"},
	{.name = NULL},
};
static const struct hx_section log_section = {
	"log", .settings = log_settings, .size = sizeof(struct hx_config_log)};

static const struct hx_setting metrics_settings[] = {
	{"aliases", AT(metrics, aliases), BOOLEAN("true"), RESTART,
	 "also publish idempotency_cache_size and similar names"},
	{"max_scopes", AT(metrics, max_scopes), COUNT("1000", 1, HX_COUNTED_SCOPES_MAX), RESTART,
	 "maximum number of scopes with their own labels; the others become other"},
	{"max_event_types", AT(metrics, max_event_types), COUNT("100", 1, HX_COUNTED_SCOPES_MAX),
	 RESTART, "maximum number of event types with their own labels; the others become other"},
	{.name = NULL},
};
static const struct hx_section metrics_section = {
	"metrics", .settings = metrics_settings, .size = sizeof(struct hx_config_metrics)};

static const struct hx_setting drain_settings[] = {
	{"delay", AT(drain, delay_ms), DURATION("0s", 0, HOUR), 0,
	 "time after TERM in which the daemon is not ready but still serves"},
	{"timeout", AT(drain, timeout_ms), DURATION("30s", 0, HOUR), 0,
	 "then, time for requests in progress to finish"},
	{.name = NULL},
};
static const struct hx_section drain_section = {
	"drain", .settings = drain_settings, .size = sizeof(struct hx_config_drain)};

/* struct hx_config has no part in its name. */
#define ROOT(member)             .offset = offsetof(struct hx_config, member)
#define ROOT_LIST(member, count) .count_offset = offsetof(struct hx_config, count), ROOT(member)

static const struct hx_setting settings[] = {
	{"enabled", ROOT(enabled), BOOLEAN("true"), 0,
	 "false: every event runs in every scope; nothing is checked or stored"},
	{"loops", ROOT(loops), COUNT("0", 0, 256), RESTART,
	 "number of threads; 0: one per processor"},
	{"listen", ROOT(listen), SECTION(&listen_section), FILE_ONLY, "the listeners"},
	{"tls", ROOT(tls), SECTION(&hx_config_tls_section), FILE_ONLY,
	 "encryption and client certificates"},
	{"store", ROOT(store), SECTION(&store_section), FILE_ONLY, "the store"},
	{"upstream", ROOT(upstream), SECTION(&upstream_section), 0,
	 "upstreams and connections to them"},
	{"memory", ROOT(memory), SECTION(&hx_config_memory_section), 0,
	 "memory limits of the daemon"},
	{"http", ROOT(http), SECTION(&hx_config_http_section), 0, "limits of every HTTP listener"},
	{"defaults", ROOT(defaults), SECTION(&default_section), 0, "defaults for all scopes"},
	{"scopes", ROOT_LIST(scopes, scope_count), LIST(LIST_MAX, &scope_section), INHERITS,
	 "settings of single scopes; the first match counts"},
	{"gateway", ROOT(gateway), SECTION(&gateway_section), 0, "CloudEvents over HTTP"},
	{"proxy", ROOT(proxy), SECTION(&hx_config_proxy_section), 0,
	 "HTTP APIs with an Idempotency-Key"},
	{"resp", ROOT(resp), SECTION(&hx_config_resp_section), 0, "the Redis protocol"},
	{"consumers", ROOT_LIST(consumers, consumer_count),
	 LIST(HX_CONFIG_CONSUMERS_MAX, &hx_config_consumer_section), FILE_ONLY,
	 "brokers whose messages the daemon processes"},
	{"auth", ROOT(auth), SECTION(&hx_config_auth_section), FILE_ONLY,
	 "access to the admin listener"},
	{"log", ROOT(log), SECTION(&log_section), 0, "log lines on standard error"},
	{"metrics", ROOT(metrics), SECTION(&metrics_section), 0, "GET /metrics"},
	{"traces", ROOT(traces), SECTION(&hx_config_traces_section), FILE_ONLY,
	 "spans for a trace collector"},
	{"outbox", ROOT(outbox), SECTION(&hx_config_outbox_section), FILE_ONLY,
	 "an outbox whose rows the daemon publishes"},
	{"drain", ROOT(drain), SECTION(&drain_section), 0, "shutdown of the daemon"},
	{.name = NULL},
};

const struct hx_section hx_config_schema = {
	"the file", .settings = settings, .size = sizeof(struct hx_config)};

const struct hx_setting *hx_section_setting(const struct hx_section *section, size_t index)
{
	const struct hx_setting *tables[] = {section->settings, section->also};

	for (size_t i = 0; i < 2; i++) {
		for (const struct hx_setting *at = tables[i]; at != NULL && at->name != NULL;
		     at++) {
			if (index-- == 0)
				return at;
		}
	}
	return NULL;
}

const struct hx_setting *hx_section_find(const struct hx_section *section, struct hapax_bytes name)
{
	const struct hx_setting *setting;
	size_t i = 0;

	while ((setting = hx_section_setting(section, i)) != NULL &&
	       !hx_bytes_equal(name, hapax_bytes_from_text(setting->name)))
		i++;
	return setting;
}

bool hx_config_has_setting(const char *path)
{
	const struct hx_section *section = &hx_config_schema;

	for (;;) {
		size_t size = strcspn(path, ".");
		const struct hx_setting *setting = hx_section_find(section, hx_bytes(path, size));

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
