/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.c - sends a request to its upstream and handles the response.
 *
 * Requests are written again from the parsed request, never passed on as received. Fields of a
 * connection are removed. So is every field that begins with Hapax-: only hapax writes these, so an
 * upstream may trust them. Request fields whose name has characters other than letters, digits and
 * hyphens are removed, too; response fields with such names pass.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"
#include "processor/http_status.h"
#include "serve/daemon/daemon.h"
#include "serve/http/delivery.h"
#include "wire/http1/http1_text.h"
#include "wire/http1/http1_write.h"

static bool begins_with(struct hapax_bytes name, struct hapax_bytes prefix)
{
	return name.size >= prefix.size &&
		hx_http1_text_equal(hx_bytes(name.data, prefix.size), prefix);
}

static bool is(struct hapax_bytes name, struct hapax_bytes other)
{
	return name.size == other.size && hx_http1_text_equal(name, other);
}

/*
 * Hapax_Token, X_API_Key, ce_id: hapax ignores them, but an upstream may read them as Hapax-Token,
 * X-API-Key and ce-id. nginx drops them as well.
 */
static bool is_disguised(const struct hx_delivery *delivery, struct hapax_bytes name)
{
	struct hx_logger *log = delivery->loop->serve->log;

	if (hx_http1_is_plain_name(name))
		return false;
	if (hx_logger_takes(log, HX_LOGGER_DEBUG)) {
		const struct hx_logger_field fields[] = {
			HX_LOGGER_BYTES("field", name),
			HX_LOGGER_TEXT("route", delivery->claim.route_name)};

		hx_logger(
			log, HX_LOGGER_DEBUG,
			"header dropped: only letters, digits and hyphens are allowed in its name",
			fields, 2);
	}
	return true;
}

/* A field that names client, host or scheme: written by proxies, and forged by clients. */
static bool tells_origin(struct hapax_bytes name)
{
	return begins_with(name, HX_BYTES_LIT("X-Forwarded-")) ||
		is(name, HX_BYTES_LIT("Forwarded")) || is(name, HX_BYTES_LIT("X-Real-IP"));
}

/* Whether a field of a request is removed. */
static bool stays(const struct hx_delivery *delivery, struct hapax_bytes name)
{
	if (tells_origin(name) && !delivery->exchange->is_trusted)
		return true;
	return begins_with(name, HX_BYTES_LIT("Hapax-")) || is_disguised(delivery, name) ||
		is(name, HX_BYTES_LIT("Host")) || is(name, HX_BYTES_LIT("Expect")) ||
		is(name, HX_BYTES_LIT("X-Forwarded-For")) ||
		(delivery->batch != NULL &&
		 (is(name, HX_BYTES_LIT("Content-Type")) ||
		  begins_with(name, HX_BYTES_LIT("ce-")))) ||
		hx_http1_is_hop(&delivery->exchange->head, name);
}

/* If an earlier proxy wrote Forwarded (RFC 7239), our peer becomes its last element. */
static void write_rfc7239(struct hx_http1_writer *writer, const struct hx_http_exchange *exchange)
{
	static const struct hapax_bytes name = HX_BYTES_LIT("Forwarded");
	bool is_v6 = strchr(exchange->client, ':') != NULL;
	char element[HX_HTTP_CLIENT_SIZE + 16];

	if (!exchange->is_trusted || exchange->client[0] == '\0' ||
	    hx_http1_find(&exchange->head, name, 0) == exchange->head.field_count)
		return;
	(void)snprintf(
		element, sizeof(element), is_v6 ? "for=\"[%s]\"" : "for=%s", exchange->client);
	hx_http1_write_field(writer, name, hapax_bytes_from_text(element));
}

/* The chain of clients: the earlier ones, if our peer is trusted, then our peer. */
static void write_forwarded(struct hx_http1_writer *writer, const struct hx_http_exchange *exchange)
{
	static const struct hapax_bytes name = HX_BYTES_LIT("X-Forwarded-For");
	const struct hx_http1_head *head = &exchange->head;

	for (size_t i = hx_http1_find(head, name, 0); exchange->is_trusted && i < head->field_count;
	     i = hx_http1_find(head, name, i + 1))
		hx_http1_write_field(writer, name, head->fields[i].value);
	if (exchange->client[0] != '\0')
		hx_http1_write_field(writer, name, hapax_bytes_from_text(exchange->client));
	write_rfc7239(writer, exchange);
}

/*
 * The host and scheme of the request, unless an earlier proxy has set them. An API behind a proxy
 * builds links from them, and redirects clients that seem to come without TLS.
 */
