/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit.h - one connection to a RabbitMQ broker, with one channel (librabbitmq).
 *
 * Publishing: the caller sends messages one after the other and reads the broker's answers frame by
 * frame. An answer is an ack or nack, for one message or all up to a number, or a message that came
 * back because no queue matched. The connection lists the unanswered messages;
 * hx_rabbit_take_sent() takes from it the ones that an event answers:
 *
 *	hx_rabbit_open(&rabbit, &place, 5000, &err);
 *	hx_rabbit_confirm(&rabbit, &err);
 *	hx_rabbit_declare_queue(&rabbit, queue, &err);       // asks the broker once
 *	letter->sent.owner = letter;
 *	hx_rabbit_publish(&rabbit, &message, &letter->sent, &err);
 *	hx_rabbit_next(&rabbit, 1000, &event, &err);
 *	if (event.happening == HX_RABBIT_ACK || event.happening == HX_RABBIT_NACK)
 *		while ((sent = hx_rabbit_take_sent(&rabbit, event.tag, event.is_multiple)) != NULL)
 *			settle(sent->owner, event.happening);
 *
 * Consuming: rabbit->conn is librabbitmq's connection, and HX_RABBIT_CHANNEL its channel.
 *
 * Caveats
 * - Every call blocks, at most for its timeout. Writes have no timeout of their own: a broker that
 *   accepts no bytes is given up after two heartbeats (20 s).
 * - A broker that lacks memory or disk sends BLOCKED and stops reading: stop publishing and wait
 *   for the next event.
 * - After UNAVAILABLE or UNCERTAIN the connection is unusable: close it and open another one. After
 *   HX_RABBIT_REFUSED the channel is unusable, too.
 * - hx_rabbit_next() sends the heartbeats: call it every few seconds.
 *
 * Threads: one at a time.
 */
#ifndef HX_BROKER_RABBIT_H
#define HX_BROKER_RABBIT_H

#include <stdbool.h>
#include <stdint.h>

#include <amqp.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>

#include "broker/rabbit_place.h"

enum {
	HX_RABBIT_CHANNEL = 1,
	HX_RABBIT_HEARTBEAT_S = 10,
	HX_RABBIT_FRAME_SIZE_MAX = 128 * 1024,

	/*
	 * Names and values of a message's headers; they share one frame with the other properties.
	 */
	HX_RABBIT_HEADERS_SIZE_MAX = 96 * 1024,
	HX_RABBIT_HEADERS_MAX = 64,

	HX_RABBIT_DECLARED_MAX = 64, /* names to remember */
};

/* A published message without an answer; embedded in the caller's struct. */
struct hx_rabbit_sent {
	void *owner; /* the caller's */
	uint64_t tag;
	struct hx_rabbit_sent *next;
};

struct hx_rabbit {
	amqp_connection_state_t conn; /* NULL: closed */
	uint64_t published;           /* the number of the last message, from 1 */
	bool is_blocked;
	struct hx_rabbit_sent *sent; /* unanswered, in the order of their numbers */
	struct hx_rabbit_sent **sent_end;

	/* Queues that were declared on this connection. */
	char declared[HX_RABBIT_DECLARED_MAX][HX_RABBIT_NAME_SIZE];
	size_t declared_count;

	/* A returned message: its id, and the number of bytes still to come. */
	bool is_returning;
	uint64_t returning_bytes;
	int returning_code;
	char returning_text[HX_RABBIT_NAME_SIZE];
	char returning_id[HX_RABBIT_NAME_SIZE];
};

/* An absent text has size 0. */
struct hx_rabbit_message {
	const char *exchange;
	struct hapax_bytes routing_key; /* at most 255 bytes, like every short string */
	struct hapax_bytes message_id;
	struct hapax_bytes content_type;
	struct hapax_bytes type;
	int64_t time_ms; /* when it was created; 0: not set */
	const struct hapax_field *headers;
	size_t header_count;
	struct hapax_bytes body;
};

