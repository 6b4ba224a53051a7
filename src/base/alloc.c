/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.c - heap and pages behind one seam.
 *
 * A heap allocation costs one counter update and one test beyond malloc; so does a free. Counters
 * are relaxed: they are statistics, and exact when no other thread runs.
 *
 *  (1) heap_made - heap_freed is the number of live heap allocations.
 *  (2) heap_made + asked_besides is the number of requests, failed ones included.
 */
#include "base/alloc.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"

static struct hx_allocator allocator = {malloc, realloc, free};
static bool allocator_hooked;

/* Separate, so that a thread that frees does not slow down one that allocates. */
static _Alignas(64) _Atomic uint64_t heap_made;
static _Alignas(64) _Atomic uint64_t heap_freed;
static _Alignas(64) _Atomic uint64_t asked_besides;

/* Requests until one fails; 1: the next one, below 1: past. */
static _Atomic int64_t fail_left;
static _Atomic bool fail_forever;
static _Alignas(64) _Atomic bool fail_armed;

static void count_up(_Atomic uint64_t *counter)
{
	(void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

bool hx_alloc_hook(const struct hx_allocator *host)
{
	assert(host->malloc != NULL && host->realloc != NULL && host->free != NULL);
	if (allocator_hooked || atomic_load_explicit(&heap_made, memory_order_relaxed) != 0)
		return false;
	allocator = *host;
	allocator_hooked = true;
	return true;
}

void hx_alloc_keep_little(void)
{
#ifdef M_MMAP_THRESHOLD
	/* Setting one of them stops the growth of both with freed sizes. */
	(void)mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	(void)mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
#endif
}

void hx_alloc_fail_at(uint64_t nth, int forever)
{
	assert(nth <= INT64_MAX);
	atomic_store(&fail_armed, false);
	atomic_store(&fail_left, (int64_t)nth);
	atomic_store(&fail_forever, forever != 0);
	atomic_store(&fail_armed, nth != 0);
}

static bool armed_must_fail(void)
{
	int64_t left = atomic_fetch_sub(&fail_left, 1);

	return left == 1 || (left < 1 && atomic_load(&fail_forever));
}

static bool must_fail(void)
{
	if (__builtin_expect(!atomic_load_explicit(&fail_armed, memory_order_relaxed), 1))
		return false;
	return armed_must_fail();
}

void *hx_alloc(size_t size)
{
	void *ptr = must_fail() ? NULL : allocator.malloc(size == 0 ? 1 : size);

	count_up(ptr == NULL ? &asked_besides : &heap_made);
	return ptr;
}

void *hx_alloc_zero(size_t count, size_t size)
{
	size_t bytes;
	void *ptr;

	if (hx_mul_size(count, size, &bytes))
		return NULL;
	ptr = hx_alloc(bytes);
	if (ptr != NULL)
		memset(ptr, 0, bytes);
	return ptr;
}

char *hx_alloc_text(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = hx_alloc(size);

	return copy == NULL ? NULL : memcpy(copy, text, size);
}

void *hx_realloc(void *ptr, size_t size)
{
	if (ptr == NULL)
		return hx_alloc(size);
	count_up(&asked_besides);
	/* realloc(ptr, 0) would free ptr, and NULL would no longer mean one thing. */
	return must_fail() ? NULL : allocator.realloc(ptr, size == 0 ? 1 : size);
}

void hx_free(void *ptr)
{
	if (ptr == NULL)
		return;
	count_up(&heap_freed);
	allocator.free(ptr);
}

uint64_t hx_alloc_count(void)
{
	return atomic_load_explicit(&heap_made, memory_order_relaxed) +
		atomic_load_explicit(&asked_besides, memory_order_relaxed);
}

int64_t hx_alloc_live(void)
{
	/* Freed first: a pair that falls between the two loads must not show as -1. */
	uint64_t freed = atomic_load_explicit(&heap_freed, memory_order_acquire);

	return (int64_t)(atomic_load_explicit(&heap_made, memory_order_relaxed) - freed);
}

static void assert_pages(const void *at, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	assert(bytes > 0 && bytes % page == 0);
	assert((uintptr_t)at % page == 0);
}

static void unmap(void *at, size_t bytes)
{
	int failed = bytes == 0 ? 0 : munmap(at, bytes);

	assert(!failed);
}

static void *map_reserved(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/*
 * The kernel makes huge pages only where a whole aligned one fits, and mmap aligns to small pages:
 * map one extra huge page and return the ends.
 */
static void *map_reserved_aligned(size_t bytes)
{
	unsigned char *at;
	size_t head, mapped;

	if (hx_add_size(bytes, HX_PAGES_HUGE_SIZE, &mapped)) {
		errno = ENOMEM;
		return NULL;
	}
	at = map_reserved(mapped);
	if (at == NULL)
		return NULL;
	head = -(uintptr_t)at % HX_PAGES_HUGE_SIZE;
	unmap(at, head);
	unmap(at + head + bytes, HX_PAGES_HUGE_SIZE - head);
	return at + head;
}

void *hx_alloc_pages_reserve(size_t bytes)
{
	assert_pages(NULL, bytes);
	count_up(&asked_besides);
	if (must_fail()) {
		errno = ENOMEM;
		return NULL;
	}
	return bytes < HX_PAGES_HUGE_SIZE ? map_reserved(bytes) : map_reserved_aligned(bytes);
}

int hx_alloc_pages_commit(void *at, size_t bytes, unsigned flags)
{
	assert_pages(at, bytes);
	assert((flags & ~(unsigned)HX_PAGES_HUGE) == 0);
	count_up(&asked_besides);
	if (must_fail()) {
		errno = ENOMEM;
		return -1;
	}
	if (mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0)
		return -1;
	/* Only advice: a kernel without huge pages refuses, and all still works. */
	if (flags & HX_PAGES_HUGE)
		(void)madvise(at, bytes, MADV_HUGEPAGE);
	return 0;
}

int hx_alloc_pages_grow(void *memory, size_t *committed, size_t bytes)
{
	size_t wanted = (bytes + HX_PAGES_STEP - 1) / HX_PAGES_STEP * HX_PAGES_STEP;

	assert(wanted >= bytes);
	if (wanted <= *committed)
		return 0;
	if (hx_alloc_pages_commit((unsigned char *)memory + *committed, wanted - *committed, 0) !=
	    0)
		return -1;
	*committed = wanted;
	return 0;
}

void hx_alloc_pages_populate(void *at, size_t bytes)
{
	assert_pages(at, bytes);
	/* Only advice, as above. */
	(void)madvise(at, bytes, MADV_POPULATE_WRITE);
}

void hx_alloc_pages_discard(void *at, size_t bytes)
{
	int failed;

	assert_pages(at, bytes);
	failed = madvise(at, bytes, MADV_DONTNEED);
	assert(!failed);
	(void)failed;
}

void hx_alloc_pages_decommit(void *at, size_t bytes)
{
	int failed;

	assert_pages(at, bytes);
	failed = madvise(at, bytes, MADV_DONTNEED);
	assert(!failed);
	/*
	 * Splitting a mapping can fail when the process has too many of them. The kernel already
	 * has the memory back; only the trap for stray access is lost.
	 */
	(void)mprotect(at, bytes, PROT_NONE);
}

void hx_alloc_pages_release(void *at, size_t bytes)
{
	if (at == NULL)
		return;
	assert_pages(at, bytes);
	unmap(at, bytes);
}
