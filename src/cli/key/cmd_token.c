/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_token.c - hapax renew, complete, release and park: the verbs of a claim's holder.
 *
 * The four are named after their operations and differ only in data: their options and their help.
 */
#include "cli/key/cmd_token.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/duration.h"
#include "base/limits.h"
#include "cli/frame/environment.h"
#include "cli/frame/report.h"
#include "cli/input/duration_text.h"
#include "cli/input/input.h"
#include "cli/print/record_out.h"
#include "cli/print/text.h"

enum { OPTION_TOKEN = 1, OPTION_LEASE, OPTION_RESULT, OPTION_DEFINITIVE, OPTION_ERROR };

static int read_token(const struct hx_invocation *inv, uint64_t *ret)
{
	const struct hx_option_value *option = hx_options_get(&inv->options, OPTION_TOKEN);
	const char *what = option != NULL ? "--token" : "HAPAX_TOKEN";
	const char *text = option != NULL ? option->text : hx_environment("HAPAX_TOKEN");
	const char *command = inv->command->name;
	char *end;

	if (text == NULL)
		return hx_report_misuse(
			command, "use the token that 'hapax claim' printed",
			"missing option --token");
	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0')
		return hx_report_usage(command, "%s: '%s' is not a whole number", what, text);
	if (errno == ERANGE || *ret == 0 || *ret > HX_TOKEN_MAX)
		return hx_report_usage(
			command, "%s: '%s' must be between 1 and %" PRIu64, what, text,
			HX_TOKEN_MAX);
	return HX_EXIT_OK;
}

static void print_json(struct hx_out *out, const struct hapax_op *op)
{
	struct hx_json_write json;
	bool is_fenced = op->status == HAPAX_ERR_FENCED;

	hx_out_json(&json, out);
	hx_json_write_text(
		&json, "outcome", is_fenced ? "fenced" : hapax_outcome_name(op->outcome));
	hx_record_out_name(&json, op->tenant, op->group, op->key);
	hx_json_write_unsigned(&json, "token", op->token);
	if (!is_fenced) {
		hx_json_write_text(&json, "state", hapax_state_name(op->record->state));
		hx_json_write_unsigned(&json, "attempt", op->attempt);
		hx_json_write_time(&json, "first_seen", op->first_seen_ms);
		hx_json_write_time(&json, "expires_at", op->expires_ms);
		if (op->record->state == HAPAX_STATE_CLAIMED)
			hx_json_write_signed(&json, "lease_left_ms", op->lease_left_ms);
	}
	hx_json_write_end(&json, '}');
}

/* Print the record's state, and until when it lasts. */
static void print_text(struct hx_out *out, const struct hapax_op *op)
{
	const struct hapax_record *record = op->record;
	char text[HX_TEXT_SIZE];

	hx_out_colored(out, hx_record_out_color(record->state), hapax_state_name(record->state));
	hx_out_printf(out, "  attempt %u", (unsigned)op->attempt);
	if (record->state == HAPAX_STATE_CLAIMED) {
		hx_duration_span(op->lease_left_ms, text);
		hx_out_printf(out, ", lease ends in %s", text);
	} else if (record->state == HAPAX_STATE_PARKED) {
		hx_out_text(out, ", until resolved");
	} else {
		hx_text_time(op->expires_ms, text);
		hx_out_printf(out, ", expires %s", text);
	}
	hx_out_text(out, "\n");
}

/* Report why op was refused, based on found, a later lookup of the record. */
static void report_fenced(
	const char *name, const char *key, const struct hapax_op *op, const struct hapax_op *found)
{
	if (found->status != HAPAX_OK) {
		hx_report(
			name, "fenced: token %" PRIu64 " does not hold '%s'; nothing changed",
			op->token, key);
		hx_report_hint("stop the work; 'hapax explain KEY' describes its state");
	} else if (found->outcome != HAPAX_OUTCOME_FOUND) {
		hx_report(
			name,
			"fenced: '%s' has no record: it was never claimed, has expired or was "
			"forgotten; nothing changed",
			key);
		hx_report_hint("stop the work, or claim the key again");
	} else if (found->token > op->token) {
		hx_report(
			name, "fenced: token %" PRIu64 " no longer holds '%s'; nothing changed",
			op->token, key);
		hx_report_hint("stop the work; 'hapax explain KEY' shows the holder");
	} else if (found->token < op->token) {
		hx_report(
			name, "fenced: token %" PRIu64 " was not issued for '%s'; nothing changed",
			op->token, key);
		hx_report_hint("use the token that 'hapax claim' printed for this key");
	} else if (found->record->state == HAPAX_STATE_DONE) {
		hx_report(name, "fenced: '%s' is done; nothing changed", key);
		hx_report_hint("'hapax lookup KEY' shows its result");
	} else {
		hx_report(
			name, "fenced: the claim of '%s' was released or lapsed; nothing changed",
			key);
		hx_report_hint("stop the work, or claim the key again");
	}
}

