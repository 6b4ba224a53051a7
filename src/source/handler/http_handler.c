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

static void fail(struct hx_in_flight *in_flight, enum hapax_run_outcome outcome, const char *why)
{
	(void)snprintf(in_flight->error_text, sizeof(in_flight->error_text), "%s", why);
	hx_in_flight_finish(in_flight, outcome, NULL, hapax_bytes_from_text(in_flight->error_text));
}

/* The service's own fields, not those of the connection or for one client only. */
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
	struct hx_in_flight *in_flight = call->context;

	in_flight->status = head->status;
	/* The request is sent: reuse its memory for the fields of the response. */
	hx_buf_clear(&in_flight->fields);
	for (size_t i = 0; i < head->field_count; i++) {
		const struct hapax_field *field = &head->fields[i];

		if (is_kept(head, field->name))
			(void)hx_buf_printf(
				&in_flight->fields, "%.*s: %.*s\r\n", (int)field->name.size,
				(const char *)field->name.data, (int)field->value.size,
				(const char *)field->value.data);
	}
}

static void on_data(struct hx_http_call *call, struct hapax_bytes data)
{
	struct hx_in_flight *in_flight = call->context;
	const struct hx_http_handler *handler =
		(const struct hx_http_handler *)in_flight->http_handler;

	in_flight->body_size += data.size;
	if (in_flight->body_size > handler->result_size_max ||
	    hx_buf_append(&in_flight->response, data.data, data.size) != HAPAX_OK)
		hx_buf_done(&in_flight->response);
}

static void end_complete(struct hx_in_flight *in_flight)
{
	enum hapax_run_outcome outcome =
		hx_http_status_outcome(HX_HTTP_STATUS_OF_MESSAGE, NULL, in_flight->status);
	struct hapax_result result = {.kind = HAPAX_RESULT_HTTP};
	char why[64];

	(void)snprintf(why, sizeof(why), "the service answered with status %u", in_flight->status);
	if (outcome == HAPAX_RUN_TRANSIENT) {
		fail(in_flight, outcome, why);
		return;
	}
	result.status = (int32_t)in_flight->status;
	result.headers = hapax_buf_bytes(&in_flight->fields);
	result.body = hapax_buf_bytes(&in_flight->response);
	if (in_flight->response.size != in_flight->body_size) {
		result.omitted_bytes = in_flight->body_size;
		result.body = hx_bytes(NULL, 0);
	}
	(void)snprintf(
		in_flight->error_text, sizeof(in_flight->error_text), "%s",
		outcome == HAPAX_RUN_DEFINITIVE ? why : "");
	hx_in_flight_finish(
		in_flight, outcome, &result, hapax_bytes_from_text(in_flight->error_text));
}

static void on_end(
	struct hx_http_call *call, enum hx_http_call_end how, const struct hapax_error *err)
{
	struct hx_in_flight *in_flight = call->context;

	if (how == HX_HTTP_CALL_COMPLETE) {
		end_complete(in_flight);
		return;
	}
	in_flight->status = 0;
	fail(in_flight, how == HX_HTTP_CALL_UNSENT ? HAPAX_RUN_TRANSIENT : HAPAX_RUN_AMBIGUOUS,
	     err->message);
}

static bool may_send(struct hx_http_call *call)
{
	const struct hx_in_flight *in_flight = call->context;

	return hx_in_flight_may_begin(in_flight);
}

static const struct hx_http_call_ops call_ops = {
	.may_send = may_send,
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
};

/* Called once per in_flight. */
static enum hapax_status prepare(struct hx_http_handler *handler, struct hx_in_flight *in_flight)
{
	enum hapax_status status;

	if (in_flight->has_http)
		return HAPAX_OK;
	status = hx_http_call_init(&in_flight->http, handler->reactor, &call_ops, in_flight);
	if (status != HAPAX_OK)
		return status;
	hx_buf_init(&in_flight->request, REQUEST_SIZE_MAX);
	hx_buf_init(&in_flight->document, BODY_SIZE_MAX);
	hx_buf_init(&in_flight->fields, HX_RESULT_HEADERS_SIZE_MAX / 2);
	hx_buf_init(&in_flight->response, HX_RESULT_SIZE_LIMIT);
	in_flight->http_handler = &handler->base;
	in_flight->has_http = true;
	return HAPAX_OK;
}

