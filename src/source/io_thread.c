/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_thread.c - a source with a thread of its own, which goes to the broker and back.
 */
#include "source/io_thread.h"

#include <stdio.h>

struct hx_parcel *hx_parcels_take(struct hx_parcels *list)
{
	struct hx_parcel *parcel;

	HX_LIST_TAKE(list, parcel, next);
	return parcel;
}

struct hapax_publication *hx_publications_take(struct hx_publications *list)
{
	struct hapax_publication *publication;

	HX_LIST_TAKE(list, publication, private_next);
	return publication;
}

static void wake(struct hx_courier *courier)
{
	const struct hapax_source_hooks *hooks = &courier->source->hooks;

	if (hooks->wake != NULL)
		hooks->wake(hooks->context);
}

static void on_begin(struct hx_task *task)
{
	struct hx_courier *courier = task->context;

	courier->ops->begin(courier->context);
}

static void on_work(struct hx_task *task)
{
	struct hx_courier *courier = task->context;

	courier->ops->work(courier->context);
}

static void on_stop(struct hx_task *task)
{
	struct hx_courier *courier = task->context;

	courier->ops->stop(courier->context);
}

enum hapax_status hx_courier_init(
	struct hx_courier *courier, struct hapax_source *source, const struct hx_courier_ops *ops,
	void *context, struct hapax_error *err)
{
	enum hapax_status status = hx_reactor_init(&courier->reactor, hx_net_system(), err);

	courier->has_reactor = status == HAPAX_OK;
	courier->source = source;
	courier->ops = ops;
	courier->context = context;
	courier->begin = (struct hx_task){.fn = on_begin, .context = courier};
	courier->work = (struct hx_task){.fn = on_work, .context = courier};
	courier->stop = (struct hx_task){.fn = on_stop, .context = courier};
	hx_lock_init(&courier->lock);
	courier->lag = -1;
	return status;
}

void hx_courier_halt(struct hx_courier *courier)
{
	if (!courier->has_thread)
		return;
	hx_reactor_post(&courier->reactor, &courier->stop);
	hx_thread_join(&courier->thread);
	courier->has_thread = false;
}

void hx_courier_done(struct hx_courier *courier)
{
	if (courier->has_reactor)
		hx_reactor_done(&courier->reactor);
	courier->has_reactor = false;
}

/* ------------------------------------------------------------------ the consumer's thread */

static void run(void *arg)
{
	struct hx_courier *courier = arg;

	hx_reactor_run(&courier->reactor);
}

struct hapax_message *hx_courier_next(struct hx_courier *courier)
{
	struct hx_parcel *parcel;

	hx_lock_acquire(&courier->lock);
	parcel = hx_parcels_take(&courier->arrived);
	hx_lock_release(&courier->lock);
	if (parcel == NULL)
		return NULL;
	parcel->out_back = NULL;
	parcel->out_next = courier->out;
	if (courier->out != NULL)
		courier->out->out_back = parcel;
	courier->out = parcel;
	return &parcel->message;
}

void hx_courier_settle(struct hx_courier *courier, struct hapax_message *message, bool is_acked)
{
	struct hx_parcel *parcel = (struct hx_parcel *)(void *)message;
	bool is_first;

	if (parcel->out_back != NULL)
		parcel->out_back->out_next = parcel->out_next;
	else
		courier->out = parcel->out_next;
	if (parcel->out_next != NULL)
		parcel->out_next->out_back = parcel->out_back;
	parcel->is_acked = is_acked;
	hx_lock_acquire(&courier->lock);
	is_first = courier->settled.first == NULL;
	HX_LIST_ADD(&courier->settled, parcel, next);
	courier->orders++;
	hx_lock_release(&courier->lock);
	/* The courier takes them together: it knows of those before. */
	if (is_first)
		hx_reactor_post(&courier->reactor, &courier->work);
}

void hx_courier_publish(struct hx_courier *courier, struct hapax_publication *publication)
{
	hx_lock_acquire(&courier->lock);
	HX_LIST_ADD(&courier->asked, publication, private_next);
	courier->orders++;
	hx_lock_release(&courier->lock);
	hx_reactor_post(&courier->reactor, &courier->work);
}

static void start(struct hx_courier *courier)
{
	struct hapax_source_hooks *hooks = &courier->source->hooks;
	struct hapax_error err;

	hx_reactor_post(&courier->reactor, &courier->begin);
	courier->has_thread =
		hx_thread_start(&courier->thread, run, courier, "hapax-source", &err) == HAPAX_OK;
	if (!courier->has_thread)
		hooks->failed(hooks->context, err.message, 1);
}

