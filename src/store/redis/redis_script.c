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
	struct hx_resp_words command;
	enum hapax_status status;
	size_t size = 0;

	for (int i = 0; i < PARTS && texts[script][i] != NULL; i++)
		size += strlen(texts[script][i]);
	hx_resp_words_begin(&command, buf, 3);
	hx_resp_word_text(&command, "SCRIPT");
	hx_resp_word_text(&command, "LOAD");
	status = command.status == HAPAX_OK ? hx_buf_printf(buf, "$%zu\r\n", size) : command.status;
	for (int i = 0; i < PARTS && texts[script][i] != NULL && status == HAPAX_OK; i++)
		status = hx_buf_append(buf, texts[script][i], strlen(texts[script][i]));
	return status == HAPAX_OK ? hx_buf_append(buf, "\r\n", 2) : status;
}

/* "prefix:book" */
static void put_book(struct hx_resp_words *command, struct hapax_bytes prefix, const char *book)
{
	size_t book_size = strlen(book);
	char name[PREFIX_SIZE_MAX + 16];

	assert(prefix.size <= PREFIX_SIZE_MAX && book_size < 15);
	memcpy(name, prefix.data, prefix.size);
	name[prefix.size] = ':';
	memcpy(name + prefix.size + 1, book, book_size);
	hx_resp_word(command, hx_bytes(name, prefix.size + 1 + book_size));
}

void hx_redis_script_begin(
	struct hx_resp_words *command, struct hapax_buf *buf,
	const struct hx_redis_scripts *scripts, enum hx_redis_script script,
	struct hapax_bytes prefix, size_t record_count, size_t argument_count)
{
	size_t key_count = HX_REDIS_BOOKS + record_count;

	hx_resp_words_begin(command, buf, 3 + key_count + 2 + argument_count);
	hx_resp_word_text(command, "EVALSHA");
	hx_resp_word(command, hx_bytes(scripts->sha[script], HX_REDIS_SHA_SIZE));
	hx_resp_word_integer(command, (int64_t)key_count);
	for (size_t i = 0; i < HX_REDIS_BOOKS; i++)
		put_book(command, prefix, books[i]);
}

void hx_redis_script_arguments(
	struct hx_resp_words *command, struct hapax_bytes prefix, int64_t now_ms)
{
	if (now_ms < 0)
		hx_resp_word_text(command, "");
	else
		hx_resp_word_integer(command, now_ms);
	hx_resp_word(command, prefix);
}
