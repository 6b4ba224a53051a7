/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_store.c - "file:DIR": open, close, and the table of operations.
 *
 * An operation that only reads durable state is answered on the caller's thread. All others go
 * through the queue to the leader (lead.c). Results that are not in memory come last (fetch.c).
 */
#include "store/log/log_store.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/random.h"
#include "store/core.h"
#include "store/log/log_private.h"
#include "store/log/read/recovery.h"
#include "store/log/write/reserve.h"

enum { LAPSED_BYTES_MAX = 16 * 1024 * 1024, KEY_SHOWN_MAX = 64 };

static hapax_store_submit_fn log_submit;

static struct hx_log *log_of(struct hapax_store *store)
{
	assert(store->ops->submit == log_submit);
	return (struct hx_log *)store;
}

static void log_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct hx_log *log = log_of(store);
	size_t done = hx_log_read(log, ops, count);
	struct hx_log_request request = {
		.ops = ops,
		.count = count,
		.decided = done,
		.durable = done,
		.completion = completion,
	};

	assert(done <= count);
	if (done < count && hx_log_queue_submit(&log->queue, &request))
		return;
	hx_store_fail(ops + done, count - done, HAPAX_ERR_NO_MEMORY);
	hx_log_complete(log, ops, count, completion);
}

static void log_run(struct hapax_store *store, struct hapax_op *ops, size_t count)
{
	struct hx_log *log = log_of(store);
	size_t done = hx_log_read(log, ops, count);
	struct hx_log_request request = {
		.ops = ops, .count = count, .decided = done, .durable = done};

	assert(done <= count);
	if (done < count && !hx_log_queue_run(&log->queue, &request))
		hx_store_fail(ops + done, count - done, HAPAX_ERR_NO_MEMORY);
	hx_log_fetch(log, ops, count);
}

static enum hapax_status refuse_latched(struct hx_log *log, struct hapax_error *err)
{
	/* The fault is written before the latch. */
	assert(log->writer.fault.status == HAPAX_ERR_FAILED);
	assert(hx_log_writer_is_latched(&log->writer));
	if (err != NULL)
		*err = log->writer.fault;
	return HAPAX_ERR_FAILED;
}

/*
 * Only durable records are handed out: wait for the frame that is being written if it may hold
 * what was read.
 */
static enum hapax_status wait_for_frame(struct hx_log *log, struct hapax_error *err)
{
	struct hapax_op none;
	struct hx_log_request nothing = {.ops = &none};

	if (!hx_log_queue_run(&log->queue, &nothing))
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to wait");
	return hx_log_writer_is_latched(&log->writer) ? refuse_latched(log, err) : HAPAX_OK;
}

struct scan {
	struct hx_log *log;
	hapax_scan_fn *each;
	void *context;
	struct hapax_buf result; /* of the current record, if it was not in memory */
	enum hapax_status status;
	struct hapax_error *err;
};

/* A user who must decide about a record needs to know which one. */
static void name_key(struct hapax_error *err, const struct hapax_record *record)
{
	size_t size = record->key.size < KEY_SHOWN_MAX ? record->key.size : KEY_SHOWN_MAX;
	int os_errno;

	if (err == NULL)
		return;
	assert(err->status != HAPAX_OK);
	os_errno = err->os_errno;
	/* The message already contains its text. */
	hx_error_set(
		err, err->status, 0, "key '%.*s': %s", (int)size, (const char *)record->key.data,
		err->message);
	err->os_errno = os_errno;
}

/*
 * Runs within the epoch, as each does: the file stays until this returns. An unreadable result
 * ends the scan, after its record.
 */
static int hand_out(
	const struct hapax_record *record, const struct hx_elsewhere *elsewhere, void *context)
{
	struct scan *scan = context;
	struct hapax_record whole = *record;
	struct hapax_result *result = &whole.result;
	size_t size = (size_t)hx_result_bytes(result);

	if (elsewhere == NULL)
		return scan->each(record, scan->context);
	assert(elsewhere->file != 0);
	assert(size > HX_RESULT_IN_MEMORY_MAX);
	assert(hx_result_is_elsewhere(result));
	hx_buf_clear(&scan->result);
	scan->status = hx_buf_reserve(&scan->result, size);
	if (scan->status != HAPAX_OK)
		hx_error_set(scan->err, scan->status, 0, "not enough memory for a result");
	else
		scan->status = hx_log_fetch_bytes(
			scan->log, elsewhere, scan->result.data, size, scan->err);
	if (scan->status != HAPAX_OK) {
		name_key(scan->err, record);
		return 1;
	}
	assert(size <= scan->result.capacity);
	result->headers = hx_bytes(scan->result.data, result->headers.size);
	result->body = hx_bytes(scan->result.data + result->headers.size, result->body.size);
	return scan->each(&whole, scan->context);
}

