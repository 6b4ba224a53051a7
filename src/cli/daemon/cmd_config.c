/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_config.c - hapax config: check or print the configuration, or print its schema.
 */
#include <string.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/macros.h"
#include "cli/frame/command.h"
#include "cli/daemon/config_token.h"
#include "cli/frame/environment.h"
#include "cli/frame/report.h"
#include "config/config.h"
#include "config/dump.h"
#include "net/tls/tls.h"

enum {
	OPTION_OUTPUT = 1,
	OPTION_SET,
	OPTION_NAME,
	OPTION_ROLE,
	OPTION_TENANT,
};

enum { TEXT_SIZE_MAX = 64 * 1024 * 1024, FAULTS_SIZE_MAX = 64 * 1024, SET_MAX = 64 };

/* In the order of enum form. */
static const char *const forms[] = {"yaml", "json", NULL};
enum form { FORM_YAML, FORM_JSON };

static const char *const roles[] = {"read", "write", "admin", NULL};

static const struct hx_option options[] = {
	{OPTION_OUTPUT, "output", 'o', HX_OPTION_CHOICE, "yaml|json", "the form of dump and token",
	 forms},
	{OPTION_SET, "set", 0, HX_OPTION_TEXT, "SETTING=VALUE",
	 "as an option of serve would: listen.gateway=off", NULL},
	{OPTION_NAME, "name", 0, HX_OPTION_TEXT, "NAME", "whose token it is: token", NULL},
	{OPTION_ROLE, "role", 0, HX_OPTION_CHOICE, "read|write|admin", "what it may do: read",
	 roles},
	{OPTION_TENANT, "tenant", 0, HX_OPTION_TEXT, "TENANT", "the only one whose keys it may see",
	 NULL},
	{.name = NULL},
};

/* The --set options, split; names point into memory. */
struct sets {
	struct hx_config_option options[SET_MAX];
	char names[SET_MAX][HX_CONFIG_SETTING_SIZE];
	size_t count;
};

static int read_set(struct hx_invocation *inv, const char *text, struct sets *sets)
{
	const char *equals = strchr(text, '=');
	char *name = sets->names[sets->count];

	if (sets->count == SET_MAX)
		return hx_report_usage(inv->command->name, "--set was given too often");
	if (equals == NULL || equals == text || equals - text >= HX_CONFIG_SETTING_SIZE)
		return hx_report_usage(
			inv->command->name, "--set: '%s' was not of the form SETTING=VALUE", text);
	memcpy(name, text, (size_t)(equals - text));
	name[equals - text] = '\0';
	if (!hx_config_has_setting(name)) {
		(void)hx_report_usage(inv->command->name, "--set: there is no setting '%s'", name);
		hx_report_hint("'hapax config dump' shows all that there are");
		return HX_EXIT_USAGE;
	}
	sets->options[sets->count++] =
		(struct hx_config_option){.setting = name, .value = equals + 1, .name = "--set"};
	return HX_EXIT_OK;
}

static int read_sets(struct hx_invocation *inv, struct sets *sets)
{
	int code = HX_EXIT_OK;

	for (size_t i = 0; i < inv->options.count && code == HX_EXIT_OK; i++) {
		const struct hx_option_value *value = &inv->options.values[i];

		if (value->option->id == OPTION_SET)
			code = read_set(inv, value->text, sets);
	}
	return code;
}

/* Print a line for each fault, as compilers do. */
static void report_faults(const struct hapax_buf *faults)
{
	const char *at = (const char *)faults->data;
	size_t left = faults->size;

	while (left > 0) {
		const char *end = memchr(at, '\n', left);
		size_t size = end == NULL ? left : (size_t)(end - at);

		hx_report_line("%.*s", (int)size, at);
		at += size + (end != NULL);
		left -= size + (end != NULL);
	}
}

/* The named file, or the one that would be read; "" if there is none. */
static void choose_file(
	struct hx_invocation *inv, const char **ret_path, char found[HX_CONFIG_PATH_SIZE])
{
	*ret_path = inv->options.operand_count > 1 ? inv->options.operands[1]
						   : hx_environment("HAPAX_CONFIG");
	if (*ret_path == NULL && hx_config_find(hx_io_system(), hx_environment, found))
		*ret_path = found;
}

static int load(
	struct hx_invocation *inv, const char **ret_path, char found[HX_CONFIG_PATH_SIZE],
	struct hx_config **ret_config)
{
	struct hx_config_source source = {.variable = hx_environment};
	struct sets sets = {.count = 0};
	struct hapax_buf faults;
	struct hapax_error err;
	enum hapax_status status;
	int code = read_sets(inv, &sets);

