/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_note.c - the content of a run's lock file.
 */
#include "cli/run/run_note.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/limits.h"

enum {
	ATTEMPT_DIGITS = 2 * HAPAX_ATTEMPT_ID_SIZE,
	HOST_SIZE = 65,
};

_Static_assert(
	HOST_SIZE + 32 + ATTEMPT_DIGITS + 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX <
		HX_RUN_NOTE_SIZE,
	"the largest note fits");

bool hx_cmd_run_note_claim_is_in(
	const struct hx_cmd_run_note_claim *claim, const struct hapax_record *record)
{
	if (claim->token != record->token)
		return false;
	/* A record that is no longer claimed has lost its attempt id. */
	return record->state != HAPAX_STATE_CLAIMED ||
		memcmp(claim->attempt_id, record->attempt_id, HAPAX_ATTEMPT_ID_SIZE) == 0;
}

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
static bool read_claim(struct hapax_bytes line, struct hx_cmd_run_note_claim *ret)
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

bool hx_cmd_run_note_read(int file, struct hx_cmd_run_note *ret)
{
	ssize_t size = hx_io_read_full(hx_io_system(), file, ret->bytes, sizeof(ret->bytes) - 1, 0);
	struct hapax_bytes rest, claim;

	if (size <= 0)
		return false;
	ret->bytes[size] = '\0';
	rest = hx_bytes(ret->bytes, (size_t)size);
	if (!next_line(&rest, &ret->host) || !next_line(&rest, &claim) ||
	    !next_line(&rest, &ret->tenant) || !next_line(&rest, &ret->group))
		return false;
	ret->key = rest;
	return rest.size > 0 && read_claim(claim, &ret->claim);
}

static void read_host(char out[HOST_SIZE])
{
	if (gethostname(out, HOST_SIZE) != 0)
		(void)snprintf(out, HOST_SIZE, "localhost");
	/* A truncated name may lack its NUL. */
	out[HOST_SIZE - 1] = '\0';
}

bool hx_cmd_run_note_write(
	int file, const struct hapax_record *record, struct hapax_bytes tenant,
	struct hapax_bytes group, struct hapax_bytes key)
{
	const struct hx_io *io = hx_io_system();
	char host[HOST_SIZE], attempt[ATTEMPT_DIGITS + 1] = "", text[HX_RUN_NOTE_SIZE];
	int size;

	read_host(host);
	hx_hex_encode(record->attempt_id, HAPAX_ATTEMPT_ID_SIZE, attempt);
	size = snprintf(
		text, sizeof(text), "%s\n%" PRIu64 " %s\n%.*s\n%.*s\n%.*s", host, record->token,
		attempt, (int)tenant.size, (const char *)tenant.data, (int)group.size,
		(const char *)group.data, (int)key.size, (const char *)key.data);
	if (size < 0 || (size_t)size >= sizeof(text) - 1)
		return false;
	return io->ops->ftruncate(io->context, file, 0) == 0 &&
		hx_io_write_full(io, file, text, (size_t)size, 0) == 0;
}

bool hx_cmd_run_note_is_of_this_host(const struct hx_cmd_run_note *note)
{
	char host[HOST_SIZE];

	read_host(host);
	return note->host.size == strlen(host) &&
		memcmp(note->host.data, host, note->host.size) == 0;
}
