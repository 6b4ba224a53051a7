/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategies from their text: what is taken, what is refused and why. B2, E2.
 */
#include "support/key_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

struct refusal {
	const char *text;
	const char *part; /* of the message */
};

static const struct refusal refusals[] = {
	{"", "unknown key strategy ''"},
	{"nonsense", "unknown key strategy 'nonsense'; use event-id, aggregate-version, field"},
	{"content-hash", "unknown key strategy 'content-hash'"},
	{"Content", "unknown key strategy"},
	{"content:", "takes no argument"},
	{"content:x", "takes no argument"},
	{"event-id:x", "takes no argument"},
	{"hybrid:", "takes no argument"},
	{"uuid7", "in producers"},
	{"field", "needs a path: field:PATH"},
	{"field:", "needs a path"},
	{"field:data.a,data.b", "use composite for several"},
	{"field:a", "invalid path 'a': it must begin with data., attr., header. or meta."},
	{"field:database.a", "must begin with"},
	{"field:data.", "a name must follow at the end"},
	{"field:attr.", "a name must follow at the end"},
	{"field:data..a", "expected a name"},
	{"field:data.*", "must be one value"},
	{"field:data.**.a", "must be one value"},
	{"field:meta.nonsense", "meta.topic, meta.partition, meta.offset"},
	{"composite:", "needs a path"},
	{"composite:data.a,", "invalid path '': it is empty"},
	{"composite:,data.a", "invalid path '': it is empty"},
	{"aggregate-version:data.a", "needs 3 paths"},
	{"aggregate-version:data.a,data.b,data.c,data.d", "needs 3 paths"},
	{"header", "needs a name"},
	{"header:", "needs a name"},
	{"template", "needs a text"},
	{"template:", "needs a text"},
	{"template:constant", "all events would have the same key"},
	{"template:{{x}}", "all events would have the same key"},
	{"template:{data.a", "{ without }"},
	{"template:x}", "} without {"},
	{"template:{}", "invalid path '': it is empty"},
	{"template:{data.a}{data.b}", "text must follow"},
	{"template:{data.a}{date:%F}", "text must follow"},
	{"template:{data.a}%{data.b}", "a percent sign must not follow"},
	{"template:{date:%Q}", "has an unknown conversion"},
	{"template:{date:}", "it must give 1 to 128"},
	{"template:{a}", "must begin with"},
	{"field:data.user*", "* must be a whole step"},
	{"header:\xff", "the key strategy is not UTF-8"},
	{"field:data.\xc3", "the key strategy is not UTF-8"},
	{"template:\xff{data.a}", "the key strategy is not UTF-8"},
};

static void texts_that_are_no_strategy(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const char *message = key_case_refusal(refusals[i].text, NULL);

		if (strstr(message, refusals[i].part) == NULL)
			fail_msg("%s: %s", refusals[i].text, message);
	}
}

static void texts_that_are_one(void **state)
{
	static const char *const texts[] = {
		"event-id",
		"aggregate-version",
		"aggregate-version:attr.t,header.aggregateId,data.v",
		"field:data.a",
		"field:data/a/0/~1",
		"field:data[0]",
		"field:attr.type",
		"field:header.X-Id",
		"field:meta.offset",
		"composite:data.a,attr.b,header.c,meta.key",
		"composite:data.a\\,b",
		"header:Idempotency-Key",
		"template:x-{data.a}-{date:%Y%m%d}",
		"content",
		"hybrid"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct hapax_key_strategy *strategy = key_case_strategy(texts[i], NULL);

		assert_string_equal(hapax_key_strategy_text(strategy), texts[i]);
		hapax_key_strategy_free(strategy);
	}
}

