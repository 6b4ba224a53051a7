/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage.c - copy the readable part of a damaged store into a new one.
 *
 * Segments are read in any order, so each key's highest LSN is remembered, under 128 bits of a
 * keyed hash of its name.
 *
 * Files that the latest readable manifest has given up are not read. Such a file may stay for
 * long, to be reused, while the REMOVEs for its records are dropped.
 */
#include "store/log/read/salvage.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/uuid7.h"
#include "store/store_copy.h"
#include "store/index/packed_key.h"
#include "store/load_batch.h"
#include "store/log/format/listing.h"
#include "store/log/read/reader.h"
#include "store/log/format/scope_names.h"
#include "store/log/write/writer.h"

/* The latest version of a key. */
struct version {
	uint64_t name[2]; /* both 0: free */
	uint64_t lsn;
	bool is_record; /* not a removal */
	bool is_loaded;
};

enum { VERSIONS_MIN = 1024 };

/* The aim of reading the segments, one after the other. */
enum aim {
	AIM_MANIFEST, /* find the segments that count */
	AIM_VERSIONS, /* find the last version of each key */
	AIM_RECORDS,  /* load those into the target */
};

struct hx_log_salvage {
	enum aim aim;
	const struct hx_log_directory *directory;
	struct hapax_fsck *fsck;
	struct hapax_error *err;
	struct hx_log_listing listing;
	unsigned char uuid[HX_LOG_UUID_SIZE]; /* segments with this uuid count */
	struct hx_log_manifest manifest;      /* the latest readable one */
	uint64_t manifest_in;                 /* in this log segment; 0: there is none */
	uint64_t manifest_lsn;
	struct hx_log_reader reader;
	struct hx_log_scope_names scopes;
	uint64_t hash_keys[2][2];
	struct version *versions;
	size_t version_count;
	size_t version_room; /* a power of two */
	struct hx_clock_mark clock;
	uint64_t token;
	/* AIM_RECORDS: the destination. */
	struct hapax_store *target;
	struct hx_load_batch *batch;
	int64_t now_ms;
};

/* ------------------------------------------------------------------ versions */

static struct version *find_version(struct version *versions, size_t room, const uint64_t name[2])
{
	size_t at = name[0] & (room - 1);

	assert((room & (room - 1)) == 0);
	/* Both zero mark a free slot. */
	assert((name[0] | name[1]) != 0);
	while ((versions[at].name[0] != 0 || versions[at].name[1] != 0) &&
	       (versions[at].name[0] != name[0] || versions[at].name[1] != name[1]))
		at = (at + 1) & (room - 1);
	return &versions[at];
}

static bool grow_versions(struct hx_log_salvage *salvage)
{
	size_t room = salvage->version_room == 0 ? VERSIONS_MIN : salvage->version_room * 2;
	struct version *versions = hx_alloc_zero(room, sizeof(*versions));

	if (versions == NULL)
		return false;
	for (size_t i = 0; i < salvage->version_room; i++) {
		const struct version *old = &salvage->versions[i];

		if (old->name[0] != 0 || old->name[1] != 0)
			*find_version(versions, room, old->name) = *old;
	}
	assert(room > salvage->version_count);
	hx_free(salvage->versions);
	salvage->versions = versions;
	salvage->version_room = room;
	return true;
}

/* Each part with its size: no two names give the same bytes. */
static uint64_t hash_name(
	const uint64_t key[2], const struct hx_log_walk_scope *scope, struct hapax_bytes text)
{
	unsigned char bytes[2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + 8];
	size_t size = 0;

	assert(scope->tenant.size <= HX_SCOPE_PART_SIZE_MAX);
	assert(scope->group.size <= HX_SCOPE_PART_SIZE_MAX);
	assert(text.size <= HX_KEY_SIZE_MAX);
	bytes[size++] = (unsigned char)scope->tenant.size;
	memcpy(bytes + size, scope->tenant.data, scope->tenant.size);
	size += scope->tenant.size;
	bytes[size++] = (unsigned char)scope->group.size;
	memcpy(bytes + size, scope->group.data, scope->group.size);
	size += scope->group.size;
	memcpy(bytes + size, text.data, text.size);
	size += text.size;
	return hx_siphash13(key, bytes, size);
}

/* The slot of a key; NULL: no memory. */
static struct version *version_of(
	struct hx_log_salvage *salvage, const struct hx_log_walk_scope *scope,
	struct hapax_bytes text)
{
	uint64_t name[2];
	struct version *version;

