/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "net/reactor.h"
#include "net/resolver.h"
#include "net/signals.h"
#include "support/fault_net.h"

struct bench {
	struct fault_net fault;
	struct hx_reactor reactor;
	char log[256];
};

static int set_up(void **state)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));

	fault_net_init(&bench->fault);
	*state = bench;
	return hx_reactor_init(&bench->reactor, &bench->fault.net, NULL);
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hx_reactor_done(&bench->reactor);
	test_free(bench);
	return 0;
}

static void note(struct bench *bench, const char *what)
{
	size_t size = strlen(bench->log);

	(void)snprintf(bench->log + size, sizeof(bench->log) - size, "%s ", what);
}

static void note_timer(struct hx_timer *timer)
{
	note(timer->context, "timer");
}

static void note_task(struct hx_task *task)
{
	note(task->context, "task");
}

static void note_deferred(struct hx_task *task)
{
	note(task->context, "deferred");
}

static struct hx_task late_task;

static void note_watch(struct hx_watch *watch, unsigned ready)
{
	struct bench *bench = watch->context;
	char byte;

	note(bench, ready & HX_READY_IN ? "in" : "other");
	assert_int_equal(read(watch->fd, &byte, 1), 1);
	hx_reactor_defer(&bench->reactor, &late_task);
}

/* Ready descriptors, posted tasks, timers, deferred tasks: in this order, in one turn. */
static void turn_has_an_order(void **state)
{
	struct bench *bench = *state;
	struct hx_timer timer;
	struct hx_task task = {.fn = note_task, .context = bench};
	struct hx_watch watch = {.fn = note_watch, .context = bench};
	int fds[2];

	late_task = (struct hx_task){.fn = note_deferred, .context = bench};
	fault_net_pair(fds);
	watch.fd = fds[0];
	assert_int_equal(hx_reactor_watch(&bench->reactor, &watch, HX_READY_IN, NULL), HAPAX_OK);
	assert_int_equal(
		hx_timer_introduce(&bench->reactor.timers, &timer, note_timer, bench), HAPAX_OK);
	hx_timer_set(&bench->reactor.timers, &timer, hx_reactor_now_ns(&bench->reactor) + 1000000);
	hx_reactor_turn(&bench->reactor, 0);
	assert_string_equal(bench->log, "");
	fault_net_advance(&bench->fault, 1000);
	assert_int_equal(write(fds[1], "x", 1), 1);
	hx_reactor_post(&bench->reactor, &task);
	hx_reactor_post(&bench->reactor, &task);
	hx_reactor_turn(&bench->reactor, -1);
	assert_string_equal(bench->log, "in task timer deferred ");
	hx_timer_retire(&bench->reactor.timers, &timer);
	hx_reactor_unwatch(&bench->reactor, &watch);
	close(fds[0]);
	close(fds[1]);
}

struct pair {
	struct bench *bench;
	struct hx_watch watches[2];
	unsigned calls;
};

static void unwatch_both(struct hx_watch *watch, unsigned ready)
{
	struct pair *pair = watch->context;

	(void)ready;
	pair->calls++;
	hx_reactor_unwatch(&pair->bench->reactor, &pair->watches[0]);
	hx_reactor_unwatch(&pair->bench->reactor, &pair->watches[1]);
}

/* Of two that are ready in one turn, the first removes both: the second is not called. */
static void unwatched_is_not_called(void **state)
{
	struct pair pair = {.bench = *state};
	int fds[2];

	fault_net_pair(fds);
	for (int i = 0; i < 2; i++) {
		pair.watches[i] =
			(struct hx_watch){.fd = fds[i], .fn = unwatch_both, .context = &pair};
		assert_int_equal(
			hx_reactor_watch(
				&pair.bench->reactor, &pair.watches[i], HX_READY_OUT, NULL),
			HAPAX_OK);
	}
	hx_reactor_turn(&pair.bench->reactor, 0);
	hx_reactor_turn(&pair.bench->reactor, 0);
	assert_int_equal(pair.calls, 1);
	close(fds[0]);
	close(fds[1]);
}

