/* SPDX-License-Identifier: Apache-2.0 */
#include "support/store_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HX_HAVE_POSTGRES
#include <libpq-fe.h>
#endif

#include "base/limits.h"
#include "support/virtual_clock.h"

enum { ATTEMPT_IDS_MAX = 65536 };

struct hapax_store *(*store_case_open_server)(struct store_case *c);
void (*store_case_close_server)(struct store_case *c);

static bool is_server(const struct store_case *c)
{
	return strcmp(c->kind, "http:") == 0;
}

static void give_up(const char *what, const struct hapax_error *err)
{
	printf("# %s: %s: %s\n", what, hapax_status_name(err->status), err->message);
	fflush(stdout);
	abort();
}

#if HX_HAVE_POSTGRES
/*
 * A schema of its own in the server that tests/postgres/with_postgres has started. Making one takes a
 * hundred times as long as emptying one, so those of cases that are over are used again.
 */
enum { SCHEMAS_KEPT = 8, SCHEMA_NAME_SIZE = 64 };
static char kept_schemas[SCHEMAS_KEPT][SCHEMA_NAME_SIZE];
static size_t kept_count;

static void empty_schema(const char *schema)
{
	const char *place = getenv("HAPAX_TEST_POSTGRES");
	char url[256], sql[1024];
	PGconn *conn;
	PGresult *result;

	snprintf(url, sizeof(url), "postgres:///postgres%s", place ? place : "");
	snprintf(
		sql, sizeof(sql),
		"TRUNCATE \"%s\".hapax_record, \"%s\".hapax_result, \"%s\".hapax_scope, \"%s\".hapax_counter;"
		" ALTER SEQUENCE \"%s\".hapax_token RESTART; UPDATE \"%s\".hapax_meta SET epoch_ms = NULL",
		schema, schema, schema, schema, schema, schema);
	conn = PQconnectdb(url);
	result = PQexec(conn, sql);
	if (PQresultStatus(result) != PGRES_COMMAND_OK) {
		printf("# %s: %s\n", schema, PQerrorMessage(conn));
		abort();
	}
	PQclear(result);
	PQfinish(conn);
}

static void begin_postgres(struct store_case *c)
{
	const char *place = getenv("HAPAX_TEST_POSTGRES");
	const char *schema = strrchr(c->dir.path, '/') + 1;
	struct hapax_error err = {0};

	if (kept_count > 0) {
		schema = kept_schemas[--kept_count];
		empty_schema(schema);
	}
	snprintf(
		c->url, sizeof(c->url), "postgres:///postgres%s&schema=%s", place ? place : "",
		schema);
	if (schema != kept_schemas[kept_count] &&
	    hapax_store_migrate(c->url, NULL, &err) != HAPAX_OK)
		give_up(c->url, &err);
}

static void end_postgres(struct store_case *c)
{
	const char *schema = strstr(c->url, "schema=");

	if (schema != NULL && kept_count < SCHEMAS_KEPT)
		snprintf(
			kept_schemas[kept_count++], SCHEMA_NAME_SIZE, "%s",
			schema + strlen("schema="));
}
#else
static void begin_postgres(struct store_case *c)
{
	(void)c;
}

static void end_postgres(struct store_case *c)
{
	(void)c;
}
#endif

