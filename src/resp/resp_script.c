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

/*
 * In plain form: the recipe of redis.io and its variants, the Lock of redis-py, redlock of npm (3
 * is the recipe; 4 and 5 take several keys), and two that reserve a key for an event. The last one
 * also counts in a hash. This is left out: hapax has its own counters.
 */
static const struct {
	const char *text;
	enum hx_resp_script script;
} known[] = {
	{IS_EQUAL "redis.call('del',KEYS[1])else return 0 end", HX_RESP_SCRIPT_REMOVE},
	{IS_EQUAL "redis.call('del',KEYS[1])end return 0", HX_RESP_SCRIPT_REMOVE},
	{IS_EQUAL "redis.call('pexpire',KEYS[1],ARGV[2])else return 0 end", HX_RESP_SCRIPT_EXPIRE},
	{IS_EQUAL "redis.call('pexpire',KEYS[1],ARGV[2])end return 0", HX_RESP_SCRIPT_EXPIRE},
	{HAS_TOKEN "redis.call('del',KEYS[1])return 1", HX_RESP_SCRIPT_REMOVE},
	{HAS_TOKEN "redis.call('pexpire',KEYS[1],ARGV[2])return 1", HX_RESP_SCRIPT_EXPIRE},
	{HAS_TOKEN "local expiration=redis.call('pttl',KEYS[1])if not expiration then "
		   "expiration=0 end if expiration<0 then return 0 end local newttl=ARGV[2]if "
		   "ARGV[3]=='0'then newttl=ARGV[2]+expiration end "
		   "redis.call('pexpire',KEYS[1],newttl)return 1",
	 HX_RESP_SCRIPT_EXTEND},
	{LOCK_ALL "return#KEYS", HX_RESP_SCRIPT_LOCK_ALL},
	{LOCK_ALL "return table.getn(KEYS)", HX_RESP_SCRIPT_LOCK_ALL},
	{EXTEND_ALL "return#KEYS", HX_RESP_SCRIPT_EXTEND_ALL},
	{EXTEND_ALL "return table.getn(KEYS)", HX_RESP_SCRIPT_EXTEND_ALL},
	{"local count=0 " EACH_KEY "if redis.call('get',key)==ARGV[1]then "
	 "redis.pcall('del',key)count=count+1 end end return count",
	 HX_RESP_SCRIPT_REMOVE_ALL},
	{"local key=KEYS[1]local value=ARGV[1]local ttl=ARGV[2]if redis.call('exists',key)==1 then "
	 "return redis.call('get',key)else redis.call('setex',key,ttl,value)return nil end",
	 HX_RESP_SCRIPT_CHECK_AND_SET},
	{"local key=KEYS[1]local ttl=ARGV[1]local timestamp=ARGV[2]if "
	 "redis.call('exists',key)==1 then "
	 "redis.call('hincrby','dedup_stats','duplicates',1)return 1 else "
	 "redis.call('setex',key,ttl,timestamp)"
	 "redis.call('hincrby','dedup_stats','processed',1)return 0 end",
	 HX_RESP_SCRIPT_CHECK_AND_RESERVE},
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

enum hx_resp_script hx_resp_script_find(struct hapax_bytes text)
{
	struct plain plain = {.size = 0};

	if (!make_plain(text, &plain))
		return HX_RESP_SCRIPT_NONE;
	for (size_t i = 0; i < HX_COUNT(known); i++) {
		if (strlen(known[i].text) == plain.size &&
		    memcmp(known[i].text, plain.text, plain.size) == 0)
			return known[i].script;
	}
	return HX_RESP_SCRIPT_NONE;
}

size_t hx_resp_script_arg_count(enum hx_resp_script script)
{
	switch (script) {
	case HX_RESP_SCRIPT_NONE: break;
	case HX_RESP_SCRIPT_REMOVE:
	case HX_RESP_SCRIPT_REMOVE_ALL: return 1;
	case HX_RESP_SCRIPT_EXPIRE:
	case HX_RESP_SCRIPT_LOCK_ALL:
	case HX_RESP_SCRIPT_EXTEND_ALL:
	case HX_RESP_SCRIPT_CHECK_AND_SET:
	case HX_RESP_SCRIPT_CHECK_AND_RESERVE: return 2;
	case HX_RESP_SCRIPT_EXTEND: return 3;
	}
	return 0;
}

bool hx_resp_script_has_keys(enum hx_resp_script script)
{
	return script == HX_RESP_SCRIPT_LOCK_ALL || script == HX_RESP_SCRIPT_EXTEND_ALL ||
		script == HX_RESP_SCRIPT_REMOVE_ALL;
}
