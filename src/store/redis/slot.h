/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.h - the partition and slot of a record in a Redis Cluster.
 *
 * All keys of a script must be in one of the Cluster's 16,384 slots. The ledger is therefore
 * split into 256 partitions, each a whole ledger with its books, clock and tokens. The names of a
 * partition begin with "prefix:{xx}", xx being its number in hex: Redis hashes only the text in
 * braces. A record's partition is the slot of its name without prefix, modulo 256, so `redis-cli
 * cluster keyslot default/default:order-1` finds it. A single server has one partition, number 0,
 * without braces.
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

/* The slot of a name, as in Redis: CRC-16/XMODEM of the text in braces, or of all. */
unsigned hx_redis_slot(struct hapax_bytes name);

unsigned hx_redis_partition_count(const struct hx_redis_place *place);

/* The prefix of the names in a partition, with a NUL. Returns its size. */
size_t hx_redis_partition_prefix(
	const struct hx_redis_place *place, unsigned partition,
	char ret_prefix[HX_REDIS_PARTITION_PREFIX_SIZE]);

#endif
