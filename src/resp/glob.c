/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glob.c - patterns as in Redis. A star is tried at every remaining position. Only the last star
 * backtracks, so the time is bounded by the product of the sizes.
 */
#include "resp/resp_command.h"

struct glob {
	const unsigned char *pattern;
	const unsigned char *pattern_end;
	bool ignores_case;
};

static unsigned char fold(const struct glob *glob, unsigned char byte)
{
	return glob->ignores_case && byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte + 32) : byte;
}

/* [a-z], at its opening bracket. *ret_end is behind the closing bracket, or the end. */
static bool match_set(
	const struct glob *glob, const unsigned char *at, unsigned char byte,
	const unsigned char **ret_end)
{
	const unsigned char *end = glob->pattern_end;
	bool is_inverse = false;
	bool is_in = false;

	at++;
	if (at < end && *at == '^') {
		is_inverse = true;
		at++;
	}
	byte = fold(glob, byte);
	for (; at < end && *at != ']'; at++) {
		if (*at == '\\' && end - at >= 2) {
			at++;
			is_in = is_in || fold(glob, *at) == byte;
		} else if (end - at >= 3 && at[1] == '-') {
			unsigned char low = fold(glob, at[0]);
			unsigned char high = fold(glob, at[2]);

			if (low > high) {
				unsigned char swap = low;

				low = high;
				high = swap;
			}
			is_in = is_in || (byte >= low && byte <= high);
			at += 2;
		} else {
			is_in = is_in || fold(glob, *at) == byte;
		}
	}
	*ret_end = at < end ? at + 1 : end;
	return is_in != is_inverse;
}

/* Matches one byte of the text against the pattern at `at`, which is not a star. */
static bool match_one(
	const struct glob *glob, const unsigned char *at, unsigned char byte,
	const unsigned char **ret_next)
{
	*ret_next = at + 1;
	if (*at == '?')
		return true;
	if (*at == '[')
		return match_set(glob, at, byte, ret_next);
	if (*at == '\\' && glob->pattern_end - at >= 2) {
		at++;
		*ret_next = at + 1;
	}
	return fold(glob, *at) == fold(glob, byte);
}

bool hx_resp_glob(struct hapax_bytes pattern, struct hapax_bytes text, bool ignores_case)
{
	static const unsigned char nothing[1] = {0};
	struct glob glob = {.ignores_case = ignores_case};
	const unsigned char *at = pattern.size == 0 ? nothing : pattern.data;
	const unsigned char *byte = text.size == 0 ? nothing : text.data;
	const unsigned char *end = byte + text.size;
	const unsigned char *star = NULL; /* behind the last one */
	const unsigned char *star_byte = NULL;

	glob.pattern = at;
	glob.pattern_end = at + pattern.size;
	while (byte < end) {
		const unsigned char *next;

		if (at < glob.pattern_end && *at == '*') {
			star = ++at;
			star_byte = byte;
		} else if (at < glob.pattern_end && match_one(&glob, at, *byte, &next)) {
			at = next;
			byte++;
		} else if (star != NULL) {
			at = star;
			byte = ++star_byte;
		} else {
			return false;
		}
	}
	while (at < glob.pattern_end && *at == '*')
		at++;
	return at == glob.pattern_end;
}
