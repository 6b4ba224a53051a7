/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backtest.h - what a strategy would have done to past events.
 *
 * Events are taken in line order, and keys never expire: the first event of a key runs, all later
 * ones would be dropped.
 */
#ifndef HX_CLI_BACKTEST_BACKTEST_H
#define HX_CLI_BACKTEST_BACKTEST_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/key.h>

#include "base/buf.h"
#include "cli/input/digest_table.h"
#include "cli/print/out.h"

enum {
	/* Reasons that are counted separately; a strategy has few paths that can be missing. */
	HX_BACKTEST_REASONS_MAX = 16,
	/* Enough to see what goes wrong. */
	HX_BACKTEST_EXAMPLES_MAX = 5,
};

struct hx_backtest_reason {
	char text[HAPAX_ERROR_MESSAGE_SIZE];
	uint64_t count;
};

/* An event that would be dropped although its payload differs. */
struct hx_backtest_example {
	uint64_t line;
	uint64_t first_line;
	char key[HAPAX_KEY_SIZE_MAX + 1];
};

/* The first event of a key; 32 bytes, because there may be many millions. */
struct hx_backtest_key {
	struct hx_digest digest;
	uint64_t payload; /* enough of its digest to tell two payloads apart */
	uint64_t line;
};

/* A payload that was seen in a scope. */
struct hx_backtest_payload {
	struct hx_digest digest;
};

/* One strategy and its results. */
struct hx_backtest {
	struct hapax_key_strategy *strategy;
	struct hx_digest_table keys;
	struct hx_digest_table payloads;
	uint64_t events;       /* with a key or without */
	uint64_t drops;        /* the key was seen before */
	uint64_t drops_other;  /* of these: with a different payload */
	uint64_t escapes;      /* a new key, but a payload that was seen before */
	uint64_t missing;      /* would be rejected: no key */
	uint64_t unprotected;  /* policy pass: no key */
	uint64_t content_keys; /* policy content */
	struct hx_backtest_reason reasons[HX_BACKTEST_REASONS_MAX];
	size_t reason_count;
	uint64_t reasons_other; /* events with any other reason */
	struct hx_backtest_example examples[HX_BACKTEST_EXAMPLES_MAX];
	size_t example_count;
};

enum hx_backtest_decision {
	HX_BACKTEST_RUN,
	HX_BACKTEST_DROP,
	HX_BACKTEST_NO_KEY,
};

/* The results of two strategies on the same events. */
struct hx_backtest_comparison {
	uint64_t both_drop;
	uint64_t only_first_drops;
	uint64_t only_second_drops;
	uint64_t neither_drops;
};

/* Call it before anything is added; memory_max is for keys and payloads. */
void hx_backtest_init(struct hx_backtest *backtest, size_t memory_max);

/* Also frees the strategy. */
void hx_backtest_done(struct hx_backtest *backtest);

/*
 * Add the event on line. An event without a key, or too large for one, is counted. NO_MEMORY: out
 * of memory, or memory_max is used up.
 */
enum hapax_status hx_backtest_add(
	struct hx_backtest *backtest, const struct hapax_event *event, uint64_t line,
	struct hapax_buf *scratch, enum hx_backtest_decision *ret, struct hapax_error *err);

/* Facts about the run, besides the strategies. */
struct hx_backtest_run {
	const char *file;
	uint64_t lines;
	uint64_t bad_lines;
	bool is_cut; /* memory ran out before all lines were read */
	struct hx_backtest *first;
	struct hx_backtest *second; /* NULL: none */
	const struct hx_backtest_comparison *comparison;
};

enum hx_backtest_verdict {
	HX_BACKTEST_EMPTY,      /* no event */
	HX_BACKTEST_UNSAFE,     /* would lose events */
	HX_BACKTEST_INCOMPLETE, /* some events have no key, or some lines were not judged */
	HX_BACKTEST_LEAKY,      /* would let through more duplicates than it would drop */
	HX_BACKTEST_UNPROVEN,   /* no objection, but no duplicate found either */
	HX_BACKTEST_FIT,
};

enum hx_backtest_verdict hx_backtest_judge(
	const struct hx_backtest *backtest, const struct hx_backtest_run *run);
const char *hx_backtest_verdict_name(enum hx_backtest_verdict verdict);

/* backtest_out.c */
void hx_backtest_print_text(struct hx_out *out, const struct hx_backtest_run *run);
void hx_backtest_print_json(struct hx_out *out, const struct hx_backtest_run *run);

#endif
