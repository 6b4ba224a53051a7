/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_registry.c - the table of handlers by type (B7), with key strategies (B2), the
 * switch to skip the check, and the shadow strategy (E20).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hapax/hapax.h>

#include "base/alloc.h"
#include "support/store_case.h"

struct seen {
	unsigned runs;
	char key[64];
	const struct hapax_event *event;
	/* By the hook. */
	unsigned decided;
	char shadow[HAPAX_KEY_SIZE_MAX + 1];
	enum hapax_outcome outcome;
};

static struct hapax_store *store;
static struct hapax_processor *processor;
static struct hapax_registry *registry;
static struct seen seen;

static void decided(const struct hapax_decided *what, void *context)
{
	struct seen *to = context;

	to->decided++;
	to->outcome = what->answer->outcome;
	snprintf(to->shadow, sizeof(to->shadow), "%s", what->shadow ? what->shadow->key : "none");
}

static int begin(void **state)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	registry = NULL;
	options.decided = decided;
	options.decided_context = &seen;
	if (hapax_store_open("memory:", NULL, &store, NULL) != HAPAX_OK ||
	    hapax_processor_new(store, &options, &processor, NULL) != HAPAX_OK)
		abort();
	return 0;
}

static int end(void **state)
{
	(void)state;
	hapax_registry_free(registry);
	hapax_processor_free(processor);
	hapax_store_close(store);
	return 0;
}

static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	struct seen *to = context;

	to->runs++;
	to->event = work->event;
	snprintf(
		to->key, sizeof(to->key), "%.*s", (int)work->key.size,
		(const char *)work->key.data);
	(void)hapax_work_write(work, "ok", 2);
	return HAPAX_RUN_OK;
}

static struct hapax_registration row_for(const char *type, const char *strategy)
{
	struct hapax_registration row = HAPAX_REGISTRATION_INIT;

	row.type = type;
	row.strategy = strategy;
	row.handler = handle;
	row.context = &seen;
	return row;
}

static struct hapax_event event_of(const char *data)
{
	struct hapax_event event = HAPAX_EVENT_INIT;

	event.data = hapax_bytes_from_text(data);
	return event;
}

static void make(const struct hapax_registration *rows, size_t count)
{
	struct hapax_error err = {0};

	if (hapax_registry_new(processor, rows, count, &registry, &err) != HAPAX_OK) {
		printf("# %s\n", err.message);
		abort();
	}
}

static enum hapax_status process(
	const char *type, const struct hapax_event *event, enum hapax_outcome *ret_outcome,
	struct hapax_error *err)
{
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	enum hapax_status status = hapax_registry_process(
		registry, hapax_bytes_from_text(type), event, &answer, NULL, err);

	*ret_outcome = answer.outcome;
	return status;
}

