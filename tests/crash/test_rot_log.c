/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rot_log.c - I10: a store at rest is damaged in every way; it notices, or it is
 * as if nothing had happened. Never does a key silently change or vanish.
 *
 * The store is small, closed cleanly, and holds what a store may hold: several log
 * segments, class segments, records in all states. A store that refuses to open must
 * be as it was: with the damage undone it opens and holds everything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crash/content.h"
#include "crash/image.h"
#include "crash/log_subject.h"
#include "crash/workload.h"
#include "store/log/format/format.h"
#include "support/scale.h"
#include "support/store_case.h"
#include "support/virtual_clock.h"

struct rot {
	struct sim_disk *disk;  /* the store, closed */
	struct sim_disk *early; /* the same store, closed, some time before */
	struct model *model;
	struct hx_virtual_clock clock;
	struct hapax_store_options options;
	struct content *content;
	uint64_t refused;
	uint64_t harmless;
};

static struct hapax_store *open_on(struct rot *rot, struct sim_disk *disk, struct hapax_error *err)
{
	struct hapax_store *store = NULL;

	(void)log_subject.open(sim_disk_io(disk), IMAGE_PATH, &rot->options, &store, err);
	return store;
}

/* The process that has the store is killed: what closing it would write is not seen. */
static void kill_store(struct rot *rot, struct hapax_store *store)
{
	struct sim_disk *left = sim_disk_clone(rot->disk);

	hapax_store_close(store);
	sim_disk_free(rot->disk);
	rot->disk = left;
}

/* What a life of the store is. */
struct life {
	int submits;
	bool has_sweep; /* half-way, so that there are segments of several kinds */
	bool ends_killed;
};

static void work(struct rot *rot, struct workload *workload, const struct life *life)
{
	struct hapax_error err = {0};
	struct hapax_store *store = open_on(rot, rot->disk, &err);
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;

	if (!store)
		fail_msg("%s", err.message);
	for (int i = 0; i < life->submits; i++) {
		int64_t now_ms = CASE_EPOCH_MS + rot->clock.boot_ms;
		size_t count = workload_fill(workload, rot->model, now_ms);

		(void)hapax_store_run(store, workload->ops, count, NULL);
		workload_restore(workload, count);
		if (!model_submit(rot->model, now_ms, workload->ops, count))
			fail_msg("%s", rot->model->why);
		hx_virtual_clock_advance(&rot->clock, 50);
		if (life->has_sweep && i == life->submits / 2)
			while (!sweep.done)
				assert_int_equal(hapax_store_sweep(store, &sweep, &err), HAPAX_OK);
	}
	(void)model_sweep(rot->model, CASE_EPOCH_MS + rot->clock.boot_ms);
	if (life->ends_killed) {
		kill_store(rot, store);
		return;
	}
	hapax_store_close(store);
	sim_disk_kill(rot->disk);
}

/* How each of the lives ends: '.' closed, 'x' killed. */
static int set_up_lives(void **state, const char *lives)
{
	struct rot *rot = calloc(1, sizeof(*rot));
	struct workload *workload = calloc(1, sizeof(*workload));
	struct hx_prng prng;
	struct sim_fates fates;

	if (!rot || !workload)
		return -1;
	rot->disk = sim_disk_new(3);
	rot->model = calloc(1, sizeof(*rot->model));
	rot->content = content_new();
	hx_virtual_clock_init(&rot->clock, CASE_EPOCH_MS);
	rot->options = (struct hapax_store_options)HAPAX_STORE_OPTIONS_INIT;
	rot->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	rot->options.keys_max = IMAGE_KEYS_MAX;
	rot->options.clock = hx_virtual_clock_clock(&rot->clock);
	/* Room for several lives in one segment. */
	rot->options.segment_bytes = 40 * 1024;
	hx_random_seed_for_tests(8);
	model_init(rot->model);
	workload_init(workload, 21);
	workload->key_count = WORKLOAD_KEYS_MAX;
	/* Opened and closed several times: what follows a clean close counts like the rest. */
	for (int i = 0; lives[i] != '\0'; i++) {
		/* Nothing is tidied in the last two: they share a segment, with a close in its middle. */
		bool is_last = strlen(lives + i) <= 2 && i > 0;
		struct life life = {
			.submits = i < 3 || is_last ? 5 : 1,
			.has_sweep = !is_last,
			.ends_killed = lives[i] == 'x',
		};

		if (i == 3)
			rot->early = sim_disk_clone(rot->disk);
		work(rot, workload, &life);
	}
	/* Settle it: nothing is on its way. */
	sim_fates_keep_all(&fates);
	hx_prng_seed(&prng, 1);
	sim_disk_crash(rot->disk, &fates, &prng);
	if (rot->early)
		sim_disk_crash(rot->early, &fates, &prng);
	free(workload);
	*state = rot;
	return 0;
}

