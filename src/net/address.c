/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.c - convert addresses between text and the kernel's form.
 */
#include "net/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/bytes.h"
#include "base/decimal.h"
#include "base/error.h"
#include "wire/url.h"

_Static_assert(
	HX_UNIX_PATH_SIZE_MAX + 1 == sizeof(((struct sockaddr_un *)0)->sun_path),
	"a path and its NUL fill sun_path");

static const struct hapax_bytes unix_scheme = {"unix:", 5};

static enum hapax_status address_refuse(
	struct hapax_error *err, struct hapax_bytes text, const char *reason)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "invalid address '%.*s': %s", (int)(text.size & 0xff),
		text.size == 0 ? "" : (const char *)text.data, reason);
}

static bool is_printable(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
			return false;
	}
	return true;
}

static enum hapax_status parse_unix(
	struct hapax_bytes text, struct hx_endpoint *ret_endpoint, struct hapax_error *err)
{
	const char *path = (const char *)text.data + unix_scheme.size;
	size_t size = text.size - unix_scheme.size;

	if (size == 0)
		return address_refuse(err, text, "missing path, as in 'unix:/run/hapax.sock'");
	if (size > HX_UNIX_PATH_SIZE_MAX)
		return address_refuse(
			err, text, "the path of a Unix socket must be at most 107 bytes long");
	if (memchr(path, '\0', size) != NULL)
		return address_refuse(err, text, "the path contains a NUL");
	memset(ret_endpoint, 0, sizeof(*ret_endpoint));
	ret_endpoint->is_unix = true;
	memcpy(ret_endpoint->host, path, size);
	return HAPAX_OK;
}

/* Find the end of the host: host[0..*ret_size), then nothing or ":port". */
static bool split_host(
	const char *at, size_t size, const char **ret_host, size_t *ret_size, size_t *ret_rest)
{
	const char *end;

	if (size > 0 && at[0] == '[') {
		end = memchr(at, ']', size);
		if (end == NULL)
			return false;
		*ret_host = at + 1;
		*ret_size = (size_t)(end - at) - 1;
		*ret_rest = (size_t)(end - at) + 1;
		return true;
	}
	end = memchr(at, ':', size);
	*ret_host = at;
	*ret_size = end == NULL ? size : (size_t)(end - at);
	*ret_rest = *ret_size;
	return true;
}

enum hapax_status hx_endpoint_parse(
	struct hapax_bytes text, int port_default, struct hx_endpoint *ret_endpoint,
	struct hapax_error *err)
{
	const char *at = text.data;
	const char *host;
	size_t host_size, rest;
	uint32_t port = 0;

	if (text.size >= unix_scheme.size &&
	    hx_bytes_equal(hx_bytes(text.data, unix_scheme.size), unix_scheme))
		return parse_unix(text, ret_endpoint, err);
	if (text.size == 0 || !split_host(at, text.size, &host, &host_size, &rest))
		return address_refuse(err, text, "use HOST:PORT, [IPV6]:PORT or unix:PATH");
	if (host_size == 0 || host_size > HX_HOST_SIZE_MAX || !is_printable(host, host_size))
		return address_refuse(err, text, "missing or malformed host");
	if (rest == text.size) {
		if (port_default < 0)
			return address_refuse(err, text, "missing port");
		port = (uint32_t)port_default;
	} else if (
		at[rest] != ':' ||
		!hx_decimal_read(at + rest + 1, text.size - rest - 1, UINT16_MAX, &port)) {
		return address_refuse(
			err, text, "the port must be 0 to 65535; write an IPv6 address in [ ]");
	}
	memset(ret_endpoint, 0, sizeof(*ret_endpoint));
	ret_endpoint->port = (uint16_t)port;
	memcpy(ret_endpoint->host, host, host_size);
	return HAPAX_OK;
}

bool hx_endpoint_from_host(
	struct hapax_bytes host, uint16_t port_default, struct hx_endpoint *ret_endpoint)
{
	char text[HX_HOST_SIZE_MAX + 16];

	return hx_url_text(host, text, sizeof(text)) &&
		hx_endpoint_parse(hapax_bytes_from_text(text), port_default, ret_endpoint, NULL) ==
		HAPAX_OK &&
		!ret_endpoint->is_unix && ret_endpoint->port != 0;
}

bool hx_endpoint_from_socket(const struct hx_url *url, struct hx_endpoint *ret_endpoint)
{
	*ret_endpoint = (struct hx_endpoint){.is_unix = true};
	return url->rest.size > 0 &&
		hx_url_text(url->rest, ret_endpoint->host, HX_UNIX_PATH_SIZE_MAX + 1) &&
		(!url->has_authority || ret_endpoint->host[0] == '/');
}

