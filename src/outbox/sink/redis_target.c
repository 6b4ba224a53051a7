/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_target.c - parses the URL of a Redis Streams sink.
 */
#include "outbox/sink/redis_target.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

static const struct hx_url_option rows[] = {
	{"stream", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_redis_target, stream)},
	{"maxlen", HX_URL_NUMBER, "COUNT", HX_URL_MEMBER(struct hx_redis_target, length_max),
	 .min = 1, .max = INT64_MAX},
	{"create", HX_URL_WORD, "no", HX_URL_MEMBER(struct hx_redis_target, creates)},
	{.kind = HX_URL_MORE,
	 .offset = offsetof(struct hx_redis_target, place),
	 .more = hx_redis_options},
};

static const struct hx_url_options options = {.of = "a Redis sink", .rows = rows};

static bool is_number(struct hapax_bytes text)
{
	return text.size > 0 && strspn(text.data, "0123456789") >= text.size;
}

/* "[/db][/stream]" */
static enum hapax_status set_path(
	struct hx_redis_target *target, struct hapax_bytes path, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	struct hapax_bytes rest, first;

	(void)hx_url_next(&path, '/', &first);
	rest = path;
	if (hx_url_next(&rest, '/', &first) && is_number(first)) {
		status = hx_redis_place_set_db(&target->place, first, err);
		path = rest;
	}
	if (status == HAPAX_OK && !hx_url_text(path, target->stream, sizeof(target->stream)))
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid stream in the URL of the sink: it must be at most %d bytes long",
			HX_OUTBOX_TEXT_SIZE_MAX);
	return status;
}

enum hapax_status hx_redis_target_parse(
	const char *text, struct hx_redis_target *ret_target, struct hapax_error *err)
{
	struct hx_url url;
	enum hapax_status status;

	*ret_target = (struct hx_redis_target){.creates = true};
	status = hx_redis_place_begin(text, &url, &ret_target->place, err);
	if (status == HAPAX_OK && url.path.size > 0)
		status = set_path(ret_target, url.path, err);
	if (status == HAPAX_OK)
		status = hx_redis_place_end(
			&ret_target->place, &options, url.query, ret_target, err);
	assert(memchr(ret_target->stream, '\0', sizeof(ret_target->stream)) != NULL);
	assert(status != HAPAX_OK || ret_target->length_max >= 0);
	assert(status != HAPAX_OK || ret_target->place.endpoint_count > 0);
	if (status != HAPAX_OK)
		explicit_bzero(ret_target, sizeof(*ret_target));
	return status;
}