static void write_origin(struct hx_http1_writer *writer, const struct hx_http_exchange *exchange)
{
	const struct hx_http1_head *head = &exchange->head;
	const struct hapax_field fields[] = {
		{HX_BYTES_LIT("X-Forwarded-Host"), head->authority},
		{HX_BYTES_LIT("X-Forwarded-Proto"),
		 hapax_bytes_from_text(exchange->server->options.tls != NULL ? "https" : "http")},
	};

	for (size_t i = 0; i < HX_COUNT(fields); i++) {
		if (fields[i].value.size > 0 &&
		    (!exchange->is_trusted ||
		     hx_http1_find(head, fields[i].name, 0) == head->field_count))
			hx_http1_write_field(writer, fields[i].name, fields[i].value);
	}
}

static enum hapax_status write_head(
	struct hx_delivery *delivery, const struct hapax_answer *answer, uint64_t body_size,
	struct hapax_error *err)
{
	const struct hx_http1_head *head = &delivery->exchange->head;
	const struct hx_config_target *target = delivery->claim.target;
	struct hapax_buf *out = &delivery->call.head;
	struct hx_http1_writer writer;
	char path[2 * HX_HTTP1_LINE_MAX];
	size_t prefix_size = strlen(target->path);

	/* A configured URL is shorter than a line. */
	assert(prefix_size + head->path.size <= sizeof(path));
	memcpy(path, target->path, prefix_size);
	memcpy(path + prefix_size, head->path.data, head->path.size);
	hx_buf_clear(out);
	hx_http1_write_request(
		&writer, out, head->method, hx_bytes(path, prefix_size + head->path.size));
	hx_http1_write_field(
		&writer, HX_BYTES_LIT("Host"), hapax_bytes_from_text(target->authority));
	for (size_t i = 0; i < head->field_count; i++) {
		if (!stays(delivery, head->fields[i].name) &&
		    !hx_tracing_replaces(delivery, head->fields[i].name))
			hx_http1_write_read_field(&writer, &head->fields[i]);
	}
	if (delivery->batch != NULL)
		hx_http1_write_field(
			&writer, HX_BYTES_LIT("Content-Type"),
			HX_BYTES_LIT("application/cloudevents+json"));
	hx_tracing_write(delivery, &writer);
	write_forwarded(&writer, delivery->exchange);
	if (delivery->door == HX_DOOR_PROXY)
		write_origin(&writer, delivery->exchange);
	hx_http1_write_field(&writer, HX_BYTES_LIT("Via"), HX_BYTES_LIT("1.1 hapax"));
	if (!(answer->flags & HAPAX_ANSWER_UNPROTECTED)) {
		hx_http1_write_number(&writer, HX_BYTES_LIT("Hapax-Token"), answer->token);
		hx_http1_write_number(&writer, HX_BYTES_LIT("Hapax-Attempt"), answer->attempt);
	}
	/* A GET without a body has no length either. */
	if (delivery->door == HX_DOOR_GATEWAY || head->body != HX_HTTP1_BODY_NONE)
		hx_http1_write_length(&writer, body_size);
	return hx_http1_write_end(&writer, err);
}

/* Nothing was sent, and nothing will be. */
static void fail(struct hx_delivery *delivery, bool is_revoked, const struct hapax_error *err)
{
	delivery->call.status = 0;
	delivery->call.took_ns = -1;
	delivery->call.is_late = false;
	delivery->call.is_revoked = is_revoked;
	delivery->call.outcome = HAPAX_RUN_TRANSIENT;
	delivery->call.failure = *err;
	hx_tracing_called(delivery);
	hx_delivery_finish(delivery);
}

void hx_forward(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hx_loop *loop = delivery->loop;
	struct hx_http_exchange *exchange = delivery->exchange;
	struct hx_http_call *call = &delivery->call.http;
	enum hapax_status status;
	struct hapax_error err;

	call->file = NULL;
	call->is_head = hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("HEAD"));
	call->body = hx_bytes(NULL, 0);
	if (delivery->batch != NULL)
		call->body = delivery->batch->event;
	else if (
		exchange->body.size <= HX_LARGE_SIZE_MIN &&
		hx_http_body_is_in_memory(&exchange->body))
		call->body = hapax_buf_bytes(&exchange->body.memory);
	else
		call->file = &exchange->body;
	delivery->call.status = 0;
	delivery->call.body_size = 0;
	delivery->call.headers_kept = 0;
	delivery->call.is_late = false;
	delivery->call.is_streamed = false;
	hx_buf_clear(&delivery->call.headers);
	hx_buf_clear(&delivery->call.body);
	delivery->call.sent_ns = hx_reactor_now_ns(&loop->reactor);
	status = write_head(
		delivery, answer, call->file != NULL ? call->file->size : call->body.size, &err);
	if (status == HAPAX_OK) {
		call->head = hapax_buf_bytes(&delivery->call.head);
		status = hx_http_call_begin(
			call, &delivery->claim.upstream->client,
			delivery->call.sent_ns + delivery->claim.options.max_run_ms * HX_NS_PER_MS,
			&err);
	}
	if (status != HAPAX_OK)
		fail(delivery, false, &err);
}

