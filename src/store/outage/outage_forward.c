/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outage_forward.c - a submit on its way through a guarded store.
 *
 * Without an outage the submit goes to the store unchanged. Otherwise every operation gets a
 * route. It goes to the journal if the journal has the key or granted the token, or if the store
 * is unavailable and the scope continues without it. Other operations go to the store, or are
 * refused. Adjacent operations with the same route go together. Operations that the store did not
 * answer may then go to the journal.
 */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "store/core.h"
#include "store/outage/claim_notes.h"
#include "store/outage/guard.h"
#include "store/outage/journal.h"

enum stage {
	STAGE_WHOLE,     /* all at the store */
	STAGE_QUESTIONS, /* asking the journal which keys it has */
	STAGE_ROUTED,    /* nothing sent yet */
	STAGE_RUNS,      /* sending by route */
};

enum route {
	ROUTE_DONE, /* the answer is final */
	ROUTE_STORE,
	ROUTE_JOURNAL,
	ROUTE_KEEP, /* a result whose claim is not in the journal: the journal keeps it */
	ROUTE_NOWHERE,
};

enum {
	/* How often a claim with an unknown outcome is repeated. */
	REPEATS = 2,
	/* Relays with more routes than this are not kept for reuse. */
	KEPT_ROUTES_MAX = 1024,
};

struct hx_outage_forward {
	struct hx_outage_forward *next; /* in the list of free relays */
	struct hx_guard *guard;
	struct hapax_op *ops;
	size_t count;
	struct hapax_completion completion;
	enum stage stage;
	bool is_journalling;
	unsigned repeats;

	unsigned char *routes;      /* enum route, one for each operation */
	struct hapax_op *questions; /* one each: does the journal have the key? */
	size_t routes_max;
	size_t first, end; /* the run of operations in progress */

	/* A result that the journal keeps, unless another claim has the key there. */
	bool has_place;
	struct hapax_op keep_op;
	struct hapax_record kept;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];

	/* The later of submitter and answer continues, which avoids recursion. */
	_Atomic uint32_t turns;
};

static void advance(struct hx_outage_forward *forward);

/* ------------------------------------------------------------------ memory */

static struct hx_outage_forward *take_relay(struct hx_guard *guard)
{
	struct hx_outage_forward *forward;

	hx_mutex_lock(&guard->mutex);
	forward = guard->free_relays;
	if (forward != NULL)
		guard->free_relays = forward->next;
	hx_mutex_unlock(&guard->mutex);
	return forward != NULL ? forward : hx_alloc_zero(1, sizeof(*forward));
}

static void free_routes(struct hx_outage_forward *forward)
{
	hx_free(forward->routes);
	hx_free(forward->questions);
	forward->routes = NULL;
	forward->questions = NULL;
	forward->routes_max = 0;
}

static void give_relay(struct hx_guard *guard, struct hx_outage_forward *forward)
{
	if (forward->routes_max > KEPT_ROUTES_MAX)
		free_routes(forward);
	hx_mutex_lock(&guard->mutex);
	forward->next = guard->free_relays;
	guard->free_relays = forward;
	hx_mutex_unlock(&guard->mutex);
}

void hx_outage_forwards_free(struct hx_guard *guard)
{
	while (guard->free_relays != NULL) {
		struct hx_outage_forward *forward = guard->free_relays;

		guard->free_relays = forward->next;
		free_routes(forward);
		hx_free(forward);
	}
}

static bool make_routes(struct hx_outage_forward *forward)
{
	if (forward->count > forward->routes_max) {
		free_routes(forward);
		forward->routes = hx_alloc_zero(forward->count, sizeof(forward->routes[0]));
		forward->questions = hx_alloc_zero(forward->count, sizeof(forward->questions[0]));
		if (forward->routes == NULL || forward->questions == NULL) {
			free_routes(forward);
			return false;
		}
		forward->routes_max = forward->count;
	}
	return true;
}

/* ------------------------------------------------------------------ routes */

static bool is_claim(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK;
}

