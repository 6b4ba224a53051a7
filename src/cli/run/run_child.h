/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_child.h - the command while it runs: its output, its signals, its end.
 *
 * What it writes is passed on as it comes and recorded beside that. Nothing here waits
 * for one thing only: a reader that does not read holds up the output, not the lease. When
 * the command has ended, what is left of its output is taken in whether our own is read
 * or not, so that nobody but the command holds up its outcome; the rest is written after
 * that is stored.
 */
#ifndef HX_CLI_RUN_RUN_CHILD_H
#define HX_CLI_RUN_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/process.h"
#include "cli/run/run_ledger.h"
#include "cli/run/run_output.h"
#include "cli/run/run_plan.h"
#include "wire/exec_result.h"

enum {
	/* What is held of an output while the command runs. */
	HX_RUN_CHUNK_SIZE = 64 * 1024,
	/* What is taken in after its end; a pipe holds no more. */
	HX_RUN_LATE_SIZE = 1024 * 1024,
};

/* One of its two outputs, on the way to ours. */
struct hx_cmd_run_stream {
	enum hx_exec_stream name;
	int from;                    /* -1: at its end */
	struct hx_cmd_run_output to; /* when it cannot be written, what comes is only recorded */
	size_t at;                   /* data before this was passed on */
	size_t size;                 /* of data */
	uint64_t late;               /* bytes that came after the command had ended */
	unsigned char data[HX_RUN_CHUNK_SIZE + HX_RUN_LATE_SIZE];
};

/* Why we ended it ourselves. */
enum hx_run_stop {
	HX_RUN_STOP_NONE,
	HX_RUN_STOP_TIMEOUT,
	HX_RUN_STOP_FENCED,
};

struct hx_cmd_run_child {
	const struct hx_cmd_run_plan *plan;
	struct hx_cmd_run_ledger *ledger;
	pid_t pid;
	unsigned group; /* HX_PROCESS_GROUP, or 0 when it shares ours, and the terminal */
	bool has_ended;
	bool was_stopped; /* once at least; only CONT lets it see another signal then */
	bool is_lost;     /* nobody can tell how it ended */
	struct hx_process_end end;
	enum hx_run_stop stop;
	int asked;           /* the last signal that asked it to end and came through us, or 0 */
	int late_asked;      /* the same after its end: then we are meant */
	unsigned notes;      /* what is to be said when no output is held */
	int64_t watch_at_ns; /* when to look who has the key, after the store said FENCED */
	int64_t timeout_at_ns;
	int64_t kill_at_ns;
	int64_t drain_until_ns;
	struct hx_cmd_run_stream streams[2];
	struct hx_exec_recorder recorder;
};

/* Allocates nothing. */
void hx_cmd_run_child_init(struct hx_cmd_run_child *child, struct hx_cmd_run_ledger *ledger);

/*
 * Start the command, with lock_fd inherited. os_errno in err tells why it did not
 * start; nothing ran then.
 */
enum hapax_status hx_cmd_run_child_start(
	struct hx_cmd_run_child *child, struct hx_cmd_run_ledger *ledger, int lock_fd,
	struct hapax_error *err);

/* Run it to its end, until all that it wrote is taken in. Blocks; see the top. */
void hx_cmd_run_child_run(struct hx_cmd_run_child *child);

/*
 * Write what is left of its output, and what there is to say. Both are given up when a
 * signal asks us to end: then which, else 0. If one came before, a reader that takes
 * nothing is not waited for long.
 */
int hx_cmd_run_child_flush(struct hx_cmd_run_child *child);

void hx_cmd_run_child_done(struct hx_cmd_run_child *child);

#endif
