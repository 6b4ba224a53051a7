/* SPDX-License-Identifier: Apache-2.0 */
/*
 * percent.h - parts of a URL: percent-encoding (RFC 3986, 2.1), the members of a query.
 *
 * Threads: any.
 */
#ifndef HX_PERCENT_H
#define HX_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

struct hapax_buf;

/*
 * Decode text to out, which has room for text.size bytes and may be the text itself. *ret is the
 * number of bytes. False: *ret is the offset of a percent sign without two digits.
 */
bool hx_percent_decode(struct hapax_bytes text, unsigned char *out, size_t *ret);

/*
 * The same, with a NUL at the end. False: a percent sign without two digits, a NUL inside, or it
 * does not fit.
 */
bool hx_percent_decode_text(const char *text, size_t size, char *out, size_t out_size);

/* Append bytes; all except letters, digits and -._~ are encoded. */
enum hapax_status hx_percent_encode(struct hapax_buf *out, struct hapax_bytes bytes);

/*
 * The normal form of a path (RFC 3986, 6.2.2): only characters that need it are encoded, with
 * upper-case digits. A percent sign without two digits stays unchanged. out has room for path.size
 * bytes, or is the path itself. Returns the number of bytes.
 */
size_t hx_percent_normalize(struct hapax_bytes path, char *out);

/* Take the next NAME=VALUE from a query, not decoded. False: none is left. */
bool hx_percent_query_next(
	struct hapax_bytes *query, struct hapax_bytes *ret_name, struct hapax_bytes *ret_value);

#endif
