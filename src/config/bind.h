/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.h - from trees, variables and options to structs, by the schema.
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

/* The file that was named, and what conf.d may have. */
enum { HX_BIND_TREES_MAX = 100 };

/* Where values come from; of a value that several have the last one counts. */
struct hx_bind {
	struct hx_config_arena *arena;
	struct hx_faults *faults;
	const struct hx_yaml_node *const *trees;
	size_t tree_count;
	hx_config_variable_fn *variable; /* or NULL */
	const struct hx_config_option *options;
	size_t option_count;
	/* NULL: nobody asks what has more weight than this file, by name, which is in trees. */
	const char *asked;
	hx_config_overruled_fn *overruled;
	void *context;
};

/*
 * Fill config, which is zero. What is wrong is told to faults; config may be used only
 * if nothing was.
 */
void hx_bind_run(const struct hx_bind *bind, struct hx_config *config);

#endif
