/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_claim.c - claim a key for a run.
 */
#include "cli/run/run_claim.h"

#include <string.h>

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/stream.h"
#include "cli/run/run_signal.h"

enum {
	/*
	 * Runs in other processes cannot wake us, so we poll: soon at first, because a short
	 * command is soon done, then less and less often.
	 */
	WAIT_MS_MIN = 10,
	WAIT_MS_MAX = 250,
	/* While another process on this host decides: usually a few milliseconds. */
	BUSY_MS = 10,
	LOOKS_MAX = 200,
};

static bool is_claimed(const struct hx_cmd_run_ledger *ledger)
{
	return ledger->seen.outcome == HAPAX_OUTCOME_FOUND &&
		ledger->record.state == HAPAX_STATE_CLAIMED;
}

static bool is_mismatch(const struct hx_cmd_run_ledger *ledger)
{
	const struct hapax_record *record = &ledger->record;

	return ledger->plan->has_fingerprint && record->fingerprint_size > 0 &&
		memcmp(ledger->plan->fingerprint, record->fingerprint, record->fingerprint_size) !=
		0;
}

/* Set the answer that a claim would give if it knew which runs are alive here. */
static void answer_held(struct hx_cmd_run_claim *claim)
{
	struct hx_cmd_run_ledger *ledger = claim->ledger;

	claim->is_held_here = true;
	if (is_claimed(ledger) && is_mismatch(ledger)) {
		ledger->seen.outcome = HAPAX_OUTCOME_MISMATCH;
		return;
	}
	if (ledger->seen.outcome != HAPAX_OUTCOME_FOUND)
		ledger->record = (struct hapax_record){.token = 0};
	/* An earlier claim, whose record is gone or failed, has nothing more to report. */
	if (!is_claimed(ledger)) {
		ledger->seen.lease_left_ms = 0;
		ledger->record.owner = HX_BYTES_LIT("a process on this host");
	}
	ledger->seen.outcome = HAPAX_OUTCOME_IN_PROGRESS;
}

/* The holder died on this host. OK also if another process was faster. */
static enum hapax_status give_back(struct hx_cmd_run_claim *claim)
{
	enum hapax_status status = hx_cmd_run_ledger_give_back(
		claim->ledger, "its process died before it could tell how it ended", &claim->err);

	return status == HAPAX_ERR_FENCED ? HAPAX_OK : status;
}

/* May a claim acquire this record? Other records only give an answer, whatever the lock. */
static bool may_acquire(const struct hx_cmd_run_ledger *ledger)
{
	return ledger->seen.outcome != HAPAX_OUTCOME_FOUND ||
		(ledger->record.state != HAPAX_STATE_DONE &&
		 ledger->record.state != HAPAX_STATE_PARKED);
}

/* The result of one look. */
enum step { STEP_AGAIN, STEP_ANSWERED, STEP_CLAIM };

/*
 * Another process on this host has the lock. If it runs, its note is there. If it only decides, it
 * will have claimed or left in a moment.
 */
static enum step meet_busy(struct hx_cmd_run_claim *claim)
{
	struct hx_cmd_run_ledger *ledger = claim->ledger;
	bool is_alive = is_claimed(ledger) && ledger->seen.lease_left_ms > 0;

	/* Seen twice, because a process that probes a free lock holds it for an instant. */
	if (!is_alive && (claim->lock->claim_count == 0 || claim->held_looks++ == 0))
		return STEP_AGAIN;
	answer_held(claim);
	return STEP_ANSWERED;
}

/*
 * Look with the lock held, unless another process has it: a record read without it may be old.
 * Returns the next step.
 */
static enum hapax_status look(struct hx_cmd_run_claim *claim, enum step *ret)
{
	enum hx_cmd_run_lock_taken taken = hx_cmd_run_lock_take(claim->lock);
	struct hx_cmd_run_ledger *ledger = claim->ledger;
	enum hapax_status status = hx_cmd_run_ledger_look(ledger, &claim->err);

