/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/trace/message_trace.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "net/http/http_url.h"
#include "observe/trace.h"
#include "serve/trace/exporter.h"
#include "serve/trace/tracing.h"

static_assert((int)HAPAX_TRACEPARENT_SIZE == (int)HX_TRACEPARENT_SIZE, "both are those of W3C");

void hx_message_trace_init(
	struct hx_message_trace *trace, struct hx_exporter *exporter, const char *consumer,
	const char *to, uint64_t sample_billionths)
{
	char why[HX_HTTP_URL_WHY_SIZE];
	struct hx_http_url url;

	trace->exporter = exporter->is_on ? exporter : NULL;
	trace->sample_billionths = sample_billionths;
	trace->consumer = consumer;
	hx_prng_seed(&trace->prng, hx_random_u64());
	trace->has_call = to[0] != '\0' && hx_http_url_parse(to, &url, why);
	if (trace->has_call)
		trace->endpoint = url.endpoint;
}

int hx_message_trace_begin(
	struct hx_message_trace *trace, struct hapax_bytes traceparent,
	struct hapax_trace *ret_trace)
{
	struct hx_trace_note note = {.name = ""};
	struct hx_trace_context handler;

	if (trace->exporter == NULL)
		return 0;
	note.has_parent = hx_trace_context_read(traceparent, &note.context);
	ret_trace->is_sampled = hx_tracing_draw(&note, &trace->prng, trace->sample_billionths);
	hx_trace_context_write(&note.context, ret_trace->run);
	handler = note.context;
	/* A span that is not exported cannot be a parent. */
	if (!ret_trace->is_sampled && note.has_parent)
		memcpy(handler.span_id, note.parent_id, HX_SPAN_ID_SIZE);
	else if (ret_trace->is_sampled && trace->has_call)
		memcpy(handler.span_id, note.call_id, HX_SPAN_ID_SIZE);
	hx_trace_context_write(&handler, ret_trace->handler);
	return 1;
}

static void copy_bytes(char *out, size_t size, struct hapax_bytes text)
{
	(void)snprintf(out, size, "%.*s", (int)text.size, (const char *)text.data);
}

static void describe(
	const struct hx_message_trace *trace, const struct hapax_consumer_event *event,
	struct hx_trace_note *note)
{
	note->name = "process_cloud_event";
	note->is_message = true;
	copy_bytes(note->event_id, sizeof(note->event_id), event->id);
	copy_bytes(note->event_source, sizeof(note->event_source), event->source);
	copy_bytes(note->event_type, sizeof(note->event_type), event->type);
	(void)snprintf(note->route, sizeof(note->route), "%s", trace->consumer);
	(void)snprintf(
		note->scope, sizeof(note->scope), "%.*s/%.*s", (int)event->tenant.size,
		(const char *)event->tenant.data, (int)event->group.size,
		(const char *)event->group.data);
	hx_trace_hash_key(event->key, note->key_hash);
	if (!trace->has_call)
		return;
	(void)snprintf(note->method, sizeof(note->method), "POST");
	(void)snprintf(
		note->upstream_host, sizeof(note->upstream_host), "%s", trace->endpoint.host);
	note->upstream_port = trace->endpoint.port;
}

/* Of a run. The time to store its result counts as part of the call. */
static void describe_run(
	const struct hapax_consumer_event *event, bool has_call, struct hx_trace_note *note)
{
	enum hapax_run_outcome outcome = event->answer->run_outcome;

	note->has_call = has_call;
	note->answered_ns = note->ended_ns;
	note->sent_ns = note->ended_ns - event->took_ns;
	note->decided_ns = note->sent_ns;
	note->asked_ns = note->decided_ns - event->claim_ns;
	note->upstream_status = event->http_status;
	/* The answer is that of the result, not of the claim. */
	note->error = note->check_error;
	note->check_error = NULL;
	if (outcome == HAPAX_RUN_OK)
		return;
	if (note->error == NULL)
		note->error = hapax_run_outcome_name(outcome);
	if (event->http_status != 0)
		note->call_error = hx_trace_error_status;
	else
		note->call_error = outcome == HAPAX_RUN_AMBIGUOUS ? "lost" : "unreachable";
}

void hx_message_trace_tell(struct hx_message_trace *trace, const struct hapax_consumer_event *event)
{
	struct hx_trace_note note = {.name = ""};
	struct hx_trace_context other;

	/* A run is recorded at its end. */
	if (trace->exporter == NULL ||
	    (event->fact == HAPAX_FACT_DECIDED && event->answer->outcome == HAPAX_OUTCOME_ACQUIRED))
		return;
	note.has_parent = hx_trace_context_read(event->traceparent, &note.context);
	(void)hx_tracing_draw(&note, &trace->prng, trace->sample_billionths);
	if (event->trace != NULL) {
		(void)hx_trace_context_read(
			hx_bytes(event->trace->run, sizeof(event->trace->run)), &note.context);
		if (hx_trace_context_read(
			    hx_bytes(event->trace->handler, sizeof(event->trace->handler)), &other))
			memcpy(note.call_id, other.span_id, HX_SPAN_ID_SIZE);
	}
	if (!(note.context.flags & HX_TRACE_SAMPLED))
		return;
	describe(trace, event, &note);
	hx_tracing_check(&note, event->answer);
	note.has_check = !(event->answer->flags & HAPAX_ANSWER_UNPROTECTED);
	note.ended_ns = hx_clock_mono_ns();
	note.decided_ns = note.ended_ns;
	note.asked_ns = note.ended_ns - event->took_ns;
	if (event->fact == HAPAX_FACT_ENDED)
		describe_run(event, trace->has_call, &note);
	else
		note.error = note.check_error;
	note.began_ns = note.asked_ns;
	hx_tracing_export(trace->exporter, &note);
}
