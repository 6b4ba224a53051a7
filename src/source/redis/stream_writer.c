/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_writer.c - the line that writes: acknowledgements, publications, renewals.
 *
 * Acknowledgements wait for a line and are repeated on the next one: a second XACK is harmless. If
 * no line comes up for a while, they are given up: their entries are delivered again, as
 * duplicates. A dead letter whose reply is lost is sent again: there may be two.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/time.h"
#include "source/redis/redis_private.h"
#include "source/source.h"

/* How long orders are kept while the server is down. */
enum { AWAY_MS_MAX = 10 * 1000 };

static bool has_room(const struct hx_redis_writer *writer)
{
	return writer->line.is_ready && writer->call_count < HX_REDIS_CALLS_MAX;
}

static bool send_call(struct hx_redis_writer *writer, enum hx_stream_call call, size_t count)
{
	size_t at = (writer->call_first + writer->call_count) % HX_REDIS_CALLS_MAX;

	if (!hx_redis_line_send(&writer->line))
		return false;
	writer->calls[at] = call;
	writer->counts[at] = count;
	writer->call_count++;
	return true;
}

/* ------------------------------------------------------------------ acknowledgements */

static size_t count_of(const struct hx_io_messages *list)
{
	size_t count = 0;

	for (const struct hx_io_message *at = list->first; at != NULL && count < HX_REDIS_IDS_MAX;
	     at = at->next)
		count++;
	return count;
}

/* Dead letters that were sent again leave their stream, before the group forgets them. */
static bool send_deletes(struct hx_redis_source *source, size_t count)
{
	struct hx_redis_writer *writer = &source->writer;
	const struct hx_io_message *at = writer->acked.first;

	hx_redis_line_command(&writer->line, count, HX_REDIS_WORDS("XDEL", source->place.stream));
	for (size_t i = 0; i < count; i++, at = at->next)
		hx_redis_line_put_text(
			&writer->line, ((const struct hx_redis_entry *)(const void *)at)->id);
	return send_call(writer, HX_REDIS_CALL_OTHER, 0) && has_room(writer);
}

static void send_acks(struct hx_redis_source *source)
{
	struct hx_redis_writer *writer = &source->writer;

	while (writer->acked.first != NULL && has_room(writer)) {
		size_t count = count_of(&writer->acked);

		if (source->place.deletes && !send_deletes(source, count))
			return;
		hx_redis_line_command(
			&writer->line, count,
			HX_REDIS_WORDS("XACK", source->place.stream, source->place.group));
		for (size_t i = 0; i < count; i++) {
			struct hx_io_message *message_ = hx_io_messages_take(&writer->acked);

			hx_redis_line_put_text(
				&writer->line, ((struct hx_redis_entry *)(void *)message_)->id);
			HX_LIST_ADD(&writer->acking, message_, next);
		}
		if (!send_call(writer, HX_REDIS_CALL_ACK, count))
			return;
	}
}

/* XCLAIM for ourselves, whatever the idle time; ids and options follow. */
static void begin_claim(struct hx_redis_source *source, size_t more)
{
	hx_redis_line_command(
		&source->writer.line, more,
		HX_REDIS_WORDS(
			"XCLAIM", source->place.stream, source->place.group, source->member, "0"));
}

static void forget(struct hx_redis_source *source, struct hx_redis_entry *entry)
{
	bool is_ordered = entry->is_ordered;

	hx_redis_entry_free(source, entry);
	if (is_ordered)
		hx_io_thread_carried_out(&source->io_thread, 1);
}

/* Set their idle time so that any member's next sweep takes them; not counted as a delivery. */
static void send_given_back(struct hx_redis_source *source)
{
	struct hx_redis_writer *writer = &source->writer;

	while (writer->given_back.first != NULL && has_room(writer)) {
		size_t count = count_of(&writer->given_back);

		begin_claim(source, count + 3);
		for (size_t i = 0; i < count; i++) {
			struct hx_io_message *message_ = hx_io_messages_take(&writer->given_back);
			struct hx_redis_entry *entry = (struct hx_redis_entry *)(void *)message_;

			hx_redis_line_put_text(&writer->line, entry->id);
			forget(source, entry);
		}
		hx_redis_line_put_text(&writer->line, "IDLE");
		hx_redis_line_put_number(&writer->line, 100 * source->place.min_idle_ms);
		hx_redis_line_put_text(&writer->line, "JUSTID");
		if (!send_call(writer, HX_REDIS_CALL_OTHER, 0))
			return;
	}
}

