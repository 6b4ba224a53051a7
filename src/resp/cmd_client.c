/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_client.c - CLIENT and its subcommands.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "resp/client_name.h"
#include "resp/resp_command.h"
#include "resp/commands.h"

static bool is_printable(struct hapax_bytes name)
{
	const unsigned char *at = name.data;

	for (size_t i = 0; i < name.size; i++) {
		if (at[i] < '!' || at[i] > '~')
			return false;
	}
	return true;
}

bool hx_resp_client_name_check(struct hx_resp_call *call, struct hapax_bytes name)
{
	if (!is_printable(name))
		return hx_resp_refuse(
			call,
			"ERR Client names cannot contain spaces, newlines or special characters.");
	return name.size < HX_RESP_NAME_SIZE ||
		hx_resp_refuse(call, "ERR a client name must be at most 128 bytes long");
}

void hx_resp_client_name_set(char target[HX_RESP_NAME_SIZE], struct hapax_bytes name)
{
	if (name.size > 0)
		memcpy(target, name.data, name.size);
	target[name.size] = '\0';
}

void hx_resp_plan_client_id(struct hx_resp_call *call)
{
	(void)hx_resp_put_integer(call->text, (int64_t)call->session->id);
}

void hx_resp_plan_client_getname(struct hx_resp_call *call)
{
	if (call->session->name[0] == '\0')
		(void)hx_resp_put_null(call->text, call->session->protocol);
	else
		(void)hx_resp_put_text(call->text, call->session->name);
}

void hx_resp_plan_client_setname(struct hx_resp_call *call)
{
	if (!hx_resp_client_name_check(call, call->argv[2]))
		return;
	hx_resp_client_name_set(call->session->name, call->argv[2]);
	(void)hx_resp_put_simple(call->text, "OK");
}

void hx_resp_plan_client_setinfo(struct hx_resp_call *call)
{
	bool is_name = hx_resp_is_word(call->argv[2], "LIB-NAME");

	if (!is_name && !hx_resp_is_word(call->argv[2], "LIB-VER")) {
		hx_resp_refuse_format(
			call, "ERR Unrecognized option '%.*s'", HX_RESP_SHOWN(call->argv[2]));
		return;
	}
	if (!is_printable(call->argv[3]) || call->argv[3].size >= HX_RESP_NAME_SIZE) {
		hx_resp_refuse_format(
			call, "ERR %s cannot contain spaces, newlines or special characters.",
			is_name ? "lib-name" : "lib-ver");
		return;
	}
	hx_resp_client_name_set(
		is_name ? call->session->lib_name : call->session->lib_version, call->argv[3]);
	(void)hx_resp_put_simple(call->text, "OK");
}

void hx_resp_plan_client_info(struct hx_resp_call *call)
{
	const struct hx_resp_session *session = call->session;
	const struct hapax_clock *clock = call->service->options.clock;
	char line[1024];
	int size = snprintf(
		line, sizeof(line),
		"id=%llu name=%s age=%lld db=0 multi=%lld resp=%u cmd=%s user=%.*s lib-name=%s "
		"lib-ver=%s\n",
		(unsigned long long)session->id, session->name,
		(long long)((clock->boot_ms(clock->context) - session->began_ms) / 1000),
		session->is_queuing ? (long long)session->queue_count : -1,
		(unsigned)session->protocol, "client|info",
		session->user == NULL ? 7 : (int)session->user->name.size,
		session->user == NULL ? "default" : (const char *)session->user->name.data,
		session->lib_name, session->lib_version);

	if (size < 0 || (size_t)size >= sizeof(line) ||
	    hx_resp_put_verbatim(call->text, hx_bytes(line, (size_t)size), session->protocol) !=
		    HAPAX_OK)
		hx_resp_refuse(call, "OOM not enough memory for the reply");
}

void hx_resp_plan_client_no_evict(struct hx_resp_call *call)
{
	if (hx_resp_is_word(call->argv[2], "ON") || hx_resp_is_word(call->argv[2], "OFF"))
		(void)hx_resp_put_simple(call->text, "OK");
	else
		hx_resp_refuse_syntax(call);
}

void hx_resp_plan_client_reply(struct hx_resp_call *call)
{
	struct hx_resp_session *session = call->session;

	if (hx_resp_is_word(call->argv[2], "ON")) {
		session->reply_mode = HX_RESP_REPLY_ON;
		(void)hx_resp_put_simple(call->text, "OK");
	} else if (hx_resp_is_word(call->argv[2], "OFF")) {
		session->reply_mode = HX_RESP_REPLY_OFF;
	} else if (hx_resp_is_word(call->argv[2], "SKIP")) {
		if (session->reply_mode != HX_RESP_REPLY_OFF)
			session->reply_mode = HX_RESP_REPLY_SKIP_NEXT;
	} else {
		hx_resp_refuse_syntax(call);
	}
}
