/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_failover.c - a ledger in a Redis Cluster (tests/redis/with_cluster) whose masters are
 * replaced by their replicas, as asked for, or as they die. Tokens rise all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hapax/ext/store_ops.h>
#include <hapax/hapax.h>

#include "base/thread.h"
#include "support/cluster_case.h"
#include "support/redis_case.h"
#include "support/redis_cluster.h"
#include "support/scale.h"

/* ---------------------------------------------------------------- addresses */

/* I5: a token of each of many keys; all larger than the last ones. */
struct tokens {
	uint64_t last[200];
};

/* Repeat one and the same call until its answer is certain, as everybody has to. */
static void run_until_certain(struct hapax_store *store, struct hapax_op *op)
{
	struct hapax_op call = *op;

	do {
		*op = call;
		(void)redis_case_run(store, op);
	} while (cluster_case_is_unknown(op->status));
	assert_int_equal(op->status, HAPAX_OK);
}

static void tokens_rise(struct hapax_store *store, struct tokens *tokens)
{
	for (size_t i = 0; i < 200; i++) {
		char key[32];
		struct hapax_op op = redis_case_op(HAPAX_OP_FORGET, key, 1000000 + i);

		op.flags = HAPAX_OP_FORCE;
		run_until_certain(store, &op);
		op = redis_case_op(HAPAX_OP_CLAIM, key, 1000000 + i);
		run_until_certain(store, &op);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_true(op.token > tokens->last[i]);
		tokens->last[i] = op.token;
	}
}

