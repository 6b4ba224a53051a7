/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.c - one seed: draw a shape, let it happen, heal, and see that all is well.
 */
#include "sim/sim.h"
#include "support/virtual_clock.h"

#include <stdio.h>
#include <string.h>

/* Every seed its own rates: some faults often, others never (swarm testing). */
static unsigned draw_rate(struct sim_world *world, unsigned per_mille_max)
{
	return sim_chance(world, 500) ? 0 : (unsigned)sim_below(world, per_mille_max + 1);
}

static void draw_faults(struct sim_world *world)
{
	struct sim_shape *shape = &world->shape;

	shape->lose_request = draw_rate(world, 300);
	shape->lose_answer = draw_rate(world, 300);
	shape->late_apply = draw_rate(world, 150);
	shape->slow = draw_rate(world, 200);
	shape->dawdle = draw_rate(world, 300);
	shape->refuse = draw_rate(world, 150);
	shape->pause = draw_rate(world, 400);
	shape->crash = draw_rate(world, 100);
	shape->jump = draw_rate(world, 100);
	shape->restart = store_case_is_durable(&world->store) ? draw_rate(world, 50) : 0;
	shape->sweep = draw_rate(world, 500);
	shape->forget = draw_rate(world, 150);
}

static void draw_shape(struct sim_world *world)
{
	struct sim_shape *shape = &world->shape;

	shape->is_calm = sim_chance(world, 250);
	shape->process_count =
		shape->is_calm ? 1 : 1 + (unsigned)sim_below(world, SIM_PROCESSES_MAX);
	shape->key_count = 1 + (unsigned)sim_below(world, SIM_KEYS_MAX);
	shape->call_count = 6 + (unsigned)sim_below(world, 60);
	shape->lease_ms = 30 + sim_below(world, 1000);
	shape->delay_ms_max = sim_below(world, shape->lease_ms / 10 + 1);
	/* Often so short that keys come to life again and again. */
	shape->ttl_ms = sim_chance(world, 200) ? INT64_C(365) * 24 * 3600 * 1000
					       : 1 + sim_below(world, 3 * shape->lease_ms);
	shape->max_run_ms = sim_chance(world, 500) ? HAPAX_MAX_RUN_NONE
						   : 1 + sim_below(world, 4 * shape->lease_ms);
	shape->work_ms_max = sim_chance(world, 200) ? 0 : sim_below(world, 4 * shape->lease_ms);
	shape->wait_ms_max = sim_chance(world, 200) ? 0 : sim_below(world, 8 * shape->lease_ms);
	/* Sometimes so long that only the sweep takes up what lapsed. */
	shape->gap_ms_max = sim_below(world, (sim_chance(world, 200) ? 8 : 1) * shape->lease_ms);
	shape->on_lapse = sim_chance(world, 300) ? HAPAX_ON_LAPSE_PARK : HAPAX_ON_LAPSE_RETRY;
	shape->on_mismatch =
		sim_chance(world, 300) ? HAPAX_ON_MISMATCH_DUPLICATE : HAPAX_ON_MISMATCH_REJECT;
	shape->fail = draw_rate(world, 900);
	shape->unclear = draw_rate(world, 200);
	shape->mismatch = draw_rate(world, 300);
	shape->several = draw_rate(world, 400);
	shape->leave = draw_rate(world, 500);
	shape->in_tick = sim_chance(world, 500);
	/* Who polls finds out even what it should have been told. */
	shape->poll_ms =
		shape->is_calm ? INT64_C(3600) * 1000 : 1 + sim_below(world, shape->lease_ms);
	if (!shape->is_calm)
		draw_faults(world);
}

static char draw_letter(struct sim_world *world)
{
	return sim_chance(world, world->shape.mismatch) ? 'B' : 'A';
}

static struct sim_call *draw_call(struct sim_world *world, struct sim_process *process)
{
	unsigned keys[SIM_CALL_KEYS_MAX];
	unsigned first = (unsigned)sim_below(world, world->shape.key_count);
	size_t key_count = 1;

