/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source with a thread of its own: what changes hands, in which order, and what a lost
 * connection does to it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "source/io_thread.h"

enum { PARCELS = 3 };

/* A broker that does one thing for each order. */
struct broker {
	struct hx_io_thread io_thread;
	struct hx_io_message messages[PARCELS];
	struct hx_io_messages late; /* delivered after the connection was lost and gained again */
	size_t acked;               /* the I/O thread's thread; read after drain */
	size_t given_back;
	size_t stale;
	size_t untaken;

	/* Of the consumer. */
	struct hx_mutex mutex;
	struct hx_cond cond;
	unsigned wakes; /* Locks: mutex */
	char said[64];
	int is_fatal;
	enum hapax_status published;
	char why[64];
};

static void on_wake(void *context)
{
	struct broker *broker = context;

	hx_mutex_lock(&broker->mutex);
	broker->wakes++;
	hx_cond_signal(&broker->cond);
	hx_mutex_unlock(&broker->mutex);
}

static void on_failed(void *context, const char *text, int is_fatal)
{
	struct broker *broker = context;

	(void)snprintf(broker->said, sizeof(broker->said), "%s", text);
	broker->is_fatal = is_fatal;
}

static void on_published(
	struct hapax_publication *publication, enum hapax_status status, const char *why)
{
	struct broker *broker = publication->context;

	broker->published = status;
	(void)snprintf(broker->why, sizeof(broker->why), "%s", why);
}

static void begin(struct hx_task *task)
{
	struct broker *broker = task->context;
	struct hx_io_messages list = {NULL, NULL};

	for (size_t i = 0; i < PARCELS - 1; i++)
		HX_LIST_ADD(&list, &broker->messages[i], next);
	broker->io_thread.changes++;
	broker->io_thread.lag = 7;
	hx_io_thread_deliver(&broker->io_thread, &list);
}

/* A publication loses the connection; the next one has another message. */
static void work(struct hx_task *task)
{
	struct broker *broker = task->context;
	struct hx_io_messages settled = hx_io_thread_take_settled(&broker->io_thread);
	struct hx_publications asked = hx_io_thread_take_asked(&broker->io_thread);
	struct hapax_publication *publication;
	struct hx_io_message *message_;
	size_t count = 0;

	while ((message_ = hx_io_messages_take(&settled)) != NULL) {
		count++;
		if (message_->generation != broker->io_thread.generation)
			broker->stale++;
		else if (message_->is_acked)
			broker->acked++;
		else
			broker->given_back++;
	}
	hx_io_thread_carried_out(&broker->io_thread, count);
	while ((publication = hx_publications_take(&asked)) != NULL) {
		struct hx_io_messages untaken = hx_io_thread_lost(&broker->io_thread);

		while (hx_io_messages_take(&untaken) != NULL)
			broker->untaken++;
		hx_io_thread_say(&broker->io_thread, "%s", "lost");
		hx_io_thread_published(
			&broker->io_thread, publication, HAPAX_ERR_UNAVAILABLE, "for a reason");
		HX_LIST_ADD(&broker->late, &broker->messages[PARCELS - 1], next);
		hx_io_thread_deliver(&broker->io_thread, &broker->late);
	}
}

static void stop(struct hx_task *task)
{
	struct broker *broker = task->context;

	hx_io_thread_recall(&broker->io_thread);
	work(task);
	hx_reactor_stop(&broker->io_thread.reactor);
}

static const struct hapax_source_ops source_ops = {.next = hx_io_thread_next};
static const struct hx_io_thread_ops ops = {.begin = begin, .work = work, .stop = stop};

static void open_broker(struct broker *broker)
{
	struct hapax_error err;

	memset(broker, 0, sizeof(*broker));
	hx_mutex_init(&broker->mutex);
	hx_cond_init(&broker->cond);
	broker->published = HAPAX_ERR_INVALID;
	assert_int_equal(
		hx_io_thread_init(&broker->io_thread, &source_ops, &ops, "test:", &err), HAPAX_OK);
	broker->io_thread.base.hooks = (struct hapax_source_hooks){
		.wake = on_wake, .failed = on_failed, .context = broker};
}

static void close_broker(struct broker *broker)
{
	hx_io_thread_halt(&broker->io_thread);
	hx_io_thread_done(&broker->io_thread);
	hx_cond_done(&broker->cond);
	hx_mutex_done(&broker->mutex);
}

/* Until the I/O thread has something new to say. */
static void rest(struct broker *broker, unsigned seen)
{
	hx_mutex_lock(&broker->mutex);
	while (broker->wakes == seen)
		hx_cond_wait(&broker->cond, &broker->mutex);
	hx_mutex_unlock(&broker->mutex);
}

