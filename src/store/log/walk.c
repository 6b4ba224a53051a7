/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - a whole store directory, read and verified in the order of recovery.
 *
 * The log comes first, since it says where it begins and which class segments there
 * are. Its last segment with frames is found from the end; the ones behind that are
 * prepared and unused. Every other segment must reach exactly as far as the BEGIN of
 * the next one says.
 */
#include "store/log/walk.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"
#include "base/limits.h"
#include "store/log/listing.h"
#include "store/log/reader.h"
#include "store/log/scope_names.h"

struct walk {
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
	bool has_chain; /* result->chain and next_lsn are known */
	bool has_stray; /* a log segment behind the last one cannot be read */
	uint64_t stray_id;
};

void hx_log_walk_result_done(struct hx_log_walk_result *result)
{
	hx_free(result->classes);
	result->classes = NULL;
	result->class_count = 0;
}

/* Problems. */

static enum hapax_status describe(struct walk *walk, const struct hx_log_problem *problem)
{
	char place[96] = "";
	char risk[64] = "";

	if (problem->lsn != 0)
		snprintf(
			place, sizeof(place), " at offset %" PRIu64 " (LSN %" PRIu64 ")",
			problem->offset, problem->lsn);
	else if (problem->offset != 0)
		snprintf(place, sizeof(place), " at offset %" PRIu64, problem->offset);
	if (problem->keys_at_risk != 0)
		snprintf(
			risk, sizeof(risk), "; %" PRIu64 " keys are at risk",
			problem->keys_at_risk);
	return hx_error_set(
		walk->err, problem->status, 0, "%s%s: %s%s; see 'hapax fsck'", problem->file, place,
		problem->what, risk);
}

/* OK: the visitor wants to go on all the same. */
static enum hapax_status report(struct walk *walk, struct hx_log_problem problem)
{
	bool goes_on = walk->visitor->problem != NULL &&
		walk->visitor->problem(walk->visitor->context, &problem);

	if (problem.kind != HX_LOG_DAMAGE)
		return HAPAX_OK;
	walk->result->damages++;
	return goes_on ? HAPAX_OK : describe(walk, &problem);
}

static enum hapax_status note(struct walk *walk, const char *file, const char *what)
{
	return report(
		walk, (struct hx_log_problem){.kind = HX_LOG_NOTE, .file = file, .what = what});
}

static enum hapax_status damage(
	struct walk *walk, uint64_t offset, uint64_t lsn, uint64_t keys_at_risk, const char *what)
{
	return report(
		walk,
		(struct hx_log_problem){
			.kind = HX_LOG_DAMAGE,
			.status = HAPAX_ERR_CORRUPT,
			.file = walk->name,
			.offset = offset,
			.lsn = lsn,
			.keys_at_risk = keys_at_risk,
			.what = what,
		});
}

/* An entry or a header that says itself what is wrong. */
static enum hapax_status damage_told(
	struct walk *walk, uint64_t offset, uint64_t lsn, const struct hapax_error *why)
{
	return report(
		walk,
		(struct hx_log_problem){
			.kind = HX_LOG_DAMAGE,
			.status = why->status,
			.file = walk->name,
			.offset = offset,
			.lsn = lsn,
			.what = why->message,
		});
}

/* Segments. */

static bool is_damage(enum hapax_status status)
{
	return status == HAPAX_ERR_CORRUPT || status == HAPAX_ERR_UNSUPPORTED ||
		status == HAPAX_ERR_INVALID;
}

/* Open a segment into walk->reader. CORRUPT and its kind: it is not the one it should be. */
static enum hapax_status open_segment(
	struct walk *walk, enum hx_log_kind kind, uint64_t id, struct hapax_error *why)
{
	char path[HX_LOG_PATH_SIZE];
	enum hapax_status status;

	hx_log_scope_names_clear(&walk->scopes);
	hx_log_name(walk->name, kind, id, "");
	hx_log_path(&walk->directory, walk->name, path);
	status = hx_log_reader_reopen(&walk->reader, walk->directory.io, path, why);
	if (status != HAPAX_OK)
		return status;
	if (memcmp(walk->reader.header.uuid, walk->directory.store.uuid, HX_LOG_UUID_SIZE) != 0)
		return hx_error_set(
			why, HAPAX_ERR_CORRUPT, 0, "the segment belongs to another store");
	if (walk->reader.header.id != id || walk->reader.header.kind != kind)
		return hx_error_set(
			why, HAPAX_ERR_CORRUPT, 0, "the segment is another one than its name says");
	return HAPAX_OK;
}

