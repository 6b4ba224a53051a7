/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duplicate_watch.h - notices scopes in which much of what comes are duplicates (E12, C8).
 *
 * It looks at what doors have decided since it looked last. A sender that repeats too much
 * shows as a share of duplicates above a threshold, and gets a line in the log.
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

/* Of fewer deliveries nothing can be said. */
enum { HX_DUPLICATE_WATCH_MIN = 100 };

/* Watches metrics, which must outlive it. Owned: *ret_watch, by the caller. */
enum hapax_status hx_duplicate_watch_new(
	struct hx_metrics *metrics, struct hx_duplicate_watch **ret_watch, struct hapax_error *err);

/* NULL is allowed. */
void hx_duplicate_watch_free(struct hx_duplicate_watch *watch);

/*
 * Look: once a minute is a good time. Returns how many scopes were above the threshold,
 * in percent; 0: none ever is.
 */
size_t hx_duplicate_watch_look(
	struct hx_duplicate_watch *watch, struct hx_logger *log, uint64_t threshold_percent);

#endif
