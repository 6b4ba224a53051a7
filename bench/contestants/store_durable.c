/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_durable.c - a durable store asked for new keys, through the public API only.
 *
 *	--store KIND    file or sqlite
 *	--folder DIR    where the store is made, a new one for each round
 *	--mode MODE     threads: W threads, one blocking check at a time each
 *	                async: one thread that keeps W checks outstanding, E in a submit
 *	                batch: one thread, W checks in a submit, then it waits
 *	--width W
 *	--each E        for async; 1
 *	--operations N
 *	--duplicates M  and then so many of them again, as measure "dup"
 */
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "contest.h"
#include "folder.h"
#include "keys.h"

struct durable_contest {
	const char *kind;
	const char *folder;
	const char *mode;
	uint64_t width;
	uint64_t each;
	uint64_t operations;
	uint64_t duplicates;
	uint64_t seed;
	struct hapax_store *store;
};

static void must_be(const struct hapax_op *op, enum hapax_outcome expected)
{
	if (op->status != HAPAX_OK || op->outcome != expected)
		contest_fail(
			"a check answered %s, %s", hapax_status_name(op->status),
			hapax_outcome_name(op->outcome));
}

/* ------------------------------------------------------------------ threads */

struct worker {
	const struct durable_contest *contest;
	uint64_t first;
	uint64_t count;
};

static void *work(void *arg)
{
	const struct worker *worker = arg;
	char text[KEY_TEXT_SIZE];

	for (uint64_t i = 0; i < worker->count; i++) {
		struct hapax_op op = {.type = HAPAX_OP_CHECK, .key = {text, sizeof(text)}};

		key_text(worker->contest->seed, worker->first + i, text);
		(void)hapax_store_run(worker->contest->store, &op, 1, NULL);
		must_be(&op, HAPAX_OUTCOME_ACQUIRED);
	}
	return NULL;
}

static void run_threads(const struct durable_contest *contest)
{
	struct worker *workers = calloc(contest->width, sizeof(*workers));
	pthread_t *threads = calloc(contest->width, sizeof(*threads));
	uint64_t each = contest->operations / contest->width;

	if (workers == NULL || threads == NULL)
		contest_fail("no memory");
	for (uint64_t i = 0; i < contest->width; i++) {
		workers[i] = (struct worker){.contest = contest, .first = i * each, .count = each};
		if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
			contest_fail("a thread did not start");
	}
	for (uint64_t i = 0; i < contest->width; i++)
		pthread_join(threads[i], NULL);
	free(workers);
	free(threads);
}

/* ------------------------------------------------------------------ async */

/*
 * As an event loop does it, with one submit for each of its connections, of one operation
 * or of a pipeline of them. Its completion tells the loop through an eventfd. What has
 * landed when the loop wakes up is sent again, with the next keys.
 */
struct slot {
	struct hapax_op *ops;
	char (*texts)[KEY_TEXT_SIZE];
	struct slot *next;
};

struct window {
	pthread_mutex_t mutex;
	struct slot *landed; /* Locks: mutex */
	int file;            /* eventfd: landed is not empty any more */
	struct slot *slots;
	uint64_t count;
};

static void slot_done(struct hapax_op *ops, size_t count, void *context)
{
	struct window *window = context;
	struct slot *slot = ops->context;
	bool was_empty;

	for (size_t i = 0; i < count; i++)
		must_be(&ops[i], HAPAX_OUTCOME_ACQUIRED);
	pthread_mutex_lock(&window->mutex);
	was_empty = window->landed == NULL;
	slot->next = window->landed;
	window->landed = slot;
	pthread_mutex_unlock(&window->mutex);
	if (was_empty && eventfd_write(window->file, 1) != 0)
		contest_fail("an eventfd was not written");
}

/* Everything that has landed; waits until there is something. */
static struct slot *take_landed(struct window *window)
{
	struct slot *landed = NULL;

	while (landed == NULL) {
		eventfd_t value;

		if (eventfd_read(window->file, &value) != 0)
			contest_fail("an eventfd was not read");
		pthread_mutex_lock(&window->mutex);
		landed = window->landed;
		window->landed = NULL;
		pthread_mutex_unlock(&window->mutex);
	}
	return landed;
}

static void window_init(struct window *window, uint64_t count, uint64_t each)
{
	*window = (struct window){.file = eventfd(0, EFD_CLOEXEC), .count = count};
	pthread_mutex_init(&window->mutex, NULL);
	window->slots = calloc(count, sizeof(*window->slots));
	if (window->slots == NULL || window->file < 0)
		contest_fail("no memory, or no eventfd");
	for (uint64_t i = 0; i < count; i++) {
		struct slot *slot = &window->slots[i];

		slot->ops = calloc(each, sizeof(*slot->ops));
		slot->texts = calloc(each, sizeof(*slot->texts));
		if (slot->ops == NULL || slot->texts == NULL)
			contest_fail("no memory");
	}
}

static void window_done(struct window *window)
{
	for (uint64_t i = 0; i < window->count; i++) {
		free(window->slots[i].ops);
		free(window->slots[i].texts);
	}
	close(window->file);
	free(window->slots);
	pthread_mutex_destroy(&window->mutex);
}

