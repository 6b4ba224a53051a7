/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsck.c - verify a store's directory; repair it by making a new one beside it.
 *
 * A repair never writes to the damaged files. The new store is complete and closed
 * before the two directories change their names, and a crash in between leaves both:
 * DIR.damaged-N or DIR, and DIR.repair.
 */
#include <hapax/fsck.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "store/log/directory.h"
#include "store/log/log_store.h"
#include "store/log/salvage.h"
#include "store/log/walk.h"

/* How many damaged stores may lie beside each other. */
enum { DAMAGED_MAX = 1000 };

_Static_assert((int)HAPAX_FSCK_NOTE == (int)HX_LOG_NOTE, "the same words");
_Static_assert((int)HAPAX_FSCK_CUT == (int)HX_LOG_CUT, "the same words");
_Static_assert((int)HAPAX_FSCK_DAMAGE == (int)HX_LOG_DAMAGE, "the same words");
_Static_assert(sizeof(((struct hapax_fsck *)0)->uuid) == HX_LOG_UUID_SIZE, "a uuid");

struct check {
	struct hapax_fsck *fsck;
	bool is_newer; /* a part is of a newer format: hands off */
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
	enum hapax_status status =
		hx_log_walk(directory->io, directory->path, &visitor, &result, err);

	memcpy(fsck->uuid, result.store.uuid, sizeof(fsck->uuid));
	fsck->created_ms = result.store.created_ms;
	fsck->token = result.token;
	fsck->lsn = result.next_lsn;
	fsck->is_closed = result.is_closed;
	hx_log_walk_result_done(&result);
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

/* A name for the damaged store that nothing has yet. False: there are too many. */
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

static enum hapax_status make_new_store(
	const struct hx_log_directory *directory, const char *path, struct hapax_fsck *fsck,
	struct hapax_error *err)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *target = NULL;
	enum hapax_status status;

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	/* Nobody is answered from it before it is closed, and then it is durable. */
	options.unsafe_interval_ms = 1000;
	status = hx_log_open_on(directory->io, "file:", path, &options, &target, err);
	if (status != HAPAX_OK)
		return status;
	status = hx_log_salvage(directory, target, fsck, err);
	hapax_store_close(target);
	return status;
}

/* The parent of path, for its names to be made durable. */
static void parent_of(const char *path, char parent[HX_LOG_PATH_SIZE])
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		(void)snprintf(parent, HX_LOG_PATH_SIZE, ".");
	else if (slash == path)
		(void)snprintf(parent, HX_LOG_PATH_SIZE, "/");
	else
		(void)snprintf(parent, HX_LOG_PATH_SIZE, "%.*s", (int)(slash - path), path);
}

static enum hapax_status exchange(
	const struct hx_log_directory *directory, const char *repaired,
	const struct hapax_fsck *fsck, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	char parent[HX_LOG_PATH_SIZE];
	int failed;

	parent_of(directory->path, parent);
	failed = io->ops->rename(io->context, directory->path, fsck->damaged_path);
	if (failed == 0)
		failed = io->ops->rename(io->context, repaired, directory->path);
	if (failed == 0)
		failed = io->ops->fsync_dir(io->context, parent);
	if (failed == 0)
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_UNCERTAIN, -failed,
		"the repaired store \"%s\" was not put in its place", repaired);
}

static enum hapax_status repair(
	const struct hx_log_directory *directory, struct hapax_fsck *fsck, struct hapax_error *err)
{
	char repaired[HX_LOG_PATH_SIZE];
	enum hapax_status status;

	(void)snprintf(repaired, sizeof(repaired), "%s.repair", directory->path);
	if (!is_free(directory->io, repaired))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"\"%s\" is there from an earlier repair; look at it, then remove it",
			repaired);
	if (!choose_damaged_path(directory, fsck))
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0, "no name is left for the damaged store");
	status = make_new_store(directory, repaired, fsck, err);
	if (status == HAPAX_OK)
		status = exchange(directory, repaired, fsck, err);
	if (status != HAPAX_OK)
		fsck->damaged_path[0] = '\0';
	return status;
}

enum hapax_status hapax_fsck(const char *path, struct hapax_fsck *fsck, struct hapax_error *err)
{
	struct hx_log_directory directory;
	struct check check = {.fsck = fsck};
	struct hapax_error found = {.status = HAPAX_OK};
	enum hapax_status status;

	if (path == NULL || fsck == NULL || fsck->size != sizeof(*fsck))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a path and a fsck of a known size are needed");
	status = hx_log_directory_init(&directory, hx_io_system(), path, err);
	if (status == HAPAX_OK)
		status = hx_log_directory_lock(&directory, err);
	if (status != HAPAX_OK)
		return status;
	status = verify(&check, &directory, &found);
	if (status == HAPAX_ERR_CORRUPT && fsck->flags & HAPAX_FSCK_REPAIR_ACCEPT_LOSS)
		status = repair(&directory, fsck, err);
	else if (status != HAPAX_OK)
		(void)hx_error_set(err, status, found.os_errno, "%s", found.message);
	hx_log_directory_done(&directory);
	return status;
}
