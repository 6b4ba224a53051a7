/* SPDX-License-Identifier: Apache-2.0 */
#include "durable.h"

#include <ftw.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "contest.h"

struct durable_contest {
	const struct durable_engine *engine;
	const char *folder;
	const char *mode;
	uint64_t width;
	uint64_t operations;
	uint64_t seed;
};

struct worker {
	const struct durable_contest *contest;
	uint64_t thread;
	uint64_t first;
	uint64_t count;
	uint64_t firsts;
};

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	const struct durable_contest *contest = worker->contest;
	char key[1][KEY_TEXT_SIZE];

	for (uint64_t i = 0; i < worker->count; i++) {
		key_text(contest->seed, worker->first + i, key[0]);
		worker->firsts +=
			contest->engine->mark(worker->thread, (const char(*)[KEY_TEXT_SIZE])key, 1);
	}
	return NULL;
}

static uint64_t run_threads(const struct durable_contest *contest)
{
	struct worker *workers = calloc(contest->width, sizeof(*workers));
	pthread_t *threads = calloc(contest->width, sizeof(*threads));
	uint64_t each = contest->operations / contest->width;
	uint64_t firsts = 0;

	if (workers == NULL || threads == NULL)
		contest_fail("no memory");
	for (uint64_t i = 0; i < contest->width; i++) {
		workers[i] = (struct worker){
			.contest = contest, .thread = i, .first = i * each, .count = each};
		if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
			contest_fail("a thread did not start");
	}
	for (uint64_t i = 0; i < contest->width; i++) {
		pthread_join(threads[i], NULL);
		firsts += workers[i].firsts;
	}
	free(workers);
	free(threads);
	return firsts;
}

static uint64_t run_batches(const struct durable_contest *contest)
{
	char(*keys)[KEY_TEXT_SIZE] = calloc(contest->width, sizeof(*keys));
	uint64_t firsts = 0;

	if (keys == NULL)
		contest_fail("no memory");
	for (uint64_t at = 0; at < contest->operations; at += contest->width) {
		for (uint64_t i = 0; i < contest->width; i++)
			key_text(contest->seed, at + i, keys[i]);
		firsts += contest->engine->mark(
			0, (const char(*)[KEY_TEXT_SIZE])keys, contest->width);
	}
	free(keys);
	return firsts;
}

static void round_of(uint64_t seed, void *context)
{
	struct durable_contest *contest = context;
	bool threads = strcmp(contest->mode, "threads") == 0;
	struct contest_time time = {0, 0};
	char folder[512];
	uint64_t firsts;

	snprintf(folder, sizeof(folder), "%s/durable-XXXXXX", contest->folder);
	if (mkdtemp(folder) == NULL)
		contest_fail("no folder in '%s'", contest->folder);
	contest->seed = seed;
	contest->engine->open(folder, threads ? contest->width : 1);
	contest_start(&time);
	firsts = threads ? run_threads(contest) : run_batches(contest);
	contest_stop(&time);
	contest->engine->close();
	if (firsts != contest->operations)
		contest_fail(
			"%llu of %llu keys were new", (unsigned long long)firsts,
			(unsigned long long)contest->operations);
	if (nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
		contest_fail("'%s' was not removed", folder);
	contest_print_time("check", &time, contest->operations);
}

int durable_main(int argc, char **argv, const struct durable_engine *engine)
{
	static const struct option options[] = {
		{"folder", required_argument, NULL, 'f'},
		{"mode", required_argument, NULL, 'm'},
		{"width", required_argument, NULL, 'w'},
		{"engine", required_argument, NULL, 'e'},
		{"operations", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	struct durable_contest contest = {
		.engine = engine, .folder = ".", .mode = "batch", .width = 1, .operations = 1000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'f': contest.folder = optarg; break;
		case 'm': contest.mode = optarg; break;
		case 'w': contest.width = contest_parse_count(optarg); break;
		case 'n': contest.operations = contest_parse_count(optarg); break;
		case 'e':
			if (engine->option == NULL || !engine->option(optarg))
				contest_fail("unknown option '%s'", optarg);
			break;
		default: return 64;
		}
	}
	if (contest.width == 0)
		contest_fail("a width is needed");
	/* Whole batches, the same number for each thread. */
	contest.operations =
		(contest.operations + contest.width - 1) / contest.width * contest.width;
	contest_run(engine->name, engine->version, round_of, &contest);
	return 0;
}
