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

	hx_rabbit_session_settle(source);
	hx_rabbit_session_subscribe(source);
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

static enum hapax_status open_source(
	struct hx_rabbit_source *source, const char *url, struct hapax_error *err)
{
	struct hx_timer_heap *timers = &source->io_thread.reactor.timers;
	enum hapax_status status = hx_queue_place_parse(url, &source->place, err);

	if (status == HAPAX_OK)
		status = hx_io_thread_init(
			&source->io_thread, &rabbit_ops, &courier_ops, source->place.shown, err);
	if (status != HAPAX_OK)
		return status;
	if (hx_timer_introduce(timers, &source->retry, on_retry, source) != HAPAX_OK ||
	    hx_timer_introduce(timers, &source->pulse, on_pulse, source) != HAPAX_OK)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for timers");
	return HAPAX_OK;
}

enum hapax_status hx_rabbit_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err)
{
	struct hx_rabbit_source *source = hx_alloc_zero(1, sizeof(*source));
	enum hapax_status status;

	if (source == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	source->io_thread.base.ops = &rabbit_ops;
	hx_rabbit_publisher_init(&source->publisher);
	status = open_source(source, url, err);
	if (status != HAPAX_OK) {
		rabbit_close(&source->io_thread.base);
		return status;
	}
	*ret_source = &source->io_thread.base;
	return HAPAX_OK;
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
