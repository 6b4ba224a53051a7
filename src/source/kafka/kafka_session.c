/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_session.c - settings, group membership, and errors of librdkafka.
 */
#include <stdio.h>

#include "broker/kafka_client.h"
#include "source/kafka/kafka_private.h"

/* Properties of the URL override these. */
/* For the partitions of a topic. */
enum { METADATA_MS = 5000 };

static const struct hx_kafka_property defaults[] = {
	{"client.id", "hapax"},
	{"partition.assignment.strategy", "cooperative-sticky"},
	{"auto.commit.interval.ms", "1000"},
	/*
	 * librdkafka pauses for a second when its queue is full. We take about 400,000 messages in
	 * that time, so the queue does not run empty. Not more, because its size counts values
	 * only: a backlog of tombstones would be fetched whole.
	 */
	{"queued.min.messages", "500000"},
	{"queued.max.messages.kbytes", "32768"},
	{"fetch.wait.max.ms", "100"},
	{"allow.auto.create.topics", "false"},
	{"topic.metadata.refresh.interval.ms", "30000"},
	{NULL, NULL},
};

static const struct hx_kafka_property producer_defaults[] = {
	{"client.id", "hapax"},
	{"message.timeout.ms", "30000"},
	{"message.max.bytes", "104857600"},
	{"linger.ms", "5"},
	{NULL, NULL},
};

void hx_kafka_on_event(rd_kafka_t *rk, void *opaque)
{
	struct hx_kafka_source *source = opaque;

	(void)rk;
	if (source->base.hooks.wake != NULL)
		source->base.hooks.wake(source->base.hooks.context);
}

void hx_kafka_say(struct hx_kafka_source *source, const char *text, bool is_fatal)
{
	source->failures++;
	if (source->base.hooks.failed != NULL)
		source->base.hooks.failed(source->base.hooks.context, text, is_fatal);
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
	struct hx_kafka_source *source = opaque;
	char text[256];

	if (err == RD_KAFKA_RESP_ERR__FATAL) {
		(void)rd_kafka_fatal_error(rk, text, sizeof(text));
		hx_kafka_say(source, text, true);
		return;
	}
	(void)snprintf(
		text, sizeof(text), "%s: %s", rd_kafka_err2name((rd_kafka_resp_err_t)err), reason);
	hx_kafka_say(source, text, false);
}

static void take_assignment(
	struct hx_kafka_source *source, rd_kafka_topic_partition_list_t *list, bool gains)
{
	source->changes++;
	for (int i = 0; i < list->cnt; i++) {
		const rd_kafka_topic_partition_t *at = &list->elems[i];

		if (gains) {
			hx_kafka_partition_gain(source, at->topic, at->partition);
		} else {
			hx_kafka_partition_drop_fetched(source, at->topic, at->partition);
			hx_kafka_partition_lose(source, at->topic, at->partition);
		}
	}
}

static void say_error(struct hx_kafka_source *source, rd_kafka_error_t *error)
{
	if (error == NULL)
		return;
	hx_kafka_say(source, rd_kafka_error_string(error), false);
	rd_kafka_error_destroy(error);
}

/* Use the consumer's start offsets where it has any. */
static void take_beginnings(struct hx_kafka_source *source, rd_kafka_topic_partition_list_t *list)
{
	const struct hapax_source_hooks *hooks = &source->base.hooks;

	for (int i = 0; hooks->begin != NULL && i < list->cnt; i++) {
		rd_kafka_topic_partition_t *at = &list->elems[i];
		int64_t next = hooks->begin(hooks->context, at->topic, at->partition);

		if (next >= 0)
			at->offset = next;
	}
}

/*
 * A partition with a known start needs no warm-up. Store its offset for the broker: without later
 * messages, no acknowledgement would.
 */
static void begin_partition(struct hx_kafka_source *source, const rd_kafka_topic_partition_t *at)
{
	struct hx_kafka_partition *partition =
		hx_kafka_partition_find(source, at->topic, at->partition);

	if (at->offset < 0) {
		hx_kafka_past_begin(source, partition);
	} else if (partition != NULL) {
		partition->water.next = at->offset;
		partition->is_dirty = true;
	}
}

/*
 * Runs within a poll of the queue. Before partitions are revoked, their progress is stored;
 * librdkafka commits it before it releases them. With cooperative rebalancing, the remaining
 * partitions are not touched.
 */
static void on_rebalance(
	rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
	void *opaque)
{
	struct hx_kafka_source *source = opaque;
	bool gains = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
	const char *protocol = rd_kafka_rebalance_protocol(rk);
	bool is_cooperative = protocol != NULL && protocol[0] == 'C';

	if (!gains)
		hx_kafka_store_offsets(source);
	else
		take_beginnings(source, list);
	take_assignment(source, list, gains);
	if (is_cooperative)
		say_error(
			source,
			gains ? rd_kafka_incremental_assign(rk, list)
			      : rd_kafka_incremental_unassign(rk, list));
	else
		(void)rd_kafka_assign(rk, gains ? list : NULL);
	/*
	 * librdkafka keeps the pause of a revoked partition: it would come back paused and never
	 * resume. Do not resume when it comes back: a running partition would be fetched again from
	 * its start.
	 */
	if (!gains)
		(void)rd_kafka_resume_partitions(rk, list);
	for (int i = 0; gains && i < list->cnt; i++)
		begin_partition(source, &list->elems[i]);
	/* New partitions must pause, too. */
	if (gains && (source->is_paused || source->warming > 0)) {
		source->is_paused = false;
		hx_kafka_pause_all(source, true);
	}
}

