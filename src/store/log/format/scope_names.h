/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_names.h - the scopes that a segment has named so far, by number.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_LOG_FORMAT_SCOPE_NAMES_H
#define HX_STORE_LOG_FORMAT_SCOPE_NAMES_H

#include "base/buf.h"
#include "store/log/read/log_walk.h"

struct hx_log_scope_slot {
	struct hx_log_walk_scope scope;
	size_t offset; /* of its names */
	bool is_set;
};

struct hx_log_scope_names {
	struct hx_log_scope_slot *slots; /* by number */
	uint32_t count;
	struct hapax_buf text;
	bool is_rebound; /* a number was assigned to two scopes */
};

void hx_log_scope_names_init(struct hx_log_scope_names *names);
void hx_log_scope_names_done(struct hx_log_scope_names *names);

/* Start another segment. */
void hx_log_scope_names_clear(struct hx_log_scope_names *names);

/* False: no memory. */
bool hx_log_scope_names_put(
	struct hx_log_scope_names *names, uint32_t number, struct hapax_bytes tenant,
	struct hapax_bytes group);

/* Did every number name one scope, and is it the visitor's own number for it? */
bool hx_log_scope_names_fit(const struct hx_log_scope_names *names);

/* NULL: not named. Valid until the next put. */
struct hx_log_walk_scope *hx_log_scope_names_get(struct hx_log_scope_names *names, uint32_t number);

#endif
