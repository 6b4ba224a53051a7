/* SPDX-License-Identifier: Apache-2.0 */
/* Which tenants have too many keys: from the figures by scope and hour, and by the ttl of scopes. */
#include "serve/daemon/tenant_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/time.h"
#include "config/config.h"
#include "observe/metrics/metrics.h"
#include "store/tenant/tenant_limit.h"
#include "support/held_store.h"
#include "support/store_case.h"

#define HOUR_MS (INT64_C(3600) * 1000)
#define NOW_MS  (CASE_EPOCH_MS + HOUR_MS / 2)

enum { ROWS_MAX = 3000, KEYS_MAX = 10 };

static const char text[] = "defaults: {ttl: 3h}\n"
			   "scopes:\n"
			   "  - {scope: acme/short, ttl: 10m}\n"
			   "  - {scope: acme/ever, ttl: forever}\n";

/* What the store would tell. */
struct row {
	const char *tenant;
	const char *group;
	int64_t hours_ago;
	uint64_t acquired;
};

struct keys_case {
	struct store_case far;
	struct held_store told; /* its figures are rows */
	struct hapax_store *limit;
	struct hx_config_current current;
	struct hx_tenant_keys keys;
};

static const struct row *rows;
static size_t row_count;
static size_t asked;
static enum hapax_status told_status;

static enum hapax_status tell_rows(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	(void)store, (void)err;
	asked++;
	/* In the middle of an hour. */
	stats->now_ms = NOW_MS;
	for (size_t i = 0; each != NULL && i < row_count && told_status == HAPAX_OK; i++) {
		struct hapax_counters row = {
			.tenant = hapax_bytes_from_text(rows[i].tenant),
			.group = hapax_bytes_from_text(rows[i].group),
			.hour_ms = CASE_EPOCH_MS - rows[i].hours_ago * HOUR_MS,
			.counts = {
				[HAPAX_DECISION_ACQUIRED] = rows[i].acquired,
				[HAPAX_DECISION_REPLAY] = 1000,
				[HAPAX_DECISION_COMPLETED] = 1000}};

		if (each(&row, context) != 0)
			break;
	}
	return told_status;
}

static enum hapax_status count_nothing(
	struct hapax_store *store, const struct hapax_counters *counters, size_t count,
	struct hapax_error *err)
{
	(void)store, (void)counters, (void)count, (void)err;
	return HAPAX_OK;
}

static struct hx_config *load(const char *yaml)
{
	struct hapax_bytes bytes = hapax_bytes_from_text(yaml);
	struct hx_config_source source = {.path = "h.yaml", .text = &bytes};
	struct hx_config *config = NULL;
	struct hapax_error err;

