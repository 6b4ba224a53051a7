/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_decisions.c - hapax decisions erase: the decisions of tenants, out of log.decisions files.
 *
 * The new file is written beside the old one and takes its name at the end, so that a crash leaves
 * the one or the other, whole. The file is locked meanwhile: a daemon that writes it holds the same
 * lock, and lines that it added behind our back would be lost.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "cli/frame/command.h"
#include "cli/frame/report.h"
#include "cli/input/input.h"
#include "cli/print/text.h"
#include "wire/json/json.h"
#include "wire/json/json_string.h"
#include "wire/json/json_write.h"

enum { FILES_MAX = 256, CHUNK_SIZE = 1024 * 1024, NAMES_MAX = 128 };

enum { OPTION_TENANT = 1, OPTION_DRY_RUN };

static const struct hx_option options[] = {
	{OPTION_TENANT, "tenant", 0, HX_OPTION_TEXT, "TENANT",
	 "whose lines are erased; may be repeated", NULL},
	{OPTION_DRY_RUN, "dry-run", 0, HX_OPTION_FLAG, NULL, "count only; change nothing", NULL},
	HX_OPTION_OUTPUT_ROW,
	{.name = NULL},
};

struct erasing {
	struct hx_invocation *inv;
	const char *const *tenants;
	size_t tenant_count;
	bool is_dry;
	const char *path;
	char new_path[PATH_MAX + 16];
	int file;     /* the old one, locked; -1: not open */
	int new_file; /* -1: not open */
	uint64_t offset;
	struct hapax_buf chunk; /* lines that stay, not yet written */
	uint64_t lines;
	uint64_t erased;
	uint64_t unreadable;
};

static int report_os(struct erasing *work, int result, const char *what, const char *path)
{
	struct hapax_error err;

	(void)hx_error_set(
		&err, hx_error_status_of(-result), -result, "could not %s '%s'", what, path);
	hx_report(work->inv->command->name, "%s", err.message);
	return hx_exit_of_status(err.status);
}

static bool is_of_tenant(const struct erasing *work, struct hx_json_string value)
{
	for (size_t i = 0; i < work->tenant_count; i++)
		if (hx_json_string_equal(value, hapax_bytes_from_text(work->tenants[i])))
			return true;
	return false;
}

enum line { LINE_STAYS, LINE_GOES, LINE_UNREADABLE };

static enum line read_line(const struct erasing *work, struct hapax_bytes line)
{
	struct hx_json_name names[NAMES_MAX];
	struct hx_json_token token;
	struct hx_json json;
	bool has_tenant = false, is_cut = false;
	enum line found = LINE_STAYS;
	uint32_t depth = 0;

	if (hx_json_init(&json, line, names, NAMES_MAX, NULL) != HAPAX_OK ||
	    hx_json_next(&json, &token, NULL) != HAPAX_OK || token.type != HX_JSON_OBJECT)
		return LINE_UNREADABLE;
	do {
		struct hx_json_string name, value;

		depth = json.depth;
		if (hx_json_next(&json, &token, NULL) != HAPAX_OK)
			return LINE_UNREADABLE;
		if (depth != 1 || token.name == 0)
			continue;
		name = (struct hx_json_string){
			json.data + token.name, token.name_size, token.name_escaped};
		is_cut = is_cut || hx_json_string_equal(name, HX_BYTES_LIT("cut"));
		if (token.type != HX_JSON_STRING ||
		    !hx_json_string_equal(name, HX_BYTES_LIT("tenant")))
			continue;
		value = (struct hx_json_string){
			json.data + token.text, token.size, token.escaped != 0};
		has_tenant = true;
		if (is_of_tenant(work, value))
			found = LINE_GOES;
	} while (token.type != HX_JSON_END);
	/* What was cut off may have been the tenant. */
	return is_cut && !has_tenant ? LINE_UNREADABLE : found;
}

static int write_chunk(struct erasing *work)
{
	const struct hx_io *io = hx_io_system();
	int result = hx_io_write_full(
		io, work->new_file, work->chunk.data, work->chunk.size, work->offset);

	if (result != 0)
		return report_os(work, result, "write", work->new_path);
	work->offset += work->chunk.size;
	hx_buf_clear(&work->chunk);
	return HX_EXIT_OK;
}

static int keep_line(struct erasing *work, struct hapax_bytes line)
{
	if (work->is_dry)
		return HX_EXIT_OK;
	if (hx_buf_append(&work->chunk, line.data, line.size) != HAPAX_OK ||
	    hx_buf_append(&work->chunk, "\n", 1) != HAPAX_OK)
		return hx_report_no_memory(work->inv->command->name);
	return work->chunk.size < CHUNK_SIZE ? HX_EXIT_OK : write_chunk(work);
}

