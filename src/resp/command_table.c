/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_table.c - every command, sorted by name. COMMAND returns these data; the summaries are
 * ours.
 */
#include <string.h>

#include "base/bytes.h"
#include "resp/resp_command.h"
#include "resp/commands.h"
#include "resp/when.h"

#define CONNECTION "connection"
#define GENERIC    "generic"
#define SERVER     "server"
#define STRING     "string"
#define HAPAX      "hapax"
#define SCRIPTING  "scripting"
#define MULTI      "transactions"

enum {
	READ = HX_RESP_READ | HX_RESP_FAST,
	WRITE = HX_RESP_WRITE | HX_RESP_FAST,
	ALONE_READ = HX_RESP_READ | HX_RESP_ALONE,
	LISTS = HX_RESP_ADMIN,
};

/* In the order in which HELP lists them. */
static const struct hx_resp_command subcommands[] = {
	{"client|getname", 2, 0, 0, "Return the name of this connection", "2.6.9", CONNECTION,
	 hx_resp_plan_client_getname, NULL, 0},
	{"client|help", 2, LISTS, 0, "Show this help", "5.0.0", CONNECTION, hx_resp_plan_help, NULL,
	 0},
	{"client|id", 2, 0, 0, "Return the ID of this connection", "5.0.0", CONNECTION,
	 hx_resp_plan_client_id, NULL, 0},
	{"client|info", 2, 0, 0, "Describe this connection", "6.2.0", CONNECTION,
	 hx_resp_plan_client_info, NULL, 0},
	{"client|list", -2, LISTS, 0, "List the connections of this user", "2.4.0", CONNECTION,
	 hx_resp_plan_client_list, NULL, 0},
	{"client|no-evict", 3, 0, 0, "Accepted, without effect: connections are never evicted",
	 "7.0.0", CONNECTION, hx_resp_plan_client_no_evict, NULL, 0},
	{"client|no-touch", 3, 0, 0, "Accepted, without effect: reads do not change expiry",
	 "7.2.0", CONNECTION, hx_resp_plan_client_no_evict, NULL, 0},
	{"client|reply", 3, 0, 0, "Turn replies to commands on or off", "3.2.0", CONNECTION,
	 hx_resp_plan_client_reply, NULL, 0},
	{"client|setinfo", 4, 0, 0, "Set the name or version of the client library", "7.2.0",
	 CONNECTION, hx_resp_plan_client_setinfo, NULL, 0},
	{"client|setname", 3, 0, 0, "Set the name of this connection", "2.6.9", CONNECTION,
	 hx_resp_plan_client_setname, NULL, 0},
	{"command|count", 2, 0, 0, "Return the number of commands", "2.8.13", SERVER,
	 hx_resp_plan_command_count, NULL, 0},
	{"command|docs", -2, LISTS, 0, "Describe commands", "7.0.0", SERVER,
	 hx_resp_plan_command_docs, NULL, 0},
	{"command|help", 2, LISTS, 0, "Show this help", "5.0.0", SERVER, hx_resp_plan_help, NULL,
	 0},
	{"command|info", -2, LISTS, 0, "Return arity, flags and key positions of commands",
	 "2.8.13", SERVER, hx_resp_plan_command_info, NULL, 0},
	{"command|list", -2, LISTS, 0, "List the names of commands", "7.0.0", SERVER,
	 hx_resp_plan_command_list, NULL, 0},
	{"config|get", -3, LISTS, 0, "Return the settings that clients ask for", "2.0.0", SERVER,
	 hx_resp_plan_config_get, NULL, 0},
	{"config|help", 2, LISTS, 0, "Show this help", "5.0.0", SERVER, hx_resp_plan_help, NULL, 0},
	{"debug|log", -3, 0, 0, "Accepted, without effect", "7.0.0", SERVER, hx_resp_plan_ok, NULL,
	 0},
	{"function|flush", -2, 0, 0, "Accepted, without effect", "7.0.0", SERVER, hx_resp_plan_ok,
	 NULL, 0},
	{"script|exists", -3, 0, 0, "Report which scripts are supported", "2.6.0", SCRIPTING,
	 hx_resp_plan_script_exists, NULL, 0},
	{"script|help", 2, LISTS, 0, "Show this help", "5.0.0", SCRIPTING, hx_resp_plan_help, NULL,
	 0},
	{"script|load", 3, 0, 0, "Return the SHA-1 of a supported script", "2.6.0", SCRIPTING,
	 hx_resp_plan_script_load, NULL, 0},
};

