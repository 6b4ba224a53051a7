/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.c - the target and headers of a message that is handed on.
 *
 * A dead letter keeps its headers. These are added, and replace those of an earlier dead letter:
 *
 *	hapax-dead-reason    why, in one word: attempts, mismatch, parked, no-key, ...
 *	hapax-dead-error     the same as readable text
 *	hapax-dead-place     its place: topic/partition/offset
 *	hapax-dead-attempts  how often its key was run
 *	hapax-dead-key       its key, if it has one
 *
 * A diverted duplicate gets hapax-duplicate-cause and hapax-duplicate-place.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "source/consume/consumer.h"
#include "source/source.h"

const char *hx_handover_reason(enum hx_in_flight_reason reason)
{
	switch (reason) {
	case HX_REASON_NONE: return NULL;
	case HX_REASON_MALFORMED: return "malformed";
	case HX_REASON_TOO_LARGE: return "too-large";
	case HX_REASON_NO_KEY: return "no-key";
	case HX_REASON_NO_ROUTE: return "no-route";
	case HX_REASON_MISMATCH: return "mismatch";
	case HX_REASON_PARKED: return "parked";
	case HX_REASON_UNREADABLE: return "unreadable";
	case HX_REASON_DEFINITIVE: return "definitive";
	case HX_REASON_ATTEMPTS: return "attempts";
	case HX_REASON_DUPLICATE: return "duplicate";
	}
	return "unknown";
}

static void add(struct hx_in_flight *in_flight, const char *name, struct hapax_bytes value)
{
	struct hapax_publication *publication = &in_flight->publication;

	in_flight->headers[publication->header_count++] =
		(struct hapax_field){hapax_bytes_from_text(name), value};
}

static void copy_headers(struct hx_in_flight *in_flight)
{
	const struct hapax_message *message = in_flight->message;
	struct hapax_publication *publication = &in_flight->publication;

	publication->header_count = 0;
	for (size_t i = 0;
	     i < message->header_count && publication->header_count < HX_ENVELOPE_HEADERS_MAX;
	     i++) {
		if (!hx_source_adds_header(message->headers[i].name))
			in_flight->headers[publication->header_count++] = message->headers[i];
	}
}

/* The configured target, or the topic with a suffix. */
static void choose_target(struct hx_in_flight *in_flight, const char *asked, const char *suffix)
{
	struct hapax_bytes topic = in_flight->message->topic;

	if (asked[0] != '\0')
		(void)snprintf(in_flight->target, sizeof(in_flight->target), "%s", asked);
	else
		(void)snprintf(
			in_flight->target, sizeof(in_flight->target), "%.*s%s",
			(int)(topic.size < 256 ? topic.size : 256), (const char *)topic.data,
			suffix);
}

void hx_handover_prepare(struct hx_in_flight *in_flight)
{
	const struct hx_consumer *consumer = in_flight->consumer;
	struct hapax_bytes place = hapax_bytes_from_text(in_flight->place);

	copy_headers(in_flight);
	in_flight->publication.message = in_flight->message;
	in_flight->publication.headers = in_flight->headers;
	in_flight->publication.target = in_flight->target;
	if (in_flight->reason == HX_REASON_DUPLICATE) {
		choose_target(in_flight, consumer->divert, ".duplicate");
		add(in_flight, "hapax-duplicate-cause",
		    hapax_bytes_from_text(in_flight->reason_text));
		add(in_flight, "hapax-duplicate-place", place);
		return;
	}
	choose_target(in_flight, consumer->dead_letter, ".dead");
	add(in_flight, "hapax-dead-reason",
	    hapax_bytes_from_text(hx_handover_reason(in_flight->reason)));
	add(in_flight, "hapax-dead-error", hapax_bytes_from_text(in_flight->reason_text));
	add(in_flight, "hapax-dead-place", place);
	(void)snprintf(
		in_flight->attempt_text, sizeof(in_flight->attempt_text), "%" PRIu32,
		in_flight->attempt);
	add(in_flight, "hapax-dead-attempts", hapax_bytes_from_text(in_flight->attempt_text));
	if (in_flight->key.key_size > 0)
		add(in_flight, "hapax-dead-key",
		    hx_bytes(in_flight->key.key, in_flight->key.key_size));
}
