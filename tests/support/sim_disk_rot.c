/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_disk_rot.c - what time, hands and backups do to files at rest.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/sim_disk_private.h"

const char *sim_disk_path(struct sim_disk *disk, size_t index, uint64_t *ret_size)
{
	const char *path = NULL;

	hx_mutex_lock(&disk->mutex);
	for (size_t i = 0; i < disk->names.seen.count && !path; i++) {
		const struct sim_name *name = &disk->names.seen.names[i];

		if (disk->inodes[name->inode]->kind != HX_IO_FILE || index-- > 0)
			continue;
		path = name->path;
		*ret_size = disk->inodes[name->inode]->size;
	}
	hx_mutex_unlock(&disk->mutex);
	return path;
}

static struct sim_inode *file_at(struct sim_disk *disk, const char *path)
{
	int number = sim_names_find(&disk->names, path);

	assert(number >= 0 && disk->inodes[number]->kind == HX_IO_FILE);
	return sim_inode_own(&disk->inodes[number]);
}

void sim_disk_flip(struct sim_disk *disk, const char *path, uint64_t bit)
{
	struct sim_inode *inode;
	struct sim_page *page;

	hx_mutex_lock(&disk->mutex);
	inode = file_at(disk, path);
	assert(sim_inode_is_settled(inode) && bit / 8 < inode->size);
	page = &inode->pages[bit / 8 / SIM_PAGE_BYTES];
	sim_block_own(&page->medium)[bit / 8 % SIM_PAGE_BYTES] ^= (unsigned char)(1u << bit % 8);
	sim_block_drop(&page->cache);
	page->cache = sim_block_hold(page->medium);
	hx_mutex_unlock(&disk->mutex);
}

void sim_disk_cut(struct sim_disk *disk, const char *path, uint64_t size)
{
	struct sim_inode *inode;

	hx_mutex_lock(&disk->mutex);
	inode = file_at(disk, path);
	sim_inode_truncate(inode, size);
	sim_inode_sync(inode);
	hx_mutex_unlock(&disk->mutex);
}

void sim_disk_swap(struct sim_disk *disk, const char *one, const char *other)
{
	int one_number, other_number;

	hx_mutex_lock(&disk->mutex);
	one_number = sim_names_find(&disk->names, one);
	other_number = sim_names_find(&disk->names, other);
	assert(one_number >= 0 && other_number >= 0 && disk->names.step_count == 0);
	sim_names_step(&disk->names, NULL, one, other_number);
	sim_names_step(&disk->names, NULL, other, one_number);
	for (size_t i = 0; i < disk->names.seen.count; i++) {
		char parent[SIM_PATH_SIZE];

		memcpy(parent, disk->names.seen.names[i].path, sizeof(parent));
		if (strrchr(parent, '/') == parent)
			continue;
		*strrchr(parent, '/') = '\0';
		sim_names_sync(&disk->names, parent);
	}
	sim_names_sync(&disk->names, "/");
	hx_mutex_unlock(&disk->mutex);
}

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t sim_disk_digest(struct sim_disk *disk)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	hx_mutex_lock(&disk->mutex);
	for (size_t i = 0; i < disk->names.seen.count; i++) {
		const struct sim_name *name = &disk->names.seen.names[i];
		const struct sim_inode *inode = disk->inodes[name->inode];

		hash = mix(hash, name->path, strlen(name->path) + 1);
		hash = mix(hash, &inode->size, sizeof(inode->size));
		for (size_t page = 0; page < inode->page_count; page++)
			hash = mix(hash, sim_block_data(inode->pages[page].cache), SIM_PAGE_BYTES);
	}
	hx_mutex_unlock(&disk->mutex);
	return hash;
}

static bool export_file(const struct sim_inode *inode, const char *path)
{
	FILE *file = fopen(path, "wb");
	unsigned char page[SIM_PAGE_BYTES];
	bool ok = file != NULL;

	for (uint64_t at = 0; ok && at < inode->size; at += sizeof(page)) {
		size_t size = sim_inode_read(inode, page, sizeof(page), at, false);

		ok = fwrite(page, 1, size, file) == size;
	}
	return file && fclose(file) == 0 && ok;
}

bool sim_disk_export(struct sim_disk *disk, const char *folder)
{
	bool ok = true;

	hx_mutex_lock(&disk->mutex);
	for (size_t i = 0; ok && i < disk->names.seen.count; i++) {
		const struct sim_name *name = &disk->names.seen.names[i];
		const struct sim_inode *inode = disk->inodes[name->inode];
		char path[SIM_PATH_SIZE + 512];
		int size = snprintf(path, sizeof(path), "%s%s", folder, name->path);

		if (size < 0 || (size_t)size >= sizeof(path))
			ok = false;
		else if (inode->kind == HX_IO_DIRECTORY)
			ok = mkdir(path, 0700) == 0 || errno == EEXIST;
		else
			ok = export_file(inode, path);
	}
	hx_mutex_unlock(&disk->mutex);
	return ok;
}
