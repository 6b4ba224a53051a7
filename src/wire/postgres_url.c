/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_url.c - URLs of PostgreSQL that libpq reads in another way than their author.
 */
#include "wire/postgres_url.h"

#include <string.h>

bool hx_postgres_url_is_good(const char *url)
{
	const char *host = strstr(url, "://");
	const char *path;

	if (host == NULL)
		return true;
	path = host + 3 + strcspn(host + 3, "/?");
	/* In options a '@' is a value's. */
	return memchr(path, '@', strcspn(path, "?")) == NULL;
}

bool hx_postgres_url_part_is_good(const char *keyword, const char *value)
{
	if (value == NULL || value[0] == '\0')
		return true;
	/* An abstract socket begins with '@'. */
	if (strcmp(keyword, "host") == 0)
		return strchr(value + 1, '@') == NULL;
	return strcmp(keyword, "port") != 0 || value[strspn(value, "0123456789,")] == '\0';
}
