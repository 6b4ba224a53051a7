/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - addresses of clients as bytes, and networks of them: "10.0.0.0/8".
 *
 * Every address has 16 bytes. An IPv4 address is ::ffff:A.B.C.D, so that it is the same on every
 * socket.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_NET_NETWORK_H
#define HX_NET_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>

enum { HX_IP_SIZE = 16 };

struct hx_network {
	unsigned char ip[HX_IP_SIZE]; /* bits after the first `bits` are 0 */
	unsigned bits;
};

/* Read an address in digits. False: not an address. */
bool hx_network_ip_parse(struct hapax_bytes text, unsigned char ret_ip[HX_IP_SIZE]);

bool hx_network_ip_is_loopback(const unsigned char ip[HX_IP_SIZE]);

/* Read "10.0.0.0/8", "2001:db8::/32" or one address. False: not a network, or has host bits. */
bool hx_network_parse(const char *text, struct hx_network *ret_network);

bool hx_network_has(const struct hx_network *network, const unsigned char ip[HX_IP_SIZE]);

#endif
