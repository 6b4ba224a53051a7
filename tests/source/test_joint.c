/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_joint.c - functions in transactions (HAPAX_CONSUMER_TRANSACTIONS): claim, effect, result and offset commit
 * together. The broker is one partition in memory, PostgreSQL is that of tests/postgres/with_postgres.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <hapax/ext/source_ops.h>
#include <hapax/hapax.h>
#include <hapax/postgres.h>

#include "base/bytes.h"
#include "base/decimal.h"
#include "base/thread.h"
#include "source/consume/low_water.h"
#include "support/postgres_case.h"

enum { LOG_MAX = 16 };

/* A message of the log. */
struct entry {
	struct hx_mark mark;
	struct hapax_message base;
	char id[16];
	char data[16];
	char place[HX_DECIMAL_SIZE];
	struct hapax_field header;
	_Atomic int runs;  /* begun */
	_Atomic int fails; /* as many of them */
	char reason[24];   /* of a dead letter */
};

/* One partition. */
struct broker {
	struct hapax_source base;
	struct entry log[LOG_MAX];
	size_t count;
	size_t next;
	int64_t begin; /* as the database says */
	bool has_begun;
	struct hx_low_water water;
	struct hapax_publication *letters;
};

static struct broker broker;
static PGconn *conn;
static char url[256];

static struct entry *entry_of(const struct hapax_message *message)
{
	return (struct entry *)(void *)((char *)(uintptr_t)message - offsetof(struct entry, base));
}

static struct hapax_message *next(struct hapax_source *source)
{
	struct entry *entry;

	if (!broker.has_begun) {
		broker.has_begun = true;
		broker.begin = source->hooks.begin(source->hooks.context, "orders", 0);
		broker.next = broker.begin > 0 ? (size_t)broker.begin : 0;
	}
	if (broker.next == broker.count)
		return NULL;
	entry = &broker.log[broker.next];
	hx_low_water_add(&broker.water, &entry->mark, (int64_t)broker.next++);
	entry->base = (struct hapax_message){
		.origin = HX_BYTES_LIT("case://test"),
		.topic = HX_BYTES_LIT("orders"),
		.place = hapax_bytes_from_text(entry->place),
		.data = hapax_bytes_from_text(entry->data),
		.headers = &entry->header,
		.header_count = 1,
		.time_ms = HAPAX_TIME_UNKNOWN};
	return &entry->base;
}

static void ack(struct hapax_source *source, struct hapax_message *message)
{
	(void)source;
	(void)hx_low_water_done(&broker.water, &entry_of(message)->mark);
}

static void give_back(struct hapax_source *source, struct hapax_message *message)
{
	(void)source, (void)message;
}

static int64_t position(struct hapax_source *source, const struct hapax_message *message)
{
	(void)source;
	return hx_low_water_with(&broker.water, &entry_of(message)->mark);
}

static void publish(struct hapax_source *source, struct hapax_publication *publication)
{
	publication->private_next = broker.letters;
	broker.letters = publication;
	source->hooks.wake(source->hooks.context);
}

static int64_t tick(struct hapax_source *source, int64_t now_ms)
{
	(void)source, (void)now_ms;
	while (broker.letters != NULL) {
		struct hapax_publication *letter = broker.letters;
		struct hapax_bytes reason = letter->headers[1].value;

		broker.letters = letter->private_next;
		/* Behind its own header. */
		(void)snprintf(
			entry_of(letter->message)->reason,
			sizeof(entry_of(letter->message)->reason), "%.*s", (int)reason.size,
			(const char *)reason.data);
		letter->done(letter, HAPAX_OK, "");
	}
	return INT64_MAX;
}

static int drain(struct hapax_source *source)
{
	(void)source;
	return 1;
}

static void stats_of(struct hapax_source *source, struct hapax_source_stats *ret_stats)
{
	(void)source, (void)ret_stats;
}

static void close_broker(struct hapax_source *source)
{
	(void)source;
}

static const struct hapax_source_ops broker_ops = {
	.version = HAPAX_SOURCE_OPS_VERSION,
	.name = "case",
	.next = next,
	.ack = ack,
	.give_back = give_back,
	.publish = publish,
	.tick = tick,
	.drain = drain,
	.stats = stats_of,
	.close = close_broker,
	.position = position,
};

static struct entry *add(const char *id, const char *data)
{
	struct entry *entry = &broker.log[broker.count];

	(void)snprintf(entry->id, sizeof(entry->id), "%s", id);
	(void)snprintf(entry->data, sizeof(entry->data), "%s", data);
	(void)snprintf(entry->place, sizeof(entry->place), "%zu", broker.count++);
	entry->header =
		(struct hapax_field){HX_BYTES_LIT("eventId"), hapax_bytes_from_text(entry->id)};
	return entry;
}

