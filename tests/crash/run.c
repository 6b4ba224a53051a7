/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "crash/workload.h"
#include "support/store_case.h"
#include "support/virtual_clock.h"

/* In unsafe mode: with all states of their operations, and the first. */
enum { LIFE_SUBMITS_MAX = 99 / WORKLOAD_OPS_MAX };
_Static_assert(LIFE_SUBMITS_MAX *WORKLOAD_OPS_MAX < IMAGE_STATES_MAX, "a state for each operation");

/* With faults: nothing of a submit, and what is left of it without any of its operations. */
_Static_assert(1 + (1 << WORKLOAD_OPS_MAX) <= IMAGE_STATES_MAX, "a state for each subset");

enum { UNSAFE_SEGMENT_BYTES = 96 * 1024 };

struct run {
	const struct run_plan *plan;
	struct run_report *report;
	struct workload workload;
	struct judge judge;
	struct captures captures;
	struct sim_disk *disk;
	struct hx_virtual_clock clock;
	struct hapax_store *store;
	struct model *model; /* everything that was acknowledged */
	size_t op_count;     /* of the last submit */
	int64_t op_ms;
	uint64_t print_before; /* of the model, before the submit */
	bool is_loose;         /* this life is one in unsafe mode, */
	size_t loose_count;    /* with so many states that a power cut may leave, */
	unsigned life_submits;
};

static bool run_fail(struct run *run, const char *what, const char *detail)
{
	struct run_report *report = run->report;

	snprintf(report->why, sizeof(report->why), "%s: %.900s", what, detail);
	report->ok = false;
	printf("# %s: seed %" PRIu64 " submit %" PRIu64 " image %" PRIu64 ": %s\n",
	       run->judge.subject->name, run->plan->seed, report->submits, run->judge.images,
	       report->why);
	workload_print(run->workload.ops, run->op_count, run->op_ms);
	return false;
}

static uint64_t below(struct run *run, uint64_t n)
{
	return hx_prng_below(&run->workload.prng, n);
}

static void mix(struct run *run, uint64_t value)
{
	run->report->trace = (run->report->trace ^ value) * UINT64_C(0x100000001b3);
}

static int64_t store_now(struct run *run)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	return hapax_store_stats(run->store, &stats, NULL, NULL, NULL) == HAPAX_OK ? stats.now_ms
										   : INT64_MIN;
}

/* One allowed state: the model. */
static void allow_model(struct run *run)
{
	*run->judge.states[0] = *run->model;
	run->judge.state_count = 1;
	run->judge.is_between = false;
}

/* What a power cut may leave now: in unsafe mode any of the states since the store was opened. */
static void allow_life(struct run *run)
{
	if (!run->is_loose) {
		allow_model(run);
		return;
	}
	run->judge.state_count = run->loose_count;
	run->judge.is_between = false;
}

/* The states that a crash during the last submit may leave; the last is all of it. */
static bool allow_submit(struct run *run)
{
	struct judge *judge = &run->judge;
	const struct hapax_op *ops = run->workload.ops;

	allow_life(run);
	for (size_t end = 1; end <= run->op_count; end++) {
		struct model *state = judge->states[judge->state_count];

		/* A group is one step. */
		if (end < run->op_count &&
		    (ops[end - 1].flags & HAPAX_OP_LINKED || judge->subject->commits_whole))
			continue;
		*state = *run->model;
		if (!model_submit(state, run->op_ms, ops, end))
			return run_fail(run, "an answer is wrong", state->why);
		judge->state_count++;
	}
	return true;
}

/* Crash at each change that was kept. */
static bool judge_captures(struct run *run)
{
	bool ok = true;

	for (size_t i = 0; ok && i < run->captures.count; i++)
		for (unsigned k = 0; ok && k < run->plan->images; k++) {
			struct sim_disk *image = sim_disk_clone(run->captures.disks[i]);

			ok = judge_crash(&run->judge, image, &run->clock);
			sim_disk_free(image);
		}
	captures_drop(&run->captures);
	return ok || run_fail(run, "after a crash", run->judge.why);
}

