/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_row.c - check a row of another system and turn it into an entry.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/import/import.h"
#include "wire/date.h"
#include "wire/scope_name.h"

/* Words of other systems for a run that is over; a run in progress is none of them. */
static const char *const words_of_success[] = {"success",  "succeeded", "successful", "ok",
					       "done",     "complete",  "completed",  "processed",
					       "finished", NULL};
static const char *const words_of_failure[] = {"failed", "failure", "error", "definitive", NULL};

enum { SECONDS_DIGITS_MAX = 11, TIME_SIZE = 64, DATE_SIZE = 10, LONGER_MS = 60 * 1000 };

static bool is_word(struct hapax_bytes text, const char *const *words)
{
	for (; *words != NULL; words++)
		if (text.size == strlen(*words) && strncasecmp(text.data, *words, text.size) == 0)
			return true;
	return false;
}

static bool is_digits(struct hapax_bytes text)
{
	const char *at = text.data;

	for (size_t i = 0; i < text.size; i++)
		if (at[i] < '0' || at[i] > '9')
			return false;
	return text.size > 0;
}

/* A whole number of at most 18 digits. */
static bool read_digits(struct hapax_bytes text, int64_t *ret_number)
{
	const char *at = text.data;

	*ret_number = 0;
	if (text.size > 18 || !is_digits(text))
		return false;
	for (size_t i = 0; i < text.size; i++)
		*ret_number = *ret_number * 10 + (at[i] - '0');
	return true;
}

/*
 * A time: RFC 3339; as SQL writes it, with a blank and an offset in hours, or without an offset for
 * UTC; a date, for its first moment in UTC; or seconds since 1970, or milliseconds if there are 12 digits or more.
 */
static bool read_time(struct hapax_bytes text, int64_t *ret_ms)
{
	static const char *const words_of_never[] = {"infinity", "never", "forever", NULL};
	char time[TIME_SIZE];
	size_t size = text.size;
	const char *sign;

	if (is_word(text, words_of_never)) {
		*ret_ms = HAPAX_TIME_NEVER;
		return true;
	}
	if (read_digits(text, ret_ms)) {
		if (text.size <= SECONDS_DIGITS_MAX)
			*ret_ms *= HX_MS_PER_S;
		return *ret_ms <= HX_UTC_MS_MAX;
	}
	if (size == DATE_SIZE) {
		(void)snprintf(
			time, sizeof(time), "%.*sT00:00:00Z", (int)size, (const char *)text.data);
		return hx_date_parse(hapax_bytes_from_text(time), ret_ms);
	}
	if (size < strlen("2026-01-01T00:00:00") || size + sizeof(":00") > sizeof(time))
		return false;
	memcpy(time, text.data, size);
	time[size] = '\0';
	if (time[10] == ' ')
		time[10] = 'T';
	sign = strpbrk(time + 19, "+-Zz");
	if (sign == NULL)
		time[size++] = 'Z';
	else if (strlen(sign) == strlen("+00")) {
		memcpy(time + size, ":00", 3);
		size += 3;
	}
	return hx_date_parse(hx_bytes(time, size), ret_ms);
}

static bool refuse_time(const char *column, struct hapax_bytes value, char why[HX_IMPORT_WHY_SIZE])
{
	(void)snprintf(
		why, HX_IMPORT_WHY_SIZE, "%s is not a time: '%.*s'%s", column,
		(int)(value.size > 40 ? 40 : value.size), (const char *)value.data,
		is_digits(value)
			? " is not seconds or milliseconds since 1970; divide microseconds "
			  "by 1000"
			: "");
	return false;
}

/* When the key ends: the source's own time, or by --ttl from its processing, or from now. */
static bool read_end(
	const struct hx_import *import, const struct hx_import_row *row,
	struct hx_import_entry *entry, char why[HX_IMPORT_WHY_SIZE])
{
	struct hapax_bytes expires = row->values[HX_IMPORT_EXPIRES_AT];
	struct hapax_bytes processed = row->values[HX_IMPORT_PROCESSED_AT];
	int64_t from_ms = hx_clock_wall_ms();
	int64_t ttl_ms = row->left_ms != 0 ? row->left_ms : import->ttl_ms;

