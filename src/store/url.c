/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.c - from a store's URL to its backend. A new backend adds one line here.
 */
#include <string.h>

#include <hapax/store.h>

#include "base/error.h"
#include "store/log/log_store.h"
#include "store/memory/memory_store.h"
#include "store/redis/redis_store.h"
#include "store/sqlite/sqlite_store.h"

/* path is what follows the scheme's colon. */
typedef enum hapax_status open_fn(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

static const struct {
	const char *scheme; /* with its colon */
	open_fn *open;
} schemes[] = {
	{"memory:", hx_memory_open},        {"file:", hx_log_open},
	{"redis:", hx_redis_open},          {"rediss:", hx_redis_open},
	{"redis+unix:", hx_redis_open},     {"redis+cluster:", hx_redis_open},
	{"rediss+cluster:", hx_redis_open},
#if HX_HAVE_SQLITE
	{"sqlite:", hx_sqlite_open},
#endif
};

#if HX_HAVE_SQLITE
static const char known[] = "memory:, file:DIR, sqlite:FILE, redis://HOST";
#else
static const char known[] = "memory:, file:DIR, redis://HOST";
#endif

enum hapax_status hapax_store_open(
	const char *url, const struct hapax_store_options *options, struct hapax_store **ret_store,
	struct hapax_error *err)
{
	const char *colon;

	if (url == NULL || ret_store == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a store URL is needed, such as %s", known);
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t size = strlen(schemes[i].scheme);

		if (strncmp(url, schemes[i].scheme, size) == 0)
			return schemes[i].open(url, url + size, options, ret_store, err);
	}
	colon = strchr(url, ':');
	if (colon == NULL)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0, "'%.64s' is not a store URL; known are %s",
			url, known);
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0, "unknown store scheme '%.*s'; known are %s",
		(int)(colon - url < 32 ? colon - url : 32), url, known);
}
