/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.h - the digest of what a strategy includes and does not exclude.
 *
 * Threads: one at a time for a view.
 */
#ifndef HX_KEY_CONTENT_H
#define HX_KEY_CONTENT_H

#include <hapax/key.h>

#include "key/key.h"

/*
 * What is hashed: the canonical text of the selected data, or the bytes of data that
 * is not meant to be JSON. In scratch or in the event; valid until scratch is next
 * used. MISSING: an included path was not there, there is no data, or what is selected
 * of it has no value in it although the data has.
 */
enum hx_key_made hx_content_text(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view,
	struct hapax_bytes *ret, struct hapax_error *err);

/*
 * Make the key prefix and 64 digits. Notes in ret when the digest is the fingerprint
 * as well.
 */
enum hx_key_made hx_content_make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, const char *prefix,
	struct hapax_key *ret, struct hapax_error *err);

/*
 * The fingerprint of the data without what the strategy excludes: that does not
 * matter, and must not turn a redelivery into a mismatch.
 */
enum hx_key_made hx_content_fingerprint(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view,
	unsigned char out[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err);

/*
 * For policy content. What is included need not be there: without it, all that is not
 * excluded is hashed; and data that has no canonical form as it came. MISSING: there
 * is no data, or nothing left of it.
 */
enum hx_key_made hx_content_make_any(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, const char *prefix,
	struct hapax_key *ret, struct hapax_error *err);

#endif
