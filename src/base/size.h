/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.h - numbers of bytes as people write them: 512, 64KiB, 10MB, 1GiB.
 *
 * A whole number, then nothing or one of B, KB MB GB TB PB (powers of 1000; kB is
 * read too) or KiB MiB GiB TiB PiB (powers of 1024). No sign, blanks or fractions,
 * and no bare K: it means both.
 *
 * Threads: any.
 */
#ifndef HX_SIZE_H
#define HX_SIZE_H

#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

enum { HX_SIZE_TEXT_SIZE = 32 };

/* INVALID, with the position in the message (0 is the first byte). */
enum hapax_status hx_size_parse(
	struct hapax_bytes text, uint64_t *ret_bytes, struct hapax_error *err);

/* The shortest text that parses back to bytes; of two, the binary unit. */
void hx_size_format(uint64_t bytes, char out[HX_SIZE_TEXT_SIZE]);

#endif
