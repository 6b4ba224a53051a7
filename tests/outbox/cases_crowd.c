/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_crowd.c - writers whose transactions commit out of order or not at all, and two relays.
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/thread.h"
#include "support/scale.h"

enum { WRITERS = 8, KEYS = 20 };

struct writer {
	struct hx_thread thread;
	struct outbox_case c;
	unsigned number;
	unsigned rows;
	uint64_t seed;
};

/* Transactions of several events, some rolled back, some held open for a while. */
static void write_rows(void *arg)
{
	struct writer *writer = arg;
	struct hx_prng prng;

	hx_prng_seed(&prng, writer->seed + writer->number);
	for (unsigned i = 0; i < writer->rows; i++) {
		bool is_kept = hx_prng_below(&prng, 4) != 0;
		char id[32], key[16], sql[256];

		(void)snprintf(
			id, sizeof(id), "%s-%u-%u", is_kept ? "kept" : "undone", writer->number, i);
		(void)snprintf(key, sizeof(key), "k%u", (unsigned)hx_prng_below(&prng, KEYS));
		outbox_case_run(&writer->c, writer->c.is_postgres ? "BEGIN" : "BEGIN IMMEDIATE");
		outbox_case_add(&writer->c, "t", key, id, key);
		/* Others commit meanwhile, with larger numbers. */
		for (uint64_t n = hx_prng_below(&prng, 20); n > 0; n--)
			hx_thread_yield();
		if (is_kept) {
			(void)snprintf(sql, sizeof(sql), "INSERT INTO {}orders VALUES ('%s')", id);
			outbox_case_run(&writer->c, sql);
		}
		outbox_case_run(&writer->c, is_kept ? "COMMIT" : "ROLLBACK");
	}
}

struct relayer {
	struct hx_thread thread;
	struct hapax_relay *relay;
	enum hapax_status status;
};

static void run_relay(void *arg)
{
	struct relayer *relayer = arg;

	relayer->status = hapax_relay_run(relayer->relay, NULL);
}

/*
 * What was kept, all of it and nothing else; of each key in the order of commits, which is the
 * order of seq. A relay that waits for the database past its lease sends some of it again.
 */
static void check_first_appearances(struct outbox_case *c)
{
	int64_t last[KEYS] = {0}, count = 0;

	outbox_case_run(c, "CREATE TABLE {}seen (id TEXT PRIMARY KEY)");
	for (size_t i = 0; i < sunk.count; i++) {
		long key = strtol(sunk.messages[i].key + 1, NULL, 10);
		char sql[160];
		int64_t seq;

		assert_memory_equal(sunk.messages[i].id, "kept", 4);
		(void)snprintf(
			sql, sizeof(sql), "INSERT INTO {}seen VALUES ('%s')", sunk.messages[i].id);
		if (!outbox_case_try(c, sql))
			continue;
		count++;
		(void)snprintf(
			sql, sizeof(sql), "SELECT seq FROM {}hapax_outbox WHERE id = '%s'",
			sunk.messages[i].id);
		seq = outbox_case_number(c, sql);
		assert_true(key >= 0 && key < KEYS);
		assert_true(seq > last[key]);
		last[key] = seq;
	}
	assert_int_equal(count, outbox_case_number(c, "SELECT count(*) FROM {}orders"));
}

static void committed_is_published_with_writers_and_two_relays(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);
	static struct writer writers[WRITERS];
	struct relayer relayers[2];
	uint64_t count = scale_count(20000, 400), seed = 0;
	double began = scale_seconds();

	if (!scale_seed(&seed))
		hx_random_bytes(&seed, sizeof(seed));
	print_message("# seed %llu\n", (unsigned long long)seed);
	options.is_finite = 0;
	options.lease_ms = 1000;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			hx_relay_new(
				c->url, &options, memory_sink_new(&sunk), &relayers[i].relay, NULL),
			HAPAX_OK);
		assert_int_equal(
			hx_thread_start(
				&relayers[i].thread, run_relay, &relayers[i], "relay", NULL),
			HAPAX_OK);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i].number = i;
		writers[i].rows = (unsigned)(count / WRITERS);
		writers[i].seed = seed;
		outbox_case_join(c, &writers[i].c);
		assert_int_equal(
			hx_thread_start(
				&writers[i].thread, write_rows, &writers[i], "writer", NULL),
			HAPAX_OK);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		hx_thread_join(&writers[i].thread);
		outbox_case_leave(&writers[i].c);
	}
	for (size_t i = 0; i < 2; i++) {
		hapax_relay_stop(relayers[i].relay);
		hx_thread_join(&relayers[i].thread);
		hapax_relay_close(relayers[i].relay);
		assert_int_equal(relayers[i].status, HAPAX_OK);
	}
	/* Both have given up their partitions: what is left is another one's. */
	(void)drain(c);
	check_first_appearances(c);
	scale_report("outbox rows, 8 writers, 2 relays", count, scale_seconds() - began, true);
}

const struct outbox_test crowd_cases[] = {
	{"committed_is_published_with_writers_and_two_relays",
	 committed_is_published_with_writers_and_two_relays},
	{NULL, NULL},
};
