/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.c - the only reader of URLs.
 */
#include "wire/url.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/error.h"
#include "wire/percent.h"
#include "wire/resp/resp.h"

enum {
	NAME_SHOWN_MAX = 40,
	KNOWN_SIZE = HAPAX_ERROR_MESSAGE_SIZE,
};

static void split_authority(struct hx_url *url, const char *text, size_t size)
{
	const char *at = memrchr(text, '@', size);
	const char *host = at == NULL ? text : at + 1;

	url->hosts = hx_bytes(host, size - (size_t)(host - text));
	if (at != NULL) {
		const char *colon = memchr(text, ':', (size_t)(at - text));

		url->user = hx_bytes(text, (size_t)((colon == NULL ? at : colon) - text));
		if (colon != NULL)
			url->password = hx_bytes(colon + 1, (size_t)(at - colon - 1));
	}
}

bool hx_url_split(const char *text, struct hx_url *ret_url)
{
	const char *colon = strchr(text, ':');
	const char *rest, *query;
	size_t size = 0;

	*ret_url = (struct hx_url){.has_authority = false};
	if (colon == NULL || colon == text)
		return false;
	ret_url->scheme = hx_bytes(text, (size_t)(colon - text));
	rest = colon + 1;
	ret_url->has_authority = strncmp(rest, "//", 2) == 0;
	if (ret_url->has_authority) {
		rest += 2;
		size = strcspn(rest, "/?");
		split_authority(ret_url, rest, size);
	}
	query = rest + strcspn(rest, "?");
	ret_url->rest = hx_bytes(rest, (size_t)(query - rest));
	if (rest + size < query)
		ret_url->path = hx_bytes(rest + size, (size_t)(query - rest) - size);
	if (*query == '?')
		ret_url->query = hapax_bytes_from_text(query + 1);
	return true;
}

bool hx_url_has_scheme(const struct hx_url *url, const char *scheme)
{
	return url->scheme.size == strlen(scheme) &&
		strncasecmp(url->scheme.data, scheme, url->scheme.size) == 0;
}

bool hx_url_is_visible(const char *text)
{
	while (*text > ' ' && *text < 0x7f)
		text++;
	return *text == '\0';
}

bool hx_url_next(struct hapax_bytes *list, char separator, struct hapax_bytes *ret_part)
{
	const char *data = list->data;
	const char *end = list->size == 0 ? NULL : memchr(data, separator, list->size);

	if (data == NULL)
		return false;
	*ret_part = hx_bytes(data, end == NULL ? list->size : (size_t)(end - data));
	*list = end == NULL ? hx_bytes(NULL, 0)
			    : hx_bytes(end + 1, list->size - ret_part->size - 1);
	return true;
}

bool hx_url_text(struct hapax_bytes part, char *out, size_t out_size)
{
	return hx_percent_decode_text(part.data, part.size, out, out_size);
}

bool hx_url_user(const struct hx_url *url, char *user, char *password, size_t size)
{
	return (url->user.data == NULL || hx_url_text(url->user, user, size)) &&
		(url->password.data == NULL || hx_url_text(url->password, password, size));
}

/* The row of an option, and in *place the struct that it is bound to; NULL: there is none. */
static const struct hx_url_option *find_row(
	const struct hx_url_option *row, struct hapax_bytes name, char **place)
{
	while (row->kind != HX_URL_END) {
		if (row->kind == HX_URL_MORE) {
			*place += row->offset;
			row = row->more;
		} else if (hx_bytes_equal(name, hapax_bytes_from_text(row->name))) {
			return row;
		} else {
			row++;
		}
	}
	return NULL;
}

/* "schema=NAME", "pool=1..64", "held_max=1..1024 bytes" */
static void write_form(const struct hx_url_option *row, char *out, size_t size)
{
	const char *form = row->form == NULL ? "" : row->form;

	if (row->kind != HX_URL_NUMBER || row->max == INT64_MAX)
		(void)snprintf(out, size, "%s=%s", row->name, form);
	else
		(void)snprintf(
			out, size, "%s=%" PRId64 "..%" PRId64 "%s%s", row->name, row->min, row->max,
			form[0] == '\0' ? "" : " ", form);
}

