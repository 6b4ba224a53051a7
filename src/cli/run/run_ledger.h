/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_ledger.h - the store as one run sees it: look, claim, stay, finish.
 *
 * The processor's core (processor.h) claims, renews and retries. The blocking calls below drive it
 * themselves. While the command runs, its loop drives it (run_child.h), so that a busy store does
 * not delay the output, nor slow output the lease.
 *
 * Two things are beyond the core. A store that stopped answering after an I/O error is reopened to
 * store the outcome. A signal ends the wait for a store that does not accept it.
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
	struct hapax_store *store; /* NULL: it failed and could not be reopened */
	struct hapax_processor *processor;
	int signal_fd; /* readable: the wait for the store may have to stop */
	int wake[2];   /* readable: tick must be called */
	int64_t due_ns;
	char owner[HX_OWNER_SIZE_MAX + 1];

	/* The last answer to look or claim. */
	struct hapax_op seen;
	struct hapax_record record;
	struct hapax_buf buf;

	/* Our claim, while we have one. */
	struct hapax_run *run;
	uint64_t token;
	uint32_t attempt;
	int64_t claimed_ms;    /* before the claim was sent; includes time while suspended */
	bool is_lapsed;        /* the lease could not be renewed in time */
	bool is_fenced;        /* the store refused to renew; see hx_cmd_run_ledger_standing() */
	bool is_completed;     /* with our token: by the command itself, or a person */
	bool is_unstored;      /* finished, but not yet stored */
	bool is_shortened;     /* stored without its body, for lack of room */
	int64_t shorten_at_ns; /* from then on the result is offered without its body */
	int asked;             /* the signal that ended a wait for the store, or 0 */
	bool has_ended;
	enum hapax_status end_status;
};

/* HX_EXIT_OK, or another code after a message. Close it in either case. */
int hx_cmd_run_ledger_open(
	struct hx_cmd_run_ledger *ledger, struct hx_invocation *inv,
	const struct hx_cmd_run_plan *plan);
void hx_cmd_run_ledger_close(struct hx_cmd_run_ledger *ledger);

/* Close the store, which others may wait for. seen stays; nothing may be asked afterwards. */
void hx_cmd_run_ledger_leave(struct hx_cmd_run_ledger *ledger);

/* Read the record; seen.outcome is FOUND or ABSENT. */
enum hapax_status hx_cmd_run_ledger_look(struct hx_cmd_run_ledger *ledger, struct hapax_error *err);

/*
 * Claim the key; seen.outcome has the answer. After ACQUIRED the record has only the token and the
 * attempt id of our claim.
 */
enum hapax_status hx_cmd_run_ledger_claim(
	struct hx_cmd_run_ledger *ledger, struct hapax_error *err);

/* Give back the claim of a dead run, as its record says: release or park. */
enum hapax_status hx_cmd_run_ledger_give_back(
	struct hx_cmd_run_ledger *ledger, const char *why, struct hapax_error *err);

/*
 * Is the claim still ours? Asks the store only if another run could have taken over since the claim
 * was made. FENCED: another run has it.
 */
enum hapax_status hx_cmd_run_ledger_confirm(
	struct hx_cmd_run_ledger *ledger, struct hapax_error *err);

/* The state of our claim after the store refused to renew it. */
enum hx_cmd_run_standing {
	HX_RUN_STANDING_OURS,      /* given up, but not taken over: a result still counts */
	HX_RUN_STANDING_COMPLETED, /* done with our token: nothing is left to hold */
	HX_RUN_STANDING_TAKEN,     /* another claim has the key */
	HX_RUN_STANDING_GONE,      /* there is no record any more: expired or forgotten */
	HX_RUN_STANDING_UNKNOWN,   /* the store did not answer */
};

/* Asks the store. */
enum hx_cmd_run_standing hx_cmd_run_ledger_standing(struct hx_cmd_run_ledger *ledger);

/* Do what is due. Call it when wake[0] is readable, and at due_ns at the latest. */
void hx_cmd_run_ledger_tick(struct hx_cmd_run_ledger *ledger);

/*
 * End our claim. A refused operation is retried until the lease ends or a signal asks us to end. A
 * complete never becomes a release, but while the lease lives a result that does not fit is stored
 * without its body. FENCED: it did not count; see hx_cmd_run_ledger_standing(). Any other status
 * describes what is stored.
 */
enum hapax_status hx_cmd_run_ledger_finish(
	struct hx_cmd_run_ledger *ledger, enum hapax_run_outcome outcome,
	const struct hapax_result *result, const char *why, struct hapax_error *err);

#endif
