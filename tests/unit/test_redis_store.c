/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_store.c - a real server, and the network between it and the store going wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "support/fault_net.h"
#include "support/redis_case.h"
#include "support/scale.h"
#include "support/temp_dir.h"

/* ---------------------------------------------------------------- the network fails */

/* What the ledger really holds. */
static enum hapax_state truth(struct redis_case *scene)
{
	char key[32];
	struct hapax_op op = redis_case_op(HAPAX_OP_LOOKUP, key, scene->number);
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	struct hapax_buf *buf = hapax_buf_new(65536);

	op.record = &record;
	op.buf = buf;
	assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_OK);
	hapax_buf_free(buf);
	return op.outcome == HAPAX_OUTCOME_FOUND ? record.state : HAPAX_STATE_ABSENT;
}

/* Be connected, so that what is cut is not the greeting. */
static void connect_again(struct redis_case *scene)
{
	char key[32];
	struct hapax_op op = redis_case_op(HAPAX_OP_LOOKUP, key, 0);

	assert_int_equal(redis_case_run(scene->faulty, &op), HAPAX_OK);
}

/*
 * One operation while the connection is cut at one byte. What is reported must be true:
 * OK was done, UNAVAILABLE was not, and UNCERTAIN is settled by the same call again.
 */
static enum hapax_status cut_once(
	struct redis_case *scene, enum hapax_op_type type, _Atomic int64_t *left, int64_t at)
{
	enum hapax_state before = HAPAX_STATE_ABSENT;
	enum hapax_state after = HAPAX_STATE_CLAIMED;
	char key[32];
	struct hapax_op op = redis_case_op(HAPAX_OP_CLAIM, key, ++scene->number);
	enum hapax_status status;
	enum hapax_state found;

	if (type == HAPAX_OP_COMPLETE || type == HAPAX_OP_RELEASE) {
		assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_OK);
		before = HAPAX_STATE_CLAIMED;
		after = type == HAPAX_OP_COMPLETE ? HAPAX_STATE_DONE : HAPAX_STATE_FAILED;
	}
	if (type == HAPAX_OP_CHECK)
		after = HAPAX_STATE_DONE;
	op.type = type;
	connect_again(scene);
	atomic_store(left, at);
	status = redis_case_run(scene->faulty, &op);
	atomic_store(left, -1);
	found = truth(scene);
	switch (status) {
	case HAPAX_OK: assert_int_equal(found, after); break;
	case HAPAX_ERR_UNAVAILABLE: assert_int_equal(found, before); break;
	case HAPAX_ERR_UNCERTAIN:
		assert_true(found == before || found == after);
		op.token = type == HAPAX_OP_CLAIM || type == HAPAX_OP_CHECK ? 0 : op.token;
		assert_int_equal(redis_case_run(scene->faulty, &op), HAPAX_OK);
		if (type != HAPAX_OP_CHECK)
			assert_int_equal(
				op.outcome,
				type == HAPAX_OP_CLAIM ? HAPAX_OUTCOME_ACQUIRED
						       : HAPAX_OUTCOME_APPLIED);
		assert_int_equal(truth(scene), after);
		break;
	default: fail_msg("status %s", hapax_status_name(status));
	}
	return status;
}

