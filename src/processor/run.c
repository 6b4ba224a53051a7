/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - runs: their memory, the checked copy of their request, and their timer.
 */
#include "processor/run.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "processor/processor.h"
#include "record/cause.h"

enum {
	/* Memory that a run in the pool may keep: there may be thousands. */
	KEPT_BYTES_MAX = 4 * 1024,
	/* Runs in the pool; after a burst, the rest is freed. */
	POOL_MAX = 4096,
	KEYS_MAX = 1024,
	TEXT_BYTES_MAX = KEYS_MAX * (HX_KEY_SIZE_MAX + 2 * HX_SCOPE_PART_SIZE_MAX) +
		HX_OWNER_SIZE_MAX + HX_CAUSE_SIZE_MAX,
};

static const struct hapax_bytes default_name = {"default", 7};

static struct hapax_run *new_run(struct hapax_processor *processor)
{
	struct hapax_run *run = hx_alloc_zero(1, sizeof(*run));

	if (run == NULL)
		return NULL;
	if (hx_timer_heap_reserve(&processor->timers) != HAPAX_OK) {
		hx_free(run);
		return NULL;
	}
	run->processor = processor;
	hx_buf_init(&run->text, TEXT_BYTES_MAX);
	hx_buf_init(&run->error, HX_ERROR_TEXT_SIZE_MAX);
	assert(processor->all == NULL || processor->all->all_back == NULL);
	run->all_next = processor->all;
	if (processor->all != NULL)
		processor->all->all_back = run;
	processor->all = run;
	return run;
}

static bool make_room(struct hapax_run *run, size_t key_count)
{
	struct hx_run_key *keys;

	assert((run->keys == NULL) == (run->key_capacity == 0));
	if (key_count <= run->key_capacity)
		return true;
	keys = hx_realloc(run->keys, key_count * sizeof(*keys));
	if (keys == NULL)
		return false;
	run->keys = keys;
	for (size_t i = run->key_capacity; i < key_count; i++) {
		memset(&keys[i], 0, sizeof(keys[i]));
		hx_buf_init(&keys[i].buf, HX_RECORD_SIZE_MAX);
	}
	run->key_capacity = key_count;
	return true;
}

/* Reset everything except owned memory and list links. */
static void reset(struct hapax_run *run)
{
	size_t kept = offsetof(struct hapax_run, sequence);

	/* Zeros would lose a set timer in the heap. */
	assert(run->timer.place == 0);
	memset((unsigned char *)run + kept, 0, sizeof(*run) - kept);
	run->timer.context = run;
	run->repeat_at_ms = HAPAX_TIME_NEVER;
	run->renew_at_ms = HAPAX_TIME_NEVER;
	run->overdue_at_ms = HAPAX_TIME_NEVER;
	run->lease_ends_ms = HAPAX_TIME_NEVER;
	run->answer = (struct hapax_answer)HAPAX_ANSWER_INIT;
	hx_buf_clear(&run->text);
	hx_buf_clear(&run->error);
}

static void free_run(struct hapax_run *run)
{
	assert((run->keys == NULL) == (run->key_capacity == 0));
	for (size_t i = 0; i < run->key_capacity; i++)
		hx_buf_done(&run->keys[i].buf);
	hx_free(run->keys);
	hx_buf_done(&run->text);
	hx_buf_done(&run->error);
	hx_free(run);
}

static void unlink_run(struct hapax_run *run)
{
	assert((run->all_back == NULL) == (run->processor->all == run));
	assert(run->all_next == NULL || run->all_next->all_back == run);
	if (run->all_back != NULL)
		run->all_back->all_next = run->all_next;
	else
		run->processor->all = run->all_next;
	if (run->all_next != NULL)
		run->all_next->all_back = run->all_back;
}

static void put_back(struct hapax_run *run)
{
	struct hapax_processor *processor = run->processor;

	assert(processor->pool_count <= POOL_MAX);
	assert((processor->pool == NULL) == (processor->pool_count == 0));
	/* A run that is given twice would serve two requests at once. */
	assert(processor->pool != run);
	if (processor->pool_count == POOL_MAX) {
		unlink_run(run);
		hx_timer_heap_unreserve(&processor->timers);
		free_run(run);
		return;
	}
	run->pool_next = processor->pool;
	processor->pool = run;
	processor->pool_count++;
}

