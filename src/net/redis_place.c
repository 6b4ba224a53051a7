/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_place.c - parse the URL of a Redis server.
 */
#include "net/redis_place.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/resp/resp.h"

static bool is_prefix(const char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text <= ' ' || *text == 0x7f || strchr(":/{}", *text) != NULL)
			return false;
	}
	return true;
}

const struct hx_url_option hx_redis_options[] = {
	{"db", HX_URL_NUMBER, NULL, HX_URL_MEMBER(struct hx_redis_place, db),
	 .max = HX_REDIS_DB_MAX},
	{"ca", HX_URL_TLS_FILE(struct hx_redis_place, authority_file)},
	{"cert", HX_URL_TLS_FILE(struct hx_redis_place, certificate_file)},
	{"key", HX_URL_TLS_FILE(struct hx_redis_place, key_file)},
	{.kind = HX_URL_END},
};

static const struct hx_url_option store_rows[] = {
	{"prefix", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_redis_place, prefix),
	 .is_good = is_prefix},
	{"require", HX_URL_WORD, "durable", HX_URL_MEMBER(struct hx_redis_place, requires_durable),
	 .min = true},
	{"allow", HX_URL_WORD, "eviction", HX_URL_MEMBER(struct hx_redis_place, allows_eviction),
	 .min = true},
	{.kind = HX_URL_MORE, .more = hx_redis_options},
};

static const struct hx_url_options store_options = {.of = "a Redis store", .rows = store_rows};

/* "host:port", for a Cluster also "host:port,host:port" */
static enum hapax_status set_hosts(
	struct hx_redis_place *place, struct hapax_bytes hosts, struct hapax_error *err)
{
	struct hapax_bytes host = hosts;

	while (place->is_cluster ? hx_url_next(&hosts, ',', &host) : place->endpoint_count == 0) {
		if (place->endpoint_count == HX_REDIS_ENDPOINTS_MAX)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"too many servers in the Redis URL: limit %d; hapax finds the "
				"other servers of the Cluster",
				HX_REDIS_ENDPOINTS_MAX);
		if (!hx_endpoint_from_host(
			    host, HX_REDIS_PORT, &place->endpoints[place->endpoint_count++]))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the Redis URL has no valid host and port; percent-encode "
				"special characters in user and password");
	}
	return HAPAX_OK;
}

enum hapax_status hx_redis_place_begin(
	const char *text, struct hx_url *ret_url, struct hx_redis_place *place,
	struct hapax_error *err)
{
	*place = (struct hx_redis_place){.prefix = "hapax"};
	(void)hx_url_split(text, ret_url);
	if (hx_url_has_scheme(ret_url, "redis+unix")) {
		place->endpoint_count = 1;
		ret_url->path.size = 0; /* the path is the socket */
		if (hx_endpoint_from_socket(ret_url, &place->endpoints[0]))
			return HAPAX_OK;
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the path must be 1 to %d bytes long, as in 'redis+unix:/run/redis.sock'",
			HX_UNIX_PATH_SIZE_MAX);
	}
	if (!ret_url->has_authority)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "missing host, as in 'redis://localhost:6379'");
	place->is_cluster = hx_url_has_scheme(ret_url, "redis+cluster") ||
		hx_url_has_scheme(ret_url, "rediss+cluster");
	place->has_tls = strncmp(text, "rediss", 6) == 0;
	if (!hx_url_user(ret_url, place->user, place->password, HX_REDIS_TEXT_SIZE))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid user or password in the Redis URL; percent-encode special "
			"characters");
	return set_hosts(place, ret_url->hosts, err);
}

enum hapax_status hx_redis_place_set_db(
	struct hx_redis_place *place, struct hapax_bytes text, struct hapax_error *err)
{
	int64_t db;

	if (!hx_resp_parse_integer(text, &db) || db < 0 || db > HX_REDIS_DB_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the path of a Redis URL must be the number of a database, as in "
			"redis://host/0");
	place->db = (int)db;
	return HAPAX_OK;
}

enum hapax_status hx_redis_place_end(
	struct hx_redis_place *place, const struct hx_url_options *options,
	struct hapax_bytes query, void *bound, struct hapax_error *err)
{
	enum hapax_status status = hx_url_options_read(options, query, place->has_tls, bound, err);

	if (status == HAPAX_OK && place->is_cluster && place->db != 0)
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a Redis Cluster has only database 0; remove the number from "
			"the URL");
	return status;
}

enum hapax_status hx_redis_place_parse(
	const char *text, struct hx_redis_place *ret_place, struct hapax_error *err)
{
	struct hx_url url;
	enum hapax_status status = hx_redis_place_begin(text, &url, ret_place, err);

	if (status == HAPAX_OK && url.path.size > 1)
		status = hx_redis_place_set_db(
			ret_place, hx_bytes((const char *)url.path.data + 1, url.path.size - 1),
			err);
	if (status == HAPAX_OK)
		status = hx_redis_place_end(ret_place, &store_options, url.query, ret_place, err);
	if (status != HAPAX_OK)
		explicit_bzero(ret_place, sizeof(*ret_place));
	return status;
}
