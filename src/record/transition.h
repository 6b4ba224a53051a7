/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transition.h - what an operation does to a record: the rules, as pure functions.
 *
 * Every store that runs in this process decides here, so the rules exist once. The function
 * reads the old record and the operation. It answers into the operation and returns what to
 * write. It neither reads a clock nor stores anything.
 *
 * Threads: any; the functions keep no state.
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
	uint64_t fresh_token;     /* the token to issue if one is taken: above every earlier one */
	uint64_t result_size_max; /* larger bodies become tombstones; larger set values LIMIT */
	bool without_lease;       /* a claim's lease ends at once: it is part of a transaction */
};

struct hx_transition {
	enum hx_effect effect;
	bool takes_token;         /* rules.fresh_token was issued */
	bool was_absent;          /* there was no record, or an expired one */
	struct hapax_record next; /* for PUT; borrows from the old record and from op */
};

/*
 * Apply op to old (NULL: no record; an expired one counts as absent). op has been checked:
 * lengths are within limits, lease_ms and ttl_ms hold real values. Writes *ret and op's
 * out-members, except record and buf.
 */
void hx_transition(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret);

/*
 * A lapsed claim that no caller took over for its whole ttl becomes FAILED or PARKED. Effect
 * NONE: this is not (yet) the case.
 */
void hx_transition_sweep(
	const struct hapax_record *old, const struct hx_transition_rules *rules,
	struct hx_transition *ret);

/* Did the caller supply the token? Then the answer does not change it. */
static inline bool hx_transition_has_token(const struct hapax_op *op)
{
	return op->type >= HAPAX_OP_RENEW && op->type <= HAPAX_OP_PARK;
}

/*
 * Does the answer of op, which has an outcome, carry the record's token? Only if the token is
 * the caller's own (ACQUIRED, APPLIED) or the caller asked for the record (FOUND). In other
 * answers, such as IN_PROGRESS, it belongs to the holder: a caller that used it would end the
 * holder's claim.
 */
bool hx_transition_tells_token(const struct hapax_op *op);

/* Set the record's out-members of op, whose outcome is set. */
void hx_transition_describe(const struct hapax_record *record, int64_t now_ms, struct hapax_op *op);

/* The decision that an answered operation counts as, or -1 for none. */
int hx_transition_decision(const struct hapax_op *op);

/* Does the answer of op let an all-or-nothing group continue? ACQUIRED or APPLIED. */
bool hx_transition_is_go(const struct hapax_op *op);

#endif
