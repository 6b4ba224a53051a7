/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_session.c - the connection for messages: deliveries and acknowledgements.
 *
 * If it is lost, it is unknown which acknowledgements arrived. The broker delivers the other
 * messages again, marked as redelivered; finished ones are then duplicates.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/random.h"
#include "base/time.h"
#include "source/rabbit/rabbit_private.h"

enum {
	CONNECT_MS = 5000,
	GOODBYE_MS = 5000,
	RETRY_MS_FIRST = 100,
	RETRY_MS_LAST = 10000,

	/* Frames to read before acknowledgements get their turn. */
	FRAMES_MAX = 3000,

	/* A second each. A returned message that has not come by then went to another consumer. */
	PROMISE_PULSES_MAX = 5,

	/*
	 * Half of RabbitMQ 4's default limit, above which a quorum queue drops a message. Reported
	 * then, and again after every few returns.
	 */
	RETURNS_ALARM = 10,
	RETURNS_STEP = 5,

	/*
	 * How long a message may stay unacknowledged, in place of the broker's 30 minutes. After
	 * that it closes the channel and counts a return for all; a store may be down for longer.
	 */
	UNACKNOWLEDGED_MS_MAX = 7 * 24 * 3600 * 1000,

	/* About 10 MB of memory, and a queue that needs an operator. */
	ASIDE_MAX = 10000,

	SUBSCRIPTION_SIZE = 24,
};

static void unlink_delivery(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery)
{
	if (delivery->older != NULL)
		delivery->older->newer = delivery->newer;
	else
		source->oldest = delivery->newer;
	if (delivery->newer != NULL)
		delivery->newer->older = delivery->older;
	else
		source->newest = delivery->older;
	if (delivery->state == HX_RABBIT_DELIVERY_DEFERRED)
		source->deferred--;
}

static void link_delivery(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery)
{
	delivery->newer = NULL;
	delivery->older = source->newest;
	if (source->newest != NULL)
		source->newest->newer = delivery;
	else
		source->oldest = delivery;
	source->newest = delivery;
}

static void retry_later(struct hx_rabbit_source *source)
{
	struct hx_reactor *reactor = &source->io_thread.reactor;
	int64_t wait_ms;

	if (source->is_stopping)
		return;
	wait_ms = hx_backoff(RETRY_MS_FIRST, RETRY_MS_LAST, source->attempts++, hx_random_u64());
	hx_timer_set(
		&reactor->timers, &source->retry,
		hx_reactor_now_ns(reactor) + wait_ms * HX_NS_PER_MS);
}

/*
 * The consumer keeps its messages until they are settled; all others are forgotten. The broker has
 * all of them.
 */
static void forget_deliveries(struct hx_rabbit_source *source)
{
	struct hx_io_messages untaken = hx_io_thread_lost(&source->io_thread);
	struct hx_io_message *message_;

	HX_LIST_JOIN(&untaken, &source->arrived, next);
	while (source->oldest != NULL) {
		struct hx_rabbit_delivery *delivery = source->oldest;

		unlink_delivery(source, delivery);
		/* The others are at the consumer, or in the list below. */
		if (delivery->state == HX_RABBIT_DELIVERY_COMING ||
		    delivery->state == HX_RABBIT_DELIVERY_DEFERRED ||
		    delivery->state == HX_RABBIT_DELIVERY_ASIDE)
			hx_rabbit_delivery_free(source, delivery);
	}
	while ((message_ = hx_io_messages_take(&untaken)) != NULL)
		hx_rabbit_delivery_free(source, (struct hx_rabbit_delivery *)(void *)message_);
	source->coming = NULL;
	source->promised = 0;
	source->large_is_promised = false;
	source->aside = 0;
	source->aside_slots = 0;
	assert(source->deferred == 0);
}

static void lose(struct hx_rabbit_source *source, const char *why)
{
	if (!hx_rabbit_is_open(&source->rabbit))
		return;
	hx_reactor_unwatch(&source->io_thread.reactor, &source->watch);
	hx_rabbit_close(&source->rabbit);
	forget_deliveries(source);
	hx_io_thread_say(&source->io_thread, "%s", why);
	retry_later(source);
}

