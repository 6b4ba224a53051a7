/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.h - space for the ends of live claims when the disk is full.
 *
 * The files RESERVE.1 to RESERVE.4 hold space and no data. If no segment can be made for lack of
 * space, one of them is renamed and becomes the next segment: it needs no free block, and no other
 * program can take the space in between. There are several because a crash leaves the rest of a
 * segment unused. New records are refused until all of them exist again (writer.c).
 *
 * Threads: one at a time for a directory; hx_log_reserve_bytes(): any.
 */
#ifndef HX_STORE_LOG_WRITE_RESERVE_H
#define HX_STORE_LOG_WRITE_RESERVE_H

#include "store/log/format/directory.h"

/* The size of each file, in a log with such segments. */
uint64_t hx_log_reserve_part(uint64_t segment_bytes, uint64_t active_bytes);

/* Make every file hold part_bytes. 0, or a negative errno: those that exist stay as they were. */
int hx_log_reserve_keep(const struct hx_log_directory *directory, uint64_t part_bytes);

/* The path of a file to take. False: none is left. */
bool hx_log_reserve_find(const struct hx_log_directory *directory, char ret_path[HX_LOG_PATH_SIZE]);

/* The space that is held. */
uint64_t hx_log_reserve_bytes(const struct hx_log_directory *directory);

#endif
