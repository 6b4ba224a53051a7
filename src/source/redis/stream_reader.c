/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_reader.c - the line that reads new entries, and the ones left by other members.
 *
 * One command at a time: XAUTOCLAIM while a sweep is due, otherwise XREADGROUP, which waits at the
 * server. A missing group is created, at the start and whenever it disappears.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "source/redis/redis_private.h"

enum {
	/* How long the server waits for an entry; a stop may take as long. */
	BLOCK_MS = 1000,
	COUNT_FIRST = 16,
	COUNT_MAX = 256,
	/* Target size of a reply; the next command asks for fewer or more entries. */
	REPLY_SIZE_GOAL = 8 * 1024 * 1024,
	REPLY_SIZE_MIN = 1024 * 1024,
};

/*
 * A group that disappeared restarts at our last entry or, with start=earliest, at the beginning:
 * finished entries are then duplicates, and none is skipped.
 */
static void make_group(struct hx_redis_source *source)
{
	struct hx_redis_reader *reader = &source->reader;
	const char *start = "0";

	if (source->place.starts_latest)
		start = reader->last_id[0] != '\0' ? reader->last_id : "$";
	hx_redis_line_command(
		&reader->line, 0,
		HX_REDIS_WORDS(
			"XGROUP", "CREATE", source->place.stream, source->place.group, start,
			"MKSTREAM"));
	reader->is_making_group = true;
}

static void sweep(struct hx_redis_source *source, size_t count)
{
	struct hx_redis_line *line = &source->reader.line;

	hx_redis_line_command(
		line, 4,
		HX_REDIS_WORDS(
			"XAUTOCLAIM", source->place.stream, source->place.group, source->member));
	hx_redis_line_put_number(line, source->place.min_idle_ms);
	hx_redis_line_put_text(line, source->reader.cursor);
	hx_redis_line_put_text(line, "COUNT");
	hx_redis_line_put_number(line, (int64_t)count);
	source->reader.is_sweeping = true;
}

/* Read new entries, for which the server waits, or our own pending ones after an id. */
static void read_group(struct hx_redis_source *source, size_t count, bool is_new)
{
	struct hx_redis_reader *reader = &source->reader;
	struct hx_redis_line *line = &reader->line;

	hx_redis_line_command(
		line, is_new ? 6 : 4,
		HX_REDIS_WORDS(
			"XREADGROUP", "GROUP", source->place.group, source->member, "COUNT"));
	hx_redis_line_put_number(line, (int64_t)count);
	if (is_new) {
		hx_redis_line_put_text(line, "BLOCK");
		hx_redis_line_put_number(line, BLOCK_MS);
	}
	hx_redis_line_put_text(line, "STREAMS");
	hx_redis_line_put_text(line, source->place.stream);
	hx_redis_line_put_text(line, is_new ? ">" : reader->history);
	reader->is_recalling = !is_new;
}

/* The first COUNT_FIRST entries always fit, whatever their allowed sizes. */
size_t hx_redis_reader_reply_size_max(size_t size_max)
{
	size_t size = REPLY_SIZE_MIN + COUNT_FIRST * size_max;

	return size < HX_REDIS_REPLY_SIZE_MAX ? size : HX_REDIS_REPLY_SIZE_MAX;
}

void hx_redis_reader_pump(struct hx_redis_source *source)
{
	struct hx_redis_reader *reader = &source->reader;
	size_t room = source->place.prefetch - source->held;

	if (!reader->line.is_ready || reader->is_asking || source->is_stopping)
		return;
	if (!reader->needs_group &&
	    (source->io_thread.is_paused || source->held >= source->place.prefetch ||
	     source->held_bytes >= HX_REDIS_HELD_BYTES_MAX))
		return;
	if (room > reader->count)
		room = reader->count;
	reader->is_sweeping = false;
	reader->is_recalling = false;
	reader->is_surveying = reader->needs_survey && !reader->needs_group;
	if (reader->needs_group)
		make_group(source);
	else if (reader->is_surveying)
		hx_redis_large_survey(source);
	else if (reader->history[0] != '\0')
		read_group(source, room, false);
	else if (reader->cursor[0] != '\0')
		sweep(source, room);
	else
		read_group(source, room, true);
	reader->asked = room;
	reader->is_asking = hx_redis_line_send(&reader->line);
}

