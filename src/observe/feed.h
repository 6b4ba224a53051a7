/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - what was decided lately, one note for each: for those who look on.
 *
 * Every writer (a loop, a door) has a small ring of its own, which it fills without a lock.
 * A reader, the one that shows them, takes them all over now and then and numbers them.
 * What comes while a ring is full is counted and not noted: a busy door pays for a few
 * hundred notes a second and for no more, and nobody is ever held up.
 *
 * Duplicates are noted always, first deliveries only while somebody listens.
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
	/* Of one writer, between two times that they are taken. */
	HX_FEED_NOTES_MAX = 256,

	/* Of an event's type and source: more is cut. */
	HX_FEED_WORD_SIZE_MAX = 128,

	HX_FEED_TEXT_SIZE_MAX =
		HX_KEY_SIZE_MAX + 2 * HX_SCOPE_PART_SIZE_MAX + 2 * HX_FEED_WORD_SIZE_MAX,
};

enum hx_feed_flag {
	HX_FEED_WAITED = 1 << 0,   /* it came while the first one ran, and waited for that */
	HX_FEED_EVENT_ID = 1 << 1, /* its key is the event's own id */
	HX_FEED_MESSAGE = 1 << 2,  /* a consumer took it from a broker: cause is known */
};

struct hx_feed_note {
	uint64_t number; /* given by whoever takes it */
	int64_t at_ms;   /* wall clock, as first_seen_ms */
	int64_t first_seen_ms;
	uint64_t token; /* of the run that it is about */
	uint32_t attempt;
	unsigned flags; /* enum hx_feed_flag */
	enum hapax_decision decision;
	enum hx_door door;                /* of all but messages */
	enum hapax_duplicate_cause cause; /* of messages */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	struct hapax_bytes type; /* of an event, or empty; as source */
	struct hapax_bytes source;
};

/* A note that owns its texts. */
struct hx_feed_slot {
	struct hx_feed_note note; /* its texts point at text */
	unsigned char text[HX_FEED_TEXT_SIZE_MAX];
};

struct hx_feed;

enum hapax_status hx_feed_new(size_t writers, struct hx_feed **ret_feed, struct hapax_error *err);
void hx_feed_free(struct hx_feed *feed);

/* While somebody listens first deliveries are noted, too. */
void hx_feed_listen(struct hx_feed *feed, bool listens);

/*
 * Whether a decision is to be noted now; if only for lack of room, it is counted as lost. For
 * those who have to gather what it is about. feed may be NULL.
 */
bool hx_feed_wants(struct hx_feed *feed, size_t writer, enum hapax_decision decision);

/* Texts are copied. What is not wanted is left out. */
void hx_feed_add(struct hx_feed *feed, size_t writer, const struct hx_feed_note *note);

/* Called for each note, which is borrowed. */
typedef void hx_feed_fn(const struct hx_feed_note *note, void *context);

/* Take what was noted since: of each writer in order. Returns how many were lost. */
uint64_t hx_feed_take(struct hx_feed *feed, hx_feed_fn *each, void *context);

/* Copy a note with its texts. */
void hx_feed_slot_set(struct hx_feed_slot *slot, const struct hx_feed_note *note);

/* Is it a duplicate, and why did it come? "concurrent", "redelivered", ...; never NULL. */
bool hx_feed_is_duplicate(const struct hx_feed_note *note);
const char *hx_feed_cause(const struct hx_feed_note *note);

/* "gateway", ...; "consumer". */
const char *hx_feed_door(const struct hx_feed_note *note);

#endif
