/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of the probes, and of /actuator/deduplication (D6), to the byte.
 */
#include "observe/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/macros.h"
#include "observe/condition.h"

static struct hapax_buf out;

static int init(void **state)
{
	(void)state;
	hx_buf_init(&out, 4096);
	return 0;
}

static int done(void **state)
{
	(void)state;
	hx_buf_done(&out);
	return 0;
}

static void expect(const char *text)
{
	if (out.size != strlen(text) || memcmp(out.data, text, out.size) != 0)
		fail_msg("got %.*s", (int)out.size, (const char *)out.data);
	hx_buf_clear(&out);
}

static enum hapax_status render(
	const char *probe, const struct hx_health_component *components, size_t count,
	enum hx_health_form form, struct hapax_buf *to)
{
	const struct hx_health health = {.probe = probe, .components = components, .count = count};

	return hx_health_render(&health, form, to);
}

static const struct hx_health_component well[] = {
	{.name = "store", .is_ok = true},
	{.name = "upstream", .is_optional = true, .reason = "\"x\" does not answer"},
};

static const struct hx_health_component ill[] = {
	{.name = "upstream", .is_optional = true},
	{.name = "store", .reason = "not reached"},
	{.name = "drain", .is_ok = true, .reason = "not draining"},
};

static void short_bodies(void **state)
{
	(void)state;
	assert_int_equal(render("livez", NULL, 0, HX_HEALTH_SHORT, &out), HAPAX_OK);
	expect("ok\n");
	assert_true(hx_health_is_ok(NULL, 0));
	assert_int_equal(render("readyz", well, 2, HX_HEALTH_SHORT, &out), HAPAX_OK);
	expect("ok\n");
	assert_true(hx_health_is_ok(well, 2));
	assert_int_equal(render("readyz", ill, 3, HX_HEALTH_SHORT, &out), HAPAX_OK);
	expect("store: not reached\n");
	assert_false(hx_health_is_ok(ill, 3));
}

static void verbose_bodies_are_those_of_kubernetes(void **state)
{
	(void)state;
	assert_int_equal(render("readyz", well, 2, HX_HEALTH_VERBOSE, &out), HAPAX_OK);
	expect("[+]store ok\n"
	       "[-]upstream failed (optional): \"x\" does not answer\n"
	       "readyz check passed\n");
	assert_int_equal(render("healthz", ill, 3, HX_HEALTH_VERBOSE, &out), HAPAX_OK);
	expect("[-]upstream failed (optional)\n"
	       "[-]store failed: not reached\n"
	       "[+]drain ok: not draining\n"
	       "healthz check failed\n");
}

static void json_bodies(void **state)
{
	(void)state;
	assert_int_equal(render("startupz", NULL, 0, HX_HEALTH_JSON, &out), HAPAX_OK);
	expect("{\"probe\":\"startupz\",\"status\":\"ok\",\"components\":[]}\n");
	assert_int_equal(render("readyz", ill, 2, HX_HEALTH_JSON, &out), HAPAX_OK);
	expect("{\"probe\":\"readyz\",\"status\":\"failed\",\"components\":["
	       "{\"name\":\"upstream\",\"status\":\"failed\",\"optional\":true},"
	       "{\"name\":\"store\",\"status\":\"failed\",\"reason\":\"not reached\"}]}\n");
}

/* E13: what is wrong, since when and how bad, for people and for programs. */
static void conditions_are_listed(void **state)
{
	static const struct hx_condition_row rows[] = {
		{.condition = HX_CONDITION_DISK_FULL, .reason = "no space", .since_ms = 0},
		{.condition = HX_CONDITION_UPSTREAM_DOWN,
		 .subject = "a:1",
		 .reason = "refused",
		 .since_ms = 1000},
	};
	struct hx_health health = {
		.probe = "healthz", .conditions = rows, .condition_count = HX_COUNT(rows)};

	(void)state;
	assert_int_equal(hx_health_render(&health, HX_HEALTH_VERBOSE, &out), HAPAX_OK);
	expect("[!]disk_full (critical, since 1970-01-01T00:00:00.000Z): no space\n"
	       "[!]upstream_down a:1 (warning, since 1970-01-01T00:00:01.000Z): refused\n"
	       "healthz check passed\n");
	assert_int_equal(hx_health_render(&health, HX_HEALTH_JSON, &out), HAPAX_OK);
	expect("{\"probe\":\"healthz\",\"status\":\"ok\",\"components\":[],\"conditions\":["
	       "{\"name\":\"disk_full\",\"severity\":\"critical\","
	       "\"since\":\"1970-01-01T00:00:00.000Z\",\"reason\":\"no space\"},"
	       "{\"name\":\"upstream_down\",\"subject\":\"a:1\",\"severity\":\"warning\","
	       "\"since\":\"1970-01-01T00:00:01.000Z\",\"reason\":\"refused\"}]}\n");
	health.condition_count = 0;
	assert_int_equal(hx_health_render(&health, HX_HEALTH_JSON, &out), HAPAX_OK);
	expect("{\"probe\":\"healthz\",\"status\":\"ok\",\"components\":[],\"conditions\":[]}\n");
}

