/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_operation.h - a group of operations as one command, and its reply as their answers.
 *
 * A group that is no group is a single operation. The command runs operate.lua, so a
 * group takes effect in one step and in one round trip. Operations that were refused by
 * the check are left out.
 *
 * The usual operations, those of a single key that claim, check or complete, have scripts of
 * their own, which take several of one type, of whichever callers, in one command.
 *
 * A record that is handed out must fit the caller's buffer before anything is done, so
 * room is reserved when the command is made. Where the size cannot be known (the old
 * value of a set), the script asks for more room and has done nothing; the group is
 * then sent again.
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
	struct hapax_bytes prefix;                 /* of the partition in question */
	char prefix_text[HX_REDIS_PARTITION_PREFIX_SIZE];
};

/* How many of the operations are to be sent. */
size_t hx_redis_group_count(const struct hapax_op *ops, size_t count);

/*
 * Append the command of ops[0 .. count) to buf. LIMIT, NO_MEMORY: buf is as before, and
 * the operations that found no room for their record have that status; encode the rest
 * again if the group is not all or nothing. now_ms: negative for the server's time.
 */
enum hapax_status hx_redis_group_encode(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, struct hapax_op *ops, size_t count,
	unsigned partition, int64_t now_ms);

/* Is it one of those that can share a command with others of its type? */
bool hx_redis_op_is_usual(const struct hapax_op *op);

/* Roughly what it adds to a command. */
size_t hx_redis_op_size(const struct hapax_op *op);

/* Have room for its record. LIMIT, NO_MEMORY: it was refused so. */
enum hapax_status hx_redis_op_reserve(struct hapax_op *op);

/*
 * Append the command of usual operations of one type and partition, for which room was
 * reserved. NO_MEMORY: buf is as before.
 */
enum hapax_status hx_redis_usual_encode(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, struct hapax_op *const *ops,
	size_t count, unsigned partition, int64_t now_ms);

/* The most bytes that a reply to this group can rightly have. */
size_t hx_redis_group_reply_size_max(const struct hapax_op *ops, size_t count);

/* And how many it is likely to have. */
size_t hx_redis_group_reply_size(const struct hapax_op *ops, size_t count);

/* May the script ask for more room? Then nothing of the same submit may overtake it. */
bool hx_redis_group_may_ask(const struct hapax_op *ops, size_t count);

/* Does the group do nothing but read? */
bool hx_redis_group_only_reads(const struct hapax_op *ops, size_t count);

enum hx_redis_verdict {
	HX_REDIS_DECIDED,   /* every operation has its answer */
	HX_REDIS_AGAIN,     /* nothing was done: room was reserved, send it again */
	HX_REDIS_NO_SCRIPT, /* nothing was done: load the scripts, send it again */
	HX_REDIS_ELSEWHERE, /* nothing was done: ask another server of the Cluster, or later */
	HX_REDIS_MOVED_ON,  /* every operation has its answer; this server is no use any more */
	HX_REDIS_BROKEN,    /* no reply to this: who knows what the server is */
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

/* False: it is not one; hx_redis_group_decode() of each operation tells what it is. */
bool hx_redis_answers_begin(
	struct hx_redis_answers *answers, struct hapax_bytes reply, size_t count);

/* The answer to the next operation: DECIDED, AGAIN or BROKEN. */
enum hx_redis_verdict hx_redis_answers_next(struct hx_redis_answers *answers, struct hapax_op *op);

/* Read a record as the scripts show it from *rest. tenant, group and key are not written. */
bool hx_redis_record_read(
	struct hapax_bytes *rest, const struct hapax_op *own, struct hapax_record *ret_record,
	bool *ret_present);

/*
 * Does an error reply of a Cluster say that nothing was done, and another server should be
 * asked, or this one later?
 */
struct hx_resp_value;
bool hx_redis_error_is_elsewhere(const struct hx_resp_value *error);

/* What an error reply means: did the server do nothing, or does nobody know? */
enum hapax_status hx_redis_error_status(const struct hx_resp_value *error, bool *ret_is_gone);

#endif
