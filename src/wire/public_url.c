/* SPDX-License-Identifier: Apache-2.0 */
/*
 * public_url.c - hide the secrets of a URL.
 */
#include "wire/public_url.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/bytes.h"

/* Options of stores, sinks and sources, and of libpq, that hold no secret. */
static const char *const shown[] = {
	/* hapax's own */
	"allow",
	"auth_file",
	"ca",
	"cert",
	"create",
	"db",
	"dead_exchange",
	"declare",
	"exchange",
	"group",
	"held_max",
	"instance",
	"key",
	"maxlen",
	"min_idle",
	"pool",
	"prefetch",
	"prefix",
	"queue",
	"require",
	"schema",
	"size_max",
	"start",
	"stream",
	"tenant",
	"warm_up",
	/* libpq's */
	"application_name",
	"channel_binding",
	"client_encoding",
	"connect_timeout",
	"dbname",
	"fallback_application_name",
	"gssdelegation",
	"gssencmode",
	"gsslib",
	"host",
	"hostaddr",
	"keepalives",
	"keepalives_count",
	"keepalives_idle",
	"keepalives_interval",
	"krbsrvname",
	"load_balance_hosts",
	"passfile",
	"port",
	"replication",
	"require_auth",
	"requirepeer",
	"service",
	"ssl_max_protocol_version",
	"ssl_min_protocol_version",
	"sslcert",
	"sslcertmode",
	"sslcompression",
	"sslcrl",
	"sslcrldir",
	"sslkey",
	"sslmode",
	"sslnegotiation",
	"sslrootcert",
	"sslsni",
	"target_session_attrs",
	"tcp_user_timeout",
	"user",
};

/* options is a command line, any part of which may be a secret. */
static const char *const secret[] = {"options", "password", "sslpassword"};

static const char stars[] = "***";

static bool is_among(struct hapax_bytes name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (hx_bytes_equal(name, hapax_bytes_from_text(names[i])))
			return true;
	return false;
}

/* Any option of a service may be a secret, and ?key=... often is. */
static enum hx_option_view view_for_http(struct hapax_bytes name)
{
	static const char *const paths[] = {"auth_file", "ca", "cert"};

	if (is_among(name, paths, HX_COUNT(paths)))
		return HX_OPTION_SHOWN;
	return hx_bytes_equal(name, HX_BYTES_LIT("key")) ? HX_OPTION_SECRET : HX_OPTION_HIDDEN;
}

static enum hx_option_view view_of(struct hapax_bytes name, hx_option_view_fn *more)
{
	if (more == view_for_http)
		return view_for_http(name);
	if (is_among(name, shown, HX_COUNT(shown)))
		return HX_OPTION_SHOWN;
	if (is_among(name, secret, HX_COUNT(secret)))
		return HX_OPTION_SECRET;
	return more == NULL ? HX_OPTION_HIDDEN : more(name);
}

/*
 * The @ after user and password; NULL: there is none. They may contain a slash, a @ or a ? that
 * should have been escaped: the last @ counts, unless it is in the value of an option.
 */
static const char *find_at(const char *authority, const char *end)
{
	const char *query = memchr(authority, '?', (size_t)(end - authority));
	const char *last = memrchr(authority, '@', (size_t)(end - authority));

	if (query == NULL || last == NULL || last < query ||
	    memchr(query, '=', (size_t)(last - query)) == NULL)
		return last;
	return memrchr(authority, '@', (size_t)(query - authority));
}

/* Is it the port of "host:80", or may it be a password? */
static bool is_port(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at == end || memchr("/?,", *at, 3) != NULL;
}

/*
 * The end of the password in user:password@host. The only @ may be in apparent options, or missing:
 * anything that is not a port is hidden. NULL: there is no password.
 */