bool hx_endpoint_address(const struct hx_endpoint *endpoint, struct hx_address *ret_address)
{
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(endpoint->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(endpoint->port)};

	memset(ret_address, 0, sizeof(*ret_address));
	if (endpoint->is_unix) {
		size_t size = strlen(endpoint->host);

		assert(size <= HX_UNIX_PATH_SIZE_MAX);
		memcpy(path.sun_path, endpoint->host, size);
		memcpy(&ret_address->storage, &path, sizeof(path));
		ret_address->size = sizeof(path);
	} else if (inet_pton(AF_INET, endpoint->host, &v4.sin_addr) == 1) {
		memcpy(&ret_address->storage, &v4, sizeof(v4));
		ret_address->size = sizeof(v4);
	} else if (inet_pton(AF_INET6, endpoint->host, &v6.sin6_addr) == 1) {
		memcpy(&ret_address->storage, &v6, sizeof(v6));
		ret_address->size = sizeof(v6);
	}
	return ret_address->size != 0;
}

void hx_address_host(const struct hx_address *address, char host[HX_ADDRESS_HOST_SIZE])
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	host[0] = '\0';
	if (address->storage.ss_family == AF_INET) {
		memcpy(&v4, &address->storage, sizeof(v4));
		(void)inet_ntop(AF_INET, &v4.sin_addr, host, HX_ADDRESS_HOST_SIZE);
	} else if (address->storage.ss_family == AF_INET6) {
		memcpy(&v6, &address->storage, sizeof(v6));
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, host, HX_ADDRESS_HOST_SIZE);
	}
}

void hx_endpoint_format(const struct hx_endpoint *endpoint, char *text, size_t size)
{
	if (endpoint->is_unix)
		(void)snprintf(text, size, "unix:%s", endpoint->host);
	else if (strchr(endpoint->host, ':') != NULL)
		(void)snprintf(text, size, "[%s]:%u", endpoint->host, (unsigned)endpoint->port);
	else
		(void)snprintf(text, size, "%s:%u", endpoint->host, (unsigned)endpoint->port);
}

void hx_address_format(const struct hx_address *address, char text[HX_ADDRESS_TEXT_SIZE])
{
	struct sockaddr_un path;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	char host[INET6_ADDRSTRLEN] = "";

	switch (address->storage.ss_family) {
	case AF_UNIX:
		memcpy(&path, &address->storage, sizeof(path));
		(void)snprintf(
			text, HX_ADDRESS_TEXT_SIZE, "unix:%.*s", HX_UNIX_PATH_SIZE_MAX,
			path.sun_path);
		return;
	case AF_INET:
		memcpy(&v4, &address->storage, sizeof(v4));
		(void)inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
		(void)snprintf(text, HX_ADDRESS_TEXT_SIZE, "%s:%u", host, ntohs(v4.sin_port));
		return;
	case AF_INET6:
		memcpy(&v6, &address->storage, sizeof(v6));
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
		(void)snprintf(text, HX_ADDRESS_TEXT_SIZE, "[%s]:%u", host, ntohs(v6.sin6_port));
		return;
	default: (void)snprintf(text, HX_ADDRESS_TEXT_SIZE, "none");
	}
}

void hx_address_network(const char *client, char text[HX_ADDRESS_TEXT_SIZE])
{
	struct in6_addr v6;

	(void)snprintf(text, HX_ADDRESS_TEXT_SIZE, "%s", client);
	if (inet_pton(AF_INET6, client, &v6) != 1)
		return;
	if (IN6_IS_ADDR_V4MAPPED(&v6)) {
		(void)inet_ntop(AF_INET, &v6.s6_addr[12], text, HX_ADDRESS_TEXT_SIZE);
		return;
	}
	memset(&v6.s6_addr[8], 0, 8);
	(void)inet_ntop(AF_INET6, &v6, text, HX_ADDRESS_TEXT_SIZE);
}

bool hx_address_is_public(const struct hx_address *address)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	switch (address->storage.ss_family) {
	case AF_INET:
		memcpy(&v4, &address->storage, sizeof(v4));
		return ntohl(v4.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
	case AF_INET6:
		memcpy(&v6, &address->storage, sizeof(v6));
		if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
			return v6.sin6_addr.s6_addr[12] != IN_LOOPBACKNET;
		return !IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
	default: return false;
	}
}
