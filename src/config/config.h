/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the configuration of the daemon, read once and never changed.
 *
 * A setting comes from the first of: a command line option, the environment (HAPAX_LISTEN_GATEWAY,
 * IDEMPOTENCY_TTL), the files, the default. Files are YAML: the named one, then conf.d/NAME.yaml
 * beside it in name order. If several have a setting, the last one counts; routes and scopes add
 * up. One table (schema.h) lists all settings with type, range, default and meaning. The reader,
 * `hapax config dump` and `hapax config schema` use it.
 *
 * A config is complete or absent: unknown, duplicate and out-of-range settings are refused with
 * their place, and a failed reload leaves the old config in force.
 *
 *	struct hx_config_source source = {.path = "hapax.yaml", .variable = getenv_fn};
 *
 *	if (hx_config_load(&source, &config, faults, &err) != HAPAX_OK)
 *		return refuse(err.message);          "hapax.yaml:3:5: unknown key 'tll' ..."
 *	route = hx_config_route_find(config, path, type, source_attribute);
 *	scope = hx_config_scope_find(config, tenant, group);
 *
 * Threads: a config is immutable, and any number of threads may read it; keep and release from any
 * thread. Everything that it points at lives as long as it does.
 */
#ifndef HX_CONFIG_H
#define HX_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>
#include <hapax/processor.h>
#include <hapax/record.h>
#include <hapax/source.h>
#include <hapax/store.h>

#include "base/sha256.h"
#include "base/thread.h"
#include "config/config_fault.h"
#include "net/address.h"
#include "net/tls/tls.h"
#include "wire/webhook_signature.h"

struct hx_io;

/* The address of a door. */
struct hx_config_door {
	bool is_off;
	struct hx_endpoint endpoint;
	const char *text; /* as written */
};

struct hx_config_listen {
	struct hx_config_door gateway;
	struct hx_config_door proxy;
	struct hx_config_door resp;
	struct hx_config_door admin;
};

/* Doors that may use TLS. To add one, add a row to tls_doors.c and schema_tls.c. */
enum hx_config_tls_index {
	HX_CONFIG_TLS_GATEWAY,
	HX_CONFIG_TLS_PROXY,
	HX_CONFIG_TLS_RESP,
	HX_CONFIG_TLS_ADMIN,
	HX_CONFIG_TLS_DOORS,
};

enum hx_config_client_auth {
	HX_CONFIG_CLIENT_AUTH_INHERIT = 0,
	HX_CONFIG_CLIENT_AUTH_OFF = 1,
	HX_CONFIG_CLIENT_AUTH_OPTIONAL = 2,
	HX_CONFIG_CLIENT_AUTH_REQUIRED = 3,
};

/* The settings of one door; "": those of all doors. */
struct hx_config_tls_door {
	bool enabled;
	const char *certificate;
	const char *key;
	const char *client_ca;
	enum hx_config_client_auth client_auth;
};

/* As written; hx_config_tls_options() gives the result. */
struct hx_config_tls {
	const char *certificate;
	const char *key;
	const char *client_ca;
	enum hx_tls_client_auth client_auth;
	int64_t handshake_timeout_ms;
	struct hx_config_tls_door doors[HX_CONFIG_TLS_DOORS];
};

enum hx_config_sync {
	HX_CONFIG_SYNC_ALWAYS = 0,
	HX_CONFIG_SYNC_UNSAFE_INTERVAL = 1,
};

/* A size derived from the available memory, see hx_config_memory_plan(). */
#define HX_CONFIG_AUTO UINT64_MAX

struct hx_config_memory {
	uint64_t limit;     /* base of the other sizes; or HX_CONFIG_AUTO */
	uint64_t listeners; /* for all doors together; 0: no limit; or HX_CONFIG_AUTO */
};

struct hx_config_store {
	const char *url;    /* never empty */
	bool is_default;    /* not configured: its folder may have to be created */
	uint64_t max_bytes; /* 0: no limit, also below; or HX_CONFIG_AUTO */
	uint64_t max_keys;
	uint64_t max_keys_per_tenant; /* 0: no limit; see serve/daemon/tenant_keys.h */
	uint64_t max_result;
	uint64_t parked_max;
	uint64_t segment_bytes;
	enum hapax_evict evict;
	enum hx_config_sync sync;
	int64_t unsafe_interval_ms; /* used only with sync UNSAFE_INTERVAL */
	int64_t max_clock_step_ms;
	int64_t timeout_ms;
	int64_t cleanup_interval_ms;
	const char *journal;   /* of keys that run while the store is unavailable; "": none run */
	int64_t near_cache_ms; /* how long done keys are answered from memory; 0: never */
	int64_t max_clock_skew_ms; /* /readyz reports a larger one */
};

