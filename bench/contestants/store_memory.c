/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_memory.c - what a key costs in resident memory: fill a memory: store, see by
 * how much the process grew, divide. One process a round, or freed memory would lie
 * about the next.
 *
 *	--keys N       keys to keep
 *	--record KIND  mark: check without a fingerprint
 *	               fingerprint: check with one
 *	               done: claim and complete, with a fingerprint and a result of 20 bytes
 *	               event: the same, and an event with an id of 36 bytes, type and source
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "contest.h"
#include "keys.h"

enum { RESULT_SIZE = 20 };

struct memory_contest {
	uint64_t keys;
	const char *record;
};

static void run_op(struct hapax_store *store, struct hapax_op *op, enum hapax_outcome expected)
{
	struct hapax_error err;

	contest_expect_ok(hapax_store_run(store, op, 1, &err), &err, "an operation failed");
	if (op->outcome != expected)
		contest_fail(
			"%s answered %s", hapax_op_type_name(op->type),
			hapax_outcome_name(op->outcome));
}

static void add_mark(
	struct hapax_store *store, struct hapax_bytes key, const unsigned char *fingerprint)
{
	struct hapax_op op = {.type = HAPAX_OP_CHECK, .key = key, .fingerprint = fingerprint};

	run_op(store, &op, HAPAX_OUTCOME_ACQUIRED);
}

/* An event of the usual size, whose id is the key. */
static struct hapax_bytes make_cause(
	struct hapax_bytes key, unsigned char buffer[HAPAX_CAUSE_SIZE_MAX])
{
	const struct hapax_cause cause = {
		.id = key,
		.type = {"shop.order.created.1", 20},
		.source = {"https://shop.example/api", 24},
		.time_ms = INT64_C(1767225600000),
	};

	return hapax_cause_write(&cause, buffer);
}

static void add_done(
	struct hapax_store *store, struct hapax_bytes key, const unsigned char *fingerprint,
	struct hapax_bytes cause, uint64_t index)
{
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	unsigned char body[RESULT_SIZE];
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}};
	struct hapax_op claim = {
		.type = HAPAX_OP_CLAIM,
		.key = key,
		.fingerprint = fingerprint,
		.attempt_id = attempt_id,
		.cause = cause};
	struct hapax_op complete = {.type = HAPAX_OP_COMPLETE, .key = key, .result = &result};

	key_bytes(2, index, attempt_id, sizeof(attempt_id));
	key_bytes(3, index, body, sizeof(body));
	run_op(store, &claim, HAPAX_OUTCOME_ACQUIRED);
	complete.token = claim.token;
	run_op(store, &complete, HAPAX_OUTCOME_APPLIED);
}

static void fill(const struct memory_contest *contest, struct hapax_store *store, uint64_t seed)
{
	const bool event = strcmp(contest->record, "event") == 0;
	const bool done = event || strcmp(contest->record, "done") == 0;
	const bool mark = strcmp(contest->record, "mark") == 0;

	for (uint64_t i = 0; i < contest->keys; i++) {
		char text[KEY_TEXT_SIZE];
		unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
		unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
		struct hapax_bytes key = {text, sizeof(text)};
		struct hapax_bytes cause = {NULL, 0};

		key_text(seed, i, text);
		key_bytes(1, i, fingerprint, sizeof(fingerprint));
		if (event)
			cause = make_cause(key, buffer);
		if (done)
			add_done(store, key, fingerprint, cause, i);
		else
			add_mark(store, key, mark ? NULL : fingerprint);
	}
}

static void run_round(uint64_t seed, void *context)
{
	const struct memory_contest *contest = context;
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err;
	struct contest_time time = {0, 0};
	uint64_t before = contest_resident_bytes();

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	contest_expect_ok(
		hapax_store_open("memory:", &options, &store, &err), &err,
		"the store was not opened");
	contest_start(&time);
	fill(contest, store, seed);
	contest_stop(&time);

	double grown = (double)contest_resident_bytes() - (double)before;

	contest_expect_ok(hapax_store_stats(store, &stats, NULL, NULL, &err), &err, "no stats");
	if (stats.keys != contest->keys)
		contest_fail("the store holds %llu keys", (unsigned long long)stats.keys);
	hapax_store_close(store);
	contest_print_time("fill", &time, contest->keys);
	contest_print_value("bytes", grown / (double)contest->keys);
	contest_print_value("counted", (double)stats.bytes / (double)contest->keys);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"keys", required_argument, NULL, 'k'},
		{"record", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	struct memory_contest contest = {.keys = 1000000, .record = "mark"};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'k': contest.keys = contest_parse_count(optarg); break;
		case 'r': contest.record = optarg; break;
		default: exit(64);
		}
	}
	if (strcmp(contest.record, "mark") != 0 && strcmp(contest.record, "fingerprint") != 0 &&
	    strcmp(contest.record, "done") != 0 && strcmp(contest.record, "event") != 0)
		contest_fail(
			"--record is mark, fingerprint, done or event, not '%s'", contest.record);
	contest_run("hapax", hapax_version(), run_round, &contest);
	return 0;
}
