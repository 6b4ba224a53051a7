/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_file.c - a result of kind bytes from a file or standard input.
 */
#include "cli/input/result_file.h"

#include <hapax/record.h>

#include "base/limits.h"
#include "cli/frame/exit_code.h"
#include "cli/frame/report.h"

int hx_result_file_open(
	struct hx_result_file *file, const char *command, const char *path,
	enum hapax_result_class result_class)
{
	int code;

	*file = (struct hx_result_file){
		.input = {.file = -1},
		.result = {.result_class = result_class},
	};
	if (path == NULL)
		return HX_EXIT_OK;
	file->result.kind = HAPAX_RESULT_BYTES;
	code = hx_input_open(&file->input, command, path);
	if (code == HX_EXIT_OK)
		code = hx_input_all(&file->input, &file->result.body);
	if (code == HX_EXIT_OK && file->result.body.size > HX_RESULT_SIZE_DEFAULT)
		hx_report(
			command,
			"note: the result is too large to store (%zu bytes); only its "
			"size is stored",
			file->result.body.size);
	return code;
}

void hx_result_file_close(struct hx_result_file *file)
{
	hx_input_close(&file->input);
}
