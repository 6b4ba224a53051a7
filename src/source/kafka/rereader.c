/* SPDX-License-Identifier: Apache-2.0 */
#include "source/kafka/rereader.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "broker/kafka_client.h"

enum {
	ASK_MS = 2000,   /* for one answer of the broker; then ask again */
	POLL_MS = 100,   /* how long a cancel may go unnoticed */
	PAUSE_MS = 500,  /* after a refused question */
	PARTS_MAX = 256, /* read at once */
};

/* The partitions of one round. For the rereader's thread only. */
struct round {
	struct hx_rereader *rereader;
	struct hx_past *pasts[PARTS_MAX]; /* NULL: over */
	size_t count;
	size_t left;
};

void hx_rereader_init(struct hx_rereader *rereader, int64_t span_ms, int64_t span_count)
{
	memset(rereader, 0, sizeof(*rereader));
	rereader->span_ms = span_ms;
	rereader->span_count = span_count;
	hx_mutex_init(&rereader->mutex);
	hx_cond_init(&rereader->cond);
}

static bool is_stopped(struct hx_rereader *rereader)
{
	bool result;

	hx_mutex_lock(&rereader->mutex);
	result = rereader->is_stopped;
	hx_mutex_unlock(&rereader->mutex);
	return result;
}

static void say(struct hx_rereader *rereader, const char *what, const char *why)
{
	hx_mutex_lock(&rereader->mutex);
	(void)snprintf(rereader->why, sizeof(rereader->why), "warm-up: %s: %s", what, why);
	hx_mutex_unlock(&rereader->mutex);
	rereader->wake(rereader->wake_context);
}

/* The broker did not answer: report it, and back off. */
static void say_and_pause(struct hx_rereader *rereader, const char *what, rd_kafka_resp_err_t err)
{
	int64_t until_ns = hx_clock_mono_ns() + PAUSE_MS * HX_NS_PER_MS;
	bool goes_on = true;

	say(rereader, what, rd_kafka_err2str(err));
	hx_mutex_lock(&rereader->mutex);
	while (goes_on && !rereader->is_stopped)
		goes_on = hx_cond_wait_until_ns(&rereader->cond, &rereader->mutex, until_ns);
	hx_mutex_unlock(&rereader->mutex);
}

/* Locks: mutex held. The past is read; the caller wakes the waiting thread. */
static void end_past(struct round *round, size_t index)
{
	round->pasts[index]->is_over = true;
	round->pasts[index] = NULL;
	round->left--;
}

static void end_one(struct round *round, size_t index)
{
	struct hx_rereader *rereader = round->rereader;

	hx_mutex_lock(&rereader->mutex);
	end_past(round, index);
	hx_mutex_unlock(&rereader->mutex);
	rereader->wake(rereader->wake_context);
}

/* Drop canceled pasts, or all of them at the end. */
static void drop_cancelled(struct round *round)
{
	struct hx_rereader *rereader = round->rereader;
	size_t before = round->left;

	hx_mutex_lock(&rereader->mutex);
	for (size_t i = 0; i < round->count; i++) {
		if (round->pasts[i] != NULL &&
		    (round->pasts[i]->is_cancelled || rereader->is_stopped))
			end_past(round, i);
	}
	hx_mutex_unlock(&rereader->mutex);
	if (round->left != before)
		rereader->wake(rereader->wake_context);
}

/*
 * The rest of the round, with an offset each. A time in its place asks for the first message that
 * is not older.
 */
static rd_kafka_topic_partition_list_t *list_of(const struct round *round, bool by_time)
{
	rd_kafka_topic_partition_list_t *list =
		rd_kafka_topic_partition_list_new((int)round->count);

	for (size_t i = 0; i < round->count; i++) {
		const struct hx_past *past = round->pasts[i];

		if (past != NULL)
			rd_kafka_topic_partition_list_add(list, past->topic, past->number)->offset =
				by_time ? past->time_ms : past->from;
	}
	return list;
}

