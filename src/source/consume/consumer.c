/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer.c - take, claim, run, finish: a turn of a consumer.
 *
 * Messages that came together are claimed together, and runs that ended together are
 * finished together: one submit each. What becomes of a message then stands in settle.c.
 */
#include "source/consume/consumer.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/siphash.h"
#include "source/consume/tag.h"

enum {
	/* Claims, or completions, in one submit: a durable store syncs once for all of them. */
	BATCH_MAX = 4096,

	/* As many are claimed before more are taken: the store works on them meanwhile. */
	TAKE_MAX = 256,

	/* Where the store answers at once, a turn goes on with what that brought about. */
	ROUNDS_MAX = 8,

	CACHE_LINE_SIZE = 64,

	/* To compare data it is read as JSON; as at the gateway, enough for 8 MiB. */
	SCRATCH_SIZE_MAX = 128 * 1024 * 1024,
};

void hx_intakes_add(struct hx_intakes *list, struct hx_intake *intake)
{
	intake->next = NULL;
	intake->back = list->last;
	if (list->last != NULL)
		list->last->next = intake;
	else
		list->first = intake;
	list->last = intake;
	list->count++;
}

void hx_intakes_add_first(struct hx_intakes *list, struct hx_intake *intake)
{
	intake->back = NULL;
	intake->next = list->first;
	if (list->first != NULL)
		list->first->back = intake;
	else
		list->last = intake;
	list->first = intake;
	list->count++;
}

void hx_intakes_remove(struct hx_intakes *list, struct hx_intake *intake)
{
	if (intake->back != NULL)
		intake->back->next = intake->next;
	else
		list->first = intake->next;
	if (intake->next != NULL)
		intake->next->back = intake->back;
	else
		list->last = intake->back;
	list->count--;
}

struct hx_intake *hx_intakes_take(struct hx_intakes *list)
{
	struct hx_intake *intake = list->first;

	if (intake != NULL)
		hx_intakes_remove(list, intake);
	return intake;
}

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
	consumer->intakes = hx_alloc_zero(count, sizeof(struct hx_intake));
	consumer->requests = hx_alloc_zero(batch, sizeof(struct hapax_request));
	consumer->finishes = hx_alloc_zero(batch, sizeof(struct hapax_finish));
	if (consumer->intakes == NULL || consumer->requests == NULL || consumer->finishes == NULL ||
	    hx_lanes_init(&consumer->lanes, count, secret) != HAPAX_OK) {
		hx_consumer_done(consumer);
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "out of memory for %zu messages", count);
	}
	for (size_t i = 0; i < count; i++) {
		struct hx_intake *intake = &consumer->intakes[i];

		intake->consumer = consumer;
		hx_envelope_init(&intake->envelope);
		hx_buf_init(&intake->result_headers, HX_RESULT_HEADERS_SIZE_MAX);
		hx_intakes_add(&consumer->spare, intake);
	}
	return HAPAX_OK;
}

void hx_consumer_done(struct hx_consumer *consumer)
{
	size_t count = consumer->intakes == NULL ? 0 : consumer->options.prefetch;

	for (size_t i = 0; i < count; i++) {
		struct hx_intake *intake = &consumer->intakes[i];

		if (consumer->handler->ops->forget != NULL)
			consumer->handler->ops->forget(consumer->handler, intake);
		hx_envelope_done(&intake->envelope);
		hx_buf_done(&intake->result_headers);
	}
	hx_warm_up_done(&consumer->warm_up);
	hx_lanes_done(&consumer->lanes);
	hx_buf_done(&consumer->scratch);
	hx_free(consumer->intakes);
	hx_free(consumer->requests);
	hx_free(consumer->finishes);
	consumer->intakes = NULL;
	consumer->requests = NULL;
	consumer->finishes = NULL;
}

