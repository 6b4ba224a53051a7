/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota.h - how many of something a name has at a time: requests of a tenant, connections
 * of an address.
 *
 * Only names that have some take memory.
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

/* Also when names still have some: they are forgotten. */
void hx_quota_done(struct hx_quota *quota);

/*
 * One more for name, of which at most HX_QUOTA_NAME_MAX bytes count. LIMIT: it has max
 * already; NO_MEMORY: there was none to count it in. Nothing was taken then.
 */
enum hapax_status hx_quota_take(struct hx_quota *quota, struct hapax_bytes name, uint64_t max);

/* One less; it was taken. */
void hx_quota_give(struct hx_quota *quota, struct hapax_bytes name);

#endif
