/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1.h - a strict reader of HTTP/1.1 messages (RFC 9112), for both directions.
 *
 * The caller passes its bytes and learns what they are: a head, a piece of a body, the end of the
 * message, or that more are needed. Nothing is allocated or copied, and unused bytes stay with the
 * caller, so an idle connection costs only struct hx_http1.
 *
 *	struct hx_http1_event event;
 *
 *	do {
 *		if (hx_http1_next(&http, input, &head, &event, &err) != HAPAX_OK)
 *			return refuse(hx_http1_reply_status(&http), err.message);
 *		... HEAD: head; DATA: event.data; END: hx_http1_reset(&http) ...
 *		input = what follows event.used bytes of input;
 *	} while (event.type != HX_HTTP1_MORE);
 *
 * All decisions about a message depend on this reader, so an ambiguous message is refused:
 * Content-Length beside Transfer-Encoding, either of them twice, any coding except chunked, blanks
 * before a colon, folded lines, a CR or LF alone, controls, a second Host, and more; README.md has
 * the list. The result does not depend on how the bytes were cut into pieces.
 *
 * After an error nothing more may be read from the connection: the start of the next message is
 * unknown. Messages begin with "byte N: ", counted from 0 at the first byte of the message.
 *
 * Threads: one at a time.
 */
#ifndef HX_HTTP1_H
#define HX_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>

enum {
	/* The limit of common servers; a request line is the target and little else. */
	HX_HTTP1_LINE_MAX = 8 * 1024,

	/* First line, fields and the empty line; proxies have room for twice that. */
	HX_HTTP1_HEAD_MAX = 16 * 1024,

	/* The maximum of a configured head limit; buffers are sized for it. */
	HX_HTTP1_HEAD_LIMIT = 48 * 1024,

	HX_HTTP1_FIELDS_MAX = 100,

	/* Longer than any registered method; a longer one is not implemented anywhere. */
	HX_HTTP1_METHOD_MAX = 32,

	/* Below 2^60, so that sums of sizes cannot overflow. */
	HX_HTTP1_CHUNK_DIGITS_MAX = 15,

	/* Extensions are not used in practice; a long one is padding for an attack. */
	HX_HTTP1_CHUNK_EXTENSION_MAX = 128,

	/* For one body: limits the work for a million chunks of one byte. */
	HX_HTTP1_EXTENSIONS_MAX = 16 * 1024,
};

/* Refused above. Zero means the default; body_max 0: no limit. */
struct hx_http1_limits {
	uint32_t line_max;  /* of the first line, without its end */
	uint32_t head_max;  /* of the whole head, and again of the trailers */
	uint32_t field_max; /* at most HX_HTTP1_FIELDS_MAX */
	uint64_t body_max;
};

enum hx_http1_role {
	HX_HTTP1_SERVER, /* reads requests */
	HX_HTTP1_CLIENT, /* reads responses */
};

enum hx_http1_event_type {
	HX_HTTP1_MORE, /* more bytes are needed */
	HX_HTTP1_HEAD, /* the head is complete; after a 1xx response another one follows */
	HX_HTTP1_DATA, /* a piece of the body, never empty */
	HX_HTTP1_END,  /* of the message; the next one begins after hx_http1_reset() */
	HX_HTTP1_IDLE, /* only from hx_http1_closed(): no message had begun */
};

struct hx_http1_event {
	enum hx_http1_event_type type;
	size_t used;             /* bytes consumed at the front of input */
	struct hapax_bytes data; /* of DATA: within the bytes used */
};

enum hx_http1_body {
	HX_HTTP1_BODY_NONE,
	HX_HTTP1_BODY_LENGTH,
	HX_HTTP1_BODY_CHUNKED,
	HX_HTTP1_BODY_CLOSE, /* of a response: until the connection is closed */
};

/* Fields that the codec itself reads; the first of each is found without a search. */
enum hx_http1_known {
	HX_HTTP1_HOST,
	HX_HTTP1_CONTENT_LENGTH,
	HX_HTTP1_TRANSFER_ENCODING,
	HX_HTTP1_CONTENT_TYPE,
	HX_HTTP1_CONNECTION,
	HX_HTTP1_EXPECT,
	HX_HTTP1_KNOWN_COUNT,
};

/*
 * A head; everything points into its input, and is valid as long as those bytes. Values have no
 * blanks around them.
 */