static void lose_by_code(struct hx_rabbit_source *source, int code)
{
	struct hapax_error err;

	(void)hx_rabbit_code_error(code, "the connection to RabbitMQ was lost", &err);
	lose(source, err.message);
}

/* The broker closed the channel or the connection; report its reason. */
static void lose_by_method(
	struct hx_rabbit_source *source, const char *what, int code, amqp_bytes_t text)
{
	char why[HX_IO_THREAD_TEXT_SIZE];

	(void)snprintf(
		why, sizeof(why), "RabbitMQ closed the %s: %.*s (%d)", what,
		(int)(text.len < 200 ? text.len : 200), text.len == 0 ? "" : (char *)text.bytes,
		code);
	lose(source, why);
}

/* ------------------------------------------------------------------ deliveries */

/* An AMQP short string, at most 255 bytes. */
static void copy_name(char out[HX_RABBIT_NAME_SIZE], amqp_bytes_t text)
{
	size_t size = text.len < HX_RABBIT_NAME_SIZE ? text.len : HX_RABBIT_NAME_SIZE - 1;

	if (size > 0)
		memcpy(out, text.bytes, size);
	out[size] = '\0';
}

static void take_deliver(struct hx_rabbit_source *source, const amqp_basic_deliver_t *method)
{
	struct hx_rabbit_delivery *delivery = hx_rabbit_delivery_take(source);

	source->coming = delivery;
	source->coming_left = UINT64_MAX;
	if (delivery == NULL) {
		lose(source, "not enough memory for a message");
		return;
	}
	delivery->tag = method->delivery_tag;
	delivery->message_.is_acked = false;
	delivery->is_redelivered = method->redelivered;
	copy_name(delivery->exchange, method->exchange);
	copy_name(delivery->routing_key, method->routing_key);
	link_delivery(source, delivery);
}

/* Whether size fits beside the used bytes; a single message always fits. */
static bool fits(const struct hx_rabbit_source *source, uint64_t used, uint64_t size)
{
	uint64_t max = source->place.held_max;

	return used == 0 || (used < max && size <= max - used);
}

static bool take_room(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery)
{
	/* A redelivered message may be one that we sent back: the room is reserved for those. */
	bool is_expected = delivery->is_redelivered;

	if (delivery->is_large) {
		if (source->large != NULL || (source->large_is_promised && !is_expected))
			return false;
		source->large = delivery;
		source->large_is_promised = false;
		return true;
	}
	if (!fits(source, source->held_bytes + (is_expected ? 0 : source->promised),
		  delivery->size))
		return false;
	if (is_expected) {
		source->promised -=
			delivery->size < source->promised ? delivery->size : source->promised;
		source->promise_pulses = 0;
	}
	return true;
}

static bool promise_room(struct hx_rabbit_source *source, const struct hx_rabbit_delivery *delivery)
{
	if (delivery->is_large) {
		if (source->large != NULL || source->large_is_promised)
			return false;
		source->large_is_promised = true;
	} else {
		if (!fits(source, source->held_bytes + source->promised, delivery->size))
			return false;
		source->promised += delivery->size;
	}
	source->promise_pulses = 0;
	return true;
}

static void set_aside(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery)
{
	hx_rabbit_delivery_empty(source, delivery);
	delivery->state = HX_RABBIT_DELIVERY_ASIDE;
	source->aside++;
	source->aside_slots++;
}

/* No memory for it, and a redelivery would not help. */
static void leave_aside(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery)
{
	set_aside(source, delivery);
	hx_io_thread_say(
		&source->io_thread,
		"not enough memory for a message of %" PRIu64 " bytes, above size_max (%zu); it "
		"stays in '%.100s'",
		delivery->body_size, source->place.size_max, source->place.rabbit.queue);
}

static void tell_returns(struct hx_rabbit_source *source, const struct hx_rabbit_delivery *delivery)
{
	if (delivery->returns < RETURNS_ALARM || delivery->returns % RETURNS_STEP != 0)
		return;
	hx_io_thread_say(
		&source->io_thread,
		"a message of '%.100s' was delivered and returned %" PRIu64 " times; after its "
		"delivery limit (20 by default in RabbitMQ 4) the queue drops it; set "
		"delivery-limit to -1: hapax counts attempts itself",
		source->place.rabbit.queue, delivery->returns);
}

