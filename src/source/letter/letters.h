/* SPDX-License-Identifier: Apache-2.0 */
/*
 * letters.h - the dead letters of a consumer: look at them, and send some of them again.
 *
 * They are read as any source is, from the place where the consumer puts them, and given back:
 *
 *	RabbitMQ   from the queue. A quorum queue counts what comes back and drops it above its limit,
 *	           so the letter is published to the end of the queue instead, then removed
 *	Redis      from the stream, by the group GROUP.letters; sent again: deleted
 *	Kafka      from the topic, by the group GROUP.letters; its offset moves over letters that
 *	           were sent again, from the oldest on. A topic keeps what it has.
 *
 *  (1) A letter is removed after the broker has stored its message in the original place. A crash in
 *      between leaves both; the consumer then finds the key done, or runs it.
 *  (2) A letter returns only to a topic of its own consumer, whatever its headers say.
 *  (3) A key that would refuse the message is made to run again first: a parked key is released, a
 *      stored permanent failure is forgotten. A key that is done stays done.
 *
 * Threads: one at a time; it blocks.
 */
#ifndef HX_SOURCE_LETTER_LETTERS_H
#define HX_SOURCE_LETTER_LETTERS_H

#include <stdint.h>

#include <hapax/ext/source_ops.h>
#include <hapax/key.h>
#include <hapax/store.h>

struct hx_worker;

enum { HX_LETTERS_MAX = 1000, HX_LETTER_ID_SIZE = 320 };

/* The consumer. */
struct hx_letters {
	const char *from;     /* its URL */
	const char *target;   /* its dead_letter; "": the topic with .dead */
	const char *strategy; /* NULL: the default */
	const struct hapax_key_options *key_options;
	struct hapax_store *store; /* of its keys */
	struct hx_worker *worker;  /* that walks; the walk ends if it is stopped. NULL: none */
};

/* Headers that are missing are empty. Borrowed for the call. */
struct hx_letter {
	char id[HX_LETTER_ID_SIZE]; /* TOPIC/PARTITION/OFFSET of Kafka, an id of Redis; in a queue a hash */
	const struct hapax_message *message;
	struct hapax_bytes reason; /* one word */
	struct hapax_bytes error;
	struct hapax_bytes place; /* of the original */
	struct hapax_bytes attempts;
	struct hapax_bytes key;
};

enum hx_letter_choice {
	HX_LETTER_KEEP,
	HX_LETTER_RETRY, /* send it again, and remove it */
	HX_LETTER_STOP,  /* keep it, and look at no more */
};

typedef enum hx_letter_choice hx_letter_fn(const struct hx_letter *letter, void *context);

struct hx_letters_sum {
	uint64_t seen;
	uint64_t retried;
	uint64_t moved;        /* to the end of their queue: RabbitMQ */
	uint64_t listed_again; /* of those sent, behind one that was not: Kafka lists them again */
	uint64_t failed;       /* chosen, but not sent: they stay */
	int64_t left;          /* letters that were not looked at; -1: unknown */
	char why[HAPAX_ERROR_MESSAGE_SIZE]; /* of the last failure */
};

/*
 * Calls each with at most HX_LETTERS_MAX letters, the oldest first. UNAVAILABLE: the broker was not
 * reached, or has no such place. Takes seconds, and less than the minute that a client of the API
 * waits.
 */
enum hapax_status hx_letters_walk(
	const struct hx_letters *letters, hx_letter_fn *each, void *context,
	struct hx_letters_sum *ret_sum, struct hapax_error *err);

#endif
