/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota.h - counts things per name: requests of a tenant, connections of an address.
 *
 * Only names with a count above zero take memory.
 *
 * Threads: any.
 */
#ifndef HX_SERVE_DAEMON_QUOTA_H
#define HX_SERVE_DAEMON_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/thread.h"

enum { HX_QUOTA_BUCKETS = 1024, HX_QUOTA_NAME_MAX = 128 };

struct hx_quota_entry;

struct hx_quota {
	struct hx_lock lock;
	uint64_t hash_key[2];
	struct hx_quota_entry *buckets[HX_QUOTA_BUCKETS];
};

void hx_quota_init(struct hx_quota *quota);

/* Names with a count above zero are forgotten, too. */
void hx_quota_done(struct hx_quota *quota);

/*
 * Counts one more for name, of which at most HX_QUOTA_NAME_MAX bytes are used. LIMIT: it already
 * has max; NO_MEMORY: there was none for the count. Nothing was counted then.
 */
enum hapax_status hx_quota_take(struct hx_quota *quota, struct hapax_bytes name, uint64_t max);

/* Counts one less; it was taken before. */
void hx_quota_give(struct hx_quota *quota, struct hapax_bytes name);

#endif
