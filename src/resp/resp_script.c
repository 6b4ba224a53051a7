/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/resp_script.h"

#include <string.h>

#include "base/macros.h"

enum { PLAIN_SIZE = 1024 };

/* A script reduced to its significant characters. */
struct plain {
	size_t size;
	char text[PLAIN_SIZE];
};

#define IS_EQUAL "if redis.call('get',KEYS[1])==ARGV[1]then return "
#define HAS_TOKEN                                                                         \
	"local token=redis.call('get',KEYS[1])if not token or token~=ARGV[1]then return " \
	"0 end "

#define EACH_KEY   "for i,key in ipairs(KEYS)do "
#define SET_EACH   EACH_KEY "redis.call('set',key,ARGV[1],'px',ARGV[2])end "
#define LOCK_ALL   EACH_KEY "if redis.call('exists',key)==1 then return 0 end end " SET_EACH
#define EXTEND_ALL EACH_KEY "if redis.call('get',key)~=ARGV[1]then return 0 end end " SET_EACH

#define ONE_KEY .key_count = 1, .arg_count = 1
#define TIMED   .key_count = 1, .arg_count = 2, .time = 1
#define MANY    .arg_count = 2, .time = 1

/* Locks of Python's python-redis-lock have a second key, a list that wakes waiting clients. */
#define SIGNALED .key_count = 2, .arg_count = 2, .time = 1, .reply = HX_RESP_SCRIPT_NUMBERS

/* @sesamecare-oss/redlock of npm from 1.3 on: redlock 5 with a database before the value. */
#define DATABASE .arg_count = 3, .has_database = true, .value = 1, .time = 2

/* By text: the recipe of redis.io, in the words of those who use it. */
#define REMOVE(words)                                               \
	{                                                           \
		.text = (words), .act = HX_RESP_ACT_REMOVE, ONE_KEY \
	}
#define EXTEND(words)                                             \
	{                                                         \
		.text = (words), .act = HX_RESP_ACT_EXTEND, TIMED \
	}
#define LOCK_EACH(words)                                       \
	{                                                      \
		.text = (words), .act = HX_RESP_ACT_LOCK, MANY \
	}
#define EXTEND_EACH(words)                                       \
	{                                                        \
		.text = (words), .act = HX_RESP_ACT_EXTEND, MANY \
	}

