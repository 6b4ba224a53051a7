/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_child.h - the command while it runs: its output, its signals, its end.
 *
 * Output is passed on as it arrives, and recorded. The loop never waits for one thing only: a
 * reader that does not read delays the output, not the lease. When the command has ended, its
 * remaining output is read even if ours is not, so that only the command can delay its outcome. The
 * rest is written after the outcome is stored.
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
	/* Held of one output while the command runs. */
	HX_RUN_CHUNK_SIZE = 64 * 1024,
	/* Read after the command's end; a pipe holds no more. */
	HX_RUN_LATE_SIZE = 1024 * 1024,
};

/* One of the command's two outputs, on the way to ours. */
struct hx_cmd_run_stream {
	enum hx_exec_stream name;
	int from;                    /* -1: at end of file */
	struct hx_cmd_run_output to; /* if it cannot be written, output is only recorded */
	size_t at;                   /* data before this was written */
	size_t size;                 /* of data */
	uint64_t late;               /* bytes read after the command had ended */
	unsigned char data[HX_RUN_CHUNK_SIZE + HX_RUN_LATE_SIZE];
};

/* Why we stopped the command. */
enum hx_run_stop {
	HX_RUN_STOP_NONE,
	HX_RUN_STOP_TIMEOUT,
	HX_RUN_STOP_FENCED,
};

struct hx_cmd_run_child {
	const struct hx_cmd_run_plan *plan;
	struct hx_cmd_run_ledger *ledger;
	pid_t pid;
	unsigned group; /* HX_PROCESS_GROUP, or 0 if it shares our group and terminal */
	bool has_ended;
	bool was_stopped; /* at least once; then only CONT lets it see another signal */
	bool is_lost;     /* how it ended is unknown */
	struct hx_process_end end;
	enum hx_run_stop stop;
	int asked;           /* the last end signal that we forwarded to it, or 0 */
	int late_asked;      /* the same after its end: then it is meant for us */
	unsigned notes;      /* messages to print when no output is held */
	int64_t watch_at_ns; /* when to check which claim has the key, after FENCED */
	int64_t timeout_at_ns;
	int64_t kill_at_ns;
	int64_t drain_until_ns;
	struct hx_cmd_run_stream streams[2];
	struct hx_exec_recorder recorder;
};

/* Allocates nothing. */
void hx_cmd_run_child_init(struct hx_cmd_run_child *child, struct hx_cmd_run_ledger *ledger);

/*
 * Start the command; it inherits lock_fd. If it did not start, err->os_errno says why, and nothing
 * ran.
 */
enum hapax_status hx_cmd_run_child_start(
	struct hx_cmd_run_child *child, struct hx_cmd_run_ledger *ledger, int lock_fd,
	struct hapax_error *err);

/* Run the command to its end, until all its output is read. Blocks; see the top. */
void hx_cmd_run_child_run(struct hx_cmd_run_child *child);

/*
 * Write the remaining output and messages. A signal that asks us to end stops this: returns its
 * number, else 0. After an earlier such signal, the wait for a reader that takes nothing is short.
 */
int hx_cmd_run_child_flush(struct hx_cmd_run_child *child);

void hx_cmd_run_child_done(struct hx_cmd_run_child *child);

#endif
