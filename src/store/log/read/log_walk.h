/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_walk.h - a whole store directory, read and verified in the order of recovery.
 *
 * Writes nothing and needs no store: recovery puts the entries into the index, fsck counts and
 * reports. The caller holds LOCK, or knows that there is no writer.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_LOG_READ_LOG_WALK_H
#define HX_STORE_LOG_READ_LOG_WALK_H

#include "store/log/format/format.h"

struct hx_io;

enum hx_log_problem_kind {
	HX_LOG_NOTE,   /* odd and harmless: a foreign name, an interrupted pass, a stale segment */
	HX_LOG_CUT,    /* a tail that was never acknowledged */
	HX_LOG_DAMAGE, /* acknowledged data is damaged or missing: the store does not open */
};

struct hx_log_problem {
	enum hx_log_problem_kind kind;
	enum hapax_status status; /* of DAMAGE: CORRUPT or UNSUPPORTED */
	const char *file;         /* its name in the directory, "" for the whole */
	uint64_t offset;
	uint64_t lsn;      /* the first lost one, 0: unknown */
	uint64_t keys_max; /* most keys at risk: unreadable entries; 0: unknown */
	const char *what;  /* a sentence */
};

/* A scope that entries of the current segment name by number. */
struct hx_log_walk_scope {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	uint32_t visitor_id; /* the visitor's own number for it, once it has set */
	bool has_visitor_id; /* this */
};

struct hx_log_visitor {
	void *context;
	/*
	 * Not NULL: other threads may deliver the PUTs of class segments, with these in place of
	 * context. Problems, progress and segments then also come from several threads.
	 */
	void *const *thread_contexts;
	unsigned thread_count;
	/*
	 * PUT, REMOVE and COUNTS, with the names of their scope. The log comes first, in order,
	 * then the class segments: all REMOVEs, then all PUTs. A status other than OK ends the
	 * walk. May be NULL.
	 */
	enum hapax_status (*entry)(
		void *context, const struct hx_log_header *segment,
		const struct hx_log_entry *entry, struct hx_log_walk_scope *scope,
		struct hapax_error *err);
	/* At least about this many PUTs will come; called before the first. May be NULL. */
	void (*expect)(void *context, uint64_t puts);
	/*
	 * The bytes of the entries handed out are about to be reused: finish deferred work now.
	 * May be NULL.
	 */
	enum hapax_status (*flush)(void *context, struct hapax_error *err);
	/*
	 * The log was read, and the result's log members are final; class segments follow. May
	 * be NULL.
	 */
	void (*log_end)(void *context);
	/* Each segment, before its entries. May be NULL. */
	void (*segment)(void *context, const char *name, const struct hx_log_header *header);
	/* May be NULL. Returns false to end the walk there. DAMAGE ends it after this segment. */
	bool (*problem)(void *context, const struct hx_log_problem *problem);
	/* Progress; total may grow. May be NULL. */
	void (*progress)(void *context, uint64_t bytes_done, uint64_t bytes_total);
};

/* The findings of a walk, beside the records. */
struct hx_log_walk_result {
	struct hx_log_store_file store;
	uint64_t log_first_id; /* of the last manifest */
	uint64_t log_last_id;  /* the last segment with frames; 0: none yet */
	uint64_t log_end;      /* where its frames end */
	uint64_t log_run_id;   /* the first segment that was read */
	uint64_t log_top_id;   /* the highest existing id, in use or not */
	uint64_t log_bytes;    /* of frames in all of the log */
	uint64_t next_lsn;
	uint64_t next_class_id;
	uint64_t token;  /* the last frame's mark, or STORE's floor */
	uint32_t chain;  /* CRC of the last frame */
	bool was_closed; /* the last frame says CLOSE, and nothing lies behind it */
	bool is_closed;  /* and the log may continue there */
	bool is_sealed; /* the last frame says SEAL: continue in the next segment, which is empty */
	bool next_is_used;  /* that one has frames that do not count: it must be recreated */
	bool scopes_differ; /* the last segment has other numbers for scopes than the visitor */
	/* The unacknowledged part behind the end: its segment and offset; 0: none. */
	uint64_t cut_id;
	uint64_t cut_offset;
	uint64_t cut_bytes;
	bool has_clock;
	struct hx_clock_mark clock;           /* of the last frame */
	struct hx_log_manifest_item *classes; /* owned: hx_log_walk_result_done() */
	uint32_t class_count;
	uint64_t damages; /* problems of kind DAMAGE */
};

void hx_log_walk_result_done(struct hx_log_walk_result *result);

/*
 * Walk the store in directory path. OK also with damage, if the visitor let the walk continue:
 * check result->damages. CORRUPT, UNSUPPORTED: ended by damage; err has file, offset, LSN and
 * the number of keys at risk. INVALID: no store there (no STORE file).
 */
enum hapax_status hx_log_walk(
	const struct hx_io *io, const char *path, const struct hx_log_visitor *visitor,
	struct hx_log_walk_result *ret_result, struct hapax_error *err);

#endif
