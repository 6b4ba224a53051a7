/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_ledger.h - the store as one run sees it: look, claim, stay, finish.
 *
 * The processor's core (processor.h) claims, renews and repeats. It is driven by the
 * loop of whoever waits: the calls below that block drive it themselves; while the
 * command runs, its loop does (run_child.h), so that neither a busy store holds up the
 * output nor slow output the lease.
 *
 * Beyond the core stand two things that only a program can do: a store that answers
 * nothing any more after an I/O error is opened anew to store the outcome, and a signal
 * ends a wait for a store that does not take it.
 *
 * Threads: one. The store's own threads only write into the pipe that wakes it.
 */
#ifndef HX_CLI_RUN_LEDGER_H
#define HX_CLI_RUN_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/processor.h>
#include <hapax/store.h>

#include "base/buf.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/run_plan.h"

struct hx_run_ledger {
	struct hx_invocation *inv;
	const struct hx_run_plan *plan;
	struct hapax_store *store;
	struct hapax_store *second; /* opened because the first one failed; or NULL */
	struct hapax_processor *processor;
	int signal_fd; /* readable: whoever waits for the store may be asked to stop */
	int wake[2];   /* readable: tick must be called */
	int64_t due_ns;
	char owner[HX_OWNER_SIZE_MAX + 1];

	/* What look and claim saw last. */
	struct hapax_op seen;
	struct hapax_record record;
	struct hapax_buf buf;

	/* Our claim, while we have one. */
	struct hapax_run *run;
	uint64_t token;
	uint32_t attempt;
	int64_t claimed_ns; /* before it was asked for */
	bool is_fenced;
	bool is_unstored; /* finished, and the store has not taken it yet */
	bool has_ended;
	enum hapax_status end_status;
};

/* HX_EXIT_OK, or another code after saying why. Then too it is to be closed. */
int hx_run_ledger_open(
	struct hx_run_ledger *ledger, struct hx_invocation *inv, const struct hx_run_plan *plan);
void hx_run_ledger_close(struct hx_run_ledger *ledger);

/* Read the record; seen.outcome is FOUND or ABSENT. */
enum hapax_status hx_run_ledger_look(struct hx_run_ledger *ledger, struct hapax_error *err);

/*
 * Ask for the right to run; seen.outcome says what was answered. After ACQUIRED record is
 * that of our claim.
 */
enum hapax_status hx_run_ledger_claim(struct hx_run_ledger *ledger, struct hapax_error *err);

/* Give back the claim of a run that died, as its record says: release or park. */
enum hapax_status hx_run_ledger_give_back(
	struct hx_run_ledger *ledger, const char *why, struct hapax_error *err);

/*
 * Is the claim still ours? Asks the store if enough time has passed since it was made
 * that somebody could have taken over. FENCED: it is somebody else's.
 */
enum hapax_status hx_run_ledger_confirm(struct hx_run_ledger *ledger, struct hapax_error *err);

/* Do what is due: when wake[0] can be read, and at due_ns at the latest. */
void hx_run_ledger_tick(struct hx_run_ledger *ledger);

/*
 * End our claim. What the store does not take is repeated until the lease's end, or
 * until a signal asks us to go; a complete is never turned into a release. FENCED:
 * somebody else has the key. Any other status: what is stored is as the status says.
 */
enum hapax_status hx_run_ledger_finish(
	struct hx_run_ledger *ledger, enum hapax_run_outcome outcome,
	const struct hapax_result *result, const char *why, struct hapax_error *err);

#endif
