/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - the native API: claims for every language, and what operators need, over HTTP.
 *
 * Paths, roles, members of requests and replies stand in one table (api_table.c), which
 * routes requests, checks them, and is served as /openapi.json.
 *
 *	hx_api_open(&api, &options, &err);
 *	if (hx_api_has(exchange->head.path))
 *		hx_api_handle(api, exchange, &caller);
 *
 * It runs on one reactor's thread and never waits there: operations are submitted, what
 * blocks (scans, figures, files) is done by a thread of its own (api_worker.h), and replies are
 * given when that is over.
 *
 * Threads: the reactor's.
 */
#ifndef HX_API_H
#define HX_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/limits.h"
#include "net/http/http_server.h"

struct hapax_relay_stats;
struct hx_api;
struct hx_budget;
struct hx_cells;
struct hx_config_current;
struct hx_config_source;
struct hx_feed;
struct hx_logger;

/* What a request may do; each may do what those before it may. */
enum hx_api_role {
	HX_API_ROLE_NONE,
	HX_API_ROLE_READ,
	HX_API_ROLE_WRITE,
	HX_API_ROLE_ADMIN,
};
enum { HX_API_WHO_SIZE = 128 + 1 };

struct hx_api_caller {
	enum hx_api_role role;
	char who[HX_API_WHO_SIZE];               /* for the audit log: a token's name */
	bool is_read_only;                       /* no token is configured, so nobody may write */
	char tenant[HX_SCOPE_PART_SIZE_MAX + 1]; /* the only one that concerns it; "": all */
};

/* Zero and NULL: it is not there. Everything but audit_path outlives the API. */
struct hx_api_options {
	struct hapax_store *store;
	struct hx_reactor *reactor;
	struct hx_budget *budget;        /* that bodies and replies take their memory from */
	const struct hapax_clock *clock; /* NULL: the system's; for what is shown */
	struct hx_logger *log;
	struct hx_cells *cells; /* of the reactor's thread */
	struct hx_feed *feed;
	size_t writer; /* of feed: the API's own */
	struct hx_config_current *current;
	const struct hx_config_source *source; /* that PATCH /config changes */
	const char *audit_path;                /* NULL, "": in the log */

	/* How the relay of the outbox stands, and what is wrong with it. False: there is none. */
	bool (*outbox)(
		void *context, struct hapax_relay_stats *ret_stats,
		struct hapax_error *ret_trouble);
	/* Read the configuration again. */
	enum hapax_status (*reload)(void *context, struct hapax_error *err);
	/* A request was answered with status, after so long; for metrics. */
	void (*answered)(void *context, unsigned status, int64_t took_ns);
	/* The store did not say what it did. */
	void (*suspect)(void *context);
	void *context;
};

/* Owned: *ret_api, by the caller. */
enum hapax_status hx_api_open(
	const struct hx_api_options *options, struct hx_api **ret_api, struct hapax_error *err);

/*
 * End streams, and wait for what is under way by turning the reactor. False: the store has not
 * answered by deadline_ns, and must not be closed; then nothing is freed. NULL is allowed.
 */
bool hx_api_close(struct hx_api *api, int64_t deadline_ns);

/* Whether a path, with its query, is one of ours. */
bool hx_api_has(struct hapax_bytes path);

/* Take over a request, which is owed a reply. */
void hx_api_handle(
	struct hx_api *api, struct hx_http_exchange *exchange, const struct hx_api_caller *caller);

/* Once a second: what was decided is taken over, so that it can be shown. */
void hx_api_tick(struct hx_api *api);

/* Settings have changed: streams end, and whoever comes back for one is asked again who it is. */
void hx_api_reloaded(struct hx_api *api);

/* The client of an exchange has gone: a stream to it ends. Others are not concerned. */
void hx_api_gone(struct hx_api *api, struct hx_http_exchange *exchange);

/* Note an administrative change that was not asked for by a request: "reload". */
void hx_api_audit(struct hx_api *api, const char *who, const char *action, const char *outcome);

#endif
