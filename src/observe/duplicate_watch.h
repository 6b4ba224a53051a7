/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duplicate_watch.h - detect scopes with a high share of duplicates (E12, C8).
 *
 * It reads the decisions of the doors since its last look. If the share of duplicates is above a
 * threshold, a sender repeats too much, and the scope gets a line in the log.
 *
 * Threads: one at a time.
 */
#ifndef HX_DUPLICATE_WATCH_H
#define HX_DUPLICATE_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

struct hx_logger;
struct hx_metrics;
struct hx_duplicate_watch;

/* Fewer deliveries are not significant. */
enum { HX_DUPLICATE_WATCH_MIN = 100 };

/* Watches metrics, which must outlive it. Owned: *ret_watch, by the caller. */
enum hapax_status hx_duplicate_watch_new(
	struct hx_metrics *metrics, struct hx_duplicate_watch **ret_watch, struct hapax_error *err);

/* NULL is allowed. */
void hx_duplicate_watch_free(struct hx_duplicate_watch *watch);

/*
 * Look; once a minute is a good interval. Returns the number of scopes above the threshold, in
 * percent; 0: no threshold.
 */
size_t hx_duplicate_watch_look(
	struct hx_duplicate_watch *watch, struct hx_logger *log, uint64_t threshold_percent);

#endif
