/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - pass requests from the door to their handler, and replies back.
 */
#include "api/api.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <hapax/outbox.h>

#include "api/api_request.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/utf8.h"
#include "wire/http1/http1_text.h"
#include "wire/media_type.h"
#include "wire/percent.h"

enum {
	TURN_MS = 10,
	QUERY_SIZE_MAX = 64 * 1024,

	/* Larger replies are streamed as the client reads. */
	WHOLE_SIZE_MAX = 1024 * 1024,
	PIECE_SIZE = 64 * 1024,
};

static void cut_streams(struct hx_api *api);

/* ------------------------------------------------------------------ life */

enum hapax_status hx_api_open(
	const struct hx_api_options *options, struct hx_api **ret_api, struct hapax_error *err)
{
	const char *path = options->audit_path != NULL ? options->audit_path : "";
	struct hx_api *api = hx_alloc_zero(1, sizeof(*api));
	char *audit_path = hx_alloc(strlen(path) + 1);
	enum hapax_status status;

	if (api == NULL || audit_path == NULL) {
		hx_free(api);
		hx_free(audit_path);
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to start the API");
	}
	api->options = *options;
	if (api->options.clock == NULL)
		api->options.clock = hapax_clock_system();
	api->observer = (struct hx_observer){
		.cells = options->cells,
		.log = options->log,
		.decisions = options->decisions,
		.feed = options->feed,
		.writer = options->writer,
		.clock = api->options.clock};
	memcpy(audit_path, path, strlen(path) + 1);
	api->audit_path = audit_path;
	api->options.audit_path = audit_path;
	hx_buf_init(&api->description, HX_API_REPLY_MAX);
	hx_random_bytes(api->cursor_key, sizeof(api->cursor_key));
	hx_api_worker_init(&api->worker, options->reactor);
	hx_api_worker_init(&api->outbox_worker, options->reactor);
	hx_api_worker_init(&api->broker_worker, options->reactor);
	status = hx_api_events_init(api, err);
	if (status != HAPAX_OK) {
		hx_api_worker_stop(&api->worker);
		hx_api_worker_stop(&api->outbox_worker);
		hx_api_worker_stop(&api->broker_worker);
		(void)hx_worker_join(&api->worker.base, INT64_MAX);
		(void)hx_worker_join(&api->outbox_worker.base, INT64_MAX);
		(void)hx_worker_join(&api->broker_worker.base, INT64_MAX);
		hx_free(api->audit_path);
		hx_free(api);
		return status;
	}
	*ret_api = api;
	return HAPAX_OK;
}

static bool is_busy(const struct hx_api *api)
{
	return api->submitted > 0 || api->worker.waiting > 0 || api->outbox_worker.waiting > 0 ||
		api->broker_worker.waiting > 0;
}

bool hx_api_close(struct hx_api *api, int64_t deadline_ns)
{
	if (api == NULL)
		return true;
	hx_api_events_stop(api);
	cut_streams(api);
	/* Jobs of these workers may add an audit entry through the other one. */
	hx_api_worker_stop(&api->outbox_worker);
	hx_api_worker_stop(&api->broker_worker);
	while (api->outbox_worker.waiting + api->broker_worker.waiting > 0 &&
	       hx_clock_mono_ns() < deadline_ns)
		hx_reactor_turn(api->options.reactor, TURN_MS * HX_NS_PER_MS);
	hx_api_worker_stop(&api->worker);
	while (is_busy(api) && hx_clock_mono_ns() < deadline_ns)
		hx_reactor_turn(api->options.reactor, TURN_MS * HX_NS_PER_MS);
	if (is_busy(api) || !hx_worker_join(&api->outbox_worker.base, deadline_ns) ||
	    !hx_worker_join(&api->broker_worker.base, deadline_ns) ||
	    !hx_worker_join(&api->worker.base, deadline_ns))
		return false;
	assert(api->requests == NULL);
	hx_api_events_done(api);
	hx_audit_done(&api->audit);
	hx_buf_done(&api->description);
	hx_free(api->audit_path);
	hx_free(api);
	return true;
}

int64_t hx_api_now_ms(const struct hx_api *api)
{
	return api->options.clock->wall_ms(api->options.clock->context);
}

void hx_api_reloaded(struct hx_api *api)
{
	hx_api_events_stop(api);
}

/* ------------------------------------------------------------------ a request */

