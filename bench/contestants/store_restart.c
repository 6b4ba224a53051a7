/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_restart.c - how long a store of the kind file: takes to open, with the page
 * cache evicted before. Filled once, opened in every round.
 *
 *	--folder DIR  where the store is made
 *	--keys N
 *	--fill HOW    dense: batches of 1,024; lone: one commit for each key
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "contest.h"
#include "folder.h"
#include "keys.h"

enum { FILL_SEED = 7, BATCH = 1024 };

struct restart_contest {
	const char *folder;
	const char *fill;
	uint64_t keys;
	char path[FOLDER_PATH_SIZE];
	char url[FOLDER_PATH_SIZE + 32];
};

static struct hapax_store *open_store(const struct restart_contest *contest)
{
	struct hapax_store *store = NULL;
	struct hapax_error err;

	contest_expect_ok(hapax_store_open(contest->url, NULL, &store, &err), &err, contest->url);
	return store;
}

static void sweep_all(struct hapax_store *store)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_error err;

	while (!sweep.done)
		contest_expect_ok(hapax_store_sweep(store, &sweep, &err), &err, "sweep");
}

static void fill(const struct restart_contest *contest)
{
	static char texts[BATCH][KEY_TEXT_SIZE];
	static struct hapax_op ops[BATCH];
	uint64_t batch = strcmp(contest->fill, "lone") == 0 ? 1 : BATCH;
	struct hapax_store *store = open_store(contest);
	struct hapax_error err;

	for (uint64_t at = 0; at < contest->keys; at += batch) {
		uint64_t count = contest->keys - at < batch ? contest->keys - at : batch;

		for (uint64_t i = 0; i < count; i++) {
			key_text(FILL_SEED, at + i, texts[i]);
			ops[i] = (struct hapax_op){
				.type = HAPAX_OP_CHECK, .key = {texts[i], KEY_TEXT_SIZE}};
		}
		contest_expect_ok(hapax_store_run(store, ops, count, &err), &err, "fill");
	}
	/* As a store is after a while: what was sealed has been copied together. */
	sweep_all(store);
	hapax_store_close(store);
}

static void round_of(uint64_t seed, void *context)
{
	struct restart_contest *contest = context;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct contest_time time = {0, 0};
	struct hapax_store *store;
	struct hapax_error err;

	(void)seed;
	folder_evict(contest->path);
	contest_start(&time);
	store = open_store(contest);
	contest_stop(&time);
	contest_expect_ok(hapax_store_stats(store, &stats, NULL, NULL, &err), &err, "stats");
	if (stats.keys != contest->keys)
		contest_fail(
			"%llu keys of %llu came back", (unsigned long long)stats.keys,
			(unsigned long long)contest->keys);
	hapax_store_close(store);
	contest_print_time("open", &time, 1);
	contest_print_value("disk", (double)folder_bytes(contest->path) / (double)contest->keys);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"folder", required_argument, NULL, 'f'},
		{"keys", required_argument, NULL, 'k'},
		{"fill", required_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct restart_contest contest = {.folder = ".", .fill = "dense", .keys = 100000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'f': contest.folder = optarg; break;
		case 'k': contest.keys = contest_parse_count(optarg); break;
		case 'h': contest.fill = optarg; break;
		default: return 64;
		}
	}
	folder_make(contest.folder, contest.path);
	snprintf(contest.url, sizeof(contest.url), "file:%s/store", contest.path);
	fill(&contest);
	contest_run("hapax", hapax_version(), round_of, &contest);
	folder_remove(contest.path);
	return 0;
}