static bool is_open_failed(struct run *run, bool ok, const char *what)
{
	return ok || run_fail(run, what, run->judge.why);
}

/* The mode of the life that begins now. Faults, and their states, belong to the default one. */
static void begin_life(struct run *run)
{
	run->is_loose = run->plan->is_unsafe && below(run, 4) != 0;
	run->life_submits = 0;
	run->judge.options.unsafe_interval_ms = run->is_loose ? 1000 : 0;
}

/* Open the store that the history goes on with. */
static bool open_store(struct run *run, const char *what)
{
	size_t state = 0;

	begin_life(run);

	sim_disk_observe(run->disk, captures_take, &run->captures);
	if (!is_open_failed(
		    run, judge_open(&run->judge, run->disk, &run->clock, &run->store, &state),
		    what))
		return false;
	if (!run->judge.is_between)
		*run->model = *run->judge.states[state];
	/* In unsafe mode, tokens are lost with what they were given for. */
	if (run->plan->is_unsafe)
		judge_settle_tokens(&run->judge, run->model);
	/* The store may know of tokens that no caller was given. */
	if (run->judge.content->token > run->model->token_max)
		run->model->token_max = run->model->token_high = run->judge.content->token;
	return true;
}

/* What recovery has shown is durable: a power cut leaves that at least. */
static void settle_life(struct run *run)
{
	allow_model(run);
	run->loose_count = 1;
}

static bool close_store(struct run *run)
{
	hapax_store_close(run->store);
	run->store = NULL;
	/* A crash in the middle of a clean close loses nothing. */
	allow_life(run);
	return judge_captures(run);
}

/*
 * The power goes now. What the store does when it is closed afterwards it does to a
 * disk that is not read any more.
 */
static void cut_power(struct run *run)
{
	struct sim_disk *left = sim_disk_clone(run->disk);
	struct hx_virtual_clock before = run->clock;
	struct sim_fates fates;

	sim_disk_observe(run->disk, NULL, NULL);
	hapax_store_close(run->store);
	run->store = NULL;
	sim_disk_free(run->disk);
	run->disk = left;
	judge_draw(&run->judge, &fates);
	sim_disk_crash(run->disk, &fates, &run->judge.prng);
	clock_after_reboot(&run->clock, &before, (int64_t)below(run, 5000));
}

/* The process is killed: the cache stays, ghosts too. */
static void kill_process(struct run *run)
{
	struct sim_disk *left = sim_disk_clone(run->disk);

	sim_disk_observe(run->disk, NULL, NULL);
	hapax_store_close(run->store);
	run->store = NULL;
	sim_disk_free(run->disk);
	run->disk = left;
}

/* End the life in one of three ways; *ret_was_killed: by the process's death alone. */
static bool end_life(struct run *run, bool *ret_was_killed)
{
	uint64_t way = below(run, 3);

	*ret_was_killed = way == 1;
	switch (way) {
	case 0:
		if (!close_store(run))
			return false;
		allow_model(run);
		break;
	case 1:
		kill_process(run);
		allow_life(run);
		break;
	default:
		cut_power(run);
		allow_life(run);
		break;
	}
	return true;
}

static bool restart(struct run *run)
{
	bool was_loose = run->is_loose;
	bool was_killed;

	run->report->restarts++;
	allow_life(run);
	if (!end_life(run, &was_killed) || !open_store(run, "after a restart"))
		return false;
	/*
	 * Opening changed the disk as well: crash in each of its steps. What a process in unsafe
	 * mode left on its way is carried over by then, or is not.
	 */
	if (!was_killed || !was_loose)
		allow_model(run);
	if (!judge_captures(run))
		return false;
	settle_life(run);
	return true;
}

/* The store as it is open: passes have moved what it holds from file to file. */
static bool judge_content(struct run *run)
{
	struct content *content = run->judge.content;

	*run->judge.scratch = *run->model;
	if (!content_read(content, run->store) || !content_is(content, run->judge.scratch))
		return run_fail(run, "after a sweep", content->why);
	return true;
}

