/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_body.h - a complete message body: in memory if small, in an unnamed temporary file if large.
 *
 * Many slow uploads must not fill the memory. The file lives in the page cache and disappears with
 * the process.
 *
 * Threads: one at a time.
 */
#ifndef HX_NET_HTTP_HTTP_BODY_H
#define HX_NET_HTTP_HTTP_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/budget.h"
#include "base/buf.h"

enum {
	/* Most events are far smaller; a thousand of these are 256 MiB. */
	HX_HTTP_BODY_MEMORY_MAX = 256 * 1024,

	/* Kept for the next message. */
	HX_HTTP_BODY_KEPT_MAX = 16 * 1024,
};

struct hx_http_body {
	struct hapax_buf memory; /* all of it while there is no file */
	const char *folder;      /* of the file; borrowed */
	int file;                /* -1: none */
	uint64_t size;
	struct hx_budget *file_budget; /* for bytes in the file; NULL: none */
	size_t file_taken;             /* of it */
};

/* Allocates nothing. More than memory_max goes into a file in folder. */
void hx_http_body_init(struct hx_http_body *body, const char *folder, size_t memory_max);

/* Prepare for the next message, like init; keeps a little memory. */
void hx_http_body_clear(struct hx_http_body *body);

/* Frees everything. */
void hx_http_body_done(struct hx_http_body *body);

/* NO_MEMORY, LIMIT of the file budget, or a disk error; earlier bytes are still there. */
enum hapax_status hx_http_body_add(
	struct hx_http_body *body, struct hapax_bytes data, struct hapax_error *err);

static inline bool hx_http_body_is_in_memory(const struct hx_http_body *body)
{
	return body->file < 0;
}

/* The whole body in one piece: from memory, or read into buf, which is cleared first. */
enum hapax_status hx_http_body_whole(
	const struct hx_http_body *body, struct hapax_buf *buf, struct hapax_bytes *ret,
	struct hapax_error *err);

/* Read size bytes at offset; they must exist. */
enum hapax_status hx_http_body_read(
	const struct hx_http_body *body, uint64_t offset, void *data, size_t size,
	struct hapax_error *err);

#endif
