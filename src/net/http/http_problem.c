/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_problem.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/http1/http1_write.h"
#include "wire/json/json_write.h"

const char *hx_http_problem_error_type(unsigned status)
{
	return status >= 500 ? "api_error" : "invalid_request_error";
}

/* "TITLE: DETAIL" */
static void write_message(struct hx_json_write *json, const char *title, const char *detail)
{
	struct hapax_buf *out = json->out;
	size_t quote;

	hx_json_write_text(json, "message", title);
	if (json->status != HAPAX_OK || detail == NULL)
		return;
	/* The text continues where its quote was; the quote of the detail becomes a space. */
	out->data[out->size - 1] = ':';
	quote = out->size;
	json->status = hx_json_write_string(out, hapax_bytes_from_text(detail));
	if (json->status == HAPAX_OK)
		out->data[quote] = ' ';
}

static void write_error(
	struct hx_json_write *json, const struct hx_http_problem *problem, const char *title)
{
	hx_json_write_begin(json, "error", '{');
	hx_json_write_text(json, "type", problem->error_type);
	if (problem->error_code != NULL)
		hx_json_write_text(json, "code", problem->error_code);
	write_message(json, title, problem->detail);
	hx_json_write_end(json, '}');
}

enum hapax_status hx_http_problem_write(
	const struct hx_http_problem *problem, struct hapax_buf *out)
{
	const char *type = problem->type != NULL ? problem->type : "about:blank";
	const char *title =
		problem->title != NULL ? problem->title : hx_http1_reason(problem->status);
	size_t begin = out->size;
	struct hx_json_write json;

	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(&json, "type", type);
	hx_json_write_text(&json, "title", title);
	hx_json_write_unsigned(&json, "status", problem->status);
	if (problem->detail != NULL)
		hx_json_write_text(&json, "detail", problem->detail);
	if (problem->error_type != NULL)
		write_error(&json, problem, title);
	hx_json_write_end(&json, '}');
	if (json.status == HAPAX_OK)
		json.status = hx_buf_append_byte(out, '\n');
	if (json.status != HAPAX_OK)
		out->size = begin;
	return json.status;
}
