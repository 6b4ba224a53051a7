/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_resp.c - the settings of the Redis door.
 */
#include "config/schema/schema_resp.h"

#include "base/limits.h"
#include "config/config_check.h"
#include "config/config.h"

enum { USERS_MAX = 1000, SHA256_DIGITS = 64 };

#define AT(member) .offset = offsetof(struct hx_config_resp_user, member)
static const struct hx_setting user_settings[] = {
	{.name = "name",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_REQUIRED,
         AT(name),
         .min = 1,
         .max = 128,
         .check = hx_check_name,
         .doc = "as in AUTH; default is who gives a password only"},
	{.name = "password_sha256",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_REQUIRED,
         AT(password_sha256),
         .min = SHA256_DIGITS,
         .max = SHA256_DIGITS,
         .check = hx_check_sha256,
         .doc = "SHA-256 of the password, in 64 lower-case digits"},
	{.name = "tenant",
         .type = HX_SETTING_TEXT,
         AT(tenant),
         .fallback = "",
         .max = HX_SCOPE_PART_SIZE_MAX,
         .check = hx_check_scope_part,
         .doc = "whose keys the user has; empty: default"},
	{.name = "group",
         .type = HX_SETTING_TEXT,
         AT(group),
         .fallback = "",
         .max = HX_SCOPE_PART_SIZE_MAX,
         .check = hx_check_scope_part,
         .doc = "as tenant"},
	{.name = NULL},
};
#undef AT
static const struct hx_section user_section = {
	.name = "a user",
	.settings = user_settings,
	.size = sizeof(struct hx_config_resp_user),
	.place_offset = offsetof(struct hx_config_resp_user, place)};

#define AT(member) .offset = offsetof(struct hx_config_resp, member)
static const struct hx_setting resp_settings[] = {
	{.name = "max_connections",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_RESTART | HX_SETTING_NONE_IS_0,
         AT(max_connections),
         .fallback = "10000",
         .max = INT64_C(1000000000),
         .doc = "above it clients wait to be let in"},
	{.name = "max_connections_per_address",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_NONE_IS_0,
         AT(max_connections_per_address),
         .fallback = "1250",
         .max = INT64_C(1000000000),
         .doc = "from one address; the next one gets an error and is closed"},
	{.name = "idle_timeout",
         .type = HX_SETTING_DURATION,
         AT(idle_timeout_ms),
         .fallback = "10m",
         .max = INT64_C(30) * 24 * 3600 * 1000,
         .doc = "a connection without a whole command for so long is closed; 0s: never"},
	{.name = "allow_flush",
         .type = HX_SETTING_BOOLEAN,
         .flags = HX_SETTING_RESTART,
         AT(allow_flush),
         .fallback = "false",
         .doc = "whether FLUSHDB and FLUSHALL forget what SET has made"},
	{.name = "test_commands",
         .type = HX_SETTING_BOOLEAN,
         .flags = HX_SETTING_RESTART,
         AT(test_commands),
         .fallback = "false",
         .doc = "FUNCTION FLUSH and DEBUG LOG, which do nothing, for test suites"},
	{.name = "users",
         .type = HX_SETTING_LIST,
         .flags = HX_SETTING_RESTART | HX_SETTING_FILE_ONLY,
         AT(users),
         .count_offset = offsetof(struct hx_config_resp, user_count),
         .max = USERS_MAX,
         .section = &user_section,
         .doc = "who may come in, by AUTH; none: everybody"},
	{.name = NULL},
};
#undef AT

const struct hx_section hx_config_resp_section = {
	.name = "resp", .settings = resp_settings, .size = sizeof(struct hx_config_resp)};
