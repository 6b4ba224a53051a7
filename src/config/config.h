/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - what the daemon was told to do, read once and never changed.
 *
 * A setting comes from the first of: an option of the command line, the environment
 * (HAPAX_LISTEN_GATEWAY, IDEMPOTENCY_TTL), the files, the default. Files are YAML:
 * the one that was named, then conf.d/NAME.yaml beside it in the order of the names;
 * of a setting that several have the last one counts, routes and scopes add up. What
 * can be set, with type, range, default and meaning, is one table (schema.h), from
 * which the reader, `hapax config dump` and `hapax config schema` are made.
 *
 * A config is whole or it is not there: what is unknown, twice or out of range is
 * refused with its place, and a reload that fails leaves the old one in force.
 *
 *	struct hx_config_source source = {.path = "hapax.yaml", .variable = getenv_fn};
 *
 *	if (hx_config_load(&source, &config, faults, &err) != HAPAX_OK)
 *		return refuse(err.message);          "hapax.yaml:3:5: unknown key 'tll' ..."
 *	route = hx_config_route_find(config, path, type, source_attribute);
 *	scope = hx_config_scope_find(config, tenant, group);
 *
 * Threads: a config is immutable, and any number of threads may read it; keep and
 * release from any thread. Everything that it points at lives as long as it does.
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

struct hx_io;

/* Where a door listens. */
struct hx_config_door {
	bool is_off;
	struct hx_endpoint endpoint;
	const char *text; /* as it was written */
};

struct hx_config_listen {
	struct hx_config_door gateway;
	struct hx_config_door proxy;
	struct hx_config_door resp;
	struct hx_config_door admin;
};

/* Doors that may speak TLS; a new one has a row in tls_doors.c, and in schema_tls.c. */
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

/* What a door has of its own; "": as all. */
struct hx_config_tls_door {
	bool enabled;
	const char *certificate;
	const char *key;
	const char *client_ca;
	enum hx_config_client_auth client_auth;
};

/* As it was written; hx_config_tls_options() tells what it comes to. */
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

/* Of a size: it follows from the memory that there is, see hx_config_memory_plan(). */
#define HX_CONFIG_AUTO UINT64_MAX

struct hx_config_memory {
	uint64_t limit;     /* that the rest follows from; or HX_CONFIG_AUTO */
	uint64_t listeners; /* for all doors together; 0: no limit; or HX_CONFIG_AUTO */
};

struct hx_config_store {
	const char *url;    /* never empty */
	bool is_default;    /* nobody named it: its folder may have to be made */
	uint64_t max_bytes; /* 0: no limit, as the next one; or HX_CONFIG_AUTO */
	uint64_t max_keys;
	uint64_t max_keys_per_tenant; /* 0: no limit; see serve/daemon/tenant_keys.h */
	uint64_t max_result;
	uint64_t parked_max;
	uint64_t segment_bytes;
	enum hapax_evict evict;
	enum hx_config_sync sync;
	int64_t unsafe_interval_ms; /* counts only with sync UNSAFE_INTERVAL */
	int64_t max_clock_step_ms;
	int64_t timeout_ms;
	int64_t cleanup_interval_ms;
	const char *journal;       /* of what goes on while it is away; "": nothing does */
	int64_t near_cache_ms;     /* how long what is done is answered from memory; 0: never */
	int64_t max_clock_skew_ms; /* above it /readyz says so */
};

/* Where requests go, and how connections to it are kept. */
struct hx_config_upstream {
	const char *url; /* of routes that name none; "": there is none */
	int64_t connect_timeout_ms;
	int64_t idle_timeout_ms;  /* a pooled connection that nobody uses is closed */
	uint64_t max_connections; /* to one upstream, by all loops together; 0: no limit */
	uint64_t max_idle;        /* of them, kept open by each loop while idle */
};

