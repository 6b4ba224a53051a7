/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the segment reader (src/store/log/read/reader.c), headers and frames
 * (src/store/log/format/format.c), entries (src/store/log/format/entry.c).
 *
 * The bytes are read three times: as the file of a segment; as the entries of a frame
 * whose header and CRC fit, behind a header that fits; and one by one. A record that is
 * accepted is encoded again and must read the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/io.h"
#include "store/index/packed_key.h"
#include "store/log/read/reader.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { FILE_BYTES_MAX = 1 << 20 };

static void must(int condition)
{
	if (!condition)
		abort();
}

/* One file, in memory. */
struct memory_file {
	const unsigned char *data;
	size_t size;
};

static int memory_open(void *context, const char *path, unsigned flags, mode_t mode)
{
	(void)context;
	(void)path;
	(void)mode;
	return flags & HX_IO_DIRECT ? -EINVAL : 3;
}

static int memory_close(void *context, int file)
{
	(void)context;
	(void)file;
	return 0;
}

static ssize_t memory_pread(void *context, int file, void *out, size_t size, uint64_t offset)
{
	const struct memory_file *memory = context;
	size_t part;

	(void)file;
	if (offset >= memory->size)
		return 0;
	part = memory->size - (size_t)offset < size ? memory->size - (size_t)offset : size;
	memcpy(out, memory->data + offset, part);
	return (ssize_t)part;
}

static int memory_stat(void *context, int file, struct hx_io_stat *ret)
{
	const struct memory_file *memory = context;

	(void)file;
	*ret = (struct hx_io_stat){.kind = HX_IO_FILE, .size = memory->size};
	return 0;
}

static const struct hx_io_ops memory_ops = {
	.open = memory_open,
	.close = memory_close,
	.pread = memory_pread,
	.stat = memory_stat,
};

static bool same_bytes(struct hapax_bytes a, struct hapax_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* A PUT again, from what was read of it. */
static void check_put(const struct hx_log_entry *entry)
{
	const struct hapax_record *record = &entry->as.put.record;
	struct hx_packed_key key = {
		.encoding = entry->as.put.encoding,
		.size = (uint16_t)record->key.size,
		.data = record->key.data,
	};
	/* A reader ignores the flags that it does not know; no writer sets them. */
	unsigned flags = entry->flags & (unsigned)HX_LOG_REPLACES;
	size_t size = hx_log_put_size(record, &key);
	unsigned char *at = malloc(size);
	struct hx_log_entry again;

	must(at != NULL);
	hx_log_put_encode(at, record, &key, entry->as.put.scope, flags, entry->lsn);
	must(hx_log_entry_decode(hx_bytes(at, size), &again, NULL) == HAPAX_OK);
	must(again.size == size && again.lsn == entry->lsn && again.flags == flags);
	must(again.as.put.scope == entry->as.put.scope);
	must(again.as.put.record.state == record->state);
	must(again.as.put.record.token == record->token);
	must(again.as.put.record.ttl_ms == record->ttl_ms);
	must(again.as.put.record.expires_ms == record->expires_ms);
	must(again.as.put.record.first_seen_ms == record->first_seen_ms);
	must(again.as.put.record.lease_ends_ms == record->lease_ends_ms);
	must(again.as.put.record.attempt == record->attempt);
	must(same_bytes(again.as.put.record.key, record->key));
	must(same_bytes(again.as.put.record.owner, record->owner));
	must(same_bytes(again.as.put.record.error, record->error));
	must(same_bytes(again.as.put.record.result.headers, record->result.headers));
	must(same_bytes(again.as.put.record.result.body, record->result.body));
	free(at);
}

static void check_entry(const struct hx_log_entry *entry)
{
	if (entry->kind == HX_LOG_PUT)
		check_put(entry);
	if (entry->kind == HX_LOG_MANIFEST) {
		for (uint32_t i = 0; i < entry->as.manifest.count; i++)
			must(hx_log_manifest_item(entry, i).kind != HX_LOG_KIND_LOG);
	}
}

static void read_file(const unsigned char *data, size_t size)
{
	struct memory_file memory = {data, size};
	struct hx_io io = {&memory_ops, &memory};
	struct hx_log_reader reader = {0};
	struct hapax_error err = {0};
	enum hx_log_found found = HX_LOG_FOUND_FRAME;
	bool is_further;
	struct hx_log_frame frame;

	if (hx_log_reader_open(&reader, &io, "segment", false, &err) != HAPAX_OK) {
		must(err.message[0] != '\0');
		hx_log_reader_close(&reader);
		return;
	}
	while (found == HX_LOG_FOUND_FRAME) {
		struct hx_log_entries entries;
		struct hx_log_entry entry;
		struct hapax_bytes bytes;
		enum hapax_status status;

		must(hx_log_reader_next(&reader, &found, &frame, &bytes, &err) == HAPAX_OK);
		if (found != HX_LOG_FOUND_FRAME)
			break;
		hx_log_entries_begin(&entries, &frame, reader.header.kind, bytes);
		while (hx_log_entries_next(&entries, &entry, &status, &err))
			check_entry(&entry);
	}
	must(hx_log_reader_witness(&reader, &is_further, &frame, &err) == HAPAX_OK);
	hx_log_reader_close(&reader);
}

/* The bytes as the entries of a frame; the first one says how many. */
static void read_entries(const unsigned char *data, size_t size)
{
	struct hx_log_header header = {.kind = HX_LOG_KIND_DAY, .id = 1, .salt = 2};
	size_t frame_size = hx_log_frame_size((uint32_t)size);
	size_t file_size = HX_LOG_BLOCK_SIZE + frame_size;
	unsigned char *file = calloc(1, file_size);
	struct hx_log_frame frame = {
		.size = (uint32_t)frame_size,
		.payload = (uint32_t)size,
		.entries = size != 0 ? data[0] : 0,
		.offset = HX_LOG_BLOCK_SIZE,
	};

	must(file != NULL);
	header.capacity = file_size;
	hx_log_header_encode(&header, file);
	if (size != 0)
		memcpy(file + HX_LOG_BLOCK_SIZE + HX_LOG_FRAME_HEADER_SIZE, data, size);
	hx_log_frame_encode(&frame, hx_log_seed(&header), file + HX_LOG_BLOCK_SIZE);
	read_file(file, file_size);
	free(file);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hx_log_entry entry;

	if (size > FILE_BYTES_MAX)
		return 0;
	read_file(data, size);
	read_entries(data, size);
	while (hx_log_entry_decode(hx_bytes(data, size), &entry, NULL) == HAPAX_OK) {
		check_entry(&entry);
		data += entry.size;
		size -= entry.size;
	}
	return 0;
}