static bool sweep(struct run *run)
{
	struct hapax_error err = {0};
	int64_t now_ms = store_now(run);
	bool is_done = false;

	run->op_count = 0;
	while (!is_done) {
		struct hapax_sweep piece = HAPAX_SWEEP_INIT;

		if (hapax_store_sweep(run->store, &piece, &err) != HAPAX_OK)
			return run_fail(run, "sweep", err.message);
		is_done = piece.done;
	}
	*run->judge.states[0] = *run->model;
	(void)model_sweep(run->model, now_ms);
	*run->judge.states[1] = *run->model;
	run->judge.state_count = 2;
	run->judge.is_between = true;
	return judge_captures(run) && judge_content(run);
}

/* Tells states of the model apart. */
static uint64_t print_of(const struct model *model)
{
	const unsigned char *bytes = (const unsigned char *)model->keys;
	uint64_t print = model->count;

	for (size_t i = 0; i < model->count * sizeof(model->keys[0]); i++)
		print = (print ^ bytes[i]) * UINT64_C(0x100000001b3);
	return print;
}

static void submit(struct run *run)
{
	run->op_ms = store_now(run);
	run->print_before = print_of(run->model);
	run->op_count = workload_fill(&run->workload, run->model, run->op_ms);
	(void)hapax_store_run(run->store, run->workload.ops, run->op_count, NULL);
	workload_restore(&run->workload, run->op_count);
	run->report->submits++;
	for (size_t i = 0; i < run->op_count; i++) {
		mix(run, (uint64_t)run->workload.ops[i].status);
		mix(run, run->workload.ops[i].outcome);
		mix(run, run->workload.ops[i].token);
	}
}

/* If something was changed, its time must not repeat. To repeat what is done changes nothing. */
static void note_commit(struct run *run)
{
	bool has_changed = print_of(run->model) != run->print_before;

	for (size_t i = 0; i < run->op_count; i++) {
		const struct hapax_op *op = &run->workload.ops[i];

		if (has_changed && op->status == HAPAX_OK &&
		    (op->outcome == HAPAX_OUTCOME_ACQUIRED || op->outcome == HAPAX_OUTCOME_APPLIED))
			run->judge.committed_ms = run->op_ms;
		if (op->outcome == HAPAX_OUTCOME_ACQUIRED && op->token > run->judge.token)
			run->judge.token = op->token;
	}
	/* Around unsafe mode, marks whose token no caller was given may be lost. */
	if (!run->plan->is_unsafe)
		run->judge.token = run->model->token_max;
}

static bool submit_and_judge(struct run *run)
{
	submit(run);
	if (!allow_submit(run) || !judge_captures(run))
		return false;
	*run->model = *run->judge.states[run->judge.state_count - 1];
	run->loose_count = run->judge.state_count;
	run->life_submits++;
	note_commit(run);
	/* Now it is acknowledged, and nothing is on its way but what follows. */
	return true;
}

/* ------------------------------------------------------------------ faults */

/* One past the last operation of the step that begins at first: a group, or one on its own. */
static size_t step_end(const struct run *run, size_t first)
{
	while (first + 1 < run->op_count && (run->workload.ops[first].flags & HAPAX_OP_LINKED))
		first++;
	return first + 1;
}

static bool is_same_key(const struct hapax_op *a, const struct hapax_op *b)
{
	return hx_bytes_equal(a->tenant, b->tenant) && hx_bytes_equal(a->group, b->group) &&
		hx_bytes_equal(a->key, b->key);
}

/* One past the last of what model_assume() takes at once. */
static size_t assumed_end(const struct run *run, size_t first)
{
	return run->workload.ops[first].flags & HAPAX_OP_ALL_OR_NOTHING ? step_end(run, first)
									: first + 1;
}

/* Has an operation from first on, whose outcome is unknown, given the key another token? */
static bool is_taken_later(
	const struct run *run, const bool *takes, size_t first, const struct hapax_op *op)
{
	for (size_t i = first; i < run->op_count; i++)
		if (takes[i] && is_same_key(&run->workload.ops[i], op))
			return true;
	return false;
}

/*
 * The token that operations with an unknown outcome were given: what a record of theirs
 * shows. Those whose records are gone, or have another by now, had the next one.
 */
