/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys from JSON that is a string of the event, as SNS, SQS, EventBridge and API Gateway deliver
 * it. E2, E20.
 */
#include "key/nested.h"

#include "support/key_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

/* Amazon SNS, delivered over HTTPS: Message is a string. */
static const char sns[] =
	"{\"Type\":\"Notification\",\"MessageId\":\"22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324\","
	"\"TopicArn\":\"arn:aws:sns:us-west-2:123456789012:orders\",\"Subject\":\"order\","
	"\"Message\":\"{\\\"order\\\":{\\\"id\\\":\\\"o-17\\\",\\\"version\\\":3},"
	"\\\"sent_at\\\":\\\"2026-11-18T09:00:00Z\\\"}\","
	"\"Timestamp\":\"2026-11-18T09:00:00.000Z\",\"SignatureVersion\":\"1\"}";

/* An EventBridge event whose detail carries a body that a program has encoded. */
static const char bridge[] =
	"{\"version\":\"0\",\"id\":\"6a7e8feb-b491-4cf7-a9f1-bf3703467718\","
	"\"detail-type\":\"order.paid\",\"source\":\"shop.payments\",\"account\":\"111122223333\","
	"\"time\":\"2026-11-18T09:00:00Z\",\"region\":\"us-west-1\",\"resources\":[],"
	"\"detail\":{\"body\":\"{\\\"payment_id\\\": 4711, \\\"amount\\\": 12.50}\"}}";

/* A REST request as API Gateway hands it to a function. */
static const char gateway[] =
	"{\"resource\":\"/orders\",\"path\":\"/orders\",\"httpMethod\":\"POST\","
	"\"headers\":{\"Content-Type\":\"application/json\"},"
	"\"requestContext\":{\"requestId\":\"c6af9ac6-7b61-11e6-9a41-93e8deadbeef\"},"
	"\"body\":\"{\\n  \\\"id\\\": \\\"caf\\u00e9 \\\\ud83d\\\\ude00\\\"\\n}\","
	"\"isBase64Encoded\":false}";

/* SQS that is subscribed to a topic: a message in a message, two of them in a batch. */
static const char sqs[] =
	"{\"Records\":[{\"messageId\":\"a\",\"body\":\"{\\\"Message\\\":"
	"\\\"{\\\\\\\"id\\\\\\\":1,\\\\\\\"at\\\\\\\":5}\\\"}\"},"
	"{\"messageId\":\"b\",\"body\":\"{\\\"Message\\\":\\\"{\\\\\\\"id\\\\\\\":2}\\\"}\"}]}";

static void bodies_of_services_have_keys(void **state)
{
	(void)state;
	assert_string_equal(key_case_of("field:Message|json.order.id", sns), "o-17");
	assert_string_equal(key_case_of("field:/Message|json/order/id", sns), "o-17");
	assert_string_equal(key_case_of("field:Message|json/order/id", sns), "o-17");
	assert_string_equal(
		key_case_of("composite:Type,Message|json.order.id,Message|json.order.version", sns),
		"Notification:o-17:3");
	assert_string_equal(
		key_case_of("template:{Message|json.order.id}/{MessageId}", sns),
		"o-17/22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324");
	assert_string_equal(key_case_of("field:detail.body|json.payment_id", bridge), "4711");
	assert_string_equal(key_case_of("field:detail.body|json.amount", bridge), "12.5");
	assert_string_equal(
		key_case_of("field:body|json.id", gateway), "caf\xc3\xa9 \xf0\x9f\x98\x80");
	assert_string_equal(
		key_case_of(
			"composite:Records[0].body|json.Message|json.id,"
			"Records[1].body|json.Message|json.id,Records[0].body|json.Message|json.at",
			sqs),
		"1:2:5");
}

/* The string stays a string for a path that wants it whole, before and after. */
static void a_string_is_itself_and_its_json(void **state)
{
	static const char document[] = "{\"a\":\"{\\\"b\\\":1}\",\"c|d\":2}";

	(void)state;
	assert_string_equal(key_case_of("composite:a,a|json.b", document), "{\"b\"%3A1}:1");
	assert_string_equal(key_case_of("composite:a|json.b,a", document), "1:{\"b\"%3A1}");
	assert_string_equal(key_case_of("field:c\\|d", document), "2");
	assert_string_equal(key_case_of("field:/c~3d", document), "2");
	/* The whole data may be such a string, and the JSON in it a value. */
	assert_string_equal(key_case_of("field:|json.x", "\"{\\\"x\\\":\\\"y\\\"}\""), "y");
	assert_string_equal(key_case_of("field:n|json", "{\"n\":\"17\"}"), "17");
	assert_string_equal(key_case_of("field:l|json[1]", "{\"l\":\"[1,2]\"}"), "2");
}

