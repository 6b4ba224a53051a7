/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - the common options, their variables and defaults; opening a store.
 */
#include "cli/frame/settings.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/lock_note.h"
#include "cli/frame/command.h"
#include "cli/frame/environment.h"
#include "cli/input/key_text.h"
#include "cli/frame/progress.h"
#include "cli/frame/report.h"
#include "wire/percent.h"

/* Expired records removed per new record: a backlog shrinks, and no caller waits for it. */
enum { TIDY_COUNT = 16 };

const char *const hx_formats[] = {"text", "json", NULL};

const struct hx_option hx_common_options[] = {
	{HX_OPTION_STORE, "store", 0, HX_OPTION_TEXT, "URL",
	 HX_STORE_URLS "\n(default: sqlite:$XDG_STATE_HOME/hapax/hapax.db)", NULL},
	{HX_OPTION_SERVER, "server", 0, HX_OPTION_TEXT, "URL",
	 "use the store of a daemon: http://HOST:8099,\nhttps://HOST or http+unix:PATH", NULL},
	{HX_OPTION_AUTH_FILE, "auth-file", 0, HX_OPTION_TEXT, "FILE",
	 "read the API token for --server from FILE", NULL},
	{HX_OPTION_SCOPE, "scope", 0, HX_OPTION_TEXT, "TENANT/GROUP",
	 "scope of the key (default: default/default)", NULL},
	{HX_OPTION_TTL, "ttl", 0, HX_OPTION_TEXT, "D",
	 "how long to remember a finished key (default: 24h)", NULL},
	HX_OPTION_OUTPUT_ROW,
	{.name = NULL},
};

static const char name_another[] = "choose another store with --store or HAPAX_STORE";

static const char default_store_path[] = "/hapax/hapax.db";

/* $XDG_STATE_HOME if it is absolute (XDG Base Directory), else $HOME/.local/state. */
static int default_store_url(const char *command, char out[HX_STORE_URL_SIZE])
{
	const char *state = hx_environment("XDG_STATE_HOME");
	const char *home = hx_environment("HOME");
	int size;

	if (state != NULL && state[0] == '/') {
		size = snprintf(out, HX_STORE_URL_SIZE, "sqlite:%s%s", state, default_store_path);
	} else if (home != NULL) {
		size = snprintf(
			out, HX_STORE_URL_SIZE, "sqlite:%s/.local/state%s", home,
			default_store_path);
	} else
		return hx_report_misuse(
			command, "choose a store with --store or HAPAX_STORE",
			"no default store: neither XDG_STATE_HOME nor HOME is set");
	if (size < 0 || size >= HX_STORE_URL_SIZE)
		return hx_report_usage(command, "path of the default store is too long");
	return HX_EXIT_OK;
}

/* A daemon is a store like any other; its URL shows it. */
static bool is_server_url(const char *url)
{
	return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0 ||
		strncmp(url, "http+unix:", 10) == 0;
}

/* Which of the two was given; *ret_url stays NULL if neither was. */
static int choose_store(struct hx_invocation *inv, const char **ret_url)
{
	const struct hx_option_value *store = hx_options_get(&inv->options, HX_OPTION_STORE);
	const struct hx_option_value *server = hx_options_get(&inv->options, HX_OPTION_SERVER);
	const char *command = inv->command->name;
	const char *server_url = server != NULL ? server->text : NULL;

	if (store != NULL && server != NULL)
		return hx_report_usage(command, "cannot use --store together with --server");
	if (store != NULL) {
		*ret_url = store->text;
		return HX_EXIT_OK;
	}
	if (server == NULL) {
		*ret_url = hx_environment("HAPAX_STORE");
		server_url = hx_environment("HAPAX_SERVER");
		if (*ret_url != NULL && server_url != NULL)
			return hx_report_usage(
				command, "cannot use HAPAX_STORE together with HAPAX_SERVER");
	}
	if (server_url != NULL && !is_server_url(server_url)) {
		/* The URL is not shown: another kind of URL may hold a password. */
		return hx_report_misuse(
			command, "use http://HOST:8099, https://HOST or http+unix:PATH",
			"%s is not the URL of a daemon",
			server != NULL ? "--server" : "HAPAX_SERVER");
	}
	if (server_url != NULL)
		*ret_url = server_url;
	return HX_EXIT_OK;
}

static bool has_auth_file(const char *url)
{
	return strstr(url, "?auth_file=") != NULL || strstr(url, "&auth_file=") != NULL;
}