	entry->has_end = expires.size > 0 || processed.size > 0 || row->has_left;
	if (expires.size > 0)
		return read_time(expires, &entry->ends_ms) ||
			refuse_time("expires_at", expires, why);
	if (ttl_ms == 0) {
		(void)snprintf(
			why, HX_IMPORT_WHY_SIZE, "it has no expires_at, and --ttl is not given");
		return false;
	}
	if (row->left_ms == 0 && processed.size > 0 && !read_time(processed, &from_ms))
		return refuse_time("processed_at", processed, why);
	entry->ends_ms = ttl_ms == HAPAX_TTL_FOREVER || from_ms == HAPAX_TIME_NEVER
		? HAPAX_TIME_NEVER
		: from_ms + ttl_ms;
	return true;
}

bool hx_import_is_longer(const struct hx_import_entry *entry, int64_t ends_ms)
{
	return entry->has_end && ends_ms < entry->ends_ms &&
		(entry->ends_ms == HAPAX_TIME_NEVER || entry->ends_ms - ends_ms > LONGER_MS);
}

static bool read_status(
	struct hapax_bytes status, struct hapax_result *result, char why[HX_IMPORT_WHY_SIZE])
{
	int64_t code;

	if (status.size == 0 || is_word(status, words_of_success))
		return true;
	if (is_word(status, words_of_failure)) {
		result->result_class = HAPAX_RESULT_DEFINITIVE;
		/* Without a body it is still a failure that a reader must see. */
		if (result->kind == HAPAX_RESULT_NONE)
			result->kind = HAPAX_RESULT_BYTES;
		return true;
	}
	if (read_digits(status, &code) && code >= 100 && code <= 599) {
		result->kind = HAPAX_RESULT_HTTP;
		result->status = (int32_t)code;
		if (code >= 400)
			result->result_class = HAPAX_RESULT_DEFINITIVE;
		return true;
	}
	(void)snprintf(
		why, HX_IMPORT_WHY_SIZE,
		"status '%.*s' does not say that the work is done; leave the row out, or use success, "
		"failed or an HTTP status",
		(int)(status.size > 40 ? 40 : status.size), (const char *)status.data);
	return false;
}

/* Copy value, or the default, and check it as a part of the name. */
static bool copy_part(
	struct hx_import_entry *entry, const char *what, struct hapax_bytes value,
	struct hapax_bytes fallback, size_t size_max, char why[HX_IMPORT_WHY_SIZE])
{
	bool is_scope = size_max == HX_SCOPE_PART_SIZE_MAX;
	char fault[HX_UTF8_FAULT_SIZE];

	if (value.size == 0)
		value = fallback;
	if (hx_utf8_fault(value, size_max, fault)) {
		(void)snprintf(why, HX_IMPORT_WHY_SIZE, "%s %s", what, fault);
		return false;
	}
	if (is_scope && hx_scope_name_fault(value) != NULL) {
		(void)snprintf(
			why, HX_IMPORT_WHY_SIZE, "%s '%.*s' %s", what,
			(int)(value.size > 40 ? 40 : value.size), (const char *)value.data,
			hx_scope_name_fault(value));
		return false;
	}
	if (hx_buf_append(&entry->bytes, value.data, value.size) == HAPAX_OK)
		return true;
	(void)snprintf(why, HX_IMPORT_WHY_SIZE, "not enough memory");
	return false;
}

/* Tenant, group, key and result, one after the other in entry->bytes. */
static bool copy_values(
	const struct hx_import *import, const struct hx_import_row *row,
	struct hx_import_entry *entry, char why[HX_IMPORT_WHY_SIZE])
{
	const struct hx_settings *settings = &import->inv->settings;
	struct hapax_bytes result = row->values[HX_IMPORT_RESULT];
	size_t ends[3];