static void out_of_hand(struct hx_redis_source *source, struct hx_redis_entry *entry)
{
	if (entry->older != NULL)
		entry->older->newer = entry->newer;
	else
		source->oldest = entry->newer;
	if (entry->newer != NULL)
		entry->newer->older = entry->older;
	else
		source->newest = entry->older;
	source->held--;
	source->held_bytes -= entry->raw.size + entry->text.size;
}

/* ------------------------------------------------------------------ publications */

static const struct hx_redis_entry *entry_of(const struct hapax_publication *publication)
{
	union {
		const struct hapax_message *constant;
		const struct hx_redis_entry *entry;
	} message = {.constant = publication->message};

	return message.entry;
}

/* Put its original fields, and the consumer's own. */
static size_t put_fields(
	struct hx_redis_writer *writer, const struct hapax_publication *publication,
	bool counts_only)
{
	const struct hx_redis_entry *entry = entry_of(publication);
	size_t count = 0;

	for (size_t i = 0; i < entry->raw_count + publication->header_count; i++) {
		bool is_raw = i < entry->raw_count;
		const struct hapax_field *field =
			is_raw ? &entry->fields[i] : &publication->headers[i - entry->raw_count];

		if (is_raw == hx_source_adds_header(field->name))
			continue;
		count++;
		if (counts_only)
			continue;
		hx_redis_line_put(&writer->line, field->name);
		hx_redis_line_put(&writer->line, field->value);
	}
	return count;
}

static void put_entry(struct hx_redis_writer *writer, const struct hapax_publication *publication)
{
	size_t count = put_fields(writer, publication, true);

	hx_redis_line_command(
		&writer->line, 2 * count, HX_REDIS_WORDS("XADD", publication->target, "*"));
	(void)put_fields(writer, publication, false);
}

static void send_publications(struct hx_redis_source *source)
{
	struct hx_redis_writer *writer = &source->writer;

	while (writer->waiting.first != NULL && has_room(writer)) {
		struct hapax_publication *publication = hx_publications_take(&writer->waiting);

		if (publication->message->flags & HAPAX_MESSAGE_TOO_LARGE)
			hx_redis_large_copy(source, entry_of(publication), publication);
		else
			put_entry(writer, publication);
		HX_LIST_ADD(&writer->adding, publication, private_next);
		if (!send_call(writer, HX_REDIS_CALL_ADD, 0))
			return;
	}
}

/* ------------------------------------------------------------------ orders */

static void pump(struct hx_redis_source *source)
{
	send_acks(source);
	send_given_back(source);
	send_publications(source);
	if (source->is_stopping)
		hx_redis_source_end(source);
}

/* Too large, and without a dead-letter target. */
static bool is_refused(const struct hx_redis_source *source, const struct hx_redis_entry *entry)
{
	return entry->message_.message.flags & HAPAX_MESSAGE_TOO_LARGE &&
		!entry->message_.is_acked && !source->is_stopping;
}

/* Keep it pending, so that no member gets it, but without a slot. */
static void set_aside(struct hx_redis_source *source, struct hx_redis_entry *entry)
{
	entry->is_aside = true;
	source->held--;
	hx_io_thread_carried_out(&source->io_thread, 1);
}

void hx_redis_writer_give_back_aside(struct hx_redis_source *source)
{
	struct hx_redis_entry *next;

	for (struct hx_redis_entry *at = source->oldest; at != NULL; at = next) {
		next = at->newer;
		if (!at->is_aside)
			continue;
		source->held++;
		out_of_hand(source, at);
		at->is_ordered = false;
		HX_LIST_ADD(&source->writer.given_back, &at->message_, next);
	}
}

void hx_redis_writer_settle(struct hx_redis_source *source)
{
	struct hx_io_messages settled = hx_io_thread_take_settled(&source->io_thread);
	struct hx_publications asked = hx_io_thread_take_asked(&source->io_thread);
	struct hapax_publication *publication;
	struct hx_io_message *message_;

	while ((message_ = hx_io_messages_take(&settled)) != NULL) {
		struct hx_redis_entry *entry = (struct hx_redis_entry *)(void *)message_;

		if (is_refused(source, entry)) {
			set_aside(source, entry);
			continue;
		}
		out_of_hand(source, entry);
		entry->is_ordered = true;
		HX_LIST_ADD(
			message_->is_acked ? &source->writer.acked : &source->writer.given_back,
			message_, next);
	}
	while ((publication = hx_publications_take(&asked)) != NULL)
		HX_LIST_ADD(&source->writer.waiting, publication, private_next);
	pump(source);
}

