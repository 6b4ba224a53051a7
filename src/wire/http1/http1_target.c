/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_target.c - request targets: the forms of RFC 9112 3.2, and hosts.
 *
 * CONNECT and its authority-form are not here: the codec never becomes a tunnel.
 */
#include "wire/http1/http1_parse.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/http1/http1_text.h"

static bool is_port(const unsigned char *at, const unsigned char *end)
{
	unsigned port = 0;

	/* "host:" has an empty port, which RFC 3986 allows. */
	for (; at < end; at++) {
		if (!hx_http1_is_digit(*at))
			return false;
		port = port * 10 + (unsigned)(*at - '0');
		if (port > 65535)
			return false;
	}
	return true;
}

/* The allowed bytes between brackets; connect(2) decides whether it is a valid address. */
static const unsigned char *skip_literal(const unsigned char *at, const unsigned char *end)
{
	const unsigned char *begin = ++at;

	while (at < end && (hx_http1_hex(*at) >= 0 || *at == ':' || *at == '.'))
		at++;
	return at < end && *at == ']' && at - begin >= 2 ? at + 1 : NULL;
}

static const unsigned char *skip_name(const unsigned char *at, const unsigned char *end)
{
	const unsigned char *begin = at;

	while (at < end && hx_http1_is(*at, HX_HTTP1_REGNAME)) {
		/* A list of hosts, or one in disguise: never used, and readers differ. */
		if (*at == ',' || *at == '%')
			return NULL;
		at++;
	}
	return at > begin ? at : NULL;
}

bool hx_http1_is_authority(struct hapax_bytes text)
{
	const unsigned char *at = text.data;
	const unsigned char *end = at + text.size;

	if (text.size == 0)
		return false;
	at = *at == '[' ? skip_literal(at, end) : skip_name(at, end);
	if (at == NULL)
		return false;
	return at == end || (*at == ':' && is_port(at + 1, end));
}

/*
 * Every % in a path begins two hexadecimal digits, and none is a NUL: what routes by
 * path and what serves it must see one path. A query is passed on as it is.
 */
static bool check_path(struct hapax_bytes path, struct hx_http1_fault *fault)
{
	const unsigned char *at = path.data;
	const unsigned char *end = at + path.size;
	const unsigned char *query = memchr(at, '?', path.size);

	if (query != NULL)
		end = query;
	while ((at = memchr(at, '%', (size_t)(end - at))) != NULL) {
		bool whole = end - at >= 3 && hx_http1_hex(at[1]) >= 0 && hx_http1_hex(at[2]) >= 0;

		if (!whole || (at[1] == '0' && at[2] == '0')) {
			(void)hx_http1_bad(
				fault, 400, at,
				whole ? "%00 in a path"
				      : "% in a path needs two hexadecimal digits");
			return false;
		}
		at += 3;
	}
	return true;
}

/* The bytes after "http://" or "https://"; 0: it has another scheme. */
static size_t scheme_size(struct hapax_bytes target)
{
	static const struct hapax_bytes schemes[] = {
		HX_BYTES_LIT("http://"), HX_BYTES_LIT("https://")};

	for (size_t i = 0; i < 2; i++) {
		size_t size = schemes[i].size;

		if (target.size >= size &&
		    hx_http1_text_equal((struct hapax_bytes){target.data, size}, schemes[i]))
			return size;
	}
	return 0;
}

static bool split_absolute(struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	const unsigned char *begin = head->target.data;
	const unsigned char *end = begin + head->target.size;
	const unsigned char *host = begin + scheme_size(head->target);
	const unsigned char *at = host;

	if (host == begin) {
		(void)hx_http1_bad(fault, 400, begin, "the target must be a path or an http URL");
		return false;
	}
	while (at < end && *at != '/' && *at != '?')
		at++;
	head->authority = (struct hapax_bytes){host, (size_t)(at - host)};
	head->path = (struct hapax_bytes){at, (size_t)(end - at)};
	if (!hx_http1_is_authority(head->authority)) {
		(void)hx_http1_bad(fault, 400, host, "the target has no valid host");
		return false;
	}
	if (at == end)
		head->path = HX_BYTES_LIT("/");
	else if (*at == '?') {
		/* "http://host?q" has the empty path, which cannot be written as origin-form. */
		(void)hx_http1_bad(fault, 400, at, "the target has a query but no path");
		return false;
	}
	return true;
}

bool hx_http1_split_target(struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	const unsigned char *begin = head->target.data;

	head->path = head->target;
	head->authority = (struct hapax_bytes){NULL, 0};
	if (hx_bytes_equal(head->target, HX_BYTES_LIT("*"))) {
		if (hx_bytes_equal(head->method, HX_BYTES_LIT("OPTIONS")))
			return true;
		(void)hx_http1_bad(fault, 400, begin, "the target * is for OPTIONS only");
		return false;
	}
	if (*begin != '/' && !split_absolute(head, fault))
		return false;
	return check_path(head->path, fault);
}
