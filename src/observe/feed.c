/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c - recent decisions.
 */
#include "observe/feed.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"

/* One thread writes, another takes: neither waits. */
struct ring {
	_Atomic uint64_t written; /* written by the writer, like slots and lost */
	_Atomic uint64_t lost;
	struct hx_feed_slot *slots; /* HX_FEED_NOTES_MAX; NULL until the first note */
	_Atomic uint64_t taken;     /* written by the reader, like told */
	uint64_t told;              /* of lost */
};

struct hx_feed {
	size_t writers;
	_Atomic unsigned listens;
	struct ring rings[];
};

enum hapax_status hx_feed_new(size_t writers, struct hx_feed **ret_feed, struct hapax_error *err)
{
	struct hx_feed *feed = hx_alloc_zero(1, sizeof(*feed) + writers * sizeof(feed->rings[0]));

	if (feed == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for the events of the API");
	feed->writers = writers;
	*ret_feed = feed;
	return HAPAX_OK;
}

void hx_feed_free(struct hx_feed *feed)
{
	if (feed == NULL)
		return;
	for (size_t i = 0; i < feed->writers; i++)
		hx_free(feed->rings[i].slots);
	hx_free(feed);
}

void hx_feed_listen(struct hx_feed *feed, bool listens)
{
	atomic_store_explicit(&feed->listens, listens, memory_order_relaxed);
}

bool hx_feed_wants(struct hx_feed *feed, size_t writer, enum hapax_decision decision)
{
	struct ring *ring;

	if (feed == NULL ||
	    (decision == HAPAX_DECISION_ACQUIRED &&
	     atomic_load_explicit(&feed->listens, memory_order_relaxed) == 0))
		return false;
	assert(writer < feed->writers);
	ring = &feed->rings[writer];
	if (ring->slots == NULL)
		ring->slots = hx_alloc(HX_FEED_NOTES_MAX * sizeof(ring->slots[0]));
	if (ring->slots != NULL &&
	    atomic_load_explicit(&ring->written, memory_order_relaxed) -
			    atomic_load_explicit(&ring->taken, memory_order_acquire) <
		    HX_FEED_NOTES_MAX)
		return true;
	atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
	return false;
}

static unsigned char *copy_text(
	struct hapax_bytes *text, struct hapax_bytes source, size_t size_max, unsigned char *at)
{
	size_t size = source.size < size_max ? source.size : size_max;

	if (size > 0)
		memcpy(at, source.data, size);
	*text = hx_bytes(at, size);
	return at + size;
}

static unsigned char *copy_word(
	struct hapax_bytes *text, struct hapax_bytes source, unsigned char *at)
{
	return copy_text(
		text, hx_utf8_cut(source, HX_FEED_WORD_SIZE_MAX), HX_FEED_WORD_SIZE_MAX, at);
}

static unsigned char *copy_event(
	struct hapax_cause *to, const struct hapax_cause *event, unsigned char *at)
{
	at = copy_word(&to->id, event->id, at);
	at = copy_word(&to->type, event->type, at);
	return copy_word(&to->source, event->source, at);
}

void hx_feed_slot_set(struct hx_feed_slot *slot, const struct hx_feed_note *note)
{
	struct hx_feed_note *to = &slot->note;
	unsigned char *at = slot->text;

	*to = *note;
	at = copy_text(&to->tenant, note->tenant, HX_SCOPE_PART_SIZE_MAX, at);
	at = copy_text(&to->group, note->group, HX_SCOPE_PART_SIZE_MAX, at);
	at = copy_text(&to->key, note->key, HX_KEY_SIZE_MAX, at);
	at = copy_event(&to->event, &note->event, at);
	at = copy_event(&to->original, &note->original, at);
	assert((size_t)(at - slot->text) <= sizeof(slot->text));
}

void hx_feed_add(struct hx_feed *feed, size_t writer, const struct hx_feed_note *note)
{
	struct ring *ring;
	uint64_t written;

	if (!hx_feed_wants(feed, writer, note->decision))
		return;
	ring = &feed->rings[writer];
	written = atomic_load_explicit(&ring->written, memory_order_relaxed);
	hx_feed_slot_set(&ring->slots[written % HX_FEED_NOTES_MAX], note);
	atomic_store_explicit(&ring->written, written + 1, memory_order_release);
}

uint64_t hx_feed_take(struct hx_feed *feed, hx_feed_fn *each, void *context)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < feed->writers; i++) {
		struct ring *ring = &feed->rings[i];
		uint64_t written = atomic_load_explicit(&ring->written, memory_order_acquire);
		uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
		uint64_t lost_there = atomic_load_explicit(&ring->lost, memory_order_relaxed);

		for (; taken < written; taken++)
			each(&ring->slots[taken % HX_FEED_NOTES_MAX].note, context);
		atomic_store_explicit(&ring->taken, taken, memory_order_release);
		lost += lost_there - ring->told;
		ring->told = lost_there;
	}
	return lost;
}

bool hx_feed_is_duplicate(const struct hx_feed_note *note)
{
	return note->decision == HAPAX_DECISION_REPLAY ||
		note->decision == HAPAX_DECISION_IN_PROGRESS ||
		note->decision == HAPAX_DECISION_MISMATCH ||
		note->decision == HAPAX_DECISION_PARKED;
}

/* Only what is certain; the repeating sender and its reason are unknown. */
const char *hx_feed_cause(const struct hx_feed_note *note)
{
	if (note->door == HX_DOOR_CONSUMER && note->decision == HAPAX_DECISION_REPLAY)
		return hapax_duplicate_cause_name(note->cause);
	if (note->decision == HAPAX_DECISION_MISMATCH)
		return "other_payload";
	if (note->decision == HAPAX_DECISION_PARKED)
		return "parked";
	if (note->decision == HAPAX_DECISION_IN_PROGRESS || (note->flags & HX_FEED_WAITED))
		return "concurrent";
	return note->flags & HX_FEED_EVENT_ID ? "redelivered" : "repeated";
}
