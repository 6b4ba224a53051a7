/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage.c - what can still be read of a damaged store, into a new one.
 *
 * Segments are read in any order, so each key's highest LSN so far is remembered, under
 * 128 bits of a keyed hash of its name.
 */
#include "store/log/salvage.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/uuid7.h"
#include "store/copy.h"
#include "store/index/packed_key.h"
#include "store/log/listing.h"
#include "store/log/reader.h"
#include "store/log/scope_names.h"

/* The latest version of a key that was seen. */
struct version {
	uint64_t name[2]; /* both 0: free */
	uint64_t lsn;
	bool is_there; /* a record, not a removal */
};

enum { VERSIONS_MIN = 1024 };

struct salvage {
	const struct hx_log_directory *directory;
	struct hapax_store *target;
	struct hapax_fsck *fsck;
	struct hapax_error *err;
	struct hx_log_reader reader;
	struct hx_log_scope_names scopes;
	uint64_t hash_keys[2][2];
	struct version *versions;
	size_t version_count;
	size_t version_room; /* a power of two */
};

/* ------------------------------------------------------------------ versions */

static struct version *find_version(struct version *versions, size_t room, const uint64_t name[2])
{
	size_t at = name[0] & (room - 1);

	while ((versions[at].name[0] != 0 || versions[at].name[1] != 0) &&
	       (versions[at].name[0] != name[0] || versions[at].name[1] != name[1]))
		at = (at + 1) & (room - 1);
	return &versions[at];
}

static bool grow_versions(struct salvage *salvage)
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
	hx_free(salvage->versions);
	salvage->versions = versions;
	salvage->version_room = room;
	return true;
}

/* Part after part with its size: no two names give the same bytes. */
static uint64_t hash_name(
	const uint64_t key[2], const struct hx_log_walk_scope *scope, struct hapax_bytes text)
{
	unsigned char bytes[2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + 8];
	size_t size = 0;

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
	struct salvage *salvage, const struct hx_log_walk_scope *scope, struct hapax_bytes text)
{
	uint64_t name[2];
	struct version *version;

	if (salvage->version_count * 4 >= salvage->version_room * 3 && !grow_versions(salvage))
		return NULL;
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

/* The key as it was given. text holds HX_KEY_TEXT_SIZE bytes and a NUL. */
static struct hapax_bytes key_text(const struct hx_log_entry *entry, char *text)
{
	struct hapax_bytes stored = entry->as.put.record.key;

	if (entry->as.put.encoding == HX_KEY_UUID) {
		hx_uuid_format(stored.data, text);
		return hx_bytes(text, HX_UUID_TEXT_SIZE);
	}
	if (entry->as.put.encoding == HX_KEY_HEX) {
		hx_hex_encode(stored.data, stored.size, text);
		return hx_bytes(text, stored.size * 2);
	}
	return stored;
}

static enum hapax_status apply(struct salvage *salvage, const struct hx_log_entry *entry)
{
	const struct hx_log_walk_scope *scope =
		hx_log_scope_names_get(&salvage->scopes, entry->as.put.scope);
	char text[HX_KEY_TEXT_SIZE + 1];
	struct hapax_bytes key = key_text(entry, text);
	struct hapax_op op = {.key = key};
	struct version *version;
	enum hapax_status status;

	/* Its name was in a frame that is lost. */
	if (scope == NULL)
		return HAPAX_OK;
	version = version_of(salvage, scope, key);
	if (version == NULL)
		return hx_error_set(
			salvage->err, HAPAX_ERR_NO_MEMORY, 0, "no memory to repair the store");
	if (version->lsn > entry->lsn)
		return HAPAX_OK;
	version->lsn = entry->lsn;
	op.tenant = scope->tenant;
	op.group = scope->group;
	if (entry->kind == HX_LOG_PUT) {
		op.type = HAPAX_OP_LOAD;
		op.load = &entry->as.put.record;
	} else {
		op.type = HAPAX_OP_FORGET;
		op.flags = HAPAX_OP_FORCE;
	}
	status = hapax_store_run(salvage->target, &op, 1, salvage->err);
	/* A record that its own frame vouches for, and that no store would write. */
	if (status == HAPAX_ERR_INVALID)
		return HAPAX_OK;
	if (status == HAPAX_OK)
		version->is_there = entry->kind == HX_LOG_PUT;
	return status;
}

static enum hapax_status read_entries(
	struct salvage *salvage, const struct hx_log_frame *frame, struct hapax_bytes bytes)
{
	struct hx_log_entries entries;
	struct hx_log_entry entry;
	enum hapax_status status = HAPAX_OK;

