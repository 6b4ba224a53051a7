/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_check.c - check single texts of a config.
 */
#include "config/config_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <hapax/key.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "net/http/http_url.h"
#include "net/network.h"
#include "wire/date.h"
#include "wire/http1/http1_text.h"
#include "wire/http1/http_path.h"
#include "wire/scope_name.h"

__attribute__((format(printf, 2, 3))) static bool fail(
	char why[HX_SETTING_WHY_SIZE], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(why, HX_SETTING_WHY_SIZE, format, arguments);
	va_end(arguments);
	return false;
}

static bool check_bytes(struct hapax_bytes text, size_t max, char why[HX_SETTING_WHY_SIZE])
{
	char fault[HX_UTF8_FAULT_SIZE];

	return !hx_utf8_fault(text, max, fault) || fail(why, "%s", fault);
}

bool hx_config_check_name(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	return text[0] == '\0' || check_bytes(hapax_bytes_from_text(text), SIZE_MAX, why);
}

bool hx_config_check_path(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	char space[HX_HTTP1_LINE_MAX];
	const char *fault;

	if (text[0] != '/')
		return fail(why, "must begin with a slash");
	for (const char *at = text; *at != '\0'; at++) {
		/* The path is compared as received, byte by byte. */
		if (*at <= ' ' || *at >= 0x7f || *at == '?' || *at == '#')
			return fail(why, "has an invalid character; write it as %%XX");
	}
	(void)hx_http_path_loosest(hapax_bytes_from_text(text), space, &fault);
	return fault == NULL || fail(why, "cannot be a route: %s", fault);
}

bool hx_config_check_network(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	struct hx_network network;

	return hx_network_parse(text, &network) ||
		fail(why,
		     "must be an IP address or a network such as 10.0.0.0/8, with no host bits "
		     "set");
}

bool hx_config_check_pattern(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	const char *star = strchr(text, '*');

	if (text[0] == '\0')
		return fail(why, "must not be empty");
	if (star != NULL && star[1] != '\0')
		return fail(why, "may have a * only at its end");
	return hx_config_check_name(text, why);
}

static bool check_part(struct hapax_bytes part, char why[HX_SETTING_WHY_SIZE])
{
	if (part.size == 0)
		return fail(why, "has no tenant or no group");
	if (memchr(part.data, '/', part.size) != NULL)
		return fail(why, "has more than one slash");
	if (part.size > 1 && memchr(part.data, '*', part.size) != NULL)
		return fail(why, "may have * only as the whole tenant or group");
	return check_bytes(part, HX_SCOPE_PART_SIZE_MAX, why);
}

bool hx_config_check_scope(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	const char *slash = strchr(text, '/');

	if (slash == NULL)
		return fail(why, "must have the form TENANT/GROUP");
	return check_part(hx_bytes(text, (size_t)(slash - text)), why) &&
		check_part(hapax_bytes_from_text(slash + 1), why);
}

bool hx_config_check_scope_part(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	const char *fault;

	if (text[0] == '\0')
		return true;
	fault = hx_scope_name_fault(hapax_bytes_from_text(text));
	if (fault != NULL)
		return fail(why, "%s", fault);
	return check_bytes(hapax_bytes_from_text(text), HX_SCOPE_PART_SIZE_MAX, why);
}

bool hx_config_check_sha256(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
		return fail(why, "is not a SHA-256; run: printf %%s PASSWORD | sha256sum");
	return true;
}

bool hx_config_check_digest(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	static const char scheme[] = "sha256:";
	const char *digits = text + strlen(scheme);

	if (text[0] == '\0')
		return true;
	if (strncmp(text, scheme, strlen(scheme)) != 0 || strlen(digits) != 64 ||
	    strspn(digits, "0123456789abcdef") != 64)
		return fail(why, "must be sha256: and 64 digits of 0-9a-f");
	return true;
}

bool hx_config_read_date(const char *text, int64_t *ret_ms)
{
	char whole[32];
	int size = snprintf(whole, sizeof(whole), "%sT00:00:00Z", text);

	if (hx_date_parse(hapax_bytes_from_text(text), ret_ms))
		return true;
	return strlen(text) == strlen("2027-01-31") &&
		hx_date_parse(hx_bytes(whole, (size_t)size), ret_ms);
}

bool hx_config_check_date(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	int64_t ms;

	return text[0] == '\0' || hx_config_read_date(text, &ms) ||
		fail(why, "is not a date; write 2027-01-31 or 2027-01-31T12:00:00Z");
}

bool hx_config_check_strategy(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	struct hapax_key_strategy *strategy = NULL;
	struct hapax_error err;

	if (text[0] == '\0')
		return true;
	if (hapax_key_strategy_new(text, NULL, &strategy, &err) != HAPAX_OK)
		return fail(why, "is not a valid key strategy: %s", err.message);
	hapax_key_strategy_free(strategy);
	return true;
}

bool hx_config_check_pass(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	char strategy[HX_CONFIG_PASS_SIZE];

	return hx_config_pass_strategy(text, strategy) != NULL
		? hx_config_check_strategy(strategy, why)
		: fail(why, "must have the form PATH=VALUE, as in data.type=url_verification");
}

const char *hx_config_pass_strategy(const char *text, char strategy[HX_CONFIG_PASS_SIZE])
{
	const char *equals = strchr(text, '=');
	int size = equals == NULL
		? -1
		: snprintf(strategy, HX_CONFIG_PASS_SIZE, "field:%.*s", (int)(equals - text), text);

	return size < 0 || size >= HX_CONFIG_PASS_SIZE ? NULL : equals + 1;
}

bool hx_config_check_origin(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	size_t size = strlen(text);

	if (text[0] == '\0')
		return true;
	if ((strncmp(text, "https://", 8) != 0 && strncmp(text, "http://", 7) != 0) ||
	    text[size - 1] == '/' || strpbrk(text, " ?#") != NULL)
		return fail(
			why,
			"must have the form https://HOST or https://HOST/PREFIX, without a "
			"slash at its end");
	return true;
}

bool hx_config_check_url(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	struct hx_http_url url;

	_Static_assert(
		(int)HX_HTTP_URL_WHY_SIZE <= (int)HX_SETTING_WHY_SIZE, "one reason fits the other");
	return text[0] == '\0' || hx_http_url_parse(text, &url, why);
}

/* ------------------------------------------------------------------ of the proxy */

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

bool hx_config_pattern_matches(const char *pattern, struct hapax_bytes text)
{
	size_t size = strlen(pattern);

	if (size > 0 && pattern[size - 1] == '*')
		return text.size >= size - 1 &&
			hx_bytes_equal(hx_bytes(pattern, size - 1), hx_bytes(text.data, size - 1));
	return hx_bytes_equal(hx_bytes(pattern, size), text);
}
