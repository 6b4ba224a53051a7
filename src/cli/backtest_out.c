/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backtest_out.c - the result of a backtest: figures, and a verdict in plain words.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/backtest.h"
#include "cli/json_out.h"

enum { SENTENCE_SIZE = 512 };

static double percent(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

/* What the verdict means, and what to do about it. */
static void explain(const struct hx_backtest *b, char out[SENTENCE_SIZE])
{
	switch (hx_backtest_judge(b)) {
	case HX_BACKTEST_EMPTY:
		(void)snprintf(out, SENTENCE_SIZE, "There was no event to judge by.");
		break;
	case HX_BACKTEST_UNSAFE:
		if (b->keys.count == 1) {
			(void)snprintf(
				out, SENTENCE_SIZE,
				"Every event gets the same key: all but the first would be lost. Do not use this strategy.");
			break;
		}
		(void)snprintf(
			out, SENTENCE_SIZE,
			"%" PRIu64 " of %" PRIu64
			" events (%.2f %%) would be dropped although their payload is not "
			"that of the first event with their key: they would be lost. Do not use this strategy, "
			"or add to the key what tells these events apart.",
			b->drops_other, b->events, percent(b->drops_other, b->events));
		break;
	case HX_BACKTEST_INCOMPLETE:
		(void)snprintf(
			out, SENTENCE_SIZE,
			"%" PRIu64 " of %" PRIu64
			" events (%.2f %%) have no key and would be rejected. Choose parts that "
			"every event has, or decide with --on-missing what becomes of the others.",
			b->missing, b->events, percent(b->missing, b->events));
		break;
	case HX_BACKTEST_UNPROVEN:
		(void)snprintf(
			out, SENTENCE_SIZE,
			"No event would be dropped. Either none was delivered twice, or the key changes with each "
			"delivery%s. Try events of which some are known to be redeliveries.",
			b->escapes > 0 ? ", which the equal payloads suggest" : "");
		break;
	case HX_BACKTEST_FIT:
		(void)snprintf(
			out, SENTENCE_SIZE,
			"%" PRIu64 " of %" PRIu64
			" events (%.2f %%) would be dropped, each with the payload of the first "
			"event with its key.%s",
			b->drops, b->events, percent(b->drops, b->events),
			percent(b->drops, b->events) > 5
				? " That is more than 5 %: the sender retries a lot, or intends to send the same again."
				: "");
		break;
	}
}

static void explain_comparison(const struct hx_backtest_comparison *c, char out[SENTENCE_SIZE])
{
	uint64_t alike = c->both_drop + c->neither_drops;
	uint64_t all = alike + c->only_first_drops + c->only_second_drops;

	(void)snprintf(
		out, SENTENCE_SIZE,
		"The two decide alike on %" PRIu64 " of %" PRIu64
		" events. The first alone would drop %" PRIu64 ", the second alone %" PRIu64 ".",
		alike, all, c->only_first_drops, c->only_second_drops);
}

static void print_count(struct hx_out *out, const char *name, uint64_t count, const char *remark)
{
	hx_out_field(out, name);
	hx_out_printf(out, "%" PRIu64 "%s%s\n", count, remark[0] == '\0' ? "" : "  ", remark);
}

static enum hx_colour colour_of(enum hx_backtest_verdict verdict)
{
	switch (verdict) {
	case HX_BACKTEST_UNSAFE: return HX_COLOUR_RED;
	case HX_BACKTEST_FIT: return HX_COLOUR_GREEN;
	case HX_BACKTEST_EMPTY:
	case HX_BACKTEST_INCOMPLETE:
	case HX_BACKTEST_UNPROVEN: break;
	}
	return HX_COLOUR_YELLOW;
}

static void print_examples(struct hx_out *out, const struct hx_backtest *b)
{
	for (size_t i = 0; i < b->example_count; i++) {
		const struct hx_backtest_example *example = &b->examples[i];

		hx_out_printf(
			out, "             line %" PRIu64 " like line %" PRIu64 ", key ",
			example->line, example->first_line);
		hx_out_escaped(out, hapax_bytes_from_text(example->key));
		hx_out_text(out, "\n");
	}
}

static void print_reasons(struct hx_out *out, const struct hx_backtest *b)
{
	for (size_t i = 0; i < b->reason_count; i++) {
		hx_out_printf(out, "             %" PRIu64 ": ", b->reasons[i].count);
		hx_out_escaped(out, hapax_bytes_from_text(b->reasons[i].text));
		hx_out_text(out, "\n");
	}
}

static void print_strategy(struct hx_out *out, const struct hx_backtest *b)
{
	char sentence[SENTENCE_SIZE];

	hx_out_field(out, "strategy");
	hx_out_escaped(out, hapax_bytes_from_text(hapax_key_strategy_text(b->strategy)));
	hx_out_text(out, "\n");
	print_count(out, "events", b->events, "");
	print_count(out, "keys", b->keys.count, "different ones");
	print_count(out, "would drop", b->drops, "");
	print_count(out, "other data", b->drops_other, "of these with another payload");
	print_examples(out, b);
	print_count(
		out, "escaped", b->escapes, "with a new key, but a payload that was there before");
	print_count(out, "missing", b->missing, "without a key, would be rejected");
	if (b->unprotected > 0)
		print_count(
			out, "unprotected", b->unprotected, "without a key, would be let through");
	if (b->content_keys > 0)
		print_count(out, "by content", b->content_keys, "without a key of their own");
	print_reasons(out, b);
	hx_out_field(out, "verdict");
	hx_out_coloured(
		out, colour_of(hx_backtest_judge(b)),
		hx_backtest_verdict_name(hx_backtest_judge(b)));
	explain(b, sentence);
	hx_out_printf(out, "  %s\n", sentence);
}

void hx_backtest_print_text(struct hx_out *out, const struct hx_backtest_run *run)
{
	char sentence[SENTENCE_SIZE];

	print_strategy(out, run->first);
	if (run->second != NULL) {
		hx_out_text(out, "\n");
		print_strategy(out, run->second);
		explain_comparison(run->comparison, sentence);
		hx_out_text(out, "\n");
		hx_out_field(out, "comparison");
		hx_out_printf(out, "%s\n", sentence);
	}
	if (run->bad_lines > 0) {
		hx_out_text(out, "\n");
		print_count(out, "bad lines", run->bad_lines, "not counted above");
	}
}

static void json_strategy(struct hx_json_out *json, const char *name, const struct hx_backtest *b)
{
	char sentence[SENTENCE_SIZE];

	hx_json_out_object_begin(json, name);
	hx_json_out_bytes(
		json, "strategy", hapax_bytes_from_text(hapax_key_strategy_text(b->strategy)));
	hx_json_out_unsigned(json, "events", b->events);
	hx_json_out_unsigned(json, "keys", b->keys.count);
	hx_json_out_unsigned(json, "would_drop", b->drops);
	hx_json_out_unsigned(json, "would_drop_other_payload", b->drops_other);
	hx_json_out_unsigned(json, "same_payload_other_key", b->escapes);
	hx_json_out_unsigned(json, "missing", b->missing);
	hx_json_out_unsigned(json, "unprotected", b->unprotected);
	hx_json_out_unsigned(json, "content_keys", b->content_keys);
	hx_json_out_array_begin(json, "missing_parts");
	for (size_t i = 0; i < b->reason_count; i++) {
		hx_json_out_object_begin(json, NULL);
		hx_json_out_bytes(json, "reason", hapax_bytes_from_text(b->reasons[i].text));
		hx_json_out_unsigned(json, "count", b->reasons[i].count);
		hx_json_out_object_end(json);
	}
	hx_json_out_array_end(json);
	hx_json_out_array_begin(json, "examples");
	for (size_t i = 0; i < b->example_count; i++) {
		hx_json_out_object_begin(json, NULL);
		hx_json_out_unsigned(json, "line", b->examples[i].line);
		hx_json_out_unsigned(json, "first_line", b->examples[i].first_line);
		hx_json_out_text(json, "key", b->examples[i].key);
		hx_json_out_object_end(json);
	}
	hx_json_out_array_end(json);
	hx_json_out_text(json, "verdict", hx_backtest_verdict_name(hx_backtest_judge(b)));
	explain(b, sentence);
	hx_json_out_text(json, "explanation", sentence);
	hx_json_out_object_end(json);
}

void hx_backtest_print_json(struct hx_out *out, const struct hx_backtest_run *run)
{
	char sentence[SENTENCE_SIZE];
	struct hx_json_out json;

	hx_json_out_init(&json, out);
	hx_json_out_object_begin(&json, NULL);
	hx_json_out_bytes(&json, "file", hapax_bytes_from_text(run->file));
	hx_json_out_unsigned(&json, "lines", run->lines);
	hx_json_out_unsigned(&json, "bad_lines", run->bad_lines);
	json_strategy(&json, "result", run->first);
	if (run->second != NULL) {
		json_strategy(&json, "against", run->second);
		hx_json_out_object_begin(&json, "comparison");
		hx_json_out_unsigned(&json, "both_drop", run->comparison->both_drop);
		hx_json_out_unsigned(&json, "only_first_drops", run->comparison->only_first_drops);
		hx_json_out_unsigned(
			&json, "only_second_drops", run->comparison->only_second_drops);
		hx_json_out_unsigned(&json, "neither_drops", run->comparison->neither_drops);
		explain_comparison(run->comparison, sentence);
		hx_json_out_text(&json, "explanation", sentence);
		hx_json_out_object_end(&json);
	}
	hx_json_out_object_end(&json);
}
