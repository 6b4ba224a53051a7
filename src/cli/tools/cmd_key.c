/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_key.c - hapax key: print the key of a JSON document.
 */
#include <hapax/hapax.h>

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/uuid7.h"
#include "cli/frame/command.h"
#include "cli/input/input.h"
#include "wire/json/json_write.h"
#include "cli/input/key_setup.h"
#include "cli/input/key_text.h"
#include "cli/frame/report.h"
#include "wire/date.h"

enum {
	OPTION_HEADER = 1,
	OPTION_TIME,
	OPTION_LINES,
	OPTION_TEXT,
};

static const struct hx_option options[] = {
	HX_KEY_OPTION_ROWS,
	{OPTION_HEADER, "header", 'H', HX_OPTION_TEXT, "NAME:VALUE",
	 "header of the message; may be repeated", NULL},
	{OPTION_TIME, "time", 0, HX_OPTION_TEXT, "TIME|now", "time of the event (RFC 3339)", NULL},
	{OPTION_LINES, "lines", 0, HX_OPTION_FLAG, NULL,
	 "read one document per line, print one key each", NULL},
	{OPTION_TEXT, "text", 0, HX_OPTION_FLAG, NULL, "content: print the text that is hashed",
	 NULL},
	HX_OPTION_OUTPUT_ROW,
	{.name = NULL},
};

/* Scratch for the largest document, and its canonical text. */
static const size_t scratch_max = (size_t)1 << 30;

/* The state of the command. */
struct maker {
	struct hx_invocation *inv;
	struct hapax_key_strategy *strategy;
	struct hx_event_reader reader;
	struct hapax_buf scratch;
	struct hapax_buf text;
	struct hapax_field headers[HX_EVENT_FIELDS_MAX];
	size_t header_count;
	int64_t time_ms;
	bool prints_text;
	bool prints_json;
};

static bool is_given(const struct hx_invocation *inv, int id)
{
	return hx_options_has(&inv->options, id);
}

static int read_time(struct maker *maker)
{
	const char *time = hx_options_text(&maker->inv->options, OPTION_TIME);

	maker->time_ms = HAPAX_TIME_UNKNOWN;
	if (time == NULL)
		return HX_EXIT_OK;
	if (strcmp(time, "now") == 0) {
		maker->time_ms = hx_clock_wall_ms();
		return HX_EXIT_OK;
	}
	if (hx_date_parse(hapax_bytes_from_text(time), &maker->time_ms))
		return HX_EXIT_OK;
	return hx_report_misuse(
		maker->inv->command->name, "use a time such as 2026-11-15T20:22:15Z, or now",
		"--time: '%s' is not an RFC 3339 time", time);
}

static const char *kind_name(enum hapax_key_kind kind)
{
	switch (kind) {
	case HAPAX_KEY_NONE: return "none";
	case HAPAX_KEY_MADE: return "made";
	case HAPAX_KEY_CONTENT: return "content";
	}
	return "unknown";
}

static void print_json(const struct maker *maker, const struct hapax_key *key)
{
	char scope[2 * HAPAX_SCOPE_SIZE_MAX + 2];
	char digits[2 * HAPAX_FINGERPRINT_SIZE + 1] = "";
	char run_id[HX_UUID_TEXT_SIZE + 1];
	struct hx_json_write json;

	(void)snprintf(scope, sizeof(scope), "%s/%s", key->tenant, key->group);
	hx_hex_encode(key->fingerprint, sizeof(key->fingerprint), digits);
	hx_out_json(&json, &maker->inv->out);
	hx_json_write_text(&json, "kind", kind_name(key->kind));
	if (key->kind == HAPAX_KEY_NONE)
		hx_json_write_null(&json, "key");
	else
		hx_json_write_text(&json, "key", key->key);
	hx_json_write_text(&json, "scope", scope);
	hx_json_write_any(
		&json, "strategy", hapax_bytes_from_text(hapax_key_strategy_text(maker->strategy)));
	if (key->has_fingerprint)
		hx_json_write_text(&json, "fingerprint", digits);
	if (key->has_run_id) {
		hx_uuid7_format(key->run_id, run_id);
		hx_json_write_text(&json, "run_id", run_id);
	}
	if (key->kind != HAPAX_KEY_MADE)
		hx_json_write_any(&json, "missing", hapax_bytes_from_text(key->missing));
	hx_json_write_end(&json, '}');
}

