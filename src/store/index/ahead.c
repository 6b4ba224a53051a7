/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c - memory made ready before it is needed.
 */
#include "store/index/ahead.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "store/index/index.h"

/* Under the lock memory becomes usable, which is quick; it is touched without the lock. */
static void prepare(struct hx_shard *shard)
{
	struct hx_ahead_pages pages[3];
	size_t count = 0;

	hx_lock_acquire(&shard->lock);
	count += hx_arena_commit_ahead(&shard->arena, &pages[count]);
	count += hx_table_commit_ahead(&shard->table, &pages[count]);
	hx_table_assert(&shard->table);
	hx_arena_assert(&shard->arena);
	hx_lock_release(&shard->lock);
	assert(count <= HX_COUNT(pages));
	for (size_t i = 0; i < count; i++)
		hx_alloc_pages_populate(pages[i].at, pages[i].bytes);
}

static void ahead_run(void *arg)
{
	struct hx_index *index = arg;
	struct hx_ahead *ahead = &index->ahead;
	uint32_t seen = 0;

	for (;;) {
		hx_ratchet_wait(&ahead->asked, seen + 1);
		if (atomic_load(&ahead->stops))
			return;
		assert(hx_ratchet_value(&ahead->asked) != seen);
		seen = hx_ratchet_value(&ahead->asked);
		for (uint32_t i = 0; i < index->shard_count; i++)
			prepare(&index->shards[i]);
	}
}

enum hapax_status hx_ahead_start(struct hx_index *index, struct hapax_error *err)
{
	struct hx_ahead *ahead = &index->ahead;
	enum hapax_status status;

	assert(!ahead->runs);
	hx_ratchet_init(&ahead->asked, 0);
	atomic_init(&ahead->stops, false);
	status = hx_thread_start(&ahead->thread, ahead_run, index, "hapax-ahead", err);
	if (status != HAPAX_OK)
		return status;
	ahead->runs = true;
	for (uint32_t i = 0; i < index->shard_count; i++) {
		struct hx_shard *shard = &index->shards[i];

		hx_lock_acquire(&shard->lock);
		assert(shard->arena.ahead == NULL);
		shard->arena.ahead = ahead;
		hx_lock_release(&shard->lock);
	}
	return HAPAX_OK;
}

void hx_ahead_stop(struct hx_index *index)
{
	struct hx_ahead *ahead = &index->ahead;

	if (!ahead->runs)
		return;
	assert(!atomic_load(&ahead->stops));
	atomic_store(&ahead->stops, true);
	hx_ahead_ask(ahead);
	hx_thread_join(&ahead->thread);
	ahead->runs = false;
}
