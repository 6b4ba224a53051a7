/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/trace_context.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hex.h"

enum {
	TRACE_AT = 3,
	SPAN_AT = TRACE_AT + 2 * HX_TRACE_ID_SIZE + 1,
	FLAGS_AT = SPAN_AT + 2 * HX_SPAN_ID_SIZE + 1,

	KEY_MAX = 256,
	VALUE_MAX = 256,
};

_Static_assert(FLAGS_AT + 2 == (int)HX_TRACEPARENT_SIZE, "the parts make the whole");

static bool is_zero(const unsigned char *bytes, size_t size)
{
	unsigned char any = 0;

	for (size_t i = 0; i < size; i++)
		any = (unsigned char)(any | bytes[i]);
	return any == 0;
}

static bool read_part(const unsigned char *text, size_t at, unsigned char *out, size_t size)
{
	return hx_hex_decode(hx_bytes(text + at, 2 * size), out);
}

bool hx_trace_context_read(struct hapax_bytes text, struct hx_trace_context *ret_context)
{
	const unsigned char *data = text.data;
	struct hx_trace_context context;
	unsigned char version;

	if (text.size < HX_TRACEPARENT_SIZE || !read_part(data, 0, &version, 1) || version == 0xff)
		return false;
	/*
	 * Version 00 ends here; a later one may continue with another part.
	 */
	if (text.size > HX_TRACEPARENT_SIZE && (version == 0 || data[HX_TRACEPARENT_SIZE] != '-'))
		return false;
	if (data[TRACE_AT - 1] != '-' || data[SPAN_AT - 1] != '-' || data[FLAGS_AT - 1] != '-' ||
	    !read_part(data, TRACE_AT, context.trace_id, HX_TRACE_ID_SIZE) ||
	    !read_part(data, SPAN_AT, context.span_id, HX_SPAN_ID_SIZE) ||
	    !read_part(data, FLAGS_AT, &context.flags, 1))
		return false;
	if (is_zero(context.trace_id, HX_TRACE_ID_SIZE) ||
	    is_zero(context.span_id, HX_SPAN_ID_SIZE))
		return false;
	/* Do not pass on flags of unknown meaning. */
	context.flags &= version == 0 ? HX_TRACE_SAMPLED | HX_TRACE_RANDOM : HX_TRACE_SAMPLED;
	*ret_context = context;
	return true;
}

void hx_trace_context_write(const struct hx_trace_context *context, char out[HX_TRACEPARENT_SIZE])
{
	memcpy(out, "00-", 3);
	hx_hex_encode(context->trace_id, HX_TRACE_ID_SIZE, out + TRACE_AT);
	out[SPAN_AT - 1] = '-';
	hx_hex_encode(context->span_id, HX_SPAN_ID_SIZE, out + SPAN_AT);
	out[FLAGS_AT - 1] = '-';
	hx_hex_encode(&context->flags, 1, out + FLAGS_AT);
}

static bool is_lower_or_digit(unsigned char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

static bool is_key(const unsigned char *text, size_t size)
{
	if (size == 0 || size > KEY_MAX || !is_lower_or_digit(text[0]))
		return false;
	for (size_t i = 1; i < size; i++) {
		if (!is_lower_or_digit(text[i]) && memchr("_-*/@", text[i], 5) == NULL)
			return false;
	}
	return true;
}

static bool is_value(const unsigned char *text, size_t size)
{
	if (size == 0 || size > VALUE_MAX || text[size - 1] == ' ')
		return false;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < 0x20 || text[i] > 0x7e || text[i] == '=')
			return false;
	}
	return true;
}

static bool is_member(const unsigned char *text, size_t size)
{
	const unsigned char *equals = memchr(text, '=', size);
	size_t key_size = equals == NULL ? 0 : (size_t)(equals - text);

	return equals != NULL && is_key(text, key_size) &&
		is_value(equals + 1, size - key_size - 1);
}

int hx_trace_context_members(struct hapax_bytes value)
{
	const unsigned char *at = value.data;
	size_t left = value.size;
	int count = 0;

	while (left > 0) {
		const unsigned char *comma = memchr(at, ',', left);
		size_t size = comma == NULL ? left : (size_t)(comma - at);
		size_t step = comma == NULL ? size : size + 1;
		size_t begin = 0;
		size_t end = size;

		while (begin < end && (at[begin] == ' ' || at[begin] == '\t'))
			begin++;
		while (end > begin && (at[end - 1] == ' ' || at[end - 1] == '\t'))
			end--;
		/* An empty member is allowed, and ignored. */
		if (end > begin && !is_member(at + begin, end - begin))
			return -1;
		count += end > begin;
		if (count > HX_TRACESTATE_MEMBERS_MAX)
			return -1;
		at += step;
		left -= step;
	}
	return count;
}