static uint64_t token_of_unknown(
	const struct run *run, const bool *takes, uint64_t token_max, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		const struct hapax_op *op = &run->workload.ops[i];
		const struct hapax_record *record = content_find(run->judge.content, op);

		if (record && record->token > token_max && !is_taken_later(run, takes, end, op))
			return record->token;
	}
	return token_max + 1;
}

/*
 * Every unknown outcome happened, but for the operations of a mask. takes: who was given a
 * token; if it is not known, to be found.
 */
static bool assume_all(
	struct run *run, struct model *state, unsigned without, bool *takes, bool is_known)
{
	size_t end;

	*state = *run->model;
	for (size_t i = 0; i < run->op_count; i = end) {
		const struct hapax_op *op = &run->workload.ops[i];
		uint64_t before = state->token_max;
		uint64_t token = before + 1;

		end = assumed_end(run, i);
		if (op->status != HAPAX_ERR_UNCERTAIN || (without >> i & 1) != 0)
			continue;
		if (is_known)
			token = token_of_unknown(run, takes, before, i, end);
		if (!model_assume(state, run->op_ms, op, end - i, token))
			return run_fail(run, "the model is at a loss", state->why);
		for (size_t k = i; k < end && !is_known; k++)
			takes[k] = state->token_max > before;
	}
	return true;
}

/* A mask of the steps for which there may have been no room: all that do not end a claim. */
static unsigned refusable(const struct run *run)
{
	unsigned mask = 0;
	size_t end;

	for (size_t i = 0; i < run->op_count; i = end) {
		const struct hapax_op *op = &run->workload.ops[i];
		bool ends_claim = op->type >= HAPAX_OP_RENEW && op->type <= HAPAX_OP_PARK;

		end = assumed_end(run, i);
		if (op->status == HAPAX_ERR_UNCERTAIN && op->type != HAPAX_OP_LOOKUP &&
		    (!ends_claim || end - i > 1))
			mask |= 1u << i;
	}
	return mask;
}

/*
 * What a fault may leave: what was answered, and all of the unknown outcomes or none of them,
 * for that was one frame. But what was refused for want of room is not known either.
 */
static bool allow_after_fault(struct run *run)
{
	struct judge *judge = &run->judge;
	unsigned mask = refusable(run);
	unsigned without = 0;

	judge->is_between = false;
	judge->state_count = 0;
	*judge->states[judge->state_count++] = *run->model;
	do {
		struct model *state = judge->states[judge->state_count++];
		bool takes[WORKLOAD_OPS_MAX] = {false};

		if (!assume_all(run, state, without, takes, false) ||
		    !assume_all(run, state, without, takes, true))
			return false;
		/* The next subset of the mask. */
		without = (without - mask) & mask;
	} while (without != 0);
	return true;
}

static bool is_answered(const struct hapax_op *op)
{
	return op->status == HAPAX_OK || op->status == HAPAX_ERR_FENCED;
}

/*
 * The answers to one step. They are judged by what was answered before them alone: what is
 * UNCERTAIN may not have happened, and no answer may rest upon it (I2b, I13).
 */
static bool take_step(struct run *run, size_t first, size_t end)
{
	const struct hapax_op *ops = run->workload.ops;
	bool is_together = ops[first].flags & HAPAX_OP_ALL_OR_NOTHING;
	size_t answered = 0, uncertain = 0;

	for (size_t i = first; i < end; i++) {
		answered += is_answered(&ops[i]);
		uncertain += ops[i].status == HAPAX_ERR_UNCERTAIN;
		if (!is_together && is_answered(&ops[i]) &&
		    !model_submit(run->model, run->op_ms, &ops[i], 1))
			return run_fail(run, "an answer is wrong", run->model->why);
	}
	if (uncertain != 0 && uncertain != end - first)
		return run_fail(run, "I13", "a part of a group has an answer");
	/* A disk that was full, and the like, says nothing about the others. */
	if (is_together && answered == end - first &&
	    !model_submit(run->model, run->op_ms, &ops[first], end - first))
		return run_fail(run, "an answer is wrong", run->model->why);
	return true;
}

