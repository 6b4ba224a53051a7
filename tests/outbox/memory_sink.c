/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/memory_sink.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

struct memory_sink {
	struct hx_sink base;
	struct memory_log *log;
};

void memory_log_init(struct memory_log *log)
{
	memset(log, 0, sizeof(*log));
	hx_mutex_init(&log->mutex);
}

size_t memory_log_find(struct memory_log *log, const char *id, size_t *ret_first)
{
	size_t found = 0;

	for (size_t i = log->count; i > 0; i--) {
		if (strcmp(log->messages[i - 1].id, id) != 0)
			continue;
		found++;
		if (ret_first != NULL)
			*ret_first = i - 1;
	}
	return found;
}

static void copy(char out[MEMORY_SINK_TEXT], struct hapax_bytes text)
{
	(void)snprintf(
		out, MEMORY_SINK_TEXT, "%.*s", (int)text.size,
		text.data == NULL ? "" : (const char *)text.data);
}

static bool begins(struct hapax_bytes text, const char *with)
{
	return text.size >= strlen(with) && memcmp(text.data, with, strlen(with)) == 0;
}

static void take(struct memory_log *log, struct hx_outbox_row *row)
{
	if (!log->is_tolerant && begins(row->topic, "fail")) {
		hx_sink_decide(row, HX_OUTBOX_FAILED, "told to \"fail\" \\ once more");
	} else if (!log->is_tolerant && begins(row->topic, "bad")) {
		hx_sink_decide(row, HX_OUTBOX_REFUSED, "told to refuse");
	} else if (begins(row->topic, "garbled")) {
		hx_sink_decide(row, HX_OUTBOX_REFUSED, "it said '\xff\x01 \xc3\xa4', then \xe2");
	} else if (begins(row->topic, "silent") || begins(row->topic, "unsent")) {
		row->is_awaited = begins(row->topic, "silent");
	} else if (log->count < MEMORY_SINK_MAX) {
		copy(log->messages[log->count].id, row->id);
		copy(log->messages[log->count].key, row->ordering_key);
		copy(log->messages[log->count].payload, row->payload);
		log->count++;
		row->outcome = HX_OUTBOX_SENT;
	}
}

static enum hapax_status sink_publish(
	struct hx_sink *base, struct hx_outbox_row **rows, size_t count, int64_t deadline_ns,
	struct hapax_error *err)
{
	struct memory_log *log = ((struct memory_sink *)base)->log;
	struct hx_event never = {0};
	int64_t now_ns = hx_clock_mono_ns();
	bool is_away, is_silent = false, is_slow = false;

	hx_mutex_lock(&log->mutex);
	log->publishes++;
	if (count > log->calls_max)
		log->calls_max = count;
	is_away = log->away > 0;
	log->away -= is_away;
	/* Unavailable after half of them were taken; the relay does not know. */
	for (size_t i = 0; i < (is_away ? count / 2 : count); i++)
		take(log, rows[i]);
	for (size_t i = 0; i < count && is_away; i++)
		rows[i]->outcome = HX_OUTBOX_UNDECIDED;
	hx_mutex_unlock(&log->mutex);
	for (size_t i = 0; i < count && !is_away; i++) {
		is_silent = is_silent || rows[i]->outcome == HX_OUTBOX_UNDECIDED;
		is_slow = is_slow || begins(rows[i]->topic, "slow");
	}
	if (is_slow)
		(void)hx_event_wait_until_ns(&never, now_ns + (deadline_ns - now_ns) / 2);
	if (is_silent) {
		(void)hx_event_wait_until_ns(&never, deadline_ns);
		return hx_error_set(err, HAPAX_ERR_UNAVAILABLE, 0, "no answer in time");
	}
	return is_away ? hx_error_set(err, HAPAX_ERR_UNAVAILABLE, 0, "the sink is away") : HAPAX_OK;
}

static enum hapax_status sink_connect(struct hx_sink *sink, struct hapax_error *err)
{
	(void)sink;
	(void)err;
	return HAPAX_OK;
}

static void sink_close(struct hx_sink *sink)
{
	(void)sink;
}

static const struct hx_sink_ops memory_ops = {
	.connect = sink_connect,
	.publish = sink_publish,
	.keep_alive = sink_connect,
	.close = sink_close,
};

struct hx_sink *memory_sink_new(struct memory_log *log)
{
	struct memory_sink *sink = hx_alloc_zero(1, sizeof(*sink));

	if (sink == NULL)
		return NULL;
	sink->base.ops = &memory_ops;
	sink->log = log;
	return &sink->base;
}
