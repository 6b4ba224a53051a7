/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_source.c - a RabbitMQ queue as a source.
 */
#include "source/rabbit/rabbit_source.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/time.h"
#include "source/rabbit/rabbit_private.h"
#include "source/source.h"

/* Often enough for heartbeats (HX_RABBIT_HEARTBEAT_S) and a current lag. */
enum { PULSE_MS = 1000 };

static hapax_source_next_fn rabbit_next;
static hapax_source_ack_fn rabbit_ack;
static hapax_source_give_back_fn rabbit_give_back;
static hapax_source_publish_fn rabbit_publish;
static hapax_source_tick_fn rabbit_tick;
static hapax_source_drain_fn rabbit_drain;
static hapax_source_stats_fn rabbit_stats;
static hapax_source_close_fn rabbit_close;
static hapax_source_hurry_fn rabbit_hurry;

static const struct hapax_source_ops rabbit_ops = {
	.version = HAPAX_SOURCE_OPS_VERSION,
	.name = "rabbitmq",
	.next = rabbit_next,
	.ack = rabbit_ack,
	.give_back = rabbit_give_back,
	.publish = rabbit_publish,
	.tick = rabbit_tick,
	.drain = rabbit_drain,
	.stats = rabbit_stats,
	.close = rabbit_close,
	.hurry = rabbit_hurry,
};

static struct hx_rabbit_source *downcast(struct hapax_source *source)
{
	assert(source->ops == &rabbit_ops);
	return (struct hx_rabbit_source *)source;
}

static struct hapax_message *rabbit_next(struct hapax_source *base)
{
	return hx_io_thread_next(&downcast(base)->io_thread);
}

static void rabbit_ack(struct hapax_source *base, struct hapax_message *message)
{
	hx_io_thread_settle(&downcast(base)->io_thread, message, true);
}

static void rabbit_give_back(struct hapax_source *base, struct hapax_message *message)
{
	hx_io_thread_settle(&downcast(base)->io_thread, message, false);
}

static void rabbit_publish(struct hapax_source *base, struct hapax_publication *publication)
{
	hx_io_thread_publish(&downcast(base)->io_thread, publication);
}

static int64_t rabbit_tick(struct hapax_source *base, int64_t now_ms)
{
	(void)now_ms;
	return hx_io_thread_tick(&downcast(base)->io_thread);
}

static int rabbit_drain(struct hapax_source *base)
{
	return hx_io_thread_drain(&downcast(base)->io_thread);
}

static void rabbit_hurry(struct hapax_source *base)
{
	hx_io_thread_hurry(&downcast(base)->io_thread);
}

static void rabbit_stats(struct hapax_source *base, struct hapax_source_stats *ret_stats)
{
	hx_io_thread_stats(&downcast(base)->io_thread, ret_stats);
}

/* ------------------------------------------------------------------ the I/O thread */

static void set_pulse(struct hx_rabbit_source *source)
{
	struct hx_reactor *reactor = &source->io_thread.reactor;

	hx_timer_set(
		&reactor->timers, &source->pulse,
		hx_reactor_now_ns(reactor) + PULSE_MS * HX_NS_PER_MS);
}

static void on_begin(void *context)
{
	hx_rabbit_session_connect(context);
	set_pulse(context);
}

static void on_work(void *context)
{
	struct hx_rabbit_source *source = context;

	hx_rabbit_session_settle(source);
	hx_rabbit_publisher_work(source);
	hx_rabbit_session_read(source);
	hx_rabbit_publisher_read(source);
}

static void on_stop(void *context)
{
	struct hx_rabbit_source *source = context;
	struct hx_timer_heap *timers = &source->io_thread.reactor.timers;

	source->is_stopping = true;
	hx_timer_clear(timers, &source->retry);
	hx_timer_clear(timers, &source->pulse);
	hx_rabbit_session_settle(source);
	hx_rabbit_session_close(source);
	hx_io_thread_end(&source->io_thread);
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
	struct hx_rabbit_source *source = downcast(base);
	struct hx_timer_heap *timers = &source->io_thread.reactor.timers;

	hx_io_thread_halt(&source->io_thread);
	hx_rabbit_publisher_done(source);
	hx_rabbit_delivery_free_spares(source);
	hx_timer_retire(timers, &source->retry);
	hx_timer_retire(timers, &source->pulse);
	hx_io_thread_done(&source->io_thread);
	hx_source_done(base);
	explicit_bzero(&source->place, sizeof(source->place));
	hx_free(source);
}

static enum hapax_status open_source(
	struct hx_rabbit_source *source, const char *url, struct hapax_error *err)
{
	struct hx_timer_heap *timers = &source->io_thread.reactor.timers;
	enum hapax_status status = hx_queue_place_parse(url, &source->place, err);

	if (status != HAPAX_OK)
		return status;
	if (hx_source_init(&source->base, &rabbit_ops, source->place.shown) != HAPAX_OK)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	status = hx_io_thread_init(&source->io_thread, &source->base, &courier_ops, source, err);
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
	source->base.ops = &rabbit_ops;
	hx_rabbit_publisher_init(&source->publisher);
	status = open_source(source, url, err);
	if (status != HAPAX_OK) {
		rabbit_close(&source->base);
		return status;
	}
	*ret_source = &source->base;
	return HAPAX_OK;
}

enum hapax_status hx_rabbit_source_check(const char *url, struct hapax_error *err)
{
	struct hx_queue_place *place = hx_alloc_zero(1, sizeof(*place));
	enum hapax_status status;

	if (place == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	status = hx_queue_place_parse(url, place, err);
	hx_free(place);
	return status;
}
