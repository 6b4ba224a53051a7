/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - read the data of an event, and find the values at paths.
 */
#include "key/view.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"
#include "key/nested.h"

_Static_assert(
	(int)HAPAX_FINGERPRINT_SIZE == (int)HX_SHA256_SIZE, "a fingerprint is a SHA-256 digest");

enum {
	/* Alignment of nodes and text. */
	SCRATCH_ALIGN = 16,
	/* Growth factor of the text buffer when the usual size is too small. */
	GROWTH = 4,
};

void hx_view_init(
	struct hx_key_view *view, const struct hapax_event *event, struct hapax_buf *scratch)
{
	view->event = event;
	view->scratch = scratch;
	view->state = HX_VIEW_UNREAD;
	hx_buf_init(&view->text, 0);
	hx_buf_clear(scratch);
}

void hx_view_done(struct hx_key_view *view)
{
	hx_buf_done(&view->text);
}

void hx_view_keep_nodes(struct hx_key_view *view)
{
	size_t used = view->tree.count * sizeof(struct hx_json_node);

	used = (used + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
	view->scratch->size = used < view->scratch->capacity ? used : view->scratch->capacity;
}

/* The data is not JSON, found now or at the first read. */
static enum hx_key_made not_json(struct hx_key_view *view, struct hapax_error *err)
{
	(void)hx_error_set(err, HAPAX_ERR_INVALID, 0, "%s", view->reason);
	return HX_KEY_MISSING;
}

enum hx_key_made hx_view_read(struct hx_key_view *view, struct hapax_error *err)
{
	struct hapax_error why;
	enum hapax_status status;
	bool is_short;

	if (view->state == HX_VIEW_READ)
		return HX_KEY_MADE;
	if (view->state == HX_VIEW_NOT_JSON)
		return not_json(view, err);
	if (view->event->data_kind == HAPAX_DATA_BYTES) {
		view->state = HX_VIEW_NOT_JSON;
		(void)snprintf(view->reason, sizeof(view->reason), "data is not JSON");
		return not_json(view, err);
	}
	status = hx_json_tree_read_into(
		&view->tree, view->event->data, view->scratch, &is_short, &why);
	if (status != HAPAX_OK && is_short) {
		(void)hx_error_set(err, status, 0, "%s", why.message);
		return HX_KEY_FAILED;
	}
	if (status != HAPAX_OK) {
		view->state = HX_VIEW_NOT_JSON;
		(void)hx_error_set(&why, HAPAX_ERR_INVALID, 0, "data: %s", why.message);
		memcpy(view->reason, why.message, sizeof(view->reason));
		return not_json(view, err);
	}
	view->state = HX_VIEW_READ;
	hx_view_keep_nodes(view);
	return HX_KEY_MADE;
}

unsigned char *hx_view_room(struct hx_key_view *view, size_t size, struct hapax_error *err)
{
	struct hapax_buf *scratch = view->scratch;
	/* At least a byte, so that there is a valid pointer. */
	enum hapax_status status = hx_buf_reserve(scratch, size == 0 ? 1 : size);

	if (status != HAPAX_OK) {
		(void)hx_error_set(err, status, 0, "out of scratch memory (%zu bytes)", size);
		return NULL;
	}
	/* The nodes may have moved with the buffer. */
	if (view->state == HX_VIEW_READ)
		view->tree.nodes = (struct hx_json_node *)(void *)scratch->data;
	return scratch->data + scratch->size;
}

/* Try once with this much room; *ret_short: more may help. */
static enum hx_key_made write_canonical(
	struct hx_key_view *view, enum hx_json_dialect dialect, enum hx_json_select select,
	size_t room, struct hapax_bytes *ret, bool *ret_short, struct hapax_error *err)
{
	struct hx_json_target target = {.data = hx_view_room(view, room, err), .capacity = room};

	if (target.data == NULL)
		return HX_KEY_FAILED;
	/* Use all of scratch: it may be larger than requested. */
	target.capacity = view->scratch->capacity - view->scratch->size;
	if (hx_json_canonical_write(&view->tree, view->tree.nodes, dialect, select, &target, err) ==
	    HAPAX_OK) {
		*ret = hx_bytes(target.data, target.size);
		return HX_KEY_MADE;
	}
	*ret_short = target.is_short;
	return HX_KEY_MISSING;
}

enum hx_key_made hx_view_canonical(
	struct hx_key_view *view, enum hx_json_dialect dialect, enum hx_json_select select,
	struct hapax_bytes *ret, struct hapax_error *err)
{
	size_t room = hx_json_canonical_usual(view->event->data.size, dialect);
	enum hx_key_made made = hx_view_read(view, err);
	bool is_short = made == HX_KEY_MADE;

	while (is_short) {
		size_t left = view->scratch->size_max - view->scratch->size;

		if (room > left)
			room = left;
		is_short = false;
		made = write_canonical(view, dialect, select, room, ret, &is_short, err);
		if (is_short && room == left)
			return HX_KEY_FAILED;
		room *= GROWTH;
	}
	return made;
}

enum hx_key_made hx_view_fingerprint(
	struct hx_key_view *view, enum hx_json_select select,
	unsigned char out[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err)
{
	struct hapax_bytes text = view->event->data;
	enum hx_key_made made = HX_KEY_MISSING;

	/*
	 * The reason why bytes are not JSON is not needed, and writing it takes longer than
	 * hashing.
	 */
	if (view->event->data_kind != HAPAX_DATA_BYTES)
		made = hx_view_canonical(view, HX_JSON_LOSSLESS, select, &text, err);
	if (made == HX_KEY_FAILED)
		return made;
	if (made == HX_KEY_MISSING)
		text = view->event->data;
	hx_sha256(text.data, text.size, out);
	return HX_KEY_MADE;
}

static enum hx_key_made missing(
	const struct hx_key_path *path, const char *why, struct hapax_error *err)
{
	(void)hx_error_set(err, HAPAX_ERR_INVALID, 0, "'%s' %s", path->text, why);
	return HX_KEY_MISSING;
}

static enum hx_key_made absent(
	const struct hx_key_path *path, const char *why, struct hapax_error *err)
{
	(void)missing(path, why, err);
	return HX_KEY_ABSENT;
}

static enum hx_key_made no_part(
	const struct hx_key_path *path, const char *what, struct hapax_error *err)
{
	(void)hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"cannot use '%s' in a key: it is %s; select a string, number or boolean inside it",
		path->text, what);
	return HX_KEY_MISSING;
}

static enum hx_key_made data_part(
	struct hx_key_view *view, const struct hx_key_path *path, struct hx_key_part *ret,
	struct hapax_error *err)
{
	struct hapax_error why = {HAPAX_OK, 0, ""};
	enum hx_key_made made = hx_view_read(view, &why);
	const struct hx_json_node *node;

	if (made != HX_KEY_MADE) {
		(void)hx_error_set(
			err, why.status, 0, "cannot find '%s': %s", path->text, why.message);
		return made;
	}
	if (path->json.nested > 0) {
		made = hx_nested_open(view, path, err);
		if (made != HX_KEY_MADE)
			return made;
	}
	node = hx_json_path_find(&path->json, &view->tree);
	if (node == NULL)
		return absent(path, "is missing", err);
	switch ((enum hx_json_type)node->token.type) {
	case HX_JSON_STRING:
		ret->kind = HX_PART_STRING;
		ret->string = hx_json_node_string(&view->tree, node);
		return HX_KEY_MADE;
	case HX_JSON_NUMBER:
		ret->kind = HX_PART_NUMBER;
		ret->bytes = hx_json_node_text(&view->tree, node);
		return HX_KEY_MADE;
	case HX_JSON_TRUE:
	case HX_JSON_FALSE:
		ret->kind = HX_PART_BYTES;
		ret->bytes = hx_json_node_text(&view->tree, node);
		return HX_KEY_MADE;
	case HX_JSON_NULL: return absent(path, "is null", err);
	case HX_JSON_OBJECT: return no_part(path, "an object", err);
	case HX_JSON_ARRAY: return no_part(path, "an array", err);
	case HX_JSON_END:
	case HX_JSON_OBJECT_END:
	case HX_JSON_ARRAY_END: break;
	}
	assert(false);
	return HX_KEY_FAILED;
}

static bool equal_in_either_case(struct hapax_bytes a, struct hapax_bytes b)
{
	const unsigned char *x = a.data;
	const unsigned char *y = b.data;

	if (a.size != b.size)
		return false;
	for (size_t i = 0; i < a.size; i++) {
		unsigned char p = x[i] >= 'A' && x[i] <= 'Z' ? (unsigned char)(x[i] | 0x20) : x[i];
		unsigned char q = y[i] >= 'A' && y[i] <= 'Z' ? (unsigned char)(y[i] | 0x20) : y[i];

		if (p != q)
			return false;
	}
	return true;
}

/* A duplicate name has no value: the handler of the event might use the other one. */
static enum hx_key_made field_part(
	const struct hapax_field *fields, size_t count, bool any_case,
	const struct hx_key_path *path, struct hx_key_part *ret, struct hapax_error *err)
{
	struct hapax_bytes name = hapax_bytes_from_text(path->name);
	const struct hapax_field *found = NULL;

	for (size_t i = 0; i < count; i++) {
		bool equal = any_case ? equal_in_either_case(fields[i].name, name)
				      : hx_bytes_equal(fields[i].name, name);

		if (equal && found != NULL)
			return missing(path, "occurs twice", err);
		if (equal)
			found = &fields[i];
	}
	if (found == NULL)
		return absent(path, "is missing", err);
	ret->kind = HX_PART_BYTES;
	ret->bytes = found->value;
	return HX_KEY_MADE;
}

enum hx_key_made hx_view_part(
	struct hx_key_view *view, const struct hx_key_path *path, struct hx_key_part *ret,
	struct hapax_error *err)
{
	const struct hapax_event *event = view->event;

	switch (path->source) {
	case HX_KEY_DATA: return data_part(view, path, ret, err);
	case HX_KEY_ATTRIBUTE:
		return field_part(event->attributes, event->attribute_count, false, path, ret, err);
	case HX_KEY_HEADER:
		return field_part(event->headers, event->header_count, true, path, ret, err);
	case HX_KEY_META: return field_part(event->meta, event->meta_count, false, path, ret, err);
	}
	assert(false);
	return HX_KEY_FAILED;
}
