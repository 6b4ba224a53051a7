/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_code.h - the exit codes of all commands.
 *
 * The numbers are those of sysexits.h if it has one that fits. Scripts need one distinction: after
 * STORE nothing was done, after IO the outcome is unknown. man/hapax.1 has the table for users.
 */
#ifndef HX_CLI_FRAME_EXIT_CODE_H
#define HX_CLI_FRAME_EXIT_CODE_H

enum hx_exit {
	HX_EXIT_OK = 0,        /* first, found, removed */
	HX_EXIT_NO = 1,        /* duplicate, absent, in conflict */
	HX_EXIT_USAGE = 64,    /* an option, a key, a setting: what the caller typed */
	HX_EXIT_MISMATCH = 65, /* same key, different payload */
	HX_EXIT_DATA = 65,     /* malformed input */
	HX_EXIT_NO_INPUT = 66, /* a named file could not be read */
	HX_EXIT_STORE = 69,    /* the store is unreachable, full or too new; nothing was done */
	HX_EXIT_SOFTWARE = 70, /* a fault in hapax itself */
	HX_EXIT_OS = 71,       /* no memory */
	HX_EXIT_IO = 74,       /* corrupt bytes, unknown outcome, or output that was not written */
	HX_EXIT_BUSY = 75,     /* in progress or parked: retry later */
	HX_EXIT_FENCED = 77,   /* the token does not hold the key */
	HX_EXIT_CONFIG = 78,   /* an invalid configuration */
	HX_EXIT_WRAPPER = 125, /* run: a failure of hapax itself, not of the command */
	HX_EXIT_NOT_STARTED = 126, /* run: the command was found but did not start */
	HX_EXIT_NOT_FOUND = 127,   /* run: the command was not found */
	HX_EXIT_SIGNAL = 128,      /* plus the number of the signal that ended the work */
};

#endif
