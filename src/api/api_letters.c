/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_letters.c - GET /consumers/{name}/dead-letters and POST /consumers/{name}/retry.
 *
 * Each request reads the dead letters from the broker (source/letter/letters.h), on a thread that
 * nothing else waits for.
 */
#include <stdio.h>
#include <string.h>

#include "api/api_request.h"
#include "base/bytes.h"
#include "config/config.h"
#include "source/letter/letters.h"

enum {
	LIMIT_DEFAULT = 100,
	LIST_SIZE_MAX = 8 * 1024 * 1024,
	/* Of one payload in a list. */
	DATA_SIZE_MAX = 64 * 1024,
	TEXT_SIZE_MAX = 64 * 1024,
};

/* In the order of the table's parameters. */
enum { VALUE_LIMIT, VALUE_MATCH };

#define AT(member) .offset = offsetof(struct hx_retry_json, member)
static const struct hx_json_field retry_fields[] = {
	{"ids", HX_JSON_FIELD_TEXT, .uses = HX_JSON_FIELD_ALWAYS, AT(ids), .min = 1,
	 .max = TEXT_SIZE_MAX, .doc = "only letters with these ids, separated by commas"},
	{"match", HX_JSON_FIELD_TEXT, .uses = HX_JSON_FIELD_ALWAYS, AT(match), .min = 1,
	 .max = TEXT_SIZE_MAX,
	 .doc = "only letters whose reason, error, key or place has this text"},
	{"all", HX_JSON_FIELD_BOOLEAN, .uses = HX_JSON_FIELD_ALWAYS, AT(all),
	 .doc = "all letters, if neither ids nor match is given"},
	{.name = NULL},
};
#undef AT
const struct hx_json_section hx_retry_json_section = {
	"the body", .fields = retry_fields, .given_offset = offsetof(struct hx_retry_json, given)};

/* A request and its result. */
struct task {
	struct hx_config *config; /* kept */
	struct hx_letters letters;
	struct hapax_bytes ids; /* empty: any */
	struct hapax_bytes match;
	uint64_t limit;
	struct hapax_buf list; /* members of an array */
	struct hx_json_write json;
	bool has_more; /* the list ended at the limit, or at its size */
	struct hx_letters_sum sum;
	enum hapax_status status; /* of a retry: a failure is audited, too */
};

static void task_done(void *extra)
{
	struct task *task = extra;

	hx_config_release(task->config);
	hx_buf_done(&task->list);
}

/* NULL: already answered. */
static struct task *task_new(struct hx_api_request *request)
{
	const struct hx_api_options *options = &request->api->options;
	struct task *task = hx_api_extra(request, sizeof(*task), task_done);
	const struct hx_config_consumer *consumer;

	if (task == NULL)
		return NULL;
	hx_buf_init(&task->list, LIST_SIZE_MAX);
	task->config = hx_config_current_keep(options->current);
	consumer = hx_api_consumer_named(task->config, request->names[0]);
	if (consumer == NULL) {
		hx_api_no_consumer(request);
		return NULL;
	}
	task->letters = (struct hx_letters){
		.from = consumer->from,
		.target = consumer->dead_letter,
		.strategy = consumer->keying.key[0] == '\0' ? NULL : consumer->keying.key,
		.key_options = &consumer->key_options,
		.store = options->store,
		.worker = &request->api->broker_worker.base,
	};
	return task;
}

/* ------------------------------------------------------------------ choice */

static bool contains(struct hapax_bytes whole, struct hapax_bytes part)
{
	return whole.size >= part.size &&
		memmem(whole.data, whole.size, part.data, part.size) != NULL;
}

/* Is id one of the texts between commas? */
static bool is_listed(struct hapax_bytes ids, struct hapax_bytes id)
{
	const char *at = ids.data;
	size_t left = ids.size;

	for (;;) {
		const char *comma = memchr(at, ',', left);
		size_t size = comma == NULL ? left : (size_t)(comma - at);

		if (hx_bytes_equal(hx_bytes(at, size), id))
			return true;
		if (comma == NULL)
			return false;
		at += size + 1;
		left -= size + 1;
	}
}

static bool is_chosen(const struct task *task, const struct hx_letter *letter)
{
	if (task->ids.size > 0)
		return is_listed(task->ids, hapax_bytes_from_text(letter->id));
	return task->match.size == 0 || contains(letter->reason, task->match) ||
		contains(letter->error, task->match) || contains(letter->key, task->match) ||
		contains(letter->place, task->match);
}

/* ------------------------------------------------------------------ GET */

static void write_member(struct hx_json_write *json, const char *name, struct hapax_bytes value)
{
	if (value.data == NULL)
		hx_json_write_null(json, name);
	else
		hx_json_write_any(json, name, value);
}

static void write_letter(struct hx_json_write *json, const struct hx_letter *letter)
{
	const struct hapax_message *message = letter->message;
	bool is_large = message->data.size > DATA_SIZE_MAX;

	hx_json_write_begin(json, NULL, '{');
	hx_json_write_text(json, "id", letter->id);
	write_member(json, "reason", letter->reason);
	write_member(json, "error", letter->error);
	write_member(json, "place", letter->place);
	write_member(json, "attempts", letter->attempts);
	write_member(json, "key", letter->key);
	if (message->time_ms != HAPAX_TIME_UNKNOWN)
		hx_json_write_time(json, "time", message->time_ms);
	hx_json_write_unsigned(json, "size", message->data.size);
	if (!is_large)
		hx_json_write_any(json, "data", message->data);
	hx_json_write_end(json, '}');
}