void hx_consumer_tell(
	struct hx_consumer *consumer, const struct hx_intake *intake,
	struct hapax_consumer_event *event)
{
	if (consumer->options.told == NULL)
		return;
	event->size = sizeof(*event);
	if (event->why == NULL)
		event->why = "";
	if (intake != NULL) {
		event->topic = intake->message->topic;
		event->place = hapax_bytes_from_text(intake->place);
		event->tenant = hx_bytes(intake->key.tenant, intake->key.tenant_size);
		event->group = hx_bytes(intake->key.group, intake->key.group_size);
		event->key = hx_bytes(intake->key.key, intake->key.key_size);
		event->attempt = intake->attempt;
	}
	/* Who has a route was read as an event. */
	if (intake != NULL && intake->route != NULL) {
		event->type = intake->envelope.type;
		if (intake->envelope.is_cloudevent) {
			event->id = intake->envelope.cloudevent.id;
			event->source = intake->envelope.cloudevent.source;
		}
	}
	consumer->options.told(event, consumer->options.told_context);
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

static enum hx_intake_reason reason_of(enum hapax_status status, enum hx_intake_reason invalid)
{
	return status == HAPAX_ERR_LIMIT || status == HAPAX_ERR_NO_MEMORY ? HX_REASON_TOO_LARGE
									  : invalid;
}

/* As HAPAX_KEY_INIT, but for the room in it. */
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
}

static enum hx_intake_reason find_key(struct hx_intake *intake, struct hapax_error *err)
{
	struct hx_consumer *consumer = intake->consumer;
	struct hapax_bytes type;
	enum hapax_status status;

	if (intake->message->flags & HAPAX_MESSAGE_TOO_LARGE) {
		(void)hx_error_set(
			err, HAPAX_ERR_LIMIT, 0, "it is larger than the source takes (size_max)");
		return HX_REASON_TOO_LARGE;
	}
	status = hx_envelope_read(&intake->envelope, intake->message, err);
	if (status != HAPAX_OK)
		return reason_of(status, HX_REASON_MALFORMED);
	type = intake->envelope.type;
	intake->route = route_of(consumer, type);
	if (intake->route == NULL) {
		(void)hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "no handler has the type '%.*s'",
			(int)(type.size < 100 ? type.size : 100), (const char *)type.data);
		return HX_REASON_NO_ROUTE;
	}
	status = hx_identity_make(
		intake->route->identity, &intake->envelope, &consumer->scratch, &intake->key, err);
	return status == HAPAX_OK ? HX_REASON_NONE : reason_of(status, HX_REASON_NO_KEY);
}

/* Which event it is, and its key; or a reason why it cannot be run. */
static void identify(struct hx_intake *intake)
{
	struct hapax_error err = {.message = ""};

	forget_key(&intake->key);
	intake->reason = find_key(intake, &err);
	if (intake->reason != HX_REASON_NONE)
		(void)snprintf(intake->reason_text, sizeof(intake->reason_text), "%s", err.message);
}

/* Of the messages of its topic that have the same part. */
static uint64_t lane_of(const struct hx_intake *intake, struct hapax_bytes part)
{
	const uint64_t *secret = intake->consumer->lanes.secret;
	struct hapax_bytes topic = intake->message->topic;

	return hx_siphash13(secret, topic.data, topic.size) ^
		hx_siphash13(secret, part.data, part.size);
}

/* Which others it waits for. */
static void choose_lane(struct hx_intake *intake)
{
	const struct hapax_message *message = intake->message;

	/* What is of the past does not run, so it needs no order. */
	intake->has_lane = !(message->flags & HAPAX_MESSAGE_WARM_UP);
	if (!intake->has_lane)
		return;
	switch (intake->consumer->options.order) {
	case HAPAX_ORDER_PARTITION:
		intake->lane =
			lane_of(intake, hx_bytes(&message->partition, sizeof(message->partition)));
		return;
	case HAPAX_ORDER_KEY:
		intake->has_lane = message->key.size > 0;
		if (intake->has_lane)
			intake->lane = lane_of(intake, message->key);
		return;
	case HAPAX_ORDER_NONE: intake->has_lane = false; return;
	}
}

/* At most max bytes of it, behind what is there. */
static char *put(char *at, struct hapax_bytes bytes, size_t max)
{
	size_t size = bytes.size < max ? bytes.size : max;

	if (size > 0)
		memcpy(at, bytes.data, size);
	return at + size;
}

