/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - a record as bytes, for files and for the wire between nodes.
 *
 * Little-endian, fixed offsets, then the variable parts in a fixed order; the
 * layout stands in codec.c. A decoder reads what any earlier version wrote.
 */
#ifndef HX_RECORD_CODEC_H
#define HX_RECORD_CODEC_H

#include <hapax/error.h>
#include <hapax/record.h>

#include "base/buf.h"

enum { HX_RECORD_HEADER_SIZE = 176 };

/* The bytes that encode will append. */
size_t hx_record_encoded_size(const struct hapax_record *record);

/* Append record to buf. HAPAX_ERR_LIMIT, HAPAX_ERR_NO_MEMORY: buf is as before. */
enum hapax_status hx_record_encode(const struct hapax_record *record, struct hapax_buf *buf);

/*
 * Read one record from the front of bytes; *ret_size is how many it took. What
 * *ret_record points at lies in bytes. HAPAX_ERR_CORRUPT with the offset of the
 * fault in the message; then nothing is written but *err.
 */
enum hapax_status hx_record_decode(
	struct hapax_bytes bytes, struct hapax_record *ret_record, size_t *ret_size,
	struct hapax_error *err);

#endif
