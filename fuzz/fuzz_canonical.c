/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: canonical JSON (src/wire/json_canonical.c, json_python.c, json_number.c,
 * json_float.c).
 *
 * The canonical text of any JSON text is JSON, and its own canonical text. With any
 * room it is the same text or does not fit. Blanks around it change nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/json_canonical.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { INPUT_MAX = 4096, TEXT_MAX = 64 * INPUT_MAX };

static uint64_t scratch[TEXT_MAX * 4];

static void must(int condition)
{
	if (!condition)
		abort();
}

/* The size of the text, or -1. */
static long write_text(
	struct hapax_bytes text, enum hx_json_dialect dialect, unsigned char *out, size_t room,
	bool *ret_short)
{
	struct hx_json_target target = {out, 0, room, false};
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hx_json_tree tree;
	bool tree_is_short;

	*ret_short = false;
	if (hx_json_tree_read(&tree, text, scratch, sizeof(scratch), &tree_is_short, &err) !=
	    HAPAX_OK)
		return -1;
	if (hx_json_canonical_write(&tree, tree.nodes, dialect, HX_JSON_ALL, &target, &err) !=
	    HAPAX_OK) {
		must(strncmp(err.message, "line ", 5) == 0);
		*ret_short = target.is_short;
		return -1;
	}
	must(target.size <= room);
	return (long)target.size;
}

static void check(struct hapax_bytes text, enum hx_json_dialect dialect)
{
	static unsigned char first[TEXT_MAX];
	static unsigned char again[TEXT_MAX];
	bool is_short;
	long size = write_text(text, dialect, first, sizeof(first), &is_short);
	size_t room;
	unsigned char *exact;

	must(!is_short);
	if (size < 0)
		return;
	must(write_text(hx_bytes(first, (size_t)size), dialect, again, sizeof(again), &is_short) ==
	     size);
	must(memcmp(first, again, (size_t)size) == 0);
	/* Room of just about the size: it fits or it does not, and nothing is overrun. */
	room = (size_t)size + (text.size % 128);
	exact = malloc(room);
	must(exact != NULL);
	if (write_text(text, dialect, exact, room, &is_short) >= 0)
		must(memcmp(exact, first, (size_t)size) == 0);
	else
		must(is_short);
	free(exact);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static unsigned char spaced[INPUT_MAX + 2];
	static unsigned char plain[TEXT_MAX];
	static unsigned char other[TEXT_MAX];
	bool is_short;
	long plain_size;

	if (size > INPUT_MAX)
		return 0;
	check(hx_bytes(data, size), HX_JSON_LOSSLESS);
	check(hx_bytes(data, size), HX_JSON_PYTHON);
	plain_size =
		write_text(hx_bytes(data, size), HX_JSON_LOSSLESS, plain, sizeof(plain), &is_short);
	if (plain_size < 0)
		return 0;
	spaced[0] = '\n';
	memcpy(spaced + 1, data, size);
	spaced[size + 1] = ' ';
	must(write_text(
		     hx_bytes(spaced, size + 2), HX_JSON_LOSSLESS, other, sizeof(other),
		     &is_short) == plain_size);
	must(memcmp(plain, other, (size_t)plain_size) == 0);
	return 0;
}
