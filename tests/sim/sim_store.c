/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_store.c - the line between a process and the store, and what can go wrong on it.
 *
 *	request lost      nothing was done; UNAVAILABLE when that is certain, else UNCERTAIN
 *	answer lost       it was done; UNCERTAIN
 *	late              UNCERTAIN, and done afterwards, when no caller waits any more
 *	refused           LIMIT, NO_MEMORY or FAILED; nothing was done
 *
 * The memory of the operations is the processor's. It stays until the answer; what is
 * done late is done with a copy. A process that crashed never gets its answers, and
 * its memory is kept until the end.
 */
#include <stdlib.h>
#include <string.h>

#include "processor/run.h"
#include "sim/sim.h"

struct trip {
	struct sim_store *store;
	struct hapax_op *ops;
	size_t count;
	struct hapax_completion completion;
	enum hapax_status verdict; /* OK: answer as the store did */
};

static struct sim_store *sim_of(struct hapax_store *store)
{
	return (struct sim_store *)store;
}

static struct sim_call *call_of(const struct hapax_op *op)
{
	return ((const struct hapax_run *)op->context)->context;
}

static size_t group_end(const struct hapax_op *ops, size_t first)
{
	while (ops[first].flags & HAPAX_OP_LINKED)
		first++;
	return first + 1;
}

/* Let the real store do it, and let the judge see it. */
static void apply(struct sim_world *world, struct hapax_op *ops, size_t count)
{
	uint64_t *tokens = sim_alloc(world, count * sizeof(*tokens));
	size_t end;

	world->submits++;
	for (size_t i = 0; i < count; i++)
		tokens[i] = ops[i].token;
	(void)hapax_store_run(world->store.store, ops, count, NULL);
	for (size_t first = 0; first < count; first = end) {
		end = group_end(ops, first);
		for (size_t i = first; i < end; i++) {
			struct sim_applied applied = {
				&ops[i], call_of(&ops[i]), tokens[i], end - first > 1};

			judge_applied(world, &applied);
		}
		judge_group(world, &ops[first], end - first);
	}
}

static void answer(struct sim_world *world, void *context)
{
	struct trip *trip = context;

	for (size_t i = 0; i < trip->count; i++)
		world->counts[SIM_LATE_CLAIMS] += trip->ops[i].type == HAPAX_OP_CLAIM &&
			trip->ops[i].outcome == HAPAX_OUTCOME_ACQUIRED &&
			sim_now(world) >= call_of(&trip->ops[i])->asked_ms + trip->ops[i].lease_ms;
	for (size_t i = 0; i < trip->count && trip->verdict != HAPAX_OK; i++) {
		trip->ops[i].status = trip->verdict;
		trip->ops[i].outcome = HAPAX_OUTCOME_NONE;
	}
	hapax_store_complete(&trip->store->base, trip->ops, trip->count, trip->completion);
}

static void arrive(struct sim_world *world, void *context)
{
	struct trip *trip = context;
	struct sim_process *process = trip->store->process;
	int64_t longest_ms = world->shape.delay_ms_max;

	apply(world, trip->ops, trip->count);
	/* A process that crashed meanwhile gets no answer. */
	if (process->store != trip->store)
		return;
	if (!world->is_healed && sim_chance(world, world->shape.lose_answer))
		trip->verdict = HAPAX_ERR_UNCERTAIN;
	if (!world->is_healed && sim_chance(world, world->shape.slow))
		longest_ms = 2 * world->shape.lease_ms;
	sim_schedule(world, process, sim_below(world, longest_ms + 1), answer, trip);
}

/* An operation with all that it points at. */
struct copy {
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	char tenant[16], group[16], key[16];
	char body[SIM_BODY_MAX];
	struct hapax_result result;
	struct hapax_run run; /* only its context is read */
};

/* A submit that arrives when no caller waits for it any more; whole, as it was sent. */
struct late {
	struct hapax_op *ops;
	size_t count;
};

static struct hapax_bytes copy_bytes(char *to, struct hapax_bytes from)
{
	memcpy(to, from.data, from.size);
	return (struct hapax_bytes){to, from.size};
}

static void arrive_late(struct sim_world *world, void *context)
{
	const struct late *late = context;

	apply(world, late->ops, late->count);
}

