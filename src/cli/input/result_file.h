/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_file.h - a result of kind bytes from a file or standard input.
 */
#ifndef HX_CLI_INPUT_RESULT_FILE_H
#define HX_CLI_INPUT_RESULT_FILE_H

#include <hapax/record.h>

#include "cli/input/input.h"

struct hx_result_file {
	struct hx_input input;
	struct hapax_result result;
};

/*
 * Read path, or standard input if it is "-", as a result of class result_class. NULL makes a result
 * of kind none. HX_EXIT_OK, or another code after a message. Close it even after a failure.
 */
int hx_result_file_open(
	struct hx_result_file *file, const char *command, const char *path,
	enum hapax_result_class result_class);

void hx_result_file_close(struct hx_result_file *file);

#endif
