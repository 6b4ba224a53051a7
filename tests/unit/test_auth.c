/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is known by what it says, and what it may then do.
 */
#include "serve/admin/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "net/http/http_server.h"
#include "net/tls/tls.h"

/* printf %s reader | sha256sum, and so on. */
#define READER_SHA256 "3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30"
#define WRITER_SHA256 "b93006774cbdd4b299389a03ac3d88c3a76b460d538795bc12718011a909fba5"
#define KEEPER_SHA256 "00aa8942525b763cbe72e4a0fbfbb027b909dd8299e9c6c85c28d3d42d2cc28b"

static const char named[] =
	"auth:\n"
	"  tokens:\n"
	"    - {name: r, hash: 'sha256:" READER_SHA256 "', role: read, tenant: acme}\n"
	"    - {name: w, hash: 'sha256:" WRITER_SHA256 "', role: write}\n"
	"    - {name: a, hash: 'sha256:" KEEPER_SHA256 "', role: admin}\n";

static struct hx_config *config;
static struct hx_http_server server;
static struct hx_http_exchange exchange;

static enum hapax_status load(const char *text, struct hapax_error *err)
{
	struct hapax_bytes bytes = hapax_bytes_from_text(text);
	const struct hx_config_source source = {.text = &bytes};

	hx_config_release(config);
	config = NULL;
	return hx_config_load(&source, &config, NULL, err);
}

static void configure(const char *text)
{
	struct hapax_error err;

	if (load(text, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

static void come_from(const char *client)
{
	server.listener.address.storage.ss_family = client[0] == '\0' ? AF_UNIX : AF_INET6;
	(void)snprintf(exchange.client, sizeof(exchange.client), "%s", client);
}

static void say(const char *field, const char *value)
{
	exchange.head.fields[exchange.head.field_count++] =
		(struct hapax_field){hapax_bytes_from_text(field), hapax_bytes_from_text(value)};
}

static const struct hx_auth_identity *identify(void)
{
	static struct hx_auth_identity identity;

	memset(&identity, 0xa5, sizeof(identity));
	hx_auth_identify(&config->auth, &exchange, &identity);
	exchange.head.field_count = 0;
	return &identity;
}

static const struct hx_auth_identity *identify_as(const char *value)
{
	say("authorization", value);
	return identify();
}

static int init(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	memset(&exchange, 0, sizeof(exchange));
	exchange.server = &server;
	come_from("127.0.0.1");
	return 0;
}

static int done(void **state)
{
	(void)state;
	hx_config_release(config);
	config = NULL;
	return 0;
}

static void nobody_named_lets_this_machine_read(void **state)
{
	static const char *const near[] = {"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", ""};
	static const char *const far[] = {
		"10.0.0.1", "::2", "12.7.0.1", "::ffff:10.0.0.1", "128.0.0.1"};

	(void)state;
	configure("enabled: true\n");
	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		come_from(near[i]);
		assert_int_equal(identify()->role, HX_ROLE_READ);
		/* What cannot be known counts for nothing. */
		assert_int_equal(identify_as("Bearer writer")->role, HX_ROLE_READ);
		assert_true(identify()->is_open);
	}
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		come_from(far[i]);
		assert_int_equal(identify()->role, HX_ROLE_NONE);
	}
	/* An address that could not be told is not this machine's. */
	come_from("x");
	exchange.client[0] = '\0';
	assert_int_equal(identify()->role, HX_ROLE_NONE);
}

static void a_token_has_its_role(void **state)
{
	const struct hx_auth_identity *identity;

	(void)state;
	configure(named);
	identity = identify_as("Bearer reader");
	assert_int_equal(identity->said, HX_AUTH_KNOWN);
	assert_int_equal(identity->role, HX_ROLE_READ);
	assert_string_equal(identity->name, "r");
	assert_string_equal(identity->tenant, "acme");
	assert_false(identity->is_open);
	identity = identify_as("bearer writer");
	assert_int_equal(identity->role, HX_ROLE_WRITE);
	assert_string_equal(identity->name, "w");
	assert_string_equal(identity->tenant, "");
	assert_int_equal(identify_as("Bearer keeper")->role, HX_ROLE_ADMIN);
	/* From wherever. */
	come_from("10.0.0.1");
	assert_int_equal(identify_as("Bearer writer")->role, HX_ROLE_WRITE);
}

static void strangers_have_none(void **state)
{
	static const struct {
		const char *value;
		enum hx_auth_said said;
	} cases[] = {
		{"Bearer write", HX_AUTH_UNKNOWN},
		{"Bearer writerx", HX_AUTH_UNKNOWN},
		{"Bearer Writer", HX_AUTH_UNKNOWN},
		{"Bearer " WRITER_SHA256, HX_AUTH_UNKNOWN},
		{"Basic d3JpdGVy", HX_AUTH_UNREADABLE},
		{"Bearer", HX_AUTH_UNREADABLE},
		{"", HX_AUTH_UNREADABLE},
	};

	(void)state;
	configure(named);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct hx_auth_identity *identity = identify_as(cases[i].value);

		assert_int_equal(identity->said, cases[i].said);
		assert_int_equal(identity->role, HX_ROLE_NONE);
		assert_string_equal(identity->name, "");
	}
	/* Though it is on this machine. */
	assert_int_equal(identify()->role, HX_ROLE_NONE);
	assert_int_equal(identify()->said, HX_AUTH_NOTHING);
}

