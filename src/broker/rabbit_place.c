/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_place.c - the URL of a RabbitMQ broker, taken apart.
 */
#include "broker/rabbit_place.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "wire/percent.h"

static const char plain_scheme[] = "amqp://";
static const char tls_scheme[] = "amqps://";

static bool decode(const char *text, size_t size, char out[HX_RABBIT_NAME_SIZE])
{
	return hx_percent_decode_text(text, size, out, HX_RABBIT_NAME_SIZE);
}

static bool is_name(const char *text, size_t size, const char *name)
{
	return size == strlen(name) && memcmp(text, name, size) == 0;
}

static enum hapax_status bad(struct hapax_error *err, const char *what)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"%s in the RabbitMQ URL; it looks like 'amqp://user:password@host:5672/vhost'; percent-encode"
		" what is special",
		what);
}

/* One "name=value". */
static enum hapax_status set_option(
	struct hx_rabbit_place *place, const char *text, size_t size, struct hapax_error *err)
{
	const struct {
		const char *name;
		char *value;
	} options[] = {
		{"exchange", place->exchange}, {"queue", place->queue},
		{"ca", place->authority_file}, {"cert", place->certificate_file},
		{"key", place->key_file},
	};
	const char *equals = memchr(text, '=', size);
	size_t name_size = equals == NULL ? size : (size_t)(equals - text);
	const char *value = equals == NULL ? text + size : equals + 1;
	size_t value_size = (size_t)(text + size - value);

	if (is_name(text, name_size, "declare") && is_name(value, value_size, "quorum")) {
		place->declares = true;
		return HAPAX_OK;
	}
	for (size_t i = 0; i < HX_COUNT(options); i++)
		if (is_name(text, name_size, options[i].name) &&
		    decode(value, value_size, options[i].value))
			return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"the option '%.*s' of the RabbitMQ URL is not known or has a bad value; known are"
		" exchange=NAME, queue=NAME, declare=quorum, ca=FILE, cert=FILE, key=FILE",
		(int)(name_size < 32 ? name_size : 32), text);
}

static enum hapax_status parse_query(
	struct hx_rabbit_place *place, const char *query, struct hapax_error *err)
{
	while (*query != '\0') {
		size_t size = strcspn(query, "&");
		enum hapax_status status = set_option(place, query, size, err);

		if (status != HAPAX_OK)
			return status;
		query += size;
		query += *query == '&';
	}
	return HAPAX_OK;
}

static bool parse_port(const char *text, size_t size, uint16_t *ret_port)
{
	unsigned port = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9' || port > UINT16_MAX)
			return false;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	*ret_port = (uint16_t)port;
	return size > 0 && port >= 1 && port <= UINT16_MAX;
}

/* "host", "host:port", "[v6]:port". */
static bool parse_host(struct hx_rabbit_place *place, const char *text, size_t size)
{
	const char *end = text + size;
	const char *colon = memchr(text, ':', size);

	if (size > 0 && text[0] == '[') {
		const char *bracket = memchr(text, ']', size);

		if (bracket == NULL || (bracket + 1 != end && bracket[1] != ':') ||
		    !decode(text + 1, (size_t)(bracket - text - 1), place->host))
			return false;
		colon = bracket + 1 == end ? NULL : bracket + 1;
	} else if (!decode(text, (size_t)((colon == NULL ? end : colon) - text), place->host)) {
		return false;
	}
	if (colon != NULL && !parse_port(colon + 1, (size_t)(end - colon - 1), &place->port))
		return false;
	return place->host[0] != '\0';
}

/* "user:password" */
static bool parse_user(struct hx_rabbit_place *place, const char *text, size_t size)
{
	const char *colon = memchr(text, ':', size);
	size_t user_size = colon == NULL ? size : (size_t)(colon - text);

	return decode(text, user_size, place->user) &&
		(colon == NULL || decode(colon + 1, size - user_size - 1, place->password));
}

bool hx_rabbit_url_is_ours(const char *url)
{
	return strncmp(url, plain_scheme, sizeof(plain_scheme) - 1) == 0 ||
		strncmp(url, tls_scheme, sizeof(tls_scheme) - 1) == 0;
}

enum hapax_status hx_rabbit_place_parse(
	const char *url, struct hx_rabbit_place *ret_place, struct hapax_error *err)
{
	struct hx_rabbit_place place = {
		.port = HX_RABBIT_PORT, .user = "guest", .password = "guest", .vhost = "/"};
	const char *at, *path;
	size_t size;

	if (!hx_rabbit_url_is_ours(url))
		return bad(err, "neither 'amqp://' nor 'amqps://' stood");
	place.has_tls = strncmp(url, tls_scheme, sizeof(tls_scheme) - 1) == 0;
	if (place.has_tls)
		place.port = HX_RABBIT_PORT_TLS;
	url = strstr(url, "//") + 2;
	size = strcspn(url, "/?");
	at = memrchr(url, '@', size);
	if (at != NULL && !parse_user(&place, url, (size_t)(at - url)))
		return bad(err, "user or password was malformed");
	path = url + size;
	if (at != NULL)
		url = at + 1;
	if (!parse_host(&place, url, (size_t)(path - url)))
		return bad(err, "host or port was malformed");
	if (*path == '/') {
		size = strcspn(path + 1, "?");
		if (size > 0 && !decode(path + 1, size, place.vhost))
			return bad(err, "the vhost was malformed");
		path += 1 + size;
	}
	if (*path == '?') {
		enum hapax_status status = parse_query(&place, path + 1, err);

		if (status != HAPAX_OK)
			return status;
	}
	*ret_place = place;
	return HAPAX_OK;
}
