/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_files.h - class segments that hold results for records in memory.
 *
 * A segment gets a number when the first record points there. It keeps its file until no reader
 * can find it any more (store/index/elsewhere.h), even long after it has left the manifest: a
 * reader that knows the place of a result can read it. A file that a process leaves behind this
 * way is not in the manifest, and the next open removes it.
 *
 * Threads: any.
 */
#ifndef HX_STORE_LOG_TIDY_RESULT_FILES_H
#define HX_STORE_LOG_TIDY_RESULT_FILES_H

#include "base/thread.h"
#include "store/index/elsewhere.h"
#include "store/index/epoch.h"
#include "store/log/format/directory.h"

enum hx_log_result_file_state {
	HX_LOG_RESULT_FILE_FREE = 0, /* the number is not in use */
	HX_LOG_RESULT_FILE_KEPT,     /* the manifest names it, or will */
	HX_LOG_RESULT_FILE_LEFT,     /* the manifest no longer names it, */
	HX_LOG_RESULT_FILE_UNUSED,   /* and since stamp no record points there */
};

struct hx_log_result_file {
	uint64_t id;
	uint64_t stamp;
	enum hx_log_kind kind;
	enum hx_log_result_file_state state;
};

struct hx_log_result_files {
	struct hx_log_directory *directory;
	struct hx_elsewhere_users users;
	struct hx_mutex mutex;            /* guards what follows */
	struct hx_log_result_file *slots; /* by number; that of 0 is not used */
	uint32_t count;
	uint32_t capacity;
};

/*
 * May the result of record be left in a class segment? No decision ever reads a completed
 * result; a SET value is read.
 */
static inline bool hx_log_result_files_takes(const struct hapax_record *record)
{
	return record->state == HAPAX_STATE_DONE && record->origin == HAPAX_ORIGIN_CLAIM &&
		hx_result_bytes(&record->result) > HX_RESULT_IN_MEMORY_MAX;
}

/* CRC32C of headers and body, which are in memory. */
uint32_t hx_log_result_crc(const struct hapax_result *result);

/* The place of a PUT's result, in the file with that number; file 0: none. */
struct hx_elsewhere hx_log_result_files_place(const struct hx_log_entry *put, uint16_t file);

void hx_log_result_files_init(
	struct hx_log_result_files *result_files, struct hx_log_directory *directory);

/* Removes the LEFT and UNUSED files. There are no readers. */
void hx_log_result_files_done(struct hx_log_result_files *result_files);

/* Give a class segment a number. 0: no memory, or too many; its results stay in memory. */
uint16_t hx_log_result_files_add(
	struct hx_log_result_files *result_files, enum hx_log_kind kind, uint64_t id);

/* A manifest without the segment is durable: remove its file as soon as possible. */
void hx_log_result_files_leave(
	struct hx_log_result_files *result_files, enum hx_log_kind kind, uint64_t id);

/* Remove the files that can go now. Threads: one at a time. */
void hx_log_result_files_tidy(struct hx_log_result_files *result_files, struct hx_epoch *epoch);

/*
 * Read size bytes of a result into data, and verify them. The caller is a user of the file, or
 * in the epoch. CORRUPT: they are not what was written, or cannot be read. Never UNAVAILABLE,
 * since the store is available, and a done key must not count as unknown. LIMIT, NO_MEMORY: not
 * now.
 */
enum hapax_status hx_log_result_files_read(
	struct hx_log_result_files *result_files, const struct hx_elsewhere *elsewhere, void *data,
	size_t size, struct hapax_error *err);

#endif
