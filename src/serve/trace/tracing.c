/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/trace/tracing.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/random.h"
#include "serve/daemon/daemon.h"
#include "serve/http/delivery.h"
#include "wire/http1/http1_text.h"

static const struct hapax_bytes parent_name = HX_BYTES_LIT("traceparent");
static const struct hapax_bytes state_name = HX_BYTES_LIT("tracestate");
static const struct hapax_bytes kept_name = HX_BYTES_LIT("Hapax-Traceparent: ");

/* ------------------------------------------------------------------ the parent */

/* Exactly one field of the exact form; otherwise the trace begins here. */
static bool read_parent(const struct hx_http1_head *head, struct hx_trace_context *ret_context)
{
	size_t index = hx_http1_find(head, parent_name, 0);

	return index < head->field_count &&
		hx_http1_find(head, parent_name, index + 1) == head->field_count &&
		hx_trace_context_read(head->fields[index].value, ret_context);
}

/* A valid tracestate is passed on unchanged. */
static bool is_state(const struct hx_http1_head *head)
{
	int count = 0;

	for (size_t i = hx_http1_find(head, state_name, 0); i < head->field_count;
	     i = hx_http1_find(head, state_name, i + 1)) {
		int members = hx_trace_context_members(head->fields[i].value);

		if (members < 0)
			return false;
		count += members;
	}
	return count <= HX_TRACESTATE_MEMBERS_MAX;
}

/* All zeros is not a valid id. */
static void draw(struct hx_prng *prng, unsigned char *id, size_t size)
{
	for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
		uint64_t bits = hx_prng_next(prng) | 1;

		memcpy(id + i, &bits, sizeof(bits));
	}
}

/* By the trace id, so that all services with the same share keep the same traces. */
static bool is_lot(const struct hx_trace_context *context, uint64_t billionths)
{
	uint64_t bits = 0;

	for (size_t i = HX_TRACE_ID_SIZE - 7; i < HX_TRACE_ID_SIZE; i++)
		bits = bits << 8 | context->trace_id[i];
	/* 56 bits; the share of them in 2^56 parts, without overflow. */
	return (bits >> 26) < (billionths << 30) / HX_CONFIG_SHARE_WHOLE;
}

bool hx_tracing_draw(struct hx_trace_note *note, struct hx_prng *prng, uint64_t billionths)
{
	struct hx_trace_context *context = &note->context;

	if (note->has_parent) {
		memcpy(note->parent_id, context->span_id, HX_SPAN_ID_SIZE);
	} else {
		draw(prng, context->trace_id, HX_TRACE_ID_SIZE);
		context->flags = HX_TRACE_RANDOM;
		if (is_lot(context, billionths))
			context->flags |= HX_TRACE_SAMPLED;
	}
	draw(prng, context->span_id, HX_SPAN_ID_SIZE);
	draw(prng, note->check_id, HX_SPAN_ID_SIZE);
	draw(prng, note->call_id, HX_SPAN_ID_SIZE);
	return (context->flags & HX_TRACE_SAMPLED) != 0;
}

void hx_tracing_begin(struct hx_delivery *delivery, const char *name)
{
	struct hx_loop *loop = delivery->loop;
	struct hx_tracing *tracing = &delivery->claim.tracing;
	const struct hx_http1_head *head = &delivery->exchange->head;
	struct hx_trace_context *context = &tracing->note.context;

	if (!loop->serve->exporter.is_on)
		return;
	memset(tracing, 0, sizeof(*tracing));
	tracing->is_on = true;
	tracing->note.name = name;
	(void)snprintf(
		tracing->note.method, sizeof(tracing->note.method), "%.*s", (int)head->method.size,
		(const char *)head->method.data);
	tracing->note.has_parent = read_parent(head, context);
	tracing->drops_state = !tracing->note.has_parent || !is_state(head);
	tracing->is_sampled = hx_tracing_draw(
		&tracing->note, &loop->trace_lot,
		delivery->config->config->traces.sample_billionths);
}

/* ------------------------------------------------------------------ in progress */

static const char *error_of(enum hapax_status status)
{
	switch (status) {
	case HAPAX_OK: return NULL;
	case HAPAX_ERR_UNAVAILABLE: return "store_unavailable";
	case HAPAX_ERR_UNCERTAIN:
	case HAPAX_ERR_FAILED: return "uncertain";
	case HAPAX_ERR_LIMIT: return "store_full";
	case HAPAX_ERR_FENCED: return "fenced";
	case HAPAX_ERR_NO_MEMORY:
	case HAPAX_ERR_INVALID:
	case HAPAX_ERR_CORRUPT:
	case HAPAX_ERR_UNSUPPORTED:
	case HAPAX_ERR_HANDLER: break;
	}
	return "_OTHER";
}

