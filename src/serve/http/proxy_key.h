/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_key.h - from a request to its key in the ledger.
 *
 *	<32 digits>/<Idempotency-Key>
 *
 * The digits are the beginning of SHA-256 over who asks, method, authority and path, so
 * that the key of one client, or of one operation, is never that of another: nobody gets
 * to see a response by guessing a key. Every part has its length in front of it, and one
 * form: a host in small letters, without a dot behind it and without port 80 or 443; a path
 * as RFC 3986 6.2.2 has it. A client that spells its retry in another way has the same key.
 *
 * Who asks is all that there is of: Authorization, the fields in which APIs take a key, the
 * client's certificate, the cookies that the route names; or a field that a trusted proxy sets.
 * Without any of them a request has no key, unless the route says `credential: none`. A client
 * whose credential was renewed has new keys.
 *
 * The fingerprint is over query, Content-Type, the fields that choose an account and the body,
 * the same way.
 *
 * Threads: one at a time for each struct hx_sha256.
 */
#ifndef HX_SERVE_HTTP_PROXY_KEY_H
#define HX_SERVE_HTTP_PROXY_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
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
	HX_PROXY_KEY_INVALID,          /* several, or none that can be read */
	HX_PROXY_KEY_WHOSE_IS_UNKNOWN, /* who asks is said twice, or must be said and is not */
	HX_PROXY_KEY_NO_CREDENTIAL,    /* nothing says who asks */
};

/*
 * Read the key; its fingerprint is not made. certificate: what identifies that of the
 * client; empty: it has none. err says what is wrong with INVALID and WHOSE_IS_UNKNOWN.
 */
enum hx_proxy_key_end hx_proxy_key_read(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes certificate, struct hx_sha256 *sha, struct hx_proxy_key *ret_key,
	struct hapax_error *err);

/* The fingerprint. What the disk says of a body that is in a file. */
enum hapax_status hx_proxy_key_fingerprint(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	const struct hx_http_body *body, struct hx_sha256 *sha,
	unsigned char ret[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err);

/* The path of a target without its query, and that, with its "?", or nothing. */
void hx_proxy_key_split(
	struct hapax_bytes target, struct hapax_bytes *ret_path, struct hapax_bytes *ret_query);

/* The one form of a path, by which routes and keys go: the path itself, or in space. */
struct hapax_bytes hx_proxy_key_path(struct hapax_bytes path, char space[HX_HTTP1_LINE_MAX]);

#endif
