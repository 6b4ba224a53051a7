/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict_results.c - large results leave memory once a class segment holds them.
 *
 * The segment is durable, and so is the manifest that names it. It is read back, and its frames
 * verified, before any record gives up its bytes: the copy in memory goes only after the one on
 * disk was seen. A record that has changed, or whose short form finds no memory, stays as it is.
 *
 * The lock of a shard is held for one record at a time, and never while bytes are compared:
 * within the epoch, a place that the table still has holds the same record.
 */
#include <assert.h>

#include "store/log/tidy/log_copy.h"
#include "store/log/log_private.h"
#include "store/log/read/reader.h"

/* Class segments made by a pass name scopes by the store's own numbers. */
static void evict_put(struct hx_log *log, const struct hx_log_entry *put, uint16_t file)
{
	const struct hapax_record *record = &put->as.put.record;
	struct hx_elsewhere elsewhere = hx_log_result_files_place(put, file);
	unsigned seat = hx_epoch_enter(&log->index->epoch);
	int64_t now_ms = hx_log_now(log);
	struct hx_index_key key;
	uint32_t place;

	assert(put->kind == HX_LOG_PUT);
	assert(file != 0);
	assert(elsewhere.file == file);
	/* Headers and body lie in the entry. */
	assert(elsewhere.offset > put->offset);
	assert(elsewhere.offset + hx_result_bytes(&record->result) <= put->offset + put->size);
	hx_log_entry_key(put, put->as.put.scope, log->index, &key);
	hx_lock_acquire(&key.shard->lock);
	place = hx_shard_find(key.shard, &key.packed, key.hash);
	hx_lock_release(&key.shard->lock);
	if (place != 0 && hx_log_copy_is_at(key.shard, place, record)) {
		hx_lock_acquire(&key.shard->lock);
		if (hx_shard_find(key.shard, &key.packed, key.hash) == place)
			(void)hx_index_move_result(log->index, &key, place, &elsewhere, now_ms);
		hx_lock_release(&key.shard->lock);
	}
	hx_epoch_leave(&log->index->epoch, seat);
}

struct eviction {
	struct hx_log *log;
	uint16_t file;
};

static enum hapax_status evict_entry(
	void *context, const struct hx_log_entry *entry, struct hapax_error *err)
{
	const struct eviction *eviction = context;

	(void)err;
	if (entry->kind == HX_LOG_PUT && hx_log_result_files_takes(&entry->as.put.record))
		evict_put(eviction->log, entry, eviction->file);
	return HAPAX_OK;
}

enum hapax_status hx_log_evict_results(
	struct hx_log *log, const struct hx_log_manifest_item *item, struct hapax_error *err)
{
	struct eviction eviction = {
		log, hx_log_result_files_add(&log->result_files, item->kind, item->id)};
	char path[HX_LOG_PATH_SIZE];
	struct hx_log_reader reader = {0};
	enum hapax_status status;

	if (eviction.file == 0)
		return HAPAX_OK;
	assert(item->seal.removes_offset <= item->bytes);
	hx_log_segment_path(&log->directory, item->kind, item->id, "", path);
	status = hx_log_reader_open(&reader, log->directory.io, path, false, err);
	if (status == HAPAX_OK)
		status = hx_log_reader_each(
			&reader, item->seal.removes_offset, evict_entry, &eviction, err);
	hx_log_reader_close(&reader);
	return status;
}
