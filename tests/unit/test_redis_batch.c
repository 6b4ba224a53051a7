/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_batch.c - operations that share a command end as they would have ended alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/random.h"
#include "support/scale.h"
#include "support/virtual_clock.h"

enum { KEYS = 12, BATCH = 40, LEASE_MS = 1000, TTL_MS = 5000 };

/* One ledger. The clock is the test's, so that time passes alike in all. */
struct ledger {
	struct hapax_store *store;
	char prefix[32];
	uint64_t tokens[KEYS]; /* the last that was given out for each key */
};

static void open_ledger(struct ledger *ledger, const char *name, const struct hapax_clock *clock)
{
	static unsigned ledgers;
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_error err = {0};
	char url[300];

	memset(ledger, 0, sizeof(*ledger));
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.timeout_ms = 60000;
	options.clock = clock;
	snprintf(ledger->prefix, sizeof(ledger->prefix), "%s-%u", name, ledgers++);
	snprintf(
		url, sizeof(url), "redis+unix:%s?prefix=%s", getenv("HAPAX_TEST_REDIS"),
		ledger->prefix);
	if (hapax_store_open(url, &options, &ledger->store, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

/* What is done to which key, and how; both ledgers get the same. */
struct step {
	enum hapax_op_type type;
	unsigned key;
	char key_text[32];
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	bool has_fingerprint;
	bool parks;
	bool has_old_token;
	bool has_result;
};

static struct step make_step(struct hx_prng *prng)
{
	static const enum hapax_op_type types[] = {
		HAPAX_OP_CLAIM,    HAPAX_OP_CLAIM,    HAPAX_OP_CLAIM,   HAPAX_OP_CHECK,
		HAPAX_OP_COMPLETE, HAPAX_OP_COMPLETE, HAPAX_OP_RELEASE, HAPAX_OP_PARK,
		HAPAX_OP_RENEW,    HAPAX_OP_LOOKUP,   HAPAX_OP_FORGET,
	};
	struct step step = {
		.type = types[hx_prng_below(prng, sizeof(types) / sizeof(types[0]))],
		.key = (unsigned)hx_prng_below(prng, KEYS),
		.has_fingerprint = hx_prng_below(prng, 2) != 0,
		.parks = hx_prng_below(prng, 8) == 0,
		.has_old_token = hx_prng_below(prng, 6) == 0,
		.has_result = hx_prng_below(prng, 2) != 0,
	};

	snprintf(step.key_text, sizeof(step.key_text), "key %u", step.key);
	/* Few, so that calls are repeated and payloads differ. */
	step.attempt_id[0] = (unsigned char)hx_prng_below(prng, 4);
	step.fingerprint[0] = (unsigned char)(hx_prng_below(prng, 8) == 0);
	return step;
}

static struct hapax_op make_op(const struct ledger *ledger, const struct step *step)
{
	static const struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = {"the result", 10}};
	struct hapax_op op = {
		.type = step->type,
		.key = hapax_bytes_from_text(step->key_text),
		.lease_ms = LEASE_MS,
		.ttl_ms = TTL_MS,
	};

	if (step->type == HAPAX_OP_CLAIM) {
		op.attempt_id = step->attempt_id;
		op.owner = hapax_bytes_from_text("an owner");
		op.on_lapse = step->parks ? HAPAX_ON_LAPSE_PARK : HAPAX_ON_LAPSE_RETRY;
	}
	if ((step->type == HAPAX_OP_CLAIM || step->type == HAPAX_OP_CHECK) && step->has_fingerprint)
		op.fingerprint = step->fingerprint;
	if (step->type >= HAPAX_OP_RENEW && step->type <= HAPAX_OP_PARK)
		op.token = step->has_old_token ? 1 : ledger->tokens[step->key];
	if (step->type == HAPAX_OP_COMPLETE && step->has_result)
		op.result = &result;
	return op;
}

static void note_tokens(
	struct ledger *ledger, const struct step *steps, const struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].type == HAPAX_OP_CLAIM && ops[i].outcome == HAPAX_OUTCOME_ACQUIRED)
			ledger->tokens[steps[i].key] = ops[i].token;
	}
}