static const struct hx_resp_script known[] = {
	REMOVE(IS_EQUAL "redis.call('del',KEYS[1])else return 0 end"),
	REMOVE(IS_EQUAL "redis.call('del',KEYS[1])end return 0"),
	EXTEND(IS_EQUAL "redis.call('pexpire',KEYS[1],ARGV[2])else return 0 end"),
	EXTEND(IS_EQUAL "redis.call('pexpire',KEYS[1],ARGV[2])end return 0"),
	/* redis-py */
	REMOVE(HAS_TOKEN "redis.call('del',KEYS[1])return 1"),
	EXTEND(HAS_TOKEN "redis.call('pexpire',KEYS[1],ARGV[2])return 1"),
	{.text = HAS_TOKEN
	 "local expiration=redis.call('pttl',KEYS[1])if not expiration then "
	 "expiration=0 end if expiration<0 then return 0 end local newttl=ARGV[2]if "
	 "ARGV[3]=='0'then newttl=ARGV[2]+expiration end "
	 "redis.call('pexpire',KEYS[1],newttl)return 1",
	 .act = HX_RESP_ACT_PROLONG,
	 .key_count = 1,
	 .arg_count = 3,
	 .time = 1,
	 .reply = HX_RESP_SCRIPT_NUMBERS,
	 .yes = 1},
	/* npm redlock 4 and 5 */
	LOCK_EACH(LOCK_ALL "return#KEYS"),
	LOCK_EACH(LOCK_ALL "return table.getn(KEYS)"),
	EXTEND_EACH(EXTEND_ALL "return#KEYS"),
	EXTEND_EACH(EXTEND_ALL "return table.getn(KEYS)"),
	{.text = "local count=0 " EACH_KEY "if redis.call('get',key)==ARGV[1]then "
		 "redis.pcall('del',key)count=count+1 end end return count",
	 .act = HX_RESP_ACT_REMOVE,
	 .arg_count = 1},
	/* Two that reserve a key for an event. The second one also counts in a hash; hapax has its
	   own counters. */
	{.text = "local key=KEYS[1]local value=ARGV[1]local ttl=ARGV[2]if "
		 "redis.call('exists',key)==1 then return redis.call('get',key)else "
		 "redis.call('setex',key,ttl,value)return nil end",
	 .act = HX_RESP_ACT_CHECK_AND_SET,
	 TIMED,
	 .is_in_seconds = true},
	{.text = "local key=KEYS[1]local ttl=ARGV[1]local timestamp=ARGV[2]if "
		 "redis.call('exists',key)==1 then "
		 "redis.call('hincrby','dedup_stats','duplicates',1)return 1 else "
		 "redis.call('setex',key,ttl,timestamp)"
		 "redis.call('hincrby','dedup_stats','processed',1)return 0 end",
	 .act = HX_RESP_ACT_CHECK_AND_RESERVE,
	 .key_count = 1,
	 .arg_count = 2,
	 .value = 1,
	 .is_in_seconds = true},
	/* Go: redsync from 4.12 on. Its other script is the recipe. */
	{.sha1 = "e950836ed1e694540c503ef9972b8de518044d3b",
	 .act = HX_RESP_ACT_REMOVE,
	 ONE_KEY,
	 .reply = HX_RESP_SCRIPT_NUMBERS,
	 .yes = 1,
	 .absent = -1},
	{.sha1 = "b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79",
	 .act = HX_RESP_ACT_EXTEND_OR_LOCK,
	 TIMED},
	/* Go: bsm/redislock 0.9 (the rest is the recipe), then 0.10 */
	{.sha1 = "80a1b5f2cfccec3b7119ba7721d2127682b691a7",
	 .act = HX_RESP_ACT_OBTAIN,
	 .key_count = 1,
	 .arg_count = 3,
	 .time = 2,
	 .reply = HX_RESP_SCRIPT_STATUS},
	{.sha1 = "6484da7d58920897fdc22b7f9afd1a3d47524ea8",
	 .act = HX_RESP_ACT_TIME_LEFT,
	 ONE_KEY,
	 .reply = HX_RESP_SCRIPT_NUMBERS,
	 .yes = -1,
	 .no = -3},
	{.sha1 = "eb0c00d98f6f33b4262419a509002884540f30be",
	 .act = HX_RESP_ACT_OBTAIN,
	 .arg_count = 3,
	 .time = 2,
	 .reply = HX_RESP_SCRIPT_STATUS},
	{.sha1 = "66e1084c2d842a7e8c271925aae90219fac4e129",
	 .act = HX_RESP_ACT_TIME_LEFT,
	 .arg_count = 1,
	 .reply = HX_RESP_SCRIPT_STATUS},
	{.sha1 = "5a22d7e8431313862816d4416b5e46dd70fc340d",
	 .act = HX_RESP_ACT_EXTEND,
	 MANY,
	 .reply = HX_RESP_SCRIPT_STATUS},
	{.sha1 = "9470c810040e272ee6c579d8d4331aaf6332a7b1",
	 .act = HX_RESP_ACT_REMOVE_ALL,
	 .arg_count = 1,
	 .reply = HX_RESP_SCRIPT_STATUS},
	/* Python: pottery 3. Its other scripts are the recipe. */
	{.sha1 = "f5f7bd3a3aa4a63c507c1155c5ea1219b350d992",
	 .act = HX_RESP_ACT_TIME_LEFT,
	 ONE_KEY,
	 .reply = HX_RESP_SCRIPT_NUMBERS},
	/* Python: python-redis-lock 3.6 to 4.0: release, extend, reset */
	{.sha1 = "90da91872223f85eb1376a17e3c4df21ace8c54b",
	 .act = HX_RESP_ACT_REMOVE,
	 SIGNALED,
	 .no = 1,
	 .absent = 1},
	{.sha1 = "fed16109024d968d9496e4140fe1355bac05ebff",
	 .act = HX_RESP_ACT_PROLONG,
	 SIGNALED,
	 .is_in_seconds = true,
	 .no = 1,
	 .absent = 2},
	{.sha1 = "afbc8014508f92e446b56567e8ba600e811c1bd5", .act = HX_RESP_ACT_RESET, SIGNALED},
	/* npm: @sesamecare-oss/redlock */
	{.sha1 = "1b77b94aa78451d55dfa97e18819bfbfc596cb5b", .act = HX_RESP_ACT_LOCK, DATABASE},
	{.sha1 = "820e9778d2b6733e9ed771e4be90ae73a95a6f3b", .act = HX_RESP_ACT_EXTEND, DATABASE},
	{.sha1 = "df51f6837dcfe303d334e6abea9aeae192bab216",
	 .act = HX_RESP_ACT_REMOVE,
	 .arg_count = 2,
	 .has_database = true,
	 .value = 1},
};

