/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_cluster.c - a ledger in a Redis Cluster of three masters with a replica each
 * (tests/redis/with_cluster), while slots move, scripts are forgotten and connections are cut.
 * Masters that fail: test_redis_failover.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/ext/store_ops.h>
#include <hapax/hapax.h>

#include "base/bytes.h"
#include "base/thread.h"
#include "store/redis/redis_store.h"
#include "store/redis/slot.h"
#include "support/cluster_case.h"
#include "support/fault_net.h"
#include "support/redis_case.h"
#include "support/redis_cluster.h"
#include "support/scale.h"

/* ---------------------------------------------------------------- cases */

/* Slots as Redis counts them: the examples of the Cluster specification. */
static void names_have_slots(void **state)
{
	static const struct {
		const char *name;
		unsigned slot;
	} cases[] = {{"123456789", 12739},    {"{user1000}.following", 3443}, {"foo{}{bar}", 8363},
		     {"foo{{bar}}zap", 4015}, {"foo{bar}{zap}", 5061},        {"", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			hx_redis_slot(hapax_bytes_from_text(cases[i].name)), cases[i].slot);
}

/* What a Cluster cannot do is refused, and what it promises is said. */
static void limits_are_said(void **state)
{
	struct cluster_case *scene = *state;
	struct hapax_store_options options = redis_case_options();
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	enum hapax_outcome outcome;
	struct hapax_op ops[2];
	char keys[2][32], text[256], url[100];
	size_t index;

	hapax_store_guarantee(scene->store, text, sizeof(text));
	assert_non_null(strstr(text, "answers survive a power cut"));
	assert_non_null(strstr(text, "a failover may lose"));
	for (size_t i = 0; i < 2; i++)
		ops[i] = redis_case_op(HAPAX_OP_CLAIM, keys[i], i);
	assert_int_equal(
		hapax_store_claim_all(scene->store, ops, 2, &outcome, &index, &err),
		HAPAX_ERR_UNSUPPORTED);
	options.keys_max = 10;
	assert_int_equal(
		hapax_store_open(scene->url, &options, &store, &err), HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "maxmemory"));
	options.keys_max = 0;
	snprintf(
		url, sizeof(url), "redis://%.*s", (int)strcspn(cluster.masters, ","),
		cluster.masters);
	assert_int_equal(hapax_store_open(url, &options, &store, &err), HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "redis+cluster://"));
}

/* A server of the URL that is down is not missed; one that is all there is, is. */
static void dead_servers_are_passed_over(void **state)
{
	struct cluster_case *scene = *state;
	struct hapax_store_options options = redis_case_options();
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char url[400];

	snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:1,%s", strchr(scene->url, '/') + 2);
	assert_int_equal(hapax_store_open(url, &options, &store, &err), HAPAX_OK);
	assert_true(cluster_case_all_answer(store));
	hapax_store_close(store);
	store = NULL;
	assert_int_equal(
		hapax_store_open("redis+cluster://127.0.0.1:1", &options, &store, &err),
		HAPAX_ERR_UNAVAILABLE);
	assert_null(store);
}

static void hear(
	struct hapax_bytes tenant, struct hapax_bytes group, struct hapax_bytes key, void *context)
{
	_Atomic uint64_t *heard = context;

	if (tenant.size == 7 && group.size == 7 && key.size > 4 && memcmp(key.data, "key ", 4) == 0)
		atomic_fetch_add(heard, 1);
}

/* Ends are told, whichever server they are on and whichever one tells. */
static void ends_are_announced(void **state)
{
	struct cluster_case *scene = *state;
	_Atomic uint64_t heard = 0;
	struct hapax_watcher watcher = {.fn = hear, .context = &heard};

	hapax_store_watch(scene->store, &watcher);
	/* What happens before the servers know of a listener is not notified. */
	for (uint64_t number = 0; atomic_load(&heard) < 300; number++) {
		char key[32];
		struct hapax_op op = redis_case_op(HAPAX_OP_CHECK, key, number);

		assert_int_equal(redis_case_run(scene->store, &op), HAPAX_OK);
	}
	hapax_store_unwatch(scene->store, &watcher);
}

