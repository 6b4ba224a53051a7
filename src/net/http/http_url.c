/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_url.c - the URL of a service that is called, taken apart.
 */
#include "net/http/http_url.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"

static bool fail(char why[HX_URL_WHY_SIZE], const char *text)
{
	(void)snprintf(why, HX_URL_WHY_SIZE, "%s", text);
	return false;
}

static bool begins(const char *text, const char *scheme)
{
	return strncasecmp(text, scheme, strlen(scheme)) == 0;
}

/* What comes behind the scheme, or NULL. */
static const char *parse_scheme(const char *text, struct hx_url *url, char why[HX_URL_WHY_SIZE])
{
	if (begins(text, "http://"))
		return text + strlen("http://");
	url->is_tls = begins(text, "https://");
	if (url->is_tls && HX_HAVE_TLS)
		return text + strlen("https://");
	(void)fail(
		why,
		url->is_tls ? "needs TLS, which is not built in"
			    : "does not begin with http:// or https://");
	return NULL;
}

bool hx_url_parse(const char *text, struct hx_url *ret_url, char why[HX_URL_WHY_SIZE])
{
	struct hx_url url = {.is_tls = false};
	const char *rest;
	size_t size;

	for (const char *at = text; *at != '\0'; at++) {
		if (*at <= ' ' || *at >= 0x7f)
			return fail(why, "has a character that a URL cannot have; use %XX");
	}
	rest = parse_scheme(text, &url, why);
	if (rest == NULL)
		return false;
	if (strpbrk(rest, "?#") != NULL)
		return fail(why, "has a query or a fragment");
	size = strcspn(rest, "/");
	if (memchr(rest, '@', size) != NULL)
		return fail(why, "has a user, which is not sent to an upstream");
	url.authority = hx_bytes(rest, size);
	url.path = hapax_bytes_from_text(rest + size);
	while (url.path.size > 0 && rest[size + url.path.size - 1] == '/')
		url.path.size--;
	/* Its own words would repeat what may be half of a password with a slash. */
	if (hx_endpoint_parse(url.authority, url.is_tls ? 443 : 80, &url.endpoint, NULL) !=
	            HAPAX_OK ||
	    url.endpoint.is_unix || url.endpoint.port == 0)
		return fail(why, "has no host and port to connect to");
	*ret_url = url;
	return true;
}
