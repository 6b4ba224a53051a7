/* SPDX-License-Identifier: Apache-2.0 */
/* lmdb.c - LMDB: one writer at a time, each commit synced; MDB_NOOVERWRITE is the check. */
#include <lmdb.h>

#include "contest.h"
#include "durable.h"

static MDB_env *env;
static MDB_dbi dbi;

static void must(int code, const char *what)
{
	if (code != 0)
		contest_fail("%s: %s", what, mdb_strerror(code));
}

static void engine_open(const char *folder, uint64_t threads)
{
	MDB_txn *txn;

	must(mdb_env_create(&env), "create");
	must(mdb_env_set_mapsize(env, (size_t)16 << 30), "map size");
	must(mdb_env_set_maxreaders(env, (unsigned)threads + 16), "readers");
	must(mdb_env_open(env, folder, 0, 0600), "open");
	must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
	must(mdb_dbi_open(txn, NULL, 0, &dbi), "database");
	must(mdb_txn_commit(txn), "commit");
}

static uint64_t engine_mark(uint64_t thread, const char (*keys)[KEY_TEXT_SIZE], uint64_t count)
{
	uint64_t expires = 86400, firsts = 0;
	MDB_txn *txn;

	(void)thread;
	must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
	for (uint64_t i = 0; i < count; i++) {
		MDB_val key = {KEY_TEXT_SIZE, (void *)(uintptr_t)keys[i]};
		MDB_val value = {sizeof(expires), &expires};
		int code = mdb_put(txn, dbi, &key, &value, MDB_NOOVERWRITE);

		if (code != 0 && code != MDB_KEYEXIST)
			must(code, "put");
		firsts += code == 0;
	}
	must(mdb_txn_commit(txn), "commit");
	return firsts;
}

static void engine_close(void)
{
	mdb_env_close(env);
}

int main(int argc, char **argv)
{
	const struct durable_engine engine = {
		.name = "LMDB",
		.version = mdb_version(NULL, NULL, NULL),
		.open = engine_open,
		.mark = engine_mark,
		.close = engine_close,
	};

	return durable_main(argc, argv, &engine);
}
