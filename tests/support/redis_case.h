/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_case.h - a ledger on a real server, whose socket is in HAPAX_TEST_REDIS (see
 * tests/redis/with_redis), over a network that fails when told to; and operations on numbered keys,
 * for a Redis Cluster, too.
 */
#ifndef TEST_SUPPORT_REDIS_CASE_H
#define TEST_SUPPORT_REDIS_CASE_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "support/fault_net.h"

enum { REDIS_CASE_TIMEOUT_MS = 20000 };

struct redis_case {
	struct fault_net fault;
	struct hapax_store *faulty; /* over fault */
	struct hapax_store *sound;  /* the same ledger over the real network */
	char url[300];
	uint64_t number; /* of the key in use */
	struct hx_event late;
};

/* For cmocka: *state is a struct redis_case with both stores open, on a prefix of its own. */
int redis_case_set_up(void **state);
int redis_case_tear_down(void **state);

extern char redis_case_prefix[64];

/* A URL of the server, with that prefix; more: further options. */
void redis_case_url(char *url, size_t size, const char *more);

/* Without housekeeping, with REDIS_CASE_TIMEOUT_MS. */
struct hapax_store_options redis_case_options(void);

/* An operation on the key of that number, whose name goes into key. */
extern const unsigned char redis_case_attempt_id[HAPAX_ATTEMPT_ID_SIZE];
struct hapax_op redis_case_op(enum hapax_op_type type, char key[32], uint64_t number);
enum hapax_status redis_case_run(struct hapax_store *store, struct hapax_op *op);

#endif
