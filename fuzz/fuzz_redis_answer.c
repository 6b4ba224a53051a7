/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: replies of a hostile Redis server or Cluster (src/store/redis: redis_answer.c,
 * redis_session.c, redis_operation.c, cluster_map.c).
 *
 * The first byte chooses who reads the rest: the answers to a group, those to usual operations, the
 * greeting, or the map of a Cluster. Readers get whole messages, as connections pass them on. After
 * a group was decided, every operation has an outcome or a status, and its record lies in its
 * buffer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "net/redis_place.h"
#include "store/redis/cluster_map.h"
#include "store/redis/redis_operation.h"
#include "store/redis/redis_script.h"
#include "store/redis/redis_session.h"
#include "wire/resp/resp_reply.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { OPS = 3, MESSAGE_SIZE_MAX = 1 << 20, GREETING_MAX = 32, RANGES_MAX = 1000 };

static void must(int condition)
{
	if (!condition)
		abort();
}

/* The next whole message. False: no more. */
static bool next_message(struct hapax_bytes *rest, struct hapax_bytes *ret)
{
	struct hx_resp_scan scan = {0};

	if (rest->size == 0 || hx_resp_scan(&scan, *rest, MESSAGE_SIZE_MAX) != HX_RESP_DONE)
		return false;
	*ret = hx_bytes(rest->data, scan.size);
	*rest = hx_bytes((const char *)rest->data + scan.size, rest->size - scan.size);
	return true;
}

struct group {
	struct hapax_op ops[OPS];
	struct hapax_record records[OPS];
	struct hapax_buf bufs[OPS];
};

static void group_init(struct group *group, unsigned kind)
{
	static const unsigned char id[HAPAX_ATTEMPT_ID_SIZE] = {1};

	memset(group, 0, sizeof(*group));
	for (size_t i = 0; i < OPS; i++) {
		struct hapax_op *op = &group->ops[i];

		op->type = (enum hapax_op_type)((kind + i) % HAPAX_OP_LOAD);
		op->key = HX_BYTES_LIT("key");
		op->attempt_id = id;
		op->token = 7;
		op->record = &group->records[i];
		op->buf = &group->bufs[i];
		hx_buf_init(&group->bufs[i], MESSAGE_SIZE_MAX);
	}
}

static void group_check(const struct group *group, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct hapax_op *op = &group->ops[i];
		const struct hapax_bytes *body = &op->record->result.body;

		must(op->status != HAPAX_OK || op->outcome != HAPAX_OUTCOME_NONE);
		must(body->size == 0 || body->size <= group->bufs[i].size);
	}
}

static void group_done(struct group *group)
{
	for (size_t i = 0; i < OPS; i++)
		hx_buf_done(&group->bufs[i]);
}

static void read_group(struct hapax_bytes rest, unsigned kind)
{
	struct group group;
	struct hapax_bytes reply;
	uint64_t removed;

	group_init(&group, kind);
	if (next_message(&rest, &reply) &&
	    hx_redis_group_decode(reply, group.ops, OPS, &removed) == HX_REDIS_DECIDED)
		group_check(&group, OPS);
	group_done(&group);
}

static void read_answers(struct hapax_bytes rest, unsigned kind)
{
	struct hx_redis_answers answers;
	struct group group;
	struct hapax_bytes reply;
	size_t count = 0;

	group_init(&group, kind);
	if (next_message(&rest, &reply) && hx_redis_answers_begin(&answers, reply, OPS)) {
		while (count < OPS &&
		       hx_redis_answers_next(&answers, &group.ops[count]) == HX_REDIS_DECIDED)
			count++;
		group_check(&group, count);
	}
	group_done(&group);
}

static void greet(struct hapax_bytes rest, unsigned kind)
{
	static struct hx_redis_place place;
	static struct hx_redis_scripts scripts;
	struct hx_redis_session session = {
		.place = &place, .scripts = &scripts, .must_be_durable = kind % 2};
	struct hapax_error err = {0};
	struct hapax_buf out;
	struct hapax_bytes reply;
	enum hx_redis_session_result result = HX_REDIS_SESSION_MORE;

	must(hx_redis_place_parse("redis://u:p@h/3", &place, &err) == HAPAX_OK);
	place.is_cluster = kind % 4 > 1;
	hx_buf_init(&out, MESSAGE_SIZE_MAX);
	must(hx_redis_session_begin(&session, &out) == HAPAX_OK);
	for (int i = 0;
	     i < GREETING_MAX && result == HX_REDIS_SESSION_MORE && next_message(&rest, &reply);
	     i++)
		result = hx_redis_session_reply(&session, reply, &out, &err);
	must(result != HX_REDIS_SESSION_REFUSED || err.message[0] != '\0');
	hx_buf_done(&out);
}

static void read_map(struct hapax_bytes rest)
{
	struct hx_redis_range range;
	struct hapax_bytes reply;
	int64_t count;

	if (!next_message(&rest, &reply) || !hx_redis_map_begin(&reply, &count))
		return;
	for (int64_t i = 0; i < count && i < RANGES_MAX; i++) {
		if (!hx_redis_map_next(&reply, &range))
			return;
		must(range.host.size == 0 || range.host.data != NULL);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hapax_bytes rest;

	if (size == 0)
		return 0;
	rest = hx_bytes(data + 1, size - 1);
	switch (data[0] % 4) {
	case 0: read_group(rest, data[0] / 4); break;
	case 1: read_answers(rest, data[0] / 4); break;
	case 2: greet(rest, data[0] / 4); break;
	default: read_map(rest); break;
	}
	return 0;
}
