/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_body.h - the body of a message that is held as a whole: small ones in memory,
 * large ones in a temporary file that has no name.
 *
 * Many slow uploads must not fill the memory. What is written to the file goes to the
 * page cache and is gone with the process.
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

	/* Kept for the next message when one is done with. */
	HX_HTTP_BODY_KEPT_MAX = 16 * 1024,
};

struct hx_http_body {
	struct hapax_buf memory; /* all of it while there is no file */
	const char *folder;      /* of the file; borrowed */
	int file;                /* -1: none */
	uint64_t size;
	struct hx_budget *file_budget; /* that bytes in the file are taken from; NULL: none */
	size_t file_taken;             /* of it */
};

/* Allocates nothing. More than memory_max goes into a file in folder. */
void hx_http_body_init(struct hx_http_body *body, const char *folder, size_t memory_max);

/* Also ready for the next message, as init; keeps a little memory. */
void hx_http_body_clear(struct hx_http_body *body);

/* Gives everything back. */
void hx_http_body_done(struct hx_http_body *body);

/* NO_MEMORY, LIMIT of the file budget, or what the disk says; what was added before is still there. */
enum hapax_status hx_http_body_add(
	struct hx_http_body *body, struct hapax_bytes data, struct hapax_error *err);

static inline bool hx_http_body_is_in_memory(const struct hx_http_body *body)
{
	return body->file < 0;
}

/* All of it in one piece: where it lies, or read into buf, which is cleared first. */
enum hapax_status hx_http_body_whole(
	const struct hx_http_body *body, struct hapax_buf *buf, struct hapax_bytes *ret,
	struct hapax_error *err);

/* Read size bytes at offset, which are there. */
enum hapax_status hx_http_body_read(
	const struct hx_http_body *body, uint64_t offset, void *data, size_t size,
	struct hapax_error *err);

#endif
