/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_output.h - our standard output and error, which nobody may be reading.
 *
 * It is written only when there is room, so that a loop can wait for other things too,
 * signals above all. Another user of the same open file may have made it one that never
 * waits; that makes no difference here.
 */
#ifndef HX_CLI_RUN_OUTPUT_H
#define HX_CLI_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct hx_run_output {
	int fd;
	bool is_file; /* a write never waits */
	int os_errno; /* why it cannot be written, or 0 */
};

void hx_run_output_init(struct hx_run_output *output, int fd);

/*
 * Write some of data; poll has said that fd has room. How much is done with: all of it
 * when it cannot be written, now or earlier.
 */
size_t hx_run_output_write(struct hx_run_output *output, const void *data, size_t size);

/* Can something be written to it at once? */
bool hx_run_output_has_room(const struct hx_run_output *output);

/* Say that it could not be written; a reader that has gone is no fault. True: said. */
bool hx_run_output_report(const struct hx_run_output *output, const char *command);

#endif
