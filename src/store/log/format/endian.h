/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endian.h - little-endian numbers in files, at any address.
 *
 * Threads: any.
 */
#ifndef HX_STORE_LOG_FORMAT_ENDIAN_H
#define HX_STORE_LOG_FORMAT_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void hx_put16(unsigned char *at, uint16_t value)
{
	value = htole16(value);
	memcpy(at, &value, sizeof(value));
}

static inline void hx_put32(unsigned char *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void hx_put64(unsigned char *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint16_t hx_get16(const unsigned char *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return le16toh(value);
}

static inline uint32_t hx_get32(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static inline uint64_t hx_get64(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

#endif
