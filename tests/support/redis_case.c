/* SPDX-License-Identifier: Apache-2.0 */
#include "support/redis_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "store/redis/redis_store.h"
#include "support/fault_net.h"

char redis_case_prefix[64];

void redis_case_url(char *url, size_t size, const char *more)
{
	(void)snprintf(
		url, size, "redis+unix:%s?prefix=%s%s", getenv("HAPAX_TEST_REDIS"),
		redis_case_prefix, more);
}

struct hapax_store_options redis_case_options(void)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.timeout_ms = REDIS_CASE_TIMEOUT_MS;
	return options;
}

int redis_case_set_up(void **state)
{
	static unsigned scenes;
	struct redis_case *scene = test_calloc(1, sizeof(*scene));
	struct hapax_store_options options = redis_case_options();
	struct hapax_error err = {0};

	(void)snprintf(redis_case_prefix, sizeof(redis_case_prefix), "test-%u", scenes++);
	redis_case_url(scene->url, sizeof(scene->url), "");
	fault_net_init(&scene->fault);
	*state = scene;
	if (hx_redis_open_on(&scene->fault.net, scene->url, &options, &scene->faulty, &err) ||
	    hapax_store_open(scene->url, &options, &scene->sound, &err)) {
		printf("# %s\n", err.message);
		return -1;
	}
	return 0;
}

int redis_case_tear_down(void **state)
{
	struct redis_case *scene = *state;

	hapax_store_close(scene->faulty);
	hapax_store_close(scene->sound);
	test_free(scene);
	return 0;
}

const unsigned char redis_case_attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {7};

struct hapax_op redis_case_op(enum hapax_op_type type, char key[32], uint64_t number)
{
	int size = snprintf(key, 32, "key %llu", (unsigned long long)number);

	return (struct hapax_op){
		.type = type, .key = {key, (size_t)size}, .attempt_id = redis_case_attempt_id};
}

enum hapax_status redis_case_run(struct hapax_store *store, struct hapax_op *op)
{
	return hapax_store_run(store, op, 1, NULL);
}
