/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/daemon/config_token.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/random.h"
#include "base/sha256.h"
#include "wire/api_token.h"
#include "wire/json/json_write.h"
#include "cli/frame/report.h"
#include "config/config_check.h"

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

static int check(
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
	hx_json_write_begin(&json, NULL, '{');
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

int hx_config_token(
	struct hx_invocation *inv, const char *name, const char *role, const char *tenant,
	bool is_json)
{
	char token[HX_API_TOKEN_SIZE + 1];
	char digits[2 * HX_SHA256_SIZE + 1];
	int code = check(inv, "--name", name, hx_config_check_name);

	if (code == HX_EXIT_OK && tenant != NULL)
		code = check(inv, "--tenant", tenant, hx_config_check_scope_part);
	if (code != HX_EXIT_OK)
		return code;
	make_token(token);
	hash_token(token, digits);
	if (is_json)
		write_json(&inv->out, token, digits, name, role, tenant);
	else
		write_yaml(&inv->out, token, digits, name, role, tenant);
	explicit_bzero(token, sizeof(token));
	return HX_EXIT_OK;
}
