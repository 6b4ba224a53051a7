/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_private.h - declarations that the files of the Redis source share.
 *
 * There are two connections, called lines. One reads, and waits at the server for entries
 * (XREADGROUP BLOCK). The other acknowledges, keeps our entries, and publishes. An entry is ours,
 * in the group's list of pending entries, until XACK. The list goes by id and outlives connections.
 *
 *  (1) XACK is sent for an entry only when the consumer settled it as done. It is repeated after a
 *      lost reply, which is harmless.
 *  (2) XCLAIM JUSTID keeps entries in flight from other members, at a third of min_idle. It does
 *      not count as a delivery.
 *  (3) An entry above size_max is never read, but always known: it becomes a dead letter or,
 *      without a dead-letter target, is kept from other members until we stop.
 *
 * Threads: the I/O thread's.
 */
#ifndef HX_SOURCE_REDIS_PRIVATE_H
#define HX_SOURCE_REDIS_PRIVATE_H

#include "source/io_thread.h"
#include "source/redis/stream_connection.h"
#include "source/redis/stream_place.h"

enum {
	HX_REDIS_HELD_BYTES_MAX = 128 * 1024 * 1024,
	HX_REDIS_ID_SIZE = 48,
	HX_REDIS_CALLS_MAX = 512,
	HX_REDIS_IDS_MAX = 256, /* in one command */
};

struct hx_redis_entry {
	struct hx_io_message message_; /* first, so that a message can be cast */
	char id[HX_REDIS_ID_SIZE];
	bool is_ordered;              /* settled by the consumer, which waits for it */
	bool is_aside;                /* too large, without a dead letter: kept, without a slot */
	struct hx_redis_entry *older; /* in the list of entries in flight */
	struct hx_redis_entry *newer;
	struct hapax_buf raw;       /* names and values of its fields */
	struct hapax_buf text;      /* generated text: names with a prefix, JSON */
	struct hapax_field *fields; /* as received, then as headers */
	size_t field_max;
	size_t raw_count;
	struct hapax_publication *publication;
	struct hx_redis_entry *spare_next;
};

/* The command that a reply of the writer's line answers. */
enum hx_stream_call {
	HX_REDIS_CALL_ACK,
	HX_REDIS_CALL_ADD,
	HX_REDIS_CALL_LAG,
	HX_REDIS_CALL_OTHER,
};

struct hx_redis_writer {
	struct hx_redis_line line;
	enum hx_stream_call calls[HX_REDIS_CALLS_MAX]; /* a ring: sent, without reply */
	size_t counts[HX_REDIS_CALLS_MAX];             /* entries of an ACK */
	size_t call_first;
	size_t call_count;
	struct hx_io_messages acked;      /* to be sent */
	struct hx_io_messages acking;     /* sent, without reply */
	struct hx_io_messages given_back; /* to be sent */
	struct hx_publications adding;
	struct hx_publications waiting; /* for a line */
	int64_t away_ns;                /* since when the line is down; 0: it is up */
	bool said_goodbye;
};

struct hx_redis_reader {
	struct hx_redis_line line;
	bool is_asking;       /* a command waits for its reply */
	bool is_sweeping;     /* ... which is XAUTOCLAIM */
	bool needs_group;     /* XGROUP CREATE comes first */
	bool is_making_group; /* ... and was sent */
	bool is_recalling;    /* ... which is XREADGROUP of our own pending entries */
	bool needs_survey;    /* a reply was too large: first ask which of our entries are */
	bool is_surveying;    /* ... and the question was sent */
	bool has_begun;
	char history[HX_REDIS_ID_SIZE]; /* last own pending entry that was read; "": all were */
	char cursor[HX_REDIS_ID_SIZE];  /* of the sweep; "": none is due */
	char last_id[HX_REDIS_ID_SIZE]; /* of new entries; "": none yet */
	size_t count;                   /* to ask for */
	size_t asked;                   /* the count of the last command */
};

