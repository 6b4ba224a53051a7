/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "store/redis/redis_store.h"
#include "support/fault_net.h"

/* test_redis_tls.c - rediss:// against a real server; see tests/redis/with_redis --tls. */

static enum hapax_status open_at(
	const struct hx_net *net, const char *scheme, const char *host, const char *ca,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	char url[500];

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.timeout_ms = 20000;
	(void)snprintf(
		url, sizeof(url), "%s://%s:%s%s%s", scheme, host, getenv("HAPAX_TEST_REDIS_TLS"),
		ca ? "?ca=" : "", ca ? ca : "");
	return hx_redis_open_on(net, url, &options, ret_store, err);
}

/* Claim, complete with a body of that size, and read it back. */
static void round_trip(struct hapax_store *store, const char *key, size_t size)
{
	unsigned char *body = malloc(size + 1);
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_record record = {0};
	struct hapax_buf *buf = hapax_buf_new(1 << 20);
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, size}};
	struct hapax_op op = {
		.type = HAPAX_OP_CLAIM,
		.key = hapax_bytes_from_text(key),
		.attempt_id = attempt_id};

	assert_non_null(body);
	for (size_t i = 0; i < size; i++)
		body[i] = (unsigned char)(i * 31 + i / 251);
	hapax_attempt_id(attempt_id);
	assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	op.type = HAPAX_OP_COMPLETE;
	op.result = &result;
	assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
	op = (struct hapax_op){
		.type = HAPAX_OP_LOOKUP,
		.key = hapax_bytes_from_text(key),
		.record = &record,
		.buf = buf};
	assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_FOUND);
	assert_int_equal(record.result.body.size, size);
	if (size)
		assert_memory_equal(record.result.body.data, body, size);
	hapax_buf_free(buf);
	free(body);
}

static void tls_carries_operations(void **state)
{
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	(void)state;
	if (open_at(hx_net_system(), "rediss", "localhost", getenv("HAPAX_TEST_REDIS_CA"), &store,
		    &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	round_trip(store, "empty", 0);
	round_trip(store, "small", 100);
	round_trip(store, "large", 250000);
	hapax_store_close(store);
	/* By address: the certificate names that too. */
	assert_int_equal(
		open_at(hx_net_system(), "rediss", "127.0.0.1", getenv("HAPAX_TEST_REDIS_CA"),
			&store, &err),
		HAPAX_OK);
	hapax_store_close(store);
}

/* Records in pieces, the kernel saying "not now" in between: the handshake too. */
static void pieces_make_no_difference(void **state)
{
	static const size_t sizes[] = {1, 7, 1000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fault_net fault;
		struct hapax_store *store = NULL;
		struct hapax_error err = {0};
		char key[32];

		fault_net_init(&fault);
		fault.send_size_max = sizes[i];
		fault.recv_size_max = sizes[i];
		fault.refuses_every_second = true;
		if (open_at(&fault.net, "rediss", "localhost", getenv("HAPAX_TEST_REDIS_CA"),
			    &store, &err) != HAPAX_OK)
			fail_msg("%s", err.message);
		(void)snprintf(key, sizeof(key), "pieces of %zu", sizes[i]);
		round_trip(store, key, 2000);
		hapax_store_close(store);
	}
}

static void strangers_are_not_trusted(void **state)
{
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	(void)state;
	/* No authority that the system trusts vouches for it. */
	assert_int_equal(
		open_at(hx_net_system(), "rediss", "localhost", NULL, &store, &err),
		HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "certificate"));
	/* The right certificate at another address. */
	assert_int_equal(
		open_at(hx_net_system(), "rediss", "127.0.0.2", getenv("HAPAX_TEST_REDIS_CA"),
			&store, &err),
		HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "certificate"));
	/* Without TLS at a port that wants it. */
	assert_int_not_equal(
		open_at(hx_net_system(), "redis", "localhost", NULL, &store, &err), HAPAX_OK);
	assert_true(err.message[0] != '\0');
	/* A file that holds no authority. */
	assert_int_equal(
		open_at(hx_net_system(), "rediss", "localhost", "/dev/null", &store, &err),
		HAPAX_ERR_INVALID);
	assert_null(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tls_carries_operations),
		cmocka_unit_test(pieces_make_no_difference),
		cmocka_unit_test(strangers_are_not_trusted),
	};

	return cmocka_run_group_tests_name("redis_tls", tests, NULL, NULL);
}
