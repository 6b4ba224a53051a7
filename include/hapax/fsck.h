/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsck.h - verify, and optionally repair, the files of a "file:DIR" store that is not open.
 *
 * Verifying reads every byte and writes nothing. Repairing creates a new store from all readable
 * records and puts it in place of the damaged one, which stays beside it.
 *
 * Threads: any. Blocks.
 */
#ifndef HAPAX_FSCK_H
#define HAPAX_FSCK_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>
#include <hapax/export.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hapax_fsck_flags {
	/*
	 * Repair damage. Unreadable keys are forgotten, and their work may run again. New tokens
	 * begin 2^40 above the last one found.
	 */
	HAPAX_FSCK_REPAIR_ACCEPT_LOSS = 1 << 0,
};

enum hapax_fsck_kind {
	HAPAX_FSCK_NOTE = 0, /* unusual but harmless */
	HAPAX_FSCK_CUT = 1,  /* a tail that was never acknowledged; the next open cuts it */
	HAPAX_FSCK_DAMAGE =
		2, /* acknowledged data is damaged or missing: the store does not open */
};

struct hapax_fsck_problem {
	enum hapax_fsck_kind kind;
	const char *file; /* name in the directory; "" for the whole store */
	uint64_t offset;
	uint64_t lsn;              /* the first lost entry; 0: unknown */
	uint64_t keys_at_risk_max; /* damage: an upper bound; 0: unknown */
	const char *what;          /* a sentence */
};

/* Borrowed for the length of the call. */
typedef void hapax_fsck_problem_fn(const struct hapax_fsck_problem *problem, void *context);
typedef void hapax_fsck_progress_fn(uint64_t bytes_done, uint64_t bytes_total, void *context);

enum { HAPAX_FSCK_PATH_SIZE = 4096 };

struct hapax_fsck {
	size_t size;                      /* set by HAPAX_FSCK_INIT */
	unsigned flags;                   /* in: enum hapax_fsck_flags */
	hapax_fsck_problem_fn *problem;   /* in: may be NULL */
	hapax_fsck_progress_fn *progress; /* in: may be NULL */
	void *context;                    /* in: for both */

	/* Out, as far as the check got. */
	unsigned char uuid[16];
	int64_t created_ms;
	uint64_t segments;
	uint64_t bytes;    /* read */
	uint64_t records;  /* record versions read; a key may have several */
	uint64_t removals; /* entries that remove a record */
	uint64_t token;    /* no higher token was issued */
	uint64_t lsn;      /* of the next entry */
	int is_closed;     /* the store was closed cleanly */
	uint64_t notes;
	uint64_t cuts;
	uint64_t damages;
	uint64_t salvaged; /* repair: keys in the new store */
	uint64_t unread;   /* repair: segments that are unreadable or belong to another store */
	char damaged_path[HAPAX_FSCK_PATH_SIZE]; /* repair: where the damaged store is now */
};

#define HAPAX_FSCK_INIT                           \
	{                                         \
		.size = sizeof(struct hapax_fsck) \
	}

/*
 * Verify the store in directory path. OK: sound, or repaired (then damages counts the damage).
 * CORRUPT: damaged; problem was called for each damage. INVALID: the directory has no store.
 * UNAVAILABLE: the store is in use or cannot be read. UNSUPPORTED: the format is newer; this
 * version can neither verify nor repair it.
 */
HAPAX_API enum hapax_status hapax_fsck(
	const char *path, struct hapax_fsck *fsck, struct hapax_error *err);

#ifdef __cplusplus
}
#endif

#endif
