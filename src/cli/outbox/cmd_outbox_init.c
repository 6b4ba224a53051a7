/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_outbox_init.c - hapax outbox init: create the tables, or adopt an existing one.
 */
#include <inttypes.h>
#include <string.h>

#include "base/macros.h"
#include "wire/json/json_write.h"
#include "cli/outbox/cmd_outbox.h"
#include "cli/frame/report.h"

/* Read one --column FIELD=NAME. */
static int set_column(
	const struct hx_invocation *inv, struct hapax_outbox_table *table, const char *text)
{
	const struct {
		const char *name;
		const char **column;
	} fields[] = {
		{"id", &table->id},
		{"topic", &table->topic},
		{"key", &table->ordering_key},
		{"type", &table->type},
		{"payload", &table->payload},
		{"status", &table->status},
		{"pending", &table->pending},
		{"processed", &table->processed},
		{"prefix", &table->topic_prefix},
	};
	const char *equals = strchr(text, '=');

	for (size_t i = 0; equals != NULL && i < HX_COUNT(fields); i++) {
		if (strlen(fields[i].name) != (size_t)(equals - text) ||
		    memcmp(fields[i].name, text, (size_t)(equals - text)) != 0)
			continue;
		/* An empty name means that there is no such column; a prefix may be empty. */
		*fields[i].column = equals[1] == '\0' ? NULL : equals + 1;
		return HX_EXIT_OK;
	}
	(void)hx_report_usage(inv->command->name, "--column: '%s' is not FIELD=NAME", text);
	hx_report_hint("FIELD is id, topic, key, type, payload or status; or use "
		       "prefix=TEXT, pending=WORD or processed=WORD");
	return HX_EXIT_USAGE;
}

static int adopt(struct hx_invocation *inv, uint64_t *ret_count)
{
	const struct hapax_outbox_table presets[] = {
		HAPAX_OUTBOX_TABLE_DEBEZIUM, HAPAX_OUTBOX_TABLE_EVENTS};
	const struct hx_option_value *preset = hx_options_get(&inv->options, HX_OUTBOX_PRESET);
	struct hapax_outbox_table table;
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	int code;

	table = presets[preset->number];
	if (hx_outbox_text(inv, HX_OUTBOX_TABLE) != NULL)
		table.table = hx_outbox_text(inv, HX_OUTBOX_TABLE);
	for (size_t i = 0; i < inv->options.count; i++) {
		const struct hx_option_value *value = &inv->options.values[i];

		if (value->option->id != HX_OUTBOX_COLUMN)
			continue;
		code = set_column(inv, &table, value->text);
		if (code != HX_EXIT_OK)
			return code;
	}
	code = hx_outbox_open(inv, &outbox);
	if (code != HX_EXIT_OK)
		return code;
	if (hapax_outbox_adopt(
		    outbox, &table, hx_options_get(&inv->options, HX_OUTBOX_EXISTING) != NULL,
		    ret_count, &err) != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	hapax_outbox_close(outbox);
	return code;
}

int hx_outbox_init(struct hx_invocation *inv, char **operands, size_t count)
{
	const char *url = hx_outbox_url(inv);
	struct hapax_migration migration;
	struct hapax_error err;
	struct hx_json_write json;
	uint64_t taken = 0;
	int code = HX_EXIT_OK;

	(void)operands;
	(void)count;
	if (url == NULL)
		return HX_EXIT_USAGE;
	if (hx_options_get(&inv->options, HX_OUTBOX_PRESET) == NULL &&
	    (hx_options_get(&inv->options, HX_OUTBOX_TABLE) != NULL ||
	     hx_options_get(&inv->options, HX_OUTBOX_COLUMN) != NULL ||
	     hx_options_get(&inv->options, HX_OUTBOX_EXISTING) != NULL)) {
		(void)hx_report_usage(inv->command->name, "missing option --preset");
		hx_report_hint("--table, --column and --existing require --preset debezium or "
			       "--preset events");
		return HX_EXIT_USAGE;
	}
	if (hapax_outbox_init(url, &migration, &err) != HAPAX_OK)
		return hx_report_error(inv->command->name, &err);
	if (hx_options_get(&inv->options, HX_OUTBOX_PRESET) != NULL)
		code = adopt(inv, &taken);
	if (code != HX_EXIT_OK)
		return code;
	if (hx_outbox_is_json(inv)) {
		hx_out_json(&json, &inv->out);
		hx_json_write_begin(&json, NULL, '{');
		hx_json_write_signed(&json, "from", migration.from);
		hx_json_write_signed(&json, "to", migration.to);
		hx_json_write_unsigned(&json, "taken", taken);
		hx_json_write_end(&json, '}');
		return HX_EXIT_OK;
	}
	hx_out_printf(
		&inv->out, "the outbox table %s: version %" PRId64 "\n",
		migration.from == migration.to ? "is up to date"
			: migration.from == 0  ? "was created"
					       : "was updated",
		migration.to);
	if (taken > 0)
		hx_out_printf(&inv->out, "%" PRIu64 " existing rows became events\n", taken);
	return HX_EXIT_OK;
}
