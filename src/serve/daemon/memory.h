/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - divides the daemon's memory, and counts what all doors use of it.
 *
 * Threads: the budgets any, the rest the control loop's.
 */
#ifndef HX_SERVE_DAEMON_MEMORY_H
#define HX_SERVE_DAEMON_MEMORY_H

#include <stdbool.h>

#include "base/budget.h"
#include "config/config.h"

struct hx_logger;

/* For all readers of large bodies: the largest body, and a few smaller ones. */
enum { HX_MEMORY_READERS_MAX = 384 * 1024 * 1024 };

struct hx_memory {
	struct hx_config_memory_plan plan; /* as of the start, except for listeners */
	struct hx_budget listeners;        /* requests, replies, transactions, batches, readers */
	struct hx_budget readers;          /* the part of it that reads large bodies */
	struct hx_budget files;            /* bodies in temporary files */
};

/* At the start: finds out how much memory there is. */
void hx_memory_plan(struct hx_memory *memory, const struct hx_config *config);

/* After a reload: sets the new limits; the store keeps those it was opened with. */
void hx_memory_configure(struct hx_memory *memory, const struct hx_config *config);

/*
 * The memory for reading one large body, of count at a time; SIZE_MAX: no limit. All of them have
 * half of the doors' memory, so that they alone never make the daemon refuse work. The wide one
 * gets three quarters of it; the others share the rest. Threads: any.
 */
size_t hx_memory_reader_share(const struct hx_memory *memory, size_t count, bool is_wide);

/*
 * Logs the table, as one line, and a warning if folder, for large bodies, is itself in memory,
 * which the table does not count. NULL: /tmp.
 */
void hx_memory_say(const struct hx_memory *memory, const char *folder, struct hx_logger *log);

#endif
