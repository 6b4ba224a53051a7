/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the value of Idempotency-Key (src/wire/sfstring.c).
 *
 * A key is 1 to 255 bytes of UTF-8 without controls; one of ASCII, put in quotes, is read as
 * the same key. What is refused has a place within the value.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "wire/sfstring.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void check_quoted(struct hapax_bytes key)
{
	const char *at = key.data;
	char quoted[2 * HX_SFSTRING_MAX + 2];
	char again[HX_SFSTRING_MAX];
	size_t quoted_size = 0;
	size_t size;

	quoted[quoted_size++] = '"';
	for (size_t i = 0; i < key.size; i++) {
		if (at[i] == '"' || at[i] == '\\')
			quoted[quoted_size++] = '\\';
		quoted[quoted_size++] = at[i];
	}
	quoted[quoted_size++] = '"';
	must(hx_sfstring_read(hx_bytes(quoted, quoted_size), again, &size, NULL) == HAPAX_OK);
	must(hx_bytes_equal(key, hx_bytes(again, size)));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hapax_bytes value = hx_bytes(data, size);
	char key[HX_SFSTRING_MAX];
	struct hapax_error err;
	size_t key_size;
	char why[HX_UTF8_FAULT_SIZE];
	bool is_ascii = true;

	if (hx_sfstring_read(value, key, &key_size, &err) != HAPAX_OK) {
		must(strncmp(err.message, "byte ", 5) == 0);
		must(strtoul(err.message + 5, NULL, 10) <= size);
		return 0;
	}
	must(!hx_utf8_fault(hx_bytes(key, key_size), HX_SFSTRING_MAX, why));
	for (size_t i = 0; i < key_size; i++)
		is_ascii = is_ascii && (unsigned char)key[i] < 0x80;
	if (is_ascii)
		check_quoted(hx_bytes(key, key_size));
	return 0;
}