static struct hx_api_request *request_new(struct hx_api *api, struct hx_http_exchange *exchange)
{
	struct hx_api_request *request = hx_alloc_zero(1, sizeof(*request));

	if (request == NULL)
		return NULL;
	request->api = api;
	request->exchange = exchange;
	request->came_ns = hx_clock_mono_ns();
	hx_buf_init(&request->text, QUERY_SIZE_MAX);
	hx_buf_init_budget(&request->body_text, HX_JSON_SIZE_MAX, api->options.budget);
	hx_buf_init_budget(&request->out, HX_API_REPLY_MAX, api->options.budget);
	hx_json_reader_init(&request->reader, HX_API_SCRATCH_MAX, api->options.budget);
	request->next = api->requests;
	if (request->next != NULL)
		request->next->back = request;
	api->requests = request;
	return request;
}

static void request_free(struct hx_api_request *request)
{
	if (request->back != NULL)
		request->back->next = request->next;
	else
		request->api->requests = request->next;
	if (request->next != NULL)
		request->next->back = request->back;
	hx_api_batch_free(request->batch);
	hx_json_reader_done(&request->reader);
	hx_buf_done(&request->text);
	hx_buf_done(&request->body_text);
	hx_buf_done(&request->out);
	if (request->extra_done != NULL)
		request->extra_done(request->extra);
	hx_free(request->extra);
	hx_free(request);
}

static void tell_answered(const struct hx_api_request *request, unsigned status)
{
	const struct hx_api_options *options = &request->api->options;

	if (options->answered != NULL)
		options->answered(options->context, status, hx_clock_mono_ns() - request->came_ns);
}

/* Continue a large reply. The request is freed when all of it is written. */
static void stream(struct hx_api_request *request)
{
	bool goes_on = true;

	while (goes_on && request->streamed < request->out.size &&
	       request->exchange->peer != NULL) {
		size_t left = request->out.size - request->streamed;
		size_t size = left < PIECE_SIZE ? left : PIECE_SIZE;

		goes_on = hx_http_stream_write(
			request->exchange, hx_bytes(request->out.data + request->streamed, size));
		request->streamed += size;
	}
	if (!goes_on && request->exchange->peer != NULL)
		return;
	hx_http_stream_end(request->exchange, hx_bytes(NULL, 0));
	request_free(request);
}

static void on_room(struct hx_http_exchange *exchange)
{
	stream(exchange->context);
}

/* Stream a reply that exceeds the buffer of a connection. False: it could not be started. */
static bool stream_reply(struct hx_api_request *request, const struct hx_http_reply *reply)
{
	if (hx_http_stream_begin(request->exchange, reply, on_room) != HAPAX_OK)
		return false;
	request->exchange->context = request;
	request->is_streamed = true;
	stream(request);
	return true;
}

static void cut_streams(struct hx_api *api)
{
	struct hx_api_request *next;

	for (struct hx_api_request *at = api->requests; at != NULL; at = next) {
		next = at->next;
		if (at->is_streamed) {
			hx_http_stream_cut(at->exchange);
			stream(at);
		}
	}
}

void hx_api_reply(struct hx_api_request *request, unsigned status)
{
	const struct hapax_field fields[] = {
		{HX_BYTES_LIT("Cache-Control"), HX_BYTES_LIT("no-store")},
		{HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT("application/json")},
	};

	const struct hx_http_reply reply = {
		.status = status,
		.fields = fields,
		.field_count = request->out.size > 0 ? 2 : 1,
		.body = hapax_buf_bytes(&request->out)};

	tell_answered(request, status);
	if (request->out.size > WHOLE_SIZE_MAX &&
	    !hx_bytes_equal(request->exchange->head.method, HX_BYTES_LIT("HEAD")) &&
	    stream_reply(request, &reply))
		return;
	hx_http_reply(request->exchange, &reply);
	request_free(request);
}

static void send_problem(
	struct hx_api_request *request, const struct hx_http_problem *problem,
	const struct hapax_field *field)
{
	tell_answered(request, problem->status);
	hx_http_reply_problem(request->exchange, problem, field, field != NULL ? 1 : 0);
	request_free(request);
}

