/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_gc.c - hapax gc: remove expired records now.
 *
 * A sweep is many short steps. Between two of them other users of the store get their turn, and a
 * signal can stop it.
 */
#include <inttypes.h>

#include <hapax/hapax.h>

#include "cli/frame/command.h"
#include "cli/frame/interrupt.h"
#include "wire/json/json_write.h"
#include "cli/frame/progress.h"
#include "cli/frame/report.h"
#include "cli/run/run_lock.h"

struct total {
	uint64_t looked;
	uint64_t removed;
	uint64_t lapsed;
	uint64_t remaining;
	uint64_t locks; /* files that dead runs left */
	bool is_done;
};

static int sweep_all(struct hx_invocation *inv, struct hapax_store *store, struct total *total)
{
	struct hx_progress progress;
	struct hapax_error err;
	int code = HX_EXIT_OK;

	hx_progress_init(&progress);
	while (code == HX_EXIT_OK && !total->is_done) {
		struct hapax_sweep sweep = HAPAX_SWEEP_INIT;

		if (hapax_store_sweep(store, &sweep, &err) != HAPAX_OK) {
			hx_progress_done(&progress);
			return hx_report_error(inv->command->name, &err);
		}
		total->looked += sweep.looked;
		total->removed += sweep.removed;
		total->lapsed += sweep.lapsed;
		total->remaining = sweep.remaining;
		total->is_done = sweep.done != 0;
		if (hx_interrupt_signal() != 0)
			code = HX_EXIT_SIGNAL + hx_interrupt_signal();
		hx_progress_show(
			&progress, "%" PRIu64 " checked, %" PRIu64 " deleted", total->looked,
			total->removed);
	}
	hx_progress_done(&progress);
	return code;
}

static void print_text(struct hx_out *out, const struct total *total)
{
	hx_out_line(out, "removed", "%" PRIu64, total->removed);
	hx_out_line(out, "lapsed", "%" PRIu64, total->lapsed);
	hx_out_line(out, "remaining", "%" PRIu64, total->remaining);
	hx_out_line(out, "locks", "%" PRIu64, total->locks);
}

static void print_json(struct hx_out *out, const struct total *total)
{
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_json_write_unsigned(&json, "removed", total->removed);
	hx_json_write_unsigned(&json, "lapsed", total->lapsed);
	hx_json_write_unsigned(&json, "remaining", total->remaining);
	hx_json_write_unsigned(&json, "looked", total->looked);
	hx_json_write_unsigned(&json, "locks", total->locks);
	hx_json_write_boolean(&json, "done", total->is_done);
	hx_json_write_end(&json, '}');
}

static int run_gc(struct hx_invocation *inv)
{
	struct total total = {.looked = 0};
	struct hapax_store *store;
	int code = hx_settings_open(inv, HX_OPEN_EXISTING, &store);

	if (code != HX_EXIT_OK)
		return code;
	hx_interrupt_watch();
	code = sweep_all(inv, store, &total);
	/* After the sweep: a claim that it settled needs no lock file. */
	if (code == HX_EXIT_OK)
		total.locks = hx_cmd_run_lock_gc(store, inv->settings.store_url);
	/* Removed records stay removed, even if a signal stopped the sweep. */
	if (code == HX_EXIT_OK || code > HX_EXIT_SIGNAL) {
		if (inv->settings.format == HX_FORMAT_JSON)
			print_json(&inv->out, &total);
		else
			print_text(&inv->out, &total);
	}
	hapax_store_close(store);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "every expired record was deleted"},
	{HX_EXIT_SIGNAL, "and above: a signal stopped it (130: INT, 143: TERM)"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax gc", "delete expired records"},
	{"hapax gc -o json", "print JSON, for the log of a cron job"},
	{NULL, NULL},
};

const struct command hx_cmd_gc = {
	.name = "gc",
	.summary = "delete expired records and settle lapsed claims",
	.usage = "[OPTION]...",
	.description =
		"Deletes expired records, and settles lapsed claims that no other claim took over within\n"
		"their TTL. It works in short steps and can be stopped at any time. An expired record\n"
		"counts as absent even before it is deleted. On this host, also deletes lock files\n"
		"('locks') of runs that died, unless the next run still needs them.\n",
	.flags = COMMAND_STORE,
	.exits = exits,
	.examples = examples,
	.run = run_gc,
};
