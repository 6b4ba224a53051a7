/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_cluster.c - a ledger in a Redis Cluster of three masters with a replica each
 * (tests/redis/with_cluster), while slots move, scripts are forgotten, connections are cut and
 * masters fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hapax/ext/store_ops.h>
#include <hapax/hapax.h>

#include "base/bytes.h"
#include "base/thread.h"
#include "store/redis/redis_store.h"
#include "store/redis/slot.h"
#include "support/fault_net.h"
#include "support/redis_cluster.h"
#include "support/scale.h"

enum { TIMEOUT_MS = 20000, WORKERS = 4, MASTERS = REDIS_CLUSTER_MASTERS };

static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {7};

struct scene {
	struct hapax_store *store;
	char url[400];
};

static struct redis_cluster cluster;

static struct hapax_store_options plain_options(void)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.timeout_ms = TIMEOUT_MS;
	return options;
}

static int set_up(void **state)
{
	static unsigned scenes;
	struct scene *scene = test_calloc(1, sizeof(*scene));
	struct hapax_store_options options = plain_options();
	struct hapax_error err = {0};

	*state = scene;
	snprintf(
		scene->url, sizeof(scene->url), "redis+cluster://%s?prefix=test-%u",
		cluster.masters, scenes++);
	if (hapax_store_open(scene->url, &options, &scene->store, &err) == HAPAX_OK)
		return 0;
	printf("# %s\n", err.message);
	return -1;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	hapax_store_close(scene->store);
	test_free(scene);
	return 0;
}

static struct hapax_op make_op(enum hapax_op_type type, char *key, uint64_t number)
{
	int size = snprintf(key, 32, "key %llu", (unsigned long long)number);

	return (struct hapax_op){
		.type = type, .key = {key, (size_t)size}, .attempt_id = attempt_id};
}

static enum hapax_status run(struct hapax_store *store, struct hapax_op *op)
{
	return hapax_store_run(store, op, 1, NULL);
}

/* ---------------------------------------------------------------- load */

/* Threads that claim and complete one new key after the other until they are told to stop. */
struct load {
	struct hapax_store *store;
	_Atomic bool stops;
	_Atomic uint64_t pairs;
	_Atomic uint64_t unknown; /* ended UNCERTAIN or UNAVAILABLE */
	_Atomic uint64_t fenced;  /* a claim that the server has forgotten */
	_Atomic uint64_t wrong;   /* anything else than these, and than what is right */
	struct hx_thread threads[WORKERS];
	_Atomic unsigned started;
};

static bool is_unknown(enum hapax_status status)
{
	return status == HAPAX_ERR_UNCERTAIN || status == HAPAX_ERR_UNAVAILABLE;
}

static void work(void *arg)
{
	struct load *load = arg;
	uint64_t number = (uint64_t)(atomic_fetch_add(&load->started, 1) + 1) << 32;

	for (; !atomic_load(&load->stops); number++) {
		char key[32];
		struct hapax_op op = make_op(HAPAX_OP_CLAIM, key, number);
		bool is_right;

		(void)run(load->store, &op);
		is_right = op.status == HAPAX_OK && op.outcome == HAPAX_OUTCOME_ACQUIRED;
		if (is_right) {
			op = (struct hapax_op){
				.type = HAPAX_OP_COMPLETE, .key = op.key, .token = op.token};
			(void)run(load->store, &op);
			is_right = op.status == HAPAX_OK && op.outcome == HAPAX_OUTCOME_APPLIED;
		}
		if (is_right)
			atomic_fetch_add(&load->pairs, 1);
		else if (is_unknown(op.status))
			atomic_fetch_add(&load->unknown, 1);
		else if (op.status == HAPAX_ERR_FENCED)
			atomic_fetch_add(&load->fenced, 1);
		else if (atomic_fetch_add(&load->wrong, 1) == 0)
			printf("# key %llu: %s ended %s, %s\n", (unsigned long long)number,
			       hapax_op_type_name(op.type), hapax_status_name(op.status),
			       hapax_outcome_name(op.outcome));
	}
}

static void load_begin(struct load *load, struct hapax_store *store)
{
	*load = (struct load){.store = store};
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(
			hx_thread_start(&load->threads[i], work, load, "load", NULL), HAPAX_OK);
}

