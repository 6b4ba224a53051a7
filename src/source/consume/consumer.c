/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer.c - take, claim, run, finish: a turn of a consumer.
 *
 * Messages that arrive together are claimed together, and runs that end together are finished
 * together: one submit each. settle.c then decides about each message.
 */
#include "processor/request_key.h"
#include "source/consume/consumer.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/siphash.h"

enum {
	/* Claims or completions in one submit: a durable store syncs once for all of them. */
	BATCH_MAX = 4096,

	/* Claim after so many messages: the store works on them while more are taken. */
	TAKE_MAX = 256,

	/* If the store answers at once, a turn continues with the results. */
	ROUNDS_MAX = 8,

	CACHE_LINE_SIZE = 64,

	/* Memory to compare data as JSON; as at the gateway, enough for 8 MiB. */
	SCRATCH_SIZE_MAX = 128 * 1024 * 1024,
};

enum hapax_status hx_consumer_init(
	struct hx_consumer *consumer, uint64_t seed, struct hapax_error *err)
{
	size_t count = consumer->options.prefetch;
	size_t batch = count < BATCH_MAX ? count : BATCH_MAX;
	uint64_t secret[2];

	hx_prng_seed(&consumer->prng, seed);
	secret[0] = hx_prng_next(&consumer->prng);
	secret[1] = hx_prng_next(&consumer->prng);
	consumer->stats = (struct hapax_consumer_stats)HAPAX_CONSUMER_STATS_INIT;
	hx_buf_init(&consumer->scratch, SCRATCH_SIZE_MAX);
	consumer->in_flight_list = hx_alloc_zero(count, sizeof(struct hx_in_flight));
	consumer->requests = hx_alloc_zero(batch, sizeof(struct hapax_request));
	consumer->causes = hx_alloc_zero(batch, sizeof(consumer->causes[0]));
	consumer->finishes = hx_alloc_zero(batch, sizeof(struct hapax_finish));
	if (consumer->in_flight_list == NULL || consumer->requests == NULL ||
	    consumer->causes == NULL || consumer->finishes == NULL ||
	    hx_ordering_queues_init(&consumer->ordering_queues, count, secret) != HAPAX_OK) {
		hx_consumer_done(consumer);
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for %zu messages", count);
	}
	for (size_t i = 0; i < count; i++) {
		struct hx_in_flight *in_flight = &consumer->in_flight_list[i];

		in_flight->consumer = consumer;
		hx_envelope_init(&in_flight->envelope);
		hx_buf_init(&in_flight->result_headers, HX_RESULT_HEADERS_SIZE_MAX);
		hx_in_flight_list_add(&consumer->spare, in_flight);
	}
	return HAPAX_OK;
}

void hx_consumer_done(struct hx_consumer *consumer)
{
	size_t count = consumer->in_flight_list == NULL ? 0 : consumer->options.prefetch;

	for (size_t i = 0; i < count; i++) {
		struct hx_in_flight *in_flight = &consumer->in_flight_list[i];

		if (consumer->handler->ops->forget != NULL)
			consumer->handler->ops->forget(consumer->handler, in_flight);
		hx_envelope_done(&in_flight->envelope);
		hx_buf_done(&in_flight->result_headers);
	}
	hx_warm_up_done(&consumer->warm_up);
	hx_ordering_queues_done(&consumer->ordering_queues);
	hx_buf_done(&consumer->scratch);
	hx_free(consumer->in_flight_list);
	hx_free(consumer->requests);
	hx_free(consumer->causes);
	hx_free(consumer->finishes);
	consumer->in_flight_list = NULL;
	consumer->requests = NULL;
	consumer->finishes = NULL;
}

static struct hapax_bytes traceparent_of(const struct hx_in_flight *in_flight)
{
	return hx_envelope_header(&in_flight->envelope, "traceparent");
}

