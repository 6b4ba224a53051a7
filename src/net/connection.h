/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.h - a stream socket on a reactor: bytes in, bytes out, limits, an end.
 *
 * A connection is embedded in what it is for (a request being read, a session) and
 * calls its table of functions. Input is handed over where it lies; what is not
 * consumed is handed over again, in one piece, together with what comes after it.
 * Output is collected and sent at the end of the turn; only what the kernel does not
 * take is waited for. Both are bounded: a peer that sends more than input_size_max
 * without being understood, or that does not read, is dropped.
 *
 * The end comes once, by on_close, whatever its reason, and never from within a call
 * of hx_connection_close(): the function runs at the end of the turn and may then
 * free the connection.
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
	 * Bytes are there; returns how many were consumed, from the front. Not called
	 * again until more have come (or hx_connection_resume() was called). is_end: the
	 * peer sends no more; then the connection is closed unless more output is to come,
	 * see hx_connection_finish(). May write and close.
	 */
	size_t (*on_input)(struct hx_connection *connection, struct hapax_bytes input, bool is_end);

	/* All output has been taken by the kernel. NULL: nobody wants to know. */
	void (*on_drained)(struct hx_connection *connection);

	/*
	 * During a pause the peer has said that it sends no more, which may mean that it has
	 * gone; is_end tells it again when what is there was read. NULL: nobody wants to know.
	 */
	void (*on_hangup)(struct hx_connection *connection);

	/*
	 * Of hx_connection_read_first(): the handshake is done, what has come was handed over, and
	 * the next byte is about to be sent. Called again if the kernel does not take it. May
	 * close, and then nothing is sent. NULL: it always may be.
	 */
	void (*on_first)(struct hx_connection *connection);

	/* A TLS handshake has succeeded. NULL: nobody wants to know. */
	void (*on_secured)(struct hx_connection *connection);

	/*
	 * The end. why->status is HAPAX_OK for an orderly one: the peer closed, or we did.
	 * The descriptor is closed. The connection may be freed.
	 */
	void (*on_close)(struct hx_connection *connection, const struct hapax_error *why);
};

/* Zero means the default. */
struct hx_connection_limits {
	size_t input_size_max;  /* 0: 64 KiB; of bytes not consumed */
	size_t output_size_max; /* 0: 1 MiB; a write beyond it is LIMIT */
	int64_t stall_ms_max;   /* 0: 30 s; how long a peer may take nothing of what waits */
	/*
	 * 0: any. Bytes a millisecond that a peer must take of what waits, over each
	 * stall_ms_max: one that takes a little now and then would hold memory for ever.
	 */
	int64_t rate_min;
};

enum hx_connection_state {
	HX_CONNECTION_NONE = 0,
	HX_CONNECTION_OPEN,
	HX_CONNECTION_FINISHING, /* sends what is left, then closes */
	HX_CONNECTION_CLOSING,   /* on_close is due */
};

struct hx_connection {
	const struct hx_connection_ops *ops;
	struct hx_reactor *reactor;
	void *context; /* the owner's */

	enum hx_connection_state state;
	bool is_paused;
	bool is_held;      /* something came during the pause: it is not watched for */
	bool is_hung_up;   /* the peer sends no more than what has come */
	bool is_ended;     /* ... and all of that was read */
	bool is_in_input;  /* on_input runs */
	bool wants_out;    /* the kernel did not take everything */
	bool is_input_due; /* what waits is to be handed over at the end of the turn */
	bool is_shut;      /* we have told the peer that no more comes */
	bool is_shut_due;  /* TLS has to tell it first, and the kernel had no room */
	bool is_secured;   /* on_secured was called */
	bool reads_first; /* hand over what has come before anything more is sent: set by the owner */
	struct hx_watch watch;
	struct hx_tls *tls; /* NULL: plain */
	struct hx_byte_queue input;
	struct hx_byte_queue output;
	struct hx_connection_limits limits;
	struct hx_timer deadline; /* set no later than deadline_ns; it looks there when it runs */
	int64_t deadline_ns;      /* INT64_MAX: none */
	struct hx_timer stall;
	struct hx_task flush;
	struct hx_task end;
	struct hapax_error why;
	int64_t taken_before; /* when stall was set: of what was sent, by the peer */
	uint64_t received_bytes;
	uint64_t sent_bytes; /* taken by the kernel, or by TLS */
	uint64_t written_bytes;
};

/*
 * Take over fd, a connected socket. limits may be NULL. tls may be NULL; else it is
 * owned from now on. On failure nothing is taken: fd and tls are still the caller's.
 */
enum hapax_status hx_connection_open(
	struct hx_connection *connection, struct hx_reactor *reactor, int fd, struct hx_tls *tls,
	const struct hx_connection_ops *ops, const struct hx_connection_limits *limits,
	struct hapax_error *err);

/* Append to the output, as a whole or not at all. LIMIT, NO_MEMORY; FAILED when it is closing. */
enum hapax_status hx_connection_write(
	struct hx_connection *connection, const void *data, size_t size);

/* For writers that fill memory themselves: reserve, write there, then say how much. */
enum hapax_status hx_connection_reserve(
	struct hx_connection *connection, size_t size, unsigned char **ret_space);
void hx_connection_wrote(struct hx_connection *connection, size_t size);

/*
 * Before the next byte is sent, read what the kernel (and TLS) has and hand it over: a client that
 * has sent nothing can then tell what came unasked from an answer. Costs one read that finds nothing.
 * Then on_first is called.
 */
static inline void hx_connection_read_first(struct hx_connection *connection)
{
	connection->reads_first = true;
}

/* Send now rather than at the end of the turn. */
void hx_connection_flush(struct hx_connection *connection);

/* Bytes that wait to be sent: whoever produces more should stop above some of them. */
static inline size_t hx_connection_unsent(const struct hx_connection *connection)
{
	return hx_byte_queue_size(&connection->output);
}

/*
 * Was all that came from the peer so far handed over, as far as no pause kept it back? What
 * was not consumed is a part of something. Not to be asked within on_input.
 */
bool hx_connection_is_seen(const struct hx_connection *connection);

/* Do not read for now: whoever cannot take more lets the peer's window fill. */
void hx_connection_pause(struct hx_connection *connection);

/* Read again; what is there already is handed over at the end of the turn. */
void hx_connection_resume(struct hx_connection *connection);

/* Close at that time (hx_reactor_now_ns()) with UNAVAILABLE; INT64_MAX: never. Moves an earlier one. */
void hx_connection_set_deadline(struct hx_connection *connection, int64_t at_ns);

/* Send what waits, then close. What the peer sends is thrown away. */
void hx_connection_finish(struct hx_connection *connection);

/* Close at once. why may be NULL: an orderly end. The first reason stays. */
void hx_connection_close(struct hx_connection *connection, const struct hapax_error *why);

/* The same, so that the peer cannot take what it has for all there was: a reset. */
void hx_connection_abort(struct hx_connection *connection, const struct hapax_error *why);

#endif