static int set_up(void **state)
{
	return set_up_lives(state, "..........");
}

/* The log goes on in a new segment, behind one without a seal, and ends so. */
static int set_up_killed(void **state)
{
	return set_up_lives(state, "..x.x");
}

/* One life: a log of one segment, perhaps with one prepared. */
static int set_up_young(void **state)
{
	return set_up_lives(state, ".");
}

static int tear_down(void **state)
{
	struct rot *rot = *state;

	sim_disk_free(rot->disk);
	if (rot->early)
		sim_disk_free(rot->early);
	content_free(rot->content);
	free(rot->model);
	free(rot);
	hx_random_seed_for_tests(0);
	return 0;
}

/* Open a damaged disk: refused with a reason, or all is there. */
static bool judge(struct rot *rot, struct sim_disk *disk, const char *what, uint64_t place)
{
	struct hapax_error err = {0};
	struct hapax_store *store = open_on(rot, disk, &err);
	bool ok;

	if (!store) {
		rot->refused++;
		if ((err.status != HAPAX_ERR_CORRUPT && err.status != HAPAX_ERR_UNSUPPORTED &&
		     err.status != HAPAX_ERR_INVALID) ||
		    err.message[0] == '\0') {
			printf("# %s %llu: refused with %s: %s\n", what, (unsigned long long)place,
			       hapax_status_name(err.status), err.message);
			return false;
		}
		return true;
	}
	rot->harmless++;
	ok = content_read(rot->content, store) && content_is(rot->content, rot->model);
	/* I5, I8: nor do token and clock go back, or ahead of where they were. */
	if (ok &&
	    (rot->content->token < rot->model->token_max ||
	     rot->content->token > rot->model->token_max + 1000 ||
	     rot->content->now_ms != CASE_EPOCH_MS + rot->clock.boot_ms)) {
		snprintf(
			rot->content->why, sizeof(rot->content->why), "token %llu, clock %lld",
			(unsigned long long)rot->content->token,
			(long long)(rot->content->now_ms - CASE_EPOCH_MS));
		ok = false;
	}
	if (!ok)
		printf("# I10: %s %llu: %s\n", what, (unsigned long long)place, rot->content->why);
	hapax_store_close(store);
	return ok;
}

static void report(struct rot *rot, const char *what, uint64_t count, double begin)
{
	printf("# %llu refused, %llu harmless\n", (unsigned long long)rot->refused,
	       (unsigned long long)rot->harmless);
	scale_report(what, count, scale_seconds() - begin, true);
}

static uint64_t total_bytes(struct rot *rot)
{
	uint64_t size = 0, total = 0;

	for (size_t i = 0; sim_disk_path(rot->disk, i, &size); i++)
		total += size;
	return total;
}

static void an_undamaged_store_opens(void **state)
{
	struct rot *rot = *state;
	struct sim_disk *image = sim_disk_clone(rot->disk);
	uint64_t total = total_bytes(rot);

	assert_true(judge(rot, image, "as it is", 0));
	assert_int_equal(rot->harmless, 1);
	printf("# %llu bytes\n", (unsigned long long)total);
	assert_in_range(total, 48 * 1024, 320 * 1024);
	sim_disk_free(image);
}

