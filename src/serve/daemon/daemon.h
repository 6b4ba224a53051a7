/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.h - state that the parts of the daemon share; for serve/ only.
 *
 * The control loop, on the main thread, has the admin door, signals and reloads: slow work there
 * delays no event. It never waits for the store, so signals and probes are answered while the store
 * is unavailable; store_view.h waits instead. The first of the gateway's loops, which never blocks,
 * renews leases.
 */
#ifndef HX_SERVE_DAEMON_DAEMON_H
#define HX_SERVE_DAEMON_DAEMON_H

#include <stdatomic.h>

#include <hapax/processor.h>
#include <hapax/store.h>

#include "base/buf.h"
#include "base/worker.h"
#include "net/http/http_server.h"
#include "net/resolver.h"
#include "net/signals.h"
#include "observe/condition.h"
#include "resp/resp_service.h"
#include "serve/task/background.h"
#include "serve/task/consumers.h"
#include "serve/daemon/condition_watch.h"
#include "serve/daemon/decision_file.h"
#include "serve/daemon/descriptors.h"
#include "serve/trace/exporter.h"
#include "serve/http/large.h"
#include "serve/daemon/loop.h"
#include "serve/daemon/memory.h"
#include "serve/task/outbox_audits.h"
#include "serve/task/outbox_relay.h"
#include "serve/daemon/peers.h"
#include "serve/daemon/quota.h"
#include "serve/daemon/serve.h"
#include "serve/daemon/service_manager.h"
#include "serve/daemon/store_stack.h"
#include "serve/daemon/store_view.h"
#include "serve/daemon/tls_setup.h"

struct hx_admin_wait;
struct hx_api;
struct hx_duplicate_watch;
struct hx_feed;
struct hx_auth_identity;
struct hx_logger;
struct hx_metrics;
struct hx_tls_context;

enum { HX_LOOPS_MAX = 256 };

struct hx_serve {
	struct hx_config_source *source;
	const char *folder;      /* for large bodies; NULL: /tmp */
	struct hx_memory memory; /* set before the first loop */
	struct hx_config_current current;
	struct hx_config *config; /* the control loop's own reference */
	struct hx_store_stack stack;
	struct hapax_store *store; /* the topmost layer */
	bool can_latch;            /* it may fail permanently */
	struct hx_store_view view;
	struct hapax_processor *processor;
	struct hx_logger *log;
	struct hx_condition_watch condition_watch;
	struct hx_conditions conditions;   /* what is wrong now */
	struct hx_decision_file decisions; /* log.decisions */
	struct hx_metrics *metrics;
	struct hx_cells *cells; /* of the control loop */
	struct hx_resolver resolver;
	struct hx_reader reader;
	struct hx_exporter exporter; /* of spans; off without traces.endpoint */
	struct hx_outbox_relay outbox;
	struct hx_outbox_audits audits; /* of the same */
	struct hx_consumers consumers;
	struct hx_tls_context *tls; /* for upstreams; NULL until one needs it */
	struct hx_tls_set door_tls; /* for incoming connections */

	struct hx_resp_service resp; /* of the Redis door; options.store NULL: off */
	struct hx_resp_user *resp_users;
	struct hx_worker jobs;         /* of all loops: pieces of jobs take turns */
	struct hx_config *resp_config; /* the configuration of resp; kept */

	struct hx_descriptors descriptors; /* set before the first loop */
	struct hx_loop *loops;
	size_t loop_count;
	size_t running_count; /* threads that were started */

	struct hx_reactor reactor; /* the control loop's */
	struct hx_signals signals;
	struct hx_service service; /* the state for the service manager */
	struct hx_http_server admin;
	struct hx_api *api;          /* behind the admin door */
	struct hx_feed *feed;        /* writers: the loops, then the API, then consumers */
	struct hapax_buf page;       /* the next page of the admin door */
	struct hx_admin_wait *waits; /* admin requests that wait for the store, in order */
	struct hx_timer wait_timer;  /* deadline of the first of them */
	struct hx_timer drain_timer;
	struct hx_timer chore_timer; /* once a second */
	struct hx_duplicate_watch *watch;
	unsigned chores; /* seconds counted */
	struct hx_task idle_task;
	struct hx_task suspect_task;
	int64_t suspected_ns; /* when the store was last asked because of a suspicion */
	bool is_suspected;    /* it will be asked again soon */
	struct hx_task told_task;
	struct hx_timer tick_timer; /* of the first loop */
	struct hx_task tick_task;
	struct hx_quota tenants;     /* requests in progress */
	struct hx_peers peers;       /* counts of addresses at the doors */
	_Atomic unsigned idle_count; /* loops and backgrounds that have ended */
	_Atomic unsigned is_latched;
	_Atomic unsigned is_draining;
	bool is_started;
	bool is_cut;
	uint64_t reloads;
	uint64_t reload_failures;
	int64_t reloaded_ms;
	int64_t also_watched_ms; /* wall clock at the last look for the end of a key_also */
};

