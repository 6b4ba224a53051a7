/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_sink.h - a sink that keeps what is published to it, and fails as it is told.
 */
#ifndef TEST_OUTBOX_MEMORY_SINK_H
#define TEST_OUTBOX_MEMORY_SINK_H

#include "base/thread.h"
#include "outbox/sink.h"

enum { MEMORY_SINK_MAX = 40000, MEMORY_SINK_TEXT = 48 };

/* What lives on when the sinks are closed; several may share it. */
struct memory_log {
	struct hx_mutex mutex;
	size_t count;
	struct {
		char id[MEMORY_SINK_TEXT];
		char key[MEMORY_SINK_TEXT];
		char payload[MEMORY_SINK_TEXT];
	} messages[MEMORY_SINK_MAX];
	size_t publishes; /* calls */
	size_t calls_max; /* rows in one call, at most */

	/*
	 * Topics that begin with "fail" FAIL, with "bad" are REFUSED, until that is switched off; with
	 * "garbled" they are REFUSED for a reason that is not text; with "silent" never decided,
	 * nor with "unsent", for want of time; with "slow" they take half of the time.
	 */
	bool is_tolerant;
	size_t away; /* so many calls of publish find no server */
};

void memory_log_init(struct memory_log *log);

/* The messages with that payload or id; how many, and where the first one stands. */
size_t memory_log_find(struct memory_log *log, const char *id, size_t *ret_first);

struct hx_sink *memory_sink_new(struct memory_log *log);

#endif