static bool is_frame(struct sim_disk *disk, const char *path, uint64_t block)
{
	const struct hx_io *io = sim_disk_io(disk);
	int file = io->ops->open(io->context, path, HX_IO_READ, 0);
	char magic[4] = "";

	assert_true(file >= 0);
	(void)io->ops->pread(io->context, file, magic, sizeof(magic), block * 4096);
	(void)io->ops->close(io->context, file);
	return memcmp(magic, "HXFR", 4) == 0;
}

/* Marks of tokens and time stand in frames' headers: of those, every few bits in any case. */
static void headers_of_frames_are_guarded(void **state)
{
	struct rot *rot = *state;
	uint64_t stride = scale_is_proof() ? 1 : 9;
	double begin = scale_seconds();
	uint64_t done = 0, size = 0;
	const char *path;

	for (size_t i = 0; (path = sim_disk_path(rot->disk, i, &size)); i++)
		for (uint64_t block = 1; block < size / 4096; block++) {
			if (!is_frame(rot->disk, path, block))
				continue;
			for (uint64_t bit = block % stride; bit < 128 * 8; bit += stride) {
				struct sim_disk *image = sim_disk_clone(rot->disk);

				sim_disk_flip(image, path, block * 4096 * 8 + bit);
				if (!judge(rot, image, path, block * 4096 * 8 + bit))
					fail_msg("bit %llu of a frame", (unsigned long long)bit);
				sim_disk_free(image);
				done++;
			}
		}
	report(rot, "I10: bits flipped in headers of frames", done, begin);
	assert_true(done > 0);
}

static void every_bit_counts_or_does_not_matter(void **state)
{
	struct rot *rot = *state;
	uint64_t bits = total_bytes(rot) * 8;
	uint64_t count = scale_count(bits, 6000);
	uint64_t stride = bits / count;
	double begin = scale_seconds();
	uint64_t done = 0, size = 0, passed = 0;
	const char *path;

	stride = stride ? stride : 1;
	for (size_t i = 0; (path = sim_disk_path(rot->disk, i, &size)); i++) {
		/* A stride that meets all bits of a byte in turn. */
		for (uint64_t bit = passed % stride; bit < size * 8; bit += stride) {
			struct sim_disk *image = sim_disk_clone(rot->disk);
			uint64_t refused = rot->refused;

			sim_disk_flip(image, path, bit);
			if (!judge(rot, image, path, bit))
				fail_msg("bit %llu of %s", (unsigned long long)bit, path);
			/* Refused, it is as it was: without the damage all is there. */
			if (rot->refused > refused && done % 8 == 0) {
				sim_disk_flip(image, path, bit);
				assert_true(judge(rot, image, path, bit));
			}
			done++;
			sim_disk_free(image);
		}
		passed += size * 8;
	}
	report(rot, "I10: bits flipped in a store at rest", done, begin);
	assert_true(rot->refused > 0 && rot->harmless > 0);
}

static void every_truncation_is_noticed(void **state)
{
	struct rot *rot = *state;
	uint64_t total = total_bytes(rot);
	uint64_t count = scale_count(total, 2000);
	uint64_t stride = total / count ? total / count : 1;
	double begin = scale_seconds();
	uint64_t done = 0, size = 0;
	const char *path;

	for (size_t i = 0; (path = sim_disk_path(rot->disk, i, &size)); i++)
		for (uint64_t cut = 0; cut < size; cut += stride) {
			struct sim_disk *image = sim_disk_clone(rot->disk);

			sim_disk_cut(image, path, cut);
			if (!judge(rot, image, path, cut))
				fail_msg("%s cut to %llu", path, (unsigned long long)cut);
			done++;
			sim_disk_free(image);
		}
	report(rot, "I10: truncations of a store at rest", done, begin);
	assert_true(rot->refused > 0);
}

static bool is_segment(const char *path)
{
	return strstr(path, ".seg") != NULL;
}

