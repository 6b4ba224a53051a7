/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.h - a stream socket on a reactor: bytes in, bytes out, limits, an end.
 *
 * A connection is embedded in its owner (a request being read, a session) and calls the owner's
 * table of functions. It passes input without copying. Input that is not consumed is passed again,
 * in one piece, together with later input. Output is collected and sent at the end of the turn; the
 * connection waits only if the kernel refuses bytes. Both are bounded: a peer that sends more than
 * input_size_max without being understood, or that does not read, is dropped.
 *
 * The end is always one call of on_close, never from within hx_connection_close(). It runs at the
 * end of the turn and may free the connection.
 *
 * Threads: the reactor's thread.
 */
#ifndef HX_NET_CONNECTION_H
#define HX_NET_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "net/block_pool.h"
#include "net/reactor.h"

struct hx_connection;
struct hx_tls;

struct hx_connection_ops {
	/*
	 * Input is available; returns how many bytes were consumed, from the front. Not called
	 * again until more input arrives (or hx_connection_resume() was called). is_end: the peer
	 * sends no more; the connection then closes unless more output follows, see
	 * hx_connection_finish(). May write and close.
	 */
	size_t (*on_input)(struct hx_connection *connection, struct hapax_bytes input, bool is_end);

	/* The kernel has accepted all output. May be NULL. */
	void (*on_drained)(struct hx_connection *connection);

	/*
	 * During a pause the peer announced its end, and may be gone. is_end repeats it when all
	 * input was read. May be NULL.
	 */
	void (*on_hangup)(struct hx_connection *connection);

	/*
	 * For hx_connection_read_first(): the handshake is done, all input was passed, and the next
	 * byte is about to be sent. Called again if the kernel does not accept it. May close; then
	 * nothing is sent. NULL: always send.
	 */
	void (*on_first)(struct hx_connection *connection);

	/* A TLS handshake has succeeded. May be NULL. */
	void (*on_secured)(struct hx_connection *connection);

	/*
	 * The end. why->status is HAPAX_OK for an orderly one, by either side. The descriptor is
	 * closed. The connection may be freed.
	 */
	void (*on_close)(struct hx_connection *connection, const struct hapax_error *why);
};

/* Zero means the default. */
struct hx_connection_limits {
	size_t input_size_max;  /* 0: 64 KiB; for bytes not consumed */
	size_t output_size_max; /* 0: 1 MiB; a larger write is LIMIT */
	int64_t stall_ms_max;   /* 0: 30 s; how long a peer may accept no waiting output */
	/*
	 * 0: any. Bytes per millisecond that a peer must accept while output waits, over each
	 * stall_ms_max: a peer that accepts a little from time to time would hold memory forever.
	 */
	int64_t rate_min;
};

enum hx_connection_state {
	HX_CONNECTION_NONE = 0,
	HX_CONNECTION_OPEN,
	HX_CONNECTION_FINISHING, /* sends the remaining output, then closes */
	HX_CONNECTION_CLOSING,   /* on_close is due */
};

struct hx_connection {
	const struct hx_connection_ops *ops;
	struct hx_reactor *reactor;
	void *context; /* belongs to the owner */

	enum hx_connection_state state;
	bool is_paused;
	bool is_held;      /* input arrived during the pause: it is not watched */
	bool is_hung_up;   /* the peer has announced its end */
	bool is_ended;     /* ... and all input before it was read */
	bool is_in_input;  /* on_input is running */
	bool wants_out;    /* the kernel did not accept everything */
	bool is_input_due; /* pass waiting input at the end of the turn */
	bool is_shut;      /* the peer knows that no more output follows */
	bool is_shut_due;  /* TLS must announce it first, and the kernel had no room */
	bool is_secured;   /* on_secured was called */
	bool reads_first;  /* pass all input before more is sent: set by the owner */
	struct hx_watch watch;
	struct hx_tls *tls; /* NULL: plain */
	struct hx_byte_queue input;
	struct hx_byte_queue output;
	struct hx_connection_limits limits;
	struct hx_timer deadline; /* set no later than deadline_ns; checks it when it runs */
	int64_t deadline_ns;      /* INT64_MAX: none */
	struct hx_timer stall;
	struct hx_task flush;
	struct hx_task end;
	struct hapax_error why;
	int64_t taken_before; /* bytes that the peer had received when stall was set */
	uint64_t received_bytes;
	uint64_t sent_bytes; /* accepted by the kernel, or by TLS */
	uint64_t written_bytes;
};

/*
 * Take over fd, a connected socket. limits may be NULL. tls may be NULL; otherwise the connection
 * owns it. On failure the caller keeps fd and tls.
 */
enum hapax_status hx_connection_open(
	struct hx_connection *connection, struct hx_reactor *reactor, int fd, struct hx_tls *tls,
	const struct hx_connection_ops *ops, const struct hx_connection_limits *limits,
	struct hapax_error *err);

/* Append to the output, all or nothing. LIMIT, NO_MEMORY; FAILED: the connection is closing. */
enum hapax_status hx_connection_write(
	struct hx_connection *connection, const void *data, size_t size);

/* For writers that fill memory themselves: reserve, write there, then report the size. */
enum hapax_status hx_connection_reserve(
	struct hx_connection *connection, size_t size, unsigned char **ret_space);
void hx_connection_wrote(struct hx_connection *connection, size_t size);

/*
 * Before the next byte is sent, read the input of the kernel (and TLS) and pass it on. A client
 * that has sent nothing can then tell unsolicited input from an answer. Costs one read that finds
 * nothing. Then on_first is called.
 */
static inline void hx_connection_read_first(struct hx_connection *connection)
{
	connection->reads_first = true;
}

/* Send now rather than at the end of the turn. */
void hx_connection_flush(struct hx_connection *connection);

/* Bytes that wait to be sent: a producer should stop above some limit. */
static inline size_t hx_connection_unsent(const struct hx_connection *connection)
{
	return hx_byte_queue_size(&connection->output);
}

/*
 * Was all input so far passed to the owner, except during a pause? Unconsumed input is part of a
 * message. Do not call it within on_input.
 */
bool hx_connection_is_seen(const struct hx_connection *connection);

/* Stop reading for now, so that the peer's window fills. */
void hx_connection_pause(struct hx_connection *connection);

/* Read again; waiting input is passed at the end of the turn. */
void hx_connection_resume(struct hx_connection *connection);

/*
 * Close at at_ns (hx_reactor_now_ns()) with UNAVAILABLE; INT64_MAX: never. Replaces an earlier one.
 */
void hx_connection_set_deadline(struct hx_connection *connection, int64_t at_ns);

/* Send waiting output, then close. Further input is discarded. */
void hx_connection_finish(struct hx_connection *connection);

/* Close at once. why may be NULL: an orderly end. The first reason stays. */
void hx_connection_close(struct hx_connection *connection, const struct hapax_error *why);

/* The same, with a reset, so that the peer does not take its data for complete. */
void hx_connection_abort(struct hx_connection *connection, const struct hapax_error *why);

#endif
