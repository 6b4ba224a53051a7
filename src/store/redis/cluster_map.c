/* SPDX-License-Identifier: Apache-2.0 */
#include "store/redis/cluster_map.h"

#include <stddef.h>

#include "wire/resp/resp_reply.h"

bool hx_redis_map_begin(struct hapax_bytes *rest, int64_t *ret_count)
{
	struct hx_resp_value value;

	if (!hx_resp_next(rest, &value) || value.type != HX_RESP_ARRAY)
		return false;
	*ret_count = value.integer;
	return true;
}

/* A range: first, last, master, replicas. A server: host, port, and more. */
bool hx_redis_map_next(struct hapax_bytes *rest, struct hx_redis_range *ret_range)
{
	struct hx_redis_range range = {.host = {NULL, 0}};
	struct hx_resp_value value;
	int64_t size;
	int64_t master_size;

	if (!hx_resp_next(rest, &value) || value.type != HX_RESP_ARRAY || value.integer < 3)
		return false;
	size = value.integer;
	if (!hx_resp_next_integer(rest, &range.first) || !hx_resp_next_integer(rest, &range.last) ||
	    !hx_resp_next(rest, &value) || value.type != HX_RESP_ARRAY || value.integer < 2)
		return false;
	master_size = value.integer;
	if (!hx_resp_next(rest, &value))
		return false;
	if (value.type != HX_RESP_NULL && !hx_resp_text(&value, &range.host))
		return false;
	if (!hx_resp_next_integer(rest, &range.port))
		return false;
	for (int64_t i = 2; i < master_size + (size - 3); i++) {
		if (!hx_resp_next(rest, &value))
			return false;
		hx_resp_skip(rest, &value);
	}
	*ret_range = range;
	return true;
}
