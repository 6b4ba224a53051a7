/* SPDX-License-Identifier: Apache-2.0 */
/*
 * date.h - times in events (RFC 3339) and in keys (%Y-%m-%d in UTC).
 *
 * Every conversion of a format has a fixed width, so that a date in a key can be separated from
 * the text around it.
 *
 * Threads: any.
 */
#ifndef HX_DATE_H
#define HX_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

/* Maximum size of a formatted date. */
enum { HX_DATE_TEXT_MAX = 128 };

/*
 * Is format valid? It may have text and %Y %m %d %H %M %S %j %F %T %G %V %u %%, with a result of at
 * most HX_DATE_TEXT_MAX bytes.
 */
enum hapax_status hx_date_check(struct hapax_bytes format, struct hapax_error *err);

/* Format ms by a checked format. Returns the size; 0: the year is not within 1 to 9999. */
size_t hx_date_format(struct hapax_bytes format, int64_t ms, char out[HX_DATE_TEXT_MAX]);

/* Read RFC 3339, with any fraction and any offset. */
bool hx_date_parse(struct hapax_bytes text, int64_t *ret_ms);

#endif
