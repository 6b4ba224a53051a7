/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_directory.c - the directory of a file: store: one owner, directories that are
 * none, and what becomes of them while a store is open.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <hapax/fsck.h>

#include "base/thread.h"
#include "support/log_case.h"
#include "support/scale.h"

static void second_opener_is_told_who_owns_it(void **state)
{
	struct store_case *c = *state;
	struct hapax_store *second = NULL;
	struct hapax_error err = {0};
	char pid[32];

	snprintf(pid, sizeof(pid), "in use by process %ld", (long)getpid());
	assert_int_equal(
		hapax_store_open(c->url, &c->options, &second, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, pid));
	assert_non_null(strstr(err.message, "a file: store has one owner"));
	assert_null(second);
	/* The owner is not disturbed, and a later opener is welcome. */
	assert_int_equal(log_case_check(c, "k"), HAPAX_OUTCOME_ACQUIRED);
	store_case_reopen(c);
	assert_int_equal(log_case_check(c, "k"), HAPAX_OUTCOME_REPLAY);
}

static void write_file(const char *directory, const char *name, const char *text)
{
	char path[1024];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fputs(text, file) >= 0, 1);
	assert_int_equal(fclose(file), 0);
}

static void file_holds(const char *directory, const char *name, const char *text)
{
	char path[1024], found[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(found, sizeof(found), file));
	assert_int_equal(fclose(file), 0);
	assert_string_equal(found, text);
}

/* Bad input: a LOCK of another program is not touched, and if there is none, none is made. */
static void locks_of_others_are_left_alone(void **state)
{
	struct store_case *c = *state;
	struct hapax_fsck fsck = HAPAX_FSCK_INIT;
	struct hapax_store *next;
	char url[768], path[512];
	unsigned count;

	snprintf(path, sizeof(path), "%s/other", c->dir.path);
	snprintf(url, sizeof(url), "file:%s", path);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(path, "LOCK", "not yours");
	/* Alone, too, it does not become a store. */
	log_case_refuses(c, url, HAPAX_ERR_INVALID, "other files");
	assert_int_equal(hapax_fsck(path, &fsck, NULL), HAPAX_ERR_INVALID);
	file_holds(path, "LOCK", "not yours");
	/* Neither does one that only begins like ours. */
	write_file(path, "LOCK", "123\nhttp://localhost:1\nnot yours");
	log_case_refuses(c, url, HAPAX_ERR_INVALID, "other files");
	write_file(path, "letter.txt", "not yours");
	write_file(path, "LOCK", "123\n");
	log_case_refuses(c, url, HAPAX_ERR_INVALID, "other files");
	assert_int_equal(hapax_fsck(path, &fsck, NULL), HAPAX_ERR_INVALID);
	file_holds(path, "LOCK", "123\n");

	/* A daemon that was killed before it wrote STORE left its URL: the next open goes on. */
	snprintf(path, sizeof(path), "%s/killed", c->dir.path);
	snprintf(url, sizeof(url), "file:%s", path);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(path, "LOCK", "123\nhttp://localhost:1\n");
	assert_int_equal(hapax_store_open(url, &c->options, &next, NULL), HAPAX_OK);
	hapax_store_close(next);

	snprintf(path, sizeof(path), "%s/bare", c->dir.path);
	snprintf(url, sizeof(url), "file:%s", path);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(path, "letter.txt", "not yours");
	log_case_refuses(c, url, HAPAX_ERR_INVALID, "other files");
	assert_int_equal(hapax_fsck(path, &fsck, NULL), HAPAX_ERR_INVALID);
	log_case_measure(path, "LOCK", &count);
	assert_int_equal(count, 0);
}

/* The process changes its working directory: the store stays where it is. */
static void relative_directory_stays_where_it_is(void **state)
{
	struct store_case *c = *state;
	char *before = getcwd(NULL, 0);
	char other[400];
	unsigned count;

	assert_non_null(before);
	log_case_close(c);
	assert_int_equal(chdir(c->dir.path), 0);
	snprintf(c->url, sizeof(c->url), "file:relative");
	c->options.segment_bytes = 16384;
	store_case_open(c);
	/* Another store of that name, where the process goes. */
	snprintf(other, sizeof(other), "%s/elsewhere", c->dir.path);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(chdir(other), 0);
	assert_int_equal(mkdir("relative", 0700), 0);
	write_file("relative", "log-0000000000000001.seg", "not yours");
	for (unsigned i = 0; i < 12; i++) {
		char key[24];

		snprintf(key, sizeof(key), "key %u", i);
		assert_int_equal(log_case_check(c, key), HAPAX_OUTCOME_ACQUIRED);
	}
	case_sweep(c);
	file_holds("relative", "log-0000000000000001.seg", "not yours");
	log_case_measure("relative", "", &count);
	assert_int_equal(count, 1);
	log_case_close(c);
	assert_int_equal(chdir(c->dir.path), 0);
	store_case_open(c);
	assert_int_equal(log_case_check(c, "key 11"), HAPAX_OUTCOME_REPLAY);
	log_case_close(c);
	assert_int_equal(chdir(before), 0);
	snprintf(c->url, sizeof(c->url), "file:%.150s/relative", c->dir.path);
	store_case_open(c);
	free(before);
}