static enum hapax_status log_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct hx_log *log = log_of(store);
	struct scan out = {.log = log, .each = each, .context = context, .err = err};
	enum hapax_status status;

	if (hx_log_writer_is_latched(&log->writer))
		return refuse_latched(log, err);
	hx_buf_init(&out.result, HX_RESULT_HEADERS_SIZE_MAX + HX_RESULT_SIZE_LIMIT);
	hx_index_scan(log->index, scan, cursor, hx_log_now(log), hand_out, &out);
	hx_buf_done(&out.result);
	/* Records handed out before an unreadable result must be durable also. */
	if (out.status != HAPAX_OK)
		err = NULL;
	status = wait_for_frame(log, err);
	return status != HAPAX_OK ? status : out.status;
}

static enum hapax_status log_stats(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	struct hx_log *log = log_of(store);

	if (hx_log_writer_is_latched(&log->writer))
		return refuse_latched(log, err);
	stats->now_ms = hx_log_now(log);
	stats->skew_ms = stats->now_ms - log->writer.clock->wall_ms(log->writer.clock->context);
	hx_index_stats(log->index, stats, stats->now_ms);
	stats->tidy_failures = hx_log_keeper_failures(log, NULL) + hx_log_fetch_damages(log, NULL);
	stats->reserve_bytes = hx_log_reserve_bytes(&log->directory);
	stats->disk_full = hx_log_writer_is_short(&log->writer);
	hx_log_counts_report(&log->counts, stats, each, context);
	return HAPAX_OK;
}

static enum hapax_status log_count(
	struct hapax_store *store, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	struct hx_log *log = log_of(store);
	enum hapax_status status = hx_log_counts_add(&log->counts, rows, count, hx_log_now(log));

	if (status != HAPAX_OK)
		hx_error_set(err, status, 0, "not enough memory for counters");
	return status;
}

static void log_close(struct hapax_store *store)
{
	struct hx_log *log = (struct hx_log *)store;

	/* A store that did not open has nothing to end. */
	assert(log->is_open || log->writer.frame_count == 0);
	hx_log_keeper_stop(log);
	/* If the end cannot be written, the next open checks more closely. */
	if (log->is_open && !hx_log_writer_is_latched(&log->writer))
		(void)hx_log_mark_frame(log, HX_LOG_FRAME_CLOSE);
	if (log->is_open && log->writer.sync == HX_LOG_SYNC_LATER)
		(void)hx_log_writer_sync(&log->writer);
	assert(!log->keeper_runs);
	hx_log_queue_stop(&log->queue);
	hx_log_queue_done(&log->queue);
	hx_log_fetcher_stop(log);
	hx_log_writer_done(&log->writer);
	hx_log_counts_done(&log->counts);
	hx_index_free(log->index);
	hapax_store_detach(store);
	hx_log_result_files_done(&log->result_files);
	hx_log_directory_done(&log->directory);
	hx_buf_done(&log->lapsed);
	hx_mutex_done(&log->sweep_mutex);
	hx_mutex_done(&log->keeper_mutex);
	hx_cond_done(&log->keeper_wake);
	hx_free(log);
}

/* Opening. */

static enum hapax_status create(struct hx_log *log, struct hapax_error *err)
{
	const struct hapax_clock *clock = hx_store_options(&log->base)->clock;
	struct hx_log_store_file *file = &log->directory.store;

	memset(file, 0, sizeof(*file));
	file->incompat = HX_LOG_INCOMPAT_CAUSE;
	hx_random_bytes(file->uuid, sizeof(file->uuid));
	file->created_ms = clock->wall_ms(clock->context);
	/*
	 * Tokens begin at the time in microseconds: a client that keeps the largest token it has
	 * seen is not fooled by a recreated store.
	 */
	if (file->created_ms > 0 && file->created_ms < (int64_t)(HX_TOKEN_MAX / 2000))
		file->token_floor = (uint64_t)file->created_ms * 1000;
	/* Only the owner of LOCK makes STORE. */
	assert(log->directory.lock_file >= 0);
	assert(file->token_floor <= HX_TOKEN_MAX / 2);
	return hx_log_directory_write(&log->directory, err);
}

