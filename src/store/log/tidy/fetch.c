/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.c - read results from files for the operations that hand them out.
 *
 * The answer of an operation is decided without them, from durable state. A waiting caller reads
 * them itself. A thread reads them for submits with a completion, so that neither a submit nor
 * the leader waits for the disk.
 *
 *  (1) An operation that needs a result ends when it has it, verified, or with an error. Nothing
 *      is latched: a failed read says nothing about writes.
 *  (2) An applied operation stays applied even if the record in its answer cannot be read. The
 *      record is handed out without its result, like one that was too large.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "record/record.h"
#include "store/core.h"
#include "store/log/log_private.h"

struct fetch {
	struct hapax_op *ops;
	size_t count;
	struct hapax_completion completion;
};

void hx_log_note_damage(struct hx_log *log, const struct hapax_error *err)
{
	assert(err->status == HAPAX_ERR_CORRUPT);
	hx_mutex_lock(&log->keeper_mutex);
	log->damages++;
	log->damage = *err;
	hx_mutex_unlock(&log->keeper_mutex);
}

uint64_t hx_log_fetch_damages(struct hx_log *log, struct hapax_error *err)
{
	uint64_t damages;

	hx_mutex_lock(&log->keeper_mutex);
	damages = log->damages;
	if (damages != 0 && err != NULL)
		*err = log->damage;
	assert(damages == 0 || log->damage.status == HAPAX_ERR_CORRUPT);
	hx_mutex_unlock(&log->keeper_mutex);
	return damages;
}

static void end_without(struct hapax_op *op, enum hapax_status status)
{
	struct hapax_result *result = &op->record->result;

	assert(status != HAPAX_OK);
	assert(op->status == HAPAX_OK);
	if (op->outcome == HAPAX_OUTCOME_APPLIED) {
		hx_record_result_omit_body(result);
		result->headers = hx_bytes(NULL, 0);
		return;
	}
	memset(result, 0, sizeof(*result));
	hx_store_refuse(op, status);
}

enum hapax_status hx_log_fetch_bytes(
	struct hx_log *log, const struct hx_elsewhere *elsewhere, void *data, size_t size,
	struct hapax_error *err)
{
	struct hapax_error why = {0};
	enum hapax_status status =
		hx_log_result_files_read(&log->result_files, elsewhere, data, size, &why);

	/* A done key must not count as unknown. */
	assert(status != HAPAX_ERR_UNAVAILABLE);
	assert(status == HAPAX_OK || why.status == status);
	if (status == HAPAX_ERR_CORRUPT)
		hx_log_note_damage(log, &why);
	if (status != HAPAX_OK && err != NULL)
		*err = why;
	return status;
}

static void fetch_one(struct hx_log *log, struct hapax_op *op)
{
	struct hx_elsewhere elsewhere;
	unsigned char *data;
	size_t size;

	assert(op->private_state != 0);
	/* An operation that was refused after all only gives up its place. */
	if (op->status == HAPAX_OK && hx_work_read_back(op, &elsewhere, &data, &size)) {
		enum hapax_status status = hx_log_fetch_bytes(log, &elsewhere, data, size, NULL);

		if (status != HAPAX_OK)
			end_without(op, status);
	}
	hx_work_forget_place(op, &log->result_files.users);
	assert(op->private_state == 0);
}

void hx_log_fetch(struct hx_log *log, struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].private_state != 0)
			fetch_one(log, &ops[i]);
	}
}

static bool is_wanted(const struct hapax_op *ops, size_t count)
{
	uint32_t any = 0;

	for (size_t i = 0; i < count; i++)
		any |= ops[i].private_state;
	return any != 0;
}

/* There is no memory to request them. */
static void give_up(struct hx_log *log, struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].private_state != 0 && ops[i].status == HAPAX_OK)
			end_without(&ops[i], HAPAX_ERR_NO_MEMORY);
		hx_work_forget_place(&ops[i], &log->result_files.users);
	}
}

bool hx_log_fetch_later(
	struct hx_log *log, struct hapax_op *ops, size_t count, struct hapax_completion completion)
{
	struct fetch fetch = {ops, count, completion};

	if (!is_wanted(ops, count))
		return false;
	if (!log->fetcher_runs)
		hx_log_fetch(log, ops, count);
	else if (hx_request_queue_push(&log->fetches, &fetch) == HAPAX_OK)
		return true;
	else
		give_up(log, ops, count);
	return false;
}

static void run_fetcher(void *arg)
{
	struct hx_log *log = arg;
	struct fetch *fetch;

	while ((fetch = hx_request_queue_wait(&log->fetches)) != NULL) {
		while (fetch != NULL) {
			struct fetch *next = hx_request_queue_next(fetch);
			struct fetch own = *fetch;

			hx_request_queue_give_back(&log->fetches, fetch);
			hx_log_fetch(log, own.ops, own.count);
			hapax_store_complete(&log->base, own.ops, own.count, own.completion);
			fetch = next;
		}
	}
}

enum hapax_status hx_log_fetcher_start(struct hx_log *log, struct hapax_error *err)
{
	enum hapax_status status = hx_request_queue_init(&log->fetches, sizeof(struct fetch));

	assert(!log->fetcher_runs);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to open a store");
	status = hx_thread_start(&log->fetcher, run_fetcher, log, "hapax-results", err);
	log->fetcher_runs = status == HAPAX_OK;
	if (status != HAPAX_OK)
		hx_request_queue_done(&log->fetches);
	return status;
}

void hx_log_fetcher_stop(struct hx_log *log)
{
	if (!log->fetcher_runs)
		return;
	/* Queued requests are read first. */
	hx_request_queue_stop(&log->fetches);
	hx_thread_join(&log->fetcher);
	hx_request_queue_done(&log->fetches);
	log->fetcher_runs = false;
}
