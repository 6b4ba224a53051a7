/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.c - GET /openapi.json: the table as OpenAPI 3.1.
 */
#include <stdio.h>
#include <string.h>

#include <hapax/hapax.h>

#include "api/api_request.h"
#include "base/bytes.h"

static void raw(struct hx_json_write *json, const char *name, const char *text)
{
	hx_json_write_raw(json, name, hapax_bytes_from_text(text));
}

/* Open an object in an object; and close several: "}]}". */
static void begin_both(struct hx_json_write *json, const char *outer, const char *inner)
{
	hx_json_write_begin(json, outer, '{');
	hx_json_write_begin(json, inner, '{');
}

static void end_all(struct hx_json_write *json, const char *brackets)
{
	for (; *brackets != '\0'; brackets++)
		hx_json_write_end(json, *brackets);
}

/* ------------------------------------------------------------------ requests */

static void write_section(
	struct hx_json_write *json, const char *name, const struct hx_json_section *section,
	unsigned use, const char *doc);

static void write_doc(struct hx_json_write *json, const char *doc)
{
	if (doc != NULL)
		hx_json_write_text(json, "description", doc);
}

static void write_choices(struct hx_json_write *json, const char *const *choices)
{
	hx_json_write_begin(json, "enum", '[');
	for (size_t i = 0; choices[i] != NULL; i++)
		hx_json_write_text(json, NULL, choices[i]);
	hx_json_write_end(json, ']');
}

/* "string", or "string" and "null". */
static void write_type(struct hx_json_write *json, const char *type, bool is_nullable)
{
	char text[32];

	(void)snprintf(text, sizeof(text), is_nullable ? "[\"%s\",\"null\"]" : "\"%s\"", type);
	raw(json, "type", text);
}

static void write_field(struct hx_json_write *json, const struct hx_json_field *field, unsigned use)
{
	bool is_nullable = (field->flags & HX_JSON_FIELD_NULLABLE) != 0;
	char pattern[48];

	if (field->kind == HX_JSON_FIELD_OBJECT) {
		write_section(json, field->name, field->section, use, field->doc);
		return;
	}
	hx_json_write_begin(json, field->name, '{');
	write_doc(json, field->doc);
	switch (field->kind) {
	case HX_JSON_FIELD_TEXT:
	case HX_JSON_FIELD_BYTES:
		write_type(json, "string", is_nullable);
		if (field->min > 0)
			hx_json_write_signed(json, "minLength", field->min);
		hx_json_write_signed(json, "maxLength", field->max);
		break;
	case HX_JSON_FIELD_HEX:
		write_type(json, "string", is_nullable);
		(void)snprintf(pattern, sizeof(pattern), "^[0-9a-f]{%d}$", (int)(2 * field->max));
		hx_json_write_text(json, "pattern", pattern);
		break;
	case HX_JSON_FIELD_INTEGER:
		write_type(json, "integer", is_nullable);
		hx_json_write_signed(json, "minimum", field->min);
		hx_json_write_signed(json, "maximum", field->max);
		break;
	case HX_JSON_FIELD_BOOLEAN: hx_json_write_text(json, "type", "boolean"); break;
	case HX_JSON_FIELD_TIME:
		write_type(json, "string", true);
		hx_json_write_text(json, "format", "date-time");
		break;
	case HX_JSON_FIELD_CHOICE: write_choices(json, field->choices); break;
	case HX_JSON_FIELD_OBJECT: break;
	}
	hx_json_write_end(json, '}');
}

static void write_base64(struct hx_json_write *json, const struct hx_json_field *field)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s_base64", field->name);
	raw(json, name, "{\"type\":\"string\",\"contentEncoding\":\"base64\"}");
}

/* For bytes, one of two members is required; for all else, the member itself. */
static void write_required(
	struct hx_json_write *json, const struct hx_json_section *section, unsigned use)
{
	hx_json_write_begin(json, "allOf", '[');
	for (const struct hx_json_field *field = section->fields; field->name != NULL; field++) {
		if ((field->uses & field->required & use) == 0)
			continue;
		hx_json_write_begin(json, NULL, '{');
		hx_json_write_begin(json, "anyOf", '[');
		for (int i = 0; i < (field->kind == HX_JSON_FIELD_BYTES ? 2 : 1); i++) {
			char name[64];

			(void)snprintf(
				name, sizeof(name), "%s%s", field->name, i == 0 ? "" : "_base64");
			hx_json_write_begin(json, NULL, '{');
			hx_json_write_begin(json, "required", '[');
			hx_json_write_text(json, NULL, name);
			end_all(json, "]}");
		}
		end_all(json, "]}");
	}
	hx_json_write_end(json, ']');
}

