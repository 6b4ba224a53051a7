/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk_log.c - the log, from its beginning to its end.
 *
 * The last segment with frames is found from the end; the ones behind it are prepared and
 * unused. Every other segment must reach exactly as far as the BEGIN of the next one says. In
 * the last one, the first place without a valid frame ends the log, unless a later frame proves
 * that something is missing.
 */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/log/read/walk_private.h"

/* The number of records in a manifest's class segments, as far as their seals are readable. */
static uint64_t count_puts(
	struct hx_walk *walk, const struct hx_log_manifest_item *items, uint32_t count)
{
	uint64_t puts = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct hx_log_frame frame;
		struct hx_log_entries entries;
		struct hx_log_entry entry;
		struct hapax_bytes bytes;
		enum hx_log_found found;
		enum hapax_status status;

		if (hx_walk_open(walk, items[i].kind, items[i].id, NULL) != HAPAX_OK)
			continue;
		walk->reader.offset = walk->reader.header.capacity - HX_LOG_BLOCK_SIZE;
		if (hx_log_reader_next(&walk->reader, &found, &frame, &bytes, NULL) != HAPAX_OK ||
		    found != HX_LOG_FOUND_FRAME)
			continue;
		hx_log_entries_begin(&entries, &frame, items[i].kind, bytes);
		if (hx_log_entries_next(&entries, &entry, &status, NULL) &&
		    entry.kind == HX_LOG_SEAL)
			puts += entry.as.seal.puts;
	}
	return puts;
}

/* A hint for the visitor, from the manifest that the last segment begins with. */
static enum hapax_status tell_expected(struct hx_walk *walk, const struct hx_log_entry *manifest)
{
	uint32_t count = manifest->as.manifest.count;
	struct hx_log_manifest_item *items;

	if (walk->visitor->expect == NULL || count == 0)
		return HAPAX_OK;
	items = hx_alloc(count * sizeof(*items));
	if (items == NULL)
		return hx_error_set(
			walk->err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a manifest");
	for (uint32_t i = 0; i < count; i++)
		items[i] = hx_log_manifest_item(manifest, i);
	walk->visitor->expect(walk->visitor->context, count_puts(walk, items, count));
	hx_free(items);
	return HAPAX_OK;
}

/* The BEGIN of the segment that is open in walk->reader. */
static enum hapax_status peek_begin(
	struct hx_walk *walk, bool *ret_found, struct hx_log_entry *ret_begin,
	uint64_t *ret_log_first_id)
{
	struct hapax_error why = {0};
	struct hx_log_entries entries;
	struct hx_log_entry manifest;
	struct hx_log_frame frame;
	struct hapax_bytes bytes;
	enum hx_log_found found;
	enum hapax_status status;

	/* It was just opened. */
	assert(walk->reader.offset == HX_LOG_BLOCK_SIZE);
	assert(walk->reader.header.kind == HX_LOG_KIND_LOG);
	*ret_found = false;
	status = hx_log_reader_next(&walk->reader, &found, &frame, &bytes, walk->err);
	walk->reader.offset = HX_LOG_BLOCK_SIZE;
	if (status != HAPAX_OK || found != HX_LOG_FOUND_FRAME)
		return status;
	hx_log_entries_begin(&entries, &frame, HX_LOG_KIND_LOG, bytes);
	*ret_found = hx_log_entries_next(&entries, ret_begin, &status, &why) &&
		ret_begin->kind == HX_LOG_BEGIN &&
		hx_log_entries_next(&entries, &manifest, &status, &why) &&
		manifest.kind == HX_LOG_MANIFEST;
	if (*ret_found) {
		*ret_log_first_id = manifest.as.manifest.log_first_id;
		return walk->has_expected ? HAPAX_OK : tell_expected(walk, &manifest);
	}
	return hx_walk_damage(
		walk, HX_LOG_BLOCK_SIZE, frame.lsn, 0, "the segment has no valid first entry");
}

/*
 * A segment without a first frame: does it have others? Then the first was written. Whether it
 * was durable is known after the log before it was read.
 */
static enum hapax_status look_at_unused(struct hx_walk *walk, uint64_t id)
{
	struct hx_walk_tail tail;
	enum hapax_status status = hx_walk_look_behind(walk, &tail);

