/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_template.c - template: text with {PATH} and {date:%Y-%m-%d} in it.
 *
 * A value is escaped like a part of a composite, but its separator is the first byte of the text
 * that follows. Read from the left, a value ends at the first such byte outside an escape, so
 * different lists of values give different keys. Therefore a value must be followed by text, not by
 * another value, and that text must not begin with a percent sign. {{ and }} are braces.
 */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "wire/date.h"
#include "key/key.h"
#include "key/part.h"

enum { PIECES_MAX = 2 * HX_KEY_PATHS_MAX + 1 };

enum piece_kind {
	PIECE_TEXT,
	PIECE_DATE,
	PIECE_VALUE,
};

struct hx_key_piece {
	enum piece_kind kind;
	char *text; /* TEXT: the text; DATE: its format */
	size_t size;
	struct hx_key_path *path; /* VALUE */
};

void hx_key_pieces_free(struct hx_key_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		hx_free(pieces[i].text);
		hx_free(pieces[i].path);
	}
	hx_free(pieces);
}

static enum hapax_status no_memory(struct hapax_error *err)
{
	return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a template");
}

/* The next piece; NULL: too many pieces. */
static struct hx_key_piece *add_piece(struct hapax_key_strategy *strategy, enum piece_kind kind)
{
	struct hx_key_piece *piece = &strategy->pieces[strategy->piece_count];

	if (strategy->piece_count == PIECES_MAX)
		return NULL;
	strategy->piece_count++;
	piece->kind = kind;
	return piece;
}

static enum hapax_status too_many(struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"the key template has too many parts (fields, and texts between them): limit %d",
		PIECES_MAX);
}

/* Read text up to the next single brace; returns the size read. */
static enum hapax_status read_text(
	struct hapax_key_strategy *strategy, struct hapax_bytes rest, size_t *ret_read,
	struct hapax_error *err)
{
	const char *text = rest.data;
	struct hx_key_piece *piece = add_piece(strategy, PIECE_TEXT);
	size_t at = 0;

	if (piece == NULL)
		return too_many(err);
	piece->text = hx_alloc(rest.size);
	if (piece->text == NULL)
		return no_memory(err);
	while (at < rest.size) {
		bool brace = text[at] == '{' || text[at] == '}';

		if (brace && at + 1 < rest.size && text[at + 1] == text[at])
			at++;
		else if (brace)
			break;
		piece->text[piece->size++] = text[at++];
	}
	if (at < rest.size && text[at] == '}')
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid template: } without {; write }} for a brace");
	*ret_read = at;
	return HAPAX_OK;
}

static enum hapax_status read_date(
	struct hapax_key_strategy *strategy, struct hapax_bytes format, struct hapax_error *err)
{
	enum hapax_status status = hx_date_check(format, err);
	struct hx_key_piece *piece;

	if (status != HAPAX_OK)
		return status;
	piece = add_piece(strategy, PIECE_DATE);
	if (piece == NULL)
		return too_many(err);
	piece->text = hx_alloc(format.size);
	if (piece->text == NULL)
		return no_memory(err);
	memcpy(piece->text, format.data, format.size);
	piece->size = format.size;
	strategy->needs |= HAPAX_KEY_NEEDS_TIME;
	return HAPAX_OK;
}

static enum hapax_status read_value(
	struct hapax_key_strategy *strategy, struct hapax_bytes path, struct hapax_error *err)
{
	struct hx_key_piece *piece = add_piece(strategy, PIECE_VALUE);
	enum hapax_status status;

	if (piece == NULL)
		return too_many(err);
	piece->path = hx_alloc_zero(1, sizeof(*piece->path));
	if (piece->path == NULL)
		return no_memory(err);
	status = hx_key_path_parse(
		piece->path, path, (strategy->flags & HAPAX_KEY_RELATIVE) != 0, false, err);
	if (status == HAPAX_OK && piece->path->source == HX_KEY_DATA)
		strategy->needs |= HAPAX_KEY_NEEDS_DATA;
	return status;
}

/* Read {...}; rest begins with the brace. */
static enum hapax_status read_braces(
	struct hapax_key_strategy *strategy, struct hapax_bytes rest, size_t *ret_read,
	struct hapax_error *err)
{
	static const char date[] = "date:";
	const char *inside = (const char *)rest.data + 1;
	const char *close = memchr(inside, '}', rest.size - 1);
	size_t date_size = sizeof(date) - 1;
	size_t size;

	if (close == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid template: { without }; write {{ for a brace");
	size = (size_t)(close - inside);
	*ret_read = size + 2;
	if (size >= date_size && memcmp(inside, date, date_size) == 0)
		return read_date(strategy, hx_bytes(inside + date_size, size - date_size), err);
	return read_value(strategy, hx_bytes(inside, size), err);
}

/* Check the rules at the top of this file. */
static enum hapax_status check_pieces(
	const struct hapax_key_strategy *strategy, struct hapax_error *err)
{
	bool has_place = false;

	for (size_t i = 0; i < strategy->piece_count; i++) {
		const struct hx_key_piece *piece = &strategy->pieces[i];
		const struct hx_key_piece *next = piece + 1;

		has_place = has_place || piece->kind != PIECE_TEXT;
		if (piece->kind != PIECE_VALUE || i + 1 == strategy->piece_count)
			continue;
		if (next->kind != PIECE_TEXT) {
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"invalid template: text must follow '{%s}', or different events "
				"could have the same key",
				piece->path->text);
		}
		if (next->text[0] == '%') {
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"invalid template: a percent sign must not follow '{%s}'",
				piece->path->text);
		}
	}
	if (!has_place) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid template: it has no {...}, so all events would have the same key");
	}
	return HAPAX_OK;
}

