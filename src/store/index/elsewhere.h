/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elsewhere.h - results that are not in memory: where they are instead.
 *
 * A store with files may leave the bytes of a large result, its headers and then its body, in
 * one of them. The record in memory keeps their sizes and the place. Unpacked into struct
 * hapax_record, only such a result has sizes without data. It cannot be mistaken for an empty
 * one, and the code that hands it out reads the bytes.
 *
 * The store numbers the files; 0 is none. Each file counts its users: records that the index
 * points at, and operations that are about to read. A file may be removed when it has no users
 * and every reader that was in the epoch then has left: no reader can find it any more.
 *
 * Threads: any.
 */
#ifndef HX_STORE_INDEX_ELSEWHERE_H
#define HX_STORE_INDEX_ELSEWHERE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/record.h>

enum {
	/* Headers and body up to this size stay in the record. */
	HX_RESULT_IN_MEMORY_MAX = 128,
	HX_ELSEWHERE_FILES = 8192,
};

struct hx_elsewhere {
	uint64_t offset; /* of the headers; the body follows */
	uint32_t crc;    /* CRC32C of both */
	uint16_t file;
};

_Static_assert(HX_ELSEWHERE_FILES <= UINT16_MAX, "a file's number fits");

/* A note of where to read fits in the room for the bytes: see hx_work_read_back(). */
_Static_assert(sizeof(struct hx_elsewhere) <= HX_RESULT_IN_MEMORY_MAX, "a note fits");

struct hx_elsewhere_users {
	_Atomic uint32_t counts[HX_ELSEWHERE_FILES];
};

static inline uint64_t hx_result_bytes(const struct hapax_result *result)
{
	return (uint64_t)result->headers.size + result->body.size;
}

/* Unpacked from a record in memory: are the bytes in a file? */
static inline bool hx_result_is_elsewhere(const struct hapax_result *result)
{
	return (result->headers.data == NULL && result->headers.size != 0) ||
		(result->body.data == NULL && result->body.size != 0);
}

/* In the epoch, or under the lock of the shard whose record points there. */
static inline void hx_elsewhere_hold(struct hx_elsewhere_users *users, uint16_t file)
{
	uint32_t before;

	assert(file != 0);
	assert(file < HX_ELSEWHERE_FILES);
	before = atomic_fetch_add_explicit(&users->counts[file], 1, memory_order_relaxed);
	assert(before != UINT32_MAX);
	(void)before;
}

/* A thread that finds no users left sees everything done before, reading and unlinking alike. */
static inline void hx_elsewhere_release(struct hx_elsewhere_users *users, uint16_t file)
{
	uint32_t before;

	assert(file != 0);
	assert(file < HX_ELSEWHERE_FILES);
	before = atomic_fetch_sub_explicit(&users->counts[file], 1, memory_order_release);
	assert(before != 0);
	(void)before;
}

static inline bool hx_elsewhere_is_used(struct hx_elsewhere_users *users, uint16_t file)
{
	assert(file < HX_ELSEWHERE_FILES);
	return atomic_load_explicit(&users->counts[file], memory_order_acquire) != 0;
}

#endif
