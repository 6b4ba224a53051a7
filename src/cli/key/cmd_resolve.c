/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_resolve.c - hapax resolve: a person decides the outcome of a parked key.
 */
#include <hapax/hapax.h>

#include "base/duration.h"
#include "cli/frame/report.h"
#include "cli/input/input.h"
#include "cli/key/cmd_token.h"
#include "cli/run/run_lock.h"

enum { OPTION_DONE = 1, OPTION_RETRY, OPTION_RESULT, OPTION_FORCE };

static const struct hx_option options[] = {
	{OPTION_DONE, "done", 0, HX_OPTION_FLAG, NULL,
	 "the work happened: later claims are duplicates", NULL},
	{OPTION_RETRY, "retry", 0, HX_OPTION_FLAG, NULL,
	 "the work did not happen: the next claim runs", NULL},
	{OPTION_RESULT, "result", 0, HX_OPTION_TEXT, "FILE|-",
	 "with --done: the result to store and replay", NULL},
	{OPTION_FORCE, "force", 0, HX_OPTION_FLAG, NULL, "resolve it even while it is claimed",
	 NULL},
	HX_IDEMPOTENCY_KEY_ROW,
	{.name = NULL},
};

static bool is_given(const struct hx_invocation *inv, int id)
{
	return hx_options_has(&inv->options, id);
}

static int check_options(const struct hx_invocation *inv)
{
	const char *name = inv->command->name;

	if (is_given(inv, OPTION_DONE) == is_given(inv, OPTION_RETRY))
		return hx_report_misuse(
			name, "--done: the work happened; --retry: it did not",
			"missing option: --done or --retry");
	if (is_given(inv, OPTION_RESULT) && is_given(inv, OPTION_RETRY))
		return hx_report_usage(name, "--result requires --done");
	return HX_EXIT_OK;
}

/* The key's lock on this host. */
static struct hx_cmd_run_lock *lock_of(const struct hx_invocation *inv, const struct hapax_op *op)
{
	static struct hx_cmd_run_lock lock; /* too large for a stack */

	hx_cmd_run_lock_init(
		&lock,
		&(struct hx_cmd_run_lock_key){
			inv->settings.store_url, op->tenant, op->group, op->key});
	return &lock;
}

/* Is a run alive here? A release would let a second one start beside it. */
static bool is_alive(const struct hx_invocation *inv, const struct hapax_op *found)
{
	char span[HX_DURATION_TEXT_SIZE];

	if (found->record->state == HAPAX_STATE_CLAIMED && found->lease_left_ms > 0) {
		hx_duration_span(found->lease_left_ms, span);
		hx_report(
			inv->command->name,
			"cannot resolve '%s': it is claimed, and its lease ends in %s",
			inv->options.operands[0], span);
	} else if (hx_cmd_run_lock_probe(lock_of(inv, found), found->record) == HX_RUN_LOCK_HELD) {
		hx_report(
			inv->command->name,
			"cannot resolve '%s': its command is running on this host",
			inv->options.operands[0]);
	} else {
		return false;
	}
	hx_report_hint("--force resolves it anyway; the work may then happen twice");
	return true;
}

/* May this record be resolved? HX_EXIT_OK, or another code after a message. */
static int judge(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *found)
{
	if (found->outcome != HAPAX_OUTCOME_FOUND) {
		hx_report(
			inv->command->name, "'%s' has no record in %s", inv->options.operands[0],
			hapax_store_url(store));
		return HX_EXIT_NO;
	}
	return !is_given(inv, OPTION_FORCE) && is_alive(inv, found) ? HX_EXIT_BUSY : HX_EXIT_OK;
}

/* Use the record's own token. */
static int resolve(
	struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op,
	const struct hapax_result *result)
{
	int code = hx_key_command_apply(inv, store, op, judge);

	if (code != HX_EXIT_OK)
		return code;
	*op = (struct hapax_op){
		.type = is_given(inv, OPTION_DONE) ? HAPAX_OP_COMPLETE : HAPAX_OP_RELEASE,
		.tenant = op->tenant,
		.group = op->group,
		.key = op->key,
		.token = op->token,
		.result = result,
		.error = hapax_bytes_from_text("resolved: run again"),
	};
	code = hx_key_command_apply(inv, store, op, hx_cmd_token_answer);
	/* Otherwise the next run would keep waiting for the lock's holder. */
	if (code == HX_EXIT_OK && op->type == HAPAX_OP_RELEASE && is_given(inv, OPTION_FORCE))
		hx_cmd_run_lock_break(lock_of(inv, op));
	return code;
}

static int run_resolve(struct hx_invocation *inv)
{
	struct hx_input_result file = {.input = {.file = -1}};
	struct hapax_store *store;
	struct hapax_op op;
	int code = check_options(inv);

	if (code == HX_EXIT_OK)
		code = hx_key_command_init(inv, HAPAX_OP_LOOKUP, &op);
	if (code == HX_EXIT_OK)
		code = hx_input_result_open(
			&file, inv->command->name, hx_options_text(&inv->options, OPTION_RESULT),
			HAPAX_RESULT_OK);
	if (code == HX_EXIT_OK)
		code = hx_settings_open(inv, HX_OPEN_EXISTING, &store);
	if (code == HX_EXIT_OK) {
		code = resolve(inv, store, &op, &file.result);
		hapax_store_close(store);
	}
	hx_input_result_close(&file);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "resolved"},
	{HX_EXIT_NO, "absent: the key has no record"},
	{HX_EXIT_DATA, "the result is larger than 64 MiB; nothing changed"},
	{HX_EXIT_NO_INPUT, "the result could not be read; nothing changed"},
	{HX_EXIT_BUSY, "claimed, or its command is running on this host: see --force"},
	{HX_EXIT_FENCED, "already done, or changed by another caller; nothing changed"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax resolve order-17 --done", "the work happened: do not run it again"},
	{"hapax resolve order-17 --retry", "the work did not happen: let the next delivery run"},
	{"hapax resolve 8e03978e --idempotency-key --done || true",
	 "the same for a request to the proxy; see 'hapax help lookup'"},
	{NULL, NULL},
};

const struct command hx_cmd_resolve = {
	.name = "resolve",
	.summary = "decide the outcome of a parked key",
	.usage = "KEY --done [--result FILE|-] | --retry [OPTION]...",
	.description =
		"A parked key has an unknown outcome. Check whether the work happened, then resolve the\n"
		"key. 'hapax keys --state parked' lists parked keys, 'hapax explain KEY' describes one.\n"
		"Failed keys, and claims whose lease has lapsed, can be resolved as well, unless a command\n"
		"of 'hapax run' with this key is still running on this host.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_ANSWERS,
	.operands = {1, 1},
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_resolve,
};
