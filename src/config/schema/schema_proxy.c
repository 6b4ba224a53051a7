/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_proxy.c - the settings of the proxy.
 */
#include "config/schema/schema_proxy.h"

#include "base/limits.h"
#include "config/config_check.h"
#include "config/config.h"
#include "config/schema/schema_unit.h"

static const char *const on_lapses[] = {"retry", "park", NULL};

#define AT(member)       .offset = offsetof(struct hx_config_outcomes, member)
#define COUNT_AT(member) .count_offset = offsetof(struct hx_config_outcomes, member)
static const struct hx_setting outcome_settings[] = {
	{.name = "ok",
         .type = HX_SETTING_TEXTS,
         AT(ok),
         COUNT_AT(ok_count),
         .max = LIST_MAX,
         .check = hx_check_statuses,
         .doc = "done: kept and replayed"},
	{.name = "definitive",
         .type = HX_SETTING_TEXTS,
         AT(definitive),
         COUNT_AT(definitive_count),
         .max = LIST_MAX,
         .check = hx_check_statuses,
         .doc = "failed for good: kept and replayed, too"},
	{.name = "transient",
         .type = HX_SETTING_TEXTS,
         AT(transient),
         COUNT_AT(transient_count),
         .max = LIST_MAX,
         .check = hx_check_statuses,
         .doc = "failed without effect: the next request runs"},
	{.name = "ambiguous",
         .type = HX_SETTING_TEXTS,
         AT(ambiguous),
         COUNT_AT(ambiguous_count),
         .max = LIST_MAX,
         .check = hx_check_statuses,
         .doc = "nobody knows: on_lapse decides"},
	{.name = NULL},
};
#undef COUNT_AT
#undef AT
static const struct hx_section outcome_section = {
	.name = "outcomes",
	.settings = outcome_settings,
	.size = sizeof(struct hx_config_outcomes)};

#define AT(member)       .offset = offsetof(struct hx_config_proxy_route, member)
#define COUNT_AT(member) .count_offset = offsetof(struct hx_config_proxy_route, member)
static const struct hx_setting route_settings[] = {
	{.name = "name",
         .type = HX_SETTING_TEXT,
         AT(name),
         .fallback = "",
         .max = NAME_MAX_SIZE,
         .check = hx_check_name,
         .doc = "for metrics and logs; empty: its number, as in proxy-1"},
	{.name = "path",
         .type = HX_SETTING_TEXT,
         AT(path),
         .fallback = "/",
         .min = 1,
         .max = TEXT_MAX,
         .check = hx_check_path,
         .doc = "requests whose path begins with it, by whole segments"},
	{.name = "upstream",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_SECRET,
         AT(upstream),
         .fallback = "",
         .max = TEXT_MAX,
         .check = hx_check_url,
         .doc = "where they go; empty: upstream.url"},
	{.name = "methods",
         .type = HX_SETTING_TEXTS,
         AT(methods),
         COUNT_AT(method_count),
         .max = LIST_MAX,
         .check = hx_check_method,
         .doc = "whose requests run once for their key; empty: POST and PATCH"},
	{.name = "header",
         .type = HX_SETTING_TEXT,
         AT(header),
         .fallback = "Idempotency-Key",
         .min = 1,
         .max = NAME_MAX_SIZE,
         .check = hx_check_request_field,
         .doc = "the field that has the key"},
	{.name = "required",
         .type = HX_SETTING_BOOLEAN,
         AT(required),
         .fallback = "false",
         .doc = "whether requests of these methods without a key are refused, or pass"},
	{.name = "credential",
         .type = HX_SETTING_TEXT,
         AT(credential),
         .fallback = "auto",
         .min = 1,
         .max = NAME_MAX_SIZE,
         .check = hx_check_credential,
         .doc = "whose keys they are: auto, none, or header:NAME"},
	{.name = "credential_cookies",
         .type = HX_SETTING_TEXTS,
         AT(credential_cookies),
         COUNT_AT(credential_cookie_count),
         .max = LIST_MAX,
         .check = hx_check_cookie,
         .doc = "cookies that identify a client, with credential: auto; others never count"},
	{.name = "fingerprint_headers",
         .type = HX_SETTING_TEXTS,
         AT(fingerprint_headers),
         COUNT_AT(fingerprint_header_count),
         .max = LIST_MAX,
         .check = hx_check_request_field,
         .doc = "fields that choose an account: another value is another payload; empty: those "
                "of widespread APIs"},
	{.name = "tenant",
         .type = HX_SETTING_TEXT,
         AT(tenant),
         .fallback = "",
         .max = HX_SCOPE_PART_SIZE_MAX,
         .check = hx_check_scope_part,
         .doc = "the tenant of all keys; empty: default"},
	{.name = "group",
         .type = HX_SETTING_TEXT,
         AT(group),
         .fallback = "",
         .max = HX_SCOPE_PART_SIZE_MAX,
         .check = hx_check_scope_part,
         .doc = "as tenant"},
	{.name = "ttl",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_FOREVER,
         AT(ttl_ms),
         .fallback = "0s",
         .max = HX_TTL_MS_MAX,
         .doc = "how long a finished key is remembered; 0s: as the scope says"},
	{.name = "wait",
         .type = HX_SETTING_DURATION,
         AT(wait_ms),
         .fallback = "10s",
         .max = HOUR,
         .doc = "how long a duplicate waits for the run in progress before 409"},
	{.name = "on_lapse",
         .type = HX_SETTING_CHOICE,
         AT(on_lapse),
         .fallback = "park",
         .choices = on_lapses,
         .doc = "after a lost reply or a crash: run again, or park"},
	{.name = "replay_headers",
         .type = HX_SETTING_TEXTS,
         AT(replay_headers),
         COUNT_AT(replay_header_count),
         .max = LIST_MAX,
         .check = hx_check_replay_field,
         .doc = "fields of a response that are kept and replayed; empty: those that describe it"},
	{.name = "outcomes",
         .type = HX_SETTING_SECTION,
         AT(outcomes),
         .section = &outcome_section,
         .doc = "what a status means, where it is not as usual"},
	{.name = NULL},
};
#undef COUNT_AT
#undef AT
static const struct hx_section route_section = {
	.name = "a route",
	.settings = route_settings,
	.size = sizeof(struct hx_config_proxy_route),
	.place_offset = offsetof(struct hx_config_proxy_route, place)};

#define AT(member) .offset = offsetof(struct hx_config_proxy, member)
static const struct hx_setting proxy_settings[] = {
	{.name = "routes",
         .type = HX_SETTING_LIST,
         .flags = HX_SETTING_FILE_ONLY,
         AT(routes),
         .count_offset = offsetof(struct hx_config_proxy, route_count),
         .max = LIST_MAX,
         .section = &route_section,
         .doc = "which requests go where; the first that matches counts"},
	{.name = NULL},
};
#undef AT

const struct hx_section hx_config_proxy_section = {
	.name = "proxy", .settings = proxy_settings, .size = sizeof(struct hx_config_proxy)};
