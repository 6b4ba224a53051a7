/* SPDX-License-Identifier: Apache-2.0 */
/*
 * awaited.h - claims of others for whose end somebody here waits, by their tokens.
 *
 * The server tells every listener the token of a claim that ended and nothing else, so that
 * no tenant hears another one's keys. Which key it was is known to those who were
 * told IN_PROGRESS, and kept here. Of bounded size: the newest take the place of the
 * oldest, whose waiters then ask by their timers.
 *
 * Threads: the I/O thread.
 */
#ifndef HX_STORE_POSTGRES_AWAITED_H
#define HX_STORE_POSTGRES_AWAITED_H

#include <hapax/store.h>

#include "base/buf.h"

enum {
	HX_POSTGRES_AWAITED_SETS = 256,
	HX_POSTGRES_AWAITED_WAYS = 4,
};

struct hx_postgres_awaited_claim {
	uint64_t token;         /* 0: none */
	struct hapax_buf names; /* tenant, group and key; kept for the next one */
	size_t tenant_size;
	size_t group_size;
};

struct hx_postgres_awaited_set {
	struct hx_postgres_awaited_claim claims[HX_POSTGRES_AWAITED_WAYS];
	unsigned next;  /* the oldest claim */
	uint64_t ended; /* the last token of this set that was told */
};

struct hx_postgres_awaited {
	struct hapax_store *store;
	struct hx_postgres_awaited_set sets[HX_POSTGRES_AWAITED_SETS];
};

/* The rest is zero. */
void hx_postgres_awaited_init(struct hx_postgres_awaited *awaited, struct hapax_store *store);
void hx_postgres_awaited_done(struct hx_postgres_awaited *awaited);

/*
 * op was answered IN_PROGRESS by the claim with that token, and its completion has not run. If the
 * end of that claim was told already, which may overtake the answer, it is announced at once.
 */
void hx_postgres_awaited_add(
	struct hx_postgres_awaited *awaited, const struct hapax_op *op, uint64_t token);

/* The claim with that token came to its end: announce its keys. */
void hx_postgres_awaited_end(struct hx_postgres_awaited *awaited, uint64_t token);

/* Nobody knows what was told meanwhile: announce all. */
void hx_postgres_awaited_end_all(struct hx_postgres_awaited *awaited);

#endif
