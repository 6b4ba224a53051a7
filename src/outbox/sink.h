/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - the destination of a relay.
 *
 * Threads: one at a time. Every function blocks, for a limited time.
 */
#ifndef HX_OUTBOX_SINK_H
#define HX_OUTBOX_SINK_H

#include <hapax/error.h>

#include "outbox/message.h"
#include "outbox/outbox.h"

struct hx_sink;

struct hx_sink_ops {
	size_t size;        /* of its struct, which begins with struct hx_sink */
	const char *prefix; /* of CloudEvents attributes, in the binding of its protocol */

	/*
	 * The struct is zero beside its base. INVALID: invalid URL. Does not connect; on failure,
	 * close follows.
	 */
	enum hapax_status (*open)(struct hx_sink *sink, const char *url, struct hapax_error *err);

	/* Connect unless connected. UNAVAILABLE says why not. */
	enum hapax_status (*connect)(struct hx_sink *sink, struct hapax_error *err);

	/*
	 * Publish rows, which are independent of each other, and wait for their outcomes until
	 * deadline_ns. Every row is UNDECIDED before; it becomes SENT only if the sink confirmed
	 * it. UNAVAILABLE: the sink is down. Rows still UNDECIDED then did not fail and stay so,
	 * except those awaited at the deadline: see relay.c.
	 */
	enum hapax_status (*publish)(
		struct hx_sink *sink, struct hx_outbox_row **rows, size_t count,
		int64_t deadline_ns, struct hapax_error *err);

	/* Called every second when idle: heartbeats. UNAVAILABLE: the sink is down. */
	enum hapax_status (*keep_alive)(struct hx_sink *sink, struct hapax_error *err);

	/* Give back what open and the rest allocated, except the struct. */
	void (*close)(struct hx_sink *sink);
};

struct hx_sink {
	const struct hx_sink_ops *ops;
	struct hx_outbox_message message; /* of the row that is being sent */
};

extern const struct hx_sink_ops hx_sink_http_ops;
extern const struct hx_sink_ops hx_sink_kafka_ops;
extern const struct hx_sink_ops hx_sink_rabbitmq_ops;
extern const struct hx_sink_ops hx_sink_redis_ops;

/* hapax_relay_open() with an open sink. Owned: sink, by the relay, even on failure. */
enum hapax_status hx_relay_new(
	const char *url, const struct hapax_relay_options *options, struct hx_sink *sink,
	struct hapax_relay **ret_relay, struct hapax_error *err);

/*
 * By the URL's scheme. UNSUPPORTED names the known sinks, or the one that the build lacks. Owned:
 * *ret_sink, closed with hx_sink_close().
 */
enum hapax_status hx_sink_open(
	const char *url, const char *source, struct hx_sink **ret_sink, struct hapax_error *err);
void hx_sink_close(struct hx_sink *sink);

/* Read the message of a row into sink->message. False: invalid, and the row is refused. */
bool hx_sink_read(struct hx_sink *sink, struct hx_outbox_row *row);

/* Set the outcome of a row that is not SENT, with a readable reason. */
__attribute__((format(printf, 3, 4))) void hx_sink_decide(
	struct hx_outbox_row *row, enum hx_outbox_outcome outcome, const char *format, ...);

#endif