void store_case_init(struct store_case *c, const char *kind)
{
	*c = (struct store_case){.kind = kind};
	c->has_dir = strcmp(kind, "memory:") != 0 && !is_server(c);
	if (c->has_dir)
		temp_dir_init(&c->dir);
	if (strcmp(kind, "redis+unix:") == 0) {
		/* A ledger of its own in the server that tests/redis/with_redis has started. */
		const char *socket = getenv("HAPAX_TEST_REDIS");

		snprintf(
			c->url, sizeof(c->url), "%s%s?prefix=%s", kind, socket ? socket : "",
			strrchr(c->dir.path, '/') + 1);
	} else if (strcmp(kind, "postgres:") == 0) {
		begin_postgres(c);
	} else if (strcmp(kind, "redis+cluster:") == 0) {
		const char *servers = getenv("HAPAX_TEST_CLUSTER");

		snprintf(
			c->url, sizeof(c->url), "%s//%s?prefix=%s", kind, servers ? servers : "",
			strrchr(c->dir.path, '/') + 1);
	} else if (c->has_dir) {
		snprintf(c->url, sizeof(c->url), "%s%s/hapax.db", kind, c->dir.path);
	} else {
		snprintf(c->url, sizeof(c->url), "%s", kind);
	}
	hx_virtual_clock_init(&c->clock, CASE_EPOCH_MS);
	c->options = (struct hapax_store_options)HAPAX_STORE_OPTIONS_INIT;
	c->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	/* A server whose disk is busy with other work for a while does not count. */
	c->options.timeout_ms = 60000;
	c->options.clock = hx_virtual_clock_clock(&c->clock);
	c->buf = hapax_buf_new(HX_RESULT_SIZE_LIMIT + 1024 * 1024);
	if (!c->buf)
		abort();
}

void store_case_open(struct store_case *c)
{
	struct hapax_error err = {0};

	if (is_server(c))
		c->store = store_case_open_server(c);
	else if (hapax_store_open(c->url, &c->options, &c->store, &err) != HAPAX_OK)
		give_up(c->url, &err);
}

static void close_store(struct store_case *c)
{
	hapax_store_close(c->store);
	c->store = NULL;
	if (is_server(c))
		store_case_close_server(c);
}

void store_case_begin(struct store_case *c, const char *kind)
{
	store_case_init(c, kind);
	store_case_open(c);
}

void store_case_done(struct store_case *c)
{
	close_store(c);
	hapax_buf_free(c->buf);
	end_postgres(c);
	if (c->has_dir)
		temp_dir_done(&c->dir);
	*c = (struct store_case){0};
}

void store_case_reopen(struct store_case *c)
{
	close_store(c);
	store_case_open(c);
}

bool store_case_has_own_clock(const struct store_case *c)
{
	return strncmp(c->kind, "redis", 5) != 0 && strcmp(c->kind, "postgres:") != 0 &&
		!is_server(c);
}

bool store_case_has_limits(const struct store_case *c)
{
	return strcmp(c->kind, "postgres:") != 0 && strcmp(c->kind, "redis+cluster:") != 0;
}

bool store_case_is_whole(const struct store_case *c)
{
	return hapax_store_capabilities(c->store) & HAPAX_STORE_TOKEN_GLOBAL;
}

bool store_case_is_durable(const struct store_case *c)
{
	return hapax_store_capabilities(c->store) & HAPAX_STORE_DURABLE;
}

void store_case_advance(struct store_case *c, int64_t ms)
{
	hx_virtual_clock_advance(&c->clock, ms);
}

int64_t store_case_now(struct store_case *c)
{
	return case_stats(c).now_ms;
}

const unsigned char *case_fingerprint(char letter)
{
	static unsigned char fingerprints[26][HAPAX_FINGERPRINT_SIZE];

	if (letter < 'A' || letter > 'Z')
		return NULL;
	memset(fingerprints[letter - 'A'], letter, HAPAX_FINGERPRINT_SIZE);
	return fingerprints[letter - 'A'];
}

const unsigned char *case_attempt_id(uint64_t number)
{
	static unsigned char ids[ATTEMPT_IDS_MAX][HAPAX_ATTEMPT_ID_SIZE];
	unsigned char *id = ids[number % ATTEMPT_IDS_MAX];

	memset(id, 0x5a, HAPAX_ATTEMPT_ID_SIZE);
	memcpy(id, &number, sizeof(number));
	return id;
}

struct hapax_op case_op(struct store_case *c, enum hapax_op_type type, const char *key)
{
	struct hapax_op op = {.type = type, .key = hapax_bytes_from_text(key)};

