/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_proxy.h - the settings of the proxy, a part of schema.c's table.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_PROXY_H
#define HX_CONFIG_SCHEMA_SCHEMA_PROXY_H

#include "config/schema/schema.h"

/* struct hx_config_proxy */
extern const struct hx_section hx_config_proxy_section;

#endif