/* The target of requests, and its connection pool. */
struct hx_config_upstream {
	const char *url; /* for routes that name none; "": none */
	int64_t connect_timeout_ms;
	int64_t idle_timeout_ms;  /* an unused pooled connection is closed */
	uint64_t max_connections; /* to one upstream, over all loops; 0: no limit */
	uint64_t max_idle;        /* of these, kept open while idle by each loop */
};

/* Limits of every HTTP door. Sizes in bytes; a count of 0 means no limit. */
struct hx_config_http {
	uint64_t max_connections;             /* of the gateway, and the same again of the proxy */
	uint64_t max_connections_per_address; /* of the peer */
	uint64_t max_requests;                /* in progress, over all loops */
	uint64_t max_requests_per_address;    /* of these */
	uint64_t max_requests_per_tenant;     /* of these */
	uint64_t max_temp_bytes;              /* of bodies in temporary files, in total */
	uint64_t max_line;                    /* the request line */
	uint64_t max_head;                    /* the request line and all fields */
	uint64_t max_fields;
	uint64_t max_body;
	uint64_t max_body_memory; /* the rest of a larger body goes to a temporary file */
	uint64_t max_batch;       /* events in one request */
	int64_t head_timeout_ms;  /* from the first byte to the end of the head */
	int64_t body_timeout_ms;  /* a credit: each 4 KiB of a body restore 1 s, up to this */
	int64_t send_timeout_ms;  /* while the peer reads less than 4 KiB of the reply per second */
	int64_t idle_timeout_ms;  /* of a connection between two requests */
	const char *const *trusted_proxies;
	size_t trusted_count;
	const struct hx_network *trusted; /* the same, parsed */
};

enum hx_config_on_store_failure {
	HX_CONFIG_ON_STORE_FAILURE_REFUSE = 0,
	HX_CONFIG_ON_STORE_FAILURE_CONTINUE = 1,
};

/* How long keys of an event type are kept; the first matching row counts. */
struct hx_config_type {
	const char *type; /* exact, or a prefix that ends with '*' */
	int64_t ttl_ms;
};

enum hx_config_remember {
	HX_CONFIG_REMEMBER_ON = 0,
	HX_CONFIG_REMEMBER_OFF = 1,
};

/* Settings of a scope, complete: values not given come from `defaults`. */
struct hx_config_scope {
	const char *scope;  /* as written: "acme/payments" */
	const char *tenant; /* "*": any */
	const char *group;
	bool enabled;   /* false: everything runs, the store is not used (D7) */
	int64_t ttl_ms; /* or HAPAX_TTL_FOREVER */
	int64_t lease_ms;
	int64_t max_run_ms; /* HTTP doors: how long an upstream may take */
	int64_t wait_ms;
	enum hapax_on_lapse on_lapse;
	enum hapax_on_mismatch on_mismatch;
	enum hapax_on_missing on_missing;
	enum hx_config_on_store_failure on_store_failure;
	enum hx_config_remember remember; /* whether a record keeps its event */
	const struct hx_config_type *types;
	size_t type_count;
	struct hx_place place; /* where it is written; none for `defaults` */
};

/* An upstream's URL, parsed. */
struct hx_config_target {
	bool is_tls;
	struct hx_endpoint endpoint; /* with the scheme's port if none was given */
	const char *authority;       /* for Host */
	const char *path;            /* prepended to paths; "" or "/base", never ends with '/' */
};

enum hx_config_fingerprint {
	HX_CONFIG_FINGERPRINT_DATA = 0, /* SHA-256 of the data */
	HX_CONFIG_FINGERPRINT_NONE = 1, /* a changed payload goes unnoticed */
};

