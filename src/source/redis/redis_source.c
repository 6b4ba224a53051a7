/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_source.c - a Redis stream as a source.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/time.h"
#include "source/redis/redis_private.h"
#include "source/source.h"

enum {
	PULSE_MS_MAX = 1000,
	/* Limit of the disconnect; the rest of it is then skipped. */
	GOODBYE_MS = 3000,
};

/* Remove a member without entries from the group: its name will not be used again. */
static const char goodbye[] =
	"if #redis.call('XPENDING',KEYS[1],ARGV[1],'-','+',1,ARGV[2])==0 then"
	" return redis.call('XGROUP','DELCONSUMER',KEYS[1],ARGV[1],ARGV[2]) end return 0";

/* ------------------------------------------------------------------ the I/O thread */

static int64_t now_ns(const struct hx_redis_source *source)
{
	return hx_reactor_now_ns(&source->io_thread.reactor);
}

static void set_pulse(struct hx_redis_source *source)
{
	int64_t span_ms = source->place.min_idle_ms / 3;

	if (span_ms > PULSE_MS_MAX)
		span_ms = PULSE_MS_MAX;
	hx_timer_set(
		&source->io_thread.reactor.timers, &source->pulse,
		now_ns(source) + span_ms * HX_NS_PER_MS);
}

static void on_begin(struct hx_task *task)
{
	struct hx_redis_source *source = task->context;

	source->swept_ns = now_ns(source);
	source->kept_ns = source->swept_ns;
	hx_redis_line_open(&source->reader.line);
	hx_redis_line_open(&source->writer.line);
	set_pulse(source);
}

static void on_work(struct hx_task *task)
{
	struct hx_redis_source *source = task->context;

	hx_redis_writer_settle(source);
	hx_redis_reader_pump(source);
}

static void close_lines(struct hx_redis_source *source)
{
	source->has_closed = true;
	source->closing = 2;
	hx_timer_clear(&source->io_thread.reactor.timers, &source->pulse);
	hx_redis_line_close(&source->reader.line);
	hx_redis_line_close(&source->writer.line);
}

/*
 * In order: the reader's command gets its reply, its entries are given back, everything is written,
 * the member is removed, both lines are closed.
 */
void hx_redis_source_end(struct hx_redis_source *source)
{
	bool is_late = now_ns(source) >= source->stop_ns;

	if (!source->is_stopping || source->is_ending)
		return;
	if (source->has_closed) {
		if (source->closing == 0)
			hx_reactor_stop(&source->io_thread.reactor);
		return;
	}
	if (source->reader.is_asking && !is_late)
		return;
	source->is_ending = true;
	hx_io_thread_recall(&source->io_thread);
	hx_redis_writer_settle(source);
	source->is_ending = false;
	if (!is_late && source->writer.line.is_ready &&
	    !hx_redis_writer_goodbye(source, source->has_instance ? NULL : goodbye))
		return;
	close_lines(source);
}

void hx_redis_source_closed(struct hx_redis_line *line)
{
	struct hx_redis_source *source = line->context;

	source->closing--;
	hx_redis_source_end(source);
}

static void on_stop(struct hx_task *task)
{
	struct hx_redis_source *source = task->context;

	source->is_stopping = true;
	source->stop_ns = now_ns(source) + GOODBYE_MS * HX_NS_PER_MS;
	hx_redis_writer_unblock(source);
	hx_redis_writer_give_back_aside(source);
	hx_redis_source_end(source);
}

static void on_pulse(struct hx_timer *timer)
{
	struct hx_redis_source *source = timer->context;
	int64_t idle_ns = source->place.min_idle_ms * HX_NS_PER_MS;

	set_pulse(source);
	if (source->is_stopping) {
		hx_redis_source_end(source);
		return;
	}
	hx_redis_writer_pulse(source);
	if (now_ns(source) - source->kept_ns >= idle_ns / 3) {
		source->kept_ns = now_ns(source);
		hx_redis_writer_keep(source);
	}
	if (now_ns(source) - source->swept_ns >= idle_ns / 2) {
		source->swept_ns = now_ns(source);
		if (source->reader.cursor[0] == '\0')
			memcpy(source->reader.cursor, "0-0", 4);
	}
	hx_redis_reader_pump(source);
}

static const struct hx_io_thread_ops courier_ops = {
	.begin = on_begin,
	.work = on_work,
	.stop = on_stop,
};

/* ------------------------------------------------------------------ life */

static void redis_close(struct hapax_source *base)
{
	struct hx_redis_source *source = (struct hx_redis_source *)base;

	assert(base->ops->close == redis_close);
	hx_io_thread_halt(&source->io_thread);
	hx_redis_line_done(&source->reader.line);
	hx_redis_line_done(&source->writer.line);
	hx_timer_retire(&source->io_thread.reactor.timers, &source->pulse);
	if (source->has_resolver)
		hx_resolver_done(&source->resolver);
	hx_tls_context_free(source->tls);
	hx_redis_writer_free(source);
	hx_redis_entry_free_spares(source);
	hx_io_thread_done(&source->io_thread);
	/* It contains a password. */
	explicit_bzero(&source->place, sizeof(source->place));
	hx_free(source);
}