/* Segments that change places, vanish, or come from a backup or another store. */
static void every_exchange_is_noticed(void **state)
{
	struct rot *rot = *state;
	double begin = scale_seconds();
	uint64_t done = 0, size;
	const char *one, *other;

	for (size_t i = 0; (one = sim_disk_path(rot->disk, i, &size)); i++) {
		struct sim_disk *image;
		char path[SIM_PATH_SIZE];

		if (!is_segment(one))
			continue;
		memcpy(path, one, strlen(one) + 1);
		for (size_t k = i + 1; (other = sim_disk_path(rot->disk, k, &size)); k++) {
			if (!is_segment(other))
				continue;
			image = sim_disk_clone(rot->disk);
			sim_disk_swap(image, path, other);
			assert_true(judge(rot, image, "exchanged", i * 1000 + k));
			sim_disk_free(image);
			done++;
		}
		image = sim_disk_clone(rot->disk);
		assert_int_equal(
			sim_disk_io(image)->ops->unlink(sim_disk_io(image)->context, path), 0);
		if (!judge(rot, image, path, i))
			fail_msg("%s is missing", path);
		sim_disk_free(image);
		done++;
	}
	report(rot, "I10: segments exchanged or missing", done, begin);
	assert_true(rot->refused > 0);
}

enum { FILES_MAX = 14 };

/* The files of the store that count, LOCK left out; how many. */
static size_t list_files(
	struct rot *rot, char paths[FILES_MAX][SIM_PATH_SIZE], bool *ret_is_segment)
{
	const char *path;
	size_t count = 0;
	uint64_t size;

	for (size_t i = 0; (path = sim_disk_path(rot->disk, i, &size)); i++) {
		/* The reserve holds no data. */
		if (strstr(path, "LOCK") || strstr(path, "RESERVE."))
			continue;
		assert_true(count < FILES_MAX);
		memcpy(paths[count], path, strlen(path) + 1);
		ret_is_segment[count++] = is_segment(path);
	}
	return count;
}

/*
 * Files vanish, in every combination: a backup that leaves out log-*, a restore that was cut
 * short. With nothing left but an empty directory there is nothing to be noticed.
 */
static void every_combination_of_missing_files_is_noticed(void **state)
{
	struct rot *rot = *state;
	char paths[FILES_MAX][SIM_PATH_SIZE];
	bool are_segments[FILES_MAX];
	size_t count = list_files(rot, paths, are_segments);
	double begin = scale_seconds();
	uint64_t done = 0;

	printf("# %zu files\n", count);
	for (unsigned gone = 1; gone < 1u << count; gone++) {
		struct sim_disk *image = sim_disk_clone(rot->disk);
		const struct hx_io *io = sim_disk_io(image);
		bool is_anything_left = false;

		for (size_t i = 0; i < count; i++) {
			if (gone & 1u << i)
				assert_int_equal(io->ops->unlink(io->context, paths[i]), 0);
			else
				is_anything_left = true;
		}
		if (is_anything_left && !judge(rot, image, "missing files", gone)) {
			for (size_t i = 0; i < count; i++)
				printf("# %s %s\n", gone & 1u << i ? "gone" : "left", paths[i]);
			fail_msg("combination %x", gone);
		}
		sim_disk_free(image);
		done++;
	}
	report(rot, "I10: combinations of files that are missing", done, begin);
	assert_true(rot->refused > 0);
}

/* STORE as it was before it named a log segment. */
static void forget_vouched(struct sim_disk *disk)
{
	const struct hx_io *io = sim_disk_io(disk);
	int file = io->ops->open(io->context, IMAGE_PATH "/STORE", HX_IO_READ | HX_IO_WRITE, 0);
	unsigned char block[HX_LOG_BLOCK_SIZE];
	struct hx_log_store_file store;

	assert_true(file >= 0);
	assert_int_equal(hx_io_read_full(io, file, block, sizeof(block), 0), sizeof(block));
	assert_int_equal(hx_log_store_decode(block, &store, NULL), HAPAX_OK);
	assert_true(store.log_id != 0);
	store.log_id = 0;
	hx_log_store_encode(&store, block);
	assert_int_equal(hx_io_write_full(io, file, block, sizeof(block), 0), 0);
	assert_int_equal(io->ops->close(io->context, file), 0);
}

