/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.h - read a YAML text as a tree, every node with its place.
 *
 * Scalars stay text: the schema decides what `on` or `1e3` means. One document, in UTF-8. Duplicate
 * members, tags, and anything above the limits below are refused. An alias is the same node, not a
 * copy, and never a node that contains it, so a tree cannot be larger than its text.
 *
 * Threads: any; a tree is immutable once made.
 */
#ifndef HX_CONFIG_YAML_H
#define HX_CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>

#include "config/config_arena.h"
#include "config/config_fault.h"

enum {
	/* 100 times a file that a person writes. */
	HX_YAML_SIZE_MAX = 1024 * 1024,

	/* Three times as deep as the schema. */
	HX_YAML_DEPTH_MAX = 20,

	HX_YAML_NODES_MAX = 20000,
	HX_YAML_ANCHORS_MAX = 100,
};

enum hx_yaml_kind { HX_YAML_SCALAR, HX_YAML_MAP, HX_YAML_LIST };

struct hx_yaml_entry;

struct hx_yaml_node {
	enum hx_yaml_kind kind;
	struct hx_place place;
	struct hapax_bytes text;     /* of a scalar; ends with a NUL that is not counted */
	bool is_plain;               /* a scalar without quotes */
	struct hx_yaml_entry *first; /* of a map or list */
	struct hx_yaml_entry *last;
	size_t count;
};

struct hx_yaml_entry {
	const struct hx_yaml_node *key; /* NULL in a list */
	const struct hx_yaml_node *value;
	struct hx_yaml_entry *next;
};

/*
 * Read text from the file name, which must live as long as the tree; the tree lives in arena. NULL
 * for an empty text, and after a fault.
 */
const struct hx_yaml_node *hx_yaml_read(
	struct hapax_bytes text, const char *name, struct hx_config_arena *arena,
	struct hx_faults *faults);

/* The value of a member, or NULL. */
const struct hx_yaml_node *hx_yaml_member(const struct hx_yaml_node *map, const char *name);

/* Is the value empty: `key:`, `key: ~`, `key: null`? */
bool hx_yaml_is_null(const struct hx_yaml_node *node);

#endif
