/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hapax/hapax.h>

enum { BATCH_MAX = 64, KEY_SIZE = 32, CHILD_ERROR = 12, CHILD_OPEN_FAILED = 13 };

static struct hapax_store *open_store(const char *url, unsigned flags, struct hapax_error *err)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;

	options.flags = flags;
	/* Small segments: a life of milliseconds goes through several. */
	options.segment_bytes = 64 * 1024;
	(void)hapax_store_open(url, &options, &store, err);
	return store;
}

static struct hapax_op op_of(enum hapax_op_type type, const char *key)
{
	return (struct hapax_op){.type = type, .key = hapax_bytes_from_text(key)};
}

/* Claim and complete keys [first, first + count) of this life; false: not OK. */
static bool work(struct hapax_store *store, int life, uint32_t first, uint32_t count)
{
	static char keys[BATCH_MAX][KEY_SIZE];
	static unsigned char attempts[BATCH_MAX][HAPAX_ATTEMPT_ID_SIZE];
	static struct hapax_result results[BATCH_MAX];
	static struct hapax_op ops[BATCH_MAX];
	uint64_t tokens[BATCH_MAX];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(keys[i], KEY_SIZE, "%d/%u", life, first + i);
		hapax_attempt_id(attempts[i]);
		ops[i] = op_of(HAPAX_OP_CLAIM, keys[i]);
		ops[i].attempt_id = attempts[i];
	}
	if (hapax_store_run(store, ops, count, NULL) != HAPAX_OK)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (ops[i].outcome != HAPAX_OUTCOME_ACQUIRED)
			return false;
		tokens[i] = ops[i].token;
		results[i] = (struct hapax_result){
			.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text(keys[i])};
		ops[i] = op_of(HAPAX_OP_COMPLETE, keys[i]);
		ops[i].token = tokens[i];
		ops[i].result = &results[i];
	}
	return hapax_store_run(store, ops, count, NULL) == HAPAX_OK;
}

static void live(const struct victim *victim, int fd)
{
	struct hapax_error err = {0};
	struct hapax_store *store = open_store(victim->url, 0, &err);

	if (!store) {
		fprintf(stderr, "# open: %s\n", err.message);
		_exit(CHILD_OPEN_FAILED);
	}
	for (uint32_t at = 0;; at += victim->batch) {
		uint32_t done = at + victim->batch;

		if (!work(store, victim->life, at, victim->batch))
			_exit(CHILD_ERROR);
		if (write(fd, &done, sizeof(done)) != sizeof(done))
			_exit(0);
	}
}

void victim_start(struct victim *victim)
{
	int said[2];

	if (victim->batch == 0 || victim->batch > BATCH_MAX || pipe(said) != 0)
		abort();
	fflush(stdout);
	victim->pid = fork();
	if (victim->pid < 0)
		abort();
	if (victim->pid == 0) {
		close(said[0]);
		live(victim, said[1]);
	}
	close(said[1]);
	victim->said = said[0];
}

bool victim_wait(struct victim *victim, uint32_t count, struct victim_journal *journal)
{
	uint32_t *done = &journal->counts[victim->life];

	while (*done < count)
		if (read(victim->said, done, sizeof(*done)) != sizeof(*done))
			return false;
	return true;
}

int victim_end(struct victim *victim, struct victim_journal *journal)
{
	int status;

	(void)victim_wait(victim, UINT32_MAX, journal);
	close(victim->said);
	if (waitpid(victim->pid, &status, 0) != victim->pid)
		abort();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_kept(struct hapax_store *store, struct hapax_buf *buf, const char *key)
{
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op = op_of(HAPAX_OP_CLAIM, key);

	hapax_attempt_id(attempt_id);
	op.attempt_id = attempt_id;
	op.record = &record;
	op.buf = buf;
	if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK ||
	    op.outcome != HAPAX_OUTCOME_REPLAY || record.result.body.size != strlen(key) ||
	    memcmp(record.result.body.data, key, strlen(key)) != 0) {
		printf("# %s: %s %s\n", key, hapax_status_name(op.status),
		       hapax_outcome_name(op.outcome));
		return false;
	}
	return true;
}

uint64_t victim_verify(
	const char *url, const struct victim_journal *journal, int first, int last,
	uint64_t *ret_keys)
{
	struct hapax_error err = {0};
	struct hapax_store *store = open_store(url, HAPAX_STORE_NO_HOUSEKEEPING, &err);
	struct hapax_buf *buf = hapax_buf_new(1 << 20);
	uint64_t lost = 0;

	*ret_keys = 0;
	if (!store || !buf) {
		printf("# does not open: %s\n", err.message);
		hapax_buf_free(buf);
		return UINT64_MAX;
	}
	for (int life = first; life <= last; life++)
		for (uint32_t i = 0; i < journal->counts[life]; i++) {
			char key[KEY_SIZE];

			snprintf(key, sizeof(key), "%d/%u", life, i);
			lost += !is_kept(store, buf, key);
			++*ret_keys;
		}
	hapax_store_close(store);
	hapax_buf_free(buf);
	return lost;
}
