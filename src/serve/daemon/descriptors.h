/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.h - how many connections the doors may have, so that descriptors are left.
 *
 * Whoever comes takes one, and so does what is done for them: a connection to the upstream, a
 * file for a large body, the store's own. Doors that took all of them would leave the daemon
 * with requests that it cannot forward and an admin door that nobody gets through. So half of
 * what the system allows, at most HX_DESCRIPTORS_KEPT_MAX, is not for the doors:
 *
 *	what the system allows ─┬─ kept: upstreams, files, store, loops
 *	                        └─ doors ─┬─ an eighth: admin
 *	                                  └─ the rest: gateway, proxy, Redis door
 *
 * Limits of the configuration that fit in there hold; else each door has its part of it.
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
	uint64_t limit;              /* what the system allows */
	uint64_t doors;              /* of these, for those who come */
	bool is_open[HX_DOOR_COUNT]; /* which doors there are; admin counts always */
};

/* is_open is set by the caller. */
void hx_descriptors_init(struct hx_descriptors *descriptors, uint64_t limit, size_t loop_count);

/* The connections that a door may have by config, all loops together; never 0. */
uint64_t hx_descriptors_connections(
	const struct hx_descriptors *descriptors, const struct hx_config *config,
	enum hx_door door);

/*
 * The connections that one address may have of them: its setting, by as much less as the door has
 * less than its own, but no less than an eighth of what it has; of the admin door an eighth at
 * most. 0: no limit.
 */
uint64_t hx_descriptors_per_address(
	const struct hx_descriptors *descriptors, const struct hx_config *config,
	enum hx_door door);

/* Say it in the log, if a door has fewer than config says. */
void hx_descriptors_say(
	const struct hx_descriptors *descriptors, const struct hx_config *config,
	struct hx_logger *log);

#endif
