/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outage_case.h - a store that can go away, its journal, and the guarded store that is used.
 *
 * Nothing runs in the background. Whatever goes wrong in the preparation ends the program.
 */
#ifndef TEST_SUPPORT_OUTAGE_CASE_H
#define TEST_SUPPORT_OUTAGE_CASE_H

#include <hapax/outage.h>

#include "support/held_store.h"
#include "support/store_case.h"

struct outage_case {
	struct store_case shared;  /* the store itself: what other nodes see */
	struct store_case journal; /* this node's */
	struct held_store held;    /* the way to the store */
	struct hapax_outage_options options;
	struct hapax_store *store;
	char twice[64]; /* the last key that is said to have run twice */
};

void outage_case_begin(struct outage_case *c);
void outage_case_end(struct outage_case *c);

/* Reopen the guarded store, with what options are now. */
void outage_case_reopen(struct outage_case *c);

struct hapax_outage outage_case_tell(struct outage_case *c);

/* Through the guarded store; case_run() would ask the store itself. */
enum hapax_status outage_case_ask(struct outage_case *c, struct hapax_op *op);
enum hapax_outcome outage_case_claim(struct outage_case *c, const char *key, uint64_t *ret_token);

/* With the result "paid". */
enum hapax_status outage_case_complete(struct outage_case *c, const char *key, uint64_t token);

/* Does a caller that asks the guarded store for the key get "paid" to see? */
bool outage_case_replays(struct outage_case *c, const char *key);

void outage_case_go_away(struct outage_case *c);

/* The store is back, and the time of the next try has come. */
void outage_case_come_back(struct outage_case *c);

#endif
