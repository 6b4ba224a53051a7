/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim_inode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "support/sim_fates.h"

struct sim_inode *sim_inode_new(enum hx_io_kind kind, mode_t mode, uint64_t number)
{
	struct sim_inode *inode = sim_allocate(1, sizeof(*inode));

	atomic_init(&inode->refs, 1);
	inode->kind = kind;
	inode->mode = mode;
	inode->number = number;
	return inode;
}

struct sim_inode *sim_inode_hold(struct sim_inode *inode)
{
	if (inode)
		atomic_fetch_add_explicit(&inode->refs, 1, memory_order_relaxed);
	return inode;
}

static void drop_changes(struct sim_inode *inode)
{
	for (size_t i = 0; i < inode->change_count; i++)
		sim_block_drop(&inode->changes[i].block);
	inode->change_count = 0;
}

static void drop_pages(struct sim_inode *inode, size_t first)
{
	for (size_t i = first; i < inode->page_count; i++) {
		sim_block_drop(&inode->pages[i].cache);
		sim_block_drop(&inode->pages[i].medium);
		inode->pages[i].is_allocated = false;
	}
}

void sim_inode_drop(struct sim_inode **slot)
{
	struct sim_inode *inode = *slot;

	*slot = NULL;
	if (!inode || atomic_fetch_sub_explicit(&inode->refs, 1, memory_order_acq_rel) != 1)
		return;
	drop_changes(inode);
	drop_pages(inode, 0);
	free(inode->changes);
	free(inode->pages);
	free(inode);
}

struct sim_inode *sim_inode_own(struct sim_inode **slot)
{
	struct sim_inode *old = *slot;
	struct sim_inode *inode;

