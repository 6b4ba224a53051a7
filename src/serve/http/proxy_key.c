/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/proxy_key.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "config/config.h"
#include "net/http/http_body.h"
#include "wire/http1/http1.h"
#include "wire/http1/http1_text.h"
#include "wire/http1/http_path.h"
#include "wire/percent.h"

enum { PIECE_SIZE = 16 * 1024 };

struct hapax_bytes hx_proxy_key_path(struct hapax_bytes path, char space[HX_HTTP1_LINE_MAX])
{
	/* A line is not longer; most paths need no change. */
	if (path.size == 0 || path.size > HX_HTTP1_LINE_MAX ||
	    memchr(path.data, '%', path.size) == NULL)
		return path;
	return hx_bytes(space, hx_percent_normalize(path, space));
}

static void add_size(struct hx_sha256 *sha, uint64_t size)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(size >> (8 * i));
	hx_sha256_update(sha, bytes, sizeof(bytes));
}

/* The length prefix makes "ab", "c" differ from "a", "bc". */
static void add(struct hx_sha256 *sha, struct hapax_bytes part)
{
	add_size(sha, part.size);
	hx_sha256_update(sha, part.data, part.size);
}

/* Splits "host:port"; port is empty if there is none. */
static void split_authority(
	struct hapax_bytes authority, struct hapax_bytes *ret_host, struct hapax_bytes *ret_port)
{
	const char *begin = authority.data;
	const char *colon = authority.size == 0 ? NULL : memrchr(begin, ':', authority.size);
	size_t host_size = colon == NULL ? authority.size : (size_t)(colon - begin);
	size_t rest = authority.size - host_size;

	/* A colon within brackets belongs to an address. */
	if (colon == NULL || memchr(colon, ']', rest) != NULL) {
		*ret_host = authority;
		*ret_port = hx_bytes(NULL, 0);
	} else {
		*ret_host = hx_bytes(begin, host_size);
		*ret_port = hx_bytes(colon + 1, rest - 1);
	}
}

/*
 * Host names are equal regardless of case, trailing dot and default port. Both default ports count:
 * TLS may end before the request gets here.
 */
static void add_authority(struct hx_sha256 *sha, struct hapax_bytes authority)
{
	struct hapax_bytes host;
	struct hapax_bytes port;
	const unsigned char *at;

	split_authority(authority, &host, &port);
	at = host.data;
	if (host.size > 1 && at[host.size - 1] == '.')
		host.size--;
	if (hx_bytes_equal(port, HX_BYTES_LIT("80")) || hx_bytes_equal(port, HX_BYTES_LIT("443")))
		port.size = 0;
	add_size(sha, host.size + (port.size > 0 ? 1 + port.size : 0));
	for (size_t i = 0; i < host.size; i++) {
		unsigned char byte = at[i];

		if (byte >= 'A' && byte <= 'Z')
			byte |= 0x20;
		hx_sha256_update(sha, &byte, 1);
	}
	if (port.size > 0) {
		hx_sha256_update(sha, ":", 1);
		hx_sha256_update(sha, port.data, port.size);
	}
}

/* INVALID: Connection names it, so it would not reach the upstream. */
static enum hapax_status check_hop(
	const struct hx_http1_head *head, struct hapax_bytes name, struct hapax_error *err)
{
	if (!hx_http1_is_hop(head, name))
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"Connection names the header '%.*s'; send it as an end-to-end header",
		(int)name.size, (const char *)name.data);
}

/*
 * The only field with that name; *ret_index is field_count if there is none. INVALID: there are
 * several, or it would not reach the upstream, which would see a different request.
 */
static enum hapax_status find_only(
	const struct hx_http1_head *head, struct hapax_bytes name, size_t *ret_index,
	struct hapax_error *err)
{
	size_t index = hx_http1_find(head, name, 0);

	*ret_index = index;
	if (index == head->field_count)
		return HAPAX_OK;
	if (hx_http1_find(head, name, index + 1) < head->field_count)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the header '%.*s' occurs twice", (int)name.size,
			(const char *)name.data);
	return check_hop(head, name, err);
}

/* The next of "a=b; c=d". False: none is left. */
static bool next_cookie(
	struct hapax_bytes *rest, struct hapax_bytes *ret_name, struct hapax_bytes *ret_value)
{
	while (rest->size > 0) {
		const char *at = rest->data;
		const char *end = memchr(at, ';', rest->size);
		size_t size = end == NULL ? rest->size : (size_t)(end - at);
		const char *equals = size == 0 ? NULL : memchr(at, '=', size);

		*rest = hx_bytes(at + size, rest->size - size);
		if (rest->size > 0)
			*rest = hx_bytes(at + size + 1, rest->size - 1);
		if (equals == NULL)
			continue;
		*ret_name = hx_http1_trim(hx_bytes(at, (size_t)(equals - at)));
		*ret_value = hx_http1_trim(hx_bytes(equals + 1, size - (size_t)(equals - at) - 1));
		return true;
	}
	return false;
}

