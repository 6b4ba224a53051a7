/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_case.h - a ledger in the Redis Cluster of redis_cluster.h, and threads that use it while the
 * test disturbs the servers.
 */
#ifndef TEST_SUPPORT_CLUSTER_CASE_H
#define TEST_SUPPORT_CLUSTER_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "support/redis_cluster.h"

enum { CLUSTER_LOAD_WORKERS = 4 };

struct cluster_case {
	struct hapax_store *store;
	char url[400];
};

/* main() finds it with redis_cluster_find(). */
extern struct redis_cluster cluster;

/* For cmocka: *state is a struct cluster_case, its store is open on a prefix of its own. */
int cluster_case_set_up(void **state);
int cluster_case_tear_down(void **state);

/* The call may have taken effect, or could not be sent. */
bool cluster_case_is_unknown(enum hapax_status status);

uint64_t cluster_case_count_done(struct hapax_store *store);

/* Ask until every one of many keys, in all partitions, is answered: true. */
bool cluster_case_all_answer(struct hapax_store *store);

/* Threads that claim and complete one new key after the other until they are told to stop. */
struct cluster_load {
	struct hapax_store *store;
	_Atomic bool stops;
	_Atomic uint64_t pairs;
	_Atomic uint64_t unknown; /* ended UNCERTAIN or UNAVAILABLE */
	_Atomic uint64_t fenced;  /* a claim that the server has forgotten */
	_Atomic uint64_t wrong;   /* anything else than these, and than what is right */
	struct hx_thread threads[CLUSTER_LOAD_WORKERS];
	_Atomic unsigned started;
};

void cluster_load_begin(struct cluster_load *load, struct hapax_store *store);
void cluster_load_end(struct cluster_load *load);

/* Wait until so many more are done. */
void cluster_load_wait(struct cluster_load *load, uint64_t pairs);

#endif
