/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source_case.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static struct case_member *member_of(struct hapax_source *source)
{
	return (struct case_member *)source;
}

static struct case_instance *instance_of(struct hapax_message *message)
{
	return (struct case_instance *)(void *)message;
}

static struct case_instance *free_instance(struct case_member *member)
{
	for (size_t i = 0; i < CASE_INSTANCES; i++) {
		if (member->instances[i].letter == NULL)
			return &member->instances[i];
	}
	return NULL;
}

static struct hapax_message *case_next(struct hapax_source *source)
{
	struct case_member *member = member_of(source);
	struct source_case *c = member->c;

	for (size_t i = 0; i < c->letter_count; i++) {
		struct case_letter *letter = &c->letters[i];
		struct case_instance *instance = free_instance(member);

		if (letter->is_acked || letter->is_out ||
		    c->owner[letter->partition] != member->number || instance == NULL)
			continue;
		letter->is_out = true;
		instance->letter = letter;
		instance->base = (struct hapax_message){
			.origin = HX_BYTES_LIT("case://test"),
			.topic = HX_BYTES_LIT("orders"),
			.partition = letter->partition,
			.place = hapax_bytes_from_text(letter->place),
			.key = hapax_bytes_from_text(letter->key),
			.data = hapax_bytes_from_text(letter->data),
			.headers = letter->headers,
			.header_count = letter->header_count,
			.time_ms = CASE_EPOCH_MS,
			.flags = letter->flags};
		return &instance->base;
	}
	return NULL;
}

/* Is the record of this key done, or, of the past, known? Asked behind everybody's back. */
static bool is_key_done(
	struct source_case *c, const struct hx_in_flight *in_flight, struct hapax_bytes key)
{
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP};

	op.tenant = hx_bytes(in_flight->key.tenant, in_flight->key.tenant_size);
	op.group = hx_bytes(in_flight->key.group, in_flight->key.group_size);
	op.key = key;
	return case_run(&c->store, &op) == HAPAX_OK && op.outcome == HAPAX_OUTCOME_FOUND &&
		(c->store.record.state == HAPAX_STATE_DONE ||
		 in_flight->message->flags & HAPAX_MESSAGE_WARM_UP);
}

/* The same of the message: by either of its keys. */
static bool is_done(struct source_case *c, const struct hx_in_flight *in_flight)
{
	const struct hapax_key *key = &in_flight->key;

	return is_key_done(c, in_flight, hx_bytes(key->key, key->key_size)) ||
		(key->also_size > 0 &&
		 is_key_done(c, in_flight, hx_bytes(key->also, key->also_size)));
}

static void case_ack(struct hapax_source *source, struct hapax_message *message)
{
	struct case_member *member = member_of(source);
	struct case_instance *instance = instance_of(message);
	struct case_letter *letter = instance->letter;
	const struct hx_in_flight *in_flight = message->private_in_flight;

	assert(letter != NULL);
	member->acks++;
	if (!letter->is_dead && in_flight->key.kind != HAPAX_KEY_NONE &&
	    !is_done(member->c, in_flight))
		member->c->broken = "I4: acknowledged, and neither done nor a dead letter";
	if (!(message->flags & HAPAX_MESSAGE_REVOKED)) {
		letter->is_acked = true;
		letter->is_out = false;
	}
	instance->letter = NULL;
}

static void case_give_back(struct hapax_source *source, struct hapax_message *message)
{
	struct case_member *member = member_of(source);
	struct case_instance *instance = instance_of(message);

	assert(instance->letter != NULL);
	member->back++;
	/* What is too large stays out: it is not delivered again. */
	if (!(message->flags & (HAPAX_MESSAGE_REVOKED | HAPAX_MESSAGE_TOO_LARGE)))
		instance->letter->is_out = false;
	instance->letter = NULL;
}

static void case_publish(struct hapax_source *source, struct hapax_publication *publication)
{
	struct case_member *member = member_of(source);

	publication->private_next = member->publications;
	member->publications = publication;
}

static void take_letter(const struct hapax_publication *publication)
{
	const struct case_instance *instance =
		(const struct case_instance *)(const void *)publication->message;

	if (strcmp(publication->target, "orders.duplicate") == 0) {
		instance->letter->is_diverted = true;
		return;
	}
	assert(strcmp(publication->target, "orders.dead") == 0);
	instance->letter->is_dead = true;
	for (size_t i = 0; i < publication->header_count; i++) {
		if (hx_bytes_equal(publication->headers[i].name, HX_BYTES_LIT("hapax-dead-reason")))
			(void)snprintf(
				instance->letter->reason, sizeof(instance->letter->reason), "%.*s",
				(int)publication->headers[i].value.size,
				(const char *)publication->headers[i].value.data);
	}
}

