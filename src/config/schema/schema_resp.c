/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_resp.c - the settings of the Redis door.
 */
#include "config/schema/schema_row.h"

enum { SHA256_DIGITS = 64 };

static const struct hx_setting user_settings[] = {
	{"name", AT(resp_user, name), TEXT(NULL, 1, NAME_MAX_SIZE, hx_config_check_name), REQUIRED,
	 "user name in AUTH; default: clients that send only a password"},
	{"password_sha256", AT(resp_user, password_sha256),
	 TEXT(NULL, SHA256_DIGITS, SHA256_DIGITS, hx_config_check_sha256), REQUIRED,
	 "SHA-256 of the password, in 64 lower-case digits"},
	{"tenant", AT(resp_user, tenant),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "tenant of the user's keys; empty: default"},
	{"group", AT(resp_user, group),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0, "like tenant"},
	{.name = NULL},
};
static const struct hx_section user_section = {
	"a user", .settings = user_settings, .size = sizeof(struct hx_config_resp_user),
	.place_offset = offsetof(struct hx_config_resp_user, place)};

static const struct hx_setting resp_settings[] = {
	{"max_connections", AT(resp, max_connections), COUNT("10000", 0, MANY), RESTART | NONE_IS_0,
	 "maximum number of connections; further clients wait"},
	{"max_connections_per_address", AT(resp, max_connections_per_address),
	 COUNT("1250", 0, MANY), NONE_IS_0,
	 "maximum number of connections per address; the next gets an error"},
	{"idle_timeout", AT(resp, idle_timeout_ms), DURATION("10m", 0, 30 * DAY), 0,
	 "idle connections are closed after this time; 0s: never"},
	{"allow_flush", AT(resp, allow_flush), BOOLEAN("false"), RESTART,
	 "whether FLUSHDB and FLUSHALL delete the keys that SET created"},
	{"test_commands", AT(resp, test_commands), BOOLEAN("false"), RESTART,
	 "accept FUNCTION FLUSH and DEBUG LOG, which do nothing, for test suites"},
	{"users", LIST_AT(resp, users, user_count), LIST(LIST_MAX, &user_section),
	 RESTART | FILE_ONLY, "users for AUTH; none: every client may connect"},
	{.name = NULL},
};

const struct hx_section hx_config_resp_section = {
	"resp", .settings = resp_settings, .size = sizeof(struct hx_config_resp)};
