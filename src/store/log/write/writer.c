/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - the end of the log.
 *
 *  (1) One frame is written at a time, and the next only when it is durable.
 *  (2) A frame lies whole in one segment. Entries that do not fit wait for the next.
 *  (3) Room is made before anything is decided: once a change is in the frame, only the write
 *      itself can fail, and that latches.
 */
#include "store/log/write/writer.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "store/log/read/log_walk.h"
#include "store/log/write/reserve.h"

enum {
	/* A frame of this size is written before more is added: this bounds the wait. */
	FRAME_BYTES_SOFT = 1024 * 1024,
	/* The part of a segment kept for changes that end claims, until the next segment exists. */
	RESERVE_DIVISOR = 4,
	/* The largest end while the disk is full: four blocks. */
	END_BYTES_SHORT = 16 * 1024,
	/* In unsafe mode tokens are issued before they are durable. */
	TOKENS_AHEAD = 65536,
};

/* Entries. */

static size_t begin_size(const struct hx_log_writer *writer)
{
	return writer->needs_begin
		? HX_LOG_BEGIN_SIZE + hx_log_manifest_size(writer->manifest.count)
		: 0;
}

/* Make the buffer hold size bytes. */
static enum hapax_status grow_frame(struct hx_log_writer *writer, size_t size)
{
	if (hx_alloc_pages_grow(writer->frame, &writer->frame_committed, size) != 0)
		return HAPAX_ERR_NO_MEMORY;
	assert(writer->frame_committed >= size);
	assert(writer->frame_committed <= HX_LOG_FRAME_SIZE_MAX);
	return HAPAX_OK;
}

/* The bytes that a frame may have in the active segment. */
static uint64_t room_in_active(const struct hx_log_writer *writer, enum hx_log_need need)
{
	const struct hx_log_segment *active = &writer->active;
	uint64_t reserve = active->capacity / RESERVE_DIVISOR;
	uint64_t room;

	/* The last block is reserved for the seal. */
	if (active->file < 0 || active->offset + HX_LOG_BLOCK_SIZE >= active->capacity)
		return 0;
	room = active->capacity - HX_LOG_BLOCK_SIZE - active->offset;
	if (need != HX_LOG_NEED_NEW)
		return room;
	/* A new record is followed by its end, which must find the reserve. */
	if (writer->reserve_part == 0)
		return 0;
	if (hx_log_writer_has_spare(writer))
		reserve = 0;
	return room > reserve ? room - reserve : 0;
}

static enum hapax_status full(struct hx_log_writer *writer, uint32_t wanted, enum hx_log_need need)
{
	/* A frame that holds something is written first: only an empty one wants room. */
	assert(wanted == 0 || writer->payload == 0);
	assert(wanted % HX_LOG_BLOCK_SIZE == 0);
	if (writer->no_room[need].status != HAPAX_OK && wanted >= writer->no_room[need].wanted)
		return writer->no_room[need].status;
	writer->write_ahead.is_full = true;
	writer->wanted = wanted;
	writer->need = need;
	return HAPAX_ERR_LIMIT;
}

/* Promise size more bytes. See write_ahead.h about is_full. */
static enum hapax_status promise(struct hx_log_writer *writer, size_t size, enum hx_log_need need)
{
	uint64_t payload = (uint64_t)writer->payload + writer->reserved + size +
		(writer->payload == 0 ? begin_size(writer) : 0);
	uint32_t frame_size;

	assert(size % HX_LOG_ENTRY_ALIGN == 0);
	if (writer->payload >= FRAME_BYTES_SOFT)
		return full(writer, 0, need);
	if (payload > HX_LOG_FRAME_SIZE_MAX - HX_LOG_BLOCK_SIZE)
		return writer->payload != 0 ? full(writer, 0, need) : HAPAX_ERR_LIMIT;
	frame_size = hx_log_frame_size((uint32_t)payload);
	if (frame_size > room_in_active(writer, need))
		return full(writer, writer->payload != 0 ? 0 : frame_size, need);
	if (frame_size > writer->frame_committed && grow_frame(writer, frame_size) != HAPAX_OK)
		return HAPAX_ERR_NO_MEMORY;
	writer->reserved += (uint32_t)size;
	return HAPAX_OK;
}

