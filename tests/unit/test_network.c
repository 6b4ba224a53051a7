/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "net/network.h"

static void addresses_are_read(void **state)
{
	static const char *const none[] = {
		"", "1.2.3", "1.2.3.4.5", "x", "1.2.3.4 ", "01.2.3.4", "::1%lo", ":::"};
	unsigned char a[HX_IP_SIZE], b[HX_IP_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(hx_network_ip_parse(hapax_bytes_from_text(none[i]), a));
	assert_false(hx_network_ip_parse(hx_bytes("1.2.3.4\0", 8), a));
	assert_true(hx_network_ip_parse(HX_BYTES_LIT("1.2.3.4"), a));
	assert_true(hx_network_ip_parse(HX_BYTES_LIT("::ffff:1.2.3.4"), b));
	assert_memory_equal(a, b, sizeof(a));
	assert_false(hx_network_ip_is_loopback(a));
	assert_true(
		hx_network_ip_parse(HX_BYTES_LIT("127.8.9.1"), a) && hx_network_ip_is_loopback(a));
	assert_true(
		hx_network_ip_parse(HX_BYTES_LIT("::ffff:127.0.0.1"), a) &&
		hx_network_ip_is_loopback(a));
	assert_true(hx_network_ip_parse(HX_BYTES_LIT("::1"), a) && hx_network_ip_is_loopback(a));
	assert_true(hx_network_ip_parse(HX_BYTES_LIT("::2"), a) && !hx_network_ip_is_loopback(a));
}

static void networks_have_addresses(void **state)
{
	static const struct {
		const char *network;
		const char *ip;
		bool has;
	} cases[] = {
		{"10.0.0.0/8", "10.255.1.2", true},
		{"10.0.0.0/8", "11.0.0.0", false},
		{"10.0.0.0/8", "::ffff:10.1.1.1", true},
		{"192.168.4.0/22", "192.168.7.255", true},
		{"192.168.4.0/22", "192.168.8.0", false},
		{"1.2.3.4", "1.2.3.4", true},
		{"1.2.3.4", "1.2.3.5", false},
		{"1.2.3.4/32", "1.2.3.5", false},
		{"0.0.0.0/0", "8.8.8.8", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"::/0", "2001:db8::1", true},
		{"2001:db8::/33", "2001:db8:7fff::1", true},
		{"2001:db8::/33", "2001:db8:8000::1", false},
	};
	static const char *const none[] = {"",
					   "10.0.0.0/33",
					   "10.0.0.0/",
					   "10.0.0.0/08",
					   "10.0.0.0/-1",
					   "10.0.0.0/8x",
					   "10.0.0.1/8",
					   "host",
					   "/8",
					   "2001:db8::/129",
					   "2001:db8::1/64",
					   "10.0.0.0/0008"};
	struct hx_network network;
	unsigned char ip[HX_IP_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(hx_network_parse(cases[i].network, &network));
		assert_true(hx_network_ip_parse(hapax_bytes_from_text(cases[i].ip), ip));
		assert_int_equal(hx_network_has(&network, ip), cases[i].has);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(hx_network_parse(none[i], &network));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_read),
		cmocka_unit_test(networks_have_addresses),
	};

	return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
