/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "net/address.h"

static struct hapax_bytes bytes_of(const char *text)
{
	return hx_bytes(text, strlen(text));
}

static void endpoints_are_read(void **state)
{
	static const struct {
		const char *text;
		int port_default;
		const char *host;
		int port;
		bool is_unix;
		const char *again;
	} cases[] = {
		{"127.0.0.1:8080", -1, "127.0.0.1", 8080, false, "127.0.0.1:8080"},
		{"localhost", 6379, "localhost", 6379, false, "localhost:6379"},
		{"localhost:0", 6379, "localhost", 0, false, "localhost:0"},
		{"[::1]:65535", -1, "::1", 65535, false, "[::1]:65535"},
		{"[fe80::1]", 80, "fe80::1", 80, false, "[fe80::1]:80"},
		{"unix:/run/x.sock", -1, "/run/x.sock", 0, true, "unix:/run/x.sock"},
		{"unix:x:y", -1, "x:y", 0, true, "unix:x:y"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_endpoint endpoint;
		char text[300];

		assert_int_equal(
			hx_endpoint_parse(
				bytes_of(cases[i].text), cases[i].port_default, &endpoint, NULL),
			HAPAX_OK);
		assert_string_equal(endpoint.host, cases[i].host);
		assert_int_equal(endpoint.port, cases[i].port);
		assert_int_equal(endpoint.is_unix, cases[i].is_unix);
		hx_endpoint_format(&endpoint, text, sizeof(text));
		assert_string_equal(text, cases[i].again);
	}
}

static void bad_endpoints_are_refused(void **state)
{
	static const char *const bad[] = {
		"",         ":80",      "host",  "host:",   "host:65536", "h:1x",
		"h:-1",     "h:+1",     "h: 1",  "h:01",    "::1:80",     "[::1",
		"[::1]80",  "[::1]:",   "[]:80", "unix:",   "ho st:80",   "host:80 ",
		"h:999999", "h\x01:80", "h:1:2", "h\x7f:1",
	};
	char long_path[200] = "unix:";
	char long_host[400];
	struct hx_endpoint endpoint;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hapax_error err = {0};

		assert_int_equal(
			hx_endpoint_parse(bytes_of(bad[i]), -1, &endpoint, &err),
			HAPAX_ERR_INVALID);
		assert_true(err.message[0] != '\0');
	}
	memset(long_path + 5, 'p', 108);
	assert_int_equal(
		hx_endpoint_parse(hx_bytes(long_path, 113), -1, &endpoint, NULL),
		HAPAX_ERR_INVALID);
	assert_int_equal(
		hx_endpoint_parse(hx_bytes(long_path, 112), -1, &endpoint, NULL), HAPAX_OK);
	memset(long_host, 'h', sizeof(long_host));
	assert_int_equal(
		hx_endpoint_parse(hx_bytes(long_host, 256), 1, &endpoint, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(
		hx_endpoint_parse(hx_bytes("unix:a\0b", 8), 1, &endpoint, NULL), HAPAX_ERR_INVALID);
}

static void addresses_come_back(void **state)
{
	static const struct {
		const char *text;
		bool is_numeric;
		bool is_public;
	} cases[] = {
		{"127.0.0.1:80", true, false},
		{"127.9.9.9:80", true, false},
		{"0.0.0.0:80", true, true},
		{"10.0.0.1:80", true, true},
		{"[::1]:80", true, false},
		{"[::]:80", true, true},
		{"[::ffff:127.0.0.1]:80", true, false},
		{"[::ffff:10.0.0.1]:80", true, true},
		{"unix:/run/x.sock", true, false},
		{"localhost:80", false, false},
		{"256.0.0.1:80", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_endpoint endpoint;
		struct hx_address address;
		char text[HX_ADDRESS_TEXT_SIZE];
		char host[HX_ADDRESS_HOST_SIZE];

		assert_int_equal(
			hx_endpoint_parse(bytes_of(cases[i].text), -1, &endpoint, NULL), HAPAX_OK);
		assert_int_equal(hx_endpoint_address(&endpoint, &address), cases[i].is_numeric);
		if (!cases[i].is_numeric)
			continue;
		hx_address_format(&address, text);
		assert_string_equal(text, cases[i].text);
		hx_address_host(&address, host);
		assert_string_equal(host, endpoint.is_unix ? "" : endpoint.host);
		assert_int_equal(hx_address_is_public(&address), cases[i].is_public);
	}
}

static void a_client_is_counted_by_its_network(void **state)
{
	static const char *const clients[][2] = {
		{"127.0.0.1", "127.0.0.1"},
		{"::1", "::"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"2001:db8:1:2::9", "2001:db8:1:2::"},
		{"2001:db8:1:3::9", "2001:db8:1:3::"},
		{"::ffff:10.1.2.3", "10.1.2.3"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		char text[HX_ADDRESS_TEXT_SIZE];

		hx_address_network(clients[i][0], text);
		assert_string_equal(text, clients[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoints_are_read),
		cmocka_unit_test(bad_endpoints_are_refused),
		cmocka_unit_test(addresses_come_back),
		cmocka_unit_test(a_client_is_counted_by_its_network),
	};

	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
