/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - the end of the log: the frame under construction, and where it goes.
 *
 * Changes of the index come in through write_ahead (store/index/write_ahead.h). The log's own
 * entries are appended by hx_log_writer_append(). A commit writes the frame; everything in it is
 * durable when it returns HAPAX_OK.
 *
 * Threads: one at a time: the leader (lead.c). Another thread may make spares.
 */
#ifndef HX_STORE_LOG_WRITE_WRITER_H
#define HX_STORE_LOG_WRITE_WRITER_H

#include "base/thread.h"
#include "store/index/write_ahead.h"
#include "store/log/write/inflight.h"
#include "store/log/format/segment.h"

struct hx_log_walk_result;

/* The content of the next MANIFEST: which class segments exist, and where the log begins. */
struct hx_log_manifest {
	uint64_t log_first_id;
	uint64_t next_class_id;
	struct hx_log_manifest_item *items;
	uint32_t count;
	uint32_t capacity;
};

/* What room is needed for. A full disk refuses them in this order. */
enum hx_log_need {
	HX_LOG_NEED_NEW,  /* a new record: leaves the reserve */
	HX_LOG_NEED_MARK, /* a frame of the log's own: may fill the active segment */
	HX_LOG_NEED_END,  /* the end of a claim, or what frees space: may take all */
	HX_LOG_NEED_COUNT,
};

struct hx_log_writer {
	struct hx_write_ahead write_ahead; /* first: passed to the index */
	struct hx_log_directory *directory;
	struct hx_index *index;
	const struct hapax_clock *clock;
	struct hx_clock_mark mark; /* the store's clock, as of the last frame */
	enum hx_log_sync sync;
	uint64_t segment_bytes; /* the size that a segment grows to */
	_Atomic uint32_t is_latched;
	struct hapax_error fault; /* the cause of the latch; written once, before is_latched */

	/* The frame. */
	unsigned char *frame; /* pages */
	size_t frame_committed;
	uint32_t payload;      /* bytes of entries */
	uint32_t entries;      /* how many */
	uint32_t reserved;     /* bytes that were promised */
	uint32_t wanted;       /* is_full: the frame size that did not fit; 0: commit first */
	enum hx_log_need need; /* is_full: what wanted is for */
	bool needs_begin;      /* the segment has no frame yet */
	/* Making room for such a frame failed so: refuse. The leader resets it. */
	struct {
		enum hapax_status status;
		uint32_t wanted;
	} no_room[HX_LOG_NEED_COUNT];
	uint64_t next_lsn;
	uint64_t durable_lsn;
	uint64_t witnessed_lsn; /* what the last frame says is durable */
	uint64_t frame_count;   /* frames written since open */
	bool is_unsynced;       /* a frame was written since the last sync, perhaps an empty one */
	uint64_t token_given;   /* as of the last frame */
	uint64_t token_mark;    /* the mark in that frame; in unsafe mode ahead of it */
	uint64_t token_durable; /* the mark that survives any crash */
	bool is_forced;         /* write the frame even if it is empty, */
	uint32_t flags;         /* with these flags */
	uint32_t chain;
	uint64_t begin_id;  /* for BEGIN: the segment before, */
	uint64_t begin_end; /* and where it ended */
	struct hx_log_inflight inflight;

	/* By number: the segment in which a scope was last named, counted by segment_count. */
	uint32_t *scope_segments;
	uint32_t scope_capacity;
	uint32_t segment_count;

	struct hx_log_segment active; /* closed: none yet */
	uint64_t last_id;             /* of the last segment that has frames */
	bool must_vouch;              /* STORE does not vouch for it yet */
	struct hx_log_manifest manifest;
	uint64_t left_bytes;   /* approximate bytes of log segments that are no longer written */
	uint64_t reserve_part; /* the size that each file of the reserve has; 0: one may lack */
	_Atomic uint32_t is_short; /* the disk had no space when some was last needed */

	struct hx_mutex spare_mutex; /* guards what follows */
	struct hx_cond spare_ready;  /* spare_is_made is false again */
	_Atomic uint32_t has_spare;  /* also read without it */
	_Atomic uint32_t wants_spare;
	struct hx_log_segment spare; /* the next active one, if it is open */
	uint64_t spare_bytes;        /* how large the next one must be */
	uint64_t reuse_id;           /* a log segment that may be used again; 0: none */
	bool spare_is_made;          /* a thread is making it */
};

struct hx_log_writer_setup {
	struct hx_log_directory *directory;
	struct hx_index *index;
	const struct hapax_clock *clock;
	enum hx_log_sync sync;
	uint64_t segment_bytes;
};

