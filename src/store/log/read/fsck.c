/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsck.c - verify a store's directory; repair it by creating a new one next to it.
 *
 * A repair never writes to the damaged files. The new store is complete, closed and verified
 * before the two directories exchange their names, in one step. A crash leaves both, as DIR and
 * DIR.repair.
 */
#include <hapax/fsck.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "store/log/format/directory.h"
#include "store/log/read/fsck.h"
#include "store/log/log_store.h"
#include "store/log/read/salvage.h"
#include "store/log/read/log_walk.h"

/* The maximum number of damaged stores next to each other. */
enum { DAMAGED_MAX = 1000 };

_Static_assert((int)HAPAX_FSCK_NOTE == (int)HX_LOG_NOTE, "the same words");
_Static_assert((int)HAPAX_FSCK_CUT == (int)HX_LOG_CUT, "the same words");
_Static_assert((int)HAPAX_FSCK_DAMAGE == (int)HX_LOG_DAMAGE, "the same words");
_Static_assert(sizeof(((struct hapax_fsck *)0)->uuid) == HX_LOG_UUID_SIZE, "a uuid");

struct check {
	struct hapax_fsck *fsck;
	bool is_newer; /* a part has a newer format: do not touch it */
};

static enum hapax_status count_entry(
	void *context, const struct hx_log_header *segment, const struct hx_log_entry *entry,
	struct hx_log_walk_scope *scope, struct hapax_error *err)
{
	struct check *check = context;

	(void)segment;
	(void)scope;
	(void)err;
	check->fsck->records += entry->kind == HX_LOG_PUT;
	check->fsck->removals += entry->kind == HX_LOG_REMOVE;
	return HAPAX_OK;
}

static void count_segment(void *context, const char *name, const struct hx_log_header *header)
{
	struct check *check = context;

	(void)name;
	(void)header;
	check->fsck->segments++;
}

static bool note_problem(void *context, const struct hx_log_problem *problem)
{
	struct check *check = context;
	struct hapax_fsck *fsck = check->fsck;
	struct hapax_fsck_problem told = {
		.kind = (enum hapax_fsck_kind)problem->kind,
		.file = problem->file,
		.offset = problem->offset,
		.lsn = problem->lsn,
		.keys_at_risk_max = problem->keys_max,
		.what = problem->what,
	};

	assert((unsigned)problem->kind <= HX_LOG_DAMAGE);
	fsck->notes += problem->kind == HX_LOG_NOTE;
	fsck->cuts += problem->kind == HX_LOG_CUT;
	fsck->damages += problem->kind == HX_LOG_DAMAGE;
	check->is_newer |=
		problem->kind == HX_LOG_DAMAGE && problem->status == HAPAX_ERR_UNSUPPORTED;
	if (fsck->problem != NULL)
		fsck->problem(&told, fsck->context);
	return true;
}

static void note_progress(void *context, uint64_t bytes_done, uint64_t bytes_total)
{
	struct check *check = context;

	assert(bytes_done <= bytes_total);
	check->fsck->bytes = bytes_done;
	if (check->fsck->progress != NULL)
		check->fsck->progress(bytes_done, bytes_total, check->fsck->context);
}

static enum hapax_status verify(
	struct check *check, const struct hx_log_directory *directory, struct hapax_error *err)
{
	struct hapax_fsck *fsck = check->fsck;
	struct hx_log_visitor visitor = {
		.context = check,
		.entry = count_entry,
		.segment = count_segment,
		.problem = note_problem,
		.progress = note_progress,
	};
	struct hx_log_walk_result result = {.damages = 0};
	struct hapax_error found = {.status = HAPAX_OK};
	enum hapax_status status =
		hx_log_walk(directory->io, directory->path, &visitor, &result, &found);