	if (sim_chance(world, world->shape.several) && world->shape.key_count > 1)
		key_count = 2 + (size_t)sim_below(world, world->shape.key_count - 1);
	if (key_count > SIM_CALL_KEYS_MAX)
		key_count = SIM_CALL_KEYS_MAX;
	if (key_count > world->shape.key_count)
		key_count = world->shape.key_count;
	for (size_t i = 0; i < key_count; i++)
		keys[i] = (first + (unsigned)i) % world->shape.key_count;
	return sim_call_new(
		process, keys, key_count, draw_letter(world),
		sim_below(world, world->shape.wait_ms_max + 1));
}

static void call_now(struct sim_world *world, void *context)
{
	struct sim_process *process = context;
	struct sim_call *calls[SIM_BATCH_MAX];
	size_t count = 1 + (size_t)sim_below(world, SIM_BATCH_MAX);

	for (size_t i = 0; i < count; i++)
		calls[i] = draw_call(world, process);
	/* Together, or one after the other. */
	if (sim_chance(world, 500)) {
		sim_calls_begin(process, calls, count);
	} else {
		for (size_t i = 0; i < count; i++)
			sim_calls_begin(process, &calls[i], 1);
	}
}

/* Of the world, not of the process: what is paused or crashed gets its calls later. */
static void make_calls(struct sim_world *world, void *context)
{
	struct sim_process *process = context;

	sim_schedule(world, process, 0, call_now, process);
	process->calls_left--;
	if (process->calls_left > 0)
		sim_schedule(
			world, NULL, sim_below(world, world->shape.gap_ms_max + 1), make_calls,
			process);
}

static void jump(struct sim_world *world)
{
	static const int64_t far_ms[] = {1000, 60000, 86400000, INT64_C(315360000000)};
	int64_t wall_ms = atomic_load(&world->store.clock.wall_ms);
	int64_t step_ms = far_ms[sim_below(world, 4)];

	sim_log(world, "the wall clock jumps by %lld", (long long)step_ms);
	hx_virtual_clock_set_wall(
		&world->store.clock,
		sim_chance(world, 500) ? wall_ms + step_ms : wall_ms - step_ms);
}

static void sweep(struct sim_world *world)
{
	struct hapax_sweep sum = case_sweep(&world->store);

	sim_log(world, "the store is swept: %llu removed, %llu lapsed",
		(unsigned long long)sum.removed, (unsigned long long)sum.lapsed);
	judge_swept(world, sum.lapsed);
}

/* As an operator does it, who talks to the store and not to a processor. */
static void forget(struct sim_world *world)
{
	char name[] = {'k', (char)('0' + sim_below(world, world->shape.key_count)), '\0'};
	struct hapax_op op = case_op(&world->store, HAPAX_OP_FORGET, name);

	op.flags = sim_chance(world, 500) ? HAPAX_OP_FORCE : 0;
	(void)hapax_store_run(world->store.store, &op, 1, NULL);
	judge_forgot(world, &op);
}

static bool calls_are_left(const struct sim_world *world)
{
	for (unsigned i = 0; i < world->shape.process_count; i++) {
		if (world->processes[i].calls_left > 0)
			return true;
	}
	return world->event_count > 0;
}

static void pause(struct sim_world *world, struct sim_process *process)
{
	const struct sim_shape *shape = &world->shape;
	int64_t longest_ms = 3 * shape->lease_ms;

	/* Often so long that a claim is not only lapsed, but given up by a sweep. */
	if (shape->ttl_ms < longest_ms)
		longest_ms += shape->ttl_ms;
	process->paused_until_ms = sim_now(world) + sim_below(world, longest_ms);
	sim_log(world, "p%u is paused until %lld", process->index,
		(long long)process->paused_until_ms);
}

static void break_something(struct sim_world *world)
{
	const struct sim_shape *shape = &world->shape;
	struct sim_process *process = &world->processes[sim_below(world, shape->process_count)];

	if (sim_chance(world, shape->pause))
		pause(world, process);
	if (sim_chance(world, shape->crash))
		sim_process_crash(process);
	if (sim_chance(world, shape->jump))
		jump(world);
	if (sim_chance(world, shape->restart)) {
		sim_log(world, "the store restarts");
		store_case_reopen(&world->store);
	}
	if (sim_chance(world, shape->forget))
		forget(world);
}

