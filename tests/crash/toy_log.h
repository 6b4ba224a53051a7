/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toy_log.h - the smallest store that survives a crash, and ways to get it wrong.
 *
 * It is here to test the tests: with no bug it must pass every crash run, with any one
 * of them it must be caught. Frames of whole pages, one for each submit, appended to one
 * file; a torn tail begins a new file. At most 80 keys, one caller.
 */
#ifndef TEST_CRASH_TOY_LOG_H
#define TEST_CRASH_TOY_LOG_H

#include <hapax/hapax.h>

#include "base/io.h"

enum toy_bug {
	TOY_ACK_BEFORE_SYNC = 1 << 0,    /* no fdatasync before the answer */
	TOY_NO_DIR_SYNC = 1 << 1,        /* a new file's name is not made durable */
	TOY_NO_CRC = 1 << 2,             /* a frame counts when its head looks right */
	TOY_UNPADDED = 1 << 3,           /* a new frame shares a page with an acknowledged one */
	TOY_RETRY_SYNC = 1 << 4,         /* a failed sync is repeated, and believed */
	TOY_ACK_ON_ERROR = 1 << 5,       /* a failed sync is answered OK */
	TOY_NO_LATCH = 1 << 6,           /* after a failure work goes on */
	TOY_CACHED_RECOVERY = 1 << 7,    /* reads what the page cache shows */
	TOY_TOKEN_FROM_RECORDS = 1 << 8, /* the largest token that is still there, plus one */
	TOY_SPLIT_SUBMIT = 1 << 9,       /* a frame for each operation, also within a group */
	TOY_SHORT_WRITE = 1 << 10,       /* what pwrite returns is not looked at */
	TOY_HALF_RECOVERY = 1 << 11,     /* the old file goes before the new one is durable */
	TOY_NO_SYNC_AT_OPEN = 1 << 12,   /* what is read may still be on its way to the disk */
	TOY_KEEP_FENCED = 1 << 13,       /* a refusal stays one, though its frame has failed */
};
enum { TOY_BUG_COUNT = 14 };

/* bugs: enum toy_bug, or-ed. */
enum hapax_status toy_log_open(
	const struct hx_io *io, const char *path, unsigned bugs,
	const struct hapax_store_options *options, struct hapax_store **ret_store,
	struct hapax_error *err);

#endif
