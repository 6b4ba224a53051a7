/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_case.h - what every sink has to show, with an outbox in PostgreSQL (tests/postgres/with_postgres)
 * and one in SQLite, and a broker of its kind. A test program has a struct sink_broker, and runs the
 * cases with it.
 */
#ifndef TEST_OUTBOX_SINK_CASE_H
#define TEST_OUTBOX_SINK_CASE_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/key.h>
#include <hapax/outbox.h>

#include "outbox/outbox.h"
#include "outbox/outbox_case.h"

struct CMUnitTest;

/* A message as a consumer sees it. */
struct sink_message {
	struct hapax_bytes body;
	struct hapax_field fields[HAPAX_OUTBOX_HEADERS_MAX];
	size_t count;
};

typedef void sink_message_fn(void *context, const struct sink_message *message);

/* An event that the broker will not take. */
struct sink_bad {
	const char *id;
	const char *topic;
	size_t payload_size;
	const char *reason; /* a part of it */
};

enum sink_mode {
	SINK_OPEN,   /* topics are there, or are made */
	SINK_STRICT, /* for what cannot be published */
};

struct sink_broker {
	const char *name;
	const char *prefix; /* of the attributes */
	const char *absent; /* the URL of a sink without a server */
	const struct sink_bad *bad;
	size_t bad_count;
	bool restarts_fast;

	void (*url)(enum sink_mode mode, char *out, size_t size);
	/* It dies and comes back with what it confirmed. */
	void (*restart)(void);
	/* All messages of a topic; of one key in their order. */
	void (*read)(const char *topic, sink_message_fn *each, void *context);
};

/* The text of a field; "" when it is not there. Borrowed until the next call. */
const char *sink_message_field(const struct sink_message *message, const char *name);

/* Run all cases, and more of the broker's own, as the one group of a program. */
int sink_cases_run(
	const struct sink_broker *broker, const struct CMUnitTest *more, size_t more_count);

/* For cases of the broker's own, whose state is the broker: an outbox, and the URL of the sink. */
struct sink_case {
	struct outbox_case outbox;
	char sink[512];
};

/* kind: "sqlite:" or "postgres:". */
void sink_case_begin(
	struct sink_case *c, const struct sink_broker *broker, const char *kind,
	enum sink_mode mode);
void sink_case_end(struct sink_case *c);

/* Of a relay that ends when nothing is pending; one that is run so. */
struct hapax_relay_options sink_case_options(const struct sink_case *c);
void sink_case_relay(const struct sink_case *c, const struct hapax_relay_options *options);

/* T12, in sink_proof.c; state is the broker. */
void committed_is_published_and_happens_once(void **state);
void committed_in_sqlite_is_published_and_happens_once(void **state);

#endif
