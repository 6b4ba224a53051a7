/* SPDX-License-Identifier: Apache-2.0 */
#include "store/server/server_place.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/io.h"
#include "wire/url.h"

static const struct hx_url_option rows[] = {
	{"auth_file", HX_URL_TEXT, "FILE", HX_URL_MEMBER(struct hx_server_place, auth_file)},
	{"ca", HX_URL_TLS_FILE(struct hx_server_place, authority_file)},
	{"cert", HX_URL_TLS_FILE(struct hx_server_place, certificate_file)},
	{"key", HX_URL_TLS_FILE(struct hx_server_place, key_file)},
	{.kind = HX_URL_END},
};

static const struct hx_url_options options = {.of = "a server", .rows = rows};

static enum hapax_status read_host(
	struct hx_server_place *place, const struct hx_url *url, struct hapax_error *err)
{
	struct hapax_bytes prefix = url->path;

	if (url->user.data != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the URL has a user: a token stands in a file, ?auth_file=FILE");
	if (url->hosts.size >= sizeof(place->authority) ||
	    !hx_endpoint_from_host(
		    url->hosts, place->is_tls ? 443 : HX_SERVER_PORT, &place->endpoint))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the URL has no valid host and port");
	memcpy(place->authority, url->hosts.data, url->hosts.size);
	while (prefix.size > 0 && ((const char *)prefix.data)[prefix.size - 1] == '/')
		prefix.size--;
	if (prefix.size >= sizeof(place->prefix))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the path in the URL is too long");
	if (prefix.size > 0)
		memcpy(place->prefix, prefix.data, prefix.size);
	return HAPAX_OK;
}

enum hapax_status hx_server_place_parse(
	const char *text, struct hx_server_place *ret_place, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	struct hx_url url;

	memset(ret_place, 0, sizeof(*ret_place));
	if (!hx_url_is_visible(text))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the URL has an invalid character; write it as %%XX");
	if (hx_url_split(text, &url))
		ret_place->is_tls = hx_url_has_scheme(&url, "https");
	if (ret_place->is_tls && !HX_HAVE_TLS)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0, "https:// needs TLS, which is not built in");
	if (hx_url_has_scheme(&url, "http+unix")) {
		if (!hx_endpoint_from_socket(&url, &ret_place->endpoint))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the path of a socket must be 1 to %d bytes long: http+unix:PATH",
				HX_UNIX_PATH_SIZE_MAX);
		(void)snprintf(ret_place->authority, sizeof(ret_place->authority), "localhost");
	} else if (url.has_authority && (ret_place->is_tls || hx_url_has_scheme(&url, "http"))) {
		status = read_host(ret_place, &url, err);
	} else {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the URL of a server must be http://HOST:PORT");
	}
	if (status == HAPAX_OK)
		status =
			hx_url_options_read(&options, url.query, ret_place->is_tls, ret_place, err);
	return status;
}

enum hapax_status hx_server_token_read(
	const struct hx_server_place *place, char ret_token[HX_SERVER_TOKEN_SIZE],
	struct hapax_error *err)
{
	struct hapax_buf text;
	enum hapax_status status;

	ret_token[0] = '\0';
	if (place->auth_file[0] == '\0')
		return HAPAX_OK;
	hx_buf_init(&text, HX_SERVER_TOKEN_SIZE);
	status = hx_io_read_all(
		hx_io_system(), place->auth_file, HX_SERVER_TOKEN_SIZE - 1, &text, err);
	while (text.size > 0 &&
	       (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
		text.size--;
	for (size_t i = 0; i < text.size && status == HAPAX_OK; i++) {
		if (text.data[i] <= ' ' || text.data[i] >= 0x7f)
			status = hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"'%s' must contain one line: the API token", place->auth_file);
	}
	if (status == HAPAX_OK && text.size == 0)
		status = hx_error_set(err, HAPAX_ERR_INVALID, 0, "'%s' is empty", place->auth_file);
	if (status == HAPAX_OK) {
		memcpy(ret_token, text.data, text.size);
		ret_token[text.size] = '\0';
	}
	if (text.capacity > 0)
		explicit_bzero(text.data, text.capacity);
	hx_buf_done(&text);
	return status;
}