static void options_are_judged(void **state)
{
	static const char *const header[] = {"header.X"};
	static const char *const whole[] = {"data"};
	static const char *const bad[] = {"data.["};
	static const char *const all[] = {"data.*", "data.**", "data.**.*", "data/*/**"};
	static const char *const not_text = "data.\xff";
	static const char *const many[65] = {"data.a"};
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;

	(void)state;
	options.include = header;
	options.include_count = 1;
	assert_non_null(strstr(
		key_case_refusal("content", &options), "include and exclude select data only"));
	assert_non_null(
		strstr(key_case_refusal("field:data.a", &options), "include has no effect"));
	options.include = whole;
	assert_non_null(strstr(
		key_case_refusal("content", &options), "include and exclude select data only"));
	options.include = bad;
	(void)key_case_refusal("content", &options);
	options.include = many;
	options.include_count = 65;
	assert_non_null(
		strstr(key_case_refusal("content", &options), "too many paths: 65, limit 64"));
	options.include = NULL;
	(void)key_case_refusal("content", &options);
	options = (struct hapax_key_options)HAPAX_KEY_OPTIONS_INIT;
	options.exclude_count = 1;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		options.exclude = &all[i];
		assert_non_null(
			strstr(key_case_refusal("content", &options), "exclude everything"));
		assert_non_null(
			strstr(key_case_refusal("event-id", &options), "exclude everything"));
	}
	options.exclude = &not_text;
	assert_string_equal(
		key_case_refusal("content", &options), "invalid key path: it is not UTF-8");
	options = (struct hapax_key_options)HAPAX_KEY_OPTIONS_INIT;
	options.exclude = header;
	options.exclude_count = 1;
	(void)key_case_refusal("event-id", &options);
	options = (struct hapax_key_options)HAPAX_KEY_OPTIONS_INIT;
	options.size = 1;
	(void)key_case_refusal("content", &options);
	options = (struct hapax_key_options)HAPAX_KEY_OPTIONS_INIT;
	options.on_missing = (enum hapax_on_missing)7;
	(void)key_case_refusal("content", &options);
	options = (struct hapax_key_options)HAPAX_KEY_OPTIONS_INIT;
	options.tenant = "";
	assert_non_null(strstr(key_case_refusal("content", &options), "tenant is empty"));
	options.tenant = "a/b";
	assert_non_null(strstr(key_case_refusal("content", &options), "slash"));
}

static void long_texts_are_refused(void **state)
{
	char text[8192];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "field:data.", 11);
	text[sizeof(text) - 1] = '\0';
	assert_non_null(strstr(key_case_refusal(text, NULL), "limit 4095"));
	text[4000] = '\0';
	assert_non_null(strstr(key_case_refusal(text, NULL), "the limit is 255"));
	text[100] = '\0';
	hapax_key_strategy_free(key_case_strategy(text, NULL));
}

static void commas_in_paths_are_escaped(void **state)
{
	(void)state;
	assert_string_equal(key_case_of("composite:a\\,b,c", "{\"a,b\":1,\"c\":2}"), "1:2");
	assert_string_equal(key_case_of("field:a\\,b", "{\"a,b\":1}"), "1");
	assert_string_equal(key_case_of("composite:a\\.b,c", "{\"a.b\":1,\"c\":2}"), "1:2");
}

/* B2: event id; aggregate type, id and version; one field; composite. */
static void strategies_by_example(void **state)
{
	static const char document[] =
		"{\"source\":\"https://shop/orders\",\"id\":\"17\",\"aggregateType\":\"Order\",\"aggregateId\":\"o:1\","
		"\"version\":3,\"payload\":{\"rfqId\":\"r1\",\"quoteId\":9,\"lines\":[{\"sku\":\"K\"}],\"v\":\"4\"}}";

	(void)state;
	assert_string_equal(key_case_of("event-id", document), "https%3A//shop/orders:17");
	assert_string_equal(key_case_of("aggregate-version", document), "Order:o%3A1:3");
	assert_string_equal(
		key_case_of("aggregate-version:aggregateType,aggregateId,payload.v", document),
		"Order:o%3A1:4");
	assert_string_equal(key_case_of("field:payload.rfqId", document), "r1");
	assert_string_equal(key_case_of("field:/payload/lines/0/sku", document), "K");
	assert_string_equal(
		key_case_of("composite:payload.rfqId,payload.quoteId", document), "r1:9");
	assert_string_equal(
		key_case_of("template:rfq-{payload.rfqId}/{payload.quoteId}", document),
		"rfq-r1/9");
}

static void versions_are_whole_numbers(void **state)
{
	static const char *const versions[][2] = {
		{"0", "T:1:0"},     {"7", "T:1:7"},  {"7.0", "T:1:7"}, {"\"7\"", "T:1:7"},
		{"1e2", "T:1:100"}, {"1.5", "!"},    {"-1", "!"},      {"\"\"", "!"},
		{"\"v1\"", "!"},    {"\"07\"", "!"}, {"true", "!"},    {"null", "!"},
		{"1e30", "!"}};

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		char json[128];
		const char *key;

		(void)snprintf(
			json, sizeof(json),
			"{\"aggregateType\":\"T\",\"aggregateId\":1,\"version\":%s}",
			versions[i][0]);
		key = key_case_of("aggregate-version", json);
		if (versions[i][1][0] == '!')
			assert_int_equal(key[0], '!');
		else
			assert_string_equal(key, versions[i][1]);
	}
}

