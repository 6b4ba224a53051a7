/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of librdkafka in URLs: what is allowed, what is refused, what is shown. */
#include "broker/kafka_property.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

static enum hapax_status check(
	const char *name, const char *value, enum hx_kafka_use use, struct hapax_error *err)
{
	const struct hx_kafka_property property = {name, value};

	return hx_kafka_property_check(&property, use, err);
}

static void what_runs_loads_or_writes_is_refused(void **state)
{
	static const char *const names[] = {
		"sasl.kerberos.kinit.cmd",
		"sasl.kerberos.keytab",
		"sasl.kerberos.principal",
		"sasl.kerberos.service.name",
		"plugin.library.paths",
		"ssl.engine.location",
		"ssl.engine.id",
		"ssl.providers",
		"offset.store.path",
		"offset.store.method",
		"debug",
		"log_level",
		"log.queue",
		"statistics.interval.ms",
		"opaque",
		"error_cb",
		"open_cb",
		"socket_cb",
		"interceptors",
		"test.mock.num.brokers",
		"bootstrap.servers",
		"metadata.broker.list",
		"group.id",
		"enable.auto.commit",
		"enable.auto.offset.store",
		"auto.offset.reset",
		"acks",
		"request.required.acks",
		"enable.idempotence",
		"transactional.id",
		"some.new.cmd",
		"SASL.PASSWORD",
		"sasl.password ",
		"",
	};
	struct hapax_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (int use = HX_KAFKA_USE_SINK; use <= HX_KAFKA_USE_SOURCE; use++) {
			if (check(names[i], "hush", (enum hx_kafka_use)use, &err) !=
			    HAPAX_ERR_INVALID)
				fail_msg("%s was taken", names[i]);
			assert_non_null(strstr(err.message, names[i]));
			assert_null(strstr(err.message, "hush"));
		}
	}
}

static void a_refusal_says_what_helps(void **state)
{
	static const char *const cases[][2] = {
		{"sasl.kerberos.kinit.cmd", "Kerberos runs kinit; use PLAIN"},
		{"plugin.library.paths", "it loads code"},
		{"group.id", "use group=NAME"},
		{"sasl.passwort", "did you mean 'sasl.password'?"},
		{"no.such.property.at.all", "'man hapax' lists"},
	};
	struct hapax_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			check(cases[i][0], "x", HX_KAFKA_USE_SOURCE, &err), HAPAX_ERR_INVALID);
		if (strstr(err.message, cases[i][1]) == NULL)
			fail_msg("%s", err.message);
	}
	assert_int_equal(check("fetch.min.bytes", "1", HX_KAFKA_USE_SINK, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "for sources"));
	assert_int_equal(check("fetch.min.bytes", "1", HX_KAFKA_USE_SOURCE, &err), HAPAX_OK);
}

static void values_are_judged(void **state)
{
	static const struct {
		const char *name, *value;
		bool is_good;
	} cases[] = {
		{"sasl.mechanisms", "PLAIN", true},
		{"sasl.mechanisms", "SCRAM-SHA-256", true},
		{"sasl.mechanism", "SCRAM-SHA-512", true},
		{"sasl.mechanisms", "OAUTHBEARER", true},
		{"sasl.mechanisms", "GSSAPI", false},
		{"sasl.mechanism", "GSSAPI", false},
		{"sasl.mechanisms", "gssapi", false},
		{"sasl.mechanisms", " GSSAPI", false},
		{"sasl.mechanisms", "PLAIN,GSSAPI", false},
		/* For librdkafka, the default: GSSAPI. */
		{"sasl.mechanisms", "", false},
		{"security.protocol", "SASL_SSL", true},
		{"security.protocol", "ssl", true},
		{"security.protocol", "\tsasl_ssl", false},
		{"security.protocol", "", false},
		{"sasl.oauthbearer.method", "oidc", true},
		{"sasl.oauthbearer.method", "exec", false},
		{"sasl.oauthbearer.token.endpoint.url", "https://login/token", true},
		{"sasl.oauthbearer.token.endpoint.url", "file:///etc/shadow", false},
		{"sasl.oauthbearer.token.endpoint.url", "-o/tmp/x", false},
		{"sasl.password", "anything: $(touch x)", true},
	};
	struct hapax_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum hapax_status status =
			check(cases[i].name, cases[i].value, HX_KAFKA_USE_SINK, &err);

		if (status != (cases[i].is_good ? HAPAX_OK : HAPAX_ERR_INVALID))
			fail_msg("%s=%s", cases[i].name, cases[i].value);
		if (status != HAPAX_OK && cases[i].value[0] != '\0')
			assert_null(strstr(err.message, cases[i].value));
	}
}

/* Without a mechanism librdkafka takes GSSAPI, and runs kinit. */
static void sasl_needs_a_mechanism(void **state)
{
	const struct hx_kafka_property properties[] = {
		{"linger.ms", "1"},
		{"security.protocol", "SASL_PLAINTEXT"},
		{"sasl.mechanism", "PLAIN"}};
	const struct hx_kafka_property plain[] = {{"security.protocol", "ssl"}};
	struct hapax_error err;

	(void)state;
	assert_int_equal(hx_kafka_properties_check(properties, 3, &err), HAPAX_OK);
	assert_int_equal(hx_kafka_properties_check(properties, 2, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "sasl.mechanisms"));
	assert_int_equal(hx_kafka_properties_check(plain, 1, &err), HAPAX_OK);
	assert_int_equal(hx_kafka_properties_check(NULL, 0, &err), HAPAX_OK);
}

static void secrets_are_known(void **state)
{
	static const char *const secrets[] = {
		"sasl.password",
		"sasl.oauthbearer.client.secret",
		"sasl.oauthbearer.config",
		"sasl.oauthbearer.extensions",
		"ssl.key.pem",
		"ssl.key.password",
		"ssl.keystore.password",
		"sasl.oauthbearer.token.endpoint.url",
	};
	static const char *const shown[] = {"client.id",       "security.protocol",
					    "ssl.ca.location", "linger.ms",
					    "group",           "warm_up"};
	static const char *const unknown[] = {"sasl.kerberos.keytab", "x", "", "sasl%2Epassword"};

	(void)state;
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		assert_int_equal(
			hx_kafka_property_view(hapax_bytes_from_text(secrets[i])),
			HX_OPTION_SECRET);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		assert_int_equal(
			hx_kafka_property_view(hapax_bytes_from_text(shown[i])), HX_OPTION_SHOWN);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_int_equal(
			hx_kafka_property_view(hapax_bytes_from_text(unknown[i])),
			HX_OPTION_HIDDEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_runs_loads_or_writes_is_refused),
		cmocka_unit_test(a_refusal_says_what_helps),
		cmocka_unit_test(values_are_judged),
		cmocka_unit_test(sasl_needs_a_mechanism),
		cmocka_unit_test(secrets_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
