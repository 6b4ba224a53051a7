/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.h - conversion factors between units of time.
 *
 * Times and spans are int64_t with their unit in the name: _ms in settings, records and the
 * API, _ns for deadlines of the monotonic clock. All constants are int64_t, so that a
 * product with an int does not overflow. A time that comes from outside is multiplied by
 * hx_mul_i64() (checked.h).
 *
 * clock.h and timer_heap.h include it.
 *
 *	deadline_ns = hx_clock_mono_ns() + options->timeout_ms * HX_NS_PER_MS;
 */
#ifndef HX_TIME_H
#define HX_TIME_H

#include <stdint.h>

#define HX_NS_PER_US   INT64_C(1000)
#define HX_NS_PER_MS   INT64_C(1000000)
#define HX_NS_PER_S    INT64_C(1000000000)
#define HX_MS_PER_S    INT64_C(1000)
#define HX_MS_PER_MIN  INT64_C(60000)
#define HX_MS_PER_HOUR INT64_C(3600000)
#define HX_MS_PER_DAY  INT64_C(86400000)

#endif
