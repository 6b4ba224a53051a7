/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_script.h - the Lua scripts that run in the server, and the commands that run them.
 *
 * Every script begins with prelude.lua. The scripts of the usual operations also contain
 * operate.lua as a function, for the other cases. The server names a script by the SHA-1 of its
 * text, which it returns when it loads the script.
 */
#ifndef HX_STORE_REDIS_REDIS_SCRIPT_H
#define HX_STORE_REDIS_REDIS_SCRIPT_H

#include <stdint.h>

#include <hapax/error.h>

#include "wire/resp/resp.h"

enum hx_redis_script {
	HX_REDIS_OPERATE,
	HX_REDIS_CLAIM,
	HX_REDIS_COMPLETE,
	HX_REDIS_SWEEP,
	HX_REDIS_SCAN,
	HX_REDIS_STATS,
	HX_REDIS_COUNT,
	HX_REDIS_HOURS,
	HX_REDIS_RAISE,
};
enum { HX_REDIS_SCRIPT_COUNT = 9, HX_REDIS_SHA_SIZE = 40, HX_REDIS_BOOKS = 4 };

struct hx_redis_scripts {
	char sha[HX_REDIS_SCRIPT_COUNT][HX_REDIS_SHA_SIZE + 1];
};

/* SCRIPT LOAD of one of them. */
enum hapax_status hx_redis_script_load(struct hapax_buf *buf, enum hx_redis_script script);

/*
 * Begin EVALSHA with the books under prefix as its first keys. record_count keys follow, then the
 * time and the prefix (hx_redis_script_arguments()), then argument_count arguments.
 */
void hx_redis_script_begin(
	struct hx_resp_words *command, struct hapax_buf *buf,
	const struct hx_redis_scripts *scripts, enum hx_redis_script script,
	struct hapax_bytes prefix, size_t record_count, size_t argument_count);

/* The first two arguments: now_ms, or the server's time if that is negative, and the prefix. */
void hx_redis_script_arguments(
	struct hx_resp_words *command, struct hapax_bytes prefix, int64_t now_ms);

#endif
