/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/import/name_pattern.h"

#include <string.h>

#include "base/bytes.h"

static const char *const field_names[HX_NAME_FIELDS] = {
	[HX_NAME_TENANT] = "{tenant}",
	[HX_NAME_GROUP] = "{group}",
	[HX_NAME_KEY] = "{key}",
};

static struct hapax_bytes text_at(const struct hx_name_pattern *pattern, size_t index)
{
	size_t begin = index == 0 ? 0 : pattern->ends[index - 1];

	return hx_bytes(pattern->text + begin, pattern->ends[index] - begin);
}

static bool has_field(const struct hx_name_pattern *pattern, enum hx_name_field field)
{
	for (size_t i = 0; i < pattern->count; i++)
		if (pattern->fields[i] == field)
			return true;
	return false;
}

/* The field that text begins with, or FIELDS. */
static enum hx_name_field field_at(const char *text)
{
	for (int i = 0; i < HX_NAME_FIELDS; i++)
		if (strncmp(text, field_names[i], strlen(field_names[i])) == 0)
			return (enum hx_name_field)i;
	return HX_NAME_FIELDS;
}

const char *hx_name_pattern_parse(struct hx_name_pattern *pattern, const char *text)
{
	size_t size = 0;

	*pattern = (struct hx_name_pattern){.count = 0};
	while (*text != '\0') {
		enum hx_name_field field = field_at(text);

		if (field != HX_NAME_FIELDS) {
			if (has_field(pattern, field))
				return "it has a field twice";
			if (pattern->count > 0 && pattern->ends[pattern->count - 1] == size)
				return "two fields must have text between them";
			pattern->ends[pattern->count] = size;
			pattern->fields[pattern->count++] = field;
			text += strlen(field_names[field]);
			continue;
		}
		if ((*text == '{' || *text == '}') && text[1] != *text)
			return "a field is {tenant}, {group} or {key}; {{ and }} are braces";
		if (size == sizeof(pattern->text))
			return "it is too long: the limit is 512 bytes";
		pattern->text[size++] = *text;
		text += *text == '{' || *text == '}' ? 2 : 1;
	}
	pattern->ends[pattern->count] = size;
	return has_field(pattern, HX_NAME_KEY) ? NULL : "it has no {key}";
}

struct hapax_bytes hx_name_pattern_prefix(const struct hx_name_pattern *pattern)
{
	return text_at(pattern, 0);
}

/* Drop text from the front of *rest. */
static bool skip(struct hapax_bytes *rest, struct hapax_bytes text)
{
	if (rest->size < text.size || !hx_bytes_equal(hx_bytes(rest->data, text.size), text))
		return false;
	*rest = hx_bytes((const char *)rest->data + text.size, rest->size - text.size);
	return true;
}

bool hx_name_pattern_match(
	const struct hx_name_pattern *pattern, struct hapax_bytes name,
	struct hapax_bytes fields[HX_NAME_FIELDS])
{
	struct hapax_bytes end = text_at(pattern, pattern->count);

	memset(fields, 0, sizeof(*fields) * HX_NAME_FIELDS);
	if (!skip(&name, text_at(pattern, 0)) || name.size < end.size ||
	    !hx_bytes_equal(
		    hx_bytes((const char *)name.data + name.size - end.size, end.size), end))
		return false;
	name.size -= end.size;
	for (size_t i = 0; i + 1 < pattern->count; i++) {
		struct hapax_bytes after = text_at(pattern, i + 1);
		const char *at = name.size == 0
			? NULL
			: memmem(name.data, name.size, after.data, after.size);
		size_t size = at == NULL ? 0 : (size_t)(at - (const char *)name.data);

		if (size == 0)
			return false;
		fields[pattern->fields[i]] = hx_bytes(name.data, size);
		name = hx_bytes((const char *)name.data + size, name.size - size);
		(void)skip(&name, after);
	}
	fields[pattern->fields[pattern->count - 1]] = name;
	return name.size > 0;
}

enum hapax_status hx_name_pattern_write(
	const struct hx_name_pattern *pattern, const struct hapax_bytes fields[HX_NAME_FIELDS],
	struct hapax_buf *out)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; status == HAPAX_OK && i <= pattern->count; i++) {
		struct hapax_bytes text = text_at(pattern, i);

		status = hx_buf_append(out, text.data, text.size);
		if (status == HAPAX_OK && i < pattern->count)
			status = hx_buf_append(
				out, fields[pattern->fields[i]].data,
				fields[pattern->fields[i]].size);
	}
	return status;
}
