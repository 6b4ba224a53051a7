/* SPDX-License-Identifier: Apache-2.0 */
#include "net/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/decimal.h"

enum { V4_OFFSET = 12, V4_BITS = 8 * V4_OFFSET, BITS_MAX = 128 };

static const unsigned char v4_prefix[V4_OFFSET] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool hx_network_ip_parse(struct hapax_bytes text, unsigned char ret_ip[HX_IP_SIZE])
{
	char digits[INET6_ADDRSTRLEN];

	if (text.size == 0 || text.size >= sizeof(digits))
		return false;
	memcpy(digits, text.data, text.size);
	digits[text.size] = '\0';
	/*
	 * An embedded NUL would end it early.
	 */
	if (strlen(digits) != text.size)
		return false;
	memcpy(ret_ip, v4_prefix, sizeof(v4_prefix));
	return inet_pton(AF_INET, digits, ret_ip + V4_OFFSET) == 1 ||
		inet_pton(AF_INET6, digits, ret_ip) == 1;
}

bool hx_network_ip_is_loopback(const unsigned char ip[HX_IP_SIZE])
{
	static const unsigned char own[HX_IP_SIZE] = {[HX_IP_SIZE - 1] = 1};

	if (memcmp(ip, v4_prefix, sizeof(v4_prefix)) == 0)
		return ip[V4_OFFSET] == IN_LOOPBACKNET;
	return memcmp(ip, own, sizeof(own)) == 0;
}

static bool bit(const unsigned char ip[HX_IP_SIZE], unsigned index)
{
	return (ip[index / 8] >> (7 - index % 8) & 1) != 0;
}

bool hx_network_parse(const char *text, struct hx_network *ret_network)
{
	const char *slash = strchr(text, '/');
	size_t size = slash == NULL ? strlen(text) : (size_t)(slash - text);
	unsigned base = memchr(text, ':', size) == NULL ? V4_BITS : 0;

	if (!hx_network_ip_parse((struct hapax_bytes){text, size}, ret_network->ip))
		return false;
	ret_network->bits = BITS_MAX - base;
	if (slash != NULL &&
	    !hx_decimal_read(slash + 1, strlen(slash + 1), BITS_MAX - base, &ret_network->bits))
		return false;
	ret_network->bits += base;
	for (unsigned i = ret_network->bits; i < BITS_MAX; i++) {
		if (bit(ret_network->ip, i))
			return false;
	}
	return true;
}

bool hx_network_has(const struct hx_network *network, const unsigned char ip[HX_IP_SIZE])
{
	size_t whole = network->bits / 8;
	unsigned rest = network->bits % 8;

	if (memcmp(network->ip, ip, whole) != 0)
		return false;
	return rest == 0 || (network->ip[whole] ^ ip[whole]) >> (8 - rest) == 0;
}
