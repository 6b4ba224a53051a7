/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_script.c - the Lua scripts that run in the server.
 */
#include "store/redis/redis_script.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/resp/resp.h"

/* Made from the .lua files beside this one. */
extern const char hx_redis_prelude_lua[];
extern const char hx_redis_operate_lua[];
extern const char hx_redis_claim_lua[];
extern const char hx_redis_complete_lua[];
extern const char hx_redis_sweep_lua[];
extern const char hx_redis_scan_lua[];
extern const char hx_redis_stats_lua[];
extern const char hx_redis_count_lua[];
extern const char hx_redis_hours_lua[];
extern const char hx_redis_raise_lua[];
extern const char hx_redis_usual_lua[];

enum { PARTS = 6, PREFIX_SIZE_MAX = 80 };

/* The text around the rules that makes them a function. */
#define FUNCTION "local function operate(KEYS, ARGV)\n"
#define END      "end\n"

/* The parts of each script, in order. */
static const char *const texts[HX_REDIS_SCRIPT_COUNT][PARTS] = {
	[HX_REDIS_OPERATE] = {hx_redis_prelude_lua, hx_redis_operate_lua},
	[HX_REDIS_CLAIM] =
		{FUNCTION, hx_redis_prelude_lua, hx_redis_operate_lua, END, hx_redis_usual_lua,
		 hx_redis_claim_lua},
	[HX_REDIS_COMPLETE] =
		{FUNCTION, hx_redis_prelude_lua, hx_redis_operate_lua, END, hx_redis_usual_lua,
		 hx_redis_complete_lua},
	[HX_REDIS_SWEEP] = {hx_redis_prelude_lua, hx_redis_sweep_lua},
	[HX_REDIS_SCAN] = {hx_redis_prelude_lua, hx_redis_scan_lua},
	[HX_REDIS_STATS] = {hx_redis_prelude_lua, hx_redis_stats_lua},
	[HX_REDIS_COUNT] = {hx_redis_prelude_lua, hx_redis_count_lua},
	[HX_REDIS_HOURS] = {hx_redis_prelude_lua, hx_redis_hours_lua},
	[HX_REDIS_RAISE] = {hx_redis_prelude_lua, hx_redis_raise_lua},
};

/* In the order in which prelude.lua has them. */
static const char *const books[HX_REDIS_BOOKS] = {"meta", "due", "keys", "parked"};

enum hapax_status hx_redis_script_load(struct hapax_buf *buf, enum hx_redis_script script)
{
	size_t size = 0;
	enum hapax_status status = hx_resp_put_array(buf, 3);

	for (int i = 0; i < PARTS && texts[script][i] != NULL; i++)
		size += strlen(texts[script][i]);
	if (status == HAPAX_OK)
		status = hx_resp_put_text(buf, "SCRIPT");
	if (status == HAPAX_OK)
		status = hx_resp_put_text(buf, "LOAD");
	if (status == HAPAX_OK)
		status = hx_buf_printf(buf, "$%zu\r\n", size);
	for (int i = 0; i < PARTS && texts[script][i] != NULL && status == HAPAX_OK; i++)
		status = hx_buf_append(buf, texts[script][i], strlen(texts[script][i]));
	return status == HAPAX_OK ? hx_buf_append(buf, "\r\n", 2) : status;
}

/* "prefix:book" */
static enum hapax_status put_book(
	struct hapax_buf *buf, struct hapax_bytes prefix, const char *book)
{
	size_t book_size = strlen(book);
	char name[PREFIX_SIZE_MAX + 16];

	assert(prefix.size <= PREFIX_SIZE_MAX && book_size < 15);
	memcpy(name, prefix.data, prefix.size);
	name[prefix.size] = ':';
	memcpy(name + prefix.size + 1, book, book_size);
	return hx_resp_put_bulk(buf, hx_bytes(name, prefix.size + 1 + book_size));
}

enum hapax_status hx_redis_script_begin(
	struct hapax_buf *buf, const struct hx_redis_scripts *scripts, enum hx_redis_script script,
	struct hapax_bytes prefix, size_t record_count, size_t argument_count)
{
	size_t key_count = HX_REDIS_BOOKS + record_count;
	enum hapax_status status = hx_resp_put_array(buf, 3 + key_count + 2 + argument_count);

	if (status == HAPAX_OK)
		status = hx_resp_put_text(buf, "EVALSHA");
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk(buf, hx_bytes(scripts->sha[script], HX_REDIS_SHA_SIZE));
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk_integer(buf, (int64_t)key_count);
	for (size_t i = 0; i < HX_REDIS_BOOKS && status == HAPAX_OK; i++)
		status = put_book(buf, prefix, books[i]);
	return status;
}

enum hapax_status hx_redis_script_arguments(
	struct hapax_buf *buf, struct hapax_bytes prefix, int64_t now_ms)
{
	enum hapax_status status =
		now_ms < 0 ? hx_resp_put_text(buf, "") : hx_resp_put_bulk_integer(buf, now_ms);

	return status == HAPAX_OK ? hx_resp_put_bulk(buf, prefix) : status;
}