/* The answers of a submit in which a fault may have struck, step by step. */
static bool take_answers(struct run *run, bool *ret_uncertain)
{
	size_t end;

	*ret_uncertain = false;
	for (size_t i = 0; i < run->op_count; i = end) {
		end = step_end(run, i);
		if (!take_step(run, i, end))
			return false;
		*ret_uncertain |= run->workload.ops[i].status == HAPAX_ERR_UNCERTAIN;
	}
	note_commit(run);
	return true;
}

/* I11: after the first failure nothing that changes is answered OK. */
static bool probe_latch(struct run *run)
{
	struct hapax_op op = case_op(&(struct store_case){.attempts = 7}, HAPAX_OP_CHECK, "probe");

	(void)hapax_store_run(run->store, &op, 1, NULL);
	if (op.status == HAPAX_OK && op.outcome == HAPAX_OUTCOME_ACQUIRED)
		return run_fail(run, "I11", "a mark was taken after a failure");
	if (op.status == HAPAX_ERR_UNCERTAIN)
		return run_fail(run, "I11", "UNCERTAIN again after a failure, not FAILED");
	run->report->latched++;
	return true;
}

/*
 * Look at what recovery made of it, once without power cut, where the cache may lie,
 * then again after one: what was seen must still be there.
 */
static bool reopen_after_fault(struct run *run)
{
	struct judge *judge = &run->judge;
	struct hapax_error err = {0};
	struct sim_disk *image;
	size_t state;
	bool ok;

	if (below(run, 2))
		kill_process(run);
	else
		cut_power(run);
	run->judge.options.clock = &run->clock.clock;
	if (judge->subject->open(
		    sim_disk_io(run->disk), IMAGE_PATH, &judge->options, &run->store, &err) !=
	    HAPAX_OK)
		return run_fail(run, "does not open after a fault", err.message);
	/* Tokens of unknown outcomes are read from what is there. */
	if (!content_read(judge->content, run->store))
		return run_fail(run, "reading after a fault", judge->content->why);
	if (!allow_after_fault(run))
		return false;
	hapax_store_close(run->store);
	run->store = NULL;
	ok = judge_open(judge, run->disk, &run->clock, &run->store, &state);
	if (!ok)
		return run_fail(run, "after a fault", judge->why);
	*run->model = *judge->states[state];
	judge_settle_tokens(judge, run->model);
	allow_model(run);
	image = sim_disk_clone(run->disk);
	ok = judge_crash(judge, image, &run->clock);
	sim_disk_free(image);
	sim_disk_observe(run->disk, captures_take, &run->captures);
	return ok || run_fail(run, "a power cut after a fault", judge->why);
}

static void arm(struct run *run)
{
	static const int errors[] = {EIO, EIO, ENOSPC, EROFS, SIM_SHORT, SIM_SHORT};
	static const unsigned calls[] = {SIM_ANY,       SIM_CHANGING,  SIM_PWRITE,
					 SIM_FDATASYNC, SIM_FSYNC_DIR, SIM_PWRITE | SIM_FDATASYNC};
	unsigned mask = calls[below(run, sizeof(calls) / sizeof(calls[0]))];
	int error = errors[below(run, sizeof(errors) / sizeof(errors[0]))];

	if (error == SIM_SHORT)
		mask = SIM_PWRITE | SIM_PREAD;
	sim_disk_fail_at(run->disk, mask, 1 + below(run, 8), below(run, 2), error);
}

/* A sweep that changes nothing that can be seen: it may fail and leave no question. */
static void sweep_unseen(struct run *run)
{
	struct hapax_sweep piece = HAPAX_SWEEP_INIT;

	*run->judge.scratch = *run->model;
	if (model_sweep(run->judge.scratch, run->op_ms) == 0)
		(void)hapax_store_sweep(run->store, &piece, NULL);
}

