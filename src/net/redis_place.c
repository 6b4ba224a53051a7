/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_place.c - the URL of a Redis server, taken apart.
 */
#include "net/redis_place.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/percent.h"
#include "wire/resp/resp.h"

enum { DB_MAX = 65535 };

static bool parse_db(const char *text, size_t size, int *ret_db)
{
	int64_t db;

	if (!hx_resp_parse_integer(hx_bytes(text, size), &db) || db < 0 || db > DB_MAX)
		return false;
	*ret_db = (int)db;
	return true;
}

static bool is_prefix(const char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text <= ' ' || *text == 0x7f || strchr(":/{}", *text) != NULL)
			return false;
	}
	return true;
}

static bool name_is(const char *name, size_t size, const char *expected)
{
	return size == strlen(expected) && memcmp(name, expected, size) == 0;
}

static enum hapax_status refuse_value(struct hapax_error *err, const char *name)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "the option '%s' of the Redis URL has no such value",
		name);
}

/* One "name=value". */
static enum hapax_status set_option(
	struct hx_redis_place *place, const char *text, size_t size, struct hapax_error *err)
{
	const char *equals = memchr(text, '=', size);
	size_t name_size = equals == NULL ? size : (size_t)(equals - text);
	const char *value = equals == NULL ? text + size : equals + 1;
	size_t value_size = size - (size_t)(value - text);
	const struct {
		const char *name;
		char *out;
		size_t out_size;
	} texts[] = {
		{"prefix", place->prefix, sizeof(place->prefix)},
		{"ca", place->authority_file, sizeof(place->authority_file)},
		{"cert", place->certificate_file, sizeof(place->certificate_file)},
		{"key", place->key_file, sizeof(place->key_file)},
	};

	for (size_t i = 0; i < HX_COUNT(texts); i++) {
		if (!name_is(text, name_size, texts[i].name))
			continue;
		if (value_size == 0 ||
		    !hx_percent_decode_text(value, value_size, texts[i].out, texts[i].out_size))
			return refuse_value(err, texts[i].name);
		return i > 0 || is_prefix(place->prefix) ? HAPAX_OK : refuse_value(err, "prefix");
	}
	if (name_is(text, name_size, "db"))
		return parse_db(value, value_size, &place->db) ? HAPAX_OK : refuse_value(err, "db");
	if (name_is(text, name_size, "require")) {
		place->requires_durable = name_is(value, value_size, "durable");
		return place->requires_durable ? HAPAX_OK : refuse_value(err, "require");
	}
	if (name_is(text, name_size, "allow")) {
		place->allows_eviction = name_is(value, value_size, "eviction");
		return place->allows_eviction ? HAPAX_OK : refuse_value(err, "allow");
	}
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"a Redis URL has no option '%.*s'; known are prefix, db, require, allow, ca, cert, key",
		(int)(name_size < 40 ? name_size : 40), text);
}

static enum hapax_status set_options(
	struct hx_redis_place *place, const char *text, struct hapax_error *err)
{
	while (*text != '\0') {
		size_t size = strcspn(text, "&");
		enum hapax_status status = set_option(place, text, size, err);

		if (status != HAPAX_OK)
			return status;
		text += size;
		text += *text == '&';
	}
	return HAPAX_OK;
}

/* "user:password@", "password" alone being ":password@". */
static bool set_user(struct hx_redis_place *place, const char *text, size_t size)
{
	const char *colon = memchr(text, ':', size);
	size_t user_size = colon == NULL ? size : (size_t)(colon - text);

	if (!hx_percent_decode_text(text, user_size, place->user, sizeof(place->user)))
		return false;
	return colon == NULL ||
		hx_percent_decode_text(
			colon + 1, size - user_size - 1, place->password, sizeof(place->password));
}

