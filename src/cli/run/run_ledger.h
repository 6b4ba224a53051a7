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
#ifndef HX_CLI_RUN_RUN_LEDGER_H
#define HX_CLI_RUN_RUN_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/processor.h>
#include <hapax/store.h>

#include "base/buf.h"
#include "base/limits.h"
#include "cli/frame/command.h"
#include "cli/run/run_plan.h"

struct hx_cmd_run_ledger {
	struct hx_invocation *inv;
	const struct hx_cmd_run_plan *plan;
	struct hapax_store *store; /* NULL: it failed and could not be opened again */
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
	int64_t claimed_ms;    /* before it was asked for; counts a suspended machine's time, too */
	bool is_lapsed;        /* the lease could not be renewed in time */
	bool is_fenced;        /* the store refused to renew; see hx_cmd_run_ledger_standing() */
	bool is_completed;     /* by somebody with our token: the command itself, or a person */
	bool is_unstored;      /* finished, and the store has not taken it yet */
	bool is_shortened;     /* stored without its body, for which there was no room */
	int64_t shorten_at_ns; /* from then on the result is offered without its body */
	int asked;             /* the signal that ended a wait for the store, or 0 */
	bool has_ended;
	enum hapax_status end_status;
};

/* HX_EXIT_OK, or another code after saying why. Then too it is to be closed. */
int hx_cmd_run_ledger_open(
	struct hx_cmd_run_ledger *ledger, struct hx_invocation *inv,
	const struct hx_cmd_run_plan *plan);
void hx_cmd_run_ledger_close(struct hx_cmd_run_ledger *ledger);

/* Close the store, which others may wait for; what was seen stays. Nothing is asked after that. */
void hx_cmd_run_ledger_leave(struct hx_cmd_run_ledger *ledger);

/* Read the record; seen.outcome is FOUND or ABSENT. */
enum hapax_status hx_cmd_run_ledger_look(struct hx_cmd_run_ledger *ledger, struct hapax_error *err);

/*
 * Ask for the right to run; seen.outcome says what was answered. After ACQUIRED record
 * has the token and the attempt id of our claim, and no more.
 */
enum hapax_status hx_cmd_run_ledger_claim(
	struct hx_cmd_run_ledger *ledger, struct hapax_error *err);

/* Give back the claim of a run that died, as its record says: release or park. */
enum hapax_status hx_cmd_run_ledger_give_back(
	struct hx_cmd_run_ledger *ledger, const char *why, struct hapax_error *err);

/*
 * Is the claim still ours? Asks the store if enough time has passed since it was made
 * that somebody could have taken over. FENCED: it is somebody else's.
 */
enum hapax_status hx_cmd_run_ledger_confirm(
	struct hx_cmd_run_ledger *ledger, struct hapax_error *err);

/* What became of our claim when the store did not want to renew it. */
enum hx_cmd_run_standing {
	HX_RUN_STANDING_OURS,      /* given up, but by nobody else taken: a result still counts */
	HX_RUN_STANDING_COMPLETED, /* done, by us: nothing is left to hold */
	HX_RUN_STANDING_TAKEN,     /* somebody else has the key */
	HX_RUN_STANDING_GONE,      /* there is no record any more: expired, or forgotten */
	HX_RUN_STANDING_UNKNOWN,   /* the store did not say */
};

/* Asks the store. */
enum hx_cmd_run_standing hx_cmd_run_ledger_standing(struct hx_cmd_run_ledger *ledger);

/* Do what is due: when wake[0] can be read, and at due_ns at the latest. */
void hx_cmd_run_ledger_tick(struct hx_cmd_run_ledger *ledger);

/*
 * End our claim. What the store does not take is repeated until the lease's end, or
 * until a signal asks us to go; a complete is never turned into a release, but a result
 * that does not fit goes without its body while the lease lives. FENCED: it did not count;
 * see hx_cmd_run_ledger_standing(). Any other status: what is stored is as the status says.
 */
enum hapax_status hx_cmd_run_ledger_finish(
	struct hx_cmd_run_ledger *ledger, enum hapax_run_outcome outcome,
	const struct hapax_result *result, const char *why, struct hapax_error *err);

#endif
