/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_outbox.h - the settings of the outbox, a part of schema.c's table.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_OUTBOX_H
#define HX_CONFIG_SCHEMA_SCHEMA_OUTBOX_H

#include "config/complete/complete.h"
#include "config/schema/schema.h"

/* struct hx_config_outbox */
extern const struct hx_section hx_config_outbox_section;

/* Whether a relay can be made of them. */
void hx_complete_outbox(struct hx_complete *complete, const struct hx_config_outbox *outbox);

#endif
