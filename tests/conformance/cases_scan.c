/* SPDX-License-Identifier: Apache-2.0 */
/* cases_scan.c - walking the records: all of them, by filter, page by page. */
#include "conformance/cases.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS = 1000 };

/* Which of "key 0" .. were handed out, and how the pages went. */
struct walk {
	unsigned seen[KEYS];
	size_t in_page;
	size_t stop_after; /* 0: never */
	bool strange;      /* a key that no case made */
};

static int see(const struct hapax_record *record, void *context)
{
	struct walk *walk = context;
	char text[32] = {0};

	walk->in_page++;
	if (record->key.size < sizeof(text))
		memcpy(text, record->key.data, record->key.size);
	unsigned long number = strncmp(text, "key ", 4) == 0 ? strtoul(text + 4, NULL, 10) : KEYS;
	if (number < KEYS)
		walk->seen[number]++;
	else
		walk->strange = true;
	return walk->stop_after && walk->in_page >= walk->stop_after;
}

static void fill(struct store_case *c)
{
	static struct hapax_op ops[KEYS];
	static char keys[KEYS][16];

	for (size_t i = 0; i < KEYS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key %zu", i);
		ops[i] = case_op(c, HAPAX_OP_CHECK, keys[i]);
		ops[i].group = hapax_bytes_from_text(i % 3 ? "" : "third");
	}
	assert_int_equal(hapax_store_run(c->store, ops, KEYS, NULL), HAPAX_OK);
}

static void scan_of_nothing_ends_at_once(void **state)
{
	struct store_case *c = *state;
	struct hapax_cursor cursor = {0};
	struct walk walk = {{0}, 0, 0, false};

	for (int calls = 0; !cursor.done; calls++) {
		assert_int_equal(
			hapax_store_scan(c->store, NULL, &cursor, see, &walk, NULL), HAPAX_OK);
		assert_true(calls < 1000);
	}
	assert_int_equal(walk.in_page, 0);
	/* Done stays done. */
	assert_int_equal(hapax_store_scan(c->store, NULL, &cursor, see, &walk, NULL), HAPAX_OK);
	assert_int_equal(walk.in_page, 0);
}

/* Every page size gives every record; none gives more than was asked for. */
static void scan_goes_page_by_page(void **state)
{
	struct store_case *c = *state;
	static const size_t pages[] = {1, 2, 7, 100, 999, 1000, 1001, 0};

	fill(c);
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		struct hapax_scan scan = HAPAX_SCAN_INIT;
		struct hapax_cursor cursor = {0};
		struct walk walk = {{0}, 0, 0, false};

		scan.count_max = pages[i];
		for (int calls = 0; !cursor.done; calls++) {
			walk.in_page = 0;
			assert_int_equal(
				hapax_store_scan(c->store, &scan, &cursor, see, &walk, NULL),
				HAPAX_OK);
			assert_true(walk.in_page <= (pages[i] ? pages[i] : 1000));
			assert_true(calls < 100000);
		}
		assert_false(walk.strange);
		/* Nothing changes meanwhile, so nothing comes twice. */
		for (size_t k = 0; k < KEYS; k++)
			assert_int_equal(walk.seen[k], 1);
	}
}

/* A callback that stops loses nothing: the next call goes on behind it. */
static void scan_goes_on_after_a_stop(void **state)
{
	struct store_case *c = *state;
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {0};
	struct walk walk = {{0}, 0, 3, false};
	struct hapax_error err;

	fill(c);
	for (int calls = 0; !cursor.done; calls++) {
		walk.in_page = 0;
		if (hapax_store_scan(c->store, &scan, &cursor, see, &walk, &err) != HAPAX_OK)
			fail_msg("call %d: %s", calls, err.message);
		assert_true(walk.in_page <= 3);
		assert_true(calls < 100000);
	}
	for (size_t k = 0; k < KEYS; k++)
		assert_true(walk.seen[k] >= 1);
}

