/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transition.h - what an operation does to a record: the rules, as pure functions.
 *
 * Every store that runs in this process decides here, so that the rules stand
 * once. The function reads the old record and the operation, answers into the
 * operation and says what to write; it neither reads a clock nor stores anything.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_RECORD_TRANSITION_H
#define HX_RECORD_TRANSITION_H

#include <stdbool.h>

#include <hapax/store.h>

enum hx_effect {
	HX_EFFECT_NONE,   /* nothing to write */
	HX_EFFECT_PUT,    /* write next in place of the old record, if any */
	HX_EFFECT_REMOVE, /* remove the old record */
};

struct hx_transition_rules {
	int64_t now_ms;
	uint64_t fresh_token; /* the token to give out if one is taken: above every earlier one */
	uint64_t result_size_max; /* larger bodies become tombstones; larger set values LIMIT */
	bool without_lease;       /* a claim's lease ends at once: it lives in a transaction */
};

struct hx_transition {
	enum hx_effect effect;
	bool takes_token;         /* rules.fresh_token was given out */
	bool was_absent;          /* there was no record, or an expired one */
	struct hapax_record next; /* for PUT; borrows from the old record and from op */
};

/*
 * Apply op to old (NULL: no record; an expired one counts as absent). op has been
 * checked: lengths are within limits, lease_ms and ttl_ms hold real values. Writes
 * op's out-members, except record and buf, and *ret.
 */
void hx_transition(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret);

/*
 * A claim that lapsed and that nobody took up for its whole ttl becomes FAILED or
 * PARKED. Effect NONE when that is not so (yet).
 */
void hx_transition_sweep(
	const struct hapax_record *old, const struct hx_transition_rules *rules,
	struct hx_transition *ret);

/* Did the caller bring the token? Then the answer leaves it alone. */
static inline bool hx_transition_has_token(const struct hapax_op *op)
{
	return op->type >= HAPAX_OP_RENEW && op->type <= HAPAX_OP_PARK;
}

/*
 * Does the answer of op, which has an outcome, carry the record's token? Only if the token is
 * the caller's own (ACQUIRED, APPLIED) or the caller asked for the record (FOUND). In any other
 * answer, such as IN_PROGRESS, it belongs to the holder: a caller that used it would end
 * the holder's claim.
 */
bool hx_transition_tells_token(const struct hapax_op *op);

/* The record's out-members of op, whose outcome is set. */
void hx_transition_describe(const struct hapax_record *record, int64_t now_ms, struct hapax_op *op);

/* The decision under which an answered operation is counted, or -1 for none. */
int hx_transition_decision(const struct hapax_op *op);

/* Does the answer of op let an all-or-nothing group go on? ACQUIRED or APPLIED. */
bool hx_transition_is_go(const struct hapax_op *op);

#endif
