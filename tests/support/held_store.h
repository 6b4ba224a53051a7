/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held_store.h - a store whose answers the test gives, one submit at a time.
 *
 * It stands before a real store. A submit is held until the test says what becomes of
 * it: it is done and answered, it is done and the answer is lost, or it is not done.
 * Where nothing is held it passes everything on, or refuses everything in one way.
 */
#ifndef TEST_SUPPORT_HELD_STORE_H
#define TEST_SUPPORT_HELD_STORE_H

#include <stdbool.h>

#include <hapax/ext/store_ops.h>

enum { HELD_SUBMITS_MAX = 64 };

struct held_submit {
	struct hapax_op *ops;
	size_t count;
	struct hapax_completion completion;
	bool is_done;
};

struct held_store {
	struct hapax_store base;
	struct hapax_store_ops ops; /* its own: a test may take capabilities away */
	struct hapax_store *inner;
	bool holds;             /* hold every submit, else pass it on */
	enum hapax_status away; /* not OK, and not held: answer every submit so, and do nothing */
	enum hapax_status
		then; /* not OK: after `passes` submits, away; UNCERTAIN does them first */
	size_t passes;
	const char *damaged; /* key of a record that is done and cannot be read, or NULL */
	bool is_unknown;     /* ... nor can that it is done */
	const char *refused; /* key that is not taken, or NULL */
	struct held_submit submits[HELD_SUBMITS_MAX];
	size_t count;
	size_t total; /* submits since the beginning */
};

/* inner must outlive it. clock: as for inner. */
void held_store_init(
	struct held_store *held, struct hapax_store *inner, const struct hapax_clock *clock);
void held_store_done(struct held_store *held);

/* The oldest submit that is held is done, and stays held: its answer is on the way. */
void held_store_do(struct held_store *held);

/* The oldest submit that is held: do it and answer; do it and say UNCERTAIN; do nothing. */
void held_store_pass(struct held_store *held);
void held_store_lose_answer(struct held_store *held);
void held_store_refuse(struct held_store *held, enum hapax_status status);

#endif