static char lower(char byte)
{
	if (byte >= 'A' && byte <= 'Z')
		byte = (char)(byte - 'A' + 'a');
	return byte;
}

/* Part of a name, a keyword or a number. */
static bool is_letter(char byte)
{
	return (lower(byte) >= 'a' && lower(byte) <= 'z') || (byte >= '0' && byte <= '9') ||
		byte == '_';
}

static bool is_line_end(char byte)
{
	return byte == '\r' || byte == '\n';
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || is_line_end(byte) || byte == ';';
}

/* False: too long to be a known script. */
static bool put(struct plain *plain, char byte)
{
	if (plain->size == PLAIN_SIZE)
		return false;
	plain->text[plain->size++] = byte;
	return true;
}

/* Skips to the end of the line, as in Lua. NULL: a comment that may have several lines. */
static const char *skip_comment(const char *at, const char *end)
{
	if (at < end && *at == '[')
		return NULL;
	while (at < end && !is_line_end(*at))
		at++;
	return at;
}

/*
 * Copies a string from its opening quote: the name of a command or option, in any case. NULL: any
 * other string, for example one with a blank.
 */
static const char *copy_string(struct plain *plain, const char *at, const char *end)
{
	char quote = *at++;

	if (!put(plain, '\''))
		return NULL;
	for (; at < end && is_letter(*at); at++) {
		if (!put(plain, lower(*at)))
			return NULL;
	}
	return at < end && *at == quote && put(plain, '\'') ? at + 1 : NULL;
}

/* Copies a byte of a name or a sign; a blank separates it from a preceding name. */
static const char *copy_byte(struct plain *plain, const char *at, bool was_blank)
{
	bool is_apart = was_blank && plain->size > 0 && is_letter(plain->text[plain->size - 1]) &&
		is_letter(*at);

	return (!is_apart || put(plain, ' ')) && put(plain, *at) ? at + 1 : NULL;
}

/* False: it contains something that no known script has. */
static bool make_plain(struct hapax_bytes text, struct plain *plain)
{
	const char *at = text.data;
	const char *end = text.size == 0 ? at : at + text.size;
	bool was_blank = false;

	while (at != NULL && at < end) {
		if (is_blank(*at)) {
			was_blank = true;
			at++;
		} else if (*at == '-' && end - at >= 2 && at[1] == '-') {
			was_blank = true;
			at = skip_comment(at + 2, end);
		} else {
			at = *at == '"' || *at == '\'' ? copy_string(plain, at, end)
						       : copy_byte(plain, at, was_blank);
			was_blank = false;
		}
	}
	return at == end;
}

const struct hx_resp_script *hx_resp_script_find(struct hapax_bytes text)
{
	struct plain plain = {.size = 0};

	if (!make_plain(text, &plain))
		return NULL;
	for (size_t i = 0; i < HX_COUNT(known); i++) {
		if (known[i].text != NULL && strlen(known[i].text) == plain.size &&
		    memcmp(known[i].text, plain.text, plain.size) == 0)
			return &known[i];
	}
	return NULL;
}

const struct hx_resp_script *hx_resp_script_find_sha1(struct hapax_bytes digits)
{
	const char *at = digits.data;

	if (digits.size != HX_RESP_SHA1_DIGITS)
		return NULL;
	for (size_t i = 0; i < HX_COUNT(known); i++) {
		size_t same = 0;

		while (known[i].sha1 != NULL && same < digits.size &&
		       lower(at[same]) == known[i].sha1[same])
			same++;
		if (same == digits.size)
			return &known[i];
	}
	return NULL;
}

const struct hx_resp_script *hx_resp_script_at(unsigned index)
{
	return index < HX_COUNT(known) ? &known[index] : NULL;
}

unsigned hx_resp_script_index(const struct hx_resp_script *script)
{
	return (unsigned)(script - known);
}
