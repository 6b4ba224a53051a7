/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_facts.h - Linux's figures about this process: process_* of all exporters.
 *
 * Threads: any. Blocks on /proc.
 */
#ifndef HX_PROCESS_FACTS_H
#define HX_PROCESS_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct hx_io;

struct hx_process_facts {
	double cpu_seconds;
	double start_seconds; /* since 1970 */
	uint64_t resident_bytes;
	uint64_t virtual_bytes;
	uint64_t threads;
	uint64_t open_fds;
	uint64_t max_fds; /* 0: no limit, or unknown */
};

/* False: /proc is missing or unreadable. */
bool hx_process_facts_read(const struct hx_io *io, struct hx_process_facts *ret_facts);

#endif
