/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of decisions: what is kept, what is left out, what is lost, and why a duplicate came. */
#include "observe/feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/thread.h"

static struct hx_feed *feed;

static struct hx_feed_note make(enum hapax_decision decision, const char *key)
{
	return (struct hx_feed_note){
		.decision = decision,
		.tenant = HX_BYTES_LIT("t"),
		.group = HX_BYTES_LIT("g"),
		.key = hapax_bytes_from_text(key)};
}

static int begin(void **state)
{
	(void)state;
	return hx_feed_new(2, &feed, NULL) == HAPAX_OK ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	hx_feed_free(feed);
	return 0;
}

struct taken {
	size_t count;
	char keys[8][32];
};

static void take(const struct hx_feed_note *note, void *context)
{
	struct taken *taken = context;

	assert_true(hx_bytes_equal(note->tenant, HX_BYTES_LIT("t")));
	if (taken->count < 8) {
		memcpy(taken->keys[taken->count], note->key.data, note->key.size);
		taken->keys[taken->count][note->key.size] = '\0';
	}
	taken->count++;
}

static void first_deliveries_only_while_somebody_listens(void **state)
{
	struct taken taken = {.count = 0};
	struct hx_feed_note first = make(HAPAX_DECISION_ACQUIRED, "first");
	struct hx_feed_note again = make(HAPAX_DECISION_REPLAY, "again");

	(void)state;
	hx_feed_add(feed, 0, &first);
	hx_feed_add(feed, 0, &again);
	hx_feed_listen(feed, true);
	hx_feed_add(feed, 1, &first);
	assert_int_equal(hx_feed_take(feed, take, &taken), 0);
	assert_int_equal(taken.count, 2);
	assert_string_equal(taken.keys[0], "again");
	assert_string_equal(taken.keys[1], "first");
	hx_feed_listen(feed, false);
	hx_feed_add(feed, 1, &first);
	assert_int_equal(hx_feed_take(feed, take, &taken), 0);
	assert_int_equal(taken.count, 2);
	hx_feed_add(NULL, 0, &again);
}

static void what_does_not_fit_is_counted(void **state)
{
	struct taken taken = {.count = 0};
	struct hx_feed_note note = make(HAPAX_DECISION_REPLAY, "k");

	(void)state;
	for (int i = 0; i < HX_FEED_NOTES_MAX + 5; i++)
		hx_feed_add(feed, 0, &note);
	assert_int_equal(hx_feed_take(feed, take, &taken), 5);
	assert_int_equal(taken.count, HX_FEED_NOTES_MAX);
	hx_feed_add(feed, 0, &note);
	assert_int_equal(hx_feed_take(feed, take, &taken), 0);
	assert_int_equal(taken.count, HX_FEED_NOTES_MAX + 1);
}

#define TEXT_32  "0123456789abcdef0123456789abcdef"
#define TEXT_127 TEXT_32 TEXT_32 TEXT_32 "0123456789abcdef0123456789abcde"

static void texts_are_cut_and_owned(void **state)
{
	static char large[4096];
	static struct hx_feed_slot slot;
	struct hx_feed_note note = make(HAPAX_DECISION_REPLAY, "k");

	(void)state;
	memset(large, 'x', sizeof(large));
	note.key = note.tenant = note.group = hx_bytes(large, sizeof(large));
	note.event.source = note.original.id = note.key;
	/* A character that does not fit goes as a whole. */
	note.original.type = hapax_bytes_from_text(TEXT_127 "\xc3\xbc");
	hx_feed_slot_set(&slot, &note);
	large[0] = 'y';
	assert_int_equal(slot.note.key.size, HX_KEY_SIZE_MAX);
	assert_int_equal(slot.note.event.source.size, HX_FEED_WORD_SIZE_MAX);
	assert_int_equal(slot.note.original.id.size, HX_FEED_WORD_SIZE_MAX);
	assert_int_equal(slot.note.original.type.size, 127);
	assert_int_equal(*(const char *)slot.note.tenant.data, 'x');
}

static void causes(void **state)
{
	struct hx_feed_note note = make(HAPAX_DECISION_REPLAY, "k");

	(void)state;
	assert_string_equal(hx_feed_cause(&note), "repeated");
	note.flags = HX_FEED_EVENT_ID;
	assert_string_equal(hx_feed_cause(&note), "redelivered");
	note.flags |= HX_FEED_WAITED;
	assert_string_equal(hx_feed_cause(&note), "concurrent");
	note.decision = HAPAX_DECISION_MISMATCH;
	assert_string_equal(hx_feed_cause(&note), "other_payload");
	note.decision = HAPAX_DECISION_PARKED;
	assert_string_equal(hx_feed_cause(&note), "parked");
	/* A consumer knows more. */
	note.decision = HAPAX_DECISION_REPLAY;
	note.door = HX_DOOR_CONSUMER;
	note.cause = HAPAX_CAUSE_PRODUCER;
	assert_string_equal(hx_feed_cause(&note), "producer");
	note.decision = HAPAX_DECISION_ACQUIRED;
	assert_false(hx_feed_is_duplicate(&note));
	note.decision = HAPAX_DECISION_FENCED;
	assert_false(hx_feed_is_duplicate(&note));
}

/* One writes as fast as it can, another takes: nothing is torn, and the sums agree. */
enum { WRITES = 20000 };

static void write_many(void *arg)
{
	struct hx_feed_note note = make(HAPAX_DECISION_REPLAY, "k");

	(void)arg;
	for (uint64_t i = 0; i < WRITES; i++) {
		note.token = i;
		note.attempt = (uint32_t)i;
		hx_feed_add(feed, 0, &note);
	}
}

struct sums {
	uint64_t count;
	uint64_t last;
};

static void check_note(const struct hx_feed_note *note, void *context)
{
	struct sums *sums = context;

	assert_int_equal(note->token, note->attempt);
	assert_true(sums->count == 0 || note->token > sums->last);
	sums->last = note->token;
	sums->count++;
}

static void two_threads(void **state)
{
	struct sums sums = {.count = 0};
	struct hx_thread thread;
	uint64_t lost = 0;

	(void)state;
	assert_int_equal(hx_thread_start(&thread, write_many, NULL, "writer", NULL), HAPAX_OK);
	for (int i = 0; i < 200; i++)
		lost += hx_feed_take(feed, check_note, &sums);
	hx_thread_join(&thread);
	lost += hx_feed_take(feed, check_note, &sums);
	assert_int_equal(sums.count + lost, WRITES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			first_deliveries_only_while_somebody_listens, begin, end),
		cmocka_unit_test_setup_teardown(what_does_not_fit_is_counted, begin, end),
		cmocka_unit_test_setup_teardown(texts_are_cut_and_owned, begin, end),
		cmocka_unit_test_setup_teardown(causes, begin, end),
		cmocka_unit_test_setup_teardown(two_threads, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
