/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cursor.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/hex.h"
#include "base/siphash.h"

/* hash | question | place */
struct parts {
	uint64_t hash;
	uint64_t question;
	unsigned char place[sizeof(((struct hapax_cursor *)NULL)->place)];
};

enum { HEAD_SIZE = offsetof(struct parts, place) };

static uint64_t hash_of(const uint64_t key[2], const struct parts *parts, size_t place_size)
{
	return hx_siphash13(
		key, &parts->question, HEAD_SIZE - offsetof(struct parts, question) + place_size);
}

enum hapax_status hx_api_cursor_write(
	const uint64_t key[2], uint64_t question, const struct hapax_cursor *cursor,
	struct hapax_buf *out)
{
	struct parts parts = {.question = question};
	size_t size = HEAD_SIZE + cursor->size;
	enum hapax_status status = hx_buf_reserve(out, 2 * size);

	if (status != HAPAX_OK)
		return status;
	memcpy(parts.place, cursor->place, cursor->size);
	parts.hash = hash_of(key, &parts, cursor->size);
	hx_hex_encode(&parts, size, (char *)out->data + out->size);
	out->size += 2 * size;
	return HAPAX_OK;
}

bool hx_api_cursor_read(
	const uint64_t key[2], uint64_t question, struct hapax_bytes text,
	struct hapax_cursor *ret_cursor)
{
	struct parts parts;
	size_t size = text.size / 2;

	if (text.size % 2 != 0 || size < HEAD_SIZE || size > sizeof(parts) ||
	    !hx_hex_decode(text, (unsigned char *)&parts))
		return false;
	if (parts.question != question || parts.hash != hash_of(key, &parts, size - HEAD_SIZE))
		return false;
	*ret_cursor = (struct hapax_cursor){.size = (uint32_t)(size - HEAD_SIZE)};
	memcpy(ret_cursor->place, parts.place, size - HEAD_SIZE);
	return true;
}