/* The address of the next entry. */
static unsigned char *writer_take(struct hx_log_writer *writer, size_t size, uint64_t *ret_lsn)
{
	unsigned char *at = writer->frame + HX_LOG_FRAME_HEADER_SIZE + writer->payload;

	assert(size >= HX_LOG_ENTRY_HEAD_SIZE);
	assert(size <= writer->reserved);
	writer->reserved -= (uint32_t)size;
	writer->payload += (uint32_t)size;
	writer->entries++;
	*ret_lsn = writer->next_lsn++;
	return at;
}

/* The first frame of a segment begins with its position in the log. */
static void write_begin(struct hx_log_writer *writer)
{
	const struct hx_log_manifest *manifest = &writer->manifest;
	size_t manifest_size;
	unsigned char *at;
	uint64_t lsn;

	if (!writer->needs_begin)
		return;
	manifest_size = hx_log_manifest_size(manifest->count);
	assert(writer->payload == 0);
	assert(writer->active.offset == HX_LOG_BLOCK_SIZE);
	/* The segments of the log have consecutive ids. */
	assert(writer->active.header.id == writer->begin_id + 1);
	assert(writer->active.header.id >= manifest->log_first_id);
	writer->reserved += (uint32_t)(HX_LOG_BEGIN_SIZE + manifest_size);
	at = writer_take(writer, HX_LOG_BEGIN_SIZE, &lsn);
	hx_log_begin_encode(at, writer->begin_id, writer->begin_end, lsn);
	at = writer_take(writer, manifest_size, &lsn);
	hx_log_manifest_encode(
		at, manifest->log_first_id, manifest->next_class_id, manifest->items,
		manifest->count, lsn);
	writer->needs_begin = false;
	assert(writer->payload == HX_LOG_BEGIN_SIZE + manifest_size);
}

static bool scope_is_named(const struct hx_log_writer *writer, uint32_t scope_id)
{
	/* Slots that were never set hold 0. */
	assert(writer->segment_count != 0);
	return scope_id < writer->scope_capacity &&
		writer->scope_segments[scope_id] == writer->segment_count;
}

/* Room to remember where a scope was named. */
static enum hapax_status grow_scopes(struct hx_log_writer *writer, uint32_t scope_id)
{
	uint32_t capacity = writer->scope_capacity != 0 ? writer->scope_capacity : 16;
	uint32_t *segments;

	if (scope_id < writer->scope_capacity)
		return HAPAX_OK;
	while (capacity <= scope_id)
		capacity *= 2;
	segments = hx_realloc(writer->scope_segments, capacity * sizeof(*segments));
	if (segments == NULL)
		return HAPAX_ERR_NO_MEMORY;
	memset(segments + writer->scope_capacity, 0,
	       (capacity - writer->scope_capacity) * sizeof(*segments));
	assert(capacity > scope_id);
	assert(capacity <= HX_SCOPES_MAX);
	writer->scope_segments = segments;
	writer->scope_capacity = capacity;
	return HAPAX_OK;
}

/* The bytes that naming a scope will take; 0 if it is named. */
static size_t scope_size(struct hx_log_writer *writer, uint32_t scope_id)
{
	const struct hx_scope *scope;

	if (scope_is_named(writer, scope_id))
		return 0;
	scope = hx_scope_table_get(writer->index->scopes, scope_id);
	return hx_log_scope_size(scope->tenant, scope->group);
}

/* The room was promised. */
static void write_scope(struct hx_log_writer *writer, uint32_t scope_id)
{
	const struct hx_scope *scope = hx_scope_table_get(writer->index->scopes, scope_id);
	unsigned char *at;
	uint64_t lsn;

	if (scope_is_named(writer, scope_id))
		return;
	assert(scope_id < writer->scope_capacity);
	assert(scope->id == scope_id);
	at = writer_take(writer, hx_log_scope_size(scope->tenant, scope->group), &lsn);
	hx_log_scope_encode(at, scope_id, scope->tenant, scope->group, lsn);
	writer->scope_segments[scope_id] = writer->segment_count;
	assert(scope_is_named(writer, scope_id));
}

/* The journal: changes of the index. */

static bool is_at_rest(const struct hapax_record *record)
{
	return record->state == HAPAX_STATE_DONE || record->state == HAPAX_STATE_FAILED;
}