static unsigned wakes(struct broker *broker)
{
	unsigned count;

	hx_mutex_lock(&broker->mutex);
	count = broker->wakes;
	hx_mutex_unlock(&broker->mutex);
	return count;
}

static struct hapax_message *next(struct broker *broker)
{
	struct hapax_message *message;

	for (;;) {
		unsigned seen = wakes(broker);

		(void)hx_io_thread_tick(&broker->io_thread.base, 0);
		message = hx_io_thread_next(&broker->io_thread.base);
		if (message != NULL)
			return message;
		rest(broker, seen);
	}
}

static void drain(struct broker *broker)
{
	for (;;) {
		unsigned seen = wakes(broker);

		(void)hx_io_thread_tick(&broker->io_thread.base, 0);
		if (hx_io_thread_drain(&broker->io_thread.base))
			return;
		rest(broker, seen);
	}
}

static void io_messages_come_in_order_and_are_settled_once(void **state)
{
	struct hapax_source_stats stats = HAPAX_SOURCE_STATS_INIT;
	struct hapax_message *first, *second;
	struct broker broker;

	(void)state;
	open_broker(&broker);
	first = next(&broker);
	second = next(&broker);
	assert_ptr_equal(first, &broker.messages[0].message);
	assert_ptr_equal(second, &broker.messages[1].message);
	assert_null(hx_io_thread_next(&broker.io_thread.base));
	hx_io_thread_stats(&broker.io_thread.base, &stats);
	assert_int_equal(stats.lag, 7);
	assert_int_equal(stats.changes, 1);
	hx_io_thread_ack(&broker.io_thread.base, second);
	hx_io_thread_give_back(&broker.io_thread.base, first);
	drain(&broker);
	assert_int_equal(broker.acked, 1);
	assert_int_equal(broker.given_back, 1);
	assert_int_equal(broker.stale, 0);
	close_broker(&broker);
}

static void what_a_lost_connection_brought_is_revoked(void **state)
{
	struct hapax_publication publication = {.done = on_published};
	struct hapax_source_stats stats = HAPAX_SOURCE_STATS_INIT;
	struct hapax_message *first, *late;
	struct broker broker;

	(void)state;
	open_broker(&broker);
	publication.context = &broker;
	first = next(&broker);
	assert_int_equal(first->flags & HAPAX_MESSAGE_REVOKED, 0);
	hx_io_thread_publish(&broker.io_thread.base, &publication);
	drain(&broker);
	/* Told on this thread, in tick. */
	(void)hx_io_thread_tick(&broker.io_thread.base, 0);
	assert_int_equal(broker.published, HAPAX_ERR_UNAVAILABLE);
	assert_string_equal(broker.why, "for a reason");
	assert_string_equal(broker.said, "lost");
	assert_int_equal(broker.is_fatal, 0);
	assert_true(first->flags & HAPAX_MESSAGE_REVOKED);
	/* The second one was not taken: it is gone, and what comes is of the new connection. */
	late = next(&broker);
	assert_ptr_equal(late, &broker.messages[PARCELS - 1].message);
	assert_int_equal(late->flags & HAPAX_MESSAGE_REVOKED, 0);
	hx_io_thread_ack(&broker.io_thread.base, first);
	hx_io_thread_ack(&broker.io_thread.base, late);
	drain(&broker);
	assert_int_equal(broker.untaken, 1);
	assert_int_equal(broker.stale, 1);
	assert_int_equal(broker.acked, 1);
	hx_io_thread_stats(&broker.io_thread.base, &stats);
	assert_int_equal(stats.lag, -1);
	assert_int_equal(stats.failures, 1);
	close_broker(&broker);
}

static void what_nobody_took_is_given_back_at_the_end(void **state)
{
	struct hapax_message *first;
	struct broker broker;

	(void)state;
	open_broker(&broker);
	first = next(&broker);
	hx_io_thread_ack(&broker.io_thread.base, first);
	drain(&broker);
	hx_io_thread_halt(&broker.io_thread);
	assert_int_equal(broker.acked, 1);
	assert_int_equal(broker.given_back, 1);
	assert_true(hx_io_thread_drain(&broker.io_thread.base));
	close_broker(&broker);
}

/* Opened and never run: there is no thread, and nothing to end. */
static void one_that_never_ran_is_closed(void **state)
{
	struct broker broker;

	(void)state;
	open_broker(&broker);
	close_broker(&broker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(io_messages_come_in_order_and_are_settled_once),
		cmocka_unit_test(what_a_lost_connection_brought_is_revoked),
		cmocka_unit_test(what_nobody_took_is_given_back_at_the_end),
		cmocka_unit_test(one_that_never_ran_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
