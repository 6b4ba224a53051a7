/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway.c - incoming requests: events, batches, their routes and keys, and the handshake of
 * webhook senders.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "observe/metrics/metrics.h"
#include "serve/daemon/daemon.h"
#include "serve/http/gateway.h"
#include "wire/http1/http1_text.h"
#include "wire/http1/http_path.h"

#define PROBLEM(name) "urn:hapax:problem:" name

static const struct hapax_field allow = {HX_BYTES_LIT("Allow"), HX_BYTES_LIT("OPTIONS, POST")};

static bool is_allowed(const struct hx_config_webhook *webhook, struct hapax_bytes origin)
{
	for (size_t i = 0; i < webhook->allowed_origin_count; i++) {
		struct hapax_bytes name = hapax_bytes_from_text(webhook->allowed_origins[i]);

		if (hx_bytes_equal(name, HX_BYTES_LIT("*")) || hx_http1_text_equal(name, origin))
			return true;
	}
	return false;
}

/* A reply without an event. */
static void reply(
	struct hx_delivery *delivery, unsigned status, const struct hapax_field *fields,
	size_t count)
{
	struct hx_http_exchange *exchange = delivery->exchange;

	delivery->exchange = NULL;
	hx_metrics_add(
		delivery->loop->cells, HX_METRIC_REQUESTS, 0,
		hx_metrics_request(HX_DOOR_GATEWAY, status), 1);
	if (status == 200)
		hx_http_reply(
			exchange,
			&(struct hx_http_reply){
				.status = status, .fields = fields, .field_count = count});
	else
		hx_http_reply_problem(
			exchange,
			&(struct hx_http_problem){
				.status = status, .detail = "send events with POST"},
			fields, count);
	hx_delivery_give(delivery);
}

/*
 * Answers whether this sender may deliver here (CloudEvents webhooks, 4). The two fields grant it;
 * without them the status means nothing.
 */
static void shake_hands(struct hx_delivery *delivery)
{
	const struct hx_config_webhook *webhook = &delivery->config->config->gateway.webhook;
	const struct hx_http1_head *head = &delivery->exchange->head;
	size_t index = hx_http1_find(head, HX_BYTES_LIT("WebHook-Request-Origin"), 0);
	struct hapax_field fields[3] = {allow};
	size_t count = 1;
	char rate[24] = "*";

	if (index < head->field_count && is_allowed(webhook, head->fields[index].value)) {
		if (webhook->allowed_rate != 0)
			(void)snprintf(rate, sizeof(rate), "%" PRIu64, webhook->allowed_rate);
		fields[count++] = (struct hapax_field){
			HX_BYTES_LIT("WebHook-Allowed-Origin"), head->fields[index].value};
		fields[count++] = (struct hapax_field){
			HX_BYTES_LIT("WebHook-Allowed-Rate"), hapax_bytes_from_text(rate)};
	}
	reply(delivery, 200, fields, count);
}

static unsigned status_of(enum hapax_status status)
{
	return status == HAPAX_ERR_UNSUPPORTED ? 415
		: status == HAPAX_ERR_LIMIT    ? 413
		: status == HAPAX_ERR_INVALID  ? 400
					       : 503;
}

void hx_gateway_refuse(
	struct hx_delivery *delivery, enum hapax_status status, const struct hapax_error *err)
{
	bool is_full = status == HAPAX_ERR_NO_MEMORY;

	hx_delivery_drop_batch(delivery);
	if (is_full)
		hx_metrics_add(delivery->loop->cells, HX_METRIC_REFUSED, 0, HX_REFUSED_MEMORY, 1);
	hx_delivery_refuse(
		delivery, status_of(status), is_full ? NULL : PROBLEM("not-an-event"),
		is_full ? NULL : "The request is not a valid CloudEvent", err->message);
}

