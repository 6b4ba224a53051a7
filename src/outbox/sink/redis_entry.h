/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_entry.h - writes a row as the command that adds an entry to a Redis stream.
 *
 * The entry: the attributes of the event as fields with the prefix "ce_", Debezium's "id", the
 * row's headers, "content-type", and "data".
 *
 * Threads: one at a time for each sink.
 */
#ifndef HX_OUTBOX_SINK_REDIS_ENTRY_H
#define HX_OUTBOX_SINK_REDIS_ENTRY_H

#include "outbox/sink.h"
#include "outbox/sink/redis_target.h"

/* The command without the payload. */
enum { HX_REDIS_ENTRY_SIZE_MAX = 256 * 1024 };

/* The stream of a row: that of the URL, or else the row's topic. */
struct hapax_bytes hx_redis_entry_stream(
	const struct hx_redis_target *target, const struct hx_outbox_row *row);

/* Write all but the payload to head. False: the row does not fit an entry, and is refused. */
bool hx_redis_entry_write(
	const struct hx_redis_target *target, struct hx_sink *sink, struct hx_outbox_row *row,
	struct hapax_buf *head);

#endif
