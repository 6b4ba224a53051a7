/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - owned bytes that grow up to a maximum.
 *
 * The maximum is given at init and is never exceeded, so input from outside is always bounded. A
 * failed append leaves the buffer unchanged. Clear keeps the memory: a reused buffer stops
 * allocating.
 *
 * Threads: one at a time.
 */
#ifndef HX_BUF_H
#define HX_BUF_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/budget.h"

struct hapax_buf {
	unsigned char *data; /* NULL while capacity is 0 */
	size_t size;
	size_t capacity;
	size_t size_max;
	struct hx_budget *budget; /* charged for the memory; NULL: none */
};

/* A buffer with at most this many bytes is not charged to its budget: counting would cost more. */
enum { HX_BUF_FREE_MAX = 1024 };

/* Allocates nothing. */
void hx_buf_init(struct hapax_buf *buf, size_t size_max);

/* The same; its memory is charged to budget, and a refused growth is NO_MEMORY. */
void hx_buf_init_budget(struct hapax_buf *buf, size_t size_max, struct hx_budget *budget);

/* Free the memory; the buffer is empty afterwards and may be used again. */
void hx_buf_done(struct hapax_buf *buf);

/* Empty it, and keep the memory. */
void hx_buf_clear(struct hapax_buf *buf);

/* The slow half of reserve; not for callers. */
enum hapax_status hx_buf_grow(struct hapax_buf *buf, size_t extra);

/* Make room for extra bytes after size. LIMIT above size_max, or NO_MEMORY. */
static inline enum hapax_status hx_buf_reserve(struct hapax_buf *buf, size_t extra)
{
	assert(buf->size <= buf->capacity);
	return extra <= buf->capacity - buf->size ? HAPAX_OK : hx_buf_grow(buf, extra);
}

/* data must not lie within buf; it may be NULL when size is 0. */
static inline enum hapax_status hx_buf_append(struct hapax_buf *buf, const void *data, size_t size)
{
	enum hapax_status status = hx_buf_reserve(buf, size);

	if (status != HAPAX_OK || size == 0)
		return status;
	memcpy(buf->data + buf->size, data, size);
	buf->size += size;
	return HAPAX_OK;
}

enum hapax_status hx_buf_append_byte(struct hapax_buf *buf, unsigned char byte);

/* Append formatted text without a NUL. */
__attribute__((format(printf, 2, 3))) enum hapax_status hx_buf_printf(
	struct hapax_buf *buf, const char *format, ...);

/* Little endian. */
enum hapax_status hx_buf_append_u16(struct hapax_buf *buf, uint16_t value);
enum hapax_status hx_buf_append_u32(struct hapax_buf *buf, uint32_t value);

#endif