static void tell_progress(struct walk *walk, uint64_t bytes)
{
	walk->bytes_done += bytes;
	if (walk->bytes_total < walk->bytes_done)
		walk->bytes_total = walk->bytes_done;
	if (walk->visitor->progress != NULL)
		walk->visitor->progress(
			walk->visitor->context, walk->bytes_done, walk->bytes_total);
}

static void tell_segment(struct walk *walk)
{
	if (walk->visitor->segment != NULL)
		walk->visitor->segment(walk->visitor->context, walk->name, &walk->reader.header);
}

/* Entries. */

static enum hapax_status keep_manifest(struct walk *walk, const struct hx_log_entry *entry)
{
	struct hx_log_walk_result *result = walk->result;
	uint32_t count = entry->as.manifest.count;
	struct hx_log_manifest_item *items = hx_alloc((count != 0 ? count : 1) * sizeof(*items));

	if (items == NULL)
		return hx_error_set(walk->err, HAPAX_ERR_NO_MEMORY, 0, "no memory for a manifest");
	for (uint32_t i = 0; i < count; i++)
		items[i] = hx_log_manifest_item(entry, i);
	hx_free(result->classes);
	result->classes = items;
	result->class_count = count;
	result->log_first_id = entry->as.manifest.log_first_id;
	result->next_class_id = entry->as.manifest.next_class_id;
	return HAPAX_OK;
}

/* The number of the scope that an entry names. */
static uint32_t scope_of(const struct hx_log_entry *entry)
{
	return entry->kind == HX_LOG_COUNTS ? entry->as.counts.scope : entry->as.put.scope;
}

static enum hapax_status visit(struct walk *walk, const struct hx_log_entry *entry)
{
	struct hx_log_walk_scope *scope = hx_log_scope_names_get(&walk->scopes, scope_of(entry));

	if (scope == NULL)
		return damage(
			walk, walk->reader.offset, entry->lsn, 1,
			"an entry in a scope that the segment does not name");
	if (walk->visitor->entry == NULL)
		return HAPAX_OK;
	return walk->visitor->entry(
		walk->visitor->context, &walk->reader.header, entry, scope, walk->err);
}

static enum hapax_status take_entry(struct walk *walk, const struct hx_log_entry *entry)
{
	bool is_log = walk->reader.header.kind == HX_LOG_KIND_LOG;

	switch (entry->kind) {
	case HX_LOG_SCOPE:
		if (!hx_log_scope_names_put(
			    &walk->scopes, entry->as.scope.number, entry->as.scope.tenant,
			    entry->as.scope.group))
			return hx_error_set(
				walk->err, HAPAX_ERR_NO_MEMORY, 0, "no memory for scopes");
		return HAPAX_OK;
	case HX_LOG_MANIFEST:
		if (is_log)
			return keep_manifest(walk, entry);
		break;
	case HX_LOG_BEGIN:
		if (is_log)
			return HAPAX_OK;
		break;
	case HX_LOG_COUNTS:
		if (is_log)
			return visit(walk, entry);
		break;
	case HX_LOG_PUT:
	case HX_LOG_REMOVE: return visit(walk, entry);
	case HX_LOG_SEAL:
		if (!is_log)
			return HAPAX_OK;
		break;
	default: return HAPAX_OK; /* to be passed over; the decoder has judged */
	}
	return damage(walk, walk->reader.offset, entry->lsn, 0, "an entry that has no place here");
}

/* Which entries of a frame are wanted. */
enum taken {
	TAKE_ALL,
	TAKE_REMOVES,
	TAKE_PUTS,
};

static bool is_taken(enum taken taken, const struct hx_log_entry *entry)
{
	if (taken == TAKE_REMOVES)
		return entry->kind != HX_LOG_PUT;
	return taken == TAKE_ALL || entry->kind != HX_LOG_REMOVE;
}

static enum hapax_status take_frame(
	struct walk *walk, const struct hx_log_frame *frame, struct hapax_bytes bytes,
	enum taken taken)
{
	struct hapax_error why = {0};
	struct hx_log_entries entries;
	struct hx_log_entry entry;
	enum hapax_status status;