/*
 * It has waited, for this thread or a connection, or the whole process was suspended. Another
 * process may have taken over and sent it.
 */
static bool may_send(struct hx_http_call *call)
{
	const struct hx_delivery *delivery = call->context;

	return delivery->claim.run == NULL || hapax_run_may_begin(delivery->claim.run);
}

void hx_forward_late(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hapax_error err;

	if (may_send(&delivery->call.http)) {
		hx_forward(delivery, answer);
		return;
	}
	delivery->call.sent_ns = hx_reactor_now_ns(&delivery->loop->reactor);
	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "the lease lapsed before the request was sent");
	fail(delivery, true, &err);
}

/* Whether a response field is withheld from the client. */
static bool is_private(const struct hx_http1_head *head, struct hapax_bytes name)
{
	return is(name, HX_BYTES_LIT("Date")) || begins_with(name, HX_BYTES_LIT("Hapax-")) ||
		hx_http1_is_hop(head, name);
}

static enum hapax_status keep_field(struct hapax_buf *out, const struct hapax_field *field)
{
	enum hapax_status status = hx_buf_reserve(out, field->name.size + field->value.size + 4);

	/* If the whole line has room, none of its parts fails. */
	if (status != HAPAX_OK)
		return status;
	(void)hx_buf_append(out, field->name.data, field->name.size);
	(void)hx_buf_append(out, ": ", 2);
	(void)hx_buf_append(out, field->value.data, field->value.size);
	(void)hx_buf_append(out, "\r\n", 2);
	return HAPAX_OK;
}

/* Cookies are for the first client only, not for a replay. */
static bool is_kept(const struct hx_delivery *delivery, struct hapax_bytes name)
{
	const struct hx_config_proxy_route *route = delivery->claim.proxy;

	if (route == NULL)
		return !is(name, HX_BYTES_LIT("Set-Cookie"));
	for (size_t i = 0; i < route->replay_header_count; i++) {
		if (is(name, hapax_bytes_from_text(route->replay_headers[i])))
			return true;
	}
	return false;
}

/* The stored fields come first. */
static void keep_fields(struct hx_delivery *delivery, const struct hx_http1_head *head)
{
	struct hapax_buf *out = &delivery->call.headers;

	hx_tracing_keep(delivery, out);
	for (size_t i = 0; i < head->field_count; i++) {
		struct hapax_bytes name = head->fields[i].name;

		/* A head is smaller than the buffer; without memory a field is left out. */
		if (is_kept(delivery, name) && !is_private(head, name))
			(void)keep_field(out, &head->fields[i]);
	}
	delivery->call.headers_kept = out->size;
	for (size_t i = 0; i < head->field_count; i++) {
		struct hapax_bytes name = head->fields[i].name;

		if (!is_kept(delivery, name) && !is_private(head, name))
			(void)keep_field(out, &head->fields[i]);
	}
}

/* A passed-through request has only a time limit per step, not in total. */
static void prolong(struct hx_delivery *delivery)
{
	hx_http_call_prolong(
		&delivery->call.http,
		hx_reactor_now_ns(&delivery->loop->reactor) +
			delivery->claim.options.max_run_ms * HX_NS_PER_MS);
}

static void on_head(struct hx_http_call *call, const struct hx_http1_head *head)
{
	struct hx_delivery *delivery = call->context;

	delivery->call.status = head->status;
	keep_fields(delivery, head);
	if (delivery->claim.passes) {
		prolong(delivery);
		hx_delivery_pass(delivery, head);
	}
}

static void note_body(struct hx_delivery *delivery)
{
	hx_block_pool_note(
		&delivery->loop->reactor.blocks, &delivery->call.body_noted,
		delivery->call.body.capacity);
}

static bool keep_data(struct hx_delivery *delivery, struct hapax_bytes data)
{
	uint64_t max = delivery->claim.options.result_size_max;

	return (max == 0 || delivery->call.body_size <= max) &&
		hx_buf_append(&delivery->call.body, data.data, data.size) == HAPAX_OK;
}

