/* SPDX-License-Identifier: Apache-2.0 */
/*
 * large.c - requests that take too long to read for a loop.
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
#include "serve/http/delivery.h"

void hx_reader_init(struct hx_reader *reader)
{
	size_t processors = hx_cpu_count();

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
	assert(reader->first == NULL);
	reader->is_stopped = true;
	hx_cond_broadcast(&reader->wake);
	hx_mutex_unlock(&reader->mutex);
	for (size_t i = 0; i < reader->thread_count; i++)
		hx_thread_join(&reader->threads[i]);
	hx_cond_done(&reader->wake);
	hx_mutex_done(&reader->mutex);
}

/* Threads: the reader's, from here. */
static void open_body(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;

	large->is_open = true;
	large->status = large->mode == HX_CLOUDEVENTS_BATCHED
		? hx_delivery_open_batch(delivery, &large->event_text, &large->err)
		: hx_delivery_read(
			  delivery, large->mode, &large->event, &large->event_text,
			  &large->body_text, &large->err);
}

static void read_event(struct hx_large *large, struct hapax_buf *key_scratch)
{
	struct hx_delivery *delivery = large->delivery;

	if (!large->is_open)
		open_body(large);
	large->has_event = large->status == HAPAX_OK &&
		(large->mode != HX_CLOUDEVENTS_BATCHED ||
	         hx_cloudevents_batch_next(&delivery->batch->reader, &large->event));
	large->route = large->has_event ? hx_delivery_route(delivery, &large->event) : NULL;
	if (large->route == NULL)
		return;
	large->key_ns = -hx_clock_mono_ns();
	large->key_status = hx_delivery_key(
		delivery, large->route, &large->event, key_scratch, &large->key, &large->key_err);
	large->key_ns += hx_clock_mono_ns();
}

/* May it have another reader: is one left for everybody else? Locks: mutex, as in the next three. */
static bool may_read(const struct hx_reader *reader, const struct hx_large *large)
{
	size_t count = 0;

	for (size_t i = 0; i < reader->thread_max; i++)
		count += reader->at[i] != NULL && reader->at[i]->who == large->who;
	return large->is_trusted || count + 1 < reader->thread_max;
}

/* Of those that may be read, the one with the lowest tag, which is unlinked; NULL: none. */
static struct hx_large *pick(struct hx_reader *reader)
{
	struct hx_large *before = NULL;
	struct hx_large *found = NULL;
	struct hx_large *found_before = NULL;

	for (struct hx_large *large = reader->first; large != NULL; large = large->next) {
		if ((found == NULL || large->tag < found->tag) && may_read(reader, large)) {
			found = large;
			found_before = before;
		}
		before = large;
	}
	if (found == NULL)
		return NULL;
	if (found_before != NULL)
		found_before->next = found->next;
	else
		reader->first = found->next;
	if (reader->last == found)
		reader->last = found_before;
	reader->waiting--;
	if (found->tag > reader->tag)
		reader->tag = found->tag;
	return found;
}

/* Behind what its address has waiting or is having read; else at once. */
static uint64_t tag_of(const struct hx_reader *reader, uint64_t who)
{
	uint64_t tag = reader->tag;

	for (size_t i = 0; i < reader->thread_max; i++) {
		const struct hx_large *large = reader->at[i];

		if (large != NULL && large->who == who && large->end > tag)
			tag = large->end;
	}
	for (const struct hx_large *large = reader->first; large != NULL; large = large->next) {
		if (large->who == who && large->end > tag)
			tag = large->end;
	}
	return tag;
}

/* Before it is the loop's again, which may free it. */
static void give_back(struct hx_reader *reader, size_t place)
{
	hx_mutex_lock(&reader->mutex);
	reader->at[place] = NULL;
	reader->busy--;
	/* Another one of its address may be read now. */
	hx_cond_broadcast(&reader->wake);
	hx_mutex_unlock(&reader->mutex);
}

/* NULL: stop. */
static struct hx_large *next_large(struct hx_reader *reader, size_t place)
{
	struct hx_large *large = NULL;

	hx_mutex_lock(&reader->mutex);
	while (!reader->is_stopped && (large = pick(reader)) == NULL)
		hx_cond_wait(&reader->wake, &reader->mutex);
	if (large != NULL) {
		reader->at[place] = large;
		reader->busy++;
	}
	hx_mutex_unlock(&reader->mutex);
	return large;
}

static void work(void *arg)
{
	struct hx_reader *reader = arg;
	struct hx_large *large;
	size_t place;

	hx_mutex_lock(&reader->mutex);
	place = reader->place_count++;
	hx_mutex_unlock(&reader->mutex);
	while ((large = next_large(reader, place)) != NULL) {
		struct hapax_buf key_scratch;

		hx_buf_init(
			&key_scratch,
			hx_memory_scratch_max(
				&large->delivery->loop->serve->memory, HX_KEY_SCRATCH_MAX));
		large->read(large, &key_scratch);
		hx_buf_done(&key_scratch);
		give_back(reader, place);
		hx_reactor_post(&large->delivery->loop->reactor, &large->task);
	}
}

/* Threads: the loop's, from here. */
static void note(struct hx_large *large, size_t bytes)
{
	hx_block_pool_note(&large->delivery->loop->reactor.blocks, &large->noted, bytes);
}

