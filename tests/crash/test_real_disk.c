/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_real_disk.c - file: on a real ext4 whose power is cut, and whose syncs fail.
 *
 * The simulated disk is stricter than any real one, but it is our idea of a disk. Here
 * the kernel has its say: EXT4_IOC_SHUTDOWN drops cache and journal as a power cut
 * does, and a loop device on a full tmpfs gives real errors to fdatasync. Skipped, with
 * the reason, where there is no root or the kernel does not allow it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <signal.h>

#include <hapax/hapax.h>

#include "base/random.h"
#include "crash/loop_disk.h"
#include "crash/victim.h"
#include "support/scale.h"

static void power_cuts_lose_nothing(void **state)
{
	struct victim_journal *journal = calloc(1, sizeof(*journal));
	int cuts = (int)scale_count(500, 12);
	double begin = scale_seconds();
	uint64_t keys = 0, all = 0;
	struct loop_disk disk;
	struct hx_prng prng;
	const char *reason;
	char url[300];

	(void)state;
	assert_non_null(journal);
	reason = loop_disk_init(&disk, 64, 0);
	if (reason) {
		printf("# skipped: %s\n", reason);
		free(journal);
		skip();
	}
	snprintf(url, sizeof(url), "file:%s/store", disk.place);
	hx_prng_seed(&prng, 17);
	for (int life = 0; life < cuts; life++) {
		struct victim victim = {
			.url = url, .life = life, .batch = 1 + (uint32_t)hx_prng_below(&prng, 16)};
		uint64_t lost;

		victim_start(&victim);
		assert_true(victim_wait(&victim, (uint32_t)hx_prng_below(&prng, 40), journal));
		if (!loop_disk_cut_power(&disk)) {
			(void)kill(victim.pid, SIGKILL);
			(void)victim_end(&victim, journal);
			loop_disk_done(&disk);
			free(journal);
			printf("# skipped: this kernel has no EXT4_IOC_SHUTDOWN\n");
			skip();
		}
		/* It cannot get anything through any more; what it said before is said. */
		(void)kill(victim.pid, SIGKILL);
		(void)victim_end(&victim, journal);
		assert_true(loop_disk_remount(&disk));
		lost = victim_verify(url, journal, life > 5 ? life - 5 : 0, life, &keys);
		if (lost != 0) {
			loop_disk_done(&disk);
			fail_msg("cut %d: %lld keys lost", life, (long long)lost);
		}
		all += journal->counts[life];
	}
	assert_int_equal(victim_verify(url, journal, 0, cuts - 1, &keys), 0);
	assert_int_equal(keys, all);
	loop_disk_done(&disk);
	free(journal);
	printf("# %llu keys acknowledged\n", (unsigned long long)all);
	scale_report(
		"I2: power cuts of a real ext4 under file:", (uint64_t)cuts,
		scale_seconds() - begin, true);
}

enum { GHOST_KEYS_MAX = 4000 };

static enum hapax_status mark(struct hapax_store *store, int number, enum hapax_outcome *outcome)
{
	char key[32];

	snprintf(key, sizeof(key), "key %d", number);
	return hapax_store_check(store, hapax_bytes_from_text(key), 0, outcome, NULL);
}

static bool is_there(struct hapax_store *store, int number)
{
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP};
	char key[32];

	snprintf(key, sizeof(key), "key %d", number);
	op.key = hapax_bytes_from_text(key);
	assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
	return op.outcome == HAPAX_OUTCOME_FOUND;
}

static struct hapax_store *must_open(const char *url)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.segment_bytes = 64 * 1024;
	if (hapax_store_open(url, &options, &store, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	return store;
}

/*
 * Mark keys until the disk fails; how many were acknowledged. *ret_status is the first
 * that was not OK.
 */
static int mark_until_it_fails(struct hapax_store *store, int first, enum hapax_status *ret_status)
{
	int number = first;

	*ret_status = HAPAX_OK;
	while (number < GHOST_KEYS_MAX && *ret_status == HAPAX_OK) {
		enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;

		*ret_status = mark(store, number, &outcome);
		if (*ret_status == HAPAX_OK)
			assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
		number += *ret_status == HAPAX_OK;
	}
	return number;
}

/* fsyncgate on a real kernel: no OK afterwards, and nothing is seen that is not on the disk. */
static void a_real_sync_error_leaves_no_ghosts(void **state)
{
	double begin = scale_seconds();
	static bool seen[GHOST_KEYS_MAX + 8];
	enum hapax_outcome outcome;
	enum hapax_status status;
	struct hapax_store *store;
	struct loop_disk disk;
	const char *reason = loop_disk_init(&disk, 64, 24);
	char url[300];
	int acknowledged, count;

	(void)state;
	if (reason) {
		printf("# skipped: %s\n", reason);
		skip();
	}
	snprintf(url, sizeof(url), "file:%s/store", disk.place);
	store = must_open(url);
	for (count = 0; count < 20; count++)
		assert_int_equal(mark(store, count, &outcome), HAPAX_OK);
	assert_true(loop_disk_fill(&disk));
	acknowledged = mark_until_it_fails(store, count, &status);
	printf("# %d acknowledged, then %s\n", acknowledged, hapax_status_name(status));
	assert_true(acknowledged < GHOST_KEYS_MAX);
	assert_true(
		status == HAPAX_ERR_UNCERTAIN || status == HAPAX_ERR_LIMIT ||
		status == HAPAX_ERR_FAILED);
	if (status == HAPAX_ERR_UNCERTAIN)
		for (int i = 0; i < 5; i++)
			assert_int_not_equal(mark(store, acknowledged + 1 + i, &outcome), HAPAX_OK);
	hapax_store_close(store);
	assert_true(loop_disk_drain(&disk));
	/* Opened again without a restart of the machine: the cache may lie. */
	store = must_open(url);
	for (int i = 0; i < acknowledged + 7; i++)
		seen[i] = is_there(store, i);
	hapax_store_close(store);
	assert_true(loop_disk_remount(&disk));
	store = must_open(url);
	for (int i = 0; i < acknowledged + 7; i++) {
		if (i < acknowledged)
			assert_true(seen[i]);
		assert_int_equal(is_there(store, i), seen[i]);
	}
	assert_int_equal(mark(store, GHOST_KEYS_MAX + 1, &outcome), HAPAX_OK);
	hapax_store_close(store);
	loop_disk_done(&disk);
	scale_report("I11: a real sync error under file:", 1, scale_seconds() - begin, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(power_cuts_lose_nothing),
		cmocka_unit_test(a_real_sync_error_leaves_no_ghosts),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("real_disk", tests, NULL, NULL);
}
