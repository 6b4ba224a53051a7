/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_table.c - every command, sorted by name. COMMAND returns these data; the summaries are
 * ours.
 */
#include <string.h>

#include "base/bytes.h"
#include "resp/resp_command.h"
#include "resp/commands.h"

#define CONNECTION "connection"
#define GENERIC    "generic"
#define SERVER     "server"
#define STRING     "string"
#define HAPAX      "hapax"
#define SCRIPTING  "scripting"
#define MULTI      "transactions"

#define END                                                             \
	{                                                               \
		NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL \
	}

enum {
	READ = HX_RESP_READ | HX_RESP_FAST,
	WRITE = HX_RESP_WRITE | HX_RESP_FAST,
	ALONE_READ = HX_RESP_READ | HX_RESP_ALONE,
	LISTS = HX_RESP_ADMIN,
};

static const struct hx_resp_command client_commands[] = {
	{"getname", 2, 0, 0, 0, 0, "Return the name of this connection", "2.6.9", CONNECTION,
	 hx_resp_plan_client_getname, NULL, "client|getname"},
	{"help", 2, LISTS, 0, 0, 0, "Show this help", "5.0.0", CONNECTION, hx_resp_plan_help, NULL,
	 "client|help"},
	{"id", 2, 0, 0, 0, 0, "Return the ID of this connection", "5.0.0", CONNECTION,
	 hx_resp_plan_client_id, NULL, "client|id"},
	{"info", 2, 0, 0, 0, 0, "Describe this connection", "6.2.0", CONNECTION,
	 hx_resp_plan_client_info, NULL, "client|info"},
	{"no-evict", 3, 0, 0, 0, 0, "Accepted, without effect: connections are never evicted",
	 "7.0.0", CONNECTION, hx_resp_plan_client_no_evict, NULL, "client|no-evict"},
	{"no-touch", 3, 0, 0, 0, 0, "Accepted, without effect: reads do not change expiry", "7.2.0",
	 CONNECTION, hx_resp_plan_client_no_evict, NULL, "client|no-touch"},
	{"reply", 3, 0, 0, 0, 0, "Turn replies to commands on or off", "3.2.0", CONNECTION,
	 hx_resp_plan_client_reply, NULL, "client|reply"},
	{"setinfo", 4, 0, 0, 0, 0, "Set the name or version of the client library", "7.2.0",
	 CONNECTION, hx_resp_plan_client_setinfo, NULL, "client|setinfo"},
	{"setname", 3, 0, 0, 0, 0, "Set the name of this connection", "2.6.9", CONNECTION,
	 hx_resp_plan_client_setname, NULL, "client|setname"},
	END,
};

static const struct hx_resp_command command_commands[] = {
	{"count", 2, 0, 0, 0, 0, "Return the number of commands", "2.8.13", SERVER,
	 hx_resp_plan_command_count, NULL, "command|count"},
	{"docs", -2, LISTS, 0, 0, 0, "Describe commands", "7.0.0", SERVER,
	 hx_resp_plan_command_docs, NULL, "command|docs"},
	{"help", 2, LISTS, 0, 0, 0, "Show this help", "5.0.0", SERVER, hx_resp_plan_help, NULL,
	 "command|help"},
	{"info", -2, LISTS, 0, 0, 0, "Return arity, flags and key positions of commands", "2.8.13",
	 SERVER, hx_resp_plan_command_info, NULL, "command|info"},
	{"list", -2, LISTS, 0, 0, 0, "List the names of commands", "7.0.0", SERVER,
	 hx_resp_plan_command_list, NULL, "command|list"},
	END,
};

static const struct hx_resp_command config_commands[] = {
	{"get", -3, LISTS, 0, 0, 0, "Return the settings that clients ask for", "2.0.0", SERVER,
	 hx_resp_plan_config_get, NULL, "config|get"},
	{"help", 2, LISTS, 0, 0, 0, "Show this help", "5.0.0", SERVER, hx_resp_plan_help, NULL,
	 "config|help"},
	END,
};

static const struct hx_resp_command debug_commands[] = {
	{"log", -3, 0, 0, 0, 0, "Accepted, without effect", "7.0.0", SERVER, hx_resp_plan_ok, NULL,
	 "debug|log"},
	END,
};

static const struct hx_resp_command function_commands[] = {
	{"flush", -2, 0, 0, 0, 0, "Accepted, without effect", "7.0.0", SERVER, hx_resp_plan_ok,
	 NULL, "function|flush"},
	END,
};

