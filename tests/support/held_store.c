/* SPDX-License-Identifier: Apache-2.0 */
#include "support/held_store.h"

#include <stdlib.h>
#include <string.h>

static void answer(struct held_store *held, struct held_submit submit, enum hapax_status status)
{
	for (size_t i = 0; i < submit.count && status != HAPAX_OK; i++) {
		submit.ops[i].status = status;
		submit.ops[i].outcome = HAPAX_OUTCOME_NONE;
	}
	hapax_store_complete(&held->base, submit.ops, submit.count, submit.completion);
}

static bool is_claim_of(const struct hapax_op *op, const char *key)
{
	return key != NULL && op->type == HAPAX_OP_CLAIM && op->key.size == strlen(key) &&
		memcmp(op->key.data, key, op->key.size) == 0;
}

/* All but those of the key that is not taken. */
static void run(const struct held_store *held, struct hapax_op *ops, size_t count)
{
	if (held->refused == NULL) {
		(void)hapax_store_run(held->inner, ops, count, NULL);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (is_claim_of(&ops[i], held->refused)) {
			ops[i].status = HAPAX_ERR_INVALID;
			ops[i].outcome = HAPAX_OUTCOME_NONE;
		} else {
			(void)hapax_store_run(held->inner, &ops[i], 1, NULL);
		}
	}
}

static void damage(const struct held_store *held, struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct hapax_op *op = &ops[i];

		if (!is_claim_of(op, held->damaged) || op->outcome != HAPAX_OUTCOME_REPLAY ||
		    (op->record == NULL && !held->is_unknown))
			continue;
		op->status = HAPAX_ERR_CORRUPT;
		op->outcome = HAPAX_OUTCOME_NONE;
	}
}

static void held_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct held_store *held = (struct held_store *)store;
	struct held_submit submit = {ops, count, completion, false};

	held->total++;
	if (held->holds) {
		if (held->count == HELD_SUBMITS_MAX)
			abort();
		held->submits[held->count++] = submit;
	} else if (held->away != HAPAX_OK) {
		answer(held, submit, held->away);
	} else if (held->then == HAPAX_OK || held->passes-- > 0) {
		run(held, ops, count);
		damage(held, ops, count);
		answer(held, submit, HAPAX_OK);
	} else {
		held->passes = 0;
		if (held->then == HAPAX_ERR_UNCERTAIN)
			(void)hapax_store_run(held->inner, ops, count, NULL);
		answer(held, submit, held->then);
	}
}

static enum hapax_status no_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	(void)store, (void)scan, (void)cursor, (void)each, (void)context, (void)err;
	return HAPAX_ERR_UNSUPPORTED;
}

static enum hapax_status no_stats(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	(void)store, (void)stats, (void)each, (void)context, (void)err;
	return HAPAX_ERR_UNSUPPORTED;
}

static enum hapax_status no_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err)
{
	(void)store, (void)sweep, (void)err;
	return HAPAX_ERR_UNSUPPORTED;
}

static void held_close(struct hapax_store *store)
{
	hapax_store_detach(store);
}

static const struct hapax_store_ops held_ops = {
	.version = HAPAX_STORE_OPS_VERSION,
	.name = "held",
	.capabilities = HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY | HAPAX_STORE_CLOCK,
	.submit = held_submit,
	.scan = no_scan,
	.stats = no_stats,
	.sweep = no_sweep,
	.close = held_close,
};

void held_store_init(
	struct held_store *held, struct hapax_store *inner, const struct hapax_clock *clock)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;

	memset(held, 0, sizeof(*held));
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.clock = clock;
	held->inner = inner;
	held->ops = held_ops;
	if (hapax_store_attach(&held->base, &held->ops, "held:", &options, NULL) != HAPAX_OK)
		abort();
}

void held_store_done(struct held_store *held)
{
	hapax_store_close(&held->base);
}

static struct held_submit take(struct held_store *held)
{
	struct held_submit submit = held->submits[0];

	if (held->count == 0)
		abort();
	held->count--;
	memmove(&held->submits[0], &held->submits[1], held->count * sizeof(submit));
	return submit;
}

void held_store_do(struct held_store *held)
{
	struct held_submit *submit = &held->submits[0];

	if (held->count == 0)
		abort();
	(void)hapax_store_run(held->inner, submit->ops, submit->count, NULL);
	submit->is_done = true;
}

void held_store_pass(struct held_store *held)
{
	struct held_submit submit = take(held);

	if (!submit.is_done)
		(void)hapax_store_run(held->inner, submit.ops, submit.count, NULL);
	answer(held, submit, HAPAX_OK);
}

void held_store_lose_answer(struct held_store *held)
{
	struct held_submit submit = take(held);

	(void)hapax_store_run(held->inner, submit.ops, submit.count, NULL);
	answer(held, submit, HAPAX_ERR_UNCERTAIN);
}

void held_store_refuse(struct held_store *held, enum hapax_status status)
{
	answer(held, take(held), status);
}
