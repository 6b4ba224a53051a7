/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_walk.c - a whole store directory, read and verified in the order of recovery.
 *
 * The log comes first (walk_log.c), since it says where it begins and which class segments exist
 * (walk_class.c). This file has what both need: problems, segments, entries.
 */
#include "store/log/read/log_walk.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/log/read/walk_private.h"

void hx_log_walk_result_done(struct hx_log_walk_result *result)
{
	hx_free(result->classes);
	result->classes = NULL;
	result->class_count = 0;
}

/* Problems. */

static enum hapax_status describe(struct hx_walk *walk, const struct hx_log_problem *problem)
{
	char place[96] = "";
	char risk[64] = "the number of keys at risk is unknown";

	assert(problem->kind == HX_LOG_DAMAGE);
	assert(hx_walk_is_damage(problem->status));
	if (problem->lsn != 0)
		snprintf(
			place, sizeof(place), " at offset %" PRIu64 " (LSN %" PRIu64 ")",
			problem->offset, problem->lsn);
	else if (problem->offset != 0)
		snprintf(place, sizeof(place), " at offset %" PRIu64, problem->offset);
	if (problem->keys_max != 0)
		snprintf(
			risk, sizeof(risk), "up to %" PRIu64 " keys are at risk",
			problem->keys_max);
	/* A newer format is not damage. */
	if (problem->status == HAPAX_ERR_UNSUPPORTED)
		return hx_error_set(
			walk->err, problem->status, 0, "%s%s: %s", problem->file, place,
			problem->what);
	return hx_error_set(
		walk->err, problem->status, 0, "%s%s: %s; %s; run 'hapax fsck'", problem->file,
		place, problem->what, risk);
}

/* OK: the visitor wants to continue. */
enum hapax_status hx_walk_report(struct hx_walk *walk, struct hx_log_problem problem)
{
	bool goes_on = walk->visitor->problem != NULL &&
		walk->visitor->problem(walk->visitor->context, &problem);

	assert((unsigned)problem.kind <= HX_LOG_DAMAGE);
	/* Only damage has a status. */
	assert((problem.kind == HX_LOG_DAMAGE) == (problem.status != HAPAX_OK));
	if (problem.kind != HX_LOG_DAMAGE)
		return HAPAX_OK;
	walk->result->damages++;
	return goes_on ? HAPAX_OK : describe(walk, &problem);
}

enum hapax_status hx_walk_note(struct hx_walk *walk, const char *file, const char *what)
{
	return hx_walk_report(
		walk, (struct hx_log_problem){.kind = HX_LOG_NOTE, .file = file, .what = what});
}

enum hapax_status hx_walk_damage(
	struct hx_walk *walk, uint64_t offset, uint64_t lsn, uint64_t keys_max, const char *what)
{
	return hx_walk_report(
		walk,
		(struct hx_log_problem){
			.kind = HX_LOG_DAMAGE,
			.status = HAPAX_ERR_CORRUPT,
			.file = walk->name,
			.offset = offset,
			.lsn = lsn,
			.keys_max = keys_max,
			.what = what,
		});
}

