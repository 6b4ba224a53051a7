/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_output.h - our standard output and error, possibly without a reader.
 *
 * A write never waits, so that the loop can wait for other things, above all signals. It is not
 * enough that poll reports room: a terminal may have less than we write, and if one pipe is both
 * outputs, the other one may have taken the room.
 */
#ifndef HX_CLI_RUN_RUN_OUTPUT_H
#define HX_CLI_RUN_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct hx_cmd_run_output {
	int fd;
	int own_fd;      /* the same file, on which a write never waits, or -1 */
	bool is_file;    /* a write to fd never waits */
	size_t part_max; /* of one write */
	int os_errno;    /* why it cannot be written, or 0 */
};

void hx_cmd_run_output_init(struct hx_cmd_run_output *output, int fd);
void hx_cmd_run_output_done(struct hx_cmd_run_output *output);

/*
 * Write as much of data as there is room for. Returns the bytes dealt with: all of them if it
 * cannot be written, now or earlier.
 */
size_t hx_cmd_run_output_write(struct hx_cmd_run_output *output, const void *data, size_t size);

/* Report that it could not be written. A reader that has gone is not an error. True: reported. */
bool hx_cmd_run_output_report(const struct hx_cmd_run_output *output, const char *command);

#endif
