/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.c - write, join and split the parts of a key.
 */
#include "key/part.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "wire/json/json_number.h"

enum { HEX_SIZE = 2 * HX_SHA256_SIZE };

size_t hx_part_text_max(const struct hx_key_part *part)
{
	switch (part->kind) {
	case HX_PART_BYTES: return part->bytes.size;
	case HX_PART_STRING: return part->string.size;
	case HX_PART_NUMBER: return part->bytes.size + HX_JSON_NUMBER_TEXT_EXTRA;
	}
	assert(false);
	return 0;
}

unsigned char *hx_part_write(const struct hx_key_part *part, unsigned char *to)
{
	const char *reason;

	switch (part->kind) {
	case HX_PART_BYTES:
		if (part->bytes.size > 0)
			memcpy(to, part->bytes.data, part->bytes.size);
		return to + part->bytes.size;
	case HX_PART_STRING: return to + hx_json_string_value(part->string, to);
	case HX_PART_NUMBER: return hx_json_lossless_number(part->bytes, to, &reason);
	}
	assert(false);
	return NULL;
}

static enum hx_key_made was_empty(const struct hx_key_path *path, struct hapax_error *err)
{
	(void)hx_error_set(err, HAPAX_ERR_INVALID, 0, "'%s' is empty", path->text);
	return HX_KEY_MISSING;
}

static enum hx_key_made beyond_measure(const struct hx_key_path *path, struct hapax_error *err)
{
	(void)hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"cannot use '%s' in a key: the number is beyond 10 to the 10^17", path->text);
	return HX_KEY_MISSING;
}

enum hx_key_made hx_part_text(
	struct hx_key_view *view, const struct hx_key_path *path, struct hapax_bytes *ret,
	struct hapax_error *err)
{
	struct hx_key_part part;
	enum hx_key_made made = hx_view_part(view, path, &part, err);
	unsigned char *to;
	const unsigned char *end;

	if (made != HX_KEY_MADE)
		return made;
	to = hx_view_room(view, hx_part_text_max(&part), err);
	if (to == NULL)
		return HX_KEY_FAILED;
	end = hx_part_write(&part, to);
	if (end == NULL)
		return beyond_measure(path, err);
	*ret = hx_bytes(to, (size_t)(end - to));
	return HX_KEY_MADE;
}

static unsigned char *put_escape(unsigned char byte, unsigned char *to)
{
	static const char digits[] = "0123456789ABCDEF";

	*to++ = '%';
	*to++ = (unsigned char)digits[byte >> 4];
	*to++ = (unsigned char)digits[byte & 15];
	return to;
}

unsigned char *hx_part_escape(struct hapax_bytes text, unsigned char separator, unsigned char *to)
{
	const unsigned char *at = text.data;
	size_t left = text.size;

	while (left > 0) {
		uint32_t code = 0;
		size_t size;
		bool escaped;

		/* The fast path: most of the text in most keys. */
		if (left >= 8 && hx_ascii_is_printable8(at) && !hx_ascii_has8(at, '%') &&
		    !hx_ascii_has8(at, separator)) {
			memcpy(to, at, 8);
			to += 8;
			at += 8;
			left -= 8;
			continue;
		}
		if (*at >= 0x20 && *at < 0x7f && *at != '%' && *at != separator) {
			*to++ = *at++;
			left--;
			continue;
		}
		size = hx_utf8_size(hx_bytes(at, left), &code);
		escaped = size == 0 || hx_utf8_is_control(code) || *at == '%' || *at == separator;
		/* A byte that does not begin a character is escaped alone. */
		for (size_t i = 0; i < (size == 0 ? 1 : size); i++) {
			if (escaped)
				to = put_escape(at[i], to);
			else
				*to++ = at[i];
		}
		at += size == 0 ? 1 : size;
		left -= size == 0 ? 1 : size;
	}
	return to;
}

static bool is_digest_of(struct hapax_bytes text, const char *prefix)
{
	size_t prefix_size = strlen(prefix);
	unsigned char digest[HX_SHA256_SIZE];
	const char *data = text.data;

	return text.size == prefix_size + HEX_SIZE && memcmp(data, prefix, prefix_size) == 0 &&
		hx_hex_decode(hx_bytes(data + prefix_size, HEX_SIZE), digest);
}

bool hx_key_is_digest(struct hapax_bytes text)
{
	return is_digest_of(text, "sha256:") || is_digest_of(text, "content:");
}

static void set_bytes(struct hapax_key *ret, struct hapax_bytes text)
{
	assert(text.size >= 1);
	assert(text.size <= HAPAX_KEY_SIZE_MAX);
	memcpy(ret->key, text.data, text.size);
	ret->key[text.size] = '\0';
	ret->key_size = text.size;
	ret->kind = HAPAX_KEY_MADE;
}