enum { POSTS = 20000, POSTERS = 4 };

struct poster {
	struct bench *bench;
	struct hx_thread thread;
	struct hx_task task;
	struct hx_event ran;
	unsigned count;
};

static void ran(struct hx_task *task)
{
	struct poster *poster = task->context;

	poster->count++;
	hx_event_set(&poster->ran);
}

static void post_many(void *arg)
{
	struct poster *poster = arg;

	for (int i = 0; i < POSTS; i++) {
		hx_event_init(&poster->ran);
		hx_reactor_post(&poster->bench->reactor, &poster->task);
		hx_event_wait(&poster->ran);
	}
}

static void stop_reactor(void *arg)
{
	struct poster *posters = arg;

	for (int i = 0; i < POSTERS; i++)
		hx_thread_join(&posters[i].thread);
	hx_reactor_stop(&posters[0].bench->reactor);
}

/* No wake-up is lost: each post runs, or its poster would wait forever. */
static void posts_from_threads_run(void **state)
{
	struct poster posters[POSTERS];
	struct hx_thread stopper;

	for (int i = 0; i < POSTERS; i++) {
		posters[i] = (struct poster){.bench = *state};
		posters[i].task = (struct hx_task){.fn = ran, .context = &posters[i]};
		assert_int_equal(
			hx_thread_start(&posters[i].thread, post_many, &posters[i], "post", NULL),
			HAPAX_OK);
	}
	assert_int_equal(hx_thread_start(&stopper, stop_reactor, posters, "stop", NULL), HAPAX_OK);
	hx_reactor_run(&posters[0].bench->reactor);
	hx_thread_join(&stopper);
	for (int i = 0; i < POSTERS; i++)
		assert_int_equal(posters[i].count, POSTS);
}

static struct hx_task victims[3];

static void cancel_others(struct hx_task *task)
{
	struct bench *bench = task->context;

	note(bench, "first");
	hx_reactor_cancel(&bench->reactor, &victims[1]);
}

static void cancelled_task_does_not_run(void **state)
{
	struct bench *bench = *state;

	victims[0] = (struct hx_task){.fn = cancel_others, .context = bench};
	victims[1] = (struct hx_task){.fn = note_task, .context = bench};
	victims[2] = (struct hx_task){.fn = note_deferred, .context = bench};
	for (int i = 0; i < 3; i++)
		hx_reactor_post(&bench->reactor, &victims[i]);
	hx_reactor_turn(&bench->reactor, 0);
	assert_string_equal(bench->log, "first deferred ");
	for (int i = 0; i < 3; i++)
		hx_reactor_defer(&bench->reactor, &victims[i]);
	hx_reactor_turn(&bench->reactor, 0);
	assert_string_equal(bench->log, "first deferred first deferred ");
	/* And can be used again. */
	hx_reactor_post(&bench->reactor, &victims[1]);
	hx_reactor_turn(&bench->reactor, 0);
	assert_string_equal(bench->log, "first deferred first deferred task ");
}

static void note_signal(struct hx_signals *signals, int number)
{
	note(signals->context, number == SIGUSR1 ? "usr1" : "usr2");
}

static void signals_are_events(void **state)
{
	static const int wanted[] = {SIGUSR1, SIGUSR2, 0};
	struct bench *bench = *state;
	struct hx_signals signals = {0};

	assert_int_equal(
		hx_signals_open(&signals, &bench->reactor, wanted, note_signal, bench, NULL),
		HAPAX_OK);
	assert_int_equal(raise(SIGUSR1), 0);
	hx_reactor_turn(&bench->reactor, -1);
	assert_int_equal(raise(SIGUSR2), 0);
	hx_reactor_turn(&bench->reactor, -1);
	assert_string_equal(bench->log, "usr1 usr2 ");
	hx_signals_close(&signals);
	hx_signals_close(&signals);
}

struct answer {
	size_t count;
	unsigned calls;
	struct hapax_error err;
};

