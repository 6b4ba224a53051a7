/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.c - the files of a store, and how much of them is live.
 */
#include "base/io.h"

#include <assert.h>
#include "store/core.h"
#include "store/index/packed_key.h"
#include "store/log/format/listing.h"
#include "store/log/log_private.h"

/* The record's size in a segment, without parts of its fingerprint that memory lacks. */
static int add_record(
	const struct hapax_record *record, const struct hx_elsewhere *elsewhere, void *context)
{
	struct hapax_files *files = context;
	struct hx_packed_key key;

	(void)elsewhere; /* sizes are enough */
	hx_packed_key_init(&key, 0, record->key);
	files->live_bytes += hx_log_put_size(record, &key);
	return 0;
}

static void measure_records(struct hx_log *log, struct hapax_files *files)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {.size = 0};

	scan.count_max = 1000;
	while (!cursor.done)
		hx_index_scan(log->index, &scan, &cursor, hx_log_now(log), add_record, files);
}

/* Segments may come and go during the count: a removed one counts as nothing. */
static enum hapax_status measure_segments(
	const struct hx_log *log, struct hapax_files *files, struct hapax_error *err)
{
	const struct hx_log_directory *directory = &log->directory;
	const struct hx_io *io = directory->io;
	struct hx_log_listing listing;
	enum hapax_status status = hx_log_listing_read(&listing, directory, err);

	for (size_t i = 0; status == HAPAX_OK && i < listing.count; i++) {
		bool is_log = listing.segments[i].kind == HX_LOG_KIND_LOG;
		char path[HX_LOG_PATH_SIZE];
		struct hx_io_stat st;

		hx_log_segment_path(
			directory, listing.segments[i].kind, listing.segments[i].id, "", path);
		if (io->ops->stat_path(io->context, path, &st) != 0)
			continue;
		files->log_segments += is_log;
		files->class_segments += !is_log;
		files->log_bytes += is_log ? st.size : 0;
		files->class_bytes += is_log ? 0 : st.size;
	}
	hx_log_listing_done(&listing);
	return status;
}

/* Facts that only the leader knows. */
struct marks_task {
	const struct hx_log *log;
	struct hapax_files *files;
};

static enum hapax_status read_marks(void *context)
{
	struct marks_task *marks = context;
	const struct hx_log_writer *writer = &marks->log->writer;

	assert(writer->durable_lsn <= writer->next_lsn);
	assert(writer->witnessed_lsn <= writer->durable_lsn);
	marks->files->lsn = writer->next_lsn;
	marks->files->durable_lsn = writer->durable_lsn;
	marks->files->owed_ms = writer->mark.owed_ms;
	return HAPAX_OK;
}

enum hapax_status hx_log_files(
	struct hapax_store *store, struct hapax_files *files, struct hapax_error *err)
{
	struct hx_log *log = (struct hx_log *)store;
	struct marks_task marks = {log, files};
	enum hapax_status status;

	if (hx_log_writer_is_latched(&log->writer)) {
		if (err != NULL)
			*err = log->writer.fault;
		return HAPAX_ERR_FAILED;
	}
	files->was_closed = log->was_closed;
	status = measure_segments(log, files, err);
	if (status != HAPAX_OK)
		return status;
	measure_records(log, files);
	return hx_log_queue_task(&log->queue, read_marks, &marks);
}
