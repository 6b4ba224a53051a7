/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_thread.c - a source with its own thread, which talks to the broker.
 */
#include "source/io_thread.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "source/source.h"

struct hx_io_message *hx_io_messages_take(struct hx_io_messages *list)
{
	struct hx_io_message *message_;

	HX_LIST_TAKE(list, message_, next);
	return message_;
}

struct hapax_publication *hx_publications_take(struct hx_publications *list)
{
	struct hapax_publication *publication;

	HX_LIST_TAKE(list, publication, private_next);
	return publication;
}

static void wake(struct hx_io_thread *io_thread)
{
	const struct hapax_source_hooks *hooks = &io_thread->base.hooks;

	if (hooks->wake != NULL)
		hooks->wake(hooks->context);
}

enum hapax_status hx_io_thread_init(
	struct hx_io_thread *io_thread, const struct hapax_source_ops *source_ops,
	const struct hx_io_thread_ops *ops, const char *url, struct hapax_error *err)
{
	enum hapax_status status;

	if (hx_source_init(&io_thread->base, source_ops, url) != HAPAX_OK)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	status = hx_reactor_init(&io_thread->reactor, hx_net_system(), err);
	io_thread->has_reactor = status == HAPAX_OK;
	io_thread->begin = (struct hx_task){.fn = ops->begin, .context = io_thread};
	io_thread->work = (struct hx_task){.fn = ops->work, .context = io_thread};
	io_thread->stop = (struct hx_task){.fn = ops->stop, .context = io_thread};
	hx_lock_init(&io_thread->lock);
	io_thread->lag = -1;
	return status;
}

void hx_io_thread_halt(struct hx_io_thread *io_thread)
{
	if (!io_thread->has_thread)
		return;
	hx_reactor_post(&io_thread->reactor, &io_thread->stop);
	hx_thread_join(&io_thread->thread);
	io_thread->has_thread = false;
}

void hx_io_thread_done(struct hx_io_thread *io_thread)
{
	if (io_thread->has_reactor)
		hx_reactor_done(&io_thread->reactor);
	io_thread->has_reactor = false;
	hx_source_done(&io_thread->base);
}

/* ------------------------------------------------------------------ the consumer's thread */

static struct hx_io_thread *io_thread_of(struct hapax_source *source)
{
	assert(source->ops->next == hx_io_thread_next);
	return (struct hx_io_thread *)source;
}

static void io_thread_run(void *arg)
{
	struct hx_io_thread *io_thread = arg;

	hx_reactor_run(&io_thread->reactor);
}

struct hapax_message *hx_io_thread_next(struct hapax_source *source)
{
	struct hx_io_thread *io_thread = io_thread_of(source);
	struct hx_io_message *message_;

	hx_lock_acquire(&io_thread->lock);
	message_ = hx_io_messages_take(&io_thread->arrived);
	hx_lock_release(&io_thread->lock);
	if (message_ == NULL)
		return NULL;
	message_->out_back = NULL;
	message_->out_next = io_thread->out;
	if (io_thread->out != NULL)
		io_thread->out->out_back = message_;
	io_thread->out = message_;
	return &message_->message;
}

static void settle(struct hx_io_thread *io_thread, struct hapax_message *message, bool is_acked)
{
	struct hx_io_message *message_ = (struct hx_io_message *)(void *)message;
	bool is_first;

	if (message_->out_back != NULL)
		message_->out_back->out_next = message_->out_next;
	else
		io_thread->out = message_->out_next;
	if (message_->out_next != NULL)
		message_->out_next->out_back = message_->out_back;
	message_->is_acked = is_acked;
	hx_lock_acquire(&io_thread->lock);
	is_first = io_thread->settled.first == NULL;
	HX_LIST_ADD(&io_thread->settled, message_, next);
	io_thread->orders++;
	hx_lock_release(&io_thread->lock);
	/* One wake-up is enough: the I/O thread takes the whole list. */
	if (is_first)
		hx_reactor_post(&io_thread->reactor, &io_thread->work);
}

void hx_io_thread_ack(struct hapax_source *source, struct hapax_message *message)
{
	settle(io_thread_of(source), message, true);
}

