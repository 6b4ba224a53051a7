/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outage_forward.c - a submit on its way through a guarded store.
 *
 * While all is well it goes to the store as it is. In trouble every operation gets a
 * route: to the journal if that has the key or gave the token, or if the store is away
 * and the scope goes on without it; else to the store, or to nobody. Neighbours with one
 * route go together. What the store did not answer may go on to the journal.
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
	STAGE_WHOLE,     /* all of it is at the store */
	STAGE_QUESTIONS, /* the journal is asked which keys it has */
	STAGE_ROUTED,    /* nothing was asked yet */
	STAGE_RUNS,      /* by routes */
};

enum route {
	ROUTE_DONE, /* the answer stands */
	ROUTE_STORE,
	ROUTE_JOURNAL,
	ROUTE_KEEP, /* a result whose claim is not in the journal: that keeps it */
	ROUTE_NOWHERE,
};

enum {
	/* A claim whose fate is unknown is asked for again, so often. */
	REPEATS = 2,
	/* Relays with more routes than this are not kept for later. */
	KEPT_ROUTES_MAX = 1024,
};

struct hx_relay {
	struct hx_relay *next; /* of the free ones */
	struct hx_guard *guard;
	struct hapax_op *ops;
	size_t count;
	struct hapax_completion completion;
	enum stage stage;
	bool is_journalling;
	unsigned repeats;

	unsigned char *routes;      /* enum route, one for each operation */
	struct hapax_op *questions; /* as many: is it in the journal? */
	size_t routes_max;
	size_t first, end; /* the run of operations that is under way */

	/* A result that the journal keeps, unless somebody else has the key there. */
	bool has_place;
	struct hapax_op keep_op;
	struct hapax_record kept;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];

	/* Who came last, the submitter or the answer, goes on: no recursion. */
	_Atomic uint32_t turns;
};

static void advance(struct hx_relay *relay);

/* ------------------------------------------------------------------ memory */

static struct hx_relay *take_relay(struct hx_guard *guard)
{
	struct hx_relay *relay;

	hx_mutex_lock(&guard->mutex);
	relay = guard->free_relays;
	if (relay != NULL)
		guard->free_relays = relay->next;
	hx_mutex_unlock(&guard->mutex);
	return relay != NULL ? relay : hx_alloc_zero(1, sizeof(*relay));
}

static void free_routes(struct hx_relay *relay)
{
	hx_free(relay->routes);
	hx_free(relay->questions);
	relay->routes = NULL;
	relay->questions = NULL;
	relay->routes_max = 0;
}

static void give_relay(struct hx_guard *guard, struct hx_relay *relay)
{
	if (relay->routes_max > KEPT_ROUTES_MAX)
		free_routes(relay);
	hx_mutex_lock(&guard->mutex);
	relay->next = guard->free_relays;
	guard->free_relays = relay;
	hx_mutex_unlock(&guard->mutex);
}

void hx_relays_free(struct hx_guard *guard)
{
	while (guard->free_relays != NULL) {
		struct hx_relay *relay = guard->free_relays;

		guard->free_relays = relay->next;
		free_routes(relay);
		hx_free(relay);
	}
}

static bool make_routes(struct hx_relay *relay)
{
	if (relay->count > relay->routes_max) {
		free_routes(relay);
		relay->routes = hx_alloc_zero(relay->count, sizeof(relay->routes[0]));
		relay->questions = hx_alloc_zero(relay->count, sizeof(relay->questions[0]));
		if (relay->routes == NULL || relay->questions == NULL) {
			free_routes(relay);
			return false;
		}
		relay->routes_max = relay->count;
	}
	return true;
}

/* ------------------------------------------------------------------ routes */

static bool is_claim(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK;
}

/* Where op goes while the store is away. */
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

/* Where op goes when the store answers, while the journal still holds something. */
static enum route route_back(const struct hapax_op *op, const struct hapax_op *question)
{
	bool is_in_journal = question->outcome == HAPAX_OUTCOME_FOUND;

	if (hx_transition_has_token(op))
		return hx_journal_gave(op->token) ? ROUTE_JOURNAL : ROUTE_STORE;
	return is_in_journal && (is_claim(op) || op->type == HAPAX_OP_LOOKUP) ? ROUTE_JOURNAL
									      : ROUTE_STORE;
}

/* Where op goes after the store did not answer it. */
static enum route route_on(const struct hx_relay *relay, const struct hapax_op *op)
{
	enum route route;

	if (op->status == HAPAX_ERR_UNCERTAIN && op->type != HAPAX_OP_CLAIM)
		return ROUTE_DONE;
	if (op->status == HAPAX_ERR_UNCERTAIN && relay->repeats < REPEATS)
		return ROUTE_STORE;
	if (op->status != HAPAX_ERR_UNAVAILABLE && op->status != HAPAX_ERR_UNCERTAIN)
		return ROUTE_DONE;
	route = route_away(relay->guard, op);
	return route == ROUTE_NOWHERE ? ROUTE_DONE : route;
}

