/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_session.c - settings, membership of the group, and what librdkafka has to say.
 */
#include <stdio.h>

#include "base/error.h"
#include "source/kafka/kafka_private.h"

/* Before what the URL says, which has the last word. */
static const struct hx_kafka_property defaults[] = {
	{"client.id", "hapax"},
	{"partition.assignment.strategy", "cooperative-sticky"},
	{"auto.commit.interval.ms", "1000"},
	/*
	 * librdkafka rests for a second when it has as many as it wants: we take some 400,000 in that time,
	 * and the queue is not empty. No more, because its size counts values only: a backlog of tombstones
	 * would be fetched whole.
	 */
	{"queued.min.messages", "500000"},
	{"queued.max.messages.kbytes", "32768"},
	{"fetch.wait.max.ms", "100"},
	{"allow.auto.create.topics", "false"},
	{"topic.metadata.refresh.interval.ms", "30000"},
};

static const struct hx_kafka_property producer_defaults[] = {
	{"client.id", "hapax"},
	{"enable.idempotence", "true"},
	{"message.timeout.ms", "30000"},
	{"message.max.bytes", "104857600"},
	{"linger.ms", "5"},
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

/* librdkafka writes to standard error unless it is given something else to do. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk;
	(void)level;
	(void)facility;
	(void)text;
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

/* Where the consumer knows better than the broker. */
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
 * Who knows where it begins knows its past, too. The broker is told: if there is nothing behind it,
 * no acknowledgement will.
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
 * Runs within a poll of the queue. What is given up is first stored as far as it is done;
 * librdkafka commits that before it lets go. With cooperative rebalancing the partitions
 * that stay are not touched.
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
	 * librdkafka keeps the pause of what it gives up: it would come back paused, and nothing would
	 * have it go on. Not when it comes back: what runs then is fetched anew from its beginning.
	 */
	if (!gains)
		(void)rd_kafka_resume_partitions(rk, list);
	for (int i = 0; gains && i < list->cnt; i++)
		begin_partition(source, &list->elems[i]);
	/* What is new must rest, too. */
	if (gains && (source->is_paused || source->warming > 0)) {
		source->is_paused = false;
		hx_kafka_pause_all(source, true);
	}
}

static enum hapax_status set(
	rd_kafka_conf_t *conf, const char *name, const char *value, struct hapax_error *err)
{
	char why[160];

	if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)) == RD_KAFKA_CONF_OK)
		return HAPAX_OK;
	/* What librdkafka says may hold the value, which may be a secret. */
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "librdkafka did not take property '%.100s'", name);
}

static enum hapax_status set_all(
	rd_kafka_conf_t *conf, const struct hx_kafka_property *properties, size_t count,
	struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = set(conf, properties[i].name, properties[i].value, err);
	return status;
}

/* It is in the group by name only: it asks where the group stands, and reads. */
static enum hapax_status set_rereader(
	rd_kafka_conf_t *conf, const struct hx_kafka_place *place, struct hapax_error *err)
{
	static const struct hx_kafka_property properties[] = {
		{"enable.auto.commit", "false"},
		{"auto.offset.reset", "earliest"},
		{"enable.partition.eof", "true"},
		{"partition.assignment.strategy", "range"},
	};
	enum hapax_status status = set(conf, "group.id", place->group, err);

	if (status == HAPAX_OK)
		status = set_all(conf, properties, sizeof(properties) / sizeof(properties[0]), err);
	return status;
}

static enum hapax_status set_group(
	rd_kafka_conf_t *conf, const struct hx_kafka_place *place, struct hapax_error *err)
{
	enum hapax_status status = set(conf, "group.id", place->group, err);

	if (status == HAPAX_OK && place->instance != NULL)
		status = set(conf, "group.instance.id", place->instance, err);
	if (status == HAPAX_OK)
		status = set(conf, "auto.offset.reset", place->start, err);
	/* The heart of it: only what hx_kafka_store_offsets() says is committed. */
	if (status == HAPAX_OK)
		status = set(conf, "enable.auto.offset.store", "false", err);
	if (status == HAPAX_OK)
		status = set(conf, "enable.auto.commit", "true", err);
	return status;
}

rd_kafka_conf_t *hx_kafka_conf(
	struct hx_kafka_source *source, enum hx_kafka_role role, struct hapax_error *err)
{
	const struct hx_kafka_place *place = &source->place;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	enum hapax_status status = set(conf, "bootstrap.servers", place->servers, err);

	if (status == HAPAX_OK)
		status = role == HX_KAFKA_PRODUCER
			? set_all(conf, producer_defaults,
		                  sizeof(producer_defaults) / sizeof(producer_defaults[0]), err)
			: set_all(conf, defaults, sizeof(defaults) / sizeof(defaults[0]), err);
	if (status == HAPAX_OK)
		status = set_all(conf, place->properties, place->property_count, err);
	if (status == HAPAX_OK && role == HX_KAFKA_MEMBER)
		status = set_group(conf, place, err);
	if (status == HAPAX_OK && role == HX_KAFKA_REREADER)
		status = set_rereader(conf, place, err);
	rd_kafka_conf_set_log_cb(conf, on_log);
	/* The rereader's thread is not the one that these belong to. */
	if (role != HX_KAFKA_REREADER) {
		rd_kafka_conf_set_opaque(conf, source);
		rd_kafka_conf_set_error_cb(conf, on_error);
	}
	if (role == HX_KAFKA_MEMBER)
		rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
	if (status == HAPAX_OK)
		return conf;
	rd_kafka_conf_destroy(conf);
	return NULL;
}

enum hapax_status hx_kafka_connect(struct hx_kafka_source *source, struct hapax_error *err)
{
	rd_kafka_conf_t *conf = hx_kafka_conf(source, HX_KAFKA_MEMBER, err);
	char why[160];

	if (conf == NULL)
		return HAPAX_ERR_INVALID;
	source->consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
	if (source->consumer == NULL) {
		rd_kafka_conf_destroy(conf);
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "librdkafka refused: %s", why);
	}
	(void)rd_kafka_poll_set_consumer(source->consumer);
	source->queue = rd_kafka_queue_get_consumer(source->consumer);
	return HAPAX_OK;
}

void hx_kafka_subscribe(struct hx_kafka_source *source)
{
	const struct hx_kafka_place *place = &source->place;
	rd_kafka_topic_partition_list_t *topics =
		rd_kafka_topic_partition_list_new((int)place->topic_count);
	rd_kafka_resp_err_t err;

	for (size_t i = 0; i < place->topic_count; i++)
		(void)rd_kafka_topic_partition_list_add(
			topics, place->topics[i], RD_KAFKA_PARTITION_UA);
	rd_kafka_queue_cb_event_enable(source->queue, hx_kafka_on_event, source);
	err = rd_kafka_subscribe(source->consumer, topics);
	rd_kafka_topic_partition_list_destroy(topics);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		hx_kafka_say(source, rd_kafka_err2str(err), true);
}