struct hx_http1_head {
	struct hapax_bytes method;    /* of a request, as are the next three */
	struct hapax_bytes target;    /* as received */
	struct hapax_bytes path;      /* of the target, with the query; "*" for OPTIONS * */
	struct hapax_bytes authority; /* host and port; empty in HTTP/1.0 without Host */
	struct hapax_bytes reason;    /* of a response; may be empty */
	uint16_t status;              /* of a response, else 0 */
	uint8_t version_minor;        /* HTTP/1.0 or 1.1 */
	bool keep_alive;              /* another message may follow on the connection */
	bool expects_continue;        /* the client waits for 100 before it sends the body */
	enum hx_http1_body body;
	uint64_t content_length;             /* of BODY_LENGTH */
	uint8_t known[HX_HTTP1_KNOWN_COUNT]; /* index + 1 of the first such field; 0: none */
	uint32_t repeated;                   /* 1 << known: there is more than one */
	size_t field_count;
	struct hapax_field fields[HX_HTTP1_FIELDS_MAX];
};

/* Private to http1*.c. */
struct hx_http1 {
	struct hx_http1_limits limits;
	uint64_t offset;      /* of the message: bytes used before input */
	uint64_t left;        /* of the body or the chunk */
	uint64_t body_size;   /* so far, with what the current chunk will bring */
	uint32_t checked;     /* of the head: bytes of complete, valid lines */
	uint32_t framing;     /* bytes of the current extension, or of all trailers */
	uint32_t extensions;  /* bytes of all extensions of this body */
	uint16_t fault;       /* the status for a refused message */
	uint8_t field_count;  /* of the lines in checked */
	uint8_t role;         /* enum hx_http1_role */
	uint8_t state;        /* enum hx_http1_state */
	uint8_t chunk_state;  /* enum hx_chunk_state */
	uint8_t digits;       /* of the chunk's size */
	bool began;           /* a byte of this message was seen */
	bool first_line_read; /* it lies within checked */
	bool answers_head;    /* the response is to a HEAD request: it has no body */
};

/* limits may be NULL: all defaults, and no limit for a body. */
void hx_http1_init(
	struct hx_http1 *http, enum hx_http1_role role, const struct hx_http1_limits *limits);

/* Begin the next message on the connection. */
void hx_http1_reset(struct hx_http1 *http);

/* The same for a client; a response to HEAD has a length but no body. */
void hx_http1_reset_answer(struct hx_http1 *http, bool to_head);

/* Change the limit of a body; between HEAD and the first DATA at the latest. */
void hx_http1_limit_body(struct hx_http1 *http, uint64_t body_max);

/*
 * Read the front of input. Input begins with the first byte that was not used; until the head is
 * complete that is its first byte, and MORE uses nothing. head is written before HEAD is returned
 * and may hold anything before; it is not read later, so that connections may share one.
 *
 * INVALID or LIMIT: the message is refused, see hx_http1_reply_status().
 */
enum hapax_status hx_http1_next(
	struct hx_http1 *http, struct hapax_bytes input, struct hx_http1_head *head,
	struct hx_http1_event *ret, struct hapax_error *err);

/*
 * The peer sends no more, and input was read up to MORE. END: that was the end of the
 * body. IDLE: between two messages. INVALID: in the middle of one.
 */
enum hapax_status hx_http1_closed(
	struct hx_http1 *http, struct hx_http1_event *ret, struct hapax_error *err);

/* The status to answer after an error: 400 413 414 417 431 501 505; for a client always 502. */
unsigned hx_http1_reply_status(const struct hx_http1 *http);

/*
 * The status to answer after a timeout: 408, for a client 504. 0: no message had begun; close
 * without an answer.
 */
unsigned hx_http1_timeout_status(const struct hx_http1 *http);

/* The value of the first field of this kind; data NULL: there is none. */
struct hapax_bytes hx_http1_known(const struct hx_http1_head *head, enum hx_http1_known known);

/*
 * The first field of that name, in either case, from index on; field_count: none.
 */
size_t hx_http1_find(const struct hx_http1_head *head, struct hapax_bytes name, size_t index);

/*
 * Does a field belong to this connection? Then it must not be passed on: Connection, the fields it
 * names, and the rest of RFC 9110 7.6.1; with Content-Length, which the writer creates again.
 */
bool hx_http1_is_hop(const struct hx_http1_head *head, struct hapax_bytes name);

#endif
