/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h - a queue of structs that carry their own link: first in, first out.
 *
 * A list is any struct with the members first and last, both NULL at the start; HX_LIST()
 * declares one in place. An item has a member of its own type for the link, whose name each
 * macro takes, so that one item may be in several lists at a time. Nothing is allocated and
 * nothing is cast: the compiler checks that list, item and link have the same type.
 *
 *	struct call { int number; struct call *next; };
 *	struct line { HX_LIST(struct call) waiting; };
 *
 *	HX_LIST_ADD(&line->waiting, call, next);
 *	HX_LIST_TAKE(&line->waiting, call, next);	call is NULL when there was none
 *
 * Walk a list by its links from first. The link of an item that is in no list has no
 * meaning, but that of the last one in a list is NULL: every add asserts it.
 *
 * The arguments of a macro are evaluated more than once and must have no side effects.
 *
 * Threads: the caller's lock.
 */
#ifndef HX_LIST_H
#define HX_LIST_H

#include <assert.h>
#include <stddef.h>

#define HX_LIST(type)               \
	struct {                    \
		type *first, *last; \
	}

/* Behind all others. */
#define HX_LIST_ADD(list, item, link)                                                 \
	do {                                                                          \
		(item)->link = NULL;                                                  \
		if ((list)->first == NULL) {                                          \
			(list)->first = (item);                                       \
		} else {                                                              \
			assert((list)->last != (item) && (list)->last->link == NULL); \
			(list)->last->link = (item);                                  \
		}                                                                     \
		(list)->last = (item);                                                \
	} while (0)

/* Unlink the first one: item is set to it, or to NULL when the list is empty. */
#define HX_LIST_TAKE(list, item, link)                          \
	do {                                                    \
		(item) = (list)->first;                         \
		if ((item) != NULL) {                           \
			(list)->first = (item)->link;           \
			if ((list)->first == NULL) {            \
				assert((list)->last == (item)); \
				(list)->last = NULL;            \
			}                                       \
		}                                               \
	} while (0)

/* Unlink all: item is set to the first one, whose links lead to the others. */
#define HX_LIST_TAKE_ALL(list, item)    \
	do {                            \
		(item) = (list)->first; \
		(list)->first = NULL;   \
		(list)->last = NULL;    \
	} while (0)

/* Move all of other, in their order, behind those of list. */
#define HX_LIST_JOIN(list, other, link)                              \
	do {                                                         \
		if ((other)->first != NULL) {                        \
			assert((other)->last->link == NULL);         \
			if ((list)->first == NULL)                   \
				(list)->first = (other)->first;      \
			else                                         \
				(list)->last->link = (other)->first; \
			(list)->last = (other)->last;                \
			(other)->first = NULL;                       \
			(other)->last = NULL;                        \
		}                                                    \
	} while (0)

#endif
