/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_assert.c - the state of the log's end between two steps of the leader.
 *
 * Nothing here follows from bytes on disk: a walk hands over any LSN, token and segment that its
 * checks accept.
 */
#include <assert.h>

#include "base/alloc.h"
#include "store/log/write/writer.h"

/* The frame under construction. */
static void frame_assert(const struct hx_log_writer *writer)
{
	uint32_t promised = writer->payload + writer->reserved;

	assert(writer->payload % HX_LOG_ENTRY_ALIGN == 0);
	assert(writer->reserved % HX_LOG_ENTRY_ALIGN == 0);
	assert(writer->payload == 0 || writer->entries != 0);
	/* Room is made before anything is decided: the memory is there. */
	assert(promised == 0 || hx_log_frame_size(promised) <= writer->frame_committed);
	/* The first entries of a segment are its BEGIN and manifest. */
	assert(!writer->needs_begin || writer->payload == 0);
	assert(!writer->needs_begin || writer->active.offset == HX_LOG_BLOCK_SIZE);
}

/* What is durable, and what the last frame says about it. */
static void lsn_assert(const struct hx_log_writer *writer)
{
	uint64_t written_lsn = writer->next_lsn - (writer->payload != 0 ? writer->entries : 0);

	/* The frame under construction is not durable. */
	assert(writer->durable_lsn <= written_lsn);
	assert(writer->witnessed_lsn <= writer->durable_lsn);
	/* Every frame is synced when it is written, unless that is left for later. */
	assert(!writer->is_unsynced || writer->sync == HX_LOG_SYNC_LATER);
	assert(writer->sync == HX_LOG_SYNC_LATER || writer->durable_lsn == written_lsn ||
	       writer->is_latched != 0);
}

void hx_log_writer_assert_frame(const struct hx_log_writer *writer)
{
	frame_assert(writer);
	lsn_assert(writer);
}

void hx_log_writer_assert(const struct hx_log_writer *writer)
{
	const struct hx_log_manifest *manifest = &writer->manifest;

	hx_log_writer_assert_frame(writer);
	assert(writer->frame_committed % HX_PAGES_STEP == 0);
	assert(manifest->count <= manifest->capacity);
	assert(manifest->count <= HX_LOG_CLASS_SEGMENTS_MAX);
	assert((manifest->capacity == 0) == (manifest->items == NULL));
	assert((writer->scope_capacity == 0) == (writer->scope_segments == NULL));
	assert(writer->inflight.used_count <= HX_LOG_INFLIGHT_WORDS);
	/* Keys are in flight only while their frame is. */
	assert(writer->payload != 0 || writer->inflight.used_count == 0 || writer->is_latched != 0);
	assert(writer->active.file < 0 || writer->active.header.kind == HX_LOG_KIND_LOG);
	assert(writer->active.file < 0 || writer->active.sync == writer->sync);
	/* The active segment is the last one that has frames, or follows it. */
	assert(writer->active.file < 0 || writer->active.header.id - writer->last_id <= 1);
}