/* Limits of every HTTP door. Sizes in bytes; a count of 0 is no limit. */
struct hx_config_http {
	uint64_t max_connections;             /* of the gateway, and as many of the proxy */
	uint64_t max_connections_per_address; /* of the peer */
	uint64_t max_requests;                /* in progress at a time, by all loops together */
	uint64_t max_requests_per_address;    /* of these */
	uint64_t max_requests_per_tenant;     /* of these */
	uint64_t max_temp_bytes;              /* of bodies in temporary files, all together */
	uint64_t max_line;                    /* the request line */
	uint64_t max_head;                    /* the request line and all fields */
	uint64_t max_fields;
	uint64_t max_body;
	uint64_t max_body_memory; /* of a body above this the rest goes to a temporary file */
	uint64_t max_batch;       /* events in one request */
	int64_t head_timeout_ms;  /* from the first byte to the end of the head */
	int64_t body_timeout_ms;  /* a credit: each 4 KiB of a body give 1 s back, up to it */
	int64_t send_timeout_ms;  /* with less than 4 KiB of the reply taken each second */
	int64_t idle_timeout_ms;  /* of a connection between two requests */
	const char *const *trusted_proxies;
	size_t trusted_count;
	const struct hx_network *trusted; /* the same, read */
};

enum hx_config_on_store_failure {
	HX_CONFIG_ON_STORE_FAILURE_REFUSE = 0,
	HX_CONFIG_ON_STORE_FAILURE_CONTINUE = 1,
};

/* How long keys of a type of events are kept; the first row that matches counts. */
struct hx_config_type {
	const char *type; /* exact, or a prefix that ends with '*' */
	int64_t ttl_ms;
};

/* Settings of a scope, complete: what was not given is from `defaults`. */
struct hx_config_scope {
	const char *scope;  /* as it was written: "acme/payments" */
	const char *tenant; /* "*": any */
	const char *group;
	bool enabled;   /* false: everything runs, nothing is asked or kept (D7) */
	int64_t ttl_ms; /* or HAPAX_TTL_FOREVER */
	int64_t lease_ms;
	int64_t max_run_ms; /* of HTTP doors: how long an upstream may take */
	int64_t wait_ms;
	enum hapax_on_lapse on_lapse;
	enum hapax_on_mismatch on_mismatch;
	enum hapax_on_missing on_missing;
	enum hx_config_on_store_failure on_store_failure;
	const struct hx_config_type *types;
	size_t type_count;
	struct hx_place place; /* where it is written; of `defaults` nowhere */
};

/* An upstream's URL, taken apart. */
struct hx_config_target {
	bool is_tls;
	struct hx_endpoint endpoint; /* with the scheme's port if none was given */
	const char *authority;       /* for Host */
	const char *path;            /* prepended to paths; "" or "/base", never ends with '/' */
};

enum hx_config_fingerprint {
	HX_CONFIG_FINGERPRINT_DATA = 0, /* SHA-256 of the data */
	HX_CONFIG_FINGERPRINT_NONE = 1, /* a changed payload is not noticed */
};

/* What makes two events or messages the same, and whose keys they are. */
struct hx_config_keying {
	const char *
		key; /* the strategy's text; of messages "": the usual places, see hapax/source.h */
	const char *const *include;
	size_t include_count;
	const char *const *exclude;
	size_t exclude_count;
	enum hapax_canonical canonical;
	enum hx_config_fingerprint fingerprint;
	const char *tenant;      /* "": "default", as group */
	const char *tenant_from; /* "": not from the event, as group_from */
	const char *group;
	const char *group_from;
};