static void two_credentials_are_none(void **state)
{
	(void)state;
	configure(named);
	say("Authorization", "Bearer reader");
	say("X-Other", "x");
	say("AUTHORIZATION", "Bearer reader");
	assert_int_equal(identify()->said, HX_AUTH_UNREADABLE);
}

/* As TLS has verified it. */
static const struct hx_auth_identity *judge(const char *subject, const char *token)
{
	static struct hx_auth_identity identity;
	struct hx_tls_peer peer = {.subject = ""};

	(void)snprintf(peer.subject, sizeof(peer.subject), "%s", subject);
	hx_sha256(subject, strlen(subject), peer.sha256);
	memset(&identity, 0xa5, sizeof(identity));
	if (token != NULL)
		say("Authorization", token);
	hx_auth_judge(&config->auth, &exchange.head, &peer, true, &identity);
	exchange.head.field_count = 0;
	return &identity;
}

static void a_certificate_has_its_role(void **state)
{
	static const char rows[] =
		"auth:\n"
		"  certificates:\n"
		"    - {name: s, subject: 'CN=keeper', role: read, tenant: acme}\n"
		"    - {name: f, fingerprint: 'sha256:" KEEPER_SHA256 "', role: admin}\n"
		"    - {name: l, subject: 'CN=late', role: write}\n"
		"  tokens:\n"
		"    - {name: r, hash: 'sha256:" READER_SHA256 "', role: read}\n";

	(void)state;
	configure(rows);
	assert_string_equal(judge("CN=keeper", NULL)->name, "s");
	assert_string_equal(judge("CN=keeper", NULL)->tenant, "acme");
	assert_int_equal(judge("keeper", NULL)->role, HX_ROLE_ADMIN);
	assert_int_equal(judge("CN=late", NULL)->role, HX_ROLE_WRITE);
	/* No part of a subject, nor one that is longer, nor none. */
	assert_int_equal(judge("CN=keep", NULL)->said, HX_AUTH_UNNAMED);
	assert_int_equal(judge("CN=keeper,O=x", NULL)->role, HX_ROLE_NONE);
	assert_int_equal(judge("", NULL)->said, HX_AUTH_UNNAMED);
	/* What is said in words counts before it. */
	assert_string_equal(judge("CN=late", "Bearer reader")->name, "r");
	assert_int_equal(judge("CN=late", "Bearer wrong")->said, HX_AUTH_UNKNOWN);
	/* Once one is named, a local address alone does not give access. */
	configure("auth: {certificates: [{name: s, subject: CN=x, role: read}]}\n");
	assert_int_equal(identify()->role, HX_ROLE_NONE);
	assert_false(identify()->is_open);
}

