/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_outbox_add.c - hapax outbox add: add one event manually.
 */
#include <string.h>

#include "cli/input/input.h"
#include "wire/json/json_write.h"
#include "cli/outbox/cmd_outbox.h"
#include "cli/frame/report.h"

/* Read every --header NAME:VALUE; blanks after the colon do not count. */
static int read_headers(
	const struct hx_invocation *inv, struct hapax_field fields[HAPAX_OUTBOX_HEADERS_MAX],
	size_t *ret_count)
{
	size_t count = 0;

	for (size_t i = 0; i < inv->options.count; i++) {
		const struct hx_option_value *value = &inv->options.values[i];
		const char *colon, *text;

		if (value->option->id != HX_OUTBOX_HEADER)
			continue;
		colon = strchr(value->text, ':');
		if (colon == NULL || colon == value->text)
			return hx_report_usage(
				inv->command->name, "--header: '%s' is not NAME:VALUE",
				value->text);
		if (count == HAPAX_OUTBOX_HEADERS_MAX)
			return hx_report_usage(
				inv->command->name, "too many headers: the limit is %d",
				HAPAX_OUTBOX_HEADERS_MAX);
		text = colon + 1 + strspn(colon + 1, " ");
		fields[count].name =
			(struct hapax_bytes){value->text, (size_t)(colon - value->text)};
		fields[count++].value = hapax_bytes_from_text(text);
	}
	*ret_count = count;
	return HX_EXIT_OK;
}

static int add(struct hx_invocation *inv, const struct hapax_outbox_event *event)
{
	char id[HAPAX_OUTBOX_ID_SIZE];
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	struct hx_json_write json;
	int code = hx_outbox_open(inv, &outbox);

	if (code != HX_EXIT_OK)
		return code;
	if (hapax_outbox_add(outbox, event, id, &err) != HAPAX_OK) {
		code = hx_report_error(inv->command->name, &err);
	} else if (hx_outbox_is_json(inv)) {
		hx_out_json(&json, &inv->out);
		hx_json_write_begin(&json, NULL, '{');
		hx_json_write_text(&json, "id", id);
		hx_json_write_end(&json, '}');
	} else {
		hx_out_printf(&inv->out, "%s\n", id);
	}
	hapax_outbox_close(outbox);
	return code;
}

int hx_outbox_add(struct hx_invocation *inv, char **operands, size_t count)
{
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct hapax_field headers[HAPAX_OUTBOX_HEADERS_MAX];
	const char *content_type = hx_outbox_text(inv, HX_OUTBOX_CONTENT_TYPE);
	struct hx_input input;
	int code;

	if (hx_outbox_url(inv) == NULL)
		return HX_EXIT_USAGE;
	event.topic = hapax_bytes_from_text(hx_outbox_text(inv, HX_OUTBOX_TOPIC));
	if (event.topic.size == 0) {
		(void)hx_report_usage(inv->command->name, "missing option --topic");
		hx_report_hint("use --topic NAME for the destination of the event");
		return HX_EXIT_USAGE;
	}
	event.ordering_key = hapax_bytes_from_text(hx_outbox_text(inv, HX_OUTBOX_KEY));
	event.id = hapax_bytes_from_text(hx_outbox_text(inv, HX_OUTBOX_ID));
	event.type = hapax_bytes_from_text(hx_outbox_text(inv, HX_OUTBOX_TYPE));
	event.source = hapax_bytes_from_text(hx_outbox_text(inv, HX_OUTBOX_SOURCE));
	event.subject = hapax_bytes_from_text(hx_outbox_text(inv, HX_OUTBOX_SUBJECT));
	event.content_type =
		hapax_bytes_from_text(content_type == NULL ? "application/json" : content_type);
	event.headers = headers;
	code = read_headers(inv, headers, &event.header_count);
	if (code != HX_EXIT_OK)
		return code;
	code = hx_input_open(&input, inv->command->name, count > 0 ? operands[0] : NULL);
	if (code == HX_EXIT_OK)
		code = hx_input_all(&input, &event.payload);
	if (code == HX_EXIT_OK)
		code = add(inv, &event);
	hx_input_close(&input);
	return code;
}
