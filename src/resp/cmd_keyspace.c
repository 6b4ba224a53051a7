/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_keyspace.c - commands about all keys: SCAN, KEYS, DBSIZE, FLUSHDB and FLUSHALL.
 *
 * They walk through the scope of the client, as jobs (resp_job.h). The service keeps the position
 * of each cursor, since clients return a cursor as a number.
 */
#include <stdio.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "resp/resp_command.h"
#include "resp/commands.h"
#include "resp/resp_job.h"

enum {
	SCAN_COUNT_DEFAULT = 10,
	SCAN_COUNT_MAX = 1000,  /* keys returned per call */
	COUNT_COUNT_MAX = 4096, /* counted per piece */
	KEYS_MAX = 10000,       /* returned by KEYS; they also must fit into the job's buffer */
	FLUSH_COUNT = 512,      /* removed per piece */
};

/* FAILED counts as absent, as everywhere. */
static bool is_there(const struct hapax_record *record)
{
	return record->state != HAPAX_STATE_FAILED;
}

/* No command is planned after it. NULL: refused. */
static struct hx_resp_job *begin_job(
	struct hx_resp_call *call, hx_resp_job_fn *fn, size_t count_max, hx_resp_finish_fn *finish)
{
	struct hx_resp_session *session = call->session;

	session->job = hx_resp_job_new(
		call->service->options.store, session->tenant, session->group, fn, count_max);
	if (session->job == NULL) {
		hx_resp_refuse(call, "OOM not enough memory for the command");
		return NULL;
	}
	session->job->pattern.budget = call->service->options.budget;
	session->job->found.budget = call->service->options.budget;
	call->entry->finish = finish;
	session->is_last = true;
	return session->job;
}

static void keep_pattern(struct hx_resp_call *call, struct hapax_bytes pattern)
{
	struct hapax_buf *kept = &call->session->job->pattern;

	if (hx_buf_append(kept, pattern.data, pattern.size) == HAPAX_OK)
		return;
	hx_resp_session_end_job(call->session);
	hx_resp_refuse(call, "OOM not enough memory for the command");
}

/* ---------------------------------------------------------------- SCAN */

static int see_key(const struct hapax_record *record, void *context)
{
	struct hx_resp_job *job = context;

	if (!is_there(record) || job->wants_none)
		return 0;
	if (job->has_pattern && !hx_resp_glob(hapax_buf_bytes(&job->pattern), record->key, false))
		return 0;
	job->status = hx_resp_put_bulk(&job->found, record->key);
	job->count += job->status == HAPAX_OK;
	return job->status != HAPAX_OK;
}

static bool scan_piece(struct hx_resp_job *job)
{
	enum hapax_status status =
		hapax_store_scan(job->store, &job->what, &job->cursor, see_key, job, NULL);

	if (job->status == HAPAX_OK)
		job->status = status;
	return false;
}

/* The arguments of SCAN. Borrowed from the call. */
struct scan {
	uint64_t id;
	int64_t count;
	bool has_pattern;
	bool wants_none;
	struct hapax_bytes pattern;
};

/* False: refused. */
static bool read_scan_options(struct hx_resp_call *call, struct scan *scan)
{
	for (size_t i = 2; i < call->argc; i += 2) {
		if (i + 1 == call->argc)
			return hx_resp_refuse_syntax(call);
		if (hx_resp_is_word(call->argv[i], "COUNT")) {
			if (!hx_resp_integer_arg(call, call->argv[i + 1], &scan->count))
				return false;
			if (scan->count < 1)
				return hx_resp_refuse_syntax(call);
		} else if (hx_resp_is_word(call->argv[i], "MATCH")) {
			scan->pattern = call->argv[i + 1];
			scan->has_pattern = true;
		} else if (hx_resp_is_word(call->argv[i], "TYPE")) {
			scan->wants_none = !hx_resp_is_word(call->argv[i + 1], "STRING");
		} else {
			return hx_resp_refuse_syntax(call);
		}
	}
	return true;
}

static bool read_cursor(struct hapax_bytes text, uint64_t *ret_id)
{
	const char *at = text.data;
	uint64_t id = 0;

	if (text.size == 0 || text.size > 20)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (at[i] < '0' || at[i] > '9' || __builtin_mul_overflow(id, UINT64_C(10), &id) ||
		    __builtin_add_overflow(id, (uint64_t)(at[i] - '0'), &id))
			return false;
	}
	*ret_id = id;
	return true;
}

/* The header of the reply, then the keys. */
static void finish_scan(struct hx_resp_answer *answer)
{
	const struct hx_resp_job *job = answer->session->job;
	struct hapax_buf *out = answer->out;
	uint64_t id = 0;
	char number[24];

	if (hx_buf_reserve(out, sizeof(number) * 4 + job->found.size) != HAPAX_OK) {
		(void)hx_resp_put_error(out, "OOM not enough memory for the reply");
		return;
	}
	if (job->scan_id != 0)
		hx_resp_service_leave_scan(answer->session->service, job->scan_id);
	if (!job->cursor.done)
		id = hx_resp_service_keep_scan(answer->session->service, &job->cursor);
	(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)id);
	(void)hx_resp_put_array(out, 2);
	(void)hx_resp_put_text(out, number);
	(void)hx_resp_put_array(out, (size_t)job->count);
	(void)hx_buf_append(out, job->found.data, job->found.size);
}

