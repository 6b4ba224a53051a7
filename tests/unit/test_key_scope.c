/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenant and group of an event. B1.
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

static enum hapax_status make(
	const struct hapax_key_options *options, const struct hapax_event *event,
	struct hapax_key *key, struct hapax_error *err)
{
	struct hapax_key_strategy *strategy = key_case_strategy("field:data.id", options);
	enum hapax_status status = key_case_make(strategy, event, key, err);

	hapax_key_strategy_free(strategy);
	return status;
}

static void the_default_is_default(void **state)
{
	struct hapax_event event = key_case_event("{\"id\":1}");
	struct hapax_key key;

	(void)state;
	assert_int_equal(make(NULL, &event, &key, NULL), HAPAX_OK);
	assert_string_equal(key.tenant, "default");
	assert_int_equal(key.tenant_size, 7);
	assert_string_equal(key.group, "default");
	assert_int_equal(key.group_size, 7);
}

/* B1: from configuration, header or event path. */
static void tenants_come_from_where_they_are_told_to(void **state)
{
	const struct hapax_field headers[] = {{HX_BYTES_LIT("X-Tenant"), HX_BYTES_LIT("globex")}};
	const struct hapax_field meta[] = {{HX_BYTES_LIT("topic"), HX_BYTES_LIT("orders")}};
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_event event = key_case_event("{\"id\":1,\"metadata\":{\"tenantId\":42}}");
	struct hapax_key key;

	(void)state;
	event.headers = headers;
	event.header_count = 1;
	event.meta = meta;
	event.meta_count = 1;
	options.tenant = "acme";
	options.group = "billing";
	assert_int_equal(make(&options, &event, &key, NULL), HAPAX_OK);
	assert_string_equal(key.tenant, "acme");
	assert_string_equal(key.group, "billing");
	options.tenant = NULL;
	options.group = NULL;
	options.tenant_from = "header.x-tenant";
	options.group_from = "meta.topic";
	assert_int_equal(make(&options, &event, &key, NULL), HAPAX_OK);
	assert_string_equal(key.tenant, "globex");
	assert_string_equal(key.group, "orders");
	options.tenant_from = "data.metadata.tenantId";
	assert_int_equal(make(&options, &event, &key, NULL), HAPAX_OK);
	assert_string_equal(key.tenant, "42");
}

/* B1: a missing one is an error, whatever the policy for keys is. */
static void a_missing_tenant_is_an_error(void **state)
{
	static const enum hapax_on_missing policies[] = {
		HAPAX_ON_MISSING_REJECT, HAPAX_ON_MISSING_PASS, HAPAX_ON_MISSING_CONTENT};
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_event event = key_case_event("{\"id\":1,\"t\":null}");
	struct hapax_error err;
	struct hapax_key key;

	(void)state;
	options.tenant_from = "data.t";
	for (size_t i = 0; i < 3; i++) {
		options.on_missing = policies[i];
		assert_int_equal(make(&options, &event, &key, &err), HAPAX_ERR_INVALID);
		assert_string_equal(err.message, "cannot find the tenant: 'data.t' is null");
	}
	options.tenant_from = NULL;
	options.group_from = "header.g";
	assert_int_equal(make(&options, &event, &key, &err), HAPAX_ERR_INVALID);
	assert_string_equal(err.message, "cannot find the group: 'header.g' is missing");
	/* Unless the configuration names one for that case. */
	options.group = "rest";
	assert_int_equal(make(&options, &event, &key, &err), HAPAX_OK);
	assert_string_equal(key.group, "rest");
}

static void names_are_judged(void **state)
{
	static const char *const bad[] = {"", "a/b", "*", "a\\nb", "\\u0085", "hapax"};
	static const char *const reasons[] = {"tenant is empty", "tenant 'a/b' has a slash",
					      "tenant '*' is *", "(U+000A)",
					      "(U+0085)",        "the tenant 'hapax' is reserved"};
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	char json[512];
	struct hapax_error err;
	struct hapax_key key;

	(void)state;
	options.tenant_from = "data.t";
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hapax_event event;

		(void)snprintf(json, sizeof(json), "{\"id\":1,\"t\":\"%s\"}", bad[i]);
		event = key_case_event(json);
		assert_int_equal(make(&options, &event, &key, &err), HAPAX_ERR_INVALID);
		assert_non_null(strstr(err.message, reasons[i]));
	}
	for (int size = 128; size <= 129; size++) {
		struct hapax_event event;

		(void)snprintf(json, sizeof(json), "{\"id\":1,\"t\":\"%0*d\"}", size, 0);
		event = key_case_event(json);
		assert_int_equal(
			make(&options, &event, &key, &err),
			size == 128 ? HAPAX_OK : HAPAX_ERR_INVALID);
	}
	/* A scope is typed as TENANT/GROUP: a group that had a slash could not be. */
	options.tenant_from = NULL;
	options.group_from = "data.g";
	{
		struct hapax_event event = key_case_event("{\"id\":1,\"g\":\"a/b\"}");

		assert_int_equal(make(&options, &event, &key, &err), HAPAX_ERR_INVALID);
		assert_string_equal(
			err.message, "group 'a/b' has a slash, which separates tenant and group");
	}
	options.group_from = NULL;
	options.group = "a/b";
	assert_string_equal(
		key_case_refusal("content", &options),
		"group 'a/b' has a slash, which separates tenant and group");
}

/* A value that is present, but cannot be a name, has no fallback. */
static void what_is_ambiguous_does_not_fall_back(void **state)
{
	const struct hapax_field headers[] = {
		{HX_BYTES_LIT("T"), HX_BYTES_LIT("acme")},
		{HX_BYTES_LIT("t"), HX_BYTES_LIT("globex")}};
	static const struct {
		const char *json;
		const char *message; /* NULL: the fallback is taken */
	} cases[] = {
		{"{\"id\":1}", NULL},
		{"{\"id\":1,\"t\":null}", NULL},
		{"{\"id\":1,\"t\":[\"acme\"]}", "cannot use 'data.t' in a key: it is an array"},
		{"{\"id\":1,\"t\":{}}", "cannot use 'data.t' in a key: it is an object"},
		{"{\"id\":1,\"t\":\"\"}", "tenant is empty"},
		{"{\"id\":1,\"t\":\"a\",\"t\":\"b\"}", "occurs twice"},
	};
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_event event;
	struct hapax_error err;
	struct hapax_key key;

	(void)state;
	options.tenant = "other";
	options.tenant_from = "data.t";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		event = key_case_event(cases[i].json);
		err.message[0] = '\0';
		assert_int_equal(
			make(&options, &event, &key, &err),
			cases[i].message == NULL ? HAPAX_OK : HAPAX_ERR_INVALID);
		if (cases[i].message == NULL)
			assert_string_equal(key.tenant, "other");
		else
			assert_non_null(strstr(err.message, cases[i].message));
	}
	event = key_case_event("{\"id\":1}");
	options.tenant_from = "header.t";
	assert_int_equal(make(&options, &event, &key, &err), HAPAX_OK);
	assert_string_equal(key.tenant, "other");
	event.headers = headers;
	event.header_count = 2;
	assert_int_equal(make(&options, &event, &key, &err), HAPAX_ERR_INVALID);
	assert_string_equal(err.message, "cannot find the tenant: 'header.t' occurs twice");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_is_default),
		cmocka_unit_test(tenants_come_from_where_they_are_told_to),
		cmocka_unit_test(a_missing_tenant_is_an_error),
		cmocka_unit_test(names_are_judged),
		cmocka_unit_test(what_is_ambiguous_does_not_fall_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
