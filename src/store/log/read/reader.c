/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - one segment, read from front to back.
 *
 * The window is a piece of the file in memory. It begins at a frame and is read again when a
 * frame does not lie whole in it. Frames are small compared with the window, so little is read
 * twice.
 */
#include "store/log/read/reader.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"
#include "store/index/index.h"

enum {
	READ_BYTES = 4 * 1024 * 1024,
	WINDOW_BYTES_MAX = HX_LOG_FRAME_SIZE_MAX + READ_BYTES,
};

_Static_assert(HX_PAGES_STEP % HX_LOG_BLOCK_SIZE == 0, "pages hold whole blocks");
_Static_assert(WINDOW_BYTES_MAX % HX_PAGES_STEP == 0, "the window grows in steps");

/* With direct I/O if that works: see the header. */
static int open_file(struct hx_log_reader *reader, const char *path)
{
	const struct hx_io *io = reader->io;
	int file = io->ops->open(io->context, path, HX_IO_READ | HX_IO_DIRECT, 0);

	reader->is_direct = file >= 0;
	if (file == -EINVAL)
		file = io->ops->open(io->context, path, HX_IO_READ, 0);
	return file;
}

/* The state of an open reader. Offsets move in whole blocks. */
static void reader_assert(const struct hx_log_reader *reader)
{
	assert(reader->file >= 0);
	assert(reader->offset % HX_LOG_BLOCK_SIZE == 0);
	assert(reader->file_bytes % HX_LOG_BLOCK_SIZE == 0);
	assert(reader->window_offset % HX_LOG_BLOCK_SIZE == 0);
	assert(reader->window_size <= reader->window_committed);
	assert(reader->window_committed <= WINDOW_BYTES_MAX);
	assert(reader->window_committed == 0 || reader->window != NULL);
}

/* Make the window hold size bytes of memory. */
static enum hapax_status grow_window(
	struct hx_log_reader *reader, size_t size, struct hapax_error *err)
{
	assert(size <= WINDOW_BYTES_MAX);
	if (reader->window == NULL)
		reader->window = hx_alloc_pages_reserve(WINDOW_BYTES_MAX);
	if (reader->window == NULL ||
	    hx_alloc_pages_grow(reader->window, &reader->window_committed, size) != 0)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to read a segment");
	return HAPAX_OK;
}

/* Bring [offset, offset + size) into the window, as far as the file goes; and more, up to ahead. */
static enum hapax_status load_ahead(
	struct hx_log_reader *reader, uint64_t offset, size_t size, size_t ahead,
	struct hapax_error *err)
{
	uint64_t left = offset < reader->file_bytes ? reader->file_bytes - offset : 0;
	size_t bytes = size > ahead ? size : ahead;
	enum hapax_status status;
	ssize_t got;

	assert(offset % HX_LOG_BLOCK_SIZE == 0);
	assert(size <= HX_LOG_FRAME_SIZE_MAX);
	if (size > left)
		size = (size_t)left;
	if (offset >= reader->window_offset &&
	    offset + size <= reader->window_offset + reader->window_size)
		return HAPAX_OK;
	if (bytes > left)
		bytes = (size_t)left;
	status = grow_window(reader, bytes, err);
	if (status != HAPAX_OK)
		return status;
	assert(bytes <= reader->window_committed);
	reader->window_size = 0;
	got = hx_io_read_full(reader->io, reader->file, reader->window, bytes, offset);
	if (got < 0)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, (int)-got,
			"could not read a segment at offset %llu", (unsigned long long)offset);
	assert((size_t)got <= bytes);
	reader->window_offset = offset;
	reader->window_size = (size_t)got;
	/* The file became shorter during the read. */
	if ((size_t)got < bytes)
		reader->file_bytes =
			(offset + (uint64_t)got) / HX_LOG_BLOCK_SIZE * HX_LOG_BLOCK_SIZE;
	return HAPAX_OK;
}

static enum hapax_status load(
	struct hx_log_reader *reader, uint64_t offset, size_t size, struct hapax_error *err)
{
	return load_ahead(reader, offset, size, READ_BYTES, err);
}

static const unsigned char *at_offset(const struct hx_log_reader *reader, uint64_t offset)
{
	assert(offset >= reader->window_offset);
	assert(offset - reader->window_offset < reader->window_size);
	return reader->window + (offset - reader->window_offset);
}

static bool is_loaded(const struct hx_log_reader *reader, uint64_t offset, size_t size)
{
	return offset >= reader->window_offset &&
		offset + size <= reader->window_offset + reader->window_size;
}

static enum hapax_status read_header(
	struct hx_log_reader *reader, const char *path, bool may_be_short, struct hapax_error *err)
{
	struct hapax_error why = {0};
	/* Nothing ahead: the next read is often the seal, at the other end. */
	enum hapax_status status = load_ahead(reader, 0, HX_LOG_BLOCK_SIZE, HX_LOG_BLOCK_SIZE, err);

