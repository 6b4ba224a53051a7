/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - the native API over HTTP: claims for every language, and operator functions.
 *
 * One table (api_table.c) lists paths, roles, and members of requests and replies. It routes and
 * checks requests, and is served as /openapi.json.
 *
 *	hx_api_open(&api, &options, &err);
 *	if (hx_api_has(exchange->head.path))
 *		hx_api_handle(api, exchange, &caller);
 *
 * It runs on one reactor's thread and never waits there. It submits operations; a separate thread
 * (api_worker.h) does blocking work (scans, figures, files). Replies follow when these are
 * complete.
 *
 * Threads: the reactor's.
 */
#ifndef HX_API_H
#define HX_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/source.h>
#include <hapax/store.h>

#include "api/pause.h"
#include "base/limits.h"
#include "net/http/http_server.h"

struct hapax_relay_stats;
struct hx_api;
struct hx_budget;
struct hx_cells;
struct hx_conditions;
struct hx_config_current;
struct hx_config_source;
struct hx_feed;
struct hx_logger;

/* Roles; each includes the ones before it. */
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
	bool is_read_only;                       /* no token is configured, so writing is not
	                                            allowed */
	char tenant[HX_SCOPE_PART_SIZE_MAX + 1]; /* the only tenant it may access; "": all */
};

/* A consumer of the daemon, for a listing. */
struct hx_api_consumer {
	const char *name;
	const char *state;  /* running, paused, waiting, failed, disabled */
	const char *reason; /* of that state; "": none */
	struct hx_pause pause;
	struct hapax_consumer_stats stats;
	bool is_open; /* it has messages, also while it stops */
};

typedef void hx_api_consumer_fn(void *context, const struct hx_api_consumer *consumer);

/* Zero and NULL: absent. Everything except audit_path outlives the API. */
struct hx_api_options {
	struct hapax_store *store;
	struct hx_reactor *reactor;
	struct hx_budget *budget;        /* for bodies and replies */
	const struct hapax_clock *clock; /* NULL: the system clock; for display */
	struct hx_logger *log;
	struct hx_logger *decisions; /* log.decisions; NULL: none */
	struct hx_cells *cells;      /* of the reactor's thread */
	struct hx_conditions *conditions;
	struct hx_feed *feed;
	size_t writer; /* index of the API in feed */
	struct hx_config_current *current;
	const struct hx_config_source *source; /* changed by PATCH /config */
	const char *audit_path;                /* NULL, "": in the log */

	/* The state of the outbox relay, and its error. False: there is no relay. */
	bool (*outbox)(
		void *context, struct hapax_relay_stats *ret_stats,
		struct hapax_error *ret_trouble);
	/* Call each with every consumer. */
	void (*consumers)(void *context, hx_api_consumer_fn *each, void *each_context);
	/* Pause or resume it as pause says; NULL: change nothing. False: there is none. */
	bool (*pause)(void *context, const char *name, const struct hx_pause *pause);
	/* Reload the configuration. */
	enum hapax_status (*reload)(void *context, struct hapax_error *err);
	/* A request was answered with status, after took_ns; for metrics. */
	void (*answered)(void *context, unsigned status, int64_t took_ns);
	/* An operation of the store has an unknown outcome. */
	void (*suspect)(void *context);
	void *context;
};

/* Owned: *ret_api, by the caller. */
enum hapax_status hx_api_open(
	const struct hx_api_options *options, struct hx_api **ret_api, struct hapax_error *err);

/*
 * End streams, and run the reactor until current requests end. False: the store has not answered by
 * deadline_ns and must not be closed; nothing is freed. NULL is allowed.
 */
bool hx_api_close(struct hx_api *api, int64_t deadline_ns);

/* Does the path, which may have a query, belong to the API? */
bool hx_api_has(struct hapax_bytes path);

/* Take over a request; it must get a reply. */
void hx_api_handle(
	struct hx_api *api, struct hx_http_exchange *exchange, const struct hx_api_caller *caller);

/* Call once a second: takes new decisions from the feed. */
void hx_api_tick(struct hx_api *api);

/* Settings have changed: streams end, and clients must authenticate again. */
void hx_api_reloaded(struct hx_api *api);

/* The client of an exchange has disconnected: end its stream. No other stream is affected. */
void hx_api_gone(struct hx_api *api, struct hx_http_exchange *exchange);

/* Record an administrative change that did not come from a request: "reload". */
void hx_api_audit(struct hx_api *api, const char *who, const char *action, const char *outcome);

#endif
