/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers in a configuration: what they are by default and by their scope, what is
 * refused, and which of them a reload leaves alone.
 */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "config/dump.h"
#include "support/config_case.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

static bool has_kafka(void)
{
	const char *scheme;

	for (size_t i = 0; (scheme = hapax_source_scheme(i)) != NULL; i++) {
		if (strcmp(scheme, "kafka:") == 0)
			return true;
	}
	return false;
}

static void what_is_not_said_is_as_in_consume(void **state)
{
	struct hx_config *config;
	const struct hx_config_consumer *one;

	(void)state;
	if (!has_kafka())
		skip();
	config = config_case_load("consumers: [{name: a, from: 'kafka://h/t', to: 'http://s/'}]\n");
	one = config->consumers;
	assert_int_equal(config->consumer_count, 1);
	assert_int_equal(one->run.ttl_ms, 7 * DAY_MS);
	assert_int_equal(one->run.lease_ms, 30000);
	assert_int_equal(one->run.max_run_ms, 15 * 60 * 1000);
	assert_int_equal(one->run.wait_ms, 0);
	assert_int_equal(one->run.on_lapse, HAPAX_ON_LAPSE_RETRY);
	assert_int_equal(one->run.result_size_max, 256 * 1024);
	assert_false(one->run.is_disabled);
	assert_string_equal(one->keying.key, "");
	assert_null(one->key_options.tenant);
	assert_null(one->key_options.group_from);
	assert_int_equal(one->prefetch, 256);
	assert_int_equal(one->parallel, 16);
	assert_int_equal(one->attempts, 10);
	assert_int_equal(one->backoff_ms, 200);
	assert_int_equal(one->backoff_max_ms, 60000);
	assert_int_equal(one->order, HAPAX_ORDER_KEY);
	assert_int_equal(one->on_duplicate, HAPAX_ON_DUPLICATE_DROP);
	hx_config_release(config);
}

static void a_scope_has_its_say(void **state)
{
	static const char text[] =
		"scopes:\n"
		"- {scope: acme/pay, ttl: 1h, lease: 7s, max_run: 9s, wait: 5s, on_missing: content,\n"
		"   on_mismatch: duplicate, on_lapse: park, enabled: false, remember: off}\n"
		"consumers:\n"
		"- {name: a, from: 'kafka://h/t', exec: cat, tenant: acme, group: pay}\n"
		"- {name: b, from: 'kafka://h/t', exec: cat, tenant: acme, group: pay, lease: 3s, ttl: forever}\n"
		"- {name: c, from: 'kafka://h/t', exec: cat, tenant: acme, group_from: attr.dataset,\n"
		"   key: content, include: [data.x], exclude: [data.y], fingerprint: none, canonical: python}\n";
	struct hx_config *config;
	const struct hx_config_consumer *found;

	(void)state;
	if (!has_kafka())
		skip();
	config = config_case_load(text);
	found = config->consumers;
	/* Its own are ttl, max_run and on_lapse, whose defaults differ from those of events. */
	assert_int_equal(found[0].run.ttl_ms, 7 * DAY_MS);
	assert_int_equal(found[0].run.max_run_ms, 15 * 60 * 1000);
	assert_int_equal(found[0].run.on_lapse, HAPAX_ON_LAPSE_RETRY);
	assert_int_equal(found[0].run.lease_ms, 7000);
	assert_int_equal(found[0].run.wait_ms, 0);
	assert_int_equal(found[0].run.on_mismatch, HAPAX_ON_MISMATCH_DUPLICATE);
	assert_true(found[0].run.is_disabled);
	assert_true(found[0].run.omits_cause);
	assert_int_equal(found[0].key_options.on_missing, HAPAX_ON_MISSING_CONTENT);
	assert_string_equal(found[0].key_options.tenant, "acme");
	assert_int_equal(found[1].run.lease_ms, 3000);
	assert_true(found[1].run.ttl_ms == HAPAX_TTL_FOREVER);
	/* Whose group comes from the message has the settings of none by name. */
	assert_false(found[2].run.is_disabled);
	assert_false(found[2].run.omits_cause);
	assert_int_equal(found[2].run.lease_ms, 30000);
	assert_int_equal(found[2].key_options.include_count, 1);
	assert_int_equal(found[2].key_options.exclude_count, 1);
	assert_int_equal(found[2].key_options.canonical, HAPAX_CANONICAL_PYTHON);
	assert_true(found[2].key_options.flags & HAPAX_KEY_NO_FINGERPRINT);
	hx_config_release(config);
}

