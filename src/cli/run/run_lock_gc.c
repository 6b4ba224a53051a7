/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lock_gc.c - remove lock files that dead runs left behind.
 */
#include "cli/run/run_lock_gc.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <hapax/clock.h>

#include "base/buf.h"
#include "base/hex.h"
#include "base/io.h"
#include "cli/print/record_out.h"
#include "cli/run/run_lock.h"

enum { BOOT_DIGITS = 2 * HAPAX_BOOT_ID_SIZE };

struct gc {
	struct hapax_store *store;
	const char *store_url;
	const char *folder;
	char boot[BOOT_DIGITS];
	uint64_t removed;
};

/* Is it the name of a lock, of any boot and key? */
static bool is_lock_name(const char *name)
{
	if (strlen(name) != HX_RUN_LOCK_NAME_SIZE - 1)
		return false;
	for (size_t i = 0; name[i] != '\0'; i++)
		if (i == BOOT_DIGITS ? name[i] != '-' : hx_hex_digit((unsigned char)name[i]) < 0)
			return false;
	return true;
}

/* Is the claim that the note names still there? True if the store does not answer. */
static bool stands(struct gc *gc, const struct hx_cmd_run_note *note)
{
	struct hapax_record record;
	struct hapax_buf buf;
	struct hapax_op op = {
		.type = HAPAX_OP_LOOKUP,
		.tenant = note->tenant,
		.group = note->group,
		.key = note->key,
		.record = &record,
		.buf = &buf,
	};
	bool does_stand = true;

	hx_buf_init(&buf, HX_RECORD_SIZE_MAX);
	if (hapax_store_run(gc->store, &op, 1, NULL) == HAPAX_OK)
		does_stand = op.outcome == HAPAX_OUTCOME_FOUND &&
			record.state == HAPAX_STATE_CLAIMED &&
			hx_cmd_run_note_claim_is_in(&note->claim, &record);
	hx_buf_done(&buf);
	return does_stand;
}

/* We hold the lock: is its file no longer needed? */
static bool is_done_with(struct gc *gc, const char *name, int file)
{
	struct hx_cmd_run_note note;
	char ours[HX_RUN_LOCK_NAME_SIZE];

	/* The holder died before it claimed. */
	if (!hx_cmd_run_note_read(file, &note))
		return true;
	/*
	 * An earlier boot of this machine is over. Another machine that shares the folder may be
	 * up, and its locks may be invisible here.
	 */
	if (memcmp(name, gc->boot, BOOT_DIGITS) != 0)
		return hx_cmd_run_note_is_of_this_host(&note);
	return hx_cmd_run_lock_name(
		       &(struct hx_cmd_run_lock_key){
			       gc->store_url, note.tenant, note.group, note.key},
		       ours) &&
		strcmp(name, ours) == 0 && !stands(gc, &note);
}

static int look_at(void *arg, const char *name)
{
	const struct hx_io *io = hx_io_system();
	struct gc *gc = arg;
	char path[HX_RUN_PATH_SIZE];
	int size = snprintf(path, sizeof(path), "%s/%s", gc->folder, name), file;

	if (!is_lock_name(name) || size < 0 || (size_t)size >= sizeof(path))
		return 0;
	file = hx_cmd_run_lock_file(path);
	if (file < 0)
		return 0;
	if (is_done_with(gc, name, file) && io->ops->unlink(io->context, path) == 0)
		gc->removed++;
	(void)io->ops->close(io->context, file);
	return 0;
}

uint64_t hx_cmd_run_lock_gc(
	const struct hx_cmd_run_folders *folders, struct hapax_store *store, const char *store_url)
{
	const struct hapax_clock *clock = hapax_clock_system();
	const struct hx_io *io = hx_io_system();
	struct gc gc = {.store = store, .store_url = store_url};
	unsigned char boot_id[HAPAX_BOOT_ID_SIZE];

	clock->boot_id(clock->context, boot_id);
	hx_hex_encode(boot_id, sizeof(boot_id), gc.boot);
	for (size_t i = 0; i < folders->count; i++) {
		gc.folder = folders->paths[i];
		(void)io->ops->list(io->context, gc.folder, look_at, &gc);
	}
	return gc.removed;
}
