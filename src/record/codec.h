/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - a record as bytes, for files and for the wire between nodes.
 *
 * Little-endian, fixed offsets, then the variable parts in a fixed order; codec.c shows the
 * layout. A decoder reads the records of every earlier version.
 */
#ifndef HX_RECORD_CODEC_H
#define HX_RECORD_CODEC_H

#include <hapax/error.h>
#include <hapax/record.h>

#include "base/buf.h"

enum { HX_RECORD_HEADER_SIZE = 176 };

/* The number of bytes that encode will append. */
size_t hx_record_encoded_size(const struct hapax_record *record);

/* Append record to buf. HAPAX_ERR_LIMIT, HAPAX_ERR_NO_MEMORY: buf is unchanged. */
enum hapax_status hx_record_encode(const struct hapax_record *record, struct hapax_buf *buf);

/*
 * Read one record from the front of bytes; *ret_size is its size. *ret_record points into bytes.
 * HAPAX_ERR_CORRUPT: the message has the offset of the fault, and only *err is written.
 */
enum hapax_status hx_record_decode(
	struct hapax_bytes bytes, struct hapax_record *ret_record, size_t *ret_size,
	struct hapax_error *err);

#endif
