/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_memory.c - every setting of `memory`: how the daemon's memory is divided.
 */
#include "config/schema/schema_row.h"

static const struct hx_setting memory_settings[] = {
	{"limit", AT(memory, limit), SIZE("auto", 16 * MIB, INT64_MAX), RESTART | AUTO,
	 "memory of the daemon; auto: the limit of its cgroup, else all memory"},
	{"listeners", AT(memory, listeners), SIZE("auto", 1 * MIB, INT64_MAX), AUTO | NONE_IS_0,
	 "memory for requests and responses of all listeners; auto: an eighth of limit"},
	{.name = NULL},
};
const struct hx_section hx_config_memory_section = {
	"memory", .settings = memory_settings, .size = sizeof(struct hx_config_memory)};
