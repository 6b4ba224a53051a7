/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_handler.c - an HTTP service as the handler of messages.
 */
#include "source/handler/http_handler.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "net/http/http_url.h"
#include "net/tls/tls.h"
#include "processor/http_status.h"
#include "source/handler/event_writer.h"
#include "wire/http1/http1_text.h"
#include "wire/http1/http1_write.h"

enum { REQUEST_SIZE_MAX = 256 * 1024, BODY_SIZE_MAX = 64 * 1024 * 1024 };

static void fail(struct hx_intake *intake, enum hapax_run_outcome outcome, const char *why)
{
	(void)snprintf(intake->error_text, sizeof(intake->error_text), "%s", why);
	hx_intake_finish(intake, outcome, NULL, hapax_bytes_from_text(intake->error_text));
}

/* The service's own fields; not those of the connection, nor for one client only. */
static bool is_kept(const struct hx_http1_head *head, struct hapax_bytes name)
{
	return !hx_http1_text_equal(name, HX_BYTES_LIT("Date")) &&
		!hx_http1_text_equal(name, HX_BYTES_LIT("Set-Cookie")) &&
		!(name.size > 6 &&
	          hx_http1_text_equal(hx_bytes(name.data, 6), HX_BYTES_LIT("Hapax-"))) &&
		!hx_http1_is_hop(head, name);
}

static void on_head(struct hx_http_call *call, const struct hx_http1_head *head)
{
	struct hx_intake *intake = call->context;

	intake->status = head->status;
	/* The request is sent: its memory holds the fields of the response from here on. */
	hx_buf_clear(&intake->fields);
	for (size_t i = 0; i < head->field_count; i++) {
		const struct hapax_field *field = &head->fields[i];

		if (is_kept(head, field->name))
			(void)hx_buf_printf(
				&intake->fields, "%.*s: %.*s\r\n", (int)field->name.size,
				(const char *)field->name.data, (int)field->value.size,
				(const char *)field->value.data);
	}
}

static void on_data(struct hx_http_call *call, struct hapax_bytes data)
{
	struct hx_intake *intake = call->context;
	const struct hx_http_handler *handler =
		(const struct hx_http_handler *)intake->http_handler;

	intake->body_size += data.size;
	if (intake->body_size > handler->result_size_max ||
	    hx_buf_append(&intake->response, data.data, data.size) != HAPAX_OK)
		hx_buf_done(&intake->response);
}

static void end_complete(struct hx_intake *intake)
{
	enum hapax_run_outcome outcome =
		hx_http_status_outcome(HX_HTTP_STATUS_OF_EVENT, NULL, intake->status);
	struct hapax_result result = {.kind = HAPAX_RESULT_HTTP};
	char why[64];

	(void)snprintf(why, sizeof(why), "the service answered with status %u", intake->status);
	if (outcome == HAPAX_RUN_TRANSIENT) {
		fail(intake, outcome, why);
		return;
	}
	result.status = (int32_t)intake->status;
	result.headers = hapax_buf_bytes(&intake->fields);
	result.body = hapax_buf_bytes(&intake->response);
	if (intake->response.size != intake->body_size) {
		result.omitted_bytes = intake->body_size;
		result.body = hx_bytes(NULL, 0);
	}
	(void)snprintf(
		intake->error_text, sizeof(intake->error_text), "%s",
		outcome == HAPAX_RUN_DEFINITIVE ? why : "");
	hx_intake_finish(intake, outcome, &result, hapax_bytes_from_text(intake->error_text));
}

static void on_end(
	struct hx_http_call *call, enum hx_http_call_end how, const struct hapax_error *err)
{
	struct hx_intake *intake = call->context;

	if (how == HX_HTTP_CALL_COMPLETE)
		end_complete(intake);
	else
		fail(intake, how == HX_HTTP_CALL_UNSENT ? HAPAX_RUN_TRANSIENT : HAPAX_RUN_AMBIGUOUS,
		     err->message);
}

static bool may_send(struct hx_http_call *call)
{
	const struct hx_intake *intake = call->context;

	return hx_intake_may_begin(intake);
}

static const struct hx_http_call_ops call_ops = {
	.may_send = may_send,
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
};

/* Once in the life of an intake. */
static enum hapax_status prepare(struct hx_http_handler *handler, struct hx_intake *intake)
{
	enum hapax_status status;

	if (intake->has_http)
		return HAPAX_OK;
	status = hx_http_call_init(&intake->http, handler->reactor, &call_ops, intake);
	if (status != HAPAX_OK)
		return status;
	hx_buf_init(&intake->request, REQUEST_SIZE_MAX);
	hx_buf_init(&intake->document, BODY_SIZE_MAX);
	hx_buf_init(&intake->fields, HX_RESULT_HEADERS_SIZE_MAX / 2);
	hx_buf_init(&intake->response, HX_RESULT_SIZE_LIMIT);
	intake->http_handler = &handler->base;
	intake->has_http = true;
	return HAPAX_OK;
}

static void write_tag(struct hx_http1_writer *writer, const struct hapax_duplicate *duplicate)
{
	struct hapax_bytes name = HX_BYTES_LIT("Hapax-Original");
	char first_seen[32];

	hx_http1_write_field(
		writer, HX_BYTES_LIT("Hapax-Duplicate"),
		hapax_bytes_from_text(hapax_duplicate_cause_name(duplicate->cause)));
	/* A queue may have any name. */
	if (duplicate->original.size > 0 && hx_http1_is_field(name, duplicate->original))
		hx_http1_write_field(writer, name, duplicate->original);
	hx_clock_format_utc(duplicate->first_seen_ms, first_seen);
	hx_http1_write_field(
		writer, HX_BYTES_LIT("Hapax-First-Seen"), hapax_bytes_from_text(first_seen));
}

