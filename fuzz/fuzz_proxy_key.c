/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: from the head of a request to its key (src/serve/http/proxy_key.c), with the cookies
 * that say who asks.
 *
 * The first byte chooses the route. Whatever is read as a head has a key or none, the same
 * each time; the key ends as its field is read, and another certificate, method or path
 * makes another one, a path in its one form the same.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "config/config.h"
#include "serve/http/proxy_key.h"
#include "wire/http1/http1.h"
#include "wire/http1/http_path.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static const char *const cookies[] = {"session", "device"};

static const struct hx_config_proxy_route routes[] = {
	{.header = "Idempotency-Key",
	 .credential = "auto",
	 .credential_cookies = cookies,
	 .credential_cookie_count = 2},
	{.header = "Idempotency-Key", .credential = "header:X-User"},
	{.header = "Idempotency-Key", .credential = "none"},
};

static struct hx_http1_head head;

static enum hx_proxy_key_end read_key(
	const struct hx_config_proxy_route *route, struct hapax_bytes certificate,
	struct hx_proxy_key *key)
{
	static struct hx_sha256 sha;
	struct hapax_error err;

	if (sha.context == NULL)
		must(hx_sha256_init(&sha) == HAPAX_OK);
	return hx_proxy_key_read(route, &head, certificate, &sha, key, &err);
}

static void check_field(const struct hx_proxy_key *key)
{
	size_t index = hx_http1_find(&head, HX_BYTES_LIT("Idempotency-Key"), 0);
	char why[HX_UTF8_FAULT_SIZE];
	char field[HX_SFSTRING_MAX];
	size_t size;

	must(index < head.field_count);
	must(hx_sfstring_read(head.fields[index].value, field, &size, NULL) == HAPAX_OK);
	must(key->size == HX_PROXY_OPERATION_DIGITS + 1 + size);
	must(memcmp(key->text + HX_PROXY_OPERATION_DIGITS + 1, field, size) == 0);
	must(key->text[HX_PROXY_OPERATION_DIGITS] == '/');
	must(!hx_utf8_fault(hx_bytes(key->text, key->size), HX_PROXY_KEY_MAX, why));
}

static bool differ(const struct hx_proxy_key *a, const struct hx_proxy_key *b)
{
	return memcmp(a->text, b->text, HX_PROXY_OPERATION_DIGITS) != 0;
}

/* The form of the loosest reader has no other: a reader of it finds nothing more to decode. */
static void check_loosest(struct hapax_bytes path)
{
	char space[HX_HTTP1_LINE_MAX];
	char again_space[HX_HTTP1_LINE_MAX];
	const char *fault;
	struct hapax_bytes loosest = hx_http_path_loosest(path, space, &fault);
	struct hapax_bytes again;

	must(loosest.size <= path.size);
	if (fault != NULL || loosest.size == 0 || ((const char *)loosest.data)[0] != '/')
		return;
	must(memmem(loosest.data, loosest.size, "/..", 3) == NULL ||
	     memmem(loosest.data, loosest.size, "/../", 4) == NULL);
	must(memchr(loosest.data, ';', loosest.size) == NULL);
	must(memchr(loosest.data, '\\', loosest.size) == NULL);
	/* A percent sign that is left has no digits behind it. */
	if (memchr(loosest.data, '%', loosest.size) != NULL)
		return;
	again = hx_http_path_loosest(loosest, again_space, &fault);
	must(fault == NULL && hx_bytes_equal(again, loosest));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const struct hx_config_proxy_route *route;
	struct hx_proxy_key key;
	struct hx_proxy_key other;
	struct hx_http1_event event;
	struct hx_http1 http;
	enum hx_proxy_key_end end;
	struct hapax_bytes path;
	struct hapax_bytes query;
	char space[HX_HTTP1_LINE_MAX];

	if (size == 0)
		return 0;
	route = &routes[data[0] % (sizeof(routes) / sizeof(routes[0]))];
	hx_http1_init(&http, HX_HTTP1_SERVER, NULL);
	if (hx_http1_next(&http, hx_bytes(data + 1, size - 1), &head, &event, NULL) != HAPAX_OK ||
	    event.type != HX_HTTP1_HEAD)
		return 0;
	end = read_key(route, hx_bytes(NULL, 0), &key);
	must(read_key(route, hx_bytes(NULL, 0), &other) == end);
	if (end == HX_PROXY_KEY_NO_CREDENTIAL) {
		must(route == &routes[0]);
		must(read_key(route, HX_BYTES_LIT("certificate"), &other) == HX_PROXY_KEY_FOUND);
	}
	if (end != HX_PROXY_KEY_FOUND)
		return 0;
	must(!differ(&key, &other));
	check_field(&key);
	/* A certificate counts beside whatever else there is. */
	must(read_key(route, HX_BYTES_LIT("certificate"), &other) == end);
	must(differ(&key, &other) == (route == &routes[0]));
	path = hx_http_path_split(head.path, &query);
	head.path = hx_proxy_key_path(path, space);
	must(head.path.size <= path.size);
	must(read_key(route, hx_bytes(NULL, 0), &other) == end && !differ(&key, &other));
	check_loosest(path);
	head.method = HX_BYTES_LIT("another");
	must(read_key(route, hx_bytes(NULL, 0), &other) == end && differ(&key, &other));
	return 0;
}
