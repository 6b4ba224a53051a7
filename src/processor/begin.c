/* SPDX-License-Identifier: Apache-2.0 */
/*
 * begin.c - checks and copies the requests of callers, and starts their runs.
 *
 * All or none: every step that can fail comes before the first claim is sent.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "processor/processor.h"
#include "processor/steps.h"

enum { KEYS_MAX = 1024 };

/* A caller with another version of the header: fields that it does not have are zero. */
static bool read_request(
	const struct hapax_request *requests, size_t index, struct hapax_request *ret)
{
	size_t size = requests->size;
	const unsigned char *at = (const unsigned char *)requests + index * size;

	*ret = (struct hapax_request)HAPAX_REQUEST_INIT;
	if (size < sizeof(size) || size > sizeof(*ret))
		return false;
	memcpy(ret, at, size);
	return ret->size == size;
}

static bool is_within(struct hapax_bytes bytes, size_t size_max)
{
	return bytes.size <= size_max && (bytes.size == 0 || bytes.data != NULL);
}

static const char *what_is_wrong_with_key(const struct hapax_request_key *key)
{
	if (key->key.size == 0 || !is_within(key->key, HX_KEY_SIZE_MAX))
		return "the key must be 1 to 1,024 bytes long";
	if (!is_within(key->tenant, HX_SCOPE_PART_SIZE_MAX) ||
	    !is_within(key->group, HX_SCOPE_PART_SIZE_MAX))
		return "tenant and group must be at most 128 bytes long";
	return NULL;
}

/* The keys of a request as a list; a single key is copied to *one. */
static const struct hapax_request_key *keys_of(
	const struct hapax_request *request, struct hapax_request_key *one, size_t *ret_count)
{
	assert(request->key_count <= KEYS_MAX);
	if (request->key_count != 0) {
		*ret_count = request->key_count;
		return request->keys;
	}
	*one = (struct hapax_request_key){
		request->tenant, request->group, request->key, request->fingerprint};
	*ret_count = 1;
	return one;
}

static const char *what_is_wrong(const struct hapax_request *request, bool is_disabled)
{
	const struct hapax_request_key *keys;
	struct hapax_request_key one;
	const char *wrong = NULL;
	size_t count;

	if (request->step == NULL)
		return "a function for its steps is required";
	if (request->key_count > KEYS_MAX)
		return "too many keys: limit 1,024";
	if ((request->key_count != 0 && request->keys == NULL) ||
	    !is_within(request->owner, SIZE_MAX))
		return "a size is given without data";
	/* A disabled run asks nothing and needs no key. */
	if (is_disabled)
		return NULL;
	keys = keys_of(request, &one, &count);
	for (size_t i = 0; i < count && wrong == NULL; i++)
		wrong = what_is_wrong_with_key(&keys[i]);
	return wrong;
}

/* Read the request and complete its options; index names it in errors. */
static enum hapax_status check(
	const struct hapax_processor *processor, const struct hapax_request *requests, size_t index,
	struct hapax_request *ret_request, struct hapax_run_options *ret_options,
	struct hapax_error *err)
{
	const char *wrong = "it has an unknown size";
	struct hapax_error inner;

	if (read_request(requests, index, ret_request)) {
		wrong = inner.message;
		if (hx_run_options_complete(processor, ret_request->options, ret_options, &inner) ==
		    HAPAX_OK)
			wrong = what_is_wrong(ret_request, ret_options->is_disabled);
	}
	if (wrong != NULL) {
		(void)hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "request %zu: %s; nothing was started", index,
			wrong);
		return HAPAX_ERR_INVALID;
	}
	if (ret_request->key_count > 1 &&
	    !(hapax_store_capabilities(processor->store) & HAPAX_STORE_MULTI_KEY))
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"request %zu has several keys, but store %s cannot claim them in one "
			"step",
			index, hapax_store_name(processor->store));
	assert(ret_request->size <= sizeof(*ret_request));
	assert(ret_options->size == sizeof(*ret_options));
	return HAPAX_OK;
}

static enum hapax_status prepare(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hapax_run_options *options, struct hapax_run **ret_run,
	struct hapax_error *err)
{
	struct hapax_bytes owner = request->owner;
	const struct hapax_request_key *keys;
	struct hapax_request_key one;
	enum hapax_status status;
	struct hapax_run *run;
	size_t count;

