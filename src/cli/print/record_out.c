/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_out.c - print a record.
 */
#include "cli/print/record_out.h"

#include <string.h>

#include "base/bytes.h"

/* Only a damaged store can return a longer part; it is cut. */
static size_t append_part(char *out, struct hapax_bytes part)
{
	size_t size = part.size < HX_SCOPE_PART_SIZE_MAX ? part.size : HX_SCOPE_PART_SIZE_MAX;

	if (size > 0)
		memcpy(out, part.data, size);
	return size;
}

struct hapax_bytes hx_record_out_scope(
	struct hapax_bytes tenant, struct hapax_bytes group, char out[HX_SCOPE_SIZE_MAX])
{
	size_t size = append_part(out, tenant);

	out[size++] = '/';
	size += append_part(out + size, group);
	return hx_bytes(out, size);
}

void hx_record_out_name(
	struct hx_json_write *json, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key)
{
	char scope[HX_SCOPE_SIZE_MAX];

	hx_json_write_any(json, "key", key);
	hx_json_write_any(json, "scope", hx_record_out_scope(tenant, group, scope));
}

enum hx_color hx_record_out_color(enum hapax_state state)
{
	switch (state) {
	case HAPAX_STATE_ABSENT: return HX_COLOR_NONE;
	case HAPAX_STATE_CLAIMED: return HX_COLOR_BLUE;
	case HAPAX_STATE_DONE: return HX_COLOR_GREEN;
	case HAPAX_STATE_FAILED: return HX_COLOR_RED;
	case HAPAX_STATE_PARKED: return HX_COLOR_YELLOW;
	}
	return HX_COLOR_NONE;
}