static void end_coming(struct hx_rabbit_source *source)
{
	struct hx_rabbit_delivery *delivery = source->coming;

	source->coming = NULL;
	if (delivery->state != HX_RABBIT_DELIVERY_COMING)
		return;
	tell_returns(source, delivery);
	hx_rabbit_delivery_finish(source, delivery);
	HX_LIST_ADD(&source->arrived, &delivery->message_, next);
}

static void take_header(struct hx_rabbit_source *source, const amqp_frame_t *frame)
{
	struct hx_rabbit_delivery *delivery = source->coming;
	bool has_room;

	if (delivery == NULL || source->coming_left != UINT64_MAX)
		return;
	delivery->body_size = frame->payload.properties.body_size;
	delivery->is_large = delivery->body_size > source->place.size_max;
	source->coming_left = delivery->body_size;
	if (delivery->body_size > HX_QUEUE_SIZE_MAX_MAX) {
		leave_aside(source, delivery);
	} else {
		delivery->size = delivery->body_size + frame->payload.properties.raw.len;
		has_room = take_room(source, delivery);
		if (has_room && hx_rabbit_delivery_begin(source, delivery, frame)) {
			delivery->state = HX_RABBIT_DELIVERY_COMING;
		} else if (has_room && delivery->is_large) {
			leave_aside(source, delivery);
		} else {
			delivery->state = HX_RABBIT_DELIVERY_DEFERRED;
			source->deferred++;
		}
	}
	if (source->coming_left == 0)
		end_coming(source);
}

static void take_body(struct hx_rabbit_source *source, const amqp_frame_t *frame)
{
	struct hx_rabbit_delivery *delivery = source->coming;
	amqp_bytes_t part = frame->payload.body_fragment;

	if (delivery == NULL)
		return;
	if (source->coming_left == UINT64_MAX || part.len > source->coming_left) {
		lose(source, "RabbitMQ sent more data for a message than announced");
		return;
	}
	source->coming_left -= part.len;
	if (delivery->state == HX_RABBIT_DELIVERY_COMING) {
		(void)hx_buf_append(&delivery->bytes, part.bytes, part.len);
		if (source->large != delivery)
			source->held_bytes += part.len;
	}
	if (source->coming_left == 0)
		end_coming(source);
}

static void take_method(struct hx_rabbit_source *source, const amqp_method_t *method)
{
	const amqp_channel_close_t *channel = method->decoded;
	const amqp_connection_close_t *connection = method->decoded;
	const amqp_queue_declare_ok_t *declared = method->decoded;

	switch (method->id) {
	case AMQP_BASIC_DELIVER_METHOD: take_deliver(source, method->decoded); return;
	case AMQP_QUEUE_DECLARE_OK_METHOD:
		/*
		 * Reset the backoff only now: a connection refused right after opening must wait.
		 */
		source->attempts = 0;
		source->io_thread.lag = declared->message_count;
		return;
	case AMQP_BASIC_CANCEL_METHOD:
		lose(source, "RabbitMQ canceled the consumer: the queue was deleted or moved");
		return;
	case AMQP_CHANNEL_CLOSE_METHOD:
		lose_by_method(source, "channel", channel->reply_code, channel->reply_text);
		return;
	case AMQP_CONNECTION_CLOSE_METHOD:
		lose_by_method(
			source, "connection", connection->reply_code, connection->reply_text);
		return;
	default: return;
	}
}

static void take_frame(struct hx_rabbit_source *source, const amqp_frame_t *frame)
{
	if (frame->frame_type == AMQP_FRAME_METHOD)
		take_method(source, &frame->payload.method);
	else if (frame->frame_type == AMQP_FRAME_HEADER)
		take_header(source, frame);
	else if (frame->frame_type == AMQP_FRAME_BODY)
		take_body(source, frame);
}