/* Must the new version say that the old one is dead, and can it do so itself? */
static bool needs_removal(const struct hx_write_ahead_change *change, unsigned *ret_flags)
{
	assert(change->mark == NULL);
	*ret_flags = 0;
	if (change->replaced == NULL || change->next == NULL || !is_at_rest(change->replaced))
		return false;
	if (is_at_rest(change->next) && change->next->expires_ms >= change->replaced->expires_ms) {
		*ret_flags = HX_LOG_REPLACES;
		return false;
	}
	return true;
}

static size_t change_size(const struct hx_write_ahead_change *change)
{
	const struct hx_packed_key *key = &change->key->packed;
	unsigned flags;
	size_t size;

	/* A change puts a mark, puts a record, or removes one. */
	assert(change->mark == NULL || change->next == NULL);
	if (change->mark != NULL)
		return hx_log_mark_size(change->mark, key);
	if (change->next == NULL)
		return hx_log_remove_size(key);
	size = hx_log_put_size(change->next, key);
	return needs_removal(change, &flags) ? size + hx_log_remove_size(key) : size;
}

static enum hapax_status journal_reserve(
	struct hx_write_ahead *write_ahead, const struct hx_write_ahead_change *change)
{
	struct hx_log_writer *writer = (struct hx_log_writer *)write_ahead;
	uint32_t scope_id = change->key->packed.scope_id;
	size_t size = change_size(change);

	/* One large result must not take the room of many ends: the caller leaves it out. */
	if (change->ends_claim && size > END_BYTES_SHORT && hx_log_writer_is_short(writer))
		return HAPAX_ERR_LIMIT;
	if (grow_scopes(writer, scope_id) != HAPAX_OK)
		return HAPAX_ERR_NO_MEMORY;
	return promise(
		writer, size + scope_size(writer, scope_id),
		change->ends_claim ? HX_LOG_NEED_END : HX_LOG_NEED_NEW);
}

static void journal_cancel(struct hx_write_ahead *write_ahead)
{
	((struct hx_log_writer *)write_ahead)->reserved = 0;
}

static void write_removal(struct hx_log_writer *writer, const struct hx_write_ahead_change *change)
{
	const struct hx_packed_key *key = &change->key->packed;
	/* A claim removed by force was never copied: its REMOVE need not be kept. */
	int64_t needed_until_ms = change->replaced != NULL && is_at_rest(change->replaced)
		? change->replaced->expires_ms
		: INT64_MIN;
	unsigned char *at;
	uint64_t lsn;

	/* One that lives as long as the old record replaces it by itself. */
	assert(change->next == NULL || !is_at_rest(change->next) ||
	       change->next->expires_ms < change->replaced->expires_ms);
	at = writer_take(writer, hx_log_remove_size(key), &lsn);
	hx_log_remove_encode(at, key, key->scope_id, change->now_ms, needed_until_ms, lsn);
}

static void write_put(
	struct hx_log_writer *writer, const struct hx_write_ahead_change *change, unsigned flags)
{
	const struct hx_packed_key *key = &change->key->packed;
	unsigned char *at;
	uint64_t lsn;

	assert(change->next != NULL);
	/* Only a record at rest can have been copied, and be outlived. */
	assert(flags == 0 || is_at_rest(change->replaced));
	assert(flags == 0 || change->next->expires_ms >= change->replaced->expires_ms);
	at = writer_take(writer, hx_log_put_size(change->next, key), &lsn);
	hx_log_put_encode(at, change->next, key, key->scope_id, flags, lsn);
}

static void write_mark(struct hx_log_writer *writer, const struct hx_write_ahead_change *change)
{
	unsigned char *at;
	uint64_t lsn;

	at = writer_take(writer, hx_log_mark_size(change->mark, &change->key->packed), &lsn);
	hx_log_mark_encode(at, change->mark, &change->key->packed, change->now_ms, lsn);
}

static void journal_write(
	struct hx_write_ahead *write_ahead, const struct hx_write_ahead_change *change)
{
	struct hx_log_writer *writer = (struct hx_log_writer *)write_ahead;
	uint32_t scope_id = change->key->packed.scope_id;
	unsigned flags = 0;

	assert(!writer->write_ahead.is_full);
	hx_log_inflight_mark(&writer->inflight, change->key->hash);
	write_begin(writer);
	write_scope(writer, scope_id);
	if (change->mark != NULL) {
		write_mark(writer, change);
	} else if (change->next == NULL) {
		write_removal(writer, change);
	} else {
		if (needs_removal(change, &flags))
			write_removal(writer, change);
		write_put(writer, change, flags);
	}
	assert(!writer->needs_begin);
}