/*
 * The token itself never stands on a command line, because other users can see those. A token in
 * the URL overrides the variable. If the URL is an operand, of which there may be two, it also
 * overrides the option.
 */
static int add_auth_file(struct hx_invocation *inv, bool is_operand)
{
	const struct hx_option_value *option = hx_options_get(&inv->options, HX_OPTION_AUTH_FILE);
	const char *path = option != NULL ? option->text : hx_environment("HAPAX_AUTH_FILE");
	char *url = inv->settings.store_url;
	size_t size = strlen(url);
	struct hapax_buf text;
	int code = HX_EXIT_OK;

	if (!is_server_url(url) || path == NULL)
		return HX_EXIT_OK;
	if (has_auth_file(url) && (is_operand || option == NULL))
		return HX_EXIT_OK;
	hx_buf_init(&text, sizeof(inv->settings.store_url) - 1 - size);
	if (hx_buf_printf(&text, "%cauth_file=", strchr(url, '?') != NULL ? '&' : '?') !=
		    HAPAX_OK ||
	    hx_percent_encode(&text, hapax_bytes_from_text(path)) != HAPAX_OK)
		code = hx_report_usage(inv->command->name, "--auth-file: path is too long");
	else
		memcpy(url + size, text.data, text.size);
	if (code == HX_EXIT_OK)
		url[size + text.size] = '\0';
	hx_buf_done(&text);
	return code;
}

/* Use the store at url, which is an operand or not. */
static int set_url(struct hx_invocation *inv, const char *url, bool is_operand)
{
	if (strlen(url) >= sizeof(inv->settings.store_url))
		return hx_report_usage(
			inv->command->name, "store URL is too long: the limit is %zu bytes",
			sizeof(inv->settings.store_url) - 1);
	memcpy(inv->settings.store_url, url, strlen(url) + 1);
	inv->settings.store_is_default = false;
	return add_auth_file(inv, is_operand);
}

static int read_store(struct hx_invocation *inv)
{
	const char *url = NULL;
	int code = choose_store(inv, &url);

	if (code != HX_EXIT_OK)
		return code;
	if (url != NULL)
		return set_url(inv, url, false);
	inv->settings.store_is_default = true;
	return default_store_url(inv->command->name, inv->settings.store_url);
}

static int read_scope(struct hx_invocation *inv)
{
	const struct hx_option_value *option = hx_options_get(&inv->options, HX_OPTION_SCOPE);

	inv->settings.scope_given = option != NULL;
	if (option != NULL)
		return hx_key_text_scope(
			inv->command->name, "--scope", option->text, &inv->settings.tenant,
			&inv->settings.group);
	inv->settings.tenant = HX_BYTES_LIT("default");
	inv->settings.group = HX_BYTES_LIT("default");
	return HX_EXIT_OK;
}

static int refuse_zero(const char *command, const char *source)
{
	return hx_report_misuse(
		command, "'hapax forget KEY' deletes a record", "%s must be greater than 0",
		source);
}

/* source is the origin of text, as the user knows it. */
static int parse_ttl(const char *command, const char *source, const char *text, int64_t *ret_ms)
{
	struct hapax_error err;

	if (strcmp(text, "forever") == 0) {
		*ret_ms = HAPAX_TTL_FOREVER;
		return HX_EXIT_OK;
	}
	if (text[0] != '\0' && text[strspn(text, "0")] == '\0')
		return refuse_zero(command, source);
	if (text[0] == '-')
		return hx_report_usage(
			command, "%s must be greater than 0, not '%s'", source, text);
	if (hx_duration_parse(hapax_bytes_from_text(text), ret_ms, &err) != HAPAX_OK)
		return hx_report_misuse(
			command,
			"use a duration such as 100ms, 90s, 5m, 24h, 7d or 1h30m, or "
			"'forever'",
			"%s: %s", source, err.message);
	if (*ret_ms == 0)
		return refuse_zero(command, source);
	if (*ret_ms > HX_TTL_MS_MAX)
		return hx_report_misuse(
			command, "use 'forever' for a key that never expires",
			"%s: '%s' is too long: the limit is 100 years", source, text);
	return HX_EXIT_OK;
}