	hx_log_entries_begin(&entries, frame, walk->reader.header.kind, bytes);
	while (hx_log_entries_next(&entries, &entry, &status, &why)) {
		if (is_taken(taken, &entry))
			status = take_entry(walk, &entry);
		if (status != HAPAX_OK)
			return status;
	}
	if (status != HAPAX_OK)
		return damage_told(walk, frame->offset, entries.lsn, &why);
	tell_progress(walk, frame->size);
	return HAPAX_OK;
}

/* The log. */

/* The BEGIN of the segment that is open in walk->reader. */
static enum hapax_status peek_begin(
	struct walk *walk, bool *ret_found, struct hx_log_entry *ret_begin,
	uint64_t *ret_log_first_id)
{
	struct hapax_error why = {0};
	struct hx_log_entries entries;
	struct hx_log_entry manifest;
	struct hx_log_frame frame;
	struct hapax_bytes bytes;
	enum hx_log_found found;
	enum hapax_status status;

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
		return HAPAX_OK;
	}
	return damage(walk, HX_LOG_BLOCK_SIZE, frame.lsn, 0, "the segment does not begin as one");
}

/* A segment without a first frame: has it others? Then the first was acknowledged. */
static enum hapax_status check_unused(struct walk *walk)
{
	struct hx_log_frame frame;
	bool found;
	enum hapax_status status = hx_log_reader_witness(&walk->reader, &found, &frame, walk->err);

	if (status != HAPAX_OK || !found)
		return status;
	return damage(
		walk, HX_LOG_BLOCK_SIZE, 0, frame.lsn,
		"the first frame is damaged, and later ones prove that it was durable");
}

/* Find the last segment that has frames: *ret_id, or 0. */
static enum hapax_status find_last(struct walk *walk, uint64_t *ret_id, uint64_t *ret_log_first_id)
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
		status = open_segment(walk, HX_LOG_KIND_LOG, listed->id, &why);
		if (is_damage(status)) {
			/* Unused, perhaps: judged when it is known how the log ends. */
			walk->has_stray = true;
			walk->stray_id = listed->id;
			if (status == HAPAX_ERR_UNSUPPORTED)
				return damage_told(walk, 0, 0, &why);
			continue;
		}
		if (status != HAPAX_OK)
			return hx_error_set(walk->err, status, why.os_errno, "%s", why.message);
		status = peek_begin(walk, &found, &begin, ret_log_first_id);
		if (status == HAPAX_OK && !found)
			status = check_unused(walk);
		if (status != HAPAX_OK)
			return status;
		if (found) {
			*ret_id = listed->id;
			return HAPAX_OK;
		}
	}
	return HAPAX_OK;
}

/* Chain and LSN of a frame against the one before. */
static enum hapax_status check_frame(struct walk *walk, const struct hx_log_frame *frame)
{
	struct hx_log_walk_result *result = walk->result;

	if (walk->has_chain && frame->chain != result->chain)
		return damage(
			walk, frame->offset, frame->lsn, 0,
			"a frame that does not follow the one before it");
	if (walk->has_chain && frame->lsn != result->next_lsn)
		return damage(
			walk, frame->offset, result->next_lsn, 0,
			"a frame with another LSN than it must have");
	if (frame->durable_lsn > frame->lsn)
		return damage(walk, frame->offset, frame->lsn, 0, "a frame ahead of itself");
	return HAPAX_OK;
}

static void pass_frame(struct walk *walk, const struct hx_log_frame *frame)
{
	struct hx_log_walk_result *result = walk->result;

	walk->has_chain = true;
	result->chain = frame->crc;
	result->next_lsn = frame->lsn + frame->entries;
	result->is_closed = (frame->flags & HX_LOG_FRAME_CLOSE) != 0;
	result->clock = frame->clock;
	result->has_clock = true;
	if (frame->token > result->token)
		result->token = frame->token;
}

/* The log ends here, unless a later frame proves otherwise. */
static enum hapax_status end_log(
	struct walk *walk, enum hx_log_found found, const struct hx_log_frame *torn)
{
	struct hx_log_walk_result *result = walk->result;
	struct hx_log_frame witness;
	bool is_proven = false;
	/* Behind a clean close as well: the store may have been opened again since. */
	enum hapax_status status =
		hx_log_reader_witness(&walk->reader, &is_proven, &witness, walk->err);

