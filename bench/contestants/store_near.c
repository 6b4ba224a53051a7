/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_near.c - duplicates of what is done, answered by a near cache or by the Redis server behind it.
 *
 *	--mode MODE     near: through hapax_near_open()
 *	                far: the server is asked each time
 *	--keys N        different ones, done before, with a result of 64 bytes
 *	--claims N      duplicates of these, one at a time
 *
 * The server is the one of tests/redis/with_redis.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>
#include <hapax/near.h>

#include "contest.h"
#include "keys.h"

enum {
	BATCH = 64,
	CHUNK = 50000, /* in less than the second for which an answer is kept */
	BODY_SIZE = 64,
	HIT_PER_CENT_MIN = 99,
};

struct near_contest {
	const char *mode;
	uint64_t keys;
	uint64_t claims;
	uint64_t seed;
	struct hapax_store *store; /* the one that is asked */
	struct hapax_record record;
	struct hapax_buf *buf;
	char (*texts)[KEY_TEXT_SIZE];
	unsigned char (*attempts)[HAPAX_ATTEMPT_ID_SIZE];
};

static void make_keys(struct near_contest *contest)
{
	for (uint64_t i = 0; i < contest->keys; i++) {
		key_text(contest->seed, i, contest->texts[i]);
		key_bytes(contest->seed, i, contest->attempts[i], HAPAX_ATTEMPT_ID_SIZE);
	}
}

static struct hapax_op claim_of(const struct near_contest *contest, uint64_t number)
{
	return (struct hapax_op){
		.type = HAPAX_OP_CLAIM,
		.key = {contest->texts[number], KEY_TEXT_SIZE},
		.attempt_id = contest->attempts[number]};
}

static void must_be(const struct hapax_op *op, enum hapax_outcome expected)
{
	if (op->status != HAPAX_OK || op->outcome != expected)
		contest_fail(
			"a %s answered %s, %s", hapax_op_type_name(op->type),
			hapax_status_name(op->status), hapax_outcome_name(op->outcome));
}

/* Claim and complete keys [first, first + count). */
static void make_done(const struct near_contest *contest, uint64_t first, size_t count)
{
	static const char body[BODY_SIZE];
	static const struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = {body, BODY_SIZE}};
	struct hapax_op ops[BATCH];

	for (size_t i = 0; i < count; i++)
		ops[i] = claim_of(contest, first + i);
	(void)hapax_store_run(contest->store, ops, count, NULL);
	for (size_t i = 0; i < count; i++) {
		must_be(&ops[i], HAPAX_OUTCOME_ACQUIRED);
		ops[i] = (struct hapax_op){
			.type = HAPAX_OP_COMPLETE,
			.key = ops[i].key,
			.token = ops[i].token,
			.result = &result};
	}
	(void)hapax_store_run(contest->store, ops, count, NULL);
	for (size_t i = 0; i < count; i++)
		must_be(&ops[i], HAPAX_OUTCOME_APPLIED);
}

/* For callgrind: --toggle-collect=pass_hit */
__attribute__((noinline)) static void pass_hit(
	struct near_contest *contest, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		struct hapax_op op = claim_of(contest, i % contest->keys);

		op.record = &contest->record;
		op.buf = contest->buf;
		(void)hapax_store_run(contest->store, &op, 1, NULL);
		must_be(&op, HAPAX_OUTCOME_REPLAY);
		if (contest->record.result.body.size != BODY_SIZE)
			contest_fail("a replay came without its result");
	}
}

static void check_hits(const struct near_contest *contest)
{
	struct hapax_near_stats stats = HAPAX_NEAR_STATS_INIT;

	contest_expect_ok(hapax_near_tell(contest->store, &stats, NULL), NULL, "the near cache");
	if (stats.hits < contest->claims / 100 * HIT_PER_CENT_MIN)
		contest_fail("only %llu were answered from here", (unsigned long long)stats.hits);
}

static void round_of(uint64_t seed, void *context)
{
	struct near_contest *contest = context;
	bool is_near = strcmp(contest->mode, "near") == 0;
	const char *socket = getenv("HAPAX_TEST_REDIS");
	struct contest_time time = {0, 0};
	struct hapax_store *far = NULL;
	struct hapax_error err;
	char url[512];

	contest->seed = seed;
	make_keys(contest);
	(void)snprintf(
		url, sizeof(url), "redis+unix:%s?prefix=%s%llu", socket ? socket : "",
		contest->mode, (unsigned long long)seed);
	contest_expect_ok(hapax_store_open(url, NULL, &far, &err), &err, url);
	contest->store = far;
	if (is_near)
		contest_expect_ok(hapax_near_open(far, NULL, &contest->store, &err), &err, url);
	for (uint64_t i = 0; i < contest->keys; i += BATCH)
		make_done(contest, i, contest->keys - i < BATCH ? contest->keys - i : BATCH);
	for (uint64_t i = 0; i < contest->claims; i += CHUNK) {
		uint64_t count = contest->claims - i < CHUNK ? contest->claims - i : CHUNK;

		/* What has grown old is asked for, off the clock. */
		if (is_near)
			pass_hit(contest, 0, contest->keys);
		contest_start(&time);
		pass_hit(contest, i, count);
		contest_stop(&time);
	}
	contest_print_time("duplicate", &time, contest->claims);
	if (is_near) {
		check_hits(contest);
		hapax_store_close(contest->store);
	}
	hapax_store_close(far);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"mode", required_argument, NULL, 'm'},
		{"keys", required_argument, NULL, 'k'},
		{"claims", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	struct near_contest contest = {.mode = "near", .keys = 1000, .claims = 100000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'm': contest.mode = optarg; break;
		case 'k': contest.keys = contest_parse_count(optarg); break;
		case 'n': contest.claims = contest_parse_count(optarg); break;
		default: return 64;
		}
	}
	contest.buf = hapax_buf_new(1024 * 1024);
	contest.texts = calloc(contest.keys, sizeof(contest.texts[0]));
	contest.attempts = calloc(contest.keys, sizeof(contest.attempts[0]));
	if (contest.buf == NULL || contest.texts == NULL || contest.attempts == NULL)
		contest_fail("no memory");
	contest_run("hapax", hapax_version(), round_of, &contest);
	free(contest.texts);
	free(contest.attempts);
	hapax_buf_free(contest.buf);
	return 0;
}
