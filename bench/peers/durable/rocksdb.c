/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocksdb.c - RocksDB: a Get, then a synced write of what was absent. As installed, or
 * with --engine tuned: log files used again, no concurrent memtable, no spinning.
 */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contest.h"
#include "durable.h"

static rocksdb_t *db;
static rocksdb_options_t *options;
static rocksdb_writeoptions_t *write_options;
static rocksdb_readoptions_t *read_options;
static int is_tuned;

static void must(char *error, const char *what)
{
	if (error != NULL)
		contest_fail("%s: %s", what, error);
}

static void engine_open(const char *folder, uint64_t threads)
{
	char path[600];
	char *error = NULL;

	(void)threads;
	snprintf(path, sizeof(path), "%s/db", folder);
	options = rocksdb_options_create();
	rocksdb_options_set_create_if_missing(options, 1);
	if (is_tuned) {
		rocksdb_options_set_recycle_log_file_num(options, 4);
		rocksdb_options_set_allow_concurrent_memtable_write(options, 0);
		rocksdb_options_set_enable_write_thread_adaptive_yield(options, 0);
	}
	write_options = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(write_options, 1);
	read_options = rocksdb_readoptions_create();
	db = rocksdb_open(options, path, &error);
	must(error, "open");
}

static uint64_t engine_mark(uint64_t thread, const char (*keys)[KEY_TEXT_SIZE], uint64_t count)
{
	rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
	uint64_t expires = 86400, firsts = 0;
	char *error = NULL;

	(void)thread;
	for (uint64_t i = 0; i < count; i++) {
		size_t size = 0;
		char *value = rocksdb_get(db, read_options, keys[i], KEY_TEXT_SIZE, &size, &error);

		must(error, "get");
		if (value == NULL) {
			rocksdb_writebatch_put(
				batch, keys[i], KEY_TEXT_SIZE, (const char *)&expires,
				sizeof(expires));
			firsts++;
		}
		free(value);
	}
	rocksdb_write(db, write_options, batch, &error);
	must(error, "write");
	rocksdb_writebatch_destroy(batch);
	return firsts;
}

static void engine_close(void)
{
	rocksdb_close(db);
	rocksdb_options_destroy(options);
	rocksdb_writeoptions_destroy(write_options);
	rocksdb_readoptions_destroy(read_options);
}

static int engine_option(const char *text)
{
	is_tuned = strcmp(text, "tuned") == 0;
	return is_tuned || strcmp(text, "default") == 0;
}

int main(int argc, char **argv)
{
	const struct durable_engine engine = {
		.name = "RocksDB",
		.version = ROCKSDB_VERSION,
		.open = engine_open,
		.mark = engine_mark,
		.close = engine_close,
		.option = engine_option,
	};

	return durable_main(argc, argv, &engine);
}
