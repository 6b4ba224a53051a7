/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_connection.c - commands about the connection itself.
 */
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "resp/client_name.h"
#include "resp/resp_command.h"
#include "resp/commands.h"

/* A reply that contains an argument of the command may need memory, which can fail. */
static void put_arg(struct hx_resp_call *call, struct hapax_bytes arg)
{
	if (hx_resp_put_bulk(call->text, arg) != HAPAX_OK)
		hx_resp_refuse(call, "OOM not enough memory for the reply");
}

void hx_resp_plan_ping(struct hx_resp_call *call)
{
	if (call->argc > 2)
		hx_resp_refuse_arity(call);
	else if (call->argc == 2)
		put_arg(call, call->argv[1]);
	else
		(void)hx_resp_put_simple(call->text, "PONG");
}

void hx_resp_plan_echo(struct hx_resp_call *call)
{
	put_arg(call, call->argv[1]);
}

void hx_resp_plan_quit(struct hx_resp_call *call)
{
	call->session->is_closing = true;
	(void)hx_resp_put_simple(call->text, "OK");
}

void hx_resp_plan_select(struct hx_resp_call *call)
{
	int64_t index;

	if (!hx_resp_integer_arg(call, call->argv[1], &index))
		return;
	if (index < INT32_MIN || index > INT32_MAX)
		hx_resp_refuse(
			call,
			"ERR value is out of range, value must between -2147483648 and 2147483647");
	else if (index != 0)
		hx_resp_refuse(call, "ERR DB index is out of range");
	else
		(void)hx_resp_put_simple(call->text, "OK");
}

/* ---------------------------------------------------------------- identity */

static void become(struct hx_resp_session *session, const struct hx_resp_user *user)
{
	hx_mutex_lock(&session->service->lock);
	session->user = user;
	hx_mutex_unlock(&session->service->lock);
	session->is_authenticated = user != NULL || session->service->options.user_count == 0;
	session->tenant = user != NULL ? user->tenant : hx_bytes(NULL, 0);
	session->group = user != NULL ? user->group : hx_bytes(NULL, 0);
}

/* If no users are configured, the user "default" accepts any password. */
static bool authenticate(
	struct hx_resp_call *call, struct hapax_bytes name, struct hapax_bytes password)
{
	const struct hx_resp_user *user;
	bool is_open = call->service->options.user_count == 0 &&
		hx_bytes_equal(name, HX_BYTES_LIT("default"));

	user = hx_resp_service_find_user(call->service, name, password);
	if (call->session->is_locked != NULL && call->service->options.user_count > 0 &&
	    call->session->is_locked(call->session->locked_context, name, password, user != NULL)) {
		call->session->is_closing = true;
		call->session->locked++;
		return hx_resp_refuse(
			call, "ERR too many wrong passwords from this address; retry later");
	}
	if (user == NULL && !is_open) {
		call->session->refused++;
		/* If no users are configured, there is nothing to guess. */
		call->session->failures += call->service->options.user_count > 0;
		/* Close after the reply: each guess beyond a few costs a connection. */
		if (call->session->failures >= HX_RESP_FAILURES_MAX)
			call->session->is_closing = true;
		return hx_resp_refuse(
			call, "WRONGPASS invalid username-password pair or user is disabled.");
	}
	become(call->session, user);
	return true;
}

void hx_resp_plan_auth(struct hx_resp_call *call)
{
	if (call->argc > 3) {
		hx_resp_refuse_syntax(call);
	} else if (call->argc == 2 && call->service->options.user_count == 0) {
		hx_resp_refuse(
			call,
			"ERR AUTH <password> called without any password configured for the default "
			"user. Are you sure your configuration is correct?");
	} else if (authenticate(
			   call, call->argc == 2 ? HX_BYTES_LIT("default") : call->argv[1],
			   call->argv[call->argc - 1])) {
		(void)hx_resp_put_simple(call->text, "OK");
	}
}

void hx_resp_plan_reset(struct hx_resp_call *call)
{
	struct hx_resp_session *session = call->session;

	hx_resp_multi_forget(session);
	hx_resp_client_name_set(session, session->name, hx_bytes(NULL, 0));
	session->protocol = 2;
	/* SKIP stays in effect: the client does not wait for a reply. */
	if (session->reply_mode != HX_RESP_REPLY_SKIP)
		session->reply_mode = HX_RESP_REPLY_ON;
	become(session, NULL);
	(void)hx_resp_put_simple(call->text, "RESET");
}

static void put_hello(struct hx_resp_call *call)
{
	struct hapax_buf *text = call->text;
	int protocol = call->session->protocol;

	(void)hx_resp_put_map(text, 7, protocol);
	(void)hx_resp_put_text(text, "server");
	(void)hx_resp_put_text(text, "redis");
	(void)hx_resp_put_text(text, "version");
	(void)hx_resp_put_text(text, HX_RESP_REDIS_VERSION);
	(void)hx_resp_put_text(text, "proto");
	(void)hx_resp_put_integer(text, protocol);
	(void)hx_resp_put_text(text, "id");
	(void)hx_resp_put_integer(text, (int64_t)call->session->id);
	(void)hx_resp_put_text(text, "mode");
	(void)hx_resp_put_text(text, "standalone");
	(void)hx_resp_put_text(text, "role");
	(void)hx_resp_put_text(text, "master");
	(void)hx_resp_put_text(text, "modules");
	(void)hx_resp_put_array(text, 0);
}

struct hello {
	int64_t version; /* 0: unchanged */
	bool has_auth;
	struct hapax_bytes user;
	struct hapax_bytes password;
	bool has_name;
	struct hapax_bytes name;
};

/* False: refused. */
static bool read_hello(struct hx_resp_call *call, struct hello *hello)
{
	if (call->argc >= 2 && !hx_resp_parse_integer(call->argv[1], &hello->version))
		return hx_resp_refuse(
			call, "ERR Protocol version is not an integer or out of range");
	if (call->argc >= 2 && (hello->version < 2 || hello->version > 3))
		return hx_resp_refuse(call, "NOPROTO unsupported protocol version");
	for (size_t i = 2; i < call->argc; i++) {
		size_t more = call->argc - 1 - i;

		if (hx_resp_is_word(call->argv[i], "AUTH") && more >= 2) {
			hello->has_auth = true;
			hello->user = call->argv[i + 1];
			hello->password = call->argv[i + 2];
			i += 2;
		} else if (hx_resp_is_word(call->argv[i], "SETNAME") && more >= 1) {
			hello->has_name = true;
			hello->name = call->argv[++i];
			if (!hx_resp_client_name_check(call, hello->name))
				return false;
		} else {
			return hx_resp_refuse_format(
				call, "ERR Syntax error in HELLO option '%.*s'",
				HX_RESP_SHOWN(call->argv[i]));
		}
	}
	return true;
}

void hx_resp_plan_hello(struct hx_resp_call *call)
{
	struct hello hello = {.version = 0};

	if (!read_hello(call, &hello))
		return;
	if (hello.has_auth && !authenticate(call, hello.user, hello.password))
		return;
	if (!call->session->is_authenticated) {
		hx_resp_refuse(
			call,
			"NOAUTH HELLO must be called with the client already authenticated, otherwise "
			"the HELLO AUTH <user> <pass> option can be used to authenticate the client "
			"and select the RESP protocol version at the same time");
		return;
	}
	if (hello.has_name)
		hx_resp_client_name_set(call->session, call->session->name, hello.name);
	if (hello.version != 0)
		call->session->protocol = (uint8_t)hello.version;
	put_hello(call);
}
