/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checked.h - arithmetic that reports overflow.
 *
 * Each returns true when the exact result does not fit; *ret then holds the
 * wrapped value and must not be used. Sizes from outside, and times plus
 * durations, go through these.
 *
 * Threads: any.
 */
#ifndef HX_CHECKED_H
#define HX_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__attribute__((warn_unused_result)) static inline bool hx_add_size(size_t a, size_t b, size_t *ret)
{
	return __builtin_add_overflow(a, b, ret);
}

__attribute__((warn_unused_result)) static inline bool hx_mul_size(size_t a, size_t b, size_t *ret)
{
	return __builtin_mul_overflow(a, b, ret);
}

__attribute__((warn_unused_result)) static inline bool hx_add_u64(
	uint64_t a, uint64_t b, uint64_t *ret)
{
	return __builtin_add_overflow(a, b, ret);
}

__attribute__((warn_unused_result)) static inline bool hx_mul_u64(
	uint64_t a, uint64_t b, uint64_t *ret)
{
	return __builtin_mul_overflow(a, b, ret);
}

__attribute__((warn_unused_result)) static inline bool hx_add_i64(
	int64_t a, int64_t b, int64_t *ret)
{
	return __builtin_add_overflow(a, b, ret);
}

__attribute__((warn_unused_result)) static inline bool hx_sub_i64(
	int64_t a, int64_t b, int64_t *ret)
{
	return __builtin_sub_overflow(a, b, ret);
}

__attribute__((warn_unused_result)) static inline bool hx_mul_i64(
	int64_t a, int64_t b, int64_t *ret)
{
	return __builtin_mul_overflow(a, b, ret);
}

#endif
