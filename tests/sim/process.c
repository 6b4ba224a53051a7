/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - a process of the simulation: its processor, its calls, its crashes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processor/processor.h"
#include "sim/sim.h"
#include "support/virtual_clock.h"

static void tick(struct sim_world *world, void *context);

static void schedule_tick(struct sim_process *process, int64_t at_ms)
{
	struct sim_world *world = process->world;
	int64_t now_ms = sim_now(world);

	if (at_ms == HAPAX_TIME_NEVER || at_ms >= process->tick_at_ms)
		return;
	if (at_ms < now_ms)
		at_ms = now_ms;
	process->tick_at_ms = at_ms;
	sim_schedule(world, process, at_ms - now_ms, tick, process);
}

static void tick(struct sim_world *world, void *context)
{
	struct sim_process *process = context;

	(void)world;
	process->tick_at_ms = HAPAX_TIME_NEVER;
	schedule_tick(process, hapax_processor_tick(process->processor));
}

static void wake(void *context)
{
	struct sim_process *process = context;

	schedule_tick(process, sim_now(process->world));
}

static void random_bytes(void *out, size_t size, void *context)
{
	struct sim_process *process = context;
	unsigned char *bytes = out;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)hx_prng_next(&process->world->prng);
}

void sim_process_start(struct sim_process *process)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	const struct sim_shape *shape = &process->world->shape;

	process->store = sim_store_new(process);
	process->tick_at_ms = HAPAX_TIME_NEVER;
	process->paused_until_ms = 0;
	options.flags = shape->in_tick ? HAPAX_PROCESSOR_STEPS_IN_TICK : 0;
	options.clock = hx_virtual_clock_clock(&process->world->store.clock);
	options.owner = "sim";
	options.poll_ms = shape->poll_ms;
	options.timeout_ms = 2 * shape->lease_ms;
	options.random_bytes = random_bytes;
	options.random_context = process;
	options.wake = wake;
	options.wake_context = process;
	options.run.lease_ms = shape->lease_ms;
	options.run.ttl_ms = shape->ttl_ms;
	options.run.max_run_ms = shape->max_run_ms;
	options.run.on_lapse = shape->on_lapse;
	options.run.on_mismatch = shape->on_mismatch;
	if (hapax_processor_new(&process->store->base, &options, &process->processor, NULL) !=
	    HAPAX_OK)
		abort();
}

void sim_process_crash(struct sim_process *process)
{
	struct sim_world *world = process->world;
	struct sim_zombie *zombie = sim_alloc(world, sizeof(*zombie));

	sim_log(world, "p%u crashes", process->index);
	world->counts[SIM_CRASHES]++;
	*zombie = (struct sim_zombie){process->processor, process->store, world->zombies};
	world->zombies = zombie;
	process->life++;
	sim_process_start(process);
}

static void end_work(struct sim_world *world, void *context)
{
	struct sim_call *call = context;
	struct hapax_error err = {0};

	sim_log(world, "c%llu finishes %s", (unsigned long long)call->number,
		hapax_run_outcome_name(call->outcome));
	if (hapax_run_finish(
		    call->run, call->outcome, &call->result, hapax_bytes_from_text("it failed"),
		    &err) != HAPAX_OK)
		sim_fail(
			world, "c%llu: finish was refused: %s", (unsigned long long)call->number,
			err.message);
}

static void leave(struct sim_world *world, void *context)
{
	struct sim_call *call = context;

	if (call->has_ended || (call->told & (1U << HAPAX_STEP_RUN)))
		return;
	sim_log(world, "c%llu leaves", (unsigned long long)call->number);
	call->has_left = true;
	hapax_run_leave(call->run);
}

static void begin_work(struct sim_world *world, struct sim_call *call)
{
	const struct sim_shape *shape = &world->shape;
	int64_t work_ms = sim_below(world, shape->work_ms_max + 1);

	snprintf(
		call->body, sizeof(call->body), "%c of %u by %llu", call->letter, call->keys[0],
		(unsigned long long)hapax_run_token(call->run));
	call->result = (struct hapax_result){.kind = HAPAX_RESULT_BYTES};
	call->result.body = hapax_bytes_from_text(call->body);
	call->outcome = HAPAX_RUN_OK;
	if (sim_chance(world, shape->fail))
		call->outcome = HAPAX_RUN_TRANSIENT;
	else if (sim_chance(world, shape->unclear))
		call->outcome = HAPAX_RUN_AMBIGUOUS;
	call->work_ends_ms = sim_now(world) + work_ms;
	/* Some finish within the step that tells them to begin. */
	if (work_ms == 0)
		end_work(world, call);
	else
		sim_schedule(world, call->process, work_ms, end_work, call);
}

