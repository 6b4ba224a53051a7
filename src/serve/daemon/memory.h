/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - how the daemon's memory is divided, and what all doors together use of it.
 *
 * Threads: the budgets any, the rest the control loop's.
 */
#ifndef HX_SERVE_DAEMON_MEMORY_H
#define HX_SERVE_DAEMON_MEMORY_H

#include <stdbool.h>

#include "base/budget.h"
#include "config/config.h"

struct hx_logger;

/* Of all readers of large bodies together: the largest body, and a few that are less large. */
enum { HX_MEMORY_READERS_MAX = 384 * 1024 * 1024 };

struct hx_memory {
	struct hx_config_memory_plan plan; /* as of the start, but for listeners */
	struct hx_budget listeners;        /* requests, replies, transactions, batches, readers */
	struct hx_budget readers;          /* of that, what reads large bodies */
	struct hx_budget files;            /* bodies in temporary files */
};

/* At the start: find out what there is. */
void hx_memory_plan(struct hx_memory *memory, const struct hx_config *config);

/* After a reload: the limits of now; the store keeps what it was opened with. */
void hx_memory_configure(struct hx_memory *memory, const struct hx_config *config);

/*
 * What the reading of one large body may take, of so many at a time; SIZE_MAX: no limit. All of
 * them have half of what the doors have, so that they alone never make the daemon refuse
 * work: one of them, the wide one, three quarters of it, the rest is divided. Threads: any.
 */
size_t hx_memory_reader_share(const struct hx_memory *memory, size_t count, bool is_wide);

/*
 * The table, as one line; and a warning if folder, where large bodies are written, is memory
 * itself, which the table does not know of. NULL: /tmp.
 */
void hx_memory_say(const struct hx_memory *memory, const char *folder, struct hx_logger *log);

#endif