	memcpy(fsck->uuid, result.store.uuid, sizeof(fsck->uuid));
	fsck->created_ms = result.store.created_ms;
	fsck->token = result.token;
	fsck->lsn = result.next_lsn;
	fsck->is_closed = result.was_closed;
	hx_log_walk_result_done(&result);
	/* The walk did not get past STORE. */
	if (status == HAPAX_ERR_CORRUPT && fsck->damages == 0)
		(void)note_problem(
			check,
			&(struct hx_log_problem){
				.kind = HX_LOG_DAMAGE,
				.status = status,
				.file = "STORE",
				.what = found.message,
			});
	if (status != HAPAX_OK)
		(void)hx_error_set(err, status, found.os_errno, "%s", found.message);
	if (status == HAPAX_OK && fsck->damages > 0)
		status = hx_error_set(
			err, check->is_newer ? HAPAX_ERR_UNSUPPORTED : HAPAX_ERR_CORRUPT, 0,
			"the store is damaged in %llu places", (unsigned long long)fsck->damages);
	return status;
}

/* ------------------------------------------------------------------ repair */

static bool is_free(const struct hx_io *io, const char *path)
{
	struct hx_io_stat stat;

	return io->ops->stat_path(io->context, path, &stat) == -ENOENT;
}

/* An unused name for the damaged store. False: there are too many. */
static bool choose_damaged_path(const struct hx_log_directory *directory, struct hapax_fsck *fsck)
{
	for (int i = 1; i <= DAMAGED_MAX; i++) {
		int size = snprintf(
			fsck->damaged_path, sizeof(fsck->damaged_path), "%s.damaged-%d",
			directory->path, i);

		if (size < 0 || (size_t)size >= sizeof(fsck->damaged_path))
			break;
		if (is_free(directory->io, fsck->damaged_path))
			return true;
	}
	fsck->damaged_path[0] = '\0';
	return false;
}

/* Verify the new store: it was closed, and closing reports nothing. */
static enum hapax_status check_new_store(
	const struct hx_io *io, const char *path, struct hapax_error *err)
{
	struct hx_log_visitor visitor = {.context = NULL};
	struct hx_log_walk_result result;
	struct hapax_error why = {.status = HAPAX_OK};
	enum hapax_status status = hx_log_walk(io, path, &visitor, &result, &why);
	bool is_closed = status == HAPAX_OK && result.is_closed;

	if (status == HAPAX_OK)
		hx_log_walk_result_done(&result);
	if (is_closed)
		return HAPAX_OK;
	return hx_error_set(
		err, status != HAPAX_OK ? status : HAPAX_ERR_UNAVAILABLE, why.os_errno,
		"could not write all of the repaired store '%.128s': %.128s", path,
		status != HAPAX_OK ? why.message : "its end is missing");
}

static enum hapax_status make_new_store(
	const struct hx_log_directory *directory, const char *path, struct hapax_fsck *fsck,
	struct hapax_error *err)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hx_log_salvage *salvage = NULL;
	struct hapax_store *target = NULL;
	enum hapax_status status = hx_log_salvage_new(directory, fsck, &salvage, err);

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	/* Use the damaged store's clock: on any other, records would expire early, or late. */
	if (status == HAPAX_OK)
		status = hx_log_open_from(
			directory->io, "file:", path, &options, hx_log_salvage_clock(salvage),
			&target, err);
	if (status == HAPAX_OK)
		status = hx_log_salvage_load(salvage, target, err);
	hapax_store_close(target);
	hx_log_salvage_free(salvage);
	return status == HAPAX_OK ? check_new_store(directory->io, path, err) : status;
}

/* Make the names of the stores durable. */
static int sync_parent(const struct hx_log_directory *directory)
{
	char parent[HX_LOG_PATH_SIZE];

	hx_log_directory_parent(directory, parent);
	return directory->io->ops->fsync_dir(directory->io->context, parent);
}