static void each_type_has_its_handler_and_key(void **state)
{
	struct hapax_registration rows[] = {
		row_for("order.paid", "field:data.order"),
		row_for("order.shipped", "composite:data.order,data.parcel"),
	};
	struct hapax_event event = event_of("{\"order\":17,\"parcel\":\"x\"}");
	enum hapax_outcome outcome;

	(void)state;
	make(rows, 2);
	assert_int_equal(process("order.paid", &event, &outcome, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_string_equal(seen.key, "17");
	assert_ptr_equal(seen.event, &event);
	assert_int_equal(process("order.shipped", &event, &outcome, NULL), HAPAX_OK);
	assert_string_equal(seen.key, "17:x");
	assert_int_equal(process("order.paid", &event, &outcome, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(seen.runs, 2);
	assert_int_equal(seen.decided, 3);
	assert_string_equal(seen.shadow, "none");
}

static void the_events_own_type_is_used_when_none_is_given(void **state)
{
	struct hapax_registration rows[] = {row_for("a", "field:data.id")};
	struct hapax_field type = {hapax_bytes_from_text("type"), hapax_bytes_from_text("a")};
	struct hapax_event event = event_of("{\"id\":1}");
	enum hapax_outcome outcome;

	(void)state;
	make(rows, 1);
	event.attributes = &type;
	event.attribute_count = 1;
	assert_int_equal(process("", &event, &outcome, NULL), HAPAX_OK);
	assert_int_equal(seen.runs, 1);
}

static void an_unknown_type_is_an_error_or_goes_to_the_rest(void **state)
{
	struct hapax_registration rows[] = {
		row_for("a", "field:data.id"), row_for(NULL, "content")};
	struct hapax_event event = event_of("{\"id\":1}");
	enum hapax_outcome outcome;
	struct hapax_error err;

	(void)state;
	make(rows, 1);
	assert_int_equal(process("b", &event, &outcome, &err), HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "'b'"));
	assert_int_equal(seen.runs, 0);
	hapax_registry_free(registry);
	make(rows, 2);
	assert_int_equal(process("b", &event, &outcome, NULL), HAPAX_OK);
	assert_int_equal(process("c", &event, &outcome, NULL), HAPAX_OK);
	/* Same content, one ledger. */
	assert_int_equal(outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(seen.runs, 1);
}

static void a_missing_part_is_an_error_unless_it_may_pass(void **state)
{
	struct hapax_key_options pass = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_registration rows[] = {
		row_for("strict", "field:data.id"), row_for("loose", "field:data.id")};
	struct hapax_event event = event_of("{}");
	enum hapax_outcome outcome;
	struct hapax_error err;

	(void)state;
	pass.on_missing = HAPAX_ON_MISSING_PASS;
	rows[1].key_options = &pass;
	make(rows, 2);
	assert_int_equal(process("strict", &event, &outcome, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "data.id"));
	assert_int_equal(seen.runs, 0);
	for (unsigned i = 1; i <= 2; i++) {
		assert_int_equal(process("loose", &event, &outcome, &err), HAPAX_OK);
		assert_int_equal(seen.runs, i);
		assert_string_equal(seen.key, "");
	}
}

static void the_check_can_be_skipped(void **state)
{
	struct hapax_registration row = row_for("a", NULL);
	struct hapax_event event = event_of("not JSON at all");
	enum hapax_outcome outcome;

	(void)state;
	row.flags = HAPAX_REGISTRATION_UNPROTECTED;
	make(&row, 1);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(process("a", &event, &outcome, NULL), HAPAX_OK);
		assert_int_equal(seen.runs, i);
	}
}

static void another_payload_under_the_same_key_is_a_mismatch(void **state)
{
	struct hapax_registration rows[] = {row_for("a", "field:data.id")};
	struct hapax_event first = event_of("{\"id\":1,\"amount\":5}");
	struct hapax_event other = event_of("{\"id\":1,\"amount\":6}");
	enum hapax_outcome outcome;

	(void)state;
	make(rows, 1);
	assert_int_equal(process("a", &first, &outcome, NULL), HAPAX_OK);
	assert_int_equal(process("a", &other, &outcome, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(seen.runs, 1);
}

/* E20: what a second strategy would have made is seen beside the decision of the first. */
static void a_shadow_strategy_is_only_looked_at(void **state)
{
	struct hapax_registration row = row_for("a", "field:data.id");
	struct hapax_event event = event_of("{\"id\":1,\"order\":\"o-7\"}");
	struct hapax_event lacks = event_of("{\"id\":2}");
	enum hapax_outcome outcome;

	(void)state;
	row.shadow = "field:data.order";
	make(&row, 1);
	assert_int_equal(process("a", &event, &outcome, NULL), HAPAX_OK);
	assert_string_equal(seen.shadow, "o-7");
	assert_int_equal(seen.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_string_equal(seen.key, "1");
	/* A shadow that finds nothing never stands in the way. */
	assert_int_equal(process("a", &lacks, &outcome, NULL), HAPAX_OK);
	assert_string_equal(seen.shadow, "none");
	assert_int_equal(seen.runs, 2);
}

/* The fast path reports what it decides as every other does. */
static void duplicates_are_reported_with_their_shadow(void **state)
{
	struct hapax_registration row = row_for("a", "field:data.id");
	struct hapax_event event = event_of("{\"id\":1,\"order\":\"o-7\"}");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_buf *buf = hapax_buf_new(4096);

	(void)state;
	row.shadow = "field:data.order";
	make(&row, 1);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(
			hapax_registry_process(
				registry, hapax_bytes_from_text("a"), &event, &answer, buf, NULL),
			HAPAX_OK);
		assert_int_equal(seen.decided, i);
		assert_string_equal(seen.shadow, "o-7");
		assert_int_equal(
			seen.outcome, i == 1 ? HAPAX_OUTCOME_ACQUIRED : HAPAX_OUTCOME_REPLAY);
		assert_true(case_bytes_are(answer.result.body, "ok", 2));
	}
	assert_int_equal(seen.runs, 1);
	hapax_buf_free(buf);
}

static void without_a_type_it_is_for_nobody(void **state)
{
	struct hapax_registration row = row_for("a", "field:data.id");
	struct hapax_event event = event_of("{\"id\":1}");
	enum hapax_outcome outcome;

	(void)state;
	make(&row, 1);
	assert_int_equal(process("", &event, &outcome, NULL), HAPAX_ERR_UNSUPPORTED);
	assert_int_equal(seen.runs, 0);
}

static void every_allocation_may_fail(void **state)
{
	struct hapax_registration rows[] = {
		row_for("a", "field:data.id"), row_for(NULL, "content")};
	struct hapax_event event = event_of("{\"id\":1}");
	unsigned refused = 0;

	(void)state;
	rows[0].shadow = "content";
	for (uint64_t nth = 1; nth < 60; nth++) {
		enum hapax_outcome outcome;
		enum hapax_status status;

		hx_alloc_fail_at(nth, 0);
		status = hapax_registry_new(processor, rows, 2, &registry, NULL);
		if (status == HAPAX_OK)
			status = process("a", &event, &outcome, NULL);
		hx_alloc_fail_at(0, 0);
		assert_true(status == HAPAX_OK || status == HAPAX_ERR_NO_MEMORY);
		refused += status != HAPAX_OK;
		hapax_registry_free(registry);
		registry = NULL;
	}
	assert_true(refused > 3);
}

/* A burst of large events must not be paid for as long as the registry lives. */
static void scratch_of_a_large_event_is_given_back(void **state)
{
	enum { MEMBERS = 60000 };
	struct hapax_registration row = row_for("a", "content");
	size_t room = 2 + MEMBERS * 16;
	char *text = malloc(room);
	struct hapax_event small = event_of("{\"id\":1}");
	struct hapax_event large;
	enum hapax_outcome outcome;
	int64_t live;
	size_t size = 0;

	(void)state;
	assert_non_null(text);
	for (unsigned i = 0; i < MEMBERS; i++)
		size += (size_t)snprintf(
			text + size, room - size, "%c\"%u\":%u", i == 0 ? '{' : ',', i, i);
	(void)snprintf(text + size, room - size, "}");
	large = event_of(text);
	make(&row, 1);
	assert_int_equal(process("a", &small, &outcome, NULL), HAPAX_OK);
	assert_int_equal(process("a", &small, &outcome, NULL), HAPAX_OK);
	live = hx_alloc_live();
	assert_int_equal(process("a", &large, &outcome, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	/* The one that was kept for small ones grew, and went: itself and its bytes. The ticker's thread may have taken one. */
	assert_true(hx_alloc_live() < live);
	free(text);
}

static void options_are_those_of_the_row(void **state)
{
	struct hapax_run_options off = HAPAX_RUN_OPTIONS_INIT;
	struct hapax_registration row = row_for("a", "field:data.id");
	struct hapax_event event = event_of("{\"id\":1}");
	enum hapax_outcome outcome;

	(void)state;
	off.is_disabled = 1;
	row.options = &off;
	make(&row, 1);
	assert_int_equal(process("a", &event, &outcome, NULL), HAPAX_OK);
	assert_int_equal(process("a", &event, &outcome, NULL), HAPAX_OK);
	assert_int_equal(seen.runs, 2);
}

static void bad_rows_are_refused(void **state)
{
	struct hapax_registry *made = NULL;
	struct hapax_error err;

	(void)state;
	for (int bad = 0; bad < 9; bad++) {
		struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;
		struct hapax_registration rows[] = {
			row_for("a", "field:data.id"), row_for("b", "field:data.id")};

		switch (bad) {
		case 0: rows[1].type = "a"; break;
		case 7:
			rows[0].type = NULL;
			rows[1].type = NULL;
			break;
		case 8: rows[1].size = 8; break;
		case 1: rows[1].handler = NULL; break;
		case 2: rows[1].strategy = NULL; break;
		case 3: rows[1].strategy = "nonsense"; break;
		case 4: rows[1].type = ""; break;
		case 5: rows[1].shadow = "nonsense"; break;
		case 6:
			options.wait_ms = -1;
			rows[1].options = &options;
			break;
		default: break;
		}
		assert_int_equal(
			hapax_registry_new(processor, rows, 2, &made, &err), HAPAX_ERR_INVALID);
		assert_non_null(strstr(err.message, "registration 1"));
		assert_null(made);
	}
	assert_int_equal(hapax_registry_new(processor, NULL, 1, &made, &err), HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_registry_process(NULL, (struct hapax_bytes){NULL, 0}, NULL, NULL, NULL, &err),
		HAPAX_ERR_INVALID);
	hapax_registry_free(NULL);
}

/* A10: attributes of the event, each cut at 255 bytes; a long one does not hide the others. */
static void a_duplicate_learns_of_the_first_event(void **state)
{
	static char source[300];
	struct hapax_field attributes[] = {
		{hapax_bytes_from_text("id"), hapax_bytes_from_text("e-1")},
		{hapax_bytes_from_text("source"), {source, sizeof(source)}},
		{hapax_bytes_from_text("type"), hapax_bytes_from_text("a")}};
	struct hapax_registration row = row_for(NULL, "field:data.id");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_event event = event_of("{\"id\": 1}");
	struct hapax_buf *buf = hapax_buf_new(4096);
	struct hapax_cause cause;

	(void)state;
	memset(source, 's', sizeof(source));
	make(&row, 1);
	event.attributes = attributes;
	event.attribute_count = 3;
	event.time_ms = 1700000000;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			hapax_registry_process(
				registry, (struct hapax_bytes){NULL, 0}, &event, &answer, buf,
				NULL),
			HAPAX_OK);
		assert_int_equal(hapax_cause_read(answer.original_cause, &cause), i);
		attributes[0].value = hapax_bytes_from_text("e-2");
		event.time_ms = HAPAX_TIME_UNKNOWN;
	}
	assert_int_equal(cause.id.size, 3);
	assert_memory_equal(cause.id.data, "e-1", 3);
	assert_memory_equal(cause.type.data, "a", 1);
	assert_int_equal(cause.source.size, HAPAX_CAUSE_PART_SIZE_MAX);
	assert_int_equal(cause.time_ms, 1700000000);
	hapax_buf_free(buf);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_type_has_its_handler_and_key),
		CASE(the_events_own_type_is_used_when_none_is_given),
		CASE(an_unknown_type_is_an_error_or_goes_to_the_rest),
		CASE(a_missing_part_is_an_error_unless_it_may_pass),
		CASE(the_check_can_be_skipped),
		CASE(another_payload_under_the_same_key_is_a_mismatch),
		CASE(a_shadow_strategy_is_only_looked_at),
		CASE(duplicates_are_reported_with_their_shadow),
		CASE(without_a_type_it_is_for_nobody),
		CASE(every_allocation_may_fail),
		CASE(scratch_of_a_large_event_is_given_back),
		CASE(options_are_those_of_the_row),
		CASE(bad_rows_are_refused),
		CASE(a_duplicate_learns_of_the_first_event),
	};

	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
