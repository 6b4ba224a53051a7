/* SPDX-License-Identifier: Apache-2.0 */
/*
 * large.c - requests that take too long to read on a loop.
 */
#include "serve/http/large.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/siphash.h"
#include "serve/daemon/daemon.h"
#include "serve/http/gateway.h"

void hx_reader_init(struct hx_reader *reader)
{
	size_t processors = hx_thread_cpu_count();

	memset(reader, 0, sizeof(*reader));
	hx_random_bytes(reader->hash_key, sizeof(reader->hash_key));
	reader->thread_max = processors < HX_READERS_MIN ? HX_READERS_MIN
		: processors > HX_READERS_MAX            ? HX_READERS_MAX
							 : processors;
	hx_mutex_init(&reader->mutex);
	hx_cond_init(&reader->wake);
}

void hx_reader_done(struct hx_reader *reader)
{
	hx_mutex_lock(&reader->mutex);
	assert(reader->turns.waiting == NULL);
	reader->is_stopped = true;
	hx_cond_broadcast(&reader->wake);
	hx_mutex_unlock(&reader->mutex);
	for (size_t i = 0; i < reader->thread_count; i++)
		hx_thread_join(&reader->threads[i]);
	hx_cond_done(&reader->wake);
	hx_mutex_done(&reader->mutex);
}

static struct hx_memory *memory_of(const struct hx_large *large)
{
	return &large->delivery->loop->serve->memory;
}

static bool is_batch(const struct hx_large *large)
{
	return large->mode == HX_CLOUDEVENTS_BATCHED;
}

static size_t smaller(size_t one, size_t other)
{
	return one < other ? one : other;
}

/* The part of the body that must be read from its file. */
static size_t file_size(const struct hx_large *large)
{
	const struct hx_http_body *body = &large->delivery->exchange->body;

	return hx_http_body_is_in_memory(body) ? 0 : (size_t)body->size;
}

static void drop_texts(struct hx_large *large)
{
	hx_buf_done(&large->event_text);
	hx_buf_done(&large->body_text);
}

/* Threads: the reader's, from here. */
static void open_body(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;

	large->is_open = true;
	if (!is_batch(large)) {
		struct hx_budget *budget = &memory_of(large)->readers;
		size_t body = smaller(file_size(large), large->share);

		hx_buf_init_budget(&large->body_text, body, budget);
		hx_buf_init_budget(
			&large->event_text, smaller(HX_EVENT_TEXT_MAX, large->share - body),
			budget);
	}
	large->status = large->mode == HX_CLOUDEVENTS_BATCHED
		? hx_gateway_open_batch(delivery, &large->event_text, &large->err)
		: hx_gateway_read(
			  delivery, large->mode, &large->event, &large->event_text,
			  &large->body_text, &large->err);
}

/* The memory that the texts leave of its place; for a batch, what its text leaves of the total. */
static size_t left_for_key(const struct hx_large *large)
{
	size_t max = hx_budget_max(&memory_of(large)->listeners);

	if (is_batch(large))
		return max == 0 ? large->share
				: smaller(large->share, max - smaller(large->noted, max));
	return large->share - large->body_text.capacity - large->event_text.capacity;
}

static void make_key(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;
	size_t left = left_for_key(large);
	struct hapax_buf scratch;

	hx_buf_init_budget(&scratch, smaller(HX_KEY_SCRATCH_MAX, left), &memory_of(large)->readers);
	large->key_ns = -hx_clock_mono_ns();
	large->key_status = hx_gateway_key(
		delivery, large->route, &large->event, &scratch, &large->key, &large->key_err);
	large->key_ns += hx_clock_mono_ns();
	/* No single allocation exceeds twice the text. */
	large->is_short = large->key_status == HAPAX_ERR_LIMIT && left < HX_KEY_SCRATCH_MAX &&
		left - scratch.capacity <= 2 * large->event.data.size;
	if (large->is_short)
		(void)hx_error_set(
			&large->key_err, HAPAX_ERR_LIMIT, 0,
			"data of %zu bytes needs more than %zu bytes of memory to compare; "
			"raise memory.listeners",
			large->event.data.size, left);
	hx_buf_done(&scratch);
}

