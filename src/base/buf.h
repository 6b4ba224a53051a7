/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - owned bytes that grow up to a maximum.
 *
 * The maximum is given at init and is never exceeded, so whatever comes from
 * outside has a bound by construction. A failed append leaves the buffer as it
 * was. Clear keeps the memory: a buffer used again and again stops allocating.
 *
 * Threads: one at a time.
 */
#ifndef HX_BUF_H
#define HX_BUF_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

struct hapax_buf {
	unsigned char *data; /* NULL while capacity is 0 */
	size_t size;
	size_t capacity;
	size_t size_max;
};

/* Allocates nothing. */
void hx_buf_init(struct hapax_buf *buf, size_t size_max);

/* Free the memory; the buffer is empty afterwards and may be used again. */
void hx_buf_done(struct hapax_buf *buf);

/* Empty it, and keep the memory. */
void hx_buf_clear(struct hapax_buf *buf);

/* Make room for extra bytes after size. LIMIT above size_max, or NO_MEMORY. */
enum hapax_status hx_buf_reserve(struct hapax_buf *buf, size_t extra);

/* data must not lie within buf; it may be NULL when size is 0. */
enum hapax_status hx_buf_append(struct hapax_buf *buf, const void *data, size_t size);
enum hapax_status hx_buf_append_byte(struct hapax_buf *buf, unsigned char byte);

/* Append formatted text without a NUL. */
__attribute__((format(printf, 2, 3))) enum hapax_status hx_buf_printf(
	struct hapax_buf *buf, const char *format, ...);

/* Little endian. */
enum hapax_status hx_buf_append_u16(struct hapax_buf *buf, uint16_t value);
enum hapax_status hx_buf_append_u32(struct hapax_buf *buf, uint32_t value);
enum hapax_status hx_buf_append_u64(struct hapax_buf *buf, uint64_t value);

#endif