struct hx_redis_source {
	struct hx_io_thread io_thread; /* first, so that a source can be cast */
	struct hx_stream_place place;
	char member[HX_STREAM_NAME_SIZE];
	struct hx_resolver resolver;
	bool has_resolver;
	struct hx_tls_context *tls;
	struct hx_timer pulse;
	int64_t swept_ns;
	int64_t kept_ns;
	bool has_instance; /* the URL names the member, so the name will be used again */
	bool is_stopping;
	bool is_ending; /* within hx_redis_source_end() */
	bool has_closed;
	int64_t stop_ns;  /* the deadline of the disconnect */
	unsigned closing; /* lines that are still to close */

	struct hx_redis_reader reader;
	struct hx_redis_writer writer;
	struct hx_redis_entry *oldest; /* in flight */
	struct hx_redis_entry *newest;
	size_t held;
	size_t held_bytes;
	struct hx_redis_entry *spare;
	size_t spare_count;
};

/* stream_entry.c */
struct hx_redis_entry *hx_redis_entry_take(struct hx_redis_source *source);
void hx_redis_entry_free(struct hx_redis_source *source, struct hx_redis_entry *entry);
void hx_redis_entry_free_spares(struct hx_redis_source *source);

/* Make a message of that id, without fields. */
void hx_redis_entry_name(
	struct hx_redis_source *source, struct hx_redis_entry *entry, struct hapax_bytes id);

/* Read fields, the array of names and values after an id in a reply. False: no memory. */
bool hx_redis_entry_read(
	struct hx_redis_source *source, struct hx_redis_entry *entry, struct hapax_bytes id,
	struct hapax_bytes *fields, int64_t count);

/* stream_reader.c */
extern const struct hx_redis_line_ops hx_redis_reader_ops;
void hx_redis_reader_pump(struct hx_redis_source *source);
/* The largest reply that a line accepts if an entry has at most size_max bytes. */
size_t hx_redis_reader_reply_size_max(size_t size_max);
/* Whether the entry is already in flight. */
bool hx_redis_reader_holds(const struct hx_redis_source *source, struct hapax_bytes id);
void hx_redis_reader_take_in(
	struct hx_redis_source *source, struct hx_redis_entry *entry,
	struct hx_io_messages *ret_list);

/* stream_large.c: ask which pending entries are too large; read the reply. False: malformed. */
void hx_redis_large_survey(struct hx_redis_source *source);
bool hx_redis_large_take(
	struct hx_redis_source *source, struct hapax_bytes rest, struct hx_io_messages *ret_list);
/* An entry with nothing but its id. NULL: no memory. */
struct hx_redis_entry *hx_redis_large_entry(struct hx_redis_source *source, struct hapax_bytes id);
/* Put the command that hands it on. */
void hx_redis_large_copy(
	struct hx_redis_source *source, const struct hx_redis_entry *entry,
	const struct hapax_publication *publication);

/* stream_writer.c */
extern const struct hx_redis_line_ops hx_redis_writer_ops;
void hx_redis_writer_settle(struct hx_redis_source *source);
void hx_redis_writer_pulse(struct hx_redis_source *source);
void hx_redis_writer_keep(struct hx_redis_source *source);
/* We stop: release the entries that were set aside. */
void hx_redis_writer_give_back_aside(struct hx_redis_source *source);
/* Make the reader's command return at once. */
void hx_redis_writer_unblock(struct hx_redis_source *source);
/* An entry was deleted before it was handled: remove it from the group. */
void hx_redis_writer_drop(struct hx_redis_source *source, struct hapax_bytes id);

/* Write everything and, with a script, remove the member. False: not finished yet. */
bool hx_redis_writer_goodbye(struct hx_redis_source *source, const char *script);
/* The thread has ended: free the rest. */
void hx_redis_writer_free(struct hx_redis_source *source);

/* redis_source.c: continue the disconnect, if one is in progress; a line was closed. */
void hx_redis_source_end(struct hx_redis_source *source);
void hx_redis_source_closed(struct hx_redis_line *line);

#endif
