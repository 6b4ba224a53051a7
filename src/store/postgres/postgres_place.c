/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_place.c - a PostgreSQL store's URL, taken apart.
 */
#include "store/postgres/postgres_place.h"

#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#include "base/error.h"
#include "wire/percent.h"

static bool parse_pool(const char *text, size_t size, unsigned *ret_pool)
{
	unsigned pool = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9' || pool > HX_POSTGRES_POOL_MAX)
			return false;
		pool = pool * 10 + (unsigned)(text[i] - '0');
	}
	*ret_pool = pool;
	return size > 0 && pool >= 1 && pool <= HX_POSTGRES_POOL_MAX;
}

static bool is_name(const char *text, size_t size, const char *name)
{
	return size == strlen(name) && memcmp(text, name, size) == 0;
}

bool hx_postgres_schema_is_good(const char *schema)
{
	return schema[strcspn(schema, "'%$\\")] == '\0';
}

enum option { OPTION_GOOD, OPTION_BAD, OPTION_FOREIGN };

/* One "name=value". Foreign ones are libpq's. */
static enum option set_option(struct hx_postgres_place *place, const char *text, size_t size)
{
	const char *equals = memchr(text, '=', size);
	size_t name_size = equals == NULL ? size : (size_t)(equals - text);
	const char *value = equals == NULL ? text + size : equals + 1;
	size_t value_size = (size_t)(text + size - value);
	bool is_good;

	if (is_name(text, name_size, "schema")) {
		is_good = value_size > 0 &&
			hx_percent_decode_text(
				  value, value_size, place->schema, sizeof(place->schema)) &&
			hx_postgres_schema_is_good(place->schema);
	} else if (is_name(text, name_size, "tenant")) {
		/* '*' would be all of them: see hapax_sees() in schema.sql. */
		is_good = value_size > 0 &&
			hx_percent_decode_text(
				  value, value_size, place->tenant, sizeof(place->tenant)) &&
			strcmp(place->tenant, "*") != 0;
	} else if (is_name(text, name_size, "pool")) {
		is_good = parse_pool(value, value_size, &place->pool);
	} else if (is_name(text, name_size, "require")) {
		is_good = is_name(value, value_size, "durable");
		place->requires_durable = is_good;
	} else {
		return OPTION_FOREIGN;
	}
	return is_good ? OPTION_GOOD : OPTION_BAD;
}

/* Take our options out of the query; the rest is appended to place->url. */
static enum hapax_status split_query(
	struct hx_postgres_place *place, const char *query, struct hapax_error *err)
{
	size_t held = strlen(place->url);
	char mark = '?';

	while (*query != '\0') {
		size_t size = strcspn(query, "&");

		switch (set_option(place, query, size)) {
		case OPTION_GOOD: break;
		case OPTION_BAD:
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the option '%.*s' has a bad value; known are schema=NAME, tenant=NAME,"
				" pool=1..%d, require=durable",
				(int)strcspn(query, "=&"), query, HX_POSTGRES_POOL_MAX);
		case OPTION_FOREIGN:
			place->url[held++] = mark;
			memcpy(place->url + held, query, size);
			held += size;
			place->url[held] = '\0';
			mark = '&';
			break;
		}
		query += size;
		query += *query == '&';
	}
	return HAPAX_OK;
}

enum hapax_status hx_postgres_place_parse(
	const char *url, struct hx_postgres_place *ret_place, struct hapax_error *err)
{
	size_t size = strcspn(url, "?");
	struct hx_postgres_place place = {.pool = HX_POSTGRES_POOL_DEFAULT, .schema = "public"};
	PQconninfoOption *options;
	enum hapax_status status = HAPAX_OK;

	if (strlen(url) >= sizeof(place.url) - 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the PostgreSQL URL was longer than %zu bytes",
			sizeof(place.url) - 2);
	memcpy(place.url, url, size);
	place.url[size] = '\0';
	if (url[size] == '?')
		status = split_query(&place, url + size + 1, err);
	if (status != HAPAX_OK)
		return status;
	/* libpq's own words would repeat the URL, password and all. */
	options = PQconninfoParse(place.url, NULL);
	if (options == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the PostgreSQL URL is malformed; it looks like 'postgres://user@host:5432/database';"
			" percent-encode what is special in user and password");
	PQconninfoFree(options);
	*ret_place = place;
	explicit_bzero(&place, sizeof(place));
	return HAPAX_OK;
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