/* Operations that belong together go one way. */
static void unite_groups(struct hx_relay *relay, enum route if_mixed)
{
	size_t end;

	for (size_t first = 0; first < relay->count; first = end) {
		bool is_mixed = false;

		end = hx_store_group_end(relay->ops, relay->count, first);
		for (size_t i = first; i < end; i++)
			is_mixed = is_mixed || relay->routes[i] != relay->routes[first];
		if (is_mixed)
			memset(relay->routes + first, (int)if_mixed, end - first);
	}
}

static void find_routes(struct hx_relay *relay, bool is_away)
{
	for (size_t i = 0; i < relay->count; i++) {
		const struct hapax_op *op = &relay->ops[i];
		enum route route = ROUTE_DONE; /* refused by the check */

		if (op->status == HAPAX_OK)
			route = is_away ? route_away(relay->guard, op)
					: route_back(op, &relay->questions[i]);
		relay->routes[i] = (unsigned char)route;
	}
	unite_groups(relay, is_away ? ROUTE_NOWHERE : ROUTE_JOURNAL);
	relay->first = relay->end = 0;
}

static bool enter_journal(struct hx_relay *relay)
{
	if (!make_routes(relay))
		return false;
	if (!relay->is_journalling)
		hx_guard_enter_journal(relay->guard);
	relay->is_journalling = true;
	return true;
}

/* ------------------------------------------------------------------ answers */

static void note_claim(struct hx_guard *guard, const struct hapax_op *op)
{
	if (guard->notes != NULL && op->type == HAPAX_OP_CLAIM &&
	    op->outcome == HAPAX_OUTCOME_ACQUIRED)
		hx_claim_notes_put(guard->notes, op);
}

/* Was every operation of the run that is under way answered by the store? */
static bool note_store(struct hx_relay *relay)
{
	struct hx_guard *guard = relay->guard;
	bool has_answered = true;

	for (size_t i = relay->first; i < relay->end; i++) {
		enum hapax_status status = relay->ops[i].status;

		has_answered = has_answered && status != HAPAX_ERR_UNAVAILABLE &&
			status != HAPAX_ERR_UNCERTAIN;
		note_claim(guard, &relay->ops[i]);
	}
	if (!has_answered || atomic_load_explicit(&guard->is_troubled, memory_order_relaxed) != 0)
		hx_guard_note(guard, has_answered);
	return has_answered;
}

/* The store did not answer all of [first, end): what becomes of the rest? */
static void reroute(struct hx_relay *relay)
{
	if (!enter_journal(relay)) {
		relay->first = relay->end = relay->count; /* the answers stand */
		return;
	}
	if (relay->stage == STAGE_WHOLE)
		memset(relay->routes, ROUTE_DONE, relay->count);
	for (size_t i = relay->first; i < relay->end; i++)
		relay->routes[i] = (unsigned char)route_on(relay, &relay->ops[i]);
	unite_groups(relay, ROUTE_DONE);
	relay->repeats++;
	relay->end = relay->first;
}

/*
 * A completion that came after its lapsed claim was settled, of a token that was given out
 * here: if nobody has run since, the result is kept. The others of the run have their answers.
 */
static void keep_late_results(struct hx_relay *relay)
{
	struct hapax_record note;
	bool is_late = false;

	for (size_t i = relay->first; i < relay->end; i++) {
		const struct hapax_op *op = &relay->ops[i];
		bool keeps = op->type == HAPAX_OP_COMPLETE && op->status == HAPAX_ERR_FENCED &&
			op->flags == 0 && hx_claim_notes_find(relay->guard->notes, op, &note);

		relay->routes[i] = keeps ? ROUTE_KEEP : ROUTE_DONE;
		is_late = is_late || keeps;
	}
	if (is_late)
		relay->end = relay->first;
}

static void note_journal(struct hx_relay *relay)
{
	uint64_t continued = 0;

	for (size_t i = relay->first; i < relay->end; i++) {
		struct hapax_op *op = &relay->ops[i];

		continued += is_claim(op) && op->outcome == HAPAX_OUTCOME_ACQUIRED;
		note_claim(relay->guard, op);
		/* The caller knows of the store alone, and that one is away. */
		if (is_claim(op) && op->status != HAPAX_OK && op->status != HAPAX_ERR_UNCERTAIN)
			hx_store_refuse(op, HAPAX_ERR_UNAVAILABLE);
	}
	hx_guard_count(relay->guard, &relay->guard->outage.continued, continued);
	keep_late_results(relay);
}