void hx_api_problem(
	struct hx_api_request *request, unsigned status, const char *type, const char *format, ...)
{
	static const struct hapax_field later = {HX_BYTES_LIT("Retry-After"), HX_BYTES_LIT("1")};
	static const struct hapax_field bearer = {
		HX_BYTES_LIT("WWW-Authenticate"), HX_BYTES_LIT("Bearer realm=\"hapax\"")};
	char detail[HAPAX_ERROR_MESSAGE_SIZE];
	const struct hapax_field *field = NULL;
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(detail, sizeof(detail), format, arguments);
	va_end(arguments);
	if (status == 503)
		field = &later;
	if (status == 401)
		field = &bearer;
	send_problem(
		request,
		&(struct hx_http_problem){.status = status, .type = type, .detail = detail}, field);
}

unsigned hx_api_status(enum hapax_status status)
{
	switch (status) {
	case HAPAX_OK: return 200;
	case HAPAX_ERR_INVALID: return 400;
	case HAPAX_ERR_FENCED: return 409;
	case HAPAX_ERR_UNSUPPORTED: return 501;
	case HAPAX_ERR_LIMIT:
	case HAPAX_ERR_NO_MEMORY:
	case HAPAX_ERR_UNAVAILABLE:
	case HAPAX_ERR_UNCERTAIN:
	case HAPAX_ERR_FAILED: return 503;
	case HAPAX_ERR_CORRUPT:
	case HAPAX_ERR_HANDLER: break;
	}
	return 500;
}

const char *hx_api_status_text(enum hapax_status status)
{
	switch (status) {
	case HAPAX_OK: break;
	case HAPAX_ERR_INVALID: return "the operation is malformed; nothing changed";
	case HAPAX_ERR_NO_MEMORY: return "not enough memory; nothing changed";
	case HAPAX_ERR_LIMIT: return "the store is full or a limit was reached; nothing changed";
	case HAPAX_ERR_UNAVAILABLE: return "could not reach the store in time; nothing changed";
	case HAPAX_ERR_UNCERTAIN:
		return "it is unknown whether the operation took effect; repeat a claim with "
		       "the same attempt_id, and other operations with the same token";
	case HAPAX_ERR_FENCED:
		return "the token does not hold the key: a newer claim exists, or the key is "
		       "done, released or unknown; stop the work";
	case HAPAX_ERR_CORRUPT:
		return "stored data is damaged; check a file: store with 'hapax fsck', or restore "
		       "a backup";
	case HAPAX_ERR_UNSUPPORTED: return "the store lacks a required capability";
	case HAPAX_ERR_HANDLER: return "a handler failed";
	case HAPAX_ERR_FAILED:
		return "the store failed, and the daemon is shutting down; nothing changed";
	}
	return "unknown";
}

void hx_api_fail(struct hx_api_request *request, enum hapax_status status, const char *detail)
{
	char type[64];

	(void)snprintf(
		type, sizeof(type), HX_API_PROBLEM("%s"),
		status == HAPAX_ERR_NO_MEMORY ? "no-memory" : hapax_status_name(status));
	hx_api_problem(
		request, hx_api_status(status), type, "%s",
		detail != NULL && detail[0] != '\0' ? detail : hx_api_status_text(status));
}

void hx_api_json(struct hx_api_request *request, struct hx_json_write *json)
{
	hx_json_write_init(json, &request->out);
	hx_json_write_begin(json, NULL, '{');
}

void hx_api_reply_json(struct hx_api_request *request, struct hx_json_write *json)
{
	hx_json_write_end(json, '}');
	if (json->status != HAPAX_OK)
		hx_api_fail(request, json->status, NULL);
	else
		hx_api_reply(request, 200);
}

struct hx_http_exchange *hx_api_request_leave(struct hx_api_request *request)
{
	struct hx_http_exchange *exchange = request->exchange;

	tell_answered(request, 200);
	request_free(request);
	return exchange;
}

/* ------------------------------------------------------------------ steps */

static void on_task(struct hx_task *task)
{
	struct hx_api_request *request = task->context;

	request->api->submitted--;
	request->step(request);
}

/* Threads: the store's, or the reactor's. */
static void on_completion(struct hapax_op *ops, size_t count, void *context)
{
	struct hx_api_request *request = context;

	(void)ops;
	(void)count;
	hx_reactor_post(request->api->options.reactor, &request->task);
}

