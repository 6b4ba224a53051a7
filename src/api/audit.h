/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h - every administrative change: who, what, when, and how it was before.
 *
 * Entries are lines of JSON. The last ones are kept in memory, for GET /audit; all of them
 * go to the log, or to a file of their own, if there is one.
 *
 * Threads: the reactor's; the file is written by the worker.
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

enum { HX_AUDIT_ENTRIES_MAX = 1000, HX_AUDIT_ENTRY_SIZE_MAX = 4096 };

struct hx_audit {
	char **lines;    /* [number % HX_AUDIT_ENTRIES_MAX]; NULL until the first */
	uint64_t number; /* of the last entry; the first is 1 */
};

/* What was changed. Empty and NULL: it is not about that. */
struct hx_audit_entry {
	const char *action;  /* "forget", "flush", "resolve", "gc", "stats.reset", "config.patch" */
	const char *outcome; /* "applied", "busy", "absent", ... */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	const struct hapax_record *before;
	const char *after;         /* a state */
	struct hapax_bytes detail; /* JSON, as it is */
};

void hx_audit_done(struct hx_audit *audit);

/* client may be "". */
void hx_audit_add(
	struct hx_api *api, const char *who, const char *client,
	const struct hx_audit_entry *entry);

/* The same, by whoever asked. */
void hx_api_audit_request(struct hx_api_request *request, const struct hx_audit_entry *entry);

#endif