#define REFUSED "{\"refused\":1}"

/* It books first, and fails then: what it wrote must go. */
static enum hapax_run_outcome book(struct hapax_work *work, void *context)
{
	PGconn *mine = hapax_postgres_of_work(work);
	char id[16];
	const char *values[] = {id};
	PGresult *result;
	bool is_booked;

	(void)context;
	(void)snprintf(id, sizeof(id), "%.*s", (int)work->key.size, (const char *)work->key.data);
	/* What is not protected has none; then there is but one. */
	if (work->key.size == 0)
		(void)snprintf(id, sizeof(id), "%s", broker.log[0].id);
	result = PQexecParams(
		mine, "INSERT INTO booking VALUES ($1)", 1, NULL, values, NULL, NULL, 0);
	is_booked = mine != NULL && PQresultStatus(result) == PGRES_COMMAND_OK;
	PQclear(result);
	if (!is_booked)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "not booked");
	for (size_t i = 0; i < broker.count; i++) {
		struct entry *entry = &broker.log[i];

		if (strcmp(entry->id, id) == 0 && strcmp(entry->data, REFUSED) == 0)
			return hapax_work_fail(work, HAPAX_RUN_DEFINITIVE, "told to refuse");
		if (strcmp(entry->id, id) == 0 &&
		    atomic_fetch_add(&entry->runs, 1) < atomic_load(&entry->fails))
			return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "told to fail");
	}
	return HAPAX_RUN_OK;
}

struct consuming {
	struct hapax_store *store;
	struct hapax_consumer *consumer;
	struct hx_thread thread;
	enum hapax_status status;
	struct hapax_error err;
};

static struct hapax_registration row;
static unsigned row_flags;
static uint32_t attempts_max = UINT32_MAX;

static struct hapax_consumer_options options_of(unsigned flags)
{
	struct hapax_consumer_options options = HAPAX_CONSUMER_OPTIONS_INIT;

	row = (struct hapax_registration)HAPAX_REGISTRATION_INIT;
	row.handler = book;
	row.flags = row_flags;
	options.flags = HAPAX_CONSUMER_TRANSACTIONS | flags;
	options.rows = &row;
	options.row_count = 1;
	options.parallel = 3;
	options.attempts_max = attempts_max;
	options.backoff_ms = 5;
	options.backoff_ms_max = 20;
	return options;
}

static void run(void *arg)
{
	struct consuming *consuming = arg;

	consuming->status = hapax_consumer_run(consuming->consumer, &consuming->err);
}

static void begin(struct consuming *consuming)
{
	struct hapax_consumer_options options = options_of(0);
	struct hapax_error err = {0};

	assert_int_equal(hapax_store_open(url, NULL, &consuming->store, &err), HAPAX_OK);
	if (hapax_consumer_new(
		    &broker.base, consuming->store, &options, &consuming->consumer, &err) !=
	    HAPAX_OK)
		fail_msg("%s", err.message);
	assert_int_equal(
		hx_thread_start(&consuming->thread, run, consuming, "consumer", &err), HAPAX_OK);
}

static struct hapax_consumer_stats until_acknowledged(struct consuming *consuming, uint64_t count)
{
	struct hapax_consumer_stats stats = HAPAX_CONSUMER_STATS_INIT;

	do {
		hx_thread_yield();
		hapax_consumer_stats(consuming->consumer, &stats);
	} while (stats.acknowledged < count);
	return stats;
}

static void end(struct consuming *consuming)
{
	hapax_consumer_stop(consuming->consumer);
	hx_thread_join(&consuming->thread);
	assert_int_equal(consuming->status, HAPAX_OK);
	hapax_consumer_free(consuming->consumer);
	hapax_store_close(consuming->store);
}

static int set_up(void **state)
{
	struct hapax_error err;

	(void)state;
	memset(&broker, 0, sizeof(broker));
	broker.base.ops = &broker_ops;
	broker.base.group = "shop";
	broker.begin = -2;
	hx_low_water_init(&broker.water);
	conn = postgres_case_connect();
	postgres_case_query(
		conn,
		"DROP SCHEMA IF EXISTS ledger CASCADE; DROP TABLE IF EXISTS booking;"
		" CREATE TABLE booking (event text)");
	postgres_case_url(url, sizeof(url), "&schema=ledger");
	return hapax_store_migrate(url, NULL, &err) != HAPAX_OK;
}

static int tear_down(void **state)
{
	(void)state;
	PQfinish(conn);
	return 0;
}

