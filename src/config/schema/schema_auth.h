/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_auth.h - the settings of who may ask for what, a part of schema.c's table.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_AUTH_H
#define HX_CONFIG_SCHEMA_SCHEMA_AUTH_H

#include "config/schema/schema.h"

/* struct hx_config_auth */
extern const struct hx_section hx_config_auth_section;

#endif
