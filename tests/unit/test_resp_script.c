/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts that are known, in the words of those who send them; whatever differs in meaning is not.
 */
#include "resp/resp_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

#define EXTEND_OF_REDIS_PY                                         \
	"\n"                                                       \
	"        local token = redis.call('get', KEYS[1])\n"       \
	"        if not token or token ~= ARGV[1] then\n"          \
	"            return 0\n"                                   \
	"        end\n"                                            \
	"        local expiration = redis.call('pttl', KEYS[1])\n" \
	"        if not expiration then\n"                         \
	"            expiration = 0\n"                             \
	"        end\n"                                            \
	"        if expiration < 0 then\n"                         \
	"            return 0\n"                                   \
	"        end\n"                                            \
	"\n"                                                       \
	"        local newttl = ARGV[2]\n"                         \
	"        if ARGV[3] == \"0\" then\n"                       \
	"            newttl = ARGV[2] + expiration\n"              \
	"        end\n"                                            \
	"        redis.call('pexpire', KEYS[1], newttl)\n"         \
	"        return 1\n"                                       \
	"    "

#define LOCK_OF_REDLOCK(count)                                     \
	"\n"                                                       \
	"  -- Return 0 if an entry already exists.\n"              \
	"  for i, key in ipairs(KEYS) do\n"                        \
	"    if redis.call(\"exists\", key) == 1 then\n"           \
	"      return 0\n"                                         \
	"    end\n"                                                \
	"  end\n"                                                  \
	"\n"                                                       \
	"  -- Create an entry for each provided key.\n"            \
	"  for i, key in ipairs(KEYS) do\n"                        \
	"    redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])\n" \
	"  end\n"                                                  \
	"\n"                                                       \
	"  -- Return the number of entries added.\n"               \
	"  return " count "\n"

#define EXTEND_OF_REDLOCK                                                   \
	"\n"                                                                \
	"  -- Return 0 if an entry exists with a *different* lock value.\n" \
	"  for i, key in ipairs(KEYS) do\n"                                 \
	"    if redis.call(\"get\", key) ~= ARGV[1] then\n"                 \
	"      return 0\n"                                                  \
	"    end\n"                                                         \
	"  end\n"                                                           \
	"\n"                                                                \
	"  -- Update the entry for each provided key.\n"                    \
	"  for i, key in ipairs(KEYS) do\n"                                 \
	"    redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])\n"          \
	"  end\n"                                                           \
	"\n"                                                                \
	"  -- Return the number of entries updated.\n"                      \
	"  return #KEYS\n"

#define UNLOCK_OF_REDLOCK                                     \
	"\n"                                                  \
	"  local count = 0\n"                                 \
	"  for i, key in ipairs(KEYS) do\n"                   \
	"    -- Only remove entries for *this* lock value.\n" \
	"    if redis.call(\"get\", key) == ARGV[1] then\n"   \
	"      redis.pcall(\"del\", key)\n"                   \
	"      count = count + 1\n"                           \
	"    end\n"                                           \
	"  end\n"                                             \
	"\n"                                                  \
	"  -- Return the number of entries removed.\n"        \
	"  return count\n"

#define CHECK_AND_SET                                              \
	"local key = KEYS[1] local value = ARGV[1]\n"              \
	"local ttl = ARGV[2]\n"                                    \
	"if redis.call('EXISTS', key) == 1\n"                      \
	"then return redis.call('GET', key) -- of the first one\n" \
	"else\n"                                                   \
	"  redis.call('SETEX', key, ttl, value)\n"                 \
	"  return nil -- ours\n"                                   \
	"end\n"

#define CHECK_AND_RESERVE                                           \
	"local key = KEYS[1] local ttl = ARGV[1]\n"                 \
	"local timestamp = ARGV[2]\n"                               \
	"if redis.call('EXISTS', key) == 1 then\n"                  \
	"  redis.call('HINCRBY', 'dedup_stats', 'duplicates', 1)\n" \
	"  return 1 -- seen before\n"                               \
	"else\n"                                                    \
	"  redis.call('SETEX', key, ttl, timestamp)\n"              \
	"  redis.call('HINCRBY', 'dedup_stats', 'processed', 1)\n"  \
	"  return 0\n"                                              \
	"end\n"

static const struct {
	const char *text;
	enum hx_resp_act act;
} known[] = {
	{"if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n    return redis.call(\"del\",KEYS[1])\n"
	 "else\n    return 0\nend",
	 HX_RESP_ACT_REMOVE},
	{"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], "
	 "ARGV[2]) else return 0 end",
	 HX_RESP_ACT_EXTEND},
	{"\n        local token = redis.call('get', KEYS[1])\n        if not token or token ~= "
	 "ARGV[1] then\n            return 0\n        end\n        redis.call('del', KEYS[1])\n"
	 "        return 1\n    ",
	 HX_RESP_ACT_REMOVE},
	{"\n        local token = redis.call('get', KEYS[1])\n        if not token or token ~= "
	 "ARGV[1] then\n            return 0\n        end\n        redis.call('pexpire', "
	 "KEYS[1], ARGV[2])\n        return 1\n    ",
	 HX_RESP_ACT_EXTEND},
	{EXTEND_OF_REDIS_PY, HX_RESP_ACT_PROLONG},
	{LOCK_OF_REDLOCK("#KEYS"), HX_RESP_ACT_LOCK},
	{LOCK_OF_REDLOCK("table.getn(KEYS)"), HX_RESP_ACT_LOCK},
	{EXTEND_OF_REDLOCK, HX_RESP_ACT_EXTEND},
	{UNLOCK_OF_REDLOCK, HX_RESP_ACT_REMOVE},
	{CHECK_AND_SET, HX_RESP_ACT_CHECK_AND_SET},
	{CHECK_AND_RESERVE, HX_RESP_ACT_CHECK_AND_RESERVE},
};

