/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass.c - one step of tidying the files: the oldest log segment is copied out, small class
 * segments are merged, expired ones are removed.
 *
 *  (1) A copy is synced, and its name durable, before the manifest names it.
 *  (2) Live claims go back to the head of the log before the manifest that gives up their
 *      segment.
 *  (3) A segment is removed only after a manifest without it is durable.
 *  (4) Only then do records in memory leave their large results in the new segments. This
 *      happens before their previous files are given up (evict_results.c).
 *  (5) A REMOVE is dropped only when no class segment stays that was made before it: no record
 *      is copied that was dead when the copying began.
 *
 * Nothing here delays the leader for longer than it takes to append some entries.
 */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"
#include "store/core.h"
#include "store/log/tidy/log_copy.h"
#include "store/log/format/endian.h"
#include "store/log/read/reader.h"

enum {
	/* This many small segments of a kind become one. */
	MERGE_COUNT = 8,
	/* Small: below this part of a full one. */
	SMALL_DIVISOR = 2,
	/* Bytes that a pass rewrites to save space, in segments: more than a pass can add. */
	REWRITE_SEGMENTS = 4,
	/* A PUT takes at least this much more on disk than its record in memory. */
	PUT_BYTES_MORE = 24,
	/*
	 * Class segments take at most twice the live bytes, plus this or a segment. The other
	 * three segments that DESIGN allows are the log's: the active one, the next, and one to
	 * reuse.
	 */
	SLACK_BYTES_MIN = (HX_LOG_KIND_COUNT - 1) * 3 * HX_LOG_BLOCK_SIZE,
};

struct pass {
	struct hx_log *log;
	struct hx_log_copy copy;
	/* The next manifest, without the sources. */
	struct hx_log_manifest next;
	struct hx_log_manifest_item gone[HX_LOG_CLASS_SEGMENTS_MAX];
	uint32_t gone_count;
	uint64_t log_id; /* the log segment to remove; 0: none */
	uint64_t log_end;
	uint64_t made_lsn;   /* where the log was when this pass began */
	uint32_t made_count; /* the last ones in next */
	struct hx_log_manifest_item
		result_file[HX_LOG_KIND_COUNT]; /* of these: with large results */
	uint32_t evicted_count;
	bool rewrites;  /* some go because many of their records are dead */
	size_t held_at; /* the commit's position in copy.held */
	bool has_manifest;
};

/* Facts that only the leader knows. */
struct look_task {
	struct hx_log *log;
	uint64_t until_id; /* in: not beyond this one; out: the last without a writer, if 0 */
	uint64_t log_id;   /* out: the oldest segment, if it has no writer; else 0 */
	uint64_t log_end;  /* out: where it ends; 0: ask the next one */
	uint64_t next_lsn; /* out: the index has everything below */
};

/* Before the manifest is written: every segment of the old one stays or goes. */
static void pass_assert(const struct pass *pass)
{
	const struct hx_log_manifest *manifest = &pass->log->writer.manifest;

	assert(!pass->has_manifest);
	assert(pass->next.count + pass->gone_count == manifest->count + pass->made_count);
	assert(pass->next.count <= pass->next.capacity);
	assert(pass->made_count < HX_LOG_KIND_COUNT);
	assert(pass->evicted_count <= pass->made_count);
	assert(pass->copy.useless_lsn <= pass->made_lsn);
	assert(pass->log_id != 0 || pass->log_end == 0);
}

static enum hapax_status run_look(void *context)
{
	struct look_task *look = context;
	struct hx_log_writer *writer = &look->log->writer;
	uint64_t first_id = writer->manifest.log_first_id;
	uint64_t last_id =
		writer->active.file >= 0 ? writer->active.header.id - 1 : writer->last_id;

	look->next_lsn = writer->next_lsn;
	if (look->until_id == 0)
		look->until_id = last_id;
	if (first_id > last_id || first_id > look->until_id || last_id == 0)
		return HAPAX_OK;
	/* A small amount is not worth the syncs: it only has to be read at the next open. */
	if (writer->left_bytes < writer->segment_bytes / 2)
		return HAPAX_OK;
	/* Long-lived claims would only be moved in a circle. */
	if (last_id - first_id < 2 * look->log->held_bytes / writer->segment_bytes)
		return HAPAX_OK;
	/* It has no writer. */
	assert(first_id <= look->until_id);
	assert(writer->active.file < 0 || first_id < writer->active.header.id);
	look->log_id = first_id;
	look->log_end = writer->begin_id == first_id ? writer->begin_end : 0;
	return HAPAX_OK;
}

