/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter.h - sends spans to a collector (OTLP over HTTP, as JSON).
 *
 * It has its own thread and reactor. Callers copy a note into a queue of fixed size and continue.
 * If the queue is full, the note is dropped and counted, so a slow or unavailable collector costs
 * only spans.
 *
 * Notes are sent together, after INTERVAL or when there are enough. A batch that the collector
 * cannot take now (429, 502, 503, 504, no connection, no reply) is retried a few times, with
 * growing pauses. A batch that it rejects is dropped.
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
	bool is_on;               /* set before other threads read it */
	struct hx_config *config; /* kept: the endpoint and our name */
	struct hx_logger *log;
	struct hx_tls_context *tls; /* NULL: plain */
	struct hx_thread thread;
	struct hx_reactor reactor;

	struct hx_lock lock;
	/* Locks: lock. The exporter owns count notes from first on, until it moves first. */
	struct hx_trace_note *notes;
	size_t first;
	size_t count;

	_Atomic uint64_t exported; /* spans that the collector accepted */
	_Atomic uint64_t dropped;  /* for lack of room */
	_Atomic uint64_t failed;   /* rejected, or not accepted in time */

	/* Threads: its own, from here. */
	struct hx_http_client client;
	struct hx_http_call call;
	struct hx_timer timer;
	struct hx_task wake_task;
	struct hx_task end_task;
	struct hapax_buf fields; /* of every request, as "Name: value\r\n" */
	struct hapax_buf head;
	struct hapax_buf body;
	size_t sent_notes; /* notes in body; 0: none */
	uint64_t sent_spans;
	unsigned attempts;
	unsigned status;       /* of the response; 0: none yet */
	int64_t retry_after_s; /* from the response; 0: not set */
	bool is_calling;
	_Atomic bool is_ending;
	_Atomic int64_t end_ns; /* deadline of the shutdown */
};

/*
 * Starts if config has an endpoint; otherwise the exporter, which is zeros, stays off. UNAVAILABLE,
 * INVALID: a file that config names could not be read.
 */
enum hapax_status hx_exporter_start(
	struct hx_exporter *exporter, struct hx_config *config, struct hx_resolver *resolver,
	struct hx_logger *log, struct hapax_error *err);

/* Queues a copy. Never blocks; may drop it. */
void hx_exporter_add(struct hx_exporter *exporter, const struct hx_trace_note *note);

/* Sends the rest, for at most wait_ms, and ends. No thread may add any more. */
void hx_exporter_stop(struct hx_exporter *exporter, int64_t wait_ms);

#endif
