/* SPDX-License-Identifier: Apache-2.0 */
#include "store/server/server_place.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "wire/percent.h"

static enum hapax_status read_parameter(
	struct hx_server_place *place, struct hapax_bytes name, struct hapax_bytes value,
	struct hapax_error *err)
{
	const struct {
		const char *name;
		char *text;
		bool is_for_tls;
	} known[] = {
		{"token_file", place->token_file, false},
		{"ca", place->authority_file, true},
		{"cert", place->certificate_file, true},
		{"key", place->key_file, true},
	};

	for (size_t i = 0; i < HX_COUNT(known); i++) {
		size_t size;

		if (!hx_bytes_equal(name, hapax_bytes_from_text(known[i].name)))
			continue;
		if (value.size == 0 || value.size >= HX_SERVER_PATH_SIZE ||
		    !hx_percent_decode(value, (unsigned char *)known[i].text, &size))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "'%s' in the URL is no path of a file",
				known[i].name);
		if (known[i].is_for_tls && !place->is_tls)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "'%s' in the URL is for https:// only",
				known[i].name);
		known[i].text[size] = '\0';
		return HAPAX_OK;
	}
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"the URL has an unknown '%.*s'; known are token_file, ca, cert and key",
		name.size > 32 ? 32 : (int)name.size, (const char *)name.data);
}

static enum hapax_status read_query(
	struct hx_server_place *place, const char *query, struct hapax_error *err)
{
	struct hapax_bytes rest = hapax_bytes_from_text(query);
	struct hapax_bytes name, value;
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK && hx_query_next(&rest, &name, &value))
		status = read_parameter(place, name, value, err);
	return status;
}

static enum hapax_status read_socket(
	struct hx_server_place *place, const char *path, size_t size, struct hapax_error *err)
{
	size_t decoded;

	if (size == 0 || size > HX_UNIX_PATH_SIZE_MAX ||
	    !hx_percent_decode(
		    hx_bytes(path, size), (unsigned char *)place->endpoint.host, &decoded))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the path of a socket has 1 to %d bytes: http+unix:PATH",
			HX_UNIX_PATH_SIZE_MAX);
	place->endpoint.host[decoded] = '\0';
	place->endpoint.is_unix = true;
	(void)snprintf(place->authority, sizeof(place->authority), "localhost");
	return HAPAX_OK;
}

static enum hapax_status read_host(
	struct hx_server_place *place, const char *text, size_t size, struct hapax_error *err)
{
	size_t host_size = strcspn(text, "/?");

	if (memchr(text, '@', host_size) != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the URL has a user: a token stands in a file, ?token_file=FILE");
	/* Its own words would repeat what may be half of a password with a slash. */
	if (hx_endpoint_parse(
		    hx_bytes(text, host_size), place->is_tls ? 443 : HX_SERVER_PORT,
		    &place->endpoint, NULL) != HAPAX_OK ||
	    place->endpoint.is_unix || host_size >= sizeof(place->authority))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the URL has no host and port to connect to");
	memcpy(place->authority, text, host_size);
	place->authority[host_size] = '\0';
	size -= host_size;
	text += host_size;
	while (size > 0 && text[size - 1] == '/')
		size--;
	if (size >= sizeof(place->prefix))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the path in the URL is too long");
	memcpy(place->prefix, text, size);
	place->prefix[size] = '\0';
	return HAPAX_OK;
}

enum hapax_status hx_server_place_parse(
	const char *url, struct hx_server_place *ret_place, struct hapax_error *err)
{
	const char *query = strchr(url, '?');
	size_t size = query == NULL ? strlen(url) : (size_t)(query - url);
	enum hapax_status status;

	memset(ret_place, 0, sizeof(*ret_place));
	for (const char *at = url; *at != '\0'; at++) {
		if (*at <= ' ' || *at >= 0x7f)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the URL has a character that a URL cannot have; use %%XX");
	}
	if (strncmp(url, "http+unix:", 10) == 0) {
		status = read_socket(ret_place, url + 10, size - 10, err);
	} else if (strncmp(url, "http://", 7) == 0) {
		status = read_host(ret_place, url + 7, size - 7, err);
	} else if (strncmp(url, "https://", 8) == 0) {
		ret_place->is_tls = true;
		status = HX_HAVE_TLS ? read_host(ret_place, url + 8, size - 8, err)
				     : hx_error_set(
					       err, HAPAX_ERR_UNSUPPORTED, 0,
					       "https:// needs TLS, which is not built in");
	} else {
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a server's URL is http://HOST:PORT");
	}
	if (status == HAPAX_OK && query != NULL)
		status = read_query(ret_place, query + 1, err);
	return status;
}

enum hapax_status hx_server_token_read(
	const struct hx_server_place *place, char ret_token[HX_SERVER_TOKEN_SIZE],
	struct hapax_error *err)
{
	struct hapax_buf text;
	enum hapax_status status;

	ret_token[0] = '\0';
	if (place->token_file[0] == '\0')
		return HAPAX_OK;
	hx_buf_init(&text, HX_SERVER_TOKEN_SIZE);
	status = hx_file_read_all(
		hx_io_system(), place->token_file, HX_SERVER_TOKEN_SIZE - 1, &text, err);
	while (text.size > 0 &&
	       (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
		text.size--;
	for (size_t i = 0; i < text.size && status == HAPAX_OK; i++) {
		if (text.data[i] <= ' ' || text.data[i] >= 0x7f)
			status = hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"\"%s\" holds no token: one line of text", place->token_file);
	}
	if (status == HAPAX_OK && text.size == 0)
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "\"%s\" is empty", place->token_file);
	if (status == HAPAX_OK) {
		memcpy(ret_token, text.data, text.size);
		ret_token[text.size] = '\0';
	}
	if (text.capacity > 0)
		explicit_bzero(text.data, text.capacity);
	hx_buf_done(&text);
	return status;
}
