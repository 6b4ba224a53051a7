/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_key.c - one or two keys of an event in a request.
 */
#include "processor/request_key.h"

#include "base/bytes.h"

void hx_request_key_set(
	struct hapax_request *request, const struct hapax_key *key,
	struct hapax_request_key keys[2])
{
	request->tenant = hx_bytes(key->tenant, key->tenant_size);
	request->group = hx_bytes(key->group, key->group_size);
	request->key = hx_bytes(key->key, key->key_size);
	if (key->has_fingerprint && !key->is_fingerprint)
		request->fingerprint = key->fingerprint;
	if (key->also_size == 0)
		return;
	keys[0] = (struct hapax_request_key){
		request->tenant, request->group, request->key, request->fingerprint};
	keys[1] = (struct hapax_request_key){
		request->tenant, request->group, hx_bytes(key->also, key->also_size),
		key->has_also_fingerprint ? key->also_fingerprint : NULL};
	request->keys = keys;
	request->key_count = 2;
}

enum hx_divergence hx_request_key_divergence(const struct hapax_answer *answer)
{
	if (answer->flags & HAPAX_ANSWER_SPLIT)
		return HX_DIVERGENCE_DIFFERENT;
	if (!(answer->flags & HAPAX_ANSWER_PARTLY))
		return HX_DIVERGENCE_NONE;
	return answer->key_index == 0 ? HX_DIVERGENCE_NEW_ONLY : HX_DIVERGENCE_OLD_ONLY;
}

const char *hx_divergence_name(enum hx_divergence divergence)
{
	switch (divergence) {
	case HX_DIVERGENCE_NONE:
	case HX_DIVERGENCE_COUNT: break;
	case HX_DIVERGENCE_NEW_ONLY: return "only the new key is known";
	case HX_DIVERGENCE_OLD_ONLY: return "only the old key is known";
	case HX_DIVERGENCE_DIFFERENT: return "the keys belong to different runs";
	}
	return "none";
}
