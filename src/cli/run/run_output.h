/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_output.h - our standard output and error, which nobody may be reading.
 *
 * A write never waits, so that a loop can wait for other things too, signals above all.
 * That poll sees room is not enough for it: a terminal may have less than is written,
 * and of a pipe that is both outputs the other one may have taken the room.
 */
#ifndef HX_CLI_RUN_RUN_OUTPUT_H
#define HX_CLI_RUN_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct hx_cmd_run_output {
	int fd;
	int own_fd;      /* the same on which a write never waits, or -1 */
	bool is_file;    /* a write to fd never waits */
	size_t part_max; /* of one write */
	int os_errno;    /* why it cannot be written, or 0 */
};

void hx_cmd_run_output_init(struct hx_cmd_run_output *output, int fd);
void hx_cmd_run_output_done(struct hx_cmd_run_output *output);

/*
 * Write some of data, as much as there is room for. How much is done with: all of it
 * when it cannot be written, now or earlier.
 */
size_t hx_cmd_run_output_write(struct hx_cmd_run_output *output, const void *data, size_t size);

/* Say that it could not be written; a reader that has gone is no fault. True: said. */
bool hx_cmd_run_output_report(const struct hx_cmd_run_output *output, const char *command);

#endif
