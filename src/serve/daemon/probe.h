/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - the health that /livez, /readyz and /healthz report, for hx_health_render().
 *
 * Live means only that the loops turn, so that an unavailable store gets no daemon killed. Ready
 * means that requests should come here: the store answers, or its scopes continue without it, and
 * the daemon does not drain. Everything else is reported as optional: without this daemon, a full
 * disk or an absent upstream would still be there. Healthy means ready, and no condition is
 * critical.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_DAEMON_PROBE_H
#define HX_SERVE_DAEMON_PROBE_H

#include <stddef.h>

#include "observe/condition.h"
#include "observe/health.h"

struct hx_serve;
struct hx_store_facts;

enum { HX_PROBE_COMPONENTS_MAX = 7 + HX_CONDITION_COUNT, HX_PROBE_TEXT_SIZE = 640 };

struct hx_probe {
	struct hx_health_component components[HX_PROBE_COMPONENTS_MAX];
	size_t count;
	bool is_store_up; /* it answers; set by hx_probe_ready() */
	struct hx_condition_row conditions[HX_CONDITIONS_MAX]; /* the same */
	size_t condition_count;
	char texts[HX_PROBE_COMPONENTS_MAX][HX_PROBE_TEXT_SIZE]; /* reasons that are made here */
};

/* The loops. */
void hx_probe_live(struct hx_probe *probe, const struct hx_serve *serve);

/* Also the rest: store, clock, journal, outbox, consumers, drain, and parts with a condition. */
void hx_probe_ready(
	struct hx_probe *probe, struct hx_serve *serve, const struct hx_store_facts *facts);

/* After hx_probe_ready(): parts with a critical condition are no longer optional. */
void hx_probe_health(struct hx_probe *probe);

#endif
