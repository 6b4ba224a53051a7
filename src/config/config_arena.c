/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_arena.c - memory that is freed all at once.
 */
#include "config/config_arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"

enum { BLOCK_SIZE = 16 * 1024 };

struct hx_config_arena_block {
	struct hx_config_arena_block *next;
	size_t size;
	size_t used;
	alignas(max_align_t) unsigned char data[];
};

void hx_config_arena_done(struct hx_config_arena *arena)
{
	struct hx_config_arena_block *block = arena->blocks;

	while (block != NULL) {
		struct hx_config_arena_block *next = block->next;

		hx_free(block);
		block = next;
	}
	*arena = (struct hx_config_arena){0};
}

static struct hx_config_arena_block *add_block(struct hx_config_arena *arena, size_t size)
{
	size_t wanted = size > BLOCK_SIZE ? size : BLOCK_SIZE;
	struct hx_config_arena_block *block;

	if (wanted > HX_CONFIG_ARENA_SIZE_MAX - arena->used)
		return NULL;
	block = hx_alloc_zero(1, sizeof(*block) + wanted);
	if (block == NULL)
		return NULL;
	block->next = arena->blocks;
	block->size = wanted;
	arena->blocks = block;
	arena->used += wanted;
	return block;
}

void *hx_config_arena_alloc(struct hx_config_arena *arena, size_t count, size_t size)
{
	struct hx_config_arena_block *block = arena->blocks;
	size_t bytes;
	void *result;

	if (hx_mul_size(count, size, &bytes) || bytes > HX_CONFIG_ARENA_SIZE_MAX)
		return NULL;
	bytes = (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
	if (block == NULL || bytes > block->size - block->used)
		block = add_block(arena, bytes);
	if (block == NULL)
		return NULL;
	result = block->data + block->used;
	block->used += bytes;
	return result;
}

const char *hx_config_arena_text(struct hx_config_arena *arena, struct hapax_bytes text)
{
	char *copy = hx_config_arena_alloc(arena, text.size + 1, 1);

	if (copy != NULL && text.size > 0)
		memcpy(copy, text.data, text.size);
	return copy;
}