/* The end of a log segment, from the next one's BEGIN. */
static enum hapax_status read_end(
	struct hx_log *log, uint64_t id, uint64_t *ret_end, struct hapax_error *err)
{
	struct hx_log_reader reader = {0};
	char path[HX_LOG_PATH_SIZE];
	struct hx_log_entries entries;
	struct hx_log_entry begin;
	struct hx_log_frame frame;
	struct hapax_bytes bytes;
	enum hx_log_found found = HX_LOG_FOUND_END;
	enum hapax_status status, decoded;

	*ret_end = 0;
	hx_log_segment_path(&log->directory, HX_LOG_KIND_LOG, id + 1, "", path);
	status = hx_log_reader_open(&reader, log->directory.io, path, false, err);
	if (status == HAPAX_OK)
		status = hx_log_reader_next(&reader, &found, &frame, &bytes, err);
	if (found == HX_LOG_FOUND_FRAME) {
		hx_log_entries_begin(&entries, &frame, HX_LOG_KIND_LOG, bytes);
		if (hx_log_entries_next(&entries, &begin, &decoded, NULL) &&
		    begin.kind == HX_LOG_BEGIN && begin.as.begin.previous_id == id)
			*ret_end = begin.as.begin.previous_end;
	}
	hx_log_reader_close(&reader);
	if (status == HAPAX_OK && *ret_end == 0)
		status = hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0, "'%s' has no valid first entry", path);
	return status;
}

static enum hapax_status find_log_segment(
	struct pass *pass, struct hx_log_round *round, struct hapax_error *err)
{
	struct look_task look = {.log = pass->log, .until_id = round->until_id};
	enum hapax_status status = hx_log_queue_task(&pass->log->queue, run_look, &look);

	if (status != HAPAX_OK)
		return status;
	round->until_id = look.until_id;
	if (round->until_lsn == 0)
		round->until_lsn = look.next_lsn;
	pass->made_lsn = look.next_lsn;
	pass->log_id = look.log_id;
	pass->log_end = look.log_end;
	assert(pass->log_id <= round->until_id);
	/* The log grows during a round. */
	assert(pass->made_lsn >= round->until_lsn);
	if (pass->log_id != 0 && pass->log_end == 0)
		status = read_end(pass->log, pass->log_id, &pass->log_end, err);
	return status;
}

/* Class segments to remove: expired, or to be merged. */

static bool is_expired(const struct pass *pass, const struct hx_log_manifest_item *item)
{
	return item->seal.expires_ms_max <= pass->copy.now_ms;
}

static bool is_small(const struct pass *pass, const struct hx_log_manifest_item *item)
{
	return item->bytes < pass->log->writer.segment_bytes / SMALL_DIVISOR;
}

static unsigned count_small(const struct pass *pass, enum hx_log_kind kind)
{
	const struct hx_log_manifest *manifest = &pass->log->writer.manifest;
	unsigned count = 0;

	assert(kind != HX_LOG_KIND_LOG);
	for (uint32_t i = 0; i < manifest->count; i++)
		count += manifest->items[i].kind == kind && is_small(pass, &manifest->items[i]) &&
			!is_expired(pass, &manifest->items[i]);
	return count;
}

/* Excess bytes of class segments, compared with the live bytes. */
static uint64_t count_waste(const struct pass *pass)
{
	const struct hx_log_manifest *manifest = &pass->log->writer.manifest;
	struct hx_index *index = pass->log->index;
	uint64_t live = hx_index_live_bytes(index) + hx_index_count(index) * PUT_BYTES_MORE;
	uint64_t slack = pass->log->writer.segment_bytes;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < manifest->count; i++)
		bytes += manifest->items[i].bytes;
	slack = slack < SLACK_BYTES_MIN ? SLACK_BYTES_MIN : slack;
	return bytes > 2 * live + slack ? bytes - 2 * live - slack : 0;
}

/*
 * Oldest first, if they were made before this round: they have lost the most. Only after that
 * are the REMOVEs behind them useless.
 */
