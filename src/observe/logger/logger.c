/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger.c - lines from any thread, written by the log's own thread.
 *
 * Lines wait in one buffer while another is being written; then the two are swapped. Before each
 * write, the writer checks that it would not block. It writes at most PIPE_BUF bytes, which a pipe
 * accepts as a whole. So it can always be stopped, and lines of several processes do not mix. A
 * file of the log's own is written in large pieces.
 */
#include "observe/logger/logger.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hmac.h"
#include "base/io.h"
#include "base/stream.h"
#include "base/thread.h"
#include "observe/logger/logger_file.h"
#include "observe/logger/logger_format.h"
#include "observe/logger/logger_rate.h"

_Static_assert((int)HX_LOGGER_LINE_MAX <= (int)PIPE_BUF, "a line is written at once");

/* How long the writer waits for a reader before it checks whether to give up. */
enum { PATIENCE_MS = 100 };

struct hx_logger {
	int file;      /* changed by the writer, under the mutex */
	bool is_owned; /* a file of its own, not the caller's */
	unsigned char hmac_key[HX_HMAC_KEY_SIZE];
	const struct hapax_clock *clock;
	_Atomic int level;
	_Atomic int format;
	_Atomic int keys;
	_Atomic bool has_priority;
	_Atomic uint64_t limit;
	_Atomic uint64_t suppressed;
	_Atomic uint64_t lost;
	struct hx_logger_rate rate;

	struct hx_mutex mutex;   /* for all below except writing */
	struct hx_cond work;     /* there are lines, or the log is closing */
	struct hx_cond progress; /* written grew */
	struct hapax_buf waiting;
	struct hapax_buf writing; /* private to the writer */
	uint64_t queued;          /* total bytes queued */
	uint64_t written;         /* of them: written or lost */
	uint64_t lost_told;
	int next_file; /* to go on with; -1: none */
	bool is_ending;
	_Atomic bool gives_up;
	struct hx_thread writer;
};

/* ------------------------------------------------------------------ the writer */

static size_t count_lines(const unsigned char *data, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += data[i] == '\n';
	return count;
}

/* As many whole lines as fit into one write. */
static size_t next_piece(const unsigned char *data, size_t size)
{
	size_t end = 0;

	if (size <= PIPE_BUF)
		return size;
	for (size_t i = 0; i < PIPE_BUF; i++) {
		if (data[i] == '\n')
			end = i + 1;
	}
	assert(end > 0);
	return end;
}

/* Wait until file accepts output. False: give up. */
static bool wait_for_reader(struct hx_logger *log)
{
	while (!atomic_load_explicit(&log->gives_up, memory_order_relaxed)) {
		struct pollfd fd = {.fd = log->file, .events = POLLOUT};
		int ready = hx_stream_wait(&fd, 1, hx_clock_mono_ns() + PATIENCE_MS * HX_NS_PER_MS);

		/* The write will report an error. */
		if (ready != 0)
			return true;
	}
	return false;
}

/* Bytes of data that were written; fewer: the rest is lost. */
static size_t write_piece(struct hx_logger *log, const unsigned char *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t result;

		if (!wait_for_reader(log))
			break;
		result = hx_stream_write(log->file, data + done, size - done);
		if (result < 0 && result != -EINTR && result != -EAGAIN)
			break;
		if (result > 0)
			done += (size_t)result;
	}
	return done;
}

/* The lines of a write that failed are lost, all of them. */
static size_t append_piece(struct hx_logger *log, const unsigned char *data, size_t size)
{
	return hx_logger_file_append(log->file, data, size) == 0 ? size : 0;
}

static void write_all(struct hx_logger *log)
{
	const unsigned char *data = log->writing.data;
	size_t size = log->writing.size;

	while (size > 0) {
		size_t piece = log->is_owned ? size : next_piece(data, size);
		size_t done = log->is_owned ? append_piece(log, data, piece)
					    : write_piece(log, data, piece);

		if (done < piece)
			atomic_fetch_add_explicit(
				&log->lost, count_lines(data + done, piece - done),
				memory_order_relaxed);
		hx_mutex_lock(&log->mutex);
		log->written += piece;
		hx_cond_broadcast(&log->progress);
		hx_mutex_unlock(&log->mutex);
		data += piece;
		size -= piece;
	}
	hx_buf_clear(&log->writing);
}

/* Locks: the mutex is held. */
static void take_next_file(struct hx_logger *log)
{
	if (log->next_file < 0)
		return;
	hx_logger_file_close(log->file);
	log->file = log->next_file;
	log->next_file = -1;
}