static int64_t case_tick(struct hapax_source *source, int64_t now_ms)
{
	struct case_member *member = member_of(source);
	struct hapax_publication *list = member->publications;

	(void)now_ms;
	if (member->c->withholds_answers && !member->is_hurried)
		return INT64_MAX;
	member->publications = NULL;
	while (list != NULL) {
		struct hapax_publication *publication = list;

		list = list->private_next;
		if (member->c->refuses_letters) {
			publication->done(publication, HAPAX_ERR_UNAVAILABLE, "no");
			continue;
		}
		take_letter(publication);
		publication->done(publication, HAPAX_OK, "");
	}
	return INT64_MAX;
}

static void case_hurry(struct hapax_source *source)
{
	member_of(source)->is_hurried = true;
}

static int case_drain(struct hapax_source *source)
{
	(void)source;
	return 1;
}

static void case_source_stats(struct hapax_source *source, struct hapax_source_stats *ret_stats)
{
	(void)source, (void)ret_stats;
}

static void case_close(struct hapax_source *source)
{
	(void)source;
}

static const struct hapax_source_ops source_ops = {
	.version = HAPAX_SOURCE_OPS_VERSION,
	.name = "case",
	.next = case_next,
	.ack = case_ack,
	.give_back = case_give_back,
	.publish = case_publish,
	.tick = case_tick,
	.drain = case_drain,
	.stats = case_source_stats,
	.close = case_close,
	.hurry = case_hurry,
};

static struct case_member *member_of_handler(struct hx_handler *handler)
{
	return (struct case_member
			*)(void *)((char *)handler - offsetof(struct case_member, handler));
}

static void case_start(struct hx_handler *handler, struct hx_in_flight *in_flight)
{
	struct case_member *member = member_of_handler(handler);

	assert(member->running_count < CASE_INSTANCES);
	member->running[member->running_count++] = in_flight;
}

static const struct hx_handler_ops handler_ops = {.start = case_start};

void source_case_finish(struct case_member *member, size_t index, enum hapax_run_outcome outcome)
{
	struct hx_in_flight *in_flight = member->running[index];
	struct case_instance *instance = instance_of(in_flight->message);

	assert(index < member->running_count);
	for (size_t i = index + 1; i < member->running_count; i++)
		member->running[i - 1] = member->running[i];
	member->running_count--;
	if (outcome == HAPAX_RUN_OK && !in_flight->is_tagged)
		instance->letter->effects++;
	hx_in_flight_finish(
		in_flight, outcome, NULL,
		outcome == HAPAX_RUN_OK ? hx_bytes(NULL, 0) : HX_BYTES_LIT("told to fail"));
}

struct hx_in_flight *source_case_running(
	struct case_member *member, const struct case_letter *letter)
{
	for (size_t i = 0; i < member->running_count; i++) {
		if (instance_of(member->running[i]->message)->letter == letter)
			return member->running[i];
	}
	return NULL;
}

static void told(const struct hapax_consumer_event *event, void *context)
{
	struct source_case *c = context;

	c->facts[event->fact]++;
	if (event->fact != HAPAX_FACT_DUPLICATE)
		return;
	c->cause = event->cause;
	(void)snprintf(
		c->original, sizeof(c->original), "%.*s", (int)event->original.size,
		(const char *)event->original.data);
}

static void count_bytes(void *out, size_t size, void *context)
{
	struct source_case *c = context;
	unsigned char *bytes = out;

	for (size_t i = 0; i < size; i++) {
		if (i % 8 == 0)
			c->random += UINT64_C(0x9e3779b97f4a7c15);
		bytes[i] = (unsigned char)(c->random >> (i % 8 * 8));
	}
}

static void no_wake(void *context)
{
	(void)context;
}

void source_case_init(struct source_case *c)
{
	memset(c, 0, sizeof(*c));
	store_case_begin(&c->store, "memory:");
	held_store_init(&c->held, c->store.store, c->store.options.clock);
	c->options = (struct hapax_consumer_options)HAPAX_CONSUMER_OPTIONS_INIT;
	c->options.prefetch = 16;
	c->options.parallel = 8;
	c->options.attempts_max = 3;
	c->options.backoff_ms = 10;
	c->options.backoff_ms_max = 80;
	c->options.drain_ms = 5000;
	c->options.run.lease_ms = 900;
	c->options.run.ttl_ms = 600000;
	c->options.told = told;
	c->options.told_context = c;
}