static void choose_rewrites(struct pass *pass, const struct hx_log_round *round, bool goes[])
{
	const struct hx_log_manifest *manifest = &pass->log->writer.manifest;
	uint64_t allowed = REWRITE_SEGMENTS * pass->log->writer.segment_bytes;
	uint64_t chosen = 0;

	if (count_waste(pass) == 0)
		return;
	for (uint32_t i = 0; i < manifest->count && chosen < allowed; i++) {
		if (goes[i] || manifest->items[i].seal.made_lsn >= round->until_lsn)
			continue;
		assert(manifest->items[i].seal.made_lsn < pass->made_lsn);
		goes[i] = true;
		pass->rewrites = true;
		chosen += manifest->items[i].bytes;
	}
}

/*
 * Split the manifest into segments that stay and segments that go. only_expired: no space is left
 * for copies.
 */
static enum hapax_status choose(
	struct pass *pass, const struct hx_log_round *round, bool only_expired)
{
	const struct hx_log_manifest *manifest = &pass->log->writer.manifest;
	bool goes[HX_LOG_CLASS_SEGMENTS_MAX] = {false};
	bool merges[HX_LOG_KIND_COUNT] = {false};
	enum hapax_status status = HAPAX_OK;

	for (unsigned kind = HX_LOG_KIND_HOUR; kind < HX_LOG_KIND_COUNT; kind++)
		merges[kind] =
			!only_expired && count_small(pass, (enum hx_log_kind)kind) >= MERGE_COUNT;
	for (uint32_t i = 0; i < manifest->count; i++) {
		const struct hx_log_manifest_item *item = &manifest->items[i];

		goes[i] = is_expired(pass, item) || (merges[item->kind] && is_small(pass, item));
	}
	assert(pass->next.count == 0);
	assert(pass->gone_count == 0);
	if (!only_expired)
		choose_rewrites(pass, round, goes);
	pass->copy.useless_lsn = pass->made_lsn;
	for (uint32_t i = 0; i < manifest->count && status == HAPAX_OK; i++) {
		const struct hx_log_manifest_item *item = &manifest->items[i];

		if (goes[i]) {
			pass->gone[pass->gone_count++] = *item;
			continue;
		}
		if (item->seal.made_lsn < pass->copy.useless_lsn)
			pass->copy.useless_lsn = item->seal.made_lsn;
		status = hx_log_manifest_add(&pass->next, item);
	}
	for (unsigned kind = HX_LOG_KIND_HOUR; kind < HX_LOG_KIND_COUNT; kind++)
		hx_log_class_writer_set_made(&pass->copy.writers[kind], pass->made_lsn);
	assert(pass->copy.useless_lsn <= pass->made_lsn);
	assert(status != HAPAX_OK || pass->next.count + pass->gone_count == manifest->count);
	return status;
}

static enum hapax_status copy_all(struct pass *pass, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	pass_assert(pass);
	assert(pass->made_count == 0);
	for (uint32_t i = 0; i < pass->gone_count && status == HAPAX_OK; i++) {
		if (!is_expired(pass, &pass->gone[i]))
			status = hx_log_copy_segment(
				&pass->copy, pass->gone[i].kind, pass->gone[i].id, 0, err);
	}
	if (status == HAPAX_OK && pass->log_id != 0)
		status = hx_log_copy_segment(
			&pass->copy, HX_LOG_KIND_LOG, pass->log_id, pass->log_end, err);
	return status;
}

static enum hapax_status finish_all(struct pass *pass, struct hapax_error *err)
{
	for (unsigned kind = HX_LOG_KIND_HOUR; kind < HX_LOG_KIND_COUNT; kind++) {
		struct hx_log_class_writer *writer = &pass->copy.writers[kind];
		struct hx_log_manifest_item item;
		enum hapax_status status;

		if (hx_log_class_writer_is_empty(writer))
			continue;
		status = hx_log_class_writer_finish(writer, &item, err);
		if (status == HAPAX_OK)
			status = hx_log_manifest_add(&pass->next, &item);
		if (status != HAPAX_OK)
			return status;
		pass->made_count++;
		assert(item.seal.made_lsn == pass->made_lsn);
		assert(item.kind == (enum hx_log_kind)kind);
		if (writer->large_results != 0)
			pass->result_file[pass->evicted_count++] = item;
	}
	pass_assert(pass);
	return pass->made_count != 0 ? hx_log_directory_sync(&pass->log->directory, err) : HAPAX_OK;
}

