/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_json.h - the figures of a store as members of a JSON object, for `hapax stats` and
 * GET /stats.
 *
 *	hx_stats_json_write(&json, &stats, HX_STATS_JSON_WITH_SWEPT);
 *	hx_stats_json_write_decisions(&json, stats.counts);
 *
 * Threads: any.
 */
#ifndef HX_STATS_JSON_H
#define HX_STATS_JSON_H

#include <hapax/store.h>

#include "wire/json/json_write.h"

enum hx_stats_json_flag { HX_STATS_JSON_WITH_SWEPT = 1 << 0 };

/* Clock, keys by state, sizes, limits, the last token. flags: enum hx_stats_json_flag. */
void hx_stats_json_write(
	struct hx_json_write *json, const struct hapax_stats *stats, unsigned flags);

/* decisions and hit_rate; counts has HAPAX_DECISION_COUNT. */
void hx_stats_json_write_decisions(struct hx_json_write *json, const uint64_t *counts);

#endif