unsigned char *hx_log_writer_append(
	struct hx_log_writer *writer, size_t size, uint64_t *ret_lsn, enum hapax_status *ret_status)
{
	hx_log_writer_assert(writer);
	assert(size >= HX_LOG_ENTRY_HEAD_SIZE);
	*ret_status = promise(writer, size, HX_LOG_NEED_END);
	if (*ret_status != HAPAX_OK)
		return NULL;
	write_begin(writer);
	return writer_take(writer, size, ret_lsn);
}

enum hapax_status hx_log_writer_force(struct hx_log_writer *writer, uint32_t flags)
{
	enum hapax_status status = promise(writer, 0, HX_LOG_NEED_MARK);

	assert((flags & ~(uint32_t)HX_LOG_FRAME_CLOSE) == 0);
	if (status != HAPAX_OK)
		return status;
	write_begin(writer);
	writer->is_forced = true;
	writer->flags |= flags;
	hx_log_writer_assert(writer);
	return HAPAX_OK;
}

enum hapax_status hx_log_writer_name_scope(struct hx_log_writer *writer, uint32_t scope_id)
{
	enum hapax_status status = grow_scopes(writer, scope_id);

	if (status == HAPAX_OK)
		status = promise(writer, scope_size(writer, scope_id), HX_LOG_NEED_END);
	if (status != HAPAX_OK)
		return status;
	hx_log_writer_assert(writer);
	write_begin(writer);
	write_scope(writer, scope_id);
	assert(scope_is_named(writer, scope_id));
	return HAPAX_OK;
}

void hx_log_writer_begin(struct hx_log_writer *writer)
{
	assert(writer->payload == 0);
	/* Promises end with the operation that got them. */
	assert(writer->reserved == 0);
	writer->entries = 0;
	writer->reserved = 0;
	writer->write_ahead.is_full = false;
	writer->wanted = 0;
	writer->is_forced = false;
	writer->flags = 0;
}

/* Writing the frame. */

void hx_log_writer_latch(struct hx_log_writer *writer, int os_errno, const char *what)
{
	assert(os_errno > 0);
	if (hx_log_writer_is_latched(writer))
		return;
	hx_error_set(
		&writer->fault, HAPAX_ERR_FAILED, os_errno,
		"%s failed in '%.128s'; reopen the store", what, writer->directory->path);
	assert(writer->fault.status == HAPAX_ERR_FAILED);
	atomic_store_explicit(&writer->is_latched, 1, memory_order_release);
}

static void fill_header(struct hx_log_writer *writer)
{
	uint32_t size = hx_log_frame_size(writer->payload);
	uint32_t end = HX_LOG_FRAME_HEADER_SIZE + writer->payload;
	uint64_t token = atomic_load_explicit(&writer->index->token, memory_order_relaxed);
	int64_t before_ms = writer->mark.store_ms;
	struct hx_log_frame frame = {
		.flags = writer->flags,
		.size = size,
		.payload = writer->payload,
		.entries = writer->entries,
		.chain = writer->chain,
		.lsn = writer->next_lsn - writer->entries,
		.durable_lsn = writer->durable_lsn,
		.token = token,
		.offset = writer->active.offset,
	};

	/* Tokens only rise. */
	assert(token >= writer->token_given);
	if (writer->sync == HX_LOG_SYNC_LATER)
		frame.flags |= HX_LOG_FRAME_LOOSE;
	if (writer->sync == HX_LOG_SYNC_LATER && !(writer->flags & HX_LOG_FRAME_CLOSE))
		frame.token =
			token < HX_TOKEN_MAX - TOKENS_AHEAD ? token + TOKENS_AHEAD : HX_TOKEN_MAX;
	writer->token_given = token;
	writer->token_mark = frame.token;
	/* Starts from the last frame's mark: written time never goes back. */
	hx_clock_mark_advance(&writer->mark, writer->clock);
	frame.clock = writer->mark;
	assert(writer->mark.store_ms >= before_ms);
	memset(writer->frame + end, 0, size - end);
	hx_log_frame_encode(&frame, writer->active.seed, writer->frame);
	writer->chain = frame.crc;
}

