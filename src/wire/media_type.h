/* SPDX-License-Identifier: Apache-2.0 */
/*
 * media_type.h - the parts of a Content-Type: type, suffix, charset; and whether Accept names JSON.
 *
 * Threads: any.
 */
#ifndef HX_MEDIA_TYPE_H
#define HX_MEDIA_TYPE_H

#include <stdbool.h>

#include <hapax/bytes.h>

/* The value up to its parameters: "application/json". */
struct hapax_bytes hx_media_type_essence(struct hapax_bytes value);

/* Does it begin like a media type: a name, a slash, a name? Parameters are not checked. */
bool hx_media_type_is_valid(struct hapax_bytes value);

/* "x/json" or "x/y+json", in either case. */
bool hx_media_type_is_json(struct hapax_bytes value);

/* The parameter charset, without quotes; size 0: there is none. */
struct hapax_bytes hx_media_type_charset(struct hapax_bytes value);

/* The weight of one element of Accept in thousandths; 1000 unless it says otherwise, 0: refused. */
unsigned hx_media_type_weight(struct hapax_bytes element);

/* Does the value of Accept name JSON? A wildcard does not. */
bool hx_media_type_accepts_json(struct hapax_bytes accept);

#endif
