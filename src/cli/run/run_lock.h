/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lock.h - one run of a key at a time, on this host.
 *
 * A lapsed lease means only that a run was silent; on its own host a lock says more. A process that
 * may start a command holds flock(2) on a file named after the key, from before it reads the
 * record. The command inherits the lock. It is held as long as either lives, even if the record was
 * swept, forgotten or taken over by another host.
 *
 *	held    a process decides or runs here: no other starts
 *	free    and its note names the record's claim: that run died; the claim is given
 *	        back at once, without waiting for the lease
 *	absent  no run here; another host may run: only the lease decides
 *
 *  (1) Only the holder of the lock writes into the file or removes it, and it is removed while it
 *      is locked. A process that locks a file without a name opens it again, so a name has one
 *      holder. (hx_cmd_run_lock_break() is for people who insist.)
 *  (2) The note is written after the claim and before the command starts. A death between the two
 *      leaves a claim that no note names: only the lease decides.
 *  (3) The file is removed when the outcome is stored, or is known to stay unstored. A free file
 *      with a note never belonged to a run that ended normally.
 *  (4) The name includes the boot: a folder may outlive a reboot, or be shared with other hosts
 *      that do not see the lock.
 *  (5) A lock is created in the first usable folder, and only then looked for in all others: of two
 *      runs that begin in different folders, at least one sees the other.
 */
#ifndef HX_CLI_RUN_RUN_LOCK_H
#define HX_CLI_RUN_RUN_LOCK_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/store.h>

/* PATH_MAX of Linux, as for all files here. */
enum { HX_RUN_PATH_SIZE = 4096 };
enum { HX_RUN_FOLDERS_MAX = 4 };

/*
 * A lock is created in the first usable folder, and looked for in all of them: a shell has
 * XDG_RUNTIME_DIR, cron does not.
 */
struct hx_cmd_run_folders {
	char paths[HX_RUN_FOLDERS_MAX][HX_RUN_PATH_SIZE];
	size_t make_count; /* a lock may be created in these */
	size_t count;
};

/* A boot id, a dash and 16 bytes of a hash, in hexadecimal. */
enum { HX_RUN_LOCK_NAME_SIZE = 2 * 16 + 1 + 2 * 16 + 1 };

/* Which key, in which store. */
struct hx_cmd_run_lock_key {
	const char *store_url;
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
};

/* A claim of some key. */
struct hx_cmd_run_lock_claim {
	uint64_t token;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
};

struct hx_cmd_run_lock {
	struct hx_cmd_run_folders folders;
	struct hx_cmd_run_lock_key key;
	char name[HX_RUN_LOCK_NAME_SIZE]; /* empty: there is no lock */
	int file;                         /* -1: not held */
	bool is_left;                     /* it holds a dead run's note that is not settled */
	char path[HX_RUN_PATH_SIZE];
	/*
	 * After TAKEN: the claims that free files name. After BUSY: the claim that the held file
	 * names.
	 */
	struct hx_cmd_run_lock_claim claims[HX_RUN_FOLDERS_MAX + 1];
	size_t claim_count;
};

/* Without memory for a name there is no lock: NONE. */
void hx_cmd_run_lock_init(struct hx_cmd_run_lock *lock, const struct hx_cmd_run_lock_key *key);

enum hx_cmd_run_lock_taken {
	HX_RUN_LOCK_TAKEN, /* we hold it */
	HX_RUN_LOCK_BUSY,  /* another process does */
	HX_RUN_LOCK_NONE,  /* no folder for it here */
};

/* Try to take the lock; TAKEN also if we hold it already. Never waits. */
enum hx_cmd_run_lock_taken hx_cmd_run_lock_take(struct hx_cmd_run_lock *lock);

/* After TAKEN: the run of record's claim died here. After BUSY: it is alive here. */
bool hx_cmd_run_lock_tells_of(
	const struct hx_cmd_run_lock *lock, const struct hapax_record *record);

/* No claim of the dead runs is left: remove their files. We hold the lock. */
void hx_cmd_run_lock_settle(struct hx_cmd_run_lock *lock);

/*
 * Note our claim in the lock that we hold. If that fails the lock still works, but our death stays
 * unknown until the lease lapses.
 */
void hx_cmd_run_lock_note(struct hx_cmd_run_lock *lock, const struct hapax_record *record);

/* Drop the lock and remove its file, unless is_left. Does nothing if the lock is not held. */
void hx_cmd_run_lock_drop(struct hx_cmd_run_lock *lock);

enum hx_cmd_run_lock_state {
	HX_RUN_LOCK_ABSENT,
	HX_RUN_LOCK_FREE, /* the run of record's claim died here */
	HX_RUN_LOCK_HELD,
};

/* The state of the lock, for people. record may be NULL: none. Takes nothing. */
enum hx_cmd_run_lock_state hx_cmd_run_lock_probe(
	struct hx_cmd_run_lock *lock, const struct hapax_record *record);

/*
 * Let the next run start beside the holder of the lock: its files lose their names. For a person
 * who was warned.
 */
void hx_cmd_run_lock_break(struct hx_cmd_run_lock *lock);

/*
 * Remove lock files that dead runs left behind; returns how many. store is open and has that URL. A
 * file is removed if no process holds it and it is no longer needed. It is needed while the claim
 * that it names exists: it shows that the run died here, so the next run need not wait for the
 * lease. A file of another store is left to that store.
 */
uint64_t hx_cmd_run_lock_gc(struct hapax_store *store, const char *store_url);

#endif
