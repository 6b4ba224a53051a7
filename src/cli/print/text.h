/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - bytes, times and sizes in readable form.
 *
 * The text form may show bytes from untrusted senders. Control characters, characters that are
 * invisible or reorder others (hx_utf8_is_hidden()), and invalid UTF-8 are shown as in C (\x1b),
 * byte by byte. They cannot act on a terminal or make one key look like another.
 *
 * Threads: any.
 */
#ifndef HX_CLI_PRINT_TEXT_H
#define HX_CLI_PRINT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

/* Longest form of a unit: four bytes of UTF-8, or \xNN, and a NUL. */
enum { HX_TEXT_UNIT_SIZE = 8 };

/*
 * Take one character, or one byte that is not part of one, from the front of text, which is not
 * empty. Write its safe form. Returns the bytes taken.
 */
size_t hx_text_unit(struct hapax_bytes text, char out[HX_TEXT_UNIT_SIZE]);

/* Like hx_text_unit(), but a backslash is doubled, so that the form is reversible. */
size_t hx_text_unit_exact(struct hapax_bytes text, char out[HX_TEXT_UNIT_SIZE]);

/* Append text in exact safe form. LIMIT, NO_MEMORY: buf may hold part of it. */
struct hapax_buf;
enum hapax_status hx_text_escape(struct hapax_buf *buf, struct hapax_bytes text);

/* How many terminal columns it needs, one per character. */
size_t hx_text_columns(const char *text);

enum { HX_TEXT_SIZE = 48 };

/* "2026-11-15T20:22:15Z", or "never". */
void hx_text_time(int64_t ms, char out[HX_TEXT_SIZE]);

/* "999 B", "48.0 KiB", "1.5 GiB". */
void hx_text_bytes(uint64_t bytes, char out[HX_TEXT_SIZE]);

/* "" for one, "s" for other counts. */
const char *hx_text_plural(uint64_t count);

#endif