void hx_api_submit(
	struct hx_api_request *request, struct hapax_op *ops, size_t count, hx_api_step_fn *step)
{
	request->step = step;
	request->task = (struct hx_task){.fn = on_task, .context = request};
	request->api->submitted++;
	hapax_store_submit(
		request->api->options.store, ops, count,
		(struct hapax_completion){on_completion, request});
}

struct hx_api_request *hx_api_request_of(struct hx_api_job *job)
{
	return HX_CONTAINER(job, struct hx_api_request, job);
}

static void on_worked(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);

	if (job->was_refused)
		hx_api_problem(request, 503, NULL, "the daemon is shutting down");
	else if (request->status != HAPAX_OK)
		hx_api_fail(request, request->status, request->err.message);
	else
		request->step(request);
}

void hx_api_work(
	struct hx_api_request *request, struct hx_api_worker *worker, hx_api_job_fn *work,
	hx_api_step_fn *step)
{
	struct hapax_error err;
	enum hapax_status status;

	request->step = step;
	request->job.work = work;
	request->job.done = on_worked;
	status = hx_api_worker_ask(worker, &request->job, &err);
	if (status != HAPAX_OK)
		hx_api_fail(request, status, err.message);
}

void *hx_api_extra(struct hx_api_request *request, size_t size, void (*done)(void *extra))
{
	void *extra = hx_alloc_zero(1, size);

	if (extra == NULL) {
		hx_api_fail(request, HAPAX_ERR_NO_MEMORY, NULL);
		return NULL;
	}
	request->extra = extra;
	request->extra_done = done;
	return extra;
}

/* ------------------------------------------------------------------ the door */

/* The allowed values of a name in a path. */
struct name_rule {
	const char *name;
	size_t size_max;
};

/* The rule of the next {name} in a path; moves path past it. */
static const struct name_rule *next_rule(const char **path)
{
	static const struct name_rule rules[] = {
		{"tenant", HX_SCOPE_PART_SIZE_MAX}, {"group", HX_SCOPE_PART_SIZE_MAX},
		{"id", HAPAX_OUTBOX_ID_SIZE - 1},   {"name", HX_API_NAME_SIZE - 1},
		{"key", HX_KEY_SIZE_MAX},
	};
	const char *begin = strchr(*path, '{') + 1;
	size_t size = strcspn(begin, "}");
	size_t i = 0;

	while (strlen(rules[i].name) != size || memcmp(rules[i].name, begin, size) != 0) {
		i++;
		assert(i < HX_COUNT(rules));
	}
	*path = begin + size;
	return &rules[i];
}

/* The names in the path, decoded. False: answered. */
static bool read_names(struct hx_api_request *request, const struct hx_api_match *match)
{
	const char *path = match->route->path;

	for (size_t i = 0; i < HX_API_NAMES_MAX && match->names[i].size > 0; i++) {
		unsigned char *at = request->text.data + request->text.size;
		const struct name_rule *rule = next_rule(&path);
		size_t size;

		if (!hx_percent_decode(match->names[i], at, &size)) {
			hx_api_problem(
				request, 400, NULL,
				"the %s has a percent sign without two hexadecimal digits at "
				"offset %zu",
				rule->name, size);
			return false;
		}
		if (size > rule->size_max) {
			hx_api_problem(
				request, 400, NULL, "the %s is too long: %zu bytes, limit %zu",
				rule->name, size, rule->size_max);
			return false;
		}
		request->text.size += size;
		request->names[i] = hx_bytes(at, size);
	}
	return true;
}

static bool read_line(struct hx_api_request *request, const struct hx_api_match *match)
{
	struct hapax_error err;
	enum hapax_status status =
		hx_buf_reserve(&request->text, request->exchange->head.path.size);

	if (status != HAPAX_OK) {
		hx_api_fail(request, status, NULL);
		return false;
	}
	if (!read_names(request, match))
		return false;
	status = hx_api_query_read(
		request->route->parameters, match->query, &request->text, request->values, &err);
	if (status != HAPAX_OK)
		hx_api_fail(request, status, err.message);
	return status == HAPAX_OK;
}

static const char *role_name(enum hx_api_role role)
{
	static const char *const names[] = {"none", "read", "write", "admin"};

	return names[role];
}

static void refuse_tenant(struct hx_api_request *request)
{
	hx_api_problem(
		request, 403, HX_API_PROBLEM("forbidden"),
		"this API token is limited to tenant '%s'", request->caller.tenant);
}

