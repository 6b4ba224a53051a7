/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_fsck.c - hapax fsck: verify the files of a file: store and explain the damage. It repairs
 * only if the loss is accepted explicitly.
 */
#include <inttypes.h>
#include <string.h>

#include <hapax/fsck.h>
#include <hapax/hapax.h>

#include "base/uuid7.h"
#include "cli/frame/command.h"
#include "wire/json/json_write.h"
#include "cli/frame/progress.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"

enum { OPTION_REPAIR = 1, OPTION_ACCEPT_LOSS };

static const struct hx_option options[] = {
	{OPTION_REPAIR, "repair", 0, HX_OPTION_FLAG, NULL,
	 "build a new store from what can be read", NULL},
	{OPTION_ACCEPT_LOSS, "accept-loss", 0, HX_OPTION_FLAG, NULL,
	 "with --repair: accept that lost keys may run again", NULL},
	HX_OPTION_OUTPUT_ROW,
	{.name = NULL},
};

static const char *const kinds[] = {"note", "cut", "damage"};

struct checker {
	struct hx_out *out;
	struct hx_json_write json;
	struct hx_progress progress;
	bool as_json;
};

static void print_problem_json(struct checker *checker, const struct hapax_fsck_problem *problem)
{
	struct hx_json_write *json = &checker->json;

	hx_json_write_begin(json, NULL, '{');
	hx_json_write_text(json, "kind", kinds[problem->kind]);
	hx_json_write_any(json, "file", hapax_bytes_from_text(problem->file));
	hx_json_write_unsigned(json, "offset", problem->offset);
	hx_json_write_unsigned(json, "lsn", problem->lsn);
	hx_json_write_unsigned(json, "keys_at_risk_max", problem->keys_at_risk_max);
	hx_json_write_any(json, "what", hapax_bytes_from_text(problem->what));
	hx_json_write_end(json, '}');
}

static void print_problem(const struct hapax_fsck_problem *problem, void *context)
{
	struct checker *checker = context;
	struct hx_out *out = checker->out;

	hx_progress_done(&checker->progress);
	if (checker->as_json) {
		print_problem_json(checker, problem);
		return;
	}
	hx_out_colored(
		out,
		problem->kind == HAPAX_FSCK_DAMAGE        ? HX_COLOR_RED
			: problem->kind == HAPAX_FSCK_CUT ? HX_COLOR_YELLOW
							  : HX_COLOR_NONE,
		kinds[problem->kind]);
	hx_out_text(out, ": ");
	if (problem->file[0] != '\0') {
		hx_out_escaped(out, hapax_bytes_from_text(problem->file));
		if (problem->offset != 0)
			hx_out_printf(out, " at offset %" PRIu64, problem->offset);
		hx_out_text(out, ": ");
	}
	hx_out_escaped(out, hapax_bytes_from_text(problem->what));
	if (problem->lsn != 0)
		hx_out_printf(out, " (LSN %" PRIu64 ")", problem->lsn);
	if (problem->keys_at_risk_max != 0)
		hx_out_printf(
			out, "; up to %" PRIu64 " keys are at risk", problem->keys_at_risk_max);
	else if (problem->kind == HAPAX_FSCK_DAMAGE)
		hx_out_text(out, "; the number of keys at risk is unknown");
	hx_out_text(out, "\n");
}

static void show_progress(uint64_t bytes_done, uint64_t bytes_total, void *context)
{
	struct checker *checker = context;

	hx_progress_bar(&checker->progress, "bytes", bytes_done, bytes_total);
}

static const char *verdict_of(enum hapax_status status, const struct hapax_fsck *fsck)
{
	if (status == HAPAX_OK)
		return fsck->damages > 0 ? "repaired" : "sound";
	return status == HAPAX_ERR_CORRUPT ? "damaged" : "unknown";
}

static void print_summary_json(
	struct checker *checker, const struct hapax_fsck *fsck, enum hapax_status status)
{
	struct hx_json_write *json = &checker->json;
	char uuid[HX_UUID_TEXT_SIZE + 1];

	hx_uuid7_format(fsck->uuid, uuid);
	hx_json_write_end(json, ']');
	hx_json_write_text(json, "verdict", verdict_of(status, fsck));
	hx_json_write_text(json, "uuid", uuid);
	hx_json_write_time(json, "created", fsck->created_ms);
	hx_json_write_unsigned(json, "segments", fsck->segments);
	hx_json_write_unsigned(json, "bytes", fsck->bytes);
	hx_json_write_unsigned(json, "records", fsck->records);
	hx_json_write_unsigned(json, "removals", fsck->removals);
	hx_json_write_unsigned(json, "token", fsck->token);
	hx_json_write_unsigned(json, "lsn", fsck->lsn);
	hx_json_write_boolean(json, "closed", fsck->is_closed != 0);
	hx_json_write_unsigned(json, "notes", fsck->notes);
	hx_json_write_unsigned(json, "cuts", fsck->cuts);
	hx_json_write_unsigned(json, "damages", fsck->damages);
	if (fsck->damaged_path[0] != '\0') {
		hx_json_write_unsigned(json, "salvaged", fsck->salvaged);
		hx_json_write_unsigned(json, "unread", fsck->unread);
		hx_json_write_any(json, "damaged_store", hapax_bytes_from_text(fsck->damaged_path));
	}
	hx_json_write_end(json, '}');
}

