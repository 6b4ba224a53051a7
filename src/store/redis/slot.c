/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.c - the partition and slot of a record in a Redis Cluster.
 */
#include "store/redis/slot.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

static unsigned crc16(const unsigned char *data, size_t size)
{
	unsigned crc = 0;

	for (size_t i = 0; i < size; i++) {
		crc ^= (unsigned)data[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc & 0x8000) ? crc << 1 ^ 0x1021 : crc << 1;
		crc &= 0xffff;
	}
	return crc;
}

unsigned hx_redis_slot(struct hapax_bytes name)
{
	const unsigned char *data = name.data;
	const unsigned char *open = name.size == 0 ? NULL : memchr(data, '{', name.size);

	if (open != NULL) {
		size_t rest = name.size - (size_t)(open + 1 - data);
		const unsigned char *close = rest == 0 ? NULL : memchr(open + 1, '}', rest);

		if (close != NULL && close > open + 1)
			return crc16(open + 1, (size_t)(close - open - 1)) % HX_REDIS_SLOTS;
	}
	return crc16(data, name.size) % HX_REDIS_SLOTS;
}

unsigned hx_redis_partition_count(const struct hx_redis_place *place)
{
	return place->is_cluster ? HX_REDIS_PARTITIONS : 1;
}

size_t hx_redis_partition_prefix(
	const struct hx_redis_place *place, unsigned partition,
	char ret_prefix[HX_REDIS_PARTITION_PREFIX_SIZE])
{
	int size = place->is_cluster
		? snprintf(
			  ret_prefix, HX_REDIS_PARTITION_PREFIX_SIZE, "%s:{%02x}", place->prefix,
			  partition)
		: snprintf(ret_prefix, HX_REDIS_PARTITION_PREFIX_SIZE, "%s", place->prefix);

	return (size_t)size;
}
