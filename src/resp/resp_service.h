/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_service.h - what all sessions of the Redis door share: the store, who may come in,
 * what is allowed, and a few numbers for INFO.
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

/* What clients are told that this is: they choose what they use by it. */
#define HX_RESP_REDIS_VERSION "7.0.15"

/* Who may come in, and whose keys are then meant. Borrowed texts. */
struct hx_resp_user {
	struct hapax_bytes name;
	unsigned char password_sha256[HX_SHA256_SIZE];
	struct hapax_bytes tenant; /* empty: default, as group */
	struct hapax_bytes group;
};

enum hx_resp_service_flag {
	HX_RESP_ALLOW_FLUSH = 1 << 0,   /* FLUSHDB and FLUSHALL do something */
	HX_RESP_TEST_COMMANDS = 1 << 1, /* FUNCTION FLUSH and DEBUG LOG are there, and do nothing */
};

/* Somebody has decided about a key by hand, or removed it, or all of them. Borrowed texts. */
struct hx_resp_change {
	const char *action;      /* "forget", "forget.force", "resolve", "flush" */
	struct hapax_bytes user; /* empty: everybody */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key; /* empty: all of the scope */
};

/* Threads: the session's. */
typedef void hx_resp_change_fn(const struct hx_resp_change *change, void *context);

/* What a scope has settings for, where a command says nothing; zeros are the store's defaults. */
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
	struct hx_budget *budget;         /* of what sessions hold in memory; NULL: no limit */
	const struct hapax_clock *clock;  /* NULL: the system's */
	unsigned flags;                   /* enum hx_resp_service_flag */
	const struct hx_resp_user *users; /* none: everybody is let in, and has default/default */
	size_t user_count;
	uint64_t value_size_max;    /* larger values are refused; the store's result_size_max */
	uint64_t bytes_max;         /* of the store, for CONFIG GET; 0: no limit */
	enum hapax_evict evict;     /* of the store, for CONFIG GET and INFO */
	unsigned port;              /* for INFO; 0: a unix socket */
	hx_resp_change_fn *changed; /* NULL: nobody keeps an account of it */
	hx_resp_scope_fn *scope;    /* NULL: scopes have no settings */
	void *context;
};

/* How many scans may be on their way at a time; the one that was heard of least lately is forgotten. */
enum { HX_RESP_SCANS_MAX = 64 };

struct hx_resp_kept_scan {
	uint64_t id; /* 0: free */
	uint64_t used;
	bool has_gone_on; /* from here to another number: only who lost that one asks again */
	struct hapax_cursor cursor;
};

/* Scripts that were sent, by the SHA-1 of their text; the oldest one is forgotten. */
enum { HX_RESP_SCRIPTS_MAX = 64 };

struct hx_resp_known_script {
	char sha1[HX_RESP_SHA1_DIGITS];
	enum hx_resp_script script;
};

struct hx_resp_service {
	struct hx_resp_service_options options;
	int64_t started_ms;
	bool is_local;           /* the store is in this process: its numbers can be had at once */
	_Atomic int64_t skew_ms; /* the store's clock minus the wall clock */
	_Atomic uint64_t last_client_id;
	_Atomic uint64_t clients;
	_Atomic uint64_t connections; /* since the start, as commands */
	_Atomic uint64_t commands;
	_Atomic uint64_t hits;
	_Atomic uint64_t misses;

	struct hx_mutex lock;
	uint64_t scan_count; /* Locks: lock, as scans */
	struct hx_resp_kept_scan scans[HX_RESP_SCANS_MAX];
	uint64_t script_count; /* Locks: lock, as scripts */
	struct hx_resp_known_script scripts[HX_RESP_SCRIPTS_MAX];
};

/* options is copied; what it points at stays until done. Asks the store for its clock. */
void hx_resp_service_init(
	struct hx_resp_service *service, const struct hx_resp_service_options *options);
void hx_resp_service_done(struct hx_resp_service *service);

/* The store's clock minus this machine's, as was heard last. */
void hx_resp_service_set_skew(struct hx_resp_service *service, int64_t skew_ms);

/* Now, by the store's clock as far as it is known. */
int64_t hx_resp_service_now_ms(const struct hx_resp_service *service);

/* Of an argument: any value that may be stored, and whatever else a command may say. */
static inline size_t hx_resp_service_bulk_size_max(const struct hx_resp_service *service)
{
	uint64_t value_max = service->options.value_size_max;

	return value_max > 1024 * 1024 ? (size_t)value_max : 1024 * 1024;
}

/* Whose name and password these are; NULL: nobody's. Takes as long for a wrong name. */
const struct hx_resp_user *hx_resp_service_find_user(
	const struct hx_resp_service *service, struct hapax_bytes name,
	struct hapax_bytes password);

/*
 * A scan is kept under a number between two SCAN. take: false if the number is not known.
 * leave: it has gone on from there, or come to its end. keep: returns the number.
 */
bool hx_resp_service_take_scan(
	struct hx_resp_service *service, uint64_t id, struct hapax_cursor *ret_cursor);
void hx_resp_service_leave_scan(struct hx_resp_service *service, uint64_t id);
uint64_t hx_resp_service_keep_scan(
	struct hx_resp_service *service, const struct hapax_cursor *cursor);

/* Remember which script has this SHA-1, in 40 lower-case digits; and which one it is. */
void hx_resp_service_learn(
	struct hx_resp_service *service, const char *digits, enum hx_resp_script script);
enum hx_resp_script hx_resp_service_recall(
	struct hx_resp_service *service, struct hapax_bytes digits);

#endif
