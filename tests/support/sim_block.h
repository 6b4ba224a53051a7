/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_block.h - 4 KiB of a simulated disk, shared until the first write.
 *
 * NULL is a block of zeros. Images of a disk share what did not change, which is
 * nearly all of it: a million of them cost no more than their differences.
 *
 * Memory is malloc()'s, not the seam's: a test that fails the n-th allocation of the
 * library must not hit the disk under it.
 *
 * Threads: any may hold and drop; sim_block_own() by the owner of the slot.
 */
#ifndef TEST_SUPPORT_SIM_BLOCK_H
#define TEST_SUPPORT_SIM_BLOCK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIM_SECTOR_BYTES = 512,
	SIM_PAGE_BYTES = 4096,
	SIM_PAGE_SECTORS = SIM_PAGE_BYTES / SIM_SECTOR_BYTES,
};

struct sim_block {
	_Atomic uint32_t refs;
	unsigned char data[SIM_PAGE_BYTES];
};

/* Another reference to it. */
struct sim_block *sim_block_hold(struct sim_block *block);

/* Give a reference back and forget it. */
void sim_block_drop(struct sim_block **slot);

/* Make *slot a block that no other slot holds, with the content it had, to be written. */
unsigned char *sim_block_own(struct sim_block **slot);

/* Its bytes; those of zeros for NULL. */
const unsigned char *sim_block_data(const struct sim_block *block);

/* malloc() and related functions that end the program when there is no memory. */
void *sim_allocate(size_t count, size_t size);
void *sim_resize(void *memory, size_t count, size_t size);

#endif