rd_kafka_conf_t *hx_kafka_conf(
	struct hx_kafka_source *source, enum hx_kafka_role role, struct hapax_error *err)
{
	const struct hx_kafka_place *place = &source->place;
	const struct hx_kafka_property member[] = {
		{"group.id", place->group},
		{"group.instance.id", place->instance[0] == '\0' ? NULL : place->instance},
		{"auto.offset.reset", place->starts_latest ? "latest" : "earliest"},
		/* Essential: only offsets of hx_kafka_store_offsets() are committed. */
		{"enable.auto.offset.store", "false"},
		{"enable.auto.commit", "true"},
		/* A reader of letters never joins; its handle can be destroyed (kafka_source.c). */
		{"partition.assignment.strategy", place->is_letters ? "range" : NULL},
		{NULL, NULL},
	};
	/* It is not a member of the group: it only reads the group's offsets, and messages. */
	const struct hx_kafka_property rereader[] = {
		{"group.id", place->group},
		{"enable.auto.commit", "false"},
		{"auto.offset.reset", "earliest"},
		{"enable.partition.eof", "true"},
		{"partition.assignment.strategy", "range"},
		{NULL, NULL},
	};
	const struct hx_kafka_property *lists[] = {defaults, place->url.properties, member, NULL};
	rd_kafka_conf_t *conf;

	if (role == HX_KAFKA_PRODUCER) {
		lists[0] = producer_defaults;
		lists[2] = NULL;
	} else if (role == HX_KAFKA_REREADER) {
		lists[2] = rereader;
	}
	conf = hx_kafka_client_conf(place->url.servers, lists, err);
	if (conf == NULL)
		return NULL;
	/* These callbacks do not belong to the rereader's thread. */
	if (role != HX_KAFKA_REREADER) {
		rd_kafka_conf_set_opaque(conf, source);
		rd_kafka_conf_set_error_cb(conf, on_error);
	}
	if (role == HX_KAFKA_MEMBER)
		rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
	return conf;
}

enum hapax_status hx_kafka_connect(struct hx_kafka_source *source, struct hapax_error *err)
{
	rd_kafka_conf_t *conf = hx_kafka_conf(source, HX_KAFKA_MEMBER, err);

	if (conf != NULL)
		source->consumer = hx_kafka_client_new(RD_KAFKA_CONSUMER, conf, err);
	if (source->consumer == NULL)
		return HAPAX_ERR_INVALID;
	(void)rd_kafka_poll_set_consumer(source->consumer);
	source->queue = rd_kafka_queue_get_consumer(source->consumer);
	return HAPAX_OK;
}

rd_kafka_resp_err_t hx_kafka_add_partitions(
	rd_kafka_t *rk, const char *topic, rd_kafka_topic_partition_list_t *list)
{
	rd_kafka_topic_t *handle = rd_kafka_topic_new(rk, topic, NULL);
	const struct rd_kafka_metadata *found = NULL;
	rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 0, handle, &found, METADATA_MS);

	if (err == RD_KAFKA_RESP_ERR_NO_ERROR && found->topic_cnt == 1)
		err = found->topics[0].err;
	for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < found->topics[0].partition_cnt;
	     i++)
		rd_kafka_topic_partition_list_add(list, topic, found->topics[0].partitions[i].id)
			->offset = RD_KAFKA_OFFSET_STORED;
	if (found != NULL)
		rd_kafka_metadata_destroy(found);
	rd_kafka_topic_destroy(handle);
	return err;
}

/* All partitions, from the group's offsets on. Joining a group would take seconds. */
static void assign_all(struct hx_kafka_source *source)
{
	const struct hx_kafka_place *place = &source->place;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;

	rd_kafka_queue_cb_event_enable(source->queue, hx_kafka_on_event, source);
	for (size_t i = 0; i < place->topic_count && err == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
		err = hx_kafka_add_partitions(source->consumer, place->topics[i], list);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
		hx_kafka_say(source, rd_kafka_err2str(err), true);
	} else {
		take_assignment(source, list, true);
		(void)rd_kafka_assign(source->consumer, list);
	}
	rd_kafka_topic_partition_list_destroy(list);
}

void hx_kafka_subscribe(struct hx_kafka_source *source)
{
	const struct hx_kafka_place *place = &source->place;
	rd_kafka_topic_partition_list_t *topics =
		rd_kafka_topic_partition_list_new((int)place->topic_count);
	rd_kafka_resp_err_t err;

	if (place->is_letters) {
		rd_kafka_topic_partition_list_destroy(topics);
		assign_all(source);
		return;
	}
	for (size_t i = 0; i < place->topic_count; i++)
		(void)rd_kafka_topic_partition_list_add(
			topics, place->topics[i], RD_KAFKA_PARTITION_UA);
	rd_kafka_queue_cb_event_enable(source->queue, hx_kafka_on_event, source);
	err = rd_kafka_subscribe(source->consumer, topics);
	rd_kafka_topic_partition_list_destroy(topics);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		hx_kafka_say(source, rd_kafka_err2str(err), true);
}