	assert(result.data != NULL || result.size == 0);
	hx_buf_clear(&entry->bytes);
	if (!copy_part(
		    entry, "tenant", row->values[HX_IMPORT_TENANT], settings->tenant,
		    HX_SCOPE_PART_SIZE_MAX, why))
		return false;
	ends[0] = entry->bytes.size;
	if (!copy_part(
		    entry, "group", row->values[HX_IMPORT_GROUP], settings->group,
		    HX_SCOPE_PART_SIZE_MAX, why))
		return false;
	ends[1] = entry->bytes.size;
	if (!copy_part(
		    entry, "key", row->values[HX_IMPORT_KEY], hx_bytes(NULL, 0), HX_KEY_SIZE_MAX,
		    why))
		return false;
	ends[2] = entry->bytes.size;
	if (result.size > HX_RESULT_SIZE_LIMIT) {
		(void)snprintf(
			why, HX_IMPORT_WHY_SIZE, "the result is too large: the limit is %d MiB",
			HX_RESULT_SIZE_LIMIT / (1024 * 1024));
		return false;
	}
	if (hx_buf_append(&entry->bytes, result.data, result.size) != HAPAX_OK) {
		(void)snprintf(why, HX_IMPORT_WHY_SIZE, "not enough memory");
		return false;
	}
	entry->tenant = hx_bytes(entry->bytes.data, ends[0]);
	entry->group = hx_bytes(entry->bytes.data + ends[0], ends[1] - ends[0]);
	entry->key = hx_bytes(entry->bytes.data + ends[1], ends[2] - ends[1]);
	entry->result.body = hx_bytes(entry->bytes.data + ends[2], result.size);
	return true;
}

static bool read_cause(
	const struct hx_import_row *row, struct hx_import_entry *entry,
	char why[HX_IMPORT_WHY_SIZE])
{
	struct hapax_bytes time = row->values[HX_IMPORT_EVENT_TIME];
	struct hapax_cause cause = {
		.id = row->values[HX_IMPORT_EVENT_ID],
		.type = row->values[HX_IMPORT_EVENT_TYPE],
		.source = row->values[HX_IMPORT_EVENT_SOURCE],
	};

	if (time.size > 0 &&
	    (!read_time(time, &cause.time_ms) || cause.time_ms == HAPAX_TIME_NEVER))
		return refuse_time("event_time", time, why);
	entry->cause = hapax_cause_write(&cause, entry->cause_bytes);
	return true;
}

static void put(struct hx_sha256 *sha, struct hapax_bytes bytes)
{
	uint64_t size = bytes.size;

	/* With its size, so that no two rows are the same bytes. */
	hx_sha256_update(sha, &size, sizeof(size));
	hx_sha256_update(sha, bytes.data, bytes.size);
}

static void digest(struct hx_sha256 *sha, struct hx_import_entry *entry)
{
	int32_t numbers[] = {
		(int32_t)entry->result.kind, (int32_t)entry->result.result_class,
		entry->result.status};

	put(sha, entry->tenant);
	put(sha, entry->group);
	put(sha, entry->key);
	hx_sha256_final(sha, entry->digest);
	entry->name = hx_digest_of(entry->digest);
	hx_sha256_update(sha, entry->digest, sizeof(entry->digest));
	put(sha, hx_bytes(numbers, sizeof(numbers)));
	put(sha, entry->result.body);
	put(sha, entry->cause);
	hx_sha256_final(sha, entry->digest);
}

bool hx_import_row_read(
	struct hx_import *import, const struct hx_import_row *row, struct hx_import_entry *entry,
	char why[HX_IMPORT_WHY_SIZE])
{
	struct hapax_bytes status = row->values[HX_IMPORT_STATUS];

	entry->result = (struct hapax_result){.kind = HAPAX_RESULT_NONE};
	if (row->values[HX_IMPORT_RESULT].data != NULL && row->values[HX_IMPORT_RESULT].size > 0)
		entry->result.kind = HAPAX_RESULT_BYTES;
	if (!copy_values(import, row, entry, why) || !read_status(status, &entry->result, why) ||
	    !read_end(import, row, entry, why) || !read_cause(row, entry, why))
		return false;
	entry->is_mark = entry->result.kind == HAPAX_RESULT_NONE &&
		entry->result.result_class == HAPAX_RESULT_OK && entry->cause.size == 0;
	digest(&import->sha, entry);
	return true;
}