	if (status != HAPAX_OK)
		return status;
	if (!is_loaded(reader, 0, HX_LOG_BLOCK_SIZE))
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0, "'%s' is truncated: it has no header", path);
	status = hx_log_header_decode(at_offset(reader, 0), &reader->header, &why);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "'%s': %s", path, why.message);
	if (reader->file_bytes < reader->header.capacity && !may_be_short)
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0, "'%s' is truncated: %llu bytes of %llu", path,
			(unsigned long long)reader->file_bytes,
			(unsigned long long)reader->header.capacity);
	return HAPAX_OK;
}

enum hapax_status hx_log_reader_open(
	struct hx_log_reader *reader, const struct hx_io *io, const char *path, bool may_be_short,
	struct hapax_error *err)
{
	struct hx_io_stat st;
	enum hapax_status status;
	int failed;

	/* Zeroed, or shut: the file of another segment would stay open. */
	assert(reader->io == NULL);
	assert(reader->window_committed == 0 || reader->window != NULL);
	*reader = (struct hx_log_reader){
		.io = io,
		.window = reader->window,
		.window_committed = reader->window_committed,
	};
	reader->file = open_file(reader, path);
	if (reader->file < 0) {
		failed = -reader->file;
		reader->file = -1;
		reader->io = NULL;
		return hx_error_set(
			err, hx_error_status_of(failed), failed, "could not open '%s'", path);
	}
	failed = io->ops->stat(io->context, reader->file, &st);
	if (failed != 0) {
		status = hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, -failed, "could not read '%s'", path);
	} else {
		reader->file_bytes = st.size / HX_LOG_BLOCK_SIZE * HX_LOG_BLOCK_SIZE;
		status = read_header(reader, path, may_be_short, err);
	}
	if (status != HAPAX_OK) {
		hx_log_reader_shut(reader);
		return status;
	}
	reader->seed = hx_log_seed(&reader->header);
	reader->offset = HX_LOG_BLOCK_SIZE;
	reader_assert(reader);
	assert(may_be_short || reader->file_bytes >= reader->header.capacity);
	return HAPAX_OK;
}

void hx_log_reader_shut(struct hx_log_reader *reader)
{
	if (reader->io != NULL && reader->file >= 0)
		(void)reader->io->ops->close(reader->io->context, reader->file);
	reader->io = NULL;
	reader->file = -1;
}

void hx_log_reader_close(struct hx_log_reader *reader)
{
	hx_log_reader_shut(reader);
	if (reader->window != NULL)
		hx_alloc_pages_release(reader->window, WINDOW_BYTES_MAX);
	memset(reader, 0, sizeof(*reader));
	reader->file = -1;
}

/* Is there a frame at offset? If so, it lies in the window. */
static enum hapax_status look(
	struct hx_log_reader *reader, uint64_t offset, enum hx_log_found *ret_found,
	struct hx_log_frame *ret_frame, struct hapax_error *err)
{
	enum hapax_status status;

	*ret_found = HX_LOG_FOUND_END;
	if (offset >= reader->file_bytes)
		return HAPAX_OK;
	status = load(reader, offset, HX_LOG_BLOCK_SIZE, err);
	if (status != HAPAX_OK)
		return status;
	if (!is_loaded(reader, offset, HX_LOG_BLOCK_SIZE))
		return HAPAX_OK;
	*ret_found = HX_LOG_FOUND_NOTHING;
	if (!hx_log_frame_peek(at_offset(reader, offset), offset, ret_frame))
		return HAPAX_OK;
	status = load(reader, offset, ret_frame->size, err);
	if (status != HAPAX_OK)
		return status;
	*ret_found = is_loaded(reader, offset, ret_frame->size) &&
			hx_log_frame_is_whole(ret_frame, reader->seed, at_offset(reader, offset))
		? HX_LOG_FOUND_FRAME
		: HX_LOG_FOUND_DAMAGE;
	return HAPAX_OK;
}

enum hapax_status hx_log_reader_next(
	struct hx_log_reader *reader, enum hx_log_found *ret_found, struct hx_log_frame *ret_frame,
	struct hapax_bytes *ret_entries, struct hapax_error *err)
{
	enum hapax_status status = look(reader, reader->offset, ret_found, ret_frame, err);

	if (status != HAPAX_OK || *ret_found != HX_LOG_FOUND_FRAME)
		return status;
	reader_assert(reader);
	/* The whole frame lies in the window. */
	assert(is_loaded(reader, reader->offset, ret_frame->size));
	assert(ret_frame->offset == reader->offset);
	*ret_entries = (struct hapax_bytes){
		at_offset(reader, reader->offset) + HX_LOG_FRAME_HEADER_SIZE, ret_frame->payload};
	reader->offset += ret_frame->size;
	assert(reader->offset <= reader->file_bytes);
	return HAPAX_OK;
}

