/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h - make and compare borrowed ranges of memory.
 *
 * An empty range may have a NULL pointer; memcmp(NULL, x, 0) is undefined in C11,
 * so compare through these and not by hand.
 *
 * Threads: any.
 */
#ifndef HX_BYTES_H
#define HX_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <hapax/bytes.h>

#include "base/macros.h"

/* The bytes of a string literal, without its NUL. The "" refuse anything else. */
#define HX_BYTES_LIT(text) ((struct hapax_bytes){"" text "", sizeof(text) - 1})

static inline struct hapax_bytes hx_bytes(const void *data, size_t size)
{
	return (struct hapax_bytes){data, size};
}

static inline bool hx_bytes_equal(struct hapax_bytes a, struct hapax_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Below, equal or above zero; by unsigned bytes, and a prefix comes first. */
static inline int hx_bytes_compare(struct hapax_bytes a, struct hapax_bytes b)
{
	size_t common = a.size < b.size ? a.size : b.size;
	int order = common == 0 ? 0 : memcmp(a.data, b.data, common);

	if (order != 0)
		return order;
	return (a.size > b.size) - (a.size < b.size);
}

#endif