/* What the gateway does with events of some kind. The first route that matches counts. */
struct hx_config_route {
	const char *name;         /* for metrics and logs; unique */
	const char *path;         /* prefix, by whole segments; begins with '/' */
	const char *loose_path;   /* its loosest form */
	const char *const *types; /* exact, or a prefix that ends with '*'; none: every type */
	size_t type_count;
	const char *const *sources; /* the same of the event's source */
	size_t source_count;
	const char *upstream; /* URL; that of `upstream` if it has none of its own */
	struct hx_config_target target;
	struct hx_config_keying keying;
	/* Made of the above and of the scope's on_missing; thread-safe. */
	const struct hapax_key_strategy *strategy;
	/* The scope of every event of the route, or NULL: it comes from the event. */
	const struct hx_config_scope *scope;
	struct hx_place place; /* where it is written; line 0: it was made of `upstream` */
};

/* The answer to the OPTIONS handshake of the webhook specification. */
struct hx_config_webhook {
	const char *const *allowed_origins; /* "*": any; none: no consent is given */
	size_t allowed_origin_count;
	uint64_t allowed_rate; /* requests a minute; 0: "*" */
};

struct hx_config_gateway {
	struct hx_config_webhook webhook;
	const struct hx_config_route *routes; /* with `upstream.url` and no routes: one for "/" */
	size_t route_count;
};

/* Statuses, as they are written: "409", "5xx"; what is exact counts before its class. */
struct hx_config_outcomes {
	const char *const *ok;
	size_t ok_count;
	const char *const *definitive;
	size_t definitive_count;
	const char *const *transient;
	size_t transient_count;
	const char *const *ambiguous;
	size_t ambiguous_count;
};

/* The statuses of a final response. */
enum { HX_CONFIG_STATUS_MIN = 200, HX_CONFIG_STATUS_MAX = 599 };

/* What the proxy does with requests of some paths. The first route that matches counts. */
struct hx_config_proxy_route {
	const char *name;       /* for metrics and logs; unique */
	const char *path;       /* prefix, by whole segments; begins with '/' */
	const char *loose_path; /* its loosest form */
	const char *upstream;   /* URL; that of `upstream` if it has none of its own */
	struct hx_config_target target;
	const char *const *methods; /* whose requests are run once; the others pass */
	size_t method_count;
	const char *header;     /* with the key */
	bool required;          /* requests without a key are refused */
	const char *credential; /* "auto", "none" or "header:NAME" */
	const char *const *credential_cookies;
	size_t credential_cookie_count;
	const char *const *fingerprint_headers; /* that choose an account */
	size_t fingerprint_header_count;
	const char *tenant; /* "": "default", as group */
	const char *group;
	int64_t ttl_ms; /* 0: the scope's */
	int64_t wait_ms;
	enum hapax_on_lapse on_lapse;
	const char *const *replay_headers;
	size_t replay_header_count;
	struct hx_config_outcomes outcomes;
	/* Made of them, by status less STATUS_MIN: enum hapax_run_outcome; -1: as it is by default. */
	const signed char *outcome_table;
	const struct hx_config_scope *scope;
	struct hx_place place; /* where it is written; line 0: it was made of `upstream` */
};

struct hx_config_proxy {
	/* With `upstream.url` and no routes: one for "/". */
	const struct hx_config_proxy_route *routes;
	size_t route_count;
};

/* Who may come in by the Redis protocol. */
struct hx_config_resp_user {
	const char *name;
	const char *password_sha256; /* 64 digits */
	const char *tenant;          /* "": "default", as group */
	const char *group;
	struct hx_place place;
};

struct hx_config_resp {
	uint64_t max_connections; /* 0: no limit, as the next one */
	uint64_t max_connections_per_address;
	int64_t idle_timeout_ms; /* since the last whole command; 0: none */
	bool allow_flush;
	bool test_commands;
	const struct hx_config_resp_user *users; /* none: everybody */
	size_t user_count;
};

/*
 * Messages of a broker, taken by the daemon and handed to a service or a command, each once.
 * What is not written here is as the scope says.
 */