static bool is_kept(struct hapax_bytes fields)
{
	return fields.size >= kept_name.size + HX_TRACEPARENT_SIZE + 2 &&
		memcmp(fields.data, kept_name.data, kept_name.size) == 0;
}

void hx_tracing_check(struct hx_trace_note *note, const struct hapax_answer *answer)
{
	static const char *const decisions[] = {
		[HAPAX_OUTCOME_ACQUIRED] = "acquired",       [HAPAX_OUTCOME_REPLAY] = "replay",
		[HAPAX_OUTCOME_IN_PROGRESS] = "in_progress", [HAPAX_OUTCOME_MISMATCH] = "mismatch",
		[HAPAX_OUTCOME_PARKED] = "parked",
	};
	struct hapax_bytes fields = answer->result.headers;

	note->check_error = error_of(answer->status);
	note->token = answer->token;
	note->attempt = answer->attempt;
	if ((size_t)answer->outcome < HX_COUNT(decisions))
		note->decision = decisions[answer->outcome];
	if (answer->outcome == HAPAX_OUTCOME_REPLAY && is_kept(fields))
		note->has_original = hx_trace_context_read(
			hx_bytes((const char *)fields.data + kept_name.size, HX_TRACEPARENT_SIZE),
			&note->original);
}

void hx_tracing_decided(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hx_tracing *tracing = &delivery->claim.tracing;

	if (!tracing->is_sampled || !tracing->is_on || (answer->flags & HAPAX_ANSWER_UNPROTECTED))
		return;
	tracing->note.decided_ns = hx_clock_mono_ns();
	hx_tracing_check(&tracing->note, answer);
}

bool hx_tracing_replaces(const struct hx_delivery *delivery, struct hapax_bytes name)
{
	const struct hx_tracing *tracing = &delivery->claim.tracing;

	return tracing->is_on &&
		((name.size == parent_name.size && hx_http1_text_equal(name, parent_name)) ||
		 (tracing->drops_state && name.size == state_name.size &&
		  hx_http1_text_equal(name, state_name)));
}

void hx_tracing_write(struct hx_delivery *delivery, struct hx_http1_writer *writer)
{
	struct hx_tracing *tracing = &delivery->claim.tracing;
	struct hx_trace_context context = tracing->note.context;
	char text[HX_TRACEPARENT_SIZE];

	if (!tracing->is_on)
		return;
	/* A span that is not exported cannot be a parent. */
	if (tracing->is_sampled)
		memcpy(context.span_id, tracing->note.call_id, HX_SPAN_ID_SIZE);
	else if (tracing->note.has_parent)
		memcpy(context.span_id, tracing->note.parent_id, HX_SPAN_ID_SIZE);
	hx_trace_context_write(&context, text);
	hx_http1_write_field(writer, parent_name, hx_bytes(text, sizeof(text)));
	tracing->note.sent_ns = hx_clock_mono_ns();
}

void hx_tracing_called(struct hx_delivery *delivery)
{
	struct hx_tracing *tracing = &delivery->claim.tracing;

	if (!tracing->is_sampled || !tracing->is_on)
		return;
	tracing->note.answered_ns = hx_clock_mono_ns();
	tracing->note.upstream_status = delivery->call.status;
	if (delivery->call.outcome == HAPAX_RUN_OK)
		return;
	if (delivery->call.status != 0)
		tracing->note.call_error = hx_trace_error_status;
	else if (delivery->call.is_late)
		tracing->note.call_error = "timeout";
	else if (delivery->call.is_revoked)
		tracing->note.call_error = "lapsed";
	else
		tracing->note.call_error =
			delivery->call.outcome == HAPAX_RUN_AMBIGUOUS ? "lost" : "unreachable";
}

void hx_tracing_keep(const struct hx_delivery *delivery, struct hapax_buf *fields)
{
	const struct hx_tracing *tracing = &delivery->claim.tracing;
	char text[HX_TRACEPARENT_SIZE];

	if (!tracing->is_on || !tracing->is_sampled ||
	    hx_buf_reserve(fields, kept_name.size + sizeof(text) + 2) != HAPAX_OK)
		return;
	hx_trace_context_write(&tracing->note.context, text);
	(void)hx_buf_append(fields, kept_name.data, kept_name.size);
	(void)hx_buf_append(fields, text, sizeof(text));
	(void)hx_buf_append(fields, "\r\n", 2);
}

