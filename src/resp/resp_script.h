/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_script.h - the known scripts, as rows of data: what each does, and where its arguments are.
 *
 * A row names a script by its SHA-1, or by its text. Two texts are the same script if they differ
 * only in blanks, line ends, semicolons, one-line comments, the kind of quotes or the case of
 * command names. None of these changes the meaning of the known scripts. Any other difference makes
 * a different script.
 *
 * Threads: any.
 */
#ifndef HX_RESP_RESP_SCRIPT_H
#define HX_RESP_RESP_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/bytes.h>

#include "base/sha1.h"

/* "Equal": the key has the value in the script's arguments. */
enum hx_resp_act {
	HX_RESP_ACT_REMOVE,     /* each key that is equal */
	HX_RESP_ACT_REMOVE_ALL, /* all keys, if all are equal */
	HX_RESP_ACT_RESET,      /* remove the key, whatever its value */
	HX_RESP_ACT_LOCK,       /* set all keys, if none exists */
	HX_RESP_ACT_OBTAIN, /* as LOCK; also if each value begins with the first ARGV[2] bytes */
	HX_RESP_ACT_EXTEND, /* set the expiry of all keys, if all are equal */
	HX_RESP_ACT_EXTEND_OR_LOCK,
	HX_RESP_ACT_PROLONG, /* EXTEND a key that expires; an ARGV[3] of 0 adds to the time left */
	HX_RESP_ACT_TIME_LEFT,
	HX_RESP_ACT_CHECK_AND_SET,     /* set the key, or return its value */
	HX_RESP_ACT_CHECK_AND_RESERVE, /* 0: set the key; 1: it exists */
};

enum hx_resp_script_reply {
	HX_RESP_SCRIPT_COUNT,   /* the number of keys changed */
	HX_RESP_SCRIPT_STATUS,  /* OK, or null */
	HX_RESP_SCRIPT_NUMBERS, /* yes, no or absent */
};

struct hx_resp_script {
	const char *sha1; /* in lower-case digits; NULL: known by its text */
	const char *text; /* in plain form; NULL: known by its SHA-1 */
	enum hx_resp_act act;
	unsigned key_count; /* the first is the lock; 0: any number, all are locks */
	unsigned arg_count; /* besides the keys */
	unsigned value;     /* its index in ARGV; the same for time */
	unsigned time;
	bool is_in_seconds; /* the time; false: in milliseconds */
	bool has_database;  /* ARGV[1] is the database */
	enum hx_resp_script_reply reply;
	int yes; /* TIME_LEFT: the reply if the key does not expire */
	int no;
	int absent; /* REMOVE: there is no key. PROLONG: it does not expire */
};

enum { HX_RESP_SHA1_DIGITS = 2 * HX_SHA1_SIZE };

/* By the text, or by its SHA-1 in digits; NULL: unknown. */
const struct hx_resp_script *hx_resp_script_find(struct hapax_bytes text);
const struct hx_resp_script *hx_resp_script_find_sha1(struct hapax_bytes digits);

/* A row by its index, NULL after the last; and the reverse. */
const struct hx_resp_script *hx_resp_script_at(unsigned index);
unsigned hx_resp_script_index(const struct hx_resp_script *script);

#endif
