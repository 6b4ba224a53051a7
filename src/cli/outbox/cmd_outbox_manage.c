/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_outbox_manage.c - hapax outbox init, add, retry, park, purge, audit and rebuild.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json/json_write.h"
#include "base/macros.h"
#include "cli/input/duration_text.h"
#include "cli/input/input.h"
#include "cli/input/key_text.h"
#include "cli/outbox/cmd_outbox.h"
#include "cli/frame/progress.h"
#include "cli/frame/report.h"

enum { PURGE_MS_DEFAULT = 7 * 24 * 3600 * 1000 };

/* ------------------------------------------------------------------ init */

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
	return hx_report_misuse(
		inv->command->name,
		"FIELD is id, topic, key, type, payload or status; or use "
		"prefix=TEXT, pending=WORD or processed=WORD",
		"--column: '%s' is not FIELD=NAME", text);
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
	if (hx_options_text(&inv->options, HX_OUTBOX_TABLE) != NULL)
		table.table = hx_options_text(&inv->options, HX_OUTBOX_TABLE);
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
		    outbox, &table, hx_options_has(&inv->options, HX_OUTBOX_EXISTING), ret_count,
		    &err) != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	hapax_outbox_close(outbox);
	return code;
}

int hx_outbox_init(struct hx_invocation *inv)
{
	const char *url = hx_outbox_url(inv);
	struct hapax_migration migration;
	struct hapax_error err;
	struct hx_json_write json;
	uint64_t taken = 0;
	int code = HX_EXIT_OK;

	if (url == NULL)
		return HX_EXIT_USAGE;
	if (!hx_options_has(&inv->options, HX_OUTBOX_PRESET) &&
	    (hx_options_has(&inv->options, HX_OUTBOX_TABLE) ||
	     hx_options_has(&inv->options, HX_OUTBOX_COLUMN) ||
	     hx_options_has(&inv->options, HX_OUTBOX_EXISTING)))
		return hx_report_misuse(
			inv->command->name,
			"--table, --column and --existing require --preset debezium or "
			"--preset events",
			"missing option --preset");
	if (hapax_outbox_init(url, &migration, &err) != HAPAX_OK)
		return hx_report_error(inv->command->name, &err);
	if (hx_options_has(&inv->options, HX_OUTBOX_PRESET))
		code = adopt(inv, &taken);
	if (code != HX_EXIT_OK)
		return code;
	if (inv->settings.format == HX_FORMAT_JSON) {
		hx_out_json(&json, &inv->out);
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
		hx_out_printf(
			&inv->out, "%" PRIu64 " existing row%s\n", taken,
			taken == 1 ? " became an event" : "s became events");
	return HX_EXIT_OK;
}

/* ------------------------------------------------------------------ add */

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
	} else if (inv->settings.format == HX_FORMAT_JSON) {
		hx_out_json(&json, &inv->out);
		hx_json_write_text(&json, "id", id);
		hx_json_write_end(&json, '}');
	} else {
		hx_out_printf(&inv->out, "%s\n", id);
	}
	hapax_outbox_close(outbox);
	return code;
}

int hx_outbox_add(struct hx_invocation *inv)
{
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct hapax_field headers[HAPAX_OUTBOX_HEADERS_MAX];
	const char *content_type = hx_options_text(&inv->options, HX_OUTBOX_CONTENT_TYPE);
	struct hx_input input;
	int code;

	if (hx_outbox_url(inv) == NULL)
		return HX_EXIT_USAGE;
	event.topic = hapax_bytes_from_text(hx_options_text(&inv->options, HX_OUTBOX_TOPIC));
	if (event.topic.size == 0)
		return hx_report_misuse(
			inv->command->name, "use --topic NAME for the destination of the event",
			"missing option --topic");
	event.ordering_key = hapax_bytes_from_text(hx_options_text(&inv->options, HX_OUTBOX_KEY));
	event.id = hapax_bytes_from_text(hx_options_text(&inv->options, HX_OUTBOX_ID));
	event.type = hapax_bytes_from_text(hx_options_text(&inv->options, HX_OUTBOX_TYPE));
	event.source = hapax_bytes_from_text(hx_options_text(&inv->options, HX_OUTBOX_SOURCE));
	event.subject = hapax_bytes_from_text(hx_options_text(&inv->options, HX_OUTBOX_SUBJECT));
	event.content_type =
		hapax_bytes_from_text(content_type == NULL ? "application/json" : content_type);
	event.headers = headers;
	code = hx_key_text_headers(
		inv, HX_OUTBOX_HEADER, headers, HAPAX_OUTBOX_HEADERS_MAX, &event.header_count);
	if (code != HX_EXIT_OK)
		return code;
	code = hx_input_open(&input, inv->command->name, hx_options_operand(&inv->options, 0));
	if (code == HX_EXIT_OK)
		code = hx_input_all(&input, &event.payload);
	if (code == HX_EXIT_OK)
		code = add(inv, &event);
	hx_input_close(&input);
	return code;
}

