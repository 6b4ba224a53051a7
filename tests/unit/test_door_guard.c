/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which doors may be open to other machines.
 */
#include "serve/daemon/door_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "net/address.h"

#define DIGEST "3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30"
#define TOKENS "auth: {tokens: [{name: t, hash: 'sha256:" DIGEST "', role: read}]}\n"
#define USERS  "resp: {users: [{name: default, password_sha256: " DIGEST "}]}\n"
#define NAMED  "auth: {certificates: [{name: c, subject: CN=c, role: read}]}\n"
#define LISTEN "listen: {gateway: '0.0.0.0:0', resp: '0.0.0.0:0', admin: '0.0.0.0:0'}\n"
#define TLS    "tls: {certificate: c.pem, key: k.pem, client_ca: a.pem, client_auth: "

static void judge(
	const char *text, const char *where, enum hx_config_tls_index index,
	enum hapax_status expected)
{
	struct hapax_bytes bytes = hapax_bytes_from_text(text);
	const struct hx_config_source source = {.text = &bytes};
	struct hx_config *config = NULL;
	struct hx_endpoint endpoint;
	struct hx_address address;
	struct hx_tls_options options;
	struct hapax_error err = {.status = HAPAX_OK};
	bool speaks_tls;

	if (hx_config_load(&source, &config, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	assert_int_equal(
		hx_endpoint_parse(hapax_bytes_from_text(where), -1, &endpoint, &err), HAPAX_OK);
	assert_true(hx_endpoint_address(&endpoint, &address));
	speaks_tls = hx_config_tls_options(config, index, &options);
	assert_int_equal(hx_door_guard(config, index, &address, speaks_tls, NULL, &err), expected);
	if (expected != HAPAX_OK) {
		assert_non_null(strstr(err.message, hx_config_tls_name(index)));
		assert_non_null(strstr(err.message, where));
	}
	hx_config_release(config);
}

static void doors_to_this_machine_are_free(void **state)
{
	static const char *const places[] = {
		"127.0.0.1:80", "127.9.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "unix:/tmp/x"};

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		for (size_t k = 0; k < HX_CONFIG_TLS_DOORS; k++)
			judge(LISTEN, places[i], (enum hx_config_tls_index)k, HAPAX_OK);
	}
}

static void others_must_be_known(void **state)
{
	static const char *const places[] = {
		"0.0.0.0:80", "[::]:80", "192.168.0.1:80", "[2001:db8::1]:80"};

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		judge(LISTEN, places[i], HX_CONFIG_TLS_GATEWAY, HAPAX_OK);
		judge(LISTEN, places[i], HX_CONFIG_TLS_RESP, HAPAX_ERR_INVALID);
		judge(LISTEN, places[i], HX_CONFIG_TLS_ADMIN, HAPAX_ERR_INVALID);
		judge(LISTEN TOKENS USERS, places[i], HX_CONFIG_TLS_RESP, HAPAX_OK);
		judge(LISTEN TOKENS USERS, places[i], HX_CONFIG_TLS_ADMIN, HAPAX_OK);
		judge(LISTEN NAMED, places[i], HX_CONFIG_TLS_ADMIN, HAPAX_OK);
		/* Each by its own. */
		judge(LISTEN TOKENS, places[i], HX_CONFIG_TLS_RESP, HAPAX_ERR_INVALID);
		judge(LISTEN USERS, places[i], HX_CONFIG_TLS_ADMIN, HAPAX_ERR_INVALID);
	}
}

#if HX_HAVE_TLS
/* Encryption alone does not authenticate clients. */
static void certificates_do_if_they_are_required(void **state)
{
	(void)state;
	judge(LISTEN TLS "required}\n", "0.0.0.0:80", HX_CONFIG_TLS_RESP, HAPAX_OK);
	judge(LISTEN TLS "required}\n", "0.0.0.0:80", HX_CONFIG_TLS_ADMIN, HAPAX_OK);
	judge(LISTEN TLS "optional}\n", "0.0.0.0:80", HX_CONFIG_TLS_RESP, HAPAX_ERR_INVALID);
	judge(LISTEN TLS "off}\n", "0.0.0.0:80", HX_CONFIG_TLS_RESP, HAPAX_ERR_INVALID);
	judge(LISTEN TLS "off}\n", "0.0.0.0:80", HX_CONFIG_TLS_ADMIN, HAPAX_ERR_INVALID);
	judge(LISTEN TLS "required, resp: {enabled: false}}\n", "0.0.0.0:80", HX_CONFIG_TLS_RESP,
	      HAPAX_ERR_INVALID);
	judge(LISTEN TLS "required, admin: {client_auth: off}}\n", "0.0.0.0:80",
	      HX_CONFIG_TLS_ADMIN, HAPAX_ERR_INVALID);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doors_to_this_machine_are_free),
		cmocka_unit_test(others_must_be_known),
#if HX_HAVE_TLS
		cmocka_unit_test(certificates_do_if_they_are_required),
#endif
	};

	return cmocka_run_group_tests_name("door_guard", tests, NULL, NULL);
}