/* How events or messages are keyed: what makes two of them duplicates, and the scope. */
struct hx_config_keying {
	const char *
		key; /* the strategy's text; messages: "" is the usual places, see hapax/source.h */
	const char *key_also;       /* the old strategy, while it changes; "": none */
	const char *key_also_until; /* as written */
	int64_t also_until_ms;      /* made from it: time since 1970 */
	const char *const *include;
	size_t include_count;
	const char *const *exclude;
	size_t exclude_count;
	enum hapax_canonical canonical;
	enum hx_config_fingerprint fingerprint;
	const char *tenant;      /* "": "default"; group too */
	const char *tenant_from; /* "": not from the event; group_from too */
	const char *group;
	const char *group_from;
};

/* Statuses as written: "409", "5xx"; an exact status overrules its class. */
struct hx_config_outcomes {
	const char *const *ok;
	size_t ok_count;
	const char *const *definitive;
	size_t definitive_count;
	const char *const *transient;
	size_t transient_count;
	const char *const *ambiguous;
	size_t ambiguous_count;
	/* Made from them, by status minus STATUS_MIN: enum hapax_run_outcome; -1: the default. */
	const signed char *table;
};

/* The statuses of a final response. */
enum { HX_CONFIG_STATUS_MIN = 200, HX_CONFIG_STATUS_MAX = 599 };

/* How the gateway handles some events. The first matching route counts. */
struct hx_config_route {
	const char *name;         /* for metrics and logs; unique */
	const char *path;         /* prefix, by whole segments; begins with '/' */
	const char *loose_path;   /* its loosest form */
	const char *const *types; /* exact, or a prefix that ends with '*'; none: every type */
	size_t type_count;
	const char *const *sources; /* the same for the event's source */
	size_t source_count;
	const char *upstream; /* URL; default: that of `upstream` */
	struct hx_config_target target;
	struct hx_config_keying keying;
	struct hx_config_outcomes outcomes;
	/* Made from the above and the scope's on_missing; thread-safe. */
	const struct hapax_key_strategy *strategy;
	/* The scope of every event of the route; NULL: it comes from the event. */
	const struct hx_config_scope *scope;
	struct hx_place place; /* where it is written; line 0: made from `upstream` */
};

/* The answer to the OPTIONS handshake of the webhook specification. */
struct hx_config_webhook {
	const char *const *allowed_origins; /* "*": any; none: no consent */
	size_t allowed_origin_count;
	uint64_t allowed_rate; /* requests a minute; 0: "*" */
};

struct hx_config_gateway {
	struct hx_config_webhook webhook;
	const struct hx_config_route *routes; /* with `upstream.url` and no routes: one for "/" */
	size_t route_count;
};

/* What a duplicate of a running request gets. */
enum hx_config_busy {
	HX_CONFIG_BUSY_409 = 0,
	HX_CONFIG_BUSY_429 = 1,
	HX_CONFIG_BUSY_503 = 2,
};

/* Requests whose strategy makes this value pass. */
struct hx_config_pass {
	const struct hapax_key_strategy *strategy;
	struct hapax_bytes value;
};

/* How the proxy handles requests to some paths. The first matching route counts. */
struct hx_config_proxy_route {
	const char *name;       /* for metrics and logs; unique */
	const char *path;       /* prefix, by whole segments; begins with '/' */
	const char *loose_path; /* its loosest form */
	const char *upstream;   /* URL; default: that of `upstream` */
	struct hx_config_target target;
	int preset;                 /* index of its name; its settings are in the others */
	const char *const *methods; /* requests that run once; others pass */
	size_t method_count;
	const char *header; /* that carries the key */
	const char *key;    /* the strategy's text; "": the header */
	const char *const *include;
	size_t include_count;
	const char *const *exclude;
	size_t exclude_count;
	enum hx_config_fingerprint fingerprint;
	bool required;           /* requests without a key are refused */
	const char *const *pass; /* PATH=VALUE: such requests pass */
	size_t pass_count;
	enum hx_webhook_scheme signature;
	const char *secret_file; /* "": signatures are not checked */
	int64_t tolerance_ms;
	const char *public_url; /* of the path "/", as senders know it */
	const char *credential; /* "auto", "none" or "header:NAME" */
	const char *const *credential_cookies;
	size_t credential_cookie_count;
	const char *const *fingerprint_headers; /* headers that choose an account */
	size_t fingerprint_header_count;
	const char *tenant; /* "": "default"; group too */
	const char *group;
	int64_t ttl_ms; /* 0: the scope's */
	int64_t wait_ms;
	int64_t max_run_ms; /* 0: the scope's */
	enum hx_config_busy busy;
	enum hapax_on_lapse on_lapse;
	const char *const *replay_headers;
	size_t replay_header_count;
	struct hx_config_outcomes outcomes;
	/* Made from key, include and exclude; thread-safe. NULL: the key is in the header. */
	const struct hapax_key_strategy *strategy;
	const struct hx_config_pass *passes; /* made from pass; pass_count of them */
	const struct hapax_bytes *secrets;   /* from secret_file */
	size_t secret_count;
	const struct hx_config_scope *scope;
	struct hx_place place; /* where it is written; line 0: made from `upstream` */
};

