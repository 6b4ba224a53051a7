/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.h - when memory that readers may still use can be reused.
 *
 * A reader enters before it follows a pointer and leaves when it is done with what it found.
 * Memory that a writer has made unreachable is retired under a stamp. It is free when every
 * reader that was inside at that time has left.
 *
 * Threads: any. A reader that never leaves only keeps memory from being freed.
 */
#ifndef HX_STORE_INDEX_EPOCH_H
#define HX_STORE_INDEX_EPOCH_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

enum { HX_EPOCH_SEATS = 64 };

struct hx_epoch_seat {
	alignas(64) _Atomic uint64_t since; /* 0: empty */
};

struct hx_epoch {
	alignas(64) _Atomic uint64_t now;
	struct hx_epoch_seat seats[HX_EPOCH_SEATS];
};

static inline void hx_epoch_init(struct hx_epoch *epoch)
{
	assert((uintptr_t)epoch % alignof(struct hx_epoch) == 0);
	atomic_init(&epoch->now, 1);
	for (size_t i = 0; i < HX_EPOCH_SEATS; i++)
		atomic_init(&epoch->seats[i].since, 0);
}

/*
 * Take a seat; returns its number for leave. If a writer makes memory unreachable and then finds
 * the seat empty, or with a later time, the reader's later loads see that change. Such a writer
 * raised now before (retire). The last load here follows that in the order of sequentially
 * consistent operations. So it reads what retire wrote or something later, and with it all that
 * came before.
 */
static inline unsigned hx_epoch_enter(struct hx_epoch *epoch)
{
	unsigned seat = hx_thread_id() % HX_EPOCH_SEATS;

	for (;;) {
		uint64_t empty = 0;
		uint64_t now = atomic_load_explicit(&epoch->now, memory_order_relaxed);

		if (atomic_compare_exchange_strong_explicit(
			    &epoch->seats[seat].since, &empty, now, memory_order_seq_cst,
			    memory_order_relaxed)) {
			(void)atomic_load_explicit(&epoch->now, memory_order_seq_cst);
			return seat;
		}
		seat = (seat + 1) % HX_EPOCH_SEATS;
	}
}

static inline void hx_epoch_leave(struct hx_epoch *epoch, unsigned seat)
{
	/* Left once only: the seat may be another reader's by now. */
	assert(atomic_load_explicit(&epoch->seats[seat].since, memory_order_relaxed) != 0);
	atomic_store_explicit(&epoch->seats[seat].since, 0, memory_order_release);
}

/* The stamp for memory made unreachable before this call. */
static inline uint64_t hx_epoch_retire(struct hx_epoch *epoch)
{
	uint64_t stamp = atomic_fetch_add_explicit(&epoch->now, 1, memory_order_seq_cst);

	assert(stamp != 0);
	return stamp;
}

/* Has every reader left that was inside when stamp was issued? */
static inline bool hx_epoch_is_past(struct hx_epoch *epoch, uint64_t stamp)
{
	/* Readers that enter from now on have a later time than stamp. */
	assert(stamp < atomic_load_explicit(&epoch->now, memory_order_relaxed));
	for (size_t i = 0; i < HX_EPOCH_SEATS; i++) {
		uint64_t since = atomic_load_explicit(&epoch->seats[i].since, memory_order_seq_cst);

		if (since != 0 && since <= stamp)
			return false;
	}
	return true;
}

#endif
