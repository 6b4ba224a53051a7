/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - processors and a store under a seeded scheduler, clock and faults.
 *
 * A world is one thread, one queue of events in virtual time and one generator: the
 * same seed gives the same run, whatever the machine does. Several processes, each
 * with a processor of its own, share one real store through a line that delays,
 * loses requests, loses answers, and applies what it reported as lost. Processes are
 * paused and crash between any two events; the wall clock is set at will; the store is
 * swept, and keys are forgotten, by force too, while all that goes on.
 *
 * A judge sees every operation as the store applied it and every step as a caller was
 * told it, and holds both to the invariants of research/reliability.md, by number:
 *
 *	I1   two successes of a key are a time to live apart, unless it was forgotten between
 *	I1b  never two live claims; a holder never believes in its lease longer than the store
 *	     does, nor is told to run, or lets its work begin, under a lease that is over
 *	I3   after release or lapse the key can be had again
 *	I5   tokens rise; an operation with an old one changes nothing
 *	I7   another payload never gets the stored result
 *	I8   nothing expires or lapses early, wherever the wall clock jumps
 *	I13  a definite answer is true, and whatever may have happened is UNCERTAIN
 *	I14  once faults stop, every call ends, once, in bounded time; no wake-up is lost
 *
 * and to the rule that the operations of a group take effect together or not at all.
 */
#ifndef TEST_SIM_H
#define TEST_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/ext/store_ops.h>
#include <hapax/hapax.h>

#include "base/clock.h"
#include "base/random.h"
#include "support/store_case.h"

enum {
	SIM_KEYS_MAX = 4,
	SIM_PROCESSES_MAX = 3,
	SIM_CALL_KEYS_MAX = 3,
	SIM_BATCH_MAX = 4,
	SIM_BODY_MAX = 64,
	SIM_WHY_SIZE = 400,
};

struct sim_world;
struct sim_process;

typedef void sim_event_fn(struct sim_world *world, void *context);

struct sim_event {
	int64_t at_ms;
	uint64_t order;
	struct sim_process *process; /* NULL: of the world; else not while it is paused */
	uint64_t life;               /* of the process: gone when it crashed since */
	sim_event_fn *fn;
	void *context;
};

/* What a seed draws first; rates are in 1/1000. */
struct sim_shape {
	unsigned process_count;
	unsigned key_count;
	unsigned call_count;
	int64_t lease_ms;
	int64_t ttl_ms;
	int64_t max_run_ms;
	int64_t work_ms_max;
	int64_t wait_ms_max;
	int64_t delay_ms_max;
	int64_t gap_ms_max; /* between calls */
	int64_t poll_ms;
	enum hapax_on_lapse on_lapse;
	enum hapax_on_mismatch on_mismatch;
	unsigned lose_request;
	unsigned lose_answer;
	unsigned late_apply;
	unsigned slow;   /* answers that take up to two leases */
	unsigned dawdle; /* runs that let time pass before they begin */
	unsigned refuse; /* LIMIT, NO_MEMORY, FAILED: nothing was done */
	unsigned pause;
	unsigned crash;
	unsigned jump;
	unsigned restart;  /* of the store, where it keeps what it knows */
	unsigned sweep;    /* of what has expired, and of claims that were not taken over */
	unsigned forget;   /* of a key, by an operator */
	unsigned fail;     /* runs that end transient */
	unsigned unclear;  /* or ambiguous */
	unsigned mismatch; /* calls with another payload */
	unsigned several;  /* calls with several keys */
	unsigned leave;    /* calls that stop waiting */
	bool in_tick;
	bool is_calm; /* no faults at all, one process: then waking is exact */
};

struct sim_call {
	struct sim_process *process;
	uint64_t life;
	uint64_t number;
	size_t key_count;
	unsigned keys[SIM_CALL_KEYS_MAX];
	char letter; /* of the fingerprint */
	int64_t wait_ms;
	int64_t begun_ms;
	int64_t asked_ms; /* when its claim was last sent */
	struct hapax_run *run;
	unsigned told; /* 1 << step */
	enum hapax_run_outcome outcome;
	int64_t work_ends_ms;
	bool has_left;
	bool has_ended;
	enum hapax_outcome ended_as;
	/*
	 * An operation of it was reported as lost and arrives afterwards. It cannot be taken
	 * back: a claim may then have no holder until it lapses, a renewal may undo
	 * a park until it lapses.
	 */
	bool has_late;
	/*
	 * A key that it held was forgotten by force. What it holds of the others stays
	 * until it lapses: a repetition of its claim is then held up by the holder of that
	 * one, or gets a new token for all.
	 */
	bool was_robbed;
	uint64_t granted; /* the token of the last claim that the store gave to it */
	/* 1 << place in keys: where the store has taken what its run left, of that token. */
	unsigned completed;
	unsigned given_up; /* released or parked */
	unsigned parked;
	char body[SIM_BODY_MAX];
	struct hapax_result result;
	struct sim_call *next;
};

/* One process's line to the store. */
struct sim_store {
	struct hapax_store base;
	struct sim_process *process;
};

struct sim_process {
	struct sim_world *world;
	unsigned index;
	uint64_t life; /* goes up with each crash */
	int64_t paused_until_ms;
	int64_t tick_at_ms; /* the tick that is scheduled */
	struct sim_store *store;
	struct hapax_processor *processor;
	unsigned calls_left;
};