/* The route of op while the store is unavailable. */
static enum route route_away(const struct hx_guard *guard, const struct hapax_op *op)
{
	if (guard->options.journal != NULL && hx_transition_has_token(op) &&
	    hx_journal_gave(op->token))
		return ROUTE_JOURNAL;
	if (!hx_guard_continues(guard, op))
		return ROUTE_NOWHERE;
	if (op->type == HAPAX_OP_COMPLETE)
		return ROUTE_KEEP;
	return is_claim(op) ? ROUTE_JOURNAL : ROUTE_NOWHERE;
}

/* The route of op when the store answers but the journal still holds records. */
static enum route route_back(const struct hapax_op *op, const struct hapax_op *question)
{
	bool is_in_journal = question->outcome == HAPAX_OUTCOME_FOUND;

	if (hx_transition_has_token(op))
		return hx_journal_gave(op->token) ? ROUTE_JOURNAL : ROUTE_STORE;
	return is_in_journal && (is_claim(op) || op->type == HAPAX_OP_LOOKUP) ? ROUTE_JOURNAL
									      : ROUTE_STORE;
}

/* The route of op after the store did not answer it. */
static enum route route_on(const struct hx_outage_forward *forward, const struct hapax_op *op)
{
	enum route route;

	if (op->status == HAPAX_ERR_UNCERTAIN && op->type != HAPAX_OP_CLAIM)
		return ROUTE_DONE;
	if (op->status == HAPAX_ERR_UNCERTAIN && forward->repeats < REPEATS)
		return ROUTE_STORE;
	if (op->status != HAPAX_ERR_UNAVAILABLE && op->status != HAPAX_ERR_UNCERTAIN)
		return ROUTE_DONE;
	route = route_away(forward->guard, op);
	return route == ROUTE_NOWHERE ? ROUTE_DONE : route;
}

/* Operations of one group take one route. */
static void unite_groups(struct hx_outage_forward *forward, enum route if_mixed)
{
	size_t end;

	for (size_t first = 0; first < forward->count; first = end) {
		bool is_mixed = false;

		end = hx_store_group_end(forward->ops, forward->count, first);
		for (size_t i = first; i < end; i++)
			is_mixed = is_mixed || forward->routes[i] != forward->routes[first];
		if (is_mixed)
			memset(forward->routes + first, (int)if_mixed, end - first);
	}
}

static void find_routes(struct hx_outage_forward *forward, bool is_away)
{
	for (size_t i = 0; i < forward->count; i++) {
		const struct hapax_op *op = &forward->ops[i];
		enum route route = ROUTE_DONE; /* refused by the check */

		if (op->status == HAPAX_OK)
			route = is_away ? route_away(forward->guard, op)
					: route_back(op, &forward->questions[i]);
		forward->routes[i] = (unsigned char)route;
	}
	unite_groups(forward, is_away ? ROUTE_NOWHERE : ROUTE_JOURNAL);
	forward->first = forward->end = 0;
}

static bool enter_journal(struct hx_outage_forward *forward)
{
	if (!make_routes(forward))
		return false;
	if (!forward->is_journalling)
		hx_guard_enter_journal(forward->guard);
	forward->is_journalling = true;
	return true;
}

/* ------------------------------------------------------------------ answers */

static void note_claim(struct hx_guard *guard, const struct hapax_op *op)
{
	if (guard->notes != NULL && op->type == HAPAX_OP_CLAIM &&
	    op->outcome == HAPAX_OUTCOME_ACQUIRED)
		hx_claim_notes_put(guard->notes, op);
}

/* Did the store answer every operation of the current run? */
static bool note_store(struct hx_outage_forward *forward)
{
	struct hx_guard *guard = forward->guard;
	bool has_answered = true;

	for (size_t i = forward->first; i < forward->end; i++) {
		enum hapax_status status = forward->ops[i].status;

		has_answered = has_answered && status != HAPAX_ERR_UNAVAILABLE &&
			status != HAPAX_ERR_UNCERTAIN;
		note_claim(guard, &forward->ops[i]);
	}
	if (!has_answered || atomic_load_explicit(&guard->is_troubled, memory_order_relaxed) != 0)
		hx_guard_note(guard, has_answered);
	return has_answered;
}

