/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_copy.c - copy the live records of a segment into class segments.
 */
#include "store/log/tidy/log_copy.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "store/core.h"
#include "store/log/format/endian.h"
#include "store/log/read/reader.h"
#include "store/log/format/scope_names.h"

#define HOUR_MS INT64_C(3600000)

enum { HELD_BYTES_MAX = 1 << 30 };

void hx_log_copy_init(struct hx_log_copy *copy, struct hx_log *log, uint64_t next_class_id)
{
	assert(next_class_id != 0);
	memset(copy, 0, sizeof(*copy));
	copy->log = log;
	copy->now_ms = hx_log_now(log);
	copy->next_class_id = next_class_id;
	hx_buf_init(&copy->held, HELD_BYTES_MAX);
	for (unsigned kind = HX_LOG_KIND_HOUR; kind < HX_LOG_KIND_COUNT; kind++)
		hx_log_class_writer_init(
			&copy->writers[kind], &log->directory, hx_store_scopes(&log->base),
			(enum hx_log_kind)kind, copy->next_class_id++);
	/* A pass takes its ids whether or not it uses them. */
	assert(copy->next_class_id == next_class_id + HX_LOG_KIND_COUNT - 1);
}

void hx_log_copy_done(struct hx_log_copy *copy)
{
	for (unsigned kind = HX_LOG_KIND_HOUR; kind < HX_LOG_KIND_COUNT; kind++)
		hx_log_class_writer_done(&copy->writers[kind]);
	hx_buf_done(&copy->held);
}

static enum hx_log_kind kind_for(int64_t expires_ms, int64_t now_ms)
{
	int64_t left_ms;

	assert(expires_ms > now_ms);
	if (__builtin_sub_overflow(expires_ms, now_ms, &left_ms))
		return HX_LOG_KIND_EVER;
	if (left_ms <= HOUR_MS)
		return HX_LOG_KIND_HOUR;
	if (left_ms <= 24 * HOUR_MS)
		return HX_LOG_KIND_DAY;
	if (left_ms <= 7 * 24 * HOUR_MS)
		return HX_LOG_KIND_WEEK;
	return left_ms <= 31 * 24 * HOUR_MS ? HX_LOG_KIND_MONTH : HX_LOG_KIND_EVER;
}

static bool results_are_equal(
	const struct hx_shard *shard, uint32_t place, const struct hapax_result *found,
	const struct hapax_result *result)
{
	struct hx_elsewhere elsewhere;

	if (found->headers.size != result->headers.size || found->body.size != result->body.size)
		return false;
	if (hx_shard_elsewhere(shard, place, &elsewhere))
		return elsewhere.crc == hx_log_result_crc(result);
	return hx_bytes_equal(found->headers, result->headers) &&
		hx_bytes_equal(found->body, result->body);
}

bool hx_log_copy_is_at(struct hx_shard *shard, uint32_t place, const struct hapax_record *record)
{
	struct hapax_record found;

	hx_shard_unpack(shard, place, &found);
	return found.token == record->token && found.state == record->state &&
		found.changed_ms == record->changed_ms && found.expires_ms == record->expires_ms &&
		found.lease_ends_ms == record->lease_ends_ms && found.ttl_ms == record->ttl_ms &&
		found.attempt == record->attempt && hx_bytes_equal(found.error, record->error) &&
		results_are_equal(shard, place, &found.result, &record->result);
}

bool hx_log_copy_is_live(
	struct hx_log *log, const struct hx_index_key *key, const struct hapax_record *record)
{
	unsigned seat = hx_epoch_enter(&log->index->epoch);
	struct hx_shard *shard = key->shard;
	bool is_live;
	uint32_t place;

	hx_lock_acquire(&shard->lock);
	place = hx_shard_find(shard, &key->packed, key->hash);
	hx_lock_release(&shard->lock);
	is_live = place != 0 && hx_log_copy_is_at(shard, place, record);
	hx_epoch_leave(&log->index->epoch, seat);
	return is_live;
}

static bool is_held(const struct hapax_record *record)
{
	return record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED;
}

/* Note a PUT that goes back to the log. */
static enum hapax_status hold(
	struct hx_log_copy *copy, const struct hapax_record *record,
	const struct hx_packed_key *key, struct hapax_error *err)
{
	size_t size = hx_log_put_size(record, key);

	assert(is_held(record));
	assert(copy->held.size % HX_LOG_ENTRY_ALIGN == 0);
	if (hx_buf_reserve(&copy->held, size) != HAPAX_OK)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to copy records");
	hx_log_put_encode(copy->held.data + copy->held.size, record, key, key->scope_id, 0, 0);
	assert(hx_get32(copy->held.data + copy->held.size + HX_LOG_ENTRY_SIZE) == size);
	copy->held.size += size;
	return HAPAX_OK;
}

