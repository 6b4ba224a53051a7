/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_client.c - CLIENT and its subcommands.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/macros.h"
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

void hx_resp_client_name_set(
	struct hx_resp_session *session, char target[HX_RESP_NAME_SIZE], struct hapax_bytes name)
{
	hx_mutex_lock(&session->service->lock);
	if (name.size > 0)
		memcpy(target, name.data, name.size);
	target[name.size] = '\0';
	hx_mutex_unlock(&session->service->lock);
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
	hx_resp_client_name_set(call->session, call->session->name, call->argv[2]);
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
		call->session, is_name ? call->session->lib_name : call->session->lib_version,
		call->argv[3]);
	(void)hx_resp_put_simple(call->text, "OK");
}

static enum hapax_status put_client(
	struct hapax_buf *out, const struct hx_resp_session *session, const char *own)
{
	const struct hapax_clock *clock = session->service->options.clock;

	return hx_buf_printf(
		out, "id=%llu name=%s age=%lld db=0%s user=%.*s lib-name=%s lib-ver=%s\n",
		(unsigned long long)session->id, session->name,
		(long long)((clock->boot_ms(clock->context) - session->began_ms) / 1000), own,
		session->user == NULL ? 7 : (int)session->user->name.size,
		session->user == NULL ? "default" : (const char *)session->user->name.data,
		session->lib_name, session->lib_version);
}

static void put_lines(struct hx_resp_call *call, struct hapax_buf *lines, enum hapax_status status)
{
	if (status != HAPAX_OK ||
	    hx_resp_put_verbatim(call->text, hapax_buf_bytes(lines), call->session->protocol) !=
		    HAPAX_OK)
		hx_resp_refuse(call, "OOM not enough memory for the reply");
	hx_buf_done(lines);
}

void hx_resp_plan_client_info(struct hx_resp_call *call)
{
	const struct hx_resp_session *session = call->session;
	struct hapax_buf *lines = &call->session->kept;
	char own[64];

	(void)snprintf(
		own, sizeof(own), " multi=%lld resp=%u cmd=client|info",
		session->is_queuing ? (long long)session->queue_count : -1,
		(unsigned)session->protocol);
	hx_buf_clear(lines);
	put_lines(call, lines, put_client(lines, session, own));
}

/* What CLIENT LIST asks for: all, the IDs from argv[3] on, or none, since no client is a replica. */
static bool is_listed(const struct hx_resp_call *call, const struct hx_resp_session *client)
{
	int64_t id;

	if (client->user != call->session->user)
		return false;
	if (call->argc == 2)
		return true;
	if (hx_resp_is_word(call->argv[2], "TYPE"))
		return hx_resp_is_word(call->argv[3], "NORMAL");
	for (size_t i = 3; i < call->argc; i++) {
		if (hx_resp_parse_integer(call->argv[i], &id) && (uint64_t)id == client->id)
			return true;
	}
	return false;
}

/* The arguments of CLIENT LIST. False: refused. */
static bool check_list(struct hx_resp_call *call)
{
	static const char *const types[] = {"NORMAL", "MASTER", "REPLICA", "SLAVE", "PUBSUB"};
	bool is_type = call->argc == 4 && hx_resp_is_word(call->argv[2], "TYPE");
	int64_t id;

	if (call->argc == 2)
		return true;
	for (size_t i = 0; is_type && i < HX_COUNT(types); i++) {
		if (hx_resp_is_word(call->argv[3], types[i]))
			return true;
	}
	if (is_type)
		return hx_resp_refuse_format(
			call, "ERR Unknown client type '%.*s'", HX_RESP_SHOWN(call->argv[3]));
	if (call->argc == 3 || !hx_resp_is_word(call->argv[2], "ID"))
		return hx_resp_refuse_syntax(call);
	for (size_t i = 3; i < call->argc; i++) {
		if (!hx_resp_parse_integer(call->argv[i], &id) || id < 1)
			return hx_resp_refuse(call, "ERR Invalid client ID");
	}
	return true;
}

/* Lists only the clients of the same user: those of other tenants are private. */
void hx_resp_plan_client_list(struct hx_resp_call *call)
{
	struct hapax_buf *lines = &call->session->kept;
	enum hapax_status status = HAPAX_OK;

	if (!check_list(call))
		return;
	hx_buf_clear(lines);
	hx_mutex_lock(&call->service->lock);
	for (const struct hx_resp_session *client = call->service->first_client;
	     client != NULL && status == HAPAX_OK; client = client->next) {
		if (is_listed(call, client))
			status = put_client(lines, client, "");
	}
	hx_mutex_unlock(&call->service->lock);
	put_lines(call, lines, status);
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