	switch (type) {
	case HAPAX_OP_CLAIM:
		op.attempt_id = case_attempt_id(++c->attempts);
		op.lease_ms = 1000;
		op.ttl_ms = 60000;
		break;
	case HAPAX_OP_RENEW: op.lease_ms = 1000; break;
	case HAPAX_OP_CHECK:
	case HAPAX_OP_SET:
	case HAPAX_OP_EXPIRE: op.ttl_ms = 60000; break;
	case HAPAX_OP_COMPLETE:
	case HAPAX_OP_RELEASE:
	case HAPAX_OP_PARK:
	case HAPAX_OP_LOOKUP:
	case HAPAX_OP_FORGET:
	case HAPAX_OP_LOAD: break;
	}
	return op;
}

struct hapax_op case_op_token(
	struct store_case *c, enum hapax_op_type type, const char *key, uint64_t token)
{
	struct hapax_op op = case_op(c, type, key);

	op.token = token;
	return op;
}

enum hapax_status case_run(struct store_case *c, struct hapax_op *op)
{
	memset(&c->record, 0, sizeof(c->record));
	op->record = &c->record;
	op->buf = c->buf;
	return hapax_store_run(c->store, op, 1, NULL);
}

enum hapax_outcome case_claim(struct store_case *c, const char *key, uint64_t *ret_token)
{
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, key);

	if (case_run(c, &op) != HAPAX_OK)
		return HAPAX_OUTCOME_NONE;
	if (ret_token)
		*ret_token = op.token;
	return op.outcome;
}

enum hapax_state case_state(struct store_case *c, const char *key)
{
	struct hapax_op op = case_op(c, HAPAX_OP_LOOKUP, key);

	if (case_run(c, &op) != HAPAX_OK || op.outcome != HAPAX_OUTCOME_FOUND)
		return HAPAX_STATE_ABSENT;
	return c->record.state;
}

static enum hapax_status run_token(
	struct store_case *c, enum hapax_op_type type, const char *key, uint64_t token)
{
	struct hapax_op op = case_op_token(c, type, key, token);

	return case_run(c, &op);
}

enum hapax_status case_complete(struct store_case *c, const char *key, uint64_t token)
{
	return run_token(c, HAPAX_OP_COMPLETE, key, token);
}

enum hapax_status case_release(struct store_case *c, const char *key, uint64_t token)
{
	return run_token(c, HAPAX_OP_RELEASE, key, token);
}

enum hapax_status case_park(struct store_case *c, const char *key, uint64_t token)
{
	return run_token(c, HAPAX_OP_PARK, key, token);
}

enum hapax_status case_renew(struct store_case *c, const char *key, uint64_t token)
{
	return run_token(c, HAPAX_OP_RENEW, key, token);
}

struct hapax_stats case_stats(struct store_case *c)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_error err = {0};

	if (hapax_store_stats(c->store, &stats, NULL, NULL, &err) != HAPAX_OK)
		give_up("stats", &err);
	return stats;
}

struct hapax_sweep case_sweep(struct store_case *c)
{
	struct hapax_sweep sum = HAPAX_SWEEP_INIT;

	for (int i = 0; !sum.done; i++) {
		struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
		struct hapax_error err = {.message = "never done"};

		if (hapax_store_sweep(c->store, &sweep, &err) != HAPAX_OK || i > 100000)
			give_up("sweep", &err);
		sum.looked += sweep.looked;
		sum.removed += sweep.removed;
		sum.lapsed += sweep.lapsed;
		sum.remaining = sweep.remaining;
		sum.done = sweep.done;
	}
	return sum;
}

static int count_record(const struct hapax_record *record, void *context)
{
	size_t *count = context;

	(void)record;
	++*count;
	return 0;
}

size_t case_scan_count(struct store_case *c, const struct hapax_scan *scan)
{
	struct hapax_cursor cursor = {0};
	struct hapax_error err = {0};
	size_t count = 0;

	while (!cursor.done)
		if (hapax_store_scan(c->store, scan, &cursor, count_record, &count, &err) !=
		    HAPAX_OK)
			give_up("scan", &err);
	return count;
}

bool case_bytes_are(struct hapax_bytes bytes, const void *data, size_t size)
{
	return bytes.size == size && (size == 0 || memcmp(bytes.data, data, size) == 0);
}