static int read_ttl(struct hx_invocation *inv)
{
	static const char *const names[] = {"HAPAX_TTL", "IDEMPOTENCY_TTL"};
	const struct hx_option_value *option = hx_options_get(&inv->options, HX_OPTION_TTL);
	const char *command = inv->command->name;

	if (option != NULL)
		return parse_ttl(command, "--ttl", option->text, &inv->settings.ttl_ms);
	/* Ignore a variable that this command does not use. */
	if (!(inv->flags & COMMAND_TTL))
		return HX_EXIT_OK;
	for (size_t i = 0; i < HX_COUNT(names); i++) {
		const char *value = hx_environment(names[i]);

		if (value != NULL)
			return parse_ttl(command, names[i], value, &inv->settings.ttl_ms);
	}
	return HX_EXIT_OK;
}

/* Is one of the command's stores a daemon? */
static bool uses_server(const struct hx_invocation *inv)
{
	if (is_server_url(inv->settings.store_url))
		return true;
	for (size_t i = 0; i < inv->options.operand_count; i++) {
		if ((inv->flags & COMMAND_STORE_OPERANDS) &&
		    is_server_url(inv->options.operands[i]))
			return true;
	}
	return false;
}

/* Every command takes the common options; name one that has no effect. */
static void note_unused(const struct hx_invocation *inv)
{
	unsigned flags = inv->flags;

	if (!(flags & COMMAND_SCOPE) && hx_options_get(&inv->options, HX_OPTION_SCOPE) != NULL)
		hx_report(
			inv->command->name,
			"note: --scope has no effect: this command uses all scopes");
	if (!(flags & COMMAND_TTL) && hx_options_get(&inv->options, HX_OPTION_TTL) != NULL)
		hx_report(
			inv->command->name,
			"note: --ttl has no effect: this command creates no record");
	if (hx_options_get(&inv->options, HX_OPTION_AUTH_FILE) != NULL && !uses_server(inv))
		hx_report(
			inv->command->name,
			"note: --auth-file has no effect: the store is not a daemon");
}

int hx_settings_read(struct hx_invocation *inv)
{
	int code = read_store(inv);

	if (code == HX_EXIT_OK)
		code = read_scope(inv);
	if (code == HX_EXIT_OK)
		code = read_ttl(inv);
	if (code == HX_EXIT_OK)
		note_unused(inv);
	return code;
}

/* The path of a sqlite: store, or NULL for any other kind. */
static const char *store_path(const char *url)
{
	return strncmp(url, "sqlite:", strlen("sqlite:")) == 0 ? url + strlen("sqlite:") : NULL;
}

/* Create the folder of the default store, for its owner only: results may be confidential. */
static int make_default_folder(const char *command, const char *url)
{
	char path[HX_STORE_URL_SIZE];
	struct hapax_error err;
	const char *file = store_path(url);
	const char *slash = strrchr(file, '/');

	assert(slash != NULL && slash > file);
	memcpy(path, file, (size_t)(slash - file));
	path[slash - file] = '\0';
	if (hx_io_make_folders(hx_io_system(), path, 0700, &err) != HAPAX_OK) {
		/* There is no store, for whatever reason. */
		(void)hx_report_error(command, &err);
		hx_report_hint("%s", name_another);
		return HX_EXIT_STORE;
	}
	return HX_EXIT_OK;
}

static bool is_missing(const char *path)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat;

	return path != NULL && io->ops->stat_path(io->context, path, &stat) == -ENOENT;
}

static bool is_local(const char *url)
{
	return strncmp(url, "sqlite:", 7) == 0 || strncmp(url, "file:", 5) == 0;
}

bool hx_settings_is_missing(const struct hx_invocation *inv)
{
	char path[HX_STORE_URL_SIZE];
	const char *url = inv->settings.store_url;

	if (!is_local(url))
		return false;
	(void)snprintf(path, sizeof(path), "%s", strchr(url, ':') + 1);
	path[strcspn(path, "?")] = '\0';
	return is_missing(path);
}

/* What repairs a store that did not open, or NULL. net/ and store/server/ set os_errno. */
static const char *hint_of_open(const char *url, const struct hapax_error *err)
{
	switch (err->os_errno) {
	case EKEYREJECTED: return "add the authority that signed it to the URL with ?ca=FILE";
	case EPROTO: return is_server_url(url) ? "if its listener has no TLS, use http://" : NULL;
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ETIMEDOUT:
		return is_server_url(url)
			? "check that 'hapax serve' is running and that --admin has this address"
			: "check that the server is running and that this host can connect to it";
	case EACCES:
		if (!is_local(url))
			return has_auth_file(url)
				? "use an API token with that role: 'hapax config token --role ROLE'"
				: "name the file of an API token with --auth-file";
		return name_another;
	default: return is_local(url) && err->status == HAPAX_ERR_UNAVAILABLE ? name_another : NULL;
	}
}