	*ret = STEP_CLAIM;
	if (status == HAPAX_OK && may_acquire(ledger)) {
		if (taken == HX_RUN_LOCK_BUSY) {
			*ret = meet_busy(claim);
		} else if (
			is_claimed(ledger) &&
			hx_cmd_run_lock_tells_of(claim->lock, &ledger->record)) {
			*ret = STEP_AGAIN;
			status = give_back(claim);
		}
	}
	if (status == HAPAX_OK && taken == HX_RUN_LOCK_TAKEN)
		hx_cmd_run_lock_settle(claim->lock);
	return status;
}

static int64_t after_failures(int64_t first_ms, int64_t last_ms, uint64_t failures)
{
	return hx_stream_after_ms(hx_backoff(first_ms, last_ms, failures, hx_random_u64()));
}

/* Sleep. False: a signal asks us to end. */
static bool pause_until(struct hx_cmd_run_claim *claim, int64_t deadline_ns)
{
	struct pollfd signals = {.fd = claim->ledger->signal_fd, .events = POLLIN};

	(void)hx_stream_wait(&signals, 1, deadline_ns);
	claim->signal = hx_cmd_run_signal_asked();
	return claim->signal == 0;
}

/*
 * The claim was acquired without the lock: a record that was done or parked a moment ago has
 * expired or been resolved since. If another process here holds the lock, give the claim back.
 */
static enum hapax_status lock_late(struct hx_cmd_run_claim *claim, enum step *ret)
{
	if (hx_cmd_run_lock_take(claim->lock) != HX_RUN_LOCK_BUSY)
		return HAPAX_OK;
	*ret = STEP_AGAIN;
	return hx_cmd_run_ledger_finish(
		claim->ledger, HAPAX_RUN_TRANSIENT, NULL, "it was not started", &claim->err);
}

/* Look until the state is clear, then claim. */
static enum hapax_status look_and_claim(struct hx_cmd_run_claim *claim, enum step *ret)
{
	enum hapax_status status = look(claim, ret);

	if (status != HAPAX_OK || *ret != STEP_CLAIM)
		return status;
	status = hx_cmd_run_ledger_claim(claim->ledger, &claim->err);
	if (status == HAPAX_OK && claim->ledger->seen.outcome == HAPAX_OUTCOME_ACQUIRED)
		status = lock_late(claim, ret);
	return status;
}

/* Ask once. The lock is held afterwards only if the key was acquired. */
static enum hapax_status ask(struct hx_cmd_run_claim *claim)
{
	enum step step = STEP_AGAIN;
	enum hapax_status status = HAPAX_OK;

	claim->is_held_here = false;
	claim->held_looks = 0;
	for (int i = 0; i < LOOKS_MAX && step == STEP_AGAIN; i++) {
		status = look_and_claim(claim, &step);
		if (status != HAPAX_OK)
			break;
		if (step == STEP_AGAIN && claim->lock->file < 0 &&
		    !pause_until(claim, after_failures(BUSY_MS, BUSY_MS, 0)))
			break;
	}
	/*
	 * Another process is about to start the command but makes no progress: treat it as in
	 * progress.
	 */
	if (status == HAPAX_OK && step == STEP_AGAIN)
		answer_held(claim);
	if (status != HAPAX_OK || claim->ledger->seen.outcome != HAPAX_OUTCOME_ACQUIRED)
		hx_cmd_run_lock_drop(claim->lock);
	return status;
}

enum hapax_status hx_cmd_run_claim_wait(struct hx_cmd_run_claim *claim)
{
	int64_t wait_ms = claim->ledger->plan->wait_ms;
	int64_t end_ns = wait_ms == HX_RUN_WAIT_FOREVER ? INT64_MAX : hx_stream_after_ms(wait_ms);
	uint64_t looks = 0;

	for (;;) {
		enum hapax_status status = ask(claim);
		int64_t next_ns;

		if (status != HAPAX_OK || claim->signal != 0 ||
		    claim->ledger->seen.outcome != HAPAX_OUTCOME_IN_PROGRESS)
			return status;
		if (hx_clock_mono_ns() >= end_ns)
			return HAPAX_OK;
		next_ns = after_failures(WAIT_MS_MIN, WAIT_MS_MAX, looks++);
		if (!pause_until(claim, next_ns < end_ns ? next_ns : end_ns))
			return HAPAX_OK;
	}
}