/* Keeps the body up to the limit; of a larger one the sender gets all, and its size is kept. */
static void on_data(struct hx_http_call *call, struct hapax_bytes data)
{
	struct hx_delivery *delivery = call->context;
	bool is_whole = delivery->call.body.size == delivery->call.body_size;

	delivery->call.body_size += data.size;
	if (is_whole && !delivery->call.is_streamed) {
		if (keep_data(delivery, data)) {
			note_body(delivery);
			return;
		}
		hx_delivery_stream(delivery);
		hx_buf_done(&delivery->call.body);
		note_body(delivery);
	}
	if (delivery->call.is_streamed && !hx_http_stream_write(delivery->exchange, data))
		hx_http_call_pause(call);
	if (!delivery->claim.passes)
		return;
	prolong(delivery);
	/* It has no client that waits for its end. */
	if (delivery->exchange->peer == NULL)
		hx_http_call_abandon(call);
}

/* The sender reads so slowly that the run would be late: recording the outcome matters more. */
static void on_hurry(struct hx_http_call *call)
{
	struct hx_delivery *delivery = call->context;

	if (delivery->call.is_streamed)
		hx_http_stream_cut(delivery->exchange);
	hx_http_call_resume(call);
}

enum hapax_run_outcome hx_forward_outcome(const struct hx_delivery *delivery)
{
	const struct hx_delivery_claim *claim = &delivery->claim;

	static_assert(
		(int)HX_HTTP_STATUS_MIN == (int)HX_CONFIG_STATUS_MIN &&
			(int)HX_HTTP_STATUS_MAX == (int)HX_CONFIG_STATUS_MAX,
		"a route's own outcomes are those of the same statuses");

	assert((claim->route == NULL) != (claim->proxy == NULL));
	if (claim->route != NULL)
		return hx_http_status_outcome(
			HX_HTTP_STATUS_OF_EVENT, claim->route->outcomes.table,
			delivery->call.status);
	return hx_http_status_outcome(
		HX_HTTP_STATUS_OF_REQUEST, claim->proxy->outcomes.table, delivery->call.status);
}

/* Any 4xx is legitimate for a passed-through request. */
static bool is_failure(const struct hx_delivery *delivery)
{
	if (delivery->claim.passes)
		return delivery->call.status == 0 || delivery->call.status >= 500;
	return delivery->call.outcome != HAPAX_RUN_OK;
}

/* A reply, whatever its status, shows that the upstream is there. */
static void note_upstream(const struct hx_delivery *delivery, enum hx_http_call_end end)
{
	struct hx_conditions *conditions = &delivery->loop->serve->conditions;
	const char *authority = delivery->claim.target->authority;

	if (end == HX_HTTP_CALL_COMPLETE) {
		hx_condition_end(conditions, HX_CONDITION_UPSTREAM_DOWN, authority);
		hx_condition_end(conditions, HX_CONDITION_UPSTREAM_SLOW, authority);
	} else if (!delivery->call.is_revoked) {
		hx_condition_begin(
			conditions,
			delivery->call.is_late ? HX_CONDITION_UPSTREAM_SLOW
					       : HX_CONDITION_UPSTREAM_DOWN,
			authority, delivery->call.failure.message);
	}
}

static void on_end(
	struct hx_http_call *call, enum hx_http_call_end end, const struct hapax_error *err)
{
	struct hx_delivery *delivery = call->context;
	struct hx_loop *loop = delivery->loop;
	uint32_t route = hx_metrics_route(loop->cells, delivery->claim.route_name);

	delivery->call.is_late = call->is_late;
	delivery->call.is_revoked = call->is_revoked;
	if (end == HX_HTTP_CALL_COMPLETE) {
		delivery->call.outcome = hx_forward_outcome(delivery);
		if (delivery->call.outcome != HAPAX_RUN_OK)
			(void)snprintf(
				delivery->call.failure.message,
				sizeof(delivery->call.failure.message),
				"the upstream answered with status %u", delivery->call.status);
		delivery->call.failure.status = HAPAX_OK;
	} else {
		delivery->call.status = 0;
		delivery->call.outcome =
			end == HX_HTTP_CALL_UNSENT ? HAPAX_RUN_TRANSIENT : HAPAX_RUN_AMBIGUOUS;
		delivery->call.failure = *err;
	}
	delivery->call.took_ns = hx_reactor_now_ns(&loop->reactor) - delivery->call.sent_ns;
	hx_metrics_observe_ns(
		loop->cells, HX_METRIC_UPSTREAM_DURATION, route, 0, delivery->call.took_ns);
	/* Not the upstream's fault. */
	if (is_failure(delivery) && !delivery->call.is_revoked)
		hx_metrics_add(
			loop->cells, HX_METRIC_UPSTREAM_FAILURES, route,
			hx_metrics_code(delivery->call.status), 1);
	note_upstream(delivery, end);
	hx_tracing_called(delivery);
	hx_delivery_finish(delivery);
}

const struct hx_http_call_ops hx_forward_ops = {
	.may_send = may_send,
	.on_head = on_head,
	.on_data = on_data,
	.on_hurry = on_hurry,
	.on_end = on_end,
};
