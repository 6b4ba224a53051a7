/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_place.c - parses the URL of a Redis stream.
 */
#include "source/redis/stream_place.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

static const struct hx_url_option rows[] = {
	{"stream", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_stream_place, stream)},
	{"group", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_stream_place, group)},
	{"instance", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_stream_place, instance)},
	{"start", HX_URL_WORD, "earliest|latest",
	 HX_URL_MEMBER(struct hx_stream_place, starts_latest)},
	/* Less would take entries from live members; more than a day is pointless. */
	{"min_idle", HX_URL_TIME, "100ms..24h", HX_URL_MEMBER(struct hx_stream_place, min_idle_ms),
	 .min = 100, .max = 24 * 3600 * 1000},
	{"prefetch", HX_URL_NUMBER, NULL, HX_URL_MEMBER(struct hx_stream_place, prefetch), .min = 1,
	 .max = HX_STREAM_PREFETCH_MAX},
	{"size_max", HX_URL_NUMBER, "bytes", HX_URL_MEMBER(struct hx_stream_place, size_max),
	 .min = 1, .max = HX_STREAM_SIZE_MAX_MAX},
	{.kind = HX_URL_MORE,
	 .offset = offsetof(struct hx_stream_place, redis),
	 .more = hx_redis_options},
};

static const struct hx_url_options options = {.of = "a Redis source", .rows = rows};

static enum hapax_status bad(struct hapax_error *err, const char *what)
{
	return hx_error_set(err, HAPAX_ERR_INVALID, 0, "%s; use redis://host/STREAM?group=G", what);
}

static void write_shown(struct hx_stream_place *place)
{
	char where[512];

	hx_endpoint_format(&place->redis.endpoints[0], where, sizeof(where));
	if (place->redis.endpoints[0].is_unix)
		(void)snprintf(place->origin, sizeof(place->origin), "redis+%s", where);
	else
		(void)snprintf(
			place->origin, sizeof(place->origin), "redis%s://%s",
			place->redis.has_tls ? "s" : "", where);
	if (place->redis.db != 0) {
		size_t used = strlen(place->origin);

		(void)snprintf(
			place->origin + used, sizeof(place->origin) - used, "/%d", place->redis.db);
	}
	(void)snprintf(
		place->shown, sizeof(place->shown), "%.3000s/%s?group=%s", place->origin,
		place->stream, place->group);
}

static enum hapax_status parse(
	const char *text, struct hx_stream_place *place, struct hapax_error *err)
{
	struct hx_url url;
	enum hapax_status status = hx_redis_place_begin(text, &url, &place->redis, err);

	if (status != HAPAX_OK)
		return status;
	if (url.path.size > 1 &&
	    !hx_url_text(
		    hx_bytes((const char *)url.path.data + 1, url.path.size - 1), place->stream,
		    sizeof(place->stream)))
		return bad(err, "invalid stream in the URL");
	status = hx_redis_place_end(&place->redis, &options, url.query, place, err);
	if (status != HAPAX_OK)
		return status;
	if (place->redis.is_cluster)
		return bad(
			err,
			"cannot read a stream from a Redis Cluster URL; use the server "
			"that has the stream");
	if (place->stream[0] == '\0')
		return bad(err, "missing stream in the URL");
	write_shown(place);
	return HAPAX_OK;
}

enum hapax_status hx_stream_place_parse(
	const char *text, struct hx_stream_place *ret_place, struct hapax_error *err)
{
	enum hapax_status status;

	*ret_place = (struct hx_stream_place){
		.group = "hapax",
		.min_idle_ms = HX_STREAM_MIN_IDLE_MS_DEFAULT,
		.prefetch = HX_STREAM_PREFETCH_DEFAULT,
		.size_max = HX_STREAM_SIZE_MAX_DEFAULT};
	status = parse(text, ret_place, err);
	if (status != HAPAX_OK)
		explicit_bzero(ret_place, sizeof(*ret_place));
	return status;
}
