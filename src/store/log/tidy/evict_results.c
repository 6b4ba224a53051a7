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
#include "base/error.h"

#include <assert.h>
#include "store/log/tidy/log_copy.h"
#include "store/log/log_private.h"
#include "store/log/read/reader.h"

/* Class segments made by a pass name scopes by the store's own numbers. */
static void evict_entry(struct hx_log *log, const struct hx_log_entry *put, uint16_t file)
{
	const struct hapax_record *record = &put->as.put.record;
	struct hx_elsewhere elsewhere = hx_log_result_files_place(put, file);
	unsigned seat = hx_epoch_enter(&log->index->epoch);
	int64_t now_ms = hx_log_now(log);
	struct hx_index_key key;
	uint32_t place;

	assert(put->kind == HX_LOG_PUT);
	assert(elsewhere.file == file);
	/* Headers and body lie in the entry. */
	assert(elsewhere.offset > put->offset);
	assert(elsewhere.offset + hx_result_bytes(&record->result) <= put->offset + put->size);
	key.packed.scope_id = put->as.put.scope;
	key.packed.encoding = put->as.put.encoding;
	key.packed.size = (uint16_t)record->key.size;
	key.packed.data = record->key.data;
	hx_index_key_finish(log->index, &key);
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

static enum hapax_status evict_frame(
	struct hx_log *log, const struct hx_log_frame *frame, enum hx_log_kind kind,
	struct hapax_bytes bytes, uint16_t file, struct hapax_error *err)
{
	struct hx_log_entries entries;
	struct hx_log_entry entry;
	enum hapax_status status;

	hx_log_entries_begin(&entries, frame, kind, bytes);
	while (hx_log_entries_next(&entries, &entry, &status, err)) {
		if (entry.kind == HX_LOG_PUT && hx_log_result_files_takes(&entry.as.put.record))
			evict_entry(log, &entry, file);
	}
	return status;
}

static enum hapax_status evict_frames(
	struct hx_log *log, const struct hx_log_manifest_item *item, struct hx_log_reader *reader,
	uint16_t file, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	assert(file != 0);
	assert(item->seal.removes_offset <= item->bytes);
	while (status == HAPAX_OK && reader->offset < item->seal.removes_offset) {
		struct hx_log_frame frame;
		struct hapax_bytes bytes;
		enum hx_log_found found;

		status = hx_log_reader_next(reader, &found, &frame, &bytes, err);
		if (status == HAPAX_OK && found != HX_LOG_FOUND_FRAME)
			status = hx_error_set(
				err, HAPAX_ERR_CORRUPT, 0,
				"segment %016llx at offset %llu: a frame is damaged",
				(unsigned long long)item->id, (unsigned long long)reader->offset);
		if (status == HAPAX_OK)
			status = evict_frame(log, &frame, item->kind, bytes, file, err);
	}
	return status;
}

enum hapax_status hx_log_evict_results(
	struct hx_log *log, const struct hx_log_manifest_item *item, struct hapax_error *err)
{
	uint16_t file = hx_log_result_files_add(&log->result_files, item->kind, item->id);
	char name[HX_LOG_NAME_SIZE], path[HX_LOG_PATH_SIZE];
	struct hx_log_reader reader = {0};
	enum hapax_status status;

	if (file == 0)
		return HAPAX_OK;
	hx_log_name(name, item->kind, item->id, "");
	hx_log_path(&log->directory, name, path);
	status = hx_log_reader_open(&reader, log->directory.io, path, err);
	if (status == HAPAX_OK)
		status = evict_frames(log, item, &reader, file, err);
	hx_log_reader_close(&reader);
	return status;
}
