/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_redis.c - keys of a Redis server, by the form of their names.
 *
 * A page of SCAN is read, then for each of its names, pipelined: the time left of the mark, the
 * time left of the result, and the result. A key with both is one row, whichever name was found;
 * the second one is a repeated row.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/report.h"
#include "cli/import/import.h"
#include "cli/import/name_pattern.h"
#include "net/redis_connection.h"
#include "wire/resp/resp.h"

enum {
	PAGE_NAMES = 1000,
	ASKED_MAX = 100, /* names whose values are asked for together */
	REPLY_SIZE_MAX = HX_RESULT_SIZE_LIMIT + 64 * 1024,
	OUTPUT_SIZE_MAX = 8 * 1024 * 1024,
	TIMEOUT_MS = 30 * 1000,
	SIGNAL_NS = HX_NS_PER_S / 2, /* a signal is seen by then */
	/* What PTTL says of a key. */
	TTL_NONE = -1,
	TTL_NO_KEY = -2,
};

struct reader {
	struct hx_import *import;
	struct hx_redis_place place;
	struct hx_tls_context *tls;
	struct hx_reactor reactor;
	struct hx_resolver resolver;
	struct hx_redis_connection connection;
	struct hapax_error why; /* why it is closed */
	struct hx_name_pattern mark, result;
	bool has_mark, has_result;
	struct hapax_buf out;  /* commands */
	struct hapax_buf page; /* the reply of SCAN */
	size_t sent;           /* replies expected in this step */
	size_t answered;
	/* The names that are asked for, and what is known of the one whose replies arrive. */
	struct hapax_bytes asked[ASKED_MAX];
	int64_t mark_left_ms, result_left_ms;
	bool is_page; /* the reply is that of SCAN */
	int code;     /* of the first row that stopped the import */
};

/* ------------------------------------------------------------------ connection */

static enum hapax_status greet(struct hx_redis_connection *connection)
{
	static const char ping[] = "*1\r\n$4\r\nPING\r\n";

	return hx_connection_write(&connection->stream, ping, sizeof(ping) - 1);
}

static size_t reply_size_max(struct hx_redis_connection *connection)
{
	const struct reader *reader = connection->context;

	return reader->answered < reader->sent ? REPLY_SIZE_MAX : 0;
}

static bool take_reply(struct reader *reader, struct hapax_bytes reply);

static bool on_reply(struct hx_redis_connection *connection, struct hapax_bytes reply)
{
	struct reader *reader = connection->context;

	if (connection->state == HX_REDIS_CONNECTION_GREETING) {
		hx_redis_connection_ready(connection);
		return true;
	}
	return take_reply(reader, reply);
}

static bool on_closed(struct hx_redis_connection *connection, const struct hapax_error *why)
{
	((struct reader *)connection->context)->why = *why;
	return false;
}

static const struct hx_redis_connection_ops connection_ops = {
	.greet = greet,
	.reply_size_max = reply_size_max,
	.reply = on_reply,
	.closed = on_closed,
};

static int lost(const struct reader *reader)
{
	hx_progress_done(&reader->import->progress);
	return hx_report_error(reader->import->inv->command->name, &reader->why);
}

static int connect_server(struct reader *reader)
{
	struct hx_redis_connection *connection = &reader->connection;

	hx_redis_connection_open(
		connection, &reader->place.endpoints[0],
		hx_reactor_now_ns(&reader->reactor) + TIMEOUT_MS * HX_NS_PER_MS);
	while (connection->state != HX_REDIS_CONNECTION_CLOSED &&
	       connection->state != HX_REDIS_CONNECTION_READY) {
		if (hx_interrupt_signal() != 0)
			return HX_EXIT_SIGNAL + hx_interrupt_signal();
		hx_reactor_turn(&reader->reactor, SIGNAL_NS);
	}
	return connection->state == HX_REDIS_CONNECTION_READY ? HX_EXIT_OK : lost(reader);
}