static void write_tag(struct hx_http1_writer *writer, const struct hapax_duplicate *duplicate)
{
	struct hapax_bytes name = HX_BYTES_LIT("Hapax-Original");
	char first_seen[32];

	hx_http1_write_field(
		writer, HX_BYTES_LIT("Hapax-Duplicate"),
		hapax_bytes_from_text(hapax_duplicate_cause_name(duplicate->cause)));
	/* The place may contain any queue name. */
	if (duplicate->original.size > 0 && hx_http1_is_field(name, duplicate->original))
		hx_http1_write_field(writer, name, duplicate->original);
	hx_clock_format_utc(duplicate->first_seen_ms, first_seen);
	hx_http1_write_field(
		writer, HX_BYTES_LIT("Hapax-First-Seen"), hapax_bytes_from_text(first_seen));
}

static enum hapax_status write_request(
	const struct hx_http_handler *handler, struct hx_in_flight *in_flight,
	struct hapax_error *err)
{
	struct hx_http1_writer writer;
	enum hapax_status status;

	hx_buf_clear(&in_flight->request);
	hx_http1_write_request(
		&writer, &in_flight->request, HX_BYTES_LIT("POST"),
		hapax_bytes_from_text(handler->path));
	hx_http1_write_field(
		&writer, HX_BYTES_LIT("Host"), hapax_bytes_from_text(handler->authority));
	status = handler->form == HAPAX_FORM_STRUCTURED
		? hx_event_writer_structured(
			  in_flight, &writer, &in_flight->document, &in_flight->http.body)
		: hx_event_writer_binary(in_flight, &writer, &in_flight->http.body);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "the event is too long for a request");
	hx_http1_write_field(&writer, HX_BYTES_LIT("User-Agent"), HX_BYTES_LIT("hapax"));
	if (in_flight->token != 0) {
		hx_http1_write_number(&writer, HX_BYTES_LIT("Hapax-Token"), in_flight->token);
		hx_http1_write_number(&writer, HX_BYTES_LIT("Hapax-Attempt"), in_flight->attempt);
	}
	if (in_flight->is_tagged)
		write_tag(&writer, &in_flight->duplicate);
	hx_http1_write_length(&writer, in_flight->http.body.size);
	return hx_http1_write_end(&writer, err);
}

static void start(struct hx_handler *base, struct hx_in_flight *in_flight)
{
	struct hx_http_handler *handler = (struct hx_http_handler *)base;
	struct hapax_error err = {.message = "not enough memory"};
	enum hapax_status status = prepare(handler, in_flight);
	int64_t deadline_ns = INT64_MAX;

	if (status == HAPAX_OK)
		status = write_request(handler, in_flight, &err);
	if (status == HAPAX_OK) {
		in_flight->status = 0;
		in_flight->body_size = 0;
		hx_buf_clear(&in_flight->response);
		in_flight->http.head = hapax_buf_bytes(&in_flight->request);
		in_flight->http.file = NULL;
		if (handler->max_run_ms < INT64_MAX / HX_NS_PER_MS / 2)
			deadline_ns = hx_reactor_now_ns(handler->reactor) +
				handler->max_run_ms * HX_NS_PER_MS;
		status = hx_http_call_begin(&in_flight->http, &handler->client, deadline_ns, &err);
	}
	if (status != HAPAX_OK)
		fail(in_flight, HAPAX_RUN_TRANSIENT, err.message);
}

/* Timeout. */
static void stop(struct hx_handler *base, struct hx_in_flight *in_flight)
{
	struct hx_http_handler *handler = (struct hx_http_handler *)base;

	in_flight->http.deadline_ns = hx_reactor_now_ns(handler->reactor);
	hx_timer_set(
		&handler->reactor->timers, &in_flight->http.timer, in_flight->http.deadline_ns);
}

static void forget(struct hx_handler *base, struct hx_in_flight *in_flight)
{
	struct hx_http_handler *handler = (struct hx_http_handler *)base;

	if (!in_flight->has_http)
		return;
	hx_http_call_done(&in_flight->http, handler->reactor);
	hx_buf_done(&in_flight->request);
	hx_buf_done(&in_flight->document);
	hx_buf_done(&in_flight->fields);
	hx_buf_done(&in_flight->response);
	in_flight->has_http = false;
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
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the URL of the handler %s", why);
	if (target.authority.size >= sizeof(handler->authority) ||
	    target.path.size >= sizeof(handler->path) - 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the URL of the handler is too long; limits: HOST:PORT %zu bytes, path %zu",
			sizeof(handler->authority) - 1, sizeof(handler->path) - 2);
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

void hx_http_handler_done(struct hx_http_handler *handler)
{
	if (handler->base.ops == NULL)
		return;
	hx_http_client_done(&handler->client);
	hx_tls_context_free(handler->tls);
	memset(handler, 0, sizeof(*handler));
}
