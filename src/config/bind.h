/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.h - fill the structs from trees, variables and options, by the schema.
 *
 * Threads: one at a time.
 */
#ifndef HX_CONFIG_BIND_H
#define HX_CONFIG_BIND_H

#include "config/config_arena.h"
#include "config/config.h"
#include "config/config_fault.h"
#include "config/schema/schema.h"
#include "config/yaml.h"

/* The named file, and those of conf.d. */
enum { HX_BIND_TREES_MAX = 100 };

/* The sources of values; if several have a value, the last one counts. */
struct hx_bind {
	struct hx_config_arena *arena;
	struct hx_faults *faults;
	const struct hx_yaml_node *const *trees;
	size_t tree_count;
	hx_config_variable_fn *variable; /* or NULL */
	const struct hx_config_option *options;
	size_t option_count;
	/* Report what overrules this file, given by its name in trees. NULL: no report. */
	const char *asked;
	hx_config_overruled_fn *overruled;
	void *context;
};

/* Fill config, which is zero. Faults go to faults; config may be used only if there are none. */
void hx_bind_run(const struct hx_bind *bind, struct hx_config *config);

#endif
