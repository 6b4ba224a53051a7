/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk_tail.c - the content behind the frames of a log segment: nothing, older content, a torn
 * frame, or frames that prove that an earlier one is missing.
 */
#include <assert.h>
#include <string.h>

#include "store/log/read/walk_private.h"

/* A frame of this segment, behind a place that lacks one. */
static void note_frame(struct hx_walk_tail *tail, const struct hx_log_frame *frame)
{
	bool is_loose = (frame->flags & HX_LOG_FRAME_LOOSE) != 0;

	assert(frame->offset >= HX_LOG_BLOCK_SIZE);
	assert(frame->offset % HX_LOG_BLOCK_SIZE == 0);
	if (!tail->has_frames)
		tail->lsn = frame->lsn;
	tail->has_frames = true;
	tail->frames_end = frame->offset + frame->size;
	/* It was written when the one before it was durable; a LOOSE one says how far that goes. */
	tail->is_proof |= !is_loose;
	if (is_loose && frame->durable_lsn > tail->durable_lsn)
		tail->durable_lsn = frame->durable_lsn;
	if (frame->token > tail->token)
		tail->token = frame->token;
}

enum hapax_status hx_walk_look_behind(struct hx_walk *walk, struct hx_walk_tail *ret_tail)
{
	const struct hx_log_walk_result *result = walk->result;
	uint64_t offset = walk->reader.offset;

	assert(offset >= HX_LOG_BLOCK_SIZE);
	assert(offset % HX_LOG_BLOCK_SIZE == 0);
	memset(ret_tail, 0, sizeof(*ret_tail));
	ret_tail->frames_end = ret_tail->remains_end = offset;
	for (;; offset += HX_LOG_BLOCK_SIZE) {
		struct hx_log_frame frame;
		enum hx_log_found found;
		bool is_zero;
		enum hapax_status status = hx_log_reader_probe(
			&walk->reader, offset, &found, &frame, &is_zero, walk->err);

		assert(ret_tail->remains_end <= offset);
		if (status != HAPAX_OK || found == HX_LOG_FOUND_END)
			return status;
		if (found == HX_LOG_FOUND_FRAME)
			note_frame(ret_tail, &frame);
		/* Older content has a different chain: only a frame of this chain can be torn. */
		else if (
			found == HX_LOG_FOUND_DAMAGE && walk->has_chain &&
			offset == walk->reader.offset && frame.chain == result->chain &&
			frame.lsn == result->next_lsn)
			ret_tail->torn_end = offset + frame.size;
		else if (found == HX_LOG_FOUND_DAMAGE)
			ret_tail->has_stale = true;
		if (!is_zero)
			ret_tail->remains_end = offset + HX_LOG_BLOCK_SIZE;
	}
}

void hx_walk_tail_add(struct hx_walk_tail *tail, const struct hx_walk_tail *other)
{
	if (!other->has_frames)
		return;
	/* The added segment lies before. */
	tail->lsn = other->lsn;
	tail->frames_end = other->frames_end;
	tail->has_frames = true;
	tail->is_proof |= other->is_proof;
	if (other->durable_lsn > tail->durable_lsn)
		tail->durable_lsn = other->durable_lsn;
	if (other->token > tail->token)
		tail->token = other->token;
	assert(tail->token >= other->token);
	assert(tail->durable_lsn >= other->durable_lsn);
}

bool hx_walk_tail_proves(const struct hx_walk_tail *tail, uint64_t lsn)
{
	/* Only frames prove anything. */
	assert(tail->has_frames || !tail->is_proof);
	return tail->has_frames && (tail->is_proof || tail->durable_lsn > lsn);
}

uint64_t hx_walk_tail_bytes(const struct hx_walk_tail *tail, uint64_t begin)
{
	uint64_t end = tail->torn_end > tail->frames_end ? tail->torn_end : tail->frames_end;

	/*
	 * A frame whose header did not arrive: its remains can be recognized only if there were
	 * zeros before.
	 */
	if (end <= begin && !tail->has_stale)
		end = tail->remains_end;
	assert(end % HX_LOG_BLOCK_SIZE == 0);
	return end > begin ? end - begin : 0;
}
