/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_target.c - the URL of a sink that is Redis Streams. What is of streams is taken out of
 * it; what is left is the URL of a place, as stores have it.
 */
#include "outbox/sink/redis_target.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/percent.h"
#include "wire/resp/resp.h"

enum { URL_SIZE_MAX = 4096 };

static bool is_number(const char *text, size_t size)
{
	return size > 0 && strspn(text, "0123456789") >= size;
}

static enum hapax_status set_stream(
	struct hx_redis_target *target, struct hapax_bytes text, struct hapax_error *err)
{
	if (text.size > 0 &&
	    hx_percent_decode_text(text.data, text.size, target->stream, sizeof(target->stream)))
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"the stream in the sink's URL is no name of at most %d bytes",
		HX_OUTBOX_TEXT_SIZE_MAX);
}

/* The path of a URL, but for the number of a database; *ret_size is what the place keeps. */
static enum hapax_status take_path(
	struct hx_redis_target *target, const char *url, size_t *ret_size, struct hapax_error *err)
{
	const char *authority = strstr(url, "://");
	size_t end = strcspn(url, "?");
	size_t at;

	*ret_size = end;
	if (authority == NULL || strncmp(url, "redis+unix:", 11) == 0)
		return HAPAX_OK;
	at = (size_t)(authority + 3 - url) + strcspn(authority + 3, "/?");
	if (at < end) {
		size_t first = strcspn(url + at + 1, "/?");

		if (is_number(url + at + 1, first))
			at += 1 + first;
	}
	*ret_size = at;
	if (end - at <= 1)
		return HAPAX_OK;
	return set_stream(target, hx_bytes(url + at + 1, end - at - 1), err);
}

/* There is room: what is kept is no longer than the URL. */
static enum hapax_status keep_option(
	struct hapax_buf *rest, const char *name, struct hapax_bytes value)
{
	return hx_buf_printf(
		rest, "%c%s=%.*s", memchr(rest->data, '?', rest->size) == NULL ? '?' : '&', name,
		(int)value.size, (const char *)value.data);
}

static enum hapax_status take_option(
	struct hx_redis_target *target, struct hapax_bytes name, struct hapax_bytes value,
	struct hapax_buf *rest, struct hapax_error *err)
{
	static const char *const kept[] = {"db", "ca", "cert", "key"};

	if (hx_bytes_equal(name, HX_BYTES_LIT("stream")))
		return set_stream(target, value, err);
	if (hx_bytes_equal(name, HX_BYTES_LIT("maxlen"))) {
		if (hx_resp_parse_integer(value, &target->length_max) && target->length_max > 0)
			return HAPAX_OK;
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"maxlen is how many entries a stream keeps, as in maxlen=1000000");
	}
	if (hx_bytes_equal(name, HX_BYTES_LIT("create"))) {
		target->creates = false;
		return hx_bytes_equal(value, HX_BYTES_LIT("no"))
			? HAPAX_OK
			: hx_error_set(err, HAPAX_ERR_INVALID, 0, "create is no, or left out");
	}
	for (size_t i = 0; i < HX_COUNT(kept); i++)
		if (hx_bytes_equal(name, hapax_bytes_from_text(kept[i])))
			return keep_option(rest, kept[i], value);
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"a sink that is Redis has no option '%.*s'; known are stream, maxlen, create, db, ca,"
		" cert, key",
		(int)(name.size < 40 ? name.size : 40), (const char *)name.data);
}

enum hapax_status hx_redis_target_parse(
	const char *url, struct hx_redis_target *ret_target, struct hapax_error *err)
{
	struct hx_redis_target target = {.creates = true};
	struct hapax_bytes query = {0}, name, value;
	struct hapax_buf rest;
	enum hapax_status status;
	size_t size = 0;

	if (strlen(url) >= URL_SIZE_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the sink's URL is longer than %d bytes",
			URL_SIZE_MAX);
	hx_buf_init(&rest, URL_SIZE_MAX + 8);
	status = take_path(&target, url, &size, err);
	if (status == HAPAX_OK && hx_buf_reserve(&rest, URL_SIZE_MAX + 8) != HAPAX_OK)
		status = hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "no memory for a sink");
	if (status == HAPAX_OK)
		status = hx_buf_append(&rest, url, size);
	if (strchr(url, '?') != NULL)
		query = hapax_bytes_from_text(strchr(url, '?') + 1);
	while (status == HAPAX_OK && hx_query_next(&query, &name, &value))
		status = take_option(&target, name, value, &rest, err);
	if (status == HAPAX_OK)
		status = hx_buf_append_byte(&rest, '\0');
	if (status == HAPAX_OK)
		status = hx_redis_place_parse((const char *)rest.data, &target.place, err);
	if (status == HAPAX_OK)
		*ret_target = target;
	/* The password is in there. */
	if (rest.data != NULL)
		explicit_bzero(rest.data, rest.capacity);
	explicit_bzero(&target, sizeof(target));
	hx_buf_done(&rest);
	return status;
}
