/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause.c - the event that a record was made for, as bytes.
 *
 *	 0  u8   size of id
 *	 1  u8   size of type
 *	 2  u8   size of source
 *	 3  i64  time_ms, little-endian
 *	11       id, type, source, without gaps
 *
 * One string for four values: a store needs one column for it, and a record without an event none.
 */
#include "record/cause.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/utf8.h"

/* The first day of year 1. */
#define CAUSE_TIME_MS_MIN INT64_C(-62135596800000)

enum {
	CAUSE_PARTS = 3,
	CAUSE_TIME = 3,
	CAUSE_HEAD = 11,
};

_Static_assert(
	CAUSE_HEAD + CAUSE_PARTS * HAPAX_CAUSE_PART_SIZE_MAX == HAPAX_CAUSE_SIZE_MAX,
	"the largest cause fills its buffer");
_Static_assert(HAPAX_CAUSE_PART_SIZE_MAX <= UINT8_MAX, "the size of a part is a byte");

/* A time that RFC 3339 can say, so that every store and reader shows the same one. */
static bool is_time(int64_t time_ms)
{
	return time_ms >= CAUSE_TIME_MS_MIN && time_ms <= HX_UTC_MS_MAX;
}

static bool is_text(struct hapax_bytes text)
{
	return text.size == 0 ||
		(hx_utf8_is_valid(text) && memchr(text.data, '\0', text.size) == NULL);
}

/* What is kept of text: whole characters, at most 255 bytes. */
static struct hapax_bytes cause_cut(struct hapax_bytes text)
{
	return is_text(text) ? hx_utf8_cut(text, HAPAX_CAUSE_PART_SIZE_MAX) : hx_bytes(NULL, 0);
}

struct hapax_bytes hapax_cause_write(
	const struct hapax_cause *cause, unsigned char buffer[HAPAX_CAUSE_SIZE_MAX])
{
	const struct hapax_bytes parts[CAUSE_PARTS] = {
		cause_cut(cause->id), cause_cut(cause->type), cause_cut(cause->source)};
	unsigned char *at = buffer + CAUSE_HEAD;
	uint64_t time = is_time(cause->time_ms) ? (uint64_t)cause->time_ms : 0;

	for (int i = 0; i < CAUSE_PARTS; i++) {
		buffer[i] = (unsigned char)parts[i].size;
		if (parts[i].size != 0)
			memcpy(at, parts[i].data, parts[i].size);
		at += parts[i].size;
	}
	for (int i = 0; i < 8; i++)
		buffer[CAUSE_TIME + i] = (unsigned char)(time >> (8 * i));
	if (at == buffer + CAUSE_HEAD && time == 0)
		return hx_bytes(NULL, 0);
	assert((size_t)(at - buffer) <= HAPAX_CAUSE_SIZE_MAX);
	assert(hx_cause_is_valid(hx_bytes(buffer, (size_t)(at - buffer))));
	return hx_bytes(buffer, (size_t)(at - buffer));
}

int hapax_cause_read(struct hapax_bytes packed, struct hapax_cause *ret_cause)
{
	struct hapax_bytes *const parts[CAUSE_PARTS] = {
		&ret_cause->id, &ret_cause->type, &ret_cause->source};
	const unsigned char *head = packed.data;
	const unsigned char *at;
	uint64_t time = 0;

	memset(ret_cause, 0, sizeof(*ret_cause));
	if (packed.size == 0 || !hx_cause_fits(packed))
		return 0;
	at = head + CAUSE_HEAD;
	for (int i = 0; i < CAUSE_PARTS; i++) {
		*parts[i] = hx_bytes(at, head[i]);
		at += head[i];
	}
	for (int i = 0; i < 8; i++)
		time |= (uint64_t)head[CAUSE_TIME + i] << (8 * i);
	ret_cause->time_ms = (int64_t)time;
	assert(at == head + packed.size);
	return 1;
}

bool hx_cause_fits(struct hapax_bytes packed)
{
	const unsigned char *head = packed.data;

	if (packed.size == 0)
		return true;
	return head != NULL && packed.size >= CAUSE_HEAD &&
		packed.size == (size_t)CAUSE_HEAD + head[0] + head[1] + head[2];
}

bool hx_cause_is_valid(struct hapax_bytes packed)
{
	struct hapax_cause cause;

	if (!hx_cause_fits(packed))
		return false;
	return !hapax_cause_read(packed, &cause) ||
		(is_text(cause.id) && is_text(cause.type) && is_text(cause.source) &&
		 is_time(cause.time_ms));
}