struct hx_config_proxy {
	/* With `upstream.url` and no routes: one for "/". */
	const struct hx_config_proxy_route *routes;
	size_t route_count;
};

/* A user of the Redis protocol. */
struct hx_config_resp_user {
	const char *name;
	const char *password_sha256; /* 64 digits */
	const char *tenant;          /* "": "default"; group too */
	const char *group;
	struct hx_place place;
};

struct hx_config_resp {
	uint64_t max_connections; /* 0: no limit, also below */
	uint64_t max_connections_per_address;
	int64_t idle_timeout_ms; /* since the last complete command; 0: none */
	bool allow_flush;
	bool test_commands;
	const struct hx_config_resp_user *users; /* none: every client may connect */
	size_t user_count;
};

/*
 * Messages of a broker that the daemon passes to a service or a command, each once. Values not
 * given come from the scope.
 */
struct hx_config_consumer {
	const char *name; /* for metrics, logs and reloads; unique */
	bool enabled;
	const char *from; /* URL of the source */
	const char *to;   /* URL of the service; "": uses exec */
	const char *exec; /* a line for sh -c; "": uses to */
	enum hapax_event_form form;
	struct hx_config_keying keying;
	int64_t ttl_ms;
	int64_t lease_ms; /* 0: the scope's */
	int64_t max_run_ms;
	enum hapax_on_lapse on_lapse;
	enum hapax_order order;
	uint64_t prefetch;
	uint64_t parallel;
	uint64_t attempts;
	int64_t backoff_ms;
	int64_t backoff_max_ms;
	const char *dead_letter; /* "": the topic plus .dead; "off": none */
	enum hapax_on_duplicate on_duplicate;
	const char *divert; /* "": the topic plus .duplicate */
	/* Made from the above and the scope; the rest of key_options and run is zero. */
	struct hapax_key_options key_options;
	struct hapax_run_options run;
	struct hx_place place;
};

/* The rights of a caller; each role includes the one before it. */
enum hx_config_role {
	HX_CONFIG_ROLE_READ = 0,
	HX_CONFIG_ROLE_WRITE = 1,
	HX_CONFIG_ROLE_ADMIN = 2,
};

/* A caller with Authorization: Bearer. The token itself is not stored. */
struct hx_config_token {
	const char *name;
	const char *hash; /* sha256: and 64 digits */
	enum hx_config_role role;
	const char *tenant;                   /* "": all */
	unsigned char sha256[HX_SHA256_SIZE]; /* of hash */
	struct hx_place place;
};

/* A caller with a certificate that TLS has verified. */
struct hx_config_certificate {
	const char *name;
	const char *fingerprint; /* sha256: and 64 digits; "": uses subject */
	const char *subject;     /* "CN=billing,O=Acme" (RFC 4514); "": uses fingerprint */
	enum hx_config_role role;
	const char *tenant;                   /* "": all */
	unsigned char sha256[HX_SHA256_SIZE]; /* of fingerprint */
	struct hx_place place;
};

struct hx_config_auth {
	bool open_metrics;     /* GET /metrics needs no token */
	uint64_t max_failures; /* wrong credentials per address and minute; 0: no limit */
	const struct hx_config_token *tokens;
	size_t token_count;
	const struct hx_config_certificate *certificates;
	size_t certificate_count;
};

enum hx_config_log_format {
	HX_CONFIG_LOG_AUTO = 0, /* logfmt on a terminal, else JSON */
	HX_CONFIG_LOG_JSON = 1,
	HX_CONFIG_LOG_LOGFMT = 2,
};

