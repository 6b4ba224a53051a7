/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.h - parts of a key as text, joined so that they can be split again.
 *
 * Invariants:
 *  (1) Different lists of parts have different texts: separators and percent signs within a part
 *      are escaped, and a percent sign always begins an escape.
 *  (2) A text of the form sha256: or content: and 64 digits always comes from a digest.
 *
 * Threads: one at a time for a view.
 */
#ifndef HX_KEY_PART_H
#define HX_KEY_PART_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/key.h>

#include "key/key.h"

/*
 * The unescaped text of the part at path, in the scratch of view until its next use. MISSING: also
 * a number out of range; the message names path.
 */
enum hx_key_made hx_part_text(
	struct hx_key_view *view, const struct hx_key_path *path, struct hapax_bytes *ret,
	struct hapax_error *err);

/* The maximum size of a part's text. */
size_t hx_part_text_max(const struct hx_key_part *part);

/* Write the text of a part to a buffer of hx_part_text_max() bytes. NULL: it has no text. */
unsigned char *hx_part_write(const struct hx_key_part *part, unsigned char *to);

/* Escaping makes it at most this many times as long. */
enum { HX_PART_ESCAPE_FACTOR = 3 };

/* Escape percent signs, controls, invalid UTF-8 and separator. */
unsigned char *hx_part_escape(struct hapax_bytes text, unsigned char separator, unsigned char *to);

/* Make the key from the only part of strategy, unchanged. MISSING also if it is empty. */
hx_key_make_fn hx_part_single;

/*
 * Make the key from the parts of strategy (hapax/key.h, HAPAX_KEY_SEPARATOR). MISSING also if one is
 * empty, unless its type has HX_KEY_TYPE_EMPTY.
 */
hx_key_make_fn hx_part_join;

/*
 * Use text as the key. If it is too long, holds controls, is not UTF-8 or looks like a digest, use
 * its SHA-256.
 */
void hx_key_set_text(struct hapax_key *ret, struct hapax_bytes text);

/* Does a key have the form that invariant (2) reserves for digests? */
bool hx_key_is_digest(struct hapax_bytes key);

/* Write prefix and the digest in hexadecimal. */
void hx_key_set_digest(
	struct hapax_key *ret, const char *prefix,
	const unsigned char digest[HAPAX_FINGERPRINT_SIZE]);

#endif
