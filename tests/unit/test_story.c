/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record in sentences: one row for each story, as a shell and as a program gets it.
 */
#include "wire/record/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

/* 2026-11-15T20:22:15.250Z */
enum { SECOND = 1000, HOUR = 3600 * SECOND };
static const int64_t now_ms = INT64_C(1794774135250);

static struct hx_story story;

static void tell(const struct hapax_record *record, int64_t lease_left_ms, bool is_for_shell)
{
	story = (struct hx_story){
		.record = record,
		.lease_left_ms = lease_left_ms,
		.is_for_shell = is_for_shell,
		.now_ms = is_for_shell ? now_ms : 0,
	};
	hx_story_tell(&story);
}

static void expect(size_t line, const char *text)
{
	assert_true(line < story.link_count);
	assert_string_equal(story.lines[line], text);
}

static struct hapax_record record_in(enum hapax_state state)
{
	return (struct hapax_record){
		.state = state,
		.attempt = 2,
		.first_seen_ms = now_ms - HOUR,
		.changed_ms = now_ms - 5 * SECOND,
		.lease_ends_ms = now_ms - 90 * SECOND,
		.expires_ms = now_ms + HOUR,
		.owner = HX_BYTES_LIT("me"),
		.error = HX_BYTES_LIT("no answer"),
	};
}

static void an_absent_key_would_be_acquired(void **state)
{
	(void)state;
	tell(NULL, 0, false);
	assert_int_equal(story.link_count, 1);
	assert_int_equal(story.action_count, 0);
	assert_int_equal(story.next, HAPAX_OUTCOME_ACQUIRED);
}

static void a_shell_is_told_ages_and_a_program_times(void **state)
{
	struct hapax_record record = record_in(HAPAX_STATE_FAILED);

	(void)state;
	tell(&record, 0, true);
	expect(0,
	       "It was first used 2026-11-15T19:22:15Z (1h ago); 2 runs were started, and it has been "
	       "failed since 2026-11-15T20:22:10Z (5s ago).");
	expect(1, "The last run failed: no answer.");
	assert_int_equal(story.next, HAPAX_OUTCOME_ACQUIRED);
	tell(&record, 0, false);
	expect(0,
	       "It was first used 2026-11-15T19:22:15.250Z; 2 runs were started, and it has been failed "
	       "since 2026-11-15T20:22:10.250Z.");
}

static void a_lease_that_holds_keeps_others_out(void **state)
{
	struct hapax_record record = record_in(HAPAX_STATE_CLAIMED);

	(void)state;
	tell(&record, 61 * SECOND, true);
	expect(1, "me holds it for another 1m1s unless it renews the lease.");
	tell(&record, 61 * SECOND - 1, false);
	expect(1, "me holds it for another 61 s unless it renews the lease.");
	assert_int_equal(story.next, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(story.action_count, 0);
	record.owner = hx_bytes(NULL, 0);
	tell(&record, SECOND, true);
	expect(1, "A caller holds it for another 1s unless it renews the lease.");
}

static void a_lease_that_ended_is_for_a_person_to_resolve(void **state)
{
	struct hapax_record record = record_in(HAPAX_STATE_CLAIMED);

	(void)state;
	tell(&record, 0, true);
	expect(1, "me holds it, but its lease lapsed 1m30s ago: the next claim takes over.");
	assert_int_equal(story.next, HAPAX_OUTCOME_ACQUIRED);
	record.on_lapse = HAPAX_ON_LAPSE_PARK;
	record.owner = hx_bytes(NULL, 0);
	tell(&record, 0, false);
	expect(1, "A caller holds it, but its lease has lapsed: the next claim parks it.");
	assert_int_equal(story.next, HAPAX_OUTCOME_PARKED);
	/* The safer one first: what is done does not run twice. */
	assert_int_equal(story.action_count, 2);
	assert_int_equal(story.actions[0], HX_STORY_DONE);
	assert_int_equal(story.actions[1], HX_STORY_RETRY);
}

static void what_is_done_is_replayed_until_it_expires(void **state)
{
	struct hapax_record record = record_in(HAPAX_STATE_DONE);

	(void)state;
	record.origin = HAPAX_ORIGIN_CHECK;
	tell(&record, 0, true);
	expect(1,
	       "There is no result to replay: it is a mark, as 'hapax check' and 'hapax "
	       "store import' make it.");
	expect(2, "It expires 2026-11-15T21:22:15Z (in 1h); after that the key counts as new.");
	assert_int_equal(story.next, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(story.actions[0], HX_STORY_FORGET);
	record.expires_ms = HAPAX_TIME_NEVER;
	record.result = (struct hapax_result){
		.kind = HAPAX_RESULT_HTTP, .status = 201, .body = HX_BYTES_LIT("body")};
	tell(&record, 0, true);
	expect(1, "Its result (http, ok, status 201, 4 bytes) is replayed.");
	expect(2, "It never expires.");
	record.result.omitted_bytes = 70;
	tell(&record, 0, false);
	expect(1,
	       "Its result (http, status 201) is replayed without its body of 70 bytes, which "
	       "was too large to store.");
}

static void sentences_beyond_the_last_are_left_away(void **state)
{
	struct hapax_record record = record_in(HAPAX_STATE_PARKED);

	(void)state;
	tell(&record, 0, false);
	expect(1, "It is unknown whether its work happened: no answer.");
	assert_int_equal(story.next, HAPAX_OUTCOME_PARKED);
	for (int i = 0; i < 2 * HX_STORY_LINES_MAX; i++)
		hx_story_add(&story, "%d", i);
	assert_int_equal(story.link_count, HX_STORY_LINES_MAX);
	expect(3, "0");
}

static void the_event_is_named(void **state)
{
	struct hapax_record record = record_in(HAPAX_STATE_FAILED);
	struct hapax_cause event = {.id = HX_BYTES_LIT("e-1"), .time_ms = now_ms - 2 * HOUR};
	unsigned char space[HAPAX_CAUSE_SIZE_MAX];

	(void)state;
	record.cause = hapax_cause_write(&event, space);
	tell(&record, 0, true);
	expect(1,
	       "It was claimed for the event with id 'e-1', time '2026-11-15T18:22:15Z (2h ago)'.");
	event.type = HX_BYTES_LIT("order.paid");
	event.source = HX_BYTES_LIT("/shop");
	event.time_ms = 0;
	record.cause = hapax_cause_write(&event, space);
	tell(&record, 0, false);
	expect(1, "It was claimed for the event with id 'e-1', type 'order.paid', source '/shop'.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_absent_key_would_be_acquired),
		cmocka_unit_test(a_shell_is_told_ages_and_a_program_times),
		cmocka_unit_test(a_lease_that_holds_keeps_others_out),
		cmocka_unit_test(a_lease_that_ended_is_for_a_person_to_resolve),
		cmocka_unit_test(what_is_done_is_replayed_until_it_expires),
		cmocka_unit_test(sentences_beyond_the_last_are_left_away),
		cmocka_unit_test(the_event_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
