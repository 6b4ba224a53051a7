/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_limit.h - how much memory this process may use: the smallest limit of its control groups
 * (v1 and v2) and their parents, else the memory of the machine.
 *
 * Threads: any.
 */
#ifndef HX_MEMORY_LIMIT_H
#define HX_MEMORY_LIMIT_H

#include <stdint.h>

struct hx_io;

/*
 * In bytes; 0: unknown. root precedes every path, "" on a real machine. Missing or malformed files
 * are skipped.
 */
uint64_t hx_memory_limit(const struct hx_io *io, const char *root);

#endif