/*
 * Everything written is durable. STORE vouches for the first segment that an open begins or
 * continues, before any caller is answered from it. Seals vouch for the later ones. If STORE
 * cannot be written, the next frame tries again: it only helps to detect more damage.
 */
static void note_durable(struct hx_log_writer *writer, uint64_t lsn)
{
	assert(lsn >= writer->durable_lsn);
	assert(lsn <= writer->next_lsn);
	/* A segment without frames proves nothing. */
	assert(!writer->must_vouch || writer->last_id != 0);
	writer->durable_lsn = lsn;
	if (writer->must_vouch &&
	    hx_log_directory_vouch(writer->directory, writer->last_id, NULL) == HAPAX_OK)
		writer->must_vouch = false;
}

enum hapax_status hx_log_writer_commit(struct hx_log_writer *writer)
{
	uint32_t size;
	int failed;

	if (writer->payload == 0 && !writer->is_forced)
		return HAPAX_OK;
	hx_log_writer_assert_frame(writer);
	assert(!hx_log_writer_is_latched(writer));
	assert(writer->reserved == 0);
	assert(!writer->needs_begin);
	fill_header(writer);
	size = hx_log_frame_size(writer->payload);
	/* The last block is the seal's. */
	assert(writer->active.offset + size +
		       (writer->flags & HX_LOG_FRAME_SEAL ? 0 : HX_LOG_BLOCK_SIZE) <=
	       writer->active.capacity);
	writer->payload = 0;
	failed = hx_log_segment_write(&writer->active, writer->frame, size);
	if (failed != 0) {
		hx_log_writer_latch(writer, -failed, "a write");
		return HAPAX_ERR_UNCERTAIN;
	}
	writer->last_id = writer->active.header.id;
	writer->witnessed_lsn = writer->durable_lsn;
	writer->frame_count++;
	writer->is_unsynced = writer->sync == HX_LOG_SYNC_LATER;
	if (writer->sync == HX_LOG_SYNC_ALWAYS)
		note_durable(writer, writer->next_lsn);
	/* After a crash, a token beyond the surviving mark would be issued again. */
	else if (
		writer->token_given > writer->token_durable &&
		hx_log_writer_sync(writer) != HAPAX_OK)
		return HAPAX_ERR_UNCERTAIN;
	hx_log_inflight_clear(&writer->inflight);
	/* One large result need not hold its memory forever. */
	if (writer->frame_committed > 2 * FRAME_BYTES_SOFT) {
		hx_alloc_pages_decommit(
			writer->frame + FRAME_BYTES_SOFT,
			writer->frame_committed - FRAME_BYTES_SOFT);
		writer->frame_committed = FRAME_BYTES_SOFT;
	}
	return HAPAX_OK;
}

enum hapax_status hx_log_writer_sync(struct hx_log_writer *writer)
{
	/* The frame under construction is not written yet. */
	uint64_t written_lsn = writer->next_lsn - (writer->payload != 0 ? writer->entries : 0);
	int failed;

	/* By frames, not LSNs: a seal is empty, and the next segment depends on it. */
	if (!writer->is_unsynced)
		return HAPAX_OK;
	assert(writer->sync == HX_LOG_SYNC_LATER);
	assert(written_lsn >= writer->durable_lsn);
	/* What is unsynced lies in the active segment: rolling syncs first. */
	assert(writer->active.file >= 0);
	assert(writer->active.header.id == writer->last_id);
	failed = hx_log_segment_sync(&writer->active);
	if (failed != 0) {
		hx_log_writer_latch(writer, -failed, "a sync");
		return HAPAX_ERR_FAILED;
	}
	writer->is_unsynced = false;
	writer->token_durable = writer->token_mark;
	note_durable(writer, written_lsn);
	return HAPAX_OK;
}

/* Segments. */

/*
 * Write that the log continues in the next segment, which exists: without it the log is
 * incomplete.
 */
static enum hapax_status seal(struct hx_log_writer *writer)
{
	if (writer->active.file < 0 || writer->active.offset >= writer->active.capacity)
		return HAPAX_OK;
	/* A segment is left only with frames in it: the seal needs a BEGIN before it. */
	assert(writer->active.offset > HX_LOG_BLOCK_SIZE);
	assert(hx_log_writer_has_spare(writer));
	hx_log_writer_begin(writer);
	writer->is_forced = true;
	writer->flags = HX_LOG_FRAME_SEAL;
	return hx_log_writer_commit(writer) == HAPAX_OK ? HAPAX_OK : HAPAX_ERR_FAILED;
}

