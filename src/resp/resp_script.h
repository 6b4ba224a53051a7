/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_script.h - the scripts that are known, by what they mean.
 *
 * Two texts that differ in blanks, line ends, semicolons, comments of one line, the kind of
 * quotes or the case of a command's name are the same script here: none of that changes what
 * these mean. Whatever else differs is another script.
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
	HX_RESP_SCRIPT_REMOVE, /* KEYS[1] if its value is ARGV[1] */
	HX_RESP_SCRIPT_EXPIRE, /* as above, PEXPIRE by ARGV[2] */
	HX_RESP_SCRIPT_EXTEND, /* as above, unless it is kept for ever; ARGV[3] 0: add to what is left */
	HX_RESP_SCRIPT_LOCK_ALL,   /* KEYS to ARGV[1] for ARGV[2] ms, if none is there: how many */
	HX_RESP_SCRIPT_EXTEND_ALL, /* as above, if each has ARGV[1] */
	HX_RESP_SCRIPT_REMOVE_ALL, /* those of KEYS that have ARGV[1]: how many */
	HX_RESP_SCRIPT_CHECK_AND_SET,     /* KEYS[1] to ARGV[1] for ARGV[2] s, or what is there */
	HX_RESP_SCRIPT_CHECK_AND_RESERVE, /* KEYS[1] to ARGV[2] for ARGV[1] s: 0, or 1 if it is there */
};

enum { HX_RESP_SHA1_DIGITS = 2 * HX_SHA1_SIZE };

enum hx_resp_script hx_resp_script_find(struct hapax_bytes text);

/* How many arguments it has beside the keys. */
size_t hx_resp_script_arg_count(enum hx_resp_script script);

/* Whether it may have more keys than one. */
bool hx_resp_script_has_keys(enum hx_resp_script script);

#endif
