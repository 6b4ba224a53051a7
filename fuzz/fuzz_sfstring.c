/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the value of Idempotency-Key (src/wire/sfstring.c).
 *
 * What is taken strictly is taken loosely, as the same. A key is 1 to 255 bytes of UTF-8
 * without controls; one of ASCII can be written in quotes, and is read as the same key.
 * What is refused has a place within the value.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/utf8.h"
#include "wire/sfstring.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void check_written(struct hapax_bytes key)
{
	char again[HX_SFSTRING_MAX];
	struct hapax_buf out;
	size_t size;

	hx_buf_init(&out, 1024);
	must(hx_sfstring_write(&out, key, NULL) == HAPAX_OK);
	must(hx_sfstring_read(
		     hx_bytes(out.data, out.size), HX_SFSTRING_QUOTED, again, &size, NULL) ==
	     HAPAX_OK);
	must(hx_bytes_equal(key, hx_bytes(again, size)));
	hx_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hapax_bytes value = hx_bytes(data, size);
	char key[HX_SFSTRING_MAX];
	char strict[HX_SFSTRING_MAX];
	struct hapax_error err;
	size_t key_size;
	size_t strict_size;
	char why[HX_UTF8_FAULT_SIZE];
	bool is_ascii = true;

	if (hx_sfstring_read(value, HX_SFSTRING_ANY, key, &key_size, &err) != HAPAX_OK) {
		must(strncmp(err.message, "byte ", 5) == 0);
		must(strtoul(err.message + 5, NULL, 10) <= size);
		must(hx_sfstring_read(value, HX_SFSTRING_QUOTED, strict, &strict_size, NULL) !=
		     HAPAX_OK);
		return 0;
	}
	must(!hx_utf8_fault(hx_bytes(key, key_size), HX_SFSTRING_MAX, why));
	for (size_t i = 0; i < key_size; i++)
		is_ascii = is_ascii && (unsigned char)key[i] < 0x80;
	if (hx_sfstring_read(value, HX_SFSTRING_QUOTED, strict, &strict_size, NULL) == HAPAX_OK)
		must(hx_bytes_equal(hx_bytes(key, key_size), hx_bytes(strict, strict_size)));
	if (is_ascii)
		check_written(hx_bytes(key, key_size));
	return 0;
}