static int answer_fenced(
	struct hx_invocation *inv, struct hapax_store *store, const struct hapax_op *op)
{
	struct hapax_op found = {
		.type = HAPAX_OP_LOOKUP,
		.tenant = op->tenant,
		.group = op->group,
		.key = op->key,
		.record = op->record,
		.buf = op->buf,
	};

	if (inv->settings.format == HX_FORMAT_JSON)
		print_json(&inv->out, op);
	hx_out_flush(&inv->out);
	(void)hapax_store_run(store, &found, 1, NULL);
	report_fenced(inv->command->name, inv->options.operands[0], op, &found);
	return HX_EXIT_FENCED;
}

int hx_cmd_token_answer(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op)
{
	if (op->status == HAPAX_ERR_FENCED)
		return answer_fenced(inv, store, op);
	if (inv->settings.format == HX_FORMAT_JSON)
		print_json(&inv->out, op);
	else
		print_text(&inv->out, op);
	return HX_EXIT_OK;
}

static enum hapax_op_type type_of(const struct command *command)
{
	int type = HAPAX_OP_RENEW;

	while (strcmp(hapax_op_type_name((enum hapax_op_type)type), command->name) != 0) {
		type++;
		assert(type <= HAPAX_OP_PARK);
	}
	return (enum hapax_op_type)type;
}

/* An option that the command does not take reads as not given. */
static int run_token(struct hx_invocation *inv)
{
	bool is_definitive = hx_options_has(&inv->options, OPTION_DEFINITIVE);
	struct hx_input_result file = {.input = {.file = -1}};
	struct hapax_op op;
	int code = hx_key_command_init(inv, type_of(inv->command), &op);

	if (code == HX_EXIT_OK)
		code = read_token(inv, &op.token);
	if (code == HX_EXIT_OK)
		code = hx_duration_text_read(inv, OPTION_LEASE, HX_LEASE_MS_MAX, &op.lease_ms);
	if (code == HX_EXIT_OK && op.type == HAPAX_OP_COMPLETE) {
		op.result = &file.result;
		code = hx_input_result_open(
			&file, inv->command->name, hx_options_text(&inv->options, OPTION_RESULT),
			is_definitive ? HAPAX_RESULT_DEFINITIVE : HAPAX_RESULT_OK);
	}
	op.error = hapax_bytes_from_text(hx_options_text(&inv->options, OPTION_ERROR));
	if (code == HX_EXIT_OK)
		code = hx_key_command_run(inv, HX_OPEN_EXISTING, &op, hx_cmd_token_answer);
	hx_input_result_close(&file);
	return code;
}

/* clang-format off */
#define TOKEN_ROW \
	{OPTION_TOKEN, "token", 0, HX_OPTION_TEXT, "N", \
	 "token that 'hapax claim' printed (default: $HAPAX_TOKEN)", NULL}
/* clang-format on */

static const struct hx_option renew_options[] = {
	TOKEN_ROW,
	{OPTION_LEASE, "lease", 0, HX_OPTION_TEXT, "D",
	 "how long the claim lasts from now (default: 30s)", NULL},
	{.name = NULL},
};

static const struct command_exit renew_exits[] = {
	{HX_EXIT_OK, "renewed: the lease starts again"},
	{HX_EXIT_FENCED, "fenced: the token does not hold the key, or it is done; stop the work"},
	{0, NULL},
};

static const struct command_example renew_examples[] = {
	{"t=$(hapax claim order-31) && hapax renew order-31 --token $t --lease 5m",
	 "extend a claim by five minutes"},
	{NULL, NULL},
};

const struct command hx_cmd_renew = {
	.name = "renew",
	.summary = "extend the lease of a claim",
	.usage = "KEY --token N [--lease D] [OPTION]...",
	.description =
		"Restarts the lease of a claim, or claims a parked key again. A fenced holder has lost the\n"
		"key and must stop the work: its result is not stored.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_ANSWERS,
	.operands = {1, 1},
	.options = renew_options,
	.exits = renew_exits,
	.examples = renew_examples,
	.run = run_token,
};

