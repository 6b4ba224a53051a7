/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past.c - the past of partitions, delivered before any new message.
 *
 * Until the past of every partition is done (read, and settled by the consumer), all our partitions
 * pause: the two copies of a repeated message may be in different ones.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "source/kafka/kafka_private.h"

static void wake(void *context)
{
	struct hx_kafka_source *source = context;

	hx_kafka_on_event(NULL, source);
}

enum hapax_status hx_kafka_past_open(struct hx_kafka_source *source, struct hapax_error *err)
{
	const struct hx_kafka_place *place = &source->place;

	if (place->warm_up_ms == 0 && place->warm_up_count == 0)
		return HAPAX_OK;
	source->rereader = hx_alloc_zero(1, sizeof(*source->rereader));
	if (source->rereader == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	hx_rereader_init(source->rereader, place->warm_up_ms, place->warm_up_count);
	return HAPAX_OK;
}

void hx_kafka_past_close(struct hx_kafka_source *source)
{
	if (source->rereader == NULL)
		return;
	hx_rereader_done(source->rereader);
	hx_free(source->rereader);
	source->rereader = NULL;
}

/* Start with the first partition: a source that never runs needs no second connection. */
static bool start(struct hx_kafka_source *source, struct hapax_error *err)
{
	rd_kafka_conf_t *conf;

	if (source->rereader->rk != NULL)
		return true;
	conf = hx_kafka_conf(source, HX_KAFKA_REREADER, err);
	return conf != NULL &&
		hx_rereader_start(source->rereader, conf, wake, source, err) == HAPAX_OK;
}

void hx_kafka_past_begin(struct hx_kafka_source *source, struct hx_kafka_partition *partition)
{
	struct hapax_error err = {.message = "not enough memory"};

	if (source->rereader == NULL || partition == NULL || partition->past_id != 0)
		return;
	if (start(source, &err))
		partition->past_id =
			hx_rereader_ask(source->rereader, partition->name, partition->number);
	/* Fatal: without the warm-up, finished messages could be delivered again. */
	if (partition->past_id == 0)
		hx_kafka_say(source, err.message, true);
	else
		source->warming++;
}

static void end(struct hx_kafka_source *source, struct hx_kafka_partition *partition)
{
	partition->past_id = 0;
	partition->is_past_read = false;
	source->warming--;
}

void hx_kafka_past_cancel(struct hx_kafka_source *source, struct hx_kafka_partition *partition)
{
	if (partition->past_id == 0)
		return;
	/* NULL at the end: it is freed before the partitions. */
	if (source->rereader != NULL)
		hx_rereader_cancel(source->rereader, partition->past_id);
	end(source, partition);
}

static struct hx_kafka_partition *find(struct hx_kafka_source *source, uint64_t id)
{
	for (struct hx_kafka_partition *at = source->partitions; at != NULL; at = at->next) {
		if (!at->is_lost && at->past_id == id)
			return at;
	}
	return NULL;
}

static void end_if_done(struct hx_kafka_source *source, struct hx_kafka_partition *partition)
{
	if (partition->past_id != 0 && partition->is_past_read && partition->past_out == 0)
		end(source, partition);
}

void hx_kafka_past_settled(struct hx_kafka_source *source, struct hx_kafka_message *message)
{
	if (!message->is_past)
		return;
	message->partition->past_out--;
	end_if_done(source, message->partition);
}

void hx_kafka_past_tick(struct hx_kafka_source *source)
{
	char why[HX_REREADER_WHY_SIZE];
	uint64_t id;

	if (source->rereader == NULL)
		return;
	if (hx_rereader_failed(source->rereader, why))
		hx_kafka_say(source, why, false);
	while ((id = hx_rereader_over(source->rereader)) != 0) {
		struct hx_kafka_partition *partition = find(source, id);

		if (partition == NULL)
			continue;
		partition->is_past_read = true;
		end_if_done(source, partition);
	}
}

struct hx_kafka_message *hx_kafka_past_next(struct hx_kafka_source *source)
{
	rd_kafka_message_t *from;
	uint64_t id;

	while ((from = hx_rereader_next(source->rereader, &id)) != NULL) {
		struct hx_kafka_partition *partition = find(source, id);
		struct hx_kafka_message *message = NULL;

		if (partition != NULL)
			message = hx_kafka_message_new(source, partition, from);
		if (message != NULL) {
			message->is_past = true;
			message->base.flags |= HAPAX_MESSAGE_WARM_UP;
			partition->past_out++;
			return message;
		}
		rd_kafka_message_destroy(from);
	}
	return NULL;
}
