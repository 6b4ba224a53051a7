/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_restart.c - a Redis server dies, or stands still, under load and comes back: what is
 * lost is what the printed guarantee says, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "support/redis_server.h"
#include "support/scale.h"

enum { WORKERS = 4, KEYS_MAX = 1 << 16, TIMEOUT_MS = 1000 };

static const char *const synced[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
static const char *const lazy[] = {"--appendonly", "yes", "--appendfsync", "everysec", NULL};
static const char *const unsaved[] = {"--appendonly", "no", NULL};

static struct hapax_store *open_store(const struct redis_server *server)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char url[100];

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.timeout_ms = TIMEOUT_MS;
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server->port);
	/* Its time may be up before a busy machine has got to it. */
	for (int tries = 0; tries < 100; tries++) {
		if (hapax_store_open(url, &options, &store, &err) == HAPAX_OK)
			return store;
	}
	fail_msg("%s", err.message);
	return NULL;
}

static bool is_unknown(enum hapax_status status)
{
	return status == HAPAX_ERR_UNCERTAIN || status == HAPAX_ERR_UNAVAILABLE;
}

/* Repeat one and the same call until its answer is certain, as everybody has to. */
static enum hapax_status run_until_certain(struct hapax_store *store, struct hapax_op *op)
{
	struct hapax_op call = *op;

	do {
		*op = call;
		(void)hapax_store_run(store, op, 1, NULL);
	} while (is_unknown(op->status));
	return op->status;
}

/* ---------------------------------------------------------------- load */

/* Each thread claims and completes one new key after the other until it is told to stop. */
struct load {
	struct hapax_store *store;
	bool may_forget; /* a claim may be FENCED at its end */
	_Atomic bool stops;
	_Atomic uint64_t pairs;
	_Atomic uint64_t fenced;
	_Atomic uint64_t wrong;
	_Atomic unsigned started;
	struct hx_thread threads[WORKERS];
	uint64_t counts[WORKERS];                 /* keys that were tried */
	unsigned char is_done[WORKERS][KEYS_MAX]; /* the complete was acknowledged */
};

static struct hapax_op make_op(
	enum hapax_op_type type, char key[64], uint64_t worker, uint64_t number)
{
	int size = snprintf(
		key, 64, "key %llu of %llu", (unsigned long long)number,
		(unsigned long long)worker);

	return (struct hapax_op){.type = type, .key = {key, (size_t)size}, .lease_ms = 3600 * 1000};
}

static void note_wrong(struct load *load, const struct hapax_op *op)
{
	if (atomic_fetch_add(&load->wrong, 1) == 0)
		printf("# %.*s: %s ended %s, %s, attempt %u\n", (int)op->key.size,
		       (const char *)op->key.data, hapax_op_type_name(op->type),
		       hapax_status_name(op->status), hapax_outcome_name(op->outcome),
		       (unsigned)op->attempt);
}

/* I1, I5: the key is ours at the first try, by a token above the last one, and ends once. */
static void work_on(struct load *load, uint64_t worker, uint64_t number, uint64_t *token)
{
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	char key[64];
	struct hapax_op op = make_op(HAPAX_OP_CLAIM, key, worker, number);

	hapax_attempt_id(attempt_id);
	op.attempt_id = attempt_id;
	(void)run_until_certain(load->store, &op);
	if (op.status != HAPAX_OK || op.outcome != HAPAX_OUTCOME_ACQUIRED || op.attempt != 1 ||
	    op.token <= *token) {
		note_wrong(load, &op);
		return;
	}
	*token = op.token;
	op = make_op(HAPAX_OP_COMPLETE, key, worker, number);
	op.token = *token;
	(void)run_until_certain(load->store, &op);
	if (op.status == HAPAX_OK && op.outcome == HAPAX_OUTCOME_APPLIED) {
		load->is_done[worker][number] = 1;
		atomic_fetch_add(&load->pairs, 1);
	} else if (op.status == HAPAX_ERR_FENCED && load->may_forget) {
		atomic_fetch_add(&load->fenced, 1);
	} else {
		note_wrong(load, &op);
	}
}

