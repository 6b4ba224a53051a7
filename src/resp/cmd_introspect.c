/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_introspect.c - commands that describe the server to clients, tools and people.
 */
#include <stdio.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/process.h"
#include "resp/resp_command.h"
#include "resp/commands.h"

enum { INFO_SIZE_MAX = 8 * 1024, LIST_SIZE_MAX = 256 * 1024 };

void hx_resp_plan_ok(struct hx_resp_call *call)
{
	(void)hx_resp_put_simple(call->text, "OK");
}

void hx_resp_plan_time(struct hx_resp_call *call)
{
	const struct hapax_clock *clock = call->service->options.clock;
	int64_t ms = clock->wall_ms(clock->context);

	(void)hx_resp_put_array(call->text, 2);
	(void)hx_resp_put_bulk_integer(call->text, ms / 1000);
	(void)hx_resp_put_bulk_integer(call->text, ms % 1000 * 1000);
}

/* Room for a reply that lists things. False: refused. */
static bool make_room(struct hx_resp_call *call)
{
	return hx_buf_reserve(call->text, LIST_SIZE_MAX) == HAPAX_OK ||
		hx_resp_refuse(call, "OOM not enough memory for the reply");
}

/* ---------------------------------------------------------------- COMMAND */

static void put_flags(struct hx_resp_call *call, unsigned flags)
{
	static const struct {
		unsigned flag;
		const char *name;
	} names[] = {
		{HX_RESP_WRITE, "write"},     {HX_RESP_READ, "readonly"}, {HX_RESP_FAST, "fast"},
		{HX_RESP_NO_AUTH, "no_auth"}, {HX_RESP_ADMIN, "admin"},
	};
	size_t count = 0;

	for (size_t i = 0; i < HX_COUNT(names); i++)
		count += (flags & names[i].flag) != 0;
	(void)hx_resp_put_set(call->text, count, call->session->protocol);
	for (size_t i = 0; i < HX_COUNT(names); i++) {
		if (flags & names[i].flag)
			(void)hx_resp_put_simple(call->text, names[i].name);
	}
}

static size_t subcommand_count(const struct hx_resp_command *command)
{
	const struct hx_resp_command *sub = NULL;
	size_t count = 0;

	while ((sub = hx_resp_subcommand_next(command, sub)) != NULL)
		count++;
	return count;
}

static void put_command(struct hx_resp_call *call, const struct hx_resp_command *command)
{
	const struct hx_resp_command *sub = NULL;
	struct hapax_buf *text = call->text;
	int has_keys = command->last_key != 0;

	(void)hx_resp_put_array(text, 10);
	(void)hx_resp_put_text(text, command->name);
	(void)hx_resp_put_integer(text, command->arity);
	put_flags(call, command->flags);
	(void)hx_resp_put_integer(text, has_keys); /* the first key */
	(void)hx_resp_put_integer(text, command->last_key);
	(void)hx_resp_put_integer(text, has_keys);               /* from key to key */
	(void)hx_resp_put_set(text, 0, call->session->protocol); /* ACL categories */
	(void)hx_resp_put_array(text, 0);                        /* tips */
	(void)hx_resp_put_array(text, 0);                        /* key specifications */
	(void)hx_resp_put_array(text, subcommand_count(command));
	while ((sub = hx_resp_subcommand_next(command, sub)) != NULL)
		put_command(call, sub);
}

static size_t offered_count(const struct hx_resp_service *service)
{
	size_t count = 0;

	for (size_t i = 0; i < hx_resp_command_count(); i++)
		count += hx_resp_command_is_offered(hx_resp_command_at(i), service);
	return count;
}

static void put_offered(
	struct hx_resp_call *call,
	void (*put)(struct hx_resp_call *call, const struct hx_resp_command *command))
{
	for (size_t i = 0; i < hx_resp_command_count(); i++) {
		if (hx_resp_command_is_offered(hx_resp_command_at(i), call->service))
			put(call, hx_resp_command_at(i));
	}
}

void hx_resp_plan_command(struct hx_resp_call *call)
{
	if (!make_room(call))
		return;
	(void)hx_resp_put_array(call->text, offered_count(call->service));
	put_offered(call, put_command);
}

void hx_resp_plan_command_count(struct hx_resp_call *call)
{
	(void)hx_resp_put_integer(call->text, (int64_t)offered_count(call->service));
}