	if (status != HAPAX_OK)
		return status;
	result->log_end = walk->reader.offset;
#if HX_PLANTED_BUG == 107
	is_proven = false;
#endif
	if (is_proven)
		return damage(
			walk, walk->reader.offset, result->next_lsn,
			witness.lsn > result->next_lsn ? witness.lsn - result->next_lsn : 0,
			"acknowledged data is damaged: a later frame proves that it was durable");
	/* What was there before has another chain: only a frame of ours is a torn one. */
	if (found == HX_LOG_FOUND_DAMAGE && torn->chain == result->chain &&
	    torn->lsn == result->next_lsn) {
		result->torn_bytes = torn->size;
		result->is_closed = false;
		return report(
			walk,
			(struct hx_log_problem){
				.kind = HX_LOG_CUT,
				.file = walk->name,
				.offset = walk->reader.offset,
				.lsn = result->next_lsn,
				.keys_at_risk = 0,
				.what = "a frame that was not written whole, and not acknowledged",
			});
	}
	return HAPAX_OK;
}

/* Read the frames of the open log segment; end is where they end, 0: find out. */
static enum hapax_status read_log_segment(struct walk *walk, uint64_t end)
{
	tell_segment(walk);
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
			return end_log(walk, found, &frame);
		if (found != HX_LOG_FOUND_FRAME || (end != 0 && walk->reader.offset > end))
			return damage(
				walk, walk->reader.offset, walk->result->next_lsn, 0,
				"acknowledged data is damaged: the next segment continues it");
		status = check_frame(walk, &frame);
		if (status == HAPAX_OK)
			status = take_frame(walk, &frame, bytes, TAKE_ALL);
		if (status != HAPAX_OK)
			return status;
		pass_frame(walk, &frame);
	}
}

/* Where segment id ends, as the one after it says. */
static enum hapax_status end_of(struct walk *walk, uint64_t id, uint64_t *ret_end)
{
	struct hapax_error why = {0};
	struct hx_log_entry begin;
	uint64_t log_first_id;
	bool found = false;
	enum hapax_status status = open_segment(walk, HX_LOG_KIND_LOG, id + 1, &why);

	*ret_end = 0;
	if (is_damage(status))
		return damage_told(walk, 0, 0, &why);
	if (status != HAPAX_OK)
		return hx_error_set(walk->err, status, why.os_errno, "%s", why.message);
	status = peek_begin(walk, &found, &begin, &log_first_id);
	if (status != HAPAX_OK)
		return status;
	if (!found || begin.as.begin.previous_id != id ||
	    begin.as.begin.previous_end < HX_LOG_BLOCK_SIZE)
		return damage(
			walk, HX_LOG_BLOCK_SIZE, 0, 0,
			"acknowledged data is damaged: the segment does not follow the one before it");
	*ret_end = begin.as.begin.previous_end;
	return HAPAX_OK;
}

static enum hapax_status read_log(struct walk *walk, uint64_t first_id, uint64_t last_id)
{
	for (uint64_t id = first_id; id <= last_id; id++) {
		struct hapax_error why = {0};
		enum hapax_status status = HAPAX_OK;
		uint64_t end = 0;

		if (id < last_id)
			status = end_of(walk, id, &end);
		if (status != HAPAX_OK)
			return status;
		status = open_segment(walk, HX_LOG_KIND_LOG, id, &why);
		if (is_damage(status))
			status = damage_told(walk, 0, 0, &why);
		else if (status != HAPAX_OK)
			status = hx_error_set(walk->err, status, why.os_errno, "%s", why.message);
		else if (id == last_id || end != 0)
			status = read_log_segment(walk, end);
		if (status != HAPAX_OK)
			return status;
	}
	return HAPAX_OK;
}

/*
 * A log segment behind the last one could not be read. It may have been prepared and not
 * used, but only its header could tell: a clean close before it proves nothing, since
 * the store may have been opened again. No crash leaves such a file: a segment gets its
 * name when its header is durable.
 */
static enum hapax_status judge_stray(struct walk *walk)
{
	if (!walk->has_stray)
		return HAPAX_OK;
	hx_log_name(walk->name, HX_LOG_KIND_LOG, walk->stray_id, "");
	return damage(walk, 0, 0, 0, "the header of a log segment is damaged");
}

/*
 * A segment that was given up may come back: its new name was lost, and what was
 * written to it since was not. It has no header then, or another's. Whether it is
 * missed is known when the last manifest was read.
 */
static bool is_there(struct walk *walk, uint64_t id)
{
	return hx_log_listing_has(&walk->listing, HX_LOG_KIND_LOG, id) &&
		!is_damage(open_segment(walk, HX_LOG_KIND_LOG, id, NULL));
}

