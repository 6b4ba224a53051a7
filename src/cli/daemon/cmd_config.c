/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_config.c - hapax config: check or print the configuration, or print its schema.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/hex.h"
#include "base/macros.h"
#include "base/random.h"
#include "base/sha256.h"
#include "cli/frame/command.h"
#include "cli/frame/environment.h"
#include "cli/frame/report.h"
#include "config/config.h"
#include "config/config_check.h"
#include "config/dump.h"
#include "serve/daemon/inspection.h"
#include "serve/daemon/service_manager.h"
#include "wire/api_token.h"

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
	{OPTION_OUTPUT, "output", 'o', HX_OPTION_CHOICE, "yaml|json",
	 "dump, token: output format (default: yaml)", forms},
	{OPTION_SET, "set", 0, HX_OPTION_TEXT, "SETTING=VALUE",
	 "check, dump: override a setting: listen.gateway=off", NULL},
	{OPTION_NAME, "name", 0, HX_OPTION_TEXT, "NAME",
	 "token: name of the API token (default: token)", NULL},
	{OPTION_ROLE, "role", 0, HX_OPTION_CHOICE, "read|write|admin",
	 "token: what it may do (default: read)", roles},
	{OPTION_TENANT, "tenant", 0, HX_OPTION_TEXT, "TENANT",
	 "token: limit it to the keys of one tenant", NULL},
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

	if (equals == NULL || equals == text || equals - text >= HX_CONFIG_SETTING_SIZE)
		return hx_report_usage(
			inv->command->name, "--set: '%s' is not SETTING=VALUE", text);
	memcpy(name, text, (size_t)(equals - text));
	name[equals - text] = '\0';
	if (!hx_config_has_setting(name))
		return hx_report_misuse(
			inv->command->name, "'hapax config dump' lists every setting",
			"--set: unknown setting '%s'", name);
	sets->options[sets->count++] =
		(struct hx_config_option){.setting = name, .value = equals + 1, .name = "--set"};
	return HX_EXIT_OK;
}

static int read_sets(struct hx_invocation *inv, struct sets *sets)
{
	const char *texts[SET_MAX];
	size_t count = hx_options_all(&inv->options, OPTION_SET, texts, SET_MAX);
	int code = HX_EXIT_OK;

	if (count > SET_MAX)
		return hx_report_usage(
			inv->command->name, "too many --set options: the limit is 64");
	for (size_t i = 0; i < count && code == HX_EXIT_OK; i++)
		code = read_set(inv, texts[i], sets);
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

/* source is for the caller to know the file: its options are gone. */
static int load(
	struct hx_invocation *inv, struct hx_config_source *source, struct hx_config **ret_config)
{
	struct sets sets = {.count = 0};
	struct hapax_buf faults;
	struct hapax_error err;
	enum hapax_status status;
	int code = read_sets(inv, &sets);

	if (code != HX_EXIT_OK)
		return code;
	source->variable = hx_environment;
	source->options = sets.options;
	source->option_count = sets.count;
	hx_config_source_find(source, hx_options_operand(&inv->options, 0));
	hx_buf_init(&faults, FAULTS_SIZE_MAX);
	status = hx_config_load(source, ret_config, &faults, &err);
	source->options = NULL;
	source->option_count = 0;
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
				inv->command->name, "note: %s is not a setting (did you mean %s?)",
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
				"note: route '%s': cookies do not identify clients: clients that "
				"differ only in a cookie share keys; name session cookies in "
				"credential_cookies",
				route->name);
	}
}

static void say_finding(void *context, bool is_error, const char *text)
{
	int *code = context;

	if (is_error) {
		*code = HX_EXIT_CONFIG;
		hx_report_line("%s", text);
	} else {
		hx_report(hx_cmd_config.name, "warning: %s", text);
	}
}

/* What the daemon checks at its start and at a reload, by the same function. */
static int inspect(const struct hx_config *config)
{
	static const struct hx_service no_service;
	int code = HX_EXIT_OK;
	const struct hx_inspection inspection = {
		.config = config, .service = &no_service, .say = say_finding, .context = &code};
	struct hx_tls_set tls = {.doors = {NULL}};
	struct hapax_error err;

	(void)hx_inspection_run(&inspection, &tls, &err);
	hx_tls_set_close(&tls);
	return code;
}

