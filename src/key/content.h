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
 * The text to hash: the canonical text of the selected data, or the bytes of data that is not meant
 * to be JSON. It lies in scratch or in the event; valid until scratch is next used. MISSING: an
 * included path or the data is absent, or the selection has no value although the data has.
 */
enum hx_key_made hx_content_text(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view,
	struct hapax_bytes *ret, struct hapax_error *err);

/* Make the key: prefix and 64 digits. Notes in ret if the digest is also the fingerprint. */
enum hx_key_made hx_content_make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, const char *prefix,
	struct hapax_key *ret, struct hapax_error *err);

/*
 * The fingerprint of the data without excluded paths: a change there must not turn a redelivery
 * into a mismatch.
 */
enum hx_key_made hx_content_fingerprint(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view,
	unsigned char out[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err);

/*
 * For policy content. Included paths may be absent: then everything not excluded is hashed. Data
 * without a canonical form is hashed as received. MISSING: there is no data, or none is left.
 */
enum hx_key_made hx_content_make_any(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, const char *prefix,
	struct hapax_key *ret, struct hapax_error *err);

#endif