struct hx_config_consumer {
	const char *name; /* for metrics, logs and reloads; unique */
	const char *from; /* URL of the source */
	const char *to;   /* URL of the service; "": exec */
	const char *exec; /* a line for sh -c; "": to */
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
	const char *dead_letter; /* "": the topic and .dead; "off": none */
	enum hapax_on_duplicate on_duplicate;
	const char *divert; /* "": the topic and .duplicate */
	/* Made of the above and of the scope; the rest of key_options and run is zero. */
	struct hapax_key_options key_options;
	struct hapax_run_options run;
	struct hx_place place;
};

/* What somebody may do; each may do what the one before it may. */
enum hx_config_role {
	HX_CONFIG_ROLE_READ = 0,
	HX_CONFIG_ROLE_WRITE = 1,
	HX_CONFIG_ROLE_ADMIN = 2,
};

/* Who may come in by Authorization: Bearer. The token itself is kept nowhere. */
struct hx_config_token {
	const char *name;
	const char *hash; /* sha256: and 64 digits */
	enum hx_config_role role;
	const char *tenant;                   /* "": all */
	unsigned char sha256[HX_SHA256_SIZE]; /* of hash */
	struct hx_place place;
};

/* Who may come in by a certificate, which TLS has verified. */
struct hx_config_certificate {
	const char *name;
	const char *fingerprint; /* sha256: and 64 digits; "": by its subject */
	const char *subject;     /* "CN=billing,O=Acme" (RFC 4514); "": by its fingerprint */
	enum hx_config_role role;
	const char *tenant;                   /* "": all */
	unsigned char sha256[HX_SHA256_SIZE]; /* of fingerprint */
	struct hx_place place;
};

struct hx_config_auth {
	bool open_metrics;     /* GET /metrics needs no token */
	uint64_t max_failures; /* wrong credentials of one address in a minute; 0: no limit */
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
	uint64_t rate;              /* lines a second of one kind; 0: no limit */
	uint64_t duplicate_percent; /* duplicate_watch.h; 0: never */
	const char *audit;          /* the file of administrative changes; "": the log */
};

struct hx_config_metrics {
	bool aliases;        /* the documents' own names, too */
	uint64_t max_scopes; /* with a label of their own; the rest is "other" */
	uint64_t max_event_types;
};

/* In sample_billionths: all. */
#define HX_CONFIG_SHARE_WHOLE UINT64_C(1000000000)

/* Spans of events, sent to a collector. */
struct hx_config_traces {
	const char *endpoint;           /* URL; "": there is none */
	struct hx_config_target target; /* of endpoint, if there is one */
	const char *sample;             /* from 0 to 1, as it was written */
	uint64_t sample_billionths;     /* the same */
	const char *service_name;
	const char *headers_file; /* "": none */
	int64_t timeout_ms;
};

/* Rows of an outbox that this daemon publishes. */
struct hx_config_outbox {
	const char *url;  /* of the database; "": there is none */
	const char *sink; /* where to; not empty when url is not */
	const char *source;
	uint64_t batch;
	uint64_t attempts;
	int64_t lease_ms;
	int64_t retry_ms;
	int64_t retry_max_ms;
};

struct hx_config_drain {
	int64_t delay_ms;   /* not ready any more, but still serving */
	int64_t timeout_ms; /* then requests in progress are given up */
};

