/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.h - what /livez, /readyz, /healthz, /startupz and /actuator/deduplication say.
 *
 * Renderers: who asks, and how the facts are found, is the door's business.
 *
 * Threads: any.
 */
#ifndef HX_HEALTH_H
#define HX_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/store.h>

/* A part of the daemon that can be well or not: "store", "upstream", "drain". */
struct hx_health_component {
	const char *name;
	bool is_ok;
	/* When it is not, the answer is 200 all the same; it is told. */
	bool is_optional;
	const char *reason; /* why it is not, or what is to be said though it is; NULL: nothing */
};

enum hx_health_form {
	HX_HEALTH_SHORT,   /* text/plain: "ok", or the first reason */
	HX_HEALTH_VERBOSE, /* text/plain: a line for each component, as Kubernetes has it */
	HX_HEALTH_JSON,    /* application/json */
};

/* What to send as Content-Type. */
const char *hx_health_content_type(enum hx_health_form form);

/* Whether all that are not optional are ok: then the status is 200, else 503. */
bool hx_health_is_ok(const struct hx_health_component *components, size_t count);

/* Which form a request asks for: "verbose" in the query, JSON in Accept. */
enum hx_health_form hx_health_form_of(struct hapax_bytes query, struct hapax_bytes accept);

/*
 * Leave out of components those that the query excludes ("exclude=store&exclude=..."),
 * in place. Returns how many are left.
 */
size_t hx_health_exclude(
	struct hx_health_component *components, size_t count, struct hapax_bytes query);

/* Append the body. probe: "livez", "readyz", "healthz", "startupz". */
enum hapax_status hx_health_render(
	const char *probe, const struct hx_health_component *components, size_t count,
	enum hx_health_form form, struct hapax_buf *out);

/*
 * Append the body of /actuator/deduplication (D6), a JSON object with the members
 * requestCount, hitCount, missCount, hitRate and evictionCount: requests are decisions,
 * hits what was answered as a duplicate, misses what was acquired.
 */
enum hapax_status hx_health_deduplication_render(
	const struct hapax_stats *stats, struct hapax_buf *out);

#endif
