/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - take a composite key apart, and judge keys that people type.
 */
#include <hapax/key.h>

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "wire/utf8.h"

enum hapax_status hapax_key_check_text(
	struct hapax_bytes key, size_t size_max, struct hapax_error *err)
{
	const unsigned char *at = key.data;
	size_t done = 0;

	if (key.size == 0)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the key was empty");
	if (key.size > size_max) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the key had %zu bytes; at most %zu are allowed",
			key.size, size_max);
	}
	while (done < key.size) {
		uint32_t code = 0;
		size_t size = hx_utf8_size(hx_bytes(at + done, key.size - done), &code);

		if (size == 0) {
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "the key was not UTF-8 at byte %zu",
				done + 1);
		}
		if (hx_utf8_is_control(code)) {
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the key held a control character at byte %zu", done + 1);
		}
		done += size;
	}
	return HAPAX_OK;
}

static int hex_digit(unsigned char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

/* The byte at *at, decoded; -1: not as we write it. */
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

static bool is_hashed(struct hapax_bytes key)
{
	static const char prefix[] = "sha256:";
	size_t prefix_size = sizeof(prefix) - 1;

	return key.size == prefix_size + 64 && memcmp(key.data, prefix, prefix_size) == 0;
}

/*
 * Decode into buf, which has room, and note where parts end. Parts are pointed at
 * last: nothing moves by then.
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
					err, HAPAX_ERR_LIMIT, 0, "the key had more than %zu parts",
					part_max);
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
				"the key had no valid escape before byte %zu", at + 1);
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
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an argument was NULL");
	status = hapax_key_check_text(key, HAPAX_KEY_SIZE_MAX, err);
	if (status != HAPAX_OK)
		return status;
	if (is_hashed(key)) {
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"the key was hashed; its parts are not in it");
	}
	hx_buf_clear(buf);
	status = hx_buf_reserve(buf, key.size);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "no room for the parts of the key");
	return split(key, buf, parts, part_max, ret_count, err);
}
