/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_writer.c - a class segment under construction.
 */
#include "store/log/tidy/class_writer.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "store/index/packed_key.h"
#include "store/log/format/endian.h"
#include "store/log/tidy/result_files.h"

enum {
	/* Dense: large frames, little padding. */
	FRAME_BYTES = 256 * 1024,
	NAMED_BYTES_MAX = HX_SCOPES_MAX / 8,
};

/* REMOVEs wait in memory for their turn. */
#define REMOVES_BYTES_MAX ((size_t)1 << 32)

void hx_log_class_writer_init(
	struct hx_log_class_writer *writer, struct hx_log_directory *directory,
	struct hx_scope_table *scopes, enum hx_log_kind kind, uint64_t id)
{
	memset(writer, 0, sizeof(*writer));
	writer->directory = directory;
	writer->scopes = scopes;
	writer->kind = kind;
	writer->id = id;
	hx_log_segment_init(&writer->segment);
	hx_buf_init(&writer->named, NAMED_BYTES_MAX);
	hx_buf_init(&writer->removes, REMOVES_BYTES_MAX);
	writer->seal.lsn_low = UINT64_MAX;
	writer->seal.expires_ms_max = INT64_MIN;
}

/* The state between two entries. */
static void class_writer_assert(const struct hx_log_class_writer *writer)
{
	const struct hx_log_seal *seal = &writer->seal;

	assert(writer->kind != HX_LOG_KIND_LOG);
	assert((unsigned)writer->kind < HX_LOG_KIND_COUNT);
	assert((writer->entries == 0) == (writer->payload == 0));
	/* The file is created when there is something to write. */
	assert(writer->payload == 0 || writer->segment.file >= 0);
	assert(writer->payload == 0 ||
	       hx_log_frame_size(writer->payload) <= writer->frame_committed);
	assert((seal->puts == 0) == (seal->put_bytes == 0));
	assert((seal->removes == 0) == (writer->removes.size == 0));
	assert(writer->large_results <= seal->puts);
	assert(seal->put_bytes % HX_LOG_ENTRY_ALIGN == 0);
}

void hx_log_class_writer_set_made(struct hx_log_class_writer *writer, uint64_t lsn)
{
	class_writer_assert(writer);
	/* Otherwise a record could be in it that was dead at that LSN. */
	assert(hx_log_class_writer_is_empty(writer));
	assert(writer->seal.made_lsn == 0);
	assert(lsn != 0);
	writer->seal.made_lsn = lsn;
}

void hx_log_class_writer_done(struct hx_log_class_writer *writer)
{
	if (writer->segment.file >= 0) {
		hx_log_segment_close(&writer->segment);
		(void)hx_log_segment_remove(writer->directory, writer->kind, writer->id, ".tmp");
	}
	if (writer->frame != NULL)
		hx_alloc_pages_release(writer->frame, HX_LOG_FRAME_SIZE_MAX);
	hx_buf_done(&writer->named);
	hx_buf_done(&writer->removes);
	memset(writer, 0, sizeof(*writer));
	hx_log_segment_init(&writer->segment);
}

bool hx_log_class_writer_is_empty(const struct hx_log_class_writer *writer)
{
	return writer->seal.puts == 0 && writer->seal.removes == 0;
}

static enum hapax_status no_memory(struct hapax_error *err)
{
	return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to copy records");
}

static enum hapax_status open_file(struct hx_log_class_writer *writer, struct hapax_error *err)
{
	struct hx_log_segment_plan plan = {
		.kind = writer->kind,
		.id = writer->id,
		.capacity = 2 * HX_LOG_BLOCK_SIZE,
		.is_hidden = true,
	};

	assert(writer->id != 0);
	if (writer->segment.file >= 0)
		return HAPAX_OK;
	if (writer->frame == NULL)
		writer->frame = hx_alloc_pages_reserve(HX_LOG_FRAME_SIZE_MAX);
	if (writer->frame == NULL)
		return no_memory(err);
	return hx_log_segment_make(&writer->segment, writer->directory, &plan, err);
}

static enum hapax_status flush(
	struct hx_log_class_writer *writer, uint32_t flags, struct hapax_error *err)
{
	uint32_t end = HX_LOG_FRAME_HEADER_SIZE + writer->payload;
	struct hx_log_frame frame = {
		.flags = flags,
		.size = hx_log_frame_size(writer->payload),
		.payload = writer->payload,
		.entries = writer->entries,
		.chain = writer->chain,
		.offset = writer->segment.offset,
	};
	int failed;

