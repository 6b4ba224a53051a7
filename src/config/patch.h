/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch.h - a change of settings as JSON (RFC 7396), seen by the schema.
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
 * Whether patch, an object, gives a value to what only the operator's files set
 * (HX_SETTING_FILE_ONLY), though it be the one that it has: kept, it would outlive a change of the
 * file, such as a token that is taken out there. setting is then the first one: "outbox.sink". A
 * list some of whose columns may change does not count: hx_config_needs_file() judges it by what
 * would come out.
 */
bool hx_config_patch_needs_file(
	const struct hx_json_tree *patch, char setting[HX_CONFIG_SETTING_SIZE]);

/*
 * Write what people may see of patch: settings that there are, with values that they can have and
 * that are no secrets, else "***".
 */
void hx_config_patch_write(const struct hx_json_tree *patch, struct hx_json_write *json);

#endif
