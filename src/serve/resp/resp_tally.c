/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/resp/resp_tally.h"

#include <string.h>

#include "observe/feed.h"
#include "observe/metrics/metrics.h"
#include "resp/resp_batch.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/loop.h"

/* Whether the client asks for permission to run: SET NX does, too. */
static bool is_question(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK ||
		(op->type == HAPAX_OP_SET && op->set_if == HAPAX_SET_IF_ABSENT);
}

/* The decision that the client got; false: none. */
static bool decision_of(const struct hapax_op *op, enum hapax_decision *ret)
{
	if (op->status == HAPAX_ERR_FENCED) {
		*ret = HAPAX_DECISION_FENCED;
		return true;
	}
	if (op->status != HAPAX_OK || !is_question(op))
		return false;
	switch (op->outcome) {
	case HAPAX_OUTCOME_APPLIED:
	case HAPAX_OUTCOME_ACQUIRED: *ret = HAPAX_DECISION_ACQUIRED; return true;
	case HAPAX_OUTCOME_NOT_MET:
	case HAPAX_OUTCOME_REPLAY: *ret = HAPAX_DECISION_REPLAY; return true;
	case HAPAX_OUTCOME_IN_PROGRESS: *ret = HAPAX_DECISION_IN_PROGRESS; return true;
	case HAPAX_OUTCOME_MISMATCH: *ret = HAPAX_DECISION_MISMATCH; return true;
	case HAPAX_OUTCOME_PARKED: *ret = HAPAX_DECISION_PARKED; return true;
	case HAPAX_OUTCOME_NONE:
	case HAPAX_OUTCOME_FOUND:
	case HAPAX_OUTCOME_ABSENT:
	case HAPAX_OUTCOME_BUSY:
	case HAPAX_OUTCOME_SKIPPED: break;
	}
	return false;
}

/* For watchers of the feed. */
static void note_decision(
	const struct hx_loop *loop, const struct hapax_op *op, enum hapax_decision decision)
{
	const struct hapax_clock *clock = hapax_clock_system();
	struct hx_feed *feed = loop->serve->feed;

	if (!hx_feed_wants(feed, loop->index, decision))
		return;
	hx_feed_add(
		feed, loop->index,
		&(struct hx_feed_note){
			.at_ms = clock->wall_ms(clock->context),
			.first_seen_ms = op->first_seen_ms,
			.token = op->token,
			.attempt = op->attempt,
			.decision = decision,
			.door = HX_DOOR_RESP,
			.tenant = op->tenant,
			.group = op->group,
			.key = op->key,
		});
}

/* Decisions in one scope; adjacent operations mostly share it. */
struct told {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	int64_t decisions[HAPAX_DECISION_FENCED + 1];
	int64_t unverified;
};

/* Counts the decisions so far; the next ones are of another scope. */
static void count_told(const struct hx_loop *loop, struct told *told, const struct hapax_op *next)
{
	struct hx_cells *cells = loop->cells;

	for (size_t i = 0; i <= HAPAX_DECISION_FENCED; i++) {
		if (told->decisions[i] != 0)
			hx_metrics_decisions(
				cells, HX_DOOR_RESP,
				hx_metrics_scope(cells, told->tenant, told->group),
				(enum hapax_decision)i, told->decisions[i]);
	}
	if (told->unverified != 0)
		hx_metrics_add(
			cells, HX_METRIC_UNVERIFIED,
			hx_metrics_scope(cells, told->tenant, told->group), 0, told->unverified);
	memset(told, 0, sizeof(*told));
	if (next != NULL) {
		told->tenant = next->tenant;
		told->group = next->group;
	}
}

static void count_decision(const struct hx_loop *loop, const struct hapax_op *op, struct told *told)
{
	enum hapax_decision decision;

	if (!decision_of(op, &decision))
		return;
	/* The texts belong to a user, or to the default: one pointer for each. */
	if (op->tenant.data != told->tenant.data || op->group.data != told->group.data)
		count_told(loop, told, op);
	told->decisions[decision]++;
	told->unverified += op->unverified != 0;
	note_decision(loop, op, decision);
}

void hx_resp_tally(const struct hx_loop *loop, const struct hx_resp_batch *batch)
{
	struct told told = {.unverified = 0};
	bool is_suspect = false;

	/* Adjacent operations are mostly alike. */
	for (size_t i = 0, first; i < batch->count;) {
		enum hapax_op_type type = batch->ops[i].type;
		enum hapax_status status = batch->ops[i].status;

		for (first = i++; i < batch->count && batch->ops[i].type == type &&
		     batch->ops[i].status == status;)
			i++;
		hx_metrics_operations(loop->cells, type, status, i - first);
		for (; first < i; first++) {
			count_decision(loop, &batch->ops[first], &told);
			if (status != HAPAX_OK && is_question(&batch->ops[first]))
				hx_metrics_check_error(loop->cells, HX_DOOR_RESP, status);
		}
		is_suspect =
			is_suspect || status == HAPAX_ERR_UNCERTAIN || status == HAPAX_ERR_FAILED;
	}
	count_told(loop, &told, NULL);
	if (is_suspect)
		hx_serve_suspect(loop->serve);
}
