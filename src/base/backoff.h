/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backoff.h - the wait before the next attempt.
 *
 * The wait doubles with each failure in a row, from first up to last, and is random between
 * its half and its whole. The random half spreads out clients that failed at the same
 * moment, so that they do not all return at the same moment; the fixed half keeps a client
 * from retrying at once. Spans have the unit of the caller: milliseconds or nanoseconds.
 *
 *	wait_ms = hx_backoff(10, 1000, link->failures++, hx_random_u64());
 *
 * The function is pure: the same arguments give the same wait. A simulation passes
 * hx_prng_next() of its own generator and can be repeated.
 *
 * Threads: any.
 */
#ifndef HX_BACKOFF_H
#define HX_BACKOFF_H

#include <stdint.h>

/*
 * The wait after `failures` failures in a row, not counting the present one: 0 gives a wait
 * out of first. Returns s - s/2 .. s, where s is first * 2^failures, or last if that is
 * less; so never 0. first and last are at least 1. random decides where in the range.
 */
int64_t hx_backoff(int64_t first, int64_t last, uint64_t failures, uint64_t random);

#endif
