/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rereader.h - what a group had acknowledged before, read again: the past of partitions.
 *
 * A reader of its own, outside of the group, on a thread of its own, since the questions
 * that it has to ask (what is committed, which offset had that time) have no answer that
 * can be waited for on a loop. It reads from where the span begins up to the committed
 * offset, and hands over at most RING messages at a time.
 *
 * A span of time counts back from the last message that was acknowledged, not from now:
 * how long the consumer was away makes no difference to what it has forgotten.
 *
 * Threads: the consumer's, for all functions.
 */
#ifndef HX_SOURCE_KAFKA_REREADER_H
#define HX_SOURCE_KAFKA_REREADER_H

#include <stdbool.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include <hapax/error.h>

#include "base/thread.h"

enum { HX_REREADER_RING = 1024, HX_REREADER_WHY_SIZE = 256 };

/* The past of one partition. */
struct hx_past {
	uint64_t id;
	char *topic;
	int32_t number;
	struct hx_past *next;
	/* The reader's. */
	int64_t from;
	int64_t end;     /* the committed offset */
	int64_t time_ms; /* of the last message before it; -1: not known */
	/* Locks: mutex. */
	bool is_taken;     /* the reader has it */
	bool is_cancelled; /* nobody wants it any more */
	bool is_over;      /* the reader has done with it */
	size_t queued;     /* messages of it in the ring */
};

struct hx_rereader {
	rd_kafka_t *rk; /* NULL: nothing was asked for yet */
	int64_t span_ms;
	int64_t span_count;
	void (*wake)(void *context);
	void *wake_context;
	struct hx_thread thread;
	bool is_started;
	uint64_t last_id;
	struct hx_mutex mutex;
	struct hx_cond cond;
	/* Locks: mutex for everything below. */
	struct hx_past *pasts;
	struct {
		rd_kafka_message_t *message;
		struct hx_past *past;
	} ring[HX_REREADER_RING];
	size_t ring_first;
	size_t ring_count;
	char why[HX_REREADER_WHY_SIZE]; /* what went wrong last; empty: nothing */
	bool is_stopped;
};

/* One of the two spans is not 0. Starts nothing. */
void hx_rereader_init(struct hx_rereader *rereader, int64_t span_ms, int64_t span_count);

/* Starts the thread on its first use, by conf, which is the rereader's then. */
enum hapax_status hx_rereader_start(
	struct hx_rereader *rereader, rd_kafka_conf_t *conf, void (*wake)(void *context),
	void *wake_context, struct hapax_error *err);

/* Waits for the thread: some seconds at most. */
void hx_rereader_done(struct hx_rereader *rereader);

/* Read the past of a partition. Returns its id; 0: no memory. */
uint64_t hx_rereader_ask(struct hx_rereader *rereader, const char *topic, int32_t number);

/* The partition is another's: nothing of it is wanted any more. */
void hx_rereader_cancel(struct hx_rereader *rereader, uint64_t id);

/* The next message, and whose it is; NULL: none now. Owned by the caller. */
rd_kafka_message_t *hx_rereader_next(struct hx_rereader *rereader, uint64_t *ret_id);

/* One whose past has been read, all of it handed out; 0: none. Told once. */
uint64_t hx_rereader_over(struct hx_rereader *rereader);

/* What went wrong since the last time. False: nothing. */
bool hx_rereader_failed(struct hx_rereader *rereader, char ret_why[HX_REREADER_WHY_SIZE]);

#endif