static void note_texts(struct hx_large *large)
{
	const struct hx_delivery_batch *batch = large->delivery->batch;

	note(large,
	     large->event_text.capacity + large->body_text.capacity +
	             (batch != NULL ? batch->text.capacity : 0));
}

static void claim_of_batch(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;
	struct hx_delivery_batch *batch = delivery->batch;
	bool is_claimed;

	if (!large->has_event) {
		hx_delivery_answer_batch(delivery);
		return;
	}
	delivery->loop->event = large->event;
	batch->event = large->event.text;
	batch->is_claiming = true;
	is_claimed = hx_delivery_claim(delivery);
	batch->is_claiming = false;
	if (!is_claimed)
		hx_delivery_next(delivery);
}

static void claim_event(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;

	if (large->status != HAPAX_OK) {
		hx_delivery_refuse_whole(delivery, large->status, &large->err);
		return;
	}
	if (delivery->batch != NULL) {
		claim_of_batch(large);
		return;
	}
	delivery->loop->event = large->event;
	if (!hx_delivery_claim(delivery))
		return;
	/* What goes to the upstream is the body of the exchange. */
	hx_buf_done(&large->event_text);
	hx_buf_done(&large->body_text);
	note_texts(large);
}

static void on_read(struct hx_task *task)
{
	struct hx_large *large = task->context;

	note_texts(large);
	large->done(large);
}

void hx_large_ask(struct hx_large *large)
{
	struct hx_reader *reader = &large->delivery->loop->serve->reader;
	/* Of a batch that was read, one event. */
	uint64_t size = large->is_open ? HX_LARGE_SIZE_MIN : large->delivery->exchange->body.size;

	large->next = NULL;
	hx_mutex_lock(&reader->mutex);
	large->tag = tag_of(reader, large->who);
	large->end = large->tag + size;
	if (reader->first == NULL)
		reader->first = large;
	else
		reader->last->next = large;
	reader->last = large;
	reader->waiting++;
	/* The one that wakes may not be allowed to take it. */
	hx_cond_broadcast(&reader->wake);
	hx_mutex_unlock(&reader->mutex);
}

/* For whom a body is read. */
static void identify(const struct hx_reader *reader, struct hx_large *large)
{
	const struct hx_http_exchange *exchange = large->delivery->exchange;
	char network[HX_ADDRESS_TEXT_SIZE];

	large->is_trusted = exchange->origin[0] == '\0';
	hx_address_network(large->is_trusted ? exchange->client : exchange->origin, network);
	large->who = hx_siphash13(reader->hash_key, network, strlen(network));
}

/* Another thread, if nobody is free to read what is about to come. */
static enum hapax_status need_thread(struct hx_reader *reader, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	hx_mutex_lock(&reader->mutex);
	if (reader->thread_count < reader->thread_max &&
	    reader->busy + reader->waiting >= reader->thread_count) {
		status = hx_thread_start(
			&reader->threads[reader->thread_count], work, reader, "hapax-reader", err);
		reader->thread_count += status == HAPAX_OK;
	}
	/* Without another one, those that there are read it later. */
	if (reader->thread_count > 0)
		status = HAPAX_OK;
	hx_mutex_unlock(&reader->mutex);
	return status;
}

/* With its thread; NULL: err says why not. */
static struct hx_large *new_large(
	struct hx_delivery *delivery, hx_large_read_fn *read, hx_large_done_fn *done,
	struct hapax_error *err)
{
	struct hx_large *large;

	if (need_thread(&delivery->loop->serve->reader, err) != HAPAX_OK)
		return NULL;
	large = hx_alloc_zero(1, sizeof(*large));
	if (large == NULL) {
		(void)hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "no memory for a large event");
		return NULL;
	}
	large->delivery = delivery;
	large->read = read;
	large->done = done;
	large->key.size = sizeof(large->key);
	identify(&delivery->loop->serve->reader, large);
	large->task = (struct hx_task){.fn = on_read, .context = large};
	hx_buf_init(&large->event_text, HX_EVENT_TEXT_MAX);
	hx_buf_init(&large->body_text, HX_RESULT_SIZE_LIMIT * 4);
	return large;
}

enum hapax_status hx_large_start(
	struct hx_delivery *delivery, hx_large_read_fn *read, hx_large_done_fn *done,
	struct hapax_error *err)
{
	delivery->large = new_large(delivery, read, done, err);
	if (delivery->large == NULL)
		return err->status;
	hx_large_ask(delivery->large);
	return HAPAX_OK;
}

enum hapax_status hx_large_begin(
	struct hx_delivery *delivery, enum hx_cloudevents_mode mode, struct hapax_error *err)
{
	const struct hx_http_exchange *exchange = delivery->exchange;
	/* Others are held one at a time, and only until they are claimed. */
	bool is_held =
		mode == HX_CLOUDEVENTS_BATCHED && !hx_http_body_is_in_memory(&exchange->body);

	if (is_held && hx_http_server_is_full(exchange->server))
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0,
			"the memory for requests and replies is in use; try again later");
	delivery->large = new_large(delivery, read_event, claim_event, err);
	if (delivery->large == NULL)
		return err->status;
	delivery->large->mode = mode;
	if (is_held)
		note(delivery->large, (size_t)exchange->body.size);
	hx_large_ask(delivery->large);
	return HAPAX_OK;
}

void hx_large_free(struct hx_large *large)
{
	if (large == NULL)
		return;
	note(large, 0);
	hx_buf_done(&large->event_text);
	hx_buf_done(&large->body_text);
	hx_free(large);
}
