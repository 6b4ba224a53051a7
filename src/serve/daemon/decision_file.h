/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decision_file.h - the file of decisions of a daemon: log.decisions.
 *
 * A log of its own, without a rate: doors and consumers report to it by observe/decision.h. Lines
 * that the disk does not take in time are lost, counted and told in the daemon's log. HUP
 * reopens the file if another program has renamed it.
 *
 * Threads: the control loop's; log takes lines from any.
 */
#ifndef HX_SERVE_DECISION_FILE_H
#define HX_SERVE_DECISION_FILE_H

#include <stdint.h>

#include <hapax/error.h>

struct hx_config;
struct hx_logger;

struct hx_decision_file {
	struct hx_logger *log; /* NULL: not wanted */
	char *path;
	uint64_t lost_told;
};

/* Could it be opened? INVALID: not, or its secret is missing or too short. Creates nothing. */
enum hapax_status hx_decision_file_check(const struct hx_config *config, struct hapax_error *err);

enum hapax_status hx_decision_file_open(
	struct hx_decision_file *file, const struct hx_config *config, struct hapax_error *err);

/* Go on with the file that is at its path now. A failure goes to the daemon's log. */
void hx_decision_file_rotate(struct hx_decision_file *file, struct hx_logger *daemon_log);

/* Tell of lost lines. Call it about every second. */
void hx_decision_file_tick(struct hx_decision_file *file, struct hx_logger *daemon_log);

/* Lines that the disk did not take; 0 without a file. */
uint64_t hx_decision_file_lost(const struct hx_decision_file *file);

/* Write what waits, for at most wait_ms, and close it. */
void hx_decision_file_close(struct hx_decision_file *file, int64_t wait_ms);

#endif