static void a_tenant_limits_it(void **state)
{
	const struct hx_auth_identity *identity;

	(void)state;
	configure(named);
	identity = identify_as("Bearer reader");
	assert_string_equal(identity->tenant, "acme");
	identity = identify_as("Bearer writer");
	assert_string_equal(identity->tenant, "");
}

static void probes_are_open(void **state)
{
	static const char *const open[] = {"/livez", "/readyz", "/healthz", "/startupz"};
	static const char *const shut[] = {
		"/metrics", "/actuator/deduplication", "/", "", "/livez/", "/livezz", "/LIVEZ"};

	(void)state;
	configure(named);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		assert_true(hx_auth_is_open(&config->auth, hapax_bytes_from_text(open[i])));
	for (size_t i = 0; i < sizeof(shut) / sizeof(shut[0]); i++)
		assert_false(hx_auth_is_open(&config->auth, hapax_bytes_from_text(shut[i])));
	configure("auth: {open_metrics: true}\n");
	assert_true(hx_auth_is_open(&config->auth, HX_BYTES_LIT("/metrics")));
	assert_false(hx_auth_is_open(&config->auth, HX_BYTES_LIT("/actuator/deduplication")));
}

static void refuse(const char *text, const char *word)
{
	struct hapax_error err = {.status = HAPAX_OK};

	assert_int_equal(load(text, &err), HAPAX_ERR_INVALID);
	if (strstr(err.message, word) == NULL)
		fail_msg("'%s' does not say '%s'", err.message, word);
}

static void rows_are_checked(void **state)
{
#define ROW(name, digits) "  - {name: " name ", hash: 'sha256:" digits "', role: read}\n"
	(void)state;
	refuse("auth:\n tokens:\n" ROW("x", READER_SHA256) ROW("x", WRITER_SHA256), "twice");
	refuse("auth:\n tokens:\n" ROW("x", READER_SHA256) ROW("y", READER_SHA256), "the same");
	refuse("auth:\n tokens:\n" ROW("x", "abc"), "64 digits");
	refuse("auth:\n tokens:\n  - {name: x, hash: reader, role: read}\n", "64 digits");
	refuse("auth:\n tokens:\n  - {name: x, role: read}\n", "hash");
	refuse("auth:\n tokens:\n  - {name: x, hash: 'sha256:" READER_SHA256 "'}\n", "role");
	refuse("auth:\n tokens:\n  - {name: x, hash: 'sha256:" READER_SHA256 "', role: root}\n",
	       "root");
	refuse("auth: {certificates: [{name: x, role: read}]}\n",
	       "either a fingerprint or a subject");
	refuse("auth: {certificates: [{name: x, role: read, subject: CN=x, fingerprint: 'sha256:" READER_SHA256
	       "'}]}\n",
	       "either a fingerprint or a subject");
	refuse("auth: {certificates: [{name: x, role: read, subject: CN=x}, "
	       "{name: x, role: read, subject: CN=y}]}\n",
	       "twice");
	refuse("auth: {certificates: [{name: x, role: read, subject: CN=x}, "
	       "{name: y, role: read, subject: CN=x}]}\n",
	       "the same");
	refuse("auth:\n certificates: [{name: x, role: read, subject: CN=x}]\n tokens:\n" ROW(
		       "x", READER_SHA256),
	       "twice");
#undef ROW
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_named_lets_this_machine_read, init, done),
		cmocka_unit_test_setup_teardown(a_token_has_its_role, init, done),
		cmocka_unit_test_setup_teardown(strangers_have_none, init, done),
		cmocka_unit_test_setup_teardown(two_credentials_are_none, init, done),
		cmocka_unit_test_setup_teardown(a_certificate_has_its_role, init, done),
		cmocka_unit_test_setup_teardown(a_tenant_limits_it, init, done),
		cmocka_unit_test_setup_teardown(probes_are_open, init, done),
		cmocka_unit_test_setup_teardown(rows_are_checked, init, done),
	};

	return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
