/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit.h - one connection to a RabbitMQ broker, with one channel (librabbitmq).
 *
 * Publishing: messages go out one after the other, and what the broker says about them is
 * read frame by frame: ack and nack, one or all up to a number, and messages that came back
 * because no queue wanted them. The connection keeps a list of the messages that the broker
 * has not answered, and hx_rabbit_take_sent() takes from it those that an event is about:
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
 * - Every call blocks, at most for the time that it is given. Writing has no time of its own:
 *   a broker that takes no bytes is given up after two heartbeats (20 s).
 * - A broker in want of memory or disk says BLOCKED and reads no more: stop publishing, and
 *   wait for what comes next.
 * - After UNAVAILABLE or UNCERTAIN the connection is of no use: close it, and open another one.
 *   So is the channel after HX_RABBIT_REFUSED.
 * - Heartbeats are sent by hx_rabbit_next(): call it every few seconds.
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

	/* Names and values of a message's headers; they must fit into one frame with the rest. */
	HX_RABBIT_HEADERS_SIZE_MAX = 96 * 1024,
	HX_RABBIT_HEADERS_MAX = 64,

	HX_RABBIT_DECLARED_MAX = 64, /* names that are remembered */
};

/* A published message that the broker has not answered; part of what the caller publishes. */
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

	/* A message that comes back: its id, and how much of it is still to come. */
	bool is_returning;
	uint64_t returning_bytes;
	int returning_code;
	char returning_text[HX_RABBIT_NAME_SIZE];
	char returning_id[HX_RABBIT_NAME_SIZE];
};

/* Text that is absent has size 0. */
struct hx_rabbit_message {
	const char *exchange;
	struct hapax_bytes routing_key; /* at most 255 bytes, as all that is short */
	struct hapax_bytes message_id;
	struct hapax_bytes content_type;
	struct hapax_bytes type;
	int64_t time_ms; /* when it was made; 0: not said */
	const struct hapax_field *headers;
	size_t header_count;
	struct hapax_bytes body;
};

enum hx_rabbit_happening {
	HX_RABBIT_NOTHING,  /* the time is up */
	HX_RABBIT_ACK,      /* tag, and with is_multiple all before it */
	HX_RABBIT_NACK,     /* the same, and the broker did not take them */
	HX_RABBIT_RETURNED, /* message_id: no queue wanted it; text says why. Its ack follows */
	HX_RABBIT_REFUSED,  /* the channel was closed by the broker; text says why */
	HX_RABBIT_BLOCKED,  /* it takes no messages for now; is_blocked is set */
	HX_RABBIT_UNBLOCKED,
};

struct hx_rabbit_event {
	enum hx_rabbit_happening happening;
	bool is_multiple;
	uint64_t tag;
	int code;               /* of RETURNED and REFUSED, as in AMQP */
	const char *message_id; /* borrowed from the connection, as text, until the next call */
	const char *text;
};

/*
 * Connect, log in, open the channel. rabbit is zero or closed; messages and queues of an
 * earlier connection are forgotten. UNAVAILABLE with a hint; nothing is left behind. Blocks:
 * about timeout_ms.
 */
enum hapax_status hx_rabbit_open(
	struct hx_rabbit *rabbit, const struct hx_rabbit_place *place, int64_t timeout_ms,
	struct hapax_error *err);

/*
 * Nothing is waited for. Does nothing when it is closed. Unanswered messages may have arrived
 * or not; they stay in the list until they are taken, or until the next open.
 */
void hx_rabbit_close(struct hx_rabbit *rabbit);

static inline bool hx_rabbit_is_open(const struct hx_rabbit *rabbit)
{
	return rabbit->conn != NULL;
}

/* From now on the broker confirms what it took. */
enum hapax_status hx_rabbit_confirm(struct hx_rabbit *rabbit, struct hapax_error *err);

/*
 * Make a durable quorum queue of that name; one that is there as such stays as it is. INVALID:
 * the broker refused, as when it is of another kind; the channel is of no use any more. The
 * broker is asked once on a connection.
 */
enum hapax_status hx_rabbit_declare_queue(
	struct hx_rabbit *rabbit, struct hapax_bytes name, struct hapax_error *err);

/* Have it declared already: hx_rabbit_declare_queue() does not ask for it on this connection. */
void hx_rabbit_remember_queue(struct hx_rabbit *rabbit, struct hapax_bytes name);

/*
 * Send a message, persistent and mandatory. sent is the connection's until it is taken; NULL:
 * the answer does not matter. INVALID: it is none that a broker could take, and nothing was
 * sent. Else the connection is of no use any more.
 */
enum hapax_status hx_rabbit_publish(
	struct hx_rabbit *rabbit, const struct hx_rabbit_message *message,
	struct hx_rabbit_sent *sent, struct hapax_error *err);

/* The same with properties of the caller's making, which are sent as they are and must fit. */
enum hapax_status hx_rabbit_publish_as(
	struct hx_rabbit *rabbit, const char *exchange, struct hapax_bytes routing_key,
	const amqp_basic_properties_t *properties, struct hapax_bytes body,
	struct hx_rabbit_sent *sent, struct hapax_error *err);

/*
 * The message of that number, or with is_multiple the oldest up to it; it is the caller's again.
 * NULL: there is none. With UINT64_MAX and is_multiple each call takes one of all that are left.
 */
struct hx_rabbit_sent *hx_rabbit_take_sent(
	struct hx_rabbit *rabbit, uint64_t tag, bool is_multiple);

/* What the broker says next; waits for it at most timeout_ms. */
enum hapax_status hx_rabbit_next(
	struct hx_rabbit *rabbit, int64_t timeout_ms, struct hx_rabbit_event *ret_event,
	struct hapax_error *err);

/* Describe a call of librabbitmq that failed, with a hint; what is past tense. */
enum hapax_status hx_rabbit_code_error(int code, const char *what, struct hapax_error *err);
enum hapax_status hx_rabbit_reply_error(
	amqp_rpc_reply_t reply, const char *what, struct hapax_error *err);

#endif