/* In the order of enum hx_logger_level and enum hx_logger_keys (observe/logger/logger.h). */
struct hx_config_log {
	enum hx_config_log_format format;
	int level;
	int keys;
	uint64_t rate;              /* lines per second of one kind; 0: no limit */
	uint64_t duplicate_percent; /* duplicate_watch.h; 0: never */
	const char *audit;          /* file for administrative changes; "": the log */
	const char *decisions;      /* file for each decision; "": none */
	const char
		*decisions_secret; /* file with the key of an HMAC of keys; "": keys as they are */
};

struct hx_config_metrics {
	bool aliases;        /* also the documents' own names */
	uint64_t max_scopes; /* with their own label; the rest is "other" */
	uint64_t max_event_types;
};

/* In sample_billionths: all. */
#define HX_CONFIG_SHARE_WHOLE UINT64_C(1000000000)

/* Spans of events, sent to a collector. */
struct hx_config_traces {
	const char *endpoint;           /* URL; "": none */
	struct hx_config_target target; /* of endpoint, if there is one */
	const char *sample;             /* from 0 to 1, as written */
	uint64_t sample_billionths;     /* the same, parsed */
	const char *service_name;
	const char *headers_file; /* "": none */
	int64_t timeout_ms;
};

enum hx_audit_by {
	HX_AUDIT_BY_ID,
	HX_AUDIT_BY_ORDERING_KEY,
	HX_AUDIT_BY_SUBJECT,
};

/* A query whose rows must have events in the outbox. */
struct hx_config_audit {
	const char *name; /* unique */
	const char *query;
	enum hx_audit_by by; /* what its first column holds */
	int64_t every_ms;
	struct hx_place place;
};

/* An outbox whose rows this daemon publishes. */
struct hx_config_outbox {
	const char *url;  /* of the database; "": none */
	const char *sink; /* the target; not empty if url is not */
	const char *source;
	const char *headers; /* NAME=COLUMN,... */
	uint64_t batch;
	uint64_t attempts;
	int64_t lease_ms;
	int64_t retry_ms;
	int64_t retry_max_ms;
	int64_t retention_ms; /* 0, HAPAX_TTL_FOREVER: sent rows stay */
	struct hx_config_audit *audits;
	size_t audit_count;
};

struct hx_config_drain {
	int64_t delay_ms;   /* not ready any more, but still serving */
	int64_t timeout_ms; /* then requests in progress are abandoned */
};

/* Lists are in the order of the files; see each struct. */
struct hx_config {
	bool enabled;   /* false: every scope counts as disabled */
	uint64_t loops; /* 0: one for each processor */
	struct hx_config_listen listen;
	struct hx_config_tls tls;
	struct hx_config_store store;
	struct hx_config_upstream upstream;
	struct hx_config_memory memory;
	struct hx_config_http http;
	struct hx_config_scope defaults;
	const struct hx_config_scope *scopes;
	size_t scope_count;
	struct hx_config_gateway gateway;
	struct hx_config_proxy proxy;
	struct hx_config_resp resp;
	const struct hx_config_consumer *consumers;
	size_t consumer_count;
	struct hx_config_auth auth;
	struct hx_config_log log;
	struct hx_config_metrics metrics;
	struct hx_config_traces traces;
	struct hx_config_outbox outbox;
	struct hx_config_drain drain;
};

/* A command line option that stands for a setting. */
struct hx_config_option {
	const char *setting; /* "listen.gateway" */
	const char *value;
	const char *name; /* as the user knows it, for messages: "--gateway" */
};

/* The value of a variable, or NULL. */
typedef const char *hx_config_variable_fn(const char *name);

/* The file in conf.d that a running daemon writes. */
#define HX_CONFIG_RUNTIME_NAME "99-runtime.yaml"

/*
 * The value of a setting ("log.level") in runtime has no effect: by, a variable, an option or a
 * file, overrules it.
 */
typedef void hx_config_overruled_fn(const char *setting, const char *by, void *context);

enum { HX_CONFIG_PATH_SIZE = 4096 };