	if (salvage->version_count * 4 >= salvage->version_room * 3 && !grow_versions(salvage))
		return NULL;
	assert(salvage->version_count < salvage->version_room);
	name[0] = hash_name(salvage->hash_keys[0], scope, text);
	name[1] = hash_name(salvage->hash_keys[1], scope, text) | 1;
	version = find_version(salvage->versions, salvage->version_room, name);
	if (version->name[0] == 0 && version->name[1] == 0) {
		memcpy(version->name, name, sizeof(name));
		salvage->version_count++;
	}
	return version;
}

/* ------------------------------------------------------------------ entries */

/* The key as the caller gave it. text holds HX_KEY_TEXT_SIZE bytes and a NUL. */
static struct hapax_bytes key_text(const struct hx_log_entry *entry, char *text)
{
	struct hapax_bytes stored = entry->as.put.record.key;

	assert(entry->kind == HX_LOG_PUT || entry->kind == HX_LOG_REMOVE);
	/* decode_keyed() has checked it. */
	assert(entry->as.put.encoding != HX_KEY_UUID || stored.size == HX_UUID_SIZE);
	assert(entry->as.put.encoding != HX_KEY_HEX || stored.size * 2 <= HX_KEY_TEXT_SIZE);
	if (entry->as.put.encoding == HX_KEY_UUID) {
		hx_uuid7_format(stored.data, text);
		return hx_bytes(text, HX_UUID_TEXT_SIZE);
	}
	if (entry->as.put.encoding == HX_KEY_HEX) {
		hx_hex_encode(stored.data, stored.size, text);
		return hx_bytes(text, stored.size * 2);
	}
	return stored;
}

static enum hapax_status no_memory(struct hapax_error *err)
{
	return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to repair the store");
}

/* Is this the last version? */
static void judge_version(struct version *version, const struct hx_log_entry *entry)
{
	/*
	 * A record that replaces another one is copied as a PUT and a REMOVE with the same LSN.
	 * The REMOVE is for the versions below it.
	 */
	if (entry->kind == HX_LOG_PUT ? entry->lsn < version->lsn : entry->lsn <= version->lsn)
		return;
	/* Versions are judged before any is loaded. */
	assert(!version->is_loaded);
	assert(entry->lsn >= version->lsn);
	version->lsn = entry->lsn;
	version->is_record = entry->kind == HX_LOG_PUT;
}

/*
 * The clock had reached this time when the entry was written. A record that was loaded has the
 * time of another store, which may be one that no clock shows.
 */
static void note_entry(struct hx_log_salvage *salvage, const struct hx_log_entry *entry)
{
	const struct hapax_record *record = &entry->as.put.record;

	if (entry->kind == HX_LOG_PUT && record->token > salvage->token)
		salvage->token = record->token;
	if (record->changed_ms > salvage->clock.store_ms && record->changed_ms <= HX_UTC_MS_MAX)
		salvage->clock = (struct hx_clock_mark){.store_ms = record->changed_ms};
}

static enum hapax_status run_batch(struct hx_log_salvage *salvage)
{
	uint64_t count = hx_load_batch_count(salvage->batch);
	/* A record with a valid frame that no store would write. */
	uint64_t invalid = 0;
	enum hapax_status status =
		hx_load_batch_run(salvage->batch, salvage->target, &invalid, salvage->err);

	assert(salvage->aim == AIM_RECORDS);
	assert(invalid <= count);
	if (status == HAPAX_OK)
		salvage->fsck->salvaged += count - invalid;
	return status;
}

/* Load it if it is the last version, and alive. */
static enum hapax_status load_version(
	struct hx_log_salvage *salvage, struct version *version, const struct hx_log_entry *entry,
	const struct hx_log_walk_scope *scope, struct hapax_bytes key)
{
	struct hapax_record record = entry->as.put.record;

	assert(salvage->target != NULL);
	if (entry->kind != HX_LOG_PUT || !version->is_record || version->is_loaded ||
	    entry->lsn != version->lsn || record.expires_ms <= salvage->now_ms)
		return HAPAX_OK;
	version->is_loaded = true;
	record.tenant = scope->tenant;
	record.group = scope->group;
	record.key = key;
	if (hx_load_batch_add(salvage->batch, &record, 0) != HAPAX_OK)
		return no_memory(salvage->err);
	return hx_load_batch_is_full(salvage->batch) ? run_batch(salvage) : HAPAX_OK;
}

