/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete.h - what a config has beyond the values that were written: names of scopes,
 * routes with their upstreams and strategies, the store's default.
 *
 * Threads: one at a time.
 */
#ifndef HX_CONFIG_COMPLETE_COMPLETE_H
#define HX_CONFIG_COMPLETE_COMPLETE_H

#include "config/config_arena.h"
#include "config/config.h"

struct hx_complete {
	struct hx_config_arena *arena;
	struct hx_faults *faults;
	hx_config_variable_fn *variable; /* or NULL */
	/* Out, in arena: the strategies of all routes, to be freed. */
	struct hapax_key_strategy **strategies;
	size_t strategy_count;
};

/* What does not fit together is told to faults. strategies are the caller's in any case. */
void hx_complete_run(struct hx_complete *complete, struct hx_config *config);

/* Of it, `auth`: complete_auth.c. */
void hx_complete_auth(struct hx_complete *complete, struct hx_config_auth *auth);

/* And `tls`: tls_doors.c. */
void hx_tls_doors_complete(struct hx_complete *complete, const struct hx_config_tls *tls);

/* `outbox`: whether a relay can be made of it: schema_outbox.c. */
void hx_schema_outbox_complete(struct hx_complete *complete, const struct hx_config_outbox *outbox);

/* `traces`: where the endpoint is, which share of events is sampled: schema_traces.c. */
void hx_schema_traces_complete(struct hx_complete *complete, struct hx_config_traces *traces);

/* For complete*.c: memory that lives as long as the config, zeroed; NULL: there is none, which is told. */
__attribute__((warn_unused_result)) void *hx_complete_alloc(
	struct hx_complete *complete, const struct hx_place *place, size_t count, size_t size);

/* And a copy; "" when there is no memory. */
const char *hx_complete_text(
	struct hx_complete *complete, const struct hx_place *place, struct hapax_bytes text);

/*
 * A fault where a key whose outcome is unknown must wait for a person (park), and its scope runs
 * keys while nobody knows their outcome (on_store_failure: continue). what: "route 'a'".
 */
void hx_complete_check_park(
	struct hx_complete *complete, const char *what, const struct hx_place *place,
	enum hapax_on_lapse on_lapse, const struct hx_config_scope *scope);

/* The loosest form of a path of a route (wire/http1/http_path.h). */
const char *hx_complete_loose_path(
	struct hx_complete *complete, const struct hx_place *place, const char *path);

/* Where the route of that name goes; an empty URL is a fault. */
void hx_complete_target(
	struct hx_complete *complete, const char *upstream, const char *name,
	const struct hx_place *place, struct hx_config_target *ret_target);

/* The scope that what is keyed so is in, as far as it is known before; its strategy's options. */
const struct hx_config_scope *hx_complete_keying(
	const struct hx_config *config, const struct hx_config_keying *keying,
	struct hapax_key_options *ret_options);

/* The consumers; scopes are complete. */
void hx_complete_consumers(struct hx_complete *complete, struct hx_config *config);

/* The routes of the proxy; scopes and those of the gateway are complete. */
void hx_complete_proxy(struct hx_complete *complete, struct hx_config *config);

#endif
