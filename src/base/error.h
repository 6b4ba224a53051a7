/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - fill in the caller's struct hapax_error.
 *
 * Messages are in the past tense, one line, with the thing in quotes; the operating system's text
 * is appended, so callers never write it themselves. Nothing here allocates: it works when memory
 * has run out.
 *
 * Threads: any.
 */
#ifndef HX_ERROR_H
#define HX_ERROR_H

#include <hapax/error.h>

#include "base/macros.h"

/*
 * Describe a failure and return status, so that "return hx_error_set(...)" is the
 * whole error path. err may be NULL. A message that does not fit is cut after a
 * character; controls become blanks and what is not UTF-8 question marks. With
 * os_errno, ": " and its text follow; pass a positive errno. status must not be
 * HAPAX_OK. errno is left as it was.
 */
__attribute__((format(printf, 4, 5))) enum hapax_status hx_error_set(
	struct hapax_error *err, enum hapax_status status, int os_errno, const char *format, ...);

/*
 * The status for a failed system call after which nothing was done: NO_MEMORY,
 * LIMIT (space, quota, descriptors), INVALID (the name or argument was bad), else
 * UNAVAILABLE. Never for a failed write or fsync: what those left behind is
 * unknown, and the caller alone knows how to latch.
 */
enum hapax_status hx_error_status_of(int os_errno);

#endif