static void forgotten_scripts_are_loaded_again(void **state)
{
	struct cluster_case *scene = *state;
	struct cluster_load load;
	char out[100];

	cluster_load_begin(&load, scene->store);
	for (int i = 0; i < 9; i++) {
		cluster_load_wait(&load, 10);
		redis_cluster_ask(
			&cluster, i % REDIS_CLUSTER_MASTERS, "script flush", out, sizeof(out));
	}
	cluster_load_wait(&load, 10);
	cluster_load_end(&load);
	assert_int_equal(load.wrong, 0);
	assert_int_equal(load.unknown + load.fenced, 0);
	assert_true(load.pairs > 0);
	assert_int_equal(cluster_case_count_done(scene->store), load.pairs);
}

/* Every partition of a master goes to the next one and back, key by key, under load: nothing shows. */
static void slots_move_under_load(void **state)
{
	struct cluster_case *scene = *state;
	char ids[REDIS_CLUSTER_MASTERS][64], command[300];
	static char out[1 << 20];
	struct cluster_load load;
	bool has_moved = true;

	for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
		redis_cluster_ask(&cluster, i, "cluster myid", ids[i], sizeof(ids[i]));
		ids[i][strcspn(ids[i], "\r\n")] = '\0';
	}
	cluster_load_begin(&load, scene->store);
	for (int i = 0; i < 2; i++) {
		snprintf(
			command, sizeof(command),
			"--cluster reshard 127.0.0.1:%d --cluster-from %s --cluster-to %s"
			" --cluster-slots 400 --cluster-yes",
			cluster.ports[0], ids[i], ids[1 - i]);
		/* Servers may need a while to agree on what the last move has changed. */
		for (int tries = 0; tries == 0 || (tries < 60 && !strstr(out, "Moving slot"));
		     tries++)
			redis_cluster_ask(&cluster, 0, command, out, sizeof(out));
		if (strstr(out, "Moving slot") == NULL)
			printf("# %.2000s\n", out);
		has_moved = has_moved && strstr(out, "Moving slot") != NULL;
		cluster_load_wait(&load, 10);
	}
	cluster_load_end(&load);
	assert_true(has_moved);
	printf("# %llu pairs while 800 slots moved\n", (unsigned long long)load.pairs);
	assert_int_equal(load.wrong, 0);
	assert_int_equal(load.unknown + load.fenced, 0);
	assert_true(load.pairs > 0);
	/* I1: all that was acknowledged is there, once. */
	assert_int_equal(cluster_case_count_done(scene->store), load.pairs);
}

static enum hapax_state truth(struct cluster_case *scene, uint64_t number)
{
	char key[32];
	struct hapax_op op = redis_case_op(HAPAX_OP_LOOKUP, key, number);
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	struct hapax_buf *buf = hapax_buf_new(65536);

	op.record = &record;
	op.buf = buf;
	assert_int_equal(redis_case_run(scene->store, &op), HAPAX_OK);
	hapax_buf_free(buf);
	return op.outcome == HAPAX_OUTCOME_FOUND ? record.state : HAPAX_STATE_ABSENT;
}

