/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_case.h - a broker in memory, members that consume from it, and a store, on a clock that the
 * test moves.
 *
 * The broker has partitions, each owned by one member; what is taken away from a member while it
 * is out is delivered to the next owner again. Every ack is held to I4: at that moment the
 * record of the message is DONE in the store, or the broker has it as a dead letter.
 */
#ifndef TEST_SOURCE_SOURCE_CASE_H
#define TEST_SOURCE_SOURCE_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/hapax.h>

#include "source/consume/consumer.h"
#include "support/held_store.h"
#include "support/store_case.h"

enum {
	CASE_MEMBERS = 2,
	CASE_PARTITIONS = 4,
	CASE_MESSAGES_MAX = 256,
	CASE_INSTANCES = 64,
	CASE_FACTS = 16,
};

/* What the broker has. */
struct case_letter {
	int partition;
	char id[24]; /* header eventId, and so the key; empty: none */
	char key[8]; /* what the broker orders by; empty: none */
	char data[32];
	char place[16];
	struct hapax_field headers[3];
	size_t header_count;
	bool is_out; /* at the owner of its partition */
	bool is_acked;
	bool is_dead;
	bool is_diverted;
	unsigned flags;
	char reason[24];
	unsigned effects; /* runs that ended ok; not those of tagged duplicates */
};

struct case_member;

/* A message as one member has it. */
struct case_instance {
	struct hapax_message base;
	struct case_letter *letter; /* NULL: free */
};

struct case_member {
	struct hapax_source source;
	struct source_case *c;
	int number;
	struct case_instance instances[CASE_INSTANCES];
	struct hx_handler handler;
	struct hx_consumer core;
	struct hx_route route;
	struct hx_identity identity;
	struct hapax_publication *publications;
	bool is_hurried;
	struct hx_in_flight *running[CASE_INSTANCES];
	size_t running_count;
	unsigned acks;
	unsigned back;
};

struct source_case {
	struct store_case store;
	struct held_store held;
	struct case_letter letters[CASE_MESSAGES_MAX];
	size_t letter_count;
	int owner[CASE_PARTITIONS];
	bool refuses_letters;   /* the broker takes no dead letters */
	bool withholds_answers; /* ... nor says so, unless it is hurried */
	struct case_member members[CASE_MEMBERS];
	size_t member_count;
	struct hapax_consumer_options options; /* before source_case_open() */
	uint64_t random;
	unsigned facts[CASE_FACTS];       /* by enum hapax_consumer_fact */
	enum hapax_duplicate_cause cause; /* of the last duplicate */
	char original[64];
	const char *broken; /* NULL: I4 held at every ack */
};

/* prefetch 16, parallel 8, backoff 10 ms to 80 ms, 3 attempts, lease 900 ms. */
void source_case_init(struct source_case *c);
void source_case_open(struct source_case *c, size_t member_count);
void source_case_done(struct source_case *c);

/* A message of event id, with that key and data, at the end of a partition. */
struct case_letter *source_case_send(
	struct source_case *c, int partition, const char *id, const char *key, const char *data);

/* Give a partition to another member. */
void source_case_give(struct source_case *c, int partition, int member);

/* A turn of a member, and of all, until nothing more is to be done at once. */
void source_case_turn(struct source_case *c, struct case_member *member);
void source_case_turns(struct source_case *c);

/* Time passes, with turns of all every millisecond. */
void source_case_pass(struct source_case *c, int64_t ms);

/* End the oldest run of a member, or that of a letter. */
void source_case_finish(struct case_member *member, size_t index, enum hapax_run_outcome outcome);
struct hx_in_flight *source_case_running(
	struct case_member *member, const struct case_letter *letter);

#endif