void hx_consumer_tell(
	struct hx_consumer *consumer, const struct hx_in_flight *in_flight,
	struct hapax_consumer_event *event)
{
	if (consumer->options.told == NULL)
		return;
	event->size = sizeof(*event);
	if (event->why == NULL)
		event->why = "";
	if (in_flight != NULL) {
		event->topic = in_flight->message->topic;
		event->place = hapax_bytes_from_text(in_flight->place);
		event->tenant = hx_bytes(in_flight->key.tenant, in_flight->key.tenant_size);
		event->group = hx_bytes(in_flight->key.group, in_flight->key.group_size);
		event->key = hx_bytes(in_flight->key.key, in_flight->key.key_size);
		event->attempt = in_flight->attempt;
		event->reason = hx_handover_reason(in_flight->reason);
	}
	/* A message with a route was read as an event. */
	if (in_flight != NULL && in_flight->route != NULL) {
		struct hapax_cause cause = hx_in_flight_event(in_flight);

		event->id = cause.id;
		event->type = cause.type;
		event->source = cause.source;
		event->time_ms = cause.time_ms;
		if (consumer->options.trace != NULL)
			event->traceparent = traceparent_of(in_flight);
	}
	consumer->options.told(event, consumer->options.told_context);
}

/* 0 without a listener: reading the clock costs more than the rest. */
static int64_t report_ns(const struct hx_consumer *consumer)
{
	return consumer->options.told == NULL ? 0 : hx_clock_mono_ns();
}

int64_t hx_consumer_claim_ns(const struct hx_in_flight *in_flight)
{
	return report_ns(in_flight->consumer) - in_flight->asked_ns;
}

void hx_consumer_tell_answer(
	struct hx_in_flight *in_flight, enum hapax_consumer_fact fact,
	const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = in_flight->consumer;
	struct hapax_consumer_event event = {
		.fact = fact, .answer = answer, .took_ns = in_flight->took_ns};

	if (fact == HAPAX_FACT_ENDED) {
		event.trace = in_flight->is_traced ? &in_flight->trace : NULL;
		event.claim_ns = in_flight->began_ns - in_flight->asked_ns;
		event.http_status = in_flight->status;
	} else {
		event.took_ns = hx_consumer_claim_ns(in_flight);
	}
	hx_consumer_tell(consumer, in_flight, &event);
}

static const struct hx_route *route_of(const struct hx_consumer *consumer, struct hapax_bytes type)
{
	const struct hx_route *other = NULL;

	for (size_t i = 0; i < consumer->route_count; i++) {
		const struct hx_route *route = &consumer->routes[i];

		if (route->type == NULL)
			other = route;
		else if (hx_bytes_equal(hapax_bytes_from_text(route->type), type))
			return route;
	}
	return other;
}

static enum hx_in_flight_reason reason_of(
	enum hapax_status status, enum hx_in_flight_reason invalid)
{
	return status == HAPAX_ERR_LIMIT || status == HAPAX_ERR_NO_MEMORY ? HX_REASON_TOO_LARGE
									  : invalid;
}

/* Like HAPAX_KEY_INIT, but keeps the buffers. */
static void forget_key(struct hapax_key *key)
{
	key->size = sizeof(*key);
	key->kind = HAPAX_KEY_NONE;
	key->key_size = 0;
	key->tenant_size = 0;
	key->group_size = 0;
	key->has_fingerprint = 0;
	key->is_fingerprint = 0;
	key->has_run_id = 0;
	key->missing[0] = '\0';
	key->also_size = 0;
	key->has_also_fingerprint = 0;
}

static enum hx_in_flight_reason find_key(struct hx_in_flight *in_flight, struct hapax_error *err)
{
	struct hx_consumer *consumer = in_flight->consumer;
	struct hapax_bytes type;
	enum hapax_status status;

	if (in_flight->message->flags & HAPAX_MESSAGE_TOO_LARGE) {
		(void)hx_error_set(
			err, HAPAX_ERR_LIMIT, 0, "it is larger than size_max of the source");
		return HX_REASON_TOO_LARGE;
	}
	status = hx_envelope_read(&in_flight->envelope, in_flight->message, err);
	if (status != HAPAX_OK)
		return reason_of(status, HX_REASON_MALFORMED);
	type = in_flight->envelope.type;
	in_flight->route = route_of(consumer, type);
	if (in_flight->route == NULL) {
		(void)hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "no handler for type '%.*s'",
			(int)(type.size < 100 ? type.size : 100), (const char *)type.data);
		return HX_REASON_NO_ROUTE;
	}
	status = hx_identity_make(
		in_flight->route->identity, &in_flight->envelope, &consumer->scratch,
		&in_flight->key, &in_flight->lacks_id, err);
	return status == HAPAX_OK ? HX_REASON_NONE : reason_of(status, HX_REASON_NO_KEY);
}

