/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery.c - the life of a delivery: its memory, its claim and its steps, turn by turn.
 */
#include "serve/http/delivery.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/time.h"
#include "net/tls/tls.h"
#include "observe/metrics/metrics.h"
#include "processor/request_key.h"
#include "serve/daemon/daemon.h"
#include "serve/http/gateway.h"

enum {
	/* Deliveries kept for reuse. */
	SPARE_MAX = 256,

	/* The largest buffers kept in a spare delivery. */
	KEPT_MAX = 16 * 1024,

	/* The largest buffers that the loop keeps between two turns. */
	EVENT_KEPT_MAX = 128 * 1024,

	/* Claims and completions in one submit; a turn has no more events than that. */
	AT_ONCE_MAX = 64,

	/* The received head, with the path of the upstream and the added fields. */
	REQUEST_HEAD_MAX = HX_HTTP1_HEAD_LIMIT + 16 * 1024,
	ANSWER_TEXT_MAX = HX_RESULT_SIZE_LIMIT + HX_RESULT_HEADERS_SIZE_MAX + 4096,
};

static void take_steps(struct hx_task *task);

static struct hx_delivery *new_delivery(struct hx_loop *loop)
{
	struct hx_delivery *delivery = hx_alloc_zero(1, sizeof(*delivery));

	if (delivery == NULL)
		return NULL;
	if (hx_http_call_init(&delivery->call.http, &loop->reactor, &hx_forward_ops, delivery) !=
	    HAPAX_OK) {
		hx_free(delivery);
		return NULL;
	}
	delivery->loop = loop;
	delivery->told.task = (struct hx_task){.fn = take_steps, .context = delivery};
	hx_buf_init(&delivery->call.head, REQUEST_HEAD_MAX);
	hx_buf_init(&delivery->call.headers, HX_RESULT_HEADERS_SIZE_MAX);
	hx_buf_init(&delivery->call.body, HX_RESULT_SIZE_LIMIT);
	hx_buf_init(&delivery->told.answer_text, ANSWER_TEXT_MAX);
	return delivery;
}

static void free_delivery(struct hx_delivery *delivery)
{
	hx_http_call_done(&delivery->call.http, &delivery->loop->reactor);
	hx_buf_done(&delivery->call.head);
	hx_buf_done(&delivery->call.headers);
	hx_buf_done(&delivery->call.body);
	hx_buf_done(&delivery->told.answer_text);
	hx_free(delivery);
}

/* NULL: no memory. */
static struct hx_delivery *delivery_take(struct hx_loop *loop, enum hx_door door)
{
	struct hx_loop_config *config = hx_loop_config_use(loop);
	struct hx_delivery *delivery = loop->spare;

	if (config == NULL)
		return NULL;
	if (delivery != NULL) {
		loop->spare = delivery->next;
		loop->spare_count--;
	} else {
		delivery = new_delivery(loop);
	}
	if (delivery == NULL) {
		hx_loop_config_give(loop, config);
		return NULL;
	}
	delivery->config = config;
	delivery->exchange = NULL;
	delivery->door = door;
	delivery->claim.route = NULL;
	delivery->claim.proxy = NULL;
	delivery->claim.route_name = "";
	delivery->claim.passes = false;
	delivery->claim.lacks_key = false;
	delivery->claim.event = (struct hapax_cause){.time_ms = 0};
	delivery->claim.cause = hx_bytes(NULL, 0);
	delivery->claim.run = NULL;
	delivery->call.took_ns = -1;
	delivery->batch = NULL;
	delivery->large = NULL;
	delivery->is_counted = false;
	delivery->is_left = false;
	delivery->came_ns = hx_reactor_now_ns(&loop->reactor);
	delivery->next = NULL;
	hx_metrics_add(loop->cells, HX_METRIC_IN_PROGRESS, 0, door, 1);
	loop->delivery_count++;
	return delivery;
}

