/* SPDX-License-Identifier: Apache-2.0 */
/*
 * macros.h - count the members of an array, find the struct of a member. bytes.h, alloc.h, error.h
 * and worker.h include it.
 */
#ifndef HX_MACROS_H
#define HX_MACROS_H

#include <stddef.h>

/* Members of an array, never of a pointer. A constant. */
#define HX_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The struct whose member pointer points to: HX_CONTAINER(task, struct hx_run, task). */
#define HX_CONTAINER(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
