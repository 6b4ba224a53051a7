/* SPDX-License-Identifier: Apache-2.0 */
/*
 * awaited.h - claims of other processes for whose end a caller here waits, by token.
 *
 * The server tells every listener only the token of a claim that ended, so that no tenant learns
 * another tenant's keys. Callers that got IN_PROGRESS know the key, which is kept here. The table
 * is bounded: the newest claims replace the oldest, whose waiters then ask on their timers.
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
	struct hapax_buf names; /* tenant, group and key; reused by the next claim */
	size_t tenant_size;
	size_t group_size;
};

struct hx_postgres_awaited_set {
	struct hx_postgres_awaited_claim claims[HX_POSTGRES_AWAITED_WAYS];
	unsigned next;  /* the oldest claim */
	uint64_t ended; /* the last token of this set that the server announced */
};

struct hx_postgres_awaited {
	struct hapax_store *store;
	struct hx_postgres_awaited_set sets[HX_POSTGRES_AWAITED_SETS];
};

/* The rest is zero. */
void hx_postgres_awaited_init(struct hx_postgres_awaited *awaited, struct hapax_store *store);
void hx_postgres_awaited_done(struct hx_postgres_awaited *awaited);

/*
 * The claim with that token answered op IN_PROGRESS, and op's completion has not run. The notice
 * of the claim's end may overtake that answer; the key is then announced at once.
 */
void hx_postgres_awaited_add(
	struct hx_postgres_awaited *awaited, const struct hapax_op *op, uint64_t token);

/* The claim with that token ended: announce its keys. */
void hx_postgres_awaited_end(struct hx_postgres_awaited *awaited, uint64_t token);

/* Notices may have been missed: announce all keys. */
void hx_postgres_awaited_end_all(struct hx_postgres_awaited *awaited);

#endif
