/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_consumers.h - the settings of a consumer, a part of schema.c's table.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_CONSUMERS_H
#define HX_CONFIG_SCHEMA_SCHEMA_CONSUMERS_H

#include "config/schema/schema.h"

/* Each has threads and a connection of its own. */
enum { HX_CONFIG_CONSUMERS_MAX = 100 };

/* struct hx_config_consumer */
extern const struct hx_section hx_config_consumer_section;

#endif