static void compare(size_t i, const struct hapax_op *alone, const struct hapax_op *joined)
{
	bool is_same = alone->status == joined->status && alone->outcome == joined->outcome &&
		alone->attempt == joined->attempt && alone->unverified == joined->unverified &&
		alone->repeated == joined->repeated &&
		alone->first_seen_ms == joined->first_seen_ms &&
		alone->expires_ms == joined->expires_ms &&
		alone->lease_left_ms == joined->lease_left_ms;

	if (!is_same)
		fail_msg(
			"operation %zu, %s of %.*s: alone %s, %s, attempt %u; joined %s, %s, attempt %u",
			i, hapax_op_type_name(alone->type), (int)alone->key.size,
			(const char *)alone->key.data, hapax_status_name(alone->status),
			hapax_outcome_name(alone->outcome), (unsigned)alone->attempt,
			hapax_status_name(joined->status), hapax_outcome_name(joined->outcome),
			(unsigned)joined->attempt);
}

static void books_agree(struct ledger *a, struct ledger *b)
{
	struct hapax_stats one = HAPAX_STATS_INIT, other = HAPAX_STATS_INIT;

	assert_int_equal(hapax_store_stats(a->store, &one, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(hapax_store_stats(b->store, &other, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(one.claimed, other.claimed);
	assert_int_equal(one.done, other.done);
	assert_int_equal(one.failed, other.failed);
	assert_int_equal(one.parked, other.parked);
	assert_int_equal(one.expired, other.expired);
	assert_int_equal(one.bytes, other.bytes);
}

/*
 * Random operations on few keys, in one submit and one by one: the same answers, the same
 * books, whatever happened before. A key may be several times in a submit, so tokens are as they
 * were before it.
 */
static void joined_operations_end_as_alone(void **state)
{
	uint64_t rounds = scale_count(2000, 60);
	struct hx_virtual_clock clock;
	struct ledger alone, joined;
	uint64_t seed = 1;
	struct hx_prng prng;

	(void)state;
	(void)scale_seed(&seed);
	printf("# seed %llu\n", (unsigned long long)seed);
	hx_prng_seed(&prng, seed);
	hx_virtual_clock_init(&clock, INT64_C(1767225600000));
	open_ledger(&alone, "alone", hx_virtual_clock_clock(&clock));
	open_ledger(&joined, "joined", hx_virtual_clock_clock(&clock));
	for (uint64_t round = 0; round < rounds; round++) {
		struct step steps[BATCH];
		struct hapax_op singles[BATCH], many[BATCH];

		for (size_t i = 0; i < BATCH; i++)
			steps[i] = make_step(&prng);
		for (size_t i = 0; i < BATCH; i++) {
			singles[i] = make_op(&alone, &steps[i]);
			many[i] = make_op(&joined, &steps[i]);
		}
		for (size_t i = 0; i < BATCH; i++)
			(void)hapax_store_run(alone.store, &singles[i], 1, NULL);
		(void)hapax_store_run(joined.store, many, BATCH, NULL);
		for (size_t i = 0; i < BATCH; i++)
			compare(i, &singles[i], &many[i]);
		note_tokens(&alone, steps, singles, BATCH);
		note_tokens(&joined, steps, many, BATCH);
		books_agree(&alone, &joined);
		hx_virtual_clock_advance(&clock, (int64_t)hx_prng_below(&prng, 3 * LEASE_MS));
	}
	hapax_store_close(alone.store);
	hapax_store_close(joined.store);
	scale_report("batches that end as alone", rounds, 0, true);
}

/* Of the server itself. */
static void say(const char *command)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char reply[64] = "";
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", getenv("HAPAX_TEST_REDIS"));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(write(fd, command, strlen(command)), strlen(command));
	assert_true(read(fd, reply, sizeof(reply) - 1) > 0);
	assert_int_equal(reply[0], '+');
	close(fd);
}

/* The server is full: what is new is refused, and those who came with it are answered. */
static void full_server_refuses_only_what_is_new(void **state)
{
	static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {7};
	static char keys[BATCH][32];
	struct hapax_op ops[BATCH];
	struct ledger ledger;

	(void)state;
	open_ledger(&ledger, "full", hapax_clock_system());
	for (size_t i = 0; i < BATCH; i++) {
		int size = snprintf(keys[i], sizeof(keys[i]), "key %zu", i);

		ops[i] = (struct hapax_op){
			.type = HAPAX_OP_CLAIM,
			.key = {keys[i], (size_t)size},
			.attempt_id = attempt_id};
	}
	/* Every third is claimed, and every sixth done. */
	for (size_t i = 0; i < BATCH; i += 3)
		assert_int_equal(hapax_store_run(ledger.store, &ops[i], 1, NULL), HAPAX_OK);
	for (size_t i = 0; i < BATCH; i += 6) {
		struct hapax_op end = {
			.type = HAPAX_OP_COMPLETE, .key = ops[i].key, .token = ops[i].token};

		assert_int_equal(hapax_store_run(ledger.store, &end, 1, NULL), HAPAX_OK);
	}
	say("CONFIG SET maxmemory 1\r\n");
	for (size_t i = 0; i < BATCH; i++)
		ops[i] = (struct hapax_op){.type = HAPAX_OP_CHECK, .key = ops[i].key};
	(void)hapax_store_run(ledger.store, ops, BATCH, NULL);
	for (size_t i = 0; i < BATCH; i++) {
		if (i % 3 != 0)
			assert_int_equal(ops[i].status, HAPAX_ERR_LIMIT);
		else
			assert_int_equal(
				ops[i].outcome,
				i % 6 == 0 ? HAPAX_OUTCOME_REPLAY : HAPAX_OUTCOME_IN_PROGRESS);
	}
	say("CONFIG SET maxmemory 0\r\n");
	for (size_t i = 0; i < BATCH; i++) {
		ops[i] = (struct hapax_op){.type = HAPAX_OP_CHECK, .key = ops[i].key};
		assert_int_equal(hapax_store_run(ledger.store, &ops[i], 1, NULL), HAPAX_OK);
		assert_int_equal(ops[i].outcome == HAPAX_OUTCOME_ACQUIRED, i % 3 != 0);
	}
	hapax_store_close(ledger.store);
}

/* One of those who share a command finds foreign data; the others find what is theirs. */
static void foreign_data_harms_only_itself(void **state)
{
	enum { BAD = 7 };
	static char keys[BATCH][32];
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct ledger ledger;
	char command[200];

	(void)state;
	open_ledger(&ledger, "foreign", hapax_clock_system());
	snprintf(
		command, sizeof(command), "SET \"%s:default/default:key %d\" x\r\n", ledger.prefix,
		BAD);
	say(command);
	for (int round = 0; round < 2; round++) {
		struct hapax_op ops[BATCH];

		for (size_t i = 0; i < BATCH; i++) {
			int size = snprintf(keys[i], sizeof(keys[i]), "key %zu", i);

			ops[i] = (struct hapax_op){
				.type = HAPAX_OP_CHECK, .key = {keys[i], (size_t)size}};
		}
		(void)hapax_store_run(ledger.store, ops, BATCH, NULL);
		for (size_t i = 0; i < BATCH; i++) {
			assert_int_equal(ops[i].status, i == BAD ? HAPAX_ERR_CORRUPT : HAPAX_OK);
			if (i != BAD)
				assert_int_equal(
					ops[i].outcome,
					round == 0 ? HAPAX_OUTCOME_ACQUIRED : HAPAX_OUTCOME_REPLAY);
		}
	}
	assert_int_equal(hapax_store_stats(ledger.store, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(stats.done, BATCH - 1);
	hapax_store_close(ledger.store);
}

/* B9: redis-cli shows the state of a key, and its result. */
static void records_are_read_by_redis_cli(void **state)
{
	static const char fields[] = "state kind body attempt origin";
	static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {7};
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("shipped")};
	struct hapax_op op = {
		.type = HAPAX_OP_CLAIM,
		.key = hapax_bytes_from_text("order-1"),
		.attempt_id = attempt_id};
	struct ledger ledger;
	char command[400], out[200];
	FILE *pipe;

	(void)state;
	open_ledger(&ledger, "read", hapax_clock_system());
	assert_int_equal(hapax_store_run(ledger.store, &op, 1, NULL), HAPAX_OK);
	op.type = HAPAX_OP_COMPLETE;
	op.result = &result;
	assert_int_equal(hapax_store_run(ledger.store, &op, 1, NULL), HAPAX_OK);
	snprintf(
		command, sizeof(command), "redis-cli -s '%s' hmget %s:default/default:order-1 %s",
		getenv("HAPAX_TEST_REDIS"), ledger.prefix, fields);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	out[fread(out, 1, sizeof(out) - 1, pipe)] = '\0';
	assert_int_equal(pclose(pipe), 0);
	assert_string_equal(out, "done\nbytes\nshipped\n1\nclaim\n");
	hapax_store_close(ledger.store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joined_operations_end_as_alone),
		cmocka_unit_test(full_server_refuses_only_what_is_new),
		cmocka_unit_test(foreign_data_harms_only_itself),
		cmocka_unit_test(records_are_read_by_redis_cli),
	};

	return cmocka_run_group_tests_name("redis_batch", tests, NULL, NULL);
}
