/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_row.h - the words and units of rows in the tables; for schema*.c only. schema.h explains
 * the form of a row.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_ROW_H
#define HX_CONFIG_SCHEMA_SCHEMA_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "config/config.h"
#include "config/config_check.h"
#include "config/schema/schema.h"

/* A member of struct hx_config_<part>; for a list also the member that counts its items. */
#define AT(part, member) .offset = offsetof(struct hx_config_##part, member)
#define LIST_AT(part, member, count) \
	.count_offset = offsetof(struct hx_config_##part, count), AT(part, member)

/* The members of struct hx_setting from type to section, in their order. */
#define BOOLEAN(fallback)               HX_SETTING_BOOLEAN, fallback, 0, 0, NULL, NULL, NULL
#define ADDRESS(fallback)               HX_SETTING_ADDRESS, fallback, 0, 0, NULL, NULL, NULL
#define CHOICE(fallback, choices)       HX_SETTING_CHOICE, fallback, 0, 0, choices, NULL, NULL
#define COUNT(fallback, min, max)       HX_SETTING_COUNT, fallback, min, max, NULL, NULL, NULL
#define SIZE(fallback, min, max)        HX_SETTING_SIZE, fallback, min, max, NULL, NULL, NULL
#define DURATION(fallback, min, max)    HX_SETTING_DURATION, fallback, min, max, NULL, NULL, NULL
#define TEXT(fallback, min, max, check) HX_SETTING_TEXT, fallback, min, max, NULL, check, NULL
#define TEXTS(max, check)               HX_SETTING_TEXTS, NULL, 0, max, NULL, check, NULL
#define SECTION(section)                HX_SETTING_SECTION, NULL, 0, 0, NULL, NULL, section
#define LIST(max, section)              HX_SETTING_LIST, NULL, 0, max, NULL, NULL, section

enum {
	RESTART = HX_SETTING_RESTART,
	NONE_IS_0 = HX_SETTING_NONE_IS_0,
	FOREVER = HX_SETTING_FOREVER,
	REQUIRED = HX_SETTING_REQUIRED,
	INHERITS = HX_SETTING_INHERITS,
	SECRET = HX_SETTING_SECRET,
	FILE_ONLY = HX_SETTING_FILE_ONLY,
	RUNTIME = HX_SETTING_RUNTIME,
	AUTO = HX_SETTING_AUTO,
};

enum { KIB = 1024, MIB = 1024 * KIB, LIST_MAX = 1000, NAME_MAX_SIZE = 128, TEXT_MAX = 4096 };

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define MANY   INT64_C(1000000000)

#endif
