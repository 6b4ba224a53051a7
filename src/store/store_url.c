/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_url.c - from a store's URL to its backend. A new backend adds one line here.
 */
#include <string.h>

#include <hapax/store.h>

#include "base/error.h"
#include "store/store_copy.h"
#include "store/log/log_store.h"
#include "store/memory/memory_store.h"
#include "store/postgres/migrate.h"
#include "store/postgres/postgres_store.h"
#include "store/redis/redis_store.h"
#include "store/server/server_store.h"
#include "store/sqlite/sqlite_store.h"

/* path is what follows the scheme's colon. */
typedef enum hapax_status open_fn(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

typedef enum hapax_status migrate_fn(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err);

static const struct {
	const char *scheme; /* with its colon */
	open_fn *open;
	migrate_fn *migrate; /* NULL: opening does it */
} schemes[] = {
	{"memory:", hx_memory_open, NULL},
	{"file:", hx_log_open, NULL},
	{"redis:", hx_redis_open, NULL},
	{"rediss:", hx_redis_open, NULL},
	{"redis+unix:", hx_redis_open, NULL},
	{"redis+cluster:", hx_redis_open, NULL},
	{"rediss+cluster:", hx_redis_open, NULL},
	{"http:", hx_server_open, NULL},
	{"https:", hx_server_open, NULL},
	{"http+unix:", hx_server_open, NULL},
#if HX_HAVE_SQLITE
	{"sqlite:", hx_sqlite_open, NULL},
#endif
#if HX_HAVE_POSTGRES
	{"postgres:", hx_postgres_open, hx_postgres_migrate},
	{"postgresql:", hx_postgres_open, hx_postgres_migrate},
#endif
};

enum { SCHEMES = HX_COUNT(schemes) };

#if HX_HAVE_SQLITE
#define KNOWN_SQLITE ", sqlite:FILE"
#else
#define KNOWN_SQLITE ""
#endif
#if HX_HAVE_POSTGRES
#define KNOWN_POSTGRES ", postgres://HOST/DB"
#else
#define KNOWN_POSTGRES ""
#endif
static const char known[] =
	"memory:, file:DIR" KNOWN_SQLITE KNOWN_POSTGRES ", redis://HOST, rediss://HOST, "
	"redis+unix:PATH, redis+cluster://HOST, rediss+cluster://HOST, http://HOST, https://HOST "
	"or http+unix:PATH";
enum { SHOWN_MAX = 32 }; /* bytes of a URL in a message that lists the known ones */
_Static_assert(
	sizeof("unknown store scheme ''; use ") + SHOWN_MAX + sizeof(known) <=
		HAPAX_ERROR_MESSAGE_SIZE,
	"the list fits into the message");

/* The index of url's scheme, or SCHEMES with err set. */
static size_t find_scheme(const char *url, struct hapax_error *err)
{
	const char *colon;

	for (size_t i = 0; i < SCHEMES; i++) {
		if (strncmp(url, schemes[i].scheme, strlen(schemes[i].scheme)) == 0)
			return i;
	}
	colon = strchr(url, ':');
	if (colon == NULL)
		(void)hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0, "invalid store URL '%.*s'; use %s",
			(int)(strcspn(url, "@?") < SHOWN_MAX ? strcspn(url, "@?") : SHOWN_MAX), url,
			known);
	else
		(void)hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0, "unknown store scheme '%.*s'; use %s",
			(int)(colon - url < SHOWN_MAX ? colon - url : SHOWN_MAX), url, known);
	return SCHEMES;
}

/* Open the store, unless it holds part of a copy. */
static enum hapax_status open_whole(
	open_fn *open, const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store *store = NULL;
	enum hapax_status status = open(url, path, options, &store, err);

	if (status != HAPAX_OK)
		return status;
	status = hx_store_refuse_part(store, err);
	if (status != HAPAX_OK) {
		hapax_store_close(store);
		return status;
	}
	*ret_store = store;
	return HAPAX_OK;
}

enum hapax_status hapax_store_open(
	const char *url, const struct hapax_store_options *options, struct hapax_store **ret_store,
	struct hapax_error *err)
{
	size_t scheme;

	if (url == NULL || ret_store == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "missing store URL; use %s", known);
	scheme = find_scheme(url, err);
	if (scheme == SCHEMES)
		return HAPAX_ERR_UNSUPPORTED;
	return open_whole(
		schemes[scheme].open, url, url + strlen(schemes[scheme].scheme), options, ret_store,
		err);
}

enum hapax_status hapax_store_migrate(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	enum hapax_status status;
	size_t scheme;

	if (url == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "missing store URL; use %s", known);
	scheme = find_scheme(url, err);
	if (scheme == SCHEMES)
		return HAPAX_ERR_UNSUPPORTED;
	if (schemes[scheme].migrate != NULL)
		return schemes[scheme].migrate(url, ret_migration, err);
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	status = hapax_store_open(url, &options, &store, err);
	if (status != HAPAX_OK)
		return status;
	hapax_store_close(store);
	if (ret_migration != NULL)
		*ret_migration = (struct hapax_migration){0, 0};
	return HAPAX_OK;
}
