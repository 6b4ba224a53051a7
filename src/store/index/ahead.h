/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h - memory made ready before it is needed.
 *
 * The kernel fills a huge page with zeros when it is first touched. This takes 0.15 ms, or some
 * milliseconds if a hypervisor has to find the memory first. A thread of the index touches the
 * next page while there is room in the last, so that no request waits for it. Without the thread
 * everything works, but requests wait.
 */
#ifndef HX_STORE_INDEX_AHEAD_H
#define HX_STORE_INDEX_AHEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/thread.h"

struct hx_index;

/* Memory that was made usable, and not touched yet. */
struct hx_ahead_pages {
	void *at;
	size_t bytes;
};

struct hx_ahead {
	struct hx_thread thread;
	struct hx_ratchet asked; /* how often */
	_Atomic bool stops;
	bool runs;
};

/* Start the thread. The index is loaded. */
enum hapax_status hx_ahead_start(struct hx_index *index, struct hapax_error *err);

/* Does nothing if the thread was not started. */
void hx_ahead_stop(struct hx_index *index);

/*
 * Ask the thread to check for a memory shortage. Locks: that of the shard that may be short. The
 * thread takes it also, so it runs only after the caller is done.
 */
static inline void hx_ahead_ask(struct hx_ahead *ahead)
{
	hx_ratchet_raise(&ahead->asked, hx_ratchet_value(&ahead->asked) + 1);
}

#endif