static const struct hx_resp_command commands[] = {
	{"auth", -2, HX_RESP_NO_AUTH | HX_RESP_FAST, 0, "Authenticate this connection", "1.0.0",
	 CONNECTION, hx_resp_plan_auth, NULL, 0},
	{"client", -2, HX_RESP_PARENT, 0, "Commands for this connection", "2.4.0", CONNECTION, NULL,
	 NULL, 0},
	{"command", -1, LISTS | HX_RESP_PARENT, 0, "Describe all commands", "2.8.13", SERVER,
	 hx_resp_plan_command, NULL, 0},
	{"config", -2, HX_RESP_PARENT, 0, "Commands for settings", "2.0.0", SERVER, NULL, NULL, 0},
	{"dbsize", 1, ALONE_READ, 0, "Count the keys of the scope", "1.0.0", SERVER,
	 hx_resp_plan_dbsize, NULL, 0},
	{"debug", -2, HX_RESP_TEST | HX_RESP_PARENT, 0, "Commands for test suites", "1.0.0", SERVER,
	 NULL, NULL, 0},
	{"del", -2, HX_RESP_WRITE, -1, "Delete keys", "1.0.0", GENERIC, hx_resp_plan_del, NULL, 0},
	{"delex", -2, WRITE, 1, "Delete a key if it has the given value", "8.4.0", STRING,
	 hx_resp_plan_delex, NULL, 0},
	{"discard", 1, HX_RESP_NO_QUEUE | HX_RESP_FAST, 0, "Discard a transaction", "2.0.0", MULTI,
	 hx_resp_plan_discard, NULL, 0},
	{"echo", 2, HX_RESP_FAST, 0, "Return the argument", "1.0.0", CONNECTION, hx_resp_plan_echo,
	 NULL, 0},
	{"eval", -3, HX_RESP_WRITE, 0, "Run a supported script", "2.6.0", SCRIPTING,
	 hx_resp_plan_eval, NULL, 0},
	{"evalsha", -3, HX_RESP_WRITE, 0, "Run a supported script, named by its SHA-1", "2.6.0",
	 SCRIPTING, hx_resp_plan_evalsha, NULL, 0},
	{"exec", 1, HX_RESP_NO_QUEUE, 0, "Run the commands of a transaction", "1.2.0", MULTI,
	 hx_resp_plan_exec, NULL, 0},
	{"exists", -2, READ, -1, "Count the given keys that exist", "1.0.0", GENERIC,
	 hx_resp_plan_lookup, hx_resp_finish_exists, 0},
	{"expire", -3, WRITE, 1, "Set the expiry of a key, in seconds from now", "1.0.0", GENERIC,
	 hx_resp_plan_expire, NULL, HX_RESP_WHEN_SECONDS},
	{"expireat", -3, WRITE, 1, "Set the expiry of a key, as a Unix time in seconds", "1.2.0",
	 GENERIC, hx_resp_plan_expire, NULL, HX_RESP_WHEN_AT_SECONDS},
	{"expiretime", 2, READ, 1, "Return the expiry of a key, as a Unix time in seconds", "7.0.0",
	 GENERIC, hx_resp_plan_lookup, hx_resp_finish_ttl, HX_RESP_WHEN_AT_SECONDS},
	{"flushall", -1, HX_RESP_WRITE | HX_RESP_ALONE, 0, "Delete all keys of the scope", "1.0.0",
	 SERVER, hx_resp_plan_flush, NULL, 0},
	{"flushdb", -1, HX_RESP_WRITE | HX_RESP_ALONE, 0, "Delete all keys of the scope", "1.0.0",
	 SERVER, hx_resp_plan_flush, NULL, 0},
	{"function", -2, HX_RESP_TEST | HX_RESP_PARENT, 0, "Commands for test suites", "7.0.0",
	 SERVER, NULL, NULL, 0},
	{"get", 2, READ, 1, "Return the value of a key", "1.0.0", STRING, hx_resp_plan_lookup,
	 hx_resp_finish_get, 0},
	{"getdel", 2, WRITE, 1, "Return the value of a key, then delete the key", "6.2.0", STRING,
	 hx_resp_plan_getdel, NULL, 0},
	{"getex", -2, WRITE, 1, "Return the value of a key and change its expiry", "6.2.0", STRING,
	 hx_resp_plan_getex, NULL, 0},
	{"getset", 3, WRITE, 1, "Set the value of a key and return the previous value", "1.0.0",
	 STRING, hx_resp_plan_getset, NULL, 0},
	{"hapax.check", -2, WRITE, 1, "Mark a key as seen and report whether it is new", "0.1.0",
	 HAPAX, hx_resp_plan_hapax_check, NULL, 0},
	{"hapax.claim", -2, WRITE, 1, "Claim a key and return its token", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_claim, NULL, 0},
	{"hapax.complete", -3, WRITE, 1, "Mark the work of a claim done and store its result",
	 "0.1.0", HAPAX, hx_resp_plan_hapax_token, NULL, HAPAX_OP_COMPLETE},
	{"hapax.forget", -2, WRITE, 1, "Delete the record of a key", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_forget, NULL, 0},
	{"hapax.lookup", 2, READ, 1, "Return the record of a key", "0.1.0", HAPAX,
	 hx_resp_plan_lookup, hx_resp_finish_hapax_lookup, 0},
	{"hapax.park", -3, WRITE, 1, "Mark the outcome of a claim unknown", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_token, NULL, HAPAX_OP_PARK},
	{"hapax.release", -3, WRITE, 1, "Mark the work of a claim failed; the next claim runs",
	 "0.1.0", HAPAX, hx_resp_plan_hapax_token, NULL, HAPAX_OP_RELEASE},
	{"hapax.renew", -3, WRITE, 1, "Extend the lease of a claim", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_token, NULL, HAPAX_OP_RENEW},
	{"hapax.resolve", -3, WRITE | HX_RESP_STEPS, 1,
	 "Decide the outcome of a key, given its token: DONE or RETRY", "0.1.0", HAPAX,
	 hx_resp_plan_hapax_resolve, NULL, 0},
	{"hello", -1, HX_RESP_NO_AUTH | HX_RESP_FAST, 0,
	 "Choose the protocol version and authenticate", "6.0.0", CONNECTION, hx_resp_plan_hello,
	 NULL, 0},
	{"info", -1, HX_RESP_ALONE, 0, "Return information and statistics about the server",
	 "1.0.0", SERVER, hx_resp_plan_info, NULL, 0},
	{"keys", 2, ALONE_READ, 0, "List the keys that match a pattern, at most 10,000", "1.0.0",
	 GENERIC, hx_resp_plan_keys, NULL, 0},
	{"mget", -2, READ, -1, "Return the values of keys", "1.0.0", STRING, hx_resp_plan_lookup,
	 hx_resp_finish_mget, 0},
	{"multi", 1, HX_RESP_NO_QUEUE | HX_RESP_FAST, 0, "Start a transaction", "1.2.0", MULTI,
	 hx_resp_plan_multi, NULL, 0},
	{"persist", 2, WRITE | HX_RESP_STEPS, 1, "Remove the expiry of a key", "2.2.0", GENERIC,
	 hx_resp_plan_persist, NULL, 0},
	{"pexpire", -3, WRITE, 1, "Set the expiry of a key, in milliseconds from now", "2.6.0",
	 GENERIC, hx_resp_plan_expire, NULL, HX_RESP_WHEN_MS},
	{"pexpireat", -3, WRITE, 1, "Set the expiry of a key, as a Unix time in milliseconds",
	 "2.6.0", GENERIC, hx_resp_plan_expire, NULL, HX_RESP_WHEN_AT_MS},
	{"pexpiretime", 2, READ, 1, "Return the expiry of a key, as a Unix time in milliseconds",
	 "7.0.0", GENERIC, hx_resp_plan_lookup, hx_resp_finish_ttl, HX_RESP_WHEN_AT_MS},
	{"ping", -1, HX_RESP_FAST, 0, "Check the connection", "1.0.0", CONNECTION,
	 hx_resp_plan_ping, NULL, 0},
	{"psetex", 4, HX_RESP_WRITE, 1, "Set the value of a key and its expiry in milliseconds",
	 "2.6.0", STRING, hx_resp_plan_setex, NULL, HX_RESP_WHEN_MS},
	{"pttl", 2, READ, 1, "Return the time until a key expires, in milliseconds", "2.6.0",
	 GENERIC, hx_resp_plan_lookup, hx_resp_finish_ttl, HX_RESP_WHEN_MS},
	{"quit", -1, HX_RESP_NO_AUTH | HX_RESP_NO_QUEUE | HX_RESP_FAST, 0, "Close the connection",
	 "1.0.0", CONNECTION, hx_resp_plan_quit, NULL, 0},
	{"reset", 1, HX_RESP_NO_AUTH | HX_RESP_NO_QUEUE | HX_RESP_FAST, 0, "Reset the connection",
	 "6.2.0", CONNECTION, hx_resp_plan_reset, NULL, 0},
	{"scan", -2, ALONE_READ, 0, "List the keys of the scope, in several calls", "2.8.0",
	 GENERIC, hx_resp_plan_scan, NULL, 0},
	{"script", -2, HX_RESP_PARENT, 0, "Commands for supported scripts", "2.6.0", SCRIPTING,
	 NULL, NULL, 0},
	{"select", 2, HX_RESP_FAST, 0, "Select database 0", "1.0.0", CONNECTION,
	 hx_resp_plan_select, NULL, 0},
	{"set", -3, HX_RESP_WRITE, 1, "Set the value of a key", "1.0.0", STRING, hx_resp_plan_set,
	 NULL, 0},
	{"setex", 4, HX_RESP_WRITE, 1, "Set the value of a key and its expiry in seconds", "2.0.0",
	 STRING, hx_resp_plan_setex, NULL, HX_RESP_WHEN_SECONDS},
	{"setnx", 3, WRITE, 1, "Set the value of a key if the key does not exist", "1.0.0", STRING,
	 hx_resp_plan_setnx, NULL, 0},
	{"strlen", 2, READ, 1, "Return the length of a value", "2.2.0", STRING, hx_resp_plan_lookup,
	 hx_resp_finish_strlen, 0},
	{"time", 1, HX_RESP_FAST, 0, "Return the time of the server", "2.6.0", SERVER,
	 hx_resp_plan_time, NULL, 0},
	{"touch", -2, READ, -1, "Count the given keys that exist", "3.2.1", GENERIC,
	 hx_resp_plan_lookup, hx_resp_finish_exists, 0},
	{"ttl", 2, READ, 1, "Return the time until a key expires, in seconds", "1.0.0", GENERIC,
	 hx_resp_plan_lookup, hx_resp_finish_ttl, HX_RESP_WHEN_SECONDS},
	{"type", 2, READ, 1, "Return the type of a key: string or none", "1.0.0", GENERIC,
	 hx_resp_plan_lookup, hx_resp_finish_type, 0},
	{"unlink", -2, WRITE, -1, "Delete keys", "4.0.0", GENERIC, hx_resp_plan_del, NULL, 0},
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

const struct hx_resp_command *hx_resp_subcommand_next(
	const struct hx_resp_command *command, const struct hx_resp_command *sub)
{
	size_t size = strlen(command->name);

	for (sub = sub == NULL ? subcommands : sub + 1; sub < subcommands + HX_COUNT(subcommands);
	     sub++) {
		if (strncmp(sub->name, command->name, size) == 0 && sub->name[size] == '|')
			return sub;
	}
	return NULL;
}

const struct hx_resp_command *hx_resp_subcommand_find(
	const struct hx_resp_command *command, struct hapax_bytes name)
{
	const struct hx_resp_command *sub = NULL;

	while ((sub = hx_resp_subcommand_next(command, sub)) != NULL) {
		if (compare(name, strchr(sub->name, '|') + 1) == 0)
			break;
	}
	return sub;
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
