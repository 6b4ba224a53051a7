/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_disk.h - a real ext4 of our own on a loop device, whose power can be cut and
 * whose writes can be made to fail. Needs root, and a kernel that allows it.
 *
 * Everything lives under one temporary folder and is unmounted by loop_disk_done().
 */
#ifndef TEST_CRASH_LOOP_DISK_H
#define TEST_CRASH_LOOP_DISK_H

#include <stdbool.h>

#include "support/temp_dir.h"

struct loop_disk {
	struct temp_dir dir;
	char image[320];
	char place[256];   /* where it is mounted */
	char backing[256]; /* of a disk that can fail: the tmpfs under the image; else "" */
	bool is_mounted;
	bool has_backing;
};

/*
 * Make and mount one. backing_mib 0: the image lies in the temporary folder; else on a
 * tmpfs of that size, which can be filled. NULL, or why it is not possible here.
 */
const char *loop_disk_init(struct loop_disk *disk, int image_mib, int backing_mib);
void loop_disk_done(struct loop_disk *disk);

/* The file system stops at once: nothing that was not synced reaches the image. */
bool loop_disk_cut_power(struct loop_disk *disk);

/* Unmount and mount again: after a power cut, or to see what is really on the disk. */
bool loop_disk_remount(struct loop_disk *disk);

/* Fill the tmpfs under it, so that new blocks of the image cannot be written; or free it. */
bool loop_disk_fill(struct loop_disk *disk);
bool loop_disk_drain(struct loop_disk *disk);

#endif
