/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_case.c - make keys in a line or two.
 */
#include "support/key_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

enum { SCRATCH_SIZE = 1 << 24, RING = 4 };

struct hapax_key_options key_case_relative(void)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;

	options.flags = HAPAX_KEY_RELATIVE;
	return options;
}

struct hapax_key_strategy *key_case_strategy(
	const char *text, const struct hapax_key_options *options)
{
	struct hapax_key_strategy *strategy = NULL;
	struct hapax_error err = {HAPAX_OK, 0, ""};

	if (hapax_key_strategy_new(text, options, &strategy, &err) != HAPAX_OK)
		fail_msg("%s: %s", text, err.message);
	return strategy;
}

const char *key_case_refusal(const char *text, const struct hapax_key_options *options)
{
	static struct hapax_error err;
	struct hapax_key_strategy *strategy = NULL;

	if (hapax_key_strategy_new(text, options, &strategy, &err) == HAPAX_OK)
		fail_msg("strategy '%s' was taken", text);
	assert_int_equal(err.status, HAPAX_ERR_INVALID);
	assert_null(strategy);
	return err.message;
}

struct hapax_event key_case_event(const char *json)
{
	struct hapax_event event = HAPAX_EVENT_INIT;

	event.data = hapax_bytes_from_text(json);
	return event;
}

enum hapax_status key_case_make(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_key *ret, struct hapax_error *err)
{
	struct hapax_buf *scratch = hapax_buf_new(SCRATCH_SIZE);
	enum hapax_status status;

	assert_non_null(scratch);
	*ret = (struct hapax_key)HAPAX_KEY_INIT;
	status = hapax_key_make(strategy, event, scratch, ret, err);
	hapax_buf_free(scratch);
	return status;
}

const char *key_case_of(const char *strategy_text, const char *json)
{
	static char ring[RING][HAPAX_ERROR_MESSAGE_SIZE + 1];
	static size_t next;
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *strategy = key_case_strategy(strategy_text, &options);
	struct hapax_event event = key_case_event(json);
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_key key;
	char *out = ring[next++ % RING];

	if (key_case_make(strategy, &event, &key, &err) == HAPAX_OK)
		(void)snprintf(out, sizeof(ring[0]), "%s", key.key);
	else
		(void)snprintf(out, sizeof(ring[0]), "!%s", err.message);
	hapax_key_strategy_free(strategy);
	return out;
}