static void work(void *arg)
{
	struct load *load = arg;
	uint64_t worker = atomic_fetch_add(&load->started, 1);
	uint64_t token = 0;
	uint64_t number = 0;

	for (; !atomic_load(&load->stops) && number < KEYS_MAX; number++)
		work_on(load, worker, number, &token);
	load->counts[worker] = number;
}

static struct load *load_begin(struct hapax_store *store, bool may_forget)
{
	struct load *load = calloc(1, sizeof(*load));

	assert_non_null(load);
	load->store = store;
	load->may_forget = may_forget;
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(
			hx_thread_start(&load->threads[i], work, load, "load", NULL), HAPAX_OK);
	return load;
}

/* Until so many more pairs are done. */
static void load_go_on(struct load *load, uint64_t pairs)
{
	uint64_t end = atomic_load(&load->pairs) + pairs;

	while (atomic_load(&load->pairs) < end && atomic_load(&load->wrong) == 0)
		sched_yield();
}

static void load_end(struct load *load)
{
	atomic_store(&load->stops, true);
	for (int i = 0; i < WORKERS; i++)
		hx_thread_join(&load->threads[i]);
	assert_int_equal(load->wrong, 0);
}

/* Of the keys that were acknowledged as done, how many are not? */
static uint64_t count_lost(const struct load *load)
{
	uint64_t lost = 0;

	for (uint64_t worker = 0; worker < WORKERS; worker++) {
		for (uint64_t number = 0; number < load->counts[worker]; number++) {
			char key[64];
			struct hapax_op op = make_op(HAPAX_OP_CHECK, key, worker, number);

			if (!load->is_done[worker][number])
				continue;
			/* A duplicate comes: is it seen? */
			assert_int_equal(run_until_certain(load->store, &op), HAPAX_OK);
			lost += op.outcome != HAPAX_OUTCOME_REPLAY;
		}
	}
	return lost;
}

static void guarantee_says(struct hapax_store *store, const char *expected, bool is_durable)
{
	char text[256];

	hapax_store_guarantee(store, text, sizeof(text));
	assert_string_equal(text, expected);
	assert_int_equal((hapax_store_capabilities(store) & HAPAX_STORE_DURABLE) != 0, is_durable);
}

/* ---------------------------------------------------------------- cases */

/* Ended by that signal, again and again, and restarted: nothing that was answered is lost. */
static void keeps_all(
	const char *const *options, int signal, const char *guarantee, bool is_durable)
{
	uint64_t rounds = scale_count(20, 3);
	double begun = scale_seconds();
	struct redis_server server;
	struct hapax_store *store;
	struct load *load;

	redis_server_init(&server, options);
	redis_server_start(&server);
	store = open_store(&server);
	guarantee_says(store, guarantee, is_durable);
	load = load_begin(store, false);
	for (uint64_t round = 0; round < rounds; round++) {
		load_go_on(load, 100);
		redis_server_end(&server, signal);
		redis_server_start(&server);
	}
	load_go_on(load, 100);
	load_end(load);
	assert_int_equal(count_lost(load), 0);
	guarantee_says(store, guarantee, is_durable);
	scale_report(
		is_durable ? "kills of a synced Redis under load"
			   : "restarts of a Redis under load",
		rounds, scale_seconds() - begun, true);
	free(load);
	hapax_store_close(store);
	redis_server_done(&server);
}

static void synced_server_keeps_its_answers(void **state)
{
	(void)state;
	keeps_all(synced, SIGKILL, "answers survive a power cut", true);
}

/* Shut down in order it writes what it has; only a power cut takes its last second. */
static void lazy_server_keeps_what_it_had(void **state)
{
	(void)state;
	keeps_all(lazy, SIGTERM, "a power cut may lose about the last second", false);
}

