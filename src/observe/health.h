/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.h - the bodies of /livez, /readyz, /healthz, /startupz and /actuator/deduplication.
 *
 * It only renders: the door reads the request and collects the facts.
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

struct hx_condition_row;
struct hx_json_write;

/* A part of the daemon that can be healthy or not: "store", "upstream", "drain". */
struct hx_health_component {
	const char *name;
	bool is_ok;
	/* If it is unhealthy, the status is still 200, but it is reported. */
	bool is_optional;
	const char *reason; /* why it is unhealthy, or a remark; NULL: none */
};

enum hx_health_form {
	HX_HEALTH_SHORT,   /* text/plain: "ok", or the first reason */
	HX_HEALTH_VERBOSE, /* text/plain: a line per component, as in Kubernetes */
	HX_HEALTH_JSON,    /* application/json */
};

/* The Content-Type to send. */
const char *hx_health_content_type(enum hx_health_form form);

/* Are all components that are not optional healthy? Then the status is 200, else 503. */
bool hx_health_is_ok(const struct hx_health_component *components, size_t count);

/* The form that a request wants: "verbose" in the query, JSON in Accept. */
enum hx_health_form hx_health_form_of(struct hapax_bytes query, struct hapax_bytes accept);

/*
 * Remove from components those that the query excludes ("exclude=store&exclude=..."), in place.
 * Returns how many are left.
 */
size_t hx_health_exclude(
	struct hx_health_component *components, size_t count, struct hapax_bytes query);

/* What a body says. */
struct hx_health {
	const char *probe; /* "livez", "readyz", "healthz", "startupz" */
	const struct hx_health_component *components;
	size_t count;
	const struct hx_condition_row *conditions; /* NULL: this probe has none */
	size_t condition_count;
};

/* The member "conditions": a list of them. */
void hx_health_write_conditions(
	struct hx_json_write *json, const struct hx_condition_row *rows, size_t count);

/* Append the body. */
enum hapax_status hx_health_render(
	const struct hx_health *health, enum hx_health_form form, struct hapax_buf *out);

/*
 * Append the body of /actuator/deduplication (D6), a JSON object with the members requestCount,
 * hitCount, missCount, hitRate and evictionCount. Requests are decisions, hits are duplicates,
 * misses are acquired claims.
 */
enum hapax_status hx_health_deduplication_render(
	const struct hapax_stats *stats, struct hapax_buf *out);

#endif
