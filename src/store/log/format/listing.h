/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.h - the segments of a directory, by kind and id.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_LOG_FORMAT_LISTING_H
#define HX_STORE_LOG_FORMAT_LISTING_H

#include "store/log/format/directory.h"

struct hx_log_listed {
	enum hx_log_kind kind;
	uint64_t id;
};

struct hx_log_listing {
	struct hx_log_listed *segments; /* by kind, then id */
	size_t count;
	size_t capacity;
	uint64_t others; /* names that are not hapax's */
	bool is_short;   /* memory ran out */
};

/* Read the directory. UNAVAILABLE, NO_MEMORY. */
enum hapax_status hx_log_listing_read(
	struct hx_log_listing *listing, const struct hx_log_directory *directory,
	struct hapax_error *err);

void hx_log_listing_done(struct hx_log_listing *listing);

/* Is this segment there? */
bool hx_log_listing_has(const struct hx_log_listing *listing, enum hx_log_kind kind, uint64_t id);

/* Does one of the items name this segment? */
bool hx_log_listed_is_named(
	const struct hx_log_listed *segment, const struct hx_log_manifest_item *items,
	uint32_t count);

/* The highest id of a kind, or 0. */
uint64_t hx_log_listing_top(const struct hx_log_listing *listing, enum hx_log_kind kind);

#endif