/* The sources of settings. A struct of zeros: none, all are defaults. */
struct hx_config_source {
	const char *path; /* NULL: no file; conf.d is looked for beside it */
	/* Replaces the file's content; then neither the file nor conf.d is opened. */
	const struct hapax_bytes *text;
	/* Replaces conf.d/99-runtime.yaml, whether it exists or not; or NULL. */
	const struct hapax_bytes *runtime;
	hx_config_overruled_fn *overruled; /* for settings in runtime; NULL: no report */
	void *context;
	const struct hx_io *io;          /* NULL: the system's */
	hx_config_variable_fn *variable; /* NULL: no environment; an empty one is absent */
	const struct hx_config_option *options;
	size_t option_count;
	char found[HX_CONFIG_PATH_SIZE]; /* for hx_config_source_find() */
};

/*
 * Let source read the file named, else the one of $HAPAX_CONFIG, else the one that
 * hx_config_find() finds now. named may be NULL. source->path is NULL if there is none.
 */
void hx_config_source_find(struct hx_config_source *source, const char *named);

/*
 * Read, check and complete a config. INVALID: it has faults. err has the first one; faults, unless
 * NULL, has one line for each that fits: "FILE:LINE:COLUMN: TEXT". UNAVAILABLE: a file could not be
 * read. Blocks on files.
 *
 * Owned: *ret_config, by the caller, who releases it.
 */
enum hapax_status hx_config_load(
	const struct hx_config_source *source, struct hx_config **ret_config,
	struct hapax_buf *faults, struct hapax_error *err);

/* Room for the name of any setting or its variable. */
enum { HX_CONFIG_SETTING_SIZE = 96 };

/* Is there a setting "listen.gateway" that an option can stand for? */
bool hx_config_has_setting(const char *setting);

/*
 * Does a setting have the variable name, which begins with HAPAX_? If not, near is the likely one,
 * or "".
 */
bool hx_config_knows_variable(const char *name, char near[HX_CONFIG_SETTING_SIZE]);

/* Add an owner. Returns config. */
struct hx_config *hx_config_keep(struct hx_config *config);

/* Remove an owner; the last one frees it. NULL is allowed. */
void hx_config_release(struct hx_config *config);

/*
 * Find the file to read if none is named: the first hapax.yaml that exists in
 * $CONFIGURATION_DIRECTORY, $XDG_CONFIG_HOME/hapax (~/.config/hapax) or /etc/hapax. False: none.
 * path has HX_CONFIG_PATH_SIZE bytes.
 */
bool hx_config_find(
	const struct hx_io *io, hx_config_variable_fn *variable, char path[HX_CONFIG_PATH_SIZE]);

/* The first matching route, or NULL. path is the request's, without its query. */
const struct hx_config_route *hx_config_route_find(
	const struct hx_config *config, struct hapax_bytes path, struct hapax_bytes type,
	struct hapax_bytes source);

/* The first matching route of the proxy, or NULL. */
const struct hx_config_proxy_route *hx_config_proxy_route_find(
	const struct hx_config *config, struct hapax_bytes path);

/*
 * Do a path and its loosest form (wire/http1/http_path.h) have the same route, at the gateway for
 * any event? Then a service cannot see a different route than we do.
 */
bool hx_config_routes_agree(
	const struct hx_config *config, struct hapax_bytes path, struct hapax_bytes loosest);
bool hx_config_proxy_routes_agree(
	const struct hx_config *config, struct hapax_bytes path, struct hapax_bytes loosest);

/*
 * Would a service that ignores letter case, as many do, read the path of route as that of an
 * earlier one whose signatures are checked?
 */
bool hx_config_proxy_route_evades(
	const struct hx_config *config, const struct hx_config_proxy_route *route,
	struct hapax_bytes loosest);

/* A tenant or group of a config: "default" for "". */
struct hapax_bytes hx_config_scope_part(const char *text);

/*
 * The settings of a scope, whose names are not empty: the first matching row, else `defaults`.
 * Never NULL.
 */
const struct hx_config_scope *hx_config_scope_find(
	const struct hx_config *config, struct hapax_bytes tenant, struct hapax_bytes group);

/*
 * Find leases below store.timeout: an answer may arrive after the claim has lapsed, and the claim
 * is then repeated. row counts from 0. name is a scope ("defaults", or as written) or a consumer.
 * False: no more.
 */
struct hx_config_short_lease {
	const char *what; /* "scope", "consumer" */
	const char *name;
	int64_t lease_ms;
};
bool hx_config_short_lease(
	const struct hx_config *config, size_t *row, struct hx_config_short_lease *ret);