struct hapax_bytes hx_tracing_public(struct hapax_bytes fields)
{
	size_t size = kept_name.size + HX_TRACEPARENT_SIZE + 2;

	if (!is_kept(fields))
		return fields;
	return hx_bytes((const char *)fields.data + size, fields.size - size);
}

void hx_tracing_text(const struct hx_delivery *delivery, struct hx_tracing_text *ret)
{
	const struct hx_tracing *tracing = &delivery->claim.tracing;

	ret->trace_id_size = ret->span_id_size = 0;
	if (!tracing->is_on || !tracing->is_sampled)
		return;
	hx_hex_encode(tracing->note.context.trace_id, HX_TRACE_ID_SIZE, ret->trace_id);
	hx_hex_encode(tracing->note.context.span_id, HX_SPAN_ID_SIZE, ret->span_id);
	ret->trace_id_size = sizeof(ret->trace_id);
	ret->span_id_size = sizeof(ret->span_id);
}

/* ------------------------------------------------------------------ its end */

static void copy_text(char *out, size_t size, const char *text)
{
	(void)snprintf(out, size, "%s", text);
}

static void copy_bytes(char *out, size_t size, struct hapax_bytes text)
{
	(void)snprintf(out, size, "%.*s", (int)text.size, (const char *)text.data);
}

static void describe(const struct hx_delivery *delivery, struct hx_trace_note *note)
{
	const struct hx_delivery_identity *identity = &delivery->claim.identity;

	copy_bytes(note->event_id, sizeof(note->event_id), delivery->claim.event.id);
	copy_bytes(note->event_source, sizeof(note->event_source), delivery->claim.event.source);
	copy_bytes(note->event_type, sizeof(note->event_type), delivery->claim.event.type);
	copy_text(note->route, sizeof(note->route), delivery->claim.route_name);
	copy_text(
		note->upstream_host, sizeof(note->upstream_host),
		delivery->claim.target->endpoint.host);
	note->upstream_port = delivery->claim.target->endpoint.port;
	(void)snprintf(
		note->scope, sizeof(note->scope), "%.*s/%.*s", (int)identity->tenant.size,
		(const char *)identity->tenant.data, (int)identity->group.size,
		(const char *)identity->group.data);
	hx_trace_hash_key(identity->key, note->key_hash);
}

static const char *error_of_end(const struct hx_trace_note *note, unsigned status)
{
	if (note->check_error != NULL)
		return note->check_error;
	if (note->call_error != NULL && note->call_error != hx_trace_error_status)
		return note->call_error;
	return status >= 500 ? hx_trace_error_status : NULL;
}

/* Converts monotonic to calendar time: now is the same moment on both. */
static int64_t calendar_offset_ns(int64_t now_ns)
{
	const struct hapax_clock *clock = hapax_clock_system();

	return clock->wall_ms(clock->context) * HX_NS_PER_MS - now_ns;
}

void hx_tracing_export(struct hx_exporter *exporter, struct hx_trace_note *note)
{
	int64_t *const times[] = {&note->began_ns,   &note->ended_ns, &note->asked_ns,
				  &note->decided_ns, &note->sent_ns,  &note->answered_ns};
	int64_t offset_ns = calendar_offset_ns(hx_clock_mono_ns());

	for (size_t i = 0; i < HX_COUNT(times); i++)
		*times[i] += offset_ns;
	hx_exporter_add(exporter, note);
}

void hx_tracing_end(struct hx_delivery *delivery, unsigned status)
{
	struct hx_tracing *tracing = &delivery->claim.tracing;
	struct hx_trace_note *note = &tracing->note;

	if (!tracing->is_on)
		return;
	tracing->is_on = false;
	if (!tracing->is_sampled)
		return;
	note->began_ns = delivery->came_ns;
	note->ended_ns = hx_clock_mono_ns();
	note->asked_ns = delivery->claim.asked_ns;
	note->reply_status = status;
	note->error = error_of_end(note, status);
	note->has_check = note->decided_ns != 0;
	note->has_call = note->answered_ns != 0 && note->sent_ns != 0;
	describe(delivery, note);
	hx_tracing_export(&delivery->loop->serve->exporter, note);
}
