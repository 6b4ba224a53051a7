/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_cluster_tls.c - rediss+cluster:// against a Cluster that speaks TLS only, also among
 * its servers; see tests/redis/with_cluster --tls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

enum { KEYS = 600, TIMEOUT_MS = 20000 };

static enum hapax_status open_at(
	const char *scheme, const char *hosts, const char *ca, struct hapax_store **ret_store,
	struct hapax_error *err)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	char url[600];

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.timeout_ms = TIMEOUT_MS;
	snprintf(url, sizeof(url), "%s://%s%s%s", scheme, hosts, ca ? "?ca=" : "", ca ? ca : "");
	return hapax_store_open(url, &options, ret_store, err);
}

/* Keys in all partitions, so with all masters, whose addresses the first one told. */
static void tls_reaches_every_master(void **state)
{
	static struct hapax_op ops[KEYS];
	static char keys[KEYS][32];
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char first[64];

	(void)state;
	snprintf(
		first, sizeof(first), "%.*s", (int)strcspn(getenv("HAPAX_TEST_CLUSTER"), ","),
		getenv("HAPAX_TEST_CLUSTER"));
	if (open_at("rediss+cluster", first, getenv("HAPAX_TEST_CLUSTER_CA"), &store, &err) !=
	    HAPAX_OK)
		fail_msg("%s", err.message);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < KEYS; i++) {
			int size = snprintf(keys[i], sizeof(keys[i]), "key %zu", i);

			ops[i] = (struct hapax_op){
				.type = HAPAX_OP_CHECK, .key = {keys[i], (size_t)size}};
		}
		assert_int_equal(hapax_store_run(store, ops, KEYS, NULL), HAPAX_OK);
		for (size_t i = 0; i < KEYS; i++)
			assert_int_equal(
				ops[i].outcome,
				round == 0 ? HAPAX_OUTCOME_ACQUIRED : HAPAX_OUTCOME_REPLAY);
	}
	assert_int_equal(hapax_store_stats(store, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(stats.done, KEYS);
	hapax_store_close(store);
}

static void strangers_are_not_trusted(void **state)
{
	const char *hosts = getenv("HAPAX_TEST_CLUSTER");
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	(void)state;
	/* No authority that the system trusts vouches for them. */
	assert_int_equal(
		open_at("rediss+cluster", hosts, NULL, &store, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "certificate"));
	/* Without TLS at ports that want it. */
	assert_int_not_equal(open_at("redis+cluster", hosts, NULL, &store, &err), HAPAX_OK);
	assert_true(err.message[0] != '\0');
	/* A server of a Cluster, as if it were alone. */
	char first[64];
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(hosts, ","), hosts);
	assert_int_equal(
		open_at("rediss", first, getenv("HAPAX_TEST_CLUSTER_CA"), &store, &err),
		HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "rediss+cluster://"));
	assert_null(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tls_reaches_every_master),
		cmocka_unit_test(strangers_are_not_trusted),
	};

	return cmocka_run_group_tests_name("redis_cluster_tls", tests, NULL, NULL);
}
