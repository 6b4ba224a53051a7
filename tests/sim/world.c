/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - the queue of events, the clock, chance, and what is remembered of it all.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processor/processor.h"
#include "sim/sim.h"
#include "support/virtual_clock.h"

int64_t sim_now(const struct sim_world *world)
{
	return atomic_load(&world->store.clock.boot_ms);
}

bool sim_chance(struct sim_world *world, unsigned per_mille)
{
	return hx_prng_below(&world->prng, 1000) < per_mille;
}

int64_t sim_below(struct sim_world *world, int64_t bound)
{
	return bound <= 0 ? 0 : (int64_t)hx_prng_below(&world->prng, (uint64_t)bound);
}

void *sim_alloc(struct sim_world *world, size_t size)
{
	struct sim_block *block = calloc(1, sizeof(*block) + size);

	if (!block)
		abort();
	block->next = world->blocks;
	world->blocks = block;
	return block->data;
}

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void swap(struct sim_event *a, struct sim_event *b)
{
	struct sim_event kept = *a;

	*a = *b;
	*b = kept;
}

static void push(struct sim_world *world, struct sim_event event)
{
	size_t at = world->event_count;

	if (at == world->event_capacity) {
		world->event_capacity = at == 0 ? 256 : at * 2;
		world->events =
			realloc(world->events, world->event_capacity * sizeof(*world->events));
		if (!world->events)
			abort();
	}
	event.order = world->order++;
	world->events[at] = event;
	world->event_count++;
	for (; at > 0 && is_before(&world->events[at], &world->events[(at - 1) / 2]);
	     at = (at - 1) / 2)
		swap(&world->events[at], &world->events[(at - 1) / 2]);
}

static struct sim_event pop(struct sim_world *world)
{
	struct sim_event *events = world->events;
	struct sim_event first = events[0];
	size_t at = 0;

	events[0] = events[--world->event_count];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= world->event_count)
			return first;
		if (child + 1 < world->event_count && is_before(&events[child + 1], &events[child]))
			child++;
		if (!is_before(&events[child], &events[at]))
			return first;
		swap(&events[at], &events[child]);
		at = child;
	}
}

void sim_schedule(
	struct sim_world *world, struct sim_process *process, int64_t after_ms, sim_event_fn *fn,
	void *context)
{
	struct sim_event event = {
		.at_ms = sim_now(world) + after_ms,
		.process = process,
		.life = process ? process->life : 0,
		.fn = fn,
		.context = context,
	};

	push(world, event);
}

bool sim_step(struct sim_world *world)
{
	struct sim_event event;

	if (world->event_count == 0)
		return false;
	event = pop(world);
	if (event.at_ms > sim_now(world))
		hx_virtual_clock_advance(&world->store.clock, event.at_ms - sim_now(world));
	if (event.process && event.life != event.process->life)
		return true;
	if (event.process && event.process->paused_until_ms > sim_now(world)) {
		event.at_ms = event.process->paused_until_ms;
		push(world, event);
		return true;
	}
	event.fn(world, event.context);
	return true;
}

static void mix(struct sim_world *world, const char *text)
{
	/* FNV-1a: the trace must be the same for the same seed, nothing more. */
	for (; *text; text++)
		world->trace = (world->trace ^ (unsigned char)*text) * UINT64_C(1099511628211);
}

void sim_log(struct sim_world *world, const char *format, ...)
{
	char *line = world->log[world->log_count++ % 64];
	va_list args;
	int size = snprintf(line, 160, "%lld ", (long long)sim_now(world));

	va_start(args, format);
	vsnprintf(line + size, (size_t)(160 - size), format, args);
	va_end(args);
	mix(world, line);
}

void sim_fail(struct sim_world *world, const char *format, ...)
{
	va_list args;

	if (world->has_failed)
		return;
	world->has_failed = true;
	va_start(args, format);
	vsnprintf(world->why, sizeof(world->why), format, args);
	va_end(args);
	sim_log(world, "FAILED: %s", world->why);
}

void sim_world_done(struct sim_world *world)
{
	for (unsigned i = 0; i < world->shape.process_count; i++) {
		struct sim_process *process = &world->processes[i];

		if (world->has_failed)
			hx_processor_abandon(process->processor);
		else
			hapax_processor_free(process->processor);
		sim_store_free(process->store);
	}
	while (world->zombies) {
		struct sim_zombie *zombie = world->zombies;

		world->zombies = zombie->next;
		hx_processor_abandon(zombie->processor);
		sim_store_free(zombie->store);
	}
	while (world->blocks) {
		struct sim_block *block = world->blocks;

		world->blocks = block->next;
		free(block);
	}
	free(world->events);
	world->events = NULL;
	store_case_done(&world->store);
}