static void chaos(struct sim_world *world, void *context)
{
	(void)context;
	if (!world->is_healed)
		break_something(world);
	/* That is housekeeping, not a fault: it goes on. */
	if (sim_chance(world, world->shape.sweep))
		sweep(world);
	if (calls_are_left(world))
		sim_schedule(
			world, NULL, 1 + sim_below(world, world->shape.lease_ms / 4 + 1), chaos,
			NULL);
}

static const struct sim_call *open_call(const struct sim_world *world)
{
	for (const struct sim_call *call = world->calls; call; call = call->next) {
		if (!call->has_ended && call->life == call->process->life)
			return call;
	}
	return NULL;
}

/* The longest that anything may take from here on when nothing goes wrong any more. */
static int64_t patience(const struct sim_world *world)
{
	const struct sim_shape *shape = &world->shape;

	return 10 * shape->lease_ms + 2 * shape->wait_ms_max +
		(int64_t)(SIM_BATCH_MAX * shape->call_count + 2) *
		(shape->work_ms_max + shape->lease_ms) +
		100 * (shape->delay_ms_max + 1);
}

static void happen(struct sim_world *world, int64_t until_ms)
{
	while (!world->has_failed && world->event_count > 0 && world->events[0].at_ms <= until_ms)
		(void)sim_step(world);
}

static void settle(struct sim_world *world, const char *what)
{
	int64_t until_ms = sim_now(world) + patience(world);

	while (!world->has_failed && open_call(world) && world->event_count > 0 &&
	       world->events[0].at_ms <= until_ms)
		(void)sim_step(world);
	if (!world->has_failed && open_call(world))
		sim_fail(
			world, "I14: c%llu on k%u has not ended %s",
			(unsigned long long)open_call(world)->number, open_call(world)->keys[0],
			what);
}

/* Every key can be claimed again, or says permanently why not. */
static void ask_for_every_key(struct sim_world *world)
{
	for (unsigned i = 0; i < world->shape.key_count && !world->has_failed; i++) {
		char letter = world->judge.keys[i].letter;
		struct sim_call *call;

		if (!letter)
			letter = 'A';

		world->shape.leave = 0;
		call = sim_call_new(&world->processes[0], &i, 1, letter, patience(world) / 2);
		sim_calls_begin(&world->processes[0], &call, 1);
		settle(world, "although nothing stood in its way");
		if (!world->has_failed && call->ended_as == HAPAX_OUTCOME_IN_PROGRESS)
			sim_fail(world, "I3: k%u is stuck", i);
	}
}

static void report(const struct sim_world *world)
{
	size_t first = world->log_count > 64 ? world->log_count - 64 : 0;

	for (size_t i = first; i < world->log_count; i++)
		printf("# %s\n", world->log[i % 64]);
	fflush(stdout);
}

bool sim_run(struct sim_world *world, uint64_t seed, const char *kind)
{
	memset(world, 0, sizeof(*world));
	world->seed = seed;
	hx_prng_seed(&world->prng, seed);
	store_case_begin(&world->store, kind);
	draw_shape(world);
	for (unsigned i = 0; i < world->shape.process_count; i++) {
		struct sim_process *process = &world->processes[i];

		process->world = world;
		process->index = i;
		process->calls_left = world->shape.call_count / world->shape.process_count;
		if (process->calls_left == 0)
			process->calls_left = 1;
		sim_process_start(process);
		sim_schedule(world, NULL, 0, make_calls, process);
	}
	if (!world->shape.is_calm)
		sim_schedule(world, NULL, 0, chaos, NULL);
	happen(world,
	       (int64_t)world->shape.call_count * (world->shape.gap_ms_max + 1) +
		       2 * world->shape.lease_ms);
	world->is_healed = true;
	settle(world, "although everything was healed");
	ask_for_every_key(world);
	/* What is on its way still arrives; it must do no harm. */
	happen(world, sim_now(world) + patience(world));
	judge_content(world);
	if (world->has_failed)
		report(world);
	sim_world_done(world);
	return !world->has_failed;
}
