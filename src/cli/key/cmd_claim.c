/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_claim.c - hapax claim and check: claim a key and print its token, or only mark it as seen.
 */
#include <inttypes.h>

#include <hapax/hapax.h>

#include "base/duration.h"
#include "base/limits.h"
#include "base/owner.h"
#include "cli/frame/key_command.h"
#include "cli/frame/report.h"
#include "cli/input/duration_text.h"
#include "cli/input/input.h"
#include "cli/print/record_out.h"
#include "cli/print/text.h"
#include "wire/json/json_object.h"
#include "wire/record/record_json.h"

enum { OPTION_PAYLOAD = 1, OPTION_LEASE, OPTION_ON_LAPSE, OPTION_OWNER, OPTION_EVENT };

enum { EVENT_SIZE_MAX = 64 * 1024 };

/* HX_EXIT_OK: first or acquired; HX_EXIT_NO, HX_EXIT_BUSY, HX_EXIT_MISMATCH. */
static int exit_of(enum hapax_outcome outcome)
{
	if (outcome == HAPAX_OUTCOME_ACQUIRED)
		return HX_EXIT_OK;
	if (outcome == HAPAX_OUTCOME_REPLAY)
		return HX_EXIT_NO;
	if (outcome == HAPAX_OUTCOME_MISMATCH)
		return HX_EXIT_MISMATCH;
	return outcome == HAPAX_OUTCOME_IN_PROGRESS || outcome == HAPAX_OUTCOME_PARKED
		? HX_EXIT_BUSY
		: HX_EXIT_SOFTWARE;
}

/* Members that only some answers have. A mark holds no lease and needs no result. */
static void write_holder(struct hx_json_write *json, const struct hapax_op *op)
{
	bool is_claim = op->type == HAPAX_OP_CLAIM;

	if (op->outcome == HAPAX_OUTCOME_IN_PROGRESS ||
	    (op->outcome == HAPAX_OUTCOME_ACQUIRED && is_claim))
		hx_json_write_signed(json, "lease_left_ms", op->lease_left_ms);
	if (op->outcome == HAPAX_OUTCOME_ACQUIRED || op->record == NULL)
		return;
	if (op->record->owner.size > 0)
		hx_json_write_any(json, "owner", op->record->owner);
	if (op->record->error.size > 0)
		hx_json_write_any(json, "error", op->record->error);
	if (op->outcome == HAPAX_OUTCOME_REPLAY && is_claim)
		hx_record_result_write_json(json, &op->record->result, HX_RECORD_JSON_BRIEF);
}

/* Print one document. A claim has more members than a check: holder, result. */
static void print_json(struct hx_out *out, const struct hapax_op *op)
{
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_json_write_text(&json, "outcome", hapax_outcome_name(op->outcome));
	hx_record_out_name(&json, op->tenant, op->group, op->key);
	if (op->outcome == HAPAX_OUTCOME_ACQUIRED)
		hx_json_write_unsigned(&json, "token", op->token);
	hx_json_write_unsigned(&json, "attempt", op->attempt);
	hx_json_write_time(&json, "first_seen", op->first_seen_ms);
	hx_json_write_time(&json, "expires_at", op->expires_ms);
	write_holder(&json, op);
	hx_json_write_end(&json, '}');
}

static void print_first_seen(struct hx_out *out, int64_t first_seen_ms, int64_t now_ms)
{
	char time[HX_TEXT_SIZE], span[HX_TEXT_SIZE];

	hx_text_time(first_seen_ms, time);
	hx_duration_span(now_ms - first_seen_ms, span);
	hx_out_printf(out, "  first seen %s (%s ago)", time, span);
}

static void print_expiry(struct hx_out *out, int64_t expires_ms, int64_t now_ms)
{
	char time[HX_TEXT_SIZE], span[HX_TEXT_SIZE];

	if (expires_ms == HAPAX_TIME_NEVER) {
		hx_out_text(out, ", never expires");
		return;
	}
	hx_text_time(expires_ms, time);
	hx_duration_span(expires_ms - now_ms, span);
	hx_out_printf(out, ", expires %s (in %s)", time, span);
}

static void print_holder(struct hx_out *out, const struct hapax_op *op)
{
	char span[HX_TEXT_SIZE];

	hx_out_printf(out, "  attempt %u", (unsigned)op->attempt);
	if (op->record->owner.size > 0) {
		hx_out_text(out, " by ");
		hx_out_escaped(out, op->record->owner);
	}
	hx_duration_span(op->lease_left_ms, span);
	hx_out_printf(out, ", lease ends in %s", span);
}