static int find(const struct round *round, const char *topic, int32_t number)
{
	for (size_t i = 0; i < round->count; i++) {
		const struct hx_past *past = round->pasts[i];

		if (past != NULL && past->number == number && strcmp(past->topic, topic) == 0)
			return (int)i;
	}
	return -1;
}

/*
 * Whether the log reaches the committed offset. A log that was truncated or created again has other
 * messages at these offsets, which are not done.
 */
static bool is_there(struct round *round, size_t index)
{
	const struct hx_past *past = round->pasts[index];
	int64_t first = 0, end = 0;
	rd_kafka_resp_err_t err;

	do {
		err = rd_kafka_query_watermark_offsets(
			round->rereader->rk, past->topic, past->number, &first, &end, ASK_MS);
		if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
			say_and_pause(round->rereader, "the end of a partition", err);
	} while (err != RD_KAFKA_RESP_ERR_NO_ERROR && !is_stopped(round->rereader));
	return err == RD_KAFKA_RESP_ERR_NO_ERROR && past->end <= end;
}

/* Find the group's committed offsets. Without one, there is no past. */
static void find_ends(struct round *round)
{
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__IN_PROGRESS;
	rd_kafka_topic_partition_list_t *list = list_of(round, false);

	while (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
		drop_cancelled(round);
		if (round->left == 0)
			break;
		err = rd_kafka_committed(round->rereader->rk, list, ASK_MS);
		for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++)
			err = list->elems[i].err;
		if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
			say_and_pause(round->rereader, "committed offsets", err);
	}
	for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
		const rd_kafka_topic_partition_t *at = &list->elems[i];
		int index = find(round, at->topic, at->partition);

		if (index < 0)
			continue;
		round->pasts[index]->end = at->offset;
		round->pasts[index]->from = at->offset - round->rereader->span_count;
		if (round->pasts[index]->from < 0)
			round->pasts[index]->from = 0;
		if (at->offset <= 0 || !is_there(round, (size_t)index))
			end_one(round, (size_t)index);
	}
	rd_kafka_topic_partition_list_destroy(list);
}

/* Pass on a message; waits while the ring is full. False: canceled. */
static bool hand_over(struct round *round, size_t index, rd_kafka_message_t *message)
{
	struct hx_rereader *rereader = round->rereader;
	struct hx_past *past = round->pasts[index];
	bool is_wanted;

	hx_mutex_lock(&rereader->mutex);
	while (rereader->ring_count == HX_REREADER_RING && !rereader->is_stopped)
		hx_cond_wait(&rereader->cond, &rereader->mutex);
	is_wanted = !past->is_cancelled && !rereader->is_stopped;
	if (is_wanted) {
		size_t at = (rereader->ring_first + rereader->ring_count) % HX_REREADER_RING;

		rereader->ring[at].message = message;
		rereader->ring[at].past = past;
		rereader->ring_count++;
		past->queued++;
	}
	if (!is_wanted || message->offset >= past->end - 1)
		end_past(round, index);
	hx_mutex_unlock(&rereader->mutex);
	rereader->wake(rereader->wake_context);
	return is_wanted;
}

/* Process a message of the round. True: passed on. */
static bool take_message(struct round *round, size_t index, rd_kafka_message_t *message)
{
	/* Before the start: that offset did not exist, and librdkafka reset the reader. */
	if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF ||
	    message->offset >= round->pasts[index]->end ||
	    message->offset < round->pasts[index]->from) {
		end_one(round, index);
		return false;
	}
	return hand_over(round, index, message);
}

static void take_time(struct round *round, size_t index, rd_kafka_message_t *message)
{
	struct hx_past *past = round->pasts[index];
	rd_kafka_timestamp_type_t type;

	if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
		/* The message is gone, unless its time is known and others are still awaited. */
		if (past->time_ms < 0)
			end_one(round, index);
		return;
	}
	if (past->time_ms >= 0)
		return;
	past->time_ms = rd_kafka_message_timestamp(message, &type) - round->rereader->span_ms;
	if (past->time_ms < 0)
		past->time_ms = 0;
}