/* Send the commands in out and take all replies. */
static int exchange(struct reader *reader, size_t count)
{
	struct hx_redis_connection *connection = &reader->connection;
	int64_t deadline_ns = hx_clock_mono_ns() + TIMEOUT_MS * HX_NS_PER_MS;
	size_t answered = 0;

	reader->sent = count;
	reader->answered = 0;
	if (hx_connection_write(&connection->stream, reader->out.data, reader->out.size) !=
	    HAPAX_OK)
		return hx_report_no_memory(reader->import->inv->command->name);
	while (reader->answered < count && reader->code == HX_EXIT_OK &&
	       connection->state != HX_REDIS_CONNECTION_CLOSED) {
		if (hx_interrupt_signal() != 0)
			return HX_EXIT_SIGNAL + hx_interrupt_signal();
		hx_reactor_turn(&reader->reactor, SIGNAL_NS);
		if (reader->answered > answered) {
			answered = reader->answered;
			deadline_ns = hx_clock_mono_ns() + TIMEOUT_MS * HX_NS_PER_MS;
		} else if (hx_clock_mono_ns() > deadline_ns) {
			hx_redis_connection_break(connection, "Redis did not answer in time");
		}
	}
	if (reader->code != HX_EXIT_OK)
		return reader->code;
	return reader->answered == count ? HX_EXIT_OK : lost(reader);
}

/* ------------------------------------------------------------------ values */

static size_t replies_of_name(const struct reader *reader)
{
	return (reader->has_mark ? 1u : 0u) + (reader->has_result ? 2u : 0u);
}

static bool split(
	const struct reader *reader, struct hapax_bytes name,
	struct hapax_bytes fields[HX_NAME_FIELDS])
{
	return (reader->has_result && hx_name_pattern_match(&reader->result, name, fields)) ||
		(reader->has_mark && hx_name_pattern_match(&reader->mark, name, fields));
}

static void set_place(struct hx_import *import, struct hapax_bytes name)
{
	(void)snprintf(
		import->place, sizeof(import->place), "'%.*s'",
		(int)(name.size > 150 ? 150 : name.size), (const char *)name.data);
}

/* The row of a name: the value is its result, or not read yet if there is none. */
static int take_name(
	struct reader *reader, struct hapax_bytes name, const struct hx_resp_value *value)
{
	struct hx_import *import = reader->import;
	struct hapax_bytes fields[HX_NAME_FIELDS];
	struct hx_import_row row = {.left_ms = HAPAX_TTL_FOREVER};
	bool has_result = reader->result_left_ms != TTL_NO_KEY;
	int64_t left_ms = reader->mark_left_ms > reader->result_left_ms ? reader->mark_left_ms
									: reader->result_left_ms;
	bool is_split = split(reader, name, fields);

	assert(is_split);
	(void)is_split;
	set_place(import, name);
	if (value->type == HX_RESP_ERROR) {
		import->rows++;
		return hx_import_bad(
			import, "its value is not a string: %.*s",
			(int)(value->text.size > 80 ? 80 : value->text.size),
			(const char *)value->text.data);
	}
	/* It was there for SCAN, and has expired since. */
	if (left_ms == TTL_NO_KEY) {
		import->rows++;
		import->expired++;
		return HX_EXIT_OK;
	}
	row.values[HX_IMPORT_TENANT] = fields[HX_NAME_TENANT];
	row.values[HX_IMPORT_GROUP] = fields[HX_NAME_GROUP];
	row.values[HX_IMPORT_KEY] = fields[HX_NAME_KEY];
	if (has_result)
		row.values[HX_IMPORT_RESULT] = value->text;
	/* A key that Redis keeps forever, unless --ttl says otherwise. */
	row.has_left = true;
	if (reader->mark_left_ms != TTL_NONE && reader->result_left_ms != TTL_NONE) {
		row.left_ms = left_ms > 0 ? left_ms : 1;
	} else if (import->ttl_ms != 0) {
		row.left_ms = import->ttl_ms;
		row.has_left = false;
	}
	return hx_import_take(import, &row);
}

