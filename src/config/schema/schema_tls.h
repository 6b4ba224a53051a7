/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_tls.h - the settings of TLS, a part of schema.c's table.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_TLS_H
#define HX_CONFIG_SCHEMA_SCHEMA_TLS_H

#include "config/schema/schema.h"

/* struct hx_config_tls */
extern const struct hx_section hx_config_tls_section;

#endif
