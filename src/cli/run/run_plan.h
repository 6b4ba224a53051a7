/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_plan.h - the command line of `run` as a plan.
 */
#ifndef HX_CLI_RUN_RUN_PLAN_H
#define HX_CLI_RUN_RUN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/key.h>
#include <hapax/record.h>

#include "cli/frame/command.h"

enum hx_run_option {
	HX_RUN_OPTION_KEY = 1,
	HX_RUN_OPTION_STRATEGY,
	HX_RUN_OPTION_WAIT,
	HX_RUN_OPTION_TIMEOUT,
	HX_RUN_OPTION_KILL_AFTER,
	HX_RUN_OPTION_LEASE,
	HX_RUN_OPTION_ON_LAPSE,
	HX_RUN_OPTION_FINGERPRINT,
	HX_RUN_OPTION_SUCCESS_CODES,
	HX_RUN_OPTION_KEEP_ON_FAIL,
	HX_RUN_OPTION_MAX_RESULT,
	HX_RUN_OPTION_STATUS_FD,
};

/* In the order of enum hapax_on_lapse and enum hx_cmd_run_fingerprint. */
extern const char *const hx_run_on_lapse_choices[];
extern const char *const hx_cmd_run_fingerprint_choices[];

enum hx_cmd_run_fingerprint {
	HX_RUN_FINGERPRINT_ARGS,
	HX_RUN_FINGERPRINT_STDIN,
	HX_RUN_FINGERPRINT_NONE,
};

/* In wait_ms: no limit. */
#define HX_RUN_WAIT_FOREVER INT64_MAX

enum { HX_RUN_EXIT_CODES = 256 };

struct hx_cmd_run_plan {
	const char *const *argv; /* the command; ends with NULL */
	struct hapax_bytes key;  /* points into argv or made */
	struct hapax_key made;   /* by --strategy */
	bool has_fingerprint;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	int stdin_fd;  /* the command's input, if we had to read it first; -1: ours */
	int status_fd; /* -1: none */
	int64_t lease_ms;
	int64_t wait_ms;       /* 0: do not wait */
	int64_t timeout_ms;    /* 0: none */
	int64_t kill_after_ms; /* from TERM to KILL */
	enum hapax_on_lapse on_lapse;
	bool is_success[HX_RUN_EXIT_CODES];
	bool keep_on_fail;
	size_t result_size_max;
};

/*
 * Fill *plan. HX_EXIT_OK, or another code after a message; call hx_cmd_run_plan_done() in either
 * case. Reads standard input if the key or the fingerprint needs it.
 */
int hx_cmd_run_plan_read(struct hx_invocation *inv, struct hx_cmd_run_plan *plan);

void hx_cmd_run_plan_done(struct hx_cmd_run_plan *plan);

#endif