void hx_resp_plan_scan(struct hx_resp_call *call)
{
	struct scan scan = {.count = SCAN_COUNT_DEFAULT};
	struct hapax_cursor cursor = {.size = 0};
	struct hx_resp_job *job;

	if (!read_cursor(call->argv[1], &scan.id)) {
		hx_resp_refuse(call, "ERR invalid cursor");
		return;
	}
	if (!read_scan_options(call, &scan))
		return;
	if (scan.id != 0 && !hx_resp_service_take_scan(call->service, scan.id, &cursor)) {
		hx_resp_refuse(call, "ERR invalid cursor");
		return;
	}
	job = begin_job(
		call, scan_piece,
		(size_t)(scan.count < SCAN_COUNT_MAX ? scan.count : SCAN_COUNT_MAX), finish_scan);
	if (job == NULL)
		return;
	job->cursor = cursor;
	job->scan_id = scan.id;
	job->wants_none = scan.wants_none;
	job->has_pattern = scan.has_pattern;
	keep_pattern(call, scan.pattern);
}

/* ---------------------------------------------------------------- KEYS */

static bool keys_piece(struct hx_resp_job *job)
{
	enum hapax_status status =
		hapax_store_scan(job->store, &job->what, &job->cursor, see_key, job, NULL);

	/* Too many, or too long: finish_keys() says so. */
	if (job->status == HAPAX_ERR_LIMIT || job->count > KEYS_MAX) {
		job->status = HAPAX_OK;
		job->count = KEYS_MAX + 1;
		return false;
	}
	if (job->status == HAPAX_OK)
		job->status = status;
	return !job->cursor.done;
}

static void finish_keys(struct hx_resp_answer *answer)
{
	const struct hx_resp_job *job = answer->session->job;

	if (job->count > KEYS_MAX)
		(void)hx_resp_put_error(
			answer->out, "ERR too many keys match the pattern; use SCAN");
	else if (hx_buf_reserve(answer->out, 32 + job->found.size) != HAPAX_OK)
		(void)hx_resp_put_error(answer->out, "OOM not enough memory for the reply");
	else if (hx_resp_put_array(answer->out, (size_t)job->count) == HAPAX_OK)
		(void)hx_buf_append(answer->out, job->found.data, job->found.size);
}

void hx_resp_plan_keys(struct hx_resp_call *call)
{
	struct hx_resp_job *job = begin_job(call, keys_piece, SCAN_COUNT_MAX, finish_keys);

	if (job == NULL)
		return;
	job->has_pattern = true;
	keep_pattern(call, call->argv[1]);
}

/* ---------------------------------------------------------------- DBSIZE */

static int count_key(const struct hapax_record *record, void *context)
{
	struct hx_resp_job *job = context;

	job->count += is_there(record);
	return 0;
}

static bool count_piece(struct hx_resp_job *job)
{
	job->status = hapax_store_scan(job->store, &job->what, &job->cursor, count_key, job, NULL);
	return !job->cursor.done;
}

static void finish_dbsize(struct hx_resp_answer *answer)
{
	(void)hx_resp_put_integer(answer->out, (int64_t)answer->session->job->count);
}

/* No store counts by scope, so this walks through the keys. */
void hx_resp_plan_dbsize(struct hx_resp_call *call)
{
	(void)begin_job(call, count_piece, COUNT_COUNT_MAX, finish_dbsize);
}

/* ---------------------------------------------------------------- FLUSHALL */

/* Records that SET did not make stay, as with DEL. */
static int gather_key(const struct hapax_record *record, void *context)
{
	struct hx_resp_job *job = context;
	struct hapax_bytes key;
	struct hapax_op *op = NULL;

	if (record->origin != HAPAX_ORIGIN_SET)
		return 0;
	if (hx_resp_batch_keep(&job->batch, record->key, &key))
		op = hx_resp_batch_add(&job->batch, HAPAX_OP_FORGET, false);
	if (op == NULL) {
		job->status = HAPAX_ERR_NO_MEMORY;
		return 1;
	}
	op->flags = HAPAX_OP_SET_ONLY;
	op->tenant = job->what.tenant;
	op->group = job->what.group;
	op->key = key;
	return 0;
}

static bool flush_piece(struct hx_resp_job *job)
{
	struct hx_resp_batch *batch = &job->batch;
	enum hapax_status status =
		hapax_store_scan(job->store, &job->what, &job->cursor, gather_key, job, NULL);

	if (job->status == HAPAX_OK)
		job->status = status;
	hx_resp_batch_seal(batch);
	if (job->status == HAPAX_OK && batch->count > 0)
		job->status = hapax_store_run(job->store, batch->ops, batch->count, NULL);
	hx_resp_batch_clear(batch);
	return !job->cursor.done;
}

static void finish_flush(struct hx_resp_answer *answer)
{
	hx_resp_tell_changed(answer, "flush", hx_bytes(NULL, 0));
	(void)hx_resp_put_simple(answer->out, "OK");
}

void hx_resp_plan_flush(struct hx_resp_call *call)
{
	struct hx_resp_job *job = NULL;

	if (call->argc > 2 ||
	    (call->argc == 2 && !hx_resp_is_word(call->argv[1], "SYNC") &&
	     !hx_resp_is_word(call->argv[1], "ASYNC")))
		hx_resp_refuse_syntax(call);
	else if (!(call->service->options.flags & HX_RESP_ALLOW_FLUSH))
		hx_resp_refuse(call, "NOPERM flushing is disabled; see resp.allow_flush");
	else
		job = begin_job(call, flush_piece, FLUSH_COUNT, finish_flush);
	if (job != NULL)
		job->is_whole = true;
}
