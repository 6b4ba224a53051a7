/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_memory.c - every setting of `memory`: how the daemon's memory is divided.
 */
#include "config/schema/schema.h"

#include "config/config.h"
#include "config/schema/schema_unit.h"

#define AT(member) .offset = offsetof(struct hx_config_memory, member)
static const struct hx_setting memory_settings[] = {
	{.name = "limit",
         .type = HX_SETTING_SIZE,
         .flags = HX_SETTING_RESTART | HX_SETTING_AUTO,
         AT(limit),
         .fallback = "auto",
         .min = 16 * MIB,
         .max = INT64_MAX,
         .doc = "what the daemon may use; auto: the limit of its cgroup, else all memory"},
	{.name = "listeners",
         .type = HX_SETTING_SIZE,
         .flags = HX_SETTING_AUTO | HX_SETTING_NONE_IS_0,
         AT(listeners),
         .fallback = "auto",
         .min = 1 * MIB,
         .max = INT64_MAX,
         .doc = "requests and replies of all listeners, and what reads them; auto: an eighth of limit"},
	{.name = NULL},
};
#undef AT
const struct hx_section hx_config_schema_memory = {
	.name = "memory", .settings = memory_settings, .size = sizeof(struct hx_config_memory)};
