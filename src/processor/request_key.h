/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_key.h - the keys of an event in a request: one, or two while its strategy changes.
 *
 * Threads: any.
 */
#ifndef HX_PROCESSOR_REQUEST_KEY_H
#define HX_PROCESSOR_REQUEST_KEY_H

#include <hapax/processor.h>

/*
 * Let request name the key, and hapax_key.also if there is one; keys is memory for both. All three
 * are used until the request has begun.
 */
void hx_request_key_set(
	struct hapax_request *request, const struct hapax_key *key,
	struct hapax_request_key keys[2]);

/* How two keys of one event disagree, for a request by hx_request_key_set(). */
enum hx_divergence {
	HX_DIVERGENCE_NONE,
	HX_DIVERGENCE_NEW_ONLY,  /* only the key by the new strategy is known */
	HX_DIVERGENCE_OLD_ONLY,  /* only the key by the old strategy is known */
	HX_DIVERGENCE_DIFFERENT, /* both are known, from different runs */
	HX_DIVERGENCE_COUNT,
};
enum hx_divergence hx_request_key_divergence(const struct hapax_answer *answer);

/* For people. Never NULL. */
const char *hx_divergence_name(enum hx_divergence divergence);

#endif