enum hapax_status hx_log_writer_init(
	struct hx_log_writer *writer, const struct hx_log_writer_setup *setup,
	struct hapax_error *err);

/* Closes files; writes nothing. */
void hx_log_writer_done(struct hx_log_writer *writer);

/* Continue where a walk has ended; mark is the store's clock. */
enum hapax_status hx_log_writer_resume(
	struct hx_log_writer *writer, const struct hx_log_walk_result *walk,
	const struct hx_clock_mark *mark, struct hapax_error *err);

/* The state between two steps of the leader (writer_assert.c). */
void hx_log_writer_assert(const struct hx_log_writer *writer);

/* The part of it that concerns the frame under construction and LSNs. */
void hx_log_writer_assert_frame(const struct hx_log_writer *writer);

/* An empty frame. */
void hx_log_writer_begin(struct hx_log_writer *writer);

/*
 * Room for an entry of the log's own, which the caller encodes with *ret_lsn; NULL: *ret_status
 * says why. With write_ahead.is_full: commit or make room, and try again.
 */
unsigned char *hx_log_writer_append(
	struct hx_log_writer *writer, size_t size, uint64_t *ret_lsn,
	enum hapax_status *ret_status);

/* Name scope in this segment, unless it is named, for the entries appended next. */
enum hapax_status hx_log_writer_name_scope(struct hx_log_writer *writer, uint32_t scope_id);

/*
 * After is_full: make writer->wanted bytes fit, with a new segment if necessary. LIMIT: no
 * space; then no_room is set. FAILED: latched.
 */
enum hapax_status hx_log_writer_make_room(struct hx_log_writer *writer);

/*
 * Write the frame, if it holds anything or is forced. The frame is empty afterwards. UNCERTAIN:
 * the store is latched, and the frame's changes may or may not survive. With HX_LOG_SYNC_LATER
 * the frame may be lost, but its tokens are never issued again.
 */
enum hapax_status hx_log_writer_commit(struct hx_log_writer *writer);

/* Write the frame even if it is empty, with these flags. See append about is_full. */
enum hapax_status hx_log_writer_force(struct hx_log_writer *writer, uint32_t flags);

/* Sync everything that HX_LOG_SYNC_LATER left unsynced. Latches on failure. */
enum hapax_status hx_log_writer_sync(struct hx_log_writer *writer);

/* The size of the segment after one of that size; 0: the first. */
uint64_t hx_log_writer_next_size(const struct hx_log_writer *writer, uint64_t bytes);

/* Make the reserve whole. LIMIT: no space. Threads: the leader. */
enum hapax_status hx_log_writer_keep_reserve(struct hx_log_writer *writer);

/* Make the next segment of a file of the reserve. LIMIT: none is left. Threads: the leader. */
enum hapax_status hx_log_writer_take_reserve(struct hx_log_writer *writer);

/* If the disk was full: is there space again? Threads: the leader. */
void hx_log_writer_look_for_space(struct hx_log_writer *writer);

/* Make the next segment ahead, if there is none, or wait for the thread that does. Threads: any. */
enum hapax_status hx_log_writer_make_spare(struct hx_log_writer *writer, struct hapax_error *err);

/*
 * If the active segment is half full without a spare, ask for one. Threads: the leader. True
 * once.
 */
bool hx_log_writer_wants_spare(struct hx_log_writer *writer);

/* Make the requested spare. Threads: any. */
enum hapax_status hx_log_writer_make_spare_if_wanted(struct hx_log_writer *writer);

/* The segment id is no longer needed: keep its file for a spare, or remove it. Threads: any. */
void hx_log_writer_give_up(struct hx_log_writer *writer, uint64_t id);

static inline bool hx_log_writer_has_spare(const struct hx_log_writer *writer)
{
	return atomic_load_explicit(&writer->has_spare, memory_order_acquire) != 0;
}

static inline bool hx_log_writer_is_short(const struct hx_log_writer *writer)
{
	return atomic_load_explicit(&writer->is_short, memory_order_relaxed) != 0;
}

static inline bool hx_log_writer_is_latched(struct hx_log_writer *writer)
{
	return atomic_load_explicit(&writer->is_latched, memory_order_acquire) != 0;
}

void hx_log_writer_latch(struct hx_log_writer *writer, int os_errno, const char *what);

/* Add to the manifest, in memory. NO_MEMORY; LIMIT: too many. */
enum hapax_status hx_log_manifest_add(
	struct hx_log_manifest *manifest, const struct hx_log_manifest_item *item);

#endif