static bool knows_times(const struct round *round)
{
	for (size_t i = 0; i < round->count; i++) {
		if (round->pasts[i] != NULL && round->pasts[i]->time_ms < 0)
			return false;
	}
	return true;
}

/* Read each from its start until all are over, or all times are known. */
static void read_all(struct round *round, bool for_times)
{
	rd_kafka_t *rk = round->rereader->rk;
	rd_kafka_topic_partition_list_t *list = list_of(round, false);

	(void)rd_kafka_assign(rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	while (round->left > 0 && !(for_times && knows_times(round))) {
		rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, POLL_MS);
		bool is_event = message == NULL || message->rkt == NULL;
		int index = is_event
			? -1
			: find(round, rd_kafka_topic_name(message->rkt), message->partition);

		drop_cancelled(round);
		if (index >= 0 && round->pasts[index] == NULL)
			index = -1;
		if (message != NULL && message->err != RD_KAFKA_RESP_ERR_NO_ERROR &&
		    message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
			say(round->rereader, "reading", rd_kafka_message_errstr(message));
		else if (index >= 0 && for_times)
			take_time(round, (size_t)index, message);
		else if (index >= 0 && take_message(round, (size_t)index, message))
			message = NULL;
		if (message != NULL)
			rd_kafka_message_destroy(message);
	}
	(void)rd_kafka_assign(rk, NULL);
}

/* Start a span before the time of the last message before the end. */
static void find_beginnings(struct round *round)
{
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__IN_PROGRESS;
	rd_kafka_topic_partition_list_t *list;

	for (size_t i = 0; i < round->count; i++) {
		if (round->pasts[i] != NULL)
			round->pasts[i]->from = round->pasts[i]->end - 1;
	}
	read_all(round, true);
	while (err != RD_KAFKA_RESP_ERR_NO_ERROR && round->left > 0) {
		list = list_of(round, true);
		err = rd_kafka_offsets_for_times(round->rereader->rk, list, ASK_MS);
		for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
			const rd_kafka_topic_partition_t *at = &list->elems[i];
			int index = find(round, at->topic, at->partition);

			if (index < 0 || at->offset >= round->pasts[index]->end)
				continue;
			/* The broker does not know: read everything. */
			round->pasts[index]->from = at->offset < 0 ? 0 : at->offset;
		}
		rd_kafka_topic_partition_list_destroy(list);
		if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
			say_and_pause(round->rereader, "offsets of a time", err);
		drop_cancelled(round);
	}
}

static void read_round(struct round *round)
{
	find_ends(round);
	if (round->rereader->span_ms > 0 && round->left > 0)
		find_beginnings(round);
	if (round->left > 0)
		read_all(round, false);
}

/* Locks: mutex held. */
static void take_asked(struct round *round)
{
	round->count = 0;
	for (struct hx_past *at = round->rereader->pasts; at != NULL; at = at->next) {
		if (at->is_taken || at->is_over || round->count == PARTS_MAX)
			continue;
		at->is_taken = true;
		round->pasts[round->count++] = at;
	}
	round->left = round->count;
}

static void rereader_run(void *arg)
{
	struct round round = {.rereader = arg};
	struct hx_rereader *rereader = arg;

	while (!is_stopped(rereader)) {
		hx_mutex_lock(&rereader->mutex);
		take_asked(&round);
		while (round.count == 0 && !rereader->is_stopped) {
			hx_cond_wait(&rereader->cond, &rereader->mutex);
			take_asked(&round);
		}
		hx_mutex_unlock(&rereader->mutex);
		read_round(&round);
	}
}

enum hapax_status hx_rereader_start(
	struct hx_rereader *rereader, rd_kafka_conf_t *conf, void (*wake)(void *context),
	void *wake_context, struct hapax_error *err)
{
	enum hapax_status status;

	assert(rereader->rk == NULL);
	rereader->wake = wake;
	rereader->wake_context = wake_context;
	rereader->rk = hx_kafka_client_new(RD_KAFKA_CONSUMER, conf, err);
	if (rereader->rk == NULL)
		return HAPAX_ERR_INVALID;
	(void)rd_kafka_poll_set_consumer(rereader->rk);
	status = hx_thread_start(&rereader->thread, rereader_run, rereader, "hapax-warm-up", err);
	rereader->is_started = status == HAPAX_OK;
	return status;
}

