/* SPDX-License-Identifier: Apache-2.0 */
#include "source/consume/warm_up.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "source/consume/consumer.h"

enum { BATCH_MAX = 1024 };

void hx_warm_up_done(struct hx_warm_up *warm_up)
{
	assert(warm_up->step == HX_WARM_UP_IDLE);
	hx_free(warm_up->ops);
	warm_up->ops = NULL;
}

bool hx_warm_up_has_room(struct hx_consumer *consumer)
{
	struct hx_warm_up *warm_up = &consumer->warm_up;

	if (warm_up->ops == NULL)
		warm_up->ops = hx_alloc_zero(BATCH_MAX, sizeof(*warm_up->ops));
	return warm_up->ops != NULL && warm_up->step == HX_WARM_UP_IDLE &&
		warm_up->count < BATCH_MAX;
}

/* A message without a key, or unprotected, has no record. */
static bool is_kept(const struct hx_in_flight *in_flight)
{
	return in_flight->reason == HX_REASON_NONE && in_flight->key.kind != HAPAX_KEY_NONE &&
		(!in_flight->route->run.is_disabled || in_flight->route->inner != NULL);
}

void hx_warm_up_add(struct hx_in_flight *in_flight)
{
	struct hx_warm_up *warm_up = &in_flight->consumer->warm_up;
	const struct hapax_key *key = &in_flight->key;

	if (!is_kept(in_flight)) {
		hx_settle_ack(in_flight);
		return;
	}
	in_flight->state = HX_IN_FLIGHT_MARKING;
	warm_up->ops[warm_up->count++] = (struct hapax_op){
		.type = HAPAX_OP_LOOKUP,
		.tenant = hx_bytes(key->tenant, key->tenant_size),
		.group = hx_bytes(key->group, key->group_size),
		.key = hx_bytes(key->key, key->key_size),
		.context = in_flight};
}

/* Threads: may be the store's. */
static void on_answered(struct hapax_op *ops, size_t count, void *context)
{
	struct hx_consumer *consumer = context;

	(void)ops, (void)count;
	/* The consumer may be freed after it sees the answer: take_up() waits for this lock. */
	hx_lock_acquire(&consumer->warm_up.lock);
	atomic_store(&consumer->warm_up.is_answered, true);
	if (consumer->wake != NULL)
		consumer->wake(consumer->wake_context);
	hx_lock_release(&consumer->warm_up.lock);
}

static void submit(struct hx_consumer *consumer, enum hx_warm_up_step step)
{
	struct hx_warm_up *warm_up = &consumer->warm_up;
	struct hapax_completion completion = {on_answered, consumer};

	warm_up->step = step;
	atomic_store(&warm_up->is_answered, false);
	hapax_store_submit(consumer->store, warm_up->ops, warm_up->count, completion);
}

/* Settle the message of op: stored, or to be asked again. */
static void settle(const struct hapax_op *op)
{
	struct hx_in_flight *in_flight = op->context;
	struct hx_consumer *consumer = in_flight->consumer;

	if (op->status == HAPAX_OK) {
		hx_settle_store_answered(consumer);
		if (op->type == HAPAX_OP_CHECK && op->outcome == HAPAX_OUTCOME_ACQUIRED)
			consumer->stats.warmed++;
		hx_settle_ack(in_flight);
		return;
	}
	hx_settle_store_refused(consumer, op->status);
	hx_settle_wait(in_flight, 0);
}

/* Keep the messages that the store does not know, to mark them. */
static void take_known(struct hx_warm_up *warm_up)
{
	size_t count = 0;

	for (size_t i = 0; i < warm_up->count; i++) {
		struct hapax_op op = warm_up->ops[i];
		const struct hx_in_flight *in_flight = op.context;
		const struct hapax_key *key = &in_flight->key;

		if (op.status != HAPAX_OK || op.outcome != HAPAX_OUTCOME_ABSENT) {
			settle(&op);
			continue;
		}
		warm_up->ops[count] = (struct hapax_op){
			.type = HAPAX_OP_CHECK,
			.tenant = op.tenant,
			.group = op.group,
			.key = op.key,
			.ttl_ms = in_flight->route->run.ttl_ms,
			.context = op.context};
		if (key->has_fingerprint && !key->is_fingerprint)
			warm_up->ops[count].fingerprint = key->fingerprint;
		count++;
	}
	warm_up->count = count;
}

static bool take_up(struct hx_consumer *consumer)
{
	struct hx_warm_up *warm_up = &consumer->warm_up;

	if (warm_up->step == HX_WARM_UP_IDLE || !atomic_load(&warm_up->is_answered))
		return false;
	hx_lock_acquire(&warm_up->lock);
	hx_lock_release(&warm_up->lock);
	if (warm_up->step == HX_WARM_UP_ASKS) {
		take_known(warm_up);
	} else {
		for (size_t i = 0; i < warm_up->count; i++)
			settle(&warm_up->ops[i]);
		warm_up->count = 0;
	}
	if (warm_up->count > 0)
		submit(consumer, HX_WARM_UP_MARKS);
	else
		warm_up->step = HX_WARM_UP_IDLE;
	return true;
}

bool hx_warm_up_turn(struct hx_consumer *consumer)
{
	struct hx_warm_up *warm_up = &consumer->warm_up;
	bool goes_on = take_up(consumer);

	if (warm_up->step != HX_WARM_UP_IDLE || warm_up->count == 0)
		return goes_on;
	submit(consumer, HX_WARM_UP_ASKS);
	return true;
}