static void needs_are_known(void **state)
{
	static const struct {
		const char *text;
		unsigned needs;
	} cases[] = {
		{"event-id", 0},
		{"header:X", 0},
		{"uuid7", 0},
		{"composite:attr.a,meta.key", 0},
		{"field:data.a", HAPAX_KEY_NEEDS_DATA},
		{"content", HAPAX_KEY_NEEDS_DATA},
		{"hybrid", HAPAX_KEY_NEEDS_DATA},
		{"template:{date:%F}", HAPAX_KEY_NEEDS_TIME},
		{"template:{date:%F}-{data.a}", HAPAX_KEY_NEEDS_TIME | HAPAX_KEY_NEEDS_DATA},
		{"template:{date:%F}-{attr.a}", HAPAX_KEY_NEEDS_TIME},
	};
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_key_strategy *strategy;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		options.flags = HAPAX_KEY_PRODUCER | HAPAX_KEY_NO_FINGERPRINT;
		strategy = key_case_strategy(cases[i].text, &options);
		assert_int_equal(hapax_key_strategy_needs(strategy), cases[i].needs);
		hapax_key_strategy_free(strategy);
		/* The fingerprint is made of the data, whatever the key is made of. */
		options.flags = HAPAX_KEY_PRODUCER;
		strategy = key_case_strategy(cases[i].text, &options);
		assert_int_equal(
			hapax_key_strategy_needs(strategy), cases[i].needs | HAPAX_KEY_NEEDS_DATA);
		hapax_key_strategy_free(strategy);
	}
	options.flags = HAPAX_KEY_NO_FINGERPRINT;
	options.tenant_from = "data.tenant";
	strategy = key_case_strategy("header:X", &options);
	assert_int_equal(hapax_key_strategy_needs(strategy), HAPAX_KEY_NEEDS_DATA);
	hapax_key_strategy_free(strategy);
	/* A document has its time in it. */
	options.flags |= HAPAX_KEY_RELATIVE;
	options.tenant_from = NULL;
	strategy = key_case_strategy("template:{date:%F}", &options);
	assert_int_equal(
		hapax_key_strategy_needs(strategy), HAPAX_KEY_NEEDS_TIME | HAPAX_KEY_NEEDS_DATA);
	hapax_key_strategy_free(strategy);
}

static void types_and_ids_are_not_empty(void **state)
{
	(void)state;
	assert_string_equal(
		key_case_of(
			"aggregate-version",
			"{\"aggregateType\":\"\",\"aggregateId\":\"\",\"version\":1}"),
		"!'aggregateType' is empty");
	assert_string_equal(
		key_case_of(
			"aggregate-version",
			"{\"aggregateType\":\"T\",\"aggregateId\":\"\",\"version\":1}"),
		"!'aggregateId' is empty");
	assert_string_equal(
		key_case_of("event-id", "{\"source\":\"/s\",\"id\":\"\"}"), "!'id' is empty");
	assert_string_equal(
		key_case_of("event-id", "{\"source\":\"\",\"id\":\"1\"}"), "!'source' is empty");
	/* A part of a composite may be: it is a value like any other. */
	assert_string_equal(key_case_of("composite:a,b", "{\"a\":\"\",\"b\":\"\"}"), ":");
}

/* Help is made from the table: every strategy is in it, with its argument. */
static void the_table_describes_itself(void **state)
{
	size_t count = 0;

	(void)state;
	while (hapax_key_strategy_syntax(count) != NULL) {
		assert_true(strlen(hapax_key_strategy_summary(count)) > 0);
		count++;
	}
	assert_int_equal(count, 9);
	assert_null(hapax_key_strategy_summary(count));
	assert_string_equal(hapax_key_strategy_syntax(0), "event-id");
	assert_string_equal(hapax_on_missing_name(HAPAX_ON_MISSING_PASS), "pass");
	assert_string_equal(hapax_canonical_name(HAPAX_CANONICAL_PYTHON), "python");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_that_are_no_strategy),
		cmocka_unit_test(texts_that_are_one),
		cmocka_unit_test(options_are_judged),
		cmocka_unit_test(long_texts_are_refused),
		cmocka_unit_test(commas_in_paths_are_escaped),
		cmocka_unit_test(strategies_by_example),
		cmocka_unit_test(versions_are_whole_numbers),
		cmocka_unit_test(types_and_ids_are_not_empty),
		cmocka_unit_test(needs_are_known),
		cmocka_unit_test(the_table_describes_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
