/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shell_case.h - one store with one processor, for tests of hapax_process() with real threads.
 */
#ifndef TEST_SUPPORT_SHELL_CASE_H
#define TEST_SUPPORT_SHELL_CASE_H

#include <hapax/hapax.h>

#include "support/temp_dir.h"

struct shell_case {
	struct temp_dir dir;
	struct hapax_store *store;
	struct hapax_processor *processor;
	struct hapax_buf *buf;
};

/* The case of the test that runs. */
extern struct shell_case shell;

/*
 * For cmocka, on memory:, file: and sqlite:. The processor polls once an hour: no waiter gets its
 * answer by asking again.
 */
int shell_case_begin(void **state);
int shell_case_begin_file(void **state);
int shell_case_begin_sqlite(void **state);
int shell_case_end(void **state);

struct hapax_request shell_case_request(const char *key);

#define SHELL_CASE(name) cmocka_unit_test_setup_teardown(name, shell_case_begin, shell_case_end)
#define SHELL_CASE_FILE(name) \
	cmocka_unit_test_setup_teardown(name, shell_case_begin_file, shell_case_end)
#define SHELL_CASE_SQLITE(name) \
	cmocka_unit_test_setup_teardown(name, shell_case_begin_sqlite, shell_case_end)

#endif