	if (hx_config_load(&source, &config, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	return config;
}

static void begin(struct keys_case *c)
{
	memset(c, 0, sizeof(*c));
	asked = 0;
	told_status = HAPAX_OK;
	store_case_begin(&c->far, "memory:");
	held_store_init(&c->told, c->far.store, &c->far.clock.clock);
	c->told.ops.stats = tell_rows;
	c->told.ops.count = count_nothing;
	assert_int_equal(
		hx_tenant_limit_open(c->far.store, c->far.store, &c->limit, NULL), HAPAX_OK);
	hx_config_current_init(&c->current, load(text));
	c->keys = (struct hx_tenant_keys){
		.limit = c->limit, .keys_max = KEYS_MAX, .current = &c->current};
	hx_tenant_keys_init(&c->keys);
}

static void end(struct keys_case *c)
{
	hx_tenant_keys_done(&c->keys);
	hx_config_current_done(&c->current);
	hapax_store_close(c->limit);
	held_store_done(&c->told);
	store_case_done(&c->far);
}

static void look(struct keys_case *c, const struct row *told, size_t count)
{
	rows = told;
	row_count = count;
	c->keys.asked_ns = 0;
	hx_tenant_keys_look(&c->keys, &c->told.base, NOW_MS);
	/* They are the caller's. */
	rows = NULL;
	row_count = 0;
}

#define LOOK(c, ...)                                           \
	do {                                                   \
		const struct row told[] = {__VA_ARGS__};       \
                                                               \
		look(c, told, sizeof(told) / sizeof(told[0])); \
	} while (0)

/* Does the tenant get new keys? */
static bool is_open(struct keys_case *c, const char *tenant)
{
	static unsigned number;
	char key[32];
	struct hapax_op op;

	(void)snprintf(key, sizeof(key), "k%u", number++);
	op = case_op(&c->far, HAPAX_OP_CHECK, key);
	op.tenant = hapax_bytes_from_text(tenant);
	(void)hapax_store_run(c->limit, &op, 1, NULL);
	assert_true(op.status == HAPAX_OK || op.status == HAPAX_ERR_LIMIT);
	return op.status == HAPAX_OK;
}

static void the_limit_is_reached(void **state)
{
	struct keys_case c;

	(void)state;
	begin(&c);
	LOOK(&c, {"acme", "g", 0, KEYS_MAX - 1}, {"initech", "g", 0, KEYS_MAX});
	assert_true(is_open(&c, "acme"));
	assert_false(is_open(&c, "initech"));
	assert_true(is_open(&c, "nobody"));
	/* Of all groups and hours together. */
	LOOK(&c, {"acme", "g", 0, 4}, {"initech", "g", 0, 9}, {"acme", "h", 0, 3},
	     {"acme", "g", 1, 3});
	assert_false(is_open(&c, "acme"));
	assert_true(is_open(&c, "initech"));
	end(&c);
}

/* The hours of a scope count for its ttl; one that lies in it in part counts in full. */
static void hours_leave_the_count(void **state)
{
	struct keys_case c;

	(void)state;
	begin(&c);
	/* 3h, from half past: three whole hours, and the half of the one before. */
	LOOK(&c, {"a", "g", 3, KEYS_MAX}, {"b", "g", 4, KEYS_MAX});
	assert_false(is_open(&c, "a"));
	assert_true(is_open(&c, "b"));
	/* The scope's own: this hour alone, and forever. */
	LOOK(&c, {"acme", "short", 1, KEYS_MAX}, {"acme", "short", 0, KEYS_MAX - 1});
	assert_true(is_open(&c, "acme"));
	LOOK(&c, {"acme", "short", 1, KEYS_MAX}, {"acme", "short", 0, KEYS_MAX - 1},
	     {"acme", "ever", 9000, 1});
	assert_false(is_open(&c, "acme"));
	/* A reload. */
	hx_config_current_swap(&c.current, load("defaults: {ttl: 4h}\n"));
	LOOK(&c, {"b", "g", 4, KEYS_MAX}, {"acme", "ever", 9000, KEYS_MAX});
	assert_false(is_open(&c, "b"));
	assert_true(is_open(&c, "acme"));
	end(&c);
}

/* Routes of the proxy, and consumers, may keep keys longer than their scope says. */
static void routes_have_a_ttl_of_their_own(void **state)
{
	struct keys_case c;

	(void)state;
	begin(&c);
	hx_config_current_swap(
		&c.current,
		load("upstream: {url: 'http://h'}\n"
		     "defaults: {ttl: 3h}\n"
		     "proxy:\n"
		     "  routes:\n"
		     "    - {path: /a, tenant: acme, group: pay, ttl: 9h}\n"
		     "    - {path: /b, tenant: acme, group: pay, ttl: 6h}\n"
		     "    - {path: /c, tenant: acme, group: soon, ttl: 1m}\n"
		     "    - {path: /d, ttl: forever}\n"
		     "consumers:\n"
		     "  - {name: c, from: 'redis://h/s?group=g', to: 'http://h', tenant: umbrella,"
		     " ttl: 9h}\n"));
	LOOK(&c, {"umbrella", "default", 9, KEYS_MAX});
	assert_false(is_open(&c, "umbrella"));
	LOOK(&c, {"acme", "pay", 9, KEYS_MAX}, {"initech", "pay", 9, KEYS_MAX},
	     {"default", "default", 9000, KEYS_MAX});
	assert_false(is_open(&c, "acme"));
	assert_true(is_open(&c, "initech"));
	assert_false(is_open(&c, "default"));
	LOOK(&c, {"acme", "pay", 10, KEYS_MAX}, {"acme", "other", 9, KEYS_MAX});
	assert_true(is_open(&c, "acme"));
	LOOK(&c, {"acme", "soon", 3, KEYS_MAX});
	assert_false(is_open(&c, "acme"));
	end(&c);
}

static void many_tenants(void **state)
{
	static struct row told[ROWS_MAX];
	static char names[ROWS_MAX][8];
	struct keys_case c;

	(void)state;
	for (size_t i = 0; i < ROWS_MAX; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "t%zu", i);
		told[i] = (struct row){names[i], "g", 0, i % 2 == 0 ? KEYS_MAX : KEYS_MAX - 1};
	}
	begin(&c);
	look(&c, told, ROWS_MAX);
	for (size_t i = 0; i < ROWS_MAX; i++)
		assert_int_equal(is_open(&c, names[i]), i % 2 != 0);
	end(&c);
}

/* What is not known changes nothing: neither who is refused nor who is let in. */
static void without_an_answer_it_stays_as_it_was(void **state)
{
	struct keys_case c;

	(void)state;
	begin(&c);
	LOOK(&c, {"acme", "g", 0, KEYS_MAX});
	told_status = HAPAX_ERR_UNAVAILABLE;
	LOOK(&c, {"initech", "g", 0, KEYS_MAX});
	assert_false(is_open(&c, "acme"));
	assert_true(is_open(&c, "initech"));
	told_status = HAPAX_OK;
	/* Of the sums, of the tenants, of the list and of its copy. */
	for (uint64_t n = 1; n <= 4; n++) {
		hx_alloc_fail_at(n, 0);
		LOOK(&c, {"initech", "g", 0, KEYS_MAX});
		hx_alloc_fail_at(0, 0);
		assert_false(is_open(&c, "acme"));
		assert_true(is_open(&c, "initech"));
	}
	LOOK(&c, {"initech", "g", 0, KEYS_MAX});
	assert_true(is_open(&c, "acme"));
	assert_false(is_open(&c, "initech"));
	end(&c);
}

static void it_is_not_asked_all_the_time(void **state)
{
	struct keys_case c;
	size_t before;

	(void)state;
	begin(&c);
	LOOK(&c, {"acme", "g", 0, 0});
	/* Once: a store may read all of its records. */
	assert_int_equal(asked, 1);
	before = asked;
	/* A moment ago. */
	c.keys.asked_ns = INT64_MAX / 2;
	hx_tenant_keys_look(&c.keys, &c.told.base, NOW_MS);
	assert_int_equal(asked, before);
	/* Long ago. */
	c.keys.asked_ns = INT64_MIN / 2;
	hx_tenant_keys_look(&c.keys, &c.told.base, NOW_MS);
	assert_true(asked > before);
	assert_true(c.keys.asked_ns > 0);
	before = asked;
	/* There is no limit. */
	c.keys.limit = NULL;
	LOOK(&c, {"acme", "g", 0, KEYS_MAX});
	assert_int_equal(asked, before);
	assert_true(is_open(&c, "acme"));
	/* Figures alone are asked for each minute. */
	c.keys.scopes_max = 2;
	c.keys.asked_ns = hx_clock_mono_ns() - 30 * HX_NS_PER_S;
	hx_tenant_keys_look(&c.keys, &c.told.base, NOW_MS);
	assert_int_equal(asked, before);
	c.keys.asked_ns -= 30 * HX_NS_PER_S;
	hx_tenant_keys_look(&c.keys, &c.told.base, NOW_MS);
	assert_int_equal(asked, before + 1);
	end(&c);
}

/* For metrics: by scope, within the ttl, at most so many. */
static void scopes_are_shown(void **state)
{
	const struct hx_scope_keys *shown;
	struct keys_case c;
	uint64_t sum = 0;
	size_t count;

	(void)state;
	begin(&c);
	c.keys.limit = NULL;
	c.keys.scopes_max = 2;
	LOOK(&c, {"acme", "g", 0, 5}, {"acme", "g", 1, 2}, {"acme", "g", 9, 100},
	     {"acme", "short", 0, 1}, {"initech", "g", 0, 4}, {"umbrella", "g", 0, 3});
	shown = hx_tenant_keys_hold(&c.keys, &count);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++) {
		if (hx_bytes_equal(shown[i].group, HX_BYTES_LIT("short")))
			assert_int_equal(shown[i].keys, 1);
		sum += shown[i].keys;
	}
	assert_int_equal(sum, 5 + 2 + 1 + 4 + 3);
	assert_true(hx_bytes_equal(shown[2].tenant, HX_BYTES_LIT("other")));
	assert_int_equal(shown[2].keys, 4 + 3);
	hx_tenant_keys_release(&c.keys);
	/* An outage changes nothing. */
	told_status = HAPAX_ERR_UNAVAILABLE;
	LOOK(&c, {"acme", "g", 0, 1});
	(void)hx_tenant_keys_hold(&c.keys, &count);
	assert_int_equal(count, 3);
	hx_tenant_keys_release(&c.keys);
	end(&c);
}