static int run_check(struct hx_invocation *inv)
{
	struct hx_config_source source = {.path = NULL};
	struct hx_config *config = NULL;
	int code = load(inv, &source, &config);

	note_variables(inv);
	if (config != NULL) {
		code = inspect(config);
		note_cookies(inv, config);
	}
	if (code == HX_EXIT_OK && source.path == NULL) {
		hx_out_text(&inv->out, "ok: no file, defaults and environment\n");
	} else if (code == HX_EXIT_OK) {
		hx_out_text(&inv->out, "ok: ");
		hx_out_escaped(&inv->out, hapax_bytes_from_text(source.path));
		hx_out_text(&inv->out, "\n");
	}
	hx_config_release(config);
	return code;
}

static int write_text(struct hx_invocation *inv, enum hapax_status status, struct hapax_buf *text)
{
	if (status == HAPAX_OK)
		hx_out_write(&inv->out, text->data, text->size);
	hx_buf_done(text);
	if (status == HAPAX_OK)
		return HX_EXIT_OK;
	return hx_report_no_memory(inv->command->name);
}

static int run_dump(struct hx_invocation *inv)
{
	struct hx_config_source source = {.path = NULL};
	struct hx_config *config = NULL;
	struct hapax_buf text;
	enum hapax_status status;
	int code = load(inv, &source, &config);

	if (code != HX_EXIT_OK)
		return code;
	hx_buf_init(&text, TEXT_SIZE_MAX);
	if (hx_options_number(&inv->options, OPTION_OUTPUT) == FORM_JSON)
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

/* ------------------------------------------------------------------ token */

static void make_token(char token[HX_API_TOKEN_SIZE + 1])
{
	unsigned char secret[HX_API_TOKEN_SECRET_SIZE];

	hx_random_bytes(secret, sizeof(secret));
	hx_api_token_write(secret, token);
	token[HX_API_TOKEN_SIZE] = '\0';
	explicit_bzero(secret, sizeof(secret));
}

static void hash_token(const char *token, char digits[2 * HX_SHA256_SIZE + 1])
{
	unsigned char digest[HX_SHA256_SIZE];

	hx_sha256(token, strlen(token), digest);
	hx_hex_encode(digest, sizeof(digest), digits);
	digits[2 * HX_SHA256_SIZE] = '\0';
}

static int check_text(
	struct hx_invocation *inv, const char *option, const char *text, hx_setting_check_fn *fn)
{
	char why[HX_SETTING_WHY_SIZE];

	if (text[0] == '\0')
		return hx_report_usage(inv->command->name, "%s must not be empty", option);
	if (!fn(text, why))
		return hx_report_usage(inv->command->name, "%s: '%s' %s", option, text, why);
	return HX_EXIT_OK;
}

/* YAML allows any text between double quotes, if quotes and backslashes are escaped. */
static void write_quoted(struct hx_out *out, const char *text)
{
	hx_out_text(out, "\"");
	for (const char *at = text; *at != '\0'; at++)
		hx_out_printf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
	hx_out_text(out, "\"");
}

static void write_yaml(
	struct hx_out *out, const char *token, const char *digits, const char *name,
	const char *role, const char *tenant)
{
	hx_out_printf(
		out,
		"# For the client. It is not stored anywhere and cannot be shown "
		"again.\ntoken: %s\n# For the configuration file. It contains a "
		"hash, not the API token.\nauth:\n  tokens:\n    - name: ",
		token);
	write_quoted(out, name);
	hx_out_printf(out, "\n      hash: sha256:%s\n      role: %s\n", digits, role);
	if (tenant != NULL) {
		hx_out_text(out, "      tenant: ");
		write_quoted(out, tenant);
		hx_out_text(out, "\n");
	}
}

static void write_json(
	struct hx_out *out, const char *token, const char *digits, const char *name,
	const char *role, const char *tenant)
{
	struct hx_json_write json;
	char hash[16 + 2 * HX_SHA256_SIZE];

	(void)snprintf(hash, sizeof(hash), "sha256:%s", digits);
	hx_out_json(&json, out);
	hx_json_write_text(&json, "token", token);
	hx_json_write_begin(&json, "row", '{');
	hx_json_write_text(&json, "name", name);
	hx_json_write_text(&json, "hash", hash);
	hx_json_write_text(&json, "role", role);
	if (tenant != NULL)
		hx_json_write_text(&json, "tenant", tenant);
	hx_json_write_end(&json, '}');
	hx_json_write_end(&json, '}');
}

static int run_token(struct hx_invocation *inv)
{
	const char *name = hx_options_text(&inv->options, OPTION_NAME);
	const char *role = roles[hx_options_number(&inv->options, OPTION_ROLE)];
	const char *tenant = hx_options_text(&inv->options, OPTION_TENANT);
	char token[HX_API_TOKEN_SIZE + 1];
	char digits[2 * HX_SHA256_SIZE + 1];
	int code;

	name = name != NULL ? name : "token";
	code = check_text(inv, "--name", name, hx_config_check_name);
	if (code == HX_EXIT_OK && tenant != NULL)
		code = check_text(inv, "--tenant", tenant, hx_config_check_scope_part);
	if (code != HX_EXIT_OK)
		return code;
	make_token(token);
	hash_token(token, digits);
	if (hx_options_number(&inv->options, OPTION_OUTPUT) == FORM_JSON)
		write_json(&inv->out, token, digits, name, role, tenant);
	else
		write_yaml(&inv->out, token, digits, name, role, tenant);
	explicit_bzero(token, sizeof(token));
	return HX_EXIT_OK;
}

/* ------------------------------------------------------------------ the command */

static const struct command_exit load_exits[] = {
	{HX_EXIT_OK, "the configuration is valid"},
	{HX_EXIT_NO_INPUT, "a file could not be read"},
	{HX_EXIT_CONFIG, "the configuration is invalid; each error names its place"},
	{0, NULL},
};

static const struct command_exit check_exits[] = {
	{HX_EXIT_OK, "'hapax serve' would start, possibly with the warnings shown"},
	{HX_EXIT_NO_INPUT, "a file could not be read"},
	{HX_EXIT_CONFIG, "'hapax serve' would refuse it, or a certificate has expired"},
	{0, NULL},
};

static const struct command_exit print_exits[] = {
	{HX_EXIT_OK, "printed"},
	{0, NULL},
};

/* The order in which files are looked for; shared by check and dump. */
#define WHICH_FILE                                                                                \
	"\n"                                                                                      \
	"Without FILE, the file is $HAPAX_CONFIG, or the first hapax.yaml found in\n"             \
	"$CONFIGURATION_DIRECTORY, $XDG_CONFIG_HOME/hapax, ~/.config/hapax and /etc/hapax.\n"     \
	"Options override HAPAX_<SECTION>_<SETTING>, which overrides the file, which overrides\n" \
	"the defaults.\n"

static const struct command_action actions[] = {
	{.name = "check",
	 .summary = "report every error in the configuration",
	 .usage = "[FILE] [--set SETTING=VALUE]...",
	 .description =
		 "Reads FILE, the files in conf.d next to it, the environment and --set. Reports every\n"
		 "error as FILE:LINE:COLUMN. Then makes the checks of 'hapax serve': an upstream for each\n"
		 "listener that needs one, certificates and keys, public addresses without authentication.\n"
		 "Pass the options of 'hapax serve' as --set. The store is not opened.\n" WHICH_FILE,
	 .operands = {0, 1},
	 .exits = check_exits,
	 .run = run_check},
	{.name = "dump",
	 .summary = "print every setting with its effective value",
	 .usage = "[FILE] [--set SETTING=VALUE]... [-o yaml|json]",
	 .description =
		 "Prints every setting with its effective value, in a form that hapax can read again.\n"
		 "Passwords in URLs are left out.\n" WHICH_FILE,
	 .operands = {0, 1},
	 .exits = load_exits,
	 .run = run_dump},
	{.name = "schema",
	 .summary = "print a JSON Schema of the configuration file",
	 .usage = "",
	 .exits = print_exits,
	 .run = run_schema},
	{.name = "token",
	 .summary = "create an API token",
	 .usage = "[--name NAME] [--role ROLE] [--tenant TENANT] [-o yaml|json]",
	 .description =
		 "Creates an API token for the admin listener. Prints the token once, and the row of\n"
		 "auth.tokens that accepts it; the row holds a hash, not the token.\n",
	 .exits = print_exits,
	 .run = run_token},
	{.name = NULL},
};

static const struct command_example examples[] = {
	{"hapax config check --set upstream.url=http://127.0.0.1:9000",
	 "check the configuration before a reload, with an option of 'serve'"},
	{"hapax config dump -o json", "print the effective settings"},
	{"hapax config dump --set listen.admin=off", "print them with one setting overridden"},
	{"hapax config schema > hapax.schema.json",
	 "create a schema for editors that complete YAML"},
	{"hapax config token --name billing --role write",
	 "create an API token and its row for the configuration"},
	{NULL, NULL},
};

const struct command hx_cmd_config = {
	.name = "config",
	.summary = "check or print the configuration, or create an API token",
	.usage = "ACTION [FILE] [OPTION]...",
	.description =
		"The configuration belongs to 'hapax serve'. The file hapax.yaml that comes with hapax\n"
		"documents every setting.\n",
	.options = options,
	.exits = load_exits,
	.examples = examples,
	.actions = actions,
};