static const struct hx_resp_command script_commands[] = {
	{"exists", -3, 0, 0, 0, 0, "Report which scripts are supported", "2.6.0", SCRIPTING,
	 hx_resp_plan_script_exists, NULL, "script|exists"},
	{"help", 2, LISTS, 0, 0, 0, "Show this help", "5.0.0", SCRIPTING, hx_resp_plan_help, NULL,
	 "script|help"},
	{"load", 3, 0, 0, 0, 0, "Return the SHA-1 of a supported script", "2.6.0", SCRIPTING,
	 hx_resp_plan_script_load, NULL, "script|load"},
	END,
};

static const struct hx_resp_command commands[] = {
	{"auth", -2, HX_RESP_NO_AUTH | HX_RESP_FAST, 0, 0, 0, "Authenticate this connection",
	 "1.0.0", CONNECTION, hx_resp_plan_auth, NULL, NULL},
	{"client", -2, 0, 0, 0, 0, "Commands for this connection", "2.4.0", CONNECTION, NULL,
	 client_commands, NULL},
	{"command", -1, LISTS, 0, 0, 0, "Describe all commands", "2.8.13", SERVER,
	 hx_resp_plan_command, command_commands, NULL},
	{"config", -2, 0, 0, 0, 0, "Commands for settings", "2.0.0", SERVER, NULL, config_commands,
	 NULL},
	{"dbsize", 1, ALONE_READ, 0, 0, 0, "Count the keys of the scope", "1.0.0", SERVER,
	 hx_resp_plan_dbsize, NULL, NULL},
	{"debug", -2, HX_RESP_TEST, 0, 0, 0, "Commands for test suites", "1.0.0", SERVER, NULL,
	 debug_commands, NULL},
	{"del", -2, HX_RESP_WRITE, 1, -1, 1, "Delete keys", "1.0.0", GENERIC, hx_resp_plan_del,
	 NULL, NULL},
	{"delex", -2, WRITE, 1, 1, 1, "Delete a key if it has the given value", "8.4.0", STRING,
	 hx_resp_plan_delex, NULL, NULL},
	{"discard", 1, HX_RESP_NO_QUEUE | HX_RESP_FAST, 0, 0, 0, "Discard a transaction", "2.0.0",
	 MULTI, hx_resp_plan_discard, NULL, NULL},
	{"echo", 2, HX_RESP_FAST, 0, 0, 0, "Return the argument", "1.0.0", CONNECTION,
	 hx_resp_plan_echo, NULL, NULL},
	{"eval", -3, HX_RESP_WRITE, 0, 0, 0, "Run a supported script", "2.6.0", SCRIPTING,
	 hx_resp_plan_eval, NULL, NULL},
	{"evalsha", -3, HX_RESP_WRITE, 0, 0, 0, "Run a supported script, named by its SHA-1",
	 "2.6.0", SCRIPTING, hx_resp_plan_evalsha, NULL, NULL},
	{"exec", 1, HX_RESP_NO_QUEUE, 0, 0, 0, "Run the commands of a transaction", "1.2.0", MULTI,
	 hx_resp_plan_exec, NULL, NULL},
	{"exists", -2, READ, 1, -1, 1, "Count the given keys that exist", "1.0.0", GENERIC,
	 hx_resp_plan_exists, NULL, NULL},
	{"expire", -3, WRITE, 1, 1, 1, "Set the expiry of a key, in seconds from now", "1.0.0",
	 GENERIC, hx_resp_plan_expire, NULL, NULL},
	{"expireat", -3, WRITE, 1, 1, 1, "Set the expiry of a key, as a Unix time in seconds",
	 "1.2.0", GENERIC, hx_resp_plan_expireat, NULL, NULL},
	{"expiretime", 2, READ, 1, 1, 1, "Return the expiry of a key, as a Unix time in seconds",
	 "7.0.0", GENERIC, hx_resp_plan_expiretime, NULL, NULL},
	{"flushall", -1, HX_RESP_WRITE | HX_RESP_ALONE, 0, 0, 0, "Delete all keys of the scope",
	 "1.0.0", SERVER, hx_resp_plan_flush, NULL, NULL},
	{"flushdb", -1, HX_RESP_WRITE | HX_RESP_ALONE, 0, 0, 0, "Delete all keys of the scope",
	 "1.0.0", SERVER, hx_resp_plan_flush, NULL, NULL},
	{"function", -2, HX_RESP_TEST, 0, 0, 0, "Commands for test suites", "7.0.0", SERVER, NULL,
	 function_commands, NULL},
	{"get", 2, READ, 1, 1, 1, "Return the value of a key", "1.0.0", STRING, hx_resp_plan_get,
	 NULL, NULL},
	{"getdel", 2, WRITE, 1, 1, 1, "Return the value of a key, then delete the key", "6.2.0",
	 STRING, hx_resp_plan_getdel, NULL, NULL},
	{"getex", -2, WRITE, 1, 1, 1, "Return the value of a key and change its expiry", "6.2.0",
	 STRING, hx_resp_plan_getex, NULL, NULL},
	{"hapax.check", -2, WRITE, 1, 1, 1, "Mark a key as seen and report whether it is new",
	 "0.1.0", HAPAX, hx_resp_plan_hapax_check, NULL, NULL},
	{"hapax.claim", -2, WRITE, 1, 1, 1, "Claim a key and return its token", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_claim, NULL, NULL},
	{"hapax.complete", -3, WRITE, 1, 1, 1, "Mark the work of a claim done and store its result",
	 "0.1.0", HAPAX, hx_resp_plan_hapax_complete, NULL, NULL},
	{"hapax.forget", -2, WRITE, 1, 1, 1, "Delete the record of a key", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_forget, NULL, NULL},
	{"hapax.lookup", 2, READ, 1, 1, 1, "Return the record of a key", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_lookup, NULL, NULL},
	{"hapax.park", -3, WRITE, 1, 1, 1, "Mark the outcome of a claim unknown", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_park, NULL, NULL},
	{"hapax.release", -3, WRITE, 1, 1, 1,
	 "Mark the work of a claim failed; the next claim runs", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_release, NULL, NULL},
	{"hapax.renew", -3, WRITE, 1, 1, 1, "Extend the lease of a claim", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_renew, NULL, NULL},
	{"hapax.resolve", -3, WRITE | HX_RESP_STEPS, 1, 1, 1,
	 "Decide the outcome of a key, given its token: DONE or RETRY", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_resolve, NULL, NULL},
	{"hello", -1, HX_RESP_NO_AUTH | HX_RESP_FAST, 0, 0, 0,
	 "Choose the protocol version and authenticate", "6.0.0", CONNECTION, hx_resp_plan_hello,
	 NULL, NULL},
	{"info", -1, HX_RESP_ALONE, 0, 0, 0, "Return information and statistics about the server",
	 "1.0.0", SERVER, hx_resp_plan_info, NULL, NULL},
	{"mget", -2, READ, 1, -1, 1, "Return the values of keys", "1.0.0", STRING,
	 hx_resp_plan_mget, NULL, NULL},
	{"multi", 1, HX_RESP_NO_QUEUE | HX_RESP_FAST, 0, 0, 0, "Start a transaction", "1.2.0",
	 MULTI, hx_resp_plan_multi, NULL, NULL},
	{"persist", 2, WRITE | HX_RESP_STEPS, 1, 1, 1, "Remove the expiry of a key", "2.2.0",
	 GENERIC, hx_resp_plan_persist, NULL, NULL},
	{"pexpire", -3, WRITE, 1, 1, 1, "Set the expiry of a key, in milliseconds from now",
	 "2.6.0", GENERIC, hx_resp_plan_pexpire, NULL, NULL},
	{"pexpireat", -3, WRITE, 1, 1, 1, "Set the expiry of a key, as a Unix time in milliseconds",
	 "2.6.0", GENERIC, hx_resp_plan_pexpireat, NULL, NULL},
	{"pexpiretime", 2, READ, 1, 1, 1,
	 "Return the expiry of a key, as a Unix time in milliseconds", "7.0.0", GENERIC,
	 hx_resp_plan_pexpiretime, NULL, NULL},
	{"ping", -1, HX_RESP_FAST, 0, 0, 0, "Check the connection", "1.0.0", CONNECTION,
	 hx_resp_plan_ping, NULL, NULL},
	{"psetex", 4, HX_RESP_WRITE, 1, 1, 1,
	 "Set the value of a key and its expiry in milliseconds", "2.6.0", STRING,
	 hx_resp_plan_psetex, NULL, NULL},
	{"pttl", 2, READ, 1, 1, 1, "Return the time until a key expires, in milliseconds", "2.6.0",
	 GENERIC, hx_resp_plan_pttl, NULL, NULL},
	{"quit", -1, HX_RESP_NO_AUTH | HX_RESP_NO_QUEUE | HX_RESP_FAST, 0, 0, 0,
	 "Close the connection", "1.0.0", CONNECTION, hx_resp_plan_quit, NULL, NULL},
	{"reset", 1, HX_RESP_NO_AUTH | HX_RESP_NO_QUEUE | HX_RESP_FAST, 0, 0, 0,
	 "Reset the connection", "6.2.0", CONNECTION, hx_resp_plan_reset, NULL, NULL},
	{"scan", -2, ALONE_READ, 0, 0, 0, "List the keys of the scope, in several calls", "2.8.0",
	 GENERIC, hx_resp_plan_scan, NULL, NULL},
	{"script", -2, 0, 0, 0, 0, "Commands for supported scripts", "2.6.0", SCRIPTING, NULL,
	 script_commands, NULL},
	{"select", 2, HX_RESP_FAST, 0, 0, 0, "Select database 0", "1.0.0", CONNECTION,
	 hx_resp_plan_select, NULL, NULL},
	{"set", -3, HX_RESP_WRITE, 1, 1, 1, "Set the value of a key", "1.0.0", STRING,
	 hx_resp_plan_set, NULL, NULL},
	{"setex", 4, HX_RESP_WRITE, 1, 1, 1, "Set the value of a key and its expiry in seconds",
	 "2.0.0", STRING, hx_resp_plan_setex, NULL, NULL},
	{"setnx", 3, WRITE, 1, 1, 1, "Set the value of a key if the key does not exist", "1.0.0",
	 STRING, hx_resp_plan_setnx, NULL, NULL},
	{"strlen", 2, READ, 1, 1, 1, "Return the length of a value", "2.2.0", STRING,
	 hx_resp_plan_strlen, NULL, NULL},
	{"time", 1, HX_RESP_FAST, 0, 0, 0, "Return the time of the server", "2.6.0", SERVER,
	 hx_resp_plan_time, NULL, NULL},
	{"ttl", 2, READ, 1, 1, 1, "Return the time until a key expires, in seconds", "1.0.0",
	 GENERIC, hx_resp_plan_ttl, NULL, NULL},
	{"type", 2, READ, 1, 1, 1, "Return the type of a key: string or none", "1.0.0", GENERIC,
	 hx_resp_plan_type, NULL, NULL},
	{"unlink", -2, WRITE, 1, -1, 1, "Delete keys", "4.0.0", GENERIC, hx_resp_plan_del, NULL,
	 NULL},
};