static void the_form_is_the_one_that_is_asked_for(void **state)
{
	static const struct {
		const char *query;
		const char *accept;
		enum hx_health_form form;
	} cases[] = {
		{"", "", HX_HEALTH_SHORT},
		{"", "*/*", HX_HEALTH_SHORT},
		{"verbose", "*/*", HX_HEALTH_VERBOSE},
		{"a=b&verbose=1", "", HX_HEALTH_VERBOSE},
		{"verbos&everbose", "", HX_HEALTH_SHORT},
		{"verbose", "text/html, Application/JSON;q=0.9", HX_HEALTH_JSON},
		{"verbose", "text/html, application/json;q=0", HX_HEALTH_VERBOSE},
		{"", "application/json", HX_HEALTH_JSON},
		{"", "application/json5", HX_HEALTH_SHORT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			hx_health_form_of(
				hapax_bytes_from_text(cases[i].query),
				hapax_bytes_from_text(cases[i].accept)),
			cases[i].form);
	assert_string_equal(hx_health_content_type(HX_HEALTH_JSON), "application/json");
}

static void components_can_be_excluded(void **state)
{
	struct hx_health_component components[3];

	(void)state;
	memcpy(components, ill, sizeof(ill));
	assert_int_equal(
		hx_health_exclude(components, 3, HX_BYTES_LIT("verbose&exclude=store&exclude=x")),
		2);
	assert_string_equal(components[1].name, "drain");
	assert_true(hx_health_is_ok(components, 2));
	assert_int_equal(hx_health_exclude(components, 2, HX_BYTES_LIT("exclude=&exclude")), 2);
}

/* D6, and X 12: the rate is duplicates of all that ran or were duplicates. */
static void deduplication_is_as_d6_has_it(void **state)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	(void)state;
	assert_int_equal(hx_health_deduplication_render(&stats, &out), HAPAX_OK);
	expect("{\"requestCount\":0,\"hitCount\":0,\"missCount\":0,\"hitRate\":0,"
	       "\"evictionCount\":0}\n");
	stats.counts[HAPAX_DECISION_ACQUIRED] = 49875;
	stats.counts[HAPAX_DECISION_REPLAY] = 125;
	stats.counts[HAPAX_DECISION_IN_PROGRESS] = 7;
	stats.evicted = 3;
	assert_int_equal(hx_health_deduplication_render(&stats, &out), HAPAX_OK);
	expect("{\"requestCount\":50000,\"hitCount\":125,\"missCount\":49875,"
	       "\"hitRate\":0.0025,\"evictionCount\":3}\n");
}

static void without_room_nothing_is_written(void **state)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_buf small;

	(void)state;
	hx_buf_init(&small, 20);
	assert_int_equal(hx_buf_append(&small, "x", 1), HAPAX_OK);
	assert_int_equal(hx_health_deduplication_render(&stats, &small), HAPAX_ERR_LIMIT);
	assert_int_equal(render("readyz", ill, 3, HX_HEALTH_JSON, &small), HAPAX_ERR_LIMIT);
	assert_int_equal(render("readyz", ill, 3, HX_HEALTH_VERBOSE, &small), HAPAX_ERR_LIMIT);
	assert_int_equal(small.size, 1);
	hx_buf_done(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(short_bodies, init, done),
		cmocka_unit_test_setup_teardown(verbose_bodies_are_those_of_kubernetes, init, done),
		cmocka_unit_test_setup_teardown(json_bodies, init, done),
		cmocka_unit_test_setup_teardown(conditions_are_listed, init, done),
		cmocka_unit_test(the_form_is_the_one_that_is_asked_for),
		cmocka_unit_test(components_can_be_excluded),
		cmocka_unit_test_setup_teardown(deduplication_is_as_d6_has_it, init, done),
		cmocka_unit_test(without_room_nothing_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
