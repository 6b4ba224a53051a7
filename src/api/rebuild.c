/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebuild.c - POST /consumers/{name}/rebuild: a consumer that is not enabled starts over.
 *
 * The broker is asked first: it refuses a group that has members, and nothing is forgotten then. It
 * is asked again afterwards: a member that came meanwhile has passed messages whose keys were done.
 * A scope that others can use is refused: their claims would be fenced.
 *
 * A request forgets for a while, then answers that it is not done: the client shows progress, and
 * asks again. A client that does not leaves a group that starts over with some of its keys known, as
 * a crash does.
 */
#include <stdio.h>
#include <string.h>

#include "api/api_request.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "config/config.h"

enum { SHARER_SIZE = 256, SLICE_MS = 10 * 1000, SLICE_KEYS = 100 * 1000 };

#define AT(member) .offset = offsetof(struct hx_rebuild_json, member)
static const struct hx_json_field rebuild_fields[] = {
	{"confirm", HX_JSON_FIELD_TEXT, .uses = HX_JSON_FIELD_ALWAYS,
	 .required = HX_JSON_FIELD_ALWAYS, AT(confirm), .min = 1, .max = HX_API_SCOPE_SIZE - 1,
	 .doc = "the scope of the consumer, as in acme/orders"},
	{"shared", HX_JSON_FIELD_BOOLEAN, .uses = HX_JSON_FIELD_ALWAYS, AT(shared),
	 .doc = "forget the scope also if others use it"},
	{"from_time", HX_JSON_FIELD_TIME, .uses = HX_JSON_FIELD_ALWAYS, AT(from_ms),
	 .doc = "read from this time on (default: from the beginning)"},
	{.name = NULL},
};
#undef AT
const struct hx_json_section hx_rebuild_json_section = {
	"the body", .fields = rebuild_fields,
	.given_offset = offsetof(struct hx_rebuild_json, given)};

struct task {
	struct hx_config *config; /* kept */
	const struct hx_config_consumer *consumer;
	int64_t from_ms;
	int64_t until_ns;
	uint64_t forgotten;
	bool is_done;
	enum hapax_status status; /* a failure is audited, too */
};

static void task_done(void *extra)
{
	struct task *task = extra;

	hx_config_release(task->config);
}

/* Threads: the worker's. */
static int is_enough(void *context, uint64_t forgotten)
{
	struct hx_api_request *request = context;
	struct task *task = request->extra;

	task->is_done = forgotten < SLICE_KEYS && hx_clock_mono_ns() < task->until_ns &&
		!hx_worker_is_stopped(&request->api->broker_worker.base);
	return !task->is_done;
}

/* Threads: the worker's. */
static void rebuild(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct task *task = request->extra;
	const struct hx_config_consumer *consumer = task->consumer;

	task->is_done = true;
	task->until_ns = hx_clock_mono_ns() + SLICE_MS * HX_NS_PER_MS;
	task->status = hapax_source_rewind(consumer->from, task->from_ms, &request->err);
	if (task->status == HAPAX_OK)
		task->status = hapax_store_forget_scope(
			request->api->options.store, hx_config_scope_part(consumer->keying.tenant),
			hx_config_scope_part(consumer->keying.group), is_enough, request,
			&task->forgotten, &request->err);
	if (task->status == HAPAX_OK && task->is_done)
		task->status = hapax_source_rewind(consumer->from, task->from_ms, &request->err);
}

static void write_audit(struct hx_json_write *json, const struct hx_api_request *request)
{
	const struct task *task = request->extra;
	char scope[HX_API_SCOPE_SIZE];

	hx_json_write_text(json, "consumer", task->consumer->name);
	(void)hx_api_consumer_scope(task->consumer, scope);
	hx_json_write_any(json, "scope", hapax_bytes_from_text(scope));
	hx_json_write_unsigned(json, "forgotten", task->forgotten);
	hx_json_write_boolean(json, "done", task->is_done);
}

static void on_rebuilt(struct hx_api_request *request)
{
	const struct task *task = request->extra;
	struct hx_json_write json;

	hx_api_audit_detail(
		request, "consumer.rebuild",
		task->status == HAPAX_OK ? "applied" : hapax_status_name(task->status),
		write_audit);
	if (task->status != HAPAX_OK) {
		hx_api_fail(request, task->status, request->err.message);
		return;
	}
	hx_api_json(request, &json);
	hx_json_write_text(&json, "name", task->consumer->name);
	hx_json_write_unsigned(&json, "forgotten", task->forgotten);
	hx_json_write_boolean(&json, "done", task->is_done);
	hx_api_reply_json(request, &json);
}

/* Can a sender whose scope is set like this use that of keying? "": its events do not choose. */
static bool can_reach(
	const struct hx_config_keying *keying, const char *tenant, const char *tenant_from,
	const char *group, const char *group_from)
{
	return (tenant_from[0] != '\0' ||
		hx_bytes_equal(
			hx_config_scope_part(tenant), hx_config_scope_part(keying->tenant))) &&
		(group_from[0] != '\0' ||
		 hx_bytes_equal(hx_config_scope_part(group), hx_config_scope_part(keying->group)));
}