/* Read the event and find its key, or the reason why it cannot run. */
static void identify(struct hx_in_flight *in_flight)
{
	struct hapax_error err = {.message = ""};

	forget_key(&in_flight->key);
	in_flight->lacks_id = false;
	in_flight->reason = find_key(in_flight, &err);
	if (in_flight->reason != HX_REASON_NONE)
		(void)snprintf(
			in_flight->reason_text, sizeof(in_flight->reason_text), "%s", err.message);
}

/* The hash of topic and part. */
static uint64_t ordering_queue_of(const struct hx_in_flight *in_flight, struct hapax_bytes part)
{
	const uint64_t *secret = in_flight->consumer->ordering_queues.secret;
	struct hapax_bytes topic = in_flight->message->topic;

	return hx_siphash13(secret, topic.data, topic.size) ^
		hx_siphash13(secret, part.data, part.size);
}

/* Choose the ordering queue. */
static void choose_lane(struct hx_in_flight *in_flight)
{
	const struct hapax_message *message = in_flight->message;

	/* Messages of the past do not run and need no order. */
	in_flight->has_ordering_queue = !(message->flags & HAPAX_MESSAGE_WARM_UP);
	if (!in_flight->has_ordering_queue)
		return;
	switch (in_flight->consumer->options.order) {
	case HAPAX_ORDER_PARTITION:
		in_flight->ordering_queue = ordering_queue_of(
			in_flight, hx_bytes(&message->partition, sizeof(message->partition)));
		return;
	case HAPAX_ORDER_KEY:
		in_flight->has_ordering_queue = message->key.size > 0;
		if (in_flight->has_ordering_queue)
			in_flight->ordering_queue = ordering_queue_of(in_flight, message->key);
		return;
	case HAPAX_ORDER_NONE: in_flight->has_ordering_queue = false; return;
	}
}

/* Append at most max bytes. */
static char *put(char *at, struct hapax_bytes bytes, size_t max)
{
	size_t size = bytes.size < max ? bytes.size : max;

	if (size > 0)
		memcpy(at, bytes.data, size);
	return at + size;
}

/* TOPIC/PARTITION/OFFSET, or the parts that exist. */
static void write_place(struct hx_in_flight *in_flight)
{
	const struct hapax_message *message = in_flight->message;
	char *at = put(in_flight->place, message->topic, 250);

	static_assert(
		sizeof(in_flight->place) >= 250 + 1 + HX_DECIMAL_SIZE + 1 + 40 + 1,
		"a place has room for its parts");
	if (message->partition >= 0) {
		*at++ = '/';
		at += hx_decimal_write(at, message->partition);
	}
	if (message->place.size > 0)
		*at++ = '/';
	at = put(at, message->place, 40);
	*at = '\0';
	in_flight->place_size = (size_t)(at - in_flight->place);
}

/* take_in() writes to twenty cache lines, which are cold if thousands are in flight. */
static void warm(const struct hx_in_flight *in_flight)
{
	const char *envelope = (const char *)&in_flight->envelope;

	__builtin_prefetch(&in_flight->next, 1);
	__builtin_prefetch(&in_flight->key.key_size, 1);
	__builtin_prefetch(&in_flight->key.tenant_size, 1);
	__builtin_prefetch(&in_flight->key.group_size, 1);
	__builtin_prefetch(&in_flight->key.has_fingerprint, 1);
	__builtin_prefetch(in_flight->key.missing, 1);
	__builtin_prefetch(in_flight->place, 1);
	__builtin_prefetch(&in_flight->run, 1);
	for (size_t at = 0; at <= offsetof(struct hx_envelope, fields); at += CACHE_LINE_SIZE)
		__builtin_prefetch(envelope + at, 1);
}