/* Logs a line for each setting in force that is probably a mistake. */
void hx_serve_say_config(struct hx_serve *serve);

/* Logs the old key strategies: all at first, then those that have ended since the last call. */
void hx_serve_watch_also(struct hx_serve *serve, bool is_first);

/* UNSUPPORTED: config has key_also, and the store cannot claim two keys in one step. */
enum hapax_status hx_serve_check_also(
	const struct hx_serve *serve, const struct hx_config *config, struct hapax_error *err);

/* Logs the state of the daemon. */
void hx_serve_say_state(struct hx_serve *serve);

/* A loop has drained, or a background has ended. Threads: any. */
void hx_serve_idle(struct hx_serve *serve);

/*
 * The work besides the doors: backgrounds.c. Each task reports idle after drain. Join follows
 * drain; false: a task has not ended by deadline_ns.
 */
enum { HX_SERVE_BACKGROUNDS = 3 }; /* relay and audits of the outbox, all consumers together */
enum hapax_status hx_serve_start_backgrounds(struct hx_serve *serve, struct hapax_error *err);
void hx_serve_reload_backgrounds(struct hx_serve *serve);
void hx_serve_drain_backgrounds(struct hx_serve *serve);
bool hx_serve_join_backgrounds(struct hx_serve *serve, int64_t deadline_ns);

/*
 * The store gave an uncertain answer: check whether it failed permanently. If so, the daemon drains
 * and ends, because only a restart can find out. Threads: any.
 */
void hx_serve_suspect(struct hx_serve *serve);

/* Opens the Redis door on every loop, unless it is off. */
enum hapax_status hx_serve_open_resp(struct hx_serve *serve, struct hapax_error *err);

/* A TLS handshake of a door failed; cells are those of the thread. Threads: any. */
void hx_serve_unsecured(
	struct hx_serve *serve, struct hx_cells *cells, const char *door, const char *client,
	const struct hapax_error *why);

/* Once a second. */
void hx_serve_refresh_resp(struct hx_serve *serve);

/* The loops have ended. False: a question to the store is pending, and it must not be closed. */
bool hx_serve_stop_resp(struct hx_serve *serve, int64_t deadline_ns);

/* Every loop is done. */
void hx_serve_close_resp(struct hx_serve *serve);

/* The API behind the admin door. False: the path is not one of its own. */
enum hapax_status hx_serve_open_api(struct hx_serve *serve, struct hapax_error *err);
bool hx_serve_handle_api(struct hx_serve *serve, struct hx_http_exchange *exchange);
void hx_serve_api_gone(struct hx_http_exchange *exchange);

/* The log as configured. */
struct hx_logger_options hx_serve_log_options(const struct hx_serve *serve);

/* TLS for upstreams, if one needs it. Connections use it for as long as the process lives. */
enum hapax_status hx_serve_prepare_tls(
	struct hx_serve *serve, const struct hx_config *config, struct hapax_error *err);

/* Reads the configuration again; after a failure it stays as it was. */
enum hapax_status hx_serve_reload(struct hx_serve *serve, struct hapax_error *err);

/*
 * The admin door: admin_door.c opens it, admin.c answers. identify returns false if an address has
 * sent too many wrong tokens: then it has answered 429, and the exchange is gone.
 */
bool hx_admin_identify(
	struct hx_serve *serve, struct hx_http_exchange *exchange,
	struct hx_auth_identity *ret_identity);
enum hapax_status hx_serve_open_admin(struct hx_serve *serve, struct hapax_error *err);
void hx_admin_handle(struct hx_http_exchange *exchange);

/* Counts an answered request of the admin door; context: the daemon. */
void hx_admin_answered(void *context, unsigned status, int64_t took_ns);

/*
 * The store has answered the question with that number: the requests that waited for it are
 * answered.
 */
void hx_admin_told(struct hx_serve *serve, uint64_t answered);

/* For wait_timer: the wait takes too long. */
void hx_admin_wait_timer(struct hx_timer *timer);

#endif