/* An entry or a header whose error says what is wrong. */
enum hapax_status hx_walk_damage_told(
	struct hx_walk *walk, uint64_t offset, uint64_t lsn, const struct hapax_error *why)
{
	assert(hx_walk_is_damage(why->status));
	return hx_walk_report(
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

bool hx_walk_is_damage(enum hapax_status status)
{
	return status == HAPAX_ERR_CORRUPT || status == HAPAX_ERR_UNSUPPORTED ||
		status == HAPAX_ERR_INVALID;
}

/* Open a segment into walk->reader. CORRUPT or similar: it is not the expected segment. */
enum hapax_status hx_walk_open(
	struct hx_walk *walk, enum hx_log_kind kind, uint64_t id, struct hapax_error *why)
{
	char path[HX_LOG_PATH_SIZE];
	enum hapax_status status;

	hx_log_reader_shut(&walk->reader);
	hx_log_scope_names_clear(&walk->scopes);
	hx_log_name(walk->name, kind, id, "");
	hx_log_path(&walk->directory, walk->name, path);
	status = hx_log_reader_open(&walk->reader, walk->directory.io, path, false, why);
	if (status != HAPAX_OK)
		return status;
	assert(walk->reader.offset == HX_LOG_BLOCK_SIZE);
	if (memcmp(walk->reader.header.uuid, walk->directory.store.uuid, HX_LOG_UUID_SIZE) != 0)
		return hx_error_set(
			why, HAPAX_ERR_CORRUPT, 0, "the segment belongs to another store");
	if (walk->reader.header.id != id || walk->reader.header.kind != kind)
		return hx_error_set(
			why, HAPAX_ERR_CORRUPT, 0, "the segment does not match its name");
	return HAPAX_OK;
}

static void tell_progress(struct hx_walk *walk, uint64_t bytes)
{
	walk->bytes_done += bytes;
	if (walk->bytes_total < walk->bytes_done)
		walk->bytes_total = walk->bytes_done;
	assert(bytes % HX_LOG_BLOCK_SIZE == 0);
	if (walk->visitor->progress != NULL)
		walk->visitor->progress(
			walk->visitor->context, walk->bytes_done, walk->bytes_total);
}

void hx_walk_tell_segment(struct hx_walk *walk)
{
	if (walk->visitor->segment != NULL)
		walk->visitor->segment(walk->visitor->context, walk->name, &walk->reader.header);
}

/* Entries. */

static enum hapax_status keep_manifest(struct hx_walk *walk, const struct hx_log_entry *entry)
{
	struct hx_log_walk_result *result = walk->result;
	uint32_t count = entry->as.manifest.count;
	struct hx_log_manifest_item *items;

	/* It would give up the segment that it is written in. */
	if (entry->as.manifest.log_first_id > walk->reader.header.id)
		return hx_walk_damage(
			walk, walk->reader.offset, entry->lsn, 0,
			"a manifest that begins the log behind itself");
	items = hx_alloc((count != 0 ? count : 1) * sizeof(*items));
	if (items == NULL)
		return hx_error_set(
			walk->err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a manifest");
	for (uint32_t i = 0; i < count; i++)
		items[i] = hx_log_manifest_item(entry, i);
	assert(entry->kind == HX_LOG_MANIFEST);
	assert(walk->reader.header.kind == HX_LOG_KIND_LOG);
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
	assert(entry->kind == HX_LOG_PUT || entry->kind == HX_LOG_REMOVE ||
	       entry->kind == HX_LOG_COUNTS);
	return entry->kind == HX_LOG_COUNTS ? entry->as.counts.scope : entry->as.put.scope;
}

static enum hapax_status visit(struct hx_walk *walk, const struct hx_log_entry *entry)
{
	struct hx_log_walk_scope *scope = hx_log_scope_names_get(&walk->scopes, scope_of(entry));

	if (scope == NULL)
		return hx_walk_damage(
			walk, walk->reader.offset, entry->lsn, 1,
			"an entry has a scope that the segment does not name");
	assert(scope->tenant.size != 0);
	assert(scope->group.size != 0);
	if (walk->visitor->entry == NULL)
		return HAPAX_OK;
	return walk->visitor->entry(
		walk->visitor->context, &walk->reader.header, entry, scope, walk->err);
}

static enum hapax_status take_entry(struct hx_walk *walk, const struct hx_log_entry *entry)
{
	bool is_log = walk->reader.header.kind == HX_LOG_KIND_LOG;

	switch (entry->kind) {
	case HX_LOG_SCOPE:
		if (!hx_log_scope_names_put(
			    &walk->scopes, entry->as.scope.number, entry->as.scope.tenant,
			    entry->as.scope.group))
			return hx_error_set(
				walk->err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for scopes");
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
	default: return HAPAX_OK; /* skipped; the decoder has checked it */
	}
	return hx_walk_damage(
		walk, walk->reader.offset, entry->lsn, 0, "an entry is not allowed here");
}

static bool is_taken(enum hx_walk_taken taken, const struct hx_log_entry *entry)
{
	if (taken == HX_WALK_TAKE_REMOVES)
		return entry->kind != HX_LOG_PUT;
	return taken == HX_WALK_TAKE_ALL || entry->kind != HX_LOG_REMOVE;
}

enum hapax_status hx_walk_take_frame(
	struct hx_walk *walk, const struct hx_log_frame *frame, struct hapax_bytes bytes,
	enum hx_walk_taken taken)
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
		return hx_walk_damage_told(walk, frame->offset, entries.lsn, &why);
	/* Everything in it was handed out. */
	assert(entries.count == 0);
	assert(entries.left.size == 0);
	assert(entries.offset == frame->offset + HX_LOG_FRAME_HEADER_SIZE + frame->payload);
	tell_progress(walk, frame->size);
	return walk->visitor->flush != NULL
		? walk->visitor->flush(walk->visitor->context, walk->err)
		: HAPAX_OK;
}

static enum hapax_status walk_all(struct hx_walk *walk)
{
	struct hx_log_walk_result *result = walk->result;
	bool found;
	enum hapax_status status = hx_log_directory_read(&walk->directory, &found, walk->err);

	if (status == HAPAX_OK && !found)
		status = hx_error_set(
			walk->err, HAPAX_ERR_INVALID, 0, "there is no store in '%.128s'",
			walk->directory.path);
	if (status != HAPAX_OK)
		return status;
	result->store = walk->directory.store;
	result->token = result->store.token_floor;
	status = hx_log_listing_read(&walk->listing, &walk->directory, walk->err);
	if (status == HAPAX_OK && walk->listing.others != 0)
		(void)hx_walk_note(walk, "", "the directory has files that do not belong to hapax");
	if (status == HAPAX_OK)
		status = hx_walk_log(walk);
	if (status == HAPAX_OK)
		status = hx_walk_classes(walk);
	return status;
}

enum hapax_status hx_log_walk(
	const struct hx_io *io, const char *path, const struct hx_log_visitor *visitor,
	struct hx_log_walk_result *ret_result, struct hapax_error *err)
{
	struct hx_walk walk = {.visitor = visitor, .result = ret_result, .err = err};
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
	assert(status == HAPAX_OK || ret_result->classes == NULL);
	assert(ret_result->class_count == 0 || ret_result->classes != NULL);
	return status;
}
