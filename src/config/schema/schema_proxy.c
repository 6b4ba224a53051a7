/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_proxy.c - the settings of the proxy.
 */
#include "config/preset.h"
#include "config/schema/schema_row.h"

static const char *const on_lapses[] = {"retry", "park", NULL};
static const char *const fingerprints[] = {"data", "none", NULL};
static const char *const busy_statuses[] = {"409", "429", "503", NULL};

/* Each reads the body again. */
enum { PASS_MAX = 16 };

static const struct hx_setting outcome_settings[] = {
	{"ok", LIST_AT(outcomes, ok, ok_count), TEXTS(LIST_MAX, hx_config_check_statuses), 0,
	 "done: stored and replayed"},
	{"definitive", LIST_AT(outcomes, definitive, definitive_count),
	 TEXTS(LIST_MAX, hx_config_check_statuses), 0, "permanent failure: stored and replayed"},
	{"transient", LIST_AT(outcomes, transient, transient_count),
	 TEXTS(LIST_MAX, hx_config_check_statuses), 0,
	 "failed without effect: the next request or delivery runs"},
	{"ambiguous", LIST_AT(outcomes, ambiguous, ambiguous_count),
	 TEXTS(LIST_MAX, hx_config_check_statuses), 0, "unknown outcome: on_lapse decides"},
	{.name = NULL},
};
const struct hx_section hx_config_outcome_section = {
	"outcomes", .settings = outcome_settings, .size = sizeof(struct hx_config_outcomes)};

static const struct hx_setting route_settings[] = {
	{"name", AT(proxy_route, name), TEXT("", 0, NAME_MAX_SIZE, hx_config_check_name), 0,
	 "for metrics and logs; empty: its number, as in proxy-1"},
	{"path", AT(proxy_route, path), TEXT("/", 1, TEXT_MAX, hx_config_check_path), 0,
	 "path prefix, in whole segments"},
	{"upstream", AT(proxy_route, upstream), TEXT("", 0, TEXT_MAX, hx_config_check_url), SECRET,
	 "upstream of this route; empty: upstream.url"},
	{"preset", AT(proxy_route, preset), .type = HX_SETTING_CHOICE, .fallback = "none",
	 .choices = hx_preset_names,
	 .doc = "settings for a known sender of webhooks; those of the route replace them"},
	{"methods", LIST_AT(proxy_route, methods, method_count),
	 TEXTS(LIST_MAX, hx_config_check_method), 0,
	 "methods that are deduplicated; empty: POST and PATCH"},
	{"header", AT(proxy_route, header),
	 TEXT("Idempotency-Key", 1, NAME_MAX_SIZE, hx_config_check_request_field), 0,
	 "header that has the key"},
	{"key", AT(proxy_route, key), TEXT("", 0, TEXT_MAX, hx_config_check_strategy), 0,
	 "key strategy for clients that send no such header, as in field:data.id; empty: header"},
	{"include", LIST_AT(proxy_route, include, include_count), TEXTS(LIST_MAX, NULL), 0,
	 "content and hybrid keys: only these paths"},
	{"exclude", LIST_AT(proxy_route, exclude, exclude_count), TEXTS(LIST_MAX, NULL), 0,
	 "paths that are ignored in content keys and fingerprints, with key"},
	{"fingerprint", AT(proxy_route, fingerprint), CHOICE("data", fingerprints), 0,
	 "what must match when the key matches"},
	{"required", AT(proxy_route, required), BOOLEAN("false"), 0,
	 "whether requests without a key are refused; else they pass"},
	{"pass", LIST_AT(proxy_route, pass, pass_count), TEXTS(PASS_MAX, hx_config_check_pass), 0,
	 "requests that pass, with key: PATH=VALUE, as in data.type=url_verification"},
	{"signature", AT(proxy_route, signature), .type = HX_SETTING_CHOICE, .fallback = "none",
	 .choices = hx_webhook_scheme_names,
	 .doc = "how the sender signs, checked with secret_file; a preset knows it"},
	{"secret_file", AT(proxy_route, secret_file), TEXT("", 0, TEXT_MAX, hx_config_check_name),
	 0,
	 "file with the secrets of the sender, one in each line; empty: signatures are not checked"},
	{"tolerance", AT(proxy_route, tolerance_ms), DURATION("5m", SECOND, DAY), 0,
	 "how far the time of a signature may be from the current time"},
	{"public_url", AT(proxy_route, public_url), TEXT("", 0, TEXT_MAX, hx_config_check_origin),
	 0, "for signature twilio: what senders write before the path, as in https://example.com"},
	{"credential", AT(proxy_route, credential),
	 TEXT("auto", 1, NAME_MAX_SIZE, hx_config_check_credential), 0,
	 "what identifies the client: auto, none, or header:NAME"},
	{"credential_cookies", LIST_AT(proxy_route, credential_cookies, credential_cookie_count),
	 TEXTS(LIST_MAX, hx_config_check_cookie), 0,
	 "cookies that identify a client, with credential: auto; other cookies are ignored"},
	{"fingerprint_headers", LIST_AT(proxy_route, fingerprint_headers, fingerprint_header_count),
	 TEXTS(LIST_MAX, hx_config_check_request_field), 0,
	 "headers that select an account: a different value is a different payload; empty: those "
	 "of common APIs"},
	{"tenant", AT(proxy_route, tenant),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "tenant of all keys; empty: default"},
	{"group", AT(proxy_route, group),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0, "like tenant"},
	{"ttl", AT(proxy_route, ttl_ms), DURATION("0s", 0, HX_TTL_MS_MAX), FOREVER,
	 "how long a finished key is remembered; 0s: as in the scope"},
	{"wait", AT(proxy_route, wait_ms), DURATION("10s", 0, HOUR), 0,
	 "how long a duplicate waits for the run in progress before 409"},
	{"max_run", AT(proxy_route, max_run_ms), DURATION("0s", 0, HX_LEASE_MS_MAX), 0,
	 "maximum time for one upstream request; 0s: as in the scope"},
	{"busy_status", AT(proxy_route, busy), CHOICE("409", busy_statuses), 0,
	 "status for a duplicate of a running request"},
	{"on_lapse", AT(proxy_route, on_lapse), CHOICE("park", on_lapses), 0,
	 "after an unknown outcome: run again, or park the key"},
	{"replay_headers", LIST_AT(proxy_route, replay_headers, replay_header_count),
	 TEXTS(LIST_MAX, hx_config_check_replay_field), 0,
	 "response headers that are stored and replayed; empty: those that describe the response"},
	{"outcomes", AT(proxy_route, outcomes), SECTION(&hx_config_outcome_section), 0,
	 "what a status means, if not as usual"},
	{.name = NULL},
};
static const struct hx_section route_section = {
	"a route", .settings = route_settings, .size = sizeof(struct hx_config_proxy_route),
	.place_offset = offsetof(struct hx_config_proxy_route, place),
	.preset = hx_preset_settings};

static const struct hx_setting proxy_settings[] = {
	{"routes", LIST_AT(proxy, routes, route_count), LIST(LIST_MAX, &route_section), FILE_ONLY,
	 "routes of requests; the first match counts"},
	{.name = NULL},
};

const struct hx_section hx_config_proxy_section = {
	"proxy", .settings = proxy_settings, .size = sizeof(struct hx_config_proxy)};