void hx_io_thread_give_back(struct hapax_source *source, struct hapax_message *message)
{
	settle(io_thread_of(source), message, false);
}

void hx_io_thread_publish(struct hapax_source *source, struct hapax_publication *publication)
{
	struct hx_io_thread *io_thread = io_thread_of(source);

	hx_lock_acquire(&io_thread->lock);
	HX_LIST_ADD(&io_thread->asked, publication, private_next);
	io_thread->orders++;
	hx_lock_release(&io_thread->lock);
	hx_reactor_post(&io_thread->reactor, &io_thread->work);
}

static void start(struct hx_io_thread *io_thread)
{
	struct hapax_source_hooks *hooks = &io_thread->base.hooks;
	struct hapax_error err;

	hx_reactor_post(&io_thread->reactor, &io_thread->begin);
	io_thread->has_thread = hx_thread_start(
					&io_thread->thread, io_thread_run, io_thread,
					"hapax-source", &err) == HAPAX_OK;
	if (!io_thread->has_thread)
		hooks->failed(hooks->context, err.message, 1);
}

/* Revoke messages of a lost connection: another consumer may have them by now. */
static void revoke(struct hx_io_thread *io_thread, uint64_t generation)
{
	if (io_thread->seen_generation == generation)
		return;
	io_thread->seen_generation = generation;
	for (struct hx_io_message *at = io_thread->out; at != NULL; at = at->out_next) {
		if (at->generation < generation)
			at->message.flags |= HAPAX_MESSAGE_REVOKED;
	}
}

static void tell(struct hx_publications *list, enum hapax_status status, const char *why)
{
	struct hapax_publication *publication;

	while ((publication = hx_publications_take(list)) != NULL)
		publication->done(publication, status, why);
}

int64_t hx_io_thread_tick(struct hapax_source *source, int64_t now_ms)
{
	struct hx_io_thread *io_thread = io_thread_of(source);
	const struct hapax_source_hooks *hooks = &source->hooks;
	struct hx_publications delivered, refused;
	char said[HX_IO_THREAD_TEXT_SIZE];
	char why[HX_IO_THREAD_TEXT_SIZE];
	uint64_t generation;

	(void)now_ms;
	if (!io_thread->has_thread)
		start(io_thread);
	hx_lock_acquire(&io_thread->lock);
	delivered = io_thread->delivered;
	refused = io_thread->refused;
	io_thread->delivered = (struct hx_publications){NULL, NULL};
	io_thread->refused = (struct hx_publications){NULL, NULL};
	generation = io_thread->generation;
	said[0] = '\0';
	why[0] = '\0';
	if (io_thread->said[0] != '\0')
		(void)snprintf(said, sizeof(said), "%s", io_thread->said);
	if (refused.first != NULL)
		(void)snprintf(why, sizeof(why), "%s", io_thread->why);
	io_thread->said[0] = '\0';
	hx_lock_release(&io_thread->lock);
	if (said[0] != '\0')
		hooks->failed(hooks->context, said, 0);
	revoke(io_thread, generation);
	tell(&delivered, HAPAX_OK, "");
	tell(&refused, HAPAX_ERR_UNAVAILABLE, why);
	return INT64_MAX;
}

int hx_io_thread_drain(struct hapax_source *source)
{
	struct hx_io_thread *io_thread = io_thread_of(source);
	size_t orders;

	hx_lock_acquire(&io_thread->lock);
	orders = io_thread->orders;
	hx_lock_release(&io_thread->lock);
	return orders == 0;
}

void hx_io_thread_hurry(struct hapax_source *source)
{
	struct hx_io_thread *io_thread = io_thread_of(source);

	io_thread->is_hurried = true;
	hx_reactor_post(&io_thread->reactor, &io_thread->work);
}

void hx_io_thread_pause(struct hapax_source *source, int is_paused)
{
	struct hx_io_thread *io_thread = io_thread_of(source);

	io_thread->is_paused = is_paused != 0;
	hx_reactor_post(&io_thread->reactor, &io_thread->work);
}

