/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated disk does what it is there for: each fault really happens, and what
 * a sync has carried over never suffers one.
 */
#include "support/sim_disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scale.h"
#include "support/sim_block.h"

enum { PAGE = SIM_PAGE_BYTES, SECTOR = SIM_SECTOR_BYTES, TRIES = 400 };

/* Two pages that O_DIRECT accepts. */
static _Alignas(PAGE) unsigned char page_a[2 * PAGE];
static _Alignas(PAGE) unsigned char page_b[2 * PAGE];
static _Alignas(PAGE) unsigned char page_out[2 * PAGE];

struct fixture {
	struct sim_disk *disk;
	const struct hx_io *io;
	struct hx_prng prng;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	memset(page_a, 'a', sizeof(page_a));
	memset(page_b, 'b', sizeof(page_b));
	f->disk = sim_disk_new(1);
	f->io = sim_disk_io(f->disk);
	hx_prng_seed(&f->prng, 2);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	sim_disk_free(f->disk);
	free(f);
	return 0;
}

static int open_file(const struct hx_io *io, const char *path, unsigned flags)
{
	int file = io->ops->open(io->context, path, HX_IO_READ | HX_IO_WRITE | flags, 0600);

	assert_true(file >= 0);
	return file;
}

static void write_at(const struct hx_io *io, int file, const void *data, size_t size, uint64_t at)
{
	assert_int_equal(io->ops->pwrite(io->context, file, data, size, at), size);
}

static void sync_file(const struct hx_io *io, int file)
{
	assert_int_equal(io->ops->fdatasync(io->context, file), 0);
}

/* A durable file of that content, closed. */
static void make_durable(const struct hx_io *io, const char *path, const void *data, size_t size)
{
	int file = open_file(io, path, HX_IO_CREATE);

	write_at(io, file, data, size, 0);
	sync_file(io, file);
	assert_int_equal(io->ops->fsync_dir(io->context, "/"), 0);
	assert_int_equal(io->ops->close(io->context, file), 0);
}

static uint64_t size_of(const struct hx_io *io, const char *path)
{
	struct hx_io_stat stat;

	return io->ops->stat_path(io->context, path, &stat) == 0 ? stat.size : UINT64_MAX;
}

static bool is_there(const struct hx_io *io, const char *path)
{
	return size_of(io, path) != UINT64_MAX;
}

/* Reads it into page_out; how much there was. */
static size_t read_back(const struct hx_io *io, const char *path, unsigned flags)
{
	int file = io->ops->open(io->context, path, HX_IO_READ | flags, 0);
	ssize_t size;

	assert_true(file >= 0);
	memset(page_out, '?', sizeof(page_out));
	size = io->ops->pread(io->context, file, page_out, sizeof(page_out), 0);
	assert_true(size >= 0);
	assert_int_equal(io->ops->close(io->context, file), 0);
	return (size_t)size;
}

/* The disk after a power cut now, with fates of its own. */
static struct sim_disk *crashed(struct fixture *f, const struct sim_fates *fates)
{
	struct sim_disk *image = sim_disk_clone(f->disk);
	struct sim_fates drawn;

	if (!fates) {
		sim_fates_draw(&drawn, &f->prng);
		fates = &drawn;
	}
	sim_disk_crash(image, fates, &f->prng);
	return image;
}

/* ------------------------------------------------------------------ files */

static void a_file_keeps_what_was_written(void **state)
{
	struct fixture *f = *state;
	int file = open_file(f->io, "/f", HX_IO_CREATE);
	unsigned char byte;

	write_at(f->io, file, "hello", 5, 4094);
	assert_int_equal(size_of(f->io, "/f"), 4099);
	assert_int_equal(read_back(f->io, "/f", 0), 4099);
	assert_memory_equal(page_out + 4094, "hello", 5);
	assert_int_equal(page_out[4093], 0);
	assert_int_equal(f->io->ops->pread(f->io->context, file, &byte, 1, 4099), 0);
	assert_int_equal(f->io->ops->ftruncate(f->io->context, file, 4096), 0);
	assert_int_equal(f->io->ops->ftruncate(f->io->context, file, 4098), 0);
	assert_int_equal(read_back(f->io, "/f", 0), 4098);
	assert_memory_equal(page_out + 4094, "he\0\0", 4);
	assert_int_equal(f->io->ops->fallocate(f->io->context, file, 0, 2 * PAGE), 0);
	assert_int_equal(size_of(f->io, "/f"), 2 * PAGE);
}

