/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_claim.c - from a key to the right to run it.
 */
#include "cli/run_claim.h"

#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/stream.h"
#include "cli/run_signal.h"

static const int64_t ns_per_ms = 1000000;

enum {
	/*
	 * Others run in other processes and cannot wake us: we ask, at first soon, for a
	 * short command is soon done, then less and less often.
	 */
	WAIT_MS_MIN = 10,
	WAIT_MS_MAX = 250,
	/* While another process on this host decides: a few milliseconds as a rule. */
	GUARD_MS = 5,
	LOOKS_MAX = 200,
};

static bool is_mismatch(const struct hx_run_ledger *ledger)
{
	const struct hapax_record *record = &ledger->record;

	return ledger->plan->has_fingerprint && record->fingerprint_size > 0 &&
		memcmp(ledger->plan->fingerprint, record->fingerprint, record->fingerprint_size) !=
		0;
}

/* What a claim would answer if it knew that the holder lives. */
static void answer_held(struct hx_run_claim *claim)
{
	struct hx_run_ledger *ledger = claim->ledger;

	claim->is_held_here = true;
	ledger->seen.outcome =
		is_mismatch(ledger) ? HAPAX_OUTCOME_MISMATCH : HAPAX_OUTCOME_IN_PROGRESS;
}

/* The holder died on this host. OK also when somebody else was faster. */
static enum hapax_status give_back(struct hx_run_claim *claim, const char *path)
{
	enum hapax_status status = hx_run_ledger_give_back(
		claim->ledger, "its process died before it could tell how it ended", &claim->err);

	if (status == HAPAX_ERR_FENCED)
		status = HAPAX_OK;
	if (status == HAPAX_OK)
		hx_run_lock_remove_free(path);
	return status;
}

/* May a claim acquire what was seen? Others only answer, and need no guard. */
static bool may_acquire(const struct hx_run_ledger *ledger)
{
	return ledger->seen.outcome != HAPAX_OUTCOME_FOUND ||
		(ledger->record.state != HAPAX_STATE_DONE &&
	         ledger->record.state != HAPAX_STATE_PARKED);
}

static enum hx_run_guard_state take_guard(struct hx_run_claim *claim)
{
	const struct hx_run_ledger *ledger = claim->ledger;
	const struct hapax_bytes parts[] = {
		hapax_bytes_from_text(ledger->inv->settings.store_url),
		ledger->inv->settings.tenant,
		ledger->inv->settings.group,
		ledger->plan->key,
	};

	if (claim->guard.file >= 0)
		return HX_RUN_GUARD_TAKEN;
	return hx_run_guard_take(
		&claim->guard, claim->folders, parts, sizeof(parts) / sizeof(parts[0]));
}

/* What one look led to. */
enum step { STEP_AGAIN, STEP_ANSWERED, STEP_CLAIM };

/* Look, and see to a holder that died or lives on this host. */
static enum hapax_status look(struct hx_run_claim *claim, enum step *ret)
{
	struct hx_run_ledger *ledger = claim->ledger;
	enum hapax_status status = hx_run_ledger_look(ledger, &claim->err);
	enum hx_run_lock_state state = HX_RUN_LOCK_ABSENT;
	char path[HX_RUN_LOCK_PATH_SIZE];

	*ret = STEP_CLAIM;
	if (status != HAPAX_OK || !may_acquire(ledger))
		return status;
	if (ledger->seen.outcome == HAPAX_OUTCOME_FOUND &&
	    ledger->record.state == HAPAX_STATE_CLAIMED)
		state = hx_run_lock_probe(claim->folders, &ledger->record, path);
	if (state == HX_RUN_LOCK_HELD) {
		answer_held(claim);
		*ret = STEP_ANSWERED;
	} else if (state == HX_RUN_LOCK_FREE) {
		*ret = STEP_AGAIN;
		status = give_back(claim, path);
	} else if (claim->guard.file < 0 && take_guard(claim) != HX_RUN_GUARD_NONE) {
		/* What was seen without it may be old; and if it is busy, somebody decides. */
		*ret = STEP_AGAIN;
	}
	return status;
}