/* A reply to PTTL, PTTL, GETRANGE of the name, in this order; without a pattern there is none. */
static bool take_value(struct reader *reader, struct hapax_bytes reply)
{
	size_t each = replies_of_name(reader);
	struct hx_resp_value value;
	struct hapax_bytes name;
	size_t step;

	assert(each > 0);
	step = reader->answered % each;
	name = reader->asked[reader->answered / each];
	if (!hx_resp_next(&reply, &value))
		return false;
	reader->answered++;
	if (step == 0)
		reader->mark_left_ms = reader->result_left_ms = TTL_NO_KEY;
	if (reader->has_mark && step == 0) {
		if (!hx_resp_integer(&value, &reader->mark_left_ms))
			return false;
	} else if (each - step == 2) {
		if (!hx_resp_integer(&value, &reader->result_left_ms))
			return false;
	}
	if (step + 1 == each)
		reader->code = take_name(reader, name, &value);
	return true;
}

static bool take_reply(struct reader *reader, struct hapax_bytes reply)
{
	if (reader->code != HX_EXIT_OK)
		return true;
	if (!reader->is_page)
		return take_value(reader, reply);
	reader->answered++;
	hx_buf_clear(&reader->page);
	return hx_buf_append(&reader->page, reply.data, reply.size) == HAPAX_OK;
}

static enum hapax_status ask_left(
	struct reader *reader, const struct hx_name_pattern *pattern,
	const struct hapax_bytes *fields, struct hapax_buf *name)
{
	struct hx_resp_words command;

	hx_buf_clear(name);
	if (hx_name_pattern_write(pattern, fields, name) != HAPAX_OK)
		return HAPAX_ERR_NO_MEMORY;
	hx_resp_words_begin(&command, &reader->out, 2);
	hx_resp_word_text(&command, "PTTL");
	hx_resp_word(&command, hx_bytes(name->data, name->size));
	return command.status;
}

/* Ask for the values of one name. */
static enum hapax_status ask(struct reader *reader, const struct hapax_bytes *fields)
{
	struct hx_resp_words command;
	enum hapax_status status = HAPAX_OK;
	struct hapax_buf name;

	hx_buf_init(&name, 1024 * 1024);
	if (reader->has_mark)
		status = ask_left(reader, &reader->mark, fields, &name);
	if (status == HAPAX_OK && reader->has_result)
		status = ask_left(reader, &reader->result, fields, &name);
	if (status == HAPAX_OK && reader->has_result) {
		hx_resp_words_begin(&command, &reader->out, 4);
		hx_resp_word_text(&command, "GETRANGE");
		hx_resp_word(&command, hx_bytes(name.data, name.size));
		/* One byte above the limit shows that it is too large. */
		hx_resp_word_integer(&command, 0);
		hx_resp_word_integer(&command, HX_RESULT_SIZE_LIMIT);
		status = command.status;
	}
	hx_buf_done(&name);
	return status;
}

/* ------------------------------------------------------------------ pages */

static int take_asked(struct reader *reader, size_t count)
{
	int code = HX_EXIT_OK;

	reader->is_page = false;
	if (count > 0)
		code = exchange(reader, count * replies_of_name(reader));
	hx_buf_clear(&reader->out);
	return code;
}

/* Cursors count in reverse bit order, so that this is the share of the table before them. */
static double share_of(uint64_t cursor)
{
	double share = 0, weight = 0.5;

	while (cursor != 0) {
		share += (cursor & 1) != 0 ? weight : 0;
		weight /= 2;
		cursor >>= 1;
	}
	return share;
}

