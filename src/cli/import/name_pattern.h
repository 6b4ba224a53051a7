/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_pattern.h - how another system makes names from tenant, group and key.
 *
 *	idempotent:{group}:{tenant}:{key}:result
 *
 * {key} must be in it, {tenant} and {group} may be; {{ and }} are braces. A field ends where the
 * text after it first occurs, the last one where the name's end does. So only the last field may
 * contain the text that separates them.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_CLI_IMPORT_NAME_PATTERN_H
#define HX_CLI_IMPORT_NAME_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>

#include "base/buf.h"

enum hx_name_field { HX_NAME_TENANT, HX_NAME_GROUP, HX_NAME_KEY, HX_NAME_FIELDS };

enum { HX_NAME_PATTERN_SIZE = 512 };

struct hx_name_pattern {
	enum hx_name_field fields[HX_NAME_FIELDS];
	size_t count; /* of fields */
	/* The text before each field, and after the last one; ends in text. */
	size_t ends[HX_NAME_FIELDS + 1];
	char text[HX_NAME_PATTERN_SIZE];
};

/* Returns NULL, or what is wrong. */
const char *hx_name_pattern_parse(struct hx_name_pattern *pattern, const char *text);

/* The text before the first field. */
struct hapax_bytes hx_name_pattern_prefix(const struct hx_name_pattern *pattern);

/* Split name into fields that point into it; absent ones are empty. False: it has another form. */
bool hx_name_pattern_match(
	const struct hx_name_pattern *pattern, struct hapax_bytes name,
	struct hapax_bytes fields[HX_NAME_FIELDS]);

/* Append the name of these fields. */
enum hapax_status hx_name_pattern_write(
	const struct hx_name_pattern *pattern, const struct hapax_bytes fields[HX_NAME_FIELDS],
	struct hapax_buf *out);

#endif