/* Lists end in order of the files; see each struct. */
struct hx_config {
	bool enabled;   /* false: every scope is as if it were not enabled */
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

/* An option of the command line that stands for a setting. */
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
 * What runtime says of a setting ("log.level") does not count: by, a variable, an option or
 * a file, has more weight.
 */
typedef void hx_config_overruled_fn(const char *setting, const char *by, void *context);

/* Where settings come from. A struct of zeros: from nowhere, all are defaults. */
struct hx_config_source {
	const char *path; /* NULL: no file; conf.d is looked for beside it */
	/* In place of what the file has, which is not opened then; nor is conf.d. */
	const struct hapax_bytes *text;
	/* In place of conf.d/99-runtime.yaml, whether that is there or not; or NULL. */
	const struct hapax_bytes *runtime;
	hx_config_overruled_fn *overruled; /* of what runtime says; NULL: nobody asks */
	void *context;
	const struct hx_io *io;          /* NULL: the system's */
	hx_config_variable_fn *variable; /* NULL: no environment; an empty one is absent */
	const struct hx_config_option *options;
	size_t option_count;
};

/*
 * Read, check and complete a config. INVALID: something is wrong with it; err has the
 * first fault, and faults, unless NULL, one line for each as far as they fit, as
 * "FILE:LINE:COLUMN: TEXT". UNAVAILABLE: a file could not be read. Blocks on files.
 *
 * Owned: *ret_config, by the caller, who releases it.
 */
enum hapax_status hx_config_load(
	const struct hx_config_source *source, struct hx_config **ret_config,
	struct hapax_buf *faults, struct hapax_error *err);

/* Room for the name of any setting, and of its variable. */
enum { HX_CONFIG_SETTING_SIZE = 96 };

/* Whether there is a setting "listen.gateway" that an option can stand for. */
bool hx_config_has_setting(const char *setting);

/*
 * Whether a setting has the variable name, which begins with HAPAX_. If not, near is the
 * one that was probably meant, or "".
 */
bool hx_config_knows_variable(const char *name, char near[HX_CONFIG_SETTING_SIZE]);

/* One more owner. Returns config. */
struct hx_config *hx_config_keep(struct hx_config *config);

/* One owner less; the last one frees it. NULL is allowed. */
void hx_config_release(struct hx_config *config);

/*
 * Which file to read when none is named: the first that exists of
 * $CONFIGURATION_DIRECTORY, $XDG_CONFIG_HOME/hapax (~/.config/hapax) and /etc/hapax, in
 * each hapax.yaml. False: there is none. path has HX_CONFIG_PATH_SIZE bytes.
 */
enum { HX_CONFIG_PATH_SIZE = 4096 };
bool hx_config_find(
	const struct hx_io *io, hx_config_variable_fn *variable, char path[HX_CONFIG_PATH_SIZE]);

/* The first route that matches, or NULL. path is that of the request, without its query. */
const struct hx_config_route *hx_config_route_find(
	const struct hx_config *config, struct hapax_bytes path, struct hapax_bytes type,
	struct hapax_bytes source);

/* The first route of the proxy that matches, or NULL. */
const struct hx_config_proxy_route *hx_config_proxy_route_find(
	const struct hx_config *config, struct hapax_bytes path);

/*
 * Whether a path and its loosest form (wire/http1/http_path.h) have the same route, at the gateway
 * whatever the event is: a service finds no other one than we.
 */
bool hx_config_routes_agree(
	const struct hx_config *config, struct hapax_bytes path, struct hapax_bytes loosest);
bool hx_config_proxy_routes_agree(
	const struct hx_config *config, struct hapax_bytes path, struct hapax_bytes loosest);

/* A tenant or a group as a config has it: "default" for "". */
struct hapax_bytes hx_config_scope_part(const char *text);

/*
 * The settings of a scope, whose names are not empty: the first row that matches, else
 * `defaults`. Never NULL.
 */
const struct hx_config_scope *hx_config_scope_find(
	const struct hx_config *config, struct hapax_bytes tenant, struct hapax_bytes group);

/*
 * Leases below store.timeout: an answer may come when the claim is over, and then it is asked
 * for again. row counts from 0; of these, a scope (where it is "defaults" or as it was written)
 * or a consumer. False: there are no more.
 */
struct hx_config_short_lease {
	const char *what; /* "scope", "consumer" */
	const char *name;
	int64_t lease_ms;
};
bool hx_config_short_lease(
	const struct hx_config *config, size_t *row, struct hx_config_short_lease *ret);

/* How long keys of events of this type are kept there. */
int64_t hx_config_ttl_ms(const struct hx_config_scope *scope, struct hapax_bytes type);

/* What the processor needs to know for an event of this type; max_result is the store's. */
void hx_config_run_options(
	const struct hx_config *config, const struct hx_config_scope *scope,
	struct hapax_bytes type, struct hapax_run_options *ret_options);

/* The same for a request that has a key, or has none and passes, on a route of the proxy. */
void hx_config_proxy_run_options(
	const struct hx_config *config, const struct hx_config_proxy_route *route,
	struct hapax_run_options *ret_options);

/* What hapax_store_open() needs to know. */
/* How the memory is divided. Each 0: no limit, or of limit: not known. */
struct hx_config_memory_plan {
	uint64_t limit;
	uint64_t listeners;
	uint64_t store;
};

/* detected is what hx_memory_limit() says; it counts unless memory.limit is set. */
void hx_config_memory_plan(
	const struct hx_config *config, uint64_t detected, struct hx_config_memory_plan *ret_plan);

/* bytes_max: hx_config_memory_plan.store. */
void hx_config_store_options(
	const struct hx_config *config, uint64_t bytes_max,
	struct hapax_store_options *ret_options);

/*
 * What tls says for a door. False: it speaks no TLS. What is returned points into config. On a
 * unix socket no door speaks TLS: nobody listens in between, and its mode says who may connect.
 */
bool hx_config_tls_options(
	const struct hx_config *config, enum hx_config_tls_index index,
	struct hx_tls_options *ret_options);

/* Whether listen opens the door, and on no unix socket. A service manager may hand over others. */
bool hx_config_listens_by_tcp(const struct hx_config *config, enum hx_config_tls_index index);

/* "gateway", "resp", ... */
const char *hx_config_tls_name(enum hx_config_tls_index index);

/*
 * Whether a and b differ in what only a restart changes (doors, store, loops). setting is
 * then the first one: "listen.gateway".
 */
bool hx_config_needs_restart(
	const struct hx_config *a, const struct hx_config *b, char setting[HX_CONFIG_SETTING_SIZE]);

/*
 * Whether a and b differ in what only the operator's files change (HX_SETTING_FILE_ONLY): what
 * names a host, a file or a command, and who may ask for what. setting is then the first one:
 * "outbox.sink", "gateway.routes[0].upstream".
 */
bool hx_config_needs_file(
	const struct hx_config *a, const struct hx_config *b, char setting[HX_CONFIG_SETTING_SIZE]);

/* Whether a and b say the same under name, such as "outbox". */
bool hx_config_is_same(const struct hx_config *a, const struct hx_config *b, const char *name);

/*
 * Whether two consumers are the same, with what they have from their scopes: then one that
 * runs as a need not be stopped to run as b.
 */
bool hx_config_consumer_is_same(
	const struct hx_config_consumer *a, const struct hx_config_consumer *b);

/*
 * The config that is in force. Each loop keeps one of its own and asks
 * hx_config_current_is() now and then, which costs a load; runs that have begun keep the
 * one that they began with.
 */
struct hx_config_current {
	struct hx_lock lock;
	_Atomic(struct hx_config *) config;
};

/* Takes over the caller's ownership of config. */
void hx_config_current_init(struct hx_config_current *current, struct hx_config *config);
void hx_config_current_done(struct hx_config_current *current);

/* Whether config, which the caller keeps, is in force still. */
static inline bool hx_config_current_is(
	const struct hx_config_current *current, const struct hx_config *config)
{
	return atomic_load_explicit(&current->config, memory_order_relaxed) == config;
}

/* The one in force, kept for the caller, who releases it. */
struct hx_config *hx_config_current_keep(struct hx_config_current *current);

/* Put config, whose ownership goes over, in the place of what was in force. */
void hx_config_current_swap(struct hx_config_current *current, struct hx_config *config);

#endif