	if (atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
		return old;
	inode = sim_inode_new(old->kind, old->mode, old->number);
	inode->size = old->size;
	inode->medium_size = old->medium_size;
	inode->has_ghosts = old->has_ghosts;
	inode->page_count = old->page_count;
	inode->pages = sim_allocate(old->page_count, sizeof(*inode->pages));
	for (size_t i = 0; i < old->page_count; i++) {
		inode->pages[i].cache = sim_block_hold(old->pages[i].cache);
		inode->pages[i].medium = sim_block_hold(old->pages[i].medium);
		inode->pages[i].is_allocated = old->pages[i].is_allocated;
	}
	inode->change_count = inode->change_room = old->change_count;
	inode->changes = sim_allocate(old->change_count, sizeof(*inode->changes));
	for (size_t i = 0; i < old->change_count; i++) {
		inode->changes[i] = old->changes[i];
		(void)sim_block_hold(inode->changes[i].block);
	}
	sim_inode_drop(slot);
	*slot = inode;
	return inode;
}

static size_t pages_of(uint64_t bytes)
{
	return (size_t)((bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES);
}

uint64_t sim_inode_pages_allocated(const struct sim_inode *inode)
{
	uint64_t count = 0;

	for (size_t i = 0; i < inode->page_count; i++)
		count += inode->pages[i].is_allocated;
	return count;
}

uint64_t sim_inode_pages_needed(const struct sim_inode *inode, uint64_t offset, uint64_t size)
{
	uint64_t count = 0;

	for (size_t i = (size_t)(offset / SIM_PAGE_BYTES); i < pages_of(offset + size); i++)
		count += i >= inode->page_count || !inode->pages[i].is_allocated;
	return count;
}

static void grow(struct sim_inode *inode, size_t page_count)
{
	if (page_count <= inode->page_count)
		return;
	inode->pages = sim_resize(inode->pages, page_count, sizeof(*inode->pages));
	memset(inode->pages + inode->page_count, 0,
	       (page_count - inode->page_count) * sizeof(*inode->pages));
	inode->page_count = page_count;
}

static void note_change(
	struct sim_inode *inode, uint32_t page, uint8_t sectors, const struct sim_block *block)
{
	if (inode->change_count == inode->change_room) {
		inode->change_room = inode->change_room ? inode->change_room * 2 : 8;
		inode->changes =
			sim_resize(inode->changes, inode->change_room, sizeof(*inode->changes));
	}
	inode->changes[inode->change_count++] = (struct sim_change){
		.block = sim_block_hold((struct sim_block *)(uintptr_t)block),
		.page = page,
		.sectors = sectors,
		.size_after = inode->size,
	};
}

static void copy_sectors(unsigned char *target, const unsigned char *source, uint8_t sectors)
{
	for (int i = 0; i < SIM_PAGE_SECTORS; i++)
		if (sectors & 1u << i)
			memcpy(target + i * SIM_SECTOR_BYTES, source + i * SIM_SECTOR_BYTES,
			       SIM_SECTOR_BYTES);
}

/* The page as the device would give it: ghosts are not there, what is on its way is. */
static void read_past_cache(
	const struct sim_inode *inode, size_t page, unsigned char out[SIM_PAGE_BYTES])
{
	memcpy(out, sim_block_data(inode->pages[page].medium), SIM_PAGE_BYTES);
	for (size_t i = 0; i < inode->change_count; i++)
		if (inode->changes[i].page == page)
			copy_sectors(
				out, sim_block_data(inode->changes[i].block),
				inode->changes[i].sectors);
}

size_t sim_inode_read(
	const struct sim_inode *inode, void *data, size_t size, uint64_t offset, bool direct)
{
	unsigned char *target = data;
	unsigned char past_cache[SIM_PAGE_BYTES];
	size_t done = 0;

	if (offset >= inode->size)
		return 0;
	if (size > inode->size - offset)
		size = (size_t)(inode->size - offset);
	while (done < size) {
		size_t page = (size_t)((offset + done) / SIM_PAGE_BYTES);
		size_t at = (size_t)((offset + done) % SIM_PAGE_BYTES);
		size_t part = SIM_PAGE_BYTES - at < size - done ? SIM_PAGE_BYTES - at : size - done;
		const unsigned char *source = sim_block_data(NULL);

		if (page < inode->page_count) {
			source = sim_block_data(inode->pages[page].cache);
			if (direct && inode->has_ghosts) {
				read_past_cache(inode, page, past_cache);
				source = past_cache;
			}
		}
		memcpy(target + done, source + at, part);
		done += part;
	}
	return done;
}

static uint8_t sectors_touched(size_t at, size_t size)
{
	uint8_t sectors = 0;

	for (size_t i = at / SIM_SECTOR_BYTES; i <= (at + size - 1) / SIM_SECTOR_BYTES; i++)
		sectors |= (uint8_t)(1u << i);
	return sectors;
}

static bool is_zero(const unsigned char *data, size_t size)
{
	return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

/* A page of zeros is NULL: stores fill whole files with them. */
static void write_page(struct sim_page *page, const unsigned char *data, size_t size, size_t at)
{
	if (is_zero(data, size) && (size == SIM_PAGE_BYTES || !page->cache))
		sim_block_drop(&page->cache);
	else
		memcpy(sim_block_own(&page->cache) + at, data, size);
	page->is_allocated = true;
}

void sim_inode_write(
	struct sim_inode *inode, const void *data, size_t size, uint64_t offset, bool direct)
{
	const unsigned char *source = data;
	size_t done = 0;

	if (size == 0)
		return;
	grow(inode, pages_of(offset + size));
	if (offset + size > inode->size)
		inode->size = offset + size;
	while (done < size) {
		size_t at = (size_t)((offset + done) % SIM_PAGE_BYTES);
		size_t part = SIM_PAGE_BYTES - at < size - done ? SIM_PAGE_BYTES - at : size - done;
		uint32_t number = (uint32_t)((offset + done) / SIM_PAGE_BYTES);
		struct sim_page *page = &inode->pages[number];

		/* A direct write throws the cached page away, ghosts and all. */
		if (direct && inode->has_ghosts) {
			unsigned char past_cache[SIM_PAGE_BYTES];

			read_past_cache(inode, number, past_cache);
			memcpy(sim_block_own(&page->cache), past_cache, SIM_PAGE_BYTES);
		}
		write_page(page, source + done, part, at);
		note_change(inode, number, sectors_touched(at, part), page->cache);
		done += part;
	}
}

void sim_inode_reserve(struct sim_inode *inode, uint64_t offset, uint64_t size)
{
	grow(inode, pages_of(offset + size));
	for (size_t i = (size_t)(offset / SIM_PAGE_BYTES); i < pages_of(offset + size); i++)
		inode->pages[i].is_allocated = true;
	if (offset + size > inode->size)
		inode->size = offset + size;
	note_change(inode, SIM_NO_PAGE, 0, NULL);
}

/* What lies behind the end must read as zeros when the file grows again. */
static void cut(struct sim_block **slot, size_t at)
{
	if (*slot && at < SIM_PAGE_BYTES)
		memset(sim_block_own(slot) + at, 0, SIM_PAGE_BYTES - at);
}

static void cut_cache(struct sim_inode *inode, uint64_t size)
{
	for (size_t i = (size_t)(size / SIM_PAGE_BYTES); i < inode->page_count; i++) {
		if (i == size / SIM_PAGE_BYTES && size % SIM_PAGE_BYTES) {
			cut(&inode->pages[i].cache, (size_t)(size % SIM_PAGE_BYTES));
			continue;
		}
		sim_block_drop(&inode->pages[i].cache);
		inode->pages[i].is_allocated = false;
	}
}

void sim_inode_truncate(struct sim_inode *inode, uint64_t size)
{
	if (size < inode->size)
		cut_cache(inode, size);
	else
		grow(inode, pages_of(size));
	inode->size = size;
	note_change(inode, SIM_NO_PAGE, 0, NULL);
}

/* From now on the medium ends here. */
static void cut_medium(struct sim_inode *inode, uint64_t size)
{
	for (size_t i = (size_t)(size / SIM_PAGE_BYTES); i < inode->page_count; i++) {
		if (i == size / SIM_PAGE_BYTES && size % SIM_PAGE_BYTES)
			cut(&inode->pages[i].medium, (size_t)(size % SIM_PAGE_BYTES));
		else
			sim_block_drop(&inode->pages[i].medium);
	}
	inode->medium_size = size;
}

void sim_inode_sync(struct sim_inode *inode)
{
	/* Writing back goes by pages: a ghost beside a new write goes with it. */
	for (size_t i = 0; i < inode->change_count; i++) {
		struct sim_page *page;

		if (inode->changes[i].page == SIM_NO_PAGE)
			continue;
		page = &inode->pages[inode->changes[i].page];
		if (page->medium == page->cache)
			continue;
		sim_block_drop(&page->medium);
		page->medium = sim_block_hold(page->cache);
	}
	if (inode->change_count)
		cut_medium(inode, inode->size);
	drop_changes(inode);
}

void sim_inode_sync_failed(struct sim_inode *inode, struct hx_prng *prng)
{
	for (size_t i = 0; i < inode->change_count; i++) {
		const struct sim_change *change = &inode->changes[i];

		if (change->page == SIM_NO_PAGE)
			continue;
		copy_sectors(
			sim_block_own(&inode->pages[change->page].medium),
			sim_block_data(change->block),
			(uint8_t)(change->sectors & hx_prng_next(prng)));
	}
	inode->has_ghosts |= inode->change_count > 0;
	drop_changes(inode);
	/* The size travels by the journal, which does not forget: the next sync carries it. */
	if (inode->medium_size != inode->size && hx_prng_below(prng, 2))
		inode->medium_size = inode->size;
	else if (inode->medium_size != inode->size)
		note_change(inode, SIM_NO_PAGE, 0, NULL);
}

bool sim_inode_is_settled(const struct sim_inode *inode)
{
	return inode->change_count == 0 && !inode->has_ghosts;
}

static void fill_with(
	unsigned char *sector, enum sim_fate fate, const struct sim_block *stale, int number,
	struct hx_prng *prng)
{
	if (fate == SIM_FATE_STALE) {
		memcpy(sector, sim_block_data(stale) + number * SIM_SECTOR_BYTES, SIM_SECTOR_BYTES);
		return;
	}
	for (size_t i = 0; i < SIM_SECTOR_BYTES; i += sizeof(uint64_t)) {
		uint64_t word = fate == SIM_FATE_ZERO ? 0 : hx_prng_next(prng);

		memcpy(sector + i, &word, sizeof(word));
	}
}

static void crash_sector(
	unsigned char *sector, const unsigned char *written, enum sim_fate fate,
	const struct sim_block *stale, int number, struct hx_prng *prng)
{
	switch (fate) {
	case SIM_FATE_OLD: break;
	case SIM_FATE_NEW: memcpy(sector, written, SIM_SECTOR_BYTES); break;
	case SIM_FATE_TORN:
		memcpy(sector, written, 1 + (size_t)hx_prng_below(prng, SIM_SECTOR_BYTES - 1));
		break;
	case SIM_FATE_GARBAGE:
	case SIM_FATE_ZERO:
	case SIM_FATE_STALE: fill_with(sector, fate, stale, number, prng); break;
	}
}

static void crash_page(
	struct sim_page *page, const struct sim_change *change, const struct sim_fates *fates,
	const struct sim_block *stale, struct hx_prng *prng)
{
	enum sim_fate all = SIM_FATE_OLD;
	bool is_whole = sim_fates_whole(fates, prng, &all);
	bool is_blasted = sim_fates_blast(fates, prng);

	if (is_whole && all == SIM_FATE_OLD && !is_blasted)
		return;
	/* The usual case: the page is as it was written, or was so at once. */
	if (is_whole && all == SIM_FATE_NEW && change->sectors == 0xff && !is_blasted) {
		sim_block_drop(&page->medium);
		page->medium = sim_block_hold(change->block);
		return;
	}
	for (int i = 0; i < SIM_PAGE_SECTORS; i++) {
		size_t at = (size_t)i * SIM_SECTOR_BYTES;
		bool is_touched = change->sectors & 1u << i;
		enum sim_fate fate = is_whole ? all : sim_fates_sector(fates, prng);

		/* Without powersafe overwrite the neighbors in the block are at risk too. */
		if (is_blasted && (is_touched || hx_prng_below(prng, 2)))
			fate = SIM_FATE_GARBAGE;
		else if (!is_touched)
			continue;
		if (fate != SIM_FATE_OLD)
			crash_sector(
				sim_block_own(&page->medium) + at,
				sim_block_data(change->block) + at, fate, stale, i, prng);
	}
}

/* The size is one that the file had since its last sync. */
static uint64_t crash_size(const struct sim_inode *inode, struct hx_prng *prng)
{
	size_t choice;

	if (inode->change_count == 0)
		return inode->medium_size;
	choice = (size_t)hx_prng_below(prng, inode->change_count + 2);
	if (choice == 0)
		return inode->medium_size;
	if (choice > inode->change_count)
		return inode->size;
	return inode->changes[choice - 1].size_after;
}

void sim_inode_crash(
	struct sim_inode *inode, const struct sim_fates *fates, const struct sim_block *stale,
	struct hx_prng *prng)
{
	uint64_t size = crash_size(inode, prng);

	for (size_t i = 0; i < inode->change_count; i++)
		if (inode->changes[i].page != SIM_NO_PAGE)
			crash_page(
				&inode->pages[inode->changes[i].page], &inode->changes[i], fates,
				stale, prng);
	drop_changes(inode);
	grow(inode, pages_of(size));
	cut_medium(inode, size);
	inode->size = size;
	for (size_t i = 0; i < inode->page_count; i++) {
		struct sim_page *page = &inode->pages[i];

		if (page->cache != page->medium) {
			sim_block_drop(&page->cache);
			page->cache = sim_block_hold(page->medium);
		}
		page->is_allocated = page->is_allocated || page->medium;
	}
	inode->has_ghosts = false;
}
