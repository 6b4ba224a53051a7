/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_check.c - a store asked by one thread: every key once as new, then some of
 * them as duplicates, through the public API only.
 *
 *	--url URL       the store; memory: unless told
 *	--keys N        keys that are marked, as measure "new"
 *	--duplicates M  keys of those that are asked for again in another order, as measure "dup"
 *	--batch B       operations a submit; 0 is hapax_store_check(), the plain single call
 *	--block K       key texts that are made at a time, outside of the clock; 0 is all
 */
#include <getopt.h>
#include <stdlib.h>

#include <hapax/hapax.h>

#include "contest.h"
#include "keys.h"

struct check_contest {
	const char *url;
	uint64_t keys;
	uint64_t duplicates;
	uint64_t batch;
	uint64_t block;
	char *first_texts;
	char *second_texts; /* other memory: no contestant shall gain from equal pointers */
	struct hapax_op *ops;
};

static struct hapax_bytes text_at(const char *texts, uint64_t index)
{
	return (struct hapax_bytes){texts + index * KEY_TEXT_SIZE, KEY_TEXT_SIZE};
}

static uint64_t check_single(
	struct hapax_store *store, const char *texts, uint64_t count, enum hapax_outcome expected)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < count; i++) {
		enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;

		if (hapax_store_check(store, text_at(texts, i), 0, &outcome, NULL) != HAPAX_OK)
			wrong++;
		wrong += outcome != expected;
	}
	return wrong;
}

struct batch_answers {
	enum hapax_outcome expected;
	uint64_t wrong;
	uint64_t completed;
};

static void batch_complete(struct hapax_op *ops, size_t count, void *context)
{
	struct batch_answers *answers = context;

	for (size_t i = 0; i < count; i++)
		answers->wrong += ops[i].status != HAPAX_OK || ops[i].outcome != answers->expected;
	answers->completed += count;
}

/* The array is set up once and used again, as a consumer of batches does. */
static uint64_t check_batches(
	struct hapax_store *store, struct hapax_op *ops, uint64_t batch, const char *texts,
	uint64_t count, enum hapax_outcome expected)
{
	struct batch_answers answers = {.expected = expected};

	for (uint64_t begin = 0; begin < count; begin += batch) {
		uint64_t size = count - begin < batch ? count - begin : batch;

		for (uint64_t i = 0; i < size; i++)
			ops[i].key = text_at(texts, begin + i);
		hapax_store_submit(
			store, ops, size, (struct hapax_completion){batch_complete, &answers});
		if (answers.completed != begin + size)
			contest_fail("a submit was not complete when it returned");
	}
	return answers.wrong;
}

static uint64_t check(
	const struct check_contest *contest, struct hapax_store *store, const char *texts,
	uint64_t count, enum hapax_outcome expected)
{
	if (contest->batch == 0)
		return check_single(store, texts, count, expected);
	return check_batches(store, contest->ops, contest->batch, texts, count, expected);
}

/* These two have names of their own so that callgrind can count inside of them (rows/instructions). */
__attribute__((noinline)) static uint64_t pass_new(
	const struct check_contest *contest, struct hapax_store *store, uint64_t count)
{
	return check(contest, store, contest->first_texts, count, HAPAX_OUTCOME_ACQUIRED);
}

__attribute__((noinline)) static uint64_t pass_dup(
	const struct check_contest *contest, struct hapax_store *store, uint64_t count)
{
	return check(contest, store, contest->second_texts, count, HAPAX_OUTCOME_REPLAY);
}

static void round_new(const struct check_contest *contest, struct hapax_store *store, uint64_t seed)
{
	struct contest_time time = {0, 0};
	uint64_t wrong = 0;

	for (uint64_t begin = 0; begin < contest->keys; begin += contest->block) {
		uint64_t left = contest->keys - begin;
		uint64_t size = left < contest->block ? left : contest->block;

		for (uint64_t i = 0; i < size; i++)
			key_text(seed, begin + i, contest->first_texts + i * KEY_TEXT_SIZE);
		contest_start(&time);
		wrong += pass_new(contest, store, size);
		contest_stop(&time);
	}
	if (wrong > 0)
		contest_fail("%llu new keys were not acquired", (unsigned long long)wrong);
	contest_print_time("new", &time, contest->keys);
}

static void round_dup(const struct check_contest *contest, struct hapax_store *store, uint64_t seed)
{
	struct contest_time time = {0, 0};
	uint64_t wrong = 0;

	for (uint64_t begin = 0; begin < contest->duplicates; begin += contest->block) {
		uint64_t left = contest->duplicates - begin;
		uint64_t size = left < contest->block ? left : contest->block;

		for (uint64_t i = 0; i < size; i++) {
			uint64_t place = (begin + i) % contest->keys;
			uint64_t index = key_shuffled(seed, contest->keys, place);

			key_text(seed, index, contest->second_texts + i * KEY_TEXT_SIZE);
		}
		contest_start(&time);
		wrong += pass_dup(contest, store, size);
		contest_stop(&time);
	}
	if (wrong > 0)
		contest_fail("%llu duplicates were not replayed", (unsigned long long)wrong);
	contest_print_time("dup", &time, contest->duplicates);
}

static void run_round(uint64_t seed, void *context)
{
	const struct check_contest *contest = context;
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err;

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	contest_expect_ok(
		hapax_store_open(contest->url, &options, &store, &err), &err,
		"the store was not opened");
	round_new(contest, store, seed);
	if (contest->duplicates > 0)
		round_dup(contest, store, seed);
	hapax_store_close(store);
}

static void parse_options(struct check_contest *contest, int argc, char **argv)
{
	static const struct option options[] = {
		{"url", required_argument, NULL, 'u'},
		{"keys", required_argument, NULL, 'k'},
		{"duplicates", required_argument, NULL, 'd'},
		{"batch", required_argument, NULL, 'b'},
		{"block", required_argument, NULL, 'l'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'u': contest->url = optarg; break;
		case 'k': contest->keys = contest_parse_count(optarg); break;
		case 'd': contest->duplicates = contest_parse_count(optarg); break;
		case 'b': contest->batch = contest_parse_count(optarg); break;
		case 'l': contest->block = contest_parse_count(optarg); break;
		default: exit(64);
		}
	}
	if (contest->keys == 0)
		contest_fail("--keys must not be 0");
	if (contest->block == 0)
		contest->block =
			contest->keys > contest->duplicates ? contest->keys : contest->duplicates;
}

int main(int argc, char **argv)
{
	struct check_contest contest = {
		.url = "memory:", .keys = 1000000, .duplicates = 1000000, .batch = 0, .block = 0};

	parse_options(&contest, argc, argv);
	contest.first_texts = malloc(contest.block * KEY_TEXT_SIZE);
	contest.second_texts = malloc(contest.block * KEY_TEXT_SIZE);
	contest.ops = calloc(contest.batch > 0 ? contest.batch : 1, sizeof(*contest.ops));
	if (contest.first_texts == NULL || contest.second_texts == NULL || contest.ops == NULL)
		contest_fail("out of memory");
	for (uint64_t i = 0; i < contest.batch; i++)
		contest.ops[i].type = HAPAX_OP_CHECK;
	contest_run("hapax", hapax_version(), run_round, &contest);
	free(contest.first_texts);
	free(contest.second_texts);
	free(contest.ops);
	return 0;
}
