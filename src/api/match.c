/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.c - find the row, names and query of a request.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/route.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "wire/http1/http_path.h"
#include "wire/percent.h"

/* The next segment of a path that begins with '/'; false after the last. */
static bool next_segment(struct hapax_bytes *path, struct hapax_bytes *ret)
{
	const char *data = path->data;
	const char *end;
	size_t size;

	if (path->size == 0 || data[0] != '/')
		return false;
	end = path->size == 1 ? NULL : memchr(data + 1, '/', path->size - 1);
	size = end == NULL ? path->size : (size_t)(end - data);
	*ret = hx_bytes(data + 1, size - 1);
	*path = hx_bytes(data + size, path->size - size);
	return true;
}

static bool fits(
	const char *template, struct hapax_bytes path, struct hapax_bytes names[HX_API_NAMES_MAX])
{
	struct hapax_bytes rest = hapax_bytes_from_text(template);
	struct hapax_bytes wanted, segment;
	size_t count = 0;

	memset(names, 0, HX_API_NAMES_MAX * sizeof(names[0]));
	while (next_segment(&rest, &wanted)) {
		if (!next_segment(&path, &segment))
			return false;
		if (wanted.size > 0 && *(const char *)wanted.data == '{') {
			if (segment.size == 0)
				return false;
			names[count++] = segment;
		} else if (!hx_bytes_equal(wanted, segment)) {
			return false;
		}
	}
	return path.size == 0;
}

bool hx_api_has(struct hapax_bytes path)
{
	static const char prefix[] = "/api/";
	struct hapax_bytes query;

	path = hx_http_path_split(path, &query);
	return hx_bytes_equal(path, HX_BYTES_LIT("/openapi.json")) ||
		hx_bytes_equal(path, HX_BYTES_LIT("/api")) ||
		(path.size >= sizeof(prefix) - 1 &&
		 memcmp(path.data, prefix, sizeof(prefix) - 1) == 0);
}

static bool has_method(const struct hx_api_route *route, struct hapax_bytes method)
{
	return hx_bytes_equal(method, hapax_bytes_from_text(route->method)) ||
		(hx_bytes_equal(method, HX_BYTES_LIT("HEAD")) &&
		 strcmp(route->method, "GET") == 0 && route->content_type == NULL);
}

void hx_api_match(struct hapax_bytes method, struct hapax_bytes path, struct hx_api_match *ret)
{
	struct hapax_bytes names[HX_API_NAMES_MAX];

	*ret = (struct hx_api_match){.route = NULL};
	path = hx_http_path_split(path, &ret->query);
	for (size_t i = 0; i < hx_api_route_count && ret->route == NULL; i++) {
		const struct hx_api_route *route = &hx_api_routes[i];

		if (!fits(route->path, path, names))
			continue;
		ret->has_path = true;
		if (!has_method(route, method))
			continue;
		ret->route = route;
		memcpy(ret->names, names, sizeof(names));
	}
}

void hx_api_allow(struct hapax_bytes path, char out[HX_API_ALLOW_SIZE])
{
	struct hapax_bytes names[HX_API_NAMES_MAX];
	struct hapax_bytes query;
	size_t size = 0;

	out[0] = '\0';
	path = hx_http_path_split(path, &query);
	for (size_t i = 0; i < hx_api_route_count && size < HX_API_ALLOW_SIZE; i++) {
		const struct hx_api_route *route = &hx_api_routes[i];

		if (fits(route->path, path, names))
			size += (size_t)snprintf(
				out + size, HX_API_ALLOW_SIZE - size, "%s%s%s",
				size > 0 ? ", " : "", route->method,
				has_method(route, HX_BYTES_LIT("HEAD")) ? ", HEAD" : "");
	}
}

/* ------------------------------------------------------------------ query */

static enum hapax_status unknown(
	const struct hx_api_parameter *parameters, struct hapax_bytes name, struct hapax_error *err)
{
	char text[64];
	struct hx_suggest suggest;

	(void)snprintf(text, sizeof(text), "%.*s", (int)name.size, (const char *)name.data);
	hx_suggest_init(&suggest, text);
	for (size_t i = 0; parameters != NULL && parameters[i].name != NULL; i++)
		hx_suggest_consider(&suggest, parameters[i].name);
	if (suggest.best != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"unknown query parameter '%s' (did you mean '%s'?)", text, suggest.best);
	return hx_error_set(err, HAPAX_ERR_INVALID, 0, "unknown query parameter '%s'", text);
}

