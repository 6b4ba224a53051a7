/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.h - CRC-32C (Castagnoli), the check on everything stored.
 *
 * Start with 0 and pass the last value to go on: crc(crc(0, a), b) is the crc of a
 * and b joined. Inversion before and after happens inside.
 *
 * Threads: any.
 */
#ifndef HX_CRC32C_H
#define HX_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* data may be NULL when size is 0. */
uint32_t hx_crc32c(uint32_t crc, const void *data, size_t size);

/* The two implementations that hx_crc32c() chooses from; for tests and benchmarks. */
uint32_t hx_crc32c_table(uint32_t crc, const void *data, size_t size);
uint32_t hx_crc32c_x86(uint32_t crc, const void *data, size_t size);

/* Whether this machine can run hx_crc32c_x86(). */
bool hx_crc32c_x86_usable(void);

#endif