static bool has_required(const struct hx_json_section *section, unsigned use)
{
	for (const struct hx_json_field *field = section->fields; field->name != NULL; field++) {
		if ((field->uses & field->required & use) != 0)
			return true;
	}
	return false;
}

static void write_section(
	struct hx_json_write *json, const char *name, const struct hx_json_section *section,
	unsigned use, const char *doc)
{
	hx_json_write_begin(json, name, '{');
	write_doc(json, doc);
	write_type(json, "object", name != NULL && strcmp(name, "schema") != 0);
	hx_json_write_boolean(json, "additionalProperties", false);
	hx_json_write_begin(json, "properties", '{');
	for (const struct hx_json_field *field = section->fields; field->name != NULL; field++) {
		if (!(field->uses & use))
			continue;
		write_field(json, field, use);
		if (field->kind == HX_JSON_FIELD_BYTES)
			write_base64(json, field);
	}
	hx_json_write_end(json, '}');
	if (has_required(section, use))
		write_required(json, section, use);
	hx_json_write_end(json, '}');
}

static void write_body(struct hx_json_write *json, const struct hx_api_route *route)
{
	if (route->body == HX_API_BODY_NONE)
		return;
	hx_json_write_begin(json, "requestBody", '{');
	hx_json_write_boolean(json, "required", route->body != HX_API_BODY_OPTIONAL);
	begin_both(json, "content", "application/json");
	if (route->body == HX_API_BODY_ANY) {
		raw(json, "schema", "{\"type\":\"object\"}");
	} else if (route->body == HX_API_BODY_BATCH) {
		hx_json_write_begin(json, "schema", '{');
		hx_json_write_begin(json, "oneOf", '[');
		write_section(json, NULL, route->section, route->use, NULL);
		hx_json_write_begin(json, NULL, '{');
		hx_json_write_text(json, "type", "array");
		hx_json_write_signed(json, "maxItems", HX_API_BATCH_MAX);
		write_section(json, "items", route->section, route->use, NULL);
		end_all(json, "}]}");
	} else {
		write_section(json, "schema", route->section, route->use, NULL);
	}
	end_all(json, "}}}");
}

/* ------------------------------------------------------------------ parameters */

static void write_parameter_schema(
	struct hx_json_write *json, const struct hx_api_parameter *parameter)
{
	hx_json_write_begin(json, "schema", '{');
	switch (parameter->kind) {
	case HX_API_PARAMETER_TEXT:
		hx_json_write_text(json, "type", "string");
		hx_json_write_signed(json, "maxLength", parameter->max);
		break;
	case HX_API_PARAMETER_COUNT:
		hx_json_write_text(json, "type", "integer");
		hx_json_write_signed(json, "minimum", parameter->min);
		hx_json_write_signed(json, "maximum", parameter->max);
		break;
	case HX_API_PARAMETER_BOOLEAN: hx_json_write_text(json, "type", "boolean"); break;
	case HX_API_PARAMETER_CHOICE: write_choices(json, parameter->choices); break;
	}
	hx_json_write_end(json, '}');
}

static void write_path_parameters(struct hx_json_write *json, const char *path)
{
	const char *begin = path;

	while ((begin = strchr(begin, '{')) != NULL) {
		const char *end = strchr(begin, '}');

		hx_json_write_begin(json, NULL, '{');
		hx_json_write_bytes(json, "name", hx_bytes(begin + 1, (size_t)(end - begin - 1)));
		hx_json_write_text(json, "in", "path");
		hx_json_write_boolean(json, "required", true);
		hx_json_write_text(json, "description", "percent-encoded; any bytes");
		raw(json, "schema", "{\"type\":\"string\"}");
		hx_json_write_end(json, '}');
		begin = end;
	}
}

static void write_parameters(struct hx_json_write *json, const struct hx_api_route *route)
{
	hx_json_write_begin(json, "parameters", '[');
	write_path_parameters(json, route->path);
	for (const struct hx_api_parameter *at = route->parameters; at != NULL && at->name != NULL;
	     at++) {
		hx_json_write_begin(json, NULL, '{');
		hx_json_write_text(json, "name", at->name);
		hx_json_write_text(json, "in", "query");
		write_doc(json, at->doc);
		write_parameter_schema(json, at);
		hx_json_write_end(json, '}');
	}
	hx_json_write_end(json, ']');
}

/* ------------------------------------------------------------------ replies */

static void write_ref(struct hx_json_write *json, const char *member, const char *name)
{
	char ref[96];

	(void)snprintf(ref, sizeof(ref), "{\"$ref\":\"#/components/schemas/%s\"}", name);
	raw(json, member, ref);
}

