/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_fsck.c - repair: what can be read is kept, as it was, and nothing else; whatever
 * fails on the way, DIR is the damaged store or the whole repaired one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/log/read/fsck.h"
#include "support/fault_io.h"
#include "support/log_case.h"
#include "support/log_files.h"
#include "support/scale.h"

#define HOUR_MS INT64_C(3600000)

enum { BLOCK = 4096, SEGMENT = 32 * 1024 };

static int set_up(void **state)
{
	struct store_case *c = calloc(1, sizeof(*c));

	if (!c)
		return -1;
	store_case_init(c, "file:");
	c->options.segment_bytes = SEGMENT;
	snprintf(c->url, sizeof(c->url), "file:%.150s/store", c->dir.path);
	store_case_open(c);
	*state = c;
	return 0;
}

static void set(struct store_case *c, const char *tenant, const char *key, const char *body)
{
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text(body)};
	struct hapax_op op = case_op(c, HAPAX_OP_SET, key);

	op.tenant = hapax_bytes_from_text(tenant);
	op.group = hapax_bytes_from_text("g");
	op.ttl_ms = 100 * 24 * HOUR_MS;
	op.result = &result;
	assert_int_equal(case_run(c, &op), HAPAX_OK);
}

/* Has the key that body? "" : there is none. */
static void has(struct store_case *c, const char *tenant, const char *key, const char *body)
{
	struct hapax_op op = case_op(c, HAPAX_OP_LOOKUP, key);

	op.tenant = hapax_bytes_from_text(tenant);
	op.group = hapax_bytes_from_text("g");
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	if (body[0] == '\0') {
		if (op.outcome == HAPAX_OUTCOME_FOUND)
			fail_msg("%s of %s is there", key, tenant);
		return;
	}
	if (op.outcome != HAPAX_OUTCOME_FOUND)
		fail_msg("%s of %s is not there", key, tenant);
	assert_true(case_bytes_are(c->record.result.body, body, strlen(body)));
}

static void forget(struct store_case *c, const char *tenant, const char *key)
{
	struct hapax_op op = case_op(c, HAPAX_OP_FORGET, key);

	op.tenant = hapax_bytes_from_text(tenant);
	op.group = hapax_bytes_from_text("g");
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
}

/* Marks that are not needed, so that segments fill and passes have something to do. */
static void fill(struct store_case *c, const char *prefix, unsigned count, int64_t ttl_ms)
{
	for (unsigned i = 0; i < count; i++) {
		struct hapax_op op;
		char key[48];

		snprintf(key, sizeof(key), "%s %u", prefix, i);
		op = case_op(c, HAPAX_OP_CHECK, key);
		op.ttl_ms = ttl_ms;
		assert_int_equal(case_run(c, &op), HAPAX_OK);
	}
}

static struct hapax_fsck repair(struct store_case *c)
{
	struct hapax_fsck fsck = HAPAX_FSCK_INIT;
	struct hapax_error err = {0};

