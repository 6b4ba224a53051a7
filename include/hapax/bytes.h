/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h - the two kinds of memory that cross this API.
 *
 * struct hapax_bytes borrows: it points at memory with another owner. The library reads it only
 * during the call (for an operation: until its completion). struct hapax_buf owns: it grows up to
 * the maximum set when it was created. Reuse it, so that a busy caller allocates nothing.
 *
 * Keys and payloads are bytes, never C strings: they may contain NUL bytes.
 *
 * Threads: a hapax_buf belongs to one thread at a time or, while an operation that names it is in
 * flight, to that operation.
 */
#ifndef HAPAX_BYTES_H
#define HAPAX_BYTES_H

#include <stddef.h>

#include <hapax/export.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hapax_bytes {
	const void *data; /* may be NULL when size is 0 */
	size_t size;
};

struct hapax_buf;

/* Create an empty buffer that never holds more than size_max bytes. NULL: out of memory. */
HAPAX_API struct hapax_buf *hapax_buf_new(size_t size_max);

/* NULL is allowed. */
HAPAX_API void hapax_buf_free(struct hapax_buf *buf);

/* The contents of the buffer. Borrowed from buf, until the next write to it. */
HAPAX_API struct hapax_bytes hapax_buf_bytes(const struct hapax_buf *buf);

/* The bytes of a C string without its NUL. A NULL text is empty. */
HAPAX_API struct hapax_bytes hapax_bytes_from_text(const char *text);

#ifdef __cplusplus
}
#endif

#endif
