/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_session.h - what is said to a server before the first operation, behind the password:
 * what it is, and what can be promised on it.
 *
 * All of it goes out at once and is answered in order. The same is said after every
 * reconnect, because another server may answer then.
 */
#ifndef HX_STORE_REDIS_REDIS_SESSION_H
#define HX_STORE_REDIS_REDIS_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/clock.h>
#include <hapax/error.h>

#include "base/buf.h"
#include "net/redis_place.h"
#include "store/redis/redis_script.h"

enum {
	HX_REDIS_FORMAT = 1, /* of the ledger */
	HX_REDIS_GUARANTEE_SIZE = 256,
};

/* What the server says of itself. */
struct hx_redis_server {
	unsigned version; /* major * 100 + minor */
	bool is_master;
	bool is_loading;
	bool is_cluster;
	bool evicts;       /* it may drop records when it is full */
	bool has_log;      /* append only file */
	bool syncs_always; /* ... synced before each answer */
	bool skips_sync;   /* ... but not while it is rewritten */
	uint64_t replica_count;
	char policy[32];
};

struct hx_redis_session {
	const struct hx_redis_place *place;
	struct hx_redis_scripts *scripts;
	bool must_exist;
	bool must_be_durable; /* required, or promised before */
	/*
	 * A clock that a test drives stands in for the server's: its time is epoch_ms, which
	 * the ledger keeps, plus the time since boot. NULL: the server's own.
	 */
	const struct hapax_clock *clock;
	int64_t epoch_ms;
	struct hx_redis_server server;
	bool is_durable;
	char guarantee[HX_REDIS_GUARANTEE_SIZE];
	/* Private: which replies are still to come. */
	unsigned steps[24];
	unsigned step_count;
	unsigned step_next;
};

enum hx_redis_session_result {
	HX_REDIS_SESSION_MORE,
	HX_REDIS_SESSION_READY,
	HX_REDIS_SESSION_REFUSED, /* err says why */
};

/* Append what is to be said. */
enum hapax_status hx_redis_session_begin(struct hx_redis_session *session, struct hapax_buf *buf);

/* Load the scripts again: the server has forgotten them. */
enum hapax_status hx_redis_session_reload(struct hx_redis_session *session, struct hapax_buf *buf);

/* One whole reply. More to say may be appended to buf. */
enum hx_redis_session_result hx_redis_session_reply(
	struct hx_redis_session *session, struct hapax_bytes reply, struct hapax_buf *buf,
	struct hapax_error *err);

/* Read the reply to INFO. */
void hx_redis_server_read(struct hx_redis_server *server, struct hapax_bytes info);

/* Say in one sentence what the server's settings promise; true when it is durable. */
bool hx_redis_guarantee(
	const struct hx_redis_server *server, char guarantee[HX_REDIS_GUARANTEE_SIZE]);

#endif
