/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim_disk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "support/sim_disk_private.h"

struct sim_disk *sim_disk_new(uint64_t seed)
{
	struct sim_disk *disk = sim_allocate(1, sizeof(*disk));

	hx_mutex_init(&disk->mutex);
	disk->io = (struct hx_io){.ops = &sim_disk_ops, .context = disk};
	disk->room_pages = UINT64_MAX;
	disk->has_direct = true;
	disk->next_number = 2;
	hx_prng_seed(&disk->prng, seed);
	return disk;
}

void sim_disk_free(struct sim_disk *disk)
{
	if (!disk)
		return;
	for (size_t i = 0; i < disk->inode_count; i++)
		sim_inode_drop(&disk->inodes[i]);
	free(disk->inodes);
	sim_names_done(&disk->names);
	hx_mutex_done(&disk->mutex);
	free(disk);
}

const struct hx_io *sim_disk_io(struct sim_disk *disk)
{
	return &disk->io;
}

int sim_disk_add_inode(struct sim_disk *disk, enum hx_io_kind kind, mode_t mode)
{
	size_t at = 0;

	while (at < disk->inode_count && disk->inodes[at])
		at++;
	if (at == disk->inode_count) {
		disk->inodes = sim_resize(disk->inodes, at + 8, sizeof(*disk->inodes));
		memset(disk->inodes + at, 0, 8 * sizeof(*disk->inodes));
		disk->inode_count = at + 8;
	}
	disk->inodes[at] = sim_inode_new(kind, mode, disk->next_number++);
	return (int)at;
}

static bool is_open(const struct sim_disk *disk, int inode)
{
	for (size_t i = 0; i < disk->handle_count; i++)
		if (disk->handles[i].inode == inode)
			return true;
	return false;
}

void sim_disk_collect(struct sim_disk *disk)
{
	for (size_t i = 0; i < disk->inode_count; i++)
		if (disk->inodes[i] && !is_open(disk, (int)i) &&
		    !sim_names_need(&disk->names, (int)i))
			sim_inode_drop(&disk->inodes[i]);
}

struct sim_disk *sim_disk_clone(struct sim_disk *disk)
{
	struct sim_disk *clone;

	hx_mutex_lock(&disk->mutex);
	clone = sim_disk_new(hx_prng_next(&disk->prng));
	sim_names_copy(&clone->names, &disk->names);
	clone->inode_count = disk->inode_count;
	clone->inodes = sim_allocate(disk->inode_count, sizeof(*clone->inodes));
	for (size_t i = 0; i < disk->inode_count; i++)
		clone->inodes[i] = sim_inode_hold(disk->inodes[i]);
	clone->next_number = disk->next_number;
	clone->room_pages = disk->room_pages;
	clone->has_direct = disk->has_direct;
	hx_mutex_unlock(&disk->mutex);
	return clone;
}

/* A block from anywhere on the disk, as a drive may hand out a remapped one. */
static const struct sim_block *any_block(const struct sim_disk *disk, struct hx_prng *prng)
{
	for (int tries = 0; tries < 8; tries++) {
		size_t at = (size_t)hx_prng_below(prng, disk->inode_count);
		const struct sim_inode *inode = disk->inodes[at];
		size_t page;

		if (!inode || inode->page_count == 0)
			continue;
		page = (size_t)hx_prng_below(prng, inode->page_count);
		if (inode->pages[page].medium)
			return inode->pages[page].medium;
	}
	return NULL;
}

void sim_disk_kill(struct sim_disk *disk)
{
	hx_mutex_lock(&disk->mutex);
	for (size_t i = 0; i < disk->handle_count; i++)
		disk->handles[i] = (struct sim_handle){.inode = -1};
	disk->handle_count = 0;
	sim_disk_collect(disk);
	hx_mutex_unlock(&disk->mutex);
}

void sim_disk_crash(struct sim_disk *disk, const struct sim_fates *fates, struct hx_prng *prng)
{
	struct sim_block *stale;

	sim_disk_kill(disk);
	hx_mutex_lock(&disk->mutex);
	stale = disk->inode_count && fates->weights[SIM_FATE_STALE]
		? sim_block_hold((struct sim_block *)(uintptr_t)any_block(disk, prng))
		: NULL;
	for (size_t i = 0; i < disk->inode_count; i++)
		if (disk->inodes[i] && !sim_inode_is_settled(disk->inodes[i]))
			sim_inode_crash(sim_inode_own(&disk->inodes[i]), fates, stale, prng);
	sim_block_drop(&stale);
	sim_names_crash(&disk->names, fates, prng);
	sim_disk_collect(disk);
	disk->failure.left = 0;
	hx_mutex_unlock(&disk->mutex);
}

void sim_disk_observe(struct sim_disk *disk, sim_observer_fn *observer, void *context)
{
	hx_mutex_lock(&disk->mutex);
	disk->observer = observer;
	disk->observer_context = context;
	hx_mutex_unlock(&disk->mutex);
}

void sim_disk_fail_at(struct sim_disk *disk, unsigned calls, uint64_t nth, bool forever, int error)
{
	hx_mutex_lock(&disk->mutex);
	disk->failure = (struct sim_failure){
		.calls = calls, .left = nth, .forever = forever, .error = error};
	disk->struck = 0;
	hx_mutex_unlock(&disk->mutex);
}

uint64_t sim_disk_calls(const struct sim_disk *disk, unsigned calls)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < SIM_CALL_KINDS; i++)
		if (calls & 1u << i)
			count += disk->calls[i];
	return count;
}

uint64_t sim_disk_failures(const struct sim_disk *disk)
{
	return disk->struck;
}

void sim_disk_set_room(struct sim_disk *disk, uint64_t bytes)
{
	disk->room_pages = bytes == UINT64_MAX ? UINT64_MAX : bytes / SIM_PAGE_BYTES;
}

void sim_disk_set_direct(struct sim_disk *disk, bool has_direct)
{
	disk->has_direct = has_direct;
}
