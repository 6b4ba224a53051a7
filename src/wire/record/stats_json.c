/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_json.c - the figures of a store as members of a JSON object.
 */
#include "wire/record/stats_json.h"

static void write_limit(struct hx_json_write *json, const char *name, uint64_t limit)
{
	if (limit == 0)
		hx_json_write_null(json, name);
	else
		hx_json_write_unsigned(json, name, limit);
}

void hx_stats_json_write(
	struct hx_json_write *json, const struct hapax_stats *stats, unsigned flags)
{
	hx_json_write_time(json, "now", stats->now_ms);
	hx_json_write_signed(json, "skew_ms", stats->skew_ms);
	hx_json_write_unsigned(json, "keys", stats->keys);
	hx_json_write_begin(json, "states", '{');
	hx_json_write_unsigned(json, "claimed", stats->claimed);
	hx_json_write_unsigned(json, "done", stats->done);
	hx_json_write_unsigned(json, "failed", stats->failed);
	hx_json_write_unsigned(json, "parked", stats->parked);
	hx_json_write_end(json, '}');
	hx_json_write_unsigned(json, "expired", stats->expired);
	hx_json_write_unsigned(json, "evicted", stats->evicted);
	if (flags & HX_STATS_JSON_WITH_SWEPT)
		hx_json_write_unsigned(json, "swept", stats->swept);
	hx_json_write_unsigned(json, "tidy_failures", stats->tidy_failures);
	hx_json_write_unsigned(json, "bytes", stats->bytes);
	write_limit(json, "bytes_max", stats->bytes_max);
	write_limit(json, "keys_max", stats->keys_max);
	hx_json_write_unsigned(json, "reserve_bytes", stats->reserve_bytes);
	hx_json_write_boolean(json, "disk_full", stats->disk_full != 0);
	hx_json_write_unsigned(json, "token", stats->token);
}

void hx_stats_json_write_decisions(struct hx_json_write *json, const uint64_t *counts)
{
	uint64_t first = counts[HAPAX_DECISION_ACQUIRED];
	uint64_t repeated = counts[HAPAX_DECISION_REPLAY];

	hx_json_write_begin(json, "decisions", '{');
	for (int d = 0; d < HAPAX_DECISION_COUNT; d++)
		hx_json_write_unsigned(
			json, hapax_decision_name((enum hapax_decision)d), counts[d]);
	hx_json_write_end(json, '}');
	if (first + repeated == 0)
		hx_json_write_null(json, "hit_rate");
	else
		hx_json_write_number(
			json, "hit_rate", (double)repeated / ((double)first + (double)repeated), 4);
}
