/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/script.h"

#include <stdbool.h>
#include <string.h>

enum { PLAIN_SIZE = 1024 };

#define IS_EQUAL "if redis.call('get',keys[1])==argv[1]then return "
#define HAS_TOKEN                                                                         \
	"local token=redis.call('get',keys[1])if not token or token~=argv[1]then return " \
	"0 end "

/* In plain form: the recipe of redis.io and its variants, and the Lock of redis-py. */
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
	case HX_RESP_SCRIPT_REMOVE: return 1;
	case HX_RESP_SCRIPT_EXPIRE: return 2;
	case HX_RESP_SCRIPT_EXTEND: return 3;
	}
	return 0;
}