static void write_known(const struct hx_url_options *options, char out[KNOWN_SIZE])
{
	const struct hx_url_option *row = options->rows;
	size_t used = 0;

	out[0] = '\0';
	while (row->kind != HX_URL_END && used + 2 < KNOWN_SIZE) {
		if (row->kind == HX_URL_MORE) {
			row = row->more;
			continue;
		}
		if (used > 0)
			used += (size_t)snprintf(out + used, KNOWN_SIZE - used, ", ");
		write_form(row++, out + used, KNOWN_SIZE - used);
		used += strlen(out + used);
	}
	if (options->also != NULL)
		(void)snprintf(out + used, KNOWN_SIZE - used, " and %s", options->also);
}

/* A word that looks like a name; "ss@host" of "pa?ss@host" does not. */
static bool is_word(struct hapax_bytes name)
{
	const char *data = name.data;

	for (size_t i = 0; i < name.size; i++)
		if (memchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-",
			   data[i], 65) == NULL)
			return false;
	return name.size > 0 && name.size <= NAME_SHOWN_MAX;
}

enum hapax_status hx_url_option_refuse(
	const struct hx_url_options *options, struct hapax_bytes name, struct hapax_bytes value,
	struct hapax_error *err)
{
	/* The host follows a '@': everything before it may be user and password. */
	bool is_shown = is_word(name) && value.data != NULL && strchr(value.data, '@') == NULL;
	char known[KNOWN_SIZE];

	write_known(options, known);
	if (is_shown)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "unknown option '%.*s' in the URL of %s; use %s",
			(int)name.size, (const char *)name.data, options->of, known);
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"unknown option in the URL of %s, or a '?' that is not percent-encoded; use %s",
		options->of, known);
}

static void set_number(const struct hx_url_option *row, char *member, int64_t number)
{
	uint64_t wide = (uint64_t)number;
	uint32_t word = (uint32_t)number;
	uint16_t half = (uint16_t)number;

	switch (row->size) {
	case sizeof(wide): memcpy(member, &wide, sizeof(wide)); return;
	case sizeof(word):
		assert(word == wide);
		memcpy(member, &word, sizeof(word));
		return;
	default:
		assert(row->size == sizeof(half) && half == wide);
		memcpy(member, &half, sizeof(half));
	}
}

/* Is value one of the words of row->form? */
static bool set_word(const struct hx_url_option *row, char *member, struct hapax_bytes value)
{
	struct hapax_bytes words = hapax_bytes_from_text(row->form), word;
	int64_t number = row->min;

	assert(row->size == sizeof(bool));
	for (; hx_url_next(&words, '|', &word); number++) {
		bool is_set = number != 0;

		if (!hx_bytes_equal(word, value))
			continue;
		memcpy(member, &is_set, sizeof(is_set));
		return true;
	}
	return false;
}

static bool set_value(const struct hx_url_option *row, char *member, struct hapax_bytes value)
{
	int64_t number = -1;
	bool is_number;

	assert(row->kind > HX_URL_MORE && row->size > 0);
	switch (row->kind) {
	case HX_URL_TEXT:
		return value.size > 0 && hx_url_text(value, member, row->size) &&
			(row->is_good == NULL || row->is_good(member));
	case HX_URL_WORD: return set_word(row, member, value);
	case HX_URL_TIME: is_number = hx_duration_parse(value, &number, NULL) == HAPAX_OK; break;
	default: is_number = hx_resp_parse_integer(value, &number);
	}
	if (!is_number || number < row->min || number > row->max)
		return false;
	set_number(row, member, number);
	return true;
}

static enum hapax_status read_option(
	const struct hx_url_options *options, struct hapax_bytes name, struct hapax_bytes value,
	bool has_tls, void *place, struct hapax_error *err)
{
	char *bound = place;
	const struct hx_url_option *row = find_row(options->rows, name, &bound);
	char form[KNOWN_SIZE];

	if (row == NULL)
		return options->other == NULL ? hx_url_option_refuse(options, name, value, err)
					      : options->other(place, name, value, err);
	if (row->is_for_tls && !has_tls)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"option '%s' in the URL of %s needs TLS; use rediss:, amqps: or https:",
			row->name, options->of);
	if (set_value(row, bound + row->offset, value))
		return HAPAX_OK;
	write_form(row, form, sizeof(form));
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "invalid option '%s' in the URL of %s: it must be %s",
		row->name, options->of, form);
}

enum hapax_status hx_url_options_read(
	const struct hx_url_options *options, struct hapax_bytes query, bool has_tls, void *place,
	struct hapax_error *err)
{
	struct hapax_bytes name, value;
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK && hx_percent_query_next(&query, &name, &value))
		status = read_option(options, name, value, has_tls, place, err);
	return status;
}
