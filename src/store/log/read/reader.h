/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - one segment, read from front to back, each frame verified.
 *
 * Needs no store: recovery, the copy pass, fsck and tests use it. It reads with direct I/O if
 * the file system can, since the page cache may show what a failed sync never wrote.
 * HX_LOG_READ_CACHED says that the file system could not.
 *
 * Threads: one at a time for a reader.
 */
#ifndef HX_STORE_LOG_READ_READER_H
#define HX_STORE_LOG_READ_READER_H

#include "store/log/format/format.h"

struct hx_index;
struct hx_index_key;
struct hx_io;

struct hx_log_reader {
	const struct hx_io *io;
	int file; /* -1: closed */
	bool is_direct;
	uint64_t file_bytes;
	struct hx_log_header header;
	uint32_t seed;
	uint64_t offset; /* of the next frame */
	uint64_t window_offset;
	size_t window_size;      /* bytes of the file in window */
	size_t window_committed; /* bytes of memory that window has */
	unsigned char *window;   /* pages; grows to hold a whole frame */
};

enum hx_log_found {
	HX_LOG_FOUND_FRAME,
	HX_LOG_FOUND_END,     /* the file ends here */
	HX_LOG_FOUND_NOTHING, /* no frame of this segment begins here: zeros, or older content */
	HX_LOG_FOUND_DAMAGE,  /* a frame begins here, and its bytes do not match its CRC */
};

/*
 * Open path and read its header; reader is zeroed, or was shut. CORRUPT or UNSUPPORTED: see
 * hx_log_header_decode(); CORRUPT also if the file is shorter than its capacity, unless
 * may_be_short: it is then read as far as it goes. Messages name the file.
 */
enum hapax_status hx_log_reader_open(
	struct hx_log_reader *reader, const struct hx_io *io, const char *path, bool may_be_short,
	struct hapax_error *err);

/* Close the file and keep the memory for the next one. */
void hx_log_reader_shut(struct hx_log_reader *reader);

/* reader may be zeroed and never opened. */
void hx_log_reader_close(struct hx_log_reader *reader);

/*
 * Look at reader->offset. With HX_LOG_FOUND_FRAME, *ret_entries are its entries, valid until the
 * next call, and offset moves behind it; otherwise offset stays. UNAVAILABLE, NO_MEMORY: it
 * could not be read.
 */
enum hapax_status hx_log_reader_next(
	struct hx_log_reader *reader, enum hx_log_found *ret_found, struct hx_log_frame *ret_frame,
	struct hapax_bytes *ret_entries, struct hapax_error *err);

/*
 * After anything but a frame: try every block from there to the end of the file. *ret_found says
 * whether there is a later frame; offset does not move.
 */
enum hapax_status hx_log_reader_witness(
	struct hx_log_reader *reader, bool *ret_found, struct hx_log_frame *ret_frame,
	struct hapax_error *err);

/* Any single block: what begins there, and is it all zeros? offset does not move. */
enum hapax_status hx_log_reader_probe(
	struct hx_log_reader *reader, uint64_t offset, enum hx_log_found *ret_found,
	struct hx_log_frame *ret_frame, bool *ret_is_zero, struct hapax_error *err);

/* The entries of a frame, one by one. */
struct hx_log_entries {
	struct hapax_bytes left;
	uint32_t count; /* still to come */
	uint64_t lsn;   /* of the next one, in the log */
	uint64_t offset;
	bool is_log; /* LSNs must be consecutive */
};

void hx_log_entries_begin(
	struct hx_log_entries *entries, const struct hx_log_frame *frame, enum hx_log_kind kind,
	struct hapax_bytes bytes);

/* False: there are no more, or *ret_status says what is wrong with the next one. */
bool hx_log_entries_next(
	struct hx_log_entries *entries, struct hx_log_entry *ret_entry,
	enum hapax_status *ret_status, struct hapax_error *err);

typedef enum hapax_status hx_log_each_fn(
	void *context, const struct hx_log_entry *entry, struct hapax_error *err);

/*
 * Call each for the entries of every frame from reader->offset to end, until it returns a status
 * other than OK. CORRUPT: the segment has changed since it was written.
 */
enum hapax_status hx_log_reader_each(
	struct hx_log_reader *reader, uint64_t end, hx_log_each_fn *each, void *context,
	struct hapax_error *err);

/* The key of a PUT or REMOVE in the index, which has its own number for the scope. */
void hx_log_entry_key(
	const struct hx_log_entry *entry, uint32_t scope_id, struct hx_index *index,
	struct hx_index_key *ret_key);

#endif