/* "host:port", of a Cluster also "host:port,host:port" */
static enum hapax_status set_hosts(
	struct hx_redis_place *place, const char *text, size_t size, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t at = 0; status == HAPAX_OK && (at < size || at == 0);) {
		const char *comma = place->is_cluster ? memchr(text + at, ',', size - at) : NULL;
		size_t end = comma == NULL ? size : (size_t)(comma - text);

		if (place->endpoint_count == HX_REDIS_ENDPOINTS_MAX)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"a Redis URL names at most %d servers of a Cluster; it finds the"
				" others by itself",
				HX_REDIS_ENDPOINTS_MAX);
		status = hx_endpoint_parse(
			hx_bytes(text + at, end - at), HX_REDIS_PORT,
			&place->endpoints[place->endpoint_count++], NULL);
		/* Its own words would repeat what may be half of a password with a slash. */
		if (status != HAPAX_OK)
			return hx_error_set(
				err, status, 0,
				"the Redis URL has no host and port to connect to; percent-encode what "
				"is special in user and password");
		at = end + 1;
	}
	return status;
}

/* "user:password@host:port/db" */
static enum hapax_status set_authority(
	struct hx_redis_place *place, const char *text, size_t size, struct hapax_error *err)
{
	const char *slash = memchr(text, '/', size);
	size_t authority_size = slash == NULL ? size : (size_t)(slash - text);
	const char *at = memrchr(text, '@', authority_size);
	const char *host = at == NULL ? text : at + 1;

	if (at != NULL && !set_user(place, text, (size_t)(at - text)))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the user or password in the Redis URL is malformed; percent-encode it");
	if (slash != NULL && slash + 1 < text + size &&
	    !parse_db(slash + 1, (size_t)(text + size - slash - 1), &place->db))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the path of a Redis URL is the number of a database, as in redis://host/0");
	return set_hosts(place, host, authority_size - (size_t)(host - text), err);
}

static enum hapax_status set_path(
	struct hx_redis_place *place, const char *text, size_t size, struct hapax_error *err)
{
	/* redis+unix:///path as well as redis+unix:/path */
	if (size >= 2 && memcmp(text, "//", 2) == 0) {
		text += 2;
		size -= 2;
	}
	if (size == 0 || size > HX_UNIX_PATH_SIZE_MAX ||
	    !hx_percent_decode_text(
		    text, size, place->endpoints[0].host, sizeof(place->endpoints[0].host)))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a path of at most %d bytes is needed, as in 'redis+unix:/run/redis.sock'",
			HX_UNIX_PATH_SIZE_MAX);
	place->endpoints[0].is_unix = true;
	place->endpoint_count = 1;
	return HAPAX_OK;
}

enum hapax_status hx_redis_place_parse(
	const char *url, struct hx_redis_place *ret_place, struct hapax_error *err)
{
	static const char unix_scheme[] = "redis+unix:";
	struct hx_redis_place place;
	const char *text;
	enum hapax_status status;
	size_t size;

	memset(&place, 0, sizeof(place));
	(void)snprintf(place.prefix, sizeof(place.prefix), "hapax");
	if (strncmp(url, unix_scheme, sizeof(unix_scheme) - 1) == 0) {
		text = url + sizeof(unix_scheme) - 1;
		size = strcspn(text, "?");
		status = set_path(&place, text, size, err);
	} else {
		text = strchr(url, ':');
		text = text == NULL ? url + strlen(url) : text + 1;
		place.has_tls = strncmp(url, "rediss", 6) == 0;
		place.is_cluster = memmem(url, (size_t)(text - url), "+cluster:", 9) != NULL;
		if (strncmp(text, "//", 2) != 0)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"a host is needed, as in 'redis://localhost:6379'");
		text += 2;
		size = strcspn(text, "?");
		status = set_authority(&place, text, size, err);
	}
	if (status == HAPAX_OK && text[size] == '?')
		status = set_options(&place, text + size + 1, err);
	if (status == HAPAX_OK && place.is_cluster && place.db != 0)
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a Redis Cluster has no databases but 0");
	if (status == HAPAX_OK)
		*ret_place = place;
	return status;
}