/* Bad input: a folder that is not a store is left alone. */
static void other_directories_are_refused(void **state)
{
	struct store_case *c = *state;
	char url[768], path[512];
	unsigned count;

	snprintf(path, sizeof(path), "%s/other", c->dir.path);
	snprintf(url, sizeof(url), "file:%s", path);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(path, "letter.txt", "not yours");
	log_case_refuses(c, url, HAPAX_ERR_INVALID, "other files");
	log_case_measure(path, "letter", &count);
	assert_int_equal(count, 1);
	log_case_measure(path, "log-", &count);
	assert_int_equal(count, 0);

	write_file(c->dir.path, "file", "a file");
	snprintf(url, sizeof(url), "file:%s/file", c->dir.path);
	log_case_refuses(c, url, HAPAX_ERR_INVALID, "file");
	log_case_refuses(c, "file:", HAPAX_ERR_INVALID, "directory");

	/* Segments without STORE: parts of a backup. */
	log_case_close(c);
	snprintf(path, sizeof(path), "%s/STORE", log_case_directory(c));
	assert_int_equal(unlink(path), 0);
	log_case_refuses(c, c->url, HAPAX_ERR_CORRUPT, "STORE");
	write_file(log_case_directory(c), "STORE", "garbage");
	log_case_refuses(c, c->url, HAPAX_ERR_CORRUPT, "STORE");
	/* So that tear down has something to close. */
	snprintf(c->url, sizeof(c->url), "file:%s/new", c->dir.path);
	store_case_open(c);
}

static void read_only_directory_is_refused(void **state)
{
	struct store_case *c = *state;

	if (geteuid() == 0) {
		/* Nothing is read-only to root; a missing directory it is, then. */
		struct hapax_error err = {0};
		struct hapax_store *store = NULL;

		assert_true(
			hapax_store_open("file:/proc/hapax", &c->options, &store, &err) !=
			HAPAX_OK);
		assert_true(err.message[0] != '\0');
		return;
	}
	log_case_close(c);
	assert_int_equal(chmod(log_case_directory(c), 0500), 0);
	log_case_refuses(c, c->url, HAPAX_ERR_UNAVAILABLE, "must be writable");
	assert_int_equal(chmod(log_case_directory(c), 0700), 0);
	store_case_open(c);
}

/* What is written to a directory that is gone would be gone as well: the store says so. */
static void removed_directory_is_noticed(void **state)
{
	struct store_case *c = *state;
	double begun = scale_seconds();
	struct hapax_op op;
	char command[600];

	c->options.flags = 0;
	store_case_reopen(c);
	assert_int_equal(log_case_check(c, "k"), HAPAX_OUTCOME_ACQUIRED);
	snprintf(command, sizeof(command), "rm -r '%s'", log_case_directory(c));
	assert_int_equal(system(command), 0);
	/* The keeper has a clock of its own: a second or so, a minute at worst. */
	do {
		op = case_op(c, HAPAX_OP_CHECK, "l");
		assert_true(scale_seconds() - begun < 60);
		hx_thread_yield();
	} while (case_run(c, &op) == HAPAX_OK);
	assert_int_equal(op.status, HAPAX_ERR_FAILED);
}

/* Nor is another directory of the same name, store or not, the one that was opened. */
static void exchanged_directory_is_noticed(void **state)
{
	struct store_case *c = *state;
	double begun = scale_seconds();
	struct hapax_op op;
	char command[2000];

	c->options.flags = 0;
	store_case_reopen(c);
	assert_int_equal(log_case_check(c, "k"), HAPAX_OUTCOME_ACQUIRED);
	snprintf(
		command, sizeof(command),
		"cp -r '%s' '%s.new' && mv '%s' '%s.old' && mv '%s.new' '%s'",
		log_case_directory(c), log_case_directory(c), log_case_directory(c),
		log_case_directory(c), log_case_directory(c), log_case_directory(c));
	assert_int_equal(system(command), 0);
	do {
		op = case_op(c, HAPAX_OP_CHECK, "l");
		assert_true(scale_seconds() - begun < 60);
		hx_thread_yield();
	} while (case_run(c, &op) == HAPAX_OK);
	assert_int_equal(op.status, HAPAX_ERR_FAILED);
}

#define DIRECTORY_TEST(name) \
	cmocka_unit_test_setup_teardown(name, log_case_set_up, log_case_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIRECTORY_TEST(second_opener_is_told_who_owns_it),
		DIRECTORY_TEST(other_directories_are_refused),
		DIRECTORY_TEST(locks_of_others_are_left_alone),
		DIRECTORY_TEST(relative_directory_stays_where_it_is),
		DIRECTORY_TEST(read_only_directory_is_refused),
		DIRECTORY_TEST(removed_directory_is_noticed),
		DIRECTORY_TEST(exchanged_directory_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
