/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rereader.h - reads the past of partitions: messages that the group acknowledged before.
 *
 * It is a separate reader outside of the group, with its own thread, because its questions
 * (committed offsets, offsets by time) block. It reads from the start of the span up to the
 * committed offset, and passes on at most RING messages at a time.
 *
 * A span of time counts back from the last acknowledged message, not from now: the length of the
 * consumer's downtime does not matter.
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
	/* For the reader. */
	int64_t from;
	int64_t end;     /* the committed offset */
	int64_t time_ms; /* of the last message before it; -1: unknown */
	/* Locks: mutex. */
	bool is_taken;     /* the reader has it */
	bool is_cancelled; /* no longer needed */
	bool is_over;      /* the reader is done with it */
	size_t queued;     /* its messages in the ring */
};

struct hx_rereader {
	rd_kafka_t *rk; /* NULL: not started */
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
	char why[HX_REREADER_WHY_SIZE]; /* the last error; empty: none */
	bool is_stopped;
};

/* One of the two spans is not 0. Starts nothing. */
void hx_rereader_init(struct hx_rereader *rereader, int64_t span_ms, int64_t span_count);

/* Starts the thread on first use. Takes conf. */
enum hapax_status hx_rereader_start(
	struct hx_rereader *rereader, rd_kafka_conf_t *conf, void (*wake)(void *context),
	void *wake_context, struct hapax_error *err);

/* Waits for the thread, a few seconds at most. */
void hx_rereader_done(struct hx_rereader *rereader);

/* Read the past of a partition. Returns its id; 0: no memory. */
uint64_t hx_rereader_ask(struct hx_rereader *rereader, const char *topic, int32_t number);

/* The partition was revoked: its past is no longer needed. */
void hx_rereader_cancel(struct hx_rereader *rereader, uint64_t id);

/* The next message, and the id of its past; NULL: none now. Owned by the caller. */
rd_kafka_message_t *hx_rereader_next(struct hx_rereader *rereader, uint64_t *ret_id);

/* A past that is read and passed on completely; 0: none. Reported once. */
uint64_t hx_rereader_over(struct hx_rereader *rereader);

/* The last error since the previous call. False: none. */
bool hx_rereader_failed(struct hx_rereader *rereader, char ret_why[HX_REREADER_WHY_SIZE]);

#endif
