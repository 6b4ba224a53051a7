/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_private.h - declarations that the files of the RabbitMQ source share.
 *
 * librabbitmq may block anywhere, so all its calls are on the I/O thread. There are two
 * connections, as RabbitMQ's developers advise: one for messages and acknowledgements and, from the
 * first dead letter on, one for dead letters, which the broker may block if it lacks memory.
 *
 *  (1) A delivery is acknowledged only when the consumer settled it as done, on the connection that
 *      delivered it. A multiple acknowledgement covers only such deliveries.
 *  (2) Messages in flight are limited in bytes. A message that does not fit is not kept, and goes
 *      back to the broker when there is room. That room is reserved for it: a quorum queue counts
 *      how often a message came back, and drops it at a limit.
 *  (3) One message above size_max at a time is read, in addition to all others, to become a dead
 *      letter. Without a dead-letter target it is set aside: it stays unacknowledged, without its
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
	HX_RABBIT_DELIVERY_OUT,    /* at the consumer, or on the way there */
	HX_RABBIT_DELIVERY_ACKED,  /* settled, but not yet sent to the broker */
	HX_RABBIT_DELIVERY_GIVEN_BACK,
	HX_RABBIT_DELIVERY_TOLD,     /* settled at the broker */
	HX_RABBIT_DELIVERY_DEFERRED, /* no room for it: goes back when there is */
	HX_RABBIT_DELIVERY_ASIDE,    /* too large, without a dead letter: stays unacknowledged */
};

struct hx_rabbit_delivery {
	struct hx_io_message message_; /* first, so that a message can be cast */
	enum hx_rabbit_delivery_state state;
	bool is_redelivered;
	bool is_large;    /* above size_max */
	uint64_t returns; /* how often it came back to a quorum queue, by the broker's count */
	uint64_t tag;
	struct hx_rabbit_delivery *older; /* in the list of unsettled deliveries */
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
	struct hapax_buf scratch;       /* a header table, to check its size */
	struct hx_publications waiting; /* while the broker accepts nothing */
	unsigned silent_pulses;         /* seconds without an answer */
};

struct hx_rabbit_source {
	struct hx_io_thread io_thread; /* first, so that a source can be cast */
	struct hx_queue_place place;
	bool is_stopping;

	/* The connection for messages. */
	struct hx_rabbit rabbit;
	struct hx_watch watch;
	struct hx_timer retry;
	struct hx_timer pulse;
	unsigned attempts; /* failed connection attempts in a row */
	struct hx_rabbit_delivery *coming;
	uint64_t coming_left;
	struct hx_rabbit_delivery *oldest; /* delivered, not yet settled at the broker */
	struct hx_rabbit_delivery *newest;
	struct hx_io_messages arrived; /* read in this turn */
	size_t held_bytes;
	size_t deferred;
	uint64_t promised; /* bytes reserved for messages that were sent back */
	unsigned promise_pulses;
	struct hx_rabbit_delivery *large; /* the message above size_max in flight */
	bool large_is_promised;
	size_t aside;       /* set aside on this connection */
	size_t aside_slots; /* those of them that belong to this subscription */
	unsigned subscription;
	bool is_subscribed; /* not while the consumer is paused */

	struct hx_rabbit_delivery *spare;
	size_t spare_count;
	struct hx_rabbit_publisher publisher;
};

/* rabbit_session.c: the connection for messages. */
void hx_rabbit_session_connect(struct hx_rabbit_source *source);
void hx_rabbit_session_read(struct hx_rabbit_source *source);
void hx_rabbit_session_settle(struct hx_rabbit_source *source);
/* Subscribe, or unsubscribe while the consumer is paused. */
void hx_rabbit_session_subscribe(struct hx_rabbit_source *source);
void hx_rabbit_session_pulse(struct hx_rabbit_source *source);
void hx_rabbit_session_close(struct hx_rabbit_source *source);

/* rabbit_delivery.c: one message, from frames to fields. */
struct hx_rabbit_delivery *hx_rabbit_delivery_take(struct hx_rabbit_source *source);
void hx_rabbit_delivery_free(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery);
void hx_rabbit_delivery_free_spares(struct hx_rabbit_source *source);

/* Free its bytes; the rest of it stays. */
void hx_rabbit_delivery_empty(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery);

/* A header frame has arrived: reserve memory. False: no memory. */
bool hx_rabbit_delivery_begin(
	struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery,
	const amqp_frame_t *frame);

/* Its body is complete: make the message. */
void hx_rabbit_delivery_finish(
	struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery);

/* publisher.c: dead letters and diverted duplicates. */
void hx_rabbit_publisher_init(struct hx_rabbit_publisher *publisher);
void hx_rabbit_publisher_work(struct hx_rabbit_source *source);
void hx_rabbit_publisher_read(struct hx_rabbit_source *source);
void hx_rabbit_publisher_pulse(struct hx_rabbit_source *source);
void hx_rabbit_publisher_done(struct hx_rabbit_source *source);

#endif
