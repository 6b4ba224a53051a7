/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_names.c - the scopes that a segment has named so far.
 */
#include "store/log/format/scope_names.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"

enum { TEXT_SIZE_MAX = 1 << 30 };

void hx_log_scope_names_init(struct hx_log_scope_names *names)
{
	memset(names, 0, sizeof(*names));
	hx_buf_init(&names->text, TEXT_SIZE_MAX);
}

/* Slots and text belong together; the text holds the names of every set slot. */
static void names_assert(const struct hx_log_scope_names *names)
{
	assert((names->count == 0) == (names->slots == NULL));
	assert(names->count <= HX_SCOPES_MAX);
	/* Doubled from 16. */
	assert((names->count & (names->count - 1)) == 0);
	assert(names->text.size <= TEXT_SIZE_MAX);
}

void hx_log_scope_names_done(struct hx_log_scope_names *names)
{
	hx_free(names->slots);
	hx_buf_done(&names->text);
	memset(names, 0, sizeof(*names));
}

void hx_log_scope_names_clear(struct hx_log_scope_names *names)
{
	names_assert(names);
	if (names->count != 0)
		memset(names->slots, 0, names->count * sizeof(names->slots[0]));
	hx_buf_clear(&names->text);
	names->is_rebound = false;
}

static bool grow(struct hx_log_scope_names *names, uint32_t number)
{
	uint32_t count = names->count != 0 ? names->count : 16;
	struct hx_log_scope_slot *slots;

	if (number < names->count)
		return true;
	if (number >= HX_SCOPES_MAX)
		return false;
	while (count <= number)
		count *= 2;
	slots = hx_realloc(names->slots, count * sizeof(*slots));
	if (slots == NULL)
		return false;
	memset(slots + names->count, 0, (count - names->count) * sizeof(*slots));
	assert(count > number);
	assert(count > names->count);
	names->slots = slots;
	names->count = count;
	return true;
}

bool hx_log_scope_names_put(
	struct hx_log_scope_names *names, uint32_t number, struct hapax_bytes tenant,
	struct hapax_bytes group)
{
	size_t offset = names->text.size;
	const struct hx_log_walk_scope *before = hx_log_scope_names_get(names, number);
	struct hx_log_scope_slot *slot;

	names_assert(names);
	if (before != NULL &&
	    (!hx_bytes_equal(before->tenant, tenant) || !hx_bytes_equal(before->group, group)))
		names->is_rebound = true;
	if (!grow(names, number) ||
	    hx_buf_reserve(&names->text, tenant.size + group.size) != HAPAX_OK)
		return false;
	(void)hx_buf_append(&names->text, tenant.data, tenant.size);
	(void)hx_buf_append(&names->text, group.data, group.size);
	assert(number < names->count);
	assert(names->text.size == offset + tenant.size + group.size);
	slot = &names->slots[number];
	memset(slot, 0, sizeof(*slot));
	slot->is_set = true;
	slot->offset = offset;
	slot->scope.tenant.size = tenant.size;
	slot->scope.group.size = group.size;
	names_assert(names);
	return true;
}

struct hx_log_walk_scope *hx_log_scope_names_get(struct hx_log_scope_names *names, uint32_t number)
{
	struct hx_log_scope_slot *slot;

	if (number >= names->count || !names->slots[number].is_set)
		return NULL;
	slot = &names->slots[number];
	assert(slot->offset <= names->text.size);
	assert(slot->scope.tenant.size + slot->scope.group.size <= names->text.size - slot->offset);
	/* The text may have moved since it was put. */
	slot->scope.tenant.data = names->text.data + slot->offset;
	slot->scope.group.data = names->text.data + slot->offset + slot->scope.tenant.size;
	return &slot->scope;
}

bool hx_log_scope_names_fit(const struct hx_log_scope_names *names)
{
	for (uint32_t number = 0; number < names->count; number++) {
		const struct hx_log_scope_slot *slot = &names->slots[number];

		if (slot->is_set &&
		    (!slot->scope.has_visitor_id || slot->scope.visitor_id != number))
			return false;
	}
	return !names->is_rebound;
}