/* Also accepts "client|setname". */
static const struct hx_resp_command *find_by_full_name(
	const struct hx_resp_call *call, struct hapax_bytes name)
{
	const char *bar = name.size == 0 ? NULL : memchr(name.data, '|', name.size);
	const struct hx_resp_command *command;
	size_t size = bar == NULL ? name.size : (size_t)(bar - (const char *)name.data);

	command = hx_resp_command_find(hx_bytes(name.data, size));
	if (command == NULL || !hx_resp_command_is_offered(command, call->service))
		return NULL;
	if (bar == NULL)
		return command;
	return hx_resp_subcommand_find(command, hx_bytes(bar + 1, name.size - size - 1));
}

void hx_resp_plan_command_info(struct hx_resp_call *call)
{
	if (call->argc == 2) {
		hx_resp_plan_command(call);
		return;
	}
	if (!make_room(call))
		return;
	(void)hx_resp_put_array(call->text, call->argc - 2);
	for (size_t i = 2; i < call->argc; i++) {
		const struct hx_resp_command *command = find_by_full_name(call, call->argv[i]);

		if (hx_buf_reserve(call->text, LIST_SIZE_MAX) != HAPAX_OK) {
			call->session->is_closing = call->session->is_abrupt = true;
			return;
		}
		if (command != NULL)
			put_command(call, command);
		else
			(void)hx_resp_put_null(call->text, call->session->protocol);
	}
}

static void put_name(struct hx_resp_call *call, const struct hx_resp_command *command)
{
	(void)hx_resp_put_text(call->text, command->name);
}

void hx_resp_plan_command_list(struct hx_resp_call *call)
{
	if (call->argc > 2) {
		hx_resp_refuse_syntax(call);
		return;
	}
	if (!make_room(call))
		return;
	(void)hx_resp_put_array(call->text, offered_count(call->service));
	put_offered(call, put_name);
}

static void put_doc(struct hx_resp_call *call, const struct hx_resp_command *command)
{
	const struct hx_resp_command *sub = NULL;
	struct hapax_buf *text = call->text;
	int protocol = call->session->protocol;
	size_t count = subcommand_count(command);

	(void)hx_resp_put_text(text, command->name);
	(void)hx_resp_put_map(text, 3 + (count > 0), protocol);
	(void)hx_resp_put_text(text, "summary");
	(void)hx_resp_put_text(text, command->summary);
	(void)hx_resp_put_text(text, "since");
	(void)hx_resp_put_text(text, command->since);
	(void)hx_resp_put_text(text, "group");
	(void)hx_resp_put_text(text, command->group);
	if (count == 0)
		return;
	(void)hx_resp_put_text(text, "subcommands");
	(void)hx_resp_put_map(text, count, protocol);
	while ((sub = hx_resp_subcommand_next(command, sub)) != NULL)
		put_doc(call, sub);
}

void hx_resp_plan_command_docs(struct hx_resp_call *call)
{
	size_t count = 0;

	if (!make_room(call))
		return;
	if (call->argc == 2) {
		(void)hx_resp_put_map(
			call->text, offered_count(call->service), call->session->protocol);
		put_offered(call, put_doc);
		return;
	}
	for (size_t i = 2; i < call->argc; i++)
		count += find_by_full_name(call, call->argv[i]) != NULL;
	(void)hx_resp_put_map(call->text, count, call->session->protocol);
	for (size_t i = 2; i < call->argc; i++) {
		const struct hx_resp_command *command = find_by_full_name(call, call->argv[i]);

		if (hx_buf_reserve(call->text, LIST_SIZE_MAX) != HAPAX_OK) {
			call->session->is_closing = call->session->is_abrupt = true;
			return;
		}
		if (command != NULL)
			put_doc(call, command);
	}
}

/* ---------------------------------------------------------------- HELP */

/* Prints the help of the parent command. */
void hx_resp_plan_help(struct hx_resp_call *call)
{
	const struct hx_resp_command *parent = call->session->command;
	const struct hx_resp_command *sub = NULL;
	char line[160];

	if (!make_room(call))
		return;
	(void)hx_resp_put_array(call->text, 2 * subcommand_count(parent));
	while ((sub = hx_resp_subcommand_next(parent, sub)) != NULL) {
		(void)hx_resp_put_simple(call->text, strchr(sub->name, '|') + 1);
		(void)snprintf(line, sizeof(line), "    %s.", sub->summary);
		(void)hx_resp_put_simple(call->text, line);
	}
}