	/* From the end of the log to its beginning. */
	assert(walk->headless_id == 0 || id < walk->headless_id);
	if (status == HAPAX_OK && tail.has_frames) {
		hx_walk_tail_add(&walk->headless, &tail);
		walk->headless_id = id;
	}
	return status;
}

/* Find the last segment that has frames: *ret_id, or 0. */
static enum hapax_status find_last(
	struct hx_walk *walk, uint64_t *ret_id, uint64_t *ret_log_first_id)
{
	*ret_id = 0;
	for (size_t i = walk->listing.count; i > 0; i--) {
		const struct hx_log_listed *listed = &walk->listing.segments[i - 1];
		struct hapax_error why = {0};
		struct hx_log_entry begin;
		enum hapax_status status;
		bool found = false;

		if (listed->kind != HX_LOG_KIND_LOG)
			continue;
		status = hx_walk_open(walk, HX_LOG_KIND_LOG, listed->id, &why);
		if (hx_walk_is_damage(status)) {
			/* Perhaps unused: judged when the end of the log is known. */
			walk->has_stray = true;
			walk->stray_id = listed->id;
			if (status == HAPAX_ERR_UNSUPPORTED)
				return hx_walk_damage_told(walk, 0, 0, &why);
			continue;
		}
		if (status != HAPAX_OK)
			return hx_error_set(walk->err, status, why.os_errno, "%s", why.message);
		status = peek_begin(walk, &found, &begin, ret_log_first_id);
		if (status == HAPAX_OK && !found)
			status = look_at_unused(walk, listed->id);
		if (status != HAPAX_OK)
			return status;
		if (found) {
			*ret_id = listed->id;
			walk->has_expected = true;
			return HAPAX_OK;
		}
	}
	return HAPAX_OK;
}

/* Check chain and LSN of a frame against the one before. */
static enum hapax_status check_frame(struct hx_walk *walk, const struct hx_log_frame *frame)
{
	struct hx_log_walk_result *result = walk->result;