static int read_lines(struct erasing *work, struct hx_input *input)
{
	int code = HX_EXIT_OK;

	while (code == HX_EXIT_OK) {
		enum hx_input_line kind;
		struct hapax_bytes line;
		enum line found;

		code = hx_input_line(input, &line, &kind);
		if (code != HX_EXIT_OK || kind == HX_INPUT_LINE_NONE)
			break;
		if (kind == HX_INPUT_LINE_TOO_LONG) {
			hx_report(
				work->inv->command->name, "'%s': %s", work->path,
				HX_INPUT_TOO_LONG);
			return HX_EXIT_DATA;
		}
		work->lines++;
		found = read_line(work, line);
		work->erased += found == LINE_GOES;
		work->unreadable += found == LINE_UNREADABLE;
		if (found != LINE_GOES)
			code = keep_line(work, line);
	}
	return code;
}

static int replace(struct erasing *work)
{
	const struct hx_io *io = hx_io_system();
	const char *slash = strrchr(work->path, '/');
	char folder[PATH_MAX] = ".";
	int code = write_chunk(work);
	int result;

	if (code != HX_EXIT_OK)
		return code;
	result = io->ops->fdatasync(io->context, work->new_file);
	if (result != 0)
		return report_os(work, result, "write", work->new_path);
	result = io->ops->rename(io->context, work->new_path, work->path);
	if (result != 0)
		return report_os(work, result, "replace", work->path);
	if (slash != NULL)
		(void)snprintf(
			folder, sizeof(folder), "%.*s", (int)(slash - work->path + 1), work->path);
	result = io->ops->fsync_dir(io->context, folder);
	return result == 0 ? HX_EXIT_OK : report_os(work, result, "write the folder", folder);
}

/* The file that takes the old one's place, with its owner and mode. */
static int create_new(struct erasing *work)
{
	const struct hx_io *io = hx_io_system();
	int result;

	(void)snprintf(work->new_path, sizeof(work->new_path), "%s.erasing", work->path);
	/* One that is there is from an erasure that was cut off, or a trap: it is not followed. */
	(void)io->ops->unlink(io->context, work->new_path);
	work->new_file = io->ops->open(
		io->context, work->new_path, HX_IO_WRITE | HX_IO_CREATE | HX_IO_EXCLUSIVE, 0600);
	if (work->new_file < 0) {
		int code = report_os(work, work->new_file, "create", work->new_path);

		hx_report_hint("the new file is written beside the old one: its folder must be "
			       "writable");
		return code;
	}
	result = hx_io_copy_owner(work->file, work->new_file);
	if (result != 0) {
		int code = report_os(work, result, "keep the owner of", work->path);

		hx_report_hint("run the command as the owner of the file, or as root");
		return code;
	}
	return HX_EXIT_OK;
}

static int open_files(struct erasing *work)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat = {.kind = HX_IO_OTHER}, named = {.kind = HX_IO_FILE};
	int result;

	if (strlen(work->path) >= PATH_MAX)
		return report_os(work, -ENAMETOOLONG, "open", work->path);
	/* To open a pipe or a device may have an effect. */
	(void)io->ops->stat_path(io->context, work->path, &named);
	if (named.kind != HX_IO_FILE) {
		hx_report(work->inv->command->name, "'%s' is not a regular file", work->path);
		return HX_EXIT_NO_INPUT;
	}
	work->file = io->ops->open(io->context, work->path, HX_IO_READ | HX_IO_WRITE, 0);
	if (work->file < 0) {
		(void)report_os(work, work->file, "open", work->path);
		return HX_EXIT_NO_INPUT;
	}
	result = io->ops->lock(io->context, work->file);
	if (result == -EAGAIN) {
		hx_report(work->inv->command->name, "a daemon is writing '%s'", work->path);
		hx_report_hint(
			"rename it, send the daemon HUP so that it opens a new one, then erase "
			"from the renamed file");
		return HX_EXIT_BUSY;
	}
	if (result != 0)
		return report_os(work, result, "lock", work->path);
	(void)io->ops->stat(io->context, work->file, &stat);
	if (io->ops->stat_path(io->context, work->path, &named) != 0 ||
	    named.device != stat.device || named.inode != stat.inode) {
		hx_report(
			work->inv->command->name, "'%s' was renamed or replaced; try again",
			work->path);
		return HX_EXIT_BUSY;
	}
	return work->is_dry ? HX_EXIT_OK : create_new(work);
}

static void close_files(struct erasing *work, bool is_replaced)
{
	const struct hx_io *io = hx_io_system();

	if (work->new_file >= 0) {
		(void)io->ops->close(io->context, work->new_file);
		if (!is_replaced)
			(void)io->ops->unlink(io->context, work->new_path);
	}
	if (work->file >= 0)
		(void)io->ops->close(io->context, work->file);
	hx_buf_done(&work->chunk);
}