	if (writer->entries == 0)
		return HAPAX_OK;
	assert(frame.size <= writer->frame_committed);
	hx_log_segment_assert(&writer->segment);
	memset(writer->frame + end, 0, frame.size - end);
	hx_log_frame_encode(&frame, writer->segment.seed, writer->frame);
	writer->payload = 0;
	writer->entries = 0;
	writer->chain = frame.crc;
	failed = hx_log_segment_write(&writer->segment, writer->frame, frame.size);
	if (failed != 0)
		return hx_error_set(
			err, hx_error_status_of(-failed), -failed,
			"could not write a class segment");
	return HAPAX_OK;
}

/* Room for an entry, in this frame or the next. NULL: *ret_status. */
static unsigned char *class_writer_take(
	struct hx_log_class_writer *writer, size_t size, enum hapax_status *ret_status,
	struct hapax_error *err)
{
	unsigned char *at;

	assert(size % HX_LOG_ENTRY_ALIGN == 0);
	*ret_status = open_file(writer, err);
	if (*ret_status == HAPAX_OK && writer->payload != 0 && writer->payload + size > FRAME_BYTES)
		*ret_status = flush(writer, 0, err);
	if (*ret_status != HAPAX_OK)
		return NULL;
	assert(size <= HX_LOG_FRAME_SIZE_MAX - HX_LOG_BLOCK_SIZE);
	assert(writer->payload == 0 || writer->payload + size <= FRAME_BYTES);
	if (hx_alloc_pages_grow(
		    writer->frame, &writer->frame_committed,
		    hx_log_frame_size((uint32_t)(writer->payload + size))) != 0) {
		*ret_status = no_memory(err);
		return NULL;
	}
	at = writer->frame + HX_LOG_FRAME_HEADER_SIZE + writer->payload;
	writer->payload += (uint32_t)size;
	writer->entries++;
	assert(hx_log_frame_size(writer->payload) <= writer->frame_committed);
	return at;
}

static enum hapax_status name_scope(
	struct hx_log_class_writer *writer, uint32_t scope_id, struct hapax_error *err)
{
	size_t byte = scope_id / 8;
	unsigned char bit = (unsigned char)(1u << scope_id % 8);
	const struct hx_scope *scope;
	enum hapax_status status;
	unsigned char *at;

	assert(scope_id < HX_SCOPES_MAX);
	while (writer->named.size <= byte) {
		if (hx_buf_append_byte(&writer->named, 0) != HAPAX_OK)
			return no_memory(err);
	}
	if (writer->named.data[byte] & bit)
		return HAPAX_OK;
	scope = hx_scope_table_get(writer->scopes, scope_id);
	assert(scope->id == scope_id);
	at = class_writer_take(
		writer, hx_log_scope_size(scope->tenant, scope->group), &status, err);
	if (at == NULL)
		return status;
	hx_log_scope_encode(at, scope_id, scope->tenant, scope->group, 0);
	writer->named.data[byte] |= bit;
	return HAPAX_OK;
}

static void note(struct hx_log_class_writer *writer, uint64_t lsn, int64_t expires_ms)
{
	struct hx_log_seal *seal = &writer->seal;

	seal->lsn_low = lsn < seal->lsn_low ? lsn : seal->lsn_low;
	if (expires_ms > seal->expires_ms_max)
		seal->expires_ms_max = expires_ms;
	assert(seal->lsn_low <= lsn);
	assert(seal->expires_ms_max >= expires_ms);
}

enum hapax_status hx_log_class_writer_put(
	struct hx_log_class_writer *writer, const struct hapax_record *record,
	const struct hx_packed_key *key, uint64_t lsn, struct hapax_error *err)
{
	size_t size = hx_log_put_size(record, key);
	enum hapax_status status = name_scope(writer, key->scope_id, err);
	unsigned char *at;

	class_writer_assert(writer);
	assert(writer->seal.made_lsn != 0);
	/* Claims never expire: they stay in the log. */
	assert(record->state == HAPAX_STATE_DONE || record->state == HAPAX_STATE_FAILED);
	if (status != HAPAX_OK)
		return status;
	at = class_writer_take(writer, size, &status, err);
	if (at == NULL)
		return status;
	hx_log_put_encode(at, record, key, key->scope_id, 0, lsn);
	writer->seal.puts++;
	writer->seal.put_bytes += size;
	writer->large_results += hx_log_result_files_takes(record);
	note(writer, lsn, record->expires_ms);
	return HAPAX_OK;
}

