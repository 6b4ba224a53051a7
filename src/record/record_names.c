/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_names.c - the glossary's word for every value that users see.
 */
#include <hapax/record.h>
#include <hapax/store.h>

#include "base/macros.h"

/* Only a caller's mistake gives a value outside its enum; it gets a word also. */
static const char unknown[] = "unknown";

#define WORD_OF(words, value) \
	((size_t)(value) < HX_COUNT(words) && (words)[(value)] ? (words)[(value)] : unknown)

const char *hapax_state_name(enum hapax_state state)
{
	static const char *const words[] = {"absent", "claimed", "done", "failed", "parked"};

	return WORD_OF(words, state);
}

const char *hapax_origin_name(enum hapax_origin origin)
{
	static const char *const words[] = {"claim", "check", "set"};

	return WORD_OF(words, origin);
}

const char *hapax_on_lapse_name(enum hapax_on_lapse on_lapse)
{
	static const char *const words[] = {"retry", "park"};

	return WORD_OF(words, on_lapse);
}

const char *hapax_result_kind_name(enum hapax_result_kind kind)
{
	static const char *const words[] = {"none", "bytes", "http", "exec"};

	return WORD_OF(words, kind);
}

const char *hapax_result_class_name(enum hapax_result_class result_class)
{
	static const char *const words[] = {"ok", "definitive"};

	return WORD_OF(words, result_class);
}

const char *hapax_op_type_name(enum hapax_op_type type)
{
	static const char *const words[] = {
		NULL,    "claim",  "renew",  "complete", "release", "park",
		"check", "lookup", "forget", "set",      "expire",  "load",
	};

	return WORD_OF(words, type);
}

const char *hapax_outcome_name(enum hapax_outcome outcome)
{
	static const char *const words[] = {
		"none",    "acquired", "replay", "in_progress", "mismatch", "parked",
		"applied", "found",    "absent", "busy",        "not_met",  "skipped",
	};

	return WORD_OF(words, outcome);
}

const char *hapax_decision_name(enum hapax_decision decision)
{
	static const char *const words[HAPAX_DECISION_COUNT] = {
		"acquired",  "replay",   "in_progress", "mismatch", "parked",    "fenced",
		"completed", "released", "unverified",  "limit",    "forgotten",
	};

	return WORD_OF(words, decision);
}
