/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lock.h - one run of a key at a time, on this host.
 *
 * A lease tells that nothing was heard of a run; on the host where it runs a lock can
 * tell more. Whoever may be about to start a command holds flock(2) on a file named
 * after the key, from before it looks at the record; the command inherits the lock. So
 * it is held as long as one of the two lives, whatever has become of the record by then:
 * swept, forgotten, taken over by another host.
 *
 *	held    somebody decides or runs here: nobody else starts
 *	free    and its note names the record's claim: that run died; the claim is given
 *	        back at once, nobody waits for the lease
 *	absent  nobody here; another host may run: only the lease decides
 *
 * (1) Only who holds the lock writes into the file or removes it, and it is removed
 *     while it is locked. Whoever locks a file that has lost its name opens anew, so
 *     there is one holder for a name. (hx_cmd_run_lock_break() is for people who insist.)
 * (2) The note is written after the claim and before the command starts. Dying between
 *     claim and note leaves a claim that no note names: only the lease decides.
 * (3) The file is removed when the outcome is stored, or when it is known that it will
 *     not be. A free file with a note never belonged to a run that ended in order.
 * (4) The name holds the boot: a folder may be shared with other hosts, where the lock
 *     need not be seen, and outlive a reboot.
 * (5) A lock is made in the first folder that can be used, and looked for in all others
 *     only then: of two who begin in different folders at least one sees the other.
 */
#ifndef HX_CLI_RUN_RUN_LOCK_H
#define HX_CLI_RUN_RUN_LOCK_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/record.h>

#include "cli/run/run_folder.h"
#include "cli/run/run_note.h"

/* A boot id and 16 bytes of a hash, in hexadecimal, with a dash between them. */
enum { HX_RUN_LOCK_NAME_SIZE = 2 * 16 + 1 + 2 * 16 + 1 };

/* Which key, in which store. */
struct hx_cmd_run_lock_key {
	const char *store_url;
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
};

/* The name of a key's lock in this boot. False: there is no memory to make it. */
bool hx_cmd_run_lock_name(const struct hx_cmd_run_lock_key *key, char ret[HX_RUN_LOCK_NAME_SIZE]);

struct hx_cmd_run_lock {
	const struct hx_cmd_run_folders *folders;
	struct hx_cmd_run_lock_key key;
	char name[HX_RUN_LOCK_NAME_SIZE]; /* empty: there is no lock */
	int file;                         /* -1: not held */
	bool is_left;                     /* a dead run's note is in it, and not settled */
	char path[HX_RUN_PATH_SIZE];
	/* After TAKEN: of whom free files tell. After BUSY: of whom the held one does. */
	struct hx_cmd_run_note_claim claims[HX_RUN_FOLDERS_MAX + 1];
	size_t claim_count;
};

/* Without memory for a name there is no lock: NONE. */
void hx_cmd_run_lock_init(
	struct hx_cmd_run_lock *lock, const struct hx_cmd_run_folders *folders,
	const struct hx_cmd_run_lock_key *key);

enum hx_cmd_run_lock_taken {
	HX_RUN_LOCK_TAKEN, /* we hold it */
	HX_RUN_LOCK_BUSY,  /* another process does */
	HX_RUN_LOCK_NONE,  /* it cannot be had here: there is no folder for it */
};

/* Try to take the lock; TAKEN also when we hold it already. Never waits. */
enum hx_cmd_run_lock_taken hx_cmd_run_lock_take(struct hx_cmd_run_lock *lock);

/* After TAKEN: the run of record's claim died here. After BUSY: it lives here. */
bool hx_cmd_run_lock_tells_of(
	const struct hx_cmd_run_lock *lock, const struct hapax_record *record);

/* Of the runs that died no claim is left: their files may go. We hold the lock. */
void hx_cmd_run_lock_settle(struct hx_cmd_run_lock *lock);

/*
 * Note our claim in the lock that we hold. Where that fails the lock does what it must;
 * only our death will not be known before the lease ends.
 */
void hx_cmd_run_lock_note(struct hx_cmd_run_lock *lock, const struct hapax_record *record);

/* Give the lock up and remove its file, unless is_left. Nothing happens when it is not held. */
void hx_cmd_run_lock_drop(struct hx_cmd_run_lock *lock);

enum hx_cmd_run_lock_state {
	HX_RUN_LOCK_ABSENT,
	HX_RUN_LOCK_FREE, /* the run of record's claim died here */
	HX_RUN_LOCK_HELD,
};

/* How it stands, for people. record may be NULL: there is none. Takes nothing. */
enum hx_cmd_run_lock_state hx_cmd_run_lock_probe(
	struct hx_cmd_run_lock *lock, const struct hapax_record *record);

/*
 * Let the next one start beside whoever holds the lock: its files lose their names. For
 * a person who was told so.
 */
void hx_cmd_run_lock_break(struct hx_cmd_run_lock *lock);

/*
 * Lock a file that is there, without waiting. The file, or negative: it is not there, or
 * somebody holds it.
 */
int hx_cmd_run_lock_file(const char *path);

#endif
