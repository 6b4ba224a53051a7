/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - one request on its way through the processor.
 *
 *	CLAIMING ──► RUNNING ──► FINISHING ──► ENDED
 *	  │  ▲
 *	  ▼  │ woken, or the holder's lease may have lapsed
 *	WAITING
 *
 *  (1) At most one group of operations of a run is in progress at a time (is_asking). Its question
 *      depends on the state: claim; renew or, when overdue, park; complete, release or park.
 *  (2) One thread at a time reports a step (is_telling), without the mutex, in the order of the
 *      step numbers. END is the last and frees the run.
 *  (3) Each question gets a new attempt_id; its repetitions keep it.
 *  (4) The copy of the request does not move while the run lives.
 *
 * Threads: the processor's mutex is held, except while pump.c reports a step.
 */
#ifndef HX_PROCESSOR_RUN_H
#define HX_PROCESSOR_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/processor.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/timer_heap.h"

struct hx_key_queue;

enum hx_run_state {
	HX_RUN_CLAIMING,
	HX_RUN_WAITING,
	HX_RUN_RUNNING,
	HX_RUN_FINISHING,
	HX_RUN_ENDED,
};

/* A key of a run. Most runs have one. */
struct hx_run_key {
	struct hapax_run *run;
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	bool has_fingerprint;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	size_t index; /* in the request: they are sorted here */

	struct hx_key_queue *queue; /* its queue, or NULL */
	struct hx_run_key *member_next;
	struct hx_run_key *member_back;
	uint64_t turns_seen; /* turns of the queue when the claim was sent */

	struct hapax_record record; /* as the last claim found it */
	struct hapax_buf buf;       /* its bytes */
};

/* Added to the report of a decision if a registration made the request. */
struct hx_run_origin {
	const struct hapax_event *event;
	const struct hapax_key *shadow;
};

struct hapax_run {
	/* These fields survive from one use to the next. */
	struct hapax_processor *processor;
	struct hx_run_key *keys;
	size_t key_capacity;
	struct hapax_buf text; /* tenant, group, key, owner and cause */
	struct hapax_buf error;
	struct hapax_run *all_next; /* in the list of all runs */
	struct hapax_run *all_back;

	/*
	 * A copy: a new claim may overwrite the record before the step that names the holder is
	 * reported.
	 */
	unsigned char holder[HX_OWNER_SIZE_MAX];

	/* The rest is zero at first, or set by reset(). */
	uint64_t sequence; /* age: smaller is older */
	enum hx_run_state state;
	struct hapax_run_options options; /* complete */
	hapax_step_fn *step;
	void *context;
	const struct hx_run_origin *origin;
	struct hapax_bytes owner;
	struct hapax_bytes cause;
	size_t key_count; /* 0: unprotected */

	unsigned steps; /* 1 << enum hapax_step: to be reported */
	bool is_telling;
	bool is_asking;
	bool is_listed;        /* in a pump's list of questions */
	bool is_side_question; /* the question is about the lease */
	bool is_named;         /* seen in a list of runs that is being checked */

	bool is_bare; /* claim only the decision, without the stored result */
	bool has_waited;
	bool has_left;
	bool is_late;      /* a claim lapsed before RUN, and was repeated */
	bool is_uncertain; /* an answer to the current question was lost */
	bool is_overdue;
	bool is_lapsed;
	bool is_fenced;
	bool is_parked; /* because it is overdue */
	bool is_unstored;

	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	uint64_t token;
	uint32_t attempt;
	enum hapax_op_type question; /* to ask, or in progress */
	size_t wait_index;           /* WAITING: the key in whose queue it waits */
	unsigned repeats;            /* of the current question */
	int64_t sent_ms;             /* when the current question was last sent */

	struct hx_timer timer; /* its context is the run */
	int64_t repeat_at_ms;  /* of the current question; or NEVER */
	int64_t give_up_at_ms; /* CLAIMING: no repetition after it */
	int64_t wait_ends_ms;  /* CLAIMING and WAITING */
	int64_t lease_ends_ms; /* RUNNING and FINISHING */
	int64_t renew_at_ms;   /* RUNNING; or NEVER */
	int64_t overdue_at_ms; /* RUNNING; or NEVER */

	struct hapax_answer answer;
	struct hapax_result result; /* finish: with class, without a result that is too large */

	struct hapax_run *list_next; /* in a pump's list of questions */
	struct hapax_run *tell_next; /* in a pump's or the processor's list of steps */
	struct hapax_run *wait_next;
	struct hapax_run *wait_back;
	struct hapax_run *pool_next; /* in the pool */
};

static inline unsigned hx_step_bit(enum hapax_step step)
{
	return 1U << (unsigned)step;
}

/*
 * Check and copy the requests, as a list of runs (list_next) in their order, which have joined the
 * queues of their keys. All or none: every step that can fail comes before the first claim is sent.
 * origin may be NULL. Locks: the mutex is held.
 */
enum hapax_status hx_runs_prepare(
	struct hapax_processor *processor, const struct hapax_request *requests, size_t count,
	const struct hx_run_origin *origin, struct hapax_run **ret_list, struct hapax_error *err);

/* Return to the pool, or free if that is full. Its keys have quit their queues. */
void hx_run_give(struct hapax_run *run);

void hx_runs_free(struct hapax_processor *processor);

/* The key that the request names first; there is one. */
const struct hx_run_key *hx_run_first_key(const struct hapax_run *run);

/* The name of a tenant or group: empty is "default". */
struct hapax_bytes hx_run_name(struct hapax_bytes name);

/* Arm the run's timer for the next event that is due in its state. */
void hx_run_arm(struct hapax_run *run);

/*
 * Assert the rules above, and which fields go with which state. It looks at the first key of the run
 * only. Not while an answer or a timer of the run is being handled: the state is then in between.
 * Locks: the mutex is held.
 */
void hx_run_assert(const struct hapax_run *run);

#endif
