/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch.h - check and show a JSON change of settings (RFC 7396), by the schema.
 *
 * Threads: any; nothing is kept.
 */
#ifndef HX_CONFIG_PATCH_H
#define HX_CONFIG_PATCH_H

#include <stdbool.h>

#include "config/config.h"
#include "wire/json/json_tree.h"
#include "wire/json/json_write.h"

/*
 * Does patch, an object, give a value to a setting that only the operator's files set
 * (HX_SETTING_FILE_ONLY)? Even the current value counts: once stored, it would outlive a change of
 * the file, such as the removal of a token. setting is then the first one: "outbox.sink". A list
 * with changeable columns does not count: hx_config_needs_file() judges it by the result.
 */
bool hx_config_patch_needs_file(
	const struct hx_json_tree *patch, char setting[HX_CONFIG_SETTING_SIZE]);

/*
 * Write the public form of patch: existing settings with valid values that are not secret, else
 * "***".
 */
void hx_config_patch_write(const struct hx_json_tree *patch, struct hx_json_write *json);

#endif
