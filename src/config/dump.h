/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.h - write a config as text: every setting, from any source.
 *
 * Threads: any.
 */
#ifndef HX_CONFIG_DUMP_H
#define HX_CONFIG_DUMP_H

#include "config/config.h"

struct hapax_buf;
struct hx_setting;

/* Append the text of object's value, which is neither a section nor a list of those. */
typedef enum hapax_status hx_config_value_fn(
	const struct hx_setting *setting, const void *object, struct hapax_buf *out);
hx_config_value_fn hx_config_value_write;  /* as it is */
hx_config_value_fn hx_config_value_public; /* as hx_config_dump_public() shows it */

/* Append YAML that reads back as the same config; URLs lose their passwords. */
enum hapax_status hx_config_dump(const struct hx_config *config, struct hapax_buf *out);

/* The same as one JSON object. */
enum hapax_status hx_config_dump_json(const struct hx_config *config, struct hapax_buf *out);

/* The same for others than its owner: also without hashes of passwords and tokens. */
enum hapax_status hx_config_dump_public(const struct hx_config *config, struct hapax_buf *out);

/* Append the JSON Schema of a config (draft 2020-12). */
enum hapax_status hx_config_json_schema(struct hapax_buf *out);

#endif
