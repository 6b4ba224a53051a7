/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_consumers.c - the settings of a consumer: those of `hapax consume`, with the names that
 * routes and scopes use.
 */
#include "config/schema/schema_row.h"

/* Values of enums, in their order. */
static const char *const forms[] = {"binary", "structured", NULL};
static const char *const canonicals[] = {"lossless", "python", NULL};
static const char *const fingerprints[] = {"data", "none", NULL};
static const char *const on_lapses[] = {"retry", "park", NULL};
static const char *const orders[] = {"key", "partition", "none", NULL};
static const char *const on_duplicates[] = {"drop", "divert", "tag", NULL};

/* The name of a topic, queue, exchange or stream. */
enum { TARGET_SIZE_MAX = 255, PREFETCH_MAX = 10000, PARALLEL_MAX = 10000 };

static const struct hx_setting consumer_settings[] = {
	{"name", AT(consumer, name), TEXT(NULL, 1, NAME_MAX_SIZE, hx_config_check_name), REQUIRED,
	 "for metrics, logs and reloads; unique"},
	{"enabled", AT(consumer, enabled), BOOLEAN("true"), 0,
	 "false: it does not run, and a reload starts or stops it"},
	{"from", AT(consumer, from), TEXT(NULL, 1, TEXT_MAX, NULL), REQUIRED | SECRET,
	 "URL of the source, as in hapax consume --from"},
	{"to", AT(consumer, to), TEXT("", 0, TEXT_MAX, hx_config_check_url), SECRET,
	 "service that gets each message as a CloudEvent; either this or exec"},
	{"exec", AT(consumer, exec), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "command for each message, run by sh -c; the data is its standard input"},
	{"form", AT(consumer, form), CHOICE("binary", forms), 0,
	 "form of the CloudEvent: attributes in headers, or one JSON object"},
	{"key", AT(consumer, keying.key), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "key strategy: what makes two messages the same; empty: their ids, else their position"},
	{"key_also", AT(consumer, keying.key_also), TEXT("", 0, TEXT_MAX, hx_config_check_strategy),
	 0, "while key changes: the old strategy; a message is a duplicate by either key"},
	{"key_also_until", AT(consumer, keying.key_also_until),
	 TEXT("", 0, TEXT_MAX, hx_config_check_date), 0,
	 "when key_also ends: at least a ttl after the change"},
	{"include", LIST_AT(consumer, keying.include, keying.include_count), TEXTS(LIST_MAX, NULL),
	 0, "content and hybrid keys: only these paths"},
	{"exclude", LIST_AT(consumer, keying.exclude, keying.exclude_count), TEXTS(LIST_MAX, NULL),
	 0, "paths that are ignored in content keys and fingerprints"},
	{"canonical", AT(consumer, keying.canonical), CHOICE("lossless", canonicals), 0,
	 "canonical form of the content before it is hashed"},
	{"fingerprint", AT(consumer, keying.fingerprint), CHOICE("data", fingerprints), 0,
	 "what must match when the key matches"},
	{"tenant", AT(consumer, keying.tenant),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "tenant of all messages; with tenant_from, of messages without one"},
	{"tenant_from", AT(consumer, keying.tenant_from), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "where a message has its tenant: header.X-Tenant"},
	{"group", AT(consumer, keying.group),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "like tenant; not the consumer group of the broker, which is in the URL"},
	{"group_from", AT(consumer, keying.group_from), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "like tenant_from"},
	{"ttl", AT(consumer, ttl_ms), DURATION("7d", 1, HX_TTL_MS_MAX), FOREVER,
	 "how long a finished key is remembered"},
	{"lease", AT(consumer, lease_ms), DURATION("0s", 0, HX_LEASE_MS_MAX), 0,
	 "how long a claim lasts if hapax dies; 0s: as in the scope"},
	{"max_run", AT(consumer, max_run_ms), DURATION("15m", 1, HX_LEASE_MS_MAX), 0,
	 "maximum time for one run of the handler"},
	{"on_lapse", AT(consumer, on_lapse), CHOICE("retry", on_lapses), 0,
	 "after an unknown outcome: run again, or park the key"},
	{"parallel", AT(consumer, parallel), COUNT("16", 1, PARALLEL_MAX), 0,
	 "maximum number of messages processed at once"},
	{"prefetch", AT(consumer, prefetch), COUNT("256", 1, PREFETCH_MAX), 0,
	 "maximum number of messages fetched from the broker"},
	{"order", AT(consumer, order), CHOICE("key", orders), 0,
	 "which messages are processed in order: those with the same key, of one partition, or "
	 "none"},
	{"attempts", AT(consumer, attempts), COUNT("10", 1, MANY), 0,
	 "failed runs of a key before the message becomes a dead letter"},
	{"backoff", AT(consumer, backoff_ms), DURATION("200ms", 1, DAY), 0,
	 "delay before the second attempt; it doubles with each attempt"},
	{"backoff_max", AT(consumer, backoff_max_ms), DURATION("1m", 1, DAY), 0,
	 "maximum delay between attempts"},
	{"dead_letter", AT(consumer, dead_letter),
	 TEXT("", 0, TARGET_SIZE_MAX, hx_config_check_name), 0,
	 "where dead letters go; empty: the topic with .dead; off: retry forever"},
	{"on_duplicate", AT(consumer, on_duplicate), CHOICE("drop", on_duplicates), 0,
	 "what happens to duplicates; they are always counted and logged"},
	{"divert", AT(consumer, divert), TEXT("", 0, TARGET_SIZE_MAX, hx_config_check_name), 0,
	 "where duplicates go with divert; empty: the topic with .duplicate"},
	{.name = NULL},
};

const struct hx_section hx_config_consumer_section = {
	"a consumer", .settings = consumer_settings, .size = sizeof(struct hx_config_consumer),
	.place_offset = offsetof(struct hx_config_consumer, place)};
