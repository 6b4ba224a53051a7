/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.h - the scripts that are known, by what they mean.
 *
 * Two texts that differ in blanks, line ends, semicolons, comments, the kind of quotes or the
 * case of letters are the same script here: none of that changes what these mean.
 *
 * Threads: any.
 */
#ifndef HX_RESP_SCRIPT_H
#define HX_RESP_SCRIPT_H

#include <hapax/bytes.h>

#include "base/sha1.h"

enum hx_resp_script {
	HX_RESP_SCRIPT_NONE = 0,
	HX_RESP_SCRIPT_REMOVE, /* KEYS[1] if its value is ARGV[1] */
	HX_RESP_SCRIPT_EXPIRE, /* as above, PEXPIRE by ARGV[2] */
	HX_RESP_SCRIPT_EXTEND, /* as above, unless it is kept for ever; ARGV[3] 0: add to what is left */
};

enum { HX_RESP_SHA1_DIGITS = 2 * HX_SHA1_SIZE };

enum hx_resp_script hx_resp_script_find(struct hapax_bytes text);

/* How many arguments it has beside the key. */
size_t hx_resp_script_arg_count(enum hx_resp_script script);

#endif