static void load_end(struct load *load)
{
	atomic_store(&load->stops, true);
	for (int i = 0; i < WORKERS; i++)
		hx_thread_join(&load->threads[i]);
}

/* Until so many more are done. */
static void wait_for_pairs(struct load *load, uint64_t pairs)
{
	uint64_t end = atomic_load(&load->pairs) + pairs;

	while (atomic_load(&load->pairs) < end && atomic_load(&load->wrong) == 0)
		sched_yield();
}

static uint64_t count_done(struct hapax_store *store)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	assert_int_equal(hapax_store_stats(store, &stats, NULL, NULL, NULL), HAPAX_OK);
	return stats.done;
}

/* Until every one of many keys, in all partitions, is answered: true. */
static bool all_answer(struct hapax_store *store)
{
	enum { KEYS = 600 };
	static struct hapax_op ops[KEYS];
	static char keys[KEYS][32];

	for (int tries = 0; tries < 40; tries++) {
		size_t bad = 0;

		for (size_t i = 0; i < KEYS; i++)
			ops[i] = make_op(HAPAX_OP_LOOKUP, keys[i], i);
		(void)hapax_store_run(store, ops, KEYS, NULL);
		for (size_t i = 0; i < KEYS; i++)
			bad += ops[i].status != HAPAX_OK;
		if (bad == 0)
			return true;
	}
	return false;
}

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
	struct scene *scene = *state;
	struct hapax_store_options options = plain_options();
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
		ops[i] = make_op(HAPAX_OP_CLAIM, keys[i], i);
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
	struct scene *scene = *state;
	struct hapax_store_options options = plain_options();
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char url[400];

	snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:1,%s", strchr(scene->url, '/') + 2);
	assert_int_equal(hapax_store_open(url, &options, &store, &err), HAPAX_OK);
	assert_true(all_answer(store));
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
	struct scene *scene = *state;
	_Atomic uint64_t heard = 0;
	struct hapax_watcher watcher = {.fn = hear, .context = &heard};

	hapax_store_watch(scene->store, &watcher);
	/* What happens before the servers know of a listener is not notified. */
	for (uint64_t number = 0; atomic_load(&heard) < 300; number++) {
		char key[32];
		struct hapax_op op = make_op(HAPAX_OP_CHECK, key, number);

		assert_int_equal(run(scene->store, &op), HAPAX_OK);
	}
	hapax_store_unwatch(scene->store, &watcher);
}

static void forgotten_scripts_are_loaded_again(void **state)
{
	struct scene *scene = *state;
	struct load load;
	char out[100];

	load_begin(&load, scene->store);
	for (int i = 0; i < 9; i++) {
		wait_for_pairs(&load, 10);
		redis_cluster_ask(&cluster, i % MASTERS, "script flush", out, sizeof(out));
	}
	wait_for_pairs(&load, 10);
	load_end(&load);
	assert_int_equal(load.wrong, 0);
	assert_int_equal(load.unknown + load.fenced, 0);
	assert_true(load.pairs > 0);
	assert_int_equal(count_done(scene->store), load.pairs);
}

/* Every partition of a master goes to the next one and back, key by key, under load: nothing shows. */
static void slots_move_under_load(void **state)
{
	struct scene *scene = *state;
	char ids[MASTERS][64], command[300];
	static char out[1 << 20];
	struct load load;
	bool has_moved = true;

	for (int i = 0; i < MASTERS; i++) {
		redis_cluster_ask(&cluster, i, "cluster myid", ids[i], sizeof(ids[i]));
		ids[i][strcspn(ids[i], "\r\n")] = '\0';
	}
	load_begin(&load, scene->store);
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
		wait_for_pairs(&load, 10);
	}
	load_end(&load);
	assert_true(has_moved);
	printf("# %llu pairs while 800 slots moved\n", (unsigned long long)load.pairs);
	assert_int_equal(load.wrong, 0);
	assert_int_equal(load.unknown + load.fenced, 0);
	assert_true(load.pairs > 0);
	/* I1: all that was acknowledged is there, once. */
	assert_int_equal(count_done(scene->store), load.pairs);
}

static enum hapax_state truth(struct scene *scene, uint64_t number)
{
	char key[32];
	struct hapax_op op = make_op(HAPAX_OP_LOOKUP, key, number);
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	struct hapax_buf *buf = hapax_buf_new(65536);