static int take_page(struct reader *reader, struct hapax_bytes rest, uint64_t *ret_cursor)
{
	struct hx_import *import = reader->import;
	struct hapax_bytes fields[HX_NAME_FIELDS];
	struct hx_resp_value value;
	struct hapax_bytes name;
	int64_t cursor = 0;
	size_t count = 0;
	int code = HX_EXIT_OK;

	hx_buf_clear(&reader->out);
	if (!hx_resp_next(&rest, &value) || value.type != HX_RESP_ARRAY ||
	    !hx_resp_next_integer(&rest, &cursor) || cursor < 0 || !hx_resp_next(&rest, &value)) {
		hx_report(
			import->inv->command->name, "Redis refused SCAN: %.*s",
			(int)(value.text.size > 160 ? 160 : value.text.size),
			(const char *)value.text.data);
		return HX_EXIT_STORE;
	}
	*ret_cursor = (uint64_t)cursor;
	while (code == HX_EXIT_OK && hx_resp_next_text(&rest, &name)) {
		if (!split(reader, name, fields)) {
			import->rows++;
			set_place(import, name);
			code = hx_import_bad(
				import, "the name has another form than %s",
				!reader->has_result        ? "--name"
					: reader->has_mark ? "--name and --result-name"
							   : "--result-name");
			continue;
		}
		if (ask(reader, fields) != HAPAX_OK)
			return hx_report_no_memory(import->inv->command->name);
		reader->asked[count++] = name;
		if (count == ASKED_MAX) {
			code = take_asked(reader, count);
			count = 0;
		}
	}
	return code == HX_EXIT_OK ? take_asked(reader, count) : code;
}

/* MATCH: of the option, or every name with the common prefix of the patterns. */
static int match_of(const struct reader *reader, struct hapax_buf *match)
{
	const char *given = hx_options_text(&reader->import->inv->options, HX_IMPORT_MATCH);
	struct hapax_bytes prefix =
		hx_name_pattern_prefix(reader->has_mark ? &reader->mark : &reader->result);
	struct hapax_bytes other =
		hx_name_pattern_prefix(reader->has_result ? &reader->result : &reader->mark);
	const char *at = prefix.data;
	enum hapax_status status = HAPAX_OK;

	if (given != NULL)
		return hx_buf_append(match, given, strlen(given)) == HAPAX_OK ? HX_EXIT_OK
									      : HX_EXIT_OS;
	for (size_t i = 0; i < prefix.size && i < other.size &&
	     at[i] == ((const char *)other.data)[i] && status == HAPAX_OK;
	     i++) {
		if (strchr("*?[]\\^", at[i]) != NULL)
			(void)hx_buf_append_byte(match, '\\');
		status = hx_buf_append_byte(match, (unsigned char)at[i]);
	}
	return hx_buf_append_byte(match, '*') == HAPAX_OK ? HX_EXIT_OK : HX_EXIT_OS;
}

static int scan(struct reader *reader, struct hapax_bytes match)
{
	uint64_t cursor = 0;
	int code;

	do {
		struct hx_resp_words command;
		char number[24];

		(void)snprintf(number, sizeof(number), "%" PRIu64, cursor);
		hx_buf_clear(&reader->out);
		hx_resp_words_begin(&command, &reader->out, 6);
		hx_resp_word_text(&command, "SCAN");
		hx_resp_word_text(&command, number);
		hx_resp_word_text(&command, "MATCH");
		hx_resp_word(&command, match);
		hx_resp_word_text(&command, "COUNT");
		hx_resp_word_integer(&command, PAGE_NAMES);
		if (command.status != HAPAX_OK)
			return hx_report_no_memory(reader->import->inv->command->name);
		reader->is_page = true;
		reader->import->share = share_of(cursor);
		code = exchange(reader, 1);
		if (code == HX_EXIT_OK)
			code = take_page(
				reader, hx_bytes(reader->page.data, reader->page.size), &cursor);
	} while (code == HX_EXIT_OK && cursor != 0);
	return code;
}

/* ------------------------------------------------------------------ the source */

static int read_pattern(
	const struct hx_import *import, int id, const char *option, struct hx_name_pattern *pattern,
	bool *ret_is_given)
{
	const char *text = hx_options_text(&import->inv->options, id);
	const char *why = text == NULL ? NULL : hx_name_pattern_parse(pattern, text);

	*ret_is_given = text != NULL;
	if (why != NULL)
		return hx_report_usage(
			import->inv->command->name, "--%s: invalid pattern '%s': %s", option, text,
			why);
	return HX_EXIT_OK;
}

