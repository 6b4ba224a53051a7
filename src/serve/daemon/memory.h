/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - how the daemon's memory is divided, and what all doors together use of it.
 *
 * Threads: the budgets any, the rest the control loop's.
 */
#ifndef HX_SERVE_DAEMON_MEMORY_H
#define HX_SERVE_DAEMON_MEMORY_H

#include "base/budget.h"
#include "config/config.h"

struct hx_log;

enum { HX_MEMORY_SCRATCH_MIN = 8 * 1024 * 1024 };

struct hx_memory {
	struct hx_config_memory_plan plan; /* as of the start, but for listeners */
	struct hx_budget listeners;        /* requests, replies, transactions, batches */
	struct hx_budget files;            /* bodies in temporary files */
};

/* At the start: find out what there is. */
void hx_memory_plan(struct hx_memory *memory, const struct hx_config *config);

/* After a reload: the limits of now; the store keeps what it was opened with. */
void hx_memory_configure(struct hx_memory *memory, const struct hx_config *config);

/*
 * The most that one reader of large bodies may take while it reads one: what all doors
 * have, between HX_MEMORY_SCRATCH_MIN and size_max. More is too large. Threads: any.
 */
size_t hx_memory_scratch_max(const struct hx_memory *memory, size_t size_max);

/* The table, as one line. */
void hx_memory_say(const struct hx_memory *memory, struct hx_log *log);

#endif