static enum hapax_status write_request(
	const struct hx_http_handler *handler, struct hx_intake *intake, struct hapax_error *err)
{
	struct hx_http1_writer writer;
	enum hapax_status status;

	hx_buf_clear(&intake->request);
	hx_http1_write_request(
		&writer, &intake->request, HX_BYTES_LIT("POST"),
		hapax_bytes_from_text(handler->path));
	hx_http1_write_field(
		&writer, HX_BYTES_LIT("Host"), hapax_bytes_from_text(handler->authority));
	status = handler->form == HAPAX_FORM_STRUCTURED
		? hx_event_write_structured(intake, &writer, &intake->document, &intake->http.body)
		: hx_event_write_binary(intake, &writer, &intake->http.body);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "the event did not fit into a request");
	hx_http1_write_field(&writer, HX_BYTES_LIT("User-Agent"), HX_BYTES_LIT("hapax"));
	if (intake->token != 0) {
		hx_http1_write_number(&writer, HX_BYTES_LIT("Hapax-Token"), intake->token);
		hx_http1_write_number(&writer, HX_BYTES_LIT("Hapax-Attempt"), intake->attempt);
	}
	if (intake->is_tagged)
		write_tag(&writer, &intake->duplicate);
	hx_http1_write_length(&writer, intake->http.body.size);
	return hx_http1_write_end(&writer, err);
}

static void start(struct hx_handler *base, struct hx_intake *intake)
{
	struct hx_http_handler *handler = (struct hx_http_handler *)base;
	struct hapax_error err = {.message = "out of memory"};
	enum hapax_status status = prepare(handler, intake);
	int64_t deadline_ns = INT64_MAX;

	if (status == HAPAX_OK)
		status = write_request(handler, intake, &err);
	if (status == HAPAX_OK) {
		intake->status = 0;
		intake->body_size = 0;
		hx_buf_clear(&intake->response);
		intake->http.head = hapax_buf_bytes(&intake->request);
		intake->http.file = NULL;
		if (handler->max_run_ms < INT64_MAX / HX_NS_PER_MS / 2)
			deadline_ns = hx_reactor_now_ns(handler->reactor) +
				handler->max_run_ms * HX_NS_PER_MS;
		status = hx_http_call_begin(&intake->http, &handler->client, deadline_ns, &err);
	}
	if (status != HAPAX_OK)
		fail(intake, HAPAX_RUN_TRANSIENT, err.message);
}

/* Its time is up. */
static void stop(struct hx_handler *base, struct hx_intake *intake)
{
	struct hx_http_handler *handler = (struct hx_http_handler *)base;

	intake->http.deadline_ns = hx_reactor_now_ns(handler->reactor);
	hx_timer_set(&handler->reactor->timers, &intake->http.timer, intake->http.deadline_ns);
}

static void forget(struct hx_handler *base, struct hx_intake *intake)
{
	struct hx_http_handler *handler = (struct hx_http_handler *)base;

	if (!intake->has_http)
		return;
	hx_http_call_done(&intake->http, handler->reactor);
	hx_buf_done(&intake->request);
	hx_buf_done(&intake->document);
	hx_buf_done(&intake->fields);
	hx_buf_done(&intake->response);
	intake->has_http = false;
}

static const struct hx_handler_ops ops = {.start = start, .stop = stop, .forget = forget};

enum hapax_status hx_http_handler_init(
	struct hx_http_handler *handler, struct hx_reactor *reactor, struct hx_resolver *resolver,
	const char *url, size_t parallel, struct hapax_error *err)
{
	struct hx_http_client_options options = {.connections_max = parallel};
	enum hapax_status status = HAPAX_OK;
	char why[HX_HTTP_URL_WHY_SIZE];
	struct hx_http_url target;

	memset(handler, 0, sizeof(*handler));
	if (!hx_http_url_parse(url, &target, why))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the URL to send to %s", why);
	if (target.authority.size >= sizeof(handler->authority) ||
	    target.path.size >= sizeof(handler->path) - 1)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the URL to send to was too long");
	memcpy(handler->authority, target.authority.data, target.authority.size);
	if (target.path.size == 0)
		handler->path[0] = '/';
	else
		memcpy(handler->path, target.path.data, target.path.size);
	if (target.is_tls)
		status = hx_tls_client_context_new(
			&(struct hx_tls_options){.authority_file = NULL}, &handler->tls, err);
	if (status != HAPAX_OK)
		return status;
	options.tls = handler->tls;
	handler->base.ops = &ops;
	handler->reactor = reactor;
	hx_http_client_init(&handler->client, reactor, resolver, &target.endpoint, &options);
	return HAPAX_OK;
}

void hx_http_handler_close(struct hx_http_handler *handler)
{
	hx_http_client_close(&handler->client);
}

void hx_http_handler_done(struct hx_http_handler *handler)
{
	if (handler->base.ops == NULL)
		return;
	hx_http_client_done(&handler->client);
	hx_tls_context_free(handler->tls);
	memset(handler, 0, sizeof(*handler));
}