	op.record = &record;
	op.buf = buf;
	assert_int_equal(run(scene->store, &op), HAPAX_OK);
	hapax_buf_free(buf);
	return op.outcome == HAPAX_OUTCOME_FOUND ? record.state : HAPAX_STATE_ABSENT;
}

/* I13: cut before, during and after every message: what is reported is true. */
static void cuts_are_reported_truly(void **state)
{
	struct scene *scene = *state;
	struct hapax_store_options options = plain_options();
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
			struct hapax_op op = make_op(HAPAX_OP_CLAIM, key, ++number);
			enum hapax_status status;
			enum hapax_state found;

			assert_true(all_answer(faulty));
			atomic_store(left, at);
			status = run(faulty, &op);
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
				assert_int_equal(run(faulty, &op), HAPAX_OK);
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
	struct scene *scene = *state;
	struct hapax_store_options options = plain_options();
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
		assert_true(all_answer(faulty));
		for (int i = 0; i < OPS; i++)
			ops[i] = make_op(i == 0 ? HAPAX_OP_CLAIM : HAPAX_OP_CHECK, key, number);
		atomic_store(&fault.recv_bytes_left, 0);
		(void)hapax_store_run(faulty, ops, OPS, NULL);
		atomic_store(&fault.recv_bytes_left, -1);
	}
	for (int i = 1; i < OPS; i++)
		assert_int_equal(ops[i].status, HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(run(faulty, &ops[0]), HAPAX_OK);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(faulty);
}

/* A store is closed while it asks for the map, because a connection was lost. */
static void closing_does_not_wait_for_the_map(void **state)
{
	struct scene *scene = *state;
	struct hapax_store_options options = plain_options();

	for (unsigned i = 0; i < 60; i++) {
		struct hapax_store *store = NULL;
		struct fault_net fault;
		char key[32];
		struct hapax_op op = make_op(HAPAX_OP_LOOKUP, key, i);

		fault_net_init(&fault);
		assert_int_equal(
			hx_redis_open_on(&fault.net, scene->url, &options, &store, NULL), HAPAX_OK);
		atomic_store(&fault.recv_bytes_left, 0);
		assert_int_equal(run(store, &op), HAPAX_ERR_UNAVAILABLE);
		/* Sooner or later, so that it comes in between. */
		for (unsigned k = 0; k < 5 * i; k++)
			assert_int_equal(run(store, &op), HAPAX_OK);
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
	struct scene *scene = *state;
	struct hapax_store_options options = plain_options();
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
		assert_true(all_answer(store));
	}
	hapax_store_close(store);
}

/* I5: a token of each of many keys; all larger than the last ones. */
struct tokens {
	uint64_t last[200];
};

/* Repeat one and the same call until its answer is certain, as everybody has to. */
static void run_until_certain(struct hapax_store *store, struct hapax_op *op)
{
	struct hapax_op call = *op;

	do {
		*op = call;
		(void)run(store, op);
	} while (is_unknown(op->status));
	assert_int_equal(op->status, HAPAX_OK);
}

static void tokens_rise(struct hapax_store *store, struct tokens *tokens)
{
	for (size_t i = 0; i < 200; i++) {
		char key[32];
		struct hapax_op op = make_op(HAPAX_OP_FORGET, key, 1000000 + i);

		op.flags = HAPAX_OP_FORCE;
		run_until_certain(store, &op);
		op = make_op(HAPAX_OP_CLAIM, key, 1000000 + i);
		run_until_certain(store, &op);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_true(op.token > tokens->last[i]);
		tokens->last[i] = op.token;
	}
}

