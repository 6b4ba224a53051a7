/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_outbox.c - GET /outbox, POST /outbox/{id}/retry and /park: the outbox that the daemon relays.
 *
 * Each request opens its own connection to the database, on a thread that nothing else waits for.
 * If the database is down, only requests about it wait.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/outbox.h>

#include "api/api_request.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/utf8.h"
#include "config/config.h"

enum { LIMIT_DEFAULT = 100, LISTS_MAX = 8 * 1024 * 1024 };

/* In the order of the table's parameters. */
enum { VALUE_LIMIT };

/* A request and its result. */
struct task {
	struct hx_config *config; /* kept */
	struct hapax_relay_stats stats;
	struct hapax_error trouble;
	struct hapax_outbox_status backlog;
	struct hapax_buf relays; /* members of an array */
	struct hapax_buf events;
	struct hx_json_write json; /* for one of them */
	uint64_t limit;
	char id[HAPAX_OUTBOX_ID_SIZE];
	bool is_retry;
	enum hapax_status status; /* of the change: a failure is audited, too */
	uint64_t changed;
	bool is_there;
};

static void task_done(void *extra)
{
	struct task *task = extra;

	hx_config_release(task->config);
	hx_buf_done(&task->relays);
	hx_buf_done(&task->events);
}

/* NULL: already answered. */
static struct task *task_new(struct hx_api_request *request)
{
	const struct hx_api_options *options = &request->api->options;
	struct task *task = hx_api_extra(request, sizeof(*task), task_done);

	if (task == NULL)
		return NULL;
	hx_buf_init(&task->relays, LISTS_MAX);
	hx_buf_init(&task->events, LISTS_MAX);
	task->backlog = (struct hapax_outbox_status)HAPAX_OUTBOX_STATUS_INIT;
	task->stats = (struct hapax_relay_stats)HAPAX_RELAY_STATS_INIT;
	if (options->outbox == NULL ||
	    !options->outbox(options->context, &task->stats, &task->trouble)) {
		hx_api_problem(
			request, 404, HX_API_PROBLEM("no-outbox"),
			"this daemon relays no outbox; set outbox.url and outbox.sink in its "
			"configuration");
		return NULL;
	}
	task->config = hx_config_current_keep(options->current);
	return task;
}

/* ------------------------------------------------------------------ GET */

static struct hapax_bytes value_of(const struct hapax_field *fields, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (hx_bytes_equal(fields[i].name, hapax_bytes_from_text(name)))
			return fields[i].value;
	}
	return hx_bytes(NULL, 0);
}

static int64_t number_of(const struct hapax_field *fields, size_t count, const char *name)
{
	struct hapax_bytes value = value_of(fields, count, name);
	char text[24];

	(void)snprintf(
		text, sizeof(text), "%.*s", (int)value.size,
		value.data == NULL ? "" : (const char *)value.data);
	return strtoll(text, NULL, 10);
}

static int take_relay(void *context, const struct hapax_field *fields, size_t count)
{
	struct task *task = context;
	struct hx_json_write *json = &task->json;

	hx_json_write_begin(json, NULL, '{');
	hx_json_write_bytes(json, "owner", value_of(fields, count, "owner"));
	hx_json_write_signed(json, "partitions", number_of(fields, count, "partitions"));
	hx_json_write_time(json, "lease_ends_at", number_of(fields, count, "until_ms"));
	hx_json_write_end(json, '}');
	return json->status != HAPAX_OK;
}

static int take_event(void *context, const struct hapax_field *fields, size_t count)
{
	static const char *const texts[] = {"id", "topic", "ordering_key", "error"};
	struct task *task = context;
	struct hx_json_write *json = &task->json;

	if (task->limit == 0)
		return 1;
	task->limit--;
	hx_json_write_begin(json, NULL, '{');
	for (size_t i = 0; i < HX_COUNT(texts); i++) {
		struct hapax_bytes value = value_of(fields, count, texts[i]);

		if (value.data == NULL)
			hx_json_write_null(json, texts[i]);
		else
			hx_json_write_bytes(json, texts[i], value);
	}
	hx_json_write_signed(json, "attempts", number_of(fields, count, "attempts"));
	hx_json_write_end(json, '}');
	return json->status != HAPAX_OK;
}

static enum hapax_status list(
	struct task *task, struct hapax_outbox *outbox, struct hapax_error *err)
{
	enum hapax_status status;

	hx_json_write_init(&task->json, &task->relays);
	hx_json_write_begin(&task->json, NULL, '[');
	status = hapax_outbox_relays(outbox, take_relay, task, err);
	hx_json_write_end(&task->json, ']');
	if (status == HAPAX_OK)
		status = task->json.status;
	if (status != HAPAX_OK)
		return status;
	hx_json_write_init(&task->json, &task->events);
	hx_json_write_begin(&task->json, NULL, '[');
	/* The parked ones. */
	status = hapax_outbox_find(outbox, "state", HX_BYTES_LIT("2"), take_event, task, err);
	hx_json_write_end(&task->json, ']');
	return status == HAPAX_OK ? task->json.status : status;
}

/* Threads: the worker's. */
static void ask(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct task *task = request->extra;
	struct hapax_outbox *outbox = NULL;

	request->status = hapax_outbox_open(task->config->outbox.url, &outbox, &request->err);
	if (request->status == HAPAX_OK)
		request->status = hapax_outbox_backlog(outbox, &task->backlog, &request->err);
	if (request->status == HAPAX_OK)
		request->status = list(task, outbox, &request->err);
	hapax_outbox_close(outbox);
}

