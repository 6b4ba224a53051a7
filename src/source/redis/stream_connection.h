/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_connection.h - one connection to a Redis server: commands and replies, in order.
 *
 * It connects by itself, and reconnects with a growing delay. It identifies itself, then is ready.
 * Each command gets one reply, or its sender learns that the line was lost.
 *
 * Threads: the reactor's.
 */
#ifndef HX_SOURCE_REDIS_STREAM_CONNECTION_H
#define HX_SOURCE_REDIS_STREAM_CONNECTION_H

#include <stdbool.h>

#include "base/buf.h"
#include "net/redis_connection.h"

enum {
	/* Limit of one reply: entries that were requested together. */
	HX_REDIS_REPLY_SIZE_MAX = 256 * 1024 * 1024,
};

struct hx_redis_line;

struct hx_redis_line_ops {
	/* Commands may be sent from now on. */
	void (*ready)(struct hx_redis_line *line);
	/* The reply to the oldest open command. reply is borrowed for the call. */
	void (*reply)(struct hx_redis_line *line, struct hapax_bytes reply);
	/* Open commands will get no reply. Also called for each failed attempt to connect. */
	void (*lost)(struct hx_redis_line *line, const char *why);
	/* hx_redis_line_close() has closed it. */
	void (*closed)(struct hx_redis_line *line);
};

struct hx_redis_line {
	const struct hx_redis_line_ops *ops;
	void *context;
	struct hx_redis_connection connection;
	struct hapax_buf output; /* the command in preparation */
	bool is_spoilt;          /* out of memory for it */
	size_t reply_size_max;   /* HX_REDIS_REPLY_SIZE_MAX or less; set before opening */
	int64_t client_id;       /* the server's id of this connection; 0: unknown */
	size_t open_calls;       /* commands without reply */
	bool is_ready;
};

/* Everything it points to must outlive it. NO_MEMORY. */
enum hapax_status hx_redis_line_init(
	struct hx_redis_line *line, struct hx_reactor *reactor, struct hx_resolver *resolver,
	const struct hx_redis_place *place, struct hx_tls_context *tls,
	const struct hx_redis_line_ops *ops, void *context);

/* Never opened, or closed. Zero is allowed. */
void hx_redis_line_done(struct hx_redis_line *line);

void hx_redis_line_open(struct hx_redis_line *line);

/* Close permanently; calls closed, perhaps at once. */
void hx_redis_line_close(struct hx_redis_line *line);

/* Begin a command with these words, which end with NULL; put as many more; send. */
void hx_redis_line_command(struct hx_redis_line *line, size_t more, const char *const words[]);
#define HX_REDIS_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
void hx_redis_line_put(struct hx_redis_line *line, struct hapax_bytes word);
void hx_redis_line_put_text(struct hx_redis_line *line, const char *text);
void hx_redis_line_put_number(struct hx_redis_line *line, int64_t number);

/* False: the line is not ready, or is lost now, which will be reported. */
bool hx_redis_line_send(struct hx_redis_line *line);

#endif
