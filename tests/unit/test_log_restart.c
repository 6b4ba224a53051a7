/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_restart.c - a store that is large enough for its files to be read by several
 * threads, with the memory made ready beside them: it opens as it was closed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <hapax/hapax.h>

#include "support/temp_dir.h"

enum {
	KEYS = 320000, /* 23 MB in several segments: threads begin with 16 MiB */
	BATCH = 1024,
	FORGOTTEN_EVERY = 100,
};

struct scene {
	struct temp_dir directory;
	char url[512];
	struct hapax_store *store;
};

static void open_store(struct scene *scene)
{
	struct hapax_error err = {0};

	if (hapax_store_open(scene->url, NULL, &scene->store, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

static void close_store(struct scene *scene)
{
	hapax_store_close(scene->store);
	scene->store = NULL;
}

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	if (scene == NULL)
		return -1;
	temp_dir_init(&scene->directory);
	snprintf(scene->url, sizeof(scene->url), "file:%s/store", scene->directory.path);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	if (scene->store != NULL)
		close_store(scene);
	temp_dir_done(&scene->directory);
	free(scene);
	return 0;
}

static bool is_forgotten(unsigned number)
{
	return number % FORGOTTEN_EVERY == 0;
}

/* An operation on every key, or on those that are forgotten. Each must be answered so. */
static void run_all(
	struct scene *scene, enum hapax_op_type type, bool only_forgotten,
	enum hapax_outcome expected)
{
	static char texts[BATCH][48];
	static struct hapax_op ops[BATCH];
	size_t count = 0;

	for (unsigned i = 0; i <= KEYS; i++) {
		if (i < KEYS && (!only_forgotten || is_forgotten(i))) {
			snprintf(
				texts[count], sizeof(texts[count]), "%08x-0000-4000-8000-%012x",
				i * 2654435761u, i);
			ops[count] = (struct hapax_op){
				.type = type, .key = hapax_bytes_from_text(texts[count])};
			count++;
		}
		if (count < BATCH && i < KEYS)
			continue;
		assert_int_equal(hapax_store_run(scene->store, ops, count, NULL), HAPAX_OK);
		for (size_t k = 0; k < count; k++) {
			if (ops[k].outcome != expected)
				fail_msg("%s: %s", texts[k], hapax_outcome_name(ops[k].outcome));
		}
		count = 0;
	}
}

static void sweep(struct scene *scene)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;

	while (!sweep.done)
		assert_int_equal(hapax_store_sweep(scene->store, &sweep, NULL), HAPAX_OK);
}

static uint64_t count_keys(struct scene *scene)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	assert_int_equal(hapax_store_stats(scene->store, &stats, NULL, NULL, NULL), HAPAX_OK);
	return stats.done;
}

/* I9: what is forgotten stays so, whether its REMOVE is in the log or was copied. */
static void opens_as_it_was_closed(void **state)
{
	struct scene *scene = *state;

	open_store(scene);
	run_all(scene, HAPAX_OP_CHECK, false, HAPAX_OUTCOME_ACQUIRED);
	sweep(scene);
	run_all(scene, HAPAX_OP_FORGET, true, HAPAX_OUTCOME_APPLIED);
	close_store(scene);

	open_store(scene);
	assert_int_equal(count_keys(scene), KEYS - KEYS / FORGOTTEN_EVERY);
	sweep(scene);
	close_store(scene);

	open_store(scene);
	assert_int_equal(count_keys(scene), KEYS - KEYS / FORGOTTEN_EVERY);
	run_all(scene, HAPAX_OP_CHECK, true, HAPAX_OUTCOME_ACQUIRED);
	run_all(scene, HAPAX_OP_CHECK, false, HAPAX_OUTCOME_REPLAY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(opens_as_it_was_closed, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("log_restart", tests, NULL, NULL);
}