static enum hapax_status parse(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	size_t at = 0;

	if (argument.size == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "template needs a text, as in template:{id}");
	strategy->pieces = hx_alloc_zero(PIECES_MAX, sizeof(*strategy->pieces));
	if (strategy->pieces == NULL)
		return no_memory(err);
	while (status == HAPAX_OK && at < argument.size) {
		const char *text = (const char *)argument.data + at;
		struct hapax_bytes rest = hx_bytes(text, argument.size - at);
		bool place = text[0] == '{' && (rest.size < 2 || text[1] != '{');
		size_t done = 0;

		status = place ? read_braces(strategy, rest, &done, err)
			       : read_text(strategy, rest, &done, err);
		at += done;
	}
	return status == HAPAX_OK ? check_pieces(strategy, err) : status;
}

static enum hx_key_made event_time(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, int64_t *ret_ms,
	struct hapax_error *err)
{
	struct hx_key_path path;
	struct hapax_bytes text = {NULL, 0};
	enum hx_key_made made;

	*ret_ms = view->event->time_ms;
	if (*ret_ms != HAPAX_TIME_UNKNOWN)
		return HX_KEY_MADE;
	if (!(strategy->flags & HAPAX_KEY_RELATIVE)) {
		(void)hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "cannot use {date:...}: the event has no time");
		return HX_KEY_MISSING;
	}
	/* A document has its own time, like its source and id. */
	(void)hx_key_path_parse(&path, HX_BYTES_LIT("time"), true, false, NULL);
	made = hx_part_text(view, &path, &text, err);
	if (made != HX_KEY_MADE || hx_date_parse(text, ret_ms))
		return made;
	(void)hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"cannot use {date:...}: 'time' is not in RFC 3339 format");
	return HX_KEY_MISSING;
}

/* Input for writing: the values found, and their maximum size. */
struct plan {
	struct hx_key_part parts[PIECES_MAX];
	int64_t time_ms;
	size_t plain_max;
	size_t text_max;
};

static enum hx_key_made make_plan(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct plan *plan,
	struct hapax_error *err)
{
	enum hx_key_made made = HX_KEY_MADE;

	plan->time_ms = HAPAX_TIME_UNKNOWN;
	plan->plain_max = 0;
	plan->text_max = 0;
	if (strategy->needs & HAPAX_KEY_NEEDS_TIME)
		made = event_time(strategy, view, &plan->time_ms, err);
	for (size_t i = 0; made == HX_KEY_MADE && i < strategy->piece_count; i++) {
		const struct hx_key_piece *piece = &strategy->pieces[i];
		size_t size;

		if (piece->kind != PIECE_VALUE) {
			plan->text_max +=
				piece->kind == PIECE_DATE ? (size_t)HX_DATE_TEXT_MAX : piece->size;
			continue;
		}
		made = hx_view_part(view, piece->path, &plan->parts[i], err);
		if (made != HX_KEY_MADE)
			break;
		size = hx_part_text_max(&plan->parts[i]);
		plan->plain_max = size > plan->plain_max ? size : plan->plain_max;
		plan->text_max += HX_PART_ESCAPE_FACTOR * size;
	}
	return made;
}

/* The byte that ends a value. For the last value there is none, so only % is escaped. */
static unsigned char byte_after(const struct hapax_key_strategy *strategy, size_t index)
{
	if (index + 1 == strategy->piece_count)
		return '%';
	assert(strategy->pieces[index + 1].kind == PIECE_TEXT);
	return (unsigned char)strategy->pieces[index + 1].text[0];
}

static enum hx_key_made write_piece(
	const struct hapax_key_strategy *strategy, const struct plan *plan, size_t index,
	unsigned char *plain, unsigned char **to, struct hapax_error *err)
{
	const struct hx_key_piece *piece = &strategy->pieces[index];
	const unsigned char *end;
	size_t size;

	switch (piece->kind) {
	case PIECE_TEXT:
		memcpy(*to, piece->text, piece->size);
		*to += piece->size;
		return HX_KEY_MADE;
	case PIECE_DATE:
		size = hx_date_format(
			hx_bytes(piece->text, piece->size), plan->time_ms, (char *)*to);
		*to += size;
		if (size > 0)
			return HX_KEY_MADE;
		(void)hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"cannot use {date:...}: the time of the event is out of range");
		return HX_KEY_MISSING;
	case PIECE_VALUE:
		end = hx_part_write(&plan->parts[index], plain);
		if (end != NULL && end != plain) {
			*to = hx_part_escape(
				hx_bytes(plain, (size_t)(end - plain)), byte_after(strategy, index),
				*to);
			return HX_KEY_MADE;
		}
		(void)hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "cannot use '%s' in a key: it is %s",
			piece->path->text, end == NULL ? "beyond 10 to the 10^17" : "empty");
		return HX_KEY_MISSING;
	}
	assert(false);
	return HX_KEY_FAILED;
}

static enum hx_key_made make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	struct plan plan;
	enum hx_key_made made = make_plan(strategy, view, &plan, err);
	unsigned char *text;
	unsigned char *to;

	if (made != HX_KEY_MADE)
		return made;
	text = hx_view_room(view, plan.text_max + plan.plain_max, err);
	if (text == NULL)
		return HX_KEY_FAILED;
	to = text;
	for (size_t i = 0; made == HX_KEY_MADE && i < strategy->piece_count; i++)
		made = write_piece(strategy, &plan, i, text + plan.text_max, &to, err);
	if (made == HX_KEY_MADE)
		hx_key_set_text(ret, hx_bytes(text, (size_t)(to - text)));
	return made;
}

const struct hx_key_type hx_key_template = {
	.name = "template",
	.syntax = "template:TEXT",
	.summary = "text with {PATH} and {date:%Y-%m-%d} in it",
	.parse = parse,
	.make = make,
};
