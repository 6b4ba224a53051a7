/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_claim.h - from a key to the right to run it, or to the reason why not.
 *
 * Before it claims, a run looks whether the holder is alive on this host (run_lock.h):
 * a claim would take over whatever has lapsed. It holds the key's guard (run_guard.h)
 * from before that look.
 */
#ifndef HX_CLI_RUN_CLAIM_H
#define HX_CLI_RUN_CLAIM_H

#include <stdbool.h>

#include "cli/run_guard.h"
#include "cli/run_ledger.h"
#include "cli/run_lock.h"

struct hx_run_claim {
	struct hx_run_ledger *ledger;
	const struct hx_run_lock_folders *folders;
	struct hx_run_guard guard; /* held after ACQUIRED, unless there is no place for it */
	bool is_held_here;         /* IN_PROGRESS: by a process that lives on this host */
	int signal;                /* that ended the wait, or 0 */
	struct hapax_error err;
};

void hx_run_claim_init(
	struct hx_run_claim *claim, struct hx_run_ledger *ledger,
	const struct hx_run_lock_folders *folders);

/*
 * Claim, and while it is in progress wait for as long as the plan says.
 * ledger->seen.outcome is ACQUIRED, REPLAY, IN_PROGRESS, MISMATCH or PARKED when this
 * is HAPAX_OK and signal is 0. On any other status err says why, and nothing is held.
 */
enum hapax_status hx_run_claim_wait(struct hx_run_claim *claim);

/* The command holds its lock, or there will be none: let others decide. */
void hx_run_claim_started(struct hx_run_claim *claim);

#endif