static void names_behave(void **state)
{
	struct fixture *f = *state;
	const struct hx_io *io = f->io;
	unsigned create = HX_IO_WRITE | HX_IO_CREATE | HX_IO_EXCLUSIVE;
	struct hx_io_stat stat;

	assert_int_equal(io->ops->open(io->context, "/no/f", create, 0600), -ENOENT);
	assert_int_equal(io->ops->mkdir(io->context, "/d", 0700), 0);
	assert_int_equal(io->ops->mkdir(io->context, "/d", 0700), -EEXIST);
	assert_true(io->ops->open(io->context, "/d/f", create, 0600) >= 0);
	assert_int_equal(io->ops->open(io->context, "/d/f", create, 0600), -EEXIST);
	assert_int_equal(io->ops->open(io->context, "/d/g", HX_IO_READ, 0), -ENOENT);
	assert_int_equal(io->ops->rename(io->context, "/d/f", "/d/g"), 0);
	assert_int_equal(io->ops->stat_path(io->context, "/d/f", &stat), -ENOENT);
	assert_int_equal(io->ops->stat_path(io->context, "/d/g", &stat), 0);
	assert_int_equal(stat.kind, HX_IO_FILE);
	assert_int_equal(io->ops->rename(io->context, "/d/g", "/g"), -EXDEV);
	assert_int_equal(io->ops->unlink(io->context, "/d"), -EISDIR);
	assert_int_equal(io->ops->unlink(io->context, "/d/g"), 0);
	assert_int_equal(io->ops->unlink(io->context, "/d/g"), -ENOENT);
}

static int collect_name(void *arg, const char *name)
{
	char *names = arg;

	assert_true(strlen(names) + strlen(name) + 2 < 64);
	memcpy(names + strlen(names), name, strlen(name) + 1);
	return name[0] == 'z' ? 7 : 0;
}

static void a_directory_lists_its_own(void **state)
{
	struct fixture *f = *state;
	char names[64] = "";

	assert_int_equal(f->io->ops->mkdir(f->io->context, "/d", 0700), 0);
	(void)open_file(f->io, "/d/two", HX_IO_CREATE);
	(void)open_file(f->io, "/d/one", HX_IO_CREATE);
	(void)open_file(f->io, "/other", HX_IO_CREATE);
	assert_int_equal(f->io->ops->list(f->io->context, "/d", collect_name, names), 0);
	assert_string_equal(names, "onetwo");
	(void)open_file(f->io, "/d/z", HX_IO_CREATE);
	names[0] = '\0';
	assert_int_equal(f->io->ops->list(f->io->context, "/d", collect_name, names), 7);
	assert_int_equal(f->io->ops->list(f->io->context, "/no", collect_name, names), -ENOENT);
}

static void a_lock_keeps_others_out_until_it_is_closed(void **state)
{
	struct fixture *f = *state;
	const struct hx_io *io = f->io;
	int one = open_file(io, "/LOCK", HX_IO_CREATE);
	int other = open_file(io, "/LOCK", 0);

	assert_int_equal(io->ops->lock(io->context, one), 0);
	assert_int_equal(io->ops->lock(io->context, other), -EAGAIN);
	assert_int_equal(io->ops->close(io->context, one), 0);
	assert_int_equal(io->ops->lock(io->context, other), 0);
	sim_disk_kill(f->disk);
	assert_int_equal(io->ops->lock(io->context, open_file(io, "/LOCK", 0)), 0);
}

static void direct_io_wants_sectors(void **state)
{
	struct fixture *f = *state;
	const struct hx_io *io = f->io;
	int file = open_file(io, "/f", HX_IO_CREATE | HX_IO_DIRECT);

	assert_int_equal(io->ops->pwrite(io->context, file, page_a, PAGE, 1), -EINVAL);
	assert_int_equal(io->ops->pwrite(io->context, file, page_a, 100, 0), -EINVAL);
	assert_int_equal(io->ops->pwrite(io->context, file, page_a + 1, SECTOR, 0), -EINVAL);
	write_at(io, file, page_a, PAGE, 0);
	sim_disk_set_direct(f->disk, false);
	assert_int_equal(io->ops->open(io->context, "/f", HX_IO_READ | HX_IO_DIRECT, 0), -EINVAL);
}