/* Reads all events once, so that an error in the last is reported before the first runs. */
enum hapax_status hx_gateway_open_batch(
	struct hx_delivery *delivery, struct hapax_buf *event_text, struct hapax_error *err)
{
	const struct hx_config *config = delivery->config->config;
	struct hx_delivery_batch *batch = hx_alloc_zero(1, sizeof(*batch));
	struct hapax_bytes text;
	enum hapax_status status;

	if (batch == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a batch");
	hx_buf_init(&batch->text, (size_t)config->http.max_body);
	delivery->batch = batch;
	status = hx_http_body_whole(&delivery->exchange->body, &batch->text, &text, err);
	if (status == HAPAX_OK)
		status = hx_cloudevents_batch_init(
			&batch->reader, text,
			config->http.max_batch != 0 ? (size_t)config->http.max_batch
						    : HX_CLOUDEVENTS_BATCH_MAX,
			event_text, err);
	return status;
}

/* The first that applies of 503, 409, 422, 200: a retry runs the remaining events. */
void hx_gateway_answer_batch(struct hx_delivery *delivery)
{
	static const unsigned statuses[] = {
		[HX_CONCLUSION_DONE] = 200,       [HX_CONCLUSION_REJECTED] = 422,
		[HX_CONCLUSION_PARKED] = 409,     [HX_CONCLUSION_BUSY] = 409,
		[HX_CONCLUSION_UNFINISHED] = 503,
	};
	struct hx_http_exchange *exchange = delivery->exchange;
	/* Events refused for lack of memory are accepted on a retry. */
	enum hx_conclusion worst = delivery->batch->reader.status == HAPAX_OK
		? delivery->batch->worst
		: HX_CONCLUSION_UNFINISHED;
	struct hx_http_problem problem = {.status = statuses[worst], .type = PROBLEM("batch")};
	struct hapax_field fields[2];
	size_t count = 0;

	if (delivery->batch->is_unstored)
		fields[count++] =
			(struct hapax_field){HX_BYTES_LIT("Hapax-Stored"), HX_BYTES_LIT("no")};
	if (worst > HX_CONCLUSION_PARKED)
		fields[count++] =
			(struct hapax_field){HX_BYTES_LIT("Retry-After"), HX_BYTES_LIT("1")};
	delivery->exchange = NULL;
	hx_metrics_add(
		delivery->loop->cells, HX_METRIC_REQUESTS, 0,
		hx_metrics_request(HX_DOOR_GATEWAY, problem.status), 1);
	hx_metrics_observe_ns(
		delivery->loop->cells, HX_METRIC_REQUEST_DURATION, 0, HX_DOOR_GATEWAY,
		hx_reactor_now_ns(&delivery->loop->reactor) - delivery->came_ns);
	if (worst == HX_CONCLUSION_DONE) {
		hx_http_reply(
			exchange,
			&(struct hx_http_reply){
				.status = 200, .fields = fields, .field_count = count});
	} else {
		problem.title = worst == HX_CONCLUSION_REJECTED
			? "Some events of the batch failed permanently or are mismatches"
			: "Some events of the batch are not done yet";
		hx_http_reply_problem(exchange, &problem, fields, count);
	}
	hx_delivery_give(delivery);
}

/* Copies the attributes: the event's text is gone at the end of the turn. */
static void keep_event(struct hx_delivery_claim *claim, const struct hx_cloudevent *event)
{
	const struct hapax_cause cause = {
		.id = event->id,
		.type = event->type,
		.source = event->source,
		.time_ms = event->time_ms == HAPAX_TIME_UNKNOWN ? 0 : event->time_ms,
	};

	claim->cause = hapax_cause_write(&cause, claim->cause_space);
	(void)hapax_cause_read(claim->cause, &claim->event);
}

const struct hx_config_route *hx_gateway_route(
	const struct hx_delivery *delivery, const struct hx_cloudevent *event)
{
	struct hapax_bytes query;
	struct hapax_bytes path = hx_http_path_split(delivery->exchange->head.path, &query);

	return hx_config_route_find(delivery->config->config, path, event->type, event->source);
}

enum hapax_status hx_gateway_key(
	const struct hx_delivery *delivery, const struct hx_config_route *route,
	const struct hx_cloudevent *event, struct hapax_buf *scratch, struct hapax_key *ret_key,
	struct hapax_error *err)
{
	const struct hx_http1_head *head = &delivery->exchange->head;
	struct hapax_event view = hx_cloudevent_view(event, head->fields, head->field_count);