/* Wait until a server says that it is a master, or a replica. */
static void wait_for_role(int number, const char *role)
{
	char out[400];

	for (int i = 0; i < 2400; i++) {
		const struct timespec pause = {.tv_nsec = 50000000};

		redis_cluster_ask(&cluster, number, "info replication", out, sizeof(out));
		if (strstr(out, role))
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("no server became %s", role);
}

/* A failover that is asked for waits until the replica has all: nothing is lost, nothing shows (I1). */
static void planned_failover_loses_nothing(void **state)
{
	struct cluster_case *scene = *state;
	struct tokens tokens = {{0}};
	struct cluster_load load;

	tokens_rise(scene->store, &tokens);
	cluster_load_begin(&load, scene->store);
	cluster_load_wait(&load, 100);
	redis_cluster_tell(&cluster, REDIS_CLUSTER_MASTERS + 2, "cluster failover");
	wait_for_role(REDIS_CLUSTER_MASTERS + 2, "role:master");
	cluster_load_wait(&load, 100);
	cluster_load_end(&load);
	assert_int_equal(load.wrong, 0);
	assert_int_equal(load.unknown + load.fenced, 0);
	/* And the claims of tokens_rise(). */
	assert_int_equal(cluster_case_count_done(scene->store), load.pairs);
	tokens_rise(scene->store, &tokens);
}

/*
 * A master stops, its replica takes over, the old master comes back as a replica. Every
 * operation ends; afterwards all partitions answer and tokens have gone on rising (I5). What the
 * old master had acknowledged and not replicated may be lost, and the guarantee says so.
 */
static void masters_fail_over_under_load(void **state)
{
	struct cluster_case *scene = *state;
	struct hapax_store_options options = redis_case_options();
	struct hapax_store *store = NULL;
	struct tokens tokens = {{0}};
	struct cluster_load load;

	options.timeout_ms = 3000;
	assert_int_equal(hapax_store_open(scene->url, &options, &store, NULL), HAPAX_OK);
	tokens_rise(store, &tokens);
	cluster_load_begin(&load, store);
	cluster_load_wait(&load, 100);
	assert_int_equal(kill(cluster.pids[0], SIGSTOP), 0);
	redis_cluster_tell(&cluster, REDIS_CLUSTER_MASTERS, "cluster failover force");
	/* Lookups in all partitions are answered only when another serves those of the stopped one. */
	assert_true(cluster_case_all_answer(store));
	cluster_load_end(&load);
	printf("# %llu pairs, %llu without a certain answer, %llu claims lost by the failover\n",
	       (unsigned long long)load.pairs, (unsigned long long)load.unknown,
	       (unsigned long long)load.fenced);
	assert_int_equal(load.wrong, 0);
	tokens_rise(store, &tokens);
	assert_int_equal(kill(cluster.pids[0], SIGCONT), 0);
	wait_for_role(0, "role:slave");
	assert_true(cluster_case_all_answer(store));
	tokens_rise(store, &tokens);
	hapax_store_close(store);
}

/* ---------------------------------------------------------------- tokens over a failover */

enum { HELD_MAX = 2000 };

/* Claims that are held while their master dies. */
struct held {
	uint64_t first; /* their keys are numbered from here */
	uint64_t count;
	uint64_t tokens[HELD_MAX];
};

/* As run_until_certain(), with its status. */
static enum hapax_status settle(struct hapax_store *store, struct hapax_op *op)
{
	struct hapax_op call = *op;

	do {
		*op = call;
		(void)redis_case_run(store, op);
	} while (cluster_case_is_unknown(op->status));
	return op->status;
}

static enum hapax_status claim_held(
	struct hapax_store *store, const struct held *held, uint64_t i, const unsigned char *by,
	struct hapax_op *ret_op, char *key)
{
	*ret_op = redis_case_op(HAPAX_OP_CLAIM, key, held->first + i);
	ret_op->attempt_id = by;
	ret_op->lease_ms = INT64_C(3600) * 1000;
	return settle(store, ret_op);
}

static enum hapax_status complete_held(
	struct hapax_store *store, const struct held *held, uint64_t i, uint64_t token)
{
	char key[32];
	struct hapax_op op = redis_case_op(HAPAX_OP_COMPLETE, key, held->first + i);

	op.token = token;
	return settle(store, &op);
}

static void hold(struct hapax_store *store, struct held *held)
{
	for (uint64_t i = 0; i < held->count; i++) {
		struct hapax_op op;
		char key[32];

		assert_int_equal(
			claim_held(store, held, i, redis_case_attempt_id, &op, key), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		held->tokens[i] = op.token;
	}
}

/*
 * I5 for one key after the failover: the next claim has the larger token, and the old one changes
 * nothing any more. Returns whether the new master knew of the claim.
 */
static bool old_token_is_fenced(struct hapax_store *store, const struct held *held, uint64_t i)
{
	static const unsigned char other_id[HAPAX_ATTEMPT_ID_SIZE] = {8};
	bool is_known;
	struct hapax_op op;
	char key[32];

	assert_int_equal(claim_held(store, held, i, other_id, &op, key), HAPAX_OK);
	is_known = op.outcome == HAPAX_OUTCOME_IN_PROGRESS;
	if (is_known) {
		op = redis_case_op(HAPAX_OP_LOOKUP, key, held->first + i);
		assert_int_equal(settle(store, &op), HAPAX_OK);
		assert_int_equal(op.token, held->tokens[i]);
		op = redis_case_op(HAPAX_OP_FORGET, key, held->first + i);
		op.flags = HAPAX_OP_FORCE;
		assert_int_equal(settle(store, &op), HAPAX_OK);
		assert_int_equal(complete_held(store, held, i, held->tokens[i]), HAPAX_ERR_FENCED);
		assert_int_equal(claim_held(store, held, i, other_id, &op, key), HAPAX_OK);
	}
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_true(op.token > held->tokens[i]);
	assert_int_equal(complete_held(store, held, i, held->tokens[i]), HAPAX_ERR_FENCED);
	assert_int_equal(complete_held(store, held, i, op.token), HAPAX_OK);
	return is_known;
}

/* What a server says of its own replication; -1: nothing. */
static long long offset_of(int number, const char *field)
{
	char out[2000];
	const char *found;

	redis_cluster_ask(&cluster, number, "info replication", out, sizeof(out));
	found = strstr(out, field);
	return found == NULL ? -1 : strtoll(found + strlen(field), NULL, 10);
}

/* Until the replica has all that the master has. */
static void wait_for_replica(int master, int replica)
{
	while (offset_of(replica, "slave_repl_offset:") < offset_of(master, "master_repl_offset:"))
		sched_yield();
}

/* From now on the replica gets nothing any more; who is connected to the master sees no difference. */
static void cut_off_replica(int master, int replica)
{
	char out[2000];

	redis_cluster_tell(&cluster, master, "config set requirepass cut");
	redis_cluster_ask(
		&cluster, master, "-a cut --no-auth-warning client kill type replica", out,
		sizeof(out));
	do {
		redis_cluster_ask(&cluster, replica, "info replication", out, sizeof(out));
	} while (strstr(out, "master_link_status:down") == NULL);
}

/*
 * A master dies permanently, and its replica is not told: the others must notice (a failover).
 * What had not been replicated is lost, as the guarantee says; but no token of the old master's is of use
 * against a claim of the new one's (I5), known there or not.
 */
static void dead_master_is_replaced(void **state)
{
	static struct held kept = {.first = 2000000}, unknown = {.first = 3000000};
	struct cluster_case *scene = *state;
	uint64_t known = 0, lost = 0;
	double begun = scale_seconds();
	struct cluster_load load;
	char text[256];

	hapax_store_guarantee(scene->store, text, sizeof(text));
	assert_non_null(strstr(text, "a failover may lose answers that are not yet replicated"));
	assert_non_null(strstr(text, "tokens continue by the clock of the new master"));
	for (int i = 0; i < 2 * REDIS_CLUSTER_MASTERS; i++)
		redis_cluster_tell(&cluster, i, "config set cluster-node-timeout 2000");
	kept.count = unknown.count = scale_count(HELD_MAX, 80);
	hold(scene->store, &kept);
	wait_for_replica(1, REDIS_CLUSTER_MASTERS + 1);
	cut_off_replica(1, REDIS_CLUSTER_MASTERS + 1);
	hold(scene->store, &unknown);
	cluster_load_begin(&load, scene->store);
	cluster_load_wait(&load, 100);
	assert_int_equal(kill(cluster.pids[1], SIGKILL), 0);
	assert_true(cluster_case_all_answer(scene->store));
	cluster_load_end(&load);
	printf("# %llu pairs, %llu without a certain answer, %llu claims lost by the failover\n",
	       (unsigned long long)load.pairs, (unsigned long long)load.unknown,
	       (unsigned long long)load.fenced);
	assert_int_equal(load.wrong, 0);
	assert_true(load.pairs > 0);
	for (uint64_t i = 0; i < kept.count; i++)
		known += old_token_is_fenced(scene->store, &kept, i);
	assert_int_equal(known, kept.count);
	for (uint64_t i = 0; i < unknown.count; i++)
		lost += !old_token_is_fenced(scene->store, &unknown, i);
	printf("# %llu of %llu claims were lost with the master\n", (unsigned long long)lost,
	       (unsigned long long)unknown.count);
	assert_true(lost > 0 && lost < unknown.count);
	scale_report(
		"tokens of before an automatic failover, all refused", kept.count + unknown.count,
		scale_seconds() - begun, true);
}

/*
 * A master votes for a server that it knows as a replica. Servers tell each other now and then: in a Cluster
 * that has just formed, the first failover would end without an election.
 */
static int wait_for_acquaintance(void **state)
{
	char out[4000];

	(void)state;
	for (int number = 0; number < REDIS_CLUSTER_MASTERS; number++) {
		int replicas = 0;

		while (replicas < REDIS_CLUSTER_MASTERS) {
			const char *found = out;

			redis_cluster_ask(&cluster, number, "cluster nodes", out, sizeof(out));
			for (replicas = 0; (found = strstr(found, "slave ")) != NULL; found++)
				replicas++;
		}
	}
	return 0;
}

#define CASE(name) \
	cmocka_unit_test_setup_teardown(name, cluster_case_set_up, cluster_case_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* Each leaves the Cluster another one. */
		CASE(planned_failover_loses_nothing),
		CASE(masters_fail_over_under_load),
		CASE(dead_master_is_replaced),
	};

	redis_cluster_find(&cluster);
	return cmocka_run_group_tests_name("redis_failover", tests, wait_for_acquaintance, NULL);
}
