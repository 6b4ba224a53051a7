/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_stream.c - replies in pieces.
 *
 * The exchange keeps its peer, and the connection stays paused, until the end. If the client
 * disconnects, the writer keeps the exchange, and its output is dropped.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "net/http/http_peer.h"
#include "wire/http1/http1_write.h"

enum {
	/* A client must read this much before it gets more: limits the memory of a stream. */
	UNREAD_MAX = 64 * 1024,

	END_SIZE_MAX = 256,
};

enum hapax_status hx_http_stream_begin(
	struct hx_http_exchange *exchange, const struct hx_http_reply *reply,
	hx_http_room_fn *on_room)
{
	struct hx_http_reply head = *reply;
	bool is_last = exchange->server->is_leaving || !exchange->head.keep_alive;
	enum hapax_status status = HAPAX_OK;

	assert(exchange->is_handed_over && exchange->on_room == NULL && on_room != NULL);
	head.body = hx_bytes(NULL, 0);
	if (reply->framing != HX_HTTP_SIZED)
		head.framing = exchange->head.version_minor > 0 ? HX_HTTP_CHUNKED : HX_HTTP_CLOSE;
	exchange->is_bare = !hx_http_status_has_body(reply->status) ||
		hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("HEAD"));
	is_last = is_last || (head.framing == HX_HTTP_CLOSE && !exchange->is_bare);
	if (exchange->peer != NULL)
		status = hx_http_exchange_send(exchange, &head, is_last);
	if (status != HAPAX_OK)
		return status;
	exchange->head.keep_alive = !is_last;
	exchange->framing = head.framing;
	exchange->left = reply->length;
	exchange->has_sent = false;
	exchange->is_full = false;
	exchange->on_room = on_room;
	return HAPAX_OK;
}

/* End the connection, with a reset or because it is dead; the exchange continues. */
static void leave_peer(struct hx_http_exchange *exchange, const char *why)
{
	struct hx_http_peer *peer = exchange->peer;
	struct hapax_error err;

	exchange->is_full = false;
	if (peer == NULL)
		return;
	(void)hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, 0, "%s", why);
	exchange->peer = NULL;
	peer->exchange = NULL;
	hx_connection_abort(&peer->connection, &err);
}

void hx_http_stream_cut(struct hx_http_exchange *exchange)
{
	assert(exchange->on_room != NULL);
	leave_peer(exchange, "the response was cut off");
}

bool hx_http_stream_write(struct hx_http_exchange *exchange, struct hapax_bytes data)
{
	struct hx_connection *connection;
	char head[HX_HTTP1_CHUNK_HEAD_MAX];
	size_t head_size = 0;
	unsigned char *space;

	assert(exchange->on_room != NULL);
	if (exchange->peer == NULL || data.size == 0 || exchange->is_bare)
		return true;
	if (exchange->framing == HX_HTTP_SIZED && data.size > exchange->left) {
		leave_peer(exchange, "the response is longer than its Content-Length");
		return true;
	}
	connection = &exchange->peer->connection;
	if (exchange->framing == HX_HTTP_CHUNKED)
		head_size = hx_http1_chunk_head(data.size, !exchange->has_sent, head);
	if (hx_connection_reserve(connection, head_size + data.size, &space) != HAPAX_OK) {
		leave_peer(exchange, "could not write the response");
		return true;
	}
	if (head_size > 0)
		memcpy(space, head, head_size);
	memcpy(space + head_size, data.data, data.size);
	hx_connection_wrote(connection, head_size + data.size);
	exchange->has_sent = true;
	exchange->left -= exchange->framing == HX_HTTP_SIZED ? data.size : 0;
	/* Do not wait for bytes that the kernel accepts now. */
	if (hx_connection_unsent(connection) > UNREAD_MAX)
		hx_connection_flush(connection);
	exchange->is_full = hx_connection_unsent(connection) > UNREAD_MAX;
	return !exchange->is_full;
}

/* The last chunk, followed by trailer fields. */
static enum hapax_status write_last(struct hx_http_exchange *exchange, struct hapax_bytes lines)
{
	char end[END_SIZE_MAX];
	size_t size = hx_http1_chunk_head(0, !exchange->has_sent, end);

	/* It ends with the empty line, which follows the fields. */
	assert(lines.size <= sizeof(end) - HX_HTTP1_CHUNK_HEAD_MAX);
	if (lines.size > 0) {
		memcpy(end + size - 2, lines.data, lines.size);
		size += lines.size;
		memcpy(end + size - 2, "\r\n", 2);
	}
	return hx_connection_write(&exchange->peer->connection, end, size);
}

/* The client knows that the reply is complete. */
static bool tell_end(struct hx_http_exchange *exchange, struct hapax_bytes lines)
{
	if (exchange->framing == HX_HTTP_CHUNKED && !exchange->is_bare)
		return write_last(exchange, lines) == HAPAX_OK;
	return lines.size == 0 &&
		(exchange->framing != HX_HTTP_SIZED || exchange->left == 0 || exchange->is_bare);
}

void hx_http_stream_end(struct hx_http_exchange *exchange, struct hapax_bytes lines)
{
	struct hx_http_peer *peer = exchange->peer;
	bool is_last = exchange->server->is_leaving || !exchange->head.keep_alive;

	assert(exchange->on_room != NULL);
	if (peer != NULL && !tell_end(exchange, lines)) {
		leave_peer(exchange, "could not write the end of the response");
		peer = NULL;
	}
	hx_http_exchange_give(exchange);
	if (peer != NULL)
		hx_http_peer_answered(peer, is_last);
}
