/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_writer.h - a class segment under construction: PUTs, then REMOVEs, then the seal.
 *
 * The file is called NAME.tmp until it is finished, and is created when there is something to
 * write. After a failure and an abort, nothing is left of it.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_LOG_TIDY_CLASS_WRITER_H
#define HX_STORE_LOG_TIDY_CLASS_WRITER_H

#include "base/buf.h"
#include "store/log/format/segment.h"
#include "store/scope_table.h"

struct hx_packed_key;

struct hx_log_class_writer {
	struct hx_log_directory *directory;
	struct hx_scope_table *scopes;
	enum hx_log_kind kind;
	uint64_t id;
	struct hx_log_segment segment; /* closed: nothing was written */
	unsigned char *frame;          /* pages */
	size_t frame_committed;
	uint32_t payload;
	uint32_t entries;
	uint32_t chain;
	struct hapax_buf named;   /* a bit for each named scope */
	struct hapax_buf removes; /* REMOVE entries, in the form to be written */
	struct hx_log_seal seal;
	uint64_t large_results; /* PUTs whose results may be left in the file */
};

void hx_log_class_writer_init(
	struct hx_log_class_writer *writer, struct hx_log_directory *directory,
	struct hx_scope_table *scopes, enum hx_log_kind kind, uint64_t id);

/* The log has reached lsn, and nothing was copied yet: see struct hx_log_seal. */
void hx_log_class_writer_set_made(struct hx_log_class_writer *writer, uint64_t lsn);

/* Free memory, and remove an unfinished file. */
void hx_log_class_writer_done(struct hx_log_class_writer *writer);

bool hx_log_class_writer_is_empty(const struct hx_log_class_writer *writer);

/* LIMIT: no space. NO_MEMORY. UNAVAILABLE: it was not written. The writer is then unusable. */
enum hapax_status hx_log_class_writer_put(
	struct hx_log_class_writer *writer, const struct hapax_record *record,
	const struct hx_packed_key *key, uint64_t lsn, struct hapax_error *err);
enum hapax_status hx_log_class_writer_remove(
	struct hx_log_class_writer *writer, const struct hx_packed_key *key, int64_t changed_ms,
	int64_t needed_until_ms, uint64_t lsn, struct hapax_error *err);

/* Seal, sync, rename; the caller syncs the directory. */
enum hapax_status hx_log_class_writer_finish(
	struct hx_log_class_writer *writer, struct hx_log_manifest_item *ret_item,
	struct hapax_error *err);

#endif