void hx_rabbit_session_read(struct hx_rabbit_source *source)
{
	struct timeval now = {0, 0};
	int count = 0;

	while (hx_rabbit_is_open(&source->rabbit)) {
		amqp_frame_t frame;
		int code;

		if (count++ == FRAMES_MAX) {
			/*
			 * librabbitmq may have buffered all frames: the descriptor would not show
			 * them.
			 */
			hx_reactor_post(&source->io_thread.reactor, &source->io_thread.work);
			break;
		}
		amqp_maybe_release_buffers(source->rabbit.conn);
		code = amqp_simple_wait_frame_noblock(source->rabbit.conn, &frame, &now);
		if (code == AMQP_STATUS_TIMEOUT)
			break;
		if (code == AMQP_STATUS_OK)
			take_frame(source, &frame);
		else
			lose_by_code(source, code);
	}
	hx_io_thread_deliver(&source->io_thread, &source->arrived);
}

/* ------------------------------------------------------------------ settling */

static void check_sent(struct hx_rabbit_source *source, int code)
{
	if (code != AMQP_STATUS_OK)
		lose_by_code(source, code);
}

static void send_ack(struct hx_rabbit_source *source, uint64_t tag, bool is_multiple)
{
	check_sent(
		source, amqp_basic_ack(source->rabbit.conn, HX_RABBIT_CHANNEL, tag, is_multiple));
}

static void send_back(struct hx_rabbit_source *source, uint64_t tag)
{
	check_sent(source, amqp_basic_nack(source->rabbit.conn, HX_RABBIT_CHANNEL, tag, 0, 1));
}

/* Acknowledge all finished ones at the head of the list at once. The tag must be one of them. */
static void ack_oldest(struct hx_rabbit_source *source)
{
	uint64_t tag = 0;
	size_t count = 0;

	while (source->oldest != NULL && source->oldest->state == HX_RABBIT_DELIVERY_ACKED) {
		struct hx_rabbit_delivery *delivery = source->oldest;

		tag = delivery->tag;
		count++;
		unlink_delivery(source, delivery);
		delivery->state = HX_RABBIT_DELIVERY_TOLD;
	}
	if (count > 0)
		send_ack(source, tag, count > 1);
}

/* Whether its connection still exists. */
static bool is_alive(const struct hx_rabbit_source *source, const struct hx_io_message *message_)
{
	return message_->generation == source->io_thread.generation &&
		hx_rabbit_is_open(&source->rabbit);
}

/* Settle one behind an unfinished message by itself: it must not wait. */
static void tell_one(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery)
{
	if (!is_alive(source, &delivery->message_) || delivery->state == HX_RABBIT_DELIVERY_TOLD)
		return;
	unlink_delivery(source, delivery);
	if (delivery->state == HX_RABBIT_DELIVERY_ACKED)
		send_ack(source, delivery->tag, false);
	else
		send_back(source, delivery->tag);
}

/* Send back deferred messages for which there is room now. */
static void send_back_deferred(struct hx_rabbit_source *source)
{
	struct hx_rabbit_delivery *at = source->deferred > 0 ? source->oldest : NULL;
	struct hx_rabbit_delivery *next;

	for (; at != NULL && hx_rabbit_is_open(&source->rabbit); at = next) {
		uint64_t tag = at->tag;

		next = at->newer;
		if (at->state != HX_RABBIT_DELIVERY_DEFERRED || at == source->coming)
			continue;
		if (!promise_room(source, at)) {
			/* Later messages must not overtake the oldest. */
			if (!at->is_large)
				return;
			continue;
		}
		unlink_delivery(source, at);
		hx_rabbit_delivery_free(source, at);
		send_back(source, tag);
	}
}

/* Too large, and without a dead-letter target. */
static bool is_refused(
	const struct hx_rabbit_source *source, const struct hx_rabbit_delivery *delivery)
{
	return delivery->is_large && delivery->state == HX_RABBIT_DELIVERY_GIVEN_BACK &&
		is_alive(source, &delivery->message_);
}

static void name_subscription(const struct hx_rabbit_source *source, char out[SUBSCRIPTION_SIZE])
{
	(void)snprintf(out, SUBSCRIPTION_SIZE, "hapax-%u", source->subscription);
}