/* I13: cut before, during and after every message, in both directions. */
static void cuts_are_reported_truly(void **state)
{
	static const enum hapax_op_type types[] = {
		HAPAX_OP_CLAIM, HAPAX_OP_COMPLETE, HAPAX_OP_RELEASE, HAPAX_OP_CHECK};
	struct redis_case *scene = *state;
	int64_t step = scale_is_proof() ? 1 : 61;
	uint64_t trials = 0, uncertain = 0, unavailable = 0;
	double begun = scale_seconds();

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (int direction = 0; direction < 2; direction++) {
			_Atomic int64_t *left = direction == 0 ? &scene->fault.send_bytes_left
							       : &scene->fault.recv_bytes_left;
			enum hapax_status status = HAPAX_ERR_UNAVAILABLE;

			/* Ends when the cut lies behind the message: then nothing is cut. */
			for (int64_t at = 0; status != HAPAX_OK;
			     at += direction ? (step + 6) / 7 : step) {
				status = cut_once(scene, types[i], left, at);
				uncertain += status == HAPAX_ERR_UNCERTAIN;
				unavailable += status == HAPAX_ERR_UNAVAILABLE;
				trials++;
				assert_true(at < 100000);
				/* What could not be sent was not done; what has no answer is unknown. */
				if (status != HAPAX_OK)
					assert_int_equal(
						status,
						direction == 0 ? HAPAX_ERR_UNAVAILABLE
							       : HAPAX_ERR_UNCERTAIN);
			}
		}
	}
	printf("# %llu cuts: %llu uncertain, %llu not done\n", (unsigned long long)trials,
	       (unsigned long long)uncertain, (unsigned long long)unavailable);
	scale_report("cuts of an exchange with Redis", trials, scale_seconds() - begun, true);
	assert_true(uncertain > 10 && unavailable > 10);
}

/* A claim, and when it is answered a lookup, submitted by its completion. */
struct chase {
	struct hapax_store *store;
	struct hapax_op claim;
	struct hapax_op lookup;
	struct hx_event done;
};

static void chase_done(struct hapax_op *ops, size_t count, void *context)
{
	struct chase *chase = context;

	(void)ops;
	(void)count;
	hx_event_set(&chase->done);
}

static void chase_on(struct hapax_op *ops, size_t count, void *context)
{
	struct chase *chase = context;

	(void)ops;
	(void)count;
	hapax_store_submit(
		chase->store, &chase->lookup, 1, (struct hapax_completion){chase_done, chase});
}

/* What is submitted between the end of a connection and the news of it waits for the next one. */
static void submits_at_the_end_go_on(void **state)
{
	struct redis_case *scene = *state;

	for (int64_t at = 1; at < 80; at++) {
		struct chase chase = {.store = scene->faulty};
		char key[32];

		chase.claim = redis_case_op(HAPAX_OP_CLAIM, key, ++scene->number);
		chase.lookup = redis_case_op(HAPAX_OP_LOOKUP, key, scene->number);
		hx_event_init(&chase.done);
		connect_again(scene);
		atomic_store(&scene->fault.recv_bytes_left, at);
		hapax_store_submit(
			scene->faulty, &chase.claim, 1,
			(struct hapax_completion){chase_on, &chase});
		hx_event_wait(&chase.done);
		atomic_store(&scene->fault.recv_bytes_left, -1);
		assert_true(
			chase.claim.status == HAPAX_OK ||
			chase.claim.status == HAPAX_ERR_UNCERTAIN);
		/* A cut in its own answer: it only reads. */
		assert_true(
			chase.lookup.status == HAPAX_OK ||
			chase.lookup.status == HAPAX_ERR_UNAVAILABLE);
	}
}

/* A greeting that is cut is said again, and what waited is done once, in time. */
static void cut_greetings_are_repeated(void **state)
{
	struct redis_case *scene = *state;
	int64_t step = scale_is_proof() ? 17 : 1009;

	for (int direction = 0; direction < 2; direction++) {
		_Atomic int64_t *left = direction == 0 ? &scene->fault.send_bytes_left
						       : &scene->fault.recv_bytes_left;

		for (int64_t at = 1; at < 22000; at += step) {
			char key[32];
			struct hapax_op op = redis_case_op(HAPAX_OP_LOOKUP, key, 0);

			/* Lose the connection, then cut what is said on the next. */
			atomic_store(left, 0);
			(void)redis_case_run(scene->faulty, &op);
			atomic_store(left, at);
			op = redis_case_op(HAPAX_OP_CLAIM, key, ++scene->number);
			enum hapax_status status = redis_case_run(scene->faulty, &op);
			atomic_store(left, -1);
			/* The cut may have lain behind the greeting, in the claim itself. */
			if (status == HAPAX_ERR_UNCERTAIN || status == HAPAX_ERR_UNAVAILABLE)
				status = redis_case_run(scene->faulty, &op);
			assert_int_equal(status, HAPAX_OK);
			assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
			assert_int_equal(op.attempt, 1);
			assert_int_equal(truth(scene), HAPAX_STATE_CLAIMED);
		}
	}
}

