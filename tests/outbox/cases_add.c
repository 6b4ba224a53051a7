/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_add.c - events on their way into the outbox, with their transaction or not at all.
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <string.h>

#include "base/uuid7.h"

static void tables_are_made_once(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_migration migration;
	struct hapax_error err;

	outbox_case_add(c, "t", "", "kept", "x");
	assert_int_equal(hapax_outbox_init(c->url, &migration, &err), HAPAX_OK);
	assert_int_equal(migration.from, migration.to);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 1);
}

static void a_newer_outbox_is_refused(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox *outbox;
	struct hapax_error err = {0};

	outbox_case_run(c, "UPDATE {}hapax_outbox_meta SET version = 99");
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "newer hapax"));
	assert_int_equal(hapax_outbox_init(c->url, NULL, &err), HAPAX_ERR_UNSUPPORTED);
}

static void a_missing_outbox_is_told_with_a_hint(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox *outbox;
	struct hapax_error err = {0};

	outbox_case_run(c, "DROP TABLE {}hapax_outbox_meta");
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "hapax outbox init"));
}

static void events_live_and_die_with_their_transaction(void **state)
{
	struct outbox_case *c = *state;

	outbox_case_run(c, "BEGIN");
	outbox_case_run(c, "INSERT INTO {}orders VALUES ('a')");
	outbox_case_add(c, "orders", "a", "1", "{}");
	outbox_case_run(c, "ROLLBACK");
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 0);
	outbox_case_run(c, "BEGIN");
	outbox_case_add(c, "orders", "a", "2", "{}");
	outbox_case_run(c, "COMMIT");
	(void)drain(c);
	assert_int_equal(sunk.count, 1);
	assert_string_equal(sunk.messages[0].id, "2");
}

static enum hapax_status insert_order(void *context, struct hapax_error *err)
{
	struct outbox_case *c = context;

	(void)err;
	return outbox_case_try(c, "INSERT INTO {}orders VALUES ('o')") ? HAPAX_OK
								       : HAPAX_ERR_HANDLER;
}

static void execute_keeps_both_or_neither(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_event events[2] = {HAPAX_OUTBOX_EVENT_INIT, HAPAX_OUTBOX_EVENT_INIT};
	struct hapax_error err;

	events[0].topic = events[1].topic = hapax_bytes_from_text("orders");
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, events, 2, &err), HAPAX_OK);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}orders"), 1);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 2);
	/* The order is there already: no event tells of a second one. */
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, events, 2, &err),
		HAPAX_ERR_HANDLER);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 2);
	/* An event that is none: no order either. */
	outbox_case_run(c, "DELETE FROM {}orders");
	events[1].topic.size = 0;
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, events, 2, &err),
		HAPAX_ERR_INVALID);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}orders"), 0);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 2);
}

static void execute_works_inside_of_a_transaction(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct hapax_error err;

	event.topic = hapax_bytes_from_text("orders");
	outbox_case_run(c, "BEGIN");
	outbox_case_run(c, "INSERT INTO {}orders VALUES ('before')");
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, &event, 1, &err), HAPAX_OK);
	/* What fails is undone alone. */
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, &event, 1, &err),
		HAPAX_ERR_HANDLER);
	outbox_case_run(c, "COMMIT");
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}orders"), 2);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 1);
}

static void events_that_are_none_are_refused(void **state)
{
	struct outbox_case *c = *state;
	static char large[HX_OUTBOX_PAYLOAD_SIZE_MAX + 1];
	struct hapax_field header = {hapax_bytes_from_text("h"), hapax_bytes_from_text("\xff")};
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct hapax_error err = {0};

	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	event.topic = hapax_bytes_from_text("t");
	event.payload = (struct hapax_bytes){large, sizeof(large)};
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "reference"));
	event.payload.size = 0;
	memset(large, 'k', HX_OUTBOX_LONG_SIZE_MAX + 1);
	event.ordering_key = (struct hapax_bytes){large, HX_OUTBOX_LONG_SIZE_MAX + 1};
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	event.ordering_key = (struct hapax_bytes){"a\0b", 3};
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	event.ordering_key.size = 0;
	event.headers = &header;
	event.header_count = 1;
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	event.header_count = 0;
	event.id = hapax_bytes_from_text("twice");
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_OK);
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "already"));
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 1);
}

static void ids_are_uuids_that_sort_by_time(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	char id[HAPAX_OUTBOX_ID_SIZE];
	unsigned char uuid[HX_UUID_SIZE];
	int64_t made_ms = 0;
	struct hapax_error err;

	event.topic = hapax_bytes_from_text("t");
	assert_int_equal(hapax_outbox_add(c->joined, &event, id, &err), HAPAX_OK);
	assert_true(hx_uuid7_parse(hapax_bytes_from_text(id), uuid));
	assert_true(hx_uuid7_time_ms(uuid, &made_ms));
	assert_int_equal(
		made_ms / 60000,
		outbox_case_number(c, "SELECT created_ms / 60000 FROM {}hapax_outbox"));
}

const struct outbox_test add_cases[] = {
	{"tables_are_made_once", tables_are_made_once},
	{"a_newer_outbox_is_refused", a_newer_outbox_is_refused},
	{"a_missing_outbox_is_told_with_a_hint", a_missing_outbox_is_told_with_a_hint},
	{"events_live_and_die_with_their_transaction", events_live_and_die_with_their_transaction},
	{"execute_keeps_both_or_neither", execute_keeps_both_or_neither},
	{"execute_works_inside_of_a_transaction", execute_works_inside_of_a_transaction},
	{"events_that_are_none_are_refused", events_that_are_none_are_refused},
	{"ids_are_uuids_that_sort_by_time", ids_are_uuids_that_sort_by_time},
	{NULL, NULL},
};
