/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_inode.h - a file of a simulated disk: what programs see of it, what lies on
 * the medium, and what is on its way from one to the other.
 *
 * Each page has two contents. The cache is what a buffered read gives. The medium is
 * what a power cut leaves. A write changes the cache and is noted as a change, in
 * order; a sync carries all changes to the medium. A sync that fails drops them, as
 * Linux does: some sectors have arrived, the rest never will, the pages count as
 * clean and the cache still shows them. These are ghosts: a direct read does not see
 * them, a reboot ends them.
 *
 * Inodes are shared by images of a disk; a writer must hold one alone
 * (sim_inode_own()).
 */
#ifndef TEST_SUPPORT_SIM_INODE_H
#define TEST_SUPPORT_SIM_INODE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/io.h"
#include "base/random.h"
#include "support/sim_block.h"

struct sim_fates;

struct sim_page {
	struct sim_block *cache;
	struct sim_block *medium;
	bool is_allocated; /* takes room on the disk */
};

/* One page of a write, or a new size, that a crash may lose. */
struct sim_change {
	struct sim_block *block; /* the page as it became */
	uint32_t page;           /* SIM_NO_PAGE: the size only */
	uint8_t sectors;         /* bit n: this write touched sector n */
	uint64_t size_after;
};

#define SIM_NO_PAGE UINT32_MAX

struct sim_inode {
	_Atomic uint32_t refs;
	enum hx_io_kind kind;
	mode_t mode;
	uint64_t number;
	uint64_t size;
	uint64_t medium_size;
	size_t page_count;
	struct sim_page *pages;
	size_t change_count;
	size_t change_room;
	struct sim_change *changes;
	bool has_ghosts;
};

struct sim_inode *sim_inode_new(enum hx_io_kind kind, mode_t mode, uint64_t number);
struct sim_inode *sim_inode_hold(struct sim_inode *inode);
void sim_inode_drop(struct sim_inode **slot);

/* Make *slot an inode that no other slot holds. */
struct sim_inode *sim_inode_own(struct sim_inode **slot);

/* How many pages a write or reservation there would take that are not taken yet. */
uint64_t sim_inode_pages_needed(const struct sim_inode *inode, uint64_t offset, uint64_t size);
uint64_t sim_inode_pages_allocated(const struct sim_inode *inode);

/* At most size bytes, fewer at the end of the file. direct: past the cache. */
size_t sim_inode_read(
	const struct sim_inode *inode, void *data, size_t size, uint64_t offset, bool direct);

/* The inode must be owned. */
void sim_inode_write(
	struct sim_inode *inode, const void *data, size_t size, uint64_t offset, bool direct);
void sim_inode_reserve(struct sim_inode *inode, uint64_t offset, uint64_t size);
void sim_inode_truncate(struct sim_inode *inode, uint64_t size);

/* Everything arrives. */
void sim_inode_sync(struct sim_inode *inode);

/* Some sectors arrive, the rest never will; they stay visible in the cache. */
void sim_inode_sync_failed(struct sim_inode *inode, struct hx_prng *prng);

/* Would a crash change anything? Then the inode must be owned for sim_inode_crash(). */
bool sim_inode_is_settled(const struct sim_inode *inode);

/*
 * The power goes: each sector on its way meets its fate, the cache is gone. stale is
 * a block that lies elsewhere on the disk, or NULL.
 */
void sim_inode_crash(
	struct sim_inode *inode, const struct sim_fates *fates, const struct sim_block *stale,
	struct hx_prng *prng);

#endif