static void writer_run(void *arg)
{
	struct hx_logger *log = arg;
	bool is_last = false;

	while (!is_last) {
		struct hapax_buf lines;

		hx_mutex_lock(&log->mutex);
		take_next_file(log);
		while (log->waiting.size == 0 && !log->is_ending) {
			hx_cond_wait(&log->work, &log->mutex);
			take_next_file(log);
		}
		is_last = log->is_ending && log->waiting.size == 0;
		lines = log->waiting;
		log->waiting = log->writing;
		log->writing = lines;
		hx_mutex_unlock(&log->mutex);
		write_all(log);
	}
}

/* ------------------------------------------------------------------ life */

void hx_logger_configure(struct hx_logger *log, const struct hx_logger_options *options)
{
	atomic_store_explicit(&log->level, (int)options->level, memory_order_relaxed);
	atomic_store_explicit(&log->format, (int)options->format, memory_order_relaxed);
	atomic_store_explicit(&log->keys, (int)options->keys, memory_order_relaxed);
	atomic_store_explicit(&log->has_priority, options->has_priority, memory_order_relaxed);
	atomic_store_explicit(&log->limit, options->rate, memory_order_relaxed);
}

static void log_free(struct hx_logger *log)
{
	if (log->next_file >= 0)
		hx_logger_file_close(log->next_file);
	if (log->is_owned)
		hx_logger_file_close(log->file);
	hx_cond_done(&log->progress);
	hx_cond_done(&log->work);
	hx_mutex_done(&log->mutex);
	hx_buf_done(&log->waiting);
	hx_buf_done(&log->writing);
	explicit_bzero(log->hmac_key, sizeof(log->hmac_key));
	hx_free(log);
}

static enum hapax_status logger_new(
	int file, bool is_owned, const struct hx_logger_options *options,
	struct hx_logger **ret_log, struct hapax_error *err)
{
	struct hx_logger *log = hx_alloc_zero(1, sizeof(*log));
	size_t waiting_max = is_owned ? HX_LOGGER_FILE_WAITING_MAX : HX_LOGGER_WAITING_MAX;
	enum hapax_status status;

	if (log == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a log");
	log->file = file;
	log->next_file = -1;
	log->is_owned = is_owned;
	log->clock = options->clock == NULL ? hapax_clock_system() : options->clock;
	hx_hmac_key(options->hmac_key, log->hmac_key);
	hx_logger_configure(log, options);
	hx_mutex_init(&log->mutex);
	hx_cond_init(&log->work);
	hx_cond_init(&log->progress);
	hx_buf_init(&log->waiting, waiting_max);
	hx_buf_init(&log->writing, waiting_max);
	status = hx_thread_start(&log->writer, writer_run, log, "hapax-log", err);
	if (status != HAPAX_OK) {
		log->is_owned = false; /* the caller closes it */
		log_free(log);
		return status;
	}
	*ret_log = log;
	return HAPAX_OK;
}

enum hapax_status hx_logger_new(
	int file, const struct hx_logger_options *options, struct hx_logger **ret_log,
	struct hapax_error *err)
{
	return logger_new(file, false, options, ret_log, err);
}

enum hapax_status hx_logger_open(
	const char *path, const struct hx_logger_options *options, struct hx_logger **ret_log,
	struct hapax_error *err)
{
	int file;
	enum hapax_status status = hx_logger_file_open(path, &file, err);

	if (status != HAPAX_OK)
		return status;
	status = logger_new(file, true, options, ret_log, err);
	if (status != HAPAX_OK)
		hx_logger_file_close(file);
	return status;
}

enum hapax_status hx_logger_reopen(struct hx_logger *log, const char *path, struct hapax_error *err)
{
	int file;
	bool is_same;
	enum hapax_status status;

	/* Only this function's caller gives the writer a file, so that this one stays open. */
	hx_mutex_lock(&log->mutex);
	file = log->next_file >= 0 ? log->next_file : log->file;
	hx_mutex_unlock(&log->mutex);
	is_same = hx_logger_file_is_at(file, path);
	if (is_same)
		return HAPAX_OK;
	status = hx_logger_file_open(path, &file, err);
	if (status != HAPAX_OK)
		return status;
	hx_mutex_lock(&log->mutex);
	if (log->next_file >= 0)
		hx_logger_file_close(log->next_file);
	log->next_file = file;
	hx_cond_signal(&log->work);
	hx_mutex_unlock(&log->mutex);
	return HAPAX_OK;
}

bool hx_logger_flush(struct hx_logger *log, int64_t deadline_ns)
{
	bool is_written;
	uint64_t goal;

	hx_mutex_lock(&log->mutex);
	goal = log->queued;
	while (log->written < goal &&
	       hx_cond_wait_until_ns(&log->progress, &log->mutex, deadline_ns))
		continue;
	is_written = log->written >= goal;
	hx_mutex_unlock(&log->mutex);
	return is_written;
}

void hx_logger_close(struct hx_logger *log, int64_t wait_ms)
{
	if (log == NULL)
		return;
	hx_logger_tick(log);
	(void)hx_logger_flush(log, hx_clock_mono_ns() + wait_ms * HX_NS_PER_MS);
	atomic_store_explicit(&log->gives_up, true, memory_order_relaxed);
	hx_mutex_lock(&log->mutex);
	log->is_ending = true;
	hx_cond_signal(&log->work);
	hx_mutex_unlock(&log->mutex);
	hx_thread_join(&log->writer);
	log_free(log);
}

/* ------------------------------------------------------------------ lines */

bool hx_logger_takes(const struct hx_logger *log, enum hx_logger_level level)
{
	return log != NULL && (int)level >= atomic_load_explicit(&log->level, memory_order_relaxed);
}

static void enqueue(struct hx_logger *log, const char *text, size_t size)
{
	enum hapax_status status;

	hx_mutex_lock(&log->mutex);
	status = hx_buf_append(&log->waiting, text, size);
	if (status == HAPAX_OK) {
		log->queued += size;
		hx_cond_signal(&log->work);
	}
	hx_mutex_unlock(&log->mutex);
	if (status != HAPAX_OK)
		atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed);
}

