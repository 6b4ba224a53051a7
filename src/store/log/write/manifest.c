/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.c - the content of the next MANIFEST, in memory.
 */
#include <assert.h>

#include "base/alloc.h"
#include "store/log/write/writer.h"

enum hapax_status hx_log_manifest_add(
	struct hx_log_manifest *manifest, const struct hx_log_manifest_item *item)
{
	if (manifest->count == HX_LOG_CLASS_SEGMENTS_MAX)
		return HAPAX_ERR_LIMIT;
	if (manifest->count == manifest->capacity) {
		uint32_t capacity = manifest->capacity != 0 ? manifest->capacity * 2 : 16;
		struct hx_log_manifest_item *items =
			hx_realloc(manifest->items, capacity * sizeof(*items));

		if (items == NULL)
			return HAPAX_ERR_NO_MEMORY;
		manifest->items = items;
		manifest->capacity = capacity;
	}
	assert(manifest->count < manifest->capacity);
	assert(item->kind != HX_LOG_KIND_LOG);
	manifest->items[manifest->count++] = *item;
	return HAPAX_OK;
}
