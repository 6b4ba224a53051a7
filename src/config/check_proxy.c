/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_proxy.c - check texts of the proxy's routes.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "config/config_check.h"
#include "wire/http1/http1_text.h"

static bool fail(char why[HX_SETTING_WHY_SIZE], const char *text)
{
	(void)snprintf(why, HX_SETTING_WHY_SIZE, "%s", text);
	return false;
}

static bool is_one_of(const char *text, const char *const *names)
{
	for (; *names != NULL; names++) {
		if (hx_http1_text_equal(hapax_bytes_from_text(text), hapax_bytes_from_text(*names)))
			return true;
	}
	return false;
}

bool hx_config_check_method(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	/* Clients send no key with these, and stored responses would be a cache without rules. */
	static const char *const safe[] = {"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", NULL};

	if (!hx_http1_is_token(hapax_bytes_from_text(text)))
		return fail(why, "is not a valid method");
	/* Methods are case-sensitive: post is not POST. */
	if (strpbrk(text, "abcdefghijklmnopqrstuvwxyz") != NULL)
		return fail(why, "must be in upper case");
	return !is_one_of(text, safe) ||
		fail(why, "cannot be deduplicated: it has no effect and always passes");
}

bool hx_config_check_field(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	return hx_http1_is_token(hapax_bytes_from_text(text)) ||
		fail(why, "is not a valid header name");
}

bool hx_config_check_request_field(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	if (!hx_config_check_field(text, why))
		return false;
	return hx_http1_is_plain_name(hapax_bytes_from_text(text)) ||
		fail(why,
		     "may only have letters, digits and hyphens: other headers are not passed to "
		     "services");
}

bool hx_config_check_cookie(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	return hx_http1_is_token(hapax_bytes_from_text(text)) ||
		fail(why, "is not a valid cookie name");
}

bool hx_config_check_replay_field(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	/* Specific to one client, moment or connection; or set by hapax. */
	static const char *const never[] = {
		"Set-Cookie",
		"Set-Cookie2",
		"WWW-Authenticate",
		"Proxy-Authenticate",
		"Authentication-Info",
		"Proxy-Authentication-Info",
		"Authorization",
		"Date",
		"Connection",
		"Content-Length",
		"Keep-Alive",
		"Proxy-Connection",
		"TE",
		"Trailer",
		"Transfer-Encoding",
		"Upgrade",
		"Idempotent-Replayed",
		NULL,
	};

	if (!hx_config_check_field(text, why))
		return false;
	return (!is_one_of(text, never) && strncasecmp(text, "Hapax-", 6) != 0) ||
		fail(why, "is meant for one client or connection and is never replayed");
}

bool hx_config_check_credential(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	static const char prefix[] = "header:";

	if (strcmp(text, "auto") == 0 || strcmp(text, "none") == 0)
		return true;
	if (strncmp(text, prefix, sizeof(prefix) - 1) == 0)
		return hx_config_check_request_field(text + sizeof(prefix) - 1, why);
	return fail(why, "must be auto, none or header:NAME");
}

bool hx_config_check_statuses(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	bool is_class = strlen(text) == 3 && strcmp(text + 1, "xx") == 0;
	bool is_exact = strlen(text) == 3 && strspn(text, "0123456789") == 3;

	return ((is_class || is_exact) && text[0] >= '2' && text[0] <= '5') ||
		fail(why, "must be a status from 200 to 599, or a class such as 5xx");
}
