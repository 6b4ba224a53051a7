/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflight.h - the keys in a frame that is not durable yet.
 *
 * A filter by hash: an unmarked key is durable; a mark may belong to a different key. The writer
 * marks a key before the index shows the change, and clears all marks when the frame is durable.
 * A reader asks after it has read: if it saw the change, it sees the mark, or the frame became
 * durable meanwhile.
 *
 * Threads: one writer, any readers.
 */
#ifndef HX_STORE_LOG_WRITE_INFLIGHT_H
#define HX_STORE_LOG_WRITE_INFLIGHT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HX_LOG_INFLIGHT_WORDS = 1024 };

struct hx_log_inflight {
	_Atomic uint64_t words[HX_LOG_INFLIGHT_WORDS];
	uint16_t used[HX_LOG_INFLIGHT_WORDS]; /* numbers of words that are not zero */
	uint32_t used_count;
};

static inline uint32_t hx_log_inflight_word(uint64_t hash)
{
	return (uint32_t)(hash >> 32) % HX_LOG_INFLIGHT_WORDS;
}

static inline uint64_t hx_log_inflight_bit(uint64_t hash)
{
	return UINT64_C(1) << (hash >> 42 & 63);
}

static inline void hx_log_inflight_mark(struct hx_log_inflight *inflight, uint64_t hash)
{
	uint32_t number = hx_log_inflight_word(hash);
	uint64_t word = atomic_load_explicit(&inflight->words[number], memory_order_relaxed);

	/* A word is noted once, when it gets its first bit. */
	assert(word != 0 || inflight->used_count < HX_LOG_INFLIGHT_WORDS);
	assert(word == 0 || inflight->used_count != 0);
	if (word == 0)
		inflight->used[inflight->used_count++] = (uint16_t)number;
	atomic_store_explicit(
		&inflight->words[number], word | hx_log_inflight_bit(hash), memory_order_release);
}

static inline void hx_log_inflight_clear(struct hx_log_inflight *inflight)
{
	assert(inflight->used_count <= HX_LOG_INFLIGHT_WORDS);
	for (uint32_t i = 0; i < inflight->used_count; i++)
		atomic_store_explicit(&inflight->words[inflight->used[i]], 0, memory_order_release);
	inflight->used_count = 0;
}

static inline bool hx_log_inflight_is_marked(struct hx_log_inflight *inflight, uint64_t hash)
{
	uint64_t word = atomic_load_explicit(
		&inflight->words[hx_log_inflight_word(hash)], memory_order_acquire);

	return (word & hx_log_inflight_bit(hash)) != 0;
}

#endif