void hx_key_set_digest(
	struct hapax_key *ret, const char *prefix,
	const unsigned char digest[HAPAX_FINGERPRINT_SIZE])
{
	size_t prefix_size = strlen(prefix);

	assert(prefix_size + HEX_SIZE <= HAPAX_KEY_SIZE_MAX);
	memcpy(ret->key, prefix, prefix_size);
	hx_hex_encode(digest, HX_SHA256_SIZE, ret->key + prefix_size);
	ret->key_size = prefix_size + HEX_SIZE;
	ret->key[ret->key_size] = '\0';
	ret->kind = HAPAX_KEY_MADE;
}

static void set_hashed(struct hapax_key *ret, struct hapax_bytes text)
{
	unsigned char digest[HX_SHA256_SIZE];

	hx_sha256(text.data, text.size, digest);
	hx_key_set_digest(ret, "sha256:", digest);
}

void hx_key_set_text(struct hapax_key *ret, struct hapax_bytes text)
{
	if (hapax_key_check_text(text, HAPAX_KEY_SIZE_MAX, NULL) != HAPAX_OK ||
	    hx_key_is_digest(text))
		set_hashed(ret, text);
	else
		set_bytes(ret, text);
}

enum hx_key_made hx_part_single(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	struct hapax_bytes text = {NULL, 0};
	enum hx_key_made made = hx_part_text(view, &strategy->paths[0], &text, err);

	if (made != HX_KEY_MADE)
		return made;
	if (text.size == 0)
		return was_empty(&strategy->paths[0], err);
	hx_key_set_text(ret, text);
	return HX_KEY_MADE;
}

/* Write escaped parts with separators between them, starting at to. */
static enum hx_key_made write_parts(
	const struct hx_key_part *parts, const struct hx_key_path *paths, size_t count,
	unsigned char *to, unsigned char *plain, unsigned char **ret_end, struct hapax_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const unsigned char *end = hx_part_write(&parts[i], plain);

		if (end == NULL)
			return beyond_measure(&paths[i], err);
		if (i > 0)
			*to++ = HAPAX_KEY_SEPARATOR;
		to = hx_part_escape(
			hx_bytes(plain, (size_t)(end - plain)), HAPAX_KEY_SEPARATOR, to);
	}
	*ret_end = to;
	return HX_KEY_MADE;
}

/* Make ret->key from the joined text, which has room to escape its first byte. */
static enum hx_key_made finish_join(
	unsigned char *text, unsigned char *end, const struct hx_key_path *paths,
	struct hapax_key *ret, struct hapax_error *err)
{
	struct hapax_bytes joined = hx_bytes(text, (size_t)(end - text));

	if (joined.size == 0)
		return was_empty(&paths[0], err);
	if (hx_key_is_digest(joined)) {
		/* The parts "sha256" and 64 digits: %73ha256:... can still be split. */
		unsigned char first = text[0];

		memmove(text + 3, text + 1, joined.size - 1);
		(void)put_escape(first, text);
		joined.size += 2;
	}
	if (joined.size > HAPAX_KEY_SIZE_MAX)
		set_hashed(ret, joined);
	else
		set_bytes(ret, joined);
	return HX_KEY_MADE;
}

enum hx_key_made hx_part_join(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	const struct hx_key_path *paths = strategy->paths;
	size_t count = strategy->path_count;
	struct hx_key_part parts[HX_KEY_PATHS_MAX];
	enum hx_key_made made = HX_KEY_MADE;
	size_t plain_max = 0;
	size_t joined_max = 4; /* for the escape of the first byte */
	unsigned char *text;
	unsigned char *end;

	assert(count >= 1);
	assert(count <= HX_KEY_PATHS_MAX);
	for (size_t i = 0; i < count; i++) {
		size_t size;

		made = hx_view_part(view, &paths[i], &parts[i], err);
		if (made != HX_KEY_MADE)
			return made;
		size = hx_part_text_max(&parts[i]);
		if (size == 0 && !(strategy->type->flags & HX_KEY_TYPE_EMPTY))
			return was_empty(&paths[i], err);
		plain_max = size > plain_max ? size : plain_max;
		joined_max += HX_PART_ESCAPE_FACTOR * size + 1;
	}
	text = hx_view_room(view, joined_max + plain_max, err);
	if (text == NULL)
		return HX_KEY_FAILED;
	made = write_parts(parts, paths, count, text, text + joined_max, &end, err);
	return made == HX_KEY_MADE ? finish_join(text, end, paths, ret, err) : made;
}
