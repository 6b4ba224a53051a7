/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lock.h - the file that shows on this host whether a run is alive.
 *
 * A lease tells that nothing was heard of a run; on the host where it runs a lock can
 * tell more. `hapax run` makes a file for its claim and holds flock(2) on it; its
 * command inherits the lock. So the file is locked as long as one of the two lives,
 * and what is there and free belonged to a run that died:
 *
 *	held    alive, however long its lease has been over: nobody takes over
 *	free    dead: its claim is given back at once, nobody waits for the lease
 *	absent  another host, or before a reboot: only the lease decides
 *
 * The file is locked before it gets its name and removed only after the outcome is
 * stored, so that free never means "not yet" or "no longer". Its name is the token and
 * the attempt id: tokens of two stores may be equal, attempt ids are not.
 */
#ifndef HX_CLI_RUN_LOCK_H
#define HX_CLI_RUN_LOCK_H

#include <stddef.h>

#include <hapax/error.h>
#include <hapax/record.h>

/* PATH_MAX of Linux, as for files everywhere here. */
enum { HX_RUN_LOCK_PATH_SIZE = 4096 };
enum { HX_RUN_LOCK_FOLDERS_MAX = 4 };

/*
 * Where lock files are. One is made in the first folder that can be used, and looked
 * for in all of them: a shell has XDG_RUNTIME_DIR, cron has not.
 */
struct hx_run_lock_folders {
	char paths[HX_RUN_LOCK_FOLDERS_MAX][HX_RUN_LOCK_PATH_SIZE];
	size_t make_count; /* of these one may be made in */
	size_t count;
};

/* From the environment. May find none. */
void hx_run_lock_folders(struct hx_run_lock_folders *folders);

enum hx_run_lock_state {
	HX_RUN_LOCK_ABSENT,
	HX_RUN_LOCK_FREE,
	HX_RUN_LOCK_HELD,
};

/* The lock of a claim that stands in a record; its path, unless it is absent. */
enum hx_run_lock_state hx_run_lock_probe(
	const struct hx_run_lock_folders *folders, const struct hapax_record *record,
	char ret_path[HX_RUN_LOCK_PATH_SIZE]);

/* Remove a file that was free, when its claim has been given back. */
void hx_run_lock_remove_free(const char *path);

struct hx_run_lock {
	int file; /* -1: none */
	char path[HX_RUN_LOCK_PATH_SIZE];
};

/* Make and hold the lock of our claim. UNAVAILABLE, LIMIT: there is none. */
enum hapax_status hx_run_lock_make(
	struct hx_run_lock *lock, const struct hx_run_lock_folders *folders,
	const struct hapax_record *record, struct hapax_error *err);

/* Remove the file, then give up the lock. Nothing happens when there is none. */
void hx_run_lock_remove(struct hx_run_lock *lock);

#endif
