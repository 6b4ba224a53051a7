/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_traces.h - the settings of traces, a part of schema.c's table.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_TRACES_H
#define HX_CONFIG_SCHEMA_SCHEMA_TRACES_H

#include "config/complete/complete.h"
#include "config/schema/schema.h"

/* struct hx_config_traces */
extern const struct hx_section hx_config_traces_section;

/* What follows from them: where the endpoint is, how many in 2^63 are sampled. */
void hx_complete_traces(struct hx_complete *complete, struct hx_config_traces *traces);

#endif