/* ---------------------------------------------------------------- CONFIG GET */

struct fact {
	const char *name;
	const char *value; /* NULL: number */
	uint64_t number;
};

static bool is_durable(const struct hx_resp_service *service)
{
	return (hapax_store_capabilities(service->options.store) & HAPAX_STORE_DURABLE) != 0;
}

/* The eviction policy of the store, by its Redis name. */
static const char *eviction(const struct hx_resp_service *service)
{
	return service->options.evict == HAPAX_EVICT_LRU ? "allkeys-lru" : "noeviction";
}

static bool fact_is_asked_for(const struct hx_resp_call *call, const struct fact *fact)
{
	for (size_t i = 2; i < call->argc; i++) {
		if (hx_resp_glob(call->argv[i], hapax_bytes_from_text(fact->name), true))
			return true;
	}
	return false;
}

static void put_fact(struct hx_resp_call *call, const struct fact *fact)
{
	(void)hx_resp_put_text(call->text, fact->name);
	if (fact->value != NULL)
		(void)hx_resp_put_text(call->text, fact->value);
	else
		(void)hx_resp_put_bulk_integer(call->text, (int64_t)fact->number);
}

/* The settings that clients and tools look for and that apply to this door. */
void hx_resp_plan_config_get(struct hx_resp_call *call)
{
	const struct hx_resp_service *service = call->service;
	const struct fact facts[] = {
		{.name = "appendonly", .value = is_durable(service) ? "yes" : "no"},
		{.name = "databases", .number = 1},
		{.name = "maxmemory", .number = service->options.bytes_max},
		{.name = "maxmemory-policy", .value = eviction(service)},
		{.name = "proto-max-bulk-len", .number = hx_resp_service_bulk_size_max(service)},
		{.name = "replica-read-only", .value = "yes"},
		{.name = "save", .value = ""},
		{.name = "timeout", .number = 0},
	};
	enum { COUNT = HX_COUNT(facts) };
	size_t count = 0;

	for (size_t i = 0; i < COUNT; i++)
		count += fact_is_asked_for(call, &facts[i]);
	(void)hx_resp_put_map(call->text, count, call->session->protocol);
	for (size_t i = 0; i < COUNT; i++) {
		if (fact_is_asked_for(call, &facts[i]))
			put_fact(call, &facts[i]);
	}
}

/* ---------------------------------------------------------------- INFO */

struct info {
	struct hx_resp_service *service;
	bool is_divided;
	struct hapax_stats stats;
	struct hapax_buf *out;
};

static void info_server(struct info *info)
{
	const struct hapax_clock *clock = info->service->options.clock;
	int64_t up_ms = clock->boot_ms(clock->context) - info->service->started_ms;

	(void)hx_buf_printf(
		info->out,
		"redis_version:" HX_RESP_REDIS_VERSION "\r\nredis_mode:standalone\r\nos:Linux\r\n"
		"process_id:%ld\r\ntcp_port:%u\r\nuptime_in_seconds:%lld\r\nuptime_in_days:%lld\r\n"
		"hapax_version:%s\r\n",
		(long)hx_process_id(), info->service->options.port, (long long)(up_ms / 1000),
		(long long)(up_ms / 86400000), hapax_version());
}

static void info_clients(struct info *info)
{
	(void)hx_buf_printf(
		info->out, "connected_clients:%llu\r\nblocked_clients:0\r\n",
		(unsigned long long)atomic_load(&info->service->clients));
}

static void info_memory(struct info *info)
{
	(void)hx_buf_printf(
		info->out,
		"used_memory:%llu\r\nused_memory_human:%.2fM\r\nmaxmemory:%llu\r\n"
		"maxmemory_policy:%s\r\n",
		(unsigned long long)info->stats.bytes, (double)info->stats.bytes / 1048576.0,
		(unsigned long long)info->stats.bytes_max, eviction(info->service));
}

static void info_persistence(struct info *info)
{
	(void)hx_buf_printf(
		info->out,
		"loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:%d\r\n"
		"aof_rewrite_in_progress:0\r\n",
		is_durable(info->service));
}