	if (code != HX_EXIT_OK)
		return code;
	choose_file(inv, ret_path, found);
	source.path = *ret_path;
	source.options = sets.options;
	source.option_count = sets.count;
	hx_buf_init(&faults, FAULTS_SIZE_MAX);
	status = hx_config_load(&source, ret_config, &faults, &err);
	if (status == HAPAX_ERR_NO_MEMORY) {
		code = hx_report_error(inv->command->name, &err);
	} else if (status != HAPAX_OK) {
		report_faults(&faults);
		code = status == HAPAX_ERR_UNAVAILABLE ? HX_EXIT_NO_INPUT : HX_EXIT_CONFIG;
	}
	hx_buf_done(&faults);
	return code;
}

/*
 * A variable that almost matches a setting's is a typo. Others may have a meaning elsewhere: hapax
 * run sets some for its commands.
 */
static void note_variables(struct hx_invocation *inv)
{
	for (char **at = environ; *at != NULL; at++) {
		size_t size = strcspn(*at, "=");
		char name[HX_CONFIG_SETTING_SIZE], near[HX_CONFIG_SETTING_SIZE];

		if (size >= sizeof(name))
			continue;
		memcpy(name, *at, size);
		name[size] = '\0';
		if (!hx_config_knows_variable(name, near) && near[0] != '\0')
			hx_report(
				inv->command->name, "note: %s is no setting (did you mean %s?)",
				name, near);
	}
}

/* No request shows this: cookies do not tell the clients of a route apart. */
static void note_cookies(struct hx_invocation *inv, const struct hx_config *config)
{
	for (size_t i = 0; i < config->proxy.route_count && !config->listen.proxy.is_off; i++) {
		const struct hx_config_proxy_route *route = &config->proxy.routes[i];

		if (strcmp(route->credential, "auto") == 0 && route->credential_cookie_count == 0)
			hx_report(
				inv->command->name,
				"note: route '%s': cookies do not identify clients: a key with "
				"cookies only gets 400, and clients that differ in a cookie only "
				"share keys; name session cookies in credential_cookies",
				route->name);
	}
}

/* The store may answer after the claim has lapsed. */
static void note_leases(struct hx_invocation *inv, const struct hx_config *config)
{
	struct hx_config_short_lease at;

	for (size_t row = 0; hx_config_short_lease(config, &row, &at);)
		hx_report(
			inv->command->name,
			"warning: %s '%s': lease (%lld ms) is below store.timeout (%lld ms): a claim "
			"that a slow store answers may be over, and is asked for again",
			at.what, at.name, (long long)at.lease_ms,
			(long long)config->store.timeout_ms);
}

/* The daemon would read these files at start and at a reload. */
static int check_tls(const struct hx_config *config)
{
	int code = HX_EXIT_OK;

	for (size_t i = 0; i < HX_CONFIG_TLS_DOORS; i++) {
		enum hx_config_tls_index index = (enum hx_config_tls_index)i;
		struct hx_tls_context *context = NULL;
		struct hx_tls_options files;
		struct hapax_error err;

		if (!hx_config_listens_by_tcp(config, index) ||
		    !hx_config_tls_options(config, index, &files))
			continue;
		if (hx_tls_server_context_new(&files, &context, &err) != HAPAX_OK) {
			hx_report_line(
				"tls of listen.%s: %s", hx_config_tls_name(index), err.message);
			code = HX_EXIT_CONFIG;
		}
		hx_tls_context_free(context);
	}
	return code;
}

static int run_check(struct hx_invocation *inv)
{
	char found[HX_CONFIG_PATH_SIZE];
	struct hx_config *config = NULL;
	const char *path = NULL;
	int code = load(inv, &path, found, &config);

	note_variables(inv);
	if (code == HX_EXIT_OK)
		code = check_tls(config);
	if (config != NULL) {
		note_cookies(inv, config);
		note_leases(inv, config);
	}
	if (code != HX_EXIT_OK) {
		hx_config_release(config);
		return code;
	}
	if (path == NULL) {
		hx_out_text(&inv->out, "ok: no file, defaults and environment\n");
	} else {
		hx_out_text(&inv->out, "ok: ");
		hx_out_escaped(&inv->out, hapax_bytes_from_text(path));
		hx_out_text(&inv->out, "\n");
	}
	hx_config_release(config);
	return HX_EXIT_OK;
}

static int write_text(struct hx_invocation *inv, enum hapax_status status, struct hapax_buf *text)
{
	if (status == HAPAX_OK)
		hx_out_write(&inv->out, text->data, text->size);
	hx_buf_done(text);
	if (status == HAPAX_OK)
		return HX_EXIT_OK;
	hx_report(inv->command->name, "there was no memory for the text");
	return HX_EXIT_OS;
}