static void take_in(struct hx_consumer *consumer, struct hapax_message *message)
{
	struct hx_in_flight *in_flight = hx_in_flight_list_take(&consumer->spare);

	if (consumer->spare.first != NULL)
		warm(consumer->spare.first);
	in_flight->message = message;
	message->private_in_flight = in_flight;
	in_flight->state = HX_IN_FLIGHT_QUEUED;
	in_flight->route = NULL;
	in_flight->is_tagged = false;
	in_flight->has_answer = false;
	in_flight->run = NULL;
	in_flight->token = 0;
	in_flight->attempt = 0;
	in_flight->failures = 0;
	in_flight->delays = 0;
	in_flight->is_held = false;
	consumer->stats.received++;
	consumer->queued++;
	write_place(in_flight);
	choose_lane(in_flight);
	identify(in_flight);
	if (in_flight->lacks_id)
		hx_consumer_lacks_id(in_flight);
	if (hx_ordering_queues_join(&consumer->ordering_queues, in_flight))
		hx_in_flight_list_add(&consumer->ready, in_flight);
}

/*
 * While the store is unavailable, one message is enough to probe it. A consumer that has halted gives
 * back what the source has fetched.
 */
static bool may_take(const struct hx_consumer *consumer)
{
	if (consumer->spare.count == 0 || consumer->is_stopping)
		return false;
	if (hx_consumer_is_held_up(consumer))
		return consumer->is_halted && consumer->source->ops->pause != NULL;
	return !consumer->is_away ||
		(hx_consumer_in_hand(consumer) == 0 && consumer->now_ms >= consumer->away_until_ms);
}

/* True: took a message. */
static bool consumer_take(struct hx_consumer *consumer)
{
	size_t count = 0;

	while (count < TAKE_MAX && may_take(consumer)) {
		struct hapax_message *message = consumer->source->ops->next(consumer->source);

		if (message == NULL)
			break;
		take_in(consumer, message);
		count++;
	}
	return count > 0;
}

/* Make waiting messages ready that are due. */
static void revive(struct hx_consumer *consumer)
{
	struct hx_in_flight *next;

	for (struct hx_in_flight *in_flight = consumer->waiting.first; in_flight != NULL;
	     in_flight = next) {
		next = in_flight->next;
		if (in_flight->message->flags & HAPAX_MESSAGE_REVOKED || consumer->is_stopping) {
			hx_in_flight_list_remove(&consumer->waiting, in_flight);
			hx_settle_give_back(in_flight);
		} else if (
			in_flight->due_ms <= consumer->now_ms &&
			!hx_consumer_is_held_up(consumer)) {
			hx_in_flight_list_remove(&consumer->waiting, in_flight);
			in_flight->state = HX_IN_FLIGHT_QUEUED;
			consumer->queued++;
			hx_in_flight_list_add(&consumer->ready, in_flight);
		}
	}
}

void hx_consumer_start(struct hx_in_flight *in_flight)
{
	struct hx_consumer *consumer = in_flight->consumer;

	in_flight->state = HX_IN_FLIGHT_RUNNING;
	in_flight->began_ns = report_ns(consumer);
	in_flight->status = 0;
	in_flight->is_traced = consumer->options.trace != NULL &&
		consumer->options.trace(
			traceparent_of(in_flight), &in_flight->trace,
			consumer->options.told_context) != 0;
	consumer->running++;
	/* No other thread knows the message before it is handed over. */
	atomic_store_explicit(&in_flight->call.is_fenced, false, memory_order_relaxed);
	in_flight->position = -1;
	if (consumer->options.flags & HAPAX_CONSUMER_TRANSACTIONS &&
	    consumer->source->ops->position != NULL)
		in_flight->position =
			consumer->source->ops->position(consumer->source, in_flight->message);
	consumer->handler->ops->start(consumer->handler, in_flight);
}

static void on_run(
	struct hx_in_flight *in_flight, struct hapax_run *run, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = in_flight->consumer;

	in_flight->run = run;
	in_flight->token = answer->token;
	in_flight->attempt = answer->attempt;
	if (answer->flags & HAPAX_ANSWER_UNPROTECTED)
		in_flight->attempt = in_flight->failures + 1;
	else
		hx_settle_store_answered(consumer);
	if (in_flight->key.kind == HAPAX_KEY_NONE) {
		struct hapax_consumer_event event = {
			.fact = HAPAX_FACT_UNPROTECTED, .why = in_flight->key.missing};

		hx_consumer_tell(consumer, in_flight, &event);
	}
	hx_consumer_tell_answer(in_flight, HAPAX_FACT_DECIDED, answer);
	hx_consumer_start(in_flight);
}

