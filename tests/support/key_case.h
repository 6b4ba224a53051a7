/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_case.h - make keys in a line or two.
 */
#ifndef TEST_SUPPORT_KEY_CASE_H
#define TEST_SUPPORT_KEY_CASE_H

#include <hapax/key.h>

/* The options with paths relative to the document, as in `hapax key`. */
struct hapax_key_options key_case_relative(void);

/* A strategy that must be accepted; options may be NULL. */
struct hapax_key_strategy *key_case_strategy(
	const char *text, const struct hapax_key_options *options);

/* Why a strategy is refused, INVALID; lives until the next call. */
const char *key_case_refusal(const char *text, const struct hapax_key_options *options);

/* An event whose data is a JSON text. */
struct hapax_event key_case_event(const char *json);

/* Make a key; err may be NULL. */
enum hapax_status key_case_make(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_key *ret, struct hapax_error *err);

/*
 * The key of a document by a strategy with relative paths. "!" and the message when
 * there is none. Lives until the fourth call after it.
 */
const char *key_case_of(const char *strategy, const char *json);

#endif
