/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_private.h - what the files of the RabbitMQ source share.
 *
 * librabbitmq waits where it likes; so all of it is on the I/O thread. There are two
 * connections, as the broker's makers advise: one for messages and acknowledgements, and,
 * from the first one on, one for dead letters, which the broker may block for want of memory.
 *
 *  (1) A delivery is acknowledged only when the consumer settled it as done, on the connection
 *      that brought it. An acknowledgement of many covers only those.
 *  (2) What is held of messages is bounded in bytes: what does not fit is not kept, and goes
 *      back to the broker when there is room, which is kept free for it: a quorum queue
 *      counts how often a message came back, and drops it at a limit.
 *  (3) Of messages above size_max one at a time is read, beside all others, to become a dead
 *      letter. Where there are none it is set aside: it stays unacknowledged, without its
 *      body and without a slot.
 *
 * Threads: the I/O thread's.
 */
#ifndef HX_SOURCE_RABBIT_PRIVATE_H
#define HX_SOURCE_RABBIT_PRIVATE_H

#include "base/buf.h"
#include "broker/rabbit.h"
#include "source/io_thread.h"
#include "source/rabbit/queue_place.h"

enum hx_rabbit_delivery_state {
	HX_RABBIT_DELIVERY_COMING, /* its frames are being read */
	HX_RABBIT_DELIVERY_OUT,    /* the consumer's, or on the way there */
	HX_RABBIT_DELIVERY_ACKED,  /* settled, and the broker is not told yet */
	HX_RABBIT_DELIVERY_GIVEN_BACK,
	HX_RABBIT_DELIVERY_TOLD,     /* the broker waits no more */
	HX_RABBIT_DELIVERY_DEFERRED, /* there was no room for it: it goes back when there is */
	HX_RABBIT_DELIVERY_ASIDE,    /* too large, and no dead letter: it stays unacknowledged */
};

struct hx_rabbit_delivery {
	struct hx_io_message message_; /* first, so that a message is its delivery */
	enum hx_rabbit_delivery_state state;
	bool is_redelivered;
	bool is_large;    /* above size_max */
	uint64_t returns; /* how often it came back to a quorum queue, as the broker counts */
	uint64_t tag;
	struct hx_rabbit_delivery *older; /* in the list of those that the broker waits for */
	struct hx_rabbit_delivery *newer;

	struct hapax_buf bytes; /* the encoded properties, then the body */
	size_t raw_size;        /* of the properties */
	uint64_t body_size;
	uint64_t size;         /* of both */
	struct hapax_buf text; /* values of headers that were not text */
	struct hapax_field *fields;
	size_t field_max;
	struct hx_rabbit_delivery *spare_next;

	/* While it is handed on. */
	struct hapax_publication *publication;
	struct hx_rabbit_sent sent;

	char exchange[HX_RABBIT_NAME_SIZE];
	char routing_key[HX_RABBIT_NAME_SIZE];
};

/* The connection for dead letters. */
struct hx_rabbit_publisher {
	struct hx_rabbit rabbit;
	struct hx_watch watch;
	amqp_pool_t pool;
	struct hapax_buf scratch;       /* a header table, to see whether it fits */
	struct hx_publications waiting; /* while the broker takes nothing */
	unsigned silent_pulses;         /* that it left something unanswered */
};

struct hx_rabbit_source {
	struct hapax_source base;
	struct hx_io_thread io_thread;
	struct hx_queue_place place;
	bool is_stopping;

	/* The connection of messages. */
	struct hx_rabbit rabbit;
	struct hx_watch watch;
	struct hx_timer retry;
	struct hx_timer pulse;
	unsigned attempts; /* to connect, that failed one after the other */
	struct hx_rabbit_delivery *coming;
	uint64_t coming_left;
	struct hx_rabbit_delivery
		*oldest; /* delivered, and the broker waits for what becomes of them */
	struct hx_rabbit_delivery *newest;
	struct hx_io_messages arrived; /* read in this turn */
	size_t held_bytes;
	size_t deferred;
	uint64_t promised; /* bytes that are kept free for those that were sent back */
	unsigned promise_pulses;
	struct hx_rabbit_delivery *large; /* the one above size_max that is in hand */
	bool large_is_promised;
	size_t aside;       /* set aside on this connection */
	size_t aside_slots; /* of them, those of this subscription */
	unsigned subscription;

	struct hx_rabbit_delivery *spare;
	size_t spare_count;
	struct hx_rabbit_publisher publisher;
};

/* rabbit_session.c: the connection of messages. */
void hx_rabbit_session_connect(struct hx_rabbit_source *source);
void hx_rabbit_session_read(struct hx_rabbit_source *source);
void hx_rabbit_session_settle(struct hx_rabbit_source *source);
void hx_rabbit_session_pulse(struct hx_rabbit_source *source);
void hx_rabbit_session_close(struct hx_rabbit_source *source);

/* rabbit_delivery.c: one message, from frames to fields. */
struct hx_rabbit_delivery *hx_rabbit_delivery_take(struct hx_rabbit_source *source);
void hx_rabbit_delivery_free(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery);
void hx_rabbit_delivery_free_spares(struct hx_rabbit_source *source);

/* Let its bytes go; the rest of it stays. */
void hx_rabbit_delivery_empty(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery);

/* A header frame has come: there is room for the rest. False: no memory. */
bool hx_rabbit_delivery_begin(
	struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery,
	const amqp_frame_t *frame);

/* Its body is whole: the message is made. */
void hx_rabbit_delivery_finish(
	struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery);

/* publisher.c: dead letters and diverted duplicates. */
void hx_rabbit_publisher_init(struct hx_rabbit_publisher *publisher);
void hx_rabbit_publisher_work(struct hx_rabbit_source *source);
void hx_rabbit_publisher_read(struct hx_rabbit_source *source);
void hx_rabbit_publisher_pulse(struct hx_rabbit_source *source);
void hx_rabbit_publisher_done(struct hx_rabbit_source *source);

#endif