static void on_step(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct hx_in_flight *in_flight = context;
	struct hx_consumer *consumer = in_flight->consumer;

	switch (step) {
	case HAPAX_STEP_RUN: on_run(in_flight, run, answer); return;
	case HAPAX_STEP_OVERDUE:
	case HAPAX_STEP_FENCED:
		atomic_store(&in_flight->call.is_fenced, true);
		if (in_flight->state == HX_IN_FLIGHT_RUNNING &&
		    consumer->handler->ops->stop != NULL)
			consumer->handler->ops->stop(consumer->handler, in_flight);
		return;
	case HAPAX_STEP_END:
		in_flight->run = NULL;
		consumer->claimed--;
		hx_settle_answer(in_flight, answer);
		return;
	case HAPAX_STEP_WAIT:
	case HAPAX_STEP_LAPSED:
	case HAPAX_STEP_UNSTORED: return;
	}
}

/* The daemon's doors begin stored headers so, too: serve/trace/tracing.h. */
static enum hapax_status append_trace(struct hx_in_flight *in_flight)
{
	static const char name[] = "Hapax-Traceparent: ";
	struct hapax_buf *to = &in_flight->result_headers;
	enum hapax_status status;

	if (!in_flight->is_traced || !in_flight->trace.is_sampled)
		return HAPAX_OK;
	status = hx_buf_append(to, name, sizeof(name) - 1);
	if (status == HAPAX_OK)
		status = hx_buf_append(to, in_flight->trace.run, sizeof(in_flight->trace.run));
	return status == HAPAX_OK ? hx_buf_append(to, "\r\n", 2) : status;
}

static enum hapax_status append_place(struct hx_in_flight *in_flight)
{
	static const char name[] = HX_PLACE_FIELD ": ";
	struct hapax_buf *to = &in_flight->result_headers;
	enum hapax_status status = hx_buf_append(to, name, sizeof(name) - 1);

	if (status == HAPAX_OK)
		status = hx_buf_append(to, in_flight->place, in_flight->place_size);
	if (status == HAPAX_OK)
		status = hx_buf_append(to, "\r\n", 2);
	return status;
}

void hx_in_flight_keep_place(struct hx_in_flight *in_flight, struct hapax_result *result)
{
	hx_buf_clear(&in_flight->result_headers);
	if (result->kind != HAPAX_RESULT_EXEC && append_trace(in_flight) == HAPAX_OK &&
	    hx_buf_append(&in_flight->result_headers, result->headers.data, result->headers.size) ==
		    HAPAX_OK &&
	    append_place(in_flight) == HAPAX_OK)
		result->headers = hapax_buf_bytes(&in_flight->result_headers);
}

void hx_in_flight_finish(
	struct hx_in_flight *in_flight, enum hapax_run_outcome outcome,
	const struct hapax_result *result, struct hapax_bytes error)
{
	struct hx_consumer *consumer = in_flight->consumer;
	struct hapax_result *kept = &in_flight->result;

	assert(in_flight->state == HX_IN_FLIGHT_RUNNING);
	*kept = (struct hapax_result){.kind = HAPAX_RESULT_NONE};
	if (result != NULL)
		*kept = *result;
	hx_in_flight_keep_place(in_flight, kept);
	in_flight->outcome = outcome;
	in_flight->error = error;
	in_flight->took_ns = report_ns(consumer) - in_flight->began_ns;
	in_flight->state = HX_IN_FLIGHT_FINISHING;
	consumer->running--;
	hx_in_flight_list_add(&consumer->finishing, in_flight);
	if (consumer->wake != NULL)
		consumer->wake(consumer->wake_context);
}

/* How many may begin now. While the store is unavailable, one probes it. */
static size_t room(const struct hx_consumer *consumer)
{
	size_t room = consumer->options.parallel - consumer->claimed;

	if (consumer->is_stopping || consumer->is_failed || hx_consumer_is_held_up(consumer))
		return 0;
	if (consumer->is_away)
		return consumer->claimed == 0 && consumer->now_ms >= consumer->away_until_ms ? 1
											     : 0;
	return room < BATCH_MAX ? room : BATCH_MAX;
}