static const struct hx_option complete_options[] = {
	TOKEN_ROW,
	{OPTION_RESULT, "result", 0, HX_OPTION_TEXT, "FILE|-",
	 "result to store and replay (at most 256 KiB)", NULL},
	{OPTION_DEFINITIVE, "definitive", 0, HX_OPTION_FLAG, NULL,
	 "the work failed permanently: store the failure", NULL},
	{.name = NULL},
};

static const struct command_exit complete_exits[] = {
	{HX_EXIT_OK, "done, now or before with this token"},
	{HX_EXIT_DATA, "the result is larger than 64 MiB; nothing changed"},
	{HX_EXIT_NO_INPUT, "the result could not be read; nothing changed"},
	{HX_EXIT_FENCED, "fenced: the token does not hold the key; nothing changed"},
	{0, NULL},
};

static const struct command_example complete_examples[] = {
	{"t=$(hapax claim o-32) && echo ok | hapax complete o-32 --token $t --result -",
	 "store a result for duplicates"},
	{NULL, NULL},
};

const struct command hx_cmd_complete = {
	.name = "complete",
	.summary = "mark the work of a claim done and store its result",
	.usage = "KEY --token N [--result FILE|-] [--definitive] [OPTION]...",
	.description =
		"Ends a claim. Until the TTL expires, every later claim of KEY is a duplicate and gets the\n"
		"result. It is safe to repeat; the first stored result stays. A claim whose lease has\n"
		"lapsed can be completed until another claim takes over.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_ANSWERS,
	.operands = {1, 1},
	.options = complete_options,
	.exits = complete_exits,
	.examples = complete_examples,
	.run = run_token,
};

static const struct hx_option release_options[] = {
	TOKEN_ROW,
	{OPTION_ERROR, "error", 0, HX_OPTION_TEXT, "TEXT",
	 "reason of the failure, shown by 'explain'", NULL},
	{.name = NULL},
};

static const struct command_exit release_exits[] = {
	{HX_EXIT_OK, "released: the next claim runs"},
	{HX_EXIT_FENCED, "fenced: the token does not hold the key, or it is done; nothing changed"},
	{0, NULL},
};

static const struct command_example release_examples[] = {
	{"t=$(hapax claim order-33) && hapax release order-33 --token $t --error 'no stock'",
	 "let the next claim run"},
	{NULL, NULL},
};

const struct command hx_cmd_release = {
	.name = "release",
	.summary = "mark the work of a claim failed; the next claim runs",
	.usage = "KEY --token N [--error TEXT] [OPTION]...",
	.description =
		"Ends a claim without success. The number of attempts and the error are stored for the\n"
		"TTL of the key, and the next claim runs. hapax never repeats work by itself.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_ANSWERS,
	.operands = {1, 1},
	.options = release_options,
	.exits = release_exits,
	.examples = release_examples,
	.run = run_token,
};

static const struct hx_option park_options[] = {
	TOKEN_ROW,
	{OPTION_ERROR, "error", 0, HX_OPTION_TEXT, "TEXT", "what is unknown, shown by 'explain'",
	 NULL},
	{.name = NULL},
};

static const struct command_exit park_exits[] = {
	{HX_EXIT_OK, "parked: no claim runs until 'hapax resolve'"},
	{HX_EXIT_FENCED, "fenced: the token does not hold the key, or it is done; nothing changed"},
	{0, NULL},
};

static const struct command_example park_examples[] = {
	{"t=$(hapax claim order-34) && hapax park order-34 --token $t --error 'no answer'",
	 "wait for a person to decide"},
	{NULL, NULL},
};

const struct command hx_cmd_park = {
	.name = "park",
	.summary = "mark the outcome of a claim unknown; a person decides",
	.usage = "KEY --token N [--error TEXT] [OPTION]...",
	.description =
		"Ends a claim with an unknown outcome, for example when a request was sent and no answer\n"
		"arrived. Every later claim gets 'parked' until 'hapax resolve' decides. 'hapax keys\n"
		"--state parked' lists parked keys.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_ANSWERS,
	.operands = {1, 1},
	.options = park_options,
	.exits = park_exits,
	.examples = park_examples,
	.run = run_token,
};
