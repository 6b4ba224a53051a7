/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_problem.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/http1/http1_write.h"

static enum hapax_status append_text(struct hapax_buf *out, const char *text)
{
	return hx_buf_append(out, text, strlen(text));
}

/* A string without its first quote. */
static enum hapax_status append_string_rest(struct hapax_buf *out, const char *text)
{
	enum hapax_status status = HAPAX_OK;

	for (const char *at = text; *at != '\0' && status == HAPAX_OK; at++) {
		unsigned char byte = (unsigned char)*at;

		if (byte == '"' || byte == '\\')
			status = hx_buf_printf(out, "\\%c", byte);
		else if (byte < 0x20)
			status = hx_buf_printf(out, "\\u%04x", byte);
		else
			status = hx_buf_append_byte(out, byte);
	}
	return status == HAPAX_OK ? hx_buf_append_byte(out, '"') : status;
}

static enum hapax_status append_string(struct hapax_buf *out, const char *text)
{
	enum hapax_status status = hx_buf_append_byte(out, '"');

	return status == HAPAX_OK ? append_string_rest(out, text) : status;
}

static enum hapax_status append_member(
	struct hapax_buf *out, const char *name, const char *value, bool is_first)
{
	enum hapax_status status = append_text(out, is_first ? "{" : ",");

	if (status == HAPAX_OK)
		status = append_string(out, name);
	if (status == HAPAX_OK)
		status = append_text(out, ":");
	return status == HAPAX_OK ? append_string(out, value) : status;
}

const char *hx_http_problem_error_type(unsigned status)
{
	return status >= 500 ? "api_error" : "invalid_request_error";
}

/* "TITLE: DETAIL" */
static enum hapax_status append_message(
	const struct hx_http_problem *problem, const char *title, struct hapax_buf *out)
{
	enum hapax_status status = append_text(out, ",\"message\":");

	if (status == HAPAX_OK)
		status = append_string(out, title);
	if (status != HAPAX_OK || problem->detail == NULL)
		return status;
	/* The text goes on where its quote was. */
	out->size--;
	status = append_text(out, ": ");
	if (status != HAPAX_OK)
		return status;
	return append_string_rest(out, problem->detail);
}

static enum hapax_status append_error(
	const struct hx_http_problem *problem, const char *title, struct hapax_buf *out)
{
	enum hapax_status status = append_text(out, ",\"error\":");

	if (status == HAPAX_OK)
		status = append_member(out, "type", problem->error_type, true);
	if (status == HAPAX_OK && problem->error_code != NULL)
		status = append_member(out, "code", problem->error_code, false);
	if (status == HAPAX_OK)
		status = append_message(problem, title, out);
	return status == HAPAX_OK ? append_text(out, "}") : status;
}

enum hapax_status hx_http_problem_write(
	const struct hx_http_problem *problem, struct hapax_buf *out)
{
	const char *type = problem->type != NULL ? problem->type : "about:blank";
	const char *title =
		problem->title != NULL ? problem->title : hx_http1_reason(problem->status);
	size_t begin = out->size;
	enum hapax_status status = append_member(out, "type", type, true);

	if (status == HAPAX_OK)
		status = append_member(out, "title", title, false);
	if (status == HAPAX_OK)
		status = hx_buf_printf(out, ",\"status\":%u", problem->status);
	if (status == HAPAX_OK && problem->detail != NULL)
		status = append_member(out, "detail", problem->detail, false);
	if (status == HAPAX_OK && problem->error_type != NULL)
		status = append_error(problem, title, out);
	if (status == HAPAX_OK)
		status = append_text(out, "}\n");
	if (status != HAPAX_OK)
		out->size = begin;
	return status;
}