static struct hapax_run *run_take(struct hapax_processor *processor, size_t key_count)
{
	struct hapax_run *run = processor->pool;

	if (run != NULL) {
		processor->pool = run->pool_next;
		assert(run->processor == processor);
		assert(processor->pool_count > 0);
		processor->pool_count--;
	} else {
		run = new_run(processor);
	}
	if (run == NULL)
		return NULL;
	reset(run);
	if (!make_room(run, key_count)) {
		put_back(run);
		return NULL;
	}
	assert(key_count <= run->key_capacity);
	run->key_count = key_count;
	run->sequence = ++processor->sequence;
	processor->stats.open++;
	return run;
}

void hx_run_give(struct hapax_run *run)
{
	struct hapax_processor *processor = run->processor;

	assert(!run->is_asking);
	assert(!run->is_listed);
	assert(run->timer.place == 0);
	assert(run->steps == 0);
	assert(processor->stats.open > 0);
	for (size_t i = 0; i < run->key_count; i++) {
		assert(run->keys[i].queue == NULL);
		if (run->keys[i].buf.capacity > KEPT_BYTES_MAX)
			hx_buf_done(&run->keys[i].buf);
	}
	if (run->text.capacity > KEPT_BYTES_MAX)
		hx_buf_done(&run->text);
	processor->stats.open--;
	put_back(run);
}

void hx_runs_free(struct hapax_processor *processor)
{
	while (processor->all != NULL) {
		struct hapax_run *run = processor->all;

		assert(run->processor == processor);
		processor->all = run->all_next;
		free_run(run);
	}
	processor->pool = NULL;
	processor->pool_count = 0;
}

/* Append to the reserved text and return the copy. */
static struct hapax_bytes copy_text(struct hapax_run *run, struct hapax_bytes bytes)
{
	struct hapax_bytes copy = {run->text.data + run->text.size, bytes.size};
	enum hapax_status status = hx_buf_append(&run->text, bytes.data, bytes.size);

	/* (4): the text has room, so it did not move. */
	assert(status == HAPAX_OK);
	assert(bytes.size == 0 ||
	       (const unsigned char *)copy.data + copy.size == run->text.data + run->text.size);
	(void)status;
	return copy;
}

struct hapax_bytes hx_run_name(struct hapax_bytes name)
{
	return name.size == 0 ? default_name : name;
}

static struct hapax_bytes copy_name(struct hapax_run *run, struct hapax_bytes name)
{
	return name.size == 0 ? default_name : copy_text(run, name);
}

static void copy_key(
	struct hapax_run *run, struct hx_run_key *to, const struct hapax_request_key *from,
	size_t index)
{
	assert(index < run->key_count);
	assert(to == &run->keys[index]);
	to->run = run;
	to->tenant = copy_name(run, from->tenant);
	to->group = copy_name(run, from->group);
	to->key = copy_text(run, from->key);
	to->has_fingerprint = from->fingerprint != NULL;
	if (from->fingerprint != NULL)
		memcpy(to->fingerprint, from->fingerprint, sizeof(to->fingerprint));
	to->index = index;
	to->queue = NULL;
	memset(&to->record, 0, sizeof(to->record));
}

static int compare(const struct hx_run_key *a, const struct hx_run_key *b)
{
	int order = hx_bytes_compare(a->tenant, b->tenant);

	if (order == 0)
		order = hx_bytes_compare(a->group, b->group);
	return order != 0 ? order : hx_bytes_compare(a->key, b->key);
}

static void swap(struct hx_run_key *a, struct hx_run_key *b)
{
	struct hx_run_key kept = *a;

	*a = *b;
	*b = kept;
}

static void sift_down(struct hx_run_key *keys, size_t at, size_t count)
{
	assert(at < count);
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= count)
			return;
		if (child + 1 < count && compare(&keys[child], &keys[child + 1]) < 0)
			child++;
		if (compare(&keys[at], &keys[child]) >= 0)
			return;
		swap(&keys[at], &keys[child]);
		at = child;
	}
}