/* In two steps, if the file system cannot exchange names: a crash in between leaves no DIR. */
static int replace(
	const struct hx_io *io, const char *path, const char *repaired, const char *damaged)
{
	int failed = io->ops->rename(io->context, path, damaged);

	return failed != 0 ? failed : io->ops->rename(io->context, repaired, path);
}

/*
 * Give the repaired store the damaged one's name. In one step: a process that opens DIR at any
 * moment finds one of them, and never creates a new, empty one.
 */
static enum hapax_status exchange(
	const struct hx_log_directory *directory, const char *repaired, struct hapax_fsck *fsck,
	struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	int failed = io->ops->exchange(io->context, directory->path, repaired);
	bool is_split = failed == -EINVAL || failed == -ENOSYS;

	/* No other process opens the damaged store meanwhile. */
	assert(directory->lock_file >= 0);
	assert(fsck->damaged_path[0] != '\0');
	if (is_split)
		failed = replace(io, directory->path, repaired, fsck->damaged_path);
	if (failed == 0)
		failed = sync_parent(directory);
	if (failed != 0)
		return hx_error_set(
			err, HAPAX_ERR_UNCERTAIN, -failed,
			"could not move the repaired store '%.160s' into place", repaired);
	/* The name is only a description; the store is as safe under the other one. */
	if (!is_split &&
	    (io->ops->rename(io->context, repaired, fsck->damaged_path) != 0 ||
	     sync_parent(directory) != 0))
		(void)snprintf(fsck->damaged_path, sizeof(fsck->damaged_path), "%s", repaired);
	return HAPAX_OK;
}

static enum hapax_status repair(
	struct hx_log_directory *directory, struct hapax_fsck *fsck, struct hapax_error *err)
{
	char repaired[HX_LOG_PATH_SIZE];
	enum hapax_status status = HAPAX_OK;

	/* No other process may open it meanwhile. */
	if (directory->lock_file < 0)
		status = hx_log_directory_lock(directory, true, err);
	if (status != HAPAX_OK)
		return status;
	assert(directory->lock_file >= 0);
	assert(fsck->flags & HAPAX_FSCK_REPAIR_ACCEPT_LOSS);
	(void)snprintf(repaired, sizeof(repaired), "%s.repair", directory->path);
	if (!is_free(directory->io, repaired))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"'%s' exists from an earlier repair; check it, then remove it", repaired);
	if (!choose_damaged_path(directory, fsck))
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0,
			"too many damaged stores are kept beside this one; remove old "
			"ones");
	status = make_new_store(directory, repaired, fsck, err);
	if (status == HAPAX_OK)
		status = exchange(directory, repaired, fsck, err);
	if (status != HAPAX_OK)
		fsck->damaged_path[0] = '\0';
	return status;
}

enum hapax_status hx_log_fsck_on(
	const struct hx_io *io, const char *path, struct hapax_fsck *fsck, struct hapax_error *err)
{
	struct hx_log_directory directory;
	struct check check = {.fsck = fsck};
	struct hapax_error found = {.status = HAPAX_OK};
	enum hapax_status status = hx_log_directory_init(&directory, io, path, err);

	if (status == HAPAX_OK)
		status = hx_log_directory_lock(&directory, false, err);
	if (status == HAPAX_OK) {
		status = verify(&check, &directory, &found);
		if (status == HAPAX_ERR_CORRUPT && fsck->flags & HAPAX_FSCK_REPAIR_ACCEPT_LOSS)
			status = repair(&directory, fsck, err);
		else if (status != HAPAX_OK)
			(void)hx_error_set(err, status, found.os_errno, "%s", found.message);
	}
	hx_log_directory_done(&directory);
	return status;
}

enum hapax_status hapax_fsck(const char *path, struct hapax_fsck *fsck, struct hapax_error *err)
{
	if (path == NULL || fsck == NULL || fsck->size != sizeof(*fsck))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"path and fsck are required, and fsck must have a known size");
	return hx_log_fsck_on(hx_io_system(), path, fsck, err);
}