void hx_delivery_accept(struct hx_http_exchange *exchange)
{
	static const struct hx_http_problem no_memory = {
		.status = 503, .detail = "not enough memory for a request"};
	struct hx_loop *loop = exchange->server->context;
	enum hx_door door = exchange->server == &loop->proxy ? HX_DOOR_PROXY : HX_DOOR_GATEWAY;
	const struct hx_tls_peer *certificate =
		door == HX_DOOR_PROXY ? hx_http_exchange_certificate(exchange) : NULL;
	struct hx_delivery *delivery = delivery_take(loop, door);

	if (delivery == NULL) {
		hx_metrics_add(
			loop->cells, HX_METRIC_REQUESTS, 0,
			hx_metrics_request(door, no_memory.status), 1);
		hx_http_reply_problem(exchange, &no_memory, NULL, 0);
		return;
	}
	delivery->exchange = exchange;
	/*
	 * Copy it now: at the end of the turn the connection may be gone, and clients must not
	 * share keys.
	 */
	delivery->has_certificate = certificate != NULL;
	if (certificate != NULL)
		memcpy(delivery->certificate, certificate->sha256, sizeof(certificate->sha256));
	exchange->context = delivery;
	HX_LIST_ADD(&loop->to_read, delivery, next);
	hx_reactor_defer(&loop->reactor, &loop->read_task);
}

static void clear_buf(struct hapax_buf *buf)
{
	hx_buf_clear(buf);
	if (buf->capacity > KEPT_MAX)
		hx_buf_done(buf);
}

static void count_out(struct hx_delivery *delivery)
{
	if (delivery->is_counted)
		hx_quota_give(
			&delivery->loop->serve->tenants, hapax_bytes_from_text(delivery->tenant));
	delivery->is_counted = false;
}

void hx_delivery_drop_batch(struct hx_delivery *delivery)
{
	if (delivery->batch != NULL)
		hx_buf_done(&delivery->batch->text);
	hx_free(delivery->batch);
	delivery->batch = NULL;
}

void hx_delivery_give(struct hx_delivery *delivery)
{
	struct hx_loop *loop = delivery->loop;

	assert(delivery->exchange == NULL && delivery->claim.run == NULL);
	hx_delivery_drop_batch(delivery);
	hx_large_free(delivery->large);
	delivery->large = NULL;
	count_out(delivery);
	hx_metrics_add(loop->cells, HX_METRIC_IN_PROGRESS, 0, delivery->door, -1);
	hx_loop_config_give(loop, delivery->config);
	delivery->config = NULL;
	clear_buf(&delivery->call.head);
	clear_buf(&delivery->call.headers);
	clear_buf(&delivery->call.body);
	hx_block_pool_note(
		&loop->reactor.blocks, &delivery->call.body_noted, delivery->call.body.capacity);
	clear_buf(&delivery->told.answer_text);
	loop->delivery_count--;
	if (loop->spare_count == SPARE_MAX) {
		hx_block_pool_note(&loop->reactor.blocks, &delivery->call.body_noted, 0);
		free_delivery(delivery);
	} else {
		delivery->next = loop->spare;
		loop->spare = delivery;
		loop->spare_count++;
	}
	if (loop->is_draining)
		hx_loop_check_idle(loop);
}

void hx_deliveries_free(struct hx_loop *loop)
{
	while (loop->spare != NULL) {
		struct hx_delivery *delivery = loop->spare;

		loop->spare = delivery->next;
		free_delivery(delivery);
	}
	loop->spare_count = 0;
}

/* Its own run has ended: answer, unless that was done before. */
static void ended(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hx_loop *loop = delivery->loop;
	bool is_batch = delivery->batch != NULL;

	delivery->claim.run = NULL;
	hx_reactor_cancel(&loop->reactor, &delivery->told.task);
	atomic_store_explicit(&delivery->told.steps, 0, memory_order_relaxed);
	if (answer->status == HAPAX_ERR_FAILED || answer->status == HAPAX_ERR_UNCERTAIN)
		hx_serve_suspect(loop->serve);
	if (answer->outcome == HAPAX_OUTCOME_ACQUIRED)
		hx_delivery_ran(delivery, answer);
	else
		hx_delivery_decided(delivery, answer);
	if (delivery->exchange == NULL) {
		hx_delivery_give(delivery);
		return;
	}
	hx_delivery_answer(delivery, answer);
	if (is_batch)
		hx_gateway_next(delivery);
}

