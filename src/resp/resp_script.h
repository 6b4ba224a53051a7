/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_script.h - the known scripts, by their meaning.
 *
 * Two texts are the same script if they differ only in blanks, line ends, semicolons, one-line
 * comments, the kind of quotes or the case of command names. None of these changes the meaning of
 * the known scripts. Any other difference makes a different script.
 *
 * Threads: any.
 */
#ifndef HX_RESP_RESP_SCRIPT_H
#define HX_RESP_RESP_SCRIPT_H

#include <stdbool.h>

#include <hapax/bytes.h>

#include "base/sha1.h"

enum hx_resp_script {
	HX_RESP_SCRIPT_NONE = 0,
	HX_RESP_SCRIPT_REMOVE,     /* KEYS[1] if its value is ARGV[1] */
	HX_RESP_SCRIPT_EXPIRE,     /* as above, PEXPIRE by ARGV[2] */
	HX_RESP_SCRIPT_EXTEND,     /* as above, if it expires; ARGV[3] 0: add to the time left */
	HX_RESP_SCRIPT_LOCK_ALL,   /* KEYS to ARGV[1] for ARGV[2] ms, if none exists: number set */
	HX_RESP_SCRIPT_EXTEND_ALL, /* as above, if each has ARGV[1] */
	HX_RESP_SCRIPT_REMOVE_ALL, /* the KEYS whose value is ARGV[1]: number removed */
	HX_RESP_SCRIPT_CHECK_AND_SET, /* KEYS[1] to ARGV[1] for ARGV[2] s, or the existing value */
	HX_RESP_SCRIPT_CHECK_AND_RESERVE, /* KEYS[1] to ARGV[2] for ARGV[1] s: 0; 1 if it exists */
};

enum { HX_RESP_SHA1_DIGITS = 2 * HX_SHA1_SIZE };

enum hx_resp_script hx_resp_script_find(struct hapax_bytes text);

/* The number of arguments besides the keys. */
size_t hx_resp_script_arg_count(enum hx_resp_script script);

/* Whether it may have more than one key. */
bool hx_resp_script_has_keys(enum hx_resp_script script);

#endif