/* ------------------------------------------------------------------ retry, park, purge */

static void print_count(struct hx_invocation *inv, const char *name, uint64_t count)
{
	struct hx_json_write json;

	if (inv->settings.format == HX_FORMAT_TEXT) {
		hx_out_printf(&inv->out, "%s %" PRIu64 "\n", name, count);
		return;
	}
	hx_out_json(&json, &inv->out);
	hx_json_write_unsigned(&json, name, count);
	hx_json_write_end(&json, '}');
}

/* Add up the results of one call per operand; HX_EXIT_NO if the sum is 0. */
static int for_each(
	struct hx_invocation *inv, const char *name, const char *const *operands, size_t count,
	enum hapax_status (*call)(
		struct hapax_outbox *outbox, const char *id, uint64_t *count,
		struct hapax_error *err))
{
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	uint64_t total = 0;
	int code = hx_outbox_open(inv, &outbox);

	for (size_t i = 0; i < count && code == HX_EXIT_OK; i++) {
		uint64_t touched = 0;

		if (call(outbox, operands[i], &touched, &err) != HAPAX_OK)
			code = hx_report_error(inv->command->name, &err);
		total += touched;
	}
	hapax_outbox_close(outbox);
	if (code != HX_EXIT_OK)
		return code;
	print_count(inv, name, total);
	return total == 0 ? HX_EXIT_NO : HX_EXIT_OK;
}

static enum hapax_status retry_id(
	struct hapax_outbox *outbox, const char *id, uint64_t *count, struct hapax_error *err)
{
	return hapax_outbox_retry(outbox, id, NULL, count, err);
}

/* Those of an ordering key; NULL: all. */
static enum hapax_status retry_key(
	struct hapax_outbox *outbox, const char *key, uint64_t *count, struct hapax_error *err)
{
	return hapax_outbox_retry(outbox, NULL, key, count, err);
}

int hx_outbox_retry(struct hx_invocation *inv)
{
	const char *key = hx_options_text(&inv->options, HX_OUTBOX_KEY);
	size_t count = inv->options.operand_count;
	bool is_all = hx_options_has(&inv->options, HX_OUTBOX_ALL);

	if ((count > 0) + (key != NULL) + is_all > 1)
		return hx_report_usage(
			inv->command->name,
			"give IDs, --ordering-key or --all, not several of them");
	if (count > 0)
		return for_each(
			inv, "retried", (const char *const *)inv->options.operands, count,
			retry_id);
	if (!is_all && (key == NULL || key[0] == '\0'))
		return hx_report_misuse(
			inv->command->name, "give IDs, --ordering-key TEXT or --all",
			"missing argument ID");
	return for_each(inv, "retried", &key, 1, retry_key);
}

int hx_outbox_park(struct hx_invocation *inv)
{
	return for_each(
		inv, "parked", (const char *const *)inv->options.operands,
		inv->options.operand_count, hapax_outbox_park);
}