/* Heapsort: qsort() may allocate, and a thousand keys are too many for a quadratic sort. */
static void sort(struct hx_run_key *keys, size_t count)
{
	for (size_t i = count / 2; i > 0; i--)
		sift_down(keys, i - 1, count);
	for (size_t left = count; left > 1; left--) {
		swap(&keys[0], &keys[left - 1]);
		sift_down(keys, 0, left - 1);
	}
}

static enum hapax_status run_fill(
	struct hapax_run *run, const struct hapax_request_key *keys, struct hapax_bytes owner,
	struct hapax_bytes cause, struct hapax_error *err)
{
	size_t size = owner.size + cause.size;
	enum hapax_status status;

	assert(run->text.size == 0);
	assert(owner.size <= HX_OWNER_SIZE_MAX);
	assert(cause.size <= HX_CAUSE_SIZE_MAX);
	for (size_t i = 0; i < run->key_count; i++)
		size += keys[i].tenant.size + keys[i].group.size + keys[i].key.size;
	status = hx_buf_reserve(&run->text, size);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory; nothing was started");
	run->owner = copy_text(run, owner);
	if (cause.size != 0)
		run->cause = copy_text(run, cause);
	for (size_t i = 0; i < run->key_count; i++)
		copy_key(run, &run->keys[i], &keys[i], i);
	/* Default names are not copied: the text may be shorter, but never longer. */
	assert(run->text.size <= size);
	sort(run->keys, run->key_count);
	for (size_t i = 1; i < run->key_count; i++) {
		/* All processes claim several keys in this order. */
		assert(compare(&run->keys[i - 1], &run->keys[i]) <= 0);
		if (compare(&run->keys[i - 1], &run->keys[i]) == 0)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "a request names the same key twice");
	}
	return HAPAX_OK;
}

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
	if (!hx_cause_fits(request->cause))
		return "its cause was not packed by hapax_cause_write()";
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
	run = run_take(processor, options->is_disabled ? 0 : count);
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
	status = run_fill(
		run, keys, owner, options->omits_cause ? hx_bytes(NULL, 0) : request->cause, err);
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

enum hapax_status hx_runs_prepare(
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

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

static int64_t next_while_running(const struct hapax_run *run)
{
	int64_t at_ms = HAPAX_TIME_NEVER;

	assert(run->state == HX_RUN_RUNNING);
	if (run->is_fenced)
		return HAPAX_TIME_NEVER;
	if (!run->is_asking && !run->is_listed)
		at_ms = earlier(at_ms, run->renew_at_ms);
	if (!run->is_overdue)
		at_ms = earlier(at_ms, run->overdue_at_ms);
	if (!run->is_lapsed && !run->is_parked)
		at_ms = earlier(at_ms, run->lease_ends_ms);
	return at_ms;
}

void hx_run_arm(struct hapax_run *run)
{
	struct hx_timer_heap *timers = &run->processor->timers;
	int64_t at_ms = HAPAX_TIME_NEVER;

	assert(run->state <= HX_RUN_ENDED);
	/* do_what_is_due() tells runs from queues by it. */
	assert(run->timer.context == run);
	switch (run->state) {
	case HX_RUN_CLAIMING:
	case HX_RUN_FINISHING:
		if (!run->is_asking && !run->is_listed)
			at_ms = run->repeat_at_ms;
		break;
	case HX_RUN_WAITING: at_ms = run->wait_ends_ms; break;
	case HX_RUN_RUNNING: at_ms = next_while_running(run); break;
	case HX_RUN_ENDED: break;
	}
	if (at_ms == HAPAX_TIME_NEVER)
		hx_timer_clear(timers, &run->timer);
	else
		hx_timer_set(timers, &run->timer, at_ms);
}

const struct hx_run_key *hx_run_first_key(const struct hapax_run *run)
{
	const struct hx_run_key *key = run->keys;

	assert(run->key_count > 0);
	while (key->index != 0)
		key++;
	assert(key < run->keys + run->key_count);
	return key;
}

struct hapax_bytes hapax_run_key(const struct hapax_run *run)
{
	return run->key_count == 0 ? hx_bytes(NULL, 0) : hx_run_first_key(run)->key;
}

uint64_t hapax_run_token(const struct hapax_run *run)
{
	return run->token;
}

uint32_t hapax_run_attempt(const struct hapax_run *run)
{
	return run->attempt;
}
