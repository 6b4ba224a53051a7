/* SPDX-License-Identifier: Apache-2.0 */
/*
 * media_type.h - what a Content-Type says: type, suffix, charset; and whether Accept names JSON.
 *
 * Threads: any.
 */
#ifndef HX_MEDIA_TYPE_H
#define HX_MEDIA_TYPE_H

#include <stdbool.h>

#include <hapax/bytes.h>

/* The value up to its parameters: "application/json". */
struct hapax_bytes hx_media_type_essence(struct hapax_bytes value);

/* Whether it begins as one: a name, a slash, a name. Parameters are not looked at. */
bool hx_media_type_is_valid(struct hapax_bytes value);

/* "x/json" or "x/y+json", in either case. */
bool hx_media_type_is_json(struct hapax_bytes value);

/* The parameter charset, without quotes; size 0: there is none. */
struct hapax_bytes hx_media_type_charset(struct hapax_bytes value);

/* Whether the value of Accept names JSON; a wildcard does not. */
bool hx_media_type_accepts_json(struct hapax_bytes accept);

#endif