static void faults_are_told_at_once(void **state)
{
	static const struct {
		const char *text; /* of the one consumer */
		const char *message;
	} cases[] = {
		{"{from: 'kafka://h/t', to: 'http://s'}", "h.yaml:1:13: a consumer needs 'name'"},
		{"{name: a, to: 'http://s'}", "h.yaml:1:13: a consumer needs 'from'"},
		{"{name: a, from: 'kafka://h/t'}",
		 "h.yaml:1:13: consumer 'a' needs one handler: either to: URL or exec: COMMAND"},
		{"{name: a, from: 'kafka://h/t', to: 'http://s', exec: cat}",
		 "h.yaml:1:13: consumer 'a' needs one handler"},
		{"{name: a, from: 'kafka://h/t', to: 'ftp://s'}", "h.yaml:1:48: to: 'ftp://s' "},
		{"{name: a, from: 'pigeon://u:secret@h/t', exec: cat}",
		 "h.yaml:1:13: consumer 'a': from: unknown source 'pigeon'"},
		{"{name: a, from: 'kafka://h', exec: cat}",
		 "h.yaml:1:13: consumer 'a': from: missing topic in the URL"},
		{"{name: a, from: 'kafka://h/t?no.such.property=1', exec: cat}",
		 "h.yaml:1:13: consumer 'a': from: cannot set property 'no.such.property'"},
		{"{name: a, from: 'kafka://h/t', exec: cat, key: 'field:x'}",
		 "h.yaml:1:13: consumer 'a': "},
		{"{name: a, from: 'kafka://h/t', exec: cat, key: uuid7}",
		 "h.yaml:1:13: consumer 'a': "},
		{"{name: a, from: 'kafka://h/t', exec: cat, include: [data.x]}",
		 "h.yaml:1:13: consumer 'a': include needs key: content"},
		{"{name: a, from: 'kafka://h/t', exec: cat, group_from: nowhere}",
		 "h.yaml:1:13: consumer 'a': "},
		{"{name: a, from: 'kafka://h/t', exec: cat, lease: 50ms}",
		 "h.yaml:1:13: consumer 'a': lease must be at least 100 ms"},
		{"{name: a, from: 'kafka://h/t', exec: cat, prefetch: 10001}",
		 "h.yaml:1:65: prefetch: '10001' is not between 1 and 10000"},
		{"{name: a, from: 'kafka://h/t', exec: cat, on_duplicate: tagg}",
		 "h.yaml:1:69: on_duplicate: 'tagg' is unknown (did you mean 'tag'?)"},
		{"{name: a, from: 'kafka://h/t', exec: cat, on_duplicate: drpo}",
		 "h.yaml:1:69: on_duplicate: 'drpo' is unknown (did you mean 'drop'?)"},
		{"{name: a, from: 'kafka://h/t', exec: cat}, {name: a, from: 'kafka://h/u', exec: cat}",
		 "h.yaml:1:56: consumer 'a' occurs twice"},
	};

	(void)state;
	if (!has_kafka())
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];

		(void)snprintf(text, sizeof(text), "consumers: [%s]\n", cases[i].text);
		assert_null(config_case_try(text, NULL));
		if (strncmp(config_case_err.message, cases[i].message, strlen(cases[i].message)) !=
		    0)
			fail_msg("%s: %s", cases[i].text, config_case_err.message);
		assert_null(strstr(config_case_err.message, "secret"));
	}
}

