/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.h - a config as text: every setting that it has, whoever gave it.
 *
 * Threads: any.
 */
#ifndef HX_CONFIG_DUMP_H
#define HX_CONFIG_DUMP_H

#include "config/config.h"

struct hapax_buf;

/* Append it as YAML, which reads back as the same config; passwords are left out of URLs. */
enum hapax_status hx_config_dump(const struct hx_config *config, struct hapax_buf *out);

/* The same as one JSON object. */
enum hapax_status hx_config_dump_json(const struct hx_config *config, struct hapax_buf *out);

/* The same for others than its owner: hashes of passwords and tokens are left out, too. */
enum hapax_status hx_config_dump_public(const struct hx_config *config, struct hapax_buf *out);

/* Append what a config may be as a JSON Schema (draft 2020-12). */
enum hapax_status hx_config_json_schema(struct hapax_buf *out);

#endif