/* The spare becomes the active segment. */
static enum hapax_status roll(struct hx_log_writer *writer)
{
	assert(writer->payload == 0);
	assert(hx_log_writer_has_spare(writer));
	if (seal(writer) != HAPAX_OK)
		return HAPAX_ERR_FAILED;
	if (writer->sync == HX_LOG_SYNC_LATER) {
		enum hapax_status status = hx_log_writer_sync(writer);

		if (status != HAPAX_OK)
			return status;
	}
	if (writer->active.file >= 0) {
		writer->begin_id = writer->active.header.id;
		writer->begin_end = writer->active.offset;
		writer->left_bytes += writer->active.offset;
	}
	/* The next segment depends on the seal. */
	assert(!writer->is_unsynced);
	/* hx_log_writer_give_up() looks at the active segment. */
	hx_mutex_lock(&writer->spare_mutex);
	hx_log_segment_close(&writer->active);
	hx_log_segment_assert(&writer->spare);
	assert(writer->spare.header.id == writer->begin_id + 1);
	writer->active = writer->spare;
	hx_log_segment_init(&writer->spare);
	atomic_store_explicit(&writer->has_spare, 0, memory_order_relaxed);
	hx_mutex_unlock(&writer->spare_mutex);
	writer->needs_begin = true;
	writer->segment_count++;
	/* A larger segment has a larger reserve. */
	if (writer->reserve_part <
	    hx_log_reserve_part(writer->segment_bytes, writer->active.capacity))
		writer->reserve_part = 0;
	hx_log_writer_assert(writer);
	return HAPAX_OK;
}

/* One step towards room for wanted bytes. */
static enum hapax_status step(struct hx_log_writer *writer, uint64_t wanted)
{
	assert(wanted % HX_LOG_BLOCK_SIZE == 0);
	if (writer->need == HX_LOG_NEED_NEW && writer->reserve_part == 0)
		return hx_log_writer_keep_reserve(writer);
	if (!hx_log_writer_has_spare(writer)) {
		enum hapax_status status = hx_log_writer_make_spare(writer, NULL);

		if (status == HAPAX_ERR_LIMIT && writer->need == HX_LOG_NEED_END)
			status = hx_log_writer_take_reserve(writer);
		return status;
	}
	/* In an empty segment, only enlarging it makes more room. */
	if (writer->active.file >= 0 && writer->active.offset == HX_LOG_BLOCK_SIZE) {
		uint64_t end = writer->active.offset + wanted + HX_LOG_BLOCK_SIZE;

		/* The keeper may have made the spare since the caller looked: no reserve is needed. */
		if (end <= writer->active.capacity)
			return HAPAX_OK;
		return hx_log_segment_extend(&writer->active, end, NULL);
	}
	return roll(writer);
}

enum hapax_status hx_log_writer_make_room(struct hx_log_writer *writer)
{
	uint64_t wanted = writer->wanted;

	hx_log_writer_assert(writer);
	assert(writer->payload == 0);
	assert(wanted != 0);
	assert(writer->write_ahead.is_full);
	assert(writer->no_room[writer->need].status == HAPAX_OK ||
	       writer->no_room[writer->need].wanted > writer->wanted);
	/* A new segment also needs BEGIN and its manifest. */
	if (!writer->needs_begin)
		wanted += hx_log_frame_size((
			uint32_t)(HX_LOG_BEGIN_SIZE + hx_log_manifest_size(writer->manifest.count)));
	while (room_in_active(writer, writer->need) < wanted) {
		enum hapax_status status = step(writer, wanted);

		if (status == HAPAX_OK)
			continue;
		if (status == HAPAX_ERR_FAILED)
			return status;
		/* Whatever the reason, nothing was done; live claims may still end. */
		if (status != HAPAX_ERR_NO_MEMORY)
			status = HAPAX_ERR_LIMIT;
		writer->no_room[writer->need].status = status;
		writer->no_room[writer->need].wanted = writer->wanted;
		return status;
	}
	return HAPAX_OK;
}

/* Life. */

