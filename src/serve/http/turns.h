/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h - chooses the next body to read: each address gets an equal share, byte for byte.
 *
 * The virtual time is the number of bytes that each address would have had by now, if all waiting
 * addresses were read side by side. A body begins when it arrives, or at the end of the previous
 * body of its address. It ends its size later. The body that would end first is next. So a small
 * body of an otherwise idle address overtakes the large ones of any number of others.
 *
 * No body waits forever. Every read advances the time by its size divided by the number of sharing
 * addresses, and bodies that arrive after a body's end are behind it. So at most its own size is
 * read before it for each waiting address, and HX_TURNS_LEFT_MAX times its size for addresses that
 * are gone.
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

/* The number of remembered ends of bodies that were read; beyond it, time runs a little faster. */
enum { HX_TURNS_LEFT_MAX = 16 };

struct hx_turn {
	uint64_t who; /* set by the caller: the hash of its address */
	uint64_t begin;
	uint64_t end;
	struct hx_turn *next;
};

struct hx_turns {
	struct hx_turn *waiting; /* in order of arrival */
	size_t waiting_count;
	struct hx_turn *reading;
	uint64_t now;                     /* the virtual time */
	uint64_t left[HX_TURNS_LEFT_MAX]; /* ends of bodies that were read before their time */
	size_t left_count;
};

typedef bool hx_turns_may_fn(void *arg, const struct hx_turn *turn);

/* All zero is empty. The turn must not move until hx_turns_leave(). */
void hx_turns_ask(struct hx_turns *turns, struct hx_turn *turn, uint64_t size);

/* A body that was taken waits again, with the same end. */
void hx_turns_ask_again(struct hx_turns *turns, struct hx_turn *turn);

/* Takes the next of the allowed ones; it is being read from now on. NULL: none. */
struct hx_turn *hx_turns_take(struct hx_turns *turns, hx_turns_may_fn *may, void *arg);

/* A body that was taken is no longer being read. */
void hx_turns_leave(struct hx_turns *turns, struct hx_turn *turn);

/* The number of bodies being read: for `who`, or in total. */
size_t hx_turns_reading_of(const struct hx_turns *turns, uint64_t who);
size_t hx_turns_reading(const struct hx_turns *turns);

#endif