static void copy_op(struct sim_world *world, const struct hapax_op *op, struct hapax_op *to)
{
	struct copy *copy = sim_alloc(world, sizeof(*copy));

	*to = *op;
	to->record = NULL;
	to->buf = NULL;
	to->owner.size = 0;
	to->cause.size = 0;
	to->error.size = 0;
	to->tenant = copy_bytes(copy->tenant, op->tenant);
	to->group = copy_bytes(copy->group, op->group);
	to->key = copy_bytes(copy->key, op->key);
	if (op->attempt_id)
		to->attempt_id = memcpy(copy->attempt_id, op->attempt_id, HAPAX_ATTEMPT_ID_SIZE);
	if (op->fingerprint)
		to->fingerprint =
			memcpy(copy->fingerprint, op->fingerprint, HAPAX_FINGERPRINT_SIZE);
	if (op->result) {
		copy->result = *op->result;
		copy->result.body = copy_bytes(copy->body, op->result->body);
		to->result = &copy->result;
	}
	call_of(op)->has_late = true;
	copy->run.context = call_of(op);
	to->context = &copy->run;
}

static void send_late(struct sim_world *world, const struct trip *trip)
{
	struct late *late = sim_alloc(world, sizeof(*late));

	late->ops = sim_alloc(world, trip->count * sizeof(*late->ops));
	late->count = trip->count;
	for (size_t i = 0; i < trip->count; i++)
		copy_op(world, &trip->ops[i], &late->ops[i]);
	world->counts[SIM_LATE_GROUPS] += trip->count > 1;
	sim_schedule(
		world, NULL, 1 + sim_below(world, 2 * world->shape.lease_ms), arrive_late, late);
}

static enum hapax_status random_refusal(struct sim_world *world)
{
	static const enum hapax_status refusals[] = {
		HAPAX_ERR_LIMIT, HAPAX_ERR_NO_MEMORY, HAPAX_ERR_FAILED};
	enum hapax_status refusal = refusals[sim_below(world, 3)];

	world->counts[SIM_REFUSED_FAILED] += refusal == HAPAX_ERR_FAILED;
	return refusal;
}

/* What becomes of a request that does not arrive, or OK: it does. */
static enum hapax_status fate(struct sim_world *world, const struct trip *trip)
{
	if (world->is_healed)
		return HAPAX_OK;
	if (sim_chance(world, world->shape.refuse))
		return random_refusal(world);
	if (sim_chance(world, world->shape.lose_request))
		return sim_chance(world, 500) ? HAPAX_ERR_UNAVAILABLE : HAPAX_ERR_UNCERTAIN;
	if (sim_chance(world, world->shape.late_apply)) {
		send_late(world, trip);
		return HAPAX_ERR_UNCERTAIN;
	}
	return HAPAX_OK;
}

static void sim_submit(
	struct hapax_store *base, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct sim_store *store = sim_of(base);
	struct sim_process *process = store->process;
	struct sim_world *world = process->world;
	struct trip *trip = sim_alloc(world, sizeof(*trip));
	int64_t delay_ms = sim_below(world, world->shape.delay_ms_max + 1);

	for (size_t i = 0; i < count; i++) {
		if (ops[i].type == HAPAX_OP_CLAIM)
			call_of(&ops[i])->asked_ms = sim_now(world);
	}
	*trip = (struct trip){store, ops, count, completion, HAPAX_OK};
	trip->verdict = fate(world, trip);
	/* A request on its way arrives, whatever becomes of who sent it. */
	if (trip->verdict == HAPAX_OK)
		sim_schedule(world, NULL, delay_ms, arrive, trip);
	else
		sim_schedule(world, process, delay_ms, answer, trip);
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

static void sim_close(struct hapax_store *store)
{
	hapax_store_detach(store);
	free(store);
}

static const struct hapax_store_ops sim_ops = {
	.version = HAPAX_STORE_OPS_VERSION,
	.name = "sim",
	.capabilities = HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY | HAPAX_STORE_CLOCK,
	.submit = sim_submit,
	.scan = no_scan,
	.stats = no_stats,
	.sweep = no_sweep,
	.close = sim_close,
};

struct sim_store *sim_store_new(struct sim_process *process)
{
	struct sim_store *store = calloc(1, sizeof(*store));

	if (!store)
		abort();
	store->process = process;
	if (hapax_store_attach(
		    &store->base, &sim_ops, "sim:", &process->world->store.options, NULL) !=
	    HAPAX_OK)
		abort();
	return store;
}

void sim_store_free(struct sim_store *store)
{
	hapax_store_close(&store->base);
}
