/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_place.c - the URL of a stream of Redis, taken apart.
 *
 * What is the source's own is cut out; the rest is what every URL of Redis has.
 */
#include "source/redis/stream_place.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/error.h"
#include "source/source_option.h"
#include "wire/percent.h"

/* Less would take entries from members that are alive; a day is for ever. */
enum { MIN_IDLE_MS_MIN = 100, MIN_IDLE_MS_MAX = 24 * 3600 * 1000 };

static enum hapax_status bad(struct hapax_error *err, const char *what)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "%s; a stream is redis://host/STREAM?group=G", what);
}

static enum hapax_status take_min_idle(
	struct hx_stream_place *place, const struct hx_option *option, struct hapax_error *err)
{
	if (hx_duration_parse(option->value, &place->min_idle_ms, err) != HAPAX_OK ||
	    place->min_idle_ms < MIN_IDLE_MS_MIN || place->min_idle_ms > MIN_IDLE_MS_MAX)
		return bad(err, "min_idle is a time such as 30s, from 100ms to 24h");
	return HAPAX_OK;
}

static enum hapax_status take_start(
	struct hx_stream_place *place, const struct hx_option *option, struct hapax_error *err)
{
	place->starts_latest = hx_option_says(option, "latest");
	return place->starts_latest || hx_option_says(option, "earliest")
		? HAPAX_OK
		: bad(err, "start is earliest or latest");
}

static enum hapax_status take_option(
	void *context, const struct hx_option *option, bool *ret_is_ours, struct hapax_error *err)
{
	struct hx_stream_place *place = context;
	const struct {
		const char *name;
		char *out;
	} names[] = {
		{"stream", place->stream}, {"group", place->group}, {"instance", place->instance}};
	int64_t number;

	for (size_t i = 0; i < HX_COUNT(names); i++) {
		if (hx_option_is(option, names[i].name))
			return hx_option_text(option, names[i].out, HX_STREAM_NAME_SIZE)
				? HAPAX_OK
				: bad(err, "stream, group or instance was not a name");
	}
	if (hx_option_is(option, "min_idle"))
		return take_min_idle(place, option, err);
	if (hx_option_is(option, "start"))
		return take_start(place, option, err);
	if (hx_option_is(option, "prefetch")) {
		if (!hx_option_number(option, HX_STREAM_PREFETCH_MAX, &number))
			return bad(err, "prefetch is a number from 1 to 10000");
		place->prefetch = (size_t)number;
		return HAPAX_OK;
	}
	if (hx_option_is(option, "size_max")) {
		if (!hx_option_number(option, HX_STREAM_SIZE_MAX_MAX, &number))
			return bad(err, "size_max is a number of bytes up to 251658240");
		place->size_max = (size_t)number;
		return HAPAX_OK;
	}
	*ret_is_ours = false;
	return HAPAX_OK;
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

enum hapax_status hx_stream_place_parse(
	const char *url, struct hx_stream_place *ret_place, struct hapax_error *err)
{
	struct hx_stream_place place = {
		.min_idle_ms = HX_STREAM_MIN_IDLE_MS_DEFAULT,
		.prefetch = HX_STREAM_PREFETCH_DEFAULT,
		.size_max = HX_STREAM_SIZE_MAX_DEFAULT};
	char plain[HX_STREAM_URL_SIZE];
	const char *query = url + strcspn(url, "?");
	const char *authority = strstr(url, "://");
	const char *path = query;
	enum hapax_status status = HAPAX_OK;

	if (strlen(url) >= sizeof(plain))
		return bad(err, "the URL was too long");
	if (strncmp(url, "redis+unix:", 11) != 0) {
		if (authority == NULL || authority > query)
			return bad(err, "the URL named no host");
		path = authority + 3 + strcspn(authority + 3, "/?");
		if (*path == '/' && path + 1 < query &&
		    !hx_percent_decode_text(
			    path + 1, (size_t)(query - path - 1), place.stream,
			    sizeof(place.stream)))
			return bad(err, "the stream was not a name");
	}
	(void)snprintf(plain, sizeof(plain), "%.*s", (int)(path - url), url);
	if (*query == '?')
		status = hx_options_take(query + 1, take_option, &place, plain, sizeof(plain), err);
	if (status == HAPAX_OK)
		status = hx_redis_place_parse(plain, &place.redis, err);
	if (status != HAPAX_OK)
		return status;
	if (place.redis.is_cluster)
		return bad(
			err, "streams of a Redis Cluster are read from the server that has them");
	if (place.stream[0] == '\0')
		return bad(err, "the URL named no stream");
	if (place.group[0] == '\0')
		(void)snprintf(place.group, sizeof(place.group), "hapax");
	write_shown(&place);
	*ret_place = place;
	return HAPAX_OK;
}