/* Batches: everything that was answered is true, and no operation overtakes another. */
static void cut_batches_are_reported_truly(void **state)
{
	enum { BATCH = 40 };
	struct redis_case *scene = *state;
	uint64_t rounds = scale_count(2000, 30);
	uint64_t uncertain = 0;

	for (uint64_t round = 0; round < rounds; round++) {
		_Atomic int64_t *left =
			round % 2 ? &scene->fault.send_bytes_left : &scene->fault.recv_bytes_left;
		struct hapax_op ops[BATCH];
		char keys[BATCH][32];
		uint64_t first = scene->number + 1;

		for (size_t i = 0; i < BATCH; i++)
			ops[i] = redis_case_op(HAPAX_OP_CHECK, keys[i], ++scene->number);
		connect_again(scene);
		atomic_store(left, (int64_t)(round * 7919 % (round % 2 ? 26000 : 2600)));
		(void)hapax_store_run(scene->faulty, ops, BATCH, NULL);
		atomic_store(left, -1);
		for (size_t i = 0; i < BATCH; i++) {
			scene->number = first + i;
			enum hapax_state found = truth(scene);

			if (ops[i].status == HAPAX_OK)
				assert_int_equal(found, HAPAX_STATE_DONE);
			else if (ops[i].status == HAPAX_ERR_UNAVAILABLE)
				assert_int_equal(found, HAPAX_STATE_ABSENT);
			else
				assert_int_equal(ops[i].status, HAPAX_ERR_UNCERTAIN);
			uncertain += ops[i].status == HAPAX_ERR_UNCERTAIN;
		}
	}
	assert_true(uncertain > 0);
}

static void set_event(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops;
	(void)count;
	hx_event_set(context);
}

/* Submit, and be sure that it was sent: no other thread sends on this network. */
static void send_op(struct redis_case *scene, struct hapax_op *op, struct hx_event *done)
{
	enum { PLENTY = 1 << 30 };

	hx_event_init(done);
	atomic_store(&scene->fault.send_bytes_left, PLENTY);
	hapax_store_submit(scene->faulty, op, 1, (struct hapax_completion){set_event, done});
	while (atomic_load(&scene->fault.send_bytes_left) == PLENTY)
		sched_yield();
	atomic_store(&scene->fault.send_bytes_left, -1);
}

/*
 * A server that stands still: UNCERTAIN when the time is up, and a lookup UNAVAILABLE; when it
 * goes on, so do we. Time is the network's, so that none passes while others are slow.
 */
