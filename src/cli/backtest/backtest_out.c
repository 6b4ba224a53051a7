/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backtest_out.c - the result of a backtest: figures, and a verdict in plain words.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/backtest/backtest.h"
#include "wire/json/json_write.h"

enum { SENTENCE_SIZE = 2048 };

static double percent(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

/* Append a sentence. */
__attribute__((format(printf, 2, 3))) static void say(char *out, const char *format, ...)
{
	size_t size = strlen(out);
	va_list arguments;

	if (size > 0 && size + 1 < SENTENCE_SIZE)
		out[size++] = ' ';
	va_start(arguments, format);
	(void)vsnprintf(out + size, SENTENCE_SIZE - size, format, arguments);
	va_end(arguments);
}

/* "3 of 5 events (60.00 %)" */
static void say_share(char *out, uint64_t part, const struct hx_backtest *b, const char *rest)
{
	say(out, "%" PRIu64 " of %" PRIu64 " events (%.2f %%) %s", part, b->events,
	    percent(part, b->events), rest);
}

/* Explain events that would be lost. */
static void explain_lost(const struct hx_backtest *b, char *out)
{
	if (b->drops_other == 0)
		return;
	if (b->keys.count == 1) {
		say(out,
		    "The %" PRIu64
		    " events that have a key have the same key: all but the first would be "
		    "dropped, %" PRIu64 " with a different payload. Do not use this strategy.",
		    b->events - b->missing - b->unprotected, b->drops_other);
		return;
	}
	say_share(
		out, b->drops_other, b,
		"would be dropped although their payload is not that of the first event with their "
		"key: they would be lost. Do not use this strategy, or add to the key what tells "
		"these events apart.");
}

/* Explain events and lines that have no key or were not judged. */
static void explain_gaps(const struct hx_backtest *b, const struct hx_backtest_run *run, char *out)
{
	if (b->missing > 0)
		say_share(
			out, b->missing, b,
			"have no key and would be rejected. Choose parts that every event has, or "
			"set --on-missing for the others.");
	if (b->unprotected > 0)
		say_share(
			out, b->unprotected, b,
			"have no key and would pass without protection: every delivery of them "
			"would run.");
	if (run->bad_lines > 0)
		say(out, "%" PRIu64 " of %" PRIu64 " lines are not events and were skipped.",
		    run->bad_lines, run->lines);
	if (run->is_cut)
		say(out, "Not enough memory after %" PRIu64 " lines; the rest was skipped.",
		    run->lines);
}

/* Explain the verdict with all objections, and what to do. */
static void explain(
	const struct hx_backtest *b, const struct hx_backtest_run *run, char out[SENTENCE_SIZE])
{
	enum hx_backtest_verdict verdict = hx_backtest_judge(b, run);

	out[0] = '\0';
	if (verdict == HX_BACKTEST_EMPTY)
		say(out, "There are no events to judge.");
	explain_lost(b, out);
	explain_gaps(b, run, out);
	if (verdict == HX_BACKTEST_UNPROVEN)
		say(out,
		    "No event would be dropped, and no payload repeats. Try events that contain known "
		    "redeliveries.");
	if (verdict == HX_BACKTEST_FIT)
		say_share(
			out, b->drops, b,
			"would be dropped, each with the payload of the first event with its key.");
	if (verdict == HX_BACKTEST_FIT && percent(b->drops, b->events) > 5)
		say(out,
		    "That is more than 5 %%: the sender retries a lot, or intends to send the same "
		    "again.");
	if (b->escapes > b->drops)
		say(out,
		    "%" PRIu64
		    " events have a new key although their payload was there before, and %" PRIu64
		    " would be dropped: either the key changes with each delivery and most "
		    "duplicates would run, or the sender intends to send the same again.",
		    b->escapes, b->drops);
	else if (b->escapes > 0)
		say(out, "%" PRIu64 " others have a new key and a payload that was there before.",
		    b->escapes);
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
	hx_out_line(out, name, "%" PRIu64 "%s%s", count, remark[0] == '\0' ? "" : "  ", remark);
}

static enum hx_color color_of(enum hx_backtest_verdict verdict)
{
	switch (verdict) {
	case HX_BACKTEST_UNSAFE: return HX_COLOR_RED;
	case HX_BACKTEST_FIT: return HX_COLOR_GREEN;
	case HX_BACKTEST_EMPTY:
	case HX_BACKTEST_INCOMPLETE:
	case HX_BACKTEST_LEAKY:
	case HX_BACKTEST_UNPROVEN: break;
	}
	return HX_COLOR_YELLOW;
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
	if (b->reasons_other > 0)
		hx_out_printf(
			out, "             %" PRIu64 ": for other reasons\n", b->reasons_other);
}

static void print_strategy(
	struct hx_out *out, const struct hx_backtest *b, const struct hx_backtest_run *run)
{
	char sentence[SENTENCE_SIZE];

	hx_out_line_escaped(
		out, "strategy", hapax_bytes_from_text(hapax_key_strategy_text(b->strategy)));
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
	hx_out_colored(
		out, color_of(hx_backtest_judge(b, run)),
		hx_backtest_verdict_name(hx_backtest_judge(b, run)));
	explain(b, run, sentence);
	hx_out_printf(out, "  %s\n", sentence);
}

void hx_backtest_print_text(struct hx_out *out, const struct hx_backtest_run *run)
{
	char sentence[SENTENCE_SIZE];

	print_strategy(out, run->first, run);
	if (run->second != NULL) {
		hx_out_text(out, "\n");
		print_strategy(out, run->second, run);
		explain_comparison(run->comparison, sentence);
		hx_out_text(out, "\n");
		hx_out_line(out, "comparison", "%s", sentence);
	}
	if (run->bad_lines > 0) {
		hx_out_text(out, "\n");
		print_count(out, "bad lines", run->bad_lines, "not counted above");
	}
}

static void json_strategy(
	struct hx_json_write *json, const char *name, const struct hx_backtest *b,
	const struct hx_backtest_run *run)
{
	char sentence[SENTENCE_SIZE];

	hx_json_write_begin(json, name, '{');
	hx_json_write_any(
		json, "strategy", hapax_bytes_from_text(hapax_key_strategy_text(b->strategy)));
	hx_json_write_unsigned(json, "events", b->events);
	hx_json_write_unsigned(json, "keys", b->keys.count);
	hx_json_write_unsigned(json, "would_drop", b->drops);
	hx_json_write_unsigned(json, "would_drop_other_payload", b->drops_other);
	hx_json_write_unsigned(json, "same_payload_other_key", b->escapes);
	hx_json_write_unsigned(json, "missing", b->missing);
	hx_json_write_unsigned(json, "unprotected", b->unprotected);
	hx_json_write_unsigned(json, "content_keys", b->content_keys);
	hx_json_write_begin(json, "missing_parts", '[');
	for (size_t i = 0; i < b->reason_count; i++) {
		hx_json_write_begin(json, NULL, '{');
		hx_json_write_any(json, "reason", hapax_bytes_from_text(b->reasons[i].text));
		hx_json_write_unsigned(json, "count", b->reasons[i].count);
		hx_json_write_end(json, '}');
	}
	hx_json_write_end(json, ']');
	hx_json_write_unsigned(json, "missing_parts_other", b->reasons_other);
	hx_json_write_begin(json, "examples", '[');
	for (size_t i = 0; i < b->example_count; i++) {
		hx_json_write_begin(json, NULL, '{');
		hx_json_write_unsigned(json, "line", b->examples[i].line);
		hx_json_write_unsigned(json, "first_line", b->examples[i].first_line);
		hx_json_write_text(json, "key", b->examples[i].key);
		hx_json_write_end(json, '}');
	}
	hx_json_write_end(json, ']');
	hx_json_write_text(json, "verdict", hx_backtest_verdict_name(hx_backtest_judge(b, run)));
	explain(b, run, sentence);
	hx_json_write_text(json, "explanation", sentence);
	hx_json_write_end(json, '}');
}

void hx_backtest_print_json(struct hx_out *out, const struct hx_backtest_run *run)
{
	char sentence[SENTENCE_SIZE];
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_json_write_any(&json, "file", hapax_bytes_from_text(run->file));
	hx_json_write_unsigned(&json, "lines", run->lines);
	hx_json_write_unsigned(&json, "bad_lines", run->bad_lines);
	hx_json_write_boolean(&json, "complete", !run->is_cut);
	json_strategy(&json, "result", run->first, run);
	if (run->second != NULL) {
		json_strategy(&json, "against", run->second, run);
		hx_json_write_begin(&json, "comparison", '{');
		hx_json_write_unsigned(&json, "both_drop", run->comparison->both_drop);
		hx_json_write_unsigned(
			&json, "only_first_drops", run->comparison->only_first_drops);
		hx_json_write_unsigned(
			&json, "only_second_drops", run->comparison->only_second_drops);
		hx_json_write_unsigned(&json, "neither_drops", run->comparison->neither_drops);
		explain_comparison(run->comparison, sentence);
		hx_json_write_text(&json, "explanation", sentence);
		hx_json_write_end(&json, '}');
	}
	hx_json_write_end(&json, '}');
}