/* ------------------------------------------------------------------ crashes */

/* Whatever happens: what was carried over stays, in every image. */
static void what_was_synced_survives(void **state)
{
	struct fixture *f = *state;
	int file;

	make_durable(f->io, "/f", page_a, PAGE);
	file = open_file(f->io, "/f", 0);
	write_at(f->io, file, page_b, PAGE, PAGE);
	(void)open_file(f->io, "/g", HX_IO_CREATE);
	for (int i = 0; i < TRIES; i++) {
		struct sim_disk *image = crashed(f, NULL);

		assert_true(read_back(sim_disk_io(image), "/f", 0) >= PAGE);
		assert_memory_equal(page_out, page_a, PAGE);
		sim_disk_free(image);
	}
}

struct kinds {
	int old, new, torn, garbage, zero, stale;
};

static void count_sector(struct kinds *kinds, const unsigned char *sector)
{
	bool is_a = sector[0] == 'a' && memcmp(sector, page_a, SECTOR) == 0;
	bool is_b = memcmp(sector, page_b, SECTOR) == 0;
	bool is_zero = memcmp(sector, sim_block_data(NULL), SECTOR) == 0;
	bool is_stale = sector[0] == 's' && sector[SECTOR - 1] == 's';

	kinds->old += is_a;
	kinds->new += is_b;
	kinds->zero += is_zero;
	kinds->stale += is_stale;
	kinds->torn += sector[0] == 'b' && sector[SECTOR - 1] == 'a';
	kinds->garbage += !is_a && !is_b && !is_zero && !is_stale &&
		!(sector[0] == 'b' && sector[SECTOR - 1] == 'a');
}

/* Overwritten and not synced: each fate comes, and sectors meet them independently. */
static void what_was_not_synced_meets_every_fate(void **state)
{
	struct fixture *f = *state;
	struct kinds kinds = {0};
	int mixed = 0;
	int file;

	memset(page_out, 's', PAGE);
	make_durable(f->io, "/stale", page_out, PAGE);
	make_durable(f->io, "/f", page_a, PAGE);
	file = open_file(f->io, "/f", HX_IO_DIRECT);
	write_at(f->io, file, page_b, PAGE, 0);
	for (int i = 0; i < TRIES; i++) {
		struct sim_disk *image = crashed(f, NULL);
		struct kinds before = kinds;

		assert_int_equal(read_back(sim_disk_io(image), "/f", 0), PAGE);
		for (int at = 0; at < PAGE; at += SECTOR)
			count_sector(&kinds, page_out + at);
		mixed += kinds.old > before.old && kinds.new > before.new;
		sim_disk_free(image);
	}
	assert_true(kinds.old > 0 && kinds.new > 0 && kinds.torn > 0);
	assert_true(kinds.garbage > 0 && kinds.zero > 0 && kinds.stale > 0);
	assert_true(mixed > 0);
}

/* The later of two writes arrives, the earlier does not. */
static void writes_change_places(void **state)
{
	struct fixture *f = *state;
	int later_only = 0, earlier_only = 0;
	int file;

	memset(page_out, 0, sizeof(page_out));
	make_durable(f->io, "/f", page_out, 2 * PAGE);
	file = open_file(f->io, "/f", 0);
	write_at(f->io, file, page_a, PAGE, 0);
	write_at(f->io, file, page_b, PAGE, PAGE);
	for (int i = 0; i < TRIES; i++) {
		struct sim_disk *image = crashed(f, NULL);

		(void)read_back(sim_disk_io(image), "/f", 0);
		later_only += page_out[0] == 0 && page_out[PAGE] == 'b';
		earlier_only += page_out[0] == 'a' && page_out[PAGE] == 0;
		sim_disk_free(image);
	}
	assert_true(later_only > 0 && earlier_only > 0);
}

