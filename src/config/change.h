/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change.h - the settings in which two configs differ, for people.
 *
 * Threads: any.
 */
#ifndef HX_CONFIG_CHANGE_H
#define HX_CONFIG_CHANGE_H

#include <hapax/bytes.h>

#include "config/config.h"

struct hx_config_change {
	const char *setting; /* "log.level", "gateway.routes[0].path" */
	/* As hx_config_dump_public() shows them; equal if only what it hides has changed. */
	struct hapax_bytes before;
	struct hapax_bytes after;
	bool needs_restart;
};

typedef void hx_config_change_fn(void *context, const struct hx_config_change *change);

/*
 * Call fn for every setting in which before and after differ. Of a list whose number of items
 * differs, both values are that number. Returns how many there are.
 */
size_t hx_config_changes(
	const struct hx_config *before, const struct hx_config *after, hx_config_change_fn *fn,
	void *context);

#endif
