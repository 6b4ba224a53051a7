/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - split a composite key, and check keys that people type.
 */
#include <hapax/key.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "key/part.h"

enum hapax_status hapax_key_check_text(
	struct hapax_bytes key, size_t size_max, struct hapax_error *err)
{
	char why[HX_UTF8_FAULT_SIZE];

	if (hx_utf8_fault(key, size_max, why))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "key %s", why);
	return HAPAX_OK;
}

/* Escapes use capital letters, as part.c writes them. */
static int hex_digit(unsigned char byte)
{
	if (byte >= 'A' && byte <= 'F')
		return hx_hex_digit(byte | 0x20);
	return byte >= 'a' ? -1 : hx_hex_digit(byte);
}

/* Decode the byte at *at; -1: not in the form that part.c writes. */
static int decode(const unsigned char *key, size_t size, size_t *at)
{
	int high;
	int low;

	if (key[*at] != '%')
		return key[(*at)++];
	if (size - *at < 3)
		return -1;
	high = hex_digit(key[*at + 1]);
	low = hex_digit(key[*at + 2]);
	*at += 3;
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/*
 * Decode into buf, which has room, and note where parts end. Set the pointers last, when nothing
 * moves any more.
 */
static enum hapax_status split(
	struct hapax_bytes key, struct hapax_buf *buf, struct hapax_bytes *parts, size_t part_max,
	size_t *ret_count, struct hapax_error *err)
{
	const unsigned char *text = key.data;
	size_t count = 0;
	size_t begin = 0;

	for (size_t at = 0; at <= key.size;) {
		int byte = 0;

		if (at == key.size || text[at] == HAPAX_KEY_SEPARATOR) {
			if (count == part_max) {
				return hx_error_set(
					err, HAPAX_ERR_LIMIT, 0,
					"key has too many parts: limit %zu", part_max);
			}
			parts[count++] = hx_bytes(buf->data + begin, buf->size - begin);
			begin = buf->size;
			at++;
			continue;
		}
		byte = decode(text, key.size, &at);
		if (byte < 0) {
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"invalid key: bad escape before byte %zu", at + 1);
		}
		buf->data[buf->size++] = (unsigned char)byte;
	}
	*ret_count = count;
	return HAPAX_OK;
}

enum hapax_status hapax_key_split(
	struct hapax_bytes key, struct hapax_buf *buf, struct hapax_bytes *parts, size_t part_max,
	size_t *ret_count, struct hapax_error *err)
{
	enum hapax_status status;

	if (buf == NULL || parts == NULL || ret_count == NULL || (key.data == NULL && key.size > 0))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an argument is NULL");
	status = hapax_key_check_text(key, HAPAX_KEY_SIZE_MAX, err);
	if (status != HAPAX_OK)
		return status;
	if (hx_key_is_digest(key)) {
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"cannot split the key: it is a hash of its parts");
	}
	hx_buf_clear(buf);
	status = hx_buf_reserve(buf, key.size);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory for the parts of the key");
	return split(key, buf, parts, part_max, ret_count, err);
}
