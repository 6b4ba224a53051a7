/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A really full disk, filled by another file (DESIGN 5, I12): new claims are refused, live ones can
 * end, also after a crash, and the reserve is there again when there is space. Where mounting is
 * not allowed, these tests are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/store_case.h"

enum { LIVE = 24, LARGE = 100000, RENEWALS = 60, NEW_MAX = 4000 };

/* What the process that dies leaves to the next one. */
struct heritage {
	uint64_t tokens[LIVE];
	uint64_t reserve_bytes;
};

struct disk {
	struct store_case c;
	char place[256];
	char filler[300];
	struct heritage *heritage;
	bool is_mounted;
};

static const char *const kinds[] = {"file:", "sqlite:"};

static const char *live_key(int i)
{
	static char key[16];

	snprintf(key, sizeof(key), "live %d", i);
	return key;
}

static void begin(struct disk *disk, const char *kind)
{
	memset(disk, 0, sizeof(*disk));
	store_case_init(&disk->c, kind);
	disk->heritage =
		mmap(NULL, sizeof(*disk->heritage), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(disk->heritage != MAP_FAILED);
	snprintf(disk->place, sizeof(disk->place), "%s/small", disk->c.dir.path);
	assert_int_equal(mkdir(disk->place, 0700), 0);
	if (mount("tmpfs", disk->place, "tmpfs", 0, "size=8m") != 0) {
		print_message("# skipped: mounts are refused here, errno %d\n", errno);
		skip();
	}
	disk->is_mounted = true;
	snprintf(disk->filler, sizeof(disk->filler), "%s/filler", disk->place);
	snprintf(disk->c.url, sizeof(disk->c.url), "%s%.200s/store", kind, disk->place);
}

static void end(struct disk *disk)
{
	if (disk->c.store != NULL)
		hapax_store_close(disk->c.store);
	disk->c.store = NULL;
	if (disk->is_mounted)
		assert_int_equal(umount(disk->place), 0);
	(void)munmap(disk->heritage, sizeof(*disk->heritage));
	store_case_done(&disk->c);
}

/* Another program takes every block that is left. */
static void fill(struct disk *disk)
{
	static const char block[4096];
	int file = open(disk->filler, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	while (write(file, block, sizeof(block)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(close(file), 0);
}

static enum hapax_status claim_new(struct disk *disk, int number)
{
	struct hapax_op op;
	char key[32];

	snprintf(key, sizeof(key), "new %d", number);
	op = case_op(&disk->c, HAPAX_OP_CLAIM, key);
	return case_run(&disk->c, &op);
}

/* The store has some space of its own; then only the reserve is left. */
static void claim_until_full(struct disk *disk)
{
	enum hapax_status status = HAPAX_OK;
	int count = 0;

	for (; status == HAPAX_OK; count++) {
		assert_true(count < NEW_MAX);
		status = claim_new(disk, count);
		/* It may have given back what it took ahead. */
		fill(disk);
	}
	assert_string_equal(hapax_status_name(status), "limit");
	assert_int_equal(case_stats(&disk->c).disk_full, 1);
	/* A duplicate is answered as before. */
	assert_int_equal(case_claim(&disk->c, live_key(LIVE - 1), NULL), HAPAX_OUTCOME_IN_PROGRESS);
}

static enum hapax_status complete_with(struct disk *disk, int i, size_t size)
{
	static char body[LARGE];
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, size}};
	struct hapax_op op =
		case_op_token(&disk->c, HAPAX_OP_COMPLETE, live_key(i), disk->heritage->tokens[i]);

	op.result = &result;
	return case_run(&disk->c, &op);
}

/* Four ways, for four keys from first on. */
static void end_four(struct disk *disk, int first)
{
	struct store_case *c = &disk->c;
	const uint64_t *tokens = disk->heritage->tokens;

	assert_int_equal(case_renew(c, live_key(first), tokens[first]), HAPAX_OK);
	assert_int_equal(complete_with(disk, first, 100), HAPAX_OK);
	assert_int_equal(case_release(c, live_key(first + 1), tokens[first + 1]), HAPAX_OK);
	assert_int_equal(case_park(c, live_key(first + 2), tokens[first + 2]), HAPAX_OK);
	assert_int_equal(complete_with(disk, first + 3, LARGE), HAPAX_OK);
}

static void must_have_ended(struct disk *disk, int first)
{
	struct store_case *c = &disk->c;

	assert_int_equal(case_state(c, live_key(first)), HAPAX_STATE_DONE);
	assert_int_equal(c->record.result.body.size, 100);
	assert_int_equal(case_state(c, live_key(first + 1)), HAPAX_STATE_FAILED);
	assert_int_equal(case_state(c, live_key(first + 2)), HAPAX_STATE_PARKED);
	/* The end is kept, its result is not: it would take the room of others. */
	assert_int_equal(case_state(c, live_key(first + 3)), HAPAX_STATE_DONE);
	assert_int_equal(c->record.result.body.size, 0);
	assert_int_equal(c->record.result.omitted_bytes, LARGE);
}

static void claim_live(struct disk *disk)
{
	for (int i = 0; i < LIVE; i++) {
		struct hapax_op op = case_op(&disk->c, HAPAX_OP_CLAIM, live_key(i));

		op.lease_ms = 3600000;
		assert_int_equal(case_run(&disk->c, &op), HAPAX_OK);
		disk->heritage->tokens[i] = op.token;
	}
	disk->heritage->reserve_bytes = case_stats(&disk->c).reserve_bytes;
	assert_true(disk->heritage->reserve_bytes >= 1024 * 1024);
}

static void renew_often(struct disk *disk, int i)
{
	for (int n = 0; n < RENEWALS; n++)
		assert_int_equal(
			case_renew(&disk->c, live_key(i), disk->heritage->tokens[i]), HAPAX_OK);
}

static void must_refuse_new(struct disk *disk)
{
	fill(disk);
	assert_int_equal(claim_new(disk, NEW_MAX + 1), HAPAX_ERR_LIMIT);
	assert_int_equal(case_stats(&disk->c).disk_full, 1);
}

static void must_work_again(struct disk *disk)
{
	struct hapax_stats stats;

	assert_int_equal(unlink(disk->filler), 0);
	assert_int_equal(claim_new(disk, NEW_MAX + 2), HAPAX_OK);
	stats = case_stats(&disk->c);
	assert_int_equal(stats.disk_full, 0);
	assert_int_equal(stats.reserve_bytes, disk->heritage->reserve_bytes);
}

static void live_claims_end(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct disk disk;

		begin(&disk, kinds[k]);
		store_case_open(&disk.c);
		claim_live(&disk);
		fill(&disk);
		claim_until_full(&disk);
		end_four(&disk, 0);
		fill(&disk);
		renew_often(&disk, 4);
		end_four(&disk, 4);
		must_refuse_new(&disk);
		must_have_ended(&disk, 0);
		must_have_ended(&disk, 4);
		/* Closed and opened, the disk is as full as before. */
		hapax_store_close(disk.c.store);
		disk.c.store = NULL;
		fill(&disk);
		store_case_open(&disk.c);
		must_have_ended(&disk, 0);
		end_four(&disk, 8);
		must_refuse_new(&disk);
		must_work_again(&disk);
		/* The second time as the first. */
		fill(&disk);
		claim_until_full(&disk);
		end_four(&disk, 12);
		must_have_ended(&disk, 12);
		end(&disk);
	}
}

/* The process is killed; its store is opened on the same full disk, three times. */
static void live_claims_end_after_kills(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct disk disk;

		begin(&disk, kinds[k]);
		for (int life = 0; life < 3; life++) {
			int status;
			pid_t pid = fork();

			assert_true(pid >= 0);
			if (pid == 0) {
				store_case_open(&disk.c);
				if (life == 0) {
					claim_live(&disk);
					fill(&disk);
					claim_until_full(&disk);
				}
				end_four(&disk, 4 * life);
				(void)kill(getpid(), SIGKILL);
			}
			assert_int_equal(waitpid(pid, &status, 0), pid);
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
			fill(&disk);
		}
		store_case_open(&disk.c);
		for (int life = 0; life < 3; life++)
			must_have_ended(&disk, 4 * life);
		end_four(&disk, 12);
		must_refuse_new(&disk);
		must_have_ended(&disk, 12);
		must_work_again(&disk);
		end(&disk);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_claims_end),
		cmocka_unit_test(live_claims_end_after_kills),
	};

	return cmocka_run_group_tests_name("disk_full", tests, NULL, NULL);
}