/*
 * The next waiter runs instead: this client is gone. The run may end on another thread meanwhile,
 * so it is named by its key. If it no longer waits, nothing happens.
 */
static void leave(struct hx_delivery *delivery)
{
	const struct hx_delivery_identity *identity = &delivery->claim.identity;

	hapax_processor_leave(
		delivery->loop->serve->processor, identity->tenant, identity->group, identity->key,
		delivery);
}

void hx_delivery_gone(struct hx_http_exchange *exchange)
{
	struct hx_delivery *delivery = exchange->context;

	delivery->is_left = true;
	if (delivery->claim.is_waiting)
		leave(delivery);
}

/* On the loop's thread. */
static void take_step(
	struct hx_delivery *delivery, struct hapax_run *run, enum hapax_step step,
	const struct hapax_answer *answer)
{
	bool is_posted = delivery->claim.run != NULL;

	delivery->claim.is_waiting = step == HAPAX_STEP_WAIT;
	if (step == HAPAX_STEP_WAIT) {
		if (delivery->is_left)
			leave(delivery);
	} else if (step == HAPAX_STEP_RUN) {
		delivery->claim.run = run;
		hx_delivery_decided(delivery, answer);
		if (is_posted)
			hx_forward_late(delivery, answer);
		else
			hx_forward(delivery, answer);
	} else if (step == HAPAX_STEP_UNSTORED && delivery->exchange != NULL) {
		hx_delivery_answer_unstored(delivery);
	} else if (step == HAPAX_STEP_END) {
		ended(delivery, answer);
	}
}

static struct hapax_bytes copy(struct hx_delivery *delivery, struct hapax_bytes bytes)
{
	struct hapax_buf *text = &delivery->told.answer_text;
	size_t begin = text->size;

	if (hx_buf_append(text, bytes.data, bytes.size) != HAPAX_OK)
		return hx_bytes(NULL, 0);
	return hx_bytes(text->data + begin, bytes.size);
}

/* On another thread: keeps the data that the loop needs. */
static void keep_answer(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hapax_answer *kept = &delivery->told.answer;
	size_t size = answer->result.headers.size + answer->result.body.size + answer->error.size +
		answer->original_cause.size;

	*kept = *answer;
	kept->owner = hx_bytes(NULL, 0);
	kept->error = hx_bytes(NULL, 0);
	kept->original_cause = hx_bytes(NULL, 0);
	kept->result.headers = hx_bytes(NULL, 0);
	kept->result.body = hx_bytes(NULL, 0);
	/* The delivery has the result of its own run. */
	if (answer->outcome == HAPAX_OUTCOME_ACQUIRED || size == 0)
		return;
	hx_buf_clear(&delivery->told.answer_text);
	if (hx_buf_reserve(&delivery->told.answer_text, size) != HAPAX_OK) {
		kept->result.omitted_bytes = answer->result.body.size;
		return;
	}
	kept->result.headers = copy(delivery, answer->result.headers);
	kept->result.body = copy(delivery, answer->result.body);
	kept->error = copy(delivery, answer->error);
	kept->original_cause = copy(delivery, answer->original_cause);
}

static void on_step(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct hx_delivery *delivery = context;

	if (hx_thread_id() == delivery->loop->thread_id) {
		take_step(delivery, run, step, answer);
		return;
	}
	if (step != HAPAX_STEP_WAIT && step != HAPAX_STEP_RUN && step != HAPAX_STEP_UNSTORED &&
	    step != HAPAX_STEP_END)
		return;
	if (step == HAPAX_STEP_RUN || step == HAPAX_STEP_END)
		keep_answer(delivery, answer);
	if (step == HAPAX_STEP_RUN)
		delivery->claim.run = run;
	/*
	 * The thread that sets the first bit posts. After another bit, the loop may already be at
	 * END, which frees.
	 */
	if (atomic_fetch_or_explicit(
		    &delivery->told.steps, 1U << (unsigned)step, memory_order_acq_rel) == 0)
		hx_reactor_post(&delivery->loop->reactor, &delivery->told.task);
}

