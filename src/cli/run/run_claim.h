/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_claim.h - claim a key for a run, or learn why it cannot run.
 *
 * A run takes the key's lock (run_lock.h) before it reads the record: a claim would take over
 * anything that has lapsed, and a record does not know which processes are alive. An undisturbed
 * run asks the store three times: look, claim, and finally complete or release.
 */
#ifndef HX_CLI_RUN_RUN_CLAIM_H
#define HX_CLI_RUN_RUN_CLAIM_H

#include <stdbool.h>

#include "cli/run/run_ledger.h"
#include "cli/run/run_lock.h"

/* The rest is zero at the start. */
struct hx_cmd_run_claim {
	struct hx_cmd_run_ledger *ledger;
	struct hx_cmd_run_lock *lock; /* held after ACQUIRED, unless there is no folder for it */
	bool is_held_here;            /* IN_PROGRESS: by a live process on this host */
	int held_looks;               /* how often this question found a run in progress here */
	int signal;                   /* the signal that ended the wait, or 0 */
	struct hapax_error err;
};

/*
 * Claim; while the key is in progress, wait as long as the plan says. If this returns HAPAX_OK and
 * signal is 0, ledger->seen.outcome is ACQUIRED, REPLAY, IN_PROGRESS, MISMATCH or PARKED. On any
 * other status err says why, and nothing is held.
 */
enum hapax_status hx_cmd_run_claim_wait(struct hx_cmd_run_claim *claim);

#endif
