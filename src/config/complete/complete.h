/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete.h - derive values of a config that were not written: names of scopes, upstreams and
 * strategies of routes, the default store.
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
	const struct hx_io *io;
	/* Out, in arena: the strategies of all routes, to be freed. */
	struct hapax_key_strategy **strategies;
	size_t strategy_count;
};

/* Contradictions go to faults. The caller owns strategies in any case. */
void hx_complete_run(struct hx_complete *complete, struct hx_config *config);

/* Complete `auth`: complete_auth.c. */
void hx_complete_auth(struct hx_complete *complete, struct hx_config_auth *auth);

/* Complete `tls`: tls_doors.c. */
void hx_tls_doors_complete(struct hx_complete *complete, const struct hx_config_tls *tls);

/* Name its audits, and check that `outbox` describes a valid relay: schema_outbox.c. */
void hx_schema_outbox_complete(struct hx_complete *complete, struct hx_config_outbox *outbox);

/* Complete `traces`, its endpoint and the share of sampled events: schema_traces.c. */
void hx_schema_traces_complete(struct hx_complete *complete, struct hx_config_traces *traces);

/* For complete*.c: zeroed memory with the lifetime of the config. NULL after reporting a fault. */
__attribute__((warn_unused_result)) void *hx_complete_alloc(
	struct hx_complete *complete, const struct hx_place *place, size_t count, size_t size);

/* Copy text the same way; "" if there is no memory. */
const char *hx_complete_text(
	struct hx_complete *complete, const struct hx_place *place, struct hapax_bytes text);

/*
 * Report a fault if unknown outcomes must wait for a person (park) but the scope runs keys without
 * the store (on_store_failure: continue). what: "route 'a'".
 */
void hx_complete_check_park(
	struct hx_complete *complete, const char *what, const struct hx_place *place,
	enum hapax_on_lapse on_lapse, const struct hx_config_scope *scope);

/* The loosest form of a route's path (wire/http1/http_path.h). */
const char *hx_complete_loose_path(
	struct hx_complete *complete, const struct hx_place *place, const char *path);

/* Set the target of the named route; an empty URL is a fault. */
void hx_complete_target(
	struct hx_complete *complete, const char *upstream, const char *name,
	const struct hx_place *place, struct hx_config_target *ret_target);

/* Make the table of a route's own outcomes. A status with two outcomes is a fault. */
void hx_complete_outcomes(
	struct hx_complete *complete, const char *route, const struct hx_place *place,
	struct hx_config_outcomes *written);

/*
 * Complete and check key_also. what: "route 'a'". Faults: a date or a store that it lacks.
 */
void hx_complete_also(
	struct hx_complete *complete, const struct hx_config *config, const char *what,
	const struct hx_place *place, struct hx_config_keying *keying);

/* Fill the strategy options of a keying. Returns its scope, as far as it is known in advance. */
const struct hx_config_scope *hx_complete_keying(
	const struct hx_config *config, const struct hx_config_keying *keying,
	struct hapax_key_options *ret_options);

/* Complete the consumers; scopes are complete. */
void hx_complete_consumers(struct hx_complete *complete, struct hx_config *config);

/* How many strategies the routes of the proxy have at most. */
size_t hx_complete_proxy_strategies(const struct hx_config *config);

/* Read the secrets of a route, and check that they can be used. */
void hx_complete_signature(struct hx_complete *complete, struct hx_config_proxy_route *route);

/* Complete the routes of the proxy; scopes and the gateway's routes are complete. */
void hx_complete_proxy(struct hx_complete *complete, struct hx_config *config);

#endif