static void passwords_are_not_dumped(void **state)
{
	struct hx_config *config;
	struct hapax_buf out;

	(void)state;
	if (!has_kafka())
		skip();
	config = config_case_load(
		"consumers: [{name: a, exec: cat,\n"
		"  from: 'kafka://h/t?group=g&sasl.username=me&sasl.password=hush&ssl.key.pem=hush"
		"&sasl.oauthbearer.config=hush'}]\n");
	hx_buf_init(&out, 1024 * 1024);
	assert_int_equal(hx_config_dump(config, &out), HAPAX_OK);
	assert_int_equal(hx_config_dump_json(config, &out), HAPAX_OK);
	assert_int_equal(hx_buf_append_byte(&out, '\0'), HAPAX_OK);
	assert_null(strstr((const char *)out.data, "hush"));
	assert_non_null(strstr((const char *)out.data, "sasl.username=me&sasl.password=***"));
	assert_non_null(strstr((const char *)out.data, "sasl.oauthbearer.config=***"));
	hx_buf_done(&out);
	hx_config_release(config);
}

/* What a reload sees of consumer a in two texts. */
static bool is_same(const char *first, const char *second)
{
	struct hx_config *a = config_case_load(first), *b = config_case_load(second);
	char setting[HX_CONFIG_SETTING_SIZE];
	bool is_same = hx_config_consumer_is_same(&a->consumers[0], &b->consumers[0]);

	assert_false(hx_config_needs_restart(a, b, setting));
	hx_config_release(a);
	hx_config_release(b);
	return is_same;
}

#define ONE "consumers: [{name: a, from: 'kafka://h/t', exec: cat, key: content, include: [data.x]"

static void a_reload_knows_what_changed(void **state)
{
	(void)state;
	if (!has_kafka())
		skip();
	assert_true(is_same(ONE "}]", ONE "}, {name: b, from: 'kafka://h/t', exec: cat}]"));
	assert_true(is_same(ONE "}]", ONE ", ttl: 168h}]\nlog: {level: warn}"));
	assert_false(is_same(ONE "}]", ONE ", ttl: 167h}]"));
	assert_false(is_same(ONE ", exclude: [data.y]}]", ONE ", exclude: [data.z]}]"));
	assert_false(is_same(ONE ", exclude: [data.y]}]", ONE "}]"));
	assert_false(is_same(ONE "}]", ONE ", dead_letter: 'off'}]"));
	/* By way of their scope. */
	assert_false(is_same(ONE "}]", ONE "}]\ndefaults: {lease: 31s}"));
	assert_true(is_same(ONE ", lease: 5s}]", ONE ", lease: 5s}]\ndefaults: {lease: 31s}"));
	assert_false(is_same(ONE "}]", ONE "}]\ndefaults: {on_missing: pass}"));
	assert_false(is_same(ONE "}]", ONE "}]\ndefaults: {remember: off}"));
	assert_false(is_same(ONE "}]", ONE "}]\nenabled: false"));
	/* Of what is not theirs nothing counts. */
	assert_true(is_same(ONE "}]", ONE "}]\ndefaults: {ttl: 1h, max_run: 1s, wait: 1s}"));
}

static void without_consumers_there_are_none(void **state)
{
	struct hx_config *config = config_case_load("");

	(void)state;
	assert_int_equal(config->consumer_count, 0);
	hx_config_release(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_said_is_as_in_consume),
		cmocka_unit_test(a_scope_has_its_say),
		cmocka_unit_test(faults_are_told_at_once),
		cmocka_unit_test(passwords_are_not_dumped),
		cmocka_unit_test(a_reload_knows_what_changed),
		cmocka_unit_test(without_consumers_there_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