/* Wait until a server says that it is a master, or a replica. */
static void wait_for_role(int number, const char *role)
{
	char out[400];

	for (int i = 0; i < 2400; i++) {
		const struct timespec pause = {.tv_nsec = 50000000};

		redis_cluster_ask(&cluster, number, "info replication", out, sizeof(out));
		if (strstr(out, role))
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("no server became %s", role);
}

/* A failover that is asked for waits until the replica has all: nothing is lost, nothing shows (I1). */
static void planned_failover_loses_nothing(void **state)
{
	struct scene *scene = *state;
	struct tokens tokens = {{0}};
	struct load load;

	tokens_rise(scene->store, &tokens);
	load_begin(&load, scene->store);
	wait_for_pairs(&load, 100);
	redis_cluster_tell(&cluster, MASTERS + 2, "cluster failover");
	wait_for_role(MASTERS + 2, "role:master");
	wait_for_pairs(&load, 100);
	load_end(&load);
	assert_int_equal(load.wrong, 0);
	assert_int_equal(load.unknown + load.fenced, 0);
	/* And the claims of tokens_rise(). */
	assert_int_equal(count_done(scene->store), load.pairs);
	tokens_rise(scene->store, &tokens);
}

/*
 * A master stops, its replica takes over, the old master comes back as a replica. Every
 * operation ends; afterwards all partitions answer and tokens have gone on rising (I5). What the
 * old master had acknowledged and not replicated may be lost, and the guarantee says so.
 */
static void masters_fail_over_under_load(void **state)
{
	struct scene *scene = *state;
	struct hapax_store_options options = plain_options();
	struct hapax_store *store = NULL;
	struct tokens tokens = {{0}};
	struct load load;

	options.timeout_ms = 3000;
	assert_int_equal(hapax_store_open(scene->url, &options, &store, NULL), HAPAX_OK);
	tokens_rise(store, &tokens);
	load_begin(&load, store);
	wait_for_pairs(&load, 100);
	assert_int_equal(kill(cluster.pids[0], SIGSTOP), 0);
	redis_cluster_tell(&cluster, MASTERS, "cluster failover force");
	/* Lookups in all partitions are answered only when another serves those of the stopped one. */
	assert_true(all_answer(store));
	load_end(&load);
	printf("# %llu pairs, %llu without a certain answer, %llu claims lost by the failover\n",
	       (unsigned long long)load.pairs, (unsigned long long)load.unknown,
	       (unsigned long long)load.fenced);
	assert_int_equal(load.wrong, 0);
	tokens_rise(store, &tokens);
	assert_int_equal(kill(cluster.pids[0], SIGCONT), 0);
	wait_for_role(0, "role:slave");
	assert_true(all_answer(store));
	tokens_rise(store, &tokens);
	hapax_store_close(store);
}

/* ---------------------------------------------------------------- tokens over a failover */

enum { HELD_MAX = 2000 };

/* Claims that are held while their master dies. */
struct held {
	uint64_t first; /* their keys are numbered from here */
	uint64_t count;
	uint64_t tokens[HELD_MAX];
};

/* As run_until_certain(), with its status. */
static enum hapax_status settle(struct hapax_store *store, struct hapax_op *op)
{
	struct hapax_op call = *op;

	do {
		*op = call;
		(void)run(store, op);
	} while (is_unknown(op->status));
	return op->status;
}

static enum hapax_status claim_held(
	struct hapax_store *store, const struct held *held, uint64_t i, const unsigned char *by,
	struct hapax_op *ret_op, char *key)
{
	*ret_op = make_op(HAPAX_OP_CLAIM, key, held->first + i);
	ret_op->attempt_id = by;
	ret_op->lease_ms = INT64_C(3600) * 1000;
	return settle(store, ret_op);
}

static enum hapax_status complete_held(
	struct hapax_store *store, const struct held *held, uint64_t i, uint64_t token)
{
	char key[32];
	struct hapax_op op = make_op(HAPAX_OP_COMPLETE, key, held->first + i);

	op.token = token;
	return settle(store, &op);
}

static void hold(struct hapax_store *store, struct held *held)
{
	for (uint64_t i = 0; i < held->count; i++) {
		struct hapax_op op;
		char key[32];

		assert_int_equal(claim_held(store, held, i, attempt_id, &op, key), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		held->tokens[i] = op.token;
	}
}

/*
 * I5 for one key after the failover: the next claim has the larger token, and the old one changes
 * nothing any more. Returns whether the new master knew of the claim.
 */
static bool old_token_is_fenced(struct hapax_store *store, const struct held *held, uint64_t i)
{
	static const unsigned char other_id[HAPAX_ATTEMPT_ID_SIZE] = {8};
	bool is_known;
	struct hapax_op op;
	char key[32];

	assert_int_equal(claim_held(store, held, i, other_id, &op, key), HAPAX_OK);
	is_known = op.outcome == HAPAX_OUTCOME_IN_PROGRESS;
	if (is_known) {
		op = make_op(HAPAX_OP_LOOKUP, key, held->first + i);
		assert_int_equal(settle(store, &op), HAPAX_OK);
		assert_int_equal(op.token, held->tokens[i]);
		op = make_op(HAPAX_OP_FORGET, key, held->first + i);
		op.flags = HAPAX_OP_FORCE;
		assert_int_equal(settle(store, &op), HAPAX_OK);
		assert_int_equal(complete_held(store, held, i, held->tokens[i]), HAPAX_ERR_FENCED);
		assert_int_equal(claim_held(store, held, i, other_id, &op, key), HAPAX_OK);
	}
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_true(op.token > held->tokens[i]);
	assert_int_equal(complete_held(store, held, i, held->tokens[i]), HAPAX_ERR_FENCED);
	assert_int_equal(complete_held(store, held, i, op.token), HAPAX_OK);
	return is_known;
}

/* What a server says of its own replication; -1: nothing. */
static long long offset_of(int number, const char *field)
{
	char out[2000];
	const char *found;

	redis_cluster_ask(&cluster, number, "info replication", out, sizeof(out));
	found = strstr(out, field);
	return found == NULL ? -1 : strtoll(found + strlen(field), NULL, 10);
}

/* Until the replica has all that the master has. */
static void wait_for_replica(int master, int replica)
{
	while (offset_of(replica, "slave_repl_offset:") < offset_of(master, "master_repl_offset:"))
		sched_yield();
}

/* From now on the replica gets nothing any more; who is connected to the master sees no difference. */
static void cut_off_replica(int master, int replica)
{
	char out[2000];

	redis_cluster_tell(&cluster, master, "config set requirepass cut");
	redis_cluster_ask(
		&cluster, master, "-a cut --no-auth-warning client kill type replica", out,
		sizeof(out));
	do {
		redis_cluster_ask(&cluster, replica, "info replication", out, sizeof(out));
	} while (strstr(out, "master_link_status:down") == NULL);
}

/*
 * A master dies permanently, and its replica is not told: the others must notice (a failover).
 * What had not been replicated is lost, as the guarantee says; but no token of the old master's is of use
 * against a claim of the new one's (I5), known there or not.
 */
static void dead_master_is_replaced(void **state)
{
	static struct held kept = {.first = 2000000}, unknown = {.first = 3000000};
	struct scene *scene = *state;
	uint64_t known = 0, lost = 0;
	double begun = scale_seconds();
	struct load load;
	char text[256];

	hapax_store_guarantee(scene->store, text, sizeof(text));
	assert_non_null(strstr(text, "a failover may lose answers that are not yet replicated"));
	assert_non_null(strstr(text, "tokens continue by the clock of the new master"));
	for (int i = 0; i < 2 * MASTERS; i++)
		redis_cluster_tell(&cluster, i, "config set cluster-node-timeout 2000");
	kept.count = unknown.count = scale_count(HELD_MAX, 80);
	hold(scene->store, &kept);
	wait_for_replica(1, MASTERS + 1);
	cut_off_replica(1, MASTERS + 1);
	hold(scene->store, &unknown);
	load_begin(&load, scene->store);
	wait_for_pairs(&load, 100);
	assert_int_equal(kill(cluster.pids[1], SIGKILL), 0);
	assert_true(all_answer(scene->store));
	load_end(&load);
	printf("# %llu pairs, %llu without a certain answer, %llu claims lost by the failover\n",
	       (unsigned long long)load.pairs, (unsigned long long)load.unknown,
	       (unsigned long long)load.fenced);
	assert_int_equal(load.wrong, 0);
	assert_true(load.pairs > 0);
	for (uint64_t i = 0; i < kept.count; i++)
		known += old_token_is_fenced(scene->store, &kept, i);
	assert_int_equal(known, kept.count);
	for (uint64_t i = 0; i < unknown.count; i++)
		lost += !old_token_is_fenced(scene->store, &unknown, i);
	printf("# %llu of %llu claims were lost with the master\n", (unsigned long long)lost,
	       (unsigned long long)unknown.count);
	assert_true(lost > 0 && lost < unknown.count);
	scale_report(
		"tokens of before an automatic failover, all refused", kept.count + unknown.count,
		scale_seconds() - begun, true);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
		/* The last three leave the Cluster another one. */
		CASE(planned_failover_loses_nothing),
		CASE(masters_fail_over_under_load),
		CASE(dead_master_is_replaced),
	};

	redis_cluster_find(&cluster);
	return cmocka_run_group_tests_name("redis_cluster", tests, NULL, NULL);
}
