/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebuild.c - POST /consumers/{name}/rebuild: a consumer that is not enabled starts over.
 *
 * The broker is asked first: it refuses a group that has members, and nothing is forgotten then. It
 * is asked again afterwards: a member that came meanwhile has passed messages whose keys were done.
 */
#include <stdio.h>
#include <string.h>

#include "api/api_request.h"
#include "base/bytes.h"
#include "config/config.h"

enum { DETAIL_SIZE = 2048 };

#define AT(member) .offset = offsetof(struct hx_rebuild_json, member)
static const struct hx_json_field rebuild_fields[] = {
	{"confirm", HX_JSON_FIELD_TEXT, .uses = HX_JSON_FIELD_ALWAYS,
	 .required = HX_JSON_FIELD_ALWAYS, AT(confirm), .min = 1, .max = HX_API_NAME_SIZE - 1,
	 .doc = "the name of the consumer"},
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
	uint64_t forgotten;
	enum hapax_status status; /* a failure is audited, too */
};

static void task_done(void *extra)
{
	struct task *task = extra;

	hx_config_release(task->config);
}

/* Threads: the worker's. */
static void rebuild(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct task *task = request->extra;
	const struct hx_config_consumer *consumer = task->consumer;

	task->status = hapax_source_rewind(consumer->from, task->from_ms, &request->err);
	if (task->status == HAPAX_OK)
		task->status = hapax_store_forget_scope(
			request->api->options.store,
			hapax_bytes_from_text(
				consumer->keying.tenant[0] == '\0' ? "default"
								   : consumer->keying.tenant),
			hapax_bytes_from_text(
				consumer->keying.group[0] == '\0' ? "default"
								  : consumer->keying.group),
			NULL, NULL, &task->forgotten, &request->err);
	if (task->status == HAPAX_OK)
		task->status = hapax_source_rewind(consumer->from, task->from_ms, &request->err);
}

static void audit(struct hx_api_request *request)
{
	const struct task *task = request->extra;
	struct hapax_buf detail;
	struct hx_json_write json;

	hx_buf_init(&detail, DETAIL_SIZE);
	hx_json_write_init(&json, &detail);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(&json, "consumer", task->consumer->name);
	hx_json_write_unsigned(&json, "forgotten", task->forgotten);
	hx_json_write_end(&json, '}');
	hx_api_audit_request(
		request,
		&(struct hx_audit_entry){
			.action = "consumer.rebuild",
			.outcome = task->status == HAPAX_OK ? "applied"
							    : hapax_status_name(task->status),
			.detail = json.status == HAPAX_OK ? hapax_buf_bytes(&detail)
							  : hx_bytes(NULL, 0)});
	hx_buf_done(&detail);
}

static void on_rebuilt(struct hx_api_request *request)
{
	const struct task *task = request->extra;
	struct hx_json_write json;

	audit(request);
	if (task->status != HAPAX_OK) {
		hx_api_fail(request, task->status, request->err.message);
		return;
	}
	hx_api_json(request, &json);
	hx_json_write_text(&json, "name", task->consumer->name);
	hx_json_write_unsigned(&json, "forgotten", task->forgotten);
	hx_api_reply_json(request, &json);
}

/* False: answered. */
static bool check(
	struct hx_api_request *request, const struct hx_config_consumer *consumer,
	struct hapax_bytes confirm)
{
	if (!hx_bytes_equal(confirm, request->names[0]))
		hx_api_problem(request, 400, NULL, "confirm must be the name of the consumer");
	else if (consumer == NULL)
		hx_api_no_consumer(request);
	else if (consumer->enabled)
		hx_api_problem(
			request, 409, HX_API_PROBLEM("enabled"),
			"the consumer is enabled; set enabled: false and reload, on every daemon that "
			"has it");
	else if (consumer->keying.tenant_from[0] != '\0' || consumer->keying.group_from[0] != '\0')
		hx_api_problem(
			request, 409, HX_API_PROBLEM("many-scopes"),
			"the messages of this consumer choose their scope; rebuild each scope with "
			"'hapax consume rebuild --from URL --scope TENANT/GROUP'");
	else
		return true;
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
	if (check(request, task->consumer, said.confirm) && has_ended(request, task->consumer))
		hx_api_work(request, &request->api->broker_worker, rebuild, on_rebuilt);
}
