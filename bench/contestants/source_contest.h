/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_contest.h - messages consumed from a broker: what a consumer pays for not doing it twice.
 *
 *	--mode MODE      bare: the loop of the broker's own library
 *	                 hapax: hapax_consumer_run(), claim and complete on file:
 *	--messages N     small ones, each with an id
 *	--folder DIR     for the store
 *
 * What a broker is told, and when the clock runs, is the broker's part.
 */
#ifndef BENCH_SOURCE_CONTEST_H
#define BENCH_SOURCE_CONTEST_H

#include <stdbool.h>
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
	size_t in_hand;          /* of hapax: messages, and how many are worked on at once */
	bool ends_with_consumer; /* the clock runs until it is freed, else to the last ack */
	bool begins_with_share; /* the clock runs from a rebalance on, else from the first message */
	/* A broker with the messages of seed in it, and where hapax finds it. */
	void (*open)(struct source_contest *contest, uint64_t seed, char ret_url[SOURCE_URL_SIZE]);
	void (*close)(struct source_contest *contest);
	/* All messages, looked at by source_contest_see(); the clock is its own to stop. */
	void (*consume_bare)(struct source_contest *contest);
};

struct source_contest {
	const struct source_contest_ops *ops;
	void *context; /* the broker's */
	const char *mode;
	const char *folder;
	uint64_t messages;
	struct contest_time time;
	bool has_begun;
	uint64_t bytes; /* what was looked at */
	struct hapax_consumer *consumer;
};

/* Start the clock, once in a round. */
void source_contest_begin(struct source_contest *contest);

int source_contest_main(const struct source_contest_ops *ops, void *context, int argc, char **argv);

#endif
