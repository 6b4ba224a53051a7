/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - recent decisions, one note each, for listeners.
 *
 * Every writer (a loop, a door) has its own small ring, which it fills without a lock. The one
 * reader takes all notes from time to time and numbers them. While a ring is full, decisions are
 * counted but not noted: a busy door pays for at most a few hundred notes a second, and no writer
 * ever waits.
 *
 * Duplicates are always noted, first deliveries only while there is a listener.
 *
 * Threads: note each writer its own; take one at a time; listen any.
 */
#ifndef HX_FEED_H
#define HX_FEED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/source.h>
#include <hapax/store.h>

#include "base/limits.h"
#include "observe/metrics/metrics.h"

enum {
	/* Per writer, between two takes. */
	HX_FEED_NOTES_MAX = 256,

	/* For an event's id, type and source: more is cut. */
	HX_FEED_WORD_SIZE_MAX = 128,

	HX_FEED_TEXT_SIZE_MAX =
		HX_KEY_SIZE_MAX + 2 * HX_SCOPE_PART_SIZE_MAX + 6 * HX_FEED_WORD_SIZE_MAX,
};

enum hx_feed_flag {
	HX_FEED_WAITED = 1 << 0,   /* it arrived during the first run, and waited for it */
	HX_FEED_EVENT_ID = 1 << 1, /* its key is the event's own id */
};

struct hx_feed_note {
	uint64_t number; /* set by the reader */
	int64_t at_ms;   /* wall clock, like first_seen_ms */
	int64_t first_seen_ms;
	uint64_t token; /* of the original run */
	uint32_t attempt;
	unsigned flags; /* enum hx_feed_flag */
	enum hapax_decision decision;
	enum hx_door door;
	enum hapax_duplicate_cause cause; /* of a consumer's replay */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	struct hapax_cause event;    /* or zeros */
	struct hapax_cause original; /* a duplicate: the event that the key was claimed for */
};

/* A note that owns its texts. */
struct hx_feed_slot {
	struct hx_feed_note note; /* its texts point at text */
	unsigned char text[HX_FEED_TEXT_SIZE_MAX];
};

struct hx_feed;

enum hapax_status hx_feed_new(size_t writers, struct hx_feed **ret_feed, struct hapax_error *err);
void hx_feed_free(struct hx_feed *feed);

/* While listens is true, first deliveries are noted as well. */
void hx_feed_listen(struct hx_feed *feed, bool listens);

/*
 * Should a decision be noted now? If only room is missing, it is counted as lost. For callers that
 * must collect the data first. feed may be NULL.
 */
bool hx_feed_wants(struct hx_feed *feed, size_t writer, enum hapax_decision decision);

/* Texts are copied. Unwanted notes are left out. */
void hx_feed_add(struct hx_feed *feed, size_t writer, const struct hx_feed_note *note);

/* Called for each note, which is borrowed. */
typedef void hx_feed_fn(const struct hx_feed_note *note, void *context);

/* Take new notes, in order for each writer. Returns how many were lost. */
uint64_t hx_feed_take(struct hx_feed *feed, hx_feed_fn *each, void *context);

/* Copy a note with its texts. */
void hx_feed_slot_set(struct hx_feed_slot *slot, const struct hx_feed_note *note);

/* Is it a duplicate, and what caused it? "concurrent", "redelivered", ...; never NULL. */
bool hx_feed_is_duplicate(const struct hx_feed_note *note);
const char *hx_feed_cause(const struct hx_feed_note *note);

#endif
