/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor.c - keeps the tokens of a Cluster above those of loaded records.
 */
#include "store/redis/floor.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "store/redis/cluster.h"
#include "store/redis/pipeline.h"
#include "store/redis/slot.h"
#include "wire/resp/resp_reply.h"

enum { COMMAND_SIZE_MAX = 1024, REPLY_SIZE_MAX = 64 * 1024 };

struct hx_redis_floor {
	struct hx_redis_client *client;
	uint64_t token;  /* no counter is below */
	uint64_t target; /* the new value in progress; 0: none */
	unsigned left;   /* partitions that have not answered */
	enum hapax_status status;
	struct hx_redis_request *held;
	struct hx_redis_request *held_last;
	struct hapax_buf command; /* the commands of all partitions */
	struct hapax_buf reply;
	struct hx_redis_call calls[HX_REDIS_PARTITIONS];
};

struct hx_redis_floor *hx_redis_floor_new(struct hx_redis_client *client)
{
	struct hx_redis_floor *floor = hx_alloc_zero(1, sizeof(*floor));

	if (floor == NULL)
		return NULL;
	floor->client = client;
	hx_buf_init(&floor->command, (size_t)COMMAND_SIZE_MAX * HX_REDIS_PARTITIONS);
	hx_buf_init(&floor->reply, REPLY_SIZE_MAX);
	return floor;
}

void hx_redis_floor_free(struct hx_redis_floor *floor)
{
	if (floor == NULL)
		return;
	hx_buf_done(&floor->command);
	hx_buf_done(&floor->reply);
	hx_free(floor);
}

bool hx_redis_floor_is_below(const struct hx_redis_floor *floor, const struct hapax_op *op)
{
	return op->type == HAPAX_OP_LOAD && op->load->token > floor->token;
}

/* Every partition has answered. True: some held requests need a higher token. */
static bool settle(struct hx_redis_floor *floor)
{
	struct hx_redis_request *request = floor->held;

	if (floor->status == HAPAX_OK)
		floor->token = floor->target;
	/* The target stays set, so that a new request only joins the queue. */
	floor->held = NULL;
	floor->held_last = NULL;
	while (request != NULL) {
		struct hx_redis_request *next = request->next;

		if (floor->status != HAPAX_OK) {
			/* The record was not touched. */
			hx_redis_request_fail(request, HAPAX_ERR_UNAVAILABLE);
			hx_redis_request_end(floor->client, request);
		} else if (hx_redis_floor_is_below(floor, request->ops)) {
			hx_redis_floor_hold(floor, request);
		} else {
			hx_redis_cluster_dispatch(floor->client, request);
		}
		request = next;
	}
	floor->target = 0;
	return floor->held != NULL;
}

static void raise_all(struct hx_redis_floor *floor);

static void on_raised(struct hx_redis_call *call, void *context)
{
	struct hx_redis_floor *floor = context;
	struct hapax_bytes rest = {floor->reply.data, floor->reply.size};
	struct hx_resp_value value;

	if (call->status != HAPAX_OK)
		floor->status = call->status;
	else if (!hx_resp_next(&rest, &value) || value.type != HX_RESP_ARRAY)
		floor->status = HAPAX_ERR_UNAVAILABLE;
	if (--floor->left == 0 && settle(floor))
		raise_all(floor);
}

static enum hapax_status make_commands(struct hx_redis_floor *floor, size_t *ends)
{
	struct hx_redis_client *client = floor->client;
	struct hx_resp_words command = {.status = HAPAX_OK};

	hx_buf_clear(&floor->command);
	for (unsigned i = 0; i < HX_REDIS_PARTITIONS && command.status == HAPAX_OK; i++) {
		char text[HX_REDIS_PARTITION_PREFIX_SIZE];
		struct hapax_bytes prefix = {text, 0};

		prefix.size = hx_redis_partition_prefix(client->place, i, text);
		hx_redis_script_begin(
			&command, &floor->command, &client->scripts, HX_REDIS_RAISE, prefix, 0, 1);
		hx_redis_script_arguments(&command, prefix, hx_redis_client_now_ms(client));
		hx_resp_word_integer(&command, (int64_t)floor->target);
		ends[i] = floor->command.size;
	}
	return command.status;
}

/* Raise to the largest token of the held requests. */
static void begin_raise(struct hx_redis_floor *floor)
{
	struct hx_redis_client *client = floor->client;
	size_t ends[HX_REDIS_PARTITIONS];
	size_t at = 0;

	for (struct hx_redis_request *item = floor->held; item != NULL; item = item->next) {
		if (item->ops->type == HAPAX_OP_LOAD && item->ops->load->token > floor->target)
			floor->target = item->ops->load->token;
	}
	floor->status = make_commands(floor, ends);
	/* One extra, so that it settles only after all were sent. */
	floor->left = 1;
	for (unsigned i = 0; i < HX_REDIS_PARTITIONS && floor->status == HAPAX_OK; i++) {
		struct hx_redis_request *request = hx_request_queue_borrow(&client->queue);

		if (request == NULL) {
			floor->status = HAPAX_ERR_NO_MEMORY;
			break;
		}
		floor->calls[i] = (struct hx_redis_call){
			.command = {floor->command.data + at, ends[i] - at},
			.reply = &floor->reply,
			.fn = on_raised,
			.context = floor,
		};
		at = ends[i];
		request->call = &floor->calls[i];
		request->count = 1;
		request->again_from = SIZE_MAX;
		request->partition = (int)i;
		request->deadline_ns = floor->held->deadline_ns;
		floor->left++;
		hx_redis_cluster_dispatch(client, request);
	}
}

static void raise_all(struct hx_redis_floor *floor)
{
	do
		begin_raise(floor);
	while (--floor->left == 0 && settle(floor));
}

void hx_redis_floor_hold(struct hx_redis_floor *floor, struct hx_redis_request *request)
{
	request->next = NULL;
	if (floor->held == NULL)
		floor->held = request;
	else
		floor->held_last->next = request;
	floor->held_last = request;
	if (floor->target == 0)
		raise_all(floor);
}
