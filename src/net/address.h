/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - addresses to listen on or connect to: host and port, or the path of a unix socket.
 *
 * struct hx_endpoint is what people write ("127.0.0.1:8080", "[::1]:0", "localhost:6379",
 * "unix:/run/hapax.sock"); struct hx_address is the kernel's form. The resolver turns host names
 * into addresses.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_NET_ADDRESS_H
#define HX_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

struct hx_url;

enum {
	HX_HOST_SIZE_MAX = 255,      /* RFC 1035 */
	HX_UNIX_PATH_SIZE_MAX = 107, /* sockaddr_un, without its NUL */
	HX_ADDRESS_TEXT_SIZE = 128,  /* room for any address as text */
	HX_ADDRESS_HOST_SIZE = 64,   /* room for its host, in digits */
};

struct hx_address {
	struct sockaddr_storage storage;
	socklen_t size; /* 0: none */
};

struct hx_endpoint {
	bool is_unix;
	uint16_t port;                   /* not for a unix socket */
	char host[HX_HOST_SIZE_MAX + 1]; /* without brackets, or the path */
};

/*
 * Read "host:port", "[v6]:port" or "unix:PATH". A missing port becomes port_default, or is refused
 * if that is negative. INVALID: the message says what is wrong.
 */
enum hapax_status hx_endpoint_parse(
	struct hapax_bytes text, int port_default, struct hx_endpoint *ret_endpoint,
	struct hapax_error *err);

/*
 * The endpoint of "host[:port]" in a URL: percent-encoded, and neither a unix socket nor port 0.
 * There are no error texts: the host may be half of a password that contains a slash.
 */
bool hx_endpoint_from_host(
	struct hapax_bytes host, uint16_t port_default, struct hx_endpoint *ret_endpoint);

/*
 * The endpoint of a URL with a unix socket: scheme:PATH or scheme:///PATH. False: the path is
 * missing, malformed or longer than HX_UNIX_PATH_SIZE_MAX, or does not begin with the third slash.
 */
bool hx_endpoint_from_socket(const struct hx_url *url, struct hx_endpoint *ret_endpoint);

/* The address of an endpoint that needs no resolver: a path, or a host in digits. */
bool hx_endpoint_address(const struct hx_endpoint *endpoint, struct hx_address *ret_address);

/* "127.0.0.1:80", "[::1]:80", "unix:/path"; always ends with a NUL. */
void hx_address_format(const struct hx_address *address, char text[HX_ADDRESS_TEXT_SIZE]);

/* "127.0.0.1", "::1": without the port. Empty for a unix socket. */
void hx_address_host(const struct hx_address *address, char host[HX_ADDRESS_HOST_SIZE]);

/* The same for an endpoint. */
void hx_endpoint_format(const struct hx_endpoint *endpoint, char *text, size_t size);

/*
 * The network of a client, in digits, without port. IPv6: the first 64 bits, since a single machine
 * can choose all the others. IPv4: the address, also from ::ffff:A.B.C.D. Text that is not an
 * address is returned unchanged.
 */
void hx_address_network(const char *client, char text[HX_ADDRESS_TEXT_SIZE]);

/* Reachable from other machines: neither loopback nor a unix socket. */
bool hx_address_is_public(const struct hx_address *address);

#endif
