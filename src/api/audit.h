/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h - every administrative change: caller, action, time, and previous state.
 *
 * Entries are lines of JSON. The last ones are kept in memory, for GET /audit. All of them go to
 * the log, or to an audit file if one is configured.
 *
 * Threads: the reactor's; the worker writes the file.
 */
#ifndef HX_API_AUDIT_H
#define HX_API_AUDIT_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/record.h>

#include "base/buf.h"

struct hx_api;
struct hx_api_request;
struct hx_json_write;

enum { HX_AUDIT_ENTRIES_MAX = 1000, HX_AUDIT_ENTRY_SIZE_MAX = 4096 };

struct hx_audit {
	char **lines;    /* [number % HX_AUDIT_ENTRIES_MAX]; NULL until the first */
	uint64_t number; /* of the last entry; the first is 1 */
};

/* One change. Empty and NULL: not applicable. */
struct hx_audit_entry {
	const char *action;  /* "forget", "flush", "resolve", "gc", "stats.reset", "config.patch" */
	const char *outcome; /* "applied", "busy", "absent", ... */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	const struct hapax_record *before;
	const char *after;         /* a state */
	struct hapax_bytes detail; /* JSON, unchanged */
};

void hx_audit_done(struct hx_audit *audit);

/* client may be "". */
void hx_audit_add(
	struct hx_api *api, const char *who, const char *client,
	const struct hx_audit_entry *entry);

/* The same, for the caller of a request. */
void hx_api_audit_request(struct hx_api_request *request, const struct hx_audit_entry *entry);

/* The same, with a detail that members writes into an object; it is left out if it is long. */
typedef void hx_audit_members_fn(struct hx_json_write *json, const struct hx_api_request *request);
void hx_api_audit_detail(
	struct hx_api_request *request, const char *action, const char *outcome,
	hx_audit_members_fn *members);

#endif
