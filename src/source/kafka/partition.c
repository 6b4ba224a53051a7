/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.c - our partitions, and the progress of each.
 */
#include <string.h>

#include "base/alloc.h"
#include "source/kafka/kafka_private.h"

struct hx_kafka_partition *hx_kafka_partition_find(
	struct hx_kafka_source *source, const char *topic, int32_t number)
{
	for (struct hx_kafka_partition *at = source->partitions; at != NULL; at = at->next) {
		if (!at->is_lost && at->number == number && strcmp(at->name, topic) == 0)
			return at;
	}
	return NULL;
}

void hx_kafka_partition_gain(struct hx_kafka_source *source, const char *topic, int32_t number)
{
	struct hx_kafka_partition *partition;

	if (hx_kafka_partition_find(source, topic, number) != NULL)
		return;
	partition = hx_alloc_zero(1, sizeof(*partition));
	/* A handle of the topic keeps its name alive. */
	if (partition != NULL)
		partition->topic = rd_kafka_topic_new(source->consumer, topic, NULL);
	if (partition == NULL || partition->topic == NULL) {
		/* Fatal: the broker counts it as ours, and its messages would be dropped. */
		hx_kafka_say(source, "not enough memory for a partition", true);
		hx_free(partition);
		return;
	}
	partition->name = rd_kafka_topic_name(partition->topic);
	partition->number = number;
	partition->seen = -1;
	hx_low_water_init(&partition->water);
	partition->next = source->partitions;
	source->partitions = partition;
	source->partition_count++;
}

static void free_marks(struct hx_kafka_source *source, struct hx_kafka_partition *partition)
{
	struct hx_mark *mark;

	/* Messages at the consumer live until they are settled, outside of any list. */
	while ((mark = hx_low_water_take(&partition->water)) != NULL) {
		struct hx_kafka_message *message = (struct hx_kafka_message *)(void *)mark;

		/* Settled: done, or given back. */
		if (message->message == NULL)
			hx_kafka_message_free(source, message);
		else
			message->base.flags |= HAPAX_MESSAGE_REVOKED;
	}
}

void hx_kafka_partition_drop_fetched(
	struct hx_kafka_source *source, const char *topic, int32_t number)
{
	for (size_t i = source->batch_next; i < source->batch_count; i++) {
		rd_kafka_message_t *message = source->batch[i];

		if (message == NULL || message->rkt == NULL || message->partition != number ||
		    strcmp(rd_kafka_topic_name(message->rkt), topic) != 0)
			continue;
		rd_kafka_message_destroy(message);
		source->batch[i] = NULL;
	}
}

void hx_kafka_partition_lose(struct hx_kafka_source *source, const char *topic, int32_t number)
{
	struct hx_kafka_partition *partition = hx_kafka_partition_find(source, topic, number);

	if (partition == NULL)
		return;
	hx_kafka_past_cancel(source, partition);
	partition->is_lost = true;
	source->partition_count--;
	free_marks(source, partition);
}

void hx_kafka_partition_tidy(struct hx_kafka_source *source)
{
	struct hx_kafka_partition **at = &source->partitions;

	while (*at != NULL) {
		struct hx_kafka_partition *partition = *at;

		if (!partition->is_lost || partition->out > 0) {
			at = &partition->next;
			continue;
		}
		*at = partition->next;
		rd_kafka_topic_destroy(partition->topic);
		hx_free(partition);
	}
}

void hx_kafka_store_offsets(struct hx_kafka_source *source)
{
	rd_kafka_topic_partition_list_t *list =
		rd_kafka_topic_partition_list_new((int)source->partition_count + 1);

	for (struct hx_kafka_partition *at = source->partitions; at != NULL; at = at->next) {
		if (at->is_lost || !at->is_dirty)
			continue;
		rd_kafka_topic_partition_list_add(list, at->name, at->number)->offset =
			at->water.next;
		at->is_dirty = false;
	}
	if (list->cnt > 0)
		(void)rd_kafka_offsets_store(source->consumer, list);
	/* Refused: librdkafka has not assigned it yet. Retry later, unless it was revoked. */
	for (int i = 0; i < list->cnt; i++) {
		const rd_kafka_topic_partition_t *at = &list->elems[i];
		struct hx_kafka_partition *partition = at->err == RD_KAFKA_RESP_ERR_NO_ERROR
			? NULL
			: hx_kafka_partition_find(source, at->topic, at->partition);

		if (partition != NULL)
			partition->is_dirty = true;
	}
	rd_kafka_topic_partition_list_destroy(list);
}

/* Takes list. */
static void pause(
	struct hx_kafka_source *source, rd_kafka_topic_partition_list_t *list, bool pauses)
{
	if (list->cnt > 0)
		(void)(pauses ? rd_kafka_pause_partitions(source->consumer, list)
			      : rd_kafka_resume_partitions(source->consumer, list));
	rd_kafka_topic_partition_list_destroy(list);
}

void hx_kafka_pause_all(struct hx_kafka_source *source, bool pauses)
{
	rd_kafka_topic_partition_list_t *list;

	if (source->is_paused == pauses)
		return;
	source->is_paused = pauses;
	list = rd_kafka_topic_partition_list_new((int)source->partition_count + 1);
	for (struct hx_kafka_partition *at = source->partitions; at != NULL; at = at->next) {
		if (!at->is_lost && !at->is_resting)
			(void)rd_kafka_topic_partition_list_add(list, at->name, at->number);
	}
	pause(source, list, pauses);
}

void hx_kafka_partition_rest(
	struct hx_kafka_source *source, struct hx_kafka_partition *partition, bool rests)
{
	rd_kafka_topic_partition_list_t *list;

	if (partition->is_resting == rests)
		return;
	partition->is_resting = rests;
	if (source->is_paused)
		return;
	list = rd_kafka_topic_partition_list_new(1);
	(void)rd_kafka_topic_partition_list_add(list, partition->name, partition->number);
	pause(source, list, rests);
}