static enum hapax_status refuse_as_full(struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_NO_MEMORY, 0,
		"the memory for requests and responses is in use; retry later");
}

/* The error if it did not fit. */
static void explain(struct hx_large *large)
{
	size_t size = (size_t)large->delivery->exchange->body.size;

	if (large->status == HAPAX_ERR_NO_MEMORY)
		(void)refuse_as_full(&large->err);
	if (large->status != HAPAX_ERR_LIMIT || is_batch(large) ||
	    (file_size(large) <= large->share && size <= large->event_text.size_max))
		return;
	large->is_short = true;
	(void)hx_error_set(
		&large->err, HAPAX_ERR_LIMIT, 0,
		"body of %zu bytes needs more than %zu bytes of memory to read; raise "
		"memory.listeners",
		size, large->share);
}

static void read_event(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;
	/* An event of a batch whose key did not fit a narrow place. */
	bool is_again = is_batch(large) && large->is_short;

	large->is_short = false;
	if (!large->is_open)
		open_body(large);
	if (!is_again)
		large->has_event = large->status == HAPAX_OK &&
			(!is_batch(large) ||
			 hx_cloudevents_batch_next(&delivery->batch->reader, &large->event));
	large->route = large->has_event ? hx_gateway_route(delivery, &large->event) : NULL;
	if (large->route != NULL)
		make_key(large);
	if (large->route != NULL && large->key_status == HAPAX_ERR_NO_MEMORY && !is_batch(large))
		large->status = HAPAX_ERR_NO_MEMORY;
	explain(large);
}

enum hapax_status hx_large_body(
	struct hx_large *large, struct hapax_bytes *ret_body, struct hapax_buf *scratch,
	struct hapax_error *err)
{
	struct hx_budget *budget = &memory_of(large)->readers;
	size_t size = smaller(file_size(large), large->share);

	hx_buf_init_budget(&large->body_text, size, budget);
	hx_buf_init_budget(scratch, smaller(HX_KEY_SCRATCH_MAX, large->share - size), budget);
	return hx_http_body_whole(
		&large->delivery->exchange->body, &large->body_text, ret_body, err);
}

/* Finds a place for the body. Locks: mutex, as in the next four. */
static bool find_place(
	const struct hx_reader *reader, const struct hx_large *large, size_t *ret_place)
{
	size_t count = large->needs_wide ? HX_READER_WIDE + 1 : reader->thread_max;

	*ret_place = HX_READER_WIDE;
	/* A body that fits a narrow place takes the wide one only if no other is free. */
	while (count > 0 && reader->is_taken[count - 1])
		count--;
	if (count > 0)
		*ret_place = count - 1;
	return count > 0 || !large->needs_place;
}

static struct hx_large *large_of(const struct hx_turn *turn)
{
	return (struct hx_large *)((uintptr_t)turn - offsetof(struct hx_large, turn));
}

/* Whether its address may have another reader: one must remain for the other addresses. */
static bool may_read(void *arg, const struct hx_turn *turn)
{
	const struct hx_reader *reader = arg;
	const struct hx_large *large = large_of(turn);
	size_t place;

	if (!find_place(reader, large, &place))
		return false;
	return large->is_trusted ||
		hx_turns_reading_of(&reader->turns, turn->who) + 1 < reader->thread_max;
}

static void leave_place(struct hx_reader *reader, struct hx_large *large)
{
	if (large->has_place)
		reader->is_taken[large->place] = false;
	large->has_place = false;
}

/* True: the loop owns it now and may free it. False: it is read again, with more memory. */
static bool give_back(struct hx_reader *reader, struct hx_large *large)
{
	bool is_done = !large->is_short || large->place == HX_READER_WIDE;

	if (!is_done && !is_batch(large)) {
		drop_texts(large);
		large->is_open = false;
	}
	hx_mutex_lock(&reader->mutex);
	/* If it is not a batch, the loop still uses the texts. */
	if (!is_done || is_batch(large))
		leave_place(reader, large);
	if (!is_done) {
		large->needs_wide = true;
		hx_turns_ask_again(&reader->turns, &large->turn);
	} else {
		hx_turns_leave(&reader->turns, &large->turn);
	}
	/* Another body of its address may be read now. */
	hx_cond_broadcast(&reader->wake);
	hx_mutex_unlock(&reader->mutex);
	return is_done;
}