bool hx_api_may_use(struct hx_api_request *request, struct hapax_bytes tenant)
{
	struct hapax_bytes own = hapax_bytes_from_text(request->caller.tenant);

	if (own.size == 0 ||
	    hx_bytes_equal(own, tenant.size > 0 ? tenant : HX_BYTES_LIT("default")))
		return true;
	refuse_tenant(request);
	return false;
}

void hx_api_refuse_role(struct hx_api_request *request, enum hx_api_role wanted)
{
	if (request->caller.is_read_only && wanted == HX_API_ROLE_READ)
		hx_api_problem(
			request, 403, HX_API_PROBLEM("read-only"),
			"no API token is configured (auth.tokens), so only this host may read, "
			"as localhost or by its address");
	else if (request->caller.is_read_only)
		hx_api_problem(
			request, 403, HX_API_PROBLEM("read-only"),
			"no API token is configured, so the API is read-only; this request "
			"needs an API token with the role %s (auth.tokens)",
			role_name(wanted));
	else if (request->caller.role == HX_API_ROLE_NONE)
		hx_api_problem(
			request, 401, HX_API_PROBLEM("unauthorized"),
			"this request needs an API token with the role %s: Authorization: "
			"Bearer TOKEN",
			role_name(wanted));
	else
		hx_api_problem(
			request, 403, HX_API_PROBLEM("forbidden"),
			"this request needs the role %s, but the API token has %s",
			role_name(wanted), role_name(request->caller.role));
}

static bool check_role(struct hx_api_request *request)
{
	if (request->caller.role < request->route->role) {
		hx_api_refuse_role(request, request->route->role);
		return false;
	}
	if (request->route->is_whole && request->caller.tenant[0] != '\0') {
		refuse_tenant(request);
		return false;
	}
	return true;
}

/* A body must be JSON: a browser page cannot send that to another site without a preflight. */
static bool check_type(struct hx_api_request *request)
{
	struct hapax_bytes type = hx_http1_known(&request->exchange->head, HX_HTTP1_CONTENT_TYPE);

	if (type.data != NULL && hx_media_type_is_json(type))
		return true;
	hx_api_problem(request, 415, NULL, "the body must be JSON: Content-Type: application/json");
	return false;
}

static bool read_body(struct hx_api_request *request)
{
	const struct hx_api_route *route = request->route;
	struct hx_http_exchange *exchange = request->exchange;
	struct hapax_error err;
	enum hapax_status status;

	if (route->body == HX_API_BODY_NONE ||
	    (route->body == HX_API_BODY_OPTIONAL && exchange->body.size == 0))
		return true;
	if (!check_type(request))
		return false;
	status = hx_http_body_whole(&exchange->body, &request->body_text, &request->body, &err);
	if (status == HAPAX_OK)
		status = hx_json_reader_read(&request->reader, request->body, &err);
	if (status == HAPAX_ERR_LIMIT)
		hx_api_problem(request, 413, NULL, "%s", err.message);
	else if (status != HAPAX_OK)
		hx_api_fail(request, status, err.message);
	return status == HAPAX_OK;
}

static void refuse_path(struct hx_api_request *request, bool has_path)
{
	char allow[HX_API_ALLOW_SIZE];
	struct hapax_field field = {HX_BYTES_LIT("Allow"), hx_bytes(NULL, 0)};

	if (!has_path) {
		hx_api_problem(request, 404, NULL, "no such path; see /openapi.json");
		return;
	}
	hx_api_allow(request->exchange->head.path, allow);
	field.value = hapax_bytes_from_text(allow);
	send_problem(request, &(struct hx_http_problem){.status = 405}, &field);
}

void hx_api_handle(
	struct hx_api *api, struct hx_http_exchange *exchange, const struct hx_api_caller *caller)
{
	struct hx_api_request *request = request_new(api, exchange);
	struct hx_api_match match;

	if (request == NULL) {
		if (api->options.answered != NULL)
			api->options.answered(api->options.context, 503, 0);
		hx_http_reply_problem(exchange, &(struct hx_http_problem){.status = 503}, NULL, 0);
		return;
	}
	request->caller = *caller;
	hx_api_match(exchange->head.method, exchange->head.path, &match);
	request->route = match.route;
	if (match.route == NULL)
		refuse_path(request, match.has_path);
	else if (check_role(request) && read_line(request, &match) && read_body(request))
		match.route->handle(request);
}
