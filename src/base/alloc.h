/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.h - the allocation seam: heap and pages, and the failures of both.
 *
 * Every allocation of the library goes through here, so that a host can use its own allocator and a
 * test can make the n-th one fail. A heap pointer from here goes back through hx_free(), never
 * free().
 *
 * Threads: any. Fork: nothing to do.
 */
#ifndef HX_ALLOC_H
#define HX_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/* The host's replacements for malloc(3) and related functions; same contracts. */
struct hx_allocator {
	void *(*malloc)(size_t size);
	void *(*realloc)(void *ptr, size_t size);
	void (*free)(void *ptr);
};

/*
 * Use host (copied) for everything from now on. Works once, and only before the first allocation,
 * because a pointer must be freed where it came from; false otherwise. Threads: call it before
 * other threads use the library.
 */
bool hx_alloc_hook(const struct hx_allocator *host);

/* NULL: out of memory. A size of 0 returns a pointer that can be freed. */
__attribute__((malloc, warn_unused_result)) void *hx_alloc(size_t size);

/* Zeroed; NULL also when count * size overflows. */
__attribute__((malloc, warn_unused_result)) void *hx_alloc_zero(size_t count, size_t size);

/* A copy of text with its NUL; NULL: out of memory. */
__attribute__((malloc, warn_unused_result)) char *hx_alloc_text(const char *text);

/* As realloc(3), except that size 0 keeps the allocation. On NULL, ptr still lives. */
__attribute__((warn_unused_result)) void *hx_realloc(void *ptr, size_t size);

/* NULL is allowed. */
void hx_free(void *ptr);

/*
 * Make malloc(3) return large memory to the system when it is freed. Otherwise glibc keeps up to 64
 * MiB in each thread that used some, and a limit on held memory says little about resident memory.
 * For programs only: a library does not change its host's malloc. Call it before threads start.
 */
void hx_alloc_keep_little(void);

/*
 * Pages: reserve address space, then commit parts of it as they are needed; committed memory never
 * moves. All sizes and addresses are multiples of the page size; HX_PAGES_STEP is one on every
 * machine, 64 KiB pages included.
 */
enum { HX_PAGES_STEP = 64 * 1024, HX_PAGES_HUGE_SIZE = 2 * 1024 * 1024 };

enum hx_alloc_pages_flag {
	HX_PAGES_HUGE = 1 << 0, /* ask for huge pages; the kernel may decline */
};

/*
 * Address space that faults when touched and costs no memory. NULL: none left.
 * Aligned to HX_PAGES_HUGE_SIZE when at least that large.
 */
__attribute__((warn_unused_result)) void *hx_alloc_pages_reserve(size_t bytes);

/* Make pages readable and writable, zero at first. 0, or -1 with errno set. */
__attribute__((warn_unused_result)) int hx_alloc_pages_commit(
	void *at, size_t bytes, unsigned flags);

/*
 * Make at least the first bytes of reserved memory usable; *committed of them already are. 0, or
 * -1 with errno set.
 */
__attribute__((warn_unused_result)) int hx_alloc_pages_grow(
	void *memory, size_t *committed, size_t bytes);

/* Populate committed pages before they are touched. A hint; their contents stay. */
void hx_alloc_pages_populate(void *at, size_t bytes);

/*
 * Return the memory of committed pages; they stay usable and read as zeros. Reusing them is cheaper
 * than after a decommit.
 */
void hx_alloc_pages_discard(void *at, size_t bytes);

/* Return the memory and keep the address space; it faults when touched again. */
void hx_alloc_pages_decommit(void *at, size_t bytes);

/* Return the address space as well. NULL is allowed. */
void hx_alloc_pages_release(void *at, size_t bytes);

/*
 * For tests: make the nth allocation from now fail (1 is the next one), and with
 * forever all that follow it. hx_alloc_pages_reserve() and hx_alloc_pages_commit() count as
 * allocations. 0 disarms.
 */
void hx_alloc_fail_at(uint64_t nth, int forever);

/* Number of allocations requested so far, including failed ones. */
uint64_t hx_alloc_count(void);

/* Number of live heap allocations. Exact when no other thread allocates. */
int64_t hx_alloc_live(void);

#endif