/*
 * Fields that carry client credentials, in the order in which they are hashed; hapax.yaml lists
 * them. A field whose value changes between requests must not be here: each retry would have a new
 * key.
 */
static const struct hapax_bytes credential_fields[] = {
	HX_BYTES_LIT("Authorization"),
	HX_BYTES_LIT("X-API-Key"),
	HX_BYTES_LIT("X-API-Token"),
	HX_BYTES_LIT("X-API-Secret"),
	HX_BYTES_LIT("Api-Key"),
	HX_BYTES_LIT("ApiKey"),
	HX_BYTES_LIT("Api-Token"),
	HX_BYTES_LIT("Access-Token"),
	HX_BYTES_LIT("X-Auth-Token"),
	HX_BYTES_LIT("X-Auth-Key"),
	HX_BYTES_LIT("X-Access-Token"),
	HX_BYTES_LIT("X-Session-Token"),
	HX_BYTES_LIT("X-User-Token"),
	HX_BYTES_LIT("X-Client-Secret"),
	HX_BYTES_LIT("X-Token"),
	HX_BYTES_LIT("X-Goog-Api-Key"),
	HX_BYTES_LIT("Ocp-Apim-Subscription-Key"),
	HX_BYTES_LIT("X-Functions-Key"),
	HX_BYTES_LIT("X-Shopify-Access-Token"),
	HX_BYTES_LIT("X-RapidAPI-Key"),
	HX_BYTES_LIT("X-Vault-Token"),
	HX_BYTES_LIT("Private-Token"),
	HX_BYTES_LIT("Job-Token"),
	HX_BYTES_LIT("DD-API-KEY"),
	HX_BYTES_LIT("PLAID-SECRET"),
};
enum { CREDENTIAL_FIELDS = HX_COUNT(credential_fields) };
static_assert(CREDENTIAL_FIELDS <= 32, "find_credentials() has a bit for each");

/* A bit for each of credential_fields that has a value in the head. */
static uint32_t find_credentials(const struct hx_http1_head *head)
{
	uint32_t found = 0;

	for (size_t i = 0; i < head->field_count; i++) {
		if (head->fields[i].value.size == 0)
			continue;
		for (size_t k = 0; k < CREDENTIAL_FIELDS; k++) {
			if (hx_http1_text_equal(head->fields[i].name, credential_fields[k]))
				found |= UINT32_C(1) << k;
		}
	}
	return found;
}

/* Every non-empty value of the field, each after the field's name. */
static void add_values(
	struct hx_sha256 *sha, const struct hx_http1_head *head, struct hapax_bytes name)
{
	for (size_t i = hx_http1_find(head, name, 0); i < head->field_count;
	     i = hx_http1_find(head, name, i + 1)) {
		if (head->fields[i].value.size == 0)
			continue;
		add(sha, name);
		add(sha, head->fields[i].value);
	}
}

/*
 * The credential fields of the head. INVALID: Authorization occurs twice, or a field would not
 * reach the upstream, which would run the request for a different client.
 */
static enum hapax_status add_fields(
	struct hx_sha256 *sha, const struct hx_http1_head *head, bool *ret_is_there,
	struct hapax_error *err)
{
	uint32_t found = find_credentials(head);
	size_t index;
	enum hapax_status status = find_only(head, credential_fields[0], &index, err);

	for (size_t i = 0; i < CREDENTIAL_FIELDS && status == HAPAX_OK; i++) {
		struct hapax_bytes name = credential_fields[i];

		if ((found >> i & 1) == 0)
			continue;
		status = check_hop(head, name, err);
		if (status == HAPAX_OK)
			add_values(sha, head, name);
	}
	*ret_is_there = found != 0;
	return status;
}

/* Every non-empty value of the cookie. False: it has none. */
static bool add_cookie(
	struct hx_sha256 *sha, const struct hx_http1_head *head, struct hapax_bytes wanted)
{
	static const struct hapax_bytes field = HX_BYTES_LIT("Cookie");
	bool is_there = false;