/* The first in the configuration that can use the scope of consumer, too. False: none. */
static bool find_sharer(
	const struct hx_config *config, const struct hx_config_consumer *consumer,
	char out[SHARER_SIZE])
{
	const struct hx_config_keying *scope = &consumer->keying;
	const char *kind = NULL, *name = "";

	for (size_t i = 0; i < config->consumer_count && kind == NULL; i++) {
		const struct hx_config_keying *keying = &config->consumers[i].keying;

		if (&config->consumers[i] == consumer ||
		    !can_reach(
			    scope, keying->tenant, keying->tenant_from, keying->group,
			    keying->group_from))
			continue;
		kind = "consumer";
		name = config->consumers[i].name;
	}
	for (size_t i = 0; i < config->gateway.route_count && kind == NULL; i++) {
		const struct hx_config_keying *keying = &config->gateway.routes[i].keying;

		if (!can_reach(
			    scope, keying->tenant, keying->tenant_from, keying->group,
			    keying->group_from))
			continue;
		kind = "gateway route";
		name = config->gateway.routes[i].name;
	}
	for (size_t i = 0; i < config->proxy.route_count && kind == NULL; i++) {
		const struct hx_config_proxy_route *route = &config->proxy.routes[i];

		if (!can_reach(scope, route->tenant, "", route->group, ""))
			continue;
		kind = "proxy route";
		name = route->name;
	}
	for (size_t i = 0; i < config->resp.user_count && kind == NULL; i++) {
		const struct hx_config_resp_user *user = &config->resp.users[i];

		if (!can_reach(scope, user->tenant, "", user->group, ""))
			continue;
		kind = "Redis user";
		name = user->name;
	}
	if (kind != NULL)
		(void)snprintf(out, SHARER_SIZE, "%s '%.150s'", kind, name);
	else if (can_reach(scope, "", "", "", ""))
		(void)snprintf(out, SHARER_SIZE, "every client that names no scope");
	else
		return false;
	return true;
}

/* False: answered. */
static bool check_scope(
	struct hx_api_request *request, const struct task *task, const char *scope,
	const struct hx_rebuild_json *said)
{
	char sharer[SHARER_SIZE];

	if (!said->shared && find_sharer(task->config, task->consumer, sharer))
		hx_api_problem(
			request, 409, HX_API_PROBLEM("shared-scope"),
			"the scope '%s' is also that of %s; set tenant or group, so that the consumer "
			"has a scope of its own (shared, or --shared-scope, forgets the keys of all)",
			scope, sharer);
	else if (!hx_bytes_equal(said->confirm, hapax_bytes_from_text(scope)))
		hx_api_problem(
			request, 400, NULL, "confirm must be the scope of the consumer, '%s'",
			scope);
	else
		return true;
	return false;
}

/* False: answered. */
static bool check(
	struct hx_api_request *request, const struct task *task, const struct hx_rebuild_json *said)
{
	const struct hx_config_consumer *consumer = task->consumer;
	char scope[HX_API_SCOPE_SIZE];

	if (consumer == NULL)
		hx_api_no_consumer(request);
	else if (consumer->enabled)
		hx_api_problem(
			request, 409, HX_API_PROBLEM("enabled"),
			"the consumer is enabled; set enabled: false and reload, on every daemon that "
			"has it");
	else if (!hx_api_consumer_scope(consumer, scope))
		hx_api_problem(
			request, 409, HX_API_PROBLEM("many-scopes"),
			"the messages of this consumer choose their scope; rebuild each scope with "
			"'hapax consume rebuild --from URL --scope TENANT/GROUP'");
	else
		return check_scope(request, task, scope, said);
	return false;
}

/* A question about one of the daemon's consumers. */
struct ending {
	const char *name;
	bool has_ended;
};

static void look_at(void *context, const struct hx_api_consumer *consumer)
{
	struct ending *ending = context;

	if (strcmp(consumer->name, ending->name) == 0 && consumer->is_open)
		ending->has_ended = false;
}

/* False: answered. It was switched off, but its last runs go on. */
static bool has_ended(struct hx_api_request *request, const struct hx_config_consumer *consumer)
{
	const struct hx_api_options *options = &request->api->options;
	struct ending ending = {consumer->name, true};

	if (options->consumers != NULL)
		options->consumers(options->context, look_at, &ending);
	if (!ending.has_ended)
		hx_api_problem(
			request, 409, HX_API_PROBLEM("enabled"),
			"the consumer is still finishing its runs; try again");
	return ending.has_ended;
}

void hx_api_post_rebuild(struct hx_api_request *request)
{
	struct hx_rebuild_json said = {.given = 0};
	struct task *task;
	enum hapax_status status = hx_json_object_read(
		&request->reader, &request->reader.tree.nodes[0], request->route->section,
		request->route->use, &said, &request->err);

	if (status != HAPAX_OK) {
		hx_api_fail(request, status, request->err.message);
		return;
	}
	task = hx_api_extra(request, sizeof(*task), task_done);
	if (task == NULL)
		return;
	task->config = hx_config_current_keep(request->api->options.current);
	task->from_ms = said.from_ms;
	task->consumer = hx_api_consumer_named(task->config, request->names[0]);
	if (check(request, task, &said) && has_ended(request, task->consumer))
		hx_api_work(request, &request->api->broker_worker, rebuild, on_rebuilt);
}
