/* SPDX-License-Identifier: Apache-2.0 */
#include "support/shell_case.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct shell_case shell;

static int open_on(const char *url)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hapax_error err = {0};

	options.poll_ms = INT64_C(3600) * 1000;
	if (hapax_store_open(url, NULL, &shell.store, &err) != HAPAX_OK ||
	    hapax_processor_new(shell.store, &options, &shell.processor, &err) != HAPAX_OK) {
		printf("# %s\n", err.message);
		abort();
	}
	shell.buf = hapax_buf_new(1 << 20);
	return 0;
}

int shell_case_begin(void **state)
{
	(void)state;
	temp_dir_init(&shell.dir);
	return open_on("memory:");
}

static int begin_in_dir(const char *scheme)
{
	char url[256];

	temp_dir_init(&shell.dir);
	snprintf(url, sizeof(url), "%s%s/store", scheme, shell.dir.path);
	return open_on(url);
}

int shell_case_begin_file(void **state)
{
	(void)state;
	return begin_in_dir("file:");
}

int shell_case_begin_sqlite(void **state)
{
	(void)state;
	return begin_in_dir("sqlite:");
}

int shell_case_end(void **state)
{
	(void)state;
	hapax_processor_free(shell.processor);
	hapax_store_close(shell.store);
	hapax_buf_free(shell.buf);
	temp_dir_done(&shell.dir);
	return 0;
}

struct hapax_request shell_case_request(const char *key)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;

	request.key = hapax_bytes_from_text(key);
	return request;
}
