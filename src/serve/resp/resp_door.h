/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_door.h - the Redis door of one loop: connections, and rounds through the store.
 *
 * The commands of all connections in a turn go to the store as one batch, a round. While a round is
 * in progress, the next one gathers. So a pipeline is one submit, and many connections share a
 * commit. A connection has one batch in progress and is not read meanwhile. Replies are sent when
 * the round is answered, in the order of the commands.
 *
 * Threads: the loop's own, except the completion of a round, which is posted.
 */
#ifndef HX_SERVE_RESP_RESP_DOOR_H
#define HX_SERVE_RESP_RESP_DOOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

#include "base/buf.h"
#include "net/listener.h"
#include "net/reactor.h"
#include "resp/resp_batch.h"
#include "resp/resp_service.h"

struct hx_loop;
struct hx_resp_peer;
struct hx_tls_context;

/* Connections whose commands are in a batch. */
struct hx_resp_round {
	struct hx_resp_batch batch;
	struct hx_resp_peer *first;
	struct hx_resp_peer *last;
};

struct hx_resp_door {
	struct hx_loop *loop;
	struct hx_resp_service *service; /* of all loops; NULL: the door is closed */
	struct hx_listener listener;
	struct hx_tls_context *tls; /* NULL: plain. Borrowed */
	int64_t handshake_ms;
	struct hx_resp_peer *peers;
	size_t peer_count;
	bool is_draining;
	struct hx_timer drain_timer;

	struct hx_resp_round rounds[2];
	struct hx_resp_round *gathering;
	struct hx_resp_round *on_its_way; /* NULL: none */
	struct hx_resp_peer *waiting;     /* for room in the gathering round */
	_Atomic unsigned phase;           /* of the round in progress */
	struct hx_task submit_task;
	struct hx_task answer_task;
	struct hapax_buf out; /* the replies being written */
};

/* Opens it on an address, see hx_listener_open(). door is zeros, except for its TLS. */
enum hapax_status hx_resp_door_open(
	struct hx_resp_door *door, struct hx_loop *loop, struct hx_resp_service *service,
	const struct hx_address *address, bool shares_port, size_t connections_max,
	struct hapax_error *err);

/*
 * Accepts no more connections, except those that the kernel has already accepted. Closes
 * connections whose input is all answered.
 */
void hx_resp_door_drain(struct hx_resp_door *door);

/* Closes the remaining connections; the reactor must turn once more before done. */
void hx_resp_door_close(struct hx_resp_door *door);

/* No round is in progress, no client is connected. Does nothing for zeros. */
void hx_resp_door_done(struct hx_resp_door *door);

static inline bool hx_resp_door_has_gone(const struct hx_resp_door *door)
{
	return door->peer_count == 0 && door->on_its_way == NULL &&
		!(door->is_draining && hx_listener_is_open(&door->listener));
}

#endif