static enum hapax_status miss_segment(struct walk *walk, uint64_t id)
{
	struct hapax_error why = {0};

	if (hx_log_listing_has(&walk->listing, HX_LOG_KIND_LOG, id) &&
	    is_damage(open_segment(walk, HX_LOG_KIND_LOG, id, &why)))
		return damage_told(walk, 0, 0, &why);
	hx_log_name(walk->name, HX_LOG_KIND_LOG, id, "");
	return damage(walk, 0, 0, 0, "a segment of the log is missing");
}

static enum hapax_status walk_log(struct walk *walk)
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
	/* A new store: STORE is there, and nothing was ever written. */
	if (last_id == 0)
		return walk->has_stray ? judge_stray(walk) : HAPAX_OK;
	first_id = last_id;
	while (first_id > log_first_id && is_there(walk, first_id - 1))
		first_id--;
	result->log_run_id = first_id;
	status = read_log(walk, first_id, last_id);
	if (status != HAPAX_OK)
		return status;
	if (result->log_first_id < first_id)
		status = miss_segment(walk, first_id - 1);
	return status != HAPAX_OK ? status : judge_stray(walk);
}

/* Class segments. */

/* The seal: the last block of the file. */
static enum hapax_status read_seal(
	struct walk *walk, const struct hx_log_manifest_item *item, struct hx_log_seal *ret_seal,
	bool *ret_found)
{
	struct hapax_error why = {0};
	struct hx_log_entries entries;
	struct hx_log_entry entry;
	struct hx_log_frame frame;
	struct hapax_bytes bytes;
	enum hx_log_found found;
	enum hapax_status status;

	*ret_found = false;
	if (walk->reader.header.capacity != item->bytes || item->bytes < 2 * HX_LOG_BLOCK_SIZE)
		return damage(walk, 0, 0, 0, "the segment is not the one that the log names");
	walk->reader.offset = item->bytes - HX_LOG_BLOCK_SIZE;
	status = hx_log_reader_next(&walk->reader, &found, &frame, &bytes, walk->err);
	if (status != HAPAX_OK)
		return status;
	if (found != HX_LOG_FOUND_FRAME || !(frame.flags & HX_LOG_FRAME_SEAL) ||
	    frame.crc != item->crc)
		return damage(
			walk, item->bytes - HX_LOG_BLOCK_SIZE, 0, 0,
			"the segment has not the seal that the log names");
	hx_log_entries_begin(&entries, &frame, item->kind, bytes);
	if (!hx_log_entries_next(&entries, &entry, &status, &why) || entry.kind != HX_LOG_SEAL)
		return damage(walk, frame.offset, 0, 0, "the seal is none");
	*ret_seal = entry.as.seal;
	*ret_found = true;
	if (ret_seal->removes_offset < HX_LOG_BLOCK_SIZE ||
	    ret_seal->removes_offset > frame.offset ||
	    ret_seal->removes_offset % HX_LOG_BLOCK_SIZE != 0) {
		*ret_found = false;
		return damage(walk, frame.offset, 0, 0, "the seal is none");
	}
	return HAPAX_OK;
}

/* The frames of a class segment from reader.offset to end. */
static enum hapax_status read_class_frames(
	struct walk *walk, uint64_t end, enum taken taken, uint64_t at_risk)
{
	uint32_t chain = 0;
	bool has_chain = walk->reader.offset == HX_LOG_BLOCK_SIZE;

	while (walk->reader.offset < end) {
		struct hx_log_frame frame;
		struct hapax_bytes bytes;
		enum hx_log_found found;
		enum hapax_status status =
			hx_log_reader_next(&walk->reader, &found, &frame, &bytes, walk->err);

		if (status != HAPAX_OK)
			return status;
		if (found != HX_LOG_FOUND_FRAME)
			return damage(walk, walk->reader.offset, 0, at_risk, "a frame is damaged");
		if (has_chain && frame.chain != chain)
			return damage(
				walk, frame.offset, 0, at_risk,
				"a frame that does not follow the one before it");
		chain = frame.crc;
		has_chain = true;
		status = take_frame(walk, &frame, bytes, taken);
		if (status != HAPAX_OK)
			return status;
	}
	if (walk->reader.offset != end)
		return damage(walk, walk->reader.offset, 0, at_risk, "a frame goes too far");
	return HAPAX_OK;
}

