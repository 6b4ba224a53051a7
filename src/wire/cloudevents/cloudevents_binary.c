/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloudevents_binary.c - an event whose attributes are headers (HTTP binding 3.1).
 *
 * A value is unquoted if it is in quotes, then percent-decoded once. Real senders neither quote
 * nor encode: a % without two digits stays unchanged, and bytes from 0x80 on are read as UTF-8.
 */
#include "wire/cloudevents/cloudevents.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "wire/cloudevents/cloudevents_attribute.h"
#include "wire/http1/http1_text.h"
#include "wire/media_type.h"

enum { PREFIX_SIZE = 3, SHOWN_MAX = 64 };

static bool is_attribute(struct hapax_bytes name)
{
	const unsigned char *at = name.data;

	return name.size >= PREFIX_SIZE && (at[0] | 0x20) == 'c' && (at[1] | 0x20) == 'e' &&
		at[2] == '-';
}

static enum hapax_status cloudevents_binary_refuse(
	struct hapax_error *err, struct hapax_bytes name, const char *reason)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "header '%.*s': %s",
		(int)(name.size < SHOWN_MAX ? name.size : SHOWN_MAX), (const char *)name.data,
		reason);
}

/* The size of all names and values together: decoding never makes them longer. */
static enum hapax_status reserve(
	const struct hapax_field *fields, size_t count, struct hapax_buf *scratch,
	struct hapax_error *err)
{
	enum hapax_status status;
	size_t size = 0;

	for (size_t i = 0; i < count; i++) {
		if (is_attribute(fields[i].name))
			size += fields[i].name.size + fields[i].value.size;
	}
	hx_buf_clear(scratch);
	status = hx_buf_reserve(scratch, size);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "the attributes of the event are too long");
	return HAPAX_OK;
}

/* The name without "ce-", in lower case. */
static struct hapax_bytes take_name(struct hapax_bytes name, struct hapax_buf *scratch)
{
	const unsigned char *at = (const unsigned char *)name.data + PREFIX_SIZE;
	unsigned char *out = scratch->data + scratch->size;
	size_t size = name.size - PREFIX_SIZE;

	assert(scratch->capacity - scratch->size >= size);
	for (size_t i = 0; i < size; i++)
		out[i] = at[i] >= 'A' && at[i] <= 'Z' ? (unsigned char)(at[i] + 32) : at[i];
	scratch->size += size;
	return hx_bytes(out, size);
}

static bool is_plain(struct hapax_bytes value)
{
	return value.size == 0 ||
		(*(const unsigned char *)value.data != '"' &&
		 memchr(value.data, '%', value.size) == NULL);
}

/* Remove quotes and backslashes. False: the closing quote is not at the end. */
static bool unquote(struct hapax_bytes value, unsigned char *out, size_t *ret_size)
{
	const unsigned char *at = value.data;
	size_t made = 0;
	size_t i = 1;

	while (i < value.size && at[i] != '"') {
		if (at[i] == '\\' && ++i == value.size)
			return false;
		out[made++] = at[i++];
	}
	*ret_size = made;
	return i + 1 == value.size;
}

/* Decode in place; returns the new size. */
static size_t percent_decode(unsigned char *text, size_t size)
{
	size_t made = 0;

	for (size_t i = 0; i < size; i++) {
		int high = i + 2 < size && text[i] == '%' ? hx_http1_hex(text[i + 1]) : -1;
		int low = high >= 0 ? hx_http1_hex(text[i + 2]) : -1;

		if (low >= 0) {
			text[made++] = (unsigned char)(high << 4 | low);
			i += 2;
		} else {
			text[made++] = text[i];
		}
	}
	return made;
}

/* Never NULL, so that an empty value differs from a missing one. */
static bool take_value(struct hapax_bytes value, struct hapax_buf *scratch, struct hapax_bytes *ret)
{
	unsigned char *out = scratch->data + scratch->size;
	size_t size = value.size;

	assert(scratch->capacity - scratch->size >= value.size);
	if (is_plain(value)) {
		*ret = hx_bytes(value.size == 0 ? "" : value.data, value.size);
		return true;
	}
	if (*(const unsigned char *)value.data != '"')
		memcpy(out, value.data, value.size);
	else if (!unquote(value, out, &size))
		return false;
	size = percent_decode(out, size);
	scratch->size += size;
	*ret = hx_bytes(out, size);
	return true;
}

static enum hapax_status read_field(
	struct hx_cloudevent *event, const struct hapax_field *field, struct hapax_buf *scratch,
	struct hapax_error *err)
{
	const unsigned char *behind = (const unsigned char *)field->name.data + PREFIX_SIZE;
	const struct hapax_bytes *defined =
		hx_cloudevent_defined_name(hx_bytes(behind, field->name.size - PREFIX_SIZE));
	struct hapax_bytes name = defined != NULL ? *defined : take_name(field->name, scratch);
	const char *reason = defined != NULL ? NULL : hx_cloudevent_check_name(name);
	struct hapax_bytes value;

	if (reason == NULL && hx_bytes_equal(name, HX_BYTES_LIT("datacontenttype")))
		reason = "in binary mode Content-Type has this value; remove the attribute";
	if (reason == NULL && !take_value(field->value, scratch, &value))
		reason = "its closing quote must be at its end";
	if (reason == NULL)
		reason = hx_cloudevent_add(event, name, value);
	return reason == NULL ? HAPAX_OK : cloudevents_binary_refuse(err, field->name, reason);
}

enum hapax_status hx_cloudevent_read_binary(
	struct hx_cloudevent *event, const struct hapax_field *fields, size_t count,
	struct hapax_bytes content_type, struct hapax_bytes body, struct hapax_buf *scratch,
	struct hapax_error *err)
{
	enum hapax_status status = reserve(fields, count, scratch, err);
	const char *missing;

	hx_cloudevent_begin(event);
	for (size_t i = 0; i < count && status == HAPAX_OK; i++) {
		if (is_attribute(fields[i].name))
			status = read_field(event, &fields[i], scratch, err);
	}
	if (status != HAPAX_OK)
		return status;
	missing = hx_cloudevent_missing(event);
	if (missing != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "header 'ce-%s' is missing%s", missing,
			event->attribute_count == 0 ? ": this is not a CloudEvent" : "");
	if (content_type.data != NULL && content_type.size > 0) {
		const char *reason =
			hx_cloudevent_add(event, HX_BYTES_LIT("datacontenttype"), content_type);

		if (reason != NULL)
			return cloudevents_binary_refuse(err, HX_BYTES_LIT("Content-Type"), reason);
	}
	event->data = body;
	if (hx_media_type_is_json(event->datacontenttype))
		event->data_kind = HAPAX_DATA_JSON;
	return HAPAX_OK;
}