/* The store did not answer all of [first, end): reroute the rest. */
static void reroute(struct hx_outage_forward *forward)
{
	if (!enter_journal(forward)) {
		forward->first = forward->end = forward->count; /* the answers are final */
		return;
	}
	if (forward->stage == STAGE_WHOLE)
		memset(forward->routes, ROUTE_DONE, forward->count);
	for (size_t i = forward->first; i < forward->end; i++)
		forward->routes[i] = (unsigned char)route_on(forward, &forward->ops[i]);
	unite_groups(forward, ROUTE_DONE);
	forward->repeats++;
	forward->end = forward->first;
}

/*
 * A completion may arrive after its lapsed claim was settled. If this process granted the token
 * and the key has not run since, keep the result. The other operations have their answers.
 */
static void keep_late_results(struct hx_outage_forward *forward)
{
	struct hapax_record note;
	bool is_late = false;

	for (size_t i = forward->first; i < forward->end; i++) {
		const struct hapax_op *op = &forward->ops[i];
		bool keeps = op->type == HAPAX_OP_COMPLETE && op->status == HAPAX_ERR_FENCED &&
			op->flags == 0 && hx_claim_notes_find(forward->guard->notes, op, &note);

		forward->routes[i] = keeps ? ROUTE_KEEP : ROUTE_DONE;
		is_late = is_late || keeps;
	}
	if (is_late)
		forward->end = forward->first;
}

static void note_journal(struct hx_outage_forward *forward)
{
	uint64_t continued = 0;

	for (size_t i = forward->first; i < forward->end; i++) {
		struct hapax_op *op = &forward->ops[i];

		continued += is_claim(op) && op->outcome == HAPAX_OUTCOME_ACQUIRED;
		note_claim(forward->guard, op);
		op->continued = is_claim(op) && op->status == HAPAX_OK;
		/* The caller only knows the store, and the store is unavailable. */
		if (is_claim(op) && op->status != HAPAX_OK && op->status != HAPAX_ERR_UNCERTAIN)
			hx_store_refuse(op, HAPAX_ERR_UNAVAILABLE);
	}
	hx_guard_count(forward->guard, &forward->guard->outage.continued, continued);
	keep_late_results(forward);
}

/* The key ran twice, and the other run's result counts. */
static void report_twice(struct hx_guard *guard, const struct hapax_op *op)
{
	const struct hapax_outage_options *options = &guard->options;
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.attempt = 1,
		.token = op->token,
		.tenant = op->tenant,
		.group = op->group,
		.key = op->key,
	};

	hx_guard_count(guard, &guard->outage.reconciled[HAPAX_RECONCILED_TWICE], 1);
	if (options->each != NULL)
		options->each(&record, HAPAX_RECONCILED_TWICE, options->each_context);
}

static void answer_kept(struct hapax_op *op)
{
	hx_store_refuse(op, HAPAX_OK);
	op->outcome = HAPAX_OUTCOME_APPLIED;
	op->attempt = 1;
}

/* The journal has answered the claim of a place, or has kept the result. */
static void note_kept(struct hx_outage_forward *forward)
{
	struct hx_guard *guard = forward->guard;
	struct hapax_op *op = &forward->ops[forward->first];
	bool has_place = forward->has_place;

	forward->has_place = false;
	if (forward->keep_op.status == HAPAX_ERR_UNCERTAIN) {
		hx_store_refuse(op, HAPAX_ERR_UNCERTAIN); /* the journal may have kept it */
	} else if (forward->keep_op.status != HAPAX_OK) {
		hx_store_refuse(op, HAPAX_ERR_UNAVAILABLE);
	} else if (has_place) {
		answer_kept(op);
		hx_guard_count(guard, &guard->outage.kept_results, 1);
	} else if (forward->keep_op.outcome == HAPAX_OUTCOME_ACQUIRED) {
		forward->has_place = true;
		forward->end = forward->first; /* repeat, to keep it */
	} else if (hx_journal_gave(op->token)) {
		hx_store_refuse(op, HAPAX_ERR_FENCED); /* the journal reports a takeover */
	} else {
		answer_kept(op);
		report_twice(guard, op);
	}
}

/* ------------------------------------------------------------------ runs */

