/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_report.h - how a run ended: judge and store it, and report it for --status-fd and for people.
 */
#ifndef HX_CLI_RUN_RUN_REPORT_H
#define HX_CLI_RUN_RUN_REPORT_H

#include <stdbool.h>

#include "cli/run/run_child.h"
#include "cli/run/run_claim.h"

/* All that is reported about a run. */
struct hx_cmd_run_report {
	const struct hx_cmd_run_ledger *ledger;
	enum hapax_outcome outcome; /* NONE: the store did not answer, or we were asked to end */
	bool has_run;
	enum hapax_run_outcome verdict;    /* has_run */
	enum hapax_status status;          /* of storing the verdict */
	struct hapax_error err;            /* status */
	enum hx_cmd_run_standing standing; /* status FENCED */
	bool is_fenced;
	bool is_stored;
	bool is_timed_out;
	int signal;            /* the signal that ended the command, or 0 */
	uint64_t output_bytes; /* has_run */
	uint64_t omitted_bytes;
	int exit_code;     /* ours */
	const char *error; /* NULL: none */
};

/* Write one document to fd and close it. */
void hx_cmd_run_report_json(const struct hx_cmd_run_report *report, int fd);

/* Why the command did not run: one message, and a hint. */
void hx_cmd_run_report_refusal(const struct hx_cmd_run_claim *claim);

/* Judge and store how the command ended, whether or not our output is read. Prints nothing. */
void hx_cmd_run_report_store(struct hx_cmd_run_report *report, struct hx_cmd_run_child *child);

/* Then report what went wrong. Returns the exit code. */
int hx_cmd_run_report_end(struct hx_cmd_run_report *report, const struct hx_cmd_run_child *child);

/*
 * Write the output of a result of kind exec to standard output and error, byte for byte and in
 * order. Returns its exit code; *ret_signal: the signal that ended it, or 0. A result of another
 * kind has no output: 0, or 1 after a message if it failed. HX_EXIT_WRAPPER after an error message;
 * HX_EXIT_SIGNAL plus the number if a signal asked us to end. Does not need the store.
 */
int hx_cmd_run_report_replay(
	const struct hx_cmd_run_ledger *ledger, const struct hapax_result *result, int *ret_signal);

#endif