/* Told to run some time ago: it asks whether it still may. */
static void begin_late(struct sim_world *world, void *context)
{
	struct sim_call *call = context;

	if (hapax_run_may_begin(call->run)) {
		judge_begins(world, call);
		begin_work(world, call);
		return;
	}
	sim_log(world, "c%llu comes too late to its run", (unsigned long long)call->number);
	world->counts[SIM_LATE_BEGINS]++;
	call->outcome = HAPAX_RUN_TRANSIENT;
	end_work(world, call);
}

static void told(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct sim_call *call = context;
	struct sim_world *world = call->process->world;

	call->run = run;
	sim_log(world, "c%llu is told %s %s %s", (unsigned long long)call->number,
		hapax_step_name(step), hapax_outcome_name(answer->outcome),
		hapax_status_name(answer->status));
	judge_told(world, call, step, answer);
	call->told |= 1U << step;
	if (step == HAPAX_STEP_RUN && !world->is_healed && sim_chance(world, world->shape.dawdle))
		sim_schedule(
			world, call->process, sim_below(world, 2 * world->shape.lease_ms),
			begin_late, call);
	else if (step == HAPAX_STEP_RUN)
		begin_work(world, call);
	else if (step == HAPAX_STEP_WAIT && sim_chance(world, world->shape.leave))
		sim_schedule(world, call->process, sim_below(world, call->wait_ms), leave, call);
	if (step == HAPAX_STEP_END) {
		call->has_ended = true;
		call->ended_as = answer->outcome;
	}
}

static void fill_request(
	struct sim_call *call, struct hapax_request *request, struct hapax_request_key *keys)
{
	static const char *const names[SIM_KEYS_MAX] = {"k0", "k1", "k2", "k3"};

	for (size_t i = 0; i < call->key_count; i++) {
		keys[i] = (struct hapax_request_key){
			.key = hapax_bytes_from_text(names[call->keys[i]])};
		keys[i].fingerprint = case_fingerprint(call->letter);
	}
	if (call->key_count == 1) {
		request->key = keys[0].key;
		request->fingerprint = keys[0].fingerprint;
	} else {
		request->keys = keys;
		request->key_count = call->key_count;
	}
}

struct sim_call *sim_call_new(
	struct sim_process *process, const unsigned *keys, size_t key_count, char letter,
	int64_t wait_ms)
{
	struct sim_world *world = process->world;
	struct sim_call *call = sim_alloc(world, sizeof(*call));

	call->process = process;
	call->life = process->life;
	call->number = ++world->call_number;
	call->key_count = key_count;
	memcpy(call->keys, keys, key_count * sizeof(*keys));
	call->letter = letter;
	call->wait_ms = wait_ms;
	call->begun_ms = sim_now(world);
	call->next = world->calls;
	world->calls = call;
	sim_log(world, "c%llu begins in p%u: %zu from k%u, payload %c, wait %lld",
		(unsigned long long)call->number, process->index, key_count, keys[0], letter,
		(long long)wait_ms);
	return call;
}

void sim_calls_begin(struct sim_process *process, struct sim_call *const *calls, size_t count)
{
	struct hapax_request_key keys[SIM_BATCH_MAX][SIM_CALL_KEYS_MAX];
	struct hapax_run_options options[SIM_BATCH_MAX];
	struct hapax_request requests[SIM_BATCH_MAX];
	struct hapax_error err = {0};

	for (size_t i = 0; i < count; i++) {
		options[i] = process->processor->options.run;
		options[i].wait_ms = calls[i]->wait_ms;
		requests[i] = (struct hapax_request)HAPAX_REQUEST_INIT;
		requests[i].options = &options[i];
		requests[i].step = told;
		requests[i].context = calls[i];
		fill_request(calls[i], &requests[i], keys[i]);
	}
	if (hapax_processor_begin(process->processor, requests, count, &err) != HAPAX_OK)
		sim_fail(process->world, "begin was refused: %s", err.message);
}