static void look_at_store(struct keys_case *c)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	assert_int_equal(hapax_store_stats(c->far.store, &stats, NULL, NULL, NULL), HAPAX_OK);
	c->keys.asked_ns = 0;
	hx_tenant_keys_look(&c->keys, c->far.store, stats.now_ms);
}

/* With the figures of a real store, on its clock, until the keys have expired. */
static void a_store_and_its_hours(void **state)
{
	struct keys_case c;

	(void)state;
	begin(&c);
	for (int i = 0; i < KEYS_MAX; i++) {
		look_at_store(&c);
		/* The last one is an hour younger. */
		if (i == KEYS_MAX - 1)
			store_case_advance(&c.far, HOUR_MS);
		assert_true(is_open(&c, "acme"));
	}
	look_at_store(&c);
	assert_false(is_open(&c, "acme"));
	assert_true(is_open(&c, "initech"));
	store_case_advance(&c.far, 3 * HOUR_MS - 1);
	look_at_store(&c);
	assert_false(is_open(&c, "acme"));
	store_case_advance(&c.far, 1);
	look_at_store(&c);
	assert_true(is_open(&c, "acme"));
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_is_reached),
		cmocka_unit_test(hours_leave_the_count),
		cmocka_unit_test(routes_have_a_ttl_of_their_own),
		cmocka_unit_test(scopes_are_shown),
		cmocka_unit_test(many_tenants),
		cmocka_unit_test(without_an_answer_it_stays_as_it_was),
		cmocka_unit_test(it_is_not_asked_all_the_time),
		cmocka_unit_test(a_store_and_its_hours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