	for (size_t i = hx_http1_find(head, field, 0); i < head->field_count;
	     i = hx_http1_find(head, field, i + 1)) {
		struct hapax_bytes rest = head->fields[i].value;
		struct hapax_bytes name;
		struct hapax_bytes value;

		while (next_cookie(&rest, &name, &value)) {
			if (value.size == 0 || !hx_bytes_equal(name, wanted))
				continue;
			add(sha, field);
			add(sha, name);
			add(sha, value);
			is_there = true;
		}
	}
	return is_there;
}

/* The cookies that the route names. INVALID: they would not reach the upstream. */
static enum hapax_status add_cookies(
	struct hx_sha256 *sha, const struct hx_config_proxy_route *route,
	const struct hx_http1_head *head, bool *ret_is_there, struct hapax_error *err)
{
	static const struct hapax_bytes field = HX_BYTES_LIT("Cookie");
	enum hapax_status status;

	*ret_is_there = false;
	if (route->credential_cookie_count == 0 ||
	    hx_http1_find(head, field, 0) == head->field_count)
		return HAPAX_OK;
	status = check_hop(head, field, err);
	for (size_t i = 0; i < route->credential_cookie_count && status == HAPAX_OK; i++)
		*ret_is_there |=
			add_cookie(sha, head, hapax_bytes_from_text(route->credential_cookies[i]));
	return status;
}

/* A principal that a trusted proxy sets. A request without one bypassed that proxy. */
static enum hapax_status add_principal(
	struct hx_sha256 *sha, const struct hx_http1_head *head, struct hapax_bytes name,
	struct hapax_error *err)
{
	size_t index;
	enum hapax_status status = find_only(head, name, &index, err);

	if (status != HAPAX_OK)
		return status;
	if (index == head->field_count || head->fields[index].value.size == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the header '%.*s' is %s", (int)name.size,
			(const char *)name.data, index == head->field_count ? "missing" : "empty");
	add(sha, HX_BYTES_LIT("header"));
	add(sha, name);
	add(sha, head->fields[index].value);
	return HAPAX_OK;
}

/*
 * All credentials of the request. Each follows its name, so that a cookie never equals a password.
 * An empty name ends them, so that no other set has the same bytes.
 */
static enum hx_proxy_key_end add_all(
	struct hx_sha256 *sha, const struct hx_config_proxy_route *route,
	const struct hx_http1_head *head, struct hapax_bytes certificate, struct hapax_error *err)
{
	bool has_field;
	bool has_cookie;

	if (add_fields(sha, head, &has_field, err) != HAPAX_OK ||
	    add_cookies(sha, route, head, &has_cookie, err) != HAPAX_OK)
		return HX_PROXY_KEY_WHOSE_IS_UNKNOWN;
	if (certificate.size > 0) {
		add(sha, HX_BYTES_LIT("certificate"));
		add(sha, certificate);
	}
	add(sha, HX_BYTES_LIT(""));
	return has_field || has_cookie || certificate.size > 0 ? HX_PROXY_KEY_FOUND
							       : HX_PROXY_KEY_NO_CREDENTIAL;
}

static enum hx_proxy_key_end add_credential(
	struct hx_sha256 *sha, const struct hx_config_proxy_route *route,
	const struct hx_http1_head *head, struct hapax_bytes certificate, struct hapax_error *err)
{
	static const char prefix[] = "header:";
	struct hapax_bytes name;

	if (strcmp(route->credential, "none") == 0) {
		add(sha, HX_BYTES_LIT("none"));
		return HX_PROXY_KEY_FOUND;
	}
	if (strncmp(route->credential, prefix, sizeof(prefix) - 1) != 0)
		return add_all(sha, route, head, certificate, err);
	name = hapax_bytes_from_text(route->credential + sizeof(prefix) - 1);
	return add_principal(sha, head, name, err) == HAPAX_OK ? HX_PROXY_KEY_FOUND
							       : HX_PROXY_KEY_WHOSE_IS_UNKNOWN;
}

static enum hx_proxy_key_end read_field(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head, char *out,
	size_t *ret_size, struct hapax_error *err)
{
	size_t index;

	if (find_only(head, hapax_bytes_from_text(route->header), &index, err) != HAPAX_OK)
		return HX_PROXY_KEY_INVALID;
	if (index == head->field_count)
		return HX_PROXY_KEY_MISSING;
	if (hx_sfstring_read(head->fields[index].value, out, ret_size, err) != HAPAX_OK)
		return HX_PROXY_KEY_INVALID;
	return HX_PROXY_KEY_FOUND;
}

/* Puts the operation before the client's own key, which stands behind its place. */
static enum hx_proxy_key_end add_operation(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes certificate, size_t own_size, struct hx_sha256 *sha,
	struct hx_proxy_key *ret_key, struct hapax_error *err)
{
	unsigned char digest[HX_SHA256_SIZE];
	char space[HX_HTTP1_LINE_MAX];
	struct hapax_bytes path;
	struct hapax_bytes query;
	enum hx_proxy_key_end end;

