/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_memory_failure.c - the n-th allocation fails, for every n, once and for
 * ever: no crash, no leak, every call ends with a definite status, and what ended
 * with HAPAX_ERR_NO_MEMORY was not done. The model knows what the rest must have
 * left behind.
 */
#include "conformance/cases.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "conformance/model.h"
#include "support/scale.h"

enum { BATCH = 24 };

/* One run of the scenario while memory fails. */
struct trial {
	struct store_case *c;
	struct model *model;
	struct hapax_store *store;
	struct hapax_op ops[BATCH];
	struct hapax_record records[BATCH];
	struct hapax_buf *bufs[BATCH];
	char keys[BATCH][40];
	uint64_t tokens[BATCH];
	uint64_t failures; /* calls that said NO_MEMORY */
	const char *why;   /* something else went wrong */
};

static bool is_no_memory(struct trial *trial, enum hapax_status status)
{
	trial->failures += status == HAPAX_ERR_NO_MEMORY;
	return status == HAPAX_ERR_NO_MEMORY;
}

/*
 * Submit a batch and give the model what was done. An operation that found no
 * memory is left out, an all-or-nothing group that holds one as a whole.
 */
static void submit(struct trial *trial, size_t count)
{
	struct hapax_op done[BATCH];
	size_t done_count = 0;

	hapax_store_run(trial->store, trial->ops, count, NULL);
	for (size_t i = 0; i < count;) {
		size_t end = i + 1;
		bool failed = false;

		while (end < count && (trial->ops[end - 1].flags & HAPAX_OP_LINKED))
			end++;
		for (size_t k = i; k < end; k++)
			failed = is_no_memory(trial, trial->ops[k].status) || failed;
		bool together = trial->ops[i].flags & HAPAX_OP_ALL_OR_NOTHING;
		for (size_t k = i; k < end; k++) {
			bool left_out =
				together ? failed : trial->ops[k].status == HAPAX_ERR_NO_MEMORY;

			if (left_out && together && trial->ops[k].status == HAPAX_OK &&
			    (trial->ops[k].outcome == HAPAX_OUTCOME_ACQUIRED ||
			     trial->ops[k].outcome == HAPAX_OUTCOME_APPLIED))
				trial->why = "a group was half applied";
			if (!left_out) {
				done[done_count] = trial->ops[k];
				done[done_count++].flags &=
					together ? ~0u : ~(unsigned)HAPAX_OP_LINKED;
			}
		}
		i = end;
	}
	if (!model_submit(
		    trial->model, CASE_EPOCH_MS + trial->c->clock.boot_ms, done, done_count) &&
	    !trial->why)
		trial->why = trial->model->why;
}

static struct hapax_op *add_op(
	struct trial *trial, size_t at, enum hapax_op_type type, const char *format,
	unsigned number)
{
	struct hapax_op *op = &trial->ops[at];

	snprintf(trial->keys[at], sizeof(trial->keys[at]), "%s %u", format, number);
	*op = case_op(trial->c, type, trial->keys[at]);
	op->record = &trial->records[at];
	op->buf = trial->bufs[at];
	return op;
}

/* Claims in several scopes, results of several sizes, releases, parks, lookups. */
static void run_life(struct trial *trial)
{
	static unsigned char body[MODEL_BODY_MAX];
	static const char *const groups[] = {"", "orders", "billing", "a third one"};
	struct hapax_result results[BATCH];

	for (unsigned i = 0; i < BATCH; i++) {
		struct hapax_op *op = add_op(trial, i, HAPAX_OP_CLAIM, "life", i);

		op->group = hapax_bytes_from_text(groups[i % 4]);
		op->owner = hapax_bytes_from_text("test");
		op->fingerprint = case_fingerprint(i % 2 ? 'A' : 0);
	}
	submit(trial, BATCH);
	for (unsigned i = 0; i < BATCH; i++)
		trial->tokens[i] = trial->ops[i].status == HAPAX_OK ? trial->ops[i].token : 1;
	for (unsigned i = 0; i < BATCH; i++) {
		static const enum hapax_op_type types[] = {
			HAPAX_OP_COMPLETE, HAPAX_OP_RELEASE, HAPAX_OP_PARK, HAPAX_OP_COMPLETE,
			HAPAX_OP_RENEW};
		struct hapax_op *op = add_op(trial, i, types[i % 5], "life", i);

		op->group = hapax_bytes_from_text(groups[i % 4]);
		op->token = trial->tokens[i];
		op->error = hapax_bytes_from_text("why");
		results[i] =
			(struct hapax_result){.kind = HAPAX_RESULT_BYTES, .body = {body, i * 20}};
		op->result = &results[i];
	}
	submit(trial, BATCH);
}

