/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_client.h - the thread that talks to a daemon, for the server store.
 *
 * Requests wait in a queue. The thread sends the operations of all queued requests in one call,
 * up to 1,024 of them, so that concurrent submits share a round trip. One call is in progress at
 * a time.
 *
 *  (1) Nothing was sent: UNAVAILABLE. Sent, without a whole answer: UNCERTAIN, except for
 *      lookups, which change nothing. To settle a claim, repeat it with its attempt_id.
 *  (2) The client never sends an operation twice by itself.
 *  (3) The operations of a group are in one call.
 *
 * Threads: submit and call any; all else the client's own.
 */
#ifndef HX_STORE_SERVER_SERVER_CLIENT_H
#define HX_STORE_SERVER_SERVER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "base/thread.h"
#include "net/http/http_client.h"
#include "net/reactor.h"
#include "net/resolver.h"
#include "store/request_queue.h"
#include "store/server/server_place.h"
#include "wire/json/json_object.h"

enum { HX_SERVER_OPS_MAX = 1024 };

/* A single request whose caller waits. */
struct hx_server_call {
	const char *method;
	const char *path;        /* after /api/v1, with its query */
	struct hapax_bytes body; /* JSON, or empty */
	int64_t timeout_ms;      /* 0: the client's */
	struct hapax_buf *reply;
	/* Out. */
	enum hapax_status status; /* OK: http_status and reply are set */
	unsigned http_status;
	struct hapax_error err;
	struct hx_event done;
};

struct hx_server_request {
	struct hapax_op *ops;
	size_t count;
	struct hapax_completion completion;
	struct hx_server_call *call; /* instead of operations */
};

struct hx_server_client {
	struct hapax_store *store;
	const struct hx_server_place *place;
	int64_t timeout_ms;
	int64_t call_ms; /* of the call in progress */
	char token[HX_SERVER_TOKEN_SIZE];
	struct hx_tls_context *tls;
	struct hx_request_queue queue;
	struct hx_thread thread;
	bool has_queue;
	bool has_thread;
	bool has_reactor;

	/* Used by the thread only. */
	struct hx_reactor reactor;
	struct hx_resolver resolver;
	struct hx_http_client http;
	struct hx_http_call http_call;
	bool is_over; /* the call in progress has ended */
	enum hx_http_call_end end;
	struct hapax_error end_err;
	unsigned http_status;
	enum hapax_status reply_status; /* whether the reply fits */
	struct hapax_buf *reply;
	struct hapax_buf head;
	struct hapax_buf body;
	struct hapax_buf answer;
	struct hx_json_reader reader;
	struct hapax_op *sent[HX_SERVER_OPS_MAX];
	size_t sent_count;
};

/* place outlives the client. On failure nothing remains allocated. */
enum hapax_status hx_server_client_open(
	struct hx_server_client *client, struct hapax_store *store,
	const struct hx_server_place *place, int64_t timeout_ms, struct hapax_error *err);
void hx_server_client_close(struct hx_server_client *client);

void hx_server_client_submit(
	struct hx_server_client *client, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

/*
 * Send one request and wait. OK: the daemon answered 200, with this reply. Otherwise the status
 * of the answer, or of its absence. timeout_ms 0: the client's.
 */
enum hapax_status hx_server_client_call(
	struct hx_server_client *client, const char *method, const char *path,
	struct hapax_bytes body, int64_t timeout_ms, struct hapax_buf *reply,
	struct hapax_error *err);

#endif