static long long offset(void)
{
	return postgres_case_number(
		conn,
		"SELECT coalesce((SELECT next FROM ledger.hapax_offset WHERE grp = 'shop'"
		" AND topic = 'orders' AND part = 0), -1)");
}

static long long bookings(void)
{
	return postgres_case_number(
		conn, "SELECT 100 * count(*) + count(DISTINCT event) FROM booking");
}

static void all_of_it_commits_together(void **state)
{
	struct consuming consuming = {.store = NULL};
	struct hapax_consumer_stats stats;
	struct entry *flaky;

	(void)state;
	(void)add("a", "{}");
	flaky = add("b", "{}");
	(void)add("c", "{}");
	(void)add("a", "{}");
	atomic_store(&flaky->fails, 2);
	begin(&consuming);
	stats = until_acknowledged(&consuming, 4);
	assert_int_equal(stats.runs[HAPAX_RUN_OK], 3);
	assert_int_equal(stats.runs[HAPAX_RUN_TRANSIENT], 2);
	assert_int_equal(
		stats.duplicates[HAPAX_CAUSE_PRODUCER] + stats.duplicates[HAPAX_CAUSE_REREAD], 1);
	assert_int_equal(bookings(), 303);
	assert_int_equal(broker.begin, -1);
	/* A function that fails leaves nothing; the attempts of its key are known all the same. */
	assert_int_equal(atomic_load(&flaky->runs), 3);
	assert_int_equal(
		postgres_case_number(
			conn, "SELECT attempt FROM ledger.hapax_record WHERE key = 'b'"),
		3);
	/* Which of them wrote it last is unknown. */
	assert_in_range(offset(), 0, 4);
	end(&consuming);
}

/* Else a consumer that begins there would skip what it stands for. */
static void a_message_that_fails_holds_back_the_offset(void **state)
{
	struct consuming consuming = {.store = NULL};
	struct entry *stuck;

	(void)state;
	(void)add("a", "{}");
	stuck = add("b", "{}");
	(void)add("c", "{}");
	(void)add("d", "{}");
	atomic_store(&stuck->fails, INT32_MAX);
	begin(&consuming);
	(void)until_acknowledged(&consuming, 3);
	assert_int_equal(bookings(), 303);
	assert_true(offset() <= 1);
	atomic_store(&stuck->fails, 0);
	(void)until_acknowledged(&consuming, 4);
	assert_int_equal(bookings(), 404);
	/* As it stood when the attempt began that went well: it may lag. */
	assert_in_range(offset(), 0, 4);
	end(&consuming);
}

/* Else a crash before the letter is out would pass over it. */
static void what_is_refused_for_good_does_not_move_the_offset(void **state)
{
	struct consuming consuming = {.store = NULL};
	struct entry *refused;

	(void)state;
	refused = add("a", REFUSED);
	begin(&consuming);
	(void)until_acknowledged(&consuming, 1);
	assert_int_equal(offset(), -1);
	end(&consuming);
	assert_string_equal(refused->reason, "definitive");
}

/* Nothing counts the attempts of what has no record but the consumer itself. */
static void what_has_no_record_is_not_tried_for_ever(void **state)
{
	struct consuming consuming = {.store = NULL};
	struct entry *stuck;

	(void)state;
	stuck = add("a", "{}");
	atomic_store(&stuck->fails, INT32_MAX);
	row_flags = HAPAX_REGISTRATION_UNPROTECTED;
	attempts_max = 3;
	begin(&consuming);
	(void)until_acknowledged(&consuming, 1);
	end(&consuming);
	row_flags = 0;
	attempts_max = UINT32_MAX;
	assert_int_equal(atomic_load(&stuck->runs), 3);
	assert_int_equal(bookings(), 0);
}

/* What a deferred trigger raises comes with the COMMIT: it is the function's doing, not the store's. */
static void what_the_commit_refuses_is_not_tried_for_ever(void **state)
{
	struct consuming consuming = {.store = NULL};
	struct hapax_consumer_stats stats;
	struct entry *stuck;

	(void)state;
	postgres_case_query(
		conn,
		"CREATE OR REPLACE FUNCTION unbalanced() RETURNS trigger LANGUAGE plpgsql AS"
		" $$BEGIN RAISE EXCEPTION 'the books do not balance'; END$$;"
		" CREATE CONSTRAINT TRIGGER balance AFTER INSERT ON booking DEFERRABLE INITIALLY"
		" DEFERRED FOR EACH ROW WHEN (NEW.event = 'a') EXECUTE FUNCTION unbalanced()");
	stuck = add("a", "{}");
	(void)add("b", "{}");
	attempts_max = 3;
	begin(&consuming);
	stats = until_acknowledged(&consuming, 2);
	end(&consuming);
	attempts_max = UINT32_MAX;
	assert_int_equal(atomic_load(&stuck->runs), 3);
	assert_string_equal(stuck->reason, "attempts");
	assert_int_equal(stats.refused, 0);
	assert_int_equal(bookings(), 101);
}

