/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_operation.h - a group of operations as one command, and its reply as their answers.
 *
 * A single operation is a group of one. The command runs operate.lua, so a group takes effect in
 * one step and one round trip. Operations that the check refused are left out.
 *
 * The usual operations (claim, check and complete of a single key) have their own scripts. One
 * command takes several of one type, from any callers.
 *
 * A record must fit the caller's buffer before anything is done, so room is reserved when the
 * command is built. If the size is unknown (the old value of a set), the script does nothing and
 * asks for more room; the group is then resent.
 */
#ifndef HX_STORE_REDIS_REDIS_OPERATION_H
#define HX_STORE_REDIS_REDIS_OPERATION_H

#include <stdbool.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "net/redis_place.h"
#include "store/redis/redis_script.h"
#include "store/redis/slot.h"

struct hx_redis_encoder {
	const struct hx_redis_place *place;
	const struct hx_redis_scripts *scripts;
	const struct hapax_store_options *options; /* complete */
	struct hapax_buf member;                   /* scratch */
	struct hapax_bytes prefix;                 /* of the operation's partition */
	char prefix_text[HX_REDIS_PARTITION_PREFIX_SIZE];
};

/* How many of the operations must be sent. */
size_t hx_redis_group_count(const struct hapax_op *ops, size_t count);

/*
 * Append the command of ops[0 .. count) to buf. LIMIT, NO_MEMORY: buf is unchanged, and
 * operations without room for their record have that status. Unless the group is all or nothing,
 * encode the rest again. now_ms: negative for the server's time.
 */
enum hapax_status hx_redis_group_encode(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, struct hapax_op *ops, size_t count,
	unsigned partition, int64_t now_ms);

/* Can it share a command with others of its type? */
bool hx_redis_op_is_usual(const struct hapax_op *op);

/* The approximate size that it adds to a command. */
size_t hx_redis_op_size(const struct hapax_op *op);

/*
 * Append the command of usual operations of one type and partition, with reserved room.
 * NO_MEMORY: buf is unchanged.
 */
enum hapax_status hx_redis_usual_encode(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, struct hapax_op *const *ops,
	size_t count, unsigned partition, int64_t now_ms);

/* The largest valid size of a reply to this group. */
size_t hx_redis_group_reply_size_max(const struct hapax_op *ops, size_t count);

/* The likely size. */
size_t hx_redis_group_reply_size(const struct hapax_op *ops, size_t count);

/* May the script ask for more room? Then no later operation of the submit may overtake it. */
bool hx_redis_group_may_ask(const struct hapax_op *ops, size_t count);

/* True if the group only reads. */
bool hx_redis_group_only_reads(const struct hapax_op *ops, size_t count);

enum hx_redis_verdict {
	HX_REDIS_DECIDED,   /* every operation has its answer */
	HX_REDIS_AGAIN,     /* nothing was done: room is reserved, resend */
	HX_REDIS_NO_SCRIPT, /* nothing was done: load the scripts, resend */
	HX_REDIS_ELSEWHERE, /* nothing was done: ask another server of the Cluster, or later */
	HX_REDIS_MOVED_ON,  /* every operation has its answer; this server is unusable */
	HX_REDIS_BROKEN,    /* not a reply to this: do not trust the server */
};

/* reply is one whole message. *ret_removed: expired records that made room. */
enum hx_redis_verdict hx_redis_group_decode(
	struct hapax_bytes reply, struct hapax_op *ops, size_t count, uint64_t *ret_removed);

/* The reply to a command of usual operations, answer by answer. */
struct hx_redis_answers {
	struct hapax_bytes rest;
	int64_t now_ms;
	uint64_t removed;
};

/* False: not such a reply; hx_redis_group_decode() of each operation tells what it is. */
bool hx_redis_answers_begin(
	struct hx_redis_answers *answers, struct hapax_bytes reply, size_t count);

/* The answer to the next operation: DECIDED, AGAIN or BROKEN. */
enum hx_redis_verdict hx_redis_answers_next(struct hx_redis_answers *answers, struct hapax_op *op);

/* Read a record of the scripts from *rest. tenant, group and key are not written. */
bool hx_redis_record_read(
	struct hapax_bytes *rest, const struct hapax_op *own, struct hapax_record *ret_record,
	bool *ret_present);

/*
 * Does a Cluster's error reply mean that nothing was done, and to ask another server, or this one
 * later?
 */
struct hx_resp_value;
bool hx_redis_error_is_elsewhere(const struct hx_resp_value *error);

/* The status of an error reply: nothing done, or an unknown outcome. */
enum hapax_status hx_redis_error_status(const struct hx_resp_value *error, bool *ret_is_gone);

#endif