static void the_size_is_one_it_had(void **state)
{
	struct fixture *f = *state;
	int seen[3] = {0};
	int file;

	make_durable(f->io, "/f", page_a, SECTOR);
	file = open_file(f->io, "/f", 0);
	write_at(f->io, file, page_b, SECTOR, SECTOR);
	write_at(f->io, file, page_b, SECTOR, 2 * SECTOR);
	for (int i = 0; i < TRIES; i++) {
		struct sim_disk *image = crashed(f, NULL);
		uint64_t size = size_of(sim_disk_io(image), "/f");

		assert_true(size % SECTOR == 0 && size >= SECTOR && size <= 3 * SECTOR);
		seen[size / SECTOR - 1]++;
		sim_disk_free(image);
	}
	assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
}

/* fdatasync of the file is not enough for its name. */
static void a_name_needs_its_directory_synced(void **state)
{
	struct fixture *f = *state;
	struct sim_fates fates;
	struct sim_disk *image;
	int file = open_file(f->io, "/f", HX_IO_CREATE);

	write_at(f->io, file, page_a, PAGE, 0);
	sync_file(f->io, file);
	sim_fates_lose_all(&fates);
	image = crashed(f, &fates);
	assert_false(is_there(sim_disk_io(image), "/f"));
	sim_disk_free(image);
	assert_int_equal(f->io->ops->fsync_dir(f->io->context, "/"), 0);
	image = crashed(f, &fates);
	assert_int_equal(read_back(sim_disk_io(image), "/f", 0), PAGE);
	sim_disk_free(image);
}

static void a_rename_happens_whole_or_not_at_all(void **state)
{
	struct fixture *f = *state;
	int before = 0, after = 0;

	make_durable(f->io, "/new", page_b, SECTOR);
	make_durable(f->io, "/f", page_a, SECTOR);
	assert_int_equal(f->io->ops->rename(f->io->context, "/new", "/f"), 0);
	for (int i = 0; i < TRIES; i++) {
		struct sim_disk *image = crashed(f, NULL);
		bool has_new = is_there(sim_disk_io(image), "/new");

		assert_int_equal(read_back(sim_disk_io(image), "/f", 0), SECTOR);
		assert_int_equal(page_out[0], has_new ? 'a' : 'b');
		before += has_new;
		after += !has_new;
		sim_disk_free(image);
	}
	assert_true(before > 0 && after > 0);
}

/* Names come in any order, and in the order of a journal when the fates say so. */
static void names_arrive_in_any_order(void **state)
{
	struct fixture *f = *state;
	int second_only = 0, second_only_in_order = 0;

	(void)open_file(f->io, "/one", HX_IO_CREATE);
	(void)open_file(f->io, "/two", HX_IO_CREATE);
	for (int i = 0; i < TRIES; i++) {
		struct sim_fates fates;
		struct sim_disk *image;
		bool odd;

		sim_fates_draw(&fates, &f->prng);
		image = crashed(f, &fates);
		odd = is_there(sim_disk_io(image), "/two") && !is_there(sim_disk_io(image), "/one");
		second_only += odd && !fates.names_are_in_order;
		second_only_in_order += odd && fates.names_are_in_order;
		sim_disk_free(image);
	}
	assert_true(second_only > 0);
	assert_int_equal(second_only_in_order, 0);
}

static void a_lost_directory_takes_its_files_along(void **state)
{
	struct fixture *f = *state;
	struct sim_fates fates;
	struct sim_disk *image;
	int file;

	assert_int_equal(f->io->ops->mkdir(f->io->context, "/d", 0700), 0);
	file = open_file(f->io, "/d/f", HX_IO_CREATE);
	write_at(f->io, file, page_a, PAGE, 0);
	sync_file(f->io, file);
	assert_int_equal(f->io->ops->fsync_dir(f->io->context, "/d"), 0);
	sim_fates_lose_all(&fates);
	image = crashed(f, &fates);
	assert_false(is_there(sim_disk_io(image), "/d/f"));
	sim_disk_free(image);
	assert_int_equal(f->io->ops->fsync_dir(f->io->context, "/"), 0);
	image = crashed(f, &fates);
	assert_true(is_there(sim_disk_io(image), "/d/f"));
	sim_disk_free(image);
}