static enum hapax_status read_class(
	struct walk *walk, struct hx_log_manifest_item *item, enum taken taken)
{
	struct hapax_error why = {0};
	struct hx_log_seal seal;
	bool found;
	enum hapax_status status;

	hx_log_name(walk->name, item->kind, item->id, "");
	if (!hx_log_listing_has(&walk->listing, item->kind, item->id))
		return taken == TAKE_REMOVES
			? damage(walk, 0, 0, 0, "the segment is missing, with all its keys")
			: HAPAX_OK;
	status = open_segment(walk, item->kind, item->id, &why);
	if (is_damage(status))
		return taken == TAKE_REMOVES ? damage_told(walk, 0, 0, &why) : HAPAX_OK;
	if (status != HAPAX_OK)
		return hx_error_set(walk->err, status, why.os_errno, "%s", why.message);
	status = read_seal(walk, item, &seal, &found);
	if (status != HAPAX_OK || !found)
		return status;
	item->seal = seal;
	if (taken == TAKE_REMOVES) {
		walk->reader.offset = seal.removes_offset;
		return read_class_frames(walk, item->bytes, taken, seal.removes);
	}
	tell_segment(walk);
	walk->reader.offset = HX_LOG_BLOCK_SIZE;
	return read_class_frames(walk, seal.removes_offset, taken, seal.puts);
}

static bool is_listed(const struct hx_log_walk_result *result, const struct hx_log_listed *segment)
{
	for (uint32_t i = 0; i < result->class_count; i++) {
		if (result->classes[i].id == segment->id &&
		    result->classes[i].kind == segment->kind)
			return true;
	}
	return false;
}

static enum hapax_status walk_classes(struct walk *walk)
{
	static const enum taken passes[] = {TAKE_REMOVES, TAKE_PUTS};
	struct hx_log_walk_result *result = walk->result;

	for (size_t i = 0; i < walk->listing.count; i++) {
		const struct hx_log_listed *segment = &walk->listing.segments[i];
		char name[HX_LOG_NAME_SIZE];

		if (segment->kind == HX_LOG_KIND_LOG || is_listed(result, segment))
			continue;
		hx_log_name(name, segment->kind, segment->id, "");
		(void)note(walk, name, "a segment of an interrupted pass, not in use");
	}
	for (uint32_t i = 0; i < result->class_count; i++)
		walk->bytes_total += result->classes[i].bytes;
	for (size_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < result->class_count; i++) {
			enum hapax_status status =
				read_class(walk, &result->classes[i], passes[pass]);

			if (status != HAPAX_OK)
				return status;
		}
	}
	return HAPAX_OK;
}

static enum hapax_status walk_all(struct walk *walk)
{
	struct hx_log_walk_result *result = walk->result;
	bool found;
	enum hapax_status status = hx_log_directory_read(&walk->directory, &found, walk->err);

	if (status == HAPAX_OK && !found)
		status = hx_error_set(
			walk->err, HAPAX_ERR_INVALID, 0, "there is no store in \"%.128s\"",
			walk->directory.path);
	if (status != HAPAX_OK)
		return status;
	result->store = walk->directory.store;
	result->token = result->store.token_floor;
	status = hx_log_listing_read(&walk->listing, &walk->directory, walk->err);
	if (status == HAPAX_OK && walk->listing.others != 0)
		(void)note(walk, "", "names that are not hapax's lie in the directory");
	if (status == HAPAX_OK)
		status = walk_log(walk);
	if (status == HAPAX_OK)
		status = walk_classes(walk);
	return status;
}

enum hapax_status hx_log_walk(
	const struct hx_io *io, const char *path, const struct hx_log_visitor *visitor,
	struct hx_log_walk_result *ret_result, struct hapax_error *err)
{
	struct walk walk = {.visitor = visitor, .result = ret_result, .err = err};
	enum hapax_status status;

	memset(ret_result, 0, sizeof(*ret_result));
	walk.reader.file = -1;
	hx_log_scope_names_init(&walk.scopes);
	status = hx_log_directory_init(&walk.directory, io, path, err);
	if (status == HAPAX_OK)
		status = walk_all(&walk);
	hx_log_reader_close(&walk.reader);
	hx_log_listing_done(&walk.listing);
	hx_log_scope_names_done(&walk.scopes);
	if (status != HAPAX_OK)
		hx_log_walk_result_done(ret_result);
	return status;
}