	keys = keys_of(request, &one, &count);
	run = hx_run_take(processor, options->is_disabled ? 0 : count);
	if (run == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory; nothing was started");
	if (owner.size == 0)
		owner = hapax_bytes_from_text(processor->owner);
	if (owner.size > HX_OWNER_SIZE_MAX)
		owner.size = HX_OWNER_SIZE_MAX;
	run->options = *options;
	run->step = request->step;
	/* A run from the pool brings nothing of its last use. */
	assert(run->steps == 0);
	assert(!run->is_telling);
	run->context = request->context;
	status = hx_run_fill(run, keys, owner, err);
	for (size_t i = 0; i < run->key_count && status == HAPAX_OK; i++) {
		if (!hx_key_queues_join(&processor->queues, &processor->timers, &run->keys[i]))
			status = hx_error_set(
				err, HAPAX_ERR_NO_MEMORY, 0,
				"not enough memory; nothing was started");
	}
	assert(status != HAPAX_OK || run->owner.size == owner.size);
	*ret_run = run;
	return status;
}

static void take_back(struct hapax_processor *processor, struct hapax_run *list)
{
	while (list != NULL) {
		struct hapax_run *run = list;

		/* Nothing was asked or reported: the run can go without a step. */
		assert(run->processor == processor);
		assert(!run->is_listed);
		assert(run->steps == 0);
		list = run->list_next;
		for (size_t i = 0; i < run->key_count; i++)
			hx_key_queues_quit(&processor->queues, &processor->timers, &run->keys[i]);
		hx_run_give(run);
	}
}

static void set_off(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms)
{
	assert(run->processor == pump->processor);
	assert(run->state == HX_RUN_CLAIMING);
	assert(run->sequence <= pump->processor->sequence);
	if (run->key_count == 0) {
		run->state = HX_RUN_RUNNING;
		run->attempt = 1;
		run->answer.attempt = 1;
		run->answer.outcome = HAPAX_OUTCOME_ACQUIRED;
		run->answer.flags |= HAPAX_ANSWER_UNPROTECTED;
		pump->processor->stats.running++;
		hx_pump_tell(pump, run, HAPAX_STEP_RUN);
		return;
	}
	run->wait_ends_ms = hx_time_after(now_ms, run->options.wait_ms);
	if (!hx_claim_attach(pump, run, now_ms))
		hx_claim_ask(pump, run, now_ms);
	assert(run->is_listed == (run->state == HX_RUN_CLAIMING));
}

/* Start with the early claim. No run can have waited for this answer: the run holds the key. */
static void take_over(
	struct hx_pump *pump, struct hapax_run *run, const struct hx_early_claim *claim)
{
	struct hx_verdict verdict = {HAPAX_OK, HAPAX_OUTCOME_ACQUIRED, 0};

	assert(run->key_count == 1);
	assert(claim->op->type == HAPAX_OP_CLAIM);
	assert(claim->op->status == HAPAX_OK);
	assert(claim->op->outcome == HAPAX_OUTCOME_ACQUIRED);
	run->state = HX_RUN_CLAIMING;
	run->question = HAPAX_OP_CLAIM;
	run->sent_ms = claim->sent_ms;
	memcpy(run->attempt_id, claim->op->attempt_id, sizeof(run->attempt_id));
	hx_claim_answered(pump, run, verdict, claim->op);
	assert(run->state == HX_RUN_RUNNING);
	assert(run->token == claim->op->token);
	assert(run->keys[0].queue->holder == run);
}

/* Locks: the mutex is held. *ret_list has the runs in the order of the requests. */
static enum hapax_status prepare_all(
	struct hapax_processor *processor, const struct hapax_request *requests, size_t count,
	const struct hx_run_origin *origin, struct hapax_run **ret_list, struct hapax_error *err)
{
	struct hapax_run **last = ret_list;
	enum hapax_status status = HAPAX_OK;

	*ret_list = NULL;
	for (size_t i = 0; i < count && status == HAPAX_OK; i++) {
		struct hapax_run_options options;
		struct hapax_request request;
		struct hapax_run *run = NULL;

		status = check(processor, requests, i, &request, &options, err);
		if (status == HAPAX_OK)
			status = prepare(processor, &request, &options, &run, err);
		if (run == NULL)
			break;
		run->origin = origin;
		*last = run;
		last = &run->list_next;
	}
	if (status == HAPAX_OK) {
		assert((*ret_list == NULL) == (count == 0));
		return HAPAX_OK;
	}
	take_back(processor, *ret_list);
	return status;
}

static enum hapax_status begin(
	struct hapax_processor *processor, const struct hapax_request *requests, size_t count,
	const struct hx_run_origin *origin, const struct hx_early_claim *claim,
	struct hapax_error *err)
{
	enum hapax_status status;
	struct hapax_run *list;
	struct hx_pump pump;
	int64_t now_ms;

	if (processor == NULL || (requests == NULL && count != 0))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a processor and requests are required");
	/* An early claim belongs to one request. */
	assert(claim == NULL || count == 1);
	now_ms = hx_processor_now(processor);
	hx_pump_enter(&pump, processor);
	status = prepare_all(processor, requests, count, origin, &list, err);
	while (status == HAPAX_OK && list != NULL) {
		struct hapax_run *run = list;

		list = run->list_next;
		if (claim != NULL)
			take_over(&pump, run, claim);
		else
			set_off(&pump, run, now_ms);
	}
	hx_pump_leave(&pump);
	return status;
}

enum hapax_status hapax_processor_begin(
	struct hapax_processor *processor, const struct hapax_request *requests, size_t count,
	struct hapax_error *err)
{
	return begin(processor, requests, count, NULL, NULL, err);
}

enum hapax_status hx_processor_begin_one(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hx_run_origin *origin, const struct hx_early_claim *claim,
	struct hapax_error *err)
{
	return begin(processor, request, 1, origin, claim, err);
}

void hapax_run_leave(struct hapax_run *run)
{
	struct hx_pump pump;

	hx_pump_enter(&pump, run->processor);
	hx_claim_leave(&pump, run);
	hx_pump_leave(&pump);
}

void hapax_processor_leave(
	struct hapax_processor *processor, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key, const void *context)
{
	const struct hx_run_key wanted = {
		.tenant = hx_run_name(tenant), .group = hx_run_name(group), .key = key};
	struct hx_run_key *member;
	struct hx_key_queue *queue;
	struct hx_pump pump;

	hx_pump_enter(&pump, processor);
	queue = hx_key_queues_find(&processor->queues, &wanted);
	member = queue == NULL ? NULL : queue->members;
	while (member != NULL && (member->run->context != context || !member->run->has_waited))
		member = member->member_next;
	if (member != NULL) {
		assert(member->queue == queue);
		assert(member->run->processor == processor);
		hx_claim_leave(&pump, member->run);
	}
	hx_pump_leave(&pump);
}