static const char *find_host(const char *authority, const char *end)
{
	const char *host = find_at(authority, end);
	const char *colon;

	if (host != NULL || authority == end || *authority == '[')
		return host;
	host = memrchr(authority, '@', (size_t)(end - authority));
	if (host == NULL)
		host = memchr(authority, '?', (size_t)(end - authority));
	if (host == NULL)
		host = end;
	for (colon = authority; colon < host && memchr("/?:", *colon, 3) == NULL;)
		colon++;
	return colon == host || *colon != ':' || is_port(colon + 1, end) ? NULL : host;
}

/* Append the part before the options, with its password hidden; *at moves past it. */
static enum hapax_status put_front(struct hapax_buf *out, const char **at, const char *end)
{
	const char *data = *at;
	const char *scheme = memmem(data, (size_t)(end - data), "://", 3);
	const char *authority = scheme == NULL ? data : scheme + 3;
	const char *host = scheme == NULL ? NULL : find_host(authority, end);
	const char *colon =
		host == NULL ? NULL : memchr(authority, ':', (size_t)(host - authority));
	const char *from = host == NULL ? authority : host;
	const char *query = memchr(from, '?', (size_t)(end - from));
	enum hapax_status status = HAPAX_OK;

	*at = query == NULL ? end : query;
	if (colon == NULL)
		return hx_buf_append(out, data, (size_t)(*at - data));
	status = hx_buf_append(out, data, (size_t)(colon + 1 - data));
	if (status == HAPAX_OK)
		status = hx_buf_append(out, stars, strlen(stars));
	if (status == HAPAX_OK)
		status = hx_buf_append(out, host, (size_t)(*at - host));
	return status;
}

/* NAME=VALUE, or its replacement. */
static enum hapax_status put_option(
	struct hapax_buf *out, struct hapax_bytes option, hx_option_view_fn *more)
{
	const char *data = option.data;
	const char *equals = option.size == 0 ? NULL : memchr(data, '=', option.size);
	size_t name_size = equals == NULL ? option.size : (size_t)(equals - data);
	enum hx_option_view view = view_of(hx_bytes(data, name_size), more);
	enum hapax_status status = HAPAX_OK;

	if (option.size == 0 || (equals != NULL && view == HX_OPTION_SHOWN))
		return hx_buf_append(out, data, option.size);
	/* A name without a value may be the rest of a secret. */
	if (equals != NULL && view == HX_OPTION_SECRET)
		status = hx_buf_append(out, data, name_size + 1);
	if (status == HAPAX_OK)
		status = hx_buf_append(out, stars, strlen(stars));
	return status;
}

static enum hapax_status put_options(
	struct hapax_buf *out, const char *at, const char *end, hx_option_view_fn *more)
{
	enum hapax_status status = HAPAX_OK;

	while (at < end && status == HAPAX_OK) {
		const char *next = memchr(at + 1, '&', (size_t)(end - at - 1));

		/* The ? or & before it. */
		status = hx_buf_append_byte(out, (unsigned char)*at++);
		if (next == NULL)
			next = end;
		if (status == HAPAX_OK)
			status = put_option(out, hx_bytes(at, (size_t)(next - at)), more);
		at = next;
	}
	return status;
}

static void wipe(struct hapax_buf *url)
{
	if (url->capacity > 0)
		explicit_bzero(url->data, url->capacity);
	hx_buf_clear(url);
}

enum hapax_status hx_public_url(struct hapax_buf *url, hx_option_view_fn *more)
{
	const char *at = (const char *)url->data;
	const char *end;
	struct hapax_buf out;
	enum hapax_status status;

	if (url->size == 0)
		return HAPAX_OK;
	end = at + url->size;
	if (url->size > 4 && strncasecmp(at, "http", 4) == 0)
		more = view_for_http;
	hx_buf_init(&out, url->size_max);
	status = put_front(&out, &at, end);
	if (status == HAPAX_OK)
		status = put_options(&out, at, end, more);
	wipe(url);
	if (status == HAPAX_OK)
		status = hx_buf_append(url, out.data, out.size);
	hx_buf_done(&out);
	return status;
}