static void take_place(struct hx_reader *reader, struct hx_large *large)
{
	(void)find_place(reader, large, &large->place);
	large->has_place = large->needs_place;
	if (large->has_place)
		reader->is_taken[large->place] = true;
	large->share = hx_memory_reader_share(
		memory_of(large), reader->thread_max, large->place == HX_READER_WIDE);
}

/* NULL: stop. */
static struct hx_large *next_large(struct hx_reader *reader)
{
	const struct hx_turn *turn = NULL;
	struct hx_large *large = NULL;

	hx_mutex_lock(&reader->mutex);
	while (!reader->is_stopped &&
	       (turn = hx_turns_take(&reader->turns, may_read, reader)) == NULL)
		hx_cond_wait(&reader->wake, &reader->mutex);
	if (turn != NULL) {
		large = large_of(turn);
		take_place(reader, large);
	}
	hx_mutex_unlock(&reader->mutex);
	return large;
}

static void work(void *arg)
{
	struct hx_reader *reader = arg;
	struct hx_large *large;

	while ((large = next_large(reader)) != NULL) {
		large->read(large);
		if (give_back(reader, large))
			hx_reactor_post(&large->delivery->loop->reactor, &large->task);
	}
}

/* Threads: the loop's, from here. */
static void note(struct hx_large *large, size_t bytes)
{
	hx_block_pool_note(&large->delivery->loop->reactor.blocks, &large->noted, bytes);
}

void hx_large_leave(struct hx_large *large)
{
	struct hx_reader *reader = &large->delivery->loop->serve->reader;

	drop_texts(large);
	if (!large->has_place)
		return;
	hx_mutex_lock(&reader->mutex);
	leave_place(reader, large);
	hx_cond_broadcast(&reader->wake);
	hx_mutex_unlock(&reader->mutex);
}

static void claim_of_batch(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;

	if (!large->has_event) {
		hx_gateway_answer_batch(delivery);
		return;
	}
	delivery->loop->event = large->event;
	delivery->batch->event = large->event.text;
	if (!hx_gateway_claim(delivery))
		hx_gateway_next(delivery);
}

static void claim_event(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;

	if (large->status != HAPAX_OK) {
		hx_gateway_refuse(delivery, large->status, &large->err);
		return;
	}
	if (delivery->batch != NULL) {
		claim_of_batch(large);
		return;
	}
	delivery->loop->event = large->event;
	if (!hx_gateway_claim(delivery))
		return;
	/* The upstream gets the body of the exchange. */
	hx_large_leave(large);
}

static void on_read(struct hx_task *task)
{
	struct hx_large *large = task->context;

	large->done(large);
}

void hx_large_ask(struct hx_large *large)
{
	struct hx_reader *reader = &large->delivery->loop->serve->reader;
	/* For a batch that was read, one event. */
	uint64_t size = large->delivery->exchange->body.size;

	if (large->is_open && size > HX_LARGE_SIZE_MIN)
		size = HX_LARGE_SIZE_MIN;
	large->is_short = false;
	large->needs_wide = !is_batch(large) && large->needs_place &&
		file_size(large) >
			hx_memory_reader_share(memory_of(large), reader->thread_max, false);
	hx_mutex_lock(&reader->mutex);
	hx_turns_ask(&reader->turns, &large->turn, size);
	/* The woken thread may not be allowed to take it. */
	hx_cond_broadcast(&reader->wake);
	hx_mutex_unlock(&reader->mutex);
}

bool hx_large_is(struct hx_delivery *delivery)
{
	uint64_t size = delivery->exchange->body.size;
	uint64_t *turn_bytes = &delivery->loop->turn_bytes;

	if (size > HX_LARGE_SIZE_MIN ||
	    (size > HX_LARGE_BUSY_SIZE_MIN && *turn_bytes + size > HX_LARGE_TURN_MAX))
		return true;
	*turn_bytes += size;
	return false;
}