static void scan_filters(void **state)
{
	struct store_case *c = *state;
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_op op;

	fill(c);
	assert_int_equal(case_park(c, "parked", must_claim(c, "parked")), HAPAX_OK);
	assert_int_equal(case_release(c, "failed", must_claim(c, "failed")), HAPAX_OK);
	must_claim(c, "claimed");
	op = case_op(c, HAPAX_OP_CHECK, "pre\0fix");
	op.key = (struct hapax_bytes){"pre\0fix", 7};
	op.tenant = hapax_bytes_from_text("acme");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);

	assert_int_equal(case_scan_count(c, &scan), KEYS + 4);
	scan.state = HAPAX_STATE_PARKED;
	assert_int_equal(case_scan_count(c, &scan), 1);
	scan.state = HAPAX_STATE_CLAIMED;
	assert_int_equal(case_scan_count(c, &scan), 1);
	scan.state = HAPAX_STATE_FAILED;
	assert_int_equal(case_scan_count(c, &scan), 1);
	scan.state = HAPAX_STATE_DONE;
	assert_int_equal(case_scan_count(c, &scan), KEYS + 1);
	scan.state = HAPAX_STATE_ABSENT;
	scan.group = hapax_bytes_from_text("third");
	assert_int_equal(case_scan_count(c, &scan), (KEYS + 2) / 3);
	scan.tenant = hapax_bytes_from_text("acme");
	assert_int_equal(case_scan_count(c, &scan), 0);
	scan.group = (struct hapax_bytes){NULL, 0};
	assert_int_equal(case_scan_count(c, &scan), 1);
	scan.tenant = hapax_bytes_from_text("nobody");
	assert_int_equal(case_scan_count(c, &scan), 0);
	scan.tenant = (struct hapax_bytes){NULL, 0};
	scan.prefix = hapax_bytes_from_text("key 99");
	assert_int_equal(case_scan_count(c, &scan), 11);
	scan.prefix = (struct hapax_bytes){"pre\0", 4};
	assert_int_equal(case_scan_count(c, &scan), 1);
	scan.prefix = (struct hapax_bytes){"pre\0fix and more", 16};
	assert_int_equal(case_scan_count(c, &scan), 0);
}

/* What has expired is left out, unless asked for, until the sweep removes it. */
static void scan_leaves_expired_records_out(void **state)
{
	struct store_case *c = *state;
	struct hapax_scan scan = HAPAX_SCAN_INIT;

	fill(c);
	store_case_advance(c, 60000);
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "live");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_scan_count(c, &scan), 1);
	scan.flags = HAPAX_SCAN_EXPIRED;
	size_t with_expired = case_scan_count(c, &scan);
	assert_true(with_expired >= 1 && with_expired <= KEYS + 1);
	case_sweep(c);
	assert_int_equal(case_scan_count(c, &scan), 1);
}

static void bad_scans_are_refused(void **state)
{
	struct store_case *c = *state;
	static char text[1025];
	struct hapax_cursor cursor = {0};
	struct walk walk = {{0}, 0, 0, false};
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_error err = {0};

	assert_int_equal(
		hapax_store_scan(c->store, &scan, NULL, see, &walk, &err), HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_store_scan(c->store, &scan, &cursor, NULL, &walk, &err), HAPAX_ERR_INVALID);
	scan.size = 3;
	assert_int_equal(
		hapax_store_scan(c->store, &scan, &cursor, see, &walk, &err), HAPAX_ERR_INVALID);
	scan = (struct hapax_scan)HAPAX_SCAN_INIT;
	scan.state = (enum hapax_state)9;
	assert_int_equal(
		hapax_store_scan(c->store, &scan, &cursor, see, &walk, &err), HAPAX_ERR_INVALID);
	scan = (struct hapax_scan)HAPAX_SCAN_INIT;
	scan.prefix = (struct hapax_bytes){text, sizeof(text)};
	assert_int_equal(
		hapax_store_scan(c->store, &scan, &cursor, see, &walk, &err), HAPAX_ERR_INVALID);
	scan = (struct hapax_scan)HAPAX_SCAN_INIT;
	scan.tenant = (struct hapax_bytes){text, 129};
	assert_int_equal(
		hapax_store_scan(c->store, &scan, &cursor, see, &walk, &err), HAPAX_ERR_INVALID);
	assert_true(err.message[0] != '\0');
	/* A cursor that never came from a scan. */
	scan = (struct hapax_scan)HAPAX_SCAN_INIT;
	cursor.size = sizeof(cursor.place) + 1;
	assert_int_equal(
		hapax_store_scan(c->store, &scan, &cursor, see, &walk, &err), HAPAX_ERR_INVALID);
}

const struct conformance_case scan_cases[] = {
	{"E6: a scan of nothing ends at once", scan_of_nothing_ends_at_once, NEEDS_NOTHING},
	{"E6: a scan goes page by page", scan_goes_page_by_page, NEEDS_NOTHING},
	{"E6: a scan goes on after a stop", scan_goes_on_after_a_stop, NEEDS_NOTHING},
	{"E6: a scan filters", scan_filters, NEEDS_NOTHING},
	{"E6 A4: a scan leaves expired records out", scan_leaves_expired_records_out,
	 NEEDS_NOTHING},
	{"I13: bad scans are refused", bad_scans_are_refused, NEEDS_NOTHING},
	{NULL, NULL, NEEDS_NOTHING},
};