/* Print in one line why the caller may not continue. op->record is set. */
static void print_text(struct hx_out *out, const struct hapax_op *op, int64_t now_ms)
{
	if (op->outcome == HAPAX_OUTCOME_REPLAY) {
		hx_out_colored(out, HX_COLOR_YELLOW, "duplicate");
		print_first_seen(out, op->first_seen_ms, now_ms);
		print_expiry(out, op->expires_ms, now_ms);
	} else if (op->outcome == HAPAX_OUTCOME_IN_PROGRESS) {
		hx_out_colored(out, HX_COLOR_BLUE, "in progress");
		print_holder(out, op);
	} else if (op->outcome == HAPAX_OUTCOME_MISMATCH) {
		hx_out_colored(out, HX_COLOR_RED, "mismatch");
		print_first_seen(out, op->first_seen_ms, now_ms);
		hx_out_text(out, " with a different payload");
	} else if (op->outcome == HAPAX_OUTCOME_PARKED) {
		hx_out_colored(out, HX_COLOR_YELLOW, "parked");
		print_first_seen(out, op->first_seen_ms, now_ms);
		if (op->record->error.size > 0) {
			hx_out_text(out, ": ");
			hx_out_escaped(out, op->record->error);
		}
	}
	hx_out_text(out, "\n");
}

static int print(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op)
{
	bool is_first = op->outcome == HAPAX_OUTCOME_ACQUIRED;

	if (inv->settings.format == HX_FORMAT_JSON) {
		print_json(&inv->out, op);
	} else if (is_first && op->type == HAPAX_OP_CLAIM) {
		/* Only the token: token=$(hapax claim KEY). */
		hx_out_printf(&inv->out, "%" PRIu64 "\n", op->token);
	} else if (is_first) {
		hx_key_command_name(inv, op);
		hx_out_colored(&inv->out, HX_COLOR_GREEN, "first");
		hx_out_text(&inv->out, "\n");
	} else {
		hx_key_command_name(inv, op);
		print_text(&inv->out, op, hx_settings_now_ms(store));
	}
	if (is_first)
		hx_settings_tidy(store);
	return exit_of(op->outcome);
}

/* The event that the key is claimed for, which is kept with the record. */
static int read_event(
	struct hx_invocation *inv, const char *text, unsigned char buffer[HAPAX_CAUSE_SIZE_MAX],
	struct hapax_bytes *ret_cause)
{
	struct hx_event_json event = {.given = 0};
	struct hx_json_reader reader;
	struct hapax_error err;
	int code = HX_EXIT_OK;

	hx_json_reader_init(&reader, EVENT_SIZE_MAX, NULL);
	if (hx_json_reader_read(&reader, hapax_bytes_from_text(text), &err) != HAPAX_OK ||
	    hx_json_object_read(
		    &reader, &reader.tree.nodes[0], &hx_event_json_section, HX_JSON_FIELD_ALWAYS,
		    &event, &err) != HAPAX_OK)
		code = hx_report_usage(inv->command->name, "--event: %s", err.message);
	else
		*ret_cause = hx_record_cause_from_json(&event, buffer);
	hx_json_reader_done(&reader);
	return code;
}

/* With the holder's values, which a mark does not have. */
static int apply_claim(struct hx_invocation *inv, struct hapax_op *op)
{
	const char *owner = hx_options_text(&inv->options, OPTION_OWNER);
	const char *event = hx_options_text(&inv->options, OPTION_EVENT);
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	unsigned char cause[HAPAX_CAUSE_SIZE_MAX];
	char own[HX_OWNER_SIZE_MAX + 1];
	int code = event == NULL ? HX_EXIT_OK : read_event(inv, event, cause, &op->cause);

	if (code != HX_EXIT_OK)
		return code;
	op->on_lapse = (enum hapax_on_lapse)hx_options_number(&inv->options, OPTION_ON_LAPSE);
	hx_owner_text(own);
	op->owner = hapax_bytes_from_text(owner != NULL ? owner : own);
	hapax_attempt_id(attempt_id);
	op->attempt_id = attempt_id;
	return hx_key_command_run(inv, HX_OPEN_CREATE, op, print);
}

static int run_claim(struct hx_invocation *inv)
{
	bool is_check = inv->command == &hx_cmd_check;
	const char *payload = hx_options_text(&inv->options, OPTION_PAYLOAD);
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	struct hapax_op op;
	int code = hx_key_command_init(inv, is_check ? HAPAX_OP_CHECK : HAPAX_OP_CLAIM, &op);

	/* Options first: a payload may come from standard input, and is not waited for in vain. */
	if (code == HX_EXIT_OK && !is_check)
		code = hx_duration_text_read(inv, OPTION_LEASE, HX_LEASE_MS_MAX, &op.lease_ms);
	if (code == HX_EXIT_OK && payload != NULL && inv->options.operand_count > 1)
		code = hx_report_usage(inv->command->name, "--payload requires a single key");
	if (code == HX_EXIT_OK && payload != NULL) {
		code = hx_input_fingerprint(inv->command->name, payload, fingerprint);
		op.fingerprint = fingerprint;
	}
	if (code != HX_EXIT_OK)
		return code;
	return is_check ? hx_key_command_each(inv, HX_OPEN_CREATE, &op, print)
			: apply_claim(inv, &op);
}

/* In the order of enum hapax_on_lapse. */
static const char *const on_lapse_choices[] = {"retry", "park", NULL};

/* clang-format off */
#define PAYLOAD_ROW \
	{OPTION_PAYLOAD, "payload", 0, HX_OPTION_TEXT, "FILE|-", \
	 "also compare the SHA-256 of the payload", NULL}
