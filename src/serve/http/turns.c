/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.c - chooses the next body to read (weighted fair queueing, all weights equal).
 */
#include "serve/http/turns.h"

#include <assert.h>

static void append(struct hx_turn **list, struct hx_turn *turn)
{
	while (*list != NULL)
		list = &(*list)->next;
	turn->next = NULL;
	*list = turn;
}

static void unlink_turn(struct hx_turn **list, const struct hx_turn *turn)
{
	while (*list != turn) {
		assert(*list != NULL);
		list = &(*list)->next;
	}
	*list = turn->next;
}

static uint64_t last_end(const struct hx_turn *list, uint64_t who, uint64_t end)
{
	for (; list != NULL; list = list->next) {
		if (list->who == who && list->end > end)
			end = list->end;
	}
	return end;
}

void hx_turns_ask(struct hx_turns *turns, struct hx_turn *turn, uint64_t size)
{
	/* All addresses start equal. */
	if (turns->waiting == NULL && turns->reading == NULL)
		turns->left_count = 0;
	turn->begin = last_end(turns->reading, turn->who, turns->now);
	turn->begin = last_end(turns->waiting, turn->who, turn->begin);
	turn->end = turn->begin + size;
	append(&turns->waiting, turn);
	turns->waiting_count++;
}

/* At the virtual time each sharing address has one body that has begun and not ended. */
static size_t count_now(const struct hx_turn *list, uint64_t now)
{
	size_t count = 0;

	for (; list != NULL; list = list->next)
		count += list->begin <= now && now < list->end;
	return count;
}

/* Forgets the ends that have passed. */
static size_t count_left(struct hx_turns *turns)
{
	size_t count = 0;

	for (size_t i = 0; i < turns->left_count; i++) {
		if (turns->left[i] > turns->now)
			turns->left[count++] = turns->left[i];
	}
	return turns->left_count = count;
}

static void go_on(struct hx_turns *turns, uint64_t size)
{
	size_t count = count_now(turns->waiting, turns->now) +
		count_now(turns->reading, turns->now) + count_left(turns);

	turns->now += size / (count > 0 ? count : 1);
}

struct hx_turn *hx_turns_take(struct hx_turns *turns, hx_turns_may_fn *may, void *arg)
{
	struct hx_turn *found = NULL;

	for (struct hx_turn *turn = turns->waiting; turn != NULL; turn = turn->next) {
		if ((found == NULL || turn->end < found->end) && may(arg, turn))
			found = turn;
	}
	if (found == NULL)
		return NULL;
	go_on(turns, found->end - found->begin);
	unlink_turn(&turns->waiting, found);
	turns->waiting_count--;
	append(&turns->reading, found);
	return found;
}

void hx_turns_leave(struct hx_turns *turns, struct hx_turn *turn)
{
	unlink_turn(&turns->reading, turn);
	if (turn->end > turns->now && turns->left_count < HX_TURNS_LEFT_MAX)
		turns->left[turns->left_count++] = turn->end;
}

void hx_turns_ask_again(struct hx_turns *turns, struct hx_turn *turn)
{
	unlink_turn(&turns->reading, turn);
	append(&turns->waiting, turn);
	turns->waiting_count++;
}

size_t hx_turns_reading_of(const struct hx_turns *turns, uint64_t who)
{
	size_t count = 0;

	for (const struct hx_turn *turn = turns->reading; turn != NULL; turn = turn->next)
		count += turn->who == who;
	return count;
}

size_t hx_turns_reading(const struct hx_turns *turns)
{
	size_t count = 0;

	for (const struct hx_turn *turn = turns->reading; turn != NULL; turn = turn->next)
		count++;
	return count;
}