static int run_dump(struct hx_invocation *inv)
{
	const struct hx_option_value *form = hx_options_get(&inv->options, OPTION_OUTPUT);
	char found[HX_CONFIG_PATH_SIZE];
	struct hx_config *config = NULL;
	const char *path = NULL;
	struct hapax_buf text;
	enum hapax_status status;
	int code = load(inv, &path, found, &config);

	if (code != HX_EXIT_OK)
		return code;
	hx_buf_init(&text, TEXT_SIZE_MAX);
	if (form != NULL && form->number == FORM_JSON)
		status = hx_config_dump_json(config, &text);
	else
		status = hx_config_dump(config, &text);
	hx_config_release(config);
	return write_text(inv, status, &text);
}

static int run_schema(struct hx_invocation *inv)
{
	struct hapax_buf text;

	hx_buf_init(&text, TEXT_SIZE_MAX);
	return write_text(inv, hx_config_json_schema(&text), &text);
}

static int run_token(struct hx_invocation *inv)
{
	const struct hx_option_value *form = hx_options_get(&inv->options, OPTION_OUTPUT);
	const struct hx_option_value *name = hx_options_get(&inv->options, OPTION_NAME);
	const struct hx_option_value *role = hx_options_get(&inv->options, OPTION_ROLE);
	const struct hx_option_value *tenant = hx_options_get(&inv->options, OPTION_TENANT);

	return hx_config_token(
		inv, name != NULL ? name->text : "token", role != NULL ? role->text : roles[0],
		tenant != NULL ? tenant->text : NULL, form != NULL && form->number == FORM_JSON);
}

static const struct {
	const char *name;
	const char *usage;
	size_t operands_max;
	int (*run)(struct hx_invocation *inv);
} actions[] = {
	{"check", "check [FILE]", 1, run_check},
	{"dump", "dump [FILE]", 1, run_dump},
	{"schema", "schema", 0, run_schema},
	{"token", "token [--name NAME] [--role ROLE] [--tenant TENANT]", 0, run_token},
};

static int run_config(struct hx_invocation *inv)
{
	const char *name = inv->options.operands[0];

	for (size_t i = 0; i < HX_COUNT(actions); i++) {
		if (strcmp(actions[i].name, name) != 0)
			continue;
		if (inv->options.operand_count - 1 <= actions[i].operands_max)
			return actions[i].run(inv);
		(void)hx_report_usage(inv->command->name, "there was an argument too many");
		hx_report_hint("usage: hapax config %s", actions[i].usage);
		return HX_EXIT_USAGE;
	}
	(void)hx_report_usage(inv->command->name, "unknown action '%s'", name);
	hx_report_hint("there are check, dump, schema and token");
	return HX_EXIT_USAGE;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "it is right; it was printed"},
	{HX_EXIT_NO_INPUT, "a file could not be read"},
	{HX_EXIT_CONFIG, "it is not, and each fault was named with its place"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax config check", "before a restart or a reload"},
	{"hapax config dump -o json", "what file, environment and defaults come to"},
	{"hapax config dump --set listen.admin=off", "and what an option would change"},
	{"hapax config schema > hapax.schema.json", "for editors that complete YAML"},
	{"hapax config token --name billing --role write", "a bearer token, and its row"},
	{NULL, NULL},
};

const struct command hx_cmd_config = {
	.name = "config",
	.summary = "check a configuration, show what it comes to, make a token",
	.usage = "check [FILE] | dump [FILE] | schema | token",
	.description =
		"check reads FILE, what conf.d beside it has, and the environment, and names every\n"
		"fault as FILE:LINE:COLUMN; then the files of certificates that they name. dump\n"
		"prints every setting with the value that is in force, in a form that can be read\n"
		"again, but for passwords in URLs. schema prints a JSON Schema of the file. token\n"
		"makes a bearer token for the admin door, prints it once, and prints the row of\n"
		"auth.tokens that knows it.\n"
		"\n"
		"Without FILE it is that of HAPAX_CONFIG, else the first hapax.yaml in\n"
		"$CONFIGURATION_DIRECTORY, $XDG_CONFIG_HOME/hapax, ~/.config/hapax, /etc/hapax.\n"
		"Options come before HAPAX_<SECTION>_<SETTING>, that before the file, that before\n"
		"the defaults. The file hapax.yaml that comes with hapax explains every setting.\n",
	.operands_min = 1,
	.operands_max = 2,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_config,
};
