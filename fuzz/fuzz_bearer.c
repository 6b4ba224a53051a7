/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the value of Authorization (src/wire/bearer.c).
 *
 * A token lies at the end of the value, behind the word and blanks, has nothing but what a
 * token may have, and is read as the same when it is written again.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "wire/bearer.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void check_written(struct hapax_bytes token)
{
	char text[16 + HX_BEARER_SIZE_MAX];
	struct hapax_bytes again;

	memcpy(text, "Bearer ", 7);
	memcpy(text + 7, token.data, token.size);
	must(hx_bearer_read(hx_bytes(text, 7 + token.size), &again));
	must(hx_bytes_equal(token, again));
	/* Whatever stands behind it makes it something else. */
	text[7 + token.size] = ' ';
	must(!hx_bearer_read(hx_bytes(text, 8 + token.size), &again));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=";
	struct hapax_bytes token;
	const unsigned char *begin;

	if (!hx_bearer_read(hx_bytes(data, size), &token))
		return 0;
	begin = token.data;
	must(token.size >= 1 && token.size <= HX_BEARER_SIZE_MAX);
	must(begin > data + 6 && begin + token.size == data + size);
	must(strncasecmp((const char *)data, "bearer ", 7) == 0 && begin[-1] == ' ');
	for (size_t i = 0; i < token.size; i++)
		must(begin[i] != '\0' && strchr(letters, begin[i]) != NULL);
	check_written(token);
	return 0;
}