/* The commit, run by the leader. */

/* Put a live claim at the head of the log. False: the frame is full, or there is no room. */
static enum hapax_status write_held(struct pass *pass)
{
	struct hx_log *log = pass->log;
	const unsigned char *entry = pass->copy.held.data + pass->held_at;
	size_t size = hx_get32(entry + HX_LOG_ENTRY_SIZE);
	struct hx_log_entry decoded;
	struct hx_index_key key;
	enum hapax_status status =
		hx_log_entry_decode((struct hapax_bytes){entry, size}, &decoded, NULL);
	unsigned char *at;
	uint64_t lsn;

	/* log_copy.c has encoded it. */
	assert(status == HAPAX_OK);
	assert(decoded.kind == HX_LOG_PUT);
	assert(decoded.size == size);
	hx_log_entry_key(&decoded, decoded.as.put.scope, log->index, &key);
	/* Superseded meanwhile: the log has the newer version. */
	if (!hx_log_copy_is_live(log, &key, &decoded.as.put.record))
		return HAPAX_OK;
	status = hx_log_writer_name_scope(&log->writer, key.packed.scope_id);
	if (status != HAPAX_OK)
		return status;
	at = hx_log_writer_append(&log->writer, size, &lsn, &status);
	if (at == NULL)
		return status;
	memcpy(at, entry, size);
	/* A copy at the head of the log replaces nothing: it is the same version. */
	assert(at[HX_LOG_ENTRY_FLAGS] == 0);
	hx_put64(at + HX_LOG_ENTRY_LSN, lsn);
	return HAPAX_OK;
}

static enum hapax_status write_manifest(struct pass *pass)
{
	struct hx_log_writer *writer = &pass->log->writer;
	struct hx_log_manifest before = writer->manifest;
	enum hapax_status status;
	unsigned char *at;
	uint64_t lsn;

	/* The log only gives up its oldest segments, and ids are never used again. */
	assert(pass->next.log_first_id >= before.log_first_id);
	assert(pass->next.next_class_id >= before.next_class_id);
	/* The log must begin at an existing segment: append starts one if necessary. */
	at = hx_log_writer_append(writer, hx_log_manifest_size(pass->next.count), &lsn, &status);
	if (at == NULL)
		return status;
	assert(writer->active.header.id >= pass->next.log_first_id);
	hx_log_manifest_encode(
		at, pass->next.log_first_id, pass->next.next_class_id, pass->next.items,
		pass->next.count, lsn);
	writer->manifest = pass->next;
	pass->next = before;
	writer->left_bytes -=
		writer->left_bytes < pass->log_end ? writer->left_bytes : pass->log_end;
	return HAPAX_OK;
}

static enum hapax_status run_commit(void *context)
{
	struct pass *pass = context;
	enum hapax_status status = HAPAX_OK;

	while (pass->held_at < pass->copy.held.size && status == HAPAX_OK) {
		size_t size = hx_get32(pass->copy.held.data + pass->held_at + HX_LOG_ENTRY_SIZE);

		assert(size <= pass->copy.held.size - pass->held_at);
		status = write_held(pass);
		if (status == HAPAX_OK)
			pass->held_at += size;
	}
	if (status == HAPAX_OK && !pass->has_manifest) {
		/* (2): it gives up the segment of all of them. */
		assert(pass->held_at == pass->copy.held.size);
		status = write_manifest(pass);
		pass->has_manifest = status == HAPAX_OK;
	}
	return status;
}

/* After the manifest: results that are in two places leave memory, or the older files. */
static enum hapax_status evict_results(struct pass *pass, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	/* (4): records point only at segments that a durable manifest names. */
	assert(pass->has_manifest);
	assert(pass->evicted_count <= pass->made_count);
	for (uint32_t i = 0; i < pass->evicted_count; i++) {
		struct hapax_error why = {0};
		enum hapax_status result_file =
			hx_log_evict_results(pass->log, &pass->result_file[i], &why);

		/* The next pass may well succeed; the damage must still be remembered. */
		if (result_file == HAPAX_ERR_CORRUPT)
			hx_log_note_damage(pass->log, &why);
		if (status != HAPAX_OK || result_file == HAPAX_OK)
			continue;
		status = result_file;
		*err = why;
	}
	return status;
}