static enum hapax_status copy_remove(
	struct hx_log_copy *copy, const struct hx_index_key *key, int64_t changed_ms,
	int64_t needed_until_ms, uint64_t lsn, struct hapax_error *err)
{
	if (needed_until_ms <= copy->now_ms || lsn < copy->useless_lsn)
		return HAPAX_OK;
	return hx_log_class_writer_remove(
		&copy->writers[kind_for(needed_until_ms, copy->now_ms)], &key->packed, changed_ms,
		needed_until_ms, lsn, err);
}

static enum hapax_status copy_put(
	struct hx_log_copy *copy, const struct hx_log_entry *entry, const struct hx_index_key *key,
	struct hapax_error *err)
{
	const struct hapax_record *record = &entry->as.put.record;
	enum hapax_status status;

	if (record->expires_ms <= copy->now_ms || !hx_log_copy_is_live(copy->log, key, record))
		return HAPAX_OK;
	if (is_held(record))
		return hold(copy, record, &key->packed, err);
	status = hx_log_class_writer_put(
		&copy->writers[kind_for(record->expires_ms, copy->now_ms)], record, &key->packed,
		entry->lsn, err);
	if (status != HAPAX_OK || !(entry->flags & HX_LOG_REPLACES))
		return status;
	return copy_remove(copy, key, record->changed_ms, record->expires_ms, entry->lsn, err);
}

/* One segment, while it is read. */
struct source {
	struct hx_log_copy *copy;
	struct hx_log_reader reader;
	struct hx_log_scope_names scopes;
};

static enum hapax_status corrupt(
	const struct source *source, const char *what, struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_CORRUPT, 0, "segment %016llx at offset %llu: %s",
		(unsigned long long)source->reader.header.id,
		(unsigned long long)source->reader.offset, what);
}

static enum hapax_status copy_keyed(
	struct source *source, const struct hx_log_entry *entry, struct hapax_error *err)
{
	struct hx_log *log = source->copy->log;
	struct hx_log_walk_scope *names =
		hx_log_scope_names_get(&source->scopes, entry->as.put.scope);
	struct hx_index_key key;

	assert(entry->kind == HX_LOG_PUT || entry->kind == HX_LOG_REMOVE);
	if (names == NULL)
		return corrupt(source, "an entry in an unnamed scope", err);
	if (!names->has_visitor_id) {
		enum hapax_status status = HAPAX_ERR_NO_MEMORY;
		const struct hx_scope *scope = hx_scope_table_intern(
			hx_store_scopes(&log->base), names->tenant, names->group, &status);

		if (scope == NULL)
			return hx_error_set(err, status, 0, "not enough memory for scopes");
		names->visitor_id = scope->id;
		names->has_visitor_id = true;
	}
	hx_log_entry_key(entry, names->visitor_id, log->index, &key);
	if (entry->kind == HX_LOG_PUT)
		return copy_put(source->copy, entry, &key, err);
	return copy_remove(
		source->copy, &key, entry->as.put.record.changed_ms,
		entry->as.put.record.expires_ms, entry->lsn, err);
}

static enum hapax_status copy_entry(
	void *context, const struct hx_log_entry *entry, struct hapax_error *err)
{
	struct source *source = context;

	if (entry->kind == HX_LOG_SCOPE &&
	    !hx_log_scope_names_put(
		    &source->scopes, entry->as.scope.number, entry->as.scope.tenant,
		    entry->as.scope.group))
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for scopes");
	if (entry->kind == HX_LOG_PUT || entry->kind == HX_LOG_REMOVE)
		return copy_keyed(source, entry, err);
	return HAPAX_OK;
}

enum hapax_status hx_log_copy_segment(
	struct hx_log_copy *copy, enum hx_log_kind kind, uint64_t id, uint64_t end,
	struct hapax_error *err)
{
	struct source source = {.copy = copy};
	char path[HX_LOG_PATH_SIZE];
	enum hapax_status status;

	assert((unsigned)kind < HX_LOG_KIND_COUNT);
	/* Class segments are read to their seal. */
	assert(kind == HX_LOG_KIND_LOG || end == 0);
	hx_log_segment_path(&copy->log->directory, kind, id, "", path);
	hx_log_scope_names_init(&source.scopes);
	status = hx_log_reader_open(&source.reader, copy->log->directory.io, path, false, err);
	if (status == HAPAX_OK &&
	    (source.reader.header.id != id || source.reader.header.kind != kind))
		status = corrupt(&source, "the segment does not match its name", err);
	/* Damaged since it was written: the segment stays, with its content. */
	if (status == HAPAX_OK)
		status = hx_log_reader_each(
			&source.reader, end != 0 ? end : source.reader.header.capacity, copy_entry,
			&source, err);
	hx_log_reader_close(&source.reader);
	hx_log_scope_names_done(&source.scopes);
	return status;
}