static enum hapax_status take_keyed(
	struct hx_log_salvage *salvage, const struct hx_log_entry *entry)
{
	const struct hx_log_walk_scope *scope =
		hx_log_scope_names_get(&salvage->scopes, entry->as.put.scope);
	char text[HX_KEY_TEXT_SIZE + 1];
	struct hapax_bytes key = key_text(entry, text);
	struct version *version;

	/* Its name was in a lost frame. */
	if (scope == NULL)
		return HAPAX_OK;
	assert(salvage->aim != AIM_MANIFEST);
	version = version_of(salvage, scope, key);
	if (version == NULL)
		return no_memory(salvage->err);
	if (salvage->aim == AIM_RECORDS)
		return load_version(salvage, version, entry, scope, key);
	judge_version(version, entry);
	note_entry(salvage, entry);
	return HAPAX_OK;
}

static enum hapax_status take_manifest(
	struct hx_log_salvage *salvage, const struct hx_log_entry *entry)
{
	struct hx_log_manifest *manifest = &salvage->manifest;
	uint64_t id = salvage->reader.header.id;
	enum hapax_status status = HAPAX_OK;

	assert(salvage->aim == AIM_MANIFEST);
	/* By segment first: an LSN behind a tail that was cut off is assigned again. */
	if (id < salvage->manifest_in ||
	    (id == salvage->manifest_in && entry->lsn < salvage->manifest_lsn))
		return HAPAX_OK;
	salvage->manifest_in = id;
	salvage->manifest_lsn = entry->lsn;
	manifest->log_first_id = entry->as.manifest.log_first_id;
	manifest->next_class_id = entry->as.manifest.next_class_id;
	manifest->count = 0;
	for (uint32_t i = 0; i < entry->as.manifest.count && status == HAPAX_OK; i++) {
		struct hx_log_manifest_item item = hx_log_manifest_item(entry, i);

		status = hx_log_manifest_add(manifest, &item);
	}
	assert(status != HAPAX_OK || manifest->count == entry->as.manifest.count);
	return status == HAPAX_OK ? HAPAX_OK : no_memory(salvage->err);
}

/* Use entry for the current aim. */
static enum hapax_status take_entry(
	struct hx_log_salvage *salvage, const struct hx_log_entry *entry)
{
	if (salvage->aim == AIM_MANIFEST)
		return entry->kind == HX_LOG_MANIFEST ? take_manifest(salvage, entry) : HAPAX_OK;
	if (entry->kind == HX_LOG_PUT || entry->kind == HX_LOG_REMOVE)
		return take_keyed(salvage, entry);
	if (entry->kind == HX_LOG_SCOPE &&
	    !hx_log_scope_names_put(
		    &salvage->scopes, entry->as.scope.number, entry->as.scope.tenant,
		    entry->as.scope.group))
		return no_memory(salvage->err);
	return HAPAX_OK;
}

static enum hapax_status read_entries(
	struct hx_log_salvage *salvage, const struct hx_log_frame *frame, struct hapax_bytes bytes)
{
	struct hx_log_entries entries;
	struct hx_log_entry entry;
	enum hapax_status status = HAPAX_OK;

	hx_log_entries_begin(&entries, frame, salvage->reader.header.kind, bytes);
	while (hx_log_entries_next(&entries, &entry, &status, NULL)) {
		status = take_entry(salvage, &entry);
		if (status != HAPAX_OK)
			return status;
	}
	/* An invalid entry ends its frame, and the rest is lost. */
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ segments */

/* Frames of the log carry the marks. */
static void note_frame(struct hx_log_salvage *salvage, const struct hx_log_frame *frame)
{
	if (salvage->reader.header.kind != HX_LOG_KIND_LOG)
		return;
	if (frame->token > salvage->token)
		salvage->token = frame->token;
	if (frame->clock.store_ms >= salvage->clock.store_ms)
		salvage->clock = frame->clock;
}

/* Every intact frame, also behind damaged ones. */
static enum hapax_status read_frames(struct hx_log_salvage *salvage)
{
	struct hx_log_reader *reader = &salvage->reader;

