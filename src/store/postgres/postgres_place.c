/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_place.c - parses the URL of a PostgreSQL store.
 */
#include "store/postgres/postgres_place.h"

#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#include "base/error.h"
#include "wire/postgres_url.h"
#include "wire/url.h"

bool hx_postgres_schema_is_good(const char *schema)
{
	return schema[strcspn(schema, "'%$\\")] == '\0';
}

/* '*' would mean all tenants: see hapax_sees() in schema.sql. */
static bool is_tenant(const char *text)
{
	return strcmp(text, "*") != 0;
}

/* Pass an unknown option to libpq. */
static enum hapax_status leave_to_libpq(
	void *context, struct hapax_bytes name, struct hapax_bytes value, struct hapax_error *err)
{
	struct hx_postgres_place *place = context;
	size_t held = strlen(place->url);
	size_t size = name.size + (value.data == NULL ? 0 : 1 + value.size);

	(void)err;
	(void)snprintf(
		place->url + held, sizeof(place->url) - held, "%c%.*s",
		strchr(place->url, '?') == NULL ? '?' : '&', (int)size, (const char *)name.data);
	return HAPAX_OK;
}

static const struct hx_url_option rows[] = {
	{"schema", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_postgres_place, schema),
	 .is_good = hx_postgres_schema_is_good},
	{"tenant", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_postgres_place, tenant),
	 .is_good = is_tenant},
	{"pool", HX_URL_NUMBER, NULL, HX_URL_MEMBER(struct hx_postgres_place, pool), .min = 1,
	 .max = HX_POSTGRES_POOL_MAX},
	{"require", HX_URL_WORD, "durable",
	 HX_URL_MEMBER(struct hx_postgres_place, requires_durable), .min = true},
	{.kind = HX_URL_END},
};

static const struct hx_url_options options = {
	.of = "a PostgreSQL database", .rows = rows, .other = leave_to_libpq};

static bool is_good(const char *url)
{
	/* libpq's message would repeat the URL, including the password. */
	PQconninfoOption *parsed = PQconninfoParse(url, NULL);
	bool good = parsed != NULL && hx_postgres_url_is_good(url);

	for (const PQconninfoOption *at = parsed; good && at->keyword != NULL; at++)
		good = hx_postgres_url_part_is_good(at->keyword, at->val);
	PQconninfoFree(parsed);
	return good;
}

static enum hapax_status parse(
	const char *text, struct hx_postgres_place *place, struct hapax_error *err)
{
	size_t size = strcspn(text, "?");
	enum hapax_status status;

	if (strlen(text) >= sizeof(place->url))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "PostgreSQL URL is too long: limit %zu bytes",
			sizeof(place->url) - 1);
	memcpy(place->url, text, size);
	status = hx_url_options_read(
		&options, hapax_bytes_from_text(text + size + (text[size] == '?')), true, place,
		err);
	if (status != HAPAX_OK)
		return status;
	if (!is_good(place->url))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid PostgreSQL URL; use 'postgres://user@host:5432/database' and "
			"percent-encode special characters in user and password");
	return HAPAX_OK;
}

enum hapax_status hx_postgres_place_parse(
	const char *text, struct hx_postgres_place *ret_place, struct hapax_error *err)
{
	enum hapax_status status;

	*ret_place =
		(struct hx_postgres_place){.pool = HX_POSTGRES_POOL_DEFAULT, .schema = "public"};
	status = parse(text, ret_place, err);
	if (status != HAPAX_OK)
		explicit_bzero(ret_place, sizeof(*ret_place));
	return status;
}

static enum hapax_status append_schema(struct hapax_buf *buf, const char *schema)
{
	enum hapax_status status = hx_buf_append_byte(buf, '"');

	for (; *schema != '\0' && status == HAPAX_OK; schema++) {
		if (*schema == '"')
			status = hx_buf_append_byte(buf, '"');
		if (status == HAPAX_OK)
			status = hx_buf_append_byte(buf, (unsigned char)*schema);
	}
	return status == HAPAX_OK ? hx_buf_append(buf, "\".", 2) : status;
}

enum hapax_status hx_postgres_sql_append(
	struct hapax_buf *buf, const char *schema, const char *text)
{
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK) {
		const char *mark = strstr(text, "@@");
		size_t size = mark == NULL ? strlen(text) : (size_t)(mark - text);

		status = hx_buf_append(buf, text, size);
		if (mark == NULL || status != HAPAX_OK)
			break;
		status = append_schema(buf, schema);
		text = mark + 2;
	}
	return status == HAPAX_OK ? hx_buf_append_byte(buf, '\0') : status;
}
