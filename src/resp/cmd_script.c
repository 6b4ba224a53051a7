/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_script.c - DELEX, and EVAL of the scripts that lock libraries send.
 *
 * There is no interpreter. The scripts of resp_script.h are recognized by their text or its SHA-1
 * and run as equivalent store operations (script_act.h). Any other script is refused.
 */
#include "base/bytes.h"
#include "base/hex.h"
#include "resp/resp_command.h"
#include "resp/commands.h"
#include "resp/resp_script.h"
#include "resp/script_act.h"

/* DELEX key [IFEQ value], as in Redis 8.4. */
void hx_resp_plan_delex(struct hx_resp_call *call)
{
	struct hapax_bytes kept;

	if (call->argc == 2)
		hx_resp_plan_del(call);
	else if (call->argc != 4 || !hx_resp_is_word(call->argv[2], "IFEQ"))
		hx_resp_refuse_syntax(call);
	else if (hx_resp_keep(call, call->argv[3], &kept))
		(void)hx_resp_add_remove_equal(call, call->argv[1], kept, hx_resp_finish_applied);
}

/* ---------------------------------------------------------------- known scripts */

#define UNKNOWN                                                                      \
	"ERR unknown script; hapax runs no Lua, only the scripts of the locks that " \
	"docs/redis-protocol.md lists: use one of them, or SET with NX and DELEX with IFEQ"

static void plan_script(struct hx_resp_call *call, const struct hx_resp_script *script)
{
	struct hx_resp_script_keys keys = {.first = &call->argv[3]};
	int64_t count;

	if (!hx_resp_integer_arg(call, call->argv[2], &count))
		return;
	if (count < 0 || count > (int64_t)(call->argc - 3)) {
		hx_resp_refuse(
			call,
			count < 0 ? "ERR Number of keys can't be negative"
				  : "ERR Number of keys can't be greater than number of args");
		return;
	}
	keys.count = (size_t)count;
	keys.args = keys.first + keys.count;
	if (call->argc - 3 - keys.count < script->arg_count)
		hx_resp_refuse(call, "ERR this script has more arguments");
	else if (keys.count == 0 || (script->key_count > 0 && keys.count != script->key_count))
		hx_resp_refuse_format(
			call, "ERR this script has %s",
			script->key_count == 2 ? "two keys" : "one key");
	else
		hx_resp_script_act(call, script, &keys);
}

/* Remembers its SHA-1. NULL: refused. */
static const struct hx_resp_script *learn(
	struct hx_resp_call *call, struct hapax_bytes text, char digits[HX_RESP_SHA1_DIGITS + 1])
{
	const struct hx_resp_script *script;
	unsigned char sha1[HX_SHA1_SIZE];

	if (!hx_sha1(text.data, text.size, sha1)) {
		hx_resp_refuse(call, "ERR SHA-1 is not available on this machine");
		return NULL;
	}
	hx_hex_encode(sha1, sizeof(sha1), digits);
	digits[HX_RESP_SHA1_DIGITS] = '\0';
	script = hx_resp_script_find_sha1(hx_bytes(digits, HX_RESP_SHA1_DIGITS));
	if (script != NULL)
		return script;
	script = hx_resp_script_find(text);
	if (script == NULL)
		hx_resp_refuse(call, UNKNOWN);
	else
		hx_resp_service_learn(call->service, digits, script);
	return script;
}

void hx_resp_plan_eval(struct hx_resp_call *call)
{
	char digits[HX_RESP_SHA1_DIGITS + 1];
	const struct hx_resp_script *script = learn(call, call->argv[1], digits);

	if (script != NULL)
		plan_script(call, script);
}

void hx_resp_plan_evalsha(struct hx_resp_call *call)
{
	const struct hx_resp_script *script = hx_resp_service_recall(call->service, call->argv[1]);

	if (script == NULL)
		hx_resp_refuse(call, "NOSCRIPT No matching script. Please use EVAL.");
	else
		plan_script(call, script);
}

void hx_resp_plan_script_load(struct hx_resp_call *call)
{
	char digits[HX_RESP_SHA1_DIGITS + 1];

	if (learn(call, call->argv[2], digits) != NULL)
		(void)hx_resp_put_text(call->text, digits);
}

void hx_resp_plan_script_exists(struct hx_resp_call *call)
{
	enum hapax_status status = hx_resp_put_array(call->text, call->argc - 2);

	for (size_t i = 2; i < call->argc && status == HAPAX_OK; i++)
		status = hx_resp_put_integer(
			call->text, hx_resp_service_recall(call->service, call->argv[i]) != NULL);
	if (status != HAPAX_OK)
		call->session->is_closing = call->session->is_abrupt = true;
}
