/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_resp.h - the settings of the Redis door, a part of schema.c's table.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_RESP_H
#define HX_CONFIG_SCHEMA_SCHEMA_RESP_H

#include "config/schema/schema.h"

/* struct hx_config_resp */
extern const struct hx_section hx_config_resp_section;

#endif
