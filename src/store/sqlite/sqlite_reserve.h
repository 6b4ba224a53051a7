/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_reserve.h - space for the ends of live claims when the disk is full.
 *
 * FILE-reserve holds space and no data. If SQLite finds the disk full while it stores the end of a
 * claim or opens the file, a part of the space moves to the write-ahead log. New records are
 * refused until FILE-reserve is whole again. All processes share it: its size is the state.
 *
 * Threads: any.
 */
#ifndef HX_STORE_SQLITE_SQLITE_RESERVE_H
#define HX_STORE_SQLITE_SQLITE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

/* Make it whole. False: the disk is full. A file system without fallocate() has no reserve. */
bool hx_sqlite_reserve_keep(const char *database);

/* Make it whole. True: the disk has more than that. */
bool hx_sqlite_reserve_has_more(const char *database);

/* Move a part of it to the write-ahead log. False: nothing is left. */
bool hx_sqlite_reserve_release(const char *database);

/* The space that it holds. */
uint64_t hx_sqlite_reserve_bytes(const char *database);

#endif