static void print_erased(const struct erasing *work)
{
	struct hx_json_write json;

	if (work->inv->settings.format == HX_FORMAT_TEXT) {
		hx_out_printf(
			&work->inv->out, "%s: %s%" PRIu64 " of %" PRIu64 " line%s\n", work->path,
			work->is_dry ? "would erase " : "erased ", work->erased, work->lines,
			hx_text_plural(work->lines));
		return;
	}
	hx_out_json(&json, &work->inv->out);
	hx_json_write_text(&json, "file", work->path);
	hx_json_write_unsigned(&json, "lines", work->lines);
	hx_json_write_unsigned(&json, "erased", work->erased);
	hx_json_write_unsigned(&json, "unreadable", work->unreadable);
	hx_json_write_boolean(&json, "dry_run", work->is_dry);
	hx_json_write_end(&json, '}');
}

static int erase_from(struct erasing *work)
{
	struct hx_input input = {.file = -1};
	bool changes;
	int code;

	hx_buf_init(&work->chunk, HX_INPUT_SIZE_MAX + CHUNK_SIZE + 1);
	code = open_files(work);
	if (code == HX_EXIT_OK)
		code = hx_input_open(&input, work->inv->command->name, work->path);
	if (code == HX_EXIT_OK)
		code = read_lines(work, &input);
	hx_input_close(&input);
	/* A file without lines of the tenant stays as it is. */
	changes = code == HX_EXIT_OK && !work->is_dry && work->erased > 0;
	if (changes)
		code = replace(work);
	close_files(work, changes && code == HX_EXIT_OK);
	if (code != HX_EXIT_OK)
		return code;
	print_erased(work);
	if (work->unreadable == 0)
		return HX_EXIT_OK;
	hx_report(
		work->inv->command->name, "'%s': kept %" PRIu64 " line%s that could not be read",
		work->path, work->unreadable, hx_text_plural(work->unreadable));
	hx_report_hint("look by hand: a line that was kept may name the tenant, too");
	return HX_EXIT_DATA;
}

static int run_erase(struct hx_invocation *inv)
{
	const char *tenants[HX_OPTION_VALUES_MAX];
	size_t tenant_count =
		hx_options_all(&inv->options, OPTION_TENANT, tenants, HX_COUNT(tenants));
	int code = HX_EXIT_OK;

	if (tenant_count == 0)
		return hx_report_misuse(
			inv->command->name, "as in: hapax decisions erase --tenant acme FILE",
			"--tenant is missing");
	for (size_t i = 0; i < tenant_count; i++)
		if (tenants[i][0] == '\0')
			return hx_report_misuse(
				inv->command->name,
				"name the tenant; 'default' is that of clients that name none",
				"--tenant is empty");
	for (size_t i = 0; i < inv->options.operand_count; i++) {
		/* Of a symbolic link, the file is replaced and not the link. */
		char path[PATH_MAX];
		bool is_there = hx_io_path_real(inv->options.operands[i], path) == 0;
		struct erasing work = {
			.inv = inv,
			.tenants = tenants,
			.tenant_count = tenant_count,
			.is_dry = hx_options_get(&inv->options, OPTION_DRY_RUN) != NULL,
			.path = is_there ? path : inv->options.operands[i],
			.file = -1,
			.new_file = -1,
		};
		int one = erase_from(&work);

		/* The others are erased all the same; the first failure is the exit status. */
		code = code == HX_EXIT_OK ? one : code;
	}
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "erased from every file"},
	{HX_EXIT_DATA, "a file has lines that could not be read; they stay"},
	{HX_EXIT_NO_INPUT, "a file could not be read, or is not a regular file"},
	{HX_EXIT_STORE, "a new file could not be written beside the old one, which stays"},
	{HX_EXIT_BUSY, "a daemon is writing a file"},
	{0, NULL},
};

static const struct command_action actions[] = {
	{.name = "erase",
	 .summary = "remove the lines of tenants from files of decisions",
	 .usage = "--tenant TENANT FILE... [OPTION]...",
	 .description =
		 "Removes the lines of each TENANT from FILE, which a daemon wrote for log.decisions.\n"
		 "The new file is written beside the old one and keeps its owner and mode. A crash\n"
		 "leaves the one or the other, whole. The file that a daemon is writing is refused:\n"
		 "rename it first and send the daemon HUP.\n",
	 .operands = {1, FILES_MAX},
	 .exits = exits,
	 .run = run_erase},
	{.name = NULL},
};

static const struct command_example examples[] = {
	{"hapax decisions erase --tenant acme decisions.log.1", "forget what acme did"},
	{"hapax decisions erase --tenant acme decisions.log.* --dry-run", "count the lines first"},
	{NULL, NULL},
};

const struct command hx_cmd_decisions = {
	.name = "decisions",
	.summary = "erase a tenant from files of decisions",
	.usage = "ACTION FILE... [OPTION]...",
	.description = "A daemon with log.decisions writes each decision as a line of JSON.\n",
	.options = options,
	.exits = exits,
	.examples = examples,
	.actions = actions,
};