static void print_key(const struct maker *maker, const struct hapax_key *key)
{
	if (maker->prints_json) {
		print_json(maker, key);
		return;
	}
	hx_out_write(&maker->inv->out, key->key, key->key_size);
	hx_out_text(&maker->inv->out, "\n");
	if (key->kind == HAPAX_KEY_NONE)
		hx_report_line(
			"hapax: key: note: %s; the event would run without protection",
			key->missing);
}

/* Print one document's key. On INVALID nothing was printed, and err says why. */
static enum hapax_status print_one(
	struct maker *maker, struct hapax_bytes document, struct hapax_error *err)
{
	struct hapax_key key = HAPAX_KEY_INIT;
	struct hapax_event event;
	enum hapax_status status = hx_event_reader_read(&maker->reader, document, &event, err);

	if (status != HAPAX_OK)
		return status;
	if (maker->header_count > 0) {
		event.headers = maker->headers;
		event.header_count = maker->header_count;
	}
	if (maker->time_ms != HAPAX_TIME_UNKNOWN)
		event.time_ms = maker->time_ms;
	if (maker->prints_text) {
		hx_buf_clear(&maker->text);
		status = hapax_key_canonical_text(
			maker->strategy, &event, &maker->scratch, &maker->text, err);
		if (status == HAPAX_OK) {
			hx_out_write(&maker->inv->out, maker->text.data, maker->text.size);
			hx_out_text(&maker->inv->out, "\n");
		}
		return status;
	}
	status = hapax_key_make(maker->strategy, &event, &maker->scratch, &key, err);
	if (status == HAPAX_OK)
		print_key(maker, &key);
	return status;
}

static int exit_of(const char *command, const struct hapax_error *err)
{
	if (err->status != HAPAX_ERR_INVALID && err->status != HAPAX_ERR_LIMIT)
		return hx_report_error(command, err);
	hx_report(command, "%s", err->message);
	return HX_EXIT_DATA;
}

/* A line without a key prints an empty line, so that lines still correspond. */
static int print_lines(struct maker *maker, struct hx_input *input)
{
	const char *command = maker->inv->command->name;
	int worst = HX_EXIT_OK;

	for (;;) {
		struct hapax_bytes line;
		struct hapax_error err;
		enum hx_input_line kind;
		int code = hx_input_line(input, &line, &kind);

		if (code != HX_EXIT_OK || kind == HX_INPUT_LINE_NONE)
			return code != HX_EXIT_OK ? code : worst;
		if (kind == HX_INPUT_LINE_TOO_LONG)
			(void)hx_error_set(&err, HAPAX_ERR_LIMIT, 0, HX_INPUT_TOO_LONG);
		else if (print_one(maker, line, &err) == HAPAX_OK)
			continue;
		if (err.status != HAPAX_ERR_INVALID && err.status != HAPAX_ERR_LIMIT)
			return hx_report_error(command, &err);
		hx_report(
			command, "%s:%llu: %s", input->name, (unsigned long long)input->line,
			err.message);
		hx_out_text(&maker->inv->out, "\n");
		worst = HX_EXIT_DATA;
	}
}

/*
 * A daily job has no document: a template with a date reads none from a terminal. A header makes a
 * key without reading the document.
 */
static bool reads_document(const struct maker *maker)
{
	unsigned needs = hapax_key_strategy_needs(maker->strategy);

	if (maker->inv->options.operand_count > 0 || is_given(maker->inv, HX_KEY_OPTION_INPUT) ||
	    is_given(maker->inv, OPTION_LINES))
		return true;
	if (needs & HAPAX_KEY_NEEDS_TIME)
		return isatty(STDIN_FILENO) != 1;
	return (needs & HAPAX_KEY_NEEDS_DATA) != 0;
}

static int print_document(struct maker *maker, struct hapax_bytes document)
{
	struct hapax_error err;

	/* A named file must have a document; standard input may be empty. */
	if (document.size == 0 && maker->inv->options.operand_count == 0 &&
	    maker->time_ms == HAPAX_TIME_UNKNOWN)
		maker->time_ms = hx_clock_wall_ms();
	if (print_one(maker, document, &err) == HAPAX_OK)
		return HX_EXIT_OK;
	return exit_of(maker->inv->command->name, &err);
}

