/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_disk.h - a disk in memory behind the file seam, which fails as disks do.
 *
 *	disk = sim_disk_new(seed);
 *	... run a store on sim_disk_io(disk), watch each change of the disk ...
 *	image = sim_disk_clone(disk);       what a power cut would meet now
 *	sim_disk_crash(image, &fates, &prng); what it leaves
 *	... open a store on sim_disk_io(image) ...
 *
 * The rules are those of a careful reading of POSIX and of what Linux does
 * (research/reliability.md 2.3), not of one file system: fdatasync carries a file's
 * data and size, not its name; fsync_dir carries the names in one directory; until
 * then a sector is old, new, torn or garbage, and names come and go in any order. What
 * was carried over stays. A failed fdatasync drops what it should have carried, and
 * the next one succeeds; the cache shows the lost data until the machine restarts,
 * and O_DIRECT does not.
 *
 * Everything is decided by seeds. A clone shares what it has in common with its
 * original, so that it costs little more than a list of names.
 *
 * Directories cannot be renamed, and a rename stays within its directory (EXDEV): no
 * store does otherwise.
 *
 * Threads: any. The observer runs outside of the disk's lock, on the caller's thread.
 */
#ifndef TEST_SUPPORT_SIM_DISK_H
#define TEST_SUPPORT_SIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "base/random.h"
#include "support/sim_fates.h"

enum {
	SIM_PATH_SIZE = 128,
	SIM_NAMES_MAX = 256,
	SIM_HANDLES_MAX = 64,
};

/* The operations of the seam, as bits. */
enum sim_call {
	SIM_OPEN = 1 << 0,
	SIM_CLOSE = 1 << 1,
	SIM_PREAD = 1 << 2,
	SIM_PWRITE = 1 << 3,
	SIM_FDATASYNC = 1 << 4,
	SIM_FSYNC_DIR = 1 << 5,
	SIM_RENAME = 1 << 6,
	SIM_UNLINK = 1 << 7,
	SIM_MKDIR = 1 << 8,
	SIM_FALLOCATE = 1 << 9,
	SIM_FTRUNCATE = 1 << 10,
	SIM_STAT = 1 << 11, /* of a file and of a path */
	SIM_LIST = 1 << 12,
	SIM_LOCK = 1 << 13,
};
enum { SIM_CALL_KINDS = 14 };

/* All of them; those that change the disk. */
enum {
	SIM_ANY = (1 << SIM_CALL_KINDS) - 1,
	SIM_CHANGING = SIM_OPEN | SIM_PWRITE | SIM_FDATASYNC | SIM_FSYNC_DIR | SIM_RENAME |
		SIM_UNLINK | SIM_MKDIR | SIM_FALLOCATE | SIM_FTRUNCATE,
};

/* For sim_disk_fail_at(): not an error but fewer bytes than were asked for. */
enum { SIM_SHORT = 0 };

struct sim_disk;

/*
 * The disk has changed by that call: something is on its way to the medium, or has
 * arrived there. An O_DSYNC write is told twice. May clone the disk.
 */
typedef void sim_observer_fn(struct sim_disk *disk, enum sim_call call, void *context);

/* Empty but for the root directory. seed decides what failing calls leave behind. */
struct sim_disk *sim_disk_new(uint64_t seed);
void sim_disk_free(struct sim_disk *disk);

/* Borrowed from disk. */
const struct hx_io *sim_disk_io(struct sim_disk *disk);

/* As it is, with all that is on its way; without open files, observer and failures. */
struct sim_disk *sim_disk_clone(struct sim_disk *disk);

/*
 * The power goes and comes back: what was on its way meets its fate, every open file
 * is gone (its number must not be used again), the cache is empty.
 */
void sim_disk_crash(struct sim_disk *disk, const struct sim_fates *fates, struct hx_prng *prng);

/* Its processes are killed: open files and locks are gone, the cache stays. */
void sim_disk_kill(struct sim_disk *disk);

/* NULL: none. */
void sim_disk_observe(struct sim_disk *disk, sim_observer_fn *observer, void *context);

/*
 * The nth from now (1 is the next) of the calls in the mask fails with that positive
 * errno, and with forever all that follow it; SIM_SHORT moves fewer bytes than asked.
 * nth 0 disarms.
 */
void sim_disk_fail_at(struct sim_disk *disk, unsigned calls, uint64_t nth, bool forever, int error);

/* How often one of the calls in the mask was made; how often a failure struck. */
uint64_t sim_disk_calls(const struct sim_disk *disk, unsigned calls);
uint64_t sim_disk_failures(const struct sim_disk *disk);

/* Room for so many bytes of files, then ENOSPC; UINT64_MAX at first. */
void sim_disk_set_room(struct sim_disk *disk, uint64_t bytes);

/* Without O_DIRECT, as tmpfs was: open with HX_IO_DIRECT is EINVAL. */
void sim_disk_set_direct(struct sim_disk *disk, bool has_direct);

/* For rot: the files in order of their names; NULL past the last. Borrowed until a change. */
const char *sim_disk_path(struct sim_disk *disk, size_t index, uint64_t *ret_size);

/* Change one bit of a settled disk's medium; cut a file; exchange two; all durable. */
void sim_disk_flip(struct sim_disk *disk, const char *path, uint64_t bit);
void sim_disk_cut(struct sim_disk *disk, const char *path, uint64_t size);
void sim_disk_swap(struct sim_disk *disk, const char *one, const char *other);

/* What a buffered read would give, as one number; names and contents, not times. */
uint64_t sim_disk_digest(struct sim_disk *disk);

/* Copy every file into a folder of the real disk, to look at. False: errno says why. */
bool sim_disk_export(struct sim_disk *disk, const char *folder);

#endif