/* The routes and consumers with key_also. row counts from 0. False: no more. */
struct hx_config_key_also {
	const char *what; /* "route", "consumer" */
	const char *name;
	const char *until; /* as written */
	int64_t until_ms;
	int64_t ttl_ms; /* the longest of the scope, or HAPAX_TTL_FOREVER */
};
bool hx_config_key_also(
	const struct hx_config *config, size_t *row, struct hx_config_key_also *ret);

/* How long the scope keeps keys of this event type. */
int64_t hx_config_ttl_ms(const struct hx_config_scope *scope, struct hapax_bytes type);

/* The processor's options for this event type; max_result is the store's. */
void hx_config_run_options(
	const struct hx_config *config, const struct hx_config_scope *scope,
	struct hapax_bytes type, struct hapax_run_options *ret_options);

/* The same for a request on a proxy route that has a key, or has none and passes. */
void hx_config_proxy_run_options(
	const struct hx_config *config, const struct hx_config_proxy_route *route,
	struct hapax_run_options *ret_options);

/* How the memory is divided. 0: no limit; for limit: unknown. */
struct hx_config_memory_plan {
	uint64_t limit;
	uint64_t listeners;
	uint64_t store;
};

/* detected comes from hx_memory_limit(); memory.limit overrules it if set. */
void hx_config_memory_plan(
	const struct hx_config *config, uint64_t detected, struct hx_config_memory_plan *ret_plan);

/* The options for hapax_store_open(). bytes_max: hx_config_memory_plan.store. */
void hx_config_store_options(
	const struct hx_config *config, uint64_t bytes_max,
	struct hapax_store_options *ret_options);

/*
 * The TLS options of a door, pointing into config. False: it does not use TLS. No door uses TLS on
 * a unix socket: its traffic cannot be intercepted, and its mode controls access.
 */
bool hx_config_tls_options(
	const struct hx_config *config, enum hx_config_tls_index index,
	struct hx_tls_options *ret_options);

/* Where listen opens the door. */
const struct hx_config_door *hx_config_door_of(
	const struct hx_config *config, enum hx_config_tls_index index);

/* Does listen open the door, and not on a unix socket? A service manager may pass other sockets. */
bool hx_config_listens_by_tcp(const struct hx_config *config, enum hx_config_tls_index index);

/* "gateway", "resp", ... */
const char *hx_config_tls_name(enum hx_config_tls_index index);

/*
 * Do a and b differ in a setting that only a restart changes (doors, store, loops)? setting is then
 * the first one: "listen.gateway".
 */
bool hx_config_needs_restart(
	const struct hx_config *a, const struct hx_config *b, char setting[HX_CONFIG_SETTING_SIZE]);

/*
 * Do a and b differ in a setting that only the operator's files change (HX_SETTING_FILE_ONLY): one
 * that names a host, a file or a command, or grants access? setting is then the first one:
 * "outbox.sink", "gateway.routes[0].upstream".
 */
bool hx_config_needs_file(
	const struct hx_config *a, const struct hx_config *b, char setting[HX_CONFIG_SETTING_SIZE]);

/* Do a and b agree under name, such as "outbox"? */
bool hx_config_is_same(const struct hx_config *a, const struct hx_config *b, const char *name);

/*
 * Are two consumers the same, including values from their scopes? Then one that runs as a need not
 * be stopped to run as b.
 */
bool hx_config_consumer_is_same(
	const struct hx_config_consumer *a, const struct hx_config_consumer *b);

/*
 * The config in force. Each loop keeps its own and polls hx_config_current_is(), which costs one
 * load. Runs in progress keep the config that they began with.
 */
struct hx_config_current {
	struct hx_lock lock;
	_Atomic(struct hx_config *) config;
};

/* Takes over the caller's ownership of config. */
void hx_config_current_init(struct hx_config_current *current, struct hx_config *config);
void hx_config_current_done(struct hx_config_current *current);

/* Is config, which the caller keeps, still in force? */
static inline bool hx_config_current_is(
	const struct hx_config_current *current, const struct hx_config *config)
{
	return atomic_load_explicit(&current->config, memory_order_relaxed) == config;
}

/* The config in force, kept for the caller, who releases it. */
struct hx_config *hx_config_current_keep(struct hx_config_current *current);

/* Replace the config in force with config; takes over its ownership. */
void hx_config_current_swap(struct hx_config_current *current, struct hx_config *config);

#endif