enum { KNOWN_COUNT = sizeof(known) / sizeof(known[0]) };

static const struct hx_resp_script *find(struct hapax_bytes text)
{
	const struct hx_resp_script *script = hx_resp_script_find(text);

	assert_non_null(script);
	return script;
}

static void exact_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		assert_int_equal(find(hapax_bytes_from_text(known[i].text))->act, known[i].act);
}

static bool is_in_comment(const char *text, size_t at)
{
	for (; at > 0 && text[at] != '\n'; at--) {
		if (text[at] == '-' && text[at - 1] == '-')
			return true;
	}
	return false;
}

static bool means_nothing(const char *text, size_t at)
{
	return text[at] == ' ' || text[at] == '\n' || is_in_comment(text, at) ||
		(text[at] == '-' && text[at + 1] == '-');
}

/* One byte less, or another one: it is another script. */
static void near_misses(void **state)
{
	char text[1024];

	(void)state;
	for (size_t i = 0; i < KNOWN_COUNT; i++) {
		size_t size = strlen(known[i].text);

		assert_true(size < sizeof(text));
		for (size_t at = 0; at < size; at++) {
			if (means_nothing(known[i].text, at))
				continue;
			memcpy(text, known[i].text, at);
			memcpy(text + at, known[i].text + at + 1, size - at - 1);
			if (hx_resp_script_find(hx_bytes(text, size - 1)) != NULL)
				fail_msg("script %zu without byte %zu", i, at);
			memcpy(text, known[i].text, size);
			text[at] = '!';
			if (hx_resp_script_find(hx_bytes(text, size)) != NULL)
				fail_msg("script %zu with another byte %zu", i, at);
		}
	}
}

static void unknown(void **state)
{
	char long_text[4096];

	(void)state;
	memset(long_text, 'x', sizeof(long_text));
	assert_null(hx_resp_script_find(hx_bytes(NULL, 0)));
	assert_null(hx_resp_script_find(hx_bytes(long_text, sizeof(long_text))));
	assert_null(hx_resp_script_find(HX_BYTES_LIT("--")));
	assert_null(hx_resp_script_find(HX_BYTES_LIT("return 1")));
}

#define IF_EQUAL "if redis.call('get',KEYS[1])==ARGV[1] then "
#define REMOVE   IF_EQUAL "return redis.call('del',KEYS[1]) else return 0 end"

/* To Lua they mean something else, or nothing at all. */
static void others(void **state)
{
	static const char *const texts[] = {
		/* What runs is behind the comment, or at the end of its line. */
		"--[[\n" REMOVE "\n--]] return redis.call('del',KEYS[1])",
		"--[==[\n" REMOVE "\n--]==] return 1",
		"-- first \r redis.call('del',KEYS[1]) --\n" REMOVE,
		/* What is in a string counts. */
		"if redis.call(' get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else "
		"return 0 end",
		IF_EQUAL "return redis.call('del;',KEYS[1]) else return 0 end",
		IF_EQUAL "return redis.call('d--el',KEYS[1]) else return 0 end",
		IF_EQUAL "return redis.call('del\\n',KEYS[1]) else return 0 end",
		IF_EQUAL "return redis.call('del\",KEYS[1]) else return 0 end",
		IF_EQUAL "return redis.call('del",
		/* Lua tells the case of letters. */
		"if redis.call('get',keys[1])==ARGV[1] then return redis.call('del',KEYS[1]) else "
		"return 0 end",
		"local Token=redis.call('get',KEYS[1])if not token or token~=ARGV[1] then return 0 "
		"end redis.call('del',KEYS[1])return 1",
	};

	(void)state;
	assert_int_equal(find(HX_BYTES_LIT(REMOVE))->act, HX_RESP_ACT_REMOVE);
	assert_int_equal(find(HX_BYTES_LIT("--\r" REMOVE "--"))->act, HX_RESP_ACT_REMOVE);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (hx_resp_script_find(hapax_bytes_from_text(texts[i])) != NULL)
			fail_msg("script %zu is taken for another one", i);
	}
}

/* Each row is found by its one name, and its arguments are among those that it has. */
static void rows(void **state)
{
	(void)state;
	for (unsigned i = 0; hx_resp_script_at(i) != NULL; i++) {
		const struct hx_resp_script *row = hx_resp_script_at(i);

		assert_int_equal(hx_resp_script_index(row), i);
		assert_true((row->sha1 == NULL) != (row->text == NULL));
		if (row->sha1 != NULL)
			assert_ptr_equal(
				hx_resp_script_find_sha1(hapax_bytes_from_text(row->sha1)), row);
		else
			assert_ptr_equal(find(hapax_bytes_from_text(row->text)), row);
		assert_true(row->value < row->arg_count && row->time < row->arg_count);
		assert_true(!row->has_database || row->value == 1);
	}
	assert_ptr_equal(
		hx_resp_script_find_sha1(HX_BYTES_LIT("E950836ED1E694540C503EF9972B8DE518044D3B")),
		hx_resp_script_find_sha1(HX_BYTES_LIT("e950836ed1e694540c503ef9972b8de518044d3b")));
	assert_null(
		hx_resp_script_find_sha1(HX_BYTES_LIT("e950836ed1e694540c503ef9972b8de518044d3")));
	assert_null(hx_resp_script_find_sha1(hx_bytes(NULL, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_texts), cmocka_unit_test(near_misses),
		cmocka_unit_test(unknown),     cmocka_unit_test(others),
		cmocka_unit_test(rows),
	};

	return cmocka_run_group_tests_name("resp_script", tests, NULL, NULL);
}