/* A few submits and a sweep with a call that fails somewhere in between. */
static bool fault(struct run *run)
{
	bool is_uncertain = false;
	bool ok = true;

	arm(run);
	sim_disk_observe(run->disk, NULL, NULL);
	for (int i = 0; ok && i < 4 && !is_uncertain && sim_disk_failures(run->disk) == 0; i++) {
		submit(run);
		ok = take_answers(run, &is_uncertain);
		if (ok && i == 2 && !is_uncertain)
			sweep_unseen(run);
	}
	run->report->faults += sim_disk_failures(run->disk);
	if (ok && is_uncertain)
		ok = probe_latch(run);
	sim_disk_fail_at(run->disk, SIM_ANY, 0, false, 0);
	if (ok && is_uncertain)
		ok = probe_latch(run);
	return ok && reopen_after_fault(run);
}

/* ------------------------------------------------------------------ the history */

static bool begin(struct run *run)
{
	const struct run_plan *plan = run->plan;
	uint64_t seed = plan->seed * UINT64_C(0x9e3779b97f4a7c15);

	workload_init(&run->workload, seed + 1);
	run->judge.draws_mode = plan->is_unsafe;
	/* Room for frames of several lives in one segment, in every other history. */
	if (plan->is_unsafe && plan->seed % 2 == 0)
		run->judge.options.segment_bytes = UNSAFE_SEGMENT_BYTES;
	hx_prng_seed(&run->captures.prng, seed + 3);
	hx_random_seed_for_tests(seed + 4);
	run->disk = sim_disk_new(seed + 5);
	hx_virtual_clock_init(&run->clock, CASE_EPOCH_MS);
	model_init(run->model);
	allow_model(run);
	/* Whatever is cut short here, nothing was promised yet: it opens, empty. */
	if (!open_store(run, "a new store"))
		return false;
	allow_model(run);
	if (!judge_captures(run))
		return false;
	settle_life(run);
	return true;
}

/* A sweep that changes nothing that can be seen tidies the files all the same. */
static bool tidy(struct run *run)
{
	struct hapax_error err = {0};
	bool is_done = false;

	run->op_count = 0;
	*run->judge.scratch = *run->model;
	if (model_sweep(run->judge.scratch, store_now(run)) != 0)
		return true;
	while (!is_done) {
		struct hapax_sweep piece = HAPAX_SWEEP_INIT;

		if (hapax_store_sweep(run->store, &piece, &err) != HAPAX_OK)
			return run_fail(run, "sweep", err.message);
		is_done = piece.done;
	}
	allow_life(run);
	return judge_captures(run) && judge_content(run);
}

static bool step_unsafe(struct run *run)
{
	if (run->life_submits >= LIFE_SUBMITS_MAX)
		return restart(run);
	switch (below(run, 8)) {
	case 0: return restart(run);
	case 1: return tidy(run);
	default: return submit_and_judge(run);
	}
}

static bool step(struct run *run)
{
	hx_virtual_clock_advance(&run->clock, workload_step_ms(&run->workload));
	/* Where nothing is crashed, faults are what is looked for. */
	if (run->plan->with_faults && below(run, run->plan->images == 0 ? 2 : 8) == 0)
		return fault(run);
	if (run->plan->is_unsafe)
		return step_unsafe(run);
	switch (below(run, 40)) {
	case 0:
	case 1: return restart(run);
	case 2:
	case 3:
	case 4:
	case 5: return sweep(run);
	default: return submit_and_judge(run);
	}
}

bool crash_run(
	const struct crash_subject *subject, const struct run_plan *plan,
	struct run_report *ret_report)
{
	struct run *run = calloc(1, sizeof(*run));
	bool ok;

	*ret_report = (struct run_report){.ok = true, .trace = UINT64_C(0xcbf29ce484222325)};
	if (!run)
		abort();
	run->plan = plan;
	run->report = ret_report;
	run->model = calloc(1, sizeof(*run->model));
	if (!run->model || !judge_init(&run->judge, subject, plan->seed))
		abort();
	ok = begin(run);
	for (uint64_t i = 0; ok && i < plan->submits; i++)
		ok = step(run);
	if (ok)
		ok = close_store(run);
	hapax_store_close(run->store);
	sim_disk_free(run->disk);
	captures_drop(&run->captures);
	ret_report->images = run->judge.images;
	ret_report->recoveries_cut = run->judge.recoveries_cut;
	hx_random_seed_for_tests(0);
	judge_done(&run->judge);
	free(run->model);
	free(run);
	return ok;
}