/* Groups, set, forget, expire. */
static void run_groups(struct trial *trial, unsigned round)
{
	struct hapax_result value = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("value")};
	bool has_groups = hapax_store_capabilities(trial->store) & HAPAX_STORE_MULTI_KEY;
	size_t count = 0;

	for (unsigned i = 0; i < 4 && has_groups; i++) {
		struct hapax_op *op =
			add_op(trial, count++, HAPAX_OP_CLAIM, "group", round * 4 + i);

		op->attempt_id = case_attempt_id(10000 + round);
		op->flags = (i < 3 ? (unsigned)HAPAX_OP_LINKED : 0) |
			(i == 0 ? (unsigned)HAPAX_OP_ALL_OR_NOTHING : 0);
	}
	for (unsigned i = 0; i < 4; i++)
		add_op(trial, count++, HAPAX_OP_SET, "set", i)->result = &value;
	add_op(trial, count++, HAPAX_OP_EXPIRE, "set", 1);
	add_op(trial, count++, HAPAX_OP_FORGET, "set", 2);
	add_op(trial, count++, HAPAX_OP_LOOKUP, "set", 3);
	add_op(trial, count++, HAPAX_OP_CHECK, "check", round);
	submit(trial, count);
}

static int no_more(const struct hapax_record *record, void *context)
{
	(void)record;
	(void)context;
	return 0;
}

static int no_rows(const struct hapax_counters *counters, void *context)
{
	(void)counters;
	(void)context;
	return 0;
}

/* Enough keys that whatever grows has to grow. */
static void run_growth(struct trial *trial)
{
	enum { KEYS_MAX = 6000 };
	static struct hapax_op ops[KEYS_MAX];
	static char keys[KEYS_MAX][16];
	/* What grows with the number of keys in a store with files is the file. */
	unsigned count = trial->c->has_dir ? 100 : KEYS_MAX;

	for (unsigned i = 0; i < count; i++) {
		snprintf(keys[i], sizeof(keys[i]), "many %u", i);
		ops[i] = case_op(trial->c, HAPAX_OP_CHECK, keys[i]);
		ops[i].group = hapax_bytes_from_text("many");
	}
	hapax_store_run(trial->store, ops, count, NULL);
	for (unsigned i = 0; i < count; i++) {
		enum hapax_status status = ops[i].status;

		if (!is_no_memory(trial, status) && status != HAPAX_OK)
			trial->why = "a check failed with another status";
		/* Asked again when there is memory, the answer shows whether it was done. */
		ops[i].context = status == HAPAX_OK ? trial : NULL;
	}
	hx_alloc_fail_at(0, 0);
	hapax_store_run(trial->store, ops, count, NULL);
	for (unsigned i = 0; i < count; i++)
		if (ops[i].outcome !=
		    (ops[i].context ? HAPAX_OUTCOME_REPLAY : HAPAX_OUTCOME_ACQUIRED))
			trial->why = "a check that said NO_MEMORY was done, or the reverse";
}

/* Whatever is not an operation may also say NO_MEMORY, and nothing else. */
static void run_walks(struct trial *trial)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_cursor cursor = {0};
	struct hapax_error err = {0};
	enum hapax_status status = HAPAX_OK;

	status = hapax_store_stats(trial->store, &stats, no_rows, NULL, &err);
	if (!is_no_memory(trial, status) && status != HAPAX_OK)
		trial->why = "stats failed with another status";
	status = hapax_store_sweep(trial->store, &sweep, &err);
	if (!is_no_memory(trial, status) && status != HAPAX_OK)
		trial->why = "sweep failed with another status";
	for (status = HAPAX_OK; status == HAPAX_OK && !cursor.done;)
		status = hapax_store_scan(trial->store, NULL, &cursor, no_more, NULL, &err);
	if (!is_no_memory(trial, status) && status != HAPAX_OK)
		trial->why = "scan failed with another status";
}

static int compare_with_model(const struct hapax_record *record, void *context)
{
	struct trial *trial = context;

	if (case_bytes_are(record->group, "many", 4))
		return 0;
	if (!model_scan_record(trial->model, CASE_EPOCH_MS + trial->c->clock.boot_ms, record) &&
	    !trial->why)
		trial->why = trial->model->why;
	return 0;
}

