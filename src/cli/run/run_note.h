/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_note.h - the content of a lock file: whose claim its run has.
 *
 *	HOST
 *	TOKEN ATTEMPT-ID
 *	TENANT
 *	GROUP
 *	KEY, to the end of the file
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_CLI_RUN_RUN_NOTE_H
#define HX_CLI_RUN_RUN_NOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/run/run_lock.h"

/* Room for the largest scope and key, and one byte to detect more. */
enum { HX_RUN_NOTE_SIZE = 4096 };

struct hx_cmd_run_note {
	struct hapax_bytes host; /* into bytes, like all below */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	struct hx_cmd_run_lock_claim claim;
	char bytes[HX_RUN_NOTE_SIZE];
};

/* Reads the first size bytes, less than all. False: they are not in this form. */
bool hx_cmd_run_note_parse(struct hx_cmd_run_note *note, size_t size);

#endif