static void info_stats(struct info *info)
{
	struct hx_resp_service *service = info->service;

	(void)hx_buf_printf(
		info->out,
		"total_connections_received:%llu\r\ntotal_commands_processed:%llu\r\n"
		"instantaneous_ops_per_sec:0\r\nexpired_keys:%llu\r\nevicted_keys:%llu\r\n"
		"keyspace_hits:%llu\r\nkeyspace_misses:%llu\r\n",
		(unsigned long long)atomic_load(&service->connections),
		(unsigned long long)atomic_load(&service->commands),
		(unsigned long long)info->stats.swept, (unsigned long long)info->stats.evicted,
		(unsigned long long)(info->is_divided ? 0 : atomic_load(&service->hits)),
		(unsigned long long)(info->is_divided ? 0 : atomic_load(&service->misses)));
}

static void info_replication(struct info *info)
{
	(void)hx_buf_printf(info->out, "role:master\r\nconnected_slaves:0\r\n");
}

static void info_keyspace(struct info *info)
{
	uint64_t keys = info->stats.keys - info->stats.expired;

	if (keys > 0)
		(void)hx_buf_printf(
			info->out, "db0:keys=%llu,expires=%llu,avg_ttl=0\r\n",
			(unsigned long long)keys, (unsigned long long)keys);
}

static void info_hapax(struct info *info)
{
	(void)hx_buf_printf(
		info->out,
		"hapax_store:%s\r\nhapax_claimed:%llu\r\nhapax_done:%llu\r\nhapax_failed:%llu\r\n"
		"hapax_parked:%llu\r\n",
		hapax_store_name(info->service->options.store),
		(unsigned long long)info->stats.claimed, (unsigned long long)info->stats.done,
		(unsigned long long)info->stats.failed, (unsigned long long)info->stats.parked);
}

static const struct {
	const char *name;
	const char *title;
	void (*put)(struct info *info);
} sections[] = {
	{"SERVER", "Server", info_server},       {"CLIENTS", "Clients", info_clients},
	{"MEMORY", "Memory", info_memory},       {"PERSISTENCE", "Persistence", info_persistence},
	{"STATS", "Stats", info_stats},          {"REPLICATION", "Replication", info_replication},
	{"KEYSPACE", "Keyspace", info_keyspace}, {"HAPAX", "Hapax", info_hapax},
};

static bool section_is_asked_for(const struct hx_resp_call *call, const char *name)
{
	if (call->argc == 1)
		return true;
	for (size_t i = 1; i < call->argc; i++) {
		if (hx_resp_is_word(call->argv[i], name) || hx_resp_is_word(call->argv[i], "ALL") ||
		    hx_resp_is_word(call->argv[i], "DEFAULT") ||
		    hx_resp_is_word(call->argv[i], "EVERYTHING"))
			return true;
	}
	return false;
}

/* Whether there are users of other tenants. */
static bool is_divided(const struct hx_resp_call *call)
{
	const struct hx_resp_service_options *options = &call->service->options;

	for (size_t i = 0; i < options->user_count; i++) {
		if (!hx_bytes_equal(options->users[i].tenant, call->session->tenant))
			return true;
	}
	return false;
}

void hx_resp_plan_info(struct hx_resp_call *call)
{
	struct info info = {
		.service = call->service, .stats = HAPAX_STATS_INIT, .out = &call->session->kept};

	/*
	 * Clients ask for this when they connect. Counting on a shared store may be slow and block
	 * other clients, so the numbers are then zero. They are also zero if they would reveal
	 * other tenants.
	 */
	info.is_divided = is_divided(call);
	if (call->service->is_local && !info.is_divided)
		(void)hapax_store_stats(
			call->service->options.store, &info.stats, NULL, NULL, NULL);
	hx_buf_clear(info.out);
	if (hx_buf_reserve(info.out, INFO_SIZE_MAX) == HAPAX_OK) {
		for (size_t i = 0; i < HX_COUNT(sections); i++) {
			if (!section_is_asked_for(call, sections[i].name))
				continue;
			(void)hx_buf_printf(
				info.out, "%s# %s\r\n", info.out->size > 0 ? "\r\n" : "",
				sections[i].title);
			sections[i].put(&info);
		}
	}
	if (hx_resp_put_verbatim(
		    call->text, hx_bytes(info.out->data, info.out->size),
		    call->session->protocol) != HAPAX_OK)
		hx_resp_refuse(call, "OOM not enough memory for the reply");
	hx_buf_done(info.out);
}
