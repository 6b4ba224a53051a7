/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_member.c - the names of records in Redis.
 */
#include "store/redis/redis_member.h"

#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "wire/percent.h"

static enum hapax_status append_escaped(struct hapax_buf *buf, struct hapax_bytes part)
{
	const unsigned char *data = part.data;
	enum hapax_status status = hx_buf_reserve(buf, 3 * part.size);

	for (size_t i = 0; i < part.size && status == HAPAX_OK; i++) {
		if (data[i] != '\0' && strchr("%/:{}", data[i]) != NULL)
			status = hx_buf_printf(buf, "%%%02X", data[i]);
		else
			status = hx_buf_append_byte(buf, data[i]);
	}
	return status;
}

enum hapax_status hx_redis_scope_append(
	struct hapax_buf *buf, struct hapax_bytes tenant, struct hapax_bytes group)
{
	enum hapax_status status = append_escaped(buf, tenant);

	if (status == HAPAX_OK)
		status = hx_buf_append_byte(buf, '/');
	return status == HAPAX_OK ? append_escaped(buf, group) : status;
}

enum hapax_status hx_redis_member_append(
	struct hapax_buf *buf, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key)
{
	enum hapax_status status = hx_redis_scope_append(buf, tenant, group);

	if (status == HAPAX_OK)
		status = hx_buf_append_byte(buf, ':');
	return status == HAPAX_OK ? hx_buf_append(buf, key.data, key.size) : status;
}

/* Into out, of HX_SCOPE_PART_SIZE_MAX bytes. */
static bool unescape(
	const char *text, size_t size, unsigned char *out, struct hapax_bytes *ret_part)
{
	unsigned char bytes[3 * HX_SCOPE_PART_SIZE_MAX];
	size_t held;

	if (size > sizeof(bytes) || !hx_percent_decode(hx_bytes(text, size), bytes, &held) ||
	    held == 0 || held > HX_SCOPE_PART_SIZE_MAX)
		return false;
	memcpy(out, bytes, held);
	*ret_part = hx_bytes(out, held);
	return true;
}

bool hx_redis_member_split(
	struct hapax_bytes member, unsigned char *scratch, struct hapax_bytes *ret_tenant,
	struct hapax_bytes *ret_group, struct hapax_bytes *ret_key)
{
	const char *text = member.data;
	const char *colon = member.size == 0 ? NULL : memchr(text, ':', member.size);
	const char *slash = colon == NULL ? NULL : memchr(text, '/', (size_t)(colon - text));

	if (slash == NULL || !unescape(text, (size_t)(slash - text), scratch, ret_tenant) ||
	    !unescape(
		    slash + 1, (size_t)(colon - slash - 1), scratch + HX_SCOPE_PART_SIZE_MAX,
		    ret_group))
		return false;
	*ret_key = hx_bytes(colon + 1, member.size - (size_t)(colon - text) - 1);
	return ret_key->size > 0 && ret_key->size <= HX_KEY_SIZE_MAX;
}