static void open_member(struct source_case *c, struct case_member *member)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hapax_error err = {0};

	member->c = c;
	member->source.ops = &source_ops;
	member->handler.ops = &handler_ops;
	options.flags = HAPAX_PROCESSOR_STEPS_IN_TICK;
	options.clock = c->store.options.clock;
	options.owner = member->number == 0 ? "first" : "second";
	options.random_bytes = count_bytes;
	options.random_context = c;
	options.wake = no_wake;
	options.timeout_ms = 100;
	options.run = c->options.run;
	member->route.identity = &member->identity;
	member->route.run = c->options.run;
	member->route.unprotected = c->options.run;
	member->route.unprotected.is_disabled = 1;
	member->core.source = &member->source;
	member->core.store = &c->held.base;
	member->core.handler = &member->handler;
	member->core.options = c->options;
	member->core.routes = &member->route;
	member->core.route_count = 1;
	member->core.dead_letter =
		c->options.dead_letter != NULL && strcmp(c->options.dead_letter, "off") == 0 ? NULL
											     : "";
	member->core.divert = "";
	if (hapax_processor_new(&c->held.base, &options, &member->core.processor, &err) !=
		    HAPAX_OK ||
	    hx_identity_init(
		    &member->identity, c->options.strategy, c->options.key_options, &err) !=
		    HAPAX_OK ||
	    hx_consumer_init(&member->core, 17 + (uint64_t)member->number, &err) != HAPAX_OK) {
		printf("# %s\n", err.message);
		abort();
	}
}

void source_case_open(struct source_case *c, size_t member_count)
{
	c->member_count = member_count;
	for (size_t i = 0; i < member_count; i++) {
		c->members[i].number = (int)i;
		open_member(c, &c->members[i]);
	}
}

void source_case_done(struct source_case *c)
{
	for (size_t i = 0; i < c->member_count; i++) {
		struct case_member *member = &c->members[i];

		hapax_processor_free(member->core.processor);
		hx_consumer_done(&member->core);
		hx_identity_done(&member->identity);
	}
	held_store_done(&c->held);
	store_case_done(&c->store);
}

struct case_letter *source_case_send(
	struct source_case *c, int partition, const char *id, const char *key, const char *data)
{
	struct case_letter *letter = &c->letters[c->letter_count];

	assert(c->letter_count < CASE_MESSAGES_MAX);
	letter->partition = partition;
	(void)snprintf(letter->id, sizeof(letter->id), "%s", id);
	(void)snprintf(letter->key, sizeof(letter->key), "%s", key);
	(void)snprintf(letter->data, sizeof(letter->data), "%s", data);
	(void)snprintf(letter->place, sizeof(letter->place), "%zu", c->letter_count);
	if (id[0] != '\0')
		letter->headers[letter->header_count++] = (struct hapax_field){
			HX_BYTES_LIT("eventId"), hapax_bytes_from_text(letter->id)};
	c->letter_count++;
	return letter;
}

void source_case_give(struct source_case *c, int partition, int member)
{
	struct case_member *before = &c->members[c->owner[partition]];

	if (before->number == member)
		return;
	for (size_t i = 0; i < CASE_INSTANCES; i++) {
		struct case_instance *instance = &before->instances[i];

		if (instance->letter == NULL || instance->letter->partition != partition ||
		    instance->base.flags & HAPAX_MESSAGE_REVOKED)
			continue;
		instance->base.flags |= HAPAX_MESSAGE_REVOKED;
		instance->letter->is_out = false;
	}
	c->owner[partition] = member;
}

void source_case_turn(struct source_case *c, struct case_member *member)
{
	int64_t now_ms = c->store.options.clock->boot_ms(c->store.options.clock->context);

	(void)hx_consumer_turn(&member->core, now_ms);
}

void source_case_turns(struct source_case *c)
{
	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < c->member_count; i++)
			source_case_turn(c, &c->members[i]);
	}
}

void source_case_pass(struct source_case *c, int64_t ms)
{
	for (; ms > 0; ms--) {
		store_case_advance(&c->store, 1);
		source_case_turns(c);
	}
}
