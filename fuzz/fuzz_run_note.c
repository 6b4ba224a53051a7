/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the notes that 'hapax run' leaves in lock files (src/cli/run/run_note.c).
 *
 * The parts of a note lie in it in their order, and with the claim they are all of it.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/run/run_note.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hx_cmd_run_note *note = calloc(1, sizeof(*note));
	const char *end;

	must(note != NULL);
	if (size < sizeof(note->bytes)) {
		if (size > 0)
			memcpy(note->bytes, data, size);
		if (hx_cmd_run_note_parse(note, size)) {
			end = note->bytes + size;
			must(note->host.data == note->bytes);
			must((const char *)note->key.data + note->key.size == end);
			must((const char *)note->group.data + note->group.size + 1 ==
			     note->key.data);
			must((const char *)note->tenant.data + note->tenant.size + 1 ==
			     note->group.data);
			must(note->key.size > 0);
		}
	}
	free(note);
	return 0;
}