/* TOPIC/PARTITION/OFFSET, as far as there are such. */
static void write_place(struct hx_intake *intake)
{
	const struct hapax_message *message = intake->message;
	char *at = put(intake->place, message->topic, 250);

	static_assert(
		sizeof(intake->place) >= 250 + 1 + HX_DECIMAL_SIZE + 1 + 40 + 1,
		"a place has room for its parts");
	if (message->partition >= 0) {
		*at++ = '/';
		at += hx_decimal_write(at, message->partition);
	}
	if (message->place.size > 0)
		*at++ = '/';
	at = put(at, message->place, 40);
	*at = '\0';
	intake->place_size = (size_t)(at - intake->place);
}

/* What take_in() writes lies in twenty places, which have left the cache where thousands are in hand. */
static void warm(const struct hx_intake *intake)
{
	const char *envelope = (const char *)&intake->envelope;

	__builtin_prefetch(&intake->next, 1);
	__builtin_prefetch(&intake->key.key_size, 1);
	__builtin_prefetch(&intake->key.tenant_size, 1);
	__builtin_prefetch(&intake->key.group_size, 1);
	__builtin_prefetch(&intake->key.has_fingerprint, 1);
	__builtin_prefetch(intake->key.missing, 1);
	__builtin_prefetch(intake->place, 1);
	__builtin_prefetch(&intake->run, 1);
	for (size_t at = 0; at <= offsetof(struct hx_envelope, fields); at += CACHE_LINE_SIZE)
		__builtin_prefetch(envelope + at, 1);
}

static void take_in(struct hx_consumer *consumer, struct hapax_message *message)
{
	struct hx_intake *intake = hx_intakes_take(&consumer->spare);

	if (consumer->spare.first != NULL)
		warm(consumer->spare.first);
	intake->message = message;
	message->private_intake = intake;
	intake->state = HX_INTAKE_QUEUED;
	intake->route = NULL;
	intake->is_tagged = false;
	intake->has_answer = false;
	intake->run = NULL;
	intake->token = 0;
	intake->attempt = 0;
	intake->failures = 0;
	intake->delays = 0;
	consumer->stats.received++;
	consumer->queued++;
	write_place(intake);
	choose_lane(intake);
	identify(intake);
	if (hx_lanes_join(&consumer->lanes, intake))
		hx_intakes_add(&consumer->ready, intake);
}

/* While the store is away one message is enough, to ask whether it is back. */
static bool may_take(const struct hx_consumer *consumer)
{
	if (consumer->spare.count == 0 || consumer->is_stopping)
		return false;
	return !consumer->is_away ||
		(hx_consumer_in_hand(consumer) == 0 && consumer->now_ms >= consumer->away_until_ms);
}

/* True: something came. */
static bool take(struct hx_consumer *consumer)
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

/* Waiting ones whose time has come. */
static void revive(struct hx_consumer *consumer)
{
	struct hx_intake *next;

	for (struct hx_intake *intake = consumer->waiting.first; intake != NULL; intake = next) {
		next = intake->next;
		if (intake->message->flags & HAPAX_MESSAGE_REVOKED || consumer->is_stopping) {
			hx_intakes_remove(&consumer->waiting, intake);
			hx_settle_give_back(intake);
		} else if (intake->due_ms <= consumer->now_ms) {
			hx_intakes_remove(&consumer->waiting, intake);
			intake->state = HX_INTAKE_QUEUED;
			consumer->queued++;
			hx_intakes_add(&consumer->ready, intake);
		}
	}
}

void hx_consumer_start(struct hx_intake *intake)
{
	struct hx_consumer *consumer = intake->consumer;

	intake->state = HX_INTAKE_RUNNING;
	consumer->running++;
	/* Nobody else knows of it before it is handed over. */
	atomic_store_explicit(&intake->call.is_fenced, false, memory_order_relaxed);
	intake->position = -1;
	if (consumer->options.flags & HAPAX_CONSUMER_TRANSACTIONS &&
	    consumer->source->ops->position != NULL)
		intake->position =
			consumer->source->ops->position(consumer->source, intake->message);
	consumer->handler->ops->start(consumer->handler, intake);
}