/* It forgets all, and the guarantee said so; tokens go on rising (I5), the forgotten holder is FENCED. */
static void unsaved_server_forgets(void **state)
{
	static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {7};
	struct hapax_op held = {
		.type = HAPAX_OP_CLAIM,
		.key = hapax_bytes_from_text("held"),
		.attempt_id = attempt_id};
	struct hapax_op again = held;
	struct redis_server server;
	struct hapax_store *store;
	struct load *load;
	uint64_t token;

	(void)state;
	redis_server_init(&server, unsaved);
	redis_server_start(&server);
	store = open_store(&server);
	guarantee_says(
		store, "nothing survives a restart of the server unless it saves first", false);
	assert_int_equal(run_until_certain(store, &held), HAPAX_OK);
	token = held.token;
	load = load_begin(store, true);
	load_go_on(load, 100);
	redis_server_end(&server, SIGKILL);
	redis_server_start(&server);
	load_go_on(load, 100);
	load_end(load);
	printf("# %llu of %llu forgotten, %llu claims fenced\n",
	       (unsigned long long)count_lost(load), (unsigned long long)load->pairs,
	       (unsigned long long)load->fenced);
	held.type = HAPAX_OP_COMPLETE;
	held.token = token;
	assert_int_equal(run_until_certain(store, &held), HAPAX_ERR_FENCED);
	assert_int_equal(run_until_certain(store, &again), HAPAX_OK);
	assert_int_equal(again.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_true(again.token > token);
	free(load);
	hapax_store_close(store);
	redis_server_done(&server);
}

/*
 * It stands still for longer than any caller waits, then continues, with what it was sent: no
 * key is run twice, none is lost.
 */
static void stopped_server_goes_on(void **state)
{
	struct redis_server server;
	struct hapax_store *store;
	struct load *load;

	(void)state;
	redis_server_init(&server, synced);
	redis_server_start(&server);
	store = open_store(&server);
	load = load_begin(store, false);
	for (int round = 0; round < 2; round++) {
		char key[64];
		struct hapax_op op = make_op(HAPAX_OP_LOOKUP, key, 0, 0);

		load_go_on(load, 100);
		assert_int_equal(kill(server.pid, SIGSTOP), 0);
		/* Until a caller got a timeout; answers that were on their way come first. */
		while (!is_unknown(hapax_store_run(store, &op, 1, NULL)))
			op = make_op(HAPAX_OP_LOOKUP, key, 0, 0);
		assert_int_equal(kill(server.pid, SIGCONT), 0);
	}
	load_go_on(load, 100);
	load_end(load);
	assert_int_equal(count_lost(load), 0);
	free(load);
	hapax_store_close(store);
	redis_server_done(&server);
}

static void refused(const struct redis_server *server, const char *user, const char *hint)
{
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char url[100];

	snprintf(url, sizeof(url), "redis://%s127.0.0.1:%d", user, server->port);
	assert_int_equal(hapax_store_open(url, NULL, &store, &err), HAPAX_ERR_INVALID);
	assert_null(store);
	if (!strstr(err.message, hint))
		fail_msg("\"%s\" lacks \"%s\"", err.message, hint);
	/* Messages get into logs. */
	assert_null(strstr(err.message, "secret"));
}

static void wrong_passwords_are_refused(void **state)
{
	static const char *const options[] = {"--requirepass", "hush", NULL};
	struct hapax_store *store = NULL;
	struct redis_server server;
	char url[100];

	(void)state;
	redis_server_init(&server, options);
	redis_server_start(&server);
	refused(&server, "", "set them as redis://user:password@host");
	refused(&server, ":secret@", "set them as redis://user:password@host");
	refused(&server, "stranger:secret@", "set them as redis://user:password@host");
	snprintf(url, sizeof(url), "redis://:hush@127.0.0.1:%d", server.port);
	assert_int_equal(hapax_store_open(url, NULL, &store, NULL), HAPAX_OK);
	hapax_store_close(store);
	redis_server_done(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(synced_server_keeps_its_answers),
		cmocka_unit_test(lazy_server_keeps_what_it_had),
		cmocka_unit_test(unsaved_server_forgets),
		cmocka_unit_test(stopped_server_goes_on),
		cmocka_unit_test(wrong_passwords_are_refused),
	};

	if (!redis_server_is_there()) {
		printf("1..0 # SKIP redis-server is not installed (tools/setup test)\n");
		return 0;
	}
	return cmocka_run_group_tests_name("redis_restart", tests, NULL, NULL);
}