static void write_relay(struct hx_json_write *json, const struct task *task)
{
	const struct hapax_relay_stats *stats = &task->stats;

	hx_json_write_begin(json, "relay", '{');
	hx_json_write_text(
		json, "state", task->trouble.status == HAPAX_OK ? "running" : "degraded");
	if (task->trouble.status == HAPAX_OK)
		hx_json_write_null(json, "reason");
	else
		hx_json_write_text(json, "reason", task->trouble.message);
	hx_json_write_unsigned(json, "published", stats->published);
	hx_json_write_unsigned(json, "retried", stats->retried);
	hx_json_write_unsigned(json, "parked", stats->parked);
	hx_json_write_unsigned(json, "outages", stats->outages);
	hx_json_write_unsigned(json, "batches", stats->batches);
	hx_json_write_unsigned(json, "partitions", stats->partitions);
	hx_json_write_signed(json, "publish_delay_ms", stats->lag_ms);
	hx_json_write_end(json, '}');
}

static void on_asked(struct hx_api_request *request)
{
	struct task *task = request->extra;
	const struct hapax_outbox_status *backlog = &task->backlog;
	struct hx_json_write json;

	hx_api_json(request, &json);
	hx_json_write_unsigned(&json, "pending", backlog->pending);
	hx_json_write_unsigned(&json, "retrying", backlog->retrying);
	hx_json_write_unsigned(&json, "waiting", backlog->waiting);
	hx_json_write_unsigned(&json, "parked", backlog->parked);
	hx_json_write_unsigned(&json, "parked_keys", backlog->parked_keys);
	hx_json_write_signed(&json, "oldest_ms", backlog->oldest_ms);
	hx_json_write_unsigned(&json, "partitions", backlog->partitions);
	write_relay(&json, task);
	hx_json_write_raw(&json, "relays", hapax_buf_bytes(&task->relays));
	hx_json_write_raw(&json, "events", hapax_buf_bytes(&task->events));
	hx_api_reply_json(request, &json);
}

void hx_api_get_outbox(struct hx_api_request *request)
{
	const struct hx_api_value *limit = &request->values[VALUE_LIMIT];
	struct task *task = task_new(request);

	if (task == NULL)
		return;
	task->limit = limit->is_given ? (uint64_t)limit->number : LIMIT_DEFAULT;
	hx_api_work(request, &request->api->outbox_worker, ask, on_asked);
}

/* ------------------------------------------------------------------ POST */

static int note_row(void *context, const struct hapax_field *fields, size_t count)
{
	struct task *task = context;

	(void)fields;
	(void)count;
	task->is_there = true;
	return 1;
}

/* Threads: the worker's. */
static void change(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct task *task = request->extra;
	struct hapax_outbox *outbox = NULL;

	task->status = hapax_outbox_open(task->config->outbox.url, &outbox, &request->err);
	if (task->status == HAPAX_OK && task->is_retry)
		task->status =
			hapax_outbox_retry(outbox, task->id, NULL, &task->changed, &request->err);
	else if (task->status == HAPAX_OK)
		task->status = hapax_outbox_park(outbox, task->id, &task->changed, &request->err);
	if (task->status == HAPAX_OK && task->changed == 0)
		task->status = hapax_outbox_find(
			outbox, "id", hapax_bytes_from_text(task->id), note_row, task,
			&request->err);
	hapax_outbox_close(outbox);
}

static const char *outcome_of(const struct task *task)
{
	if (task->status != HAPAX_OK)
		return hapax_status_name(task->status);
	if (task->changed > 0)
		return "applied";
	return task->is_there ? "refused" : "absent";
}

static void write_audit(struct hx_json_write *json, const struct hx_api_request *request)
{
	const struct task *task = request->extra;

	hx_json_write_text(json, "id", task->id);
}

static void on_changed(struct hx_api_request *request)
{
	const struct task *task = request->extra;
	struct hx_json_write json;

	hx_api_audit_detail(
		request, task->is_retry ? "outbox.retry" : "outbox.park", outcome_of(task),
		write_audit);
	if (task->status != HAPAX_OK) {
		hx_api_fail(request, task->status, request->err.message);
		return;
	}
	if (task->changed == 0) {
		if (!task->is_there)
			hx_api_problem(request, 404, NULL, "the outbox has no event with that id");
		else
			hx_api_problem(
				request, 409, HX_API_PROBLEM("refused"), "%s",
				task->is_retry
					? "the event is not parked; there is nothing to retry"
					: "the event was already sent or is already parked");
		return;
	}
	hx_api_json(request, &json);
	hx_json_write_text(&json, "outcome", "applied");
	hx_json_write_text(&json, "id", task->id);
	hx_api_reply_json(request, &json);
}

void hx_api_post_outbox(struct hx_api_request *request)
{
	struct hapax_bytes id = request->names[0];
	char fault[HX_UTF8_FAULT_SIZE];
	struct task *task;

	if (hx_utf8_fault(id, HAPAX_OUTBOX_ID_SIZE - 1, fault)) {
		hx_api_problem(request, 400, NULL, "the id %s", fault);
		return;
	}
	task = task_new(request);
	if (task == NULL)
		return;
	memcpy(task->id, id.data, id.size);
	task->is_retry = request->route->use == HX_OUTBOX_RETRY;
	hx_api_work(request, &request->api->outbox_worker, change, on_changed);
}
