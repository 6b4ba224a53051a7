/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_out.h - print a record, for every command that shows one.
 */
#ifndef HX_CLI_PRINT_RECORD_OUT_H
#define HX_CLI_PRINT_RECORD_OUT_H

#include <hapax/record.h>

#include "base/limits.h"
#include "cli/print/out.h"
#include "wire/record/record_json.h"

enum { HX_SCOPE_SIZE_MAX = 2 * HX_SCOPE_PART_SIZE_MAX + 1 };

/* Write "tenant/group" to out; returns its bytes. */
struct hapax_bytes hx_record_out_scope(
	struct hapax_bytes tenant, struct hapax_bytes group, char out[HX_SCOPE_SIZE_MAX]);

/* Write the members key and scope, before hx_record_write_json() with HX_RECORD_JSON_BRIEF. */
void hx_record_out_name(
	struct hx_json_write *json, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key);

enum hx_color hx_record_out_color(enum hapax_state state);

#endif