/* Is there a store to open? Asked without a lock, so that asking creates nothing. */
static enum hapax_status must_exist(struct hx_log *log, struct hapax_error *err)
{
	const struct hx_io *io = log->directory.io;
	struct hx_io_stat st;
	char path[HX_LOG_PATH_SIZE];

	hx_log_path(&log->directory, "STORE", path);
	if (io->ops->stat_path(io->context, path, &st) == 0)
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "there is no store in '%.128s'",
		log->directory.path);
}

static enum hapax_status enter_directory(struct hx_log *log, struct hapax_error *err)
{
	const struct hapax_store_options *options = hx_store_options(&log->base);
	enum hapax_status status;
	bool found = false;

	if (options->flags & HAPAX_STORE_MUST_EXIST)
		status = must_exist(log, err);
	else
		status = hx_log_directory_make(&log->directory, err);
	/* A directory that is not a store is left unchanged, without our LOCK. */
	if (status == HAPAX_OK)
		status = hx_log_directory_read(&log->directory, &found, err);
	if (status == HAPAX_OK)
		status = hx_log_directory_lock(&log->directory, true, err);
	/* Another process may have been faster. */
	if (status == HAPAX_OK)
		status = hx_log_directory_read(&log->directory, &found, err);
	if (status == HAPAX_OK && !found)
		status = create(log, err);
	if (status == HAPAX_OK)
		status = hx_log_directory_try(&log->directory, err);
	if (status == HAPAX_OK)
		hx_log_directory_sign(&log->directory);
	return status;
}

/* Create everything in memory, empty. */
static enum hapax_status build(struct hx_log *log, struct hapax_error *err)
{
	const struct hapax_store_options *options = hx_store_options(&log->base);
	struct hx_log_writer_setup setup = {
		.directory = &log->directory,
		.clock = options->clock,
		.sync = options->unsafe_interval_ms != 0 ? HX_LOG_SYNC_LATER : HX_LOG_SYNC_ALWAYS,
		.segment_bytes = options->segment_bytes / HX_LOG_BLOCK_SIZE * HX_LOG_BLOCK_SIZE,
	};
	enum hapax_status status;

	assert(log->directory.lock_file >= 0);
	assert(log->index == NULL);
	hx_log_result_files_init(&log->result_files, &log->directory);
	status = hx_index_new(
		&(struct hx_index_setup){
			.scopes = hx_store_scopes(&log->base),
			.bytes_max = options->bytes_max,
			.keys_max = options->keys_max,
			.token = log->directory.store.token_floor,
			.lapse = hx_log_lapse,
			.lapse_context = log,
			.users = &log->result_files.users,
		},
		&log->index, err);

	if (status != HAPAX_OK)
		return status;
	hx_log_counts_init(&log->counts, hx_store_scopes(&log->base));
	hx_log_queue_init(&log->queue, hx_log_lead, log);
	setup.index = log->index;
	return hx_log_writer_init(&log->writer, &setup, err);
}

/* Mark the store of an earlier version: that version would take what is written now for damage. */
static enum hapax_status upgrade(struct hx_log *log, struct hapax_error *err)
{
	assert(log->directory.lock_file >= 0);
	if (log->directory.store.incompat & HX_LOG_INCOMPAT_CAUSE)
		return HAPAX_OK;
	log->directory.store.incompat |= HX_LOG_INCOMPAT_CAUSE;
	return hx_log_directory_write(&log->directory, err);
}

static enum hapax_status recover(struct hx_log *log, struct hapax_error *err)
{
	struct hx_log_recovery recovery = {
		.directory = &log->directory,
		.index = log->index,
		.result_files = &log->result_files,
		.counts = &log->counts,
		.options = hx_store_options(&log->base),
		.first_mark = log->first_mark,
		.mark = &log->mark,
	};
	struct hx_log_walk_result walk;
	enum hapax_status status = hx_log_recover(&recovery, &walk, err);