/* The steps that arrived on other threads. END is the last, and frees. */
static void take_steps(struct hx_task *task)
{
	struct hx_delivery *delivery = task->context;
	unsigned steps = atomic_exchange_explicit(&delivery->told.steps, 0, memory_order_acquire);

	if (steps & 1U << HAPAX_STEP_WAIT)
		take_step(delivery, NULL, HAPAX_STEP_WAIT, NULL);
	if (steps & 1U << HAPAX_STEP_RUN) {
		struct hapax_answer answer = delivery->told.answer;

		take_step(delivery, delivery->claim.run, HAPAX_STEP_RUN, &answer);
	}
	if (steps & 1U << HAPAX_STEP_UNSTORED)
		take_step(delivery, delivery->claim.run, HAPAX_STEP_UNSTORED, NULL);
	if (steps & 1U << HAPAX_STEP_END) {
		struct hapax_answer answer = delivery->told.answer;

		take_step(delivery, NULL, HAPAX_STEP_END, &answer);
	}
}

static struct hapax_request request_of(struct hx_delivery *delivery)
{
	const struct hx_delivery_identity *identity = &delivery->claim.identity;
	struct hapax_request request = HAPAX_REQUEST_INIT;

	request.tenant = identity->tenant;
	request.group = identity->group;
	request.key = identity->key;
	request.fingerprint = identity->fingerprint;
	if (identity->is_two) {
		hx_request_key_set(&request, &delivery->claim.key, delivery->claim.keys);
		delivery->claim.keys[0].fingerprint = identity->fingerprint;
	}
	request.options = &delivery->claim.options;
	request.step = on_step;
	request.context = delivery;
	request.cause = delivery->claim.cause;
	return request;
}

/* One of them is invalid, but it is unknown which: begin them one by one. */
static void begin_each(
	struct hx_loop *loop, struct hx_delivery **deliveries, struct hapax_request *requests,
	size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool is_batch = deliveries[i]->batch != NULL;
		struct hapax_error err;

		if (hapax_processor_begin(loop->serve->processor, &requests[i], 1, &err) ==
		    HAPAX_OK)
			continue;
		hx_delivery_refuse(deliveries[i], 503, NULL, NULL, err.message);
		if (is_batch)
			hx_gateway_next(deliveries[i]);
	}
}

void hx_delivery_begin_all(struct hx_task *task)
{
	struct hx_loop *loop = task->context;

	while (loop->to_begin.first != NULL) {
		struct hx_delivery *deliveries[AT_ONCE_MAX];
		struct hapax_request requests[AT_ONCE_MAX];
		size_t count = 0;

		while (loop->to_begin.first != NULL && count < AT_ONCE_MAX) {
			deliveries[count] = loop->to_begin.first;
			requests[count] = request_of(loop->to_begin.first);
			loop->to_begin.first = loop->to_begin.first->next;
			count++;
		}
		if (hapax_processor_begin(loop->serve->processor, requests, count, NULL) !=
		    HAPAX_OK)
			begin_each(loop, deliveries, requests, count);
	}
}

/* Buffers for a large event are not kept for the next small one. */
static void tidy(struct hx_loop *loop)
{
	struct hapax_buf *bufs[] = {&loop->event_text, &loop->key_scratch, &loop->body_text};

	for (size_t i = 0; i < HX_COUNT(bufs); i++)
		if (bufs[i]->capacity > EVENT_KEPT_MAX)
			hx_buf_done(bufs[i]);
}

void hx_delivery_read_all(struct hx_task *task)
{
	struct hx_loop *loop = task->context;

	loop->turn_bytes = 0;
	while (loop->to_read.first != NULL) {
		struct hx_delivery *delivery = loop->to_read.first;

		loop->to_read.first = delivery->next;
		if (delivery->door == HX_DOOR_PROXY)
			hx_proxy_take_up(delivery);
		else
			hx_gateway_take_up(delivery);
	}
	tidy(loop);
	hx_delivery_begin_all(&loop->begin_task);
}

void hx_delivery_finish(struct hx_delivery *delivery)
{
	struct hx_loop *loop = delivery->loop;

	HX_LIST_ADD(&loop->to_finish, delivery, next);
	hx_reactor_defer(&loop->reactor, &loop->finish_task);
}

