/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_restart.c - how long a store of the kind file: takes to open, with the page
 * cache evicted before. Filled once, opened in every round.
 *
 *	--folder DIR  where the store is made
 *	--keys N
 *	--fill HOW    dense: batches of 1,024; lone: one commit for each key
 *	--fill-in DIR fill it there, and copy it to the folder: millions of lone commits take
 *	              hours on a disk and a minute in memory, and leave the same files
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

/* What a store takes while it is filled: segments, and for each key. */
enum { ROOM_BYTES = 1 << 30, ROOM_BYTES_KEY = 200 };

struct restart_contest {
	const char *folder;
	const char *fill;
	const char *fill_in;
	uint64_t keys;
	char path[FOLDER_PATH_SIZE];
	char url[FOLDER_PATH_SIZE + 32];
};

static struct hapax_store *open_store(const char *url)
{
	struct hapax_store *store = NULL;
	struct hapax_error err;

	contest_expect_ok(hapax_store_open(url, NULL, &store, &err), &err, url);
	return store;
}

static void sweep_all(struct hapax_store *store)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_error err;

	while (!sweep.done)
		contest_expect_ok(hapax_store_sweep(store, &sweep, &err), &err, "sweep");
}

static void fill(const struct restart_contest *contest, const char *url)
{
	static char texts[BATCH][KEY_TEXT_SIZE];
	static struct hapax_op ops[BATCH];
	uint64_t batch = strcmp(contest->fill, "lone") == 0 ? 1 : BATCH;
	struct hapax_store *store = open_store(url);
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

/* Where there is room for it, fill elsewhere. */
static void fill_in(const struct restart_contest *contest)
{
	unsigned long long wanted = ROOM_BYTES + contest->keys * ROOM_BYTES_KEY;
	char made[FOLDER_PATH_SIZE], store[FOLDER_PATH_SIZE + 16];
	char url[FOLDER_PATH_SIZE + 32], target[FOLDER_PATH_SIZE + 16];

	if (contest->fill_in == NULL || folder_room(contest->fill_in) < wanted) {
		fill(contest, contest->url);
		return;
	}
	folder_make(contest->fill_in, made);
	snprintf(store, sizeof(store), "%s/store", made);
	snprintf(url, sizeof(url), "file:%s", store);
	snprintf(target, sizeof(target), "%s/store", contest->path);
	fill(contest, url);
	folder_copy(store, target);
	folder_remove(made);
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
	store = open_store(contest->url);
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
		{"fill-in", required_argument, NULL, 'i'},
		{NULL, 0, NULL, 0},
	};
	struct restart_contest contest = {.folder = ".", .fill = "dense", .keys = 100000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'f': contest.folder = optarg; break;
		case 'k': contest.keys = contest_parse_count(optarg); break;
		case 'h': contest.fill = optarg; break;
		case 'i': contest.fill_in = optarg; break;
		default: return 64;
		}
	}
	folder_make(contest.folder, contest.path);
	snprintf(contest.url, sizeof(contest.url), "file:%s/store", contest.path);
	fill_in(&contest);
	contest_run("hapax", hapax_version(), round_of, &contest);
	folder_remove(contest.path);
	return 0;
}