/* Threads: the worker's. */
static enum hx_letter_choice list_letter(const struct hx_letter *letter, void *context)
{
	struct task *task = context;
	const struct hx_json_write before = task->json;
	size_t size = task->list.size;

	if (!is_chosen(task, letter))
		return HX_LETTER_KEEP;
	write_letter(&task->json, letter);
	/* One that does not fit, with the end of the list, is left to the next one. */
	if (task->json.status != HAPAX_OK || task->list.size == LIST_SIZE_MAX) {
		task->json = before;
		task->list.size = size;
		task->limit = 0;
	} else {
		task->limit--;
	}
	task->has_more = task->limit == 0;
	return task->has_more ? HX_LETTER_STOP : HX_LETTER_KEEP;
}

/* Threads: the worker's. */
static void list(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct task *task = request->extra;

	hx_json_write_init(&task->json, &task->list);
	hx_json_write_begin(&task->json, NULL, '[');
	request->status =
		hx_letters_walk(&task->letters, list_letter, task, &task->sum, &request->err);
	hx_json_write_end(&task->json, ']');
	if (request->status == HAPAX_OK)
		request->status = task->json.status;
}

static void write_left(struct hx_json_write *json, const struct task *task)
{
	if (task->sum.left < 0)
		hx_json_write_null(json, "left");
	else
		hx_json_write_signed(json, "left", task->sum.left);
}

static void on_listed(struct hx_api_request *request)
{
	const struct task *task = request->extra;
	struct hx_json_write json;

	hx_api_json(request, &json);
	hx_json_write_raw(&json, "letters", hapax_buf_bytes(&task->list));
	hx_json_write_boolean(&json, "more", task->has_more);
	hx_json_write_unsigned(&json, "seen", task->sum.seen);
	write_left(&json, task);
	hx_api_reply_json(request, &json);
}

void hx_api_get_letters(struct hx_api_request *request)
{
	const struct hx_api_value *values = request->values;
	struct task *task = task_new(request);

	if (task == NULL)
		return;
	task->limit =
		values[VALUE_LIMIT].is_given ? (uint64_t)values[VALUE_LIMIT].number : LIMIT_DEFAULT;
	if (values[VALUE_MATCH].is_given)
		task->match = values[VALUE_MATCH].text;
	hx_api_work(request, &request->api->broker_worker, list, on_listed);
}

/* ------------------------------------------------------------------ POST */

/* Threads: the worker's. */
static enum hx_letter_choice choose_letter(const struct hx_letter *letter, void *context)
{
	return is_chosen(context, letter) ? HX_LETTER_RETRY : HX_LETTER_KEEP;
}

/* Threads: the worker's. */
static void retry(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct task *task = request->extra;

	task->status =
		hx_letters_walk(&task->letters, choose_letter, task, &task->sum, &request->err);
}

static void write_sum(struct hx_json_write *json, const struct task *task)
{
	hx_json_write_unsigned(json, "retried", task->sum.retried);
	hx_json_write_unsigned(json, "moved", task->sum.moved);
	hx_json_write_unsigned(json, "listed_again", task->sum.listed_again);
	hx_json_write_unsigned(json, "failed", task->sum.failed);
	if (task->sum.failed > 0)
		hx_json_write_any(json, "why", hapax_bytes_from_text(task->sum.why));
	hx_json_write_unsigned(json, "seen", task->sum.seen);
	write_left(json, task);
}

static void write_audit(struct hx_json_write *json, const struct hx_api_request *request)
{
	hx_json_write_any(json, "consumer", request->names[0]);
	write_sum(json, request->extra);
}

static void on_retried(struct hx_api_request *request)
{
	const struct task *task = request->extra;
	struct hx_json_write json;

	hx_api_audit_detail(
		request, "consumer.retry",
		task->status == HAPAX_OK ? "applied" : hapax_status_name(task->status),
		write_audit);
	if (task->status != HAPAX_OK) {
		hx_api_fail(request, task->status, request->err.message);
		return;
	}
	hx_api_json(request, &json);
	write_sum(&json, task);
	hx_api_reply_json(request, &json);
}

void hx_api_post_retry(struct hx_api_request *request)
{
	struct hx_retry_json said = {.given = 0};
	struct task *task;
	enum hapax_status status = hx_json_object_read(
		&request->reader, &request->reader.tree.nodes[0], request->route->section,
		request->route->use, &said, &request->err);

	if (status != HAPAX_OK) {
		hx_api_fail(request, status, request->err.message);
		return;
	}
	if ((said.ids.size > 0) + (said.match.size > 0) + said.all != 1) {
		hx_api_problem(request, 400, NULL, "exactly one of ids, match and all is required");
		return;
	}
	task = task_new(request);
	if (task == NULL)
		return;
	task->ids = said.ids;
	task->match = said.match;
	hx_api_work(request, &request->api->broker_worker, retry, on_retried);
}
