/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_url.c - parse the URL of a service to call.
 */
#include "net/http/http_url.h"

#include <stdio.h>
#include <string.h>

#include "wire/url.h"

static bool fail(char why[HX_HTTP_URL_WHY_SIZE], const char *text)
{
	(void)snprintf(why, HX_HTTP_URL_WHY_SIZE, "%s", text);
	return false;
}

bool hx_http_url_parse(
	const char *text, struct hx_http_url *ret_url, char why[HX_HTTP_URL_WHY_SIZE])
{
	struct hx_http_url url = {.is_tls = false};
	struct hx_url parts;

	if (!hx_url_is_visible(text))
		return fail(why, "has an invalid character; write it as %XX");
	if (hx_url_split(text, &parts))
		url.is_tls = hx_url_has_scheme(&parts, "https");
	if (!parts.has_authority || (!url.is_tls && !hx_url_has_scheme(&parts, "http")))
		return fail(why, "must begin with http:// or https://");
	if (url.is_tls && !HX_HAVE_TLS)
		return fail(why, "needs TLS, which is not built in");
	if (strpbrk(text, "?#") != NULL)
		return fail(why, "must not have a query or fragment");
	if (parts.user.data != NULL)
		return fail(why, "must not have a user: it is not sent to an upstream");
	url.authority = parts.hosts;
	url.path = parts.path;
	while (url.path.size > 0 && ((const char *)url.path.data)[url.path.size - 1] == '/')
		url.path.size--;
	if (!hx_endpoint_from_host(url.authority, url.is_tls ? 443 : 80, &url.endpoint))
		return fail(why, "has no valid host and port");
	*ret_url = url;
	return true;
}