static void on_run(
	struct hx_intake *intake, struct hapax_run *run, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = intake->consumer;

	intake->run = run;
	intake->token = answer->token;
	intake->attempt = answer->attempt;
	if (answer->flags & HAPAX_ANSWER_UNPROTECTED)
		intake->attempt = intake->failures + 1;
	else
		hx_settle_store_answered(consumer);
	if (intake->key.kind == HAPAX_KEY_NONE) {
		struct hapax_consumer_event event = {
			.fact = HAPAX_FACT_UNPROTECTED, .why = intake->key.missing};

		hx_consumer_tell(consumer, intake, &event);
	}
	hx_consumer_start(intake);
}

static void on_step(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct hx_intake *intake = context;
	struct hx_consumer *consumer = intake->consumer;

	switch (step) {
	case HAPAX_STEP_RUN: on_run(intake, run, answer); return;
	case HAPAX_STEP_OVERDUE:
	case HAPAX_STEP_FENCED:
		atomic_store(&intake->call.is_fenced, true);
		if (intake->state == HX_INTAKE_RUNNING && consumer->handler->ops->stop != NULL)
			consumer->handler->ops->stop(consumer->handler, intake);
		return;
	case HAPAX_STEP_END:
		intake->run = NULL;
		consumer->claimed--;
		hx_settle_answer(intake, answer);
		return;
	case HAPAX_STEP_WAIT:
	case HAPAX_STEP_LAPSED:
	case HAPAX_STEP_UNSTORED: return;
	}
}

static enum hapax_status append_place(struct hx_intake *intake)
{
	static const char name[] = HX_PLACE_FIELD ": ";
	struct hapax_buf *to = &intake->result_headers;
	enum hapax_status status = hx_buf_append(to, name, sizeof(name) - 1);

	if (status == HAPAX_OK)
		status = hx_buf_append(to, intake->place, intake->place_size);
	if (status == HAPAX_OK)
		status = hx_buf_append(to, "\r\n", 2);
	return status;
}

void hx_intake_keep_place(struct hx_intake *intake, struct hapax_result *result)
{
	hx_buf_clear(&intake->result_headers);
	if (result->kind != HAPAX_RESULT_EXEC &&
	    hx_buf_append(&intake->result_headers, result->headers.data, result->headers.size) ==
	            HAPAX_OK &&
	    append_place(intake) == HAPAX_OK)
		result->headers = hapax_buf_bytes(&intake->result_headers);
}

void hx_intake_finish(
	struct hx_intake *intake, enum hapax_run_outcome outcome, const struct hapax_result *result,
	struct hapax_bytes error)
{
	struct hx_consumer *consumer = intake->consumer;
	struct hapax_result *kept = &intake->result;

	assert(intake->state == HX_INTAKE_RUNNING);
	*kept = (struct hapax_result){.kind = HAPAX_RESULT_NONE};
	if (result != NULL)
		*kept = *result;
	hx_intake_keep_place(intake, kept);
	intake->outcome = outcome;
	intake->error = error;
	intake->state = HX_INTAKE_FINISHING;
	consumer->running--;
	hx_intakes_add(&consumer->finishing, intake);
	if (consumer->wake != NULL)
		consumer->wake(consumer->wake_context);
}

/* How many may be begun now. While the store is away one asks whether it is back. */
static size_t room(const struct hx_consumer *consumer)
{
	size_t room = consumer->options.parallel - consumer->claimed;

	if (consumer->is_stopping || consumer->is_failed)
		return 0;
	if (consumer->is_away)
		return consumer->claimed == 0 && consumer->now_ms >= consumer->away_until_ms ? 1
											     : 0;
	return room < BATCH_MAX ? room : BATCH_MAX;
}

void hx_intake_request(
	struct hx_intake *intake, const struct hapax_run_options *options,
	struct hapax_request *request)
{
	const struct hapax_key *key = &intake->key;

