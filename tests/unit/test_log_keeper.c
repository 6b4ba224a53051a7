/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_keeper.c - the thread that looks after the files of a log store: what it meets
 * is told, and who needs what it is making sleeps until it is made.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/thread.h"
#include "store/log/log_store.h"
#include "support/scale.h"
#include "support/store_case.h"

/* More than the keeper can overlook. */
enum { KEYS_MAX = 8192 };

/* The system's files, with a hand in between. */
struct hand {
	struct hx_io_ops ops;
	struct hx_io io;
	_Atomic int reads_fail; /* the store is open: only passes read */
	_Atomic int failed_reads;
	pid_t leader;           /* the thread that commits */
	_Atomic int is_armed;   /* the next file that another thread makes takes its time, */
	_Atomic int was_asleep; /* until the leader sleeps */
};

struct scene {
	struct store_case c;
	struct hand hand;
	char path[300];
	struct hapax_store *store;
};

static ssize_t hand_pread(void *context, int file, void *data, size_t size, uint64_t offset)
{
	struct hand *hand = context;

	if (hand->reads_fail) {
		hand->failed_reads++;
		return -EIO;
	}
	return hx_io_system()->ops->pread(NULL, file, data, size, offset);
}

/* Is the leader in a sleep that only another thread ends? */
static bool leader_sleeps(const struct hand *hand)
{
	char path[64], text[512];
	const char *end;
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)hand->leader);
	file = fopen(path, "r");
	if (file == NULL)
		return false;
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[size] = '\0';
	/* The state follows the name, which is in parentheses. */
	end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' && end[2] == 'S';
}

/* Is it the moment at which a log segment that was made ahead gets its name? */
static bool is_spare(const char *source, const char *target)
{
	size_t size = strlen(source);

	return strstr(target, "/log-") != NULL && size > 4 &&
		strcmp(source + size - 4, ".tmp") == 0;
}

/* Making a segment takes as long as the leader needs to fall asleep over it. */
static int hand_rename(void *context, const char *source, const char *target)
{
	enum { IN_A_ROW = 300 };
	struct hand *hand = context;
	double begun = scale_seconds();
	int in_a_row = 0;

	if (hand->is_armed && gettid() != hand->leader && is_spare(source, target)) {
		hand->is_armed = 0;
		/* It has to fill its segment first, however slow the disk is. */
		while (scale_seconds() - begun < 60 && in_a_row < IN_A_ROW) {
			in_a_row = leader_sleeps(hand) ? in_a_row + 1 : 0;
			hx_thread_yield();
		}
		hand->was_asleep = in_a_row == IN_A_ROW;
	}
	return hx_io_system()->ops->rename(NULL, source, target);
}

static void scene_init(struct scene *scene, uint64_t segment_bytes)
{
	struct hapax_error err = {0};

	memset(scene, 0, sizeof(*scene));
	store_case_init(&scene->c, "file:");
	scene->c.options.flags = 0;
	scene->c.options.segment_bytes = segment_bytes;
	scene->hand.ops = *hx_io_system()->ops;
	scene->hand.ops.pread = hand_pread;
	scene->hand.ops.rename = hand_rename;
	scene->hand.io = (struct hx_io){&scene->hand.ops, &scene->hand};
	scene->hand.leader = gettid();
	snprintf(scene->path, sizeof(scene->path), "%s/kept", scene->c.dir.path);
	if (hx_log_open_on(
		    &scene->hand.io, "file:kept", scene->path, &scene->c.options, &scene->store,
		    &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

static void scene_done(struct scene *scene)
{
	hapax_store_close(scene->store);
	store_case_done(&scene->c);
}

static void mark(struct scene *scene, unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++) {
		struct hapax_op op;
		char key[32];

		snprintf(key, sizeof(key), "key %u", i);
		op = case_op(&scene->c, HAPAX_OP_CHECK, key);
		assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
	}
}

static uint64_t failures(struct scene *scene)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	assert_int_equal(hapax_store_stats(scene->store, &stats, NULL, NULL, NULL), HAPAX_OK);
	return stats.tidy_failures;
}

static enum hapax_status sweep(struct scene *scene, struct hapax_error *err)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;

	return hapax_store_sweep(scene->store, &sweep, err);
}

/* A segment that cannot be read any more is counted and named, and left alone for a while. */
static void passes_that_fail_are_told(void **state)
{
	struct hapax_error err = {0};
	struct scene scene;
	double begun;
	int tried;

	(void)state;
	scene_init(&scene, 65536);
	scene.hand.reads_fail = 1;
	assert_int_equal(failures(&scene), 0);
	/* Some segments: the keeper has something to copy. */
	for (unsigned first = 0; failures(&scene) == 0 && first < KEYS_MAX; first += 8)
		mark(&scene, first, 8);
	assert_true(failures(&scene) > 0);
	assert_int_not_equal(sweep(&scene, &err), HAPAX_OK);
	assert_int_equal(err.os_errno, EIO);
	/* The store works on, and the keeper, though called for each new segment, waits. */
	begun = scale_seconds();
	tried = scene.hand.failed_reads;
	mark(&scene, KEYS_MAX, 128);
	/* For two seconds at first; where these commits take longer, it may try again. */
	assert_true(
		scene.hand.failed_reads <= tried + 2 + 2 * (int)((scale_seconds() - begun) / 2));
	/* When it can be read again, all is well. */
	scene.hand.reads_fail = 0;
	while (failures(&scene) != 0)
		hx_thread_yield();
	assert_int_equal(sweep(&scene, &err), HAPAX_OK);
	scene_done(&scene);
}

/* The active segment is full, and the next one is being made: the leader sleeps. */
static void who_needs_a_segment_sleeps(void **state)
{
	struct scene scene;

	(void)state;
	/* So large that the keeper is called long before it is full. */
	scene_init(&scene, 1 << 20);
	scene.hand.is_armed = 1;
	for (unsigned first = 0; scene.hand.is_armed && first < KEYS_MAX; first += 8)
		mark(&scene, first, 8);
	/* A segment full, whatever it had room for. */
	mark(&scene, KEYS_MAX, 300);
	assert_true(scene.hand.was_asleep);
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_that_fail_are_told),
		cmocka_unit_test(who_needs_a_segment_sleeps),
	};

	return cmocka_run_group_tests_name("log_keeper", tests, NULL, NULL);
}