	if (status != HAPAX_OK)
		return status;
	assert(walk.damages == 0);
	/* Everything in the log was counted, and nothing behind it is in the index. */
	assert(walk.log_last_id != 0 || walk.log_bytes == 0);
	log->was_closed = walk.was_closed || walk.log_last_id == 0;
	status = hx_log_directory_clean(&log->directory, err);
	if (status == HAPAX_OK)
		status = upgrade(log, err);
	if (status == HAPAX_OK)
		status = hx_log_writer_resume(&log->writer, &walk, &log->mark, err);
	if (status == HAPAX_OK)
		hx_log_recover_clean(&log->directory, &walk, &log->writer.reuse_id);
	assert(status != HAPAX_OK || log->writer.durable_lsn == log->writer.next_lsn);
	hx_log_walk_result_done(&walk);
	return status;
}

static enum hapax_status start_threads(struct hx_log *log, struct hapax_error *err)
{
	enum hapax_status status;

	assert(log->is_open);
	assert(!log->keeper_runs);
	assert(!log->fetcher_runs);
	if (hx_store_options(&log->base)->flags & HAPAX_STORE_NO_HOUSEKEEPING)
		return HAPAX_OK;
	status = hx_log_fetcher_start(log, err);
	if (status == HAPAX_OK)
		status = hx_log_queue_start(&log->queue, err);
	if (status == HAPAX_OK)
		status = hx_log_keeper_start(log, err);
	if (status == HAPAX_OK)
		status = hx_ahead_start(log->index, err);
	return status != HAPAX_OK ? status : hx_store_start_housekeeping(&log->base, err);
}

static enum hapax_status open_all(
	struct hx_log *log, const struct hx_io *io, const char *path, struct hapax_error *err)
{
	enum hapax_status status = hx_log_directory_init(&log->directory, io, path, err);

	if (status == HAPAX_OK && hx_store_options(&log->base)->evict != HAPAX_EVICT_NONE)
		status = hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"a file: store cannot evict: it would forget keys that must be "
			"remembered; use evict: none");
	if (status == HAPAX_OK)
		status = enter_directory(log, err);
	if (status == HAPAX_OK)
		status = build(log, err);
	if (status == HAPAX_OK)
		status = recover(log, err);
	assert(!log->is_open);
	log->is_open = status == HAPAX_OK;
	if (status == HAPAX_OK)
		status = start_threads(log, err);
	return status;
}

#define LOG_OPS(durable)                                                                           \
	{                                                                                          \
		.version = HAPAX_STORE_OPS_VERSION, .name = "file",                                \
		.capabilities = (durable) | HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY |     \
			HAPAX_STORE_CLOCK,                                                         \
		.submit = log_submit, .scan = log_scan, .stats = log_stats, .sweep = hx_log_sweep, \
		.close = log_close, .count = log_count, .run = log_run, .files = hx_log_files,     \
	}

static const struct hapax_store_ops log_ops = LOG_OPS(HAPAX_STORE_DURABLE);

/* A mode that may take answers back does not promise that anything survives. */
static const struct hapax_store_ops unsafe_ops = LOG_OPS(0);

enum hapax_status hx_log_open_from(
	const struct hx_io *io, const char *url, const char *path,
	const struct hapax_store_options *options, const struct hx_clock_mark *mark,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hx_log *log = hx_alloc_zero(1, sizeof(*log));
	bool is_unsafe = options != NULL &&
		options->size >= offsetof(struct hapax_store_options, unsafe_interval_ms) +
				sizeof(options->unsafe_interval_ms) &&
		options->unsafe_interval_ms != 0;
	enum hapax_status status;

	if (log == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	log->directory.lock_file = -1;
	log->first_mark = mark;
	hx_mutex_init(&log->sweep_mutex);
	hx_mutex_init(&log->keeper_mutex);
	hx_cond_init(&log->keeper_wake);
	hx_buf_init(&log->lapsed, LAPSED_BYTES_MAX);
	status = hx_store_attach_quietly(
		&log->base, is_unsafe ? &unsafe_ops : &log_ops, url, options, err);
	if (status == HAPAX_OK)
		status = open_all(log, io, path, err);
	if (status != HAPAX_OK) {
		log_close(&log->base);
		return status;
	}
	assert(log->is_open);
	assert(log->directory.lock_file >= 0);
	log->first_mark = NULL;
	*ret_store = &log->base;
	return HAPAX_OK;
}

enum hapax_status hx_log_open_on(
	const struct hx_io *io, const char *url, const char *path,
	const struct hapax_store_options *options, struct hapax_store **ret_store,
	struct hapax_error *err)
{
	return hx_log_open_from(io, url, path, options, NULL, ret_store, err);
}

enum hapax_status hx_log_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	return hx_log_open_on(hx_io_system(), url, path, options, ret_store, err);
}