/* RabbitMQ before 3.11.15 ignores it. */
static amqp_table_t subscription_arguments(amqp_table_entry_t *entry)
{
	*entry = (amqp_table_entry_t){
		.key = amqp_cstring_bytes("x-consumer-timeout"),
		.value = {.kind = AMQP_FIELD_KIND_I32, .value = {.i32 = UNACKNOWLEDGED_MS_MAX}}};
	return (amqp_table_t){.num_entries = 1, .entries = entry};
}

/* Without waiting for an answer: deliveries come at any time. */
static void send_consume(struct hx_rabbit_source *source)
{
	char name[SUBSCRIPTION_SIZE];
	amqp_basic_consume_t consume = {
		.queue = amqp_cstring_bytes(source->place.rabbit.queue), .nowait = 1};
	amqp_table_entry_t entry;

	source->subscription++;
	source->is_subscribed = true;
	name_subscription(source, name);
	consume.consumer_tag = amqp_cstring_bytes(name);
	consume.arguments = subscription_arguments(&entry);
	check_sent(
		source,
		amqp_send_method(
			source->rabbit.conn, HX_RABBIT_CHANNEL, AMQP_BASIC_CONSUME_METHOD,
			&consume));
}

/* Earlier deliveries stay with the channel. */
static void send_cancel(struct hx_rabbit_source *source)
{
	char name[SUBSCRIPTION_SIZE];
	amqp_basic_cancel_t cancel = {.nowait = 1};

	source->is_subscribed = false;
	name_subscription(source, name);
	cancel.consumer_tag = amqp_cstring_bytes(name);
	check_sent(
		source,
		amqp_send_method(
			source->rabbit.conn, HX_RABBIT_CHANNEL, AMQP_BASIC_CANCEL_METHOD, &cancel));
}

/*
 * Messages that were set aside occupy slots of their subscription. A new subscription has all slots
 * free.
 */
static void resubscribe(struct hx_rabbit_source *source)
{
	if (!hx_rabbit_is_open(&source->rabbit) || !source->is_subscribed || source->is_stopping ||
	    source->aside > ASIDE_MAX || 2 * source->aside_slots < source->place.prefetch)
		return;
	source->aside_slots = 0;
	send_cancel(source);
	if (hx_rabbit_is_open(&source->rabbit))
		send_consume(source);
}

void hx_rabbit_session_subscribe(struct hx_rabbit_source *source)
{
	bool is_wanted = !source->io_thread.is_paused;

	if (!hx_rabbit_is_open(&source->rabbit) || source->is_stopping ||
	    source->is_subscribed == is_wanted)
		return;
	if (is_wanted)
		send_consume(source);
	else
		send_cancel(source);
}

void hx_rabbit_session_settle(struct hx_rabbit_source *source)
{
	struct hx_io_messages settled = hx_io_thread_take_settled(&source->io_thread);
	struct hx_io_message *message_;
	size_t count = 0;

	for (message_ = settled.first; message_ != NULL; message_ = message_->next) {
		if (is_alive(source, message_))
			((struct hx_rabbit_delivery *)(void *)message_)->state = message_->is_acked
				? HX_RABBIT_DELIVERY_ACKED
				: HX_RABBIT_DELIVERY_GIVEN_BACK;
	}
	ack_oldest(source);
	while ((message_ = hx_io_messages_take(&settled)) != NULL) {
		struct hx_rabbit_delivery *delivery = (struct hx_rabbit_delivery *)(void *)message_;

		count++;
		if (is_refused(source, delivery)) {
			set_aside(source, delivery);
		} else {
			tell_one(source, delivery);
			hx_rabbit_delivery_free(source, delivery);
		}
	}
	send_back_deferred(source);
	resubscribe(source);
	hx_io_thread_carried_out(&source->io_thread, count);
}

/* ------------------------------------------------------------------ connecting */

static void on_ready(struct hx_watch *watch, unsigned ready)
{
	(void)ready;
	hx_rabbit_session_read(watch->context);
}

static enum hapax_status check_reply(
	struct hx_rabbit_source *source, const char *what, struct hapax_error *err)
{
	amqp_rpc_reply_t reply = amqp_get_rpc_reply(source->rabbit.conn);

	return reply.reply_type == AMQP_RESPONSE_NORMAL ? HAPAX_OK
							: hx_rabbit_reply_error(reply, what, err);
}

