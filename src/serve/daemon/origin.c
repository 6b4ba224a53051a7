/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/origin.h"

#include <string.h>

#include "base/bytes.h"
#include "net/network.h"
#include "wire/http1/http1_text.h"

static bool is_trusted(const struct hx_config_http *http, const unsigned char ip[HX_IP_SIZE])
{
	if (hx_network_ip_is_loopback(ip))
		return true;
	for (size_t i = 0; i < http->trusted_count; i++) {
		if (hx_network_has(&http->trusted[i], ip))
			return true;
	}
	return false;
}

bool hx_origin_is_trusted(const struct hx_config_http *http, const char *client)
{
	unsigned char ip[HX_IP_SIZE];

	return client[0] == '\0' ||
		(hx_network_ip_parse(hapax_bytes_from_text(client), ip) && is_trusted(http, ip));
}

/* "1.2.3.4:80", "[::1]:80", "[::1]": the address alone. */
static struct hapax_bytes without_port(struct hapax_bytes text)
{
	const char *at = text.data;
	const char *end;

	if (text.size == 0)
		return text;
	if (at[0] == '[') {
		end = memchr(at, ']', text.size);
		return end == NULL ? text : hx_bytes(at + 1, (size_t)(end - at) - 1);
	}
	end = memchr(at, ':', text.size);
	/* Two colons: IPv6, without a port. */
	if (end == NULL || memchr(end + 1, ':', text.size - (size_t)(end + 1 - at)) != NULL)
		return text;
	return hx_bytes(at, (size_t)(end - at));
}

/* Cuts the last element off a list, without the blanks around it. */
static struct hapax_bytes take_last(struct hapax_bytes *list)
{
	const char *at = list->data;
	size_t end = list->size;
	size_t begin = end;

	while (begin > 0 && at[begin - 1] != ',')
		begin--;
	list->size = begin > 0 ? begin - 1 : 0;
	while (end > begin && (at[end - 1] == ' ' || at[end - 1] == '\t'))
		end--;
	while (end > begin && (at[begin] == ' ' || at[begin] == '\t'))
		begin++;
	return hx_bytes(at + begin, end - begin);
}

/*
 * The last untrusted address of a list; false: none. An element that is not an address ("unknown")
 * was written by a trusted proxy: all of these count as one.
 */
static bool find_in(
	const struct hx_config_http *http, struct hapax_bytes list,
	char origin[HX_HTTP_CLIENT_SIZE])
{
	while (list.size > 0) {
		struct hapax_bytes text = without_port(take_last(&list));
		unsigned char ip[HX_IP_SIZE];

		if (text.size == 0 || (hx_network_ip_parse(text, ip) && is_trusted(http, ip)))
			continue;
		if (!hx_network_ip_parse(text, ip))
			text = HX_BYTES_LIT("unknown");
		memcpy(origin, text.data, text.size);
		origin[text.size] = '\0';
		return true;
	}
	return false;
}

void hx_origin_find(const struct hx_config_http *http, struct hx_http_exchange *exchange)
{
	static const struct hapax_bytes name = HX_BYTES_LIT("X-Forwarded-For");
	const struct hx_http1_head *head = &exchange->head;

	exchange->is_trusted = hx_origin_is_trusted(http, exchange->client);
	memcpy(exchange->origin, exchange->client, sizeof(exchange->origin));
	if (!exchange->is_trusted)
		return;
	exchange->origin[0] = '\0';
	/* Several fields form one list; the last field is its end. */
	for (size_t i = head->field_count; i > 0; i--) {
		const struct hapax_field *field = &head->fields[i - 1];

		if (hx_http1_text_equal(field->name, name) &&
		    find_in(http, field->value, exchange->origin))
			return;
	}
}

const char *hx_origin_of_failure(const char *client, const char *origin)
{
	unsigned char ip[HX_IP_SIZE];

	if (origin[0] != '\0')
		return origin;
	return hx_network_ip_parse(hapax_bytes_from_text(client), ip) &&
			hx_network_ip_is_loopback(ip)
		? client
		: "";
}
