/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_note.h - the content of a run's lock file: whose claim it is.
 *
 *	HOST
 *	TOKEN ATTEMPT-ID
 *	TENANT
 *	GROUP
 *	KEY, to the end of the file
 */
#ifndef HX_CLI_RUN_RUN_NOTE_H
#define HX_CLI_RUN_RUN_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/record.h>

/* A claim of some key. */
struct hx_cmd_run_note_claim {
	uint64_t token;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
};

/* Is it the current or the last claim of record? */
bool hx_cmd_run_note_claim_is_in(
	const struct hx_cmd_run_note_claim *claim, const struct hapax_record *record);

/* Room for the largest scope and key, and one byte to detect more. */
enum { HX_RUN_NOTE_SIZE = 4096 };

struct hx_cmd_run_note {
	struct hapax_bytes host; /* into bytes, like all below */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	struct hx_cmd_run_note_claim claim;
	char bytes[HX_RUN_NOTE_SIZE];
};

/* False: the file is empty, or not in our format. */
bool hx_cmd_run_note_read(int file, struct hx_cmd_run_note *ret);

/* Replace the content with record's claim on key. False: not written. */
bool hx_cmd_run_note_write(
	int file, const struct hapax_record *record, struct hapax_bytes tenant,
	struct hapax_bytes group, struct hapax_bytes key);

/* Was it written on a machine with our host name? */
bool hx_cmd_run_note_is_of_this_host(const struct hx_cmd_run_note *note);

#endif
