/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_explain.c - hapax explain: describe the state of a key and what to do.
 */
#include <string.h>

#include <hapax/hapax.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "cli/frame/key_command.h"
#include "cli/print/record_out.h"
#include "cli/run/run_lock.h"
#include "wire/record/story.h"

/* Add what only this host knows. */
static void tell_lock(struct hx_story *story, enum hx_cmd_run_lock_state lock)
{
	if (lock == HX_RUN_LOCK_HELD)
		hx_story_add(
			story,
			"A 'hapax run' with this key, or its command, is running on "
			"this host. No other run starts here, even if the lease lapses.");
	else if (lock == HX_RUN_LOCK_FREE)
		hx_story_add(
			story,
			"The process of the holder died on this host. The next 'hapax "
			"run' here takes over at once.");
}

/* Can the key be used in a shell without quotes? */
static bool is_plain(struct hapax_bytes key)
{
	const char *data = key.data;

	for (size_t i = 0; i < key.size; i++) {
		bool is_word = (data[i] >= 'a' && data[i] <= 'z') ||
			(data[i] >= 'A' && data[i] <= 'Z') || (data[i] >= '0' && data[i] <= '9');

		if (!is_word && (i == 0 || strchr("-_.:/@+=,%", data[i]) == NULL))
			return false;
	}
	return true;
}

/* The option as it was given; a value with a blank or a password is not repeated. */
static void print_option(const struct hx_invocation *inv, struct hx_out *out, int id)
{
	const struct hx_option_value *value = hx_options_get(&inv->options, id);

	if (value == NULL)
		return;
	hx_out_printf(
		out, " --%s %s", value->option->name,
		is_plain(hapax_bytes_from_text(value->text)) && strchr(value->text, '@') == NULL
			? value->text
			: value->option->value);
}

/* Print a command line for a key in the requested scope and store. */
static void print_action(
	const struct hx_invocation *inv, struct hx_out *out, const struct hapax_op *op,
	enum hx_story_action action)
{
	/* In the order of enum hx_story_action: text before and after the key. */
	static const char *const commands[][2] = {
		{"resolve", " --done"}, {"resolve", " --retry"}, {"forget", ""}};
	static const int ids[] = {
		HX_OPTION_SCOPE, HX_OPTION_STORE, HX_OPTION_SERVER, HX_OPTION_AUTH_FILE};

	hx_out_printf(out, "  hapax %s ", commands[action][0]);
	if (is_plain(op->key))
		hx_out_write(out, op->key.data, op->key.size);
	else
		hx_out_text(out, "KEY");
	hx_out_text(out, commands[action][1]);
	for (size_t i = 0; i < HX_COUNT(ids); i++)
		print_option(inv, out, ids[i]);
	hx_out_printf(out, "\n      %s\n", hx_story_reason(action));
}

static void print_text(
	struct hx_invocation *inv, const struct hx_story *story, const struct hapax_op *op)
{
	enum hapax_state state = story->record != NULL ? story->record->state : HAPAX_STATE_ABSENT;
	struct hx_out *out = &inv->out;
	char scope[HX_SCOPE_SIZE_MAX];

	hx_out_escaped(out, op->key);
	hx_out_text(out, " in ");
	hx_out_escaped(out, hx_record_out_scope(op->tenant, op->group, scope));
	hx_out_text(out, " is ");
	hx_out_colored(out, hx_record_out_color(state), hapax_state_name(state));
	hx_out_text(out, ".\n");
	for (size_t i = 0; i < story->link_count; i++) {
		hx_out_escaped(out, hapax_bytes_from_text(story->lines[i]));
		hx_out_text(out, "\n");
	}
	hx_out_printf(
		out, "A claim with the same payload would now return: %s.\n",
		hapax_outcome_name(story->next));
	for (size_t i = 0; i < story->action_count; i++)
		print_action(inv, out, op, story->actions[i]);
}

static void print_json(
	struct hx_invocation *inv, const struct hx_story *story, const struct hapax_op *op)
{
	enum hapax_state state = story->record != NULL ? story->record->state : HAPAX_STATE_ABSENT;
	struct hx_json_write json;

	hx_out_json(&json, &inv->out);
	hx_record_out_name(&json, op->tenant, op->group, op->key);
	hx_json_write_text(&json, "state", hapax_state_name(state));
	hx_json_write_text(&json, "next_claim", hapax_outcome_name(story->next));
	if (story->record != NULL)
		hx_record_cause_write_json(&json, story->record->cause);
	hx_json_write_begin(&json, "explanation", '[');
	for (size_t i = 0; i < story->link_count; i++)
		hx_json_write_any(&json, NULL, hapax_bytes_from_text(story->lines[i]));
	hx_json_write_end(&json, ']');
	hx_json_write_end(&json, '}');
}

static int explain(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op)
{
	static struct hx_cmd_run_lock lock; /* too large for a stack */
	static struct hx_story story;

	story = (struct hx_story){
		.record = op->outcome == HAPAX_OUTCOME_FOUND ? op->record : NULL,
		.lease_left_ms = op->lease_left_ms,
		.is_for_shell = true,
		.now_ms = hx_settings_now_ms(store),
	};
	hx_story_tell(&story);
	hx_cmd_run_lock_init(
		&lock,
		&(struct hx_cmd_run_lock_key){
			inv->settings.store_url, op->tenant, op->group, op->key});
	tell_lock(&story, hx_cmd_run_lock_probe(&lock, story.record));
	if (inv->settings.format == HX_FORMAT_JSON)
		print_json(inv, &story, op);
	else
		print_text(inv, &story, op);
	return story.record != NULL ? HX_EXIT_OK : HX_EXIT_NO;
}

static int run_explain(struct hx_invocation *inv)
{
	return hx_key_command_look(inv, explain);
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "the key has a record"},
	{HX_EXIT_NO, "absent: the key has no record, or it has expired"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax explain order-17", "why the key does not run, and what to do"},
	{"hapax explain order-17 -o json", "the same, as JSON"},
	{NULL, NULL},
};

const struct command hx_cmd_explain = {
	.name = "explain",
	.summary = "describe the state of a key and what happens next",
	.usage = "KEY [OPTION]...",
	.description =
		"Describes the state of KEY, what a claim would return now, and which commands help.\n"
		"Changes nothing. For a claim of 'hapax run', also reports whether its process is running\n"
		"on this host.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE,
	.operands = {1, 1},
	.exits = exits,
	.examples = examples,
	.run = run_explain,
};