/* ------------------------------------------------------------------ replies */

void hx_redis_reader_take_in(
	struct hx_redis_source *source, struct hx_redis_entry *entry,
	struct hx_io_messages *ret_list)
{
	entry->newer = NULL;
	entry->older = source->newest;
	if (source->newest != NULL)
		source->newest->newer = entry;
	else
		source->oldest = entry;
	source->newest = entry;
	source->held++;
	source->held_bytes += entry->raw.size + entry->text.size;
	if (source->reader.is_sweeping || source->reader.is_recalling ||
	    source->reader.is_surveying)
		entry->message_.message.flags |= HAPAX_MESSAGE_REDELIVERED;
	else
		memcpy(source->reader.last_id, entry->id, sizeof(entry->id));
	HX_LIST_ADD(ret_list, &entry->message_, next);
}

static void tell_deleted(struct hx_redis_source *source, struct hapax_bytes id)
{
	hx_io_thread_say(
		&source->io_thread,
		"entry %.*s of '%.100s' was trimmed or deleted before it was handled",
		(int)(id.size < 47 ? id.size : 47), (const char *)id.data, source->place.stream);
}

/* A sweep also finds our own entries if we renewed them late. */
bool hx_redis_reader_holds(const struct hx_redis_source *source, struct hapax_bytes id)
{
	for (const struct hx_redis_entry *at = source->oldest; at != NULL; at = at->newer) {
		if (hx_bytes_equal(hapax_bytes_from_text(at->id), id))
			return true;
	}
	return false;
}

/* fields is the head of the array that continues in *rest. NULL: no memory. */
static struct hx_redis_entry *read_entry(
	struct hx_redis_source *source, struct hapax_bytes id, const struct hx_resp_value *fields,
	struct hapax_bytes *rest)
{
	struct hapax_bytes behind = *rest;
	struct hx_redis_entry *entry;

	/* A small reply need not be measured. */
	if (rest->size > source->place.size_max)
		hx_resp_skip(&behind, fields);
	if (rest->size - behind.size > source->place.size_max) {
		*rest = behind;
		return hx_redis_large_entry(source, id);
	}
	entry = hx_redis_entry_take(source);
	if (entry != NULL && !hx_redis_entry_read(source, entry, id, rest, fields->integer)) {
		/* It is pending: a sweep finds it when there is memory. */
		hx_redis_entry_free(source, entry);
		return NULL;
	}
	return entry;
}

/* [id, [name, value, ...]], or [id, nil], or nil. False: malformed. */
static bool take_entry(
	struct hx_redis_source *source, struct hapax_bytes *rest, struct hx_io_messages *ret_list)
{
	struct hx_redis_entry *entry;
	struct hx_resp_value value;
	struct hapax_bytes id;

	if (!hx_resp_next(rest, &value))
		return false;
	if (value.type == HX_RESP_NULL)
		return true;
	if (value.type != HX_RESP_ARRAY || value.integer != 2 || !hx_resp_next(rest, &value) ||
	    !hx_resp_text(&value, &id) || id.size == 0 || id.size >= HX_REDIS_ID_SIZE ||
	    !hx_resp_next(rest, &value))
		return false;
	if (source->reader.is_recalling)
		(void)snprintf(
			source->reader.history, HX_REDIS_ID_SIZE, "%.*s", (int)id.size,
			(const char *)id.data);
	if (value.type == HX_RESP_NULL) {
		tell_deleted(source, id);
		hx_redis_writer_drop(source, id);
		return true;
	}
	if (value.type != HX_RESP_ARRAY)
		return false;
	if (source->reader.is_sweeping && hx_redis_reader_holds(source, id)) {
		hx_resp_skip(rest, &value);
		return true;
	}
	entry = read_entry(source, id, &value, rest);
	if (entry == NULL)
		return false;
	hx_redis_reader_take_in(source, entry, ret_list);
	return true;
}

