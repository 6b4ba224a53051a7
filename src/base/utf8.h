/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - text that anybody may send: is it UTF-8, and does it hold controls?
 *
 * Strict, as RFC 3629 has it: shortest forms only, no surrogates, nothing above
 * U+10FFFF.
 *
 * Threads: any.
 */
#ifndef HX_UTF8_H
#define HX_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>

/* The bytes of the UTF-8 character at the front of text, or 0 when it is none. */
size_t hx_utf8_size(struct hapax_bytes text, uint32_t *ret_code);

/* C0, DEL and C1. */
bool hx_utf8_is_control(uint32_t code);

bool hx_utf8_is_valid(struct hapax_bytes text);

enum { HX_UTF8_FAULT_SIZE = 96 };

/*
 * Whether text cannot stand where people type and read it, which takes 1 to size_max
 * bytes without controls. why then says it of what was named before: "was empty",
 * "was not UTF-8 at offset 2 (byte 0xff)".
 */
bool hx_utf8_fault(struct hapax_bytes text, size_t size_max, char why[HX_UTF8_FAULT_SIZE]);

#endif