static void a_partition_begins_where_the_database_says(void **state)
{
	struct consuming consuming = {.store = NULL};

	(void)state;
	for (int i = 0; i < 6; i++)
		(void)add((const char[]){(char)('a' + i), '\0'}, "{}");
	postgres_case_query(
		conn,
		"INSERT INTO ledger.hapax_offset VALUES ('shop', 'orders', 0, 4),"
		" ('other', 'orders', 0, 5), ('shop', 'orders', 1, 5)");
	begin(&consuming);
	(void)until_acknowledged(&consuming, 2);
	assert_int_equal(broker.begin, 4);
	assert_int_equal(bookings(), 202);
	end(&consuming);
}

static void another_payload_is_a_dead_letter(void **state)
{
	struct consuming consuming = {.store = NULL};
	struct hapax_consumer_stats stats;
	struct entry *other;

	(void)state;
	(void)add("a", "{}");
	begin(&consuming);
	(void)until_acknowledged(&consuming, 1);
	end(&consuming);
	other = add("a", "{\"n\":2}");
	/* The mark of the first one is done, and the partition ours once more. */
	broker.has_begun = false;
	broker.next = 0;
	begin(&consuming);
	stats = until_acknowledged(&consuming, 1);
	assert_string_equal(other->reason, "mismatch");
	assert_int_equal(stats.mismatches, 1);
	assert_int_equal(broker.begin, 1);
	assert_int_equal(bookings(), 101);
	end(&consuming);
}

/* Nothing that the database does counts as a failed run. */
static void connections_that_are_lost_are_made_again(void **state)
{
	struct consuming consuming = {.store = NULL};
	struct hapax_consumer_stats stats;
	struct entry *slow;

	(void)state;
	slow = add("a", "{}");
	(void)add("b", "{}");
	atomic_store(&slow->fails, INT32_MAX);
	begin(&consuming);
	(void)until_acknowledged(&consuming, 1);
	postgres_case_query(
		conn,
		"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
		" WHERE application_name = 'hapax' AND pid <> pg_backend_pid()");
	atomic_store(&slow->fails, 0);
	stats = until_acknowledged(&consuming, 2);
	assert_int_equal(stats.dead_letters, 0);
	assert_int_equal(bookings(), 202);
	assert_in_range(offset(), 1, 2);
	end(&consuming);
}

static void expect_refusal(
	const char *at, const struct hapax_consumer_options *options, enum hapax_status status,
	const char *part)
{
	struct hapax_consumer *consumer = NULL;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	assert_int_equal(hapax_store_open(at, NULL, &store, &err), HAPAX_OK);
	assert_int_equal(hapax_consumer_new(&broker.base, store, options, &consumer, &err), status);
	if (strstr(err.message, part) == NULL)
		fail_msg("'%s' does not say '%s'", err.message, part);
	hapax_store_close(store);
}

static void what_has_no_transaction_is_refused(void **state)
{
	struct hapax_consumer_options options = options_of(HAPAX_CONSUMER_INLINE);
	const char *const exec[] = {"true", NULL};

	(void)state;
	expect_refusal(url, &options, HAPAX_ERR_INVALID, "consumer's threads");
	options = options_of(0);
	options.on_duplicate = HAPAX_ON_DUPLICATE_TAG;
	expect_refusal(url, &options, HAPAX_ERR_INVALID, "on_duplicate");
	options = options_of(0);
	options.row_count = 0;
	options.exec = exec;
	expect_refusal(url, &options, HAPAX_ERR_INVALID, "need functions");
	options = options_of(0);
	expect_refusal("memory:", &options, HAPAX_ERR_UNSUPPORTED, "postgres://");
	postgres_case_query(conn, "DROP TABLE ledger.hapax_offset");
	expect_refusal(url, &options, HAPAX_ERR_UNAVAILABLE, "store migrate");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_of_it_commits_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_is_refused_for_good_does_not_move_the_offset, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_has_no_record_is_not_tried_for_ever, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_the_commit_refuses_is_not_tried_for_ever, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_message_that_fails_holds_back_the_offset, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_partition_begins_where_the_database_says, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			another_payload_is_a_dead_letter, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			connections_that_are_lost_are_made_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_has_no_transaction_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
