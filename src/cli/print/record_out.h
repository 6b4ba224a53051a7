/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_out.h - a record on the output, for every command that shows one.
 */
#ifndef HX_CLI_PRINT_RECORD_OUT_H
#define HX_CLI_PRINT_RECORD_OUT_H

#include <hapax/record.h>

#include "base/limits.h"
#include "cli/print/json_out.h"

/* Everything that belongs to the largest record. */
enum {
	HX_RECORD_SIZE_MAX = HX_RESULT_SIZE_LIMIT + HX_RESULT_HEADERS_SIZE_MAX + HX_KEY_SIZE_MAX +
		2 * HX_SCOPE_PART_SIZE_MAX + HX_OWNER_SIZE_MAX + HX_ERROR_TEXT_SIZE_MAX + 4096,
};

enum { HX_SCOPE_SIZE_MAX = 2 * HX_SCOPE_PART_SIZE_MAX + 1 };

/* "tenant/group" in out; returns its bytes. */
struct hapax_bytes hx_record_out_scope(
	struct hapax_bytes tenant, struct hapax_bytes group, char out[HX_SCOPE_SIZE_MAX]);

/* The members key and scope. */
void hx_record_out_name(
	struct hx_json_out *json, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key);

/* The members of a record, within an object; the result only if it is asked for. */
void hx_record_out_json(
	struct hx_json_out *json, const struct hapax_record *record, bool with_result);

/* The member result: an object, or null when there is none. */
void hx_record_out_result(struct hx_json_out *json, const struct hapax_result *result);

enum hx_colour hx_record_out_colour(enum hapax_state state);

#endif