static const struct hapax_source_ops redis_ops = {
	.version = HAPAX_SOURCE_OPS_VERSION,
	.name = "redis",
	.next = hx_io_thread_next,
	.ack = hx_io_thread_ack,
	.give_back = hx_io_thread_give_back,
	.publish = hx_io_thread_publish,
	.tick = hx_io_thread_tick,
	.drain = hx_io_thread_drain,
	.stats = hx_io_thread_stats,
	.close = redis_close,
	.pause = hx_io_thread_pause,
};

static void make_member(struct hx_redis_source *source)
{
	unsigned char random[8];
	char text[2 * sizeof(random) + 1];

	source->has_instance = source->place.instance[0] != '\0';
	hx_random_bytes(random, sizeof(random));
	hx_hex_encode(random, sizeof(random), text);
	text[sizeof(text) - 1] = '\0';
	if (source->has_instance)
		memcpy(source->member, source->place.instance, sizeof(source->member));
	else
		(void)snprintf(source->member, sizeof(source->member), "hapax-%s", text);
}

static enum hapax_status make_lines(struct hx_redis_source *source, struct hapax_error *err)
{
	struct hx_reactor *reactor = &source->io_thread.reactor;
	const struct hx_redis_place *place = &source->place.redis;

	hx_resolver_init(&source->resolver, hx_net_system());
	source->has_resolver = true;
	if (hx_redis_line_init(
		    &source->reader.line, reactor, &source->resolver, place, source->tls,
		    &hx_redis_reader_ops, source) != HAPAX_OK ||
	    hx_redis_line_init(
		    &source->writer.line, reactor, &source->resolver, place, source->tls,
		    &hx_redis_writer_ops, source) != HAPAX_OK ||
	    hx_timer_introduce(&reactor->timers, &source->pulse, on_pulse, source) != HAPAX_OK)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for Redis");
	source->reader.line.reply_size_max = hx_redis_reader_reply_size_max(source->place.size_max);
	return HAPAX_OK;
}

/* place is parsed. */
static enum hapax_status open_source(struct hx_redis_source *source, struct hapax_error *err)
{
	enum hapax_status status;

	make_member(source);
	status = hx_redis_connection_tls_context(&source->place.redis, &source->tls, err);
	if (status == HAPAX_OK)
		status = hx_io_thread_init(
			&source->io_thread, &redis_ops, &courier_ops, source->place.shown, err);
	return status == HAPAX_OK ? make_lines(source, err) : status;
}

/* Zeroed, and its place parsed. */
static enum hapax_status parse_source(
	const char *url, struct hx_redis_source **ret_source, struct hapax_error *err)
{
	struct hx_redis_source *source = hx_alloc_zero(1, sizeof(*source));

	if (source == NULL) {
		(void)hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
		return HAPAX_ERR_NO_MEMORY;
	}
	source->io_thread.base.ops = &redis_ops;
	*ret_source = source;
	return hx_stream_place_parse(url, &source->place, err);
}

enum hapax_status hx_redis_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err)
{
	struct hx_redis_source *source = NULL;
	enum hapax_status status = parse_source(url, &source, err);

	if (status == HAPAX_OK)
		status = open_source(source, err);
	if (status == HAPAX_OK)
		*ret_source = &source->io_thread.base;
	else if (source != NULL)
		redis_close(&source->io_thread.base);
	return status;
}

/* The member has one name, so that it reads the letters again that it has looked at before. */
static enum hapax_status turn_to_letters(
	struct hx_stream_place *place, const char *target, size_t count_max,
	struct hapax_buf *ret_topics, struct hapax_error *err)
{
	enum hapax_status status =
		hx_buf_append(ret_topics, place->stream, strlen(place->stream) + 1);
	char stream[HX_STREAM_NAME_SIZE];
	size_t group_size = strlen(place->group);

	if (status == HAPAX_OK &&
	    (!hx_source_letters_target(target, place->stream, stream, sizeof(stream)) ||
	     group_size + sizeof(".letters") > sizeof(place->group)))
		status = HAPAX_ERR_INVALID;
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "the name of the dead letters is too long");
	memcpy(place->stream, stream, sizeof(stream));
	/* Another consumer may read that stream by the group's own name. */
	memcpy(place->group + group_size, ".letters", sizeof(".letters"));
	(void)snprintf(place->instance, sizeof(place->instance), "letters");
	place->starts_latest = false;
	place->prefetch = count_max;
	place->deletes = true;
	return HAPAX_OK;
}

enum hapax_status hx_redis_open_letters(
	const char *url, const char *target, size_t count_max, struct hapax_buf *ret_topics,
	struct hapax_source **ret_source, struct hapax_error *err)
{
	struct hx_redis_source *source = NULL;
	enum hapax_status status = parse_source(url, &source, err);

	if (status == HAPAX_OK)
		status = turn_to_letters(&source->place, target, count_max, ret_topics, err);
	if (status == HAPAX_OK)
		status = open_source(source, err);
	if (status == HAPAX_OK)
		*ret_source = &source->io_thread.base;
	else if (source != NULL)
		redis_close(&source->io_thread.base);
	return status;
}

enum hapax_status hx_redis_source_check(const char *url, struct hapax_error *err)
{
	struct hx_stream_place *place = hx_alloc_zero(1, sizeof(*place));
	enum hapax_status status;

	if (place == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	status = hx_stream_place_parse(url, place, err);
	explicit_bzero(place, sizeof(*place));
	hx_free(place);
	return status;
}