	ret_key->size = sizeof(*ret_key);
	return hapax_key_make(route->strategy, &view, scratch, ret_key, err);
}

/* The key from the reader, or made here. */
static enum hapax_status find_key(struct hx_delivery *delivery, struct hapax_error *err)
{
	struct hx_loop *loop = delivery->loop;

	if (delivery->large == NULL)
		return hx_gateway_key(
			delivery, delivery->claim.route, &loop->event, &loop->key_scratch,
			&delivery->claim.key, err);
	*err = delivery->large->key_err;
	delivery->claim.key = delivery->large->key;
	return delivery->large->key_status;
}

/* Finds key, scope and settings. False: refused. */
static bool identify(struct hx_delivery *delivery)
{
	struct hx_loop *loop = delivery->loop;
	const struct hx_cloudevent *event = &loop->event;
	const struct hx_config *config = delivery->config->config;
	const struct hx_config_scope *scope = delivery->claim.route->scope;
	struct hapax_key *key = &delivery->claim.key;
	enum hapax_status status;
	struct hapax_error err;
	int64_t key_ns;

	delivery->claim.asked_ns = hx_clock_mono_ns();
	status = find_key(delivery, &err);
	if (status != HAPAX_OK) {
		hx_delivery_refuse(
			delivery, status_of(status), PROBLEM("no-key"), "The event has no key",
			err.message);
		return false;
	}
	if (scope == NULL)
		scope = hx_config_scope_find(
			config, hx_bytes(key->tenant, key->tenant_size),
			hx_bytes(key->group, key->group_size));
	hx_config_run_options(config, scope, event->type, &delivery->claim.options);
	if (key->kind == HAPAX_KEY_NONE)
		delivery->claim.options.is_disabled = 1;
	delivery->claim.identity = (struct hx_delivery_identity){
		.tenant = hx_bytes(key->tenant, key->tenant_size),
		.group = hx_bytes(key->group, key->group_size),
		.key = hx_bytes(key->key, key->kind == HAPAX_KEY_NONE ? 0 : key->key_size),
		.fingerprint = key->has_fingerprint ? key->fingerprint : NULL,
		.is_two = key->also_size > 0};
	key_ns = hx_clock_mono_ns() - delivery->claim.asked_ns;
	delivery->claim.asked_ns += key_ns;
	if (delivery->large != NULL)
		key_ns += delivery->large->key_ns;
	hx_metrics_observe_ns(loop->cells, HX_METRIC_KEY_DURATION, 0, 0, key_ns);
	return true;
}

bool hx_gateway_claim(struct hx_delivery *delivery)
{
	const struct hx_cloudevent *event = &delivery->loop->event;
	const struct hx_config_route *route = delivery->large != NULL
		? delivery->large->route
		: hx_gateway_route(delivery, event);

	if (route == NULL) {
		hx_delivery_refuse(
			delivery, 404, PROBLEM("no-route"), "No route matches this event",
			"no route matches the path, type and source of the event");
		return false;
	}
	delivery->claim.route = route;
	hx_delivery_set_route(
		delivery, route->name, &route->target,
		(size_t)(route - delivery->config->config->gateway.routes));
	if (!identify(delivery))
		return false;
	keep_event(&delivery->claim, event);
	return hx_delivery_ask(delivery);
}

void hx_gateway_next(struct hx_delivery *delivery)
{
	struct hx_loop *loop = delivery->loop;
	struct hx_delivery_batch *batch = delivery->batch;
	bool is_claimed = false;

	if (delivery->large != NULL && delivery->exchange->peer != NULL) {
		hx_large_ask(delivery->large);
		return;
	}
	/* If the client is gone, it will retry the rest. */
	while (!is_claimed && delivery->exchange->peer != NULL &&
	       hx_cloudevents_batch_next(&batch->reader, &loop->event)) {
		batch->event = loop->event.text;
		is_claimed = hx_gateway_claim(delivery);
	}
	if (!is_claimed)
		hx_gateway_answer_batch(delivery);
}

enum hapax_status hx_gateway_read(
	struct hx_delivery *delivery, enum hx_cloudevents_mode mode, struct hx_cloudevent *event,
	struct hapax_buf *event_text, struct hapax_buf *body_text, struct hapax_error *err)
{
	const struct hx_http1_head *head = &delivery->exchange->head;
	struct hapax_bytes body;
	enum hapax_status status =
		hx_http_body_whole(&delivery->exchange->body, body_text, &body, err);