/* Files that are not in the manifest can go; a file with a reader goes later. */
static void remove_gone(struct pass *pass)
{
	struct hx_log *log = pass->log;

	/* (3) */
	assert(pass->has_manifest);
	assert(pass->log_id < log->writer.manifest.log_first_id);
	for (uint32_t i = 0; i < pass->gone_count; i++)
		hx_log_result_files_leave(&log->result_files, pass->gone[i].kind, pass->gone[i].id);
	if (pass->log_id != 0)
		hx_log_writer_give_up(&log->writer, pass->log_id);
}

/* The pass did not reach a manifest: its new files are unused. */
static void remove_made(struct pass *pass)
{
	const struct hx_log_manifest *next = &pass->next;

	assert(!pass->has_manifest);
	assert(pass->made_count <= next->count);
	for (uint32_t i = 0; i < pass->made_count; i++) {
		const struct hx_log_manifest_item *item = &next->items[next->count - 1 - i];

		(void)hx_log_segment_remove(&pass->log->directory, item->kind, item->id, "");
	}
}

static enum hapax_status pass_run(struct pass *pass, struct hapax_error *err)
{
	enum hapax_status status = copy_all(pass, err);

	if (status == HAPAX_OK)
		status = finish_all(pass, err);
	if (status != HAPAX_OK) {
		remove_made(pass);
		return status;
	}
	pass->next.next_class_id = pass->copy.next_class_id;
	pass->next.log_first_id =
		pass->log_id != 0 ? pass->log_id + 1 : pass->log->writer.manifest.log_first_id;
	if (pass->log_id != 0)
		hx_log_counts_renew(&pass->log->counts, pass->log_id);
	pass_assert(pass);
	status = hx_log_queue_task(&pass->log->queue, run_commit, pass);
	if (status == HAPAX_OK)
		status = hx_log_sync(pass->log);
	/* Latched, its fate is open: the next recovery finds out. */
	if (status == HAPAX_OK) {
		status = evict_results(pass, err);
		remove_gone(pass);
	} else if (!pass->has_manifest) {
		remove_made(pass);
	}
	return status;
}

static enum hapax_status run_once(
	struct hx_log *log, struct hx_log_round *round, bool only_expired, bool *ret_more,
	struct hapax_error *err)
{
	struct pass *pass = hx_alloc_zero(1, sizeof(*pass));
	struct hapax_error why = {0};
	enum hapax_status status;

	*ret_more = false;
	if (pass == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a pass");
	pass->log = log;
	hx_log_copy_init(&pass->copy, log, log->writer.manifest.next_class_id);
	status = find_log_segment(pass, round, &why);
	if (only_expired)
		pass->log_id = pass->log_end = 0;
	if (status == HAPAX_OK)
		status = choose(pass, round, only_expired);
	if (status == HAPAX_OK && (pass->log_id != 0 || pass->gone_count != 0)) {
		status = pass_run(pass, &why);
		*ret_more =
			status == HAPAX_OK && (pass->log_id != 0 || pass->rewrites || only_expired);
	}
	if (pass->log_id != 0)
		log->held_bytes = pass->copy.held.size;
	hx_log_result_files_tidy(&log->result_files, &log->index->epoch);
	hx_log_copy_done(&pass->copy);
	hx_free(pass->next.items);
	hx_free(pass);
	/* The leader refuses a task without an error. */
	if (status != HAPAX_OK && why.status == HAPAX_OK)
		hx_error_set(&why, status, 0, "could not write the result of a pass to the log");
	if (status != HAPAX_OK && err != NULL)
		*err = why;
	return status;
}

enum hapax_status hx_log_pass(
	struct hx_log *log, struct hx_log_round *round, bool *ret_more, struct hapax_error *err)
{
	struct hapax_error why = {0};
	enum hapax_status status = run_once(log, round, false, ret_more, &why);

	/* On a full disk, segments that need no copy make room for the copies of others. */
	if (status == HAPAX_ERR_LIMIT && run_once(log, round, true, ret_more, NULL) == HAPAX_OK &&
	    *ret_more)
		return HAPAX_OK;
	*ret_more = *ret_more && status == HAPAX_OK;
	if (status != HAPAX_OK && err != NULL)
		*err = why;
	return status;
}
