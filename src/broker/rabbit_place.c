/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_place.c - parses the URL of a RabbitMQ broker.
 */
#include "broker/rabbit_place.h"

#include <string.h>

#include "base/error.h"
#include "net/address.h"

static enum hapax_status bad(struct hapax_error *err, const char *what)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"%s in the RabbitMQ URL; use 'amqp://user:password@host:5672/vhost' and "
		"percent-encode special characters",
		what);
}

const struct hx_url_option hx_rabbit_options[] = {
	{"declare", HX_URL_WORD, "quorum", HX_URL_MEMBER(struct hx_rabbit_place, declares),
	 .min = true},
	{"ca", HX_URL_TLS_FILE(struct hx_rabbit_place, authority_file)},
	{"cert", HX_URL_TLS_FILE(struct hx_rabbit_place, certificate_file)},
	{"key", HX_URL_TLS_FILE(struct hx_rabbit_place, key_file)},
	{.kind = HX_URL_END},
};

enum hapax_status hx_rabbit_place_begin(
	const char *text, struct hx_url *ret_url, struct hx_rabbit_place *place,
	struct hapax_error *err)
{
	struct hx_endpoint endpoint;

	*place = (struct hx_rabbit_place){
		.port = HX_RABBIT_PORT, .user = "guest", .password = "guest", .vhost = "/"};
	if (hx_url_split(text, ret_url))
		place->has_tls = hx_url_has_scheme(ret_url, "amqps");
	if (place->has_tls)
		place->port = HX_RABBIT_PORT_TLS;
	if (!ret_url->has_authority || (!place->has_tls && !hx_url_has_scheme(ret_url, "amqp")))
		return bad(err, "missing 'amqp://' or 'amqps://'");
	if (!hx_url_user(ret_url, place->user, place->password, HX_RABBIT_NAME_SIZE))
		return bad(err, "invalid user or password");
	/* A '@' in the path is behind a slash of the password. */
	if (!hx_endpoint_from_host(ret_url->hosts, place->port, &endpoint) ||
	    (ret_url->path.size > 0 && memchr(ret_url->path.data, '@', ret_url->path.size) != NULL))
		return bad(err, "invalid host or port");
	place->port = endpoint.port;
	memcpy(place->host, endpoint.host, sizeof(place->host));
	return HAPAX_OK;
}

enum hapax_status hx_rabbit_place_set_vhost(
	struct hx_rabbit_place *place, struct hapax_bytes path, struct hapax_error *err)
{
	/* After the slash. */
	if (path.size > 1 &&
	    !hx_url_text(
		    (struct hapax_bytes){(const char *)path.data + 1, path.size - 1}, place->vhost,
		    HX_RABBIT_NAME_SIZE))
		return bad(err, "invalid vhost");
	return HAPAX_OK;
}

enum hapax_status hx_rabbit_place_parse(
	const char *text, struct hx_rabbit_place *ret_place, struct hapax_error *err)
{
	static const struct hx_url_option rows[] = {
		{"exchange", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_rabbit_place, exchange)},
		{"queue", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_rabbit_place, queue)},
		{.kind = HX_URL_MORE, .more = hx_rabbit_options},
	};
	static const struct hx_url_options options = {.of = "a RabbitMQ sink", .rows = rows};
	struct hx_url url;
	enum hapax_status status = hx_rabbit_place_begin(text, &url, ret_place, err);

	if (status == HAPAX_OK)
		status = hx_rabbit_place_set_vhost(ret_place, url.path, err);
	if (status == HAPAX_OK)
		status = hx_url_options_read(
			&options, url.query, ret_place->has_tls, ret_place, err);
	if (status != HAPAX_OK)
		explicit_bzero(ret_place, sizeof(*ret_place));
	return status;
}