	if (status != HAPAX_OK)
		return status;
	if (mode == HX_CLOUDEVENTS_BINARY)
		return hx_cloudevent_read_binary(
			event, head->fields, head->field_count,
			hx_http1_known(head, HX_HTTP1_CONTENT_TYPE), body, event_text, err);
	return hx_cloudevent_read_structured(event, body, event_text, err);
}

/* Whether the service would read the path as one of the same route. False: refused. */
static bool take_path(struct hx_delivery *delivery)
{
	struct hapax_bytes query;
	struct hapax_bytes path = hx_http_path_split(delivery->exchange->head.path, &query);
	char space[HX_HTTP1_LINE_MAX];
	const char *fault;
	struct hapax_bytes loosest = hx_http_path_loosest(path, space, &fault);

	if (fault == NULL && loosest.data != path.data &&
	    !hx_config_routes_agree(delivery->config->config, path, loosest))
		fault = HX_DELIVERY_OTHER_ROUTE;
	if (fault != NULL)
		hx_delivery_refuse_path(delivery, fault);
	return fault == NULL;
}

/* Reads and claims a POST. */
static void take_events(struct hx_delivery *delivery)
{
	struct hx_loop *loop = delivery->loop;
	const struct hx_http1_head *head = &delivery->exchange->head;
	struct hapax_bytes content_type = hx_http1_known(head, HX_HTTP1_CONTENT_TYPE);
	enum hx_cloudevents_mode mode = HX_CLOUDEVENTS_BINARY;
	struct hapax_error err = {.status = HAPAX_OK};
	enum hapax_status status = hx_cloudevents_detect(content_type, &mode, &err);
	/* A batch is held until its last event; the reader accounts for one from a file. */
	bool is_large = (mode == HX_CLOUDEVENTS_BATCHED &&
			 !hx_http_body_is_in_memory(&delivery->exchange->body)) ||
		hx_large_is(delivery);

	if (!take_path(delivery))
		return;
	if (status == HAPAX_OK && is_large)
		status = hx_large_begin(delivery, mode, &err);
	else if (status == HAPAX_OK && mode == HX_CLOUDEVENTS_BATCHED)
		status = hx_gateway_open_batch(delivery, &loop->event_text, &err);
	else if (status == HAPAX_OK)
		status = hx_gateway_read(
			delivery, mode, &loop->event, &loop->event_text, &loop->body_text, &err);
	if (status != HAPAX_OK) {
		hx_gateway_refuse(delivery, status, &err);
	} else if (is_large) {
		return; /* continues when it is read */
	} else if (mode == HX_CLOUDEVENTS_BATCHED) {
		hx_gateway_next(delivery);
	} else {
		(void)hx_gateway_claim(delivery);
	}
}

void hx_gateway_take_up(struct hx_delivery *delivery)
{
	struct hapax_bytes method = delivery->exchange->head.method;

	if (hx_bytes_equal(method, HX_BYTES_LIT("POST")))
		take_events(delivery);
	else if (hx_bytes_equal(method, HX_BYTES_LIT("OPTIONS")))
		shake_hands(delivery);
	else
		reply(delivery, 405, &allow, 1);
}