enum hx_rabbit_happening {
	HX_RABBIT_NOTHING,  /* timeout */
	HX_RABBIT_ACK,      /* tag; with is_multiple, all before it, too */
	HX_RABBIT_NACK,     /* the same, but the broker did not accept them */
	HX_RABBIT_RETURNED, /* message_id: no queue matched; text says why. Its ack follows */
	HX_RABBIT_REFUSED,  /* the broker closed the channel; text says why */
	HX_RABBIT_BLOCKED,  /* no messages for now; is_blocked is set */
	HX_RABBIT_UNBLOCKED,
};

struct hx_rabbit_event {
	enum hx_rabbit_happening happening;
	bool is_multiple;
	uint64_t tag;
	int code;               /* the AMQP code of RETURNED and REFUSED */
	const char *message_id; /* borrowed from the connection, like text, until the next call */
	const char *text;
};

/*
 * Connect, log in, open the channel. rabbit is zero or closed; messages and queues of an earlier
 * connection are forgotten. UNAVAILABLE with a hint; nothing is left behind. Blocks: about
 * timeout_ms.
 */
enum hapax_status hx_rabbit_open(
	struct hx_rabbit *rabbit, const struct hx_rabbit_place *place, int64_t timeout_ms,
	struct hapax_error *err);

/*
 * Close without waiting; does nothing if closed. Unanswered messages may or may not have arrived.
 * They stay in the list until they are taken or the next open.
 */
void hx_rabbit_close(struct hx_rabbit *rabbit);

static inline bool hx_rabbit_is_open(const struct hx_rabbit *rabbit)
{
	return rabbit->conn != NULL;
}

/* Ask the broker to confirm accepted messages from now on. */
enum hapax_status hx_rabbit_confirm(struct hx_rabbit *rabbit, struct hapax_error *err);

/*
 * Declare a durable quorum queue; an existing one stays unchanged. Asks the broker once per
 * connection. INVALID: the broker refused, for example because the queue has another type; the
 * channel is then unusable.
 */
enum hapax_status hx_rabbit_declare_queue(
	struct hx_rabbit *rabbit, struct hapax_bytes name, struct hapax_error *err);

/* Mark as declared: hx_rabbit_declare_queue() does not ask for it on this connection. */
void hx_rabbit_remember_queue(struct hx_rabbit *rabbit, struct hapax_bytes name);

/*
 * Send a message, persistent and mandatory. sent belongs to the connection until it is taken; NULL:
 * ignore the answer. INVALID: no broker could accept the message, and nothing was sent. After any
 * other error the connection is unusable.
 */
enum hapax_status hx_rabbit_publish(
	struct hx_rabbit *rabbit, const struct hx_rabbit_message *message,
	struct hx_rabbit_sent *sent, struct hapax_error *err);

/* The same with the caller's properties, which are sent unchanged and must fit. */
enum hapax_status hx_rabbit_publish_as(
	struct hx_rabbit *rabbit, const char *exchange, struct hapax_bytes routing_key,
	const amqp_basic_properties_t *properties, struct hapax_bytes body,
	struct hx_rabbit_sent *sent, struct hapax_error *err);

/*
 * Return the message of that number to the caller or, with is_multiple, the oldest up to it. NULL:
 * none. With UINT64_MAX and is_multiple, repeated calls take all that are left.
 */
struct hx_rabbit_sent *hx_rabbit_take_sent(
	struct hx_rabbit *rabbit, uint64_t tag, bool is_multiple);

/* Read the broker's next event; waits at most timeout_ms. */
enum hapax_status hx_rabbit_next(
	struct hx_rabbit *rabbit, int64_t timeout_ms, struct hx_rabbit_event *ret_event,
	struct hapax_error *err);

/* Describe a failed call of librabbitmq, with a hint; what is in the past tense. */
enum hapax_status hx_rabbit_code_error(int code, const char *what, struct hapax_error *err);
enum hapax_status hx_rabbit_reply_error(
	amqp_rpc_reply_t reply, const char *what, struct hapax_error *err);

#endif