static enum hapax_status subscribe(struct hx_rabbit_source *source, struct hapax_error *err)
{
	const struct hx_rabbit_place *place = &source->place.rabbit;
	amqp_connection_state_t conn = source->rabbit.conn;
	enum hapax_status status = HAPAX_OK;
	char what[HX_IO_THREAD_TEXT_SIZE];
	char name[SUBSCRIPTION_SIZE];
	amqp_table_entry_t entry;

	if (place->declares)
		status = hx_rabbit_declare_queue(
			&source->rabbit, hapax_bytes_from_text(place->queue), err);
	if (status != HAPAX_OK)
		return status;
	(void)amqp_basic_qos(conn, HX_RABBIT_CHANNEL, 0, source->place.prefetch, 0);
	status = check_reply(source, "RabbitMQ rejected the prefetch", err);
	if (status != HAPAX_OK)
		return status;
	source->is_subscribed = !source->io_thread.is_paused;
	if (!source->is_subscribed)
		return HAPAX_OK;
	(void)snprintf(
		what, sizeof(what), "RabbitMQ does not allow consuming from '%s'", place->queue);
	name_subscription(source, name);
	(void)amqp_basic_consume(
		conn, HX_RABBIT_CHANNEL, amqp_cstring_bytes(place->queue), amqp_cstring_bytes(name),
		0, 0, 0, subscription_arguments(&entry));
	return check_reply(source, what, err);
}

static enum hapax_status watch_messages(struct hx_rabbit_source *source, struct hapax_error *err)
{
	source->watch = (struct hx_watch){
		.fd = amqp_get_sockfd(source->rabbit.conn), .fn = on_ready, .context = source};
	return hx_reactor_watch(&source->io_thread.reactor, &source->watch, HX_READY_IN, err);
}

void hx_rabbit_session_connect(struct hx_rabbit_source *source)
{
	struct hapax_error err;
	enum hapax_status status;

	if (source->is_stopping)
		return;
	status = hx_rabbit_open(&source->rabbit, &source->place.rabbit, CONNECT_MS, &err);
	if (status == HAPAX_OK)
		status = subscribe(source, &err);
	if (status == HAPAX_OK)
		status = watch_messages(source, &err);
	if (status != HAPAX_OK) {
		hx_rabbit_close(&source->rabbit);
		hx_io_thread_say(&source->io_thread, "%s", err.message);
		retry_later(source);
		return;
	}
	source->io_thread.changes++;
	hx_rabbit_session_pulse(source);
}

/* Ask for the queue's length. The answer comes with the deliveries: do not wait for it. */
static void ask_lag(struct hx_rabbit_source *source)
{
	amqp_queue_declare_t method = {
		.queue = amqp_cstring_bytes(source->place.rabbit.queue), .passive = 1};

	check_sent(
		source,
		amqp_send_method(
			source->rabbit.conn, HX_RABBIT_CHANNEL, AMQP_QUEUE_DECLARE_METHOD,
			&method));
}

void hx_rabbit_session_pulse(struct hx_rabbit_source *source)
{
	if (!hx_rabbit_is_open(&source->rabbit))
		return;
	if (++source->promise_pulses > PROMISE_PULSES_MAX) {
		source->promised = 0;
		source->large_is_promised = false;
	}
	ask_lag(source);
	/* Reading also sends heartbeats, and detects missing ones. */
	hx_rabbit_session_read(source);
}

/*
 * Close the channel properly: the broker's answer proves that it has read every acknowledgement.
 * Closing a socket with unread data would discard them.
 */
void hx_rabbit_session_close(struct hx_rabbit_source *source)
{
	struct timeval timeout = {.tv_sec = GOODBYE_MS / 1000};

	if (!hx_rabbit_is_open(&source->rabbit))
		return;
	hx_reactor_unwatch(&source->io_thread.reactor, &source->watch);
	(void)amqp_set_rpc_timeout(source->rabbit.conn, &timeout);
	(void)amqp_channel_close(source->rabbit.conn, HX_RABBIT_CHANNEL, AMQP_REPLY_SUCCESS);
	hx_rabbit_close(&source->rabbit);
	forget_deliveries(source);
}
