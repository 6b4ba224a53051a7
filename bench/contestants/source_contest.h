/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_contest.h - messages consumed from a broker: what a consumer pays for not doing it twice.
 *
 *	--mode MODE      bare: the loop of the broker's own library
 *	                 hapax: hapax_consumer_run(), claim and complete on file:
 *	--messages N     small ones, each with an id
 *	--folder DIR     for the store
 *
 * The clock runs from the first message until the broker knows that all of them are done, which is what
 * the end of a consumer waits for. What a broker is told is the broker's part.
 */
#ifndef BENCH_SOURCE_CONTEST_H
#define BENCH_SOURCE_CONTEST_H

#include <stddef.h>
#include <stdint.h>

#include "contest.h"

enum { SOURCE_DATA_SIZE = 64, SOURCE_WAIT_MS = 60000, SOURCE_URL_SIZE = 512 };

struct hapax_consumer;
struct source_contest;

/* A broker's part. */
struct source_contest_ops {
	const char *name; /* of the library that the bare loop uses */
	const char *version;
	size_t in_hand; /* of hapax: messages, and how many are worked on at once */
	/* A round's messages to the broker; where hapax finds them. */
	void (*fill)(struct source_contest *contest, char ret_url[SOURCE_URL_SIZE]);
	/* All messages, each of them given to source_contest_see(); the clock is its own to stop. */
	void (*consume_bare)(struct source_contest *contest);
};

struct source_contest {
	const struct source_contest_ops *ops;
	void *context; /* the broker's */
	const char *mode;
	const char *folder;
	uint64_t messages;
	uint64_t seed; /* of the round */
	struct contest_time time;
	uint64_t bytes; /* what was looked at */
	struct hapax_consumer *consumer;
};

/* A message has come; the first of a round starts the clock. */
void source_contest_see(struct source_contest *contest, size_t size);

int source_contest_main(const struct source_contest_ops *ops, void *context, int argc, char **argv);

#endif
