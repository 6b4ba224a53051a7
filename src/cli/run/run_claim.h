/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_claim.h - from a key to the right to run it, or to the reason why not.
 *
 * Before it looks at the record, a run takes the key's lock (run_lock.h): a claim would take over
 * whatever has lapsed, and a record does not know who lives. So a run asks the store three times
 * if nothing stands in its way: look, claim, and in the end complete or release.
 */
#ifndef HX_CLI_RUN_RUN_CLAIM_H
#define HX_CLI_RUN_RUN_CLAIM_H

#include <stdbool.h>

#include "cli/run/run_ledger.h"
#include "cli/run/run_lock.h"

struct hx_cmd_run_claim {
	struct hx_cmd_run_ledger *ledger;
	struct hx_cmd_run_lock *lock; /* held after ACQUIRED, unless there is no place for it */
	bool is_held_here;            /* IN_PROGRESS: by a process that lives on this host */
	int held_looks; /* how often somebody was seen to run here, of this question */
	int signal;     /* that ended the wait, or 0 */
	struct hapax_error err;
};

void hx_cmd_run_claim_init(
	struct hx_cmd_run_claim *claim, struct hx_cmd_run_ledger *ledger,
	struct hx_cmd_run_lock *lock);

/*
 * Claim, and while it is in progress wait for as long as the plan says.
 * ledger->seen.outcome is ACQUIRED, REPLAY, IN_PROGRESS, MISMATCH or PARKED when this
 * is HAPAX_OK and signal is 0. On any other status err says why, and nothing is held.
 */
enum hapax_status hx_cmd_run_claim_wait(struct hx_cmd_run_claim *claim);

#endif
