/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_connection.h - one connection to a Redis server: commands go, replies come, in order.
 *
 * It connects by itself, and again after it was lost, each time later; says who we are; then
 * it is ready. Whoever sends a command gets one reply, or is told that the line was lost.
 *
 * Threads: the reactor's.
 */
#ifndef HX_SOURCE_REDIS_STREAM_CONNECTION_H
#define HX_SOURCE_REDIS_STREAM_CONNECTION_H

#include <stdbool.h>

#include "base/buf.h"
#include "net/redis_connection.h"

enum {
	/* Of one reply: entries that were asked for together. */
	HX_REDIS_REPLY_SIZE_MAX = 256 * 1024 * 1024,
};

struct hx_redis_line;

struct hx_redis_line_ops {
	/* Commands may be sent from now on. */
	void (*ready)(struct hx_redis_line *line);
	/* To the oldest command without reply. reply is borrowed for the call. */
	void (*reply)(struct hx_redis_line *line, struct hapax_bytes reply);
	/* Nothing that was not replied to will be. Also for each attempt that failed. */
	void (*lost)(struct hx_redis_line *line, const char *why);
	/* It was closed by hx_redis_line_close(), and is no more. */
	void (*closed)(struct hx_redis_line *line);
};

struct hx_redis_line {
	const struct hx_redis_line_ops *ops;
	void *context;
	struct hx_redis_connection connection;
	struct hapax_buf output; /* the command that is being put */
	bool is_spoilt;          /* there was no memory for it */
	size_t reply_size_max;   /* HX_REDIS_REPLY_SIZE_MAX or less; set before it is opened */
	int64_t client_id;       /* as the server has it; 0: it does not tell */
	size_t open_calls;       /* commands without reply */
	bool is_ready;
};

/* What it points to must outlive it. NO_MEMORY. */
enum hapax_status hx_redis_line_init(
	struct hx_redis_line *line, struct hx_reactor *reactor, struct hx_resolver *resolver,
	const struct hx_redis_place *place, struct hx_tls_context *tls,
	const struct hx_redis_line_ops *ops, void *context);

/* It was never opened, or closed. Zeros are allowed. */
void hx_redis_line_done(struct hx_redis_line *line);

void hx_redis_line_open(struct hx_redis_line *line);

/* For good; closed is called then, perhaps at once. */
void hx_redis_line_close(struct hx_redis_line *line);

/* Begin a command of count words, of which name is the first; put the others; send. */
void hx_redis_line_command(struct hx_redis_line *line, size_t count, const char *name);
void hx_redis_line_put(struct hx_redis_line *line, struct hapax_bytes word);
void hx_redis_line_put_text(struct hx_redis_line *line, const char *text);
void hx_redis_line_put_number(struct hx_redis_line *line, int64_t number);

/* False: the line is not ready, or lost now, which will be told. */
bool hx_redis_line_send(struct hx_redis_line *line);

#endif