/* The form of marks if only --match PREFIX* is given: PREFIX{key}. False: it is another glob. */
static bool take_match(struct reader *reader)
{
	const char *match = hx_options_text(&reader->import->inv->options, HX_IMPORT_MATCH);
	struct hapax_buf *name = &reader->import->name;
	size_t size = match == NULL ? 0 : strcspn(match, "*?[]\\^");
	enum hapax_status status = HAPAX_OK;

	if (size == 0 || strcmp(match + size, "*") != 0)
		return false;
	for (size_t i = 0; i < size && status == HAPAX_OK; i++) {
		if (match[i] == '{' || match[i] == '}')
			(void)hx_buf_append_byte(name, (unsigned char)match[i]);
		status = hx_buf_append_byte(name, (unsigned char)match[i]);
	}
	if (status != HAPAX_OK || hx_buf_append(name, "{key}", sizeof("{key}")) != HAPAX_OK)
		return false;
	name->size--; /* without its NUL */
	reader->has_mark = hx_name_pattern_parse(&reader->mark, (const char *)name->data) == NULL;
	return reader->has_mark;
}

static int read_options(struct reader *reader, const char *url)
{
	const struct hx_import *import = reader->import;
	const char *command = import->inv->command->name;
	struct hapax_error err;
	int code = read_pattern(import, HX_IMPORT_NAME, "name", &reader->mark, &reader->has_mark);

	if (code == HX_EXIT_OK)
		code = read_pattern(
			import, HX_IMPORT_RESULT_NAME, "result-name", &reader->result,
			&reader->has_result);
	if (code != HX_EXIT_OK)
		return code;
	if (!reader->has_mark && !reader->has_result && !take_match(reader))
		return hx_report_misuse(
			command,
			"for example --name 'idempotent:{group}:{tenant}:{key}', or --result-name "
			"'idempotency:{key}' if the value is the result",
			"missing option --name or --result-name");
	if (hx_redis_place_parse(url, &reader->place, &err) != HAPAX_OK ||
	    hx_redis_connection_tls_context(&reader->place, &reader->tls, &err) != HAPAX_OK)
		return hx_report_error(command, &err);
	return HX_EXIT_OK;
}

static int read_server(struct reader *reader)
{
	const struct hx_redis_connection_options options = {
		.ops = &connection_ops,
		.reactor = &reader->reactor,
		.resolver = &reader->resolver,
		.tls = reader->tls,
		.place = &reader->place,
		.limits.input_size_max = 2 * REPLY_SIZE_MAX,
		.limits.output_size_max = 2 * OUTPUT_SIZE_MAX,
	};
	struct hapax_buf match;
	int code;

	if (hx_redis_connection_init(&reader->connection, &options, reader) != HAPAX_OK)
		return hx_report_no_memory(reader->import->inv->command->name);
	hx_buf_init(&match, 64 * 1024);
	code = match_of(reader, &match);
	if (code == HX_EXIT_OK)
		code = connect_server(reader);
	if (code == HX_EXIT_OK)
		code = hx_import_open(reader->import);
	if (code == HX_EXIT_OK)
		code = scan(reader, hx_bytes(match.data, match.size));
	if (hx_redis_connection_close(&reader->connection))
		while (reader->connection.state != HX_REDIS_CONNECTION_CLOSED)
			hx_reactor_turn(&reader->reactor, 0);
	hx_redis_connection_done(&reader->connection);
	hx_buf_done(&match);
	return code;
}

int hx_import_redis(struct hx_import *import, const char *url)
{
	struct reader reader = {.import = import};
	struct hapax_error err;
	int code = read_options(&reader, url);

	if (code == HX_EXIT_OK &&
	    hx_reactor_init(&reader.reactor, hx_net_system(), &err) != HAPAX_OK) {
		code = hx_report_error(import->inv->command->name, &err);
	} else if (code == HX_EXIT_OK) {
		hx_resolver_init(&reader.resolver, hx_net_system());
		hx_buf_init(&reader.out, OUTPUT_SIZE_MAX);
		hx_buf_init(&reader.page, REPLY_SIZE_MAX);
		code = read_server(&reader);
		hx_buf_done(&reader.out);
		hx_buf_done(&reader.page);
		hx_resolver_done(&reader.resolver);
		hx_reactor_done(&reader.reactor);
	}
	hx_tls_context_free(reader.tls);
	explicit_bzero(&reader.place, sizeof(reader.place));
	return code;
}