/* clang-format on */

static const struct hx_option claim_options[] = {
	{OPTION_LEASE, "lease", 0, HX_OPTION_TEXT, "D",
	 "how long the claim lasts without renewal (default: 30s)", NULL},
	{OPTION_ON_LAPSE, "on-lapse", 0, HX_OPTION_CHOICE, "retry|park",
	 "after the lease lapses, run again or park (default: retry)", on_lapse_choices},
	PAYLOAD_ROW,
	{OPTION_OWNER, "owner", 0, HX_OPTION_TEXT, "TEXT",
	 "name of the holder, shown by 'lookup' and 'explain'", NULL},
	{OPTION_EVENT, "event", 0, HX_OPTION_TEXT, "JSON",
	 "event of the claim: an object with id, type, source and time", NULL},
	{.name = NULL},
};

static const struct command_exit claim_exits[] = {
	{HX_EXIT_OK, "acquired: do the work, then complete or release it"},
	{HX_EXIT_NO, "duplicate: the work is done"},
	{HX_EXIT_MISMATCH, "mismatch: the key was used with a different payload"},
	{HX_EXIT_NO_INPUT, "the payload could not be read; nothing changed"},
	{HX_EXIT_BUSY, "in progress (retry later), or parked (run 'hapax resolve')"},
	{0, NULL},
};

static const struct command_example claim_examples[] = {
	{"token=$(hapax claim order-21) && hapax complete order-21 --token \"$token\"",
	 "claim, do the work, complete"},
	{"hapax claim order-22 --lease 5m --on-lapse park -o json",
	 "claim for five minutes; park the key if the lease lapses"},
	{NULL, NULL},
};

const struct command hx_cmd_claim = {
	.name = "claim",
	.summary = "claim a key and print its token",
	.usage = "KEY [--lease D] [OPTION]...",
	.description =
		"Of any number of concurrent callers, exactly one acquires KEY. It gets a fencing token,\n"
		"which 'renew', 'complete', 'release' and 'park' require. The others get 'in_progress' or\n"
		"'duplicate'. If the holder does not renew its lease, the lease lapses and the next claim\n"
		"takes over with a higher token. In a script ('hapax run' does this for one command):\n"
		"\n"
		"  token=$(hapax claim \"$id\" --lease 10m); case $? in\n"
		"  0)  if do_the_work; then hapax complete \"$id\" --token \"$token\"\n"
		"      else hapax release \"$id\" --token \"$token\"; fi ;;\n"
		"  1)  ;;                         # duplicate: nothing to do\n"
		"  75) exit 75 ;;                 # in progress: retry later\n"
		"  *)  exit 1 ;;                  # not decided: see the message\n"
		"  esac\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_TTL,
	.operands = {1, 1},
	.options = claim_options,
	.exits = claim_exits,
	.examples = claim_examples,
	.run = run_claim,
};

static const struct hx_option check_options[] = {
	PAYLOAD_ROW,
	{.name = NULL},
};

static const struct command_exit check_exits[] = {
	{HX_EXIT_OK, "first: do the work"},
	{HX_EXIT_NO, "duplicate: the key was seen before"},
	{HX_EXIT_MISMATCH, "mismatch: the key was used with a different payload"},
	{HX_EXIT_NO_INPUT, "the payload could not be read; nothing changed"},
	{HX_EXIT_BUSY, "in progress (retry later), or parked (run 'hapax resolve')"},
	{0, NULL},
};

static const struct command_example check_examples[] = {
	{"hapax check order-17 && echo 'ship it'", "run a command for the first delivery only"},
	{"hapax check order-17 --ttl 7d -o json", "remember the key for a week; print JSON"},
	{"printf '{\"total\":42}' | hapax check order-18 --payload -",
	 "detect a repeated key with a different payload"},
	{"hapax check order-17 --scope acme/billing", "use the scope of one tenant and group"},
	{"hapax check order-31 order-32 order-33", "check several keys, one line for each"},
	{NULL, NULL},
};

const struct command hx_cmd_check = {
	.name = "check",
	.summary = "mark a key as seen and report whether it is new (at most once)",
	.usage = "KEY... [--payload FILE|-] [OPTION]...",
	.description =
		"Marks KEY as seen in one step and reports whether it is new within its TTL. Of any\n"
		"number of concurrent callers, exactly one gets 'first'. Several keys are marked one\n"
		"after the other, each with a line of its own; the exit status is the highest.\n"
		"\n"
		"This is at most once: the key is marked before the work, so a crash after the check\n"
		"loses the work. In a script:\n"
		"\n"
		"  hapax check \"$id\"; case $? in\n"
		"  0)  do_the_work ;;             # first\n"
		"  1)  ;;                         # duplicate: nothing to do\n"
		"  75) exit 75 ;;                 # in progress: retry later\n"
		"  *)  exit 1 ;;                  # not decided: see the message\n"
		"  esac\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_TTL | COMMAND_ANSWERS,
	.operands = {1, SIZE_MAX},
	.options = check_options,
	.exits = check_exits,
	.examples = check_examples,
	.run = run_claim,
};