struct hapax_cause hx_in_flight_event(const struct hx_in_flight *in_flight)
{
	size_t size = in_flight->message->place.size == 0 ? 0 : in_flight->place_size;

	assert(in_flight->route != NULL);
	return hx_envelope_cause(&in_flight->envelope, hx_bytes(in_flight->place, size));
}

void hx_in_flight_request(
	struct hx_in_flight *in_flight, const struct hapax_run_options *options,
	unsigned char space[HAPAX_CAUSE_SIZE_MAX], struct hapax_request *request)
{
	*request = (struct hapax_request)HAPAX_REQUEST_INIT;
	request->options = options;
	hx_request_key_set(request, &in_flight->key, in_flight->keys);
	if (!options->omits_cause && !options->is_disabled) {
		struct hapax_cause event = hx_in_flight_event(in_flight);

		request->cause = hapax_cause_write(&event, space);
	}
}

static void fill_request(
	struct hx_in_flight *in_flight, unsigned char space[HAPAX_CAUSE_SIZE_MAX],
	struct hapax_request *request)
{
	const struct hx_route *route = in_flight->route;

	hx_in_flight_request(
		in_flight,
		in_flight->key.kind == HAPAX_KEY_NONE ? &route->unprotected : &route->run, space,
		request);
	request->step = on_step;
	request->context = in_flight;
}

/* A ready message of the past waits for room in the warm-up batch. */
static bool may_begin(struct hx_consumer *consumer, size_t left)
{
	const struct hx_in_flight *first = consumer->ready.first;

	if (left == 0 || first == NULL)
		return false;
	return !(first->message->flags & HAPAX_MESSAGE_WARM_UP) || hx_warm_up_has_room(consumer);
}

/* True: began or handed on a message. */
static bool begin(struct hx_consumer *consumer)
{
	size_t left = room(consumer);
	size_t count = 0;
	bool has_begun = false;
	int64_t now_ns = report_ns(consumer);
	struct hapax_error err;

	while (may_begin(consumer, left - count)) {
		struct hx_in_flight *in_flight = hx_in_flight_list_take(&consumer->ready);

		consumer->queued--;
		has_begun = true;
		if (in_flight->message->flags & HAPAX_MESSAGE_REVOKED) {
			hx_settle_give_back(in_flight);
		} else if (in_flight->message->flags & HAPAX_MESSAGE_WARM_UP) {
			hx_warm_up_add(in_flight);
		} else if (in_flight->reason != HX_REASON_NONE) {
			hx_settle_publish(in_flight);
		} else if (in_flight->is_tagged) {
			hx_tag_run(in_flight);
			left--;
		} else {
			in_flight->state = HX_IN_FLIGHT_CLAIMING;
			in_flight->asked_ns = now_ns;
			fill_request(
				in_flight, consumer->causes[count], &consumer->requests[count]);
			count++;
		}
	}
	if (count == 0)
		return has_begun;
	consumer->claimed += count;
	if (hapax_processor_begin(consumer->processor, consumer->requests, count, &err) == HAPAX_OK)
		return true;
	/* Out of memory, nothing began: retry later. */
	consumer->claimed -= count;
	for (size_t i = 0; i < count; i++)
		hx_settle_wait(consumer->requests[i].context, hx_consumer_delay_ms(consumer, 0));
	return false;
}

/* If the result cannot be stored as it is, store only the outcome. */
static void finish_one(const struct hapax_finish *finish)
{
	struct hapax_error err;
	enum hapax_status status =
		hapax_run_finish(finish->run, finish->outcome, finish->result, finish->error, &err);

	if (status != HAPAX_OK)
		status = hapax_run_finish(
			finish->run, finish->outcome, NULL, hx_bytes(NULL, 0), &err);
	assert(status == HAPAX_OK);
}

static bool finish(struct hx_consumer *consumer)
{
	size_t count = 0;
	bool has_ended = false;
	struct hapax_error err;

	while (count < BATCH_MAX && consumer->finishing.count > 0) {
		struct hx_in_flight *in_flight = hx_in_flight_list_take(&consumer->finishing);

		if (in_flight->is_tagged) {
			hx_tag_end(in_flight);
			has_ended = true;
			continue;
		}
		consumer->finishes[count++] = (struct hapax_finish){
			in_flight->run, in_flight->outcome, &in_flight->result, in_flight->error};
	}
	if (count == 0)
		return has_ended;
	if (hapax_run_finish_all(consumer->processor, consumer->finishes, count, &err) !=
	    HAPAX_OK) {
		for (size_t i = 0; i < count; i++)
			finish_one(&consumer->finishes[i]);
	}
	return true;
}

