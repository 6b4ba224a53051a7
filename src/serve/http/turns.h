/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h - whose body is read next: each address has its part, byte for byte.
 *
 * The virtual time is how many bytes each address would have had by now if all that have
 * something waiting were read side by side. A body begins when it comes, or where the one before
 * it of its address ends, and ends its size later; the one that would end first is next. So a
 * small body of an address that has nothing else overtakes the large ones of however many others,
 * and none waits for ever: time goes on with whatever is read, by its size divided by how many
 * share it, and what comes later than a body's end is behind it. So at most its own size is read
 * before it of each that waits, and HX_TURNS_LEFT_MAX times its size of those that are gone.
 *
 *	hx_turns_ask(&turns, &turn, size); ... turn = hx_turns_take(&turns, may_read, arg);
 *	(read it) hx_turns_leave(&turns, turn);
 *
 * Threads: one at a time.
 */
#ifndef HX_SERVE_HTTP_TURNS_H
#define HX_SERVE_HTTP_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of what was read, how many ends are remembered; with more, time goes a little faster. */
enum { HX_TURNS_LEFT_MAX = 16 };

struct hx_turn {
	uint64_t who; /* set by the caller: its address, as a hash */
	uint64_t begin;
	uint64_t end;
	struct hx_turn *next;
};

struct hx_turns {
	struct hx_turn *waiting; /* in the order in which they came */
	size_t waiting_count;
	struct hx_turn *reading;
	uint64_t now;                     /* the virtual time */
	uint64_t left[HX_TURNS_LEFT_MAX]; /* ends of what was read before its time came */
	size_t left_count;
};

typedef bool hx_turns_may_fn(void *arg, const struct hx_turn *turn);

/* All zero is empty. The turn stays where it is until it has left. */
void hx_turns_ask(struct hx_turns *turns, struct hx_turn *turn, uint64_t size);

/* What was taken waits once more, for the same. */
void hx_turns_ask_again(struct hx_turns *turns, struct hx_turn *turn);

/* Of those that may, the next; it is being read from now on. NULL: none. */
struct hx_turn *hx_turns_take(struct hx_turns *turns, hx_turns_may_fn *may, void *arg);

/* What was taken is not read any more. */
void hx_turns_leave(struct hx_turns *turns, struct hx_turn *turn);

/* How many are being read; of who, or of everybody. */
size_t hx_turns_reading_of(const struct hx_turns *turns, uint64_t who);
size_t hx_turns_reading(const struct hx_turns *turns);

#endif
