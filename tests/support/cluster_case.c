/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cluster_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include <hapax/ext/store_ops.h>
#include <hapax/hapax.h>

#include "base/thread.h"
#include "support/redis_case.h"
#include "support/redis_cluster.h"

struct redis_cluster cluster;

int cluster_case_set_up(void **state)
{
	static unsigned scenes;
	struct cluster_case *scene = test_calloc(1, sizeof(*scene));
	struct hapax_store_options options = redis_case_options();
	struct hapax_error err = {0};

	*state = scene;
	snprintf(
		scene->url, sizeof(scene->url), "redis+cluster://%s?prefix=test-%u",
		cluster.masters, scenes++);
	if (hapax_store_open(scene->url, &options, &scene->store, &err) == HAPAX_OK)
		return 0;
	printf("# %s\n", err.message);
	return -1;
}

int cluster_case_tear_down(void **state)
{
	struct cluster_case *scene = *state;

	hapax_store_close(scene->store);
	test_free(scene);
	return 0;
}

bool cluster_case_is_unknown(enum hapax_status status)
{
	return status == HAPAX_ERR_UNCERTAIN || status == HAPAX_ERR_UNAVAILABLE;
}

static void work(void *arg)
{
	struct cluster_load *load = arg;
	uint64_t number = (uint64_t)(atomic_fetch_add(&load->started, 1) + 1) << 32;

	for (; !atomic_load(&load->stops); number++) {
		char key[32];
		struct hapax_op op = redis_case_op(HAPAX_OP_CLAIM, key, number);
		bool is_right;

		(void)redis_case_run(load->store, &op);
		is_right = op.status == HAPAX_OK && op.outcome == HAPAX_OUTCOME_ACQUIRED;
		if (is_right) {
			op = (struct hapax_op){
				.type = HAPAX_OP_COMPLETE, .key = op.key, .token = op.token};
			(void)redis_case_run(load->store, &op);
			is_right = op.status == HAPAX_OK && op.outcome == HAPAX_OUTCOME_APPLIED;
		}
		if (is_right)
			atomic_fetch_add(&load->pairs, 1);
		else if (cluster_case_is_unknown(op.status))
			atomic_fetch_add(&load->unknown, 1);
		else if (op.status == HAPAX_ERR_FENCED)
			atomic_fetch_add(&load->fenced, 1);
		else if (atomic_fetch_add(&load->wrong, 1) == 0)
			printf("# key %llu: %s ended %s, %s\n", (unsigned long long)number,
			       hapax_op_type_name(op.type), hapax_status_name(op.status),
			       hapax_outcome_name(op.outcome));
	}
}

void cluster_load_begin(struct cluster_load *load, struct hapax_store *store)
{
	*load = (struct cluster_load){.store = store};
	for (int i = 0; i < CLUSTER_LOAD_WORKERS; i++)
		assert_int_equal(
			hx_thread_start(&load->threads[i], work, load, "load", NULL), HAPAX_OK);
}

void cluster_load_end(struct cluster_load *load)
{
	atomic_store(&load->stops, true);
	for (int i = 0; i < CLUSTER_LOAD_WORKERS; i++)
		hx_thread_join(&load->threads[i]);
}

void cluster_load_wait(struct cluster_load *load, uint64_t pairs)
{
	uint64_t end = atomic_load(&load->pairs) + pairs;

	while (atomic_load(&load->pairs) < end && atomic_load(&load->wrong) == 0)
		sched_yield();
}

uint64_t cluster_case_count_done(struct hapax_store *store)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	assert_int_equal(hapax_store_stats(store, &stats, NULL, NULL, NULL), HAPAX_OK);
	return stats.done;
}

bool cluster_case_all_answer(struct hapax_store *store)
{
	enum { KEYS = 600 };
	static struct hapax_op ops[KEYS];
	static char keys[KEYS][32];

	for (int tries = 0; tries < 40; tries++) {
		size_t bad = 0;

		for (size_t i = 0; i < KEYS; i++)
			ops[i] = redis_case_op(HAPAX_OP_LOOKUP, keys[i], i);
		(void)hapax_store_run(store, ops, KEYS, NULL);
		for (size_t i = 0; i < KEYS; i++)
			bad += ops[i].status != HAPAX_OK;
		if (bad == 0)
			return true;
	}
	return false;
}
