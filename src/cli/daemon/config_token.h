/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_token.h - create an API token and its row for `auth.tokens`.
 */
#ifndef HX_CLI_DAEMON_CONFIG_TOKEN_H
#define HX_CLI_DAEMON_CONFIG_TOKEN_H

#include <stdbool.h>

#include "cli/frame/command.h"

/* name, role and tenant go into the row; tenant may be NULL. Returns the exit code. */
int hx_config_token(
	struct hx_invocation *inv, const char *name, const char *role, const char *tenant,
	bool is_json);

#endif
