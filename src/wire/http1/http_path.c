/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http1/http_path.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/http1/http1_text.h"

/*
 * Every reader reads it the same way: most paths are like this.
 */
static bool is_simple(struct hapax_bytes path)
{
	const char *data = path.data;

	for (size_t i = 0; i < path.size; i++) {
		if (data[i] == '%' || data[i] == ';' || data[i] == '\\')
			return false;
		if (data[i] == '/' && i + 1 < path.size &&
		    (data[i + 1] == '/' || data[i + 1] == '.'))
			return false;
	}
	return true;
}

/* "%2", "%zz": readers interpret it differently. */
static bool has_bare_percent(struct hapax_bytes path)
{
	const unsigned char *data = path.data;

	for (size_t i = 0; i < path.size; i++) {
		if (data[i] == '%' &&
		    (path.size - i <= 2 || hx_http1_hex(data[i + 1]) < 0 ||
		     hx_http1_hex(data[i + 2]) < 0))
			return true;
	}
	return false;
}

/*
 * Decode until nothing is left to decode. A byte that completes "%41" at the end of out takes
 * its place, and may complete another one in turn: each byte is looked at once or twice.
 */
static size_t decode_all(struct hapax_bytes path, unsigned char *out)
{
	const unsigned char *data = path.data;
	size_t size = 0;

	for (size_t i = 0; i < path.size; i++) {
		out[size++] = data[i];
		while (size >= 3 && out[size - 3] == '%' && hx_http1_hex(out[size - 2]) >= 0 &&
		       hx_http1_hex(out[size - 1]) >= 0) {
			int byte = hx_http1_hex(out[size - 2]) << 4 | hx_http1_hex(out[size - 1]);

			size -= 2;
			out[size - 1] = (unsigned char)byte;
		}
	}
	return size;
}

static bool is_tail(unsigned char byte)
{
	return byte >= 0x80 && byte <= 0xbf;
}

/* Does ASCII stand here in two, three or four bytes, as in C0 AE for a dot? */
static bool is_overlong(const unsigned char *at, size_t left)
{
	size_t zeros = at[0] == 0xe0 ? 1 : at[0] == 0xf0 ? 2 : 0;

	if (at[0] == 0xc0 || at[0] == 0xc1)
		return left > 1 && is_tail(at[1]);
	if (zeros == 0 || left < zeros + 2)
		return false;
	return (zeros == 1 || at[1] == 0x80) && (at[zeros] == 0x80 || at[zeros] == 0x81) &&
		is_tail(at[zeros + 1]);
}

static const char *find_fault(const unsigned char *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (data[i] < 0x20 || data[i] == 0x7f)
			return "the path has a control character";
		if (data[i] >= 0xc0 && is_overlong(data + i, size - i))
			return "the path has a character with an overlong encoding";
	}
	return NULL;
}

/* A segment without parameters and without blanks around it. */
static struct hapax_bytes strip(const unsigned char *segment, size_t size)
{
	const unsigned char *parameters = size == 0 ? NULL : memchr(segment, ';', size);

	return hx_http1_trim(
		hx_bytes(segment, parameters == NULL ? size : (size_t)(parameters - segment)));
}

/* Write the segments again, one slash before each. False: one of them is a dot segment. */
static bool join(unsigned char *data, size_t *size)
{
	size_t end = *size;
	size_t out = 0;

	for (size_t at = 0; at < end;) {
		size_t begin = at;
		struct hapax_bytes segment;

		while (at < end && data[at] != '/' && data[at] != '\\')
			at++;
		segment = strip(data + begin, at - begin);
		at++;
		if (segment.size == 0)
			continue;
		if (hx_bytes_equal(segment, HX_BYTES_LIT(".")) ||
		    hx_bytes_equal(segment, HX_BYTES_LIT("..")))
			return false;
		/* There is room: a slash was read before each segment. */
		data[out++] = '/';
		memmove(data + out, segment.data, segment.size);
		out += segment.size;
	}
	if (out == 0)
		data[out++] = '/';
	*size = out;
	return true;
}

struct hapax_bytes hx_http_path_loosest(
	struct hapax_bytes path, char space[HX_HTTP1_LINE_MAX], const char **ret_fault)
{
	unsigned char *out = (unsigned char *)space;
	size_t size;

	*ret_fault = NULL;
	/* "*" of OPTIONS is not a path. */
	if (is_simple(path) || ((const char *)path.data)[0] != '/')
		return path;
	if (has_bare_percent(path) || path.size > HX_HTTP1_LINE_MAX) {
		*ret_fault = "the path has a percent sign without two hexadecimal digits";
		return path;
	}
	size = decode_all(path, out);
	*ret_fault = find_fault(out, size);
	if (*ret_fault == NULL && !join(out, &size))
		*ret_fault = "the path has a segment '.' or '..'; send the resolved path";
	return hx_bytes(space, size);
}

struct hapax_bytes hx_http_path_split(struct hapax_bytes target, struct hapax_bytes *ret_query)
{
	const char *begin = target.data;
	const char *mark = target.size == 0 ? NULL : memchr(begin, '?', target.size);
	size_t size = mark == NULL ? target.size : (size_t)(mark - begin);

	*ret_query = mark == NULL ? hx_bytes(NULL, 0) : hx_bytes(mark + 1, target.size - size - 1);
	return hx_bytes(begin, size);
}
