/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_code.h - what the program's exit codes mean, for every command alike.
 *
 * The numbers are those of sysexits.h where it has one that fits. One distinction
 * must survive into scripts: after STORE nothing was done, after IO nobody knows.
 * The table for users stands in man/hapax.1.
 */
#ifndef HX_CLI_FRAME_EXIT_CODE_H
#define HX_CLI_FRAME_EXIT_CODE_H

enum hx_exit {
	HX_EXIT_OK = 0,        /* first, found, removed */
	HX_EXIT_NO = 1,        /* duplicate, absent */
	HX_EXIT_USAGE = 64,    /* an option, a key, a setting: what the caller typed */
	HX_EXIT_MISMATCH = 65, /* same key, other payload */
	HX_EXIT_DATA = 65,     /* input that is not what it should be */
	HX_EXIT_NO_INPUT = 66, /* a file that was named could not be read */
	HX_EXIT_STORE = 69,    /* the store was not reached, is full or too new; nothing was done */
	HX_EXIT_SOFTWARE = 70, /* a fault in hapax itself */
	HX_EXIT_OS = 71,       /* no memory */
	HX_EXIT_IO = 74,     /* corrupt bytes, an unknown outcome, an answer that was not written */
	HX_EXIT_BUSY = 75,   /* in progress or parked: try again later */
	HX_EXIT_FENCED = 77, /* the token does not hold the key */
	HX_EXIT_CONFIG = 78, /* a configuration that is wrong */
	HX_EXIT_WRAPPER = 125,     /* run: a failure of hapax itself, not of the command */
	HX_EXIT_NOT_STARTED = 126, /* run: the command was found and did not start */
	HX_EXIT_NOT_FOUND = 127,   /* run: there is no such command */
	HX_EXIT_SIGNAL = 128,      /* plus the number of the signal that ended the work */
};

#endif