	for (;;) {
		enum hx_log_found found;
		struct hx_log_frame frame;
		struct hapax_bytes bytes;
		enum hapax_status status =
			hx_log_reader_next(reader, &found, &frame, &bytes, salvage->err);
		bool is_further = false;

		if (status != HAPAX_OK)
			return status;
		if (found == HX_LOG_FOUND_END)
			return HAPAX_OK;
		if (found == HX_LOG_FOUND_FRAME) {
			note_frame(salvage, &frame);
			status = read_entries(salvage, &frame, bytes);
			if (status != HAPAX_OK)
				return status;
			continue;
		}
		status = hx_log_reader_witness(reader, &is_further, &frame, salvage->err);
		if (status != HAPAX_OK || !is_further)
			return status;
		assert(frame.offset > reader->offset);
		reader->offset = frame.offset;
	}
}

/* Open a segment; *ret_is_readable: its header identifies its own frames. */
static enum hapax_status open_segment(
	struct hx_log_salvage *salvage, const struct hx_log_listed *listed, bool *ret_is_readable)
{
	char path[HX_LOG_PATH_SIZE];
	struct hapax_error why = {.status = HAPAX_OK};
	enum hapax_status status;

	hx_log_segment_path(salvage->directory, listed->kind, listed->id, "", path);
	hx_log_scope_names_clear(&salvage->scopes);
	status = hx_log_reader_open(&salvage->reader, salvage->directory->io, path, true, &why);
	*ret_is_readable = status == HAPAX_OK;
	if (status == HAPAX_OK || status == HAPAX_ERR_CORRUPT)
		return HAPAX_OK;
	return hx_error_set(salvage->err, why.status, why.os_errno, "%s", why.message);
}

/*
 * Was the segment given up? Segments newer than the manifest count: an unreadable manifest may
 * name them.
 */
static bool is_given_up(const struct hx_log_salvage *salvage, const struct hx_log_listed *listed)
{
	const struct hx_log_manifest *manifest = &salvage->manifest;

	if (salvage->manifest_in == 0)
		return false;
	if (listed->kind == HX_LOG_KIND_LOG)
		return listed->id < manifest->log_first_id;
	assert(manifest->count <= manifest->capacity);
	if (hx_log_listed_is_named(listed, manifest->items, manifest->count))
		return false;
	return listed->id < manifest->next_class_id;
}

/* Does the segment have anything for the current aim? */
static bool is_of_use(const struct hx_log_salvage *salvage, const struct hx_log_listed *listed)
{
	return salvage->aim == AIM_MANIFEST ? listed->kind == HX_LOG_KIND_LOG
					    : !is_given_up(salvage, listed);
}

static enum hapax_status read_segments(struct hx_log_salvage *salvage, enum aim aim)
{
	enum hapax_status status = HAPAX_OK;

	/* Manifest, versions, records: each reading relies on the one before. */
	assert(aim == AIM_MANIFEST || aim == salvage->aim + 1);
	salvage->aim = aim;
	salvage->fsck->unread = 0;
	for (size_t i = 0; status == HAPAX_OK && i < salvage->listing.count; i++) {
		bool is_ours;

		if (!is_of_use(salvage, &salvage->listing.segments[i]))
			continue;
		status = open_segment(salvage, &salvage->listing.segments[i], &is_ours);
		if (status != HAPAX_OK)
			break;
		/* The history of another store does not count, whatever its LSNs say. */
		is_ours = is_ours &&
			memcmp(salvage->reader.header.uuid, salvage->uuid, HX_LOG_UUID_SIZE) == 0;
		if (is_ours)
			status = read_frames(salvage);
		else
			salvage->fsck->unread++;
		hx_log_reader_shut(&salvage->reader);
	}
	return status;
}

/* ------------------------------------------------------------------ the store's uuid */

/* The header of a segment. */
struct owner {
	bool is_readable;
	unsigned char uuid[HX_LOG_UUID_SIZE];
};

/* How many segments have the uuid of segment index. */
static size_t count_alike(const struct owner *owners, size_t count, size_t index)
{
	size_t alike = 0;

	assert(index < count);
	for (size_t i = 0; owners[index].is_readable && i < count; i++)
		alike += owners[i].is_readable &&
			memcmp(owners[i].uuid, owners[index].uuid, HX_LOG_UUID_SIZE) == 0;
	return alike;
}

static enum hapax_status choose_uuid(struct hx_log_salvage *salvage, const struct owner *owners)
{
	size_t count = salvage->listing.count, most = 0;
	bool is_tie = false;