/* With the keys from first on. */
static void send_slot(
	const struct durable_contest *contest, struct window *window, struct slot *slot,
	uint64_t first)
{
	for (uint64_t i = 0; i < contest->each; i++) {
		key_text(contest->seed, first + i, slot->texts[i]);
		slot->ops[i] = (struct hapax_op){
			.type = HAPAX_OP_CHECK,
			.key = {slot->texts[i], KEY_TEXT_SIZE},
			.context = slot};
	}
	hapax_store_submit(
		contest->store, slot->ops, contest->each,
		(struct hapax_completion){slot_done, window});
}

static void run_async(const struct durable_contest *contest)
{
	uint64_t submits = contest->operations / contest->each;
	struct window window;
	uint64_t sent = 0, landed = 0;

	window_init(&window, contest->width / contest->each, contest->each);
	for (; sent < window.count; sent++)
		send_slot(contest, &window, &window.slots[sent], sent * contest->each);
	while (landed < submits) {
		struct slot *slot = take_landed(&window);

		while (slot != NULL) {
			struct slot *next = slot->next;

			landed++;
			if (sent < submits)
				send_slot(contest, &window, slot, sent++ * contest->each);
			slot = next;
		}
	}
	window_done(&window);
}

/* ------------------------------------------------------------------ batches */

static void run_batches(
	const struct durable_contest *contest, uint64_t operations, bool shuffled,
	enum hapax_outcome expected)
{
	char(*texts)[KEY_TEXT_SIZE] = calloc(contest->width, sizeof(*texts));
	struct hapax_op *ops = calloc(contest->width, sizeof(*ops));

	if (texts == NULL || ops == NULL)
		contest_fail("no memory");
	for (uint64_t at = 0; at < operations; at += contest->width) {
		uint64_t count =
			operations - at < contest->width ? operations - at : contest->width;

		for (uint64_t i = 0; i < count; i++) {
			uint64_t number = shuffled
				? key_shuffled(contest->seed, contest->operations, at + i)
				: at + i;

			key_text(contest->seed, number, texts[i]);
			ops[i] = (struct hapax_op){
				.type = HAPAX_OP_CHECK, .key = {texts[i], KEY_TEXT_SIZE}};
		}
		(void)hapax_store_run(contest->store, ops, count, NULL);
		for (uint64_t i = 0; i < count; i++)
			must_be(&ops[i], expected);
	}
	free(texts);
	free(ops);
}

/* ------------------------------------------------------------------ rounds */

static void round_of(uint64_t seed, void *context)
{
	struct durable_contest *contest = context;
	struct contest_time fresh = {0, 0}, again = {0, 0};
	struct hapax_error err;
	char folder[FOLDER_PATH_SIZE];
	char url[FOLDER_PATH_SIZE + 32];

	folder_make(contest->folder, folder);
	snprintf(
		url, sizeof(url), "%s:%s/%s", contest->kind, folder,
		strcmp(contest->kind, "file") == 0 ? "store" : "hapax.db");
	contest->seed = seed;
	contest_expect_ok(hapax_store_open(url, NULL, &contest->store, &err), &err, url);
	contest_start(&fresh);
	if (strcmp(contest->mode, "threads") == 0)
		run_threads(contest);
	else if (strcmp(contest->mode, "async") == 0)
		run_async(contest);
	else
		run_batches(contest, contest->operations, false, HAPAX_OUTCOME_ACQUIRED);
	contest_stop(&fresh);
	contest_print_time("check", &fresh, contest->operations);
	if (contest->duplicates > 0) {
		contest_start(&again);
		run_batches(contest, contest->duplicates, true, HAPAX_OUTCOME_REPLAY);
		contest_stop(&again);
		contest_print_time("dup", &again, contest->duplicates);
		contest_print_value(
			"disk", (double)folder_bytes(folder) / (double)contest->operations);
	}
	hapax_store_close(contest->store);
	folder_remove(folder);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"store", required_argument, NULL, 's'},
		{"folder", required_argument, NULL, 'f'},
		{"mode", required_argument, NULL, 'm'},
		{"width", required_argument, NULL, 'w'},
		{"each", required_argument, NULL, 'e'},
		{"operations", required_argument, NULL, 'n'},
		{"duplicates", required_argument, NULL, 'd'},
		{NULL, 0, NULL, 0},
	};
	struct durable_contest contest = {
		.kind = "file",
		.folder = ".",
		.mode = "batch",
		.width = 1,
		.each = 1,
		.operations = 1000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's': contest.kind = optarg; break;
		case 'f': contest.folder = optarg; break;
		case 'm': contest.mode = optarg; break;
		case 'w': contest.width = contest_parse_count(optarg); break;
		case 'e': contest.each = contest_parse_count(optarg); break;
		case 'n': contest.operations = contest_parse_count(optarg); break;
		case 'd': contest.duplicates = contest_parse_count(optarg); break;
		default: return 64;
		}
	}
	if (contest.width == 0 || contest.each == 0 || contest.width % contest.each != 0)
		contest_fail("a width is needed, and a part of it in each submit");
	contest.operations =
		(contest.operations + contest.width - 1) / contest.width * contest.width;
	contest_run("hapax", hapax_version(), round_of, &contest);
	return 0;
}
