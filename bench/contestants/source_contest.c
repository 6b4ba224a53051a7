/* SPDX-License-Identifier: Apache-2.0 */
#include "source_contest.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "folder.h"

void source_contest_see(struct source_contest *contest, size_t size)
{
	if (contest->bytes == 0)
		contest_start(&contest->time);
	contest->bytes += size;
}

static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	source_contest_see(context, work->event->data.size);
	return HAPAX_RUN_OK;
}

static void run(void *arg)
{
	struct source_contest *contest = arg;
	struct hapax_error err;

	contest_expect_ok(hapax_consumer_run(contest->consumer, &err), &err, "consume");
}

/* Until the last one is acknowledged. */
static void watch(struct source_contest *contest, struct hapax_consumer_stats *stats)
{
	do {
		struct timespec pause = {0, 1000000};

		(void)nanosleep(&pause, NULL);
		hapax_consumer_stats(contest->consumer, stats);
	} while (stats->acknowledged < contest->messages);
}

static void consume_hapax(struct source_contest *contest, const char *path, const char *from)
{
	struct hapax_registration row = HAPAX_REGISTRATION_INIT;
	struct hapax_consumer_options options = HAPAX_CONSUMER_OPTIONS_INIT;
	struct hapax_consumer_stats stats = HAPAX_CONSUMER_STATS_INIT;
	char url[FOLDER_PATH_SIZE + 16];
	struct hapax_source *source = NULL;
	struct hapax_store *store = NULL;
	struct hx_thread thread;
	struct hapax_error err;

	row.handler = handle;
	row.context = contest;
	options.flags = HAPAX_CONSUMER_INLINE;
	options.rows = &row;
	options.row_count = 1;
	options.prefetch = contest->ops->in_hand;
	options.parallel = contest->ops->in_hand;
	(void)snprintf(url, sizeof(url), "file:%s/store", path);
	contest_expect_ok(hapax_store_open(url, NULL, &store, &err), &err, url);
	contest_expect_ok(hapax_source_open(from, &source, &err), &err, from);
	contest_expect_ok(
		hapax_consumer_new(source, store, &options, &contest->consumer, &err), &err, from);
	contest_expect_ok(hx_thread_start(&thread, run, contest, "consumer", &err), &err, "thread");
	watch(contest, &stats);
	hapax_consumer_stop(contest->consumer);
	hx_thread_join(&thread);
	hapax_consumer_free(contest->consumer);
	contest_stop(&contest->time);
	if (stats.runs[HAPAX_RUN_OK] != contest->messages)
		contest_fail("some ran twice, or not");
	hapax_store_close(store);
}

static void round_of(uint64_t seed, void *context)
{
	struct source_contest *contest = context;
	char path[FOLDER_PATH_SIZE];
	char url[SOURCE_URL_SIZE];

	contest->seed = seed;
	contest->time = (struct contest_time){0, 0};
	contest->bytes = 0;
	contest->ops->fill(contest, url);
	folder_make(contest->folder, path);
	if (strcmp(contest->mode, "bare") == 0)
		contest->ops->consume_bare(contest);
	else
		consume_hapax(contest, path, url);
	if (contest->bytes != contest->messages * SOURCE_DATA_SIZE)
		contest_fail("not every message was seen once");
	folder_remove(path);
	contest_print_time("consume", &contest->time, contest->messages);
}

int source_contest_main(const struct source_contest_ops *ops, void *context, int argc, char **argv)
{
	static const struct option options[] = {
		{"mode", required_argument, NULL, 'm'},
		{"messages", required_argument, NULL, 'n'},
		{"folder", required_argument, NULL, 'f'},
		{NULL, 0, NULL, 0},
	};
	struct source_contest contest = {
		.ops = ops, .context = context, .mode = "bare", .folder = ".", .messages = 20000};
	int option;
	bool is_bare;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'm': contest.mode = optarg; break;
		case 'n': contest.messages = contest_parse_count(optarg); break;
		case 'f': contest.folder = optarg; break;
		default: return 64;
		}
	}
	is_bare = strcmp(contest.mode, "bare") == 0;
	contest_run(
		is_bare ? ops->name : "hapax", is_bare ? ops->version : hapax_version(), round_of,
		&contest);
	return 0;
}