/* unlink without a sync: the file may come back, as it was. */
static void an_unlinked_file_may_return(void **state)
{
	struct fixture *f = *state;
	struct sim_fates fates;
	struct sim_disk *image;

	make_durable(f->io, "/f", page_a, PAGE);
	assert_int_equal(f->io->ops->unlink(f->io->context, "/f"), 0);
	sim_fates_lose_all(&fates);
	image = crashed(f, &fates);
	assert_int_equal(read_back(sim_disk_io(image), "/f", 0), PAGE);
	assert_memory_equal(page_out, page_a, PAGE);
	sim_disk_free(image);
	assert_int_equal(f->io->ops->fsync_dir(f->io->context, "/"), 0);
	image = crashed(f, &fates);
	assert_false(is_there(sim_disk_io(image), "/f"));
	sim_disk_free(image);
}

/* Without powersafe overwrite a write spoils synced neighbors in its block. */
static void a_blast_hits_neighbors(void **state)
{
	struct fixture *f = *state;
	struct sim_fates fates;
	int spoilt = 0;
	int file;

	make_durable(f->io, "/f", page_a, 2 * PAGE);
	file = open_file(f->io, "/f", 0);
	write_at(f->io, file, page_b, SECTOR, SECTOR);
	for (int i = 0; i < TRIES; i++) {
		struct sim_disk *image;

		sim_fates_draw(&fates, &f->prng);
		fates.blast_percent = 100;
		image = crashed(f, &fates);
		(void)read_back(sim_disk_io(image), "/f", 0);
		spoilt += memcmp(page_out, page_a, SECTOR) != 0;
		assert_memory_equal(page_out + PAGE, page_a, PAGE);
		sim_disk_free(image);
	}
	assert_true(spoilt > 0 && spoilt < TRIES);
}

/* ------------------------------------------------------------------ failures */

/* fsyncgate: it fails once, the next one is fine, the data is nowhere but in the cache. */
static void a_failed_sync_leaves_ghosts(void **state)
{
	struct fixture *f = *state;
	struct sim_fates fates;
	struct sim_disk *image;
	int lost = 0;
	int file;

	make_durable(f->io, "/f", page_a, PAGE);
	file = open_file(f->io, "/f", 0);
	write_at(f->io, file, page_b, PAGE, 0);
	sim_disk_fail_at(f->disk, SIM_FDATASYNC, 1, false, EIO);
	assert_int_equal(f->io->ops->fdatasync(f->io->context, file), -EIO);
	assert_int_equal(sim_disk_failures(f->disk), 1);
	assert_int_equal(f->io->ops->fdatasync(f->io->context, file), 0);
	sim_disk_kill(f->disk);
	assert_int_equal(read_back(f->io, "/f", 0), PAGE);
	assert_memory_equal(page_out, page_b, PAGE);
	(void)read_back(f->io, "/f", HX_IO_DIRECT);
	for (int at = 0; at < PAGE; at += SECTOR)
		lost += page_out[at] == 'a';
	assert_true(lost > 0);
	/* A reboot ends it, even if everything else arrives. */
	sim_fates_keep_all(&fates);
	image = crashed(f, &fates);
	assert_int_equal(read_back(sim_disk_io(image), "/f", 0), PAGE);
	for (int at = 0; at < PAGE; at += SECTOR)
		lost -= page_out[at] == 'a';
	assert_int_equal(lost, 0);
	sim_disk_free(image);
}

static void a_failed_directory_sync_loses_names(void **state)
{
	struct fixture *f = *state;
	struct sim_fates fates;
	int lost = 0;

	sim_fates_keep_all(&fates);
	for (int i = 0; i < 32; i++) {
		struct sim_disk *image;
		char path[16] = "/f..";

		path[2] = (char)('a' + i / 8);
		path[3] = (char)('a' + i % 8);
		(void)f->io->ops->close(f->io->context, open_file(f->io, path, HX_IO_CREATE));
		sim_disk_fail_at(f->disk, SIM_FSYNC_DIR, 1, false, EIO);
		assert_int_equal(f->io->ops->fsync_dir(f->io->context, "/"), -EIO);
		assert_int_equal(f->io->ops->fsync_dir(f->io->context, "/"), 0);
		assert_true(is_there(f->io, path));
		image = crashed(f, &fates);
		lost += !is_there(sim_disk_io(image), path);
		sim_disk_free(image);
	}
	assert_true(lost > 0 && lost < 32);
}

