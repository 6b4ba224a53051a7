/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/sink_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void sink_rows_make(struct sink_rows *rows, const char *topic, size_t count)
{
	assert_true(count <= SINK_ROWS_MAX);
	memset(rows, 0, sizeof(*rows));
	rows->count = count;
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(rows->ids[i], sizeof(rows->ids[i]), "id-%zu", i);
		rows->rows[i] = (struct hx_outbox_row){
			.created_ms = 1700000000000,
			.id = hapax_bytes_from_text(rows->ids[i]),
			.topic = hapax_bytes_from_text(topic),
			.ordering_key = hapax_bytes_from_text(rows->ids[i]),
			.payload = hapax_bytes_from_text("payload"),
		};
	}
}

struct hx_sink *sink_rows_open(const char *url)
{
	struct hx_sink *sink = NULL;
	struct hapax_error err;

	if (hx_sink_open(url, "/test", &sink, &err) != HAPAX_OK)
		fail_msg("%s: %s", url, err.message);
	return sink;
}

enum hapax_status sink_rows_publish(
	struct sink_rows *rows, struct hx_sink *sink, int64_t wait_ms, struct hapax_error *err)
{
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].outcome == HX_OUTBOX_UNDECIDED) {
			rows->rows[i].is_awaited = false;
			rows->list[count++] = &rows->rows[i];
		}
	return sink->ops->publish(
		sink, rows->list, count, hx_clock_mono_ns() + wait_ms * 1000000, err);
}

size_t sink_rows_with(const struct sink_rows *rows, enum hx_outbox_outcome outcome)
{
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++)
		count += rows->rows[i].outcome == outcome;
	return count;
}

size_t sink_rows_awaited(const struct sink_rows *rows)
{
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++)
		count += rows->rows[i].is_awaited;
	return count;
}
