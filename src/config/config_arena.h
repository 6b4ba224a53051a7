/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_arena.h - memory of one config, freed all at once.
 *
 * It is bounded, so a file cannot use unlimited memory.
 *
 * Threads: one at a time.
 */
#ifndef HX_CONFIG_CONFIG_ARENA_H
#define HX_CONFIG_CONFIG_ARENA_H

#include <stddef.h>

#include <hapax/bytes.h>

/* 1,000 routes with a page of settings each, and much to spare. */
enum { HX_CONFIG_ARENA_SIZE_MAX = 16 * 1024 * 1024 };

struct hx_config_arena_block;

/* A struct of zeros is an empty arena. */
struct hx_config_arena {
	struct hx_config_arena_block *blocks; /* the newest first */
	size_t used;                          /* of all blocks */
};

void hx_config_arena_done(struct hx_config_arena *arena);

/* Zeroed, aligned for anything. NULL: no memory, or the arena is full. */
__attribute__((warn_unused_result)) void *hx_config_arena_alloc(
	struct hx_config_arena *arena, size_t count, size_t size);

/* A copy with a NUL; NULL as above. */
__attribute__((warn_unused_result)) const char *hx_config_arena_text(
	struct hx_config_arena *arena, struct hapax_bytes text);

#endif
