/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/resp/resp_tally.h"

#include <string.h>

#include "observe/decision.h"
#include "observe/metrics/metrics.h"
#include "resp/resp_batch.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/loop.h"

/* Decisions in one scope; adjacent operations mostly share it. */
struct told {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	int64_t decisions[HAPAX_DECISION_FENCED + 1];
	int64_t marks; /* of those acquired: done at once */
	int64_t unverified;
	int64_t continued; /* a journal decided: the store did not answer */
};

static void count_some(
	struct hx_observer *observer, const struct told *told, enum hapax_decision decision,
	unsigned flags, int64_t count)
{
	if (count != 0)
		hx_decision_count(
			observer,
			&(struct hx_decision){
				.door = HX_DOOR_RESP,
				.tenant = told->tenant,
				.group = told->group,
				.decision = decision,
				.flags = flags,
				.took_ns = -1},
			count);
}

/* Counts the decisions so far; the next ones are of another scope. */
static void count_told(struct hx_observer *observer, struct told *told, const struct hapax_op *next)
{
	for (unsigned i = HAPAX_DECISION_REPLAY; i <= HAPAX_DECISION_FENCED; i++)
		count_some(observer, told, (enum hapax_decision)i, 0, told->decisions[i]);
	count_some(
		observer, told, HAPAX_DECISION_ACQUIRED, 0,
		told->decisions[HAPAX_DECISION_ACQUIRED] - told->marks);
	count_some(observer, told, HAPAX_DECISION_ACQUIRED, HX_DECISION_MARKED, told->marks);
	if (told->unverified != 0)
		hx_metrics_add(
			observer->cells, HX_METRIC_UNVERIFIED,
			hx_metrics_scope(observer->cells, told->tenant, told->group), 0,
			told->unverified);
	if (told->continued != 0)
		hx_metrics_check_errors(
			observer->cells, HX_DOOR_RESP, HAPAX_ERR_UNAVAILABLE, told->continued);
	memset(told, 0, sizeof(*told));
	if (next != NULL) {
		told->tenant = next->tenant;
		told->group = next->group;
	}
}

/* The store decided, or did not answer. */
static void tell_decision(
	struct hx_observer *observer, const struct hapax_op *op, enum hapax_decision decision,
	struct told *told)
{
	struct hx_decision details;
	unsigned wants;

	if (op->status != HAPAX_OK && op->status != HAPAX_ERR_FENCED) {
		hx_decision_read_op(op, HX_DOOR_RESP, decision, &details);
		hx_decision_tell(observer, &details);
		return;
	}
	/* The texts belong to a user, or to the default: one pointer for each. */
	if (op->tenant.data != told->tenant.data || op->group.data != told->group.data)
		count_told(observer, told, op);
	told->decisions[decision]++;
	told->marks += decision == HAPAX_DECISION_ACQUIRED && op->type != HAPAX_OP_CLAIM;
	told->unverified += op->unverified != 0;
	told->continued += op->continued != 0;
	wants = hx_observer_wants(observer, decision);
	if (wants == 0)
		return;
	hx_decision_read_op(op, HX_DOOR_RESP, decision, &details);
	hx_decision_note(observer, wants, &details);
}

static void tell_op(struct hx_observer *observer, const struct hapax_op *op, struct told *told)
{
	enum hapax_decision decision;
	struct hx_decision_end end;
	struct hx_decision details;

	switch (hx_decision_sort_op(op, &decision, &end)) {
	case HX_OP_DECIDED: tell_decision(observer, op, decision, told); return;
	case HX_OP_ENDED:
		hx_decision_read_op(op, HX_DOOR_RESP, HAPAX_DECISION_ACQUIRED, &details);
		hx_decision_end(observer, &details, &end);
		return;
	case HX_OP_OTHER: return;
	}
}

void hx_resp_tally(struct hx_loop *loop, const struct hx_resp_batch *batch)
{
	struct told told = {.unverified = 0};
	bool is_suspect = false;

	hx_observer_begin_round(&loop->observer);
	/* Adjacent operations are mostly alike. */
	for (size_t i = 0, first; i < batch->count;) {
		enum hapax_op_type type = batch->ops[i].type;
		enum hapax_status status = batch->ops[i].status;

		for (first = i++; i < batch->count && batch->ops[i].type == type &&
		     batch->ops[i].status == status;)
			i++;
		hx_metrics_operations(loop->cells, type, status, i - first);
		for (; first < i; first++)
			tell_op(&loop->observer, &batch->ops[first], &told);
		is_suspect =
			is_suspect || status == HAPAX_ERR_UNCERTAIN || status == HAPAX_ERR_FAILED;
	}
	count_told(&loop->observer, &told, NULL);
	hx_observer_end_round(&loop->observer);
	if (is_suspect)
		hx_serve_suspect(loop->serve);
}