static void write_reply(struct hx_json_write *json, const struct hx_api_route *route)
{
	hx_json_write_begin(json, route->reply != NULL ? "200" : "204", '{');
	hx_json_write_text(json, "description", route->summary);
	if (route->reply != NULL) {
		begin_both(
			json, "content",
			route->content_type != NULL ? route->content_type : "application/json");
		if (route->body == HX_API_BODY_BATCH) {
			hx_json_write_begin(json, "schema", '{');
			hx_json_write_begin(json, "oneOf", '[');
			write_ref(json, NULL, route->reply);
			hx_json_write_begin(json, NULL, '{');
			hx_json_write_text(json, "type", "array");
			write_ref(json, "items", route->reply);
			end_all(json, "}]}");
		} else {
			write_ref(json, "schema", route->reply);
		}
		end_all(json, "}}");
	}
	hx_json_write_end(json, '}');
}

static void write_problem(struct hx_json_write *json, const char *status)
{
	hx_json_write_begin(json, status, '{');
	hx_json_write_text(json, "description", "what went wrong (RFC 9457)");
	begin_both(json, "content", HX_HTTP_PROBLEM_CONTENT_TYPE);
	write_ref(json, "schema", "Problem");
	end_all(json, "}}}");
}

static void write_responses(struct hx_json_write *json, const struct hx_api_route *route)
{
	const char *at = route->statuses;
	char status[4] = "";

	hx_json_write_begin(json, "responses", '{');
	write_reply(json, route);
	write_problem(json, "400");
	if (route->role != HX_API_ROLE_NONE) {
		write_problem(json, "401");
		write_problem(json, "403");
		write_problem(json, "429");
	}
	for (; at != NULL && strlen(at) >= 3; at += at[3] == ' ' ? 4 : 3) {
		memcpy(status, at, 3);
		write_problem(json, status);
	}
	hx_json_write_end(json, '}');
}

/* ------------------------------------------------------------------ all of it */

static void write_route(struct hx_json_write *json, const struct hx_api_route *route)
{
	static const char *const roles[] = {"none", "read", "write", "admin"};
	char method[8];
	size_t size = strlen(route->method);

	for (size_t i = 0; i <= size; i++)
		method[i] = (char)(route->method[i] | (route->method[i] != '\0' ? 0x20 : 0));
	hx_json_write_begin(json, method, '{');
	hx_json_write_text(json, "operationId", route->id);
	hx_json_write_text(json, "summary", route->summary);
	hx_json_write_text(json, "x-hapax-role", roles[route->role]);
	raw(json, "security", route->role != HX_API_ROLE_NONE ? "[{\"token\":[]}]" : "[{}]");
	write_parameters(json, route);
	write_body(json, route);
	write_responses(json, route);
	hx_json_write_end(json, '}');
}

static bool is_first_of_path(size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (strcmp(hx_api_routes[i].path, hx_api_routes[index].path) == 0)
			return false;
	}
	return true;
}

static void write_paths(struct hx_json_write *json)
{
	hx_json_write_begin(json, "paths", '{');
	for (size_t i = 0; i < hx_api_route_count; i++) {
		if (!is_first_of_path(i))
			continue;
		hx_json_write_begin(json, hx_api_routes[i].path, '{');
		for (size_t k = i; k < hx_api_route_count; k++) {
			if (strcmp(hx_api_routes[k].path, hx_api_routes[i].path) == 0)
				write_route(json, &hx_api_routes[k]);
		}
		hx_json_write_end(json, '}');
	}
	hx_json_write_end(json, '}');
}

enum hapax_status hx_api_describe(struct hapax_buf *out)
{
	struct hx_json_write json;

	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(&json, "openapi", "3.1.0");
	hx_json_write_begin(&json, "info", '{');
	hx_json_write_text(&json, "title", "hapax");
	hx_json_write_text(&json, "version", hapax_version());
	hx_json_write_text(
		&json, "description",
		"Within its TTL, a key completes successfully exactly once. Values that are not UTF-8 "
		"have members whose names end with _base64.");
	hx_json_write_end(&json, '}');
	raw(&json, "servers", "[{\"url\":\"/\"}]");
	write_paths(&json);
	hx_json_write_begin(&json, "components", '{');
	raw(&json, "securitySchemes", "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}");
	raw(&json, "schemas", hx_api_schemas);
	end_all(&json, "}}");
	return json.status == HAPAX_OK ? hx_buf_append_byte(out, '\n') : json.status;
}

/* Created once: any stranger may request it, and this loop also answers probes. */
void hx_api_get_openapi(struct hx_api_request *request)
{
	struct hapax_buf *text = &request->api->description;
	enum hapax_status status = HAPAX_OK;

	if (text->size == 0)
		status = hx_api_describe(text);
	if (status == HAPAX_OK)
		status = hx_buf_append(&request->out, text->data, text->size);
	else
		hx_buf_clear(text);
	if (status != HAPAX_OK)
		hx_api_fail(request, status, NULL);
	else
		hx_api_reply(request, 200);
}