/* Two runs of one key, of which one result counts: that of the other. */
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

/* The journal has said whether there is a place for the result, or has kept it. */
static void note_kept(struct hx_relay *relay)
{
	struct hx_guard *guard = relay->guard;
	struct hapax_op *op = &relay->ops[relay->first];
	bool has_place = relay->has_place;

	relay->has_place = false;
	if (relay->keep_op.status == HAPAX_ERR_UNCERTAIN) {
		hx_store_refuse(op, HAPAX_ERR_UNCERTAIN); /* it may be kept */
	} else if (relay->keep_op.status != HAPAX_OK) {
		hx_store_refuse(op, HAPAX_ERR_UNAVAILABLE);
	} else if (has_place) {
		answer_kept(op);
		hx_guard_count(guard, &guard->outage.kept_results, 1);
	} else if (relay->keep_op.outcome == HAPAX_OUTCOME_ACQUIRED) {
		relay->has_place = true;
		relay->end = relay->first; /* once more, to keep it */
	} else if (hx_journal_gave(op->token)) {
		hx_store_refuse(op, HAPAX_ERR_FENCED); /* taken over, as the journal says */
	} else {
		answer_kept(op);
		report_twice(guard, op);
	}
}

/* ------------------------------------------------------------------ the way */

static void answered(struct hapax_op *ops, size_t count, void *context)
{
	struct hx_relay *relay = context;

	(void)ops;
	(void)count;
	if (atomic_fetch_add_explicit(&relay->turns, 1, memory_order_acq_rel) == 1)
		advance(relay);
}

/* Ask. True: the answer is there; else it will go on, and relay is not ours any more. */
static bool ask(
	struct hx_relay *relay, struct hapax_store *store, struct hapax_op *ops, size_t count)
{
	atomic_store_explicit(&relay->turns, 0, memory_order_relaxed);
	hapax_store_submit(store, ops, count, (struct hapax_completion){answered, relay});
	return atomic_fetch_add_explicit(&relay->turns, 1, memory_order_acq_rel) == 1;
}

/*
 * A duplicate that was let through while this one ran is not written over: the place is
 * claimed first. Who asks again, because the answer was lost, asks by the same id.
 */
static bool claim_place(struct hx_relay *relay)
{
	static const unsigned char mark[HAPAX_ATTEMPT_ID_SIZE] = "\0\0\0\0\0\0\0\0a result";
	const struct hapax_op *op = &relay->ops[relay->first];

	memcpy(relay->attempt_id, mark, sizeof(mark));
	memcpy(relay->attempt_id, &op->token, sizeof(op->token));
	relay->keep_op = (struct hapax_op){
		.type = HAPAX_OP_CLAIM,
		.tenant = op->tenant,
		.group = op->group,
		.key = op->key,
		.attempt_id = relay->attempt_id,
	};
	return ask(relay, relay->guard->options.journal, &relay->keep_op, 1);
}

static bool keep_result(struct hx_relay *relay)
{
	const struct hapax_op *op = &relay->ops[relay->first];
	int64_t now_ms = relay->keep_op.first_seen_ms; /* of the place: the journal's own time */

	relay->kept = (struct hapax_record){
		.state = HAPAX_STATE_DONE,
		.origin = HAPAX_ORIGIN_CLAIM,
		.attempt = 1,
		.token = op->token,
		.first_seen_ms = now_ms,
		.changed_ms = now_ms,
		.expires_ms = HAPAX_TIME_NEVER, /* here it stays until it is in the store */
		.ttl_ms = HX_TTL_MS_DEFAULT,
	};
	/* Both are in the store, with the claim; but that may be lost there. */
	(void)hx_claim_notes_find(relay->guard->notes, op, &relay->kept);
	if (op->result != NULL)
		relay->kept.result = *op->result;
	relay->keep_op = (struct hapax_op){
		.type = HAPAX_OP_LOAD,
		.tenant = op->tenant,
		.group = op->group,
		.key = op->key,
		.load = &relay->kept,
	};
	return ask(relay, relay->guard->options.journal, &relay->keep_op, 1);
}

static void refuse_run(struct hx_relay *relay)
{
	for (size_t i = relay->first; i < relay->end; i++)
		hx_store_refuse(&relay->ops[i], HAPAX_ERR_UNAVAILABLE);
	hx_guard_count(relay->guard, &relay->guard->outage.refused, relay->end - relay->first);
}

/* Neighbours of one route make a run; results are kept one by one. */
static void next_run(struct hx_relay *relay)
{
	relay->first = relay->end;
	while (relay->end < relay->count &&
	       relay->routes[relay->end] == relay->routes[relay->first] &&
	       (relay->end == relay->first || relay->routes[relay->first] != ROUTE_KEEP))
		relay->end++;
}