static void stopped_server_is_uncertain(void **state)
{
	struct redis_case *scene = *state;
	pid_t server = (pid_t)strtol(getenv("HAPAX_TEST_REDIS_PID"), NULL, 10);
	char key[32];
	struct hapax_op claim = redis_case_op(HAPAX_OP_CLAIM, key, ++scene->number);
	struct hapax_op lookup = redis_case_op(HAPAX_OP_LOOKUP, key, scene->number);
	struct hapax_op late = lookup;
	struct hx_event claimed, looked_up;

	assert_true(server > 1);
	connect_again(scene);
	assert_int_equal(kill(server, SIGSTOP), 0);
	send_op(scene, &claim, &claimed);
	send_op(scene, &lookup, &looked_up);
	fault_net_advance(&scene->fault, REDIS_CASE_TIMEOUT_MS + 1);
	/* It wakes the thread. It may go the way of the others, or wait for the next connection. */
	hapax_store_submit(
		scene->faulty, &late, 1, (struct hapax_completion){set_event, &scene->late});
	hx_event_wait(&claimed);
	hx_event_wait(&looked_up);
	assert_int_equal(kill(server, SIGCONT), 0);
	assert_int_equal(claim.status, HAPAX_ERR_UNCERTAIN);
	assert_int_equal(lookup.status, HAPAX_ERR_UNAVAILABLE);
	hx_event_wait(&scene->late);
	assert_true(late.status == HAPAX_OK || late.status == HAPAX_ERR_UNAVAILABLE);
	/* The same call settles it. */
	assert_int_equal(redis_case_run(scene->faulty, &claim), HAPAX_OK);
	assert_int_equal(claim.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(claim.attempt, 1);
}

/* ---------------------------------------------------------------- the server lies */

#define EACH(answer) "*4\r\n$4\r\neach\r\n:1767225600000\r\n:0\r\n" answer

/* The reply to an operation that is none: no caller gets OK, or that nothing was done. */
static void hostile_answers_are_uncertain(void **state)
{
	static const struct {
		const char *says;
		bool is_endless;
	} cases[] = {
		{"HTTP/1.1 400 Bad Request\r\n\r\n", false},
		{"$99999999999\r\n", false},
		{"*2147483647\r\n", false},
		{"+OK\r\n", false},
		{"$-1\r\n", false},
		{"*0\r\n", false},
		{"*2\r\n:0\r\n:1\r\n", false},
		{EACH(":0\r\n"), false},
		{EACH(":-1\r\n"), false},
		{EACH(":9007199254740992\r\n"), false},
		{EACH("$1\r\n7\r\n"), false},
		{EACH("*3\r\n:1\r\n:1\r\n:1\r\n"), false},
		{EACH("*2\r\n$4\r\nroom\r\n:5\r\n"), false},
		{EACH("*8\r\n$5\r\nwrong\r\n:0\r\n:1\r\n:1\r\n:1\r\n$0\r\n\r\n:0\r\n$-1\r\n"),
		 false},
		{EACH("*8\r\n$6\r\nreplay\r\n:0\r\n:-1\r\n:1\r\n:1\r\n$0\r\n\r\n:0\r\n$-1\r\n"),
		 false},
		{"*5\r\n$4\r\neach\r\n:1\r\n:0\r\n:1\r\n:1\r\n", false},
		{"*4\r\n$4\r\neach\r\n:-1\r\n:0\r\n:1\r\n", false},
		{"*4\r\n$4\r\neach\r\n:1\r\n:-1\r\n:1\r\n", false},
		{"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
		 "*1\r\n*1\r\n*1\r\n",
		 false},
		{"+", true},
		{"*1\r\n", true},
		{"|1\r\n+a\r\n+b\r\n", true},
	};
	struct redis_case *scene = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char key[32];
		struct hapax_op op = redis_case_op(HAPAX_OP_CLAIM, key, ++scene->number);
		struct hapax_op lookup = redis_case_op(HAPAX_OP_LOOKUP, key, scene->number);
		struct hapax_bytes lie = hapax_bytes_from_text(cases[i].says);
		enum hapax_state found;

		connect_again(scene);
		fault_net_lie(&scene->fault, lie, cases[i].is_endless);
		(void)redis_case_run(scene->faulty, &op);
		fault_net_be_honest(&scene->fault);
		if (op.status != HAPAX_ERR_UNCERTAIN)
			fail_msg(
				"case %zu ended %s, %s", i, hapax_status_name(op.status),
				hapax_outcome_name(op.outcome));
		found = truth(scene);
		assert_true(found == HAPAX_STATE_ABSENT || found == HAPAX_STATE_CLAIMED);
		assert_int_equal(redis_case_run(scene->faulty, &op), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(op.attempt, 1);
		/* What only reads has done nothing. */
		fault_net_lie(&scene->fault, lie, cases[i].is_endless);
		assert_int_equal(redis_case_run(scene->faulty, &lookup), HAPAX_ERR_UNAVAILABLE);
		fault_net_be_honest(&scene->fault);
	}
}

/* The same for what is asked of the ledger as a whole: an error that says something. */
static void hostile_statistics_are_refused(void **state)
{
	static const char *const lies[] = {
		"+OK\r\n", "$99999999999\r\n",
		"*8\r\n:1\r\n+x\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "*1\r\n:1\r\n"};
	struct redis_case *scene = *state;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct hapax_stats stats = HAPAX_STATS_INIT;
		struct hapax_error err = {0};

		connect_again(scene);
		fault_net_lie(&scene->fault, hapax_bytes_from_text(lies[i]), false);
		assert_int_not_equal(
			hapax_store_stats(scene->faulty, &stats, NULL, NULL, &err), HAPAX_OK);
		fault_net_be_honest(&scene->fault);
		assert_true(err.message[0] != '\0');
		assert_int_equal(
			hapax_store_stats(scene->faulty, &stats, NULL, NULL, &err), HAPAX_OK);
	}
}

/* ---------------------------------------------------------------- a server that is none */

#define LIT(text) text, sizeof(text) - 1

struct impostor {
	int listener;
	const char *says;
	size_t size;
	struct hx_thread thread;
};

static void pretend(void *arg)
{
	struct impostor *impostor = arg;
	int fd = accept(impostor->listener, NULL, NULL);
	char sink[4096];

	/* Until the client has had enough: it is it that closes. */
	(void)!write(fd, impostor->says, impostor->size);
	while (read(fd, sink, sizeof(sink)) > 0)
		continue;
	close(fd);
}

static void hostile_replies_are_refused(void **state)
{
	static char endless[100000];
	struct {
		const char *says;
		size_t size;
	} cases[] = {
		{LIT("HTTP/1.1 400 Bad Request\r\n\r\n")},
		{LIT("$99999999999\r\n")},
		{LIT("*99999999\r\n")},
		{LIT(":1\r\n:2\r\n:3\r\n:4\r\n:5\r\n")},
		{LIT("-ERR go away\r\n-ERR\r\n")},
		{LIT("+OK\r\n$4\r\nxxxx\r\n*0\r\n*0\r\n$1\r\nx\r\n")},
		{LIT("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n")},
		{endless, sizeof(endless)},
	};
	struct temp_dir dir;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char url[300];

	(void)state;
	memset(endless, 'x', sizeof(endless));
	endless[0] = '+';
	temp_dir_init(&dir);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/s", dir.path);
	(void)snprintf(url, sizeof(url), "redis+unix:%s", address.sun_path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_store_options options = redis_case_options();
		struct hapax_store *store = NULL;
		struct hapax_error err = {0};
		struct impostor impostor = {
			socket(AF_UNIX, SOCK_STREAM, 0), cases[i].says, cases[i].size, {0}};

		(void)unlink(address.sun_path);
		assert_int_equal(
			bind(impostor.listener, (struct sockaddr *)&address, sizeof(address)), 0);
		assert_int_equal(listen(impostor.listener, 1), 0);
		assert_int_equal(
			hx_thread_start(&impostor.thread, pretend, &impostor, "impostor", NULL),
			HAPAX_OK);
		assert_int_not_equal(hapax_store_open(url, &options, &store, &err), HAPAX_OK);
		assert_null(store);
		assert_true(err.message[0] != '\0');
		hx_thread_join(&impostor.thread);
		close(impostor.listener);
	}
	temp_dir_done(&dir);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, redis_case_set_up, redis_case_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(cuts_are_reported_truly),       CASE(submits_at_the_end_go_on),
		CASE(cut_greetings_are_repeated),    CASE(cut_batches_are_reported_truly),
		CASE(stopped_server_is_uncertain),   CASE(hostile_replies_are_refused),
		CASE(hostile_answers_are_uncertain), CASE(hostile_statistics_are_refused),
	};

	return cmocka_run_group_tests_name("redis_store", tests, NULL, NULL);
}
