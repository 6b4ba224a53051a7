/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim_block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_end(void *memory)
{
	if (!memory) {
		fputs("# no memory for the simulated disk\n", stderr);
		abort();
	}
	return memory;
}

void *sim_allocate(size_t count, size_t size)
{
	return or_end(calloc(count ? count : 1, size));
}

void *sim_resize(void *memory, size_t count, size_t size)
{
	return or_end(reallocarray(memory, count ? count : 1, size));
}

struct sim_block *sim_block_hold(struct sim_block *block)
{
	if (block)
		atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
	return block;
}

void sim_block_drop(struct sim_block **slot)
{
	struct sim_block *block = *slot;

	*slot = NULL;
	if (block && atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) == 1)
		free(block);
}

unsigned char *sim_block_own(struct sim_block **slot)
{
	struct sim_block *old = *slot;
	struct sim_block *block;

	if (old && atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
		return old->data;
	block = or_end(malloc(sizeof(*block)));
	atomic_init(&block->refs, 1);
	memcpy(block->data, sim_block_data(old), SIM_PAGE_BYTES);
	sim_block_drop(slot);
	*slot = block;
	return block->data;
}

const unsigned char *sim_block_data(const struct sim_block *block)
{
	static const unsigned char zeros[SIM_PAGE_BYTES];

	return block ? block->data : zeros;
}