static void the_nth_call_fails_once_or_for_ever(void **state)
{
	struct fixture *f = *state;
	const struct hx_io *io = f->io;
	int file = open_file(io, "/f", HX_IO_CREATE);
	uint64_t before = sim_disk_calls(f->disk, SIM_PWRITE);

	sim_disk_fail_at(f->disk, SIM_PWRITE, 2, false, EIO);
	write_at(io, file, page_a, PAGE, 0);
	assert_int_equal(io->ops->pwrite(io->context, file, page_a, PAGE, 0), -EIO);
	write_at(io, file, page_a, PAGE, 0);
	sim_disk_fail_at(f->disk, SIM_PWRITE | SIM_STAT, 1, true, EDQUOT);
	for (int i = 0; i < 3; i++)
		assert_int_equal(io->ops->pwrite(io->context, file, page_a, PAGE, 0), -EDQUOT);
	assert_int_equal(sim_disk_failures(f->disk), 3);
	assert_false(is_there(io, "/f"));
	sim_disk_fail_at(f->disk, SIM_ANY, 0, false, 0);
	write_at(io, file, page_a, PAGE, 0);
	assert_int_equal(sim_disk_calls(f->disk, SIM_PWRITE) - before, 7);
}

static void a_failed_write_may_have_written_a_part(void **state)
{
	struct fixture *f = *state;
	int seen[PAGE / SECTOR + 1] = {0};
	int file = open_file(f->io, "/f", HX_IO_CREATE);

	for (int i = 0; i < TRIES; i++) {
		int written = 0;

		write_at(f->io, file, page_a, PAGE, 0);
		sim_disk_fail_at(f->disk, SIM_PWRITE, 1, false, EIO);
		assert_int_equal(f->io->ops->pwrite(f->io->context, file, page_b, PAGE, 0), -EIO);
		(void)read_back(f->io, "/f", 0);
		while (written < PAGE / SECTOR && page_out[written * SECTOR] == 'b')
			written++;
		seen[written]++;
	}
	assert_true(seen[0] > 0 && seen[PAGE / SECTOR] > 0 && seen[3] > 0);
}

static void a_call_may_move_fewer_bytes(void **state)
{
	struct fixture *f = *state;
	int file = open_file(f->io, "/f", HX_IO_CREATE);
	int direct = open_file(f->io, "/f", HX_IO_DIRECT);

	for (int i = 0; i < 20; i++) {
		ssize_t done;

		sim_disk_fail_at(f->disk, SIM_PWRITE | SIM_PREAD, 1, true, SIM_SHORT);
		done = f->io->ops->pwrite(f->io->context, file, page_a, PAGE, 0);
		assert_true(done > 0 && done < PAGE);
		done = f->io->ops->pwrite(f->io->context, direct, page_a, PAGE, 0);
		assert_true(done > 0 && done < PAGE && done % SECTOR == 0);
		assert_int_equal(hx_io_write_full(f->io, direct, page_a, PAGE, 0), 0);
		done = f->io->ops->pread(f->io->context, file, page_out, PAGE, 0);
		assert_true(done > 0 && done < PAGE);
	}
}

static void a_full_disk_says_so(void **state)
{
	struct fixture *f = *state;
	const struct hx_io *io = f->io;
	int file = open_file(io, "/f", HX_IO_CREATE);

	sim_disk_set_room(f->disk, 3 * PAGE);
	assert_int_equal(io->ops->fallocate(io->context, file, 0, 4 * PAGE), -ENOSPC);
	assert_int_equal(size_of(io, "/f"), 0);
	assert_int_equal(io->ops->fallocate(io->context, file, 0, 2 * PAGE), 0);
	/* Reserved room is there; one page more fits, the second does not. */
	write_at(io, file, page_a, 2 * PAGE, 0);
	assert_int_equal(io->ops->pwrite(io->context, file, page_a, 2 * PAGE, 2 * PAGE), PAGE);
	assert_int_equal(io->ops->pwrite(io->context, file, page_a, PAGE, 3 * PAGE), -ENOSPC);
	assert_int_equal(io->ops->unlink(io->context, "/f"), 0);
	assert_int_equal(io->ops->close(io->context, file), 0);
	assert_int_equal(io->ops->fsync_dir(io->context, "/"), 0);
	file = open_file(io, "/g", HX_IO_CREATE);
	write_at(io, file, page_a, 2 * PAGE, 0);
}

