/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.h - shared by the strategies: their table, and a parsed strategy.
 *
 * A strategy is one file, strategy_<name>.c, that defines one struct hx_key_type. To add one, write
 * that file and add a line below, in strategies.c and in meson.build.
 *
 * Threads: a strategy is immutable once made, except its UUID generator, which any number of
 * threads may use.
 */
#ifndef HX_KEY_H
#define HX_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/key.h>

#include "base/uuid7.h"
#include "key/path.h"
#include "key/view.h"

enum {
	/* Maximum text of a strategy: a line in a configuration file. */
	HX_KEY_STRATEGY_SIZE_MAX = 4096,
};

enum hx_key_type_flags {
	HX_KEY_TYPE_CONTENT = 1 << 0,  /* hashes the data: include has an effect */
	HX_KEY_TYPE_PRODUCER = 1 << 1, /* makes a new key each time */
	HX_KEY_TYPE_EMPTY = 1 << 2,    /* an empty part is a value like any other */
};

/*
 * Read the text after "name:" into strategy; argument.data is NULL if there is none.
 * hapax_key_strategy_free() frees all allocations, also after an error.
 */
typedef enum hapax_status hx_key_parse_fn(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err);

/* Write ret->key and what else the strategy knows. On MISSING and FAILED err says why. */
typedef enum hx_key_made hx_key_make_fn(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err);

struct hx_key_type {
	const char *name;
	const char *syntax;  /* with its argument, for help */
	const char *summary; /* lower case, no full stop */
	unsigned flags;      /* enum hx_key_type_flags */
	hx_key_parse_fn *parse;
	hx_key_make_fn *make;
};

extern const struct hx_key_type hx_key_aggregate_version;
extern const struct hx_key_type hx_key_composite;
extern const struct hx_key_type hx_key_content;
extern const struct hx_key_type hx_key_event_id;
extern const struct hx_key_type hx_key_field;
extern const struct hx_key_type hx_key_header;
extern const struct hx_key_type hx_key_hybrid;
extern const struct hx_key_type hx_key_template;
extern const struct hx_key_type hx_key_uuid7;

/* In the order of help; ends with NULL. */
extern const struct hx_key_type *const hx_key_types[];

/* The origin of a tenant or a group. */
struct hx_key_scope_rule {
	struct hx_key_path *from; /* NULL: always text */
	char text[HAPAX_SCOPE_SIZE_MAX + 1];
	size_t text_size; /* 0: no text, so from must have a value */
};

struct hx_key_piece;

struct hapax_key_strategy {
	const struct hx_key_type *type;
	char *text;
	unsigned flags; /* enum hapax_key_flags */
	unsigned needs; /* enum hapax_key_need */
	enum hapax_on_missing on_missing;
	enum hapax_canonical canonical;
	const struct hapax_clock *clock;
	struct hx_key_path *paths; /* the parts of the key */
	size_t path_count;
	struct hx_key_path *include;
	size_t include_count;
	struct hx_key_path *exclude;
	size_t exclude_count;
	struct hx_key_piece *pieces; /* of a template */
	size_t piece_count;
	struct hx_key_scope_rule tenant;
	struct hx_key_scope_rule group;
	struct hx_uuid7 *uuids;
	struct hapax_key_strategy *also; /* NULL: none */
	int64_t also_until_ms;
};

/* Refuse an argument. */
hx_key_parse_fn hx_key_refuse_argument;

/* Read PATH,PATH... into strategy->paths. A comma within a path is written "\,". */
hx_key_parse_fn hx_key_read_paths;

/* Refuse an argument, and create strategy->uuids. */
hx_key_parse_fn hx_key_read_uuids;

enum hx_key_paths_flags {
	HX_KEY_PATHS_RELATIVE = 1 << 0,  /* into the data, whatever prefix they have */
	HX_KEY_PATHS_WILDCARDS = 1 << 1, /* may name more than one place */
};

/* Parse count paths, each a text of its own. Owned: *ret, by the caller; hx_free(). */
enum hapax_status hx_key_new_paths(
	const char *const *texts, size_t count, unsigned flags, struct hx_key_path **ret,
	struct hapax_error *err);

/* enum hx_key_paths_flags of a strategy's own paths. */
static inline unsigned hx_key_paths_flags(const struct hapax_key_strategy *strategy)
{
	return strategy->flags & HAPAX_KEY_RELATIVE ? HX_KEY_PATHS_RELATIVE : 0;
}

/* Write the next run id to ret. */
void hx_key_next_run_id(const struct hapax_key_strategy *strategy, struct hapax_key *ret);

/* Read the options for tenant and group (scope.c). */
enum hapax_status hx_key_scope_parse(
	struct hapax_key_strategy *strategy, const struct hapax_key_options *options,
	struct hapax_error *err);

/* Write the tenant and group of ret. */
enum hapax_status hx_key_scope_make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err);

/* Free the pieces of a template (strategy_template.c). */
void hx_key_pieces_free(struct hx_key_piece *pieces, size_t count);

#endif
