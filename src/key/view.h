/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - an event while its key is made: its data is parsed once, on demand.
 *
 * Scratch holds the nodes of the data, then the text being composed. Parts stay valid until
 * hx_view_done(): they point into the event or into text, which never moves.
 *
 * Threads: one at a time.
 */
#ifndef HX_KEY_VIEW_H
#define HX_KEY_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/key.h>

#include "key/path.h"
#include "wire/json/json_canonical.h"
#include "wire/json/json_tree.h"

/* The result; unless it is MADE, the caller's err says why. */
enum hx_key_made {
	HX_KEY_MADE,
	HX_KEY_MISSING, /* the event lacks something: the policy decides */
	HX_KEY_ABSENT,  /* like MISSING: nothing at the path, or null */
	HX_KEY_FAILED,  /* out of scratch or memory: not the event's fault */
};

enum hx_view_state {
	HX_VIEW_UNREAD,
	HX_VIEW_READ,
	HX_VIEW_NOT_JSON, /* reason says why */
};

struct hx_key_view {
	const struct hapax_event *event;
	struct hapax_buf *scratch;
	enum hx_view_state state;
	struct hx_json_tree tree;
	struct hapax_buf text; /* the data and the JSON in its strings (nested.h); often unused */
	char reason[HAPAX_ERROR_MESSAGE_SIZE];
};

void hx_view_init(
	struct hx_key_view *view, const struct hapax_event *event, struct hapax_buf *scratch);
void hx_view_done(struct hx_key_view *view);

/* Parse the data into a tree. MISSING: it is not JSON. */
enum hx_key_made hx_view_read(struct hx_key_view *view, struct hapax_error *err);

/* Keep the nodes in scratch: what follows them is free. */
void hx_view_keep_nodes(struct hx_key_view *view);

/* Reserve size bytes after the nodes; valid until the next call. NULL: see err. */
unsigned char *hx_view_room(struct hx_key_view *view, size_t size, struct hapax_error *err);

/*
 * Write the canonical text of the selected data to scratch; valid until the next call. MISSING: the
 * data is not JSON, or holds a number without a text in this dialect.
 */
enum hx_key_made hx_view_canonical(
	struct hx_key_view *view, enum hx_json_dialect dialect, enum hx_json_select select,
	struct hapax_bytes *ret, struct hapax_error *err);

/*
 * SHA-256 of the canonical text of the selected data. Data without that form is hashed whole, as
 * received.
 */
enum hx_key_made hx_view_fingerprint(
	struct hx_key_view *view, enum hx_json_select select,
	unsigned char out[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err);

enum hx_part_kind {
	HX_PART_BYTES,  /* as they are */
	HX_PART_STRING, /* of JSON */
	HX_PART_NUMBER, /* of JSON */
};

/* One value of an event, to be part of a key. Borrowed from the event. */
struct hx_key_part {
	enum hx_part_kind kind;
	struct hapax_bytes bytes; /* BYTES, NUMBER */
	struct hx_json_string string;
};

/*
 * The value at a path. ABSENT: none, or null. MISSING: it is an object, an array or a duplicate
 * name, or the data is not JSON. The message names the path.
 */
enum hx_key_made hx_view_part(
	struct hx_key_view *view, const struct hx_key_path *path, struct hx_key_part *ret,
	struct hapax_error *err);

#endif
