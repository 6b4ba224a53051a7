/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holder.c - calls with a token.
 */
#include "cli/key/holder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/limits.h"
#include "cli/frame/environment.h"
#include "cli/input/key_text.h"
#include "cli/print/record_out.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"

static int read_token(const struct hx_invocation *inv, uint64_t *ret)
{
	const struct hx_option_value *option =
		hx_options_get(&inv->options, HX_HOLDER_OPTION_TOKEN);
	const char *what = option != NULL ? "--token" : "HAPAX_TOKEN";
	const char *text = option != NULL ? option->text : hx_environment("HAPAX_TOKEN");
	const char *command = inv->command->name;
	char *end;

	if (text == NULL) {
		(void)hx_report_usage(command, "--token was missing");
		hx_report_hint("'hapax claim' prints it, and 'hapax run' sets HAPAX_TOKEN");
		return HX_EXIT_USAGE;
	}
	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0')
		return hx_report_usage(command, "%s: '%s' is not a whole number", what, text);
	if (errno == ERANGE || *ret == 0 || *ret > HX_TOKEN_MAX)
		return hx_report_usage(
			command, "%s: '%s' is not between 1 and %" PRIu64, what, text,
			HX_TOKEN_MAX);
	return HX_EXIT_OK;
}

static void print_json(struct hx_out *out, const struct hapax_op *op)
{
	struct hx_json_out json;
	bool is_fenced = op->status == HAPAX_ERR_FENCED;

	hx_json_out_init(&json, out);
	hx_json_out_object_begin(&json, NULL);
	hx_json_out_text(&json, "outcome", is_fenced ? "fenced" : hapax_outcome_name(op->outcome));
	hx_record_out_name(&json, op->tenant, op->group, op->key);
	hx_json_out_unsigned(&json, "token", op->token);
	if (!is_fenced) {
		hx_json_out_text(&json, "state", hapax_state_name(op->record->state));
		hx_json_out_unsigned(&json, "attempt", op->attempt);
		hx_json_out_time(&json, "first_seen", op->first_seen_ms);
		hx_json_out_time(&json, "expires_at", op->expires_ms);
		if (op->record->state == HAPAX_STATE_CLAIMED)
			hx_json_out_signed(&json, "lease_left_ms", op->lease_left_ms);
	}
	hx_json_out_object_end(&json);
}

/* The state that the record is in now, and until when. */
static void print_text(struct hx_out *out, const struct hapax_op *op)
{
	const struct hapax_record *record = op->record;
	char text[HX_TEXT_SIZE];

	hx_out_coloured(out, hx_record_out_colour(record->state), hapax_state_name(record->state));
	hx_out_printf(out, "  attempt %u", (unsigned)op->attempt);
	if (record->state == HAPAX_STATE_CLAIMED) {
		hx_text_span(op->lease_left_ms, text);
		hx_out_printf(out, ", lease ends in %s", text);
	} else if (record->state == HAPAX_STATE_PARKED) {
		hx_out_text(out, ", until it is resolved");
	} else {
		hx_text_time(op->expires_ms, text);
		hx_out_printf(out, ", expires %s", text);
	}
	hx_out_text(out, "\n");
}

/* Why op was refused, by what found, a lookup after it, says of the record. */
static void report_fenced(
	const char *name, const char *key, const struct hapax_op *op, const struct hapax_op *found)
{
	if (found->status != HAPAX_OK) {
		hx_report(
			name, "fenced: token %" PRIu64 " does not hold '%s'; nothing changed",
			op->token, key);
		hx_report_hint("stop the work; 'hapax explain KEY' shows how it stands");
	} else if (found->outcome != HAPAX_OUTCOME_FOUND) {
		hx_report(
			name,
			"fenced: '%s' has no record: it was never claimed, has expired or was "
			"forgotten; nothing changed",
			key);
		hx_report_hint("stop the work, or claim the key again");
	} else if (found->token > op->token) {
		hx_report(
			name,
			"fenced: token %" PRIu64
			" no longer holds '%s': a newer token owns the key; nothing changed",
			op->token, key);
		hx_report_hint("stop the work; 'hapax explain KEY' shows the holder");
	} else if (found->token < op->token) {
		hx_report(
			name,
			"fenced: token %" PRIu64 " is not of '%s', whose last one is older; "
			"nothing changed",
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

static int print_fenced(
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

int hx_holder_apply(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op)
{
	struct hapax_record record;
	struct hapax_buf buf;
	struct hapax_error err;
	enum hapax_status status;
	int code = HX_EXIT_OK;

	hx_buf_init(&buf, HX_RECORD_SIZE_MAX);
	op->record = &record;
	op->buf = &buf;
	status = hapax_store_run(store, op, 1, &err);
	if (status == HAPAX_ERR_FENCED)
		code = print_fenced(inv, store, op);
	else if (status != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	else if (inv->settings.format == HX_FORMAT_JSON)
		print_json(&inv->out, op);
	else
		print_text(&inv->out, op);
	hx_buf_done(&buf);
	op->record = NULL;
	op->buf = NULL;
	return code;
}

int hx_holder_run(struct hx_invocation *inv, struct hapax_op *op)
{
	struct hapax_store *store;
	int code =
		hx_key_text_read(inv->command->name, "the key", inv->options.operands[0], &op->key);

	op->tenant = inv->settings.tenant;
	op->group = inv->settings.group;
	if (code == HX_EXIT_OK)
		code = read_token(inv, &op->token);
	if (code == HX_EXIT_OK)
		code = hx_settings_open(inv, HX_OPEN_EXISTING, &store);
	if (code != HX_EXIT_OK)
		return code;
	code = hx_holder_apply(inv, store, op);
	hapax_store_close(store);
	return code;
}
