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
#include "cli/frame/command.h"
#include "cli/frame/environment.h"
#include "cli/frame/report.h"
#include "cli/frame/settings.h"
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
	{OPTION_CONFIG, "config", 'c', HX_OPTION_TEXT, "FILE",
	 "configuration file, in YAML; HUP reloads it", NULL},
	{OPTION_STORE, "store", 0, HX_OPTION_TEXT, "URL",
	 HX_STORE_URLS "\n(default: file: in the state directory)", NULL},
	{OPTION_GATEWAY, "gateway", 0, HX_OPTION_TEXT, "ADDR",
	 "listener for events; off disables it (default: 127.0.0.1:8080)", NULL},
	{OPTION_PROXY, "proxy", 0, HX_OPTION_TEXT, "ADDR",
	 "listener for requests with an Idempotency-Key (default: off)", NULL},
	{OPTION_RESP, "resp", 0, HX_OPTION_TEXT, "ADDR",
	 "listener for Redis clients (default: off)", NULL},
	{OPTION_ADMIN, "admin", 0, HX_OPTION_TEXT, "ADDR",
	 "listener for metrics, health, API (default: 127.0.0.1:8099)", NULL},
	{OPTION_UPSTREAM, "upstream", 0, HX_OPTION_TEXT, "URL",
	 "service that receives events and requests", NULL},
	{OPTION_LOOPS, "loops", 0, HX_OPTION_COUNT, "N", "threads (default: one per processor)",
	 NULL},
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

static int serve(struct hx_invocation *inv, struct hx_config_source *source)
{
	struct hx_config *config = NULL;
	struct hapax_error err;
	int code = load(inv, source, &config);

	if (code != HX_EXIT_OK)
		return code;
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

	source.option_count = read_options(inv, settings);
	hx_config_source_find(&source, file != NULL ? file->text : NULL);
	return serve(inv, &source);
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "stopped by TERM or INT"},
	{HX_EXIT_STORE, "could not open the store or a listener"},
	{HX_EXIT_IO, "the store failed; the next start recovers it"},
	{HX_EXIT_CONFIG, "invalid configuration"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax serve --upstream http://127.0.0.1:9000 --gateway 127.0.0.1:0 --admin off",
	 "forward each event to a service once"},
	{NULL, NULL},
};

const struct command hx_cmd_serve = {
	.name = "serve",
	.summary = "start the daemon: gateway, API proxy, Redis protocol, HTTP API",
	.usage = "[--upstream URL] [OPTION]...",
	.description =
		"The gateway (--gateway) accepts CloudEvents over HTTP and forwards each one to the\n"
		"upstream once. A duplicate gets the stored response, or 409 while the first one is in\n"
		"progress. If the upstream fails (5xx, no connection), the next delivery runs. If the\n"
		"response is lost, on_lapse decides: run again or park.\n"
		"\n"
		"The proxy (--proxy) does the same for any HTTP API whose clients send an\n"
		"Idempotency-Key with POST or PATCH. Other requests pass through.\n"
		"\n"
		"ADDR is HOST:PORT or unix:PATH; port 0 picks a free port, and the log line \"ready\" names\n"
		"it. TERM and INT stop the daemon after the requests in progress; a second signal stops\n"
		"it at once. HUP reloads the configuration, USR2 logs the state. USR1 has no effect: the\n"
		"log goes to standard error. The default store is file:DIR, which has one owner.\n",
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_serve,
};