void hx_io_thread_stats(struct hapax_source *source, struct hapax_source_stats *ret_stats)
{
	struct hx_io_thread *io_thread = io_thread_of(source);

	ret_stats->lag = io_thread->lag;
	ret_stats->failures = io_thread->failures;
	ret_stats->changes = io_thread->changes;
	ret_stats->parts = 1;
}

/* ------------------------------------------------------------------ the I/O thread */

void hx_io_thread_deliver(struct hx_io_thread *io_thread, struct hx_io_messages *list)
{
	if (list->first == NULL)
		return;
	/* Only this thread changes the generation. */
	for (struct hx_io_message *at = list->first; at != NULL; at = at->next)
		at->generation = io_thread->generation;
	hx_lock_acquire(&io_thread->lock);
	HX_LIST_JOIN(&io_thread->arrived, list, next);
	hx_lock_release(&io_thread->lock);
	wake(io_thread);
}

struct hx_io_messages hx_io_thread_take_settled(struct hx_io_thread *io_thread)
{
	struct hx_io_messages settled;

	hx_lock_acquire(&io_thread->lock);
	settled = io_thread->settled;
	io_thread->settled = (struct hx_io_messages){NULL, NULL};
	hx_lock_release(&io_thread->lock);
	return settled;
}

struct hx_publications hx_io_thread_take_asked(struct hx_io_thread *io_thread)
{
	struct hx_publications asked;

	hx_lock_acquire(&io_thread->lock);
	asked = io_thread->asked;
	io_thread->asked = (struct hx_publications){NULL, NULL};
	hx_lock_release(&io_thread->lock);
	return asked;
}

void hx_io_thread_carried_out(struct hx_io_thread *io_thread, size_t count)
{
	bool is_idle;

	if (count == 0)
		return;
	hx_lock_acquire(&io_thread->lock);
	io_thread->orders -= count;
	is_idle = io_thread->orders == 0;
	hx_lock_release(&io_thread->lock);
	/* The consumer may wait in drain for the last one. */
	if (is_idle)
		wake(io_thread);
}

void hx_io_thread_published(
	struct hx_io_thread *io_thread, struct hapax_publication *publication,
	enum hapax_status status, const char *why)
{
	hx_lock_acquire(&io_thread->lock);
	HX_LIST_ADD(
		status == HAPAX_OK ? &io_thread->delivered : &io_thread->refused, publication,
		private_next);
	if (status != HAPAX_OK)
		(void)snprintf(io_thread->why, sizeof(io_thread->why), "%s", why);
	io_thread->orders--;
	hx_lock_release(&io_thread->lock);
	wake(io_thread);
}

void hx_io_thread_refuse(
	struct hx_io_thread *io_thread, struct hx_publications *list, const char *why)
{
	struct hapax_publication *publication;

	while ((publication = hx_publications_take(list)) != NULL)
		hx_io_thread_published(io_thread, publication, HAPAX_ERR_UNAVAILABLE, why);
}

void hx_io_thread_say(struct hx_io_thread *io_thread, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	hx_lock_acquire(&io_thread->lock);
	io_thread->failures++;
	(void)vsnprintf(io_thread->said, sizeof(io_thread->said), format, values);
	hx_lock_release(&io_thread->lock);
	va_end(values);
	wake(io_thread);
}

struct hx_io_messages hx_io_thread_lost(struct hx_io_thread *io_thread)
{
	struct hx_io_messages arrived;

	hx_lock_acquire(&io_thread->lock);
	arrived = io_thread->arrived;
	io_thread->arrived = (struct hx_io_messages){NULL, NULL};
	io_thread->generation++;
	io_thread->lag = -1;
	hx_lock_release(&io_thread->lock);
	wake(io_thread);
	return arrived;
}

void hx_io_thread_recall(struct hx_io_thread *io_thread)
{
	hx_lock_acquire(&io_thread->lock);
	for (struct hx_io_message *at = io_thread->arrived.first; at != NULL; at = at->next) {
		at->is_acked = false;
		io_thread->orders++;
	}
	HX_LIST_JOIN(&io_thread->settled, &io_thread->arrived, next);
	hx_lock_release(&io_thread->lock);
}
