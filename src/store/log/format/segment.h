/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - one segment file, while it is made or written.
 *
 * Making one may fail for lack of space; nothing is lost then. A failed write is final: the
 * caller latches.
 *
 * Threads: one at a time for a segment.
 */
#ifndef HX_STORE_LOG_FORMAT_SEGMENT_H
#define HX_STORE_LOG_FORMAT_SEGMENT_H

#include "store/log/format/directory.h"

enum hx_log_sync {
	HX_LOG_SYNC_ALWAYS, /* a write is durable when it returns */
	HX_LOG_SYNC_LATER,  /* hx_log_segment_sync() */
};

struct hx_log_segment {
	const struct hx_io *io;
	int file; /* -1: closed */
	enum hx_log_sync sync;
	struct hx_log_header header;
	uint64_t capacity; /* there is room up to here */
	uint64_t offset;   /* where the next frame goes */
	uint32_t seed;
};

/* The state of an open one; see the fields. */
void hx_log_segment_assert(const struct hx_log_segment *segment);

/* A closed one. */
void hx_log_segment_init(struct hx_log_segment *segment);

struct hx_log_segment_plan {
	enum hx_log_kind kind;
	uint64_t id;
	uint64_t capacity;
	enum hx_log_sync sync;
	/* A log segment that is no longer needed, to be reused; 0: none. It is gone afterwards. */
	uint64_t reuse_id;
	/* A file of the reserve that becomes the segment, which takes no space; NULL: none. */
	const char *reserve_path;
	/* Leave it as NAME.tmp until hx_log_segment_finish(), and do not fill it. */
	bool is_hidden;
};

/*
 * Make a segment with its name durable, open for writing behind its header. LIMIT: no space;
 * other statuses: it could not be made. On failure nothing of it is left, nor of the segment to
 * be reused.
 */
enum hapax_status hx_log_segment_make(
	struct hx_log_segment *segment, struct hx_log_directory *directory,
	const struct hx_log_segment_plan *plan, struct hapax_error *err);

/* Open an existing one, to continue at offset. */
enum hapax_status hx_log_segment_open(
	struct hx_log_segment *segment, struct hx_log_directory *directory, uint64_t id,
	enum hx_log_sync sync, uint64_t offset, struct hapax_error *err);

void hx_log_segment_close(struct hx_log_segment *segment);

/* Make room for frames up to end, which is behind capacity. LIMIT: no space. */
enum hapax_status hx_log_segment_extend(
	struct hx_log_segment *segment, uint64_t end, struct hapax_error *err);

/* Write size bytes, whole blocks, at offset, and move it. 0, or a negative errno: latch. */
int hx_log_segment_write(struct hx_log_segment *segment, const void *data, size_t size);

/* 0, or a negative errno: latch. */
int hx_log_segment_sync(struct hx_log_segment *segment);

/*
 * Give a hidden one its name, when all frames are written: header, sync, rename. The
 * caller syncs the directory. 0, or a negative errno.
 */
int hx_log_segment_finish(struct hx_log_segment *segment, struct hx_log_directory *directory);

/* Remove the file of a segment. It may already be gone. */
int hx_log_segment_remove(
	struct hx_log_directory *directory, enum hx_log_kind kind, uint64_t id, const char *suffix);

#endif
