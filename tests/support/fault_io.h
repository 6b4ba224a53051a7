/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_io.h - the system's files, of which the n-th call fails.
 *
 * Every operation of the table counts, but for close. A failed write has written
 * nothing, or half of what was asked for, or all of it: the error is all that the
 * caller gets to know.
 */
#ifndef TEST_SUPPORT_FAULT_IO_H
#define TEST_SUPPORT_FAULT_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"

enum fault_io_effect {
	FAULT_IO_NOTHING, /* the call has no effect */
	FAULT_IO_HALF,    /* a write has half of its effect */
	FAULT_IO_ALL,     /* the call has its effect, and fails all the same */
};

struct fault_io {
	struct hx_io io;  /* what is handed to the store */
	uint64_t calls;   /* so far */
	uint64_t fail_at; /* this call fails; 0: none */
	bool is_forever;  /* and all after it */
	int error;        /* with this errno */
	enum fault_io_effect effect;
	bool has_failed;
};

/* Forwards to hx_io_system(). One thread at a time. */
void fault_io_init(struct fault_io *fault);

#endif