	fsck.flags = HAPAX_FSCK_REPAIR_ACCEPT_LOSS;
	if (hapax_fsck(log_files_directory(c), &fsck, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	assert_true(fsck.damages > 0);
	assert_true(fsck.damaged_path[0] != '\0');
	return fsck;
}

/*
 * A record that was set over another one is copied as a PUT and a REMOVE with the same LSN: it
 * is a record all the same. The REMOVE is kept only where an older class segment stays: one with
 * so much in it that it is not rewritten for space.
 */
static void records_that_replaced_others_are_kept(void **state)
{
	struct store_case *c = *state;
	static char large[40001];
	char name[256];

	memset(large, 'x', sizeof(large) - 1);
	set(c, "t", "oldest", large);
	fill(c, "so that it is copied", 40, HOUR_MS);
	case_sweep(c);
	log_files_find(c, "ever-", false, name);
	if (name[0] == '\0')
		log_files_find(c, "month-", false, name);
	assert_true(name[0] != '\0');
	for (int i = 0; i < 5; i++) {
		char key[16];

		snprintf(key, sizeof(key), "key %d", i);
		set(c, "t", key, "old");
		set(c, "t", key, "new");
	}
	set(c, "t", "forgotten", "x");
	fill(c, "filler", 40, HOUR_MS);
	case_sweep(c);
	case_sweep(c);
	forget(c, "t", "forgotten");
	fill(c, "more", 5, HOUR_MS);
	log_case_close(c);
	log_files_damage(c, "more 3");
	(void)repair(c);
	store_case_open(c);
	for (int i = 0; i < 5; i++) {
		char key[16];

		snprintf(key, sizeof(key), "key %d", i);
		has(c, "t", key, "new");
	}
	has(c, "t", "oldest", large);
	has(c, "t", "forgotten", "");
}

/* What a crash leaves: the files of a store that is open, under another name. */
static void crash(struct store_case *c, const char *name)
{
	char to[300];

	snprintf(to, sizeof(to), "%.150s/%s", c->dir.path, name);
	log_files_copy(log_files_directory(c), to);
	log_case_close(c);
	snprintf(c->url, sizeof(c->url), "file:%.150s/%s", c->dir.path, name);
}

/*
 * A log segment that was given up keeps its name until its file is used again. What was
 * forgotten is in it, and nothing else tells that it was.
 */
static void given_up_log_segments_are_left_out(void **state)
{
	struct store_case *c = *state;
	char name[256];

	/* So large that the passes' own frames do not fill one. */
	log_case_close(c);
	snprintf(c->url, sizeof(c->url), "file:%.150s/large", c->dir.path);
	c->options.segment_bytes = 4 * SEGMENT;
	store_case_open(c);
	set(c, "t", "forgotten", "old");
	set(c, "t", "kept", "old");
	fill(c, "filler", 35, HOUR_MS);
	forget(c, "t", "forgotten");
	fill(c, "more filler", 35, HOUR_MS);
	case_sweep(c);
	log_files_find(c, "log-", false, name);
	assert_string_equal(name, "log-0000000000000001.seg");
	fill(c, "last", 2, HOUR_MS);
	crash(c, "crashed");
	log_files_damage(c, "last 0");
	(void)repair(c);
	store_case_open(c);
	has(c, "t", "kept", "old");
	has(c, "t", "forgotten", "");
}

/* A class segment whose removal a crash has undone is in no manifest any more. */
static void given_up_class_segments_are_left_out(void **state)
{
	struct store_case *c = *state;
	char name[256], path[600], kept[600], back[600];

	set(c, "t", "forgotten", "old");
	set(c, "t", "kept", "old");
	fill(c, "filler", 20, 100 * 24 * HOUR_MS);
	case_sweep(c);
	log_files_find(c, "ever-", false, name);
	assert_true(name[0] != '\0');
	log_files_path(c, name, path);
	snprintf(kept, sizeof(kept), "%.150s/%s", c->dir.path, name);
	log_files_copy(path, kept);
	forget(c, "t", "forgotten");
	/* Much is dead: it is rewritten, without what was forgotten and what tells of that. */
	for (unsigned round = 0; round < 20 && access(path, F_OK) == 0; round++) {
		for (unsigned i = 0; i < 20; i++) {
			struct hapax_op op;
			char key[24];

			snprintf(key, sizeof(key), "filler %u", i);
			op = case_op(c, HAPAX_OP_FORGET, key);
			(void)case_run(c, &op);
		}
		fill(c, "filler", 20, 100 * 24 * HOUR_MS);
		case_sweep(c);
	}
	assert_int_not_equal(access(path, F_OK), 0);
	fill(c, "later", 20, HOUR_MS);
	case_sweep(c);
	fill(c, "last", 2, HOUR_MS);
	crash(c, "crashed");
	log_files_path(c, name, back);
	log_files_copy(kept, back);
	log_files_damage(c, "last 0");
	(void)repair(c);
	store_case_open(c);
	has(c, "t", "kept", "old");
	has(c, "t", "forgotten", "");
}

/*
 * Spoil every frame between those that hold one text and the other, and remove the other
 * log segments. False: they do not lie in one segment, or nothing lies between.
 */
static bool lose_between(const struct store_case *c, const char *first, const char *last)
{
	DIR *dir = opendir(log_files_directory(c));
	bool is_lost = false;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct hapax_bytes bytes;
		off_t from, to;
		int file;

		if (strncmp(entry->d_name, "log-", 4) != 0)
			continue;
		file = log_files_read(c, entry->d_name, &bytes);
		from = log_files_place(bytes, first);
		to = log_files_place(bytes, last);
		if (from < 0 || to < 0)
			assert_int_equal(unlinkat(dirfd(dir), entry->d_name, 0), 0);
		for (off_t at = from / BLOCK + 1; from >= 0 && at < to / BLOCK; at++)
			is_lost = pwrite(file, "\xff", 1, at * BLOCK + 24) == 1;
		assert_int_equal(close(file), 0);
	}
	closedir(dir);
	return is_lost;
}

/*
 * The manifest of a pass is lost, an older one is not, and what the pass made is all that is
 * left of its sources: it counts.
 */
static void segments_of_a_lost_manifest_are_read(void **state)
{
	struct store_case *c = *state;
	bool is_lost = false;

	log_case_close(c);
	/* In one of these the pass comes in the middle of a segment. */
	for (unsigned count = 10; count < 20 && !is_lost; count++) {
		char name[256];

		snprintf(c->url, sizeof(c->url), "file:%.150s/lost-%u", c->dir.path, count);
		store_case_open(c);
		set(c, "t", "kept", "old");
		fill(c, "filler", count, HOUR_MS);
		fill(c, "before", 1, HOUR_MS);
		case_sweep(c);
		fill(c, "after", 1, HOUR_MS);
		log_files_find(c, "ever-", false, name);
		log_case_close(c);
		is_lost = name[0] != '\0' && lose_between(c, "before 0", "after 0");
	}
	assert_true(is_lost);
	(void)repair(c);
	store_case_open(c);
	has(c, "t", "kept", "old");
}

/* One frame of 4 KiB for each record would make a store of 100 M keys 400 GB large. */
static void repaired_store_is_dense(void **state)
{
	struct store_case *c = *state;
	enum { KEYS = 2000 };
	struct hapax_fsck fsck;
	struct stat st;
	char name[256], path[600];
	uint64_t bytes = 0;

	c->options.segment_bytes = 1 << 20;
	store_case_reopen(c);
	for (unsigned done = 0; done < KEYS; done += 100) {
		struct hapax_op ops[100];
		char keys[100][24];

		for (unsigned i = 0; i < 100; i++) {
			snprintf(keys[i], sizeof(keys[i]), "key %u", done + i);
			ops[i] = case_op(c, HAPAX_OP_CHECK, keys[i]);
			ops[i].ttl_ms = 100 * 24 * HOUR_MS;
		}
		assert_int_equal(hapax_store_run(c->store, ops, 100, NULL), HAPAX_OK);
	}
	fill(c, "damaged", 2, HOUR_MS);
	log_case_close(c);
	log_files_damage(c, "damaged 0");
	fsck = repair(c);
	assert_int_equal(fsck.salvaged, KEYS);
	/* The frames, not the room behind them. */
	fsck = (struct hapax_fsck)HAPAX_FSCK_INIT;
	assert_int_equal(hapax_fsck(log_files_directory(c), &fsck, NULL), HAPAX_OK);
	bytes = fsck.bytes;
	assert_true(bytes < (uint64_t)KEYS * 160);
	log_files_find(c, "log-", true, name);
	log_files_path(c, name, path);
	assert_int_equal(stat(path, &st), 0);
	store_case_open(c);
	assert_int_equal(case_stats(c).keys, KEYS);
}

/*
 * The store's clock goes on. The cases' clock stands months before the machine's, as that of a
 * machine whose clock was set wrong: nothing expires by that (I8).
 */
static void repaired_store_keeps_its_clock(void **state)
{
	struct store_case *c = *state;
	struct hapax_store *store = NULL;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_error err = {0};
	int64_t now_ms = store_case_now(c);

	fill(c, "long", 3, 20 * 24 * HOUR_MS);
	fill(c, "damaged", 2, HOUR_MS);
	log_case_close(c);
	log_files_damage(c, "damaged 0");
	(void)repair(c);
	c->options.clock = NULL;
	assert_int_equal(hapax_store_open(c->url, &c->options, &store, &err), HAPAX_OK);
	assert_int_equal(hapax_store_stats(store, &stats, NULL, NULL, NULL), HAPAX_OK);
	hapax_store_close(store);
	assert_true(stats.now_ms >= now_ms);
	assert_true(stats.now_ms <= now_ms + 8 * 24 * HOUR_MS);
	assert_int_equal(stats.keys - stats.expired, 3);
}

/* A record from another store may have a time that no clock shows. */
static void loaded_time_does_not_move_the_clock(void **state)
{
	struct store_case *c = *state;
	struct hapax_record record = {
		.state = HAPAX_STATE_PARKED,
		.attempt = 1,
		.token = 7,
		.changed_ms = INT64_MAX,
		.expires_ms = HAPAX_TIME_NEVER,
		.ttl_ms = HOUR_MS,
	};
	struct hapax_op op = case_op(c, HAPAX_OP_LOAD, "loaded");
	int64_t now_ms = store_case_now(c);

	op.load = &record;
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	fill(c, "long", 3, 20 * 24 * HOUR_MS);
	fill(c, "damaged", 2, HOUR_MS);
	log_case_close(c);
	log_files_damage(c, "damaged 0");
	(void)repair(c);
	store_case_open(c);
	assert_true(case_stats(c).now_ms <= now_ms + 8 * 24 * HOUR_MS);
}

/* I5: tokens are given out above all that the damaged store knew, wherever they came to be. */
static void repaired_store_keeps_its_tokens(void **state)
{
	struct store_case *c = *state;
	/* Far above the time in microseconds, at which new stores begin. */
	const uint64_t last = UINT64_C(5000000000000000);
	struct hapax_record record = {
		.state = HAPAX_STATE_FAILED,
		.origin = HAPAX_ORIGIN_CLAIM,
		.attempt = 1,
		.token = last,
		.first_seen_ms = CASE_EPOCH_MS,
		.changed_ms = CASE_EPOCH_MS,
		.expires_ms = CASE_EPOCH_MS + 1000,
		.ttl_ms = 1000,
	};
	struct hapax_op op = {
		.type = HAPAX_OP_LOAD, .key = hapax_bytes_from_text("k"), .load = &record};
	uint64_t token = 0;

	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_OK);
	fill(c, "damaged", 2, HOUR_MS);
	log_case_close(c);
	log_files_damage(c, "damaged 0");
	(void)repair(c);
	store_case_open(c);
	assert_int_equal(case_claim(c, "next", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_true(token > last + (UINT64_C(1) << 40));
}

/* Another store beside: keys with the same names, and higher LSNs. */
static void make_other(struct store_case *c, struct store_case *other)
{
	store_case_init(other, "file:");
	other->options.segment_bytes = 1 << 20;
	snprintf(other->url, sizeof(other->url), "file:%.150s/other", c->dir.path);
	store_case_open(other);
	for (int i = 0; i < 20; i++)
		set(other, "t", "key", "theirs");
	set(other, "t", "only theirs", "theirs");
	fill(other, "filler", 20, HOUR_MS);
	log_case_close(other);
}

static void segments_of_other_stores_are_left_out(void **state)
{
	struct store_case *c = *state;
	struct store_case other;
	struct hapax_fsck fsck;
	char name[256], to[600];

	set(c, "t", "key", "ours");
	fill(c, "ours", 3, HOUR_MS);
	make_other(c, &other);
	log_case_close(c);
	log_files_find(&other, "log-", false, name);
	log_files_path(c, "log-0000000000000063.seg", to);
	char from[600];
	log_files_path(&other, name, from);
	log_files_copy(from, to);
	fsck = repair(c);
	assert_int_equal(fsck.unread, 1);
	store_case_open(c);
	has(c, "t", "key", "ours");
	has(c, "t", "only theirs", "");
	log_case_close(c);

	/* Without STORE, whose are most of the segments? */
	log_files_path(c, "log-0000000000000063.seg", to);
	log_files_copy(from, to);
	log_files_path(c, "log-0000000000000064.seg", to);
	log_files_copy(from, to);
	log_files_path(c, "STORE", to);
	assert_int_equal(truncate(to, 100), 0);
	fsck = repair(c);
	store_case_open(c);
	has(c, "t", "key", "theirs");
	log_case_close(c);

	/* As many as of ours: unknown. */
	log_files_path(c, "log-0000000000000077.seg", to);
	log_files_path(&other, name, from);
	fsck = (struct hapax_fsck)HAPAX_FSCK_INIT;
	fsck.flags = HAPAX_FSCK_REPAIR_ACCEPT_LOSS;
	log_files_copy(from, to);
	log_files_path(c, "STORE", to);
	assert_int_equal(truncate(to, 100), 0);
	struct hapax_error err = {0};
	log_files_find(c, "log-", false, name);
	assert_int_equal(hapax_fsck(log_files_directory(c), &fsck, &err), HAPAX_ERR_CORRUPT);
	assert_non_null(strstr(err.message, "several stores"));
	log_files_path(c, "log-0000000000000077.seg", to);
	assert_int_equal(unlink(to), 0);
	(void)repair(c);
	store_case_open(c);
	store_case_done(&other);
}

/* What lies in the way and is another store's is not removed by who opens ours. */
static void leftovers_of_other_stores_stay(void **state)
{
	struct store_case *c = *state;
	struct store_case other;
	char name[256], from[600], to[600];

	set(c, "t", "key", "ours");
	make_other(c, &other);
	log_case_close(c);
	log_files_find(&other, "log-", false, name);
	log_files_path(&other, name, from);
	/* As a class segment of theirs would lie there: in no manifest. */
	log_files_path(c, "week-0000000000000042.seg", to);
	log_files_copy(from, to);
	store_case_open(c);
	has(c, "t", "key", "ours");
	assert_int_equal(access(to, F_OK), 0);
	store_case_done(&other);
}

/* I7: a number stands for one scope in a segment, so that a lost frame moves no record to another. */
static void records_stay_in_their_scopes(void **state)
{
	struct store_case *c = *state;
	static const char *const keys[] = {"alpha", "beta", "gamma", "delta"};

	log_case_close(c);
	snprintf(c->url, sizeof(c->url), "file:%.150s/scopes", c->dir.path);
	c->options.segment_bytes = 4 * SEGMENT;
	store_case_open(c);
	/* "first" comes before "second", until the log starts over: then it is the other way. */
	set(c, "first", "alpha", "of the first");
	set(c, "second", "alpha", "of the second");
	fill(c, "filler", 35, HOUR_MS);
	case_sweep(c);
	/* The first segment is used again, and what it held is in class segments, read last. */
	fill(c, "more filler", 35, HOUR_MS);
	set(c, "second", "beta", "of the second");
	set(c, "first", "beta", "of the first");
	store_case_reopen(c);
	/* These name the scopes again, and are lost. */
	set(c, "first", "gamma", "of the first");
	set(c, "second", "gamma", "of the second");
	set(c, "first", "delta", "of the first");
	set(c, "second", "delta", "of the second");
	log_case_close(c);
	log_files_damage(c, "gamma");
	log_files_damage(c, "gamma");
	(void)repair(c);
	store_case_open(c);
	for (unsigned i = 0; i < 8; i++) {
		const char *tenant = i % 2 == 0 ? "first" : "second";
		struct hapax_op op = case_op(c, HAPAX_OP_LOOKUP, keys[i / 2]);
		char body[32];

		op.tenant = hapax_bytes_from_text(tenant);
		op.group = hapax_bytes_from_text("g");
		assert_int_equal(case_run(c, &op), HAPAX_OK);
		snprintf(body, sizeof(body), "of the %s", tenant);
		if (op.outcome == HAPAX_OUTCOME_FOUND &&
		    !case_bytes_are(c->record.result.body, body, strlen(body)))
			fail_msg("%s of %s is another's", keys[i / 2], tenant);
		/* What was written before is there. */
		if (i < 4)
			assert_int_equal(op.outcome, HAPAX_OUTCOME_FOUND);
	}
}

static void truncated_segment_is_read_as_far_as_it_goes(void **state)
{
	struct store_case *c = *state;
	struct hapax_fsck fsck;
	char name[256], path[600];

	fill(c, "key", 4, 30 * 24 * HOUR_MS);
	log_case_close(c);
	log_files_find(c, "log-", true, name);
	log_files_path(c, name, path);
	/* Header and two frames. */
	assert_int_equal(truncate(path, 3 * BLOCK + 100), 0);
	fsck = repair(c);
	assert_int_equal(fsck.salvaged, 2);
	assert_int_equal(fsck.unread, 0);
	store_case_open(c);
	assert_int_equal(case_state(c, "key 1"), HAPAX_STATE_DONE);
}

/* ------------------------------------------------------------------ failures */

static char watched_path[600];
static unsigned watched;

static bool is_store(const char *path)
{
	char store[HAPAX_FSCK_PATH_SIZE + 8];

	snprintf(store, sizeof(store), "%s/STORE", path);
	return access(store, F_OK) == 0;
}

static int watched_rename(void *context, const char *source, const char *target)
{
	int failed = hx_io_system()->ops->rename(context, source, target);

	watched++;
	assert_true(is_store(watched_path));
	return failed;
}

static int watched_exchange(void *context, const char *one, const char *other)
{
	int failed = hx_io_system()->ops->exchange(context, one, other);

	watched++;
	assert_true(is_store(watched_path));
	return failed;
}

/* A process that opens DIR during a repair finds a store, and does not make an empty one. */
static void a_store_has_the_name_at_every_moment(void **state)
{
	struct store_case *c = *state;
	struct hx_io_ops ops = *hx_io_system()->ops;
	struct hx_io io = {.ops = &ops};
	struct hapax_fsck fsck = HAPAX_FSCK_INIT;
	struct hapax_error err = {0};

	ops.rename = watched_rename;
	ops.exchange = watched_exchange;
	fill(c, "key", 4, HOUR_MS);
	log_case_close(c);
	log_files_damage(c, "key 1");
	snprintf(watched_path, sizeof(watched_path), "%s", log_files_directory(c));
	fsck.flags = HAPAX_FSCK_REPAIR_ACCEPT_LOSS;
	assert_int_equal(hx_log_fsck_on(&io, log_files_directory(c), &fsck, &err), HAPAX_OK);
	assert_true(watched >= 3);
	assert_non_null(strstr(fsck.damaged_path, "store.damaged-1"));
	assert_true(is_store(fsck.damaged_path));
	store_case_open(c);
}

/* Not every file system can exchange names. */
static int no_exchange(void *context, const char *one, const char *other)
{
	(void)context;
	(void)one;
	(void)other;
	return -EINVAL;
}

static void names_are_changed_in_two_steps_where_they_must(void **state)
{
	struct store_case *c = *state;
	struct hx_io_ops ops = *hx_io_system()->ops;
	struct hx_io io = {.ops = &ops};
	struct hapax_fsck fsck = HAPAX_FSCK_INIT;

	ops.exchange = no_exchange;
	fill(c, "key", 4, 30 * 24 * HOUR_MS);
	log_case_close(c);
	log_files_damage(c, "key 1");
	fsck.flags = HAPAX_FSCK_REPAIR_ACCEPT_LOSS;
	assert_int_equal(hx_log_fsck_on(&io, log_files_directory(c), &fsck, NULL), HAPAX_OK);
	assert_non_null(strstr(fsck.damaged_path, "store.damaged-1"));
	assert_true(is_store(fsck.damaged_path));
	store_case_open(c);
	assert_int_equal(case_state(c, "key 0"), HAPAX_STATE_DONE);
}

/* Repair a copy of the damaged store while a call fails; false: none did any more. */
static bool repair_with_fault(
	const char *damaged, const char *place, uint64_t fail_at, bool is_forever,
	enum fault_io_effect effect)
{
	struct hapax_fsck fsck = HAPAX_FSCK_INIT, after = HAPAX_FSCK_INIT;
	struct hapax_error err = {0};
	struct fault_io fault;
	enum hapax_status status, found;

	log_files_remove(place);
	log_files_copy(damaged, place);
	fault_io_init(&fault);
	fault.fail_at = fail_at;
	fault.is_forever = is_forever;
	fault.effect = effect;
	fsck.flags = HAPAX_FSCK_REPAIR_ACCEPT_LOSS;
	status = hx_log_fsck_on(&fault.io, place, &fsck, &err);
	if (!fault.has_failed)
		return false;
	assert_true(is_store(place));
	found = hapax_fsck(place, &after, NULL);
	/* Said to be repaired, it is; whatever is said, it is the old one or a whole new one. */
	if (status == HAPAX_OK || found == HAPAX_OK) {
		assert_int_equal(found, HAPAX_OK);
		assert_true(after.is_closed);
		/* Two that can be read, two markers of the token. */
		assert_true(after.records >= 3);
	} else {
		assert_int_equal(found, HAPAX_ERR_CORRUPT);
		if (err.message[0] == '\0')
			fail_msg("no reason is given");
	}
	return true;
}

static void failing_calls_leave_the_old_store_or_the_new_one(void **state)
{
	struct store_case *c = *state;
	static const enum fault_io_effect effects[] = {
		FAULT_IO_NOTHING, FAULT_IO_HALF, FAULT_IO_ALL};
	uint64_t stride = scale_is_proof() ? 1 : 3;
	double begin = scale_seconds();
	char place[300];
	uint64_t done = 0;

	/* Small, for the copies' sake. */
	fill(c, "key", 3, 30 * 24 * HOUR_MS);
	log_case_close(c);
	log_files_damage(c, "key 1");
	snprintf(place, sizeof(place), "%.150s/copy", c->dir.path);
	for (int forever = 0; forever < 2; forever++)
		for (unsigned i = 0; i < 3; i++)
			for (uint64_t at = 1 + i; repair_with_fault(
				     log_files_directory(c), place, at, forever != 0, effects[i]);
			     at += stride)
				done++;
	scale_report("repair: calls that fail", done, scale_seconds() - begin, true);
	assert_true(done > 60);
	snprintf(c->url, sizeof(c->url), "file:%.150s/new", c->dir.path);
	store_case_open(c);
}

#define FSCK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, log_case_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FSCK_TEST(records_that_replaced_others_are_kept),
		FSCK_TEST(given_up_log_segments_are_left_out),
		FSCK_TEST(given_up_class_segments_are_left_out),
		FSCK_TEST(segments_of_a_lost_manifest_are_read),
		FSCK_TEST(repaired_store_is_dense),
		FSCK_TEST(repaired_store_keeps_its_clock),
		FSCK_TEST(loaded_time_does_not_move_the_clock),
		FSCK_TEST(repaired_store_keeps_its_tokens),
		FSCK_TEST(segments_of_other_stores_are_left_out),
		FSCK_TEST(leftovers_of_other_stores_stay),
		FSCK_TEST(records_stay_in_their_scopes),
		FSCK_TEST(truncated_segment_is_read_as_far_as_it_goes),
		FSCK_TEST(a_store_has_the_name_at_every_moment),
		FSCK_TEST(names_are_changed_in_two_steps_where_they_must),
		FSCK_TEST(failing_calls_leave_the_old_store_or_the_new_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