static void note_answer(
	void *context, const struct hx_address *addresses, size_t count,
	const struct hapax_error *err)
{
	struct answer *answer = context;

	(void)addresses;
	answer->count = count;
	answer->err = *err;
	answer->calls++;
}

static void resolver_answers_on_the_loop(void **state)
{
	struct bench *bench = *state;
	struct hx_resolver resolver;
	struct hx_resolver_job *job = NULL;
	struct answer found = {0}, missing = {0}, forgotten = {0};

	hx_resolver_init(&resolver, &bench->fault.net);
	assert_int_equal(
		hx_resolver_ask(
			&resolver, &bench->reactor, "localhost", 80, note_answer, &forgotten, &job,
			NULL),
		HAPAX_OK);
	hx_resolver_forget(&resolver, job);
	assert_int_equal(
		hx_resolver_ask(
			&resolver, &bench->reactor, "localhost", 80, note_answer, &found, &job,
			NULL),
		HAPAX_OK);
	/* A label of more than 63 bytes cannot exist, whatever name servers say. */
	assert_int_equal(
		hx_resolver_ask(
			&resolver, &bench->reactor,
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.invalid",
			80, note_answer, &missing, &job, NULL),
		HAPAX_OK);
	while (missing.calls == 0)
		hx_reactor_turn(&bench->reactor, -1);
	assert_int_equal(forgotten.calls, 0);
	assert_int_equal(found.calls, 1);
	assert_true(found.count >= 1);
	assert_int_equal(missing.count, 0);
	assert_int_not_equal(missing.err.status, HAPAX_OK);
	assert_int_equal(
		hx_resolver_ask(
			&resolver, &bench->reactor, "", 80, note_answer, &found, &job, NULL),
		HAPAX_ERR_INVALID);
	hx_resolver_done(&resolver);
}

static struct hx_event asked;

static int resolve_late(
	void *context, const char *host, uint16_t port, struct hx_address *ret_addresses,
	size_t count_max)
{
	(void)context, (void)host, (void)port, (void)ret_addresses, (void)count_max;
	hx_event_set(&asked);
	return -ENOENT;
}

/*
 * A dial is canceled while its name is resolved, and the owner ends: its loop does not turn again.
 * The worker has taken the query up, so the end waits for it, and finds it answered.
 */
static void a_dropped_query_is_freed_without_a_turn(void **state)
{
	struct bench *bench = *state;
	const struct hx_net_ops ops = {.resolve = resolve_late};
	const struct hx_net net = {.ops = &ops};
	struct hx_resolver resolver;
	struct hx_resolver_job *job = NULL;
	struct answer dropped = {0};
	int64_t before = hx_alloc_live();

	hx_event_init(&asked);
	hx_resolver_init(&resolver, &net);
	assert_int_equal(
		hx_resolver_ask(
			&resolver, &bench->reactor, "late", 80, note_answer, &dropped, &job, NULL),
		HAPAX_OK);
	hx_event_wait(&asked);
	hx_resolver_forget(&resolver, job);
	hx_resolver_done(&resolver);
	assert_int_equal(hx_alloc_live(), before);
	/* A turn that comes all the same finds nothing. */
	hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(dropped.calls, 0);
	/* A query that was not dropped is answered after the end of the resolver. */
	hx_event_init(&asked);
	hx_resolver_init(&resolver, &net);
	assert_int_equal(
		hx_resolver_ask(
			&resolver, &bench->reactor, "late", 80, note_answer, &dropped, &job, NULL),
		HAPAX_OK);
	hx_event_wait(&asked);
	hx_resolver_done(&resolver);
	memset(&resolver, 0xff, sizeof(resolver));
	hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(dropped.calls, 1);
	assert_int_equal(hx_alloc_live(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_dropped_query_is_freed_without_a_turn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(turn_has_an_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unwatched_is_not_called, set_up, tear_down),
		cmocka_unit_test_setup_teardown(posts_from_threads_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cancelled_task_does_not_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(signals_are_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(resolver_answers_on_the_loop, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("reactor", tests, NULL, NULL);
}
