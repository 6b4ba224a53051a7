/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_note.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hex.h"

enum { ATTEMPT_DIGITS = 2 * HAPAX_ATTEMPT_ID_SIZE };

/* The next line, without its end; false when there is none. */
static bool next_line(struct hapax_bytes *rest, struct hapax_bytes *ret)
{
	const char *data = rest->data;
	const char *end = rest->size > 0 ? memchr(data, '\n', rest->size) : NULL;

	if (end == NULL)
		return false;
	*ret = hx_bytes(data, (size_t)(end - data));
	*rest = hx_bytes(end + 1, rest->size - ret->size - 1);
	return true;
}

/* "4711 0123…cdef"; the byte after line is not a digit. */
static bool read_claim(struct hapax_bytes line, struct hx_cmd_run_lock_claim *ret)
{
	const char *text = line.data;
	char *end;

	if (line.size <= ATTEMPT_DIGITS + 1 || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	ret->token = strtoull(text, &end, 10);
	if (errno != 0 || end != text + line.size - ATTEMPT_DIGITS - 1 || *end != ' ')
		return false;
	return hx_hex_decode(hx_bytes(end + 1, ATTEMPT_DIGITS), ret->attempt_id);
}

bool hx_cmd_run_note_parse(struct hx_cmd_run_note *note, size_t size)
{
	struct hapax_bytes rest, claim;

	assert(size < sizeof(note->bytes));
	note->bytes[size] = '\0';
	rest = hx_bytes(note->bytes, size);
	if (!next_line(&rest, &note->host) || !next_line(&rest, &claim) ||
	    !next_line(&rest, &note->tenant) || !next_line(&rest, &note->group))
		return false;
	note->key = rest;
	return rest.size > 0 && read_claim(claim, &note->claim);
}