void hx_redis_writer_unblock(struct hx_redis_source *source)
{
	struct hx_redis_writer *writer = &source->writer;

	if (!has_room(writer) || !source->reader.is_asking || source->reader.line.client_id == 0)
		return;
	hx_redis_line_command(&writer->line, 1, HX_REDIS_WORDS("CLIENT", "UNBLOCK"));
	hx_redis_line_put_number(&writer->line, source->reader.line.client_id);
	(void)send_call(writer, HX_REDIS_CALL_OTHER, 0);
}

void hx_redis_writer_drop(struct hx_redis_source *source, struct hapax_bytes id)
{
	struct hx_redis_entry *entry = hx_redis_entry_take(source);

	if (entry == NULL)
		return;
	(void)snprintf(entry->id, sizeof(entry->id), "%.*s", (int)id.size, (const char *)id.data);
	entry->is_ordered = false;
	HX_LIST_ADD(&source->writer.acked, &entry->message_, next);
	send_acks(source);
}

void hx_redis_writer_keep(struct hx_redis_source *source)
{
	struct hx_redis_writer *writer = &source->writer;
	const struct hx_redis_entry *at = source->oldest;

	while (at != NULL && has_room(writer)) {
		const struct hx_redis_entry *end = at;
		size_t count = 0;

		for (; end != NULL && count < HX_REDIS_IDS_MAX; end = end->newer)
			count++;
		begin_claim(source, count + 1);
		for (; at != end; at = at->newer)
			hx_redis_line_put_text(&writer->line, at->id);
		hx_redis_line_put_text(&writer->line, "JUSTID");
		if (!send_call(writer, HX_REDIS_CALL_OTHER, 0))
			return;
	}
}

static void ask_lag(struct hx_redis_source *source)
{
	struct hx_redis_writer *writer = &source->writer;

	if (!has_room(writer))
		return;
	hx_redis_line_command(
		&writer->line, 0, HX_REDIS_WORDS("XINFO", "GROUPS", source->place.stream));
	(void)send_call(writer, HX_REDIS_CALL_LAG, 0);
}

static void forget_all(struct hx_redis_source *source, struct hx_io_messages *list)
{
	struct hx_io_message *message_;

	while ((message_ = hx_io_messages_take(list)) != NULL)
		forget(source, (struct hx_redis_entry *)(void *)message_);
}

static void give_up(struct hx_redis_source *source)
{
	struct hx_redis_writer *writer = &source->writer;

	hx_io_thread_refuse(&source->io_thread, &writer->waiting, "could not reach Redis");
	forget_all(source, &writer->acked);
	forget_all(source, &writer->given_back);
}

void hx_redis_writer_pulse(struct hx_redis_source *source)
{
	struct hx_redis_writer *writer = &source->writer;
	int64_t now_ns = hx_reactor_now_ns(&source->io_thread.reactor);

	if (writer->line.is_ready) {
		writer->away_ns = 0;
		ask_lag(source);
	} else if (writer->away_ns == 0) {
		writer->away_ns = now_ns;
	} else if (now_ns - writer->away_ns > AWAY_MS_MAX * HX_NS_PER_MS) {
		give_up(source);
	}
}

bool hx_redis_writer_goodbye(struct hx_redis_source *source, const char *script)
{
	struct hx_redis_writer *writer = &source->writer;

	if (writer->acked.first != NULL || writer->given_back.first != NULL ||
	    writer->waiting.first != NULL || writer->call_count > 0)
		return false;
	if (script == NULL || writer->said_goodbye)
		return true;
	writer->said_goodbye = true;
	hx_redis_line_command(
		&writer->line, 0,
		HX_REDIS_WORDS(
			"EVAL", script, "1", source->place.stream, source->place.group,
			source->member));
	return !send_call(writer, HX_REDIS_CALL_OTHER, 0);
}

void hx_redis_writer_free(struct hx_redis_source *source)
{
	forget_all(source, &source->writer.acking);
	give_up(source);
	/* The consumer holds nothing: the rest was set aside. */
	while (source->oldest != NULL) {
		struct hx_redis_entry *entry = source->oldest;

		source->oldest = entry->newer;
		hx_redis_entry_free(source, entry);
	}
}

/* ------------------------------------------------------------------ replies */