/* ------------------------------------------------------------------ the rest */

struct watch {
	unsigned calls[16];
	size_t count;
	struct sim_disk *image;
};

static void note(struct sim_disk *disk, enum sim_call call, void *context)
{
	struct watch *watch = context;

	assert_true(watch->count < 16);
	watch->calls[watch->count++] = call;
	sim_disk_free(watch->image);
	watch->image = sim_disk_clone(disk);
}

static void every_change_is_told(void **state)
{
	struct fixture *f = *state;
	const struct hx_io *io = f->io;
	struct watch watch = {.count = 0};
	const unsigned expected[] = {SIM_MKDIR,     SIM_OPEN,      SIM_PWRITE,
				     SIM_FALLOCATE, SIM_FTRUNCATE, SIM_RENAME,
				     SIM_FDATASYNC, SIM_FSYNC_DIR, SIM_UNLINK};
	int file;

	sim_disk_observe(f->disk, note, &watch);
	assert_int_equal(io->ops->mkdir(io->context, "/d", 0700), 0);
	file = open_file(io, "/d/f", HX_IO_CREATE);
	write_at(io, file, page_a, PAGE, 0);
	(void)read_back(io, "/d/f", 0);
	assert_int_equal(io->ops->fallocate(io->context, file, 0, 2 * PAGE), 0);
	assert_int_equal(io->ops->ftruncate(io->context, file, PAGE), 0);
	assert_int_equal(io->ops->rename(io->context, "/d/f", "/d/g"), 0);
	sync_file(io, file);
	assert_int_equal(io->ops->fsync_dir(io->context, "/d"), 0);
	assert_int_equal(io->ops->unlink(io->context, "/d/g"), 0);
	assert_int_equal(watch.count, sizeof(expected) / sizeof(expected[0]));
	assert_memory_equal(watch.calls, expected, sizeof(expected));
	sim_disk_observe(f->disk, NULL, NULL);
	sim_disk_free(watch.image);
}

/* An O_DSYNC write is durable when it returns, and not before. */
static void a_synchronous_write_is_told_twice(void **state)
{
	struct fixture *f = *state;
	struct watch watch = {.count = 0};
	struct sim_fates fates;
	int file;

	make_durable(f->io, "/f", page_a, PAGE);
	file = open_file(f->io, "/f", HX_IO_DIRECT | HX_IO_DSYNC);
	sim_disk_observe(f->disk, note, &watch);
	write_at(f->io, file, page_b, PAGE, 0);
	assert_int_equal(watch.count, 2);
	sim_fates_lose_all(&fates);
	sim_disk_crash(watch.image, &fates, &f->prng);
	assert_int_equal(read_back(sim_disk_io(watch.image), "/f", 0), PAGE);
	assert_memory_equal(page_out, page_b, PAGE);
	sim_disk_observe(f->disk, NULL, NULL);
	sim_disk_free(watch.image);
}

static void a_clone_goes_its_own_way(void **state)
{
	struct fixture *f = *state;
	struct sim_disk *clone;
	uint64_t digest;

	make_durable(f->io, "/f", page_a, PAGE);
	clone = sim_disk_clone(f->disk);
	digest = sim_disk_digest(f->disk);
	write_at(sim_disk_io(clone), open_file(sim_disk_io(clone), "/f", 0), page_b, 1, 7);
	assert_int_equal(sim_disk_digest(f->disk), digest);
	assert_int_not_equal(sim_disk_digest(clone), digest);
	sim_disk_free(clone);
}

