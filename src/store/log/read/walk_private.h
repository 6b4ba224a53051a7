/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk_private.h - the internals of a walk, for log_walk.c, walk_log.c and walk_class.c.
 */
#ifndef HX_STORE_LOG_READ_WALK_PRIVATE_H
#define HX_STORE_LOG_READ_WALK_PRIVATE_H

#include "store/log/format/listing.h"
#include "store/log/read/reader.h"
#include "store/log/format/scope_names.h"
#include "store/log/read/log_walk.h"

/* The content behind the end of a log segment's frames. */
struct hx_walk_tail {
	bool has_frames;      /* of this segment, behind a missing one */
	bool is_proof;        /* one of them was written when the missing one was durable */
	bool has_stale;       /* beginnings of other frames: the file was used before */
	uint64_t lsn;         /* of the first of the frames */
	uint64_t durable_lsn; /* what LOOSE ones say was durable */
	uint64_t token;       /* their highest mark */
	uint64_t frames_end;
	uint64_t torn_end;    /* end of the next frame, which did not arrive whole; or 0 */
	uint64_t remains_end; /* of the last block that is not zero */
};

struct hx_walk {
	struct hx_log_directory directory;
	const struct hx_log_visitor *visitor;
	struct hx_log_walk_result *result;
	struct hapax_error *err;
	struct hx_log_listing listing;
	struct hx_log_reader reader;
	struct hx_log_scope_names scopes;
	char name[HX_LOG_NAME_SIZE]; /* of the segment in reader */
	uint64_t bytes_done;
	uint64_t bytes_total;
	bool has_expected; /* the visitor was told how many will come */
	bool has_chain;    /* result->chain and next_lsn are known */
	bool has_stray;    /* a log segment behind the last one cannot be read */
	uint64_t stray_id;
	/* Behind the last segment: one without a first frame that has others. */
	struct hx_walk_tail headless;
	uint64_t headless_id;
};

/* Which entries of a frame are wanted. */
enum hx_walk_taken {
	HX_WALK_TAKE_ALL,
	HX_WALK_TAKE_REMOVES,
	HX_WALK_TAKE_PUTS,
};

/* Report to the visitor. OK: it wants to continue. */
enum hapax_status hx_walk_report(struct hx_walk *walk, struct hx_log_problem problem);
enum hapax_status hx_walk_note(struct hx_walk *walk, const char *file, const char *what);
enum hapax_status hx_walk_damage(
	struct hx_walk *walk, uint64_t offset, uint64_t lsn, uint64_t keys_max, const char *what);

/* The same for an entry or a header whose error says what is wrong. */
enum hapax_status hx_walk_damage_told(
	struct hx_walk *walk, uint64_t offset, uint64_t lsn, const struct hapax_error *why);

/* Does this status mean that the file is wrong, rather than that reading failed? */
bool hx_walk_is_damage(enum hapax_status status);

/* Open a segment into walk->reader. CORRUPT or similar: it is not the expected segment. */
enum hapax_status hx_walk_open(
	struct hx_walk *walk, enum hx_log_kind kind, uint64_t id, struct hapax_error *why);

void hx_walk_tell_segment(struct hx_walk *walk);

/* Look at every block from reader.offset to the end of the file. */
enum hapax_status hx_walk_look_behind(struct hx_walk *walk, struct hx_walk_tail *ret_tail);

/* Add the frames of an earlier segment also. */
void hx_walk_tail_add(struct hx_walk_tail *tail, const struct hx_walk_tail *other);

/* Was the missing frame with that LSN durable? */
bool hx_walk_tail_proves(const struct hx_walk_tail *tail, uint64_t lsn);

/* How much behind begin was never acknowledged and is worth keeping. */
uint64_t hx_walk_tail_bytes(const struct hx_walk_tail *tail, uint64_t begin);

/* Hand out the entries of a frame. */
enum hapax_status hx_walk_take_frame(
	struct hx_walk *walk, const struct hx_log_frame *frame, struct hapax_bytes bytes,
	enum hx_walk_taken taken);

/* The two parts. */
enum hapax_status hx_walk_log(struct hx_walk *walk);
enum hapax_status hx_walk_classes(struct hx_walk *walk);

#endif
