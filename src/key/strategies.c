/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategies.c - the list of strategies.
 */
#include "key/key.h"

const struct hx_key_type *const hx_key_types[] = {
	&hx_key_event_id, &hx_key_aggregate_version,
	&hx_key_field,    &hx_key_composite,
	&hx_key_header,   &hx_key_template,
	&hx_key_content,  &hx_key_hybrid,
	&hx_key_uuid7,    NULL,
};