/* I13: cut before, during and after every message: what is reported is true. */
static void cuts_are_reported_truly(void **state)
{
	struct cluster_case *scene = *state;
	struct hapax_store_options options = redis_case_options();
	int64_t step = scale_is_proof() ? 1 : 53;
	struct hapax_store *faulty = NULL;
	uint64_t number = 0, uncertain = 0, unavailable = 0;
	struct fault_net fault;

	fault_net_init(&fault);
	assert_int_equal(
		hx_redis_open_on(&fault.net, scene->url, &options, &faulty, NULL), HAPAX_OK);
	for (int direction = 0; direction < 2; direction++) {
		_Atomic int64_t *left =
			direction == 0 ? &fault.send_bytes_left : &fault.recv_bytes_left;
		bool is_through = false;

		for (int64_t at = 0; !is_through;) {
			char key[32];
			struct hapax_op op = redis_case_op(HAPAX_OP_CLAIM, key, ++number);
			enum hapax_status status;
			enum hapax_state found;

			assert_true(cluster_case_all_answer(faulty));
			atomic_store(left, at);
			status = redis_case_run(faulty, &op);
			/* A question for the map may have met the cut instead: the same again. */
			if (status != HAPAX_OK)
				at += direction ? 1 + step / 9 : step;
			is_through = atomic_exchange(left, -1) >= 0 && status == HAPAX_OK;
			found = truth(scene, number);
			uncertain += status == HAPAX_ERR_UNCERTAIN;
			unavailable += status == HAPAX_ERR_UNAVAILABLE;
			if (status == HAPAX_OK)
				assert_int_equal(found, HAPAX_STATE_CLAIMED);
			else if (status == HAPAX_ERR_UNAVAILABLE)
				assert_int_equal(found, HAPAX_STATE_ABSENT);
			else
				assert_int_equal(status, HAPAX_ERR_UNCERTAIN);
			if (status != HAPAX_OK) {
				assert_int_equal(redis_case_run(faulty, &op), HAPAX_OK);
				assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
				assert_int_equal(op.attempt, 1);
			}
		}
	}
	hapax_store_close(faulty);
	scale_report("cuts of an exchange with a Redis Cluster", number, 0, true);
	assert_true(uncertain > 3 && unavailable > 3);
}