/* Finds the address that a body counts for. */
static void identify(const struct hx_reader *reader, struct hx_large *large)
{
	const struct hx_http_exchange *exchange = large->delivery->exchange;
	char network[HX_ADDRESS_TEXT_SIZE];

	large->is_trusted = exchange->origin[0] == '\0';
	hx_address_network(large->is_trusted ? exchange->client : exchange->origin, network);
	large->turn.who = hx_siphash13(reader->hash_key, network, strlen(network));
}

/* Starts another thread if no reader is free for the next body. */
static enum hapax_status need_thread(struct hx_reader *reader, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	hx_mutex_lock(&reader->mutex);
	if (reader->thread_count < reader->thread_max &&
	    hx_turns_reading(&reader->turns) + reader->turns.waiting_count >=
		    reader->thread_count) {
		status = hx_thread_start(
			&reader->threads[reader->thread_count], work, reader, "hapax-reader", err);
		reader->thread_count += status == HAPAX_OK;
	}
	/* If that fails, the existing threads read it later. */
	if (reader->thread_count > 0)
		status = HAPAX_OK;
	hx_mutex_unlock(&reader->mutex);
	return status;
}

/* Also ensures a thread. NULL: err has the reason. */
static struct hx_large *new_large(
	struct hx_delivery *delivery, hx_large_read_fn *read, hx_large_done_fn *done,
	struct hapax_error *err)
{
	struct hx_large *large;

	if (need_thread(&delivery->loop->serve->reader, err) != HAPAX_OK)
		return NULL;
	large = hx_alloc_zero(1, sizeof(*large));
	if (large == NULL) {
		(void)hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a large event");
		return NULL;
	}
	large->delivery = delivery;
	large->read = read;
	large->done = done;
	large->key.size = sizeof(large->key);
	identify(&delivery->loop->serve->reader, large);
	large->task = (struct hx_task){.fn = on_read, .context = large};
	hx_buf_init(&large->event_text, 0);
	hx_buf_init(&large->body_text, 0);
	return large;
}

enum hapax_status hx_large_start(
	struct hx_delivery *delivery, hx_large_read_fn *read, hx_large_done_fn *done,
	bool needs_place, struct hapax_error *err)
{
	delivery->large = new_large(delivery, read, done, err);
	if (delivery->large == NULL)
		return err->status;
	delivery->large->needs_place = needs_place;
	hx_large_ask(delivery->large);
	return HAPAX_OK;
}

/* Its text stays in memory until its last event: checks whether it fits, now or ever. */
static enum hapax_status hold_batch(struct hx_large *large, struct hapax_error *err)
{
	struct hx_budget *budget = &memory_of(large)->listeners;
	size_t max = hx_budget_max(budget);
	size_t size = file_size(large);

	if (max != 0 && size > max)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0,
			"batch of %zu bytes needs more than %zu bytes of memory; raise "
			"memory.listeners",
			size, max);
	if (size > 0 &&
	    (hx_http_server_is_full(large->delivery->exchange->server) ||
	     !hx_budget_has_room(budget, size)))
		return refuse_as_full(err);
	note(large, size);
	hx_buf_init_budget(
		&large->event_text,
		max == 0 ? HX_EVENT_TEXT_MAX : smaller(HX_EVENT_TEXT_MAX, max - size), budget);
	return HAPAX_OK;
}

enum hapax_status hx_large_begin(
	struct hx_delivery *delivery, enum hx_cloudevents_mode mode, struct hapax_error *err)
{
	struct hx_large *large = new_large(delivery, read_event, claim_event, err);

	delivery->large = large;
	if (large == NULL)
		return err->status;
	large->mode = mode;
	large->needs_place = true;
	if (is_batch(large) && hold_batch(large, err) != HAPAX_OK)
		return err->status;
	hx_large_ask(large);
	return HAPAX_OK;
}

void hx_large_free(struct hx_large *large)
{
	if (large == NULL)
		return;
	note(large, 0);
	hx_large_leave(large);
	hx_free(large);
}