int hx_outbox_purge(struct hx_invocation *inv)
{
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	struct hx_progress progress;
	uint64_t purged = 0, step = 1;
	int64_t age_ms = PURGE_MS_DEFAULT;
	int code = hx_duration_text_read(inv, HX_OUTBOX_OLDER, INT64_MAX, &age_ms);

	if (code == HX_EXIT_OK)
		code = hx_outbox_open(inv, &outbox);
	if (code != HX_EXIT_OK)
		return code;
	hx_progress_init(&progress);
	while (code == HX_EXIT_OK && step > 0) {
		step = 0;
		if (hapax_outbox_purge_step(outbox, age_ms, &step, &err) != HAPAX_OK)
			code = hx_report_error(inv->command->name, &err);
		purged += step;
		hx_progress_show(&progress, "%" PRIu64 " purged", purged);
	}
	hx_progress_done(&progress);
	/* Purged events stay purged, even after a later error. */
	if (code == HX_EXIT_OK || purged > 0)
		print_count(inv, "purged", purged);
	hapax_outbox_close(outbox);
	return code;
}

/* ------------------------------------------------------------------ parked */

struct listing {
	struct hx_invocation *inv;
	struct hx_json_write json;
};

static struct hapax_bytes field(const struct hapax_field *fields, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (fields[i].name.size == strlen(name) &&
		    memcmp(fields[i].name.data, name, fields[i].name.size) == 0)
			return fields[i].value;
	return (struct hapax_bytes){NULL, 0};
}

static int64_t number_of(struct hapax_bytes value)
{
	char text[24];

	(void)snprintf(
		text, sizeof(text), "%.*s", (int)value.size,
		value.size == 0 ? "" : (const char *)value.data);
	return strtoll(text, NULL, 10);
}

static int list_row(void *context, const struct hapax_field *fields, size_t count)
{
	struct listing *listing = context;
	struct hx_out *out = &listing->inv->out;

	if (listing->inv->settings.format == HX_FORMAT_JSON) {
		hx_out_json(&listing->json, out);
		for (size_t i = 0; i < count; i++) {
			char name[32];

			(void)snprintf(
				name, sizeof(name), "%.*s", (int)fields[i].name.size,
				(const char *)fields[i].name.data);
			if (strcmp(name, "attempts") == 0)
				hx_json_write_signed(
					&listing->json, name, number_of(fields[i].value));
			else if (fields[i].value.data == NULL)
				hx_json_write_null(&listing->json, name);
			else
				hx_json_write_any(&listing->json, name, fields[i].value);
		}
		hx_json_write_end(&listing->json, '}');
		return 0;
	}
	hx_out_escaped(out, field(fields, count, "id"));
	hx_out_text(out, "  key ");
	hx_out_escaped(out, field(fields, count, "ordering_key"));
	hx_out_text(out, ", attempts ");
	hx_out_escaped(out, field(fields, count, "attempts"));
	hx_out_text(out, ": ");
	hx_out_escaped(out, field(fields, count, "error"));
	hx_out_text(out, "\n");
	return 0;
}

