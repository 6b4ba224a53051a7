/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lead.c - what a leader does with a list: decide, write, answer.
 *
 *  (1) Decisions of a frame see durable state and the changes of the same frame.
 *  (2) Nothing is answered before its frame is durable. If a frame fails, everything decided for
 *      it is UNCERTAIN. So are FENCED and LIMIT, since an earlier operation of the frame may
 *      have caused them. Undecided operations are FAILED.
 */
#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "store/core.h"
#include "store/index/mark.h"
#include "store/log/log_private.h"

struct hx_work_context hx_log_context(struct hx_log *log)
{
	const struct hapax_store_options *options = hx_store_options(&log->base);

	return (struct hx_work_context){
		.index = log->index,
		.write_ahead = &log->writer.write_ahead,
		.rules =
			{
				.now_ms = hx_log_now(log),
				.result_size_max = options->result_size_max,
				.fresh_token =
					HX_TOKEN_MAX, /* stands for the token that is taken later */
			},
		.parked_max = options->parked_max,
	};
}

static void request_assert(const struct hx_log_request *request)
{
	/* Exactly one: a task, or operations. */
	assert((request->task != NULL) != (request->ops != NULL));
	/* Decided in order, and durable in order. */
	assert(request->durable <= request->decided);
	assert(request->decided <= request->count);
	assert(request->task == NULL || request->completion.fn == NULL);
}

/* Decide requests from first on, until the frame is full. Returns the first unfinished one. */
static size_t decide(
	struct hx_log *log, struct hx_log_request *requests, size_t count, size_t first)
{
	struct hx_work_context context = hx_log_context(log);

	assert(!log->writer.write_ahead.is_full);
	for (size_t i = first; i < count; i++) {
		struct hx_log_request *request = &requests[i];

		request_assert(request);
		if (request->task != NULL) {
			request->task->status = request->task->run(request->task->context);
			if (log->writer.write_ahead.is_full)
				return i;
			continue;
		}
		request->decided += hx_index_run_all(
			&context, request->ops + request->decided,
			request->count - request->decided);
		/* Only a full frame leaves an operation undecided. */
		assert(request->decided == request->count || log->writer.write_ahead.is_full);
		if (request->decided < request->count)
			return i;
	}
	return count;
}

void hx_log_complete(
	struct hx_log *log, struct hapax_op *ops, size_t count, struct hapax_completion completion)
{
	if (!hx_log_fetch_later(log, ops, count, completion))
		hapax_store_complete(&log->base, ops, count, completion);
}

static void complete(struct hx_log *log, struct hx_log_request *request)
{
	if (request->completion.fn != NULL)
		hx_log_complete(log, request->ops, request->count, request->completion);
}

/* The store has failed: no request from first on gets an answer that could be wrong. */
static void fail(struct hx_log *log, struct hx_log_request *requests, size_t count, size_t first)
{
	assert(first < count);
	assert(hx_log_writer_is_latched(&log->writer));
	for (size_t i = first; i < count; i++) {
		struct hx_log_request *request = &requests[i];

		request_assert(request);
		if (request->task != NULL) {
			request->task->status = HAPAX_ERR_FAILED;
			continue;
		}
		hx_store_fail(
			request->ops + request->durable, request->decided - request->durable,
			HAPAX_ERR_UNCERTAIN);
		hx_store_fail(
			request->ops + request->decided, request->count - request->decided,
			HAPAX_ERR_FAILED);
		complete(log, request);
	}
}

static enum hapax_status commit(struct hx_log *log)
{
	struct hx_log_writer *writer = &log->writer;

	if (writer->payload != 0 || writer->is_forced)
		hx_log_counts_write(&log->counts, writer);
	return hx_log_writer_commit(writer);
}