	hx_sha256_reset(sha);
	end = add_credential(sha, route, head, certificate, err);
	if (end != HX_PROXY_KEY_FOUND)
		return end;
	path = hx_http_path_split(head->path, &query);
	add(sha, head->method);
	add_authority(sha, head->authority);
	add(sha, hx_proxy_key_path(path, space));
	hx_sha256_final(sha, digest);
	hx_hex_encode(digest, HX_PROXY_OPERATION_DIGITS / 2, ret_key->text);
	ret_key->text[HX_PROXY_OPERATION_DIGITS] = '/';
	ret_key->size = HX_PROXY_OPERATION_DIGITS + 1 + own_size;
	return HX_PROXY_KEY_FOUND;
}

enum hx_proxy_key_end hx_proxy_key_read(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes certificate, struct hx_sha256 *sha, struct hx_proxy_key *ret_key,
	struct hapax_error *err)
{
	char *field = ret_key->text + HX_PROXY_OPERATION_DIGITS + 1;
	size_t size;
	enum hx_proxy_key_end end = read_field(route, head, field, &size, err);

	if (end != HX_PROXY_KEY_FOUND)
		return end;
	return add_operation(route, head, certificate, size, sha, ret_key, err);
}

/* The body of a file, in pieces. */
static enum hapax_status add_file(
	struct hx_sha256 *sha, const struct hx_http_body *body, struct hapax_error *err)
{
	unsigned char piece[PIECE_SIZE];
	enum hapax_status status = HAPAX_OK;

	for (uint64_t at = 0; at < body->size && status == HAPAX_OK;) {
		uint64_t left = body->size - at;
		size_t size = left < sizeof(piece) ? (size_t)left : sizeof(piece);

		status = hx_http_body_read(body, at, piece, size, err);
		if (status == HAPAX_OK)
			hx_sha256_update(sha, piece, size);
		at += size;
	}
	return status;
}

/*
 * The fields that select an account, as the upstream gets them: a field that Connection names is
 * removed. An empty name ends them.
 */
static void add_account(
	struct hx_sha256 *sha, const struct hx_config_proxy_route *route,
	const struct hx_http1_head *head)
{
	for (size_t i = 0; i < route->fingerprint_header_count; i++) {
		struct hapax_bytes name = hapax_bytes_from_text(route->fingerprint_headers[i]);

		if (hx_http1_find(head, name, 0) < head->field_count &&
		    !hx_http1_is_hop(head, name))
			add_values(sha, head, name);
	}
	add(sha, HX_BYTES_LIT(""));
}

/* Everything but the body. */
static void begin_fingerprint(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hx_sha256 *sha)
{
	struct hapax_bytes query;
	size_t path_size = hx_http_path_split(head->path, &query).size;

	hx_sha256_reset(sha);
	/* The query with its "?": "/a?" is a different request from "/a". */
	add(sha, hx_bytes((const char *)head->path.data + path_size, head->path.size - path_size));
	add(sha, hx_http1_known(head, HX_HTTP1_CONTENT_TYPE));
	add_account(sha, route, head);
}

enum hapax_status hx_proxy_key_fingerprint(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	const struct hx_http_body *body, struct hx_sha256 *sha,
	unsigned char ret[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	begin_fingerprint(route, head, sha);
	add_size(sha, body->size);
	if (hx_http_body_is_in_memory(body))
		hx_sha256_update(sha, body->memory.data, body->memory.size);
	else
		status = add_file(sha, body, err);
	if (status == HAPAX_OK)
		hx_sha256_final(sha, ret);
	return status;
}

enum hx_proxy_key_end hx_proxy_key_complete(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes certificate, const struct hapax_key *own, struct hx_sha256 *sha,
	struct hx_proxy_key *ret_key, struct hapax_error *err)
{
	static_assert((int)HAPAX_KEY_SIZE_MAX <= (int)HX_SFSTRING_MAX, "any key has room");

	enum hx_proxy_key_end end =
		add_operation(route, head, certificate, own->key_size, sha, ret_key, err);

	memcpy(ret_key->text + HX_PROXY_OPERATION_DIGITS + 1, own->key, own->key_size);
	if (!own->has_fingerprint)
		return end;
	begin_fingerprint(route, head, sha);
	hx_sha256_update(sha, own->fingerprint, sizeof(own->fingerprint));
	hx_sha256_final(sha, ret_key->fingerprint);
	return end;
}