/* Of three operations on a key the first has an unknown outcome: the others are not done. */
static void nothing_goes_behind_what_is_uncertain(void **state)
{
	enum { OPS = 3 };
	struct cluster_case *scene = *state;
	struct hapax_store_options options = redis_case_options();
	struct hapax_store *faulty = NULL;
	struct hapax_op ops[OPS] = {0};
	struct fault_net fault;
	char key[32];

	fault_net_init(&fault);
	assert_int_equal(
		hx_redis_open_on(&fault.net, scene->url, &options, &faulty, NULL), HAPAX_OK);
	/* A question for the map may have met the cut instead: the same again. */
	for (uint64_t number = 0; ops[0].status != HAPAX_ERR_UNCERTAIN; number++) {
		assert_true(number < 100);
		assert_true(cluster_case_all_answer(faulty));
		for (int i = 0; i < OPS; i++)
			ops[i] = redis_case_op(
				i == 0 ? HAPAX_OP_CLAIM : HAPAX_OP_CHECK, key, number);
		atomic_store(&fault.recv_bytes_left, 0);
		(void)hapax_store_run(faulty, ops, OPS, NULL);
		atomic_store(&fault.recv_bytes_left, -1);
	}
	for (int i = 1; i < OPS; i++)
		assert_int_equal(ops[i].status, HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(redis_case_run(faulty, &ops[0]), HAPAX_OK);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(faulty);
}

/* A store is closed while it asks for the map, because a connection was lost. */
static void closing_does_not_wait_for_the_map(void **state)
{
	struct cluster_case *scene = *state;
	struct hapax_store_options options = redis_case_options();

	for (unsigned i = 0; i < 60; i++) {
		struct hapax_store *store = NULL;
		struct fault_net fault;
		char key[32];
		struct hapax_op op = redis_case_op(HAPAX_OP_LOOKUP, key, i);

		fault_net_init(&fault);
		assert_int_equal(
			hx_redis_open_on(&fault.net, scene->url, &options, &store, NULL), HAPAX_OK);
		atomic_store(&fault.recv_bytes_left, 0);
		assert_int_equal(redis_case_run(store, &op), HAPAX_ERR_UNAVAILABLE);
		/* Sooner or later, so that it comes in between. */
		for (unsigned k = 0; k < 5 * i; k++)
			assert_int_equal(redis_case_run(store, &op), HAPAX_OK);
		hapax_store_close(store);
	}
}

/* ---------------------------------------------------------------- addresses */

/*
 * The servers have other addresses from time to time, as if others restarted them: what they say of
 * themselves is changed on its way, and the old addresses are deaf. Those in the URL stay.
 */
struct move {
	struct hx_net net;
	struct hx_net_ops ops;
	_Atomic unsigned number;    /* 127.N.N.N by its digits */
	_Atomic unsigned made[512]; /* the number when a descriptor was connected */
};

static const char loopback[] = "127.0.0.1";

static void moved_address(unsigned number, char text[sizeof(loopback)])
{
	snprintf(
		text, sizeof(loopback), "127.%u.%u.%u", number / 100 % 10, number / 10 % 10,
		number % 10);
}

static int moved_connect(void *context, int fd, const struct hx_address *address)
{
	struct move *move = context;
	const struct hx_net *system = hx_net_system();
	struct hx_address real = *address;
	struct sockaddr_in *in = (struct sockaddr_in *)&real.storage;
	char host[HX_ADDRESS_HOST_SIZE], now[sizeof(loopback)];

	assert_in_range(fd, 0, 511);
	moved_address(move->number, now);
	hx_address_host(address, host);
	if (strcmp(host, loopback) != 0 && strcmp(host, now) != 0)
		return -ECONNREFUSED;
	atomic_store(&move->made[fd], move->number);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return system->ops->connect(system->context, fd, &real);
}

static ssize_t moved_recv(void *context, int fd, void *data, size_t size)
{
	struct move *move = context;
	const struct hx_net *system = hx_net_system();
	ssize_t count;
	char now[sizeof(loopback)];

	if (atomic_load(&move->made[fd]) != move->number)
		return -ECONNRESET;
	count = system->ops->recv(system->context, fd, data, size);
	moved_address(move->number, now);
	for (char *at = data, *end = at + (count > 0 ? count : 0);
	     (at = memmem(at, (size_t)(end - at), loopback, sizeof(loopback) - 1)) != NULL;
	     at += sizeof(loopback) - 1)
		memcpy(at, now, sizeof(now) - 1);
	return count;
}

/* More addresses than a client has links. */
static void servers_move_to_other_addresses(void **state)
{
	struct cluster_case *scene = *state;
	struct hapax_store_options options = redis_case_options();
	struct hapax_store *store = NULL;
	static struct move move;

	memset(&move, 0, sizeof(move));
	move.ops = *hx_net_system()->ops;
	move.ops.connect = moved_connect;
	move.ops.recv = moved_recv;
	move.net = (struct hx_net){.ops = &move.ops, .context = &move};
	options.timeout_ms = 2000;
	assert_int_equal(hx_redis_open_on(&move.net, scene->url, &options, &store, NULL), HAPAX_OK);
	for (unsigned number = 100; number < 200; number++) {
		move.number = number;
		assert_true(cluster_case_all_answer(store));
	}
	hapax_store_close(store);
}

/* ---------------------------------------------------------------- tokens over a failover */

#define CASE(name) \
	cmocka_unit_test_setup_teardown(name, cluster_case_set_up, cluster_case_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_have_slots),
		CASE(limits_are_said),
		CASE(dead_servers_are_passed_over),
		CASE(ends_are_announced),
		CASE(forgotten_scripts_are_loaded_again),
		CASE(slots_move_under_load),
		CASE(cuts_are_reported_truly),
		CASE(nothing_goes_behind_what_is_uncertain),
		CASE(closing_does_not_wait_for_the_map),
		CASE(servers_move_to_other_addresses),
	};

	redis_cluster_find(&cluster);
	return cmocka_run_group_tests_name("redis_cluster", tests, NULL, NULL);
}
