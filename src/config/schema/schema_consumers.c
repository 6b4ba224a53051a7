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
	{"from", AT(consumer, from), TEXT(NULL, 1, TEXT_MAX, NULL), REQUIRED | SECRET,
	 "URL of the source, as hapax consume --from takes it"},
	{"to", AT(consumer, to), TEXT("", 0, TEXT_MAX, hx_config_check_url), SECRET,
	 "the service that gets each message as a CloudEvent; this or exec"},
	{"exec", AT(consumer, exec), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "the command that is run for each, by sh -c, its data on standard input"},
	{"form", AT(consumer, form), CHOICE("binary", forms), 0,
	 "of the CloudEvent: attributes in headers, or one JSON object"},
	{"key", AT(consumer, keying.key), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "what makes two messages the same; empty: their ids, else their place"},
	{"include", LIST_AT(consumer, keying.include, keying.include_count), TEXTS(LIST_MAX, NULL),
	 0, "content and hybrid keys: only these paths"},
	{"exclude", LIST_AT(consumer, keying.exclude, keying.exclude_count), TEXTS(LIST_MAX, NULL),
	 0, "paths that matter neither to content keys nor to fingerprints"},
	{"canonical", AT(consumer, keying.canonical), CHOICE("lossless", canonicals), 0,
	 "how content is written before it is hashed"},
	{"fingerprint", AT(consumer, keying.fingerprint), CHOICE("data", fingerprints), 0,
	 "what must be equal where the key is"},
	{"tenant", AT(consumer, keying.tenant),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "the tenant of all messages; with tenant_from, of those that have none"},
	{"tenant_from", AT(consumer, keying.tenant_from), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "where a message has its tenant: header.X-Tenant"},
	{"group", AT(consumer, keying.group),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "as tenant; it is not the group of the broker, which stands in the URL"},
	{"group_from", AT(consumer, keying.group_from), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "as tenant_from"},
	{"ttl", AT(consumer, ttl_ms), DURATION("7d", 1, HX_TTL_MS_MAX), FOREVER,
	 "how long a finished key is remembered"},
	{"lease", AT(consumer, lease_ms), DURATION("0s", 0, HX_LEASE_MS_MAX), 0,
	 "how long a claim holds when hapax dies; 0s: as the scope says"},
	{"max_run", AT(consumer, max_run_ms), DURATION("15m", 1, HX_LEASE_MS_MAX), 0,
	 "how long the handler may take"},
	{"on_lapse", AT(consumer, on_lapse), CHOICE("retry", on_lapses), 0,
	 "after a lost reply or a crash: run again, or park"},
	{"parallel", AT(consumer, parallel), COUNT("16", 1, PARALLEL_MAX), 0,
	 "messages that are worked on at once"},
	{"prefetch", AT(consumer, prefetch), COUNT("256", 1, PREFETCH_MAX), 0, "messages in hand"},
	{"order", AT(consumer, order), CHOICE("key", orders), 0,
	 "which messages wait for each other: of a key, of a partition, or none"},
	{"attempts", AT(consumer, attempts), COUNT("10", 1, MANY), 0,
	 "failed runs of a key before its message is a dead letter"},
	{"backoff", AT(consumer, backoff_ms), DURATION("200ms", 1, DAY), 0,
	 "before the second attempt; then doubled"},
	{"backoff_max", AT(consumer, backoff_max_ms), DURATION("1m", 1, DAY), 0,
	 "between two attempts at most"},
	{"dead_letter", AT(consumer, dead_letter),
	 TEXT("", 0, TARGET_SIZE_MAX, hx_config_check_name), 0,
	 "where dead letters go; empty: the topic and .dead; off: tried for ever"},
	{"on_duplicate", AT(consumer, on_duplicate), CHOICE("drop", on_duplicates), 0,
	 "what becomes of duplicates, which are counted and logged either way"},
	{"divert", AT(consumer, divert), TEXT("", 0, TARGET_SIZE_MAX, hx_config_check_name), 0,
	 "where they go with divert; empty: the topic and .duplicate"},
	{.name = NULL},
};

const struct hx_section hx_config_consumer_section = {
	"a consumer", .settings = consumer_settings, .size = sizeof(struct hx_config_consumer),
	.place_offset = offsetof(struct hx_config_consumer, place)};
