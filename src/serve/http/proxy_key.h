/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_key.h - from a request to its key in the ledger.
 *
 *	<32 digits>/<Idempotency-Key>
 *
 * On a route with a strategy, what it makes from header and body takes the place of the field.
 *
 * The digits are the beginning of SHA-256 over client, method, authority and path. So clients and
 * operations never share a key, and a guessed key reveals no response. Every part has a length
 * prefix and a canonical form: a host in lower case, without a trailing dot and without port 80 or
 * 443; a path by RFC 3986 6.2.2. A client that spells its retry differently has the same key.
 *
 * The client is identified by all credentials present: Authorization, the fields that APIs use for
 * a key, the client's certificate, the cookies that the route names; or by a field that a trusted
 * proxy sets. Without any of them a request has no key, unless the route says `credential: none`. A
 * client with a renewed credential has new keys.
 *
 * The fingerprint covers query, Content-Type, the fields that select an account and the body, in
 * the same form; on a route with a strategy, the strategy's own fingerprint instead of the body.
 *
 * Threads: one at a time for each struct hx_sha256.
 */
#ifndef HX_SERVE_HTTP_PROXY_KEY_H
#define HX_SERVE_HTTP_PROXY_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>
#include <hapax/record.h>

#include "base/sha256.h"
#include "wire/http1/http1.h"
#include "wire/sfstring.h"

struct hx_config_proxy_route;
struct hx_http_body;

enum {
	HX_PROXY_OPERATION_DIGITS = 32,
	HX_PROXY_KEY_MAX = HX_PROXY_OPERATION_DIGITS + 1 + HX_SFSTRING_MAX,
};

struct hx_proxy_key {
	size_t size;
	char text[HX_PROXY_KEY_MAX];
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
};

enum hx_proxy_key_end {
	HX_PROXY_KEY_FOUND,
	HX_PROXY_KEY_MISSING,
	HX_PROXY_KEY_INVALID,          /* several, or an unreadable one */
	HX_PROXY_KEY_WHOSE_IS_UNKNOWN, /* the client is named twice, or must be named and is not */
	HX_PROXY_KEY_NO_CREDENTIAL,    /* no credential names the client */
};

/*
 * Reads the key, without its fingerprint. certificate: identifies the client's; empty: it has none.
 * err has the reason for INVALID and WHOSE_IS_UNKNOWN.
 */
enum hx_proxy_key_end hx_proxy_key_read(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes certificate, struct hx_sha256 *sha, struct hx_proxy_key *ret_key,
	struct hapax_error *err);

/*
 * The key that own, by the strategy of the route, becomes, with the fingerprint. err as above.
 */
enum hx_proxy_key_end hx_proxy_key_complete(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes certificate, const struct hapax_key *own, struct hx_sha256 *sha,
	struct hx_proxy_key *ret_key, struct hapax_error *err);

/* Makes the fingerprint. Returns the disk's error for a body in a file. */
enum hapax_status hx_proxy_key_fingerprint(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	const struct hx_http_body *body, struct hx_sha256 *sha,
	unsigned char ret[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err);

/* The canonical form of a path, for routes and keys: the path itself, or in space. */
struct hapax_bytes hx_proxy_key_path(struct hapax_bytes path, char space[HX_HTTP1_LINE_MAX]);

#endif