static void strings_without_the_value_have_none(void **state)
{
	static const char document[] =
		"{\"o\":{\"id\":1},\"s\":\"{\\\"id\\\":}\",\"t\":\"\",\"n\":null,\"u\":\"{}\","
		"\"v\":\"{\\\"w\\\":3}\",\"twice\":\"{\\\"a\\\":1,\\\"a\\\":2}\"}";

	(void)state;
	assert_string_equal(
		key_case_of("field:o|json.id", document),
		"!'o' is not a string; |json reads JSON in a string, so leave it out here");
	assert_string_equal(
		key_case_of("field:s|json.id", document),
		"!'s' is not JSON: line 1, column 7: '}' found where a value was expected");
	assert_non_null(strstr(key_case_of("field:t|json.id", document), "!'t' is not JSON: "));
	assert_string_equal(key_case_of("field:n|json.id", document), "!'n' is null");
	assert_string_equal(key_case_of("field:x|json.id", document), "!'x' is missing");
	assert_string_equal(key_case_of("field:u|json.id", document), "!'u|json.id' is missing");
	assert_string_equal(
		key_case_of("field:v|json.w|json.id", document),
		"!'v|json.w' is not a string; |json reads JSON in a string, so leave it out here");
	assert_non_null(
		strstr(key_case_of("field:twice|json.a", document), "!'twice' is not JSON"));
}

static void texts_that_are_no_path(void **state)
{
	static const char *const refusals[][2] = {
		{"field:data.a|b", "expected |json; write \\| for | in a name"},
		{"field:data/a|b", "expected |json; write ~3 for | in a name"},
		{"field:data.a|jsonb", "expected |json"},
		{"field:data.a|json.", "expected a name"},
		{"field:data.a|json.[0]", "expected a name"},
		{"field:data.a|json|json", "expected |json"},
		{"field:data.|json", "a name must follow"},
		{"field:data.a|json.*", "must be one value"},
		{"field:data.a|json.b|json.c|json.d|json.e|json.f", "too many |json: limit 4"},
	};
	static const char *const below[] = {"data.**.a|json.b"};
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const char *message = key_case_refusal(refusals[i][0], NULL);

		if (strstr(message, refusals[i][1]) == NULL)
			fail_msg("%s: %s", refusals[i][0], message);
	}
	options.exclude = below;
	options.exclude_count = 1;
	assert_non_null(
		strstr(key_case_refusal("content", &options), "|json is not allowed after **"));
}

/* The key of content, or "!" and the message; paths are relative. */
static struct hapax_key content_key(
	const char *include, const char *exclude, const char *json, struct hapax_error *err)
{
	struct hapax_key_options options = key_case_relative();
	struct hapax_key_strategy *strategy;
	struct hapax_event event = key_case_event(json);
	struct hapax_key key = HAPAX_KEY_INIT;

	options.include = &include;
	options.include_count = include != NULL;
	options.exclude = &exclude;
	options.exclude_count = exclude != NULL;
	strategy = key_case_strategy("content", &options);
	if (key_case_make(strategy, &event, &key, err) != HAPAX_OK)
		key.key[0] = '\0';
	hapax_key_strategy_free(strategy);
	return key;
}

static void content_sees_into_strings(void **state)
{
	static const char other[] =
		"{\"MessageId\":\"2\",\"Message\":\"{ \\\"sent_at\\\":\\\"later\\\", "
		"\\\"order\\\":{\\\"version\\\":3.0,\\\"id\\\":\\\"o-17\\\"}}\"}";
	static const char more[] = "{\"m\":\"{\\\"a\\\":1,\\\"t\\\":2}\",\"x\":1}";
	static const char less[] = "{\"m\":\"{\\\"a\\\":1}\",\"x\":1}";
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_key first = content_key("Message|json.order", NULL, sns, &err);
	struct hapax_key second = content_key("Message|json.order", NULL, other, &err);

	(void)state;
	/* Included: what it says, and not how. */
	assert_int_equal(first.kind, HAPAX_KEY_MADE);
	assert_string_equal(first.key, second.key);
	/* Excluded: absent or different, key and fingerprint are the same. */
	first = content_key(NULL, "m|json.t", more, &err);
	second = content_key(NULL, "m|json.t", less, &err);
	assert_string_equal(first.key, second.key);
	assert_memory_equal(first.fingerprint, second.fingerprint, HAPAX_FINGERPRINT_SIZE);
	second = content_key(NULL, "m|json.a", more, &err);
	assert_string_not_equal(first.key, second.key);
	/* In every item of a list. */
	first = content_key("Records[*].body|json.Message|json.id", NULL, sqs, &err);
	second = content_key(NULL, "Records[*].body|json.Message|json.at", sqs, &err);
	assert_int_equal(first.kind, HAPAX_KEY_MADE);
	assert_int_equal(second.kind, HAPAX_KEY_MADE);
	assert_string_not_equal(first.key, second.key);
}

