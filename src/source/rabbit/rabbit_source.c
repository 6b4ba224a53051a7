/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_source.c - a RabbitMQ queue as a source.
 */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/time.h"
#include "source/rabbit/rabbit_private.h"
#include "source/source.h"

/* Often enough for heartbeats (HX_RABBIT_HEARTBEAT_S) and a current lag. */
enum { PULSE_MS = 1000 };

/* ------------------------------------------------------------------ the I/O thread */

static void set_pulse(struct hx_rabbit_source *source)
{
	struct hx_reactor *reactor = &source->io_thread.reactor;

	hx_timer_set(
		&reactor->timers, &source->pulse,
		hx_reactor_now_ns(reactor) + PULSE_MS * HX_NS_PER_MS);
}

static void on_begin(struct hx_task *task)
{
	hx_rabbit_session_connect(task->context);
	set_pulse(task->context);
}

static void on_work(struct hx_task *task)
{
	struct hx_rabbit_source *source = task->context;

	/* Cancel before messages are given back: the broker would send them here again. */
	hx_rabbit_session_subscribe(source);
	hx_rabbit_session_settle(source);
	hx_rabbit_publisher_work(source);
	hx_rabbit_session_read(source);
	hx_rabbit_publisher_read(source);
}

static void on_stop(struct hx_task *task)
{
	struct hx_rabbit_source *source = task->context;
	struct hx_timer_heap *timers = &source->io_thread.reactor.timers;

	source->is_stopping = true;
	hx_timer_clear(timers, &source->retry);
	hx_timer_clear(timers, &source->pulse);
	hx_rabbit_session_settle(source);
	hx_rabbit_session_close(source);
	hx_reactor_stop(&source->io_thread.reactor);
}

static void on_retry(struct hx_timer *timer)
{
	hx_rabbit_session_connect(timer->context);
}

static void on_pulse(struct hx_timer *timer)
{
	struct hx_rabbit_source *source = timer->context;

	hx_rabbit_publisher_pulse(source);
	/* Deferred messages may have room now. */
	hx_rabbit_session_settle(source);
	hx_rabbit_session_pulse(source);
	set_pulse(source);
}

static const struct hx_io_thread_ops courier_ops = {
	.begin = on_begin,
	.work = on_work,
	.stop = on_stop,
};

/* ------------------------------------------------------------------ life */

static void rabbit_close(struct hapax_source *base)
{
	struct hx_rabbit_source *source = (struct hx_rabbit_source *)base;
	struct hx_timer_heap *timers = &source->io_thread.reactor.timers;

	assert(base->ops->close == rabbit_close);
	hx_io_thread_halt(&source->io_thread);
	hx_rabbit_publisher_done(source);
	hx_rabbit_delivery_free_spares(source);
	hx_timer_retire(timers, &source->retry);
	hx_timer_retire(timers, &source->pulse);
	hx_io_thread_done(&source->io_thread);
	explicit_bzero(&source->place, sizeof(source->place));
	hx_free(source);
}

static const struct hapax_source_ops rabbit_ops = {
	.version = HAPAX_SOURCE_OPS_VERSION,
	.name = "rabbitmq",
	.next = hx_io_thread_next,
	.ack = hx_io_thread_ack,
	.give_back = hx_io_thread_give_back,
	.publish = hx_io_thread_publish,
	.tick = hx_io_thread_tick,
	.drain = hx_io_thread_drain,
	.stats = hx_io_thread_stats,
	.close = rabbit_close,
	.hurry = hx_io_thread_hurry,
	.pause = hx_io_thread_pause,
};

/* place is parsed. */
static enum hapax_status open_source(struct hx_rabbit_source *source, struct hapax_error *err)
{
	struct hx_timer_heap *timers = &source->io_thread.reactor.timers;
	enum hapax_status status = hx_io_thread_init(
		&source->io_thread, &rabbit_ops, &courier_ops, source->place.shown, err);

	if (status != HAPAX_OK)
		return status;
	if (hx_timer_introduce(timers, &source->retry, on_retry, source) != HAPAX_OK ||
	    hx_timer_introduce(timers, &source->pulse, on_pulse, source) != HAPAX_OK)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for timers");
	return HAPAX_OK;
}

/* Zeroed, and its place parsed. */
static enum hapax_status parse_source(
	const char *url, struct hx_rabbit_source **ret_source, struct hapax_error *err)
{
	struct hx_rabbit_source *source = hx_alloc_zero(1, sizeof(*source));

	if (source == NULL) {
		(void)hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
		return HAPAX_ERR_NO_MEMORY;
	}
	source->io_thread.base.ops = &rabbit_ops;
	hx_rabbit_publisher_init(&source->publisher);
	*ret_source = source;
	return hx_queue_place_parse(url, &source->place, err);
}

enum hapax_status hx_rabbit_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err)
{
	struct hx_rabbit_source *source = NULL;
	enum hapax_status status = parse_source(url, &source, err);

	if (status == HAPAX_OK)
		status = open_source(source, err);
	if (status == HAPAX_OK)
		*ret_source = &source->io_thread.base;
	else if (source != NULL)
		rabbit_close(&source->io_thread.base);
	return status;
}

static enum hapax_status turn_to_letters(
	struct hx_queue_place *place, const char *target, size_t count_max,
	struct hapax_buf *ret_topics, struct hapax_error *err)
{
	char *queue = place->rabbit.queue;
	char letters[HX_RABBIT_NAME_SIZE];

	if (place->rabbit.exchange[0] != '\0')
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the dead letters go to exchange '%.100s', and its queues are not known",
			place->rabbit.exchange);
	if (!hx_source_letters_target(target, queue, letters, sizeof(letters)) ||
	    hx_buf_append(ret_topics, queue, strlen(queue) + 1) != HAPAX_OK)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the name of the dead letters is too long");
	memcpy(queue, letters, sizeof(letters));
	place->rabbit.declares = false;
	place->prefetch = (uint16_t)count_max;
	return HAPAX_OK;
}

enum hapax_status hx_rabbit_open_letters(
	const char *url, const char *target, size_t count_max, struct hapax_buf *ret_topics,
	struct hapax_source **ret_source, struct hapax_error *err)
{
	struct hx_rabbit_source *source = NULL;
	enum hapax_status status = parse_source(url, &source, err);

	if (status == HAPAX_OK)
		status = turn_to_letters(&source->place, target, count_max, ret_topics, err);
	if (status == HAPAX_OK)
		status = open_source(source, err);
	if (status == HAPAX_OK)
		*ret_source = &source->io_thread.base;
	else if (source != NULL)
		rabbit_close(&source->io_thread.base);
	return status;
}

enum hapax_status hx_rabbit_source_check(const char *url, struct hapax_error *err)
{
	struct hx_queue_place *place = hx_alloc_zero(1, sizeof(*place));
	enum hapax_status status;

	if (place == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	status = hx_queue_place_parse(url, place, err);
	explicit_bzero(place, sizeof(*place));
	hx_free(place);
	return status;
}