static void print_summary(
	struct checker *checker, const struct hapax_fsck *fsck, enum hapax_status status)
{
	struct hx_out *out = checker->out;
	char text[HX_TEXT_SIZE];

	hx_out_field(out, "verdict");
	hx_out_colored(
		out, status == HAPAX_OK ? HX_COLOR_GREEN : HX_COLOR_RED, verdict_of(status, fsck));
	hx_text_bytes(fsck->bytes, text);
	hx_out_printf(out, "\n");
	hx_out_line(out, "segments", "%" PRIu64 ", %s", fsck->segments, text);
	hx_out_line(
		out, "records", "%" PRIu64 " versions, %" PRIu64 " removals", fsck->records,
		fsck->removals);
	hx_out_line(out, "last token", "%" PRIu64, fsck->token);
	hx_out_field(out, "closed");
	hx_out_text(out, fsck->is_closed ? "cleanly\n" : "no: the next open recovers\n");
	if (fsck->damaged_path[0] == '\0')
		return;
	hx_out_line(
		out, "salvaged", "%" PRIu64 " key%s", fsck->salvaged,
		hx_text_plural(fsck->salvaged));
	if (fsck->unread > 0) {
		hx_out_line(
			out, "left out", "%" PRIu64 " segments, unreadable or of another store",
			fsck->unread);
	}
	hx_out_line_escaped(out, "damaged one", hapax_bytes_from_text(fsck->damaged_path));
}

static int report_end(
	const struct hx_invocation *inv, enum hapax_status status, const struct hapax_error *err,
	bool tried_repair)
{
	int code;

	if (status == HAPAX_OK)
		return HX_EXIT_OK;
	code = hx_report_error(inv->command->name, err);
	if (status == HAPAX_ERR_CORRUPT && !tried_repair)
		hx_report_hint("restore a backup; or run 'hapax fsck DIR --repair "
			       "--accept-loss', which keeps what it can read: lost keys may "
			       "run again");
	if (status == HAPAX_ERR_UNSUPPORTED)
		hx_report_hint("use the newer version of hapax that wrote it");
	return code;
}

static int check_options(const struct hx_invocation *inv, bool *ret_repair)
{
	bool repair = hx_options_has(&inv->options, OPTION_REPAIR);
	bool accept = hx_options_has(&inv->options, OPTION_ACCEPT_LOSS);

	*ret_repair = repair;
	if (repair == accept)
		return HX_EXIT_OK;
	return hx_report_misuse(
		inv->command->name, "use '--repair --accept-loss' together; nothing changed",
		repair ? "--repair requires --accept-loss: keys that cannot be read are "
			 "lost"
		       : "--accept-loss requires --repair");
}

static int run_fsck(struct hx_invocation *inv)
{
	const char *path = inv->options.operands[0];
	struct checker checker = {
		.out = &inv->out, .as_json = inv->settings.format == HX_FORMAT_JSON};
	struct hapax_fsck fsck = HAPAX_FSCK_INIT;
	struct hapax_error err = {.status = HAPAX_OK};
	enum hapax_status status;
	bool repair = false;
	int code = check_options(inv, &repair);

	if (code != HX_EXIT_OK)
		return code;
	if (strncmp(path, "file:", strlen("file:")) == 0)
		path += strlen("file:");
	hx_progress_init(&checker.progress);
	fsck.flags = repair ? (unsigned)HAPAX_FSCK_REPAIR_ACCEPT_LOSS : 0;
	fsck.problem = print_problem;
	fsck.progress = show_progress;
	fsck.context = &checker;
	if (checker.as_json) {
		hx_out_json(&checker.json, &inv->out);
		hx_json_write_begin(&checker.json, "problems", '[');
	}
	status = hapax_fsck(path, &fsck, &err);
	hx_progress_done(&checker.progress);
	if (checker.as_json)
		print_summary_json(&checker, &fsck, status);
	else if (fsck.segments > 0 || fsck.damages > 0)
		print_summary(&checker, &fsck, status);
	hx_out_flush(&inv->out);
	return report_end(inv, status, &err, repair);
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "the store is intact, or was repaired"},
	{HX_EXIT_USAGE, "invalid command line, or no store in DIR"},
	{HX_EXIT_STORE, "the store is in use, unreadable or too new"},
	{HX_EXIT_IO, "acknowledged data is damaged"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax store copy \"$HAPAX_STORE\" file:store && hapax fsck store",
	 "copy a store, then verify the copy"},
	{NULL, NULL},
};

const struct command hx_cmd_fsck = {
	.name = "fsck",
	.summary = "verify or repair a file: store",
	.usage = "DIR [--repair --accept-loss] [OPTION]...",
	.description =
		"Reads every byte of the store in DIR and reports what is wrong. No process may have the\n"
		"store open. A note is harmless. A cut is an incomplete end that was never acknowledged;\n"
		"the next open removes it. Damage is acknowledged data that cannot be read; such a store\n"
		"does not open. Writes nothing.\n"
		"\n"
		"--repair --accept-loss builds a new store from everything that can be read and replaces\n"
		"DIR with it; the damaged store stays as DIR.damaged-N. Keys that cannot be read are lost:\n"
		"their work may run again. New tokens start 2^40 above the last one.\n",
	.operands = {1, 1},
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_fsck,
};