enum hapax_status hx_log_writer_init(
	struct hx_log_writer *writer, const struct hx_log_writer_setup *setup,
	struct hapax_error *err)
{
	assert(setup->segment_bytes >= 2 * HX_LOG_BLOCK_SIZE);
	assert(setup->segment_bytes % HX_LOG_BLOCK_SIZE == 0);
	memset(writer, 0, sizeof(*writer));
	hx_mutex_init(&writer->spare_mutex);
	hx_cond_init(&writer->spare_ready);
	hx_log_segment_init(&writer->active);
	hx_log_segment_init(&writer->spare);
	writer->write_ahead.reserve = journal_reserve;
	writer->write_ahead.cancel = journal_cancel;
	writer->write_ahead.write = journal_write;
	writer->directory = setup->directory;
	writer->index = setup->index;
	writer->clock = setup->clock;
	writer->sync = setup->sync;
	writer->segment_bytes = setup->segment_bytes;
	writer->spare_bytes = hx_log_writer_next_size(writer, 0);
	writer->next_lsn = 1;
	writer->durable_lsn = 1;
	writer->manifest.log_first_id = 1;
	writer->manifest.next_class_id = 1;
	writer->frame = hx_alloc_pages_reserve(HX_LOG_FRAME_SIZE_MAX);
	if (writer->frame == NULL || grow_frame(writer, HX_LOG_BLOCK_SIZE) != HAPAX_OK)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	return HAPAX_OK;
}

void hx_log_writer_done(struct hx_log_writer *writer)
{
	if (writer->directory == NULL)
		return;
	/* No thread makes a segment that would stay open. */
	assert(!writer->spare_is_made);
	assert(hx_log_writer_has_spare(writer) == (writer->spare.file >= 0));
	hx_log_segment_close(&writer->active);
	hx_log_segment_close(&writer->spare);
	if (writer->frame != NULL)
		hx_alloc_pages_release(writer->frame, HX_LOG_FRAME_SIZE_MAX);
	hx_free(writer->scope_segments);
	hx_free(writer->manifest.items);
	hx_cond_done(&writer->spare_ready);
	hx_mutex_done(&writer->spare_mutex);
	memset(writer, 0, sizeof(*writer));
}

enum hapax_status hx_log_writer_resume(
	struct hx_log_writer *writer, const struct hx_log_walk_result *walk,
	const struct hx_clock_mark *mark, struct hapax_error *err)
{
	assert(writer->frame_count == 0);
	assert(writer->active.file < 0);
	assert(walk->damages == 0);
	assert((walk->log_last_id == 0) == (walk->log_end == 0));
	/* A cut tail would follow what is written before it. */
	assert(walk->cut_bytes == 0 || !walk->is_closed || walk->cut_id != walk->log_last_id);
	writer->mark = *mark;
	writer->next_lsn = walk->next_lsn;
	writer->durable_lsn = walk->next_lsn;
	writer->witnessed_lsn = walk->is_closed ? walk->next_lsn : 0;
	writer->token_durable = walk->token; /* recovery has synced it */
	writer->chain = walk->chain;
	writer->last_id = walk->log_last_id;
	writer->begin_id = walk->log_last_id;
	writer->begin_end = walk->log_end;
	writer->left_bytes = walk->log_bytes;
	writer->manifest.log_first_id = walk->log_first_id;
	writer->manifest.next_class_id = walk->next_class_id;
	writer->segment_count = 1;
	writer->must_vouch = true;
	for (uint32_t i = 0; i < walk->class_count; i++) {
		enum hapax_status status =
			hx_log_manifest_add(&writer->manifest, &walk->classes[i]);

		if (status != HAPAX_OK)
			return hx_error_set(err, status, 0, "not enough memory to open a store");
	}
	/* After a seal, the log continues where the seal says. */
	if (walk->is_sealed && !walk->next_is_used) {
		writer->needs_begin = true;
		return hx_log_segment_open(
			&writer->active, writer->directory, walk->log_last_id + 1, writer->sync,
			HX_LOG_BLOCK_SIZE, err);
	}
	/* After a clean end also; after any other end a new segment begins. */
	if (walk->log_last_id == 0 || !walk->is_closed || walk->is_sealed)
		return HAPAX_OK;
	return hx_log_segment_open(
		&writer->active, writer->directory, walk->log_last_id, writer->sync, walk->log_end,
		err);
}
