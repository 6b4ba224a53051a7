/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_serve.c - hapax serve: the daemon.
 *
 * An option is a configuration setting for which the command line has the last word. config/ knows
 * all else about it.
 */
#include <string.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/io.h"
#include "cli/frame/command.h"
#include "cli/frame/environment.h"
#include "cli/frame/report.h"
#include "config/config.h"
#include "serve/daemon/serve.h"

enum {
	OPTION_CONFIG = 1,
	OPTION_STORE,
	OPTION_GATEWAY,
	OPTION_PROXY,
	OPTION_RESP,
	OPTION_ADMIN,
	OPTION_UPSTREAM,
	OPTION_LOOPS,
};

enum { FAULTS_SIZE_MAX = 64 * 1024 };

static const struct hx_option options[] = {
	{OPTION_CONFIG, "config", 'c', HX_OPTION_TEXT, "FILE", "YAML; HUP reads it again", NULL},
	{OPTION_STORE, "store", 0, HX_OPTION_TEXT, "URL", "where records are kept", NULL},
	{OPTION_GATEWAY, "gateway", 0, HX_OPTION_TEXT, "ADDR", "where events come in; off: nowhere",
	 NULL},
	{OPTION_PROXY, "proxy", 0, HX_OPTION_TEXT, "ADDR",
	 "where requests with an Idempotency-Key come in", NULL},
	{OPTION_RESP, "resp", 0, HX_OPTION_TEXT, "ADDR", "where clients of Redis come in", NULL},
	{OPTION_ADMIN, "admin", 0, HX_OPTION_TEXT, "ADDR",
	 "metrics, health and the API; off: nowhere", NULL},
	{OPTION_UPSTREAM, "upstream", 0, HX_OPTION_TEXT, "URL",
	 "where events and requests go, once", NULL},
	{OPTION_LOOPS, "loops", 0, HX_OPTION_COUNT, "N",
	 "threads; one for each processor by default", NULL},
	{0, NULL, 0, HX_OPTION_FLAG, NULL, NULL, NULL},
};

/* Options and their settings. */
static const struct {
	int id;
	const char *setting;
	const char *name;
} names[] = {
	{OPTION_STORE, "store.url", "--store"},    {OPTION_GATEWAY, "listen.gateway", "--gateway"},
	{OPTION_ADMIN, "listen.admin", "--admin"}, {OPTION_UPSTREAM, "upstream.url", "--upstream"},
	{OPTION_LOOPS, "loops", "--loops"},        {OPTION_RESP, "listen.resp", "--resp"},
	{OPTION_PROXY, "listen.proxy", "--proxy"},
};

enum { NAME_COUNT = HX_COUNT(names) };

static size_t read_options(
	const struct hx_invocation *inv, struct hx_config_option settings[NAME_COUNT])
{
	size_t count = 0;

	for (size_t i = 0; i < NAME_COUNT; i++) {
		const struct hx_option_value *value = hx_options_get(&inv->options, names[i].id);

		if (value != NULL)
			settings[count++] = (struct hx_config_option){
				names[i].setting, value->text, names[i].name};
	}
	return count;
}

static int load(
	struct hx_invocation *inv, const struct hx_config_source *source,
	struct hx_config **ret_config)
{
	struct hapax_buf faults;
	struct hapax_error err;
	enum hapax_status status;

	hx_buf_init(&faults, FAULTS_SIZE_MAX);
	status = hx_config_load(source, ret_config, &faults, &err);
	hx_buf_done(&faults);
	if (status == HAPAX_OK)
		return HX_EXIT_OK;
	hx_report(inv->command->name, "%s", err.message);
	if (status == HAPAX_ERR_INVALID)
		hx_report_hint("'hapax config check' reports every error");
	return status == HAPAX_ERR_INVALID ? HX_EXIT_CONFIG : HX_EXIT_NO_INPUT;
}

static int serve(struct hx_invocation *inv, const struct hx_config_source *source)
{
	struct hx_config *config = NULL;
	struct hapax_error err;
	int code = load(inv, source, &config);

	if (code != HX_EXIT_OK)
		return code;
	if (config->gateway.route_count == 0 && !config->listen.gateway.is_off) {
		hx_config_release(config);
		(void)hx_report_usage(inv->command->name, "there is nowhere to send events");
		hx_report_hint(
			"--upstream URL, or upstream and routes in the configuration, say where; "
			"--gateway off if there are none");
		return HX_EXIT_USAGE;
	}
	if (config->proxy.route_count == 0 && !config->listen.proxy.is_off) {
		hx_config_release(config);
		(void)hx_report_usage(inv->command->name, "there is nowhere to send requests");
		hx_report_hint("--upstream URL, or routes of the proxy, say where");
		return HX_EXIT_USAGE;
	}
	switch (hx_serve_run(config, source, &err)) {
	case HX_SERVE_STOPPED: return HX_EXIT_OK;
	case HX_SERVE_CUT: code = HX_EXIT_OK; break;
	case HX_SERVE_LATCHED: code = HX_EXIT_IO; break;
	case HX_SERVE_FAILED:
		code = hx_report_error(inv->command->name, &err);
		/* Every option is also a setting. */
		if (err.status == HAPAX_ERR_INVALID)
			code = HX_EXIT_CONFIG;
		break;
	}
	/* Leave runs and their memory as a crash would leave them. */
	_exit(code);
}

static int run_serve(struct hx_invocation *inv)
{
	const struct hx_option_value *file = hx_options_get(&inv->options, OPTION_CONFIG);
	struct hx_config_option settings[NAME_COUNT];
	struct hx_config_source source = {.variable = hx_environment, .options = settings};
	char path[HX_CONFIG_PATH_SIZE];

	source.option_count = read_options(inv, settings);
	if (file != NULL)
		source.path = file->text;
	else if (hx_environment("HAPAX_CONFIG") != NULL)
		source.path = hx_environment("HAPAX_CONFIG");
	else if (hx_config_find(hx_io_system(), hx_environment, path))
		source.path = path;
	return serve(inv, &source);
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "TERM or INT ended it"},
	{HX_EXIT_STORE, "a door or the store could not be opened"},
	{HX_EXIT_IO, "the store failed: what is in it is found out at the next start"},
	{HX_EXIT_CONFIG, "the configuration is not right"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax serve --upstream http://127.0.0.1:9000 --gateway 127.0.0.1:0 --admin off",
	 "once, in front of a service"},
	{NULL, NULL},
};

const struct command hx_cmd_serve = {
	.name = "serve",
	.summary = "put exactly-once in front of a service",
	.usage = "[--upstream URL] [OPTION]...",
	.description =
		"Takes CloudEvents by HTTP and passes each on once: whoever sends one again gets the\n"
		"reply of the first time, or 409 while that is still on its way. An upstream that\n"
		"fails (5xx, no connection) has the event come again; one whose answer is lost runs\n"
		"again or is parked, as on_lapse says.\n"
		"\n"
		"With --proxy it does the same for any HTTP API whose clients send an Idempotency-Key:\n"
		"a POST or PATCH that comes again gets the response of the first time. All other\n"
		"requests pass.\n"
		"\n"
		"ADDR is host:port or unix:PATH, with port 0 a free one; the log line \"ready\" names\n"
		"them. TERM and INT end it when what it has begun is done, a second one at once; HUP\n"
		"reads the configuration again, USR2 logs how it stands, and USR1, which is sent to\n"
		"reopen logs, changes nothing: the log is standard error. Events are kept in file:DIR\n"
		"by default, which one process has at a time.\n",
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_serve,
};