static bool read_count(struct hapax_bytes text, int64_t *ret)
{
	const char *at = text.data;

	*ret = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (at[i] < '0' || at[i] > '9' || __builtin_mul_overflow(*ret, 10, ret) ||
		    __builtin_add_overflow(*ret, at[i] - '0', ret))
			return false;
	}
	return text.size > 0;
}

static enum hapax_status read_choice(
	const struct hx_api_parameter *parameter, struct hx_api_value *value,
	struct hapax_error *err)
{
	char known[128] = "";
	size_t size = 0;

	for (int i = 0; parameter->choices[i] != NULL; i++) {
		if (hx_bytes_equal(value->text, hapax_bytes_from_text(parameter->choices[i]))) {
			value->number = i;
			return HAPAX_OK;
		}
		if (size < sizeof(known))
			size += (size_t)snprintf(
				known + size, sizeof(known) - size, "%s%s", i > 0 ? ", " : "",
				parameter->choices[i]);
	}
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "query parameter '%s' must be one of %s",
		parameter->name, known);
}

static enum hapax_status read_value(
	const struct hx_api_parameter *parameter, struct hx_api_value *value,
	struct hapax_error *err)
{
	static const char *const truths[] = {"false", "true", NULL};
	struct hx_api_parameter boolean = {.name = parameter->name, .choices = truths};

	switch (parameter->kind) {
	case HX_API_PARAMETER_CHOICE: return read_choice(parameter, value, err);
	case HX_API_PARAMETER_BOOLEAN: return read_choice(&boolean, value, err);
	case HX_API_PARAMETER_COUNT:
		if (read_count(value->text, &value->number) && value->number >= parameter->min &&
		    value->number <= parameter->max)
			return HAPAX_OK;
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"query parameter '%s' must be a whole number from %" PRId64 " to %" PRId64,
			parameter->name, parameter->min, parameter->max);
	case HX_API_PARAMETER_TEXT: break;
	}
	if (value->text.size >= (size_t)parameter->min &&
	    value->text.size <= (size_t)parameter->max)
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"query parameter '%s' must be %" PRId64 " to %" PRId64 " bytes long, not %zu",
		parameter->name, parameter->min, parameter->max, value->text.size);
}

/* A plus is literal: keys contain it. */
static enum hapax_status decode(
	struct hapax_bytes text, struct hapax_buf *buf, struct hapax_bytes *ret,
	struct hapax_error *err)
{
	unsigned char *at = buf->data + buf->size;
	size_t size;

	if (buf->capacity - buf->size < text.size)
		return hx_error_set(err, HAPAX_ERR_LIMIT, 0, "the query is too long");
	if (!hx_percent_decode(text, at, &size))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the query has a percent sign without two hexadecimal digits");
	buf->size += size;
	*ret = hx_bytes(at, size);
	return HAPAX_OK;
}

enum hapax_status hx_api_query_read(
	const struct hx_api_parameter *parameters, struct hapax_bytes query, struct hapax_buf *buf,
	struct hx_api_value values[HX_API_PARAMETERS_MAX], struct hapax_error *err)
{
	struct hapax_bytes name, text;
	enum hapax_status status = HAPAX_OK;

	memset(values, 0, HX_API_PARAMETERS_MAX * sizeof(values[0]));
	while (status == HAPAX_OK && hx_percent_query_next(&query, &name, &text)) {
		size_t i = 0;

		while (parameters != NULL && parameters[i].name != NULL &&
		       !hx_bytes_equal(name, hapax_bytes_from_text(parameters[i].name)))
			i++;
		if (parameters == NULL || parameters[i].name == NULL)
			return unknown(parameters, name, err);
		if (values[i].is_given)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "query parameter '%s' occurs twice",
				parameters[i].name);
		values[i].is_given = true;
		status = decode(text, buf, &values[i].text, err);
		if (status == HAPAX_OK)
			status = read_value(&parameters[i], &values[i], err);
	}
	return status;
}