/* Give messages that have not begun back to the broker. */
static void give_back_rest(struct hx_consumer *consumer)
{
	while (consumer->ready.count > 0) {
		struct hx_in_flight *in_flight = hx_in_flight_list_take(&consumer->ready);

		consumer->queued--;
		hx_settle_give_back(in_flight);
	}
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t next_due(const struct hx_consumer *consumer)
{
	int64_t due = consumer->is_stopping ? consumer->stop_at_ms : INT64_MAX;

	if (hx_consumer_is_held_up(consumer))
		return due;
	for (const struct hx_in_flight *at = consumer->waiting.first; at != NULL; at = at->next)
		due = earlier(due, at->due_ms);
	if (consumer->is_away && consumer->claimed == 0 &&
	    consumer->away_until_ms > consumer->now_ms)
		due = earlier(due, consumer->away_until_ms);
	return due;
}

int64_t hx_consumer_turn(struct hx_consumer *consumer, int64_t now_ms)
{
	struct hx_handler *handler = consumer->handler;
	int64_t due = INT64_MAX;
	bool goes_on = true;

	consumer->now_ms = now_ms;
	for (int i = 0; i < ROUNDS_MAX && goes_on; i++) {
		due = consumer->source->ops->tick(consumer->source, now_ms);
		due = earlier(due, hapax_processor_tick(consumer->processor));
		if (handler->ops->turn != NULL)
			handler->ops->turn(handler);
		goes_on = consumer_take(consumer);
		revive(consumer);
		if (consumer->is_stopping || consumer->is_halted)
			give_back_rest(consumer);
		goes_on = begin(consumer) || goes_on;
		goes_on = hx_warm_up_turn(consumer) || goes_on;
		goes_on = finish(consumer) || goes_on;
	}
	if (goes_on)
		return now_ms;
	return earlier(due, next_due(consumer));
}

void hx_consumer_stop(struct hx_consumer *consumer)
{
	int64_t end;

	if (consumer->is_stopping)
		return;
	consumer->is_stopping = true;
	consumer->stop_at_ms =
		__builtin_add_overflow(consumer->now_ms, consumer->options.drain_ms, &end)
		? INT64_MAX
		: end;
}

void hx_consumer_hurry(struct hx_consumer *consumer)
{
	const struct hx_handler_ops *ops = consumer->handler->ops;

	if (consumer->source->ops->hurry != NULL)
		consumer->source->ops->hurry(consumer->source);
	for (size_t i = 0; i < consumer->options.prefetch; i++) {
		struct hx_in_flight *in_flight = &consumer->in_flight_list[i];

		if (in_flight->state != HX_IN_FLIGHT_RUNNING)
			continue;
		atomic_store(&in_flight->call.is_fenced, true);
		if (ops->stop != NULL)
			ops->stop(consumer->handler, in_flight);
	}
}

void hx_consumer_source_failed(struct hx_consumer *consumer, const char *text, int is_fatal)
{
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_SOURCE_FAILED, .why = text};

	consumer->is_reached = false;
	hx_consumer_tell(consumer, NULL, &event);
	if (!is_fatal || consumer->is_failed)
		return;
	consumer->is_failed = true;
	consumer->failure.status = HAPAX_ERR_UNAVAILABLE;
	(void)snprintf(consumer->failure.message, sizeof(consumer->failure.message), "%s", text);
}

void hx_consumer_source_reached(struct hx_consumer *consumer)
{
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_SOURCE_REACHED};

	if (consumer->is_reached)
		return;
	consumer->is_reached = true;
	hx_consumer_tell(consumer, NULL, &event);
}

size_t hx_consumer_in_hand(const struct hx_consumer *consumer)
{
	return consumer->options.prefetch - consumer->spare.count;
}

bool hx_consumer_is_idle(const struct hx_consumer *consumer)
{
	return hx_consumer_in_hand(consumer) == 0 &&
		consumer->source->ops->drain(consumer->source) != 0;
}