static void answered(struct hapax_op *ops, size_t count, void *context)
{
	struct hx_outage_forward *forward = context;

	(void)ops;
	(void)count;
	if (atomic_fetch_add_explicit(&forward->turns, 1, memory_order_acq_rel) == 1)
		advance(forward);
}

/* Submit. True: the answer is there. False: the answer continues and owns the relay. */
static bool ask(
	struct hx_outage_forward *forward, struct hapax_store *store, struct hapax_op *ops,
	size_t count)
{
	atomic_store_explicit(&forward->turns, 0, memory_order_relaxed);
	hapax_store_submit(store, ops, count, (struct hapax_completion){answered, forward});
	return atomic_fetch_add_explicit(&forward->turns, 1, memory_order_acq_rel) == 1;
}

/*
 * Claim the place first, so that a result does not overwrite a duplicate that was let through
 * meanwhile. A repeat after a lost answer uses the same id.
 */
static bool claim_place(struct hx_outage_forward *forward)
{
	static const unsigned char mark[HAPAX_ATTEMPT_ID_SIZE] = "\0\0\0\0\0\0\0\0a result";
	const struct hapax_op *op = &forward->ops[forward->first];

	memcpy(forward->attempt_id, mark, sizeof(mark));
	memcpy(forward->attempt_id, &op->token, sizeof(op->token));
	forward->keep_op = (struct hapax_op){
		.type = HAPAX_OP_CLAIM,
		.tenant = op->tenant,
		.group = op->group,
		.key = op->key,
		.attempt_id = forward->attempt_id,
	};
	return ask(forward, forward->guard->options.journal, &forward->keep_op, 1);
}

static bool keep_result(struct hx_outage_forward *forward)
{
	const struct hapax_op *op = &forward->ops[forward->first];
	int64_t now_ms = forward->keep_op.first_seen_ms; /* of the place, by the journal's clock */

	forward->kept = (struct hapax_record){
		.state = HAPAX_STATE_DONE,
		.origin = HAPAX_ORIGIN_CLAIM,
		.attempt = 1,
		.token = op->token,
		.first_seen_ms = now_ms,
		.changed_ms = now_ms,
		.expires_ms = HAPAX_TIME_NEVER, /* stays here until the store has it */
		.ttl_ms = HX_TTL_MS_DEFAULT,
	};
	/* The store has both with the claim, but may have lost it. */
	(void)hx_claim_notes_find(forward->guard->notes, op, &forward->kept);
	if (op->result != NULL)
		forward->kept.result = *op->result;
	forward->keep_op = (struct hapax_op){
		.type = HAPAX_OP_LOAD,
		.tenant = op->tenant,
		.group = op->group,
		.key = op->key,
		.load = &forward->kept,
	};
	return ask(forward, forward->guard->options.journal, &forward->keep_op, 1);
}

static void refuse_run(struct hx_outage_forward *forward)
{
	for (size_t i = forward->first; i < forward->end; i++)
		hx_store_refuse(&forward->ops[i], HAPAX_ERR_UNAVAILABLE);
	hx_guard_count(
		forward->guard, &forward->guard->outage.refused, forward->end - forward->first);
}

/* Adjacent operations with one route form a run; results are kept one by one. */
static void next_run(struct hx_outage_forward *forward)
{
	forward->first = forward->end;
	while (forward->end < forward->count &&
	       forward->routes[forward->end] == forward->routes[forward->first] &&
	       (forward->end == forward->first || forward->routes[forward->first] != ROUTE_KEEP))
		forward->end++;
}

/* Begin the run. True: it has already ended. */
static bool begin_run(struct hx_outage_forward *forward)
{
	struct hapax_op *ops = forward->ops + forward->first;
	size_t count = forward->end - forward->first;

	switch ((enum route)forward->routes[forward->first]) {
	case ROUTE_DONE: break;
	case ROUTE_STORE: return ask(forward, forward->guard->front.store, ops, count);
	case ROUTE_JOURNAL: return ask(forward, forward->guard->options.journal, ops, count);
	case ROUTE_KEEP: return forward->has_place ? keep_result(forward) : claim_place(forward);
	case ROUTE_NOWHERE: refuse_run(forward); break;
	}
	return true;
}

