/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.h - read and write one value of a config.
 *
 * Threads: any.
 */
#ifndef HX_CONFIG_VALUE_H
#define HX_CONFIG_VALUE_H

#include <hapax/error.h>

#include "config/config_arena.h"
#include "config/schema/schema.h"

struct hapax_buf;

/*
 * Read text as the setting, which is neither a list nor a section, and store it in object. INVALID
 * after writing why; NO_MEMORY.
 */
enum hapax_status hx_value_read(
	const struct hx_setting *setting, struct hapax_bytes text, void *object,
	struct hx_config_arena *arena, char why[HX_SETTING_WHY_SIZE]);

/* Append the text of object's value, in a form that can be read back. */
enum hapax_status hx_value_write(
	const struct hx_setting *setting, const void *object, struct hapax_buf *out);

/* object's value of TEXTS or a LIST. */
struct hx_value_list {
	const void *items; /* const char *const *, or structs of the section's size */
	size_t count;
};

struct hx_value_list hx_value_list(const struct hx_setting *setting, const void *object);

/* Is that text a number or a word in JSON, and not a string? */
bool hx_value_is_bare(const struct hx_setting *setting, const void *object);

/* Describe valid values: "a duration such as 30s, 5m or 24h". */
void hx_value_describe(const struct hx_setting *setting, char text[HX_SETTING_WHY_SIZE]);

#endif