/* With memory again: is the content what the model says? */
static void compare_content(struct trial *trial)
{
	struct hapax_cursor cursor = {0};
	struct hapax_error err = {0};
	unsigned tries = 10000;

	model_scan_begin(trial->model);
	while (!cursor.done)
		if (hapax_store_scan(
			    trial->store, NULL, &cursor, compare_with_model, trial, &err) !=
		    HAPAX_OK) {
			/* A server's connection that was closed for lack of memory is reopened. */
			if (err.status == HAPAX_ERR_UNAVAILABLE && tries-- > 0 &&
			    trial->why == NULL) {
				cursor = (struct hapax_cursor){0};
				model_scan_begin(trial->model);
				hx_thread_yield();
				continue;
			}
			trial->why = "scan failed without need";
			return;
		}
	if (!model_scan_end(trial->model, CASE_EPOCH_MS + trial->c->clock.boot_ms) && !trial->why)
		trial->why = trial->model->why;
}

/* One trial: open, live, close, with the nth allocation failing. True: none failed. */
static bool run_trial(struct trial *trial, uint64_t nth, bool forever)
{
	struct hapax_error err = {0};
	uint64_t count;

	model_init(trial->model);
	trial->failures = 0;
	trial->why = NULL;
	trial->store = NULL;
	count = hx_alloc_count();
	hx_alloc_fail_at(nth, forever);
	enum hapax_status status =
		hapax_store_open(trial->c->url, &trial->c->options, &trial->store, &err);
	if (status != HAPAX_OK) {
		hx_alloc_fail_at(0, 0);
		if (!is_no_memory(trial, status) || trial->store || err.message[0] == '\0')
			trial->why = "open failed with another status, or without a message";
		return false;
	}
	trial->model->tokens_per_key =
		!(hapax_store_capabilities(trial->store) & HAPAX_STORE_TOKEN_GLOBAL);
	run_life(trial);
	run_groups(trial, 0);
	run_walks(trial);
	run_groups(trial, 1);
	run_growth(trial);
	bool reached = hx_alloc_count() - count >= nth;
	hx_alloc_fail_at(0, 0);
	compare_content(trial);
	hapax_store_close(trial->store);
	return !reached;
}

/* One trial in a new place, and what it leaves in memory afterwards. */
static bool run_counted(struct trial *trial, const char *kind, uint64_t nth, bool forever)
{
	store_case_done(trial->c);
	store_case_init(trial->c, kind);
	int64_t live = hx_alloc_live();
	for (size_t i = 0; i < BATCH; i++) {
		trial->bufs[i] = hapax_buf_new(65536);
		assert_non_null(trial->bufs[i]);
	}
	bool complete = run_trial(trial, nth, forever);
	for (size_t i = 0; i < BATCH; i++)
		hapax_buf_free(trial->bufs[i]);
	if (hx_alloc_live() != live && !trial->why)
		trial->why = "memory was lost";
	if (trial->why)
		printf("# allocation %llu failing %s: %s\n", (unsigned long long)nth,
		       forever ? "forever" : "once", trial->why);
	return complete;
}

static void run_all_trials(struct store_case *c, bool forever)
{
	static struct model model;
	struct trial trial = {.c = c, .model = &model};
	const char *kind = c->kind;
	/* Files are slow: outside of a proof, every seventh allocation after the first. */
	uint64_t step = c->has_dir && !scale_is_proof() ? 7 : 1;

	/* A store of many servers has buffers for each of them. */
	if (strcmp(kind, "redis+cluster:") == 0)
		step *= 25;
	uint64_t trials = 0;
	uint64_t failures = 0;
	double begun = scale_seconds();
	bool complete = false;

	for (uint64_t nth = 1; !complete && !trial.why; nth += nth < 40 ? 1 : step) {
		complete = run_counted(&trial, kind, nth, forever);
		failures += trial.failures;
		trials++;
	}
	char what[64];
	snprintf(
		what, sizeof(what), "allocations failing %s, %s", forever ? "forever" : "once",
		kind);
	scale_report(what, trials, scale_seconds() - begun, trial.why == NULL);
	store_case_open(c);
	assert_null(trial.why);
	assert_true(failures > 0);
}

static void allocation_fails_once(void **state)
{
	run_all_trials(*state, false);
}

static void allocation_fails_for_ever(void **state)
{
	run_all_trials(*state, true);
}

const struct conformance_case memory_failure_cases[] = {
	{"I13: an allocation fails once", allocation_fails_once, NEEDS_OWN_MEMORY},
	{"I13: all allocations fail from one on", allocation_fails_for_ever, NEEDS_OWN_MEMORY},
	{NULL, NULL, NEEDS_NOTHING},
};