/* Let time pass. False: a signal asks us to go. */
static bool pause_until(struct hx_run_claim *claim, int64_t deadline_ns)
{
	struct pollfd signals = {.fd = claim->ledger->signal_fd, .events = POLLIN};
	struct hx_run_signal signal;

	(void)hx_stream_wait(&signals, 1, deadline_ns);
	while (hx_run_signal_next(&signal)) {
		if (hx_run_signal_is_end(signal.number)) {
			claim->signal = signal.number;
			return false;
		}
	}
	return true;
}

/* Somebody on this host is about to start it and does not get on: as good as in progress. */
static void answer_busy(struct hx_run_claim *claim)
{
	struct hx_run_ledger *ledger = claim->ledger;

	claim->is_held_here = true;
	if (ledger->seen.outcome != HAPAX_OUTCOME_FOUND)
		ledger->record = (struct hapax_record){
			.owner = HX_BYTES_LIT("a process on this host"),
		};
	ledger->seen.outcome = HAPAX_OUTCOME_IN_PROGRESS;
}

/* Ask once. The guard is held afterwards only if the key was acquired. */
static enum hapax_status ask(struct hx_run_claim *claim)
{
	enum step step = STEP_AGAIN;
	enum hapax_status status = HAPAX_OK;

	claim->is_held_here = false;
	for (int i = 0; i < LOOKS_MAX && step == STEP_AGAIN; i++) {
		status = look(claim, &step);
		if (status != HAPAX_OK || claim->signal != 0)
			break;
		if (step == STEP_AGAIN && claim->guard.file < 0 &&
		    !pause_until(claim, hx_clock_mono_ns() + GUARD_MS * ns_per_ms))
			break;
	}
	if (status == HAPAX_OK && step == STEP_CLAIM)
		status = hx_run_ledger_claim(claim->ledger, &claim->err);
	else if (status == HAPAX_OK && step == STEP_AGAIN)
		answer_busy(claim);
	if (status != HAPAX_OK || claim->ledger->seen.outcome != HAPAX_OUTCOME_ACQUIRED)
		hx_run_guard_drop(&claim->guard);
	return status;
}

/* Some time between half of span and all of it, so that a crowd spreads out. */
static int64_t spread(int64_t span)
{
	uint32_t random;

	hx_random_bytes(&random, sizeof(random));
	return span / 2 + (int64_t)(random % (uint64_t)(span / 2 + 1));
}

void hx_run_claim_init(
	struct hx_run_claim *claim, struct hx_run_ledger *ledger,
	const struct hx_run_lock_folders *folders)
{
	*claim = (struct hx_run_claim){.ledger = ledger, .folders = folders, .guard = {.file = -1}};
}

void hx_run_claim_started(struct hx_run_claim *claim)
{
	hx_run_guard_drop(&claim->guard);
}

enum hapax_status hx_run_claim_wait(struct hx_run_claim *claim)
{
	int64_t wait_ms = claim->ledger->plan->wait_ms, pause_ms = WAIT_MS_MIN;
	int64_t end_ns = INT64_MAX;

	if (wait_ms != HX_RUN_WAIT_FOREVER)
		end_ns = hx_clock_mono_ns() + wait_ms * ns_per_ms;
	for (;;) {
		enum hapax_status status = ask(claim);
		int64_t now_ns = hx_clock_mono_ns(), next_ns;

		if (status != HAPAX_OK || claim->signal != 0 ||
		    claim->ledger->seen.outcome != HAPAX_OUTCOME_IN_PROGRESS)
			return status;
		if (now_ns >= end_ns)
			return HAPAX_OK;
		next_ns = now_ns + spread(pause_ms) * ns_per_ms;
		if (!pause_until(claim, next_ns < end_ns ? next_ns : end_ns))
			return HAPAX_OK;
		pause_ms = pause_ms * 2 < WAIT_MS_MAX ? pause_ms * 2 : WAIT_MS_MAX;
	}
}