/* [[name, group, ..., lag, n], ...] */
static int64_t read_lag(const struct hx_redis_source *source, struct hapax_bytes rest)
{
	struct hx_resp_value groups, group, name, value;
	struct hapax_bytes text;

	if (!hx_resp_next(&rest, &groups) || groups.type != HX_RESP_ARRAY)
		return -1;
	for (int64_t i = 0; i < groups.integer; i++) {
		bool is_it = false;
		int64_t lag = -1;

		if (!hx_resp_next(&rest, &group) || group.type != HX_RESP_ARRAY)
			return -1;
		for (int64_t k = 0; k + 1 < group.integer; k += 2) {
			if (!hx_resp_next(&rest, &name) || !hx_resp_next(&rest, &value) ||
			    !hx_resp_text(&name, &text))
				return -1;
			if (hx_bytes_equal(text, HX_BYTES_LIT("name")))
				is_it = hx_resp_text(&value, &text) &&
					hx_bytes_equal(
						text, hapax_bytes_from_text(source->place.group));
			else if (hx_bytes_equal(text, HX_BYTES_LIT("lag")))
				(void)hx_resp_integer(&value, &lag);
		}
		if (is_it)
			return lag;
	}
	return -1;
}

static void take_added(struct hx_redis_source *source, const struct hx_resp_value *value)
{
	struct hapax_publication *publication = hx_publications_take(&source->writer.adding);
	char why[HX_IO_THREAD_TEXT_SIZE];

	if (value->type != HX_RESP_ERROR) {
		hx_io_thread_published(&source->io_thread, publication, HAPAX_OK, "");
		return;
	}
	(void)snprintf(
		why, sizeof(why), "Redis: %.*s",
		(int)(value->text.size < 200 ? value->text.size : 200),
		(const char *)value->text.data);
	hx_io_thread_published(&source->io_thread, publication, HAPAX_ERR_UNAVAILABLE, why);
}

static void take_acked(
	struct hx_redis_source *source, const struct hx_resp_value *value, size_t count)
{
	char why[HX_IO_THREAD_TEXT_SIZE];

	/* READONLY, LOADING, NOAUTH: refused, but the next line may reach another server. */
	if (value->type == HX_RESP_ERROR) {
		(void)snprintf(
			why, sizeof(why), "Redis rejected the acknowledgment: %.*s",
			(int)(value->text.size < 200 ? value->text.size : 200),
			(const char *)value->text.data);
		hx_redis_connection_break(&source->writer.line.connection, why);
		return;
	}
	for (size_t i = 0; i < count; i++)
		forget(source,
		       (struct hx_redis_entry *)(void *)hx_io_messages_take(
			       &source->writer.acking));
}

static void on_reply(struct hx_redis_line *line, struct hapax_bytes reply)
{
	struct hx_redis_source *source = line->context;
	struct hx_redis_writer *writer = &source->writer;
	size_t at = writer->call_first;
	struct hapax_bytes rest = reply;
	struct hx_resp_value value;

	(void)hx_resp_next(&rest, &value);
	writer->call_first = (at + 1) % HX_REDIS_CALLS_MAX;
	writer->call_count--;
	switch (writer->calls[at]) {
	case HX_REDIS_CALL_ACK: take_acked(source, &value, writer->counts[at]); break;
	case HX_REDIS_CALL_ADD: take_added(source, &value); break;
	case HX_REDIS_CALL_LAG: source->io_thread.lag = read_lag(source, reply); break;
	case HX_REDIS_CALL_OTHER: break;
	}
	pump(source);
}

static void on_ready(struct hx_redis_line *line)
{
	pump(line->context);
}

static void on_lost(struct hx_redis_line *line, const char *why)
{
	struct hx_redis_source *source = line->context;
	struct hx_redis_writer *writer = &source->writer;
	struct hx_io_message *message_;

	writer->call_count = 0;
	hx_io_thread_refuse(&source->io_thread, &writer->adding, why);
	/* Put them before the waiting ones: the next line sends all of them. */
	while ((message_ = hx_io_messages_take(&writer->acked)) != NULL)
		HX_LIST_ADD(&writer->acking, message_, next);
	writer->acked = writer->acking;
	writer->acking = (struct hx_io_messages){NULL, NULL};
	hx_io_thread_say(&source->io_thread, "%s", why);
	if (source->is_stopping)
		hx_redis_source_end(source);
}

const struct hx_redis_line_ops hx_redis_writer_ops = {
	.ready = on_ready,
	.reply = on_reply,
	.lost = on_lost,
	.closed = hx_redis_source_closed,
};
