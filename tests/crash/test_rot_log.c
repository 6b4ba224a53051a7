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
#include "support/scale.h"
#include "support/store_case.h"

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

/* A few dozen submits and a sweep, so that there are segments of several kinds. */
static void work(struct rot *rot, struct workload *workload, int submits)
{
	struct hapax_error err = {0};
	struct hapax_store *store = open_on(rot, rot->disk, &err);
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;

	if (!store)
		fail_msg("%s", err.message);
	for (int i = 0; i < submits; i++) {
		int64_t now_ms = CASE_EPOCH_MS + rot->clock.boot_ms;
		size_t count = workload_fill(workload, rot->model, now_ms);

		(void)hapax_store_run(store, workload->ops, count, NULL);
		workload_restore(workload, count);
		if (!model_submit(rot->model, now_ms, workload->ops, count))
			fail_msg("%s", rot->model->why);
		hx_virtual_clock_advance(&rot->clock, 50);
		if (i == submits / 2)
			while (!sweep.done)
				assert_int_equal(hapax_store_sweep(store, &sweep, &err), HAPAX_OK);
	}
	(void)model_sweep(rot->model, CASE_EPOCH_MS + rot->clock.boot_ms);
	hapax_store_close(store);
	sim_disk_kill(rot->disk);
}

static int set_up(void **state)
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
	rot->options.clock = hx_virtual_clock_clock(&rot->clock);
	/* Room for several lives in one segment. */
	rot->options.segment_bytes = 40 * 1024;
	hx_random_seed_for_tests(8);
	model_init(rot->model);
	workload_init(workload, 21);
	workload->key_count = WORKLOAD_KEYS_MAX;
	/* Opened and closed several times: what follows a clean close counts like the rest. */
	for (int life = 0; life < 10; life++) {
		if (life == 3)
			rot->early = sim_disk_clone(rot->disk);
		work(rot, workload, life < 3 ? 5 : 1);
	}
	/* Settle it: nothing is on its way. */
	sim_fates_keep_all(&fates);
	hx_prng_seed(&prng, 1);
	sim_disk_crash(rot->disk, &fates, &prng);
	sim_disk_crash(rot->early, &fates, &prng);
	free(workload);
	*state = rot;
	return 0;
}

static int tear_down(void **state)
{
	struct rot *rot = *state;

	sim_disk_free(rot->disk);
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
	assert_in_range(total, 48 * 1024, 256 * 1024);
	sim_disk_free(image);
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
		/*
		 * The end of the log is where nothing follows: without its last segment it
		 * is the log of an earlier time. Every other segment is missed.
		 */
		if (!sim_disk_path(rot->disk, i + 1, &size))
			continue;
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

/* Segments that were given up long ago and are put back: nobody believes them. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROT_TEST(an_undamaged_store_opens),
		ROT_TEST(every_bit_counts_or_does_not_matter),
		ROT_TEST(every_truncation_is_noticed),
		ROT_TEST(every_exchange_is_noticed),
		ROT_TEST(files_of_an_earlier_time_change_nothing),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("rot_log", tests, NULL, NULL);
}