/* I15: the same seeds leave the same image. */
static void equal_seeds_give_equal_images(void **state)
{
	struct fixture *f = *state;
	uint64_t seen = 0;
	int different = 0;

	make_durable(f->io, "/f", page_a, 2 * PAGE);
	write_at(f->io, open_file(f->io, "/f", 0), page_b, 2 * PAGE, 0);
	(void)open_file(f->io, "/g", HX_IO_CREATE);
	for (uint64_t seed = 1; seed <= 50; seed++) {
		uint64_t digests[2];

		for (int i = 0; i < 2; i++) {
			struct sim_disk *image;

			hx_prng_seed(&f->prng, seed);
			image = crashed(f, NULL);
			digests[i] = sim_disk_digest(image);
			sim_disk_free(image);
		}
		assert_int_equal(digests[0], digests[1]);
		different += digests[0] != seen;
		seen = digests[0];
	}
	assert_true(different > 10);
}

static void rot_is_what_it_says(void **state)
{
	struct fixture *f = *state;
	uint64_t size = 0;

	make_durable(f->io, "/f", page_a, PAGE);
	make_durable(f->io, "/g", page_b, SECTOR);
	assert_string_equal(sim_disk_path(f->disk, 0, &size), "/f");
	assert_int_equal(size, PAGE);
	assert_string_equal(sim_disk_path(f->disk, 1, &size), "/g");
	assert_null(sim_disk_path(f->disk, 2, &size));
	sim_disk_flip(f->disk, "/f", 8 * 100 + 1);
	(void)read_back(f->io, "/f", HX_IO_DIRECT);
	assert_int_equal(page_out[100], 'a' ^ 2);
	assert_int_equal(page_out[99], 'a');
	sim_disk_swap(f->disk, "/f", "/g");
	assert_int_equal(size_of(f->io, "/g"), PAGE);
	sim_disk_cut(f->disk, "/g", 7);
	assert_int_equal(size_of(f->io, "/g"), 7);
}

/* Millions of images have to be affordable. */
static void an_image_is_cheap(void **state)
{
	struct fixture *f = *state;
	uint64_t count = scale_count(1000000, 20000);
	double begin = scale_seconds();
	int file;

	for (int i = 0; i < 8; i++)
		make_durable(f->io, (char[]){'/', "abcdefgh"[i], 0}, page_a, 2 * PAGE);
	file = open_file(f->io, "/a", HX_IO_DIRECT);
	write_at(f->io, file, page_b, PAGE, 0);
	(void)open_file(f->io, "/z", HX_IO_CREATE);
	for (uint64_t i = 0; i < count; i++)
		sim_disk_free(crashed(f, NULL));
	scale_report("simulated disk: images made", count, scale_seconds() - begin, true);
}

#define DISK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DISK_TEST(a_file_keeps_what_was_written),
		DISK_TEST(names_behave),
		DISK_TEST(a_directory_lists_its_own),
		DISK_TEST(a_lock_keeps_others_out_until_it_is_closed),
		DISK_TEST(direct_io_wants_sectors),
		DISK_TEST(what_was_synced_survives),
		DISK_TEST(what_was_not_synced_meets_every_fate),
		DISK_TEST(writes_change_places),
		DISK_TEST(the_size_is_one_it_had),
		DISK_TEST(a_name_needs_its_directory_synced),
		DISK_TEST(a_rename_happens_whole_or_not_at_all),
		DISK_TEST(names_arrive_in_any_order),
		DISK_TEST(a_lost_directory_takes_its_files_along),
		DISK_TEST(an_unlinked_file_may_return),
		DISK_TEST(a_blast_hits_neighbors),
		DISK_TEST(a_failed_sync_leaves_ghosts),
		DISK_TEST(a_failed_directory_sync_loses_names),
		DISK_TEST(the_nth_call_fails_once_or_for_ever),
		DISK_TEST(a_failed_write_may_have_written_a_part),
		DISK_TEST(a_call_may_move_fewer_bytes),
		DISK_TEST(a_full_disk_says_so),
		DISK_TEST(every_change_is_told),
		DISK_TEST(a_synchronous_write_is_told_twice),
		DISK_TEST(a_clone_goes_its_own_way),
		DISK_TEST(equal_seeds_give_equal_images),
		DISK_TEST(rot_is_what_it_says),
		DISK_TEST(an_image_is_cheap),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("sim_disk", tests, NULL, NULL);
}
