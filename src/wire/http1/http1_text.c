/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_text.c - classes of bytes in HTTP messages.
 */
#include "wire/http1/http1_text.h"

/* clang-format off */
const unsigned char hx_http1_classes[256] = {
	 0,  0,  0,  0,  0,  0,  0,  0,  0,  4,  0,  0,  0,  0,  0,  0,
	 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
	 4, 15,  4,  5, 15, 15, 15, 15, 14, 14, 15, 15, 14, 31, 15,  6,
	31, 31, 31, 31, 31, 31, 31, 31, 31, 31,  6, 14,  4, 14,  4,  6,
	 6, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,
	31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,  6,  4,  6,  7, 15,
	 7, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,
	31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,  6,  7,  6, 15,  0,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
	 4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,
};
/* clang-format on */

/* Eight bytes in lower case; bytes from 0x80 on stay unchanged. */
static uint64_t lower_word(uint64_t word)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t low = word & (ones * 0x7f);
	uint64_t from_a = low + ones * (0x80 - 'A');
	uint64_t past_z = low + ones * (0x80 - 'Z' - 1);

	return word | ((from_a & ~past_z & ~word & (ones * 0x80)) >> 2);
}

static uint64_t load_word(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return lower_word(word);
}

static unsigned char lower(unsigned char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte + 32) : byte;
}

bool hx_http1_text_equal_size(const unsigned char *a, const unsigned char *b, size_t size)
{
	if (size < 8) {
		for (size_t i = 0; i < size; i++) {
			if (a[i] != b[i] && lower(a[i]) != lower(b[i]))
				return false;
		}
		return true;
	}
	for (size_t at = 0; at + 8 < size; at += 8) {
		if (load_word(a + at) != load_word(b + at))
			return false;
	}
	/* The last eight bytes; some of them are checked twice. */
	return load_word(a + size - 8) == load_word(b + size - 8);
}

/* Nearly all texts are tokens, so the loop has no early exit. */
bool hx_http1_is_token(struct hapax_bytes text)
{
	const unsigned char *at = text.data;
	unsigned all = HX_HTTP1_TOKEN;
	size_t i = 0;

	for (; i + 4 <= text.size; i += 4) {
		all &= (unsigned)(hx_http1_classes[at[i]] & hx_http1_classes[at[i + 1]]);
		all &= (unsigned)(hx_http1_classes[at[i + 2]] & hx_http1_classes[at[i + 3]]);
	}
	for (; i < text.size; i++)
		all &= hx_http1_classes[at[i]];
	return text.size > 0 && all != 0;
}

struct hapax_bytes hx_http1_trim(struct hapax_bytes text)
{
	const unsigned char *at = text.data;
	size_t begin = 0;
	size_t end = text.size;

	while (begin < end && hx_http1_is_blank(at[begin]))
		begin++;
	while (end > begin && hx_http1_is_blank(at[end - 1]))
		end--;
	return begin == end ? (struct hapax_bytes){text.data, 0}
			    : (struct hapax_bytes){at + begin, end - begin};
}

bool hx_http1_list_next(struct hapax_bytes *list, struct hapax_bytes *ret)
{
	while (list->size > 0) {
		const unsigned char *at = list->data;
		const unsigned char *comma = memchr(at, ',', list->size);
		size_t size = comma == NULL ? list->size : (size_t)(comma - at);

		*ret = hx_http1_trim((struct hapax_bytes){at, size});
		size += comma != NULL;
		*list = (struct hapax_bytes){at + size, list->size - size};
		if (ret->size > 0)
			return true;
	}
	return false;
}

bool hx_http1_is_plain_name(struct hapax_bytes name)
{
	const unsigned char *at = name.data;
	unsigned all = HX_HTTP1_PLAIN;

	for (size_t i = 0; i < name.size; i++)
		all &= hx_http1_classes[at[i]];
	return all != 0;
}
