/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_rewind.c - sets the offsets of a group back. The group has no members: Kafka refuses otherwise.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "broker/kafka_client.h"
#include "source/kafka/kafka_private.h"
#include "source/source.h"

enum { ANSWER_MS = 10 * 1000 };

/* The first offset of each partition, or its end if it has nothing that recent. */
static rd_kafka_resp_err_t find_offsets(
	rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int64_t from_ms)
{
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;

	for (int i = 0; i < list->cnt; i++)
		list->elems[i].offset = from_ms;
	if (from_ms > 0)
		err = rd_kafka_offsets_for_times(rk, list, ANSWER_MS);
	for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
		rd_kafka_topic_partition_t *at = &list->elems[i];
		int64_t low = 0, high = 0;

		if (from_ms > 0 && at->offset >= 0)
			continue;
		err = rd_kafka_query_watermark_offsets(
			rk, at->topic, at->partition, &low, &high, ANSWER_MS);
		at->offset = from_ms > 0 ? high : low;
	}
	return err;
}

static rd_kafka_resp_err_t set_back(
	rd_kafka_t *rk, const struct hx_kafka_place *place, int64_t from_ms)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;

	for (size_t i = 0; i < place->topic_count && err == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
		err = hx_kafka_add_partitions(rk, place->topics[i], list);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		err = find_offsets(rk, list, from_ms);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		err = rd_kafka_commit(rk, list, 0);
	for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++)
		err = list->elems[i].err;
	rd_kafka_topic_partition_list_destroy(list);
	return err;
}

static enum hapax_status describe(
	rd_kafka_resp_err_t err, const struct hx_kafka_place *place, struct hapax_error *ret_err)
{
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return HAPAX_OK;
	if (err == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
	    err == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS ||
	    err == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION)
		return hx_error_set(
			ret_err, HAPAX_ERR_UNAVAILABLE, 0,
			"group '%.100s' has members; stop its consumers first", place->group);
	return hx_error_set(
		ret_err, HAPAX_ERR_UNAVAILABLE, 0, "could not set back the offsets of '%.100s': %s",
		place->group, rd_kafka_err2str(err));
}

enum hapax_status hx_kafka_rewind(const char *url, int64_t from_ms, struct hapax_error *err)
{
	struct hx_kafka_source *source = hx_alloc_zero(1, sizeof(*source));
	enum hapax_status status;
	rd_kafka_conf_t *conf;
	rd_kafka_t *rk = NULL;

	if (source == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	status = hx_kafka_place_parse(url, &source->place, err);
	for (size_t i = 0; status == HAPAX_OK && i < source->place.topic_count; i++) {
		if (source->place.topics[i][0] == '^')
			status = hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"a pattern of topics cannot be set back; name the topics");
	}
	if (status == HAPAX_OK) {
		conf = hx_kafka_conf(source, HX_KAFKA_REREADER, err);
		if (conf != NULL)
			rk = hx_kafka_client_new(RD_KAFKA_CONSUMER, conf, err);
		status = rk == NULL
			? HAPAX_ERR_INVALID
			: describe(set_back(rk, &source->place, from_ms), &source->place, err);
	}
	if (rk != NULL)
		rd_kafka_destroy(rk);
	explicit_bzero(&source->place, sizeof(source->place));
	hx_free(source);
	return status;
}
