/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_ledger.c - finds or creates the ledger of a Redis Cluster; its first partition decides.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "store/redis/cluster.h"
#include "store/redis/slot.h"
#include "wire/resp/resp_reply.h"

static enum hapax_status ask_meta(
	struct hx_redis_client *client, const char *command, const char *field, const char *value,
	struct hapax_buf *reply, struct hx_resp_value *ret_value, struct hapax_error *err)
{
	char name[HX_REDIS_PARTITION_PREFIX_SIZE + 8];
	size_t size = hx_redis_partition_prefix(client->place, 0, name);
	struct hx_resp_words request;
	struct hapax_buf text;
	struct hapax_bytes rest;
	enum hapax_status status;

	memcpy(name + size, ":meta", 6);
	hx_buf_init(&text, 1024);
	hx_resp_words_begin(&request, &text, value == NULL ? 3 : 4);
	hx_resp_word_text(&request, command);
	hx_resp_word_text(&request, name);
	hx_resp_word_text(&request, field);
	if (value != NULL)
		hx_resp_word_text(&request, value);
	status = request.status;
	if (status != HAPAX_OK)
		(void)hx_error_set(err, status, 0, "not enough memory to open a store");
	else
		status =
			hx_redis_client_call(client, 0, hx_bytes(text.data, text.size), reply, err);
	hx_buf_done(&text);
	if (status != HAPAX_OK)
		return status;
	rest = hx_bytes(reply->data, reply->size);
	if (!hx_resp_next(&rest, ret_value) || ret_value->type == HX_RESP_ERROR)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "the Redis Cluster rejected '%s'", command);
	return HAPAX_OK;
}

static enum hapax_status find_ledger(
	struct hx_redis_client *client, struct hapax_buf *reply, struct hapax_error *err)
{
	struct hx_resp_value value;
	int64_t version = 0;
	enum hapax_status status = ask_meta(client, "HGET", "version", NULL, reply, &value, err);

	if (status != HAPAX_OK)
		return status;
	if (value.type == HX_RESP_NULL) {
		if (client->options->flags & HAPAX_STORE_MUST_EXIST)
			return hx_error_set(
				err, HAPAX_ERR_UNAVAILABLE, 0,
				"this Redis Cluster has no store with the key prefix '%s'",
				client->place->prefix);
		return ask_meta(client, "HSETNX", "version", "1", reply, &value, err);
	}
	if (!hx_resp_integer(&value, &version) || version < 1)
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0,
			"key '%s:{00}:meta' does not belong to hapax; choose another key prefix "
			"with ?prefix=NAME",
			client->place->prefix);
	if (version > HX_REDIS_FORMAT)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"the store has format %lld, and this hapax supports %d; use a newer hapax",
			(long long)version, HX_REDIS_FORMAT);
	return HAPAX_OK;
}

static enum hapax_status find_epoch(
	struct hx_redis_client *client, struct hapax_buf *reply, struct hapax_error *err)
{
	const struct hapax_clock *clock = client->clock;
	struct hx_resp_value value;
	char epoch[24];
	enum hapax_status status;

	(void)snprintf(
		epoch, sizeof(epoch), "%lld",
		(long long)(clock->wall_ms(clock->context) - clock->boot_ms(clock->context)));
	status = ask_meta(client, "HSETNX", "epoch", epoch, reply, &value, err);
	if (status == HAPAX_OK)
		status = ask_meta(client, "HGET", "epoch", NULL, reply, &value, err);
	if (status == HAPAX_OK && !hx_resp_integer(&value, &client->epoch_ms))
		status = hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0, "the epoch of the store is not a number");
	return status;
}

enum hapax_status hx_redis_cluster_found(struct hx_redis_client *client, struct hapax_error *err)
{
	struct hapax_buf reply;
	enum hapax_status status;

	hx_buf_init(&reply, 4096);
	status = find_ledger(client, &reply, err);
	if (status == HAPAX_OK && client->clock != NULL)
		status = find_epoch(client, &reply, err);
	hx_buf_done(&reply);
	return status;
}