	for (size_t i = 0; i < count; i++) {
		size_t alike = count_alike(owners, count, i);

		if (alike > most) {
			memcpy(salvage->uuid, owners[i].uuid, HX_LOG_UUID_SIZE);
			most = alike;
			is_tie = false;
		} else if (
			alike == most &&
			memcmp(owners[i].uuid, salvage->uuid, HX_LOG_UUID_SIZE) != 0) {
			is_tie = alike != 0;
		}
	}
	assert(most <= count);
	if (!is_tie)
		return HAPAX_OK;
	return hx_error_set(
		salvage->err, HAPAX_ERR_CORRUPT, 0,
		"STORE cannot be read, and '%.128s' has segments of several stores; move those "
		"that do not belong there",
		salvage->directory->path);
}

/* Read the headers of the segments. */
static enum hapax_status read_uuids(struct hx_log_salvage *salvage, struct owner *owners)
{
	for (size_t i = 0; i < salvage->listing.count; i++) {
		enum hapax_status status = open_segment(
			salvage, &salvage->listing.segments[i], &owners[i].is_readable);

		if (status != HAPAX_OK)
			return status;
		memcpy(owners[i].uuid, salvage->reader.header.uuid, HX_LOG_UUID_SIZE);
		hx_log_reader_shut(&salvage->reader);
	}
	return choose_uuid(salvage, owners);
}

/* STORE says which segments count; if it is unreadable, the majority of the segments does. */
static enum hapax_status find_uuid(struct hx_log_salvage *salvage)
{
	struct hx_log_directory directory = *salvage->directory;
	struct owner *owners;
	bool found = false;
	enum hapax_status status = hx_log_directory_read(&directory, &found, NULL);

	if (status == HAPAX_OK && found) {
		memcpy(salvage->uuid, directory.store.uuid, HX_LOG_UUID_SIZE);
		return HAPAX_OK;
	}
	owners = hx_alloc_zero(salvage->listing.count + 1, sizeof(*owners));
	status = owners == NULL ? no_memory(salvage->err) : read_uuids(salvage, owners);
	hx_free(owners);
	return status;
}

/* ------------------------------------------------------------------ life */

enum hapax_status hx_log_salvage_new(
	const struct hx_log_directory *directory, struct hapax_fsck *fsck,
	struct hx_log_salvage **ret_salvage, struct hapax_error *err)
{
	struct hx_log_salvage *salvage = hx_alloc_zero(1, sizeof(*salvage));
	enum hapax_status status;

	if (salvage == NULL)
		return no_memory(err);
	salvage->directory = directory;
	salvage->fsck = fsck;
	salvage->err = err;
	salvage->reader.file = -1;
	hx_random_bytes(salvage->hash_keys, sizeof(salvage->hash_keys));
	hx_log_scope_names_init(&salvage->scopes);
	status = hx_log_listing_read(&salvage->listing, directory, err);
	if (status == HAPAX_OK)
		status = find_uuid(salvage);
	if (status == HAPAX_OK)
		status = read_segments(salvage, AIM_MANIFEST);
	if (status == HAPAX_OK)
		status = read_segments(salvage, AIM_VERSIONS);
	if (status != HAPAX_OK) {
		hx_log_salvage_free(salvage);
		return status;
	}
	*ret_salvage = salvage;
	return HAPAX_OK;
}

void hx_log_salvage_free(struct hx_log_salvage *salvage)
{
	if (salvage == NULL)
		return;
	hx_log_reader_close(&salvage->reader);
	hx_log_listing_done(&salvage->listing);
	hx_log_scope_names_done(&salvage->scopes);
	hx_load_batch_free(salvage->batch);
	hx_free(salvage->manifest.items);
	hx_free(salvage->versions);
	hx_free(salvage);
}

const struct hx_clock_mark *hx_log_salvage_clock(const struct hx_log_salvage *salvage)
{
	return salvage->clock.store_ms != 0 ? &salvage->clock : NULL;
}

enum hapax_status hx_log_salvage_load(
	struct hx_log_salvage *salvage, struct hapax_store *target, struct hapax_error *err)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_status status = hapax_store_stats(target, &stats, NULL, NULL, err);
	uint64_t token;

	assert(salvage->aim == AIM_VERSIONS);
	assert(salvage->batch == NULL);
	salvage->err = err;
	salvage->fsck->salvaged = 0;
	if (status == HAPAX_OK) {
		salvage->now_ms = stats.now_ms;
		salvage->target = target;
		salvage->batch = hx_load_batch_new();
		status = salvage->batch != NULL ? HAPAX_OK : no_memory(err);
	}
	/* Before any record is loaded, tokens are raised above all issued ones. */
	if (status == HAPAX_OK)
		status = hx_store_raise_token(target, salvage->token, &token, err);
	if (status == HAPAX_OK)
		status = read_segments(salvage, AIM_RECORDS);
	if (status == HAPAX_OK)
		status = run_batch(salvage);
	if (status == HAPAX_OK)
		salvage->fsck->token = token;
	return status;
}