static bool take_entries(
	struct hx_redis_source *source, struct hapax_bytes *rest, struct hx_io_messages *ret_list,
	size_t *ret_count)
{
	struct hx_resp_value value;

	if (!hx_resp_next(rest, &value))
		return false;
	if (value.type == HX_RESP_NULL)
		return true;
	if (value.type != HX_RESP_ARRAY)
		return false;
	*ret_count = (size_t)value.integer;
	for (int64_t i = 0; i < value.integer; i++) {
		if (!take_entry(source, rest, ret_list))
			return false;
	}
	return true;
}

/* nil, or [[stream, [entry, ...]]]. */
static bool take_new(
	struct hx_redis_source *source, struct hapax_bytes rest, struct hx_io_messages *ret_list,
	size_t *ret_count)
{
	struct hx_resp_value value;

	if (!hx_resp_next(&rest, &value))
		return false;
	if (value.type == HX_RESP_NULL)
		return true;
	if (value.type != HX_RESP_ARRAY || value.integer != 1 || !hx_resp_next(&rest, &value) ||
	    value.type != HX_RESP_ARRAY || value.integer != 2 || !hx_resp_next(&rest, &value))
		return false;
	return take_entries(source, &rest, ret_list, ret_count);
}

/* [cursor, [entry, ...], [deleted id, ...]]; the last since 7.0. */
static bool take_swept(
	struct hx_redis_source *source, struct hapax_bytes rest, struct hx_io_messages *ret_list,
	size_t *ret_count)
{
	struct hx_redis_reader *reader = &source->reader;
	struct hx_resp_value value;
	struct hapax_bytes text;

	if (!hx_resp_next(&rest, &value) || value.type != HX_RESP_ARRAY || value.integer < 2 ||
	    !hx_resp_next(&rest, &value) || !hx_resp_text(&value, &text) ||
	    text.size >= sizeof(reader->cursor))
		return false;
	(void)snprintf(
		reader->cursor, sizeof(reader->cursor), "%.*s", (int)text.size,
		(const char *)text.data);
	if (strcmp(reader->cursor, "0-0") == 0)
		reader->cursor[0] = '\0';
	if (!take_entries(source, &rest, ret_list, ret_count))
		return false;
	if (hx_resp_next(&rest, &value) && value.type == HX_RESP_ARRAY) {
		int64_t count = value.integer;

		for (int64_t i = 0; i < count; i++) {
			if (hx_resp_next(&rest, &value) && hx_resp_text(&value, &text))
				tell_deleted(source, text);
		}
	}
	return true;
}

/* Only now it is a member: a key that is not a stream has no group. */
static void take_group(struct hx_redis_source *source)
{
	source->reader.needs_group = false;
	source->io_thread.changes++;
}

static void take_error(struct hx_redis_source *source, const struct hx_resp_value *value)
{
	struct hx_redis_reader *reader = &source->reader;
	char why[HX_IO_THREAD_TEXT_SIZE];

	if (reader->is_making_group && hx_resp_is_error(value, "BUSYGROUP")) {
		take_group(source);
		return;
	}
	(void)snprintf(
		why, sizeof(why), "Redis: %.*s",
		(int)(value->text.size < 200 ? value->text.size : 200),
		(const char *)value->text.data);
	/* Scripts may be forbidden: every sweep then finds and reports such an entry. */
	if (reader->is_surveying) {
		reader->needs_survey = false;
		reader->history[0] = '\0';
		hx_io_thread_say(&source->io_thread, "%s", why);
		return;
	}
	/* UNBLOCKED: the group disappeared while we waited for entries. */
	if (hx_resp_is_error(value, "NOGROUP") || hx_resp_is_error(value, "UNBLOCKED")) {
		reader->needs_group = true;
		hx_io_thread_say(&source->io_thread, "%s", why);
		return;
	}
	hx_redis_connection_break(&reader->line.connection, why);
}