/* A daemon that holds this file: store left its URL there, unless it has no admin listener. */
static bool hint_at_daemon(const char *url, const struct hapax_error *err)
{
	char path[HX_STORE_URL_SIZE + sizeof("/LOCK")];
	struct hx_lock_note note;

	if (strncmp(url, "file:", 5) != 0 || err->os_errno != EBUSY)
		return false;
	(void)snprintf(path, sizeof(path), "%s/LOCK", url + 5);
	if (!hx_lock_note_find(hx_io_system(), path, &note) || note.url[0] == '\0')
		return false;
	hx_report_hint("use the daemon that has it: --server %s", note.url);
	return true;
}

static int report_open(
	const struct hx_invocation *inv, enum hx_open mode, const struct hapax_error *err)
{
	const char *url = inv->settings.store_url;
	int code = hx_report_error(inv->command->name, err);
	const char *hint = hint_of_open(url, err);

	if (strchr(url, ':') == NULL && url[0] != '\0')
		hx_report_hint("did you mean 'sqlite:%s'?", url);
	else if (mode == HX_OPEN_EXISTING && is_missing(store_path(url)))
		hx_report_hint("the first 'hapax check KEY' creates a store; %s", name_another);
	else if (!hint_at_daemon(url, err) && hint != NULL)
		hx_report_hint("%s", hint);
	return code;
}

static void show_open(uint64_t done, uint64_t total, void *context)
{
	hx_progress_bar(context, "bytes read", done, total);
}

int hx_settings_open(struct hx_invocation *inv, enum hx_open mode, struct hapax_store **ret_store)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	const char *url = inv->settings.store_url;
	struct hx_progress progress;
	enum hapax_status status;
	struct hapax_error err;
	int code = HX_EXIT_OK;

	options.flags = mode == HX_OPEN_SERVICE ? 0 : HAPAX_STORE_NO_HOUSEKEEPING;
	options.result_size_max = inv->settings.result_size_max;
	if (mode == HX_OPEN_EXISTING)
		options.flags |= HAPAX_STORE_MUST_EXIST;
	else if (inv->settings.store_is_default)
		code = make_default_folder(inv->command->name, url);
	if (code != HX_EXIT_OK)
		return code;
	hx_progress_init(&progress);
	options.progress = show_open;
	options.progress_context = &progress;
	status = hapax_store_open(url, &options, ret_store, &err);
	hx_progress_done(&progress);
	if (status != HAPAX_OK)
		return report_open(inv, mode, &err);
	if (strcmp(hapax_store_name(*ret_store), "memory") == 0)
		hx_report(
			inv->command->name,
			"note: a memory: store ends with this command; nothing is "
			"remembered");
	return HX_EXIT_OK;
}

int hx_settings_open_url(
	struct hx_invocation *inv, const char *url, enum hx_open mode,
	struct hapax_store **ret_store)
{
	int code = url != NULL ? set_url(inv, url, true) : HX_EXIT_OK;

	return code == HX_EXIT_OK ? hx_settings_open(inv, mode, ret_store) : code;
}

void hx_settings_note_loss(const struct hx_invocation *inv, struct hapax_store *store)
{
	char guarantee[512];

	if (strncmp(hapax_store_name(store), "redis", 5) != 0)
		return;
	hapax_store_guarantee(store, guarantee, sizeof(guarantee));
	/* With its log a server loses a second at most: not worth a line at every run. */
	if (strncmp(guarantee, "nothing survives", strlen("nothing survives")) == 0)
		hx_report(
			inv->command->name,
			"note: this Redis has no append-only file: %s; set appendonly yes",
			guarantee);
}

/* Commands have no housekeeping: each command that adds a record removes some that have expired. */
void hx_settings_tidy(struct hapax_store *store)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;

	/* A daemon tidies by itself. */
	if (strcmp(hapax_store_name(store), "http") == 0)
		return;
	sweep.count_max = TIDY_COUNT;
	(void)hapax_store_sweep(store, &sweep, NULL);
}

int64_t hx_settings_now_ms(struct hapax_store *store)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	if (hapax_store_stats(store, &stats, NULL, NULL, NULL) == HAPAX_OK)
		return stats.now_ms;
	return hx_clock_wall_ms();
}