static void content_without_the_string_has_no_key(void **state)
{
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_key first;
	struct hapax_key second;

	(void)state;
	first = content_key("m|json.a", NULL, "{\"m\":\"{\"}", &err);
	assert_int_equal(first.kind, HAPAX_KEY_NONE);
	assert_non_null(strstr(err.message, "'m' is not JSON"));
	first = content_key("m|json.a", NULL, "{\"m\":{\"a\":1}}", &err);
	assert_int_equal(first.kind, HAPAX_KEY_NONE);
	assert_non_null(strstr(err.message, "'m' is not a string"));
	/* An excluded path need not exist: another string is hashed as it is. */
	first = content_key(NULL, "m|json.a", "{\"m\":\"{\"}", &err);
	second = content_key(NULL, NULL, "{\"m\":\"{\"}", &err);
	assert_string_equal(first.key, second.key);
}

/* The canonical text has one stack for the data and its strings. */
static void levels_are_counted_together(void **state)
{
	static const char *const exclude = "a[0].s|json.x";
	struct hapax_error err = {HAPAX_OK, 0, ""};
	char json[1024];

	(void)state;
	for (size_t levels = 100; levels <= 128; levels++) {
		size_t at = (size_t)snprintf(json, sizeof(json), "{\"a\":[{\"s\":\"");
		struct hapax_key key;

		memset(json + at, '[', levels);
		memset(json + at + levels, ']', levels);
		(void)snprintf(json + at + 2 * levels, sizeof(json) - at - 2 * levels, "\"}]}");
		key = content_key("a[0].s|json", NULL, json, &err);
		/* Three are those of the data. */
		assert_int_equal(
			key.kind,
			levels <= HX_JSON_DEPTH_MAX - 3 ? HAPAX_KEY_MADE : HAPAX_KEY_NONE);
		if (key.kind == HAPAX_KEY_NONE)
			assert_string_equal(
				err.message, "'a[0].s' is JSON with too many levels: limit 128");
		assert_int_equal(content_key(NULL, exclude, json, &err).kind, HAPAX_KEY_MADE);
	}
}

/* Many strings, so that scratch grows between them while parts are held. */
static void parts_outlive_the_growth_of_scratch(void **state)
{
	enum { COUNT = 60, FILL = 3000 };
	static char json[COUNT * (FILL + 64) + 16];
	static char strategy[COUNT * 16];
	char expected[COUNT * 4 + 1];
	size_t at = 0;
	size_t named = (size_t)snprintf(strategy, sizeof(strategy), "composite:");
	size_t made = 0;

	(void)state;
	json[at++] = '{';
	for (int i = 0; i < COUNT; i++) {
		at += (size_t)snprintf(
			json + at, sizeof(json) - at, "%s\"s%d\":\"{\\\"f\\\":[0", i > 0 ? "," : "",
			i);
		for (int j = 0; j < FILL / 2; j++) {
			json[at++] = ',';
			json[at++] = '1';
		}
		at += (size_t)snprintf(json + at, sizeof(json) - at, "],\\\"v\\\":%d}\"", i + 10);
		named += (size_t)snprintf(
			strategy + named, sizeof(strategy) - named, "%ss%d|json.v",
			i > 0 ? "," : "", i);
		made += (size_t)snprintf(
			expected + made, sizeof(expected) - made, "%s%d", i > 0 ? ":" : "", i + 10);
	}
	json[at++] = '}';
	json[at] = '\0';
	assert_string_equal(key_case_of(strategy, json), expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_of_services_have_keys),
		cmocka_unit_test(a_string_is_itself_and_its_json),
		cmocka_unit_test(strings_without_the_value_have_none),
		cmocka_unit_test(texts_that_are_no_path),
		cmocka_unit_test(content_sees_into_strings),
		cmocka_unit_test(content_without_the_string_has_no_key),
		cmocka_unit_test(levels_are_counted_together),
		cmocka_unit_test(parts_outlive_the_growth_of_scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