/* Begin the run. True: it has ended already. */
static bool begin_run(struct hx_relay *relay)
{
	struct hapax_op *ops = relay->ops + relay->first;
	size_t count = relay->end - relay->first;

	switch ((enum route)relay->routes[relay->first]) {
	case ROUTE_DONE: break;
	case ROUTE_STORE: return ask(relay, relay->guard->store, ops, count);
	case ROUTE_JOURNAL: return ask(relay, relay->guard->options.journal, ops, count);
	case ROUTE_KEEP: return relay->has_place ? keep_result(relay) : claim_place(relay);
	case ROUTE_NOWHERE: refuse_run(relay); break;
	}
	return true;
}

static void end_run(struct hx_relay *relay)
{
	switch ((enum route)relay->routes[relay->first]) {
	case ROUTE_STORE:
		if (!note_store(relay))
			reroute(relay);
		break;
	case ROUTE_JOURNAL: note_journal(relay); break;
	case ROUTE_KEEP: note_kept(relay); break;
	case ROUTE_DONE:
	case ROUTE_NOWHERE: break;
	}
}

static void finish(struct hx_relay *relay)
{
	struct hx_guard *guard = relay->guard;
	struct hapax_completion completion = relay->completion;
	struct hapax_op *ops = relay->ops;
	size_t count = relay->count;

	if (relay->is_journalling)
		hx_guard_leave_journal(guard);
	give_relay(guard, relay);
	/* Whoever decided has counted, the store or the journal. */
	completion.fn(ops, count, completion.context);
}

/* What was asked is answered: go on until something has to be waited for, or all is done. */
static void advance(struct hx_relay *relay)
{
	bool is_done = false;

	switch (relay->stage) {
	case STAGE_WHOLE:
		is_done = note_store(relay);
		if (!is_done)
			reroute(relay);
		break;
	case STAGE_QUESTIONS: find_routes(relay, false); break;
	case STAGE_ROUTED: break;
	case STAGE_RUNS: end_run(relay); break;
	}
	relay->stage = STAGE_RUNS;
	while (!is_done) {
		next_run(relay);
		is_done = relay->first == relay->count;
		if (!is_done && !begin_run(relay))
			return;
		if (!is_done)
			end_run(relay);
	}
	finish(relay);
}

/* Which of the keys does the journal have? True: it has said so. */
static bool ask_journal(struct hx_relay *relay)
{
	for (size_t i = 0; i < relay->count; i++) {
		const struct hapax_op *op = &relay->ops[i];

		relay->questions[i] = (struct hapax_op){
			.type = HAPAX_OP_LOOKUP,
			.tenant = op->tenant,
			.group = op->group,
			.key = op->key,
		};
	}
	relay->stage = STAGE_QUESTIONS;
	return ask(relay, relay->guard->options.journal, relay->questions, relay->count);
}

/* Even when all is well: a run of an outage that comes to its end late. */
static bool has_journal_token(const struct hx_relay *relay)
{
	bool has_any = false;

	for (size_t i = 0; i < relay->count; i++)
		has_any = has_any ||
			(hx_transition_has_token(&relay->ops[i]) &&
		         hx_journal_gave(relay->ops[i].token));
	return has_any && relay->guard->options.journal != NULL;
}

static bool begin(struct hx_relay *relay)
{
	struct hx_guard *guard = relay->guard;
	bool is_away = false;
	bool uses_journal = false;

	relay->stage = STAGE_WHOLE;
	relay->end = relay->count;
	if (atomic_load_explicit(&guard->is_troubled, memory_order_acquire) != 0)
		hx_guard_look(guard, &is_away, &uses_journal);
	if (!is_away && !uses_journal && !has_journal_token(relay))
		return ask(relay, guard->store, relay->ops, relay->count);
	if (!enter_journal(relay)) {
		hx_store_fail(relay->ops, relay->count, HAPAX_ERR_NO_MEMORY);
		relay->stage = STAGE_ROUTED;
		relay->first = relay->end = relay->count;
		return true;
	}
	if (!is_away)
		return ask_journal(relay);
	find_routes(relay, true);
	relay->stage = STAGE_ROUTED;
	return true;
}

void hx_relay_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct hx_guard *guard = (struct hx_guard *)store;
	struct hx_relay *relay = take_relay(guard);

	if (relay == NULL) {
		hx_store_fail(ops, count, HAPAX_ERR_NO_MEMORY);
		completion.fn(ops, count, completion.context);
		return;
	}
	relay->guard = guard;
	relay->ops = ops;
	relay->count = count;
	relay->completion = completion;
	relay->is_journalling = false;
	relay->has_place = false;
	relay->repeats = 0;
	relay->first = 0;
	if (begin(relay))
		advance(relay);
}