int hx_outbox_parked(struct hx_invocation *inv)
{
	struct listing listing = {.inv = inv};
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	int code = hx_outbox_open(inv, &outbox);

	if (code != HX_EXIT_OK)
		return code;
	if (hapax_outbox_find(
		    outbox, "state", hapax_bytes_from_text("2"), list_row, &listing, &err) !=
	    HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	hapax_outbox_close(outbox);
	return code;
}

/* ------------------------------------------------------------------ audit, rebuild */

struct audit {
	struct hx_invocation *inv;
	struct hapax_outbox *outbox;
	struct hx_progress progress;
	const char *by;
	uint64_t looked;
	uint64_t missing;
	uint64_t rebuilt;
	int code;
};

static int count_row(void *context, const struct hapax_field *fields, size_t count)
{
	(void)fields;
	(void)count;
	*(bool *)context = true;
	return 1;
}

/* Is there an event with that value? */
static int is_there(struct audit *audit, struct hapax_bytes value, bool *ret)
{
	struct hapax_error err;

	*ret = false;
	if (hapax_outbox_find(audit->outbox, audit->by, value, count_row, ret, &err) == HAPAX_OK)
		return HX_EXIT_OK;
	return hx_report_error(audit->inv->command->name, &err);
}

/* JSON form: one document each, as in other listings. */
static void print_missing(struct audit *audit, struct hapax_bytes value)
{
	struct hx_json_write json;

	audit->missing++;
	hx_progress_done(&audit->progress);
	if (audit->inv->settings.format == HX_FORMAT_TEXT) {
		hx_out_escaped(&audit->inv->out, value);
		hx_out_text(&audit->inv->out, "\n");
		return;
	}
	hx_out_json(&json, &audit->inv->out);
	hx_json_write_any(&json, audit->by, value);
	hx_json_write_end(&json, '}');
}

static int audit_row(void *context, const struct hapax_field *fields, size_t count)
{
	struct audit *audit = context;
	bool is_found = false;

	(void)count;
	audit->looked++;
	audit->code = is_there(audit, fields[0].value, &is_found);
	if (audit->code == HX_EXIT_OK && !is_found)
		print_missing(audit, fields[0].value);
	hx_progress_show(
		&audit->progress, "%" PRIu64 " checked, %" PRIu64 " have no event", audit->looked,
		audit->missing);
	return audit->code != HX_EXIT_OK;
}

static int rebuild_row(void *context, const struct hapax_field *fields, size_t count)
{
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct audit *audit = context;
	struct hapax_error err;
	bool is_found = false;

	audit->looked++;
	event.id = field(fields, count, "id");
	event.topic = field(fields, count, "topic");
	event.ordering_key = field(fields, count, "ordering_key");
	event.type = field(fields, count, "type");
	event.source = field(fields, count, "source");
	event.subject = field(fields, count, "subject");
	event.content_type = field(fields, count, "content_type");
	event.payload = field(fields, count, "payload");
	if (event.content_type.size == 0)
		event.content_type = hapax_bytes_from_text("application/json");
	if (event.id.size == 0 || event.topic.size == 0) {
		audit->code = hx_report_usage(
			audit->inv->command->name,
			"row %" PRIu64 " of the query has no id or no topic; the columns id, topic "
			"and payload are required",
			audit->looked);
		return 1;
	}
	audit->code = is_there(audit, event.id, &is_found);
	if (audit->code != HX_EXIT_OK || is_found)
		return audit->code != HX_EXIT_OK;
	audit->missing++;
	if (hapax_outbox_add(audit->outbox, &event, NULL, &err) != HAPAX_OK) {
		audit->code = hx_report_error(audit->inv->command->name, &err);
		return 1;
	}
	audit->rebuilt++;
	hx_progress_show(
		&audit->progress, "%" PRIu64 " checked, %" PRIu64 " rebuilt", audit->looked,
		audit->rebuilt);
	return 0;
}

static int run_query(struct audit *audit, hapax_outbox_row_fn *row)
{
	struct hx_invocation *inv = audit->inv;
	const char *sql = hx_options_text(&inv->options, HX_OUTBOX_QUERY);
	struct hapax_error err;

	if (sql == NULL)
		return hx_report_misuse(
			inv->command->name,
			"use --query 'SELECT ...' for the rows that must have events",
			"missing option --query");
	hx_progress_init(&audit->progress);
	audit->code = hx_outbox_open(inv, &audit->outbox);
	if (audit->code == HX_EXIT_OK &&
	    hapax_outbox_query(audit->outbox, sql, row, audit, &err) != HAPAX_OK)
		audit->code = hx_report_error(inv->command->name, &err);
	hx_progress_done(&audit->progress);
	hapax_outbox_close(audit->outbox);
	return audit->code;
}

int hx_outbox_audit(struct hx_invocation *inv)
{
	struct audit audit = {.inv = inv, .by = hx_options_text(&inv->options, HX_OUTBOX_BY)};
	int code;

	if (audit.by == NULL)
		audit.by = "id";
	code = run_query(&audit, audit_row);
	if (code != HX_EXIT_OK)
		return code;
	hx_out_flush(&inv->out);
	hx_report_line(
		"%" PRIu64 " checked, %" PRIu64 " have no event", audit.looked, audit.missing);
	return audit.missing > 0 ? HX_EXIT_NO : HX_EXIT_OK;
}

int hx_outbox_rebuild(struct hx_invocation *inv)
{
	struct audit audit = {.inv = inv, .by = "id"};
	int code = run_query(&audit, rebuild_row);

	if (code == HX_EXIT_OK || audit.rebuilt > 0)
		print_count(inv, "rebuilt", audit.rebuilt);
	return code;
}
