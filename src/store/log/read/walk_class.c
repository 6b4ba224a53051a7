/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk_class.c - the class segments that the log names.
 *
 * They are sealed, so any error is damage. All REMOVEs come before all PUTs. PUTs have no order
 * among each other, and several threads may read them.
 */
#include <assert.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "store/log/read/walk_private.h"

/* From this many bytes on, several threads read class segments. */
enum { THREADED_BYTES = 16 * 1024 * 1024 };

/* A record with a key of one byte. */
enum { PUT_BYTES_MIN = HX_LOG_RECORD_HEAD_SIZE + HX_LOG_ENTRY_ALIGN };

/* The seal: the last block of the file. */
static enum hapax_status read_seal(
	struct hx_walk *walk, const struct hx_log_manifest_item *item, struct hx_log_seal *ret_seal,
	bool *ret_found)
{
	struct hapax_error why = {0};
	struct hx_log_entries entries;
	struct hx_log_entry entry;
	struct hx_log_frame frame;
	struct hapax_bytes bytes;
	enum hx_log_found found;
	enum hapax_status status;

	assert(walk->reader.header.kind == item->kind);
	assert(walk->reader.header.id == item->id);
	*ret_found = false;
	if (walk->reader.header.capacity != item->bytes || item->bytes < 2 * HX_LOG_BLOCK_SIZE)
		return hx_walk_damage(
			walk, 0, 0, item->bytes / PUT_BYTES_MIN,
			"the segment is not the one that the log names");
	walk->reader.offset = item->bytes - HX_LOG_BLOCK_SIZE;
	status = hx_log_reader_next(&walk->reader, &found, &frame, &bytes, walk->err);
	if (status != HAPAX_OK)
		return status;
	if (found != HX_LOG_FOUND_FRAME || !(frame.flags & HX_LOG_FRAME_SEAL) ||
	    frame.crc != item->crc)
		return hx_walk_damage(
			walk, item->bytes - HX_LOG_BLOCK_SIZE, 0, item->bytes / PUT_BYTES_MIN,
			"the segment does not have the seal that the log names");
	hx_log_entries_begin(&entries, &frame, item->kind, bytes);
	if (!hx_log_entries_next(&entries, &entry, &status, &why) || entry.kind != HX_LOG_SEAL)
		return hx_walk_damage(walk, frame.offset, 0, 0, "the seal is invalid");
	*ret_seal = entry.as.seal;
	*ret_found = true;
	if (ret_seal->removes_offset < HX_LOG_BLOCK_SIZE ||
	    ret_seal->removes_offset > frame.offset ||
	    ret_seal->removes_offset % HX_LOG_BLOCK_SIZE != 0) {
		*ret_found = false;
		return hx_walk_damage(walk, frame.offset, 0, 0, "the seal is invalid");
	}
	return HAPAX_OK;
}

/* The frames of a class segment from reader.offset to end. */
static enum hapax_status read_class_frames(
	struct hx_walk *walk, uint64_t end, enum hx_walk_taken taken, uint64_t at_risk)
{
	uint32_t chain = 0;
	bool has_chain = walk->reader.offset == HX_LOG_BLOCK_SIZE;

	assert(walk->reader.offset >= HX_LOG_BLOCK_SIZE);
	assert(end % HX_LOG_BLOCK_SIZE == 0);
	assert(taken != HX_WALK_TAKE_ALL);
	while (walk->reader.offset < end) {
		struct hx_log_frame frame;
		struct hapax_bytes bytes;
		enum hx_log_found found;
		enum hapax_status status =
			hx_log_reader_next(&walk->reader, &found, &frame, &bytes, walk->err);

		if (status != HAPAX_OK)
			return status;
		if (found != HX_LOG_FOUND_FRAME)
			return hx_walk_damage(
				walk, walk->reader.offset, 0, at_risk, "a frame is damaged");
		if (has_chain && frame.chain != chain)
			return hx_walk_damage(
				walk, frame.offset, 0, at_risk,
				"a frame does not follow the previous one");
		assert(walk->reader.offset == frame.offset + frame.size);
		if (walk->reader.offset > end)
			return hx_walk_damage(
				walk, frame.offset, 0, at_risk, "a frame is too long");
		chain = frame.crc;
		has_chain = true;
		status = hx_walk_take_frame(walk, &frame, bytes, taken);
		if (status != HAPAX_OK)
			return status;
	}
	assert(walk->reader.offset == end);
	return HAPAX_OK;
}

static enum hapax_status read_class(
	struct hx_walk *walk, struct hx_log_manifest_item *item, enum hx_walk_taken taken)
{
	struct hapax_error why = {0};
	struct hx_log_seal seal;
	bool found;
	enum hapax_status status;

	hx_log_name(walk->name, item->kind, item->id, "");
	if (!hx_log_listing_has(&walk->listing, item->kind, item->id))
		return taken == HX_WALK_TAKE_REMOVES
			? hx_walk_damage(
				  walk, 0, 0, item->bytes / PUT_BYTES_MIN,
				  "the segment is missing, with all its keys")
			: HAPAX_OK;
	status = hx_walk_open(walk, item->kind, item->id, &why);
	if (hx_walk_is_damage(status))
		return taken == HX_WALK_TAKE_REMOVES ? hx_walk_damage_told(walk, 0, 0, &why)
						     : HAPAX_OK;
	if (status != HAPAX_OK)
		return hx_error_set(walk->err, status, why.os_errno, "%s", why.message);
	status = read_seal(walk, item, &seal, &found);
	if (status != HAPAX_OK || !found)
		return status;
	/* read_seal() has checked it. */
	assert(seal.removes_offset >= HX_LOG_BLOCK_SIZE);
	assert(seal.removes_offset <= item->bytes - HX_LOG_BLOCK_SIZE);
	item->seal = seal;
	if (taken == HX_WALK_TAKE_REMOVES) {
		walk->reader.offset = seal.removes_offset;
		return read_class_frames(walk, item->bytes, taken, seal.removes);
	}
	hx_walk_tell_segment(walk);
	walk->reader.offset = HX_LOG_BLOCK_SIZE;
	return read_class_frames(walk, seal.removes_offset, taken, seal.puts);
}