/* How many entries should fill a reply, judging by this one. */
static void choose_count(struct hx_redis_reader *reader, size_t size, size_t count)
{
	size_t goal = reader->line.reply_size_max / 2 < REPLY_SIZE_GOAL
		? reader->line.reply_size_max / 2
		: REPLY_SIZE_GOAL;
	size_t each;

	if (count == 0)
		return;
	each = size / count + 1;
	reader->count = 2 * reader->count < COUNT_MAX ? 2 * reader->count : COUNT_MAX;
	if (reader->count > goal / each)
		reader->count = goal / each;
	if (reader->count == 0)
		reader->count = 1;
}

static bool take_survey(
	struct hx_redis_source *source, struct hapax_bytes reply, struct hx_io_messages *ret_list)
{
	source->reader.needs_survey = false;
	return hx_redis_large_take(source, reply, ret_list);
}

static void on_reply(struct hx_redis_line *line, struct hapax_bytes reply)
{
	struct hx_redis_source *source = line->context;
	struct hx_redis_reader *reader = &source->reader;
	struct hx_io_messages list = {NULL, NULL};
	struct hapax_bytes rest = reply;
	struct hx_resp_value value;
	size_t count = 0;
	bool is_good = true;

	reader->is_asking = false;
	if (!hx_resp_next(&rest, &value) || value.type == HX_RESP_ERROR)
		take_error(source, &value);
	else if (reader->is_making_group)
		take_group(source);
	else if (reader->is_surveying)
		is_good = take_survey(source, reply, &list);
	else if (reader->is_sweeping)
		is_good = take_swept(source, reply, &list, &count);
	else
		is_good = take_new(source, reply, &list, &count);
	if (reader->is_recalling && count == 0)
		reader->history[0] = '\0';
	reader->is_making_group = false;
	choose_count(reader, reply.size, count);
	hx_io_thread_deliver(&source->io_thread, &list);
	if (!is_good)
		hx_redis_connection_break(
			&line->connection, "unexpected or too long reply from Redis");
	if (source->is_stopping)
		hx_redis_source_end(source);
	else
		hx_redis_reader_pump(source);
}

static void on_ready(struct hx_redis_line *line)
{
	struct hx_redis_source *source = line->context;
	struct hx_redis_reader *reader = &source->reader;

	if (reader->count == 0)
		reader->count = COUNT_FIRST;
	reader->needs_group = true;
	/* Sweep entries whose delivery was lost, or that other members left. */
	memcpy(reader->cursor, "0-0", 4);
	/* Our name is unique: entries of our earlier process need not wait for min_idle. */
	if (source->has_instance && !reader->has_begun)
		memcpy(reader->history, "0-0", 4);
	reader->has_begun = true;
	hx_redis_reader_pump(source);
}

static void on_lost(struct hx_redis_line *line, const char *why)
{
	struct hx_redis_source *source = line->context;
	struct hx_redis_reader *reader = &source->reader;

	/* The reply may have been too large. Our own entries are read one by one up to it. */
	if (line->connection.has_choked && (!reader->is_recalling || reader->asked == 1))
		reader->needs_survey = true;
	if (reader->is_asking)
		reader->count = 1;
	reader->is_asking = false;
	reader->is_making_group = false;
	hx_io_thread_say(&source->io_thread, "%s", why);
	if (source->is_stopping)
		hx_redis_source_end(source);
}

const struct hx_redis_line_ops hx_redis_reader_ops = {
	.ready = on_ready,
	.reply = on_reply,
	.lost = on_lost,
	.closed = hx_redis_source_closed,
};