	assert(frame->offset >= HX_LOG_BLOCK_SIZE);
	if (walk->has_chain && frame->chain != result->chain)
		return hx_walk_damage(
			walk, frame->offset, frame->lsn, 0,
			"a frame does not follow the previous one");
	if (walk->has_chain && frame->lsn != result->next_lsn)
		return hx_walk_damage(
			walk, frame->offset, result->next_lsn, 0, "a frame has an unexpected LSN");
	if (frame->durable_lsn > frame->lsn)
		return hx_walk_damage(
			walk, frame->offset, frame->lsn, 0, "a frame has an LSN that is too high");
	return HAPAX_OK;
}

static void pass_frame(struct hx_walk *walk, const struct hx_log_frame *frame)
{
	struct hx_log_walk_result *result = walk->result;

	assert(walk->reader.offset == frame->offset + frame->size);
	walk->has_chain = true;
	result->chain = frame->crc;
	result->next_lsn = frame->lsn + frame->entries;
	result->is_closed = (frame->flags & HX_LOG_FRAME_CLOSE) != 0;
	result->is_sealed = (frame->flags & HX_LOG_FRAME_SEAL) != 0;
	result->clock = frame->clock;
	result->has_clock = true;
	if (frame->token > result->token)
		result->token = frame->token;
	assert(result->token >= frame->token);
}

static uint64_t distance(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

/* The unacknowledged rest is kept for people. */
static enum hapax_status cut(
	struct hx_walk *walk, uint64_t id, uint64_t offset, uint64_t bytes, const char *what)
{
	struct hx_log_walk_result *result = walk->result;

	assert(bytes != 0);
	assert(bytes % HX_LOG_BLOCK_SIZE == 0);
	assert(offset >= HX_LOG_BLOCK_SIZE);
	/* A log is cut in one place: a later one would follow the first. */
	assert(result->cut_bytes == 0 || result->cut_id < id);
	result->cut_id = id;
	result->cut_offset = offset;
	result->cut_bytes = bytes;
	return hx_walk_report(
		walk,
		(struct hx_log_problem){
			.kind = HX_LOG_CUT,
			.file = walk->name,
			.offset = offset,
			.lsn = result->next_lsn,
			.what = what,
		});
}

/* Frames that do not count may still have issued tokens. */
static void keep_token(struct hx_walk *walk, const struct hx_walk_tail *tail)
{
	if (tail->token > walk->result->token)
		walk->result->token = tail->token;
	assert(walk->result->token >= tail->token);
}

/* The log ends here, unless a later frame proves otherwise. */
static enum hapax_status end_log(struct hx_walk *walk)
{
	struct hx_log_walk_result *result = walk->result;
	struct hx_walk_tail tail;
	/* Behind a clean close as well: the store may have been opened again since. */
	enum hapax_status status = hx_walk_look_behind(walk, &tail);
	uint64_t end = walk->reader.offset;
	uint64_t bytes;

	if (status != HAPAX_OK)
		return status;
	assert(tail.frames_end >= end);
	assert(tail.remains_end >= end);
	result->log_end = end;
	if (hx_walk_tail_proves(&tail, result->next_lsn))
		return hx_walk_damage(
			walk, end, result->next_lsn, distance(result->next_lsn, tail.lsn),
			"acknowledged data is damaged: a later frame proves that it was durable");
	if (result->is_sealed)
		return HAPAX_OK;
	keep_token(walk, &tail);
	bytes = hx_walk_tail_bytes(&tail, end);
	if (bytes == 0)
		return HAPAX_OK;
	/* Frames that are there would follow whatever is written before them. */
	result->is_closed = false;
	return cut(
		walk, result->log_last_id, end, bytes,
		tail.has_frames ? "frames of unsafe mode follow one that is missing"
				: "a frame was not completely written, and was not acknowledged");
}

/*
 * Read the frames of the open log segment. end is where they end, 0: find out. end_lsn is the
 * LSN with which the next one begins.
 */
static enum hapax_status read_log_segment(struct hx_walk *walk, uint64_t end, uint64_t end_lsn)
{
	hx_walk_tell_segment(walk);
	assert(walk->reader.offset == HX_LOG_BLOCK_SIZE);
	assert(end == 0 || end >= HX_LOG_BLOCK_SIZE);
	for (;;) {
		struct hx_log_frame frame = {0};
		struct hapax_bytes bytes;
		enum hx_log_found found;
		enum hapax_status status;

		if (end != 0 && walk->reader.offset == end)
			return HAPAX_OK;
		status = hx_log_reader_next(&walk->reader, &found, &frame, &bytes, walk->err);
		if (status != HAPAX_OK)
			return status;
		if (found != HX_LOG_FOUND_FRAME && end == 0)
			return end_log(walk);
		if (found != HX_LOG_FOUND_FRAME || (end != 0 && walk->reader.offset > end))
			return hx_walk_damage(
				walk, walk->reader.offset, walk->result->next_lsn,
				distance(walk->result->next_lsn, end_lsn),
				"acknowledged data is damaged: the next segment continues it");
		status = check_frame(walk, &frame);
		if (status == HAPAX_OK)
			status = hx_walk_take_frame(walk, &frame, bytes, HX_WALK_TAKE_ALL);
		if (status != HAPAX_OK)
			return status;
		pass_frame(walk, &frame);
	}
}

/* The end of segment id, and the first LSN of the one after it, which records both. */
static enum hapax_status end_of(
	struct hx_walk *walk, uint64_t id, uint64_t *ret_end, uint64_t *ret_lsn)
{
	struct hapax_error why = {0};
	struct hx_log_entry begin;
	uint64_t log_first_id;
	bool found = false;
	enum hapax_status status = hx_walk_open(walk, HX_LOG_KIND_LOG, id + 1, &why);

	*ret_end = *ret_lsn = 0;
	if (hx_walk_is_damage(status))
		return hx_walk_damage_told(walk, 0, 0, &why);
	if (status != HAPAX_OK)
		return hx_error_set(walk->err, status, why.os_errno, "%s", why.message);
	status = peek_begin(walk, &found, &begin, &log_first_id);
	if (status != HAPAX_OK)
		return status;
	if (!found || begin.as.begin.previous_id != id ||
	    begin.as.begin.previous_end < HX_LOG_BLOCK_SIZE)
		return hx_walk_damage(
			walk, HX_LOG_BLOCK_SIZE, 0, 0,
			"acknowledged data is damaged: the segment does not follow the previous "
			"one");
	assert(begin.kind == HX_LOG_BEGIN);
	*ret_end = begin.as.begin.previous_end;
	*ret_lsn = begin.lsn;
	return HAPAX_OK;
}

static enum hapax_status read_log(struct hx_walk *walk, uint64_t first_id, uint64_t last_id)
{
	assert(first_id != 0);
	assert(first_id <= last_id);
	for (uint64_t id = first_id; id <= last_id; id++) {
		struct hapax_error why = {0};
		enum hapax_status status = HAPAX_OK;
		uint64_t damages = walk->result->damages;
		uint64_t end = 0, end_lsn = 0;

		if (id < last_id)
			status = end_of(walk, id, &end, &end_lsn);
		if (status != HAPAX_OK)
			return status;
		status = hx_walk_open(walk, HX_LOG_KIND_LOG, id, &why);
		if (hx_walk_is_damage(status))
			status = hx_walk_damage_told(walk, 0, 0, &why);
		else if (status != HAPAX_OK)
			status = hx_error_set(walk->err, status, why.os_errno, "%s", why.message);
		else if (id == last_id || end != 0)
			status = read_log_segment(walk, end, end_lsn);
		if (status != HAPAX_OK)
			return status;
		/* Damage is reported once: frames behind the gap follow nothing. */
		if (walk->result->damages != damages)
			walk->has_chain = false;
	}
	return HAPAX_OK;
}

/*
 * A log segment behind the last one could not be read. It may be prepared and unused, but only
 * its header could prove that. A clean close before it proves nothing, since the store may have
 * been opened again. No crash leaves such a file: a segment gets its name when its header is
 * durable.
 */
static enum hapax_status judge_stray(struct hx_walk *walk)
{
	if (!walk->has_stray)
		return HAPAX_OK;
	hx_log_name(walk->name, HX_LOG_KIND_LOG, walk->stray_id, "");
	return hx_walk_damage(walk, 0, 0, 0, "the header of a log segment is damaged");
}

/*
 * A segment that was given up may reappear: its new name was lost, but later writes to it were
 * not. It then has no header, or that of another. Whether it is missing is known after the last
 * manifest was read.
 */
static bool is_there(struct hx_walk *walk, uint64_t id)
{
	return hx_log_listing_has(&walk->listing, HX_LOG_KIND_LOG, id) &&
		!hx_walk_is_damage(hx_walk_open(walk, HX_LOG_KIND_LOG, id, NULL));
}

static enum hapax_status miss_segment(struct hx_walk *walk, uint64_t id)
{
	struct hapax_error why = {0};

	if (hx_log_listing_has(&walk->listing, HX_LOG_KIND_LOG, id) &&
	    hx_walk_is_damage(hx_walk_open(walk, HX_LOG_KIND_LOG, id, &why)))
		return hx_walk_damage_told(walk, 0, 0, &why);
	hx_log_name(walk->name, HX_LOG_KIND_LOG, id, "");
	return hx_walk_damage(walk, 0, 0, 0, "a segment of the log is missing");
}

/*
 * A segment behind the last one has frames, but not its first. In unsafe mode a power cut leaves
 * that; then they do not count. They must not follow the next frame written there.
 */
static enum hapax_status judge_headless(struct hx_walk *walk)
{
	struct hx_log_walk_result *result = walk->result;
	const struct hx_walk_tail *tail = &walk->headless;

	if (!tail->has_frames)
		return HAPAX_OK;
	hx_log_name(walk->name, HX_LOG_KIND_LOG, walk->headless_id, "");
	if (hx_walk_tail_proves(tail, result->next_lsn))
		return hx_walk_damage(
			walk, HX_LOG_BLOCK_SIZE, result->next_lsn,
			distance(result->next_lsn, tail->lsn),
			"the first frame is damaged, and later ones prove that it was durable");
	keep_token(walk, tail);
	result->next_is_used = true;
	return cut(
		walk, walk->headless_id, HX_LOG_BLOCK_SIZE, tail->frames_end - HX_LOG_BLOCK_SIZE,
		"frames of unsafe mode follow a first one that is missing");
}

/* The log has no frames at all. A new store has none: did it ever have any? */
static enum hapax_status judge_empty(struct hx_walk *walk)
{
	bool has_classes = false;

	for (size_t i = 0; i < walk->listing.count; i++)
		has_classes |= walk->listing.segments[i].kind != HX_LOG_KIND_LOG;
	if (walk->has_stray)
		return judge_stray(walk);
	if (!has_classes || walk->result->store.log_id != 0)
		return HAPAX_OK;
	memset(walk->name, 0, sizeof(walk->name));
	return hx_walk_damage(
		walk, 0, 0, 0, "the log is missing: class segments exist that it must name");
}

/* A segment that STORE vouches for must exist: the log never ends before it. */
static enum hapax_status judge_vouched(struct hx_walk *walk)
{
	struct hx_log_walk_result *result = walk->result;
	uint64_t id = result->store.log_id;

	if (id <= result->log_last_id)
		return HAPAX_OK;
	hx_log_name(walk->name, HX_LOG_KIND_LOG, id, "");
	return hx_walk_damage(
		walk, 0, result->log_last_id != 0 ? result->next_lsn : 0, 0,
		hx_log_listing_has(&walk->listing, HX_LOG_KIND_LOG, id)
			? "acknowledged data is damaged: STORE says that the segment has frames"
			: "a segment of the log is missing: STORE says that it has frames");
}

/* Check the log as a whole, after it was read. */
static enum hapax_status judge_log(struct hx_walk *walk, uint64_t first_id, uint64_t last_id)
{
	struct hx_log_walk_result *result = walk->result;
	enum hapax_status status = HAPAX_OK;

	if (result->log_first_id < first_id)
		status = miss_segment(walk, first_id - 1);
	if (status == HAPAX_OK && result->is_sealed &&
	    !hx_log_listing_has(&walk->listing, HX_LOG_KIND_LOG, last_id + 1)) {
		hx_log_name(walk->name, HX_LOG_KIND_LOG, last_id + 1, "");
		status = hx_walk_damage(
			walk, 0, result->next_lsn, 0, "the last segment of the log is missing");
	} else if (status == HAPAX_OK) {
		status = judge_vouched(walk);
	}
	if (status == HAPAX_OK)
		status = judge_headless(walk);
	return status != HAPAX_OK ? status : judge_stray(walk);
}

enum hapax_status hx_walk_log(struct hx_walk *walk)
{
	struct hx_log_walk_result *result = walk->result;
	uint64_t last_id = 0;
	uint64_t log_first_id = 1;
	uint64_t first_id;
	enum hapax_status status = find_last(walk, &last_id, &log_first_id);

	result->log_top_id = hx_log_listing_top(&walk->listing, HX_LOG_KIND_LOG);
	result->log_last_id = last_id;
	result->log_first_id = 1;
	result->next_class_id = 1;
	result->next_lsn = 1;
	if (status != HAPAX_OK)
		return status;
	if (last_id == 0) {
		status = judge_empty(walk);
		if (status == HAPAX_OK)
			status = judge_vouched(walk);
		return status != HAPAX_OK ? status : judge_headless(walk);
	}
	first_id = last_id;
	while (first_id > log_first_id && is_there(walk, first_id - 1))
		first_id--;
	assert(first_id <= last_id);
	assert(last_id <= result->log_top_id);
	result->log_run_id = first_id;
	status = read_log(walk, first_id, last_id);
	if (status != HAPAX_OK)
		return status;
	result->was_closed = result->is_closed;
	result->scopes_differ = !hx_log_scope_names_fit(&walk->scopes);
	return judge_log(walk, first_id, last_id);
}