enum hapax_status hx_log_class_writer_remove(
	struct hx_log_class_writer *writer, const struct hx_packed_key *key, int64_t changed_ms,
	int64_t needed_until_ms, uint64_t lsn, struct hapax_error *err)
{
	size_t size = hx_log_remove_size(key);

	class_writer_assert(writer);
	assert(writer->seal.made_lsn != 0);
	if (hx_buf_reserve(&writer->removes, size) != HAPAX_OK)
		return no_memory(err);
	hx_log_remove_encode(
		writer->removes.data + writer->removes.size, key, key->scope_id, changed_ms,
		needed_until_ms, lsn);
	assert(hx_get32(writer->removes.data + writer->removes.size + HX_LOG_ENTRY_SIZE) == size);
	writer->removes.size += size;
	writer->seal.removes++;
	note(writer, lsn, needed_until_ms);
	return HAPAX_OK;
}

/* After the PUTs; scopes are named again, so that this part can be read on its own. */
static enum hapax_status write_removes(struct hx_log_class_writer *writer, struct hapax_error *err)
{
	enum hapax_status status = open_file(writer, err);
	uint64_t count = 0;
	size_t done = 0;

	if (status == HAPAX_OK)
		status = flush(writer, 0, err);
	if (status != HAPAX_OK)
		return status;
	/* The PUTs end at a frame. */
	assert(writer->payload == 0);
	assert(writer->segment.offset >= HX_LOG_BLOCK_SIZE);
	writer->seal.removes_offset = writer->segment.offset;
	hx_buf_clear(&writer->named);
	while (done < writer->removes.size) {
		const unsigned char *entry = writer->removes.data + done;
		size_t size = hx_get32(entry + HX_LOG_ENTRY_SIZE);
		unsigned char *at;

		status = name_scope(writer, hx_get32(entry + HX_LOG_ENTRY_SCOPE), err);
		if (status != HAPAX_OK)
			return status;
		at = class_writer_take(writer, size, &status, err);
		if (at == NULL)
			return status;
		assert(entry[HX_LOG_ENTRY_KIND] == HX_LOG_REMOVE);
		assert(size <= writer->removes.size - done);
		memcpy(at, entry, size);
		done += size;
		count++;
	}
	assert(count == writer->seal.removes);
	return flush(writer, 0, err);
}

enum hapax_status hx_log_class_writer_finish(
	struct hx_log_class_writer *writer, struct hx_log_manifest_item *ret_item,
	struct hapax_error *err)
{
	enum hapax_status status = write_removes(writer, err);
	unsigned char *at;
	int failed;

	class_writer_assert(writer);
	assert(!hx_log_class_writer_is_empty(writer));
	if (status != HAPAX_OK)
		return status;
	at = class_writer_take(writer, HX_LOG_SEAL_SIZE, &status, err);
	if (at == NULL)
		return status;
	/* The seal is alone in its frame, the last block. */
	assert(writer->entries == 1);
	hx_log_seal_encode(at, &writer->seal, 0);
	status = flush(writer, HX_LOG_FRAME_SEAL, err);
	if (status != HAPAX_OK)
		return status;
	assert(writer->seal.removes_offset <= writer->segment.offset - HX_LOG_BLOCK_SIZE);
	assert(writer->seal.put_bytes <= writer->segment.offset);
	failed = hx_log_segment_finish(&writer->segment, writer->directory);
	if (failed != 0)
		return hx_error_set(
			err, hx_error_status_of(-failed), -failed,
			"could not finish a class segment");
	*ret_item = (struct hx_log_manifest_item){
		.id = writer->id,
		.bytes = writer->segment.offset,
		.kind = writer->kind,
		.crc = writer->chain,
		.seal = writer->seal,
	};
	/* The manifest names the size that the header says. */
	assert(ret_item->bytes == writer->segment.header.capacity);
	hx_log_segment_close(&writer->segment);
	return HAPAX_OK;
}