/* A key as the store must have it by what was applied. */
struct judge_key {
	enum hapax_state state;
	uint64_t token;
	char letter;
	int64_t lease_ends_ms;
	int64_t expires_ms;
	int64_t ttl_ms;
	int64_t free_since_ms; /* not claimed since, while it is not */
	int64_t lease_ms;
	struct sim_call *holder;
	char body[SIM_BODY_MAX];
};

struct judge {
	struct judge_key keys[SIM_KEYS_MAX];
	uint64_t token_max;
	uint64_t submit_of_token; /* keys of one group share a token */
	uint64_t successes;
};

struct sim_zombie {
	struct hapax_processor *processor;
	struct sim_store *store;
	struct sim_zombie *next;
};

/* Memory that lives as long as the world. */
struct sim_block {
	struct sim_block *next;
	max_align_t data[];
};

/* What a seed did, by kind: to see that the simulation reaches what it is for. */
enum sim_count {
	SIM_RUNS,
	SIM_REPLAYS,
	SIM_WAITS,
	SIM_FENCED,
	SIM_UNCERTAIN,
	SIM_CRASHES,
	SIM_LAPSED,
	SIM_PARKED,
	SIM_LATE_GROUPS,    /* operations that arrive together, when no caller waits any more */
	SIM_REFUSED_FAILED, /* submits that were answered as by a store that has latched */
	SIM_SWEPT,          /* claims that lapsed, and that a sweep gave up */
	SIM_LATE_COMPLETES, /* of them: completed afterwards all the same */
	SIM_FORGOTTEN,      /* records, those that were held included */
	SIM_FORCED,         /* of them: while they were held */
	SIM_LATE_CLAIMS,    /* that were granted, and over when the answer came */
	SIM_LATE_BEGINS, /* runs that were told to run, and whose lease was over when they came to it */
	SIM_COUNTS,
};

struct sim_world {
	uint64_t seed;
	struct hx_prng prng;
	struct sim_shape shape;
	struct store_case store; /* the real one, and the clock */
	struct sim_process processes[SIM_PROCESSES_MAX];
	struct sim_call *calls;
	struct sim_zombie *zombies; /* crashed; kept until the store is done with their memory */
	struct sim_block *blocks;
	struct judge judge;

	struct sim_event *events; /* a heap */
	size_t event_count;
	size_t event_capacity;
	uint64_t order;
	uint64_t submits;
	uint64_t call_number;
	bool is_healed; /* no more faults */

	uint64_t trace; /* a hash over what happened */
	uint64_t counts[SIM_COUNTS];
	bool has_failed;
	char why[SIM_WHY_SIZE];
	char log[64][160]; /* the last events, for the report of a failure */
	size_t log_count;
};

/* Run one seed on a store of that kind. False: world->why; the last events are printed. */
bool sim_run(struct sim_world *world, uint64_t seed, const char *kind);

/* world.c */
void *sim_alloc(struct sim_world *world, size_t size); /* zeroed; ends with the world */
int64_t sim_now(const struct sim_world *world);
bool sim_chance(struct sim_world *world, unsigned per_mille);
int64_t sim_below(struct sim_world *world, int64_t bound); /* 0 when bound is not positive */
void sim_schedule(
	struct sim_world *world, struct sim_process *process, int64_t after_ms, sim_event_fn *fn,
	void *context);
bool sim_step(struct sim_world *world); /* false: the queue is empty */
void sim_world_done(struct sim_world *world);
__attribute__((format(printf, 2, 3))) void sim_log(
	struct sim_world *world, const char *format, ...);
__attribute__((format(printf, 2, 3))) void sim_fail(
	struct sim_world *world, const char *format, ...);

/* sim_store.c */
struct sim_store *sim_store_new(struct sim_process *process);
void sim_store_free(struct sim_store *store);

/* process.c */
void sim_process_start(struct sim_process *process);
void sim_process_crash(struct sim_process *process);
struct sim_call *sim_call_new(
	struct sim_process *process, const unsigned *keys, size_t key_count, char letter,
	int64_t wait_ms);
void sim_calls_begin(struct sim_process *process, struct sim_call *const *calls, size_t count);

/* judge.c */
struct sim_applied {
	const struct hapax_op *op; /* as the store answered it */
	struct sim_call *call;
	uint64_t token; /* that it was sent with: the answer may write another over it */
	bool is_grouped;
};
void judge_applied(struct sim_world *world, const struct sim_applied *applied);
/* All operations of a group took effect, or none. */
void judge_group(struct sim_world *world, const struct hapax_op *ops, size_t count);
/* The store was swept until it was done, and says that it gave up so many claims. */
void judge_swept(struct sim_world *world, uint64_t lapsed);
void judge_forgot(struct sim_world *world, const struct hapax_op *op);
/* The store has what the judge has. */
void judge_content(struct sim_world *world);
/* Its work begins, though some time after it was told to run. */
void judge_begins(struct sim_world *world, const struct sim_call *call);
void judge_told(
	struct sim_world *world, struct sim_call *call, enum hapax_step step,
	const struct hapax_answer *answer);

#endif
