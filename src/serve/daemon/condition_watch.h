/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition_watch.h - looks once a second for conditions that nothing reports.
 *
 * Parts that notice a condition themselves begin and end it (observe/condition.h). The state of
 * the store, the clocks, certificates and limits is looked at here, without a request or a probe.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_DAEMON_CONDITION_WATCH_H
#define HX_SERVE_DAEMON_CONDITION_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct hx_serve;

/* Why the store refuses new keys. */
enum hx_shortage {
	HX_SHORTAGE_NONE,
	HX_SHORTAGE_KEYS,
	HX_SHORTAGE_BYTES,
	HX_SHORTAGE_TENANT,
	HX_SHORTAGE_DISK,
};

/* What it remembers between two looks; begins as zeros. */
struct hx_condition_watch {
	int64_t failed;  /* claims that the store did not answer */
	int64_t refused; /* claims that it had no room for */
	int64_t refused_ns;
	bool is_asking;   /* the store has not answered since */
	int64_t asked_ns; /* the first refusal that it has not answered */
	enum hx_shortage shortage;
	bool is_disk_full; /* the store itself said so */
	uint64_t acquired; /* claims that it had granted when it answered */
	int64_t overloads[2];
	int64_t overload_ns[2]; /* of each, the last one; 0: none */
	int64_t store_ms;       /* the store's clock, when it last moved */
	int64_t moved_ns;
	unsigned looks;
};

void hx_condition_watch_look(struct hx_serve *serve);

/* A new configuration is in force: subjects may be gone. The next look begins those that hold. */
void hx_condition_watch_reload(struct hx_serve *serve);

#endif