static void class_segments_alone_are_no_new_store(void **state)
{
	struct rot *rot = *state;
	struct sim_disk *image = sim_disk_clone(rot->disk);
	const struct hx_io *io = sim_disk_io(image);
	char paths[FILES_MAX][SIM_PATH_SIZE];
	bool are_segments[FILES_MAX];
	size_t count = list_files(rot, paths, are_segments);

	forget_vouched(image);
	for (size_t i = 0; i < count; i++)
		if (strstr(paths[i], "/log-"))
			assert_int_equal(io->ops->unlink(io->context, paths[i]), 0);
	assert_true(judge(rot, image, "without a log", 0));
	assert_int_equal(rot->refused, 1);
	sim_disk_free(image);
}

/* Write a file of one disk over that of another. */
static void copy_file(struct sim_disk *from, struct sim_disk *to, const char *path)
{
	static unsigned char buffer[1 << 20];
	const struct hx_io *source = sim_disk_io(from), *target = sim_disk_io(to);
	int in = source->ops->open(source->context, path, HX_IO_READ, 0);
	int out = target->ops->open(
		target->context, path, HX_IO_WRITE | HX_IO_CREATE | HX_IO_TRUNCATE, 0600);
	ssize_t size;

	assert_true(in >= 0 && out >= 0);
	size = hx_io_read_full(source, in, buffer, sizeof(buffer), 0);
	assert_true(size >= 0 && (size_t)size < sizeof(buffer));
	assert_int_equal(hx_io_write_full(target, out, buffer, (size_t)size, 0), 0);
	assert_int_equal(target->ops->fdatasync(target->context, out), 0);
	assert_int_equal(target->ops->fsync_dir(target->context, IMAGE_PATH), 0);
	assert_int_equal(source->ops->close(source->context, in), 0);
	assert_int_equal(target->ops->close(target->context, out), 0);
}

/* Segments that were given up long ago and are put back: the store does not trust them. */
static void files_of_an_earlier_time_change_nothing(void **state)
{
	struct rot *rot = *state;
	double begin = scale_seconds();
	uint64_t done = 0, size;
	const char *path;

	for (size_t i = 0; (path = sim_disk_path(rot->early, i, &size)); i++) {
		struct sim_disk *image = sim_disk_clone(rot->disk);

		copy_file(rot->early, image, path);
		if (!judge(rot, image, path, i))
			fail_msg("%s from a backup", path);
		sim_disk_free(image);
		done++;
	}
	report(rot, "I10: single files put back from a backup", done, begin);
	assert_true(done > 4);
}

#define ROT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define ROT_TEST_KILLED(name)                                              \
	{                                                                  \
#name " after kills", name, set_up_killed, tear_down, NULL \
	}
#define ROT_TEST_YOUNG(name)                                                   \
	{                                                                      \
#name " of a young store", name, set_up_young, tear_down, NULL \
	}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ROT_TEST(an_undamaged_store_opens),
		ROT_TEST(headers_of_frames_are_guarded),
		ROT_TEST(every_bit_counts_or_does_not_matter),
		ROT_TEST(every_truncation_is_noticed),
		ROT_TEST(every_exchange_is_noticed),
		ROT_TEST(every_combination_of_missing_files_is_noticed),
		ROT_TEST_KILLED(every_combination_of_missing_files_is_noticed),
		ROT_TEST_YOUNG(every_combination_of_missing_files_is_noticed),
		ROT_TEST(class_segments_alone_are_no_new_store),
		ROT_TEST(files_of_an_earlier_time_change_nothing),
	};

	/* A pattern: only tests of that name. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("rot_log", tests, NULL, NULL);
}
