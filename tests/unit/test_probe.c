/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What probes find: loops that stand still, a store that is away, clocks that differ.
 */
#include "serve/daemon/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "serve/daemon/daemon.h"

#define SECOND_NS INT64_C(1000000000)

enum { LOOPS = 2 };

static struct hx_serve serve;
static struct hx_loop loops[LOOPS];
static struct hx_store_facts facts;
static struct hx_probe probe;

static void configure(const char *text)
{
	struct hapax_bytes bytes = hapax_bytes_from_text(text);
	const struct hx_config_source source = {.text = &bytes};
	struct hapax_error err;

	hx_config_release(serve.config);
	if (hx_config_load(&source, &serve.config, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

static int init(void **state)
{
	(void)state;
	memset(&serve, 0, sizeof(serve));
	memset(&facts, 0, sizeof(facts));
	memset(&probe, 0, sizeof(probe));
	hx_conditions_init(&serve.conditions, NULL, NULL);
	serve.loops = loops;
	serve.loop_count = LOOPS;
	for (size_t i = 0; i < LOOPS; i++)
		atomic_init(&loops[i].beat_ns, INT64_MAX);
	facts.asked_ns = INT64_MAX;
	facts.answered = 1;
	facts.has_stats = true;
	configure("store: {url: 'memory:'}\n");
	return 0;
}

static int done(void **state)
{
	(void)state;
	hx_config_release(serve.config);
	return 0;
}

static const struct hx_health_component *component(const char *name)
{
	for (size_t i = 0; i < probe.count; i++) {
		if (strcmp(probe.components[i].name, name) == 0)
			return &probe.components[i];
	}
	fail_msg("there is no '%s'", name);
	return NULL;
}

static bool is_ready(void)
{
	probe.count = 0;
	hx_probe_ready(&probe, &serve, &facts);
	return hx_health_is_ok(probe.components, probe.count);
}

static void expect_reason(const char *name, const char *part)
{
	const char *reason = component(name)->reason;

	if (reason == NULL || strstr(reason, part) == NULL)
		fail_msg("%s: '%s' is not in '%s'", name, part, reason == NULL ? "" : reason);
}

/* Whether a condition goes on; one that has ended stays listed for a while. */
static bool has_condition(enum hx_condition condition)
{
	for (size_t i = 0; i < probe.condition_count; i++) {
		if (probe.conditions[i].condition == condition &&
		    probe.conditions[i].ended_ms == INT64_MAX)
			return true;
	}
	return false;
}

static void all_is_well(void **state)
{
	(void)state;
	assert_true(is_ready());
	assert_true(component("loops")->is_ok);
	expect_reason("loops", "2 of 2 running");
	assert_true(component("store")->is_ok && component("clock")->is_ok);
	assert_true(component("drain")->is_ok);
}

static void a_loop_that_stands_still(void **state)
{
	(void)state;
	/* Asked a moment ago: it may be busy. */
	atomic_store(&loops[1].beat_ns, hx_clock_mono_ns());
	assert_true(is_ready());
	atomic_store(&loops[1].beat_ns, hx_clock_mono_ns() - 60 * SECOND_NS);
	probe.count = 0;
	hx_probe_live(&probe, &serve);
	assert_int_equal(probe.count, 1);
	assert_false(hx_health_is_ok(probe.components, probe.count));
	expect_reason("loops", "1 of 2 running; loop 1 has been blocked for 60 s");
}

static void a_store_that_is_away(void **state)
{
	(void)state;
	facts.status = HAPAX_ERR_UNAVAILABLE;
	(void)snprintf(facts.error.message, sizeof(facts.error.message), "no route");
	assert_false(is_ready());
	expect_reason("store", "unavailable: no route");
	/* It is alive all the same. */
	probe.count = 0;
	hx_probe_live(&probe, &serve);
	assert_true(hx_health_is_ok(probe.components, probe.count));
}

static void a_store_that_says_nothing(void **state)
{
	(void)state;
	facts.asked_ns = hx_clock_mono_ns();
	assert_true(is_ready());
	facts.asked_ns -= 60 * SECOND_NS;
	assert_false(is_ready());
	expect_reason("store", "does not answer");
}

static void a_store_that_failed_for_good(void **state)
{
	(void)state;
	atomic_store(&serve.is_latched, 1);
	assert_false(is_ready());
	expect_reason("store", "restart the daemon");
}

static void be_away_with_a_journal(void)
{
	facts.has_outage = true;
	facts.outage.is_away = 1;
	facts.has_journal = true;
	facts.journal_records = 17;
}

static void scopes_that_go_on_are_ready(void **state)
{
	(void)state;
	be_away_with_a_journal();
	configure("store: {url: 'memory:', journal: 'memory:'}\n");
	assert_false(is_ready());
	configure("store: {url: 'memory:', journal: 'memory:'}\n"
		  "defaults: {on_store_failure: continue}\n");
	assert_true(is_ready());
	assert_false(component("store")->is_ok);
	expect_reason("store", "use the journal");
	expect_reason("journal", "17 records");
	/* One of many is enough. */
	configure("store: {url: 'memory:', journal: 'memory:'}\n"
		  "scopes: [{scope: a/b}, {scope: c/d, on_store_failure: continue}]\n");
	assert_true(is_ready());
	facts.journal_status = HAPAX_ERR_FAILED;
	assert_false(is_ready());
	expect_reason("journal", "cannot be read");
	assert_true(has_condition(HX_CONDITION_JOURNAL_FAILED));
	assert_false(has_condition(HX_CONDITION_JOURNAL_IN_USE));
	facts.journal_status = HAPAX_OK;
	assert_true(is_ready());
	assert_false(has_condition(HX_CONDITION_JOURNAL_FAILED));
	assert_true(has_condition(HX_CONDITION_JOURNAL_IN_USE));
}

static void clocks_that_differ(void **state)
{
	static const struct {
		int64_t skew_ms;
		bool is_ok;
	} cases[] = {
		{0, true}, {2000, true}, {-2000, true}, {2001, false}, {0, true}, {-2001, false}};

	(void)state;
	configure("store: {url: 'memory:', max_clock_skew: 2s}\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		facts.stats.skew_ms = cases[i].skew_ms;
		/* It is reported, and holds up no request: the store's clock decides. */
		assert_true(is_ready());
		assert_int_equal(component("clock")->is_ok, cases[i].is_ok);
		assert_int_equal(has_condition(HX_CONDITION_CLOCK_SKEW), !cases[i].is_ok);
	}
	expect_reason("clock", "-2001 ms");
}

static void whoever_ends_is_not_ready(void **state)
{
	(void)state;
	atomic_store(&serve.is_draining, 1);
	assert_false(is_ready());
	expect_reason("drain", "shutting down");
}

/* What the daemon does beside its doors is reported, and does not make it unready. */
static void an_outbox_that_is_away(void **state)
{
	static const struct hx_background_ops ops = {.name = "outbox"};
	struct hx_background *background = &serve.outbox.background;
	struct hapax_error away = {.status = HAPAX_ERR_UNAVAILABLE, .message = "no route"};

	(void)state;
	background->ops = &ops;
	background->is_wanted = true;
	hx_mutex_init(&background->mutex);
	assert_true(is_ready());
	assert_true(component("outbox")->is_ok);
	hx_background_trouble(background, &away);
	assert_true(is_ready());
	assert_false(component("outbox")->is_ok);
	assert_true(component("outbox")->is_optional);
	expect_reason("outbox", "degraded: no route");
	hx_background_trouble(background, NULL);
	assert_true(is_ready());
	assert_true(component("outbox")->is_ok);
	background->is_wanted = false;
	(void)is_ready();
	for (size_t i = 0; i < probe.count; i++)
		assert_string_not_equal(probe.components[i].name, "outbox");
	hx_mutex_done(&background->mutex);
}

/* A condition that has ended is kept for a while, for the log; it fails no probe. */
static void a_critical_condition_that_has_ended(void **state)
{
	(void)state;
	hx_condition_begin(&serve.conditions, HX_CONDITION_CERT_EXPIRED, "a.pem", "expired");
	hx_condition_begin(&serve.conditions, HX_CONDITION_CERT_EXPIRING, "b.pem", "expires");
	assert_true(is_ready());
	hx_probe_health(&probe);
	assert_false(hx_health_is_ok(probe.components, probe.count));
	hx_condition_end(&serve.conditions, HX_CONDITION_CERT_EXPIRED, "a.pem");
	assert_true(is_ready());
	hx_probe_health(&probe);
	assert_int_equal(probe.condition_count, 2);
	assert_true(hx_health_is_ok(probe.components, probe.count));
	expect_reason("certificates", "expires");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_is_well, init, done),
		cmocka_unit_test_setup_teardown(a_loop_that_stands_still, init, done),
		cmocka_unit_test_setup_teardown(a_store_that_is_away, init, done),
		cmocka_unit_test_setup_teardown(a_store_that_says_nothing, init, done),
		cmocka_unit_test_setup_teardown(a_store_that_failed_for_good, init, done),
		cmocka_unit_test_setup_teardown(scopes_that_go_on_are_ready, init, done),
		cmocka_unit_test_setup_teardown(clocks_that_differ, init, done),
		cmocka_unit_test_setup_teardown(whoever_ends_is_not_ready, init, done),
		cmocka_unit_test_setup_teardown(an_outbox_that_is_away, init, done),
		cmocka_unit_test_setup_teardown(a_critical_condition_that_has_ended, init, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
