/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.h - where in a Redis Cluster a record lies.
 *
 * What a script touches must lie in one of the 16,384 slots of a Cluster, so the ledger is kept
 * there in 256 partitions, each a whole ledger with its books, clock and tokens. A partition's names
 * begin with "prefix:{xx}", xx its number in hex: Redis hashes what stands in braces and nothing
 * else. A record's partition is the slot of its name without prefix, modulo 256, so that
 * `redis-cli cluster keyslot default/default:order-1` finds it. One server has a single
 * partition, number 0, without braces.
 */
#ifndef HX_STORE_REDIS_SLOT_H
#define HX_STORE_REDIS_SLOT_H

#include <hapax/bytes.h>

#include "net/redis_place.h"

enum {
	HX_REDIS_SLOTS = 16384,
	HX_REDIS_PARTITIONS = 256,
	HX_REDIS_PARTITION_PREFIX_SIZE = HX_REDIS_PREFIX_SIZE_MAX + 8,
};

/* The slot of a name, as Redis has it: CRC-16/XMODEM of what stands in braces, or of all. */
unsigned hx_redis_slot(struct hapax_bytes name);

/* How many partitions there are. */
unsigned hx_redis_partition_count(const struct hx_redis_place *place);

/* The partition of a record by its name without prefix. */
unsigned hx_redis_partition(const struct hx_redis_place *place, struct hapax_bytes member);

/* What the names in a partition begin with; ends with a NUL. Returns its size. */
size_t hx_redis_partition_prefix(
	const struct hx_redis_place *place, unsigned partition,
	char ret_prefix[HX_REDIS_PARTITION_PREFIX_SIZE]);

#endif