static void end_run(struct hx_outage_forward *forward)
{
	switch ((enum route)forward->routes[forward->first]) {
	case ROUTE_STORE:
		if (!note_store(forward))
			reroute(forward);
		break;
	case ROUTE_JOURNAL: note_journal(forward); break;
	case ROUTE_KEEP: note_kept(forward); break;
	case ROUTE_DONE:
	case ROUTE_NOWHERE: break;
	}
}

static void finish(struct hx_outage_forward *forward)
{
	struct hx_guard *guard = forward->guard;
	struct hapax_completion completion = forward->completion;
	struct hapax_op *ops = forward->ops;
	size_t count = forward->count;

	if (forward->is_journalling)
		hx_guard_leave_journal(guard);
	give_relay(guard, forward);
	/* The store or the journal has counted the decision. */
	completion.fn(ops, count, completion.context);
}

/* Continue after an answer until an answer is pending or all operations are done. */
static void advance(struct hx_outage_forward *forward)
{
	bool is_done = false;

	switch (forward->stage) {
	case STAGE_WHOLE:
		is_done = note_store(forward);
		if (!is_done)
			reroute(forward);
		break;
	case STAGE_QUESTIONS: find_routes(forward, false); break;
	case STAGE_ROUTED: break;
	case STAGE_RUNS: end_run(forward); break;
	}
	forward->stage = STAGE_RUNS;
	while (!is_done) {
		next_run(forward);
		is_done = forward->first == forward->count;
		if (!is_done && !begin_run(forward))
			return;
		if (!is_done)
			end_run(forward);
	}
	finish(forward);
}

/* Ask the journal which keys it has. True: the answer is there. */
static bool ask_journal(struct hx_outage_forward *forward)
{
	for (size_t i = 0; i < forward->count; i++) {
		const struct hapax_op *op = &forward->ops[i];

		forward->questions[i] = (struct hapax_op){
			.type = HAPAX_OP_LOOKUP,
			.tenant = op->tenant,
			.group = op->group,
			.key = op->key,
		};
	}
	forward->stage = STAGE_QUESTIONS;
	return ask(forward, forward->guard->options.journal, forward->questions, forward->count);
}

/* Checked even without an outage: a run from an outage may finish late. */
static bool has_journal_token(const struct hx_outage_forward *forward)
{
	bool has_any = false;

	for (size_t i = 0; i < forward->count; i++)
		has_any = has_any ||
			(hx_transition_has_token(&forward->ops[i]) &&
			 hx_journal_gave(forward->ops[i].token));
	return has_any && forward->guard->options.journal != NULL;
}

static bool begin(struct hx_outage_forward *forward)
{
	struct hx_guard *guard = forward->guard;
	bool is_away = false;
	bool uses_journal = false;

	forward->stage = STAGE_WHOLE;
	forward->end = forward->count;
	if (atomic_load_explicit(&guard->is_troubled, memory_order_acquire) != 0)
		hx_guard_look(guard, &is_away, &uses_journal);
	if (!is_away && !uses_journal && !has_journal_token(forward))
		return ask(forward, guard->front.store, forward->ops, forward->count);
	if (!enter_journal(forward)) {
		hx_store_fail(forward->ops, forward->count, HAPAX_ERR_NO_MEMORY);
		forward->stage = STAGE_ROUTED;
		forward->first = forward->end = forward->count;
		return true;
	}
	if (!is_away)
		return ask_journal(forward);
	find_routes(forward, true);
	forward->stage = STAGE_ROUTED;
	return true;
}

void hx_outage_forward_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct hx_guard *guard = (struct hx_guard *)store;
	struct hx_outage_forward *forward = take_relay(guard);

	if (forward == NULL) {
		hx_store_fail(ops, count, HAPAX_ERR_NO_MEMORY);
		completion.fn(ops, count, completion.context);
		return;
	}
	for (size_t i = 0; i < count; i++)
		ops[i].continued = 0;
	forward->guard = guard;
	forward->ops = ops;
	forward->count = count;
	forward->completion = completion;
	forward->is_journalling = false;
	forward->has_place = false;
	forward->repeats = 0;
	forward->first = 0;
	if (begin(forward))
		advance(forward);
}