/* What the consumer has of a connection that is gone is somebody else's by now. */
static void revoke(struct hx_courier *courier, uint64_t generation)
{
	if (courier->seen_generation == generation)
		return;
	courier->seen_generation = generation;
	for (struct hx_parcel *at = courier->out; at != NULL; at = at->out_next) {
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

int64_t hx_courier_tick(struct hx_courier *courier)
{
	struct hapax_source_hooks *hooks = &courier->source->hooks;
	struct hx_publications delivered, refused;
	char said[HX_COURIER_TEXT_SIZE];
	char why[HX_COURIER_TEXT_SIZE];
	uint64_t generation;
	bool is_fatal;

	if (!courier->has_thread)
		start(courier);
	hx_lock_acquire(&courier->lock);
	delivered = courier->delivered;
	refused = courier->refused;
	courier->delivered = (struct hx_publications){NULL, NULL};
	courier->refused = (struct hx_publications){NULL, NULL};
	generation = courier->generation;
	is_fatal = courier->is_fatal;
	said[0] = '\0';
	why[0] = '\0';
	if (courier->said[0] != '\0')
		(void)snprintf(said, sizeof(said), "%s", courier->said);
	if (refused.first != NULL)
		(void)snprintf(why, sizeof(why), "%s", courier->why);
	courier->said[0] = '\0';
	hx_lock_release(&courier->lock);
	if (said[0] != '\0')
		hooks->failed(hooks->context, said, is_fatal);
	revoke(courier, generation);
	tell(&delivered, HAPAX_OK, "");
	tell(&refused, HAPAX_ERR_UNAVAILABLE, why);
	return INT64_MAX;
}

int hx_courier_drain(struct hx_courier *courier)
{
	size_t orders;

	hx_lock_acquire(&courier->lock);
	orders = courier->orders;
	hx_lock_release(&courier->lock);
	return orders == 0;
}

void hx_courier_hurry(struct hx_courier *courier)
{
	hx_lock_acquire(&courier->lock);
	courier->is_hurried = true;
	hx_lock_release(&courier->lock);
	hx_reactor_post(&courier->reactor, &courier->work);
}

void hx_courier_stats(struct hx_courier *courier, struct hapax_source_stats *ret_stats)
{
	hx_lock_acquire(&courier->lock);
	ret_stats->lag = courier->lag;
	ret_stats->failures = courier->failures;
	ret_stats->changes = courier->changes;
	hx_lock_release(&courier->lock);
	ret_stats->parts = 1;
}

/* ------------------------------------------------------------------ the courier's thread */

void hx_courier_deliver(struct hx_courier *courier, struct hx_parcels *list)
{
	if (list->first == NULL)
		return;
	/* Only this thread begins another generation. */
	for (struct hx_parcel *at = list->first; at != NULL; at = at->next)
		at->generation = courier->generation;
	hx_lock_acquire(&courier->lock);
	HX_LIST_JOIN(&courier->arrived, list, next);
	hx_lock_release(&courier->lock);
	wake(courier);
}

struct hx_parcels hx_courier_take_settled(struct hx_courier *courier)
{
	struct hx_parcels settled;

	hx_lock_acquire(&courier->lock);
	settled = courier->settled;
	courier->settled = (struct hx_parcels){NULL, NULL};
	hx_lock_release(&courier->lock);
	return settled;
}

struct hx_publications hx_courier_take_asked(struct hx_courier *courier)
{
	struct hx_publications asked;

	hx_lock_acquire(&courier->lock);
	asked = courier->asked;
	courier->asked = (struct hx_publications){NULL, NULL};
	hx_lock_release(&courier->lock);
	return asked;
}

bool hx_courier_is_hurried(struct hx_courier *courier)
{
	bool is_hurried;

	hx_lock_acquire(&courier->lock);
	is_hurried = courier->is_hurried;
	hx_lock_release(&courier->lock);
	return is_hurried;
}

void hx_courier_carried_out(struct hx_courier *courier, size_t count)
{
	bool is_idle;

	if (count == 0)
		return;
	hx_lock_acquire(&courier->lock);
	courier->orders -= count;
	is_idle = courier->orders == 0;
	hx_lock_release(&courier->lock);
	/* Somebody may wait in drain for the last of them. */
	if (is_idle)
		wake(courier);
}

void hx_courier_published(
	struct hx_courier *courier, struct hapax_publication *publication, enum hapax_status status,
	const char *why)
{
	hx_lock_acquire(&courier->lock);
	HX_LIST_ADD(
		status == HAPAX_OK ? &courier->delivered : &courier->refused, publication,
		private_next);
	if (status != HAPAX_OK)
		(void)snprintf(courier->why, sizeof(courier->why), "%s", why);
	courier->orders--;
	hx_lock_release(&courier->lock);
	wake(courier);
}

void hx_courier_say(struct hx_courier *courier, const char *text, bool is_fatal)
{
	hx_lock_acquire(&courier->lock);
	courier->failures++;
	/* What is fatal stays. */
	if (!courier->is_fatal)
		(void)snprintf(courier->said, sizeof(courier->said), "%s", text);
	courier->is_fatal = courier->is_fatal || is_fatal;
	hx_lock_release(&courier->lock);
	wake(courier);
}

struct hx_parcels hx_courier_lost(struct hx_courier *courier)
{
	struct hx_parcels arrived;

	hx_lock_acquire(&courier->lock);
	arrived = courier->arrived;
	courier->arrived = (struct hx_parcels){NULL, NULL};
	courier->generation++;
	courier->lag = -1;
	hx_lock_release(&courier->lock);
	wake(courier);
	return arrived;
}

void hx_courier_recall(struct hx_courier *courier)
{
	hx_lock_acquire(&courier->lock);
	for (struct hx_parcel *at = courier->arrived.first; at != NULL; at = at->next) {
		at->is_acked = false;
		courier->orders++;
	}
	HX_LIST_JOIN(&courier->settled, &courier->arrived, next);
	hx_lock_release(&courier->lock);
}

void hx_courier_gained(struct hx_courier *courier)
{
	hx_lock_acquire(&courier->lock);
	courier->changes++;
	hx_lock_release(&courier->lock);
}

void hx_courier_set_lag(struct hx_courier *courier, int64_t lag)
{
	hx_lock_acquire(&courier->lock);
	courier->lag = lag;
	hx_lock_release(&courier->lock);
}

void hx_courier_end(struct hx_courier *courier)
{
	hx_reactor_stop(&courier->reactor);
}
