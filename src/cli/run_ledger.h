/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_ledger.h - the store as one run sees it: look, claim, stay, finish.
 *
 * Looking, claiming and finishing block. While the command runs, the lease is renewed
 * beside it: the store answers on a thread of its own and wakes our loop through a
 * pipe, so that neither a busy store holds up the output nor slow output the lease.
 *
 * Threads: one, apart from that.
 */
#ifndef HX_CLI_RUN_LEDGER_H
#define HX_CLI_RUN_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/run_plan.h"

/* What is said of a run when it has ended. */
enum hx_run_verdict {
	HX_RUN_OK,         /* complete */
	HX_RUN_DEFINITIVE, /* complete, as a failure that stays */
	HX_RUN_TRANSIENT,  /* release: the next claim runs */
	HX_RUN_AMBIGUOUS,  /* by on_lapse: release or park */
};

struct hx_run_ledger {
	struct hx_invocation *inv;
	const struct hx_run_plan *plan;
	struct hapax_store *store;
	int signal_fd; /* readable: whoever waits for the store may be asked to stop */
	char owner[HX_OWNER_SIZE_MAX + 1];

	/* What look and claim saw last. */
	struct hapax_op seen;
	struct hapax_record record;
	struct hapax_buf buf;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];

	/* Our claim, while we have one. */
	uint64_t token;
	uint32_t attempt;
	int64_t lease_ends_ns; /* on hx_clock_mono_ns(), counted from before it was asked for */
	int64_t renew_at_ns;
	bool is_fenced;
	bool is_lapse_told;
	struct hapax_op renewal;
	bool is_renewing;
	int64_t renewal_sent_ns;
	_Atomic bool renewal_is_done;
	int wake[2];
};

/* HX_EXIT_OK, or another code after saying why. Then too it is to be closed. */
int hx_run_ledger_open(
	struct hx_run_ledger *ledger, struct hx_invocation *inv, const struct hx_run_plan *plan);
void hx_run_ledger_close(struct hx_run_ledger *ledger);

/* Read the record; seen.outcome is FOUND or ABSENT. */
enum hapax_status hx_run_ledger_look(struct hx_run_ledger *ledger, struct hapax_error *err);

/* Ask for the right to run; seen.outcome says what was answered. */
enum hapax_status hx_run_ledger_claim(struct hx_run_ledger *ledger, struct hapax_error *err);

/* Give back the claim of a run that died, as the record says: release or park. */
enum hapax_status hx_run_ledger_give_back(
	struct hx_run_ledger *ledger, const char *why, struct hapax_error *err);

/*
 * Is the claim still ours, for some time to come? Asks the store when the lease may have
 * ended since. FENCED: it is somebody else's.
 */
enum hapax_status hx_run_ledger_confirm(struct hx_run_ledger *ledger, struct hapax_error *err);

/* Send a renewal if one is due, and take in the answer of the last. */
void hx_run_ledger_renew(struct hx_run_ledger *ledger);

/* When renew must be called again at the latest; sooner when wake[0] can be read. */
int64_t hx_run_ledger_due_ns(const struct hx_run_ledger *ledger);

/*
 * End our claim. What the store does not take is repeated until the lease's end, or
 * until a signal asks us to go; a complete is never turned into a release. FENCED:
 * somebody else has the key. Any other status: what is stored is as the status says.
 */
enum hapax_status hx_run_ledger_finish(
	struct hx_run_ledger *ledger, enum hx_run_verdict verdict,
	const struct hapax_result *result, const char *why, struct hapax_error *err);

#endif