static struct hapax_finish finish_of(struct hx_delivery *delivery)
{
	struct hapax_finish finish = {
		.run = delivery->claim.run, .outcome = delivery->call.outcome};
	struct hapax_result *result = &delivery->call.result;

	if (delivery->call.outcome == HAPAX_RUN_TRANSIENT ||
	    delivery->call.outcome == HAPAX_RUN_AMBIGUOUS) {
		finish.error = hapax_bytes_from_text(delivery->call.failure.message);
		return finish;
	}
	memset(result, 0, sizeof(*result));
	result->kind = HAPAX_RESULT_HTTP;
	result->status = (int32_t)delivery->call.status;
	result->headers = hx_bytes(delivery->call.headers.data, delivery->call.headers_kept);
	if (delivery->call.body_size > delivery->call.body.size)
		result->omitted_bytes = delivery->call.body_size;
	else
		result->body = hapax_buf_bytes(&delivery->call.body);
	finish.result = result;
	return finish;
}

void hx_delivery_finish_all(struct hx_task *task)
{
	struct hx_loop *loop = task->context;

	while (loop->to_finish.first != NULL) {
		struct hapax_finish finishes[AT_ONCE_MAX];
		size_t count = 0;
		enum hapax_status status;

		while (loop->to_finish.first != NULL && count < AT_ONCE_MAX) {
			finishes[count++] = finish_of(loop->to_finish.first);
			loop->to_finish.first = loop->to_finish.first->next;
		}
		status = hapax_run_finish_all(loop->serve->processor, finishes, count, NULL);
		/* Each of them runs, is named once, and has a result within its bounds. */
		assert(status == HAPAX_OK);
		(void)status;
	}
}

void hx_delivery_set_route(
	struct hx_delivery *delivery, const char *name, const struct hx_config_target *target,
	size_t index)
{
	delivery->claim.route_name = name;
	delivery->claim.target = target;
	delivery->claim.upstream = delivery->config->upstreams[index];
}

/*
 * Counts one more request of the tenant. A batch counts for the tenant of its current event, since
 * its events run one by one. False: refused.
 */
static bool count_in(struct hx_delivery *delivery)
{
	struct hx_loop *loop = delivery->loop;
	struct hapax_bytes tenant = delivery->claim.identity.tenant;
	uint64_t max = delivery->config->config->http.max_requests_per_tenant;
	enum hapax_status status;

	if (delivery->is_counted && hx_bytes_equal(tenant, hapax_bytes_from_text(delivery->tenant)))
		return true;
	count_out(delivery);
	if (max == 0)
		return true;
	status = hx_quota_take(&loop->serve->tenants, tenant, max);
	delivery->is_counted = status == HAPAX_OK;
	if (delivery->is_counted) {
		memcpy(delivery->tenant, tenant.data, tenant.size);
		delivery->tenant[tenant.size] = '\0';
		return true;
	}
	hx_metrics_add(
		loop->cells, HX_METRIC_REFUSED, 0,
		status == HAPAX_ERR_LIMIT ? HX_REFUSED_TENANT : HX_REFUSED_MEMORY, 1);
	if (status != HAPAX_ERR_LIMIT) {
		hx_delivery_refuse(delivery, 503, NULL, NULL, "not enough memory for an event");
		return false;
	}
	hx_delivery_refuse(
		delivery, 429, "urn:hapax:problem:too-many",
		"The tenant has too many requests in progress",
		"tenant request limit reached (http.max_requests_per_tenant); retry later");
	return false;
}

bool hx_delivery_ask(struct hx_delivery *delivery)
{
	struct hx_loop *loop = delivery->loop;

	if (!count_in(delivery))
		return false;
	delivery->claim.is_waiting = false;
	hx_tracing_begin(
		delivery,
		delivery->door == HX_DOOR_GATEWAY ? "process_cloud_event" : "process_request");
	HX_LIST_ADD(&loop->to_begin, delivery, next);
	hx_reactor_defer(&loop->reactor, &loop->begin_task);
	return true;
}