static void free_past(struct hx_past *past)
{
	hx_free(past->topic);
	hx_free(past);
}

void hx_rereader_done(struct hx_rereader *rereader)
{
	uint64_t id;
	rd_kafka_message_t *message;

	hx_mutex_lock(&rereader->mutex);
	rereader->is_stopped = true;
	hx_cond_signal(&rereader->cond);
	hx_mutex_unlock(&rereader->mutex);
	if (rereader->is_started)
		hx_thread_join(&rereader->thread);
	while ((message = hx_rereader_next(rereader, &id)) != NULL)
		rd_kafka_message_destroy(message);
	while (rereader->pasts != NULL) {
		struct hx_past *past = rereader->pasts;

		rereader->pasts = past->next;
		free_past(past);
	}
	if (rereader->rk != NULL)
		rd_kafka_destroy_flags(rereader->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	hx_cond_done(&rereader->cond);
	hx_mutex_done(&rereader->mutex);
}

uint64_t hx_rereader_ask(struct hx_rereader *rereader, const char *topic, int32_t number)
{
	struct hx_past *past = hx_alloc_zero(1, sizeof(*past));

	if (past != NULL)
		past->topic = hx_alloc_text(topic);
	if (past == NULL || past->topic == NULL) {
		hx_free(past);
		return 0;
	}
	past->number = number;
	past->time_ms = -1;
	past->id = ++rereader->last_id;
	hx_mutex_lock(&rereader->mutex);
	past->next = rereader->pasts;
	rereader->pasts = past;
	hx_cond_signal(&rereader->cond);
	hx_mutex_unlock(&rereader->mutex);
	return past->id;
}

void hx_rereader_cancel(struct hx_rereader *rereader, uint64_t id)
{
	hx_mutex_lock(&rereader->mutex);
	for (struct hx_past *at = rereader->pasts; at != NULL; at = at->next) {
		if (at->id != id)
			continue;
		at->is_cancelled = true;
		if (!at->is_taken)
			at->is_over = true;
	}
	hx_mutex_unlock(&rereader->mutex);
}

rd_kafka_message_t *hx_rereader_next(struct hx_rereader *rereader, uint64_t *ret_id)
{
	rd_kafka_message_t *message = NULL;

	hx_mutex_lock(&rereader->mutex);
	if (rereader->ring_count > 0) {
		struct hx_past *past = rereader->ring[rereader->ring_first].past;

		message = rereader->ring[rereader->ring_first].message;
		*ret_id = past->id;
		past->queued--;
		rereader->ring_first = (rereader->ring_first + 1) % HX_REREADER_RING;
		if (rereader->ring_count-- == HX_REREADER_RING)
			hx_cond_signal(&rereader->cond);
	}
	hx_mutex_unlock(&rereader->mutex);
	return message;
}

uint64_t hx_rereader_over(struct hx_rereader *rereader)
{
	struct hx_past **at, *past = NULL;
	uint64_t id = 0;

	hx_mutex_lock(&rereader->mutex);
	for (at = &rereader->pasts; *at != NULL; at = &(*at)->next) {
		if ((*at)->is_over && (*at)->queued == 0)
			break;
	}
	past = *at;
	if (past != NULL)
		*at = past->next;
	hx_mutex_unlock(&rereader->mutex);
	if (past != NULL) {
		id = past->id;
		free_past(past);
	}
	return id;
}

bool hx_rereader_failed(struct hx_rereader *rereader, char ret_why[HX_REREADER_WHY_SIZE])
{
	bool has_failed;

	hx_mutex_lock(&rereader->mutex);
	has_failed = rereader->why[0] != '\0';
	if (has_failed)
		(void)snprintf(ret_why, HX_REREADER_WHY_SIZE, "%s", rereader->why);
	rereader->why[0] = '\0';
	hx_mutex_unlock(&rereader->mutex);
	return has_failed;
}
