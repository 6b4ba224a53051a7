/* SPDX-License-Identifier: Apache-2.0 */
#include "support/processor_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_bytes(void *out, size_t size, void *context)
{
	struct processor_case *c = context;
	unsigned char *bytes = out;

	/* Different in every word, and never the same as attempt ids of store_case. */
	for (size_t i = 0; i < size; i++) {
		if (i % 8 == 0)
			c->random += UINT64_C(0x9e3779b97f4a7c15);
		bytes[i] = (unsigned char)(c->random >> (i % 8 * 8));
	}
}

static void note_wake(void *context)
{
	((struct processor_case *)context)->wakes++;
}

void processor_case_init(struct processor_case *c)
{
	memset(c, 0, sizeof(*c));
	store_case_begin(&c->store, "memory:");
	held_store_init(&c->held, c->store.store, c->store.options.clock);
	c->options = (struct hapax_processor_options)HAPAX_PROCESSOR_OPTIONS_INIT;
	c->options.clock = c->store.options.clock;
	c->options.owner = "test";
	c->options.random_bytes = count_bytes;
	c->options.random_context = c;
	c->options.wake = note_wake;
	c->options.wake_context = c;
	c->options.poll_ms = 100;
	c->options.timeout_ms = 1000;
	c->options.run.lease_ms = 900;
	c->options.run.ttl_ms = 60000;
}

void processor_case_open(struct processor_case *c)
{
	struct hapax_error err = {0};

	if (hapax_processor_new(&c->held.base, &c->options, &c->processor, &err) != HAPAX_OK) {
		printf("# %s\n", err.message);
		abort();
	}
}

void processor_case_begin(struct processor_case *c)
{
	processor_case_init(c);
	processor_case_open(c);
}

void processor_case_done(struct processor_case *c)
{
	hapax_processor_free(c->processor);
	held_store_done(&c->held);
	store_case_done(&c->store);
}

void processor_case_jump(struct processor_case *c, int64_t ms)
{
	store_case_advance(&c->store, ms);
	(void)hapax_processor_tick(c->processor);
}

void processor_case_pass(struct processor_case *c, int64_t ms)
{
	for (; ms > 0; ms--)
		processor_case_jump(c, 1);
}

static void copy_text(char to[CALL_BODY_MAX], struct hapax_bytes from)
{
	snprintf(to, CALL_BODY_MAX, "%.*s", (int)from.size, (const char *)from.data);
}

static void told(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct call *call = context;
	struct hapax_cause cause;

	if (call->step_count == CALL_STEPS_MAX || call->has_ended)
		abort();
	call->run = run;
	call->steps[call->step_count++] = step;
	call->answer = *answer;
	copy_text(call->body, answer->result.body);
	copy_text(call->error, answer->error);
	copy_text(call->owner, answer->owner);
	(void)hapax_cause_read(answer->original_cause, &cause);
	copy_text(call->cause_id, cause.id);
	call->has_ended = step == HAPAX_STEP_END;
	if (step == HAPAX_STEP_RUN && call->finishes &&
	    hapax_run_finish(
		    run, call->outcome, call->result, hapax_bytes_from_text("failed"), NULL) !=
		    HAPAX_OK)
		abort();
}

struct hapax_request call_request(struct call *call, const char *key)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;

	request.key = hapax_bytes_from_text(key);
	request.step = told;
	request.context = call;
	return request;
}

void call_begin_with(
	struct processor_case *c, struct call *call, const char *key, char letter,
	const struct hapax_run_options *options)
{
	struct hapax_request request = call_request(call, key);
	struct hapax_error err = {0};

	request.fingerprint = case_fingerprint(letter);
	request.options = options;
	if (hapax_processor_begin(c->processor, &request, 1, &err) != HAPAX_OK) {
		printf("# %s\n", err.message);
		abort();
	}
}

void call_begin(struct processor_case *c, struct call *call, const char *key, int64_t wait_ms)
{
	struct hapax_run_options options = c->options.run;

	memset(call, 0, sizeof(*call));
	options.wait_ms = wait_ms;
	call_begin_with(c, call, key, 'A', &options);
}

static void finish(
	struct call *call, enum hapax_run_outcome outcome, const struct hapax_result *result,
	const char *why)
{
	struct hapax_error err = {0};

	if (hapax_run_finish(call->run, outcome, result, hapax_bytes_from_text(why), &err) !=
	    HAPAX_OK) {
		printf("# %s\n", err.message);
		abort();
	}
}

void call_finish_ok(struct call *call, const char *text)
{
	static struct hapax_result results[64];
	static size_t used;
	struct hapax_result *result = &results[used++ % 64];

	/* Stays valid until the end, as a result must. */
	*result = (struct hapax_result){.kind = HAPAX_RESULT_BYTES};
	result->body = hapax_bytes_from_text(text);
	finish(call, HAPAX_RUN_OK, result, NULL);
}

void call_finish_failed(struct call *call, enum hapax_run_outcome outcome, const char *why)
{
	finish(call, outcome, NULL, why);
}

size_t call_told_count(const struct call *call, enum hapax_step step)
{
	size_t count = 0;

	for (size_t i = 0; i < call->step_count; i++)
		count += call->steps[i] == step;
	return count;
}

bool call_was_told(const struct call *call, enum hapax_step step)
{
	return call_told_count(call, step) > 0;
}

struct hapax_processor_stats processor_case_stats(struct processor_case *c)
{
	struct hapax_processor_stats stats = HAPAX_PROCESSOR_STATS_INIT;

	hapax_processor_stats(c->processor, &stats);
	return stats;
}
