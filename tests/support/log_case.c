/* SPDX-License-Identifier: Apache-2.0 */
#include "support/log_case.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

int log_case_set_up(void **state)
{
	struct store_case *c = calloc(1, sizeof(*c));

	if (!c)
		return -1;
	store_case_begin(c, "file:");
	*state = c;
	return 0;
}

int log_case_tear_down(void **state)
{
	struct store_case *c = *state;

	store_case_done(c);
	free(c);
	return 0;
}

const char *log_case_directory(const struct store_case *c)
{
	return c->url + strlen("file:");
}

void log_case_close(struct store_case *c)
{
	hapax_store_close(c->store);
	c->store = NULL;
}

enum hapax_outcome log_case_check(struct store_case *c, const char *key)
{
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, key);

	assert_int_equal(case_run(c, &op), HAPAX_OK);
	return op.outcome;
}

uint64_t log_case_measure(const char *directory, const char *prefix, unsigned *ret_count)
{
	DIR *dir = opendir(directory);
	uint64_t bytes = 0;

	assert_non_null(dir);
	*ret_count = 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		char path[1024];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		bytes += (uint64_t)st.st_size;
		*ret_count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	}
	closedir(dir);
	return bytes;
}

void log_case_refuses(
	struct store_case *c, const char *url, enum hapax_status status, const char *word)
{
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	assert_int_equal(hapax_store_open(url, &c->options, &store, &err), status);
	assert_null(store);
	if (!strstr(err.message, word))
		fail_msg("\"%s\" lacks \"%s\"", err.message, word);
}
