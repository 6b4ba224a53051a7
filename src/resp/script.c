/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/script.h"

#include <string.h>

enum { PLAIN_SIZE = 1024 };

#define IS_EQUAL "if redis.call('get',keys[1])==argv[1]then return "
#define HAS_TOKEN                                                                         \
	"local token=redis.call('get',keys[1])if not token or token~=argv[1]then return " \
	"0 end "

#define EACH_KEY   "for i,key in ipairs(keys)do "
#define SET_EACH   EACH_KEY "redis.call('set',key,argv[1],'px',argv[2])end "
#define LOCK_ALL   EACH_KEY "if redis.call('exists',key)==1 then return 0 end end " SET_EACH
#define EXTEND_ALL EACH_KEY "if redis.call('get',key)~=argv[1]then return 0 end end " SET_EACH

/*
 * In plain form: the recipe of redis.io and its variants, the Lock of redis-py, redlock of
 * npm (3 is the recipe; 4 and 5 take several keys), and two that reserve a key for an event.
 * The last of these counts in a hash as well, which is left out: hapax counts by itself.
 */
static const struct {
	const char *text;
	enum hx_resp_script script;
} known[] = {
	{IS_EQUAL "redis.call('del',keys[1])else return 0 end", HX_RESP_SCRIPT_REMOVE},
	{IS_EQUAL "redis.call('del',keys[1])end return 0", HX_RESP_SCRIPT_REMOVE},
	{IS_EQUAL "redis.call('pexpire',keys[1],argv[2])else return 0 end", HX_RESP_SCRIPT_EXPIRE},
	{IS_EQUAL "redis.call('pexpire',keys[1],argv[2])end return 0", HX_RESP_SCRIPT_EXPIRE},
	{HAS_TOKEN "redis.call('del',keys[1])return 1", HX_RESP_SCRIPT_REMOVE},
	{HAS_TOKEN "redis.call('pexpire',keys[1],argv[2])return 1", HX_RESP_SCRIPT_EXPIRE},
	{HAS_TOKEN "local expiration=redis.call('pttl',keys[1])if not expiration then "
                   "expiration=0 end if expiration<0 then return 0 end local newttl=argv[2]if "
                   "argv[3]=='0'then newttl=argv[2]+expiration end "
                   "redis.call('pexpire',keys[1],newttl)return 1",
         HX_RESP_SCRIPT_EXTEND},
	{LOCK_ALL "return#keys", HX_RESP_SCRIPT_LOCK_ALL},
	{LOCK_ALL "return table.getn(keys)", HX_RESP_SCRIPT_LOCK_ALL},
	{EXTEND_ALL "return#keys", HX_RESP_SCRIPT_EXTEND_ALL},
	{EXTEND_ALL "return table.getn(keys)", HX_RESP_SCRIPT_EXTEND_ALL},
	{"local count=0 " EACH_KEY "if redis.call('get',key)==argv[1]then "
         "redis.pcall('del',key)count=count+1 end end return count",
         HX_RESP_SCRIPT_REMOVE_ALL},
	{"local key=keys[1]local value=argv[1]local ttl=argv[2]if redis.call('exists',key)==1 then "
         "return redis.call('get',key)else redis.call('setex',key,ttl,value)return nil end",
         HX_RESP_SCRIPT_CHECK_AND_SET},
	{"local key=keys[1]local ttl=argv[1]local timestamp=argv[2]if "
         "redis.call('exists',key)==1 then "
         "redis.call('hincrby','dedup_stats','duplicates',1)return 1 else "
         "redis.call('setex',key,ttl,timestamp)"
         "redis.call('hincrby','dedup_stats','processed',1)return 0 end",
         HX_RESP_SCRIPT_CHECK_AND_RESERVE},
};

static bool is_letter(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n' || byte == ';';
}

/* Its size, or PLAIN_SIZE: it is too long to be known. */
static size_t make_plain(struct hapax_bytes text, char plain[PLAIN_SIZE])
{
	const char *at = text.data;
	const char *end = text.size == 0 ? at : at + text.size;
	bool was_blank = false;
	size_t size = 0;

	while (at < end) {
		char byte = *at++;

		if (byte == '-' && at < end && *at == '-') {
			while (at < end && *at != '\n')
				at++;
			byte = ' ';
		}
		if (is_blank(byte)) {
			was_blank = true;
			continue;
		}
		if (byte >= 'A' && byte <= 'Z')
			byte = (char)(byte - 'A' + 'a');
		if (byte == '"')
			byte = '\'';
		if (size + 2 > PLAIN_SIZE)
			return PLAIN_SIZE;
		if (was_blank && size > 0 && is_letter(plain[size - 1]) && is_letter(byte))
			plain[size++] = ' ';
		plain[size++] = byte;
		was_blank = false;
	}
	return size;
}

enum hx_resp_script hx_resp_script_find(struct hapax_bytes text)
{
	char plain[PLAIN_SIZE];
	size_t size = make_plain(text, plain);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && size < PLAIN_SIZE; i++) {
		if (strlen(known[i].text) == size && memcmp(known[i].text, plain, size) == 0)
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
