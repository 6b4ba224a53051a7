/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter.h - spans on their way to a collector (OTLP over HTTP, as JSON).
 *
 * It has a thread and a reactor of its own. Whoever has a note leaves a copy in a queue of
 * a fixed size and goes on; where there is no room the note is dropped and counted, so
 * that a collector that is slow or away costs nobody anything but spans.
 *
 * Notes are sent together, after INTERVAL or when there are enough. What the collector
 * cannot take now (429, 502, 503, 504, no connection, no reply) is sent again, a few times,
 * later each time; what it will not take is dropped.
 *
 * Threads: hx_exporter_add() and the counts any; the rest its owner's.
 */
#ifndef HX_SERVE_TRACE_EXPORTER_H
#define HX_SERVE_TRACE_EXPORTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

#include "base/buf.h"
#include "base/thread.h"
#include "net/http/http_client.h"
#include "observe/trace.h"

struct hx_config;
struct hx_logger;
struct hx_resolver;
struct hx_tls_context;

struct hx_exporter {
	bool is_on;               /* set before other threads look at it */
	struct hx_config *config; /* kept: where to, and who we are */
	struct hx_logger *log;
	struct hx_tls_context *tls; /* NULL: plain */
	struct hx_thread thread;
	struct hx_reactor reactor;

	struct hx_lock lock;
	/* Locks: lock. Those from first on, count of them, are the exporter's until it moves first. */
	struct hx_trace_note *notes;
	size_t first;
	size_t count;

	_Atomic uint64_t exported; /* spans that the collector has taken */
	_Atomic uint64_t dropped;  /* that there was no room for */
	_Atomic uint64_t failed;   /* that it would not take, or not in time */

	/* Threads: its own, from here. */
	struct hx_http_client client;
	struct hx_http_call call;
	struct hx_timer timer;
	struct hx_task wake_task;
	struct hx_task end_task;
	struct hapax_buf fields; /* of every request, as "Name: value\r\n" */
	struct hapax_buf head;
	struct hapax_buf body;
	size_t sent_notes; /* that are in body; 0: there is none */
	uint64_t sent_spans;
	unsigned attempts;
	unsigned status;       /* of the response; 0: none yet */
	int64_t retry_after_s; /* as it says; 0: it does not */
	bool is_calling;
	_Atomic bool is_ending;
	_Atomic int64_t end_ns; /* when it ends, whatever is left */
};

/*
 * Start, if config says where to; else nothing is done, and the exporter, which is zeros,
 * stays off. UNAVAILABLE, INVALID: a file that config names could not be read.
 */
enum hapax_status hx_exporter_start(
	struct hx_exporter *exporter, struct hx_config *config, struct hx_resolver *resolver,
	struct hx_logger *log, struct hapax_error *err);

/* Leave a copy. Never blocks; it may be dropped. */
void hx_exporter_add(struct hx_exporter *exporter, const struct hx_trace_note *note);

/* Send what is left, for at most wait_ms, and end. Nobody adds any more. */
void hx_exporter_stop(struct hx_exporter *exporter, int64_t wait_ms);

#endif