	*request = (struct hapax_request)HAPAX_REQUEST_INIT;
	request->options = options;
	request->tenant = hx_bytes(key->tenant, key->tenant_size);
	request->group = hx_bytes(key->group, key->group_size);
	request->key = hx_bytes(key->key, key->key_size);
	if (key->has_fingerprint && !key->is_fingerprint)
		request->fingerprint = key->fingerprint;
}

static void fill_request(struct hx_intake *intake, struct hapax_request *request)
{
	const struct hx_route *route = intake->route;

	hx_intake_request(
		intake, intake->key.kind == HAPAX_KEY_NONE ? &route->unprotected : &route->run,
		request);
	request->step = on_step;
	request->context = intake;
}

/* What is ready may be of the past, which waits for a batch of its own. */
static bool may_begin(struct hx_consumer *consumer, size_t left)
{
	const struct hx_intake *first = consumer->ready.first;

	if (left == 0 || first == NULL)
		return false;
	return !(first->message->flags & HAPAX_MESSAGE_WARM_UP) || hx_warm_up_has_room(consumer);
}

/* True: something was begun, or handed on. */
static bool begin(struct hx_consumer *consumer)
{
	size_t left = room(consumer);
	size_t count = 0;
	bool has_begun = false;
	struct hapax_error err;

	while (may_begin(consumer, left - count)) {
		struct hx_intake *intake = hx_intakes_take(&consumer->ready);

		consumer->queued--;
		has_begun = true;
		if (intake->message->flags & HAPAX_MESSAGE_REVOKED) {
			hx_settle_give_back(intake);
		} else if (intake->message->flags & HAPAX_MESSAGE_WARM_UP) {
			hx_warm_up_add(intake);
		} else if (intake->reason != HX_REASON_NONE) {
			hx_settle_publish(intake);
		} else if (intake->is_tagged) {
			hx_tag_run(intake);
			left--;
		} else {
			intake->state = HX_INTAKE_CLAIMING;
			fill_request(intake, &consumer->requests[count++]);
		}
	}
	if (count == 0)
		return has_begun;
	consumer->claimed += count;
	if (hapax_processor_begin(consumer->processor, consumer->requests, count, &err) == HAPAX_OK)
		return true;
	/* Nothing was begun, for want of memory: later. */
	consumer->claimed -= count;
	for (size_t i = 0; i < count; i++)
		hx_settle_wait(consumer->requests[i].context, hx_consumer_delay_ms(consumer, 0));
	return false;
}

/* A result that cannot be kept as it is: that it was done matters more. */
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
		struct hx_intake *intake = hx_intakes_take(&consumer->finishing);

		if (intake->is_tagged) {
			hx_tag_end(intake);
			has_ended = true;
			continue;
		}
		consumer->finishes[count++] = (struct hapax_finish){
			intake->run, intake->outcome, &intake->result, intake->error};
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

/* Whoever has not begun goes back to the broker. */
static void give_back_rest(struct hx_consumer *consumer)
{
	while (consumer->ready.count > 0) {
		struct hx_intake *intake = hx_intakes_take(&consumer->ready);

		consumer->queued--;
		hx_settle_give_back(intake);
	}
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t next_due(const struct hx_consumer *consumer)
{
	int64_t due = consumer->is_stopping ? consumer->stop_at_ms : INT64_MAX;

	for (const struct hx_intake *at = consumer->waiting.first; at != NULL; at = at->next)
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
		goes_on = take(consumer);
		revive(consumer);
		if (consumer->is_stopping)
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
		struct hx_intake *intake = &consumer->intakes[i];

		if (intake->state != HX_INTAKE_RUNNING)
			continue;
		atomic_store(&intake->call.is_fenced, true);
		if (ops->stop != NULL)
			ops->stop(consumer->handler, intake);
	}
}

void hx_consumer_source_failed(struct hx_consumer *consumer, const char *text, int is_fatal)
{
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_SOURCE_FAILED, .why = text};

	hx_consumer_tell(consumer, NULL, &event);
	if (!is_fatal || consumer->is_failed)
		return;
	consumer->is_failed = true;
	consumer->failure.status = HAPAX_ERR_UNAVAILABLE;
	(void)snprintf(consumer->failure.message, sizeof(consumer->failure.message), "%s", text);
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