void hx_log_lead(void *context, struct hx_log_request *requests, size_t count)
{
	struct hx_log *log = context;
	struct hx_log_writer *writer = &log->writer;
	size_t ended = 0; /* requests that were answered */

	memset(writer->no_room, 0, sizeof(writer->no_room));
	while (ended < count) {
		size_t through;

		if (hx_log_writer_is_latched(writer)) {
			fail(log, requests, count, ended);
			return;
		}
		hx_log_writer_begin(writer);
		through = decide(log, requests, count, ended);
		while (through == count && writer->payload != 0 &&
		       hx_log_queue_grow(&log->queue, &requests, &count))
			through = decide(log, requests, count, through);
		assert(through == count || writer->write_ahead.is_full);
		if (writer->write_ahead.is_full && writer->payload == 0) {
			/* Whatever the result, the next round continues: with room, or refusing. */
			(void)hx_log_writer_make_room(writer);
			continue;
		}
		if (commit(log) != HAPAX_OK) {
			fail(log, requests, count, ended);
			return;
		}
		/* Every decision up to here is durable, or needs no frame. */
		assert(writer->payload == 0);
		assert(writer->sync == HX_LOG_SYNC_LATER ||
		       writer->durable_lsn == writer->next_lsn);
		if (through < count)
			requests[through].durable = requests[through].decided;
		for (size_t i = ended; i < through; i++) {
			assert(requests[i].decided == requests[i].count);
			complete(log, &requests[i]);
		}
		ended = through;
	}
	assert(ended == count);
	if (hx_log_writer_wants_spare(writer))
		hx_log_keeper_call(log);
}

/* Reading beside the leader. */

static bool may_read(const struct hapax_op *op)
{
	return !hx_work_is_grouped(op) &&
		(op->type == HAPAX_OP_CHECK || op->type == HAPAX_OP_CLAIM ||
		 op->type == HAPAX_OP_LOOKUP);
}

/* Between enter and leave. */
static bool read_one(struct hx_log *log, const struct hx_work_context *context, struct hapax_op *op)
{
	struct hx_index_key key;
	struct hx_work work;

	hx_index_key_init(log->index, &key, op->private_scope, op->key);
	if (!hx_mark_read(context, &key, op)) {
		hx_work_bind(&work, &key, op);
		if (!hx_work_read(&work, context))
			return false;
	}
	/* After reading: see inflight.h. */
	return !hx_log_inflight_is_marked(&log->writer.inflight, key.hash);
}

size_t hx_log_read(struct hx_log *log, struct hapax_op *ops, size_t count)
{
	struct hx_work_context context;
	unsigned seat;
	size_t i = 0;

	if (hx_log_writer_is_latched(&log->writer))
		return 0;
	context = hx_log_context(log);
	context.write_ahead = NULL;
	seat = hx_epoch_enter(&log->index->epoch);
	for (; i < count; i++) {
		if (ops[i].status != HAPAX_OK)
			continue;
		if (!may_read(&ops[i]))
			break;
		if (!read_one(log, &context, &ops[i])) {
			hx_store_refuse(&ops[i], HAPAX_OK);
			break;
		}
	}
	hx_epoch_leave(&log->index->epoch, seat);
	/* Written only once a second: a cache line that all threads read stays shared. */
	if (i != 0 && atomic_load_explicit(&log->was_read, memory_order_relaxed) == 0)
		atomic_store_explicit(&log->was_read, 1, memory_order_relaxed);
	return i;
}

/* Frames without operations. */

struct mark_task {
	struct hx_log *log;
	uint32_t flags;
};

static enum hapax_status run_mark(void *context)
{
	struct mark_task *mark = context;

	return hx_log_writer_force(&mark->log->writer, mark->flags);
}

enum hapax_status hx_log_mark_frame(struct hx_log *log, uint32_t flags)
{
	struct mark_task mark = {log, flags};

	assert((flags & ~(uint32_t)HX_LOG_FRAME_CLOSE) == 0);
	return hx_log_queue_task(&log->queue, run_mark, &mark);
}

static enum hapax_status run_sync(void *context)
{
	return hx_log_writer_sync(context);
}

enum hapax_status hx_log_sync(struct hx_log *log)
{
	if (log->writer.sync == HX_LOG_SYNC_ALWAYS)
		return HAPAX_OK;
	return hx_log_queue_task(&log->queue, run_sync, &log->writer);
}