static int print_all(struct maker *maker)
{
	struct hapax_bytes document = {NULL, 0};
	struct hx_input input = {.file = -1};
	int code;

	if (!reads_document(maker))
		return print_document(maker, document);
	code = hx_input_open(
		&input, maker->inv->command->name, hx_options_operand(&maker->inv->options, 0));
	if (code == HX_EXIT_OK && is_given(maker->inv, OPTION_LINES)) {
		code = print_lines(maker, &input);
	} else if (code == HX_EXIT_OK) {
		code = hx_input_all(&input, &document);
		if (code == HX_EXIT_OK)
			code = print_document(maker, document);
	}
	hx_input_close(&input);
	return code;
}

static int run_key(struct hx_invocation *inv)
{
	static struct maker maker; /* too large for a stack */
	const char *text = hx_key_setup_strategy(inv);
	int code;

	if (text == NULL)
		return HX_EXIT_USAGE;
	maker.inv = inv;
	maker.prints_text = is_given(inv, OPTION_TEXT);
	maker.prints_json = inv->settings.format == HX_FORMAT_JSON;
	code = hx_key_setup(
		inv, text,
		HAPAX_KEY_PRODUCER | (maker.prints_json ? 0U : (unsigned)HAPAX_KEY_NO_FINGERPRINT),
		true, &maker.strategy);
	if (code != HX_EXIT_OK)
		return code;
	hx_event_reader_init(&maker.reader, hx_key_setup_form(inv));
	hx_buf_init(&maker.scratch, scratch_max);
	hx_buf_init(&maker.text, scratch_max);
	code = hx_key_text_headers(
		inv, OPTION_HEADER, maker.headers, HX_EVENT_FIELDS_MAX, &maker.header_count);
	if (code == HX_EXIT_OK)
		code = read_time(&maker);
	if (code == HX_EXIT_OK)
		code = print_all(&maker);
	hx_buf_done(&maker.text);
	hx_buf_done(&maker.scratch);
	hx_event_reader_done(&maker.reader);
	hapax_key_strategy_free(maker.strategy);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "every document has a key, or passes without one"},
	{HX_EXIT_DATA, "a document is not JSON, or lacks a part of its key"},
	{HX_EXIT_NO_INPUT, "the file could not be read"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"echo '{\"order\":{\"id\":17}}' | hapax key --strategy field:order.id",
	 "use one field as the key"},
	{"echo '{\"b\":2.0,\"a\":1}' | hapax key --strategy content",
	 "hash the content; member order, blanks and 2.0 for 2 do not matter"},
	{"echo '{\"a\":1,\"meta\":{\"at\":5}}' | hapax key -s content --exclude meta.at",
	 "ignore a field that changes with each delivery"},
	{"hapax key --strategy 'template:report-{date:%Y-%m-%d}'", "a key for each day"},
	{NULL, NULL},
};

static void list_strategies(struct hx_out *out)
{
	hx_out_text(out, "\nStrategies:\n");
	for (size_t i = 0; hapax_key_strategy_syntax(i) != NULL; i++)
		hx_cmd_help_item(out, hapax_key_strategy_syntax(i), hapax_key_strategy_summary(i));
}

const struct command hx_cmd_key = {
	.name = "key",
	.summary = "print the key of a JSON document",
	.usage = "--strategy S [OPTION]... [FILE|-]",
	.description =
		"Prints the key that a strategy derives from the JSON document in FILE or on standard\n"
		"input. A missing part is an error that names the part.\n"
		"\n"
		"A path is a JSON Pointer (/order/id) or has dots (order.id, items[0].sku). In --include\n"
		"and --exclude, * matches every item or member and ** any depth. body|json.id reads the\n"
		"JSON in the string body. With --input cloudevents or envelope, paths start with data.,\n"
		"attr., header. or meta. --canonical python makes the same keys as\n"
		"hashlib.sha256(json.dumps(x, sort_keys=True)).\n"
		"\n"
		"A date is the one of --time or of the document. Without a document (standard input is\n"
		"empty or a terminal), it is today's date.\n",
	.list = list_strategies,
	.operands = {0, 1},
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_key,
};