static void note_leftovers(struct hx_walk *walk)
{
	const struct hx_log_walk_result *result = walk->result;

	for (size_t i = 0; i < walk->listing.count; i++) {
		const struct hx_log_listed *segment = &walk->listing.segments[i];
		char name[HX_LOG_NAME_SIZE];

		if (segment->kind == HX_LOG_KIND_LOG ||
		    hx_log_listed_is_named(segment, result->classes, result->class_count))
			continue;
		hx_log_name(name, segment->kind, segment->id, "");
		(void)hx_walk_note(walk, name, "unused segment of an interrupted pass");
	}
}

/* Several threads share the class segments: a free thread takes the next. */
struct share {
	_Atomic uint32_t next;
	_Atomic uint32_t has_failed;
};

struct worker {
	struct hx_walk walk;
	struct share *share;
	struct hx_log_visitor visitor;
	struct hapax_error err;
	enum hapax_status status;
	struct hx_thread thread;
	bool runs;
};

static enum hapax_status read_share(struct hx_walk *walk, struct share *share)
{
	struct hx_log_walk_result *result = walk->result;
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK && atomic_load(&share->has_failed) == 0) {
		uint32_t index = atomic_fetch_add(&share->next, 1);

		if (index >= result->class_count)
			return HAPAX_OK;
		assert(result->classes[index].kind != HX_LOG_KIND_LOG);
		status = read_class(walk, &result->classes[index], HX_WALK_TAKE_PUTS);
	}
	if (status != HAPAX_OK)
		atomic_store(&share->has_failed, 1);
	return status;
}

static void run_worker(void *arg)
{
	struct worker *worker = arg;

	worker->status = read_share(&worker->walk, worker->share);
}

/* A separate walk over what the threads share; the listing and the result are only read. */
static void worker_start(
	struct worker *worker, struct hx_walk *walk, struct share *share, void *context)
{
	assert(!worker->runs);
	assert(context != walk->visitor->context);
	worker->visitor = *walk->visitor;
	worker->visitor.context = context;
	worker->visitor.progress = NULL;
	worker->share = share;
	worker->walk = (struct hx_walk){
		.directory = walk->directory,
		.visitor = &worker->visitor,
		.result = walk->result,
		.err = &worker->err,
		.listing = walk->listing,
	};
	worker->walk.reader.file = -1;
	hx_log_scope_names_init(&worker->walk.scopes);
	worker->status = HAPAX_OK;
	/* If no more threads can start, the others do its share. */
	worker->runs =
		hx_thread_start(&worker->thread, run_worker, worker, "hapax-recovery", NULL) ==
		HAPAX_OK;
}

static enum hapax_status worker_end(struct worker *worker, struct hx_walk *walk)
{
	if (worker->runs)
		hx_thread_join(&worker->thread);
	assert(worker->walk.result == walk->result);
	assert(worker->runs || worker->status == HAPAX_OK);
	hx_log_reader_close(&worker->walk.reader);
	hx_log_scope_names_done(&worker->walk.scopes);
	if (worker->status != HAPAX_OK && walk->err != NULL)
		*walk->err = worker->err;
	return worker->status;
}

static enum hapax_status read_puts(struct hx_walk *walk)
{
	unsigned count = walk->visitor->thread_contexts != NULL ? walk->visitor->thread_count : 0;
	struct worker *workers = NULL;
	struct share share = {0};
	enum hapax_status status;

	/* A thread must be worth its start. */
	if (count != 0 && walk->bytes_total > THREADED_BYTES)
		workers = hx_alloc_zero(count, sizeof(*workers));
	if (workers == NULL)
		return read_share(walk, &share);
	for (unsigned i = 0; i < count; i++)
		worker_start(&workers[i], walk, &share, walk->visitor->thread_contexts[i]);
	status = read_share(walk, &share);
	for (unsigned i = 0; i < count; i++) {
		enum hapax_status ended = worker_end(&workers[i], walk);

		status = status != HAPAX_OK ? status : ended;
	}
	/* Every segment was taken, or one failed. */
	assert(status != HAPAX_OK || atomic_load(&share.next) >= walk->result->class_count);
	hx_free(workers);
	return status;
}

enum hapax_status hx_walk_classes(struct hx_walk *walk)
{
	struct hx_log_walk_result *result = walk->result;

	assert(result->class_count == 0 || result->classes != NULL);
	assert(walk->bytes_done <= walk->bytes_total);
	result->log_bytes = walk->bytes_done;
	if (walk->visitor->log_end != NULL)
		walk->visitor->log_end(walk->visitor->context);
	note_leftovers(walk);
	for (uint32_t i = 0; i < result->class_count; i++)
		walk->bytes_total += result->classes[i].bytes;
	for (uint32_t i = 0; i < result->class_count; i++) {
		enum hapax_status status =
			read_class(walk, &result->classes[i], HX_WALK_TAKE_REMOVES);

		if (status != HAPAX_OK)
			return status;
	}
	return read_puts(walk);
}
