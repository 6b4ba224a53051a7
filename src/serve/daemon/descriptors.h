/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.h - limits the connections of the doors, so that descriptors remain.
 *
 * Every client takes a descriptor, and so does its request: a connection to the upstream, a file
 * for a large body, the store's own. If doors took all of them, the daemon could not forward
 * requests, and its admin door would be unreachable. So half of the system's limit, at most
 * HX_DESCRIPTORS_KEPT_MAX, is not for the doors:
 *
 *	limit of the system ─┬─ kept: upstreams, files, store, loops
 *	                     └─ doors ─┬─ an eighth: admin
 *	                               └─ the rest: gateway, proxy, Redis door
 *
 * Configured limits that fit apply; otherwise each door gets its share.
 *
 * Threads: any, once it is made.
 */
#ifndef HX_SERVE_DAEMON_DESCRIPTORS_H
#define HX_SERVE_DAEMON_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observe/metrics/metrics.h"

struct hx_config;
struct hx_logger;

enum { HX_DESCRIPTORS_KEPT_MAX = 4096 };

struct hx_descriptors {
	uint64_t limit;              /* limit of the system */
	uint64_t doors;              /* the part for clients */
	bool is_open[HX_DOOR_COUNT]; /* the doors that exist; admin always counts */
};

/* The caller sets is_open. */
void hx_descriptors_init(struct hx_descriptors *descriptors, uint64_t limit, size_t loop_count);

/* The connections that a door may have under config, on all loops together; never 0. */
uint64_t hx_descriptors_connections(
	const struct hx_descriptors *descriptors, const struct hx_config *config,
	enum hx_door door);

/*
 * The connections that one address may have at a door: its setting, reduced in proportion to the
 * door's own limit, but at least an eighth of that limit. At the admin door it is at most an
 * eighth. 0: no limit.
 */
uint64_t hx_descriptors_per_address(
	const struct hx_descriptors *descriptors, const struct hx_config *config,
	enum hx_door door);

/* Logs it if a door has fewer than configured. */
void hx_descriptors_say(
	const struct hx_descriptors *descriptors, const struct hx_config *config,
	struct hx_logger *log);

#endif
