/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_sweep.c - the effects of time on records: expiry in memory, abandoned claims.
 *
 * Expiry needs no entry: every reader of the log knows the time. Giving up a lapsed claim
 * changes its record, so the sweep only notes its key, and the leader settles it.
 */
#include "base/bytes.h"

#include <assert.h>
#include "store/core.h"
#include "store/log/format/endian.h"
#include "store/log/log_private.h"

/* The form of a noted key: u32 scope, u16 size, the key as text. */
enum { NOTE_HEAD_SIZE = 6 };

void hx_log_lapse(const struct hapax_record *record, void *context)
{
	struct hx_log *log = context;
	size_t before = log->lapsed.size;
	enum hapax_status status;
	const struct hx_scope *scope = hx_scope_table_intern(
		hx_store_scopes(&log->base), record->tenant, record->group, &status);

	assert(record->state == HAPAX_STATE_CLAIMED);
	assert(record->key.size <= UINT16_MAX);
	/* Without memory it waits for the next sweep. */
	if (scope == NULL ||
	    hx_buf_reserve(&log->lapsed, NOTE_HEAD_SIZE + record->key.size) != HAPAX_OK)
		return;
	(void)hx_buf_append_u32(&log->lapsed, scope->id);
	(void)hx_buf_append_u16(&log->lapsed, (uint16_t)record->key.size);
	(void)hx_buf_append(&log->lapsed, record->key.data, record->key.size);
	assert(log->lapsed.size == before + NOTE_HEAD_SIZE + record->key.size);
}

struct settle_task {
	struct hx_log *log;
	size_t at; /* in log->lapsed */
	uint64_t settled;
};

static enum hapax_status run_settle(void *task)
{
	struct settle_task *settle = task;
	struct hx_log *log = settle->log;
	struct hx_work_context context = hx_log_context(log);

	while (settle->at < log->lapsed.size) {
		const unsigned char *at = log->lapsed.data + settle->at;
		struct hx_index_key key;
		uint32_t scope_id;
		uint16_t size;
		bool is_settled;

		assert(log->lapsed.size - settle->at > NOTE_HEAD_SIZE);
		scope_id = hx_get32(at);
		size = hx_get16(at + sizeof(scope_id));
		assert(size <= log->lapsed.size - settle->at - NOTE_HEAD_SIZE);
		hx_index_key_init(log->index, &key, scope_id, hx_bytes(at + NOTE_HEAD_SIZE, size));
		(void)hx_work_settle(&context, &key, &is_settled);
		if (log->writer.write_ahead.is_full)
			return HAPAX_OK;
		settle->settled += is_settled;
		settle->at += NOTE_HEAD_SIZE + (size_t)size;
	}
	return HAPAX_OK;
}

/* Without a keeper, only the sweep handles old segments and deferred syncs. */
static enum hapax_status tidy(struct hx_log *log, struct hapax_error *err)
{
	struct hx_log_round round = {0};
	enum hapax_status status = HAPAX_OK;
	bool more = true;

	while (more && status == HAPAX_OK)
		status = hx_log_pass(log, &round, &more, err);
	return status == HAPAX_OK ? hx_log_sync(log) : status;
}

static enum hapax_status ask_keeper(struct hx_log *log, struct hapax_error *err)
{
	struct hapax_error last = {0};

	if (hx_log_keeper_failures(log, &last) == 0)
		return HAPAX_OK;
	assert(last.status != HAPAX_OK);
	if (err != NULL)
		*err = last;
	return last.status;
}

enum hapax_status hx_log_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err)
{
	struct hx_log *log = (struct hx_log *)store;
	struct settle_task settle = {.log = log};
	enum hapax_status status = HAPAX_OK;

	hx_mutex_lock(&log->sweep_mutex);
	hx_buf_clear(&log->lapsed);
	hx_index_sweep(log->index, sweep, hx_log_now(log));
	if (log->lapsed.size != 0)
		status = hx_log_queue_task(&log->queue, run_settle, &settle);
	/* A task that ended well was not stopped by a full frame. */
	assert(status != HAPAX_OK || settle.at == log->lapsed.size);
	sweep->lapsed += settle.settled;
	if (status == HAPAX_OK && sweep->done)
		status = log->keeper_runs ? ask_keeper(log, err) : tidy(log, err);
	hx_mutex_unlock(&log->sweep_mutex);
	if (status == HAPAX_ERR_FAILED && err != NULL)
		*err = log->writer.fault;
	if (status == HAPAX_OK && sweep->done && hx_log_fetch_damages(log, err) != 0)
		return HAPAX_ERR_CORRUPT;
	return status;
}