	hx_log_entries_begin(&entries, frame, salvage->reader.header.kind, bytes);
	while (hx_log_entries_next(&entries, &entry, &status, NULL)) {
		if (entry.kind == HX_LOG_SCOPE) {
			if (!hx_log_scope_names_put(
				    &salvage->scopes, entry.as.scope.number, entry.as.scope.tenant,
				    entry.as.scope.group))
				return hx_error_set(
					salvage->err, HAPAX_ERR_NO_MEMORY, 0,
					"no memory to repair the store");
		} else if (entry.kind == HX_LOG_PUT || entry.kind == HX_LOG_REMOVE) {
			status = apply(salvage, &entry);
			if (status != HAPAX_OK)
				return status;
		}
	}
	/* What is wrong with an entry ends its frame, and is lost. */
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ segments */

/* Every frame that is whole, also behind ones that are not. */
static enum hapax_status read_frames(struct salvage *salvage)
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
			if (frame.token > salvage->fsck->token)
				salvage->fsck->token = frame.token;
			status = read_entries(salvage, &frame, bytes);
			if (status != HAPAX_OK)
				return status;
			continue;
		}
		status = hx_log_reader_witness(reader, &is_further, &frame, salvage->err);
		if (status != HAPAX_OK || !is_further)
			return status;
		reader->offset = frame.offset;
	}
}

static enum hapax_status read_segment(struct salvage *salvage, const struct hx_log_listed *listed)
{
	char name[HX_LOG_NAME_SIZE];
	char path[HX_LOG_PATH_SIZE];
	struct hapax_error why = {.status = HAPAX_OK};
	enum hapax_status status;

	hx_log_name(name, listed->kind, listed->id, "");
	hx_log_path(salvage->directory, name, path);
	hx_log_scope_names_clear(&salvage->scopes);
	memset(&salvage->reader, 0, sizeof(salvage->reader));
	salvage->reader.file = -1;
	status = hx_log_reader_open(&salvage->reader, salvage->directory->io, path, &why);
	if (status == HAPAX_ERR_CORRUPT) {
		/* Without its header nothing tells which frames are its own. */
		salvage->fsck->unread++;
		hx_log_reader_close(&salvage->reader);
		return HAPAX_OK;
	}
	if (status == HAPAX_OK)
		status = read_frames(salvage);
	else
		(void)hx_error_set(salvage->err, why.status, why.os_errno, "%s", why.message);
	hx_log_reader_close(&salvage->reader);
	return status;
}

static uint64_t count_records(const struct salvage *salvage)
{
	uint64_t count = 0;

	for (size_t i = 0; i < salvage->version_room; i++)
		count += salvage->versions[i].is_there;
	return count;
}

enum hapax_status hx_log_salvage(
	const struct hx_log_directory *directory, struct hapax_store *target,
	struct hapax_fsck *fsck, struct hapax_error *err)
{
	struct salvage salvage = {
		.directory = directory, .target = target, .fsck = fsck, .err = err};
	struct hx_log_listing listing = {.count = 0};
	enum hapax_status status;
	uint64_t token;

	hx_random_bytes(salvage.hash_keys, sizeof(salvage.hash_keys));
	hx_log_scope_names_init(&salvage.scopes);
	status = hx_log_listing_read(&listing, directory, err);
	for (size_t i = 0; status == HAPAX_OK && i < listing.count; i++)
		status = read_segment(&salvage, &listing.segments[i]);
	/* Tokens in frames that are lost lie below this, too. */
	if (status == HAPAX_OK)
		status = hx_store_raise_token(target, fsck->token, &token, err);
	fsck->salvaged = count_records(&salvage);
	hx_log_listing_done(&listing);
	hx_log_scope_names_done(&salvage.scopes);
	hx_free(salvage.versions);
	return status;
}