enum hapax_status hx_log_reader_witness(
	struct hx_log_reader *reader, bool *ret_found, struct hx_log_frame *ret_frame,
	struct hapax_error *err)
{
	reader_assert(reader);
	*ret_found = false;
	for (uint64_t offset = reader->offset + HX_LOG_BLOCK_SIZE; offset < reader->file_bytes;
	     offset += HX_LOG_BLOCK_SIZE) {
		enum hx_log_found found;
		enum hapax_status status = look(reader, offset, &found, ret_frame, err);

		if (status != HAPAX_OK)
			return status;
		if (found == HX_LOG_FOUND_FRAME) {
			assert(ret_frame->offset > reader->offset);
			*ret_found = true;
			return HAPAX_OK;
		}
	}
	return HAPAX_OK;
}

enum hapax_status hx_log_reader_probe(
	struct hx_log_reader *reader, uint64_t offset, enum hx_log_found *ret_found,
	struct hx_log_frame *ret_frame, bool *ret_is_zero, struct hapax_error *err)
{
	static const unsigned char zeros[HX_LOG_BLOCK_SIZE];
	enum hapax_status status = look(reader, offset, ret_found, ret_frame, err);

	*ret_is_zero = status == HAPAX_OK && *ret_found == HX_LOG_FOUND_NOTHING &&
		memcmp(at_offset(reader, offset), zeros, sizeof(zeros)) == 0;
	return status;
}

void hx_log_entries_begin(
	struct hx_log_entries *entries, const struct hx_log_frame *frame, enum hx_log_kind kind,
	struct hapax_bytes bytes)
{
	assert(bytes.size == frame->payload);
	assert((unsigned)kind < HX_LOG_KIND_COUNT);
	*entries = (struct hx_log_entries){
		.left = bytes,
		.count = frame->entries,
		.lsn = frame->lsn,
		.offset = frame->offset + HX_LOG_FRAME_HEADER_SIZE,
		.is_log = kind == HX_LOG_KIND_LOG,
	};
}

bool hx_log_entries_next(
	struct hx_log_entries *entries, struct hx_log_entry *ret_entry,
	enum hapax_status *ret_status, struct hapax_error *err)
{
	*ret_status = HAPAX_OK;
	if (entries->count == 0) {
		if (entries->left.size != 0)
			*ret_status = hx_error_set(
				err, HAPAX_ERR_CORRUPT, 0, "a frame has data beyond its entries");
		return false;
	}
	*ret_status = hx_log_entry_decode(entries->left, ret_entry, err);
	if (*ret_status == HAPAX_OK && entries->is_log && ret_entry->lsn != entries->lsn)
		*ret_status = hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0, "an entry has LSN %llu instead of %llu",
			(unsigned long long)ret_entry->lsn, (unsigned long long)entries->lsn);
	if (*ret_status != HAPAX_OK)
		return false;
	assert(ret_entry->size <= entries->left.size);
	ret_entry->offset = entries->offset;
	entries->offset += ret_entry->size;
	entries->left.data = (const unsigned char *)entries->left.data + ret_entry->size;
	entries->left.size -= ret_entry->size;
	entries->count--;
	entries->lsn++;
	return true;
}

enum hapax_status hx_log_reader_each(
	struct hx_log_reader *reader, uint64_t end, hx_log_each_fn *each, void *context,
	struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK && reader->offset < end) {
		struct hx_log_entries entries;
		struct hx_log_entry entry;
		struct hx_log_frame frame;
		struct hapax_bytes bytes;
		enum hx_log_found found;

		status = hx_log_reader_next(reader, &found, &frame, &bytes, err);
		if (status != HAPAX_OK)
			break;
		if (found != HX_LOG_FOUND_FRAME)
			return hx_error_set(
				err, HAPAX_ERR_CORRUPT, 0,
				"segment %016llx at offset %llu: a frame is damaged",
				(unsigned long long)reader->header.id,
				(unsigned long long)reader->offset);
		assert(reader->offset == frame.offset + frame.size);
		hx_log_entries_begin(&entries, &frame, reader->header.kind, bytes);
		while (status == HAPAX_OK && hx_log_entries_next(&entries, &entry, &status, err))
			status = each(context, &entry, err);
	}
	return status;
}

void hx_log_entry_key(
	const struct hx_log_entry *entry, uint32_t scope_id, struct hx_index *index,
	struct hx_index_key *ret_key)
{
	assert(entry->kind == HX_LOG_PUT || entry->kind == HX_LOG_REMOVE);
	assert(entry->as.put.record.key.size <= UINT16_MAX);
	ret_key->packed.scope_id = scope_id;
	ret_key->packed.encoding = entry->as.put.encoding;
	ret_key->packed.size = (uint16_t)entry->as.put.record.key.size;
	ret_key->packed.data = entry->as.put.record.key.data;
	hx_index_key_finish(index, ret_key);
}
