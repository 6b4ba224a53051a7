/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_rows.h - rows for a sink without a database: each with a key of its own.
 */
#ifndef TEST_OUTBOX_SINK_ROWS_H
#define TEST_OUTBOX_SINK_ROWS_H

#include "outbox/sink.h"

enum { SINK_ROWS_MAX = 600, SINK_ROWS_TEXT = 24 };

struct sink_rows {
	struct hx_outbox_row rows[SINK_ROWS_MAX];
	struct hx_outbox_row *list[SINK_ROWS_MAX];
	char ids[SINK_ROWS_MAX][SINK_ROWS_TEXT];
	size_t count;
};

/* count rows of a topic: "id-0", "id-1" and so on. */
void sink_rows_make(struct sink_rows *rows, const char *topic, size_t count);

/* A sink that is open; a failure fails the test. */
struct hx_sink *sink_rows_open(const char *url);

/* Publish those that are undecided, within wait_ms. */
enum hapax_status sink_rows_publish(
	struct sink_rows *rows, struct hx_sink *sink, int64_t wait_ms, struct hapax_error *err);

/* How many have that outcome. */
size_t sink_rows_with(const struct sink_rows *rows, enum hx_outbox_outcome outcome);

/* How many were handed over, and nothing was heard of them. */
size_t sink_rows_awaited(const struct sink_rows *rows);

#endif