void hx_logger_admitted(
	struct hx_logger *log, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t field_count, uint64_t suppressed)
{
	char text[HX_LOGGER_LINE_MAX];
	struct hx_logger_line line = {
		.format = (enum hx_logger_format)atomic_load_explicit(
			&log->format, memory_order_relaxed),
		.keys = (enum hx_logger_keys)atomic_load_explicit(&log->keys, memory_order_relaxed),
		.hmac_key = log->hmac_key,
		.has_priority = atomic_load_explicit(&log->has_priority, memory_order_relaxed),
		.level = level,
		.wall_ms = log->clock->wall_ms(log->clock->context),
		.msg = msg,
		.fields = fields,
		.field_count = field_count,
		.suppressed = suppressed};

	enqueue(log, text, hx_logger_line_format(&line, text));
}

bool hx_logger_admits(struct hx_logger *log, const char *msg, uint64_t *ret_suppressed)
{
	bool is_admitted = hx_logger_rate_take(
		&log->rate, msg, atomic_load_explicit(&log->limit, memory_order_relaxed),
		log->clock->boot_ms(log->clock->context), ret_suppressed);

	if (!is_admitted)
		atomic_fetch_add_explicit(&log->suppressed, 1, memory_order_relaxed);
	return is_admitted;
}

bool hx_logger(
	struct hx_logger *log, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t field_count)
{
	uint64_t suppressed = 0;

	if (!hx_logger_takes(log, level))
		return true;
	if (!hx_logger_admits(log, msg, &suppressed))
		return false;
	hx_logger_admitted(log, level, msg, fields, field_count, suppressed);
	return true;
}

void hx_logger_suppress(struct hx_logger *log, const char *msg, uint64_t count)
{
	hx_logger_rate_skip(&log->rate, msg, count);
	atomic_fetch_add_explicit(&log->suppressed, count, memory_order_relaxed);
}

void hx_logger_always(
	struct hx_logger *log, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t field_count)
{
	if (log != NULL)
		hx_logger_admitted(log, level, msg, fields, field_count, 0);
}

void hx_logger_tick(struct hx_logger *log)
{
	const char *msg;
	uint64_t suppressed, lost, told;

	if (log == NULL)
		return;
	while (hx_logger_rate_next(
		&log->rate, log->clock->boot_ms(log->clock->context), &msg, &suppressed)) {
		const struct hx_logger_field field = HX_LOGGER_TEXT("of", msg);

		hx_logger_admitted(log, HX_LOGGER_WARN, "lines suppressed", &field, 1, suppressed);
	}
	lost = hx_logger_lost(log);
	hx_mutex_lock(&log->mutex);
	told = log->lost_told;
	/* Only if there is room for it: otherwise it would be lost as well. */
	if (log->waiting.size < log->waiting.size_max / 2)
		log->lost_told = lost;
	else
		lost = told;
	hx_mutex_unlock(&log->mutex);
	if (lost > told) {
		const struct hx_logger_field field = HX_LOGGER_UNSIGNED("lost", lost - told);

		hx_logger_admitted(log, HX_LOGGER_WARN, "lines lost", &field, 1, 0);
	}
}

uint64_t hx_logger_suppressed(const struct hx_logger *log)
{
	return atomic_load_explicit(&log->suppressed, memory_order_relaxed);
}

uint64_t hx_logger_lost(const struct hx_logger *log)
{
	return atomic_load_explicit(&log->lost, memory_order_relaxed);
}

bool hx_logger_is_journal(int file, const char *journal_stream)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat;
	char text[64];

	if (journal_stream == NULL || io->ops->stat(io->context, file, &stat) != 0)
		return false;
	(void)snprintf(text, sizeof(text), "%" PRIu64 ":%" PRIu64, stat.device, stat.inode);
	return strcmp(text, journal_stream) == 0;
}
