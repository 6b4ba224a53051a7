/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.c - owned bytes that grow up to a maximum.
 *
 *  (1) size <= capacity <= size_max.
 *  (2) data is NULL exactly when capacity is 0.
 *  (3) Exactly charge(capacity) bytes are taken from the budget.
 *  (4) A call that fails changes neither size nor the bytes below it.
 */
#include "base/buf.h"

#include <assert.h>
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/checked.h"

/* Below this a grown buffer would soon have to grow again. */
enum { CAPACITY_MIN = 64 };

static void buf_assert(const struct hapax_buf *buf)
{
	assert(buf->size <= buf->capacity);
	assert(buf->capacity <= buf->size_max);
	assert((buf->data == NULL) == (buf->capacity == 0));
}

void hx_buf_init(struct hapax_buf *buf, size_t size_max)
{
	*buf = (struct hapax_buf){.size_max = size_max};
}

void hx_buf_init_budget(struct hapax_buf *buf, size_t size_max, struct hx_budget *budget)
{
	*buf = (struct hapax_buf){.size_max = size_max, .budget = budget};
}

/* The bytes charged to the budget for this capacity. */
static size_t charge(size_t capacity)
{
	return capacity <= HX_BUF_FREE_MAX ? 0 : capacity;
}

void hx_buf_done(struct hapax_buf *buf)
{
	buf_assert(buf);
	hx_free(buf->data);
	if (charge(buf->capacity) > 0)
		hx_budget_give(buf->budget, buf->capacity);
	hx_buf_init_budget(buf, buf->size_max, buf->budget);
}

void hx_buf_clear(struct hapax_buf *buf)
{
	buf_assert(buf);
	buf->size = 0;
}

/* At least half as much again as now, so that appending n bytes copies O(n) of them. */
static size_t grown_capacity(const struct hapax_buf *buf, size_t needed)
{
	size_t capacity;

	if (hx_add_size(buf->capacity, buf->capacity / 2, &capacity))
		capacity = buf->size_max;
	if (capacity < needed)
		capacity = needed;
	if (capacity < CAPACITY_MIN)
		capacity = CAPACITY_MIN;
	return capacity < buf->size_max ? capacity : buf->size_max;
}

enum hapax_status hx_buf_grow(struct hapax_buf *buf, size_t extra)
{
	unsigned char *data;
	size_t capacity, needed, grown;

	buf_assert(buf);
	if (hx_add_size(buf->size, extra, &needed) || needed > buf->size_max)
		return HAPAX_ERR_LIMIT;
	if (needed <= buf->capacity)
		return HAPAX_OK;

	capacity = grown_capacity(buf, needed);
	grown = charge(capacity) - charge(buf->capacity);
	if (grown > 0 && !hx_budget_take(buf->budget, grown))
		return HAPAX_ERR_NO_MEMORY;
	data = hx_realloc(buf->data, capacity);
	if (data == NULL) {
		if (grown > 0)
			hx_budget_give(buf->budget, grown);
		return HAPAX_ERR_NO_MEMORY;
	}
	buf->data = data;
	buf->capacity = capacity;
	return HAPAX_OK;
}

enum hapax_status hx_buf_append_byte(struct hapax_buf *buf, unsigned char byte)
{
	return hx_buf_append(buf, &byte, 1);
}

/*
 * vsnprintf() insists on writing a NUL, which does not count and may not fit below
 * size_max. Short text is therefore formatted aside; only text that does not fit
 * there pays for a temporary allocation.
 */
enum hapax_status hx_buf_printf(struct hapax_buf *buf, const char *format, ...)
{
	char scratch[256];
	char *text = scratch;
	enum hapax_status status;
	va_list args, again;
	int size;

	va_start(args, format);
	va_copy(again, args);
	size = vsnprintf(scratch, sizeof(scratch), format, args);
	va_end(args);
	if (size < 0 || (size_t)size > buf->size_max - buf->size) {
		status = HAPAX_ERR_LIMIT;
		goto out;
	}
	if ((size_t)size >= sizeof(scratch)) {
		text = hx_alloc((size_t)size + 1);
		if (text == NULL) {
			status = HAPAX_ERR_NO_MEMORY;
			goto out;
		}
		(void)vsnprintf(text, (size_t)size + 1, format, again);
	}
	status = hx_buf_append(buf, text, (size_t)size);
out:
	va_end(again);
	if (text != scratch)
		hx_free(text);
	return status;
}

enum hapax_status hx_buf_append_u16(struct hapax_buf *buf, uint16_t value)
{
	uint16_t little = htole16(value);

	return hx_buf_append(buf, &little, sizeof(little));
}

enum hapax_status hx_buf_append_u32(struct hapax_buf *buf, uint32_t value)
{
	uint32_t little = htole32(value);

	return hx_buf_append(buf, &little, sizeof(little));
}

struct hapax_buf *hapax_buf_new(size_t size_max)
{
	struct hapax_buf *buf = hx_alloc(sizeof(*buf));

	if (buf != NULL)
		hx_buf_init(buf, size_max);
	return buf;
}

void hapax_buf_free(struct hapax_buf *buf)
{
	if (buf == NULL)
		return;
	hx_buf_done(buf);
	hx_free(buf);
}

struct hapax_bytes hapax_buf_bytes(const struct hapax_buf *buf)
{
	buf_assert(buf);
	return hx_bytes(buf->data, buf->size);
}