enum { COMMAND_COUNT = HX_COUNT(commands) };

/* Like strcmp(), for a name in any case and a lower-case one. */
static int compare(struct hapax_bytes name, const char *other)
{
	const unsigned char *at = name.data;

	for (size_t i = 0; i < name.size; i++) {
		int byte = at[i] >= 'A' && at[i] <= 'Z' ? at[i] + 32 : at[i];

		if (byte != (unsigned char)other[i])
			return byte - (unsigned char)other[i];
		/* other has ended, at a NUL byte that name contains. */
		if (byte == 0)
			return 1;
	}
	return -(int)(unsigned char)other[name.size];
}

bool hx_resp_command_is_named(const struct hx_resp_command *command, struct hapax_bytes name)
{
	return compare(name, command->name) == 0;
}

const struct hx_resp_command *hx_resp_command_find(struct hapax_bytes name)
{
	size_t low = 0;
	size_t high = COMMAND_COUNT;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(name, commands[middle].name);

		if (order == 0)
			return &commands[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct hx_resp_command *hx_resp_subcommand_find(
	const struct hx_resp_command *command, struct hapax_bytes name)
{
	for (const struct hx_resp_command *sub = command->subcommands; sub->name != NULL; sub++) {
		if (compare(name, sub->name) == 0)
			return sub;
	}
	return NULL;
}

const struct hx_resp_command *hx_resp_command_at(size_t index)
{
	return index < COMMAND_COUNT ? &commands[index] : NULL;
}

size_t hx_resp_command_count(void)
{
	return COMMAND_COUNT;
}

bool hx_resp_command_is_offered(
	const struct hx_resp_command *command, const struct hx_resp_service *service)
{
	return !(command->flags & HX_RESP_TEST) ||
		(service->options.flags & HX_RESP_TEST_COMMANDS) != 0;
}
