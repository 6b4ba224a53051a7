/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_session.h - the greeting after the password: the server's properties and its guarantee.
 *
 * All commands are sent at once and answered in order. The greeting is repeated after every
 * reconnect, because a different server may answer.
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

/* The properties that the server reports. */
struct hx_redis_server {
	unsigned version; /* major * 100 + minor */
	bool is_master;
	bool is_loading;
	bool is_cluster;
	bool evicts;       /* may drop records when it is full */
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
	 * A test clock replaces the server's. Its time is epoch_ms, which the ledger keeps, plus
	 * the time since boot. NULL: the server's clock.
	 */
	const struct hapax_clock *clock;
	int64_t epoch_ms;
	struct hx_redis_server server;
	bool is_durable;
	char guarantee[HX_REDIS_GUARANTEE_SIZE];
	/* Private: replies still to come. */
	unsigned steps[24];
	unsigned step_count;
	unsigned step_next;
};

enum hx_redis_session_result {
	HX_REDIS_SESSION_MORE,
	HX_REDIS_SESSION_READY,
	HX_REDIS_SESSION_REFUSED, /* err says why */
};

/* Append the greeting. */
enum hapax_status hx_redis_session_begin(struct hx_redis_session *session, struct hapax_buf *buf);

/* Load the scripts again: the server has forgotten them. */
enum hapax_status hx_redis_session_reload(struct hx_redis_session *session, struct hapax_buf *buf);

/* Process one whole reply. May append more commands to buf. */
enum hx_redis_session_result hx_redis_session_reply(
	struct hx_redis_session *session, struct hapax_bytes reply, struct hapax_buf *buf,
	struct hapax_error *err);

/* Read the reply to INFO. */
void hx_redis_server_read(struct hx_redis_server *server, struct hapax_bytes info);

/* Describe the promise of the server's settings in a sentence; true if it is durable. */
bool hx_redis_guarantee(
	const struct hx_redis_server *server, char guarantee[HX_REDIS_GUARANTEE_SIZE]);

#endif
