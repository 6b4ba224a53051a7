/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_service.h - state that all sessions of the Redis door share: the store, the users, the
 * permissions, and counters for INFO.
 *
 * Threads: any, once it is made; the members that change are atomic or behind the lock.
 */
#ifndef HX_RESP_RESP_SERVICE_H
#define HX_RESP_RESP_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/clock.h>
#include <hapax/store.h>

#include "base/budget.h"
#include "base/sha256.h"
#include "base/thread.h"
#include "resp/resp_script.h"

struct hx_resp_session;

/* The version reported to clients: they choose features by it. */
#define HX_RESP_REDIS_VERSION "7.0.15"

/* A user, and the scope of the user's keys. Borrowed texts. */
struct hx_resp_user {
	struct hapax_bytes name;
	unsigned char password_sha256[HX_SHA256_SIZE];
	struct hapax_bytes tenant; /* empty: default; the same for group */
	struct hapax_bytes group;
};

enum hx_resp_service_flag {
	HX_RESP_ALLOW_FLUSH = 1 << 0,   /* enables FLUSHDB and FLUSHALL */
	HX_RESP_TEST_COMMANDS = 1 << 1, /* FUNCTION FLUSH and DEBUG LOG exist, and do nothing */
};

/* A key was resolved or removed by hand, or all keys were removed. Borrowed texts. */
struct hx_resp_change {
	const char *action;      /* "forget", "forget.force", "resolve", "flush" */
	struct hapax_bytes user; /* empty: no users are configured */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key; /* empty: all keys of the scope */
};

/* Threads: the session's. */
typedef void hx_resp_change_fn(const struct hx_resp_change *change, void *context);

/* The settings of a scope, used if a command sets none; zeros are the store's defaults. */
struct hx_resp_scope {
	int64_t lease_ms;
	int64_t ttl_ms;
	enum hapax_on_lapse on_lapse;
};

/* Threads: the session's. Neither name is empty. */
typedef void hx_resp_scope_fn(
	struct hapax_bytes tenant, struct hapax_bytes group, struct hx_resp_scope *ret_scope,
	void *context);

struct hx_resp_service_options {
	struct hapax_store *store;
	struct hx_budget *budget;         /* for the memory of sessions; NULL: no limit */
	const struct hapax_clock *clock;  /* NULL: the system's */
	unsigned flags;                   /* enum hx_resp_service_flag */
	const struct hx_resp_user *users; /* none: every client is admitted, with default/default */
	size_t user_count;
	uint64_t value_size_max;    /* larger values are refused; the store's result_size_max */
	uint64_t bytes_max;         /* of the store, for CONFIG GET; 0: no limit */
	enum hapax_evict evict;     /* of the store, for CONFIG GET and INFO */
	unsigned port;              /* for INFO; 0: a unix socket */
	hx_resp_change_fn *changed; /* NULL: changes are not reported */
	hx_resp_scope_fn *scope;    /* NULL: scopes have no settings */
	void *context;
};

/* Limit of open scans; the least recently used one is evicted. */
enum { HX_RESP_SCANS_MAX = 64 };

struct hx_resp_kept_scan {
	uint64_t id; /* 0: free */
	uint64_t used;
	bool has_gone_on; /* under a new number: only a client that lost that one asks again */
	struct hapax_cursor cursor;
};

/* Scripts that clients have sent, by SHA-1; the oldest is evicted. */
enum { HX_RESP_SCRIPTS_MAX = 64 };

struct hx_resp_known_script {
	char sha1[HX_RESP_SHA1_DIGITS];
	const struct hx_resp_script *script; /* NULL: free */
};

struct hx_resp_service {
	struct hx_resp_service_options options;
	int64_t started_ms;
	bool is_local; /* the store is in this process: its counters are available at once */
	_Atomic int64_t skew_ms; /* the store's clock minus the wall clock */
	_Atomic uint64_t last_client_id;
	_Atomic uint64_t clients;
	_Atomic uint64_t connections; /* since the start; the same for commands */
	_Atomic uint64_t commands;
	_Atomic uint64_t hits;
	_Atomic uint64_t misses;

	struct hx_mutex lock;
	struct hx_resp_session *first_client; /* Locks: lock, as the links, names and users */
	uint64_t scan_count;                  /* Locks: lock, as scans */
	struct hx_resp_kept_scan scans[HX_RESP_SCANS_MAX];
	uint64_t script_count; /* Locks: lock, as scripts */
	struct hx_resp_known_script scripts[HX_RESP_SCRIPTS_MAX];
};

/* Copies options; the data they point at must outlive the service. Asks the store for its clock. */
void hx_resp_service_init(
	struct hx_resp_service *service, const struct hx_resp_service_options *options);
void hx_resp_service_done(struct hx_resp_service *service);

/* Sets the store's clock minus this machine's, as last measured. */
void hx_resp_service_set_skew(struct hx_resp_service *service, int64_t skew_ms);

/* The time by the store's clock, as far as it is known. */
int64_t hx_resp_service_now_ms(const struct hx_resp_service *service);

/* The size limit of an argument: the largest stored value, with room for any other argument. */
static inline size_t hx_resp_service_bulk_size_max(const struct hx_resp_service *service)
{
	uint64_t value_max = service->options.value_size_max;

	return value_max > 1024 * 1024 ? (size_t)value_max : 1024 * 1024;
}

/* The user with this name and password; NULL: none. A wrong name takes the same time. */
const struct hx_resp_user *hx_resp_service_find_user(
	const struct hx_resp_service *service, struct hapax_bytes name,
	struct hapax_bytes password);

/*
 * A scan is kept under a number between two SCAN calls. take: false if the number is unknown.
 * leave: the scan has continued from there, or ended. keep: returns the number.
 */
bool hx_resp_service_take_scan(
	struct hx_resp_service *service, uint64_t id, struct hapax_cursor *ret_cursor);
void hx_resp_service_leave_scan(struct hx_resp_service *service, uint64_t id);
uint64_t hx_resp_service_keep_scan(
	struct hx_resp_service *service, const struct hapax_cursor *cursor);

/* Remembers, and finds, the script with this SHA-1, in 40 digits. NULL: unknown. */
void hx_resp_service_learn(
	struct hx_resp_service *service, const char *digits, const struct hx_resp_script *script);
const struct hx_resp_script *hx_resp_service_recall(
	struct hx_resp_service *service, struct hapax_bytes digits);

#endif
