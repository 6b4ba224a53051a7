/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_next.h - the inner part of the tokenizer, for json.c and json_tree.c only.
 *
 * Every event that is keyed by its content passes through here, and to have this
 * within the loop that builds the tree saves a fifth of the time. The place in the
 * text travels as an argument and a result, so that it stays in a register; what
 * fails returns NULL and has described why.
 *
 * Threads: one at a time.
 */
#ifndef HX_JSON_NEXT_H
#define HX_JSON_NEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/json/json.h"
#include "wire/json/json_name.h"
#include "wire/json/json_string.h"

/* A function that refuses returns NULL: reading stops. */
const unsigned char *hx_json_refuse(
	const struct hx_json *json, const unsigned char *at, const char *reason,
	struct hapax_error *err);

/* Says what was found instead: the end, a printable character, or a byte. */
const unsigned char *hx_json_refuse_here(
	const struct hx_json *json, const unsigned char *at, const char *wanted,
	struct hapax_error *err);
const unsigned char *hx_json_refuse_depth(
	struct hx_json *json, const unsigned char *at, struct hapax_error *err);
const unsigned char *hx_json_refuse_names(
	struct hx_json *json, const unsigned char *at, struct hapax_error *err);

/* An object with at least this many names is checked before it ends. */
enum { HX_JSON_NAMES_LOOK_MIN = 64 };
#define HX_JSON_POWERS_OF_4 UINT64_C(0x5555555555555555)

/* Sort the last count names; false: there is a duplicate. */
bool hx_json_names_are_single(struct hx_json *json, size_t count);

/* The bracket that ends what is open innermost is at at. */
const unsigned char *hx_json_close(
	struct hx_json *json, const unsigned char *at, struct hx_json_token *ret,
	struct hapax_error *err);

/* The quote that ends a string, from its first byte on that is not plain. */
const unsigned char *hx_json_find_quote(
	const struct hx_json *json, const unsigned char *at, bool *ret_escaped,
	struct hapax_error *err);

/* true, false, null, or not a value at all. */
const unsigned char *hx_json_read_word(
	struct hx_json *json, const unsigned char *at, struct hx_json_token *ret,
	struct hapax_error *err);

static inline uint32_t hx_json_offset(const struct hx_json *json, const unsigned char *at)
{
	return (uint32_t)(at - json->data);
}

static inline const unsigned char *hx_json_skip_blanks(
	const unsigned char *at, const unsigned char *end)
{
	while (at < end && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	return at;
}

static inline const unsigned char *hx_json_open_container(
	struct hx_json *json, const unsigned char *at, struct hx_json_token *ret,
	struct hapax_error *err)
{
	uint32_t level = json->depth;
	uint64_t bit = UINT64_C(1) << (level % 64);

	if (level == HX_JSON_DEPTH_MAX)
		return hx_json_refuse_depth(json, at, err);
	if (json->in_object)
		json->is_object[level / 64] |= bit;
	else
		json->is_object[level / 64] &= ~bit;
	json->in_object = *at == '{';
	json->depth = level + 1;
	json->name_base[level + 1] = (uint32_t)json->name_count;
	json->is_first = true;
	ret->type = json->in_object ? HX_JSON_OBJECT : HX_JSON_ARRAY;
	ret->text = hx_json_offset(json, at);
	ret->size = 1;
	return at + 1;
}

/* The quote that ends the string which begins at at, after its first quote. */
static inline const unsigned char *hx_json_end_of_string(
	const struct hx_json *json, const unsigned char *at, bool *ret_escaped,
	struct hapax_error *err)
{
	const unsigned char *quote = hx_json_skip_plain(at, json->end);

	*ret_escaped = false;
	if (quote < json->end && *quote == '"')
		return quote;
	return hx_json_find_quote(json, quote, ret_escaped, err);
}

/*
 * False: there is no room, or one of many names was there before (json->twice). Names that
 * come out of order are looked through each time there are four times as many: a text that has
 * a name twice is refused after at most four times as much of it as has to be read.
 */
static inline bool hx_json_keep_name(struct hx_json *json, const struct hx_json_token *token)
{
	struct hx_json_name *name = json->names + json->name_count;
	size_t count = json->name_count - json->name_base[json->depth];

	if (json->name_count == json->name_max)
		return false;
	if (count >= HX_JSON_NAMES_LOOK_MIN && (count & (count - 1)) == 0 &&
	    (count & HX_JSON_POWERS_OF_4) != 0 && !name[-1].ordered &&
	    !hx_json_names_are_single(json, count))
		return false;
	name->text = token->name;
	name->size = token->name_size;
	name->tag = 0;
	name->escaped = token->name_escaped;
	name->is_first = false;
	name->place = 0;
	name->prefix = hx_json_string_prefix(
		(struct hx_json_string){
			json->data + token->name, token->name_size, token->name_escaped},
		json->end);
	name->ordered = json->name_count == json->name_base[json->depth] ||
		(name[-1].ordered && hx_json_name_compare(json->data, name - 1, name) < 0);
	json->name_count++;
	return true;
}

/* A member's name and the colon; returns where its value begins. */
static inline const unsigned char *hx_json_read_name(
	struct hx_json *json, const unsigned char *at, struct hx_json_token *ret,
	struct hapax_error *err)
{
	const unsigned char *quote;

	if (at == json->end || *at != '"')
		return hx_json_refuse_here(json, at, "a member name", err);
	quote = hx_json_end_of_string(json, at + 1, &ret->name_escaped, err);
	if (quote == NULL)
		return NULL;
	ret->name = hx_json_offset(json, at + 1);
	ret->name_size = (uint32_t)(quote - at - 1);
	if (json->names != NULL && !hx_json_keep_name(json, ret))
		return hx_json_refuse_names(json, at, err);
	at = hx_json_skip_blanks(quote + 1, json->end);
	if (at == json->end || *at != ':')
		return hx_json_refuse_here(json, at, "':'", err);
	return hx_json_skip_blanks(at + 1, json->end);
}

static inline bool hx_json_is_digit(const unsigned char *at, const unsigned char *end)
{
	return at < end && (unsigned char)(*at - '0') < 10;
}

/* Past the digits at at; NULL when there are none. */
static inline const unsigned char *hx_json_read_digits(
	const struct hx_json *json, const unsigned char *at, struct hapax_error *err)
{
	if (!hx_json_is_digit(at, json->end))
		return hx_json_refuse(json, at, "a digit was expected in a number", err);
	do
		at++;
	while (hx_json_is_digit(at, json->end));
	return at;
}

static inline const unsigned char *hx_json_read_number(
	struct hx_json *json, const unsigned char *begin, struct hx_json_token *ret,
	struct hapax_error *err)
{
	const unsigned char *end = json->end;
	const unsigned char *at = begin + (*begin == '-');

	if (hx_json_is_digit(at, end) && *at == '0' && hx_json_is_digit(at + 1, end))
		return hx_json_refuse(json, at, "a number must not begin with 0", err);
	at = hx_json_read_digits(json, at, err);
	if (at != NULL && at < end && *at == '.') {
		ret->escaped |= HX_JSON_FRACTION;
		at = hx_json_read_digits(json, at + 1, err);
	}
	if (at != NULL && at < end && (*at == 'e' || *at == 'E')) {
		ret->escaped |= HX_JSON_EXPONENT;
		at++;
		if (at < end && (*at == '+' || *at == '-'))
			at++;
		at = hx_json_read_digits(json, at, err);
	}
	if (at == NULL)
		return NULL;
	ret->type = HX_JSON_NUMBER;
	ret->text = hx_json_offset(json, begin);
	ret->size = (uint32_t)(at - begin);
	return at;
}

static inline const unsigned char *hx_json_read_value(
	struct hx_json *json, const unsigned char *at, struct hx_json_token *ret,
	struct hapax_error *err)
{
	if (at == json->end)
		return hx_json_refuse_here(json, at, "a value", err);
	if (*at == '"') {
		bool escaped;
		const unsigned char *quote = hx_json_end_of_string(json, at + 1, &escaped, err);

		if (quote == NULL)
			return NULL;
		ret->escaped = escaped;
		ret->type = HX_JSON_STRING;
		ret->text = hx_json_offset(json, at + 1);
		ret->size = (uint32_t)(quote - at - 1);
		return quote + 1;
	}
	if (*at == '-' || hx_json_is_digit(at, json->end))
		return hx_json_read_number(json, at, ret, err);
	if (*at == '{' || *at == '[')
		return hx_json_open_container(json, at, ret, err);
	return hx_json_read_word(json, at, ret, err);
}

/* Within a container, not at its end: what stands before the next value. */
static inline const unsigned char *hx_json_read_before_value(
	struct hx_json *json, const unsigned char *at, bool is_first, struct hx_json_token *ret,
	struct hapax_error *err)
{
	if (!is_first) {
		if (at == json->end || *at != ',')
			return hx_json_refuse_here(
				json, at, json->in_object ? "',' or '}'" : "',' or ']'", err);
		at = hx_json_skip_blanks(at + 1, json->end);
	}
	return json->in_object ? hx_json_read_name(json, at, ret, err) : at;
}

static inline const unsigned char *hx_json_read_end(
	const struct hx_json *json, const unsigned char *at, struct hx_json_token *ret,
	struct hapax_error *err)
{
	if (at < json->end)
		return hx_json_refuse_here(json, at, "the end of the text", err);
	ret->type = HX_JSON_END;
	ret->text = hx_json_offset(json, at);
	ret->size = 0;
	return at;
}

static inline const unsigned char *hx_json_read_token(
	struct hx_json *json, const unsigned char *at, struct hx_json_token *ret,
	struct hapax_error *err)
{
	bool is_first = json->is_first;

	json->is_first = false;
	if (json->depth > 0) {
		if (at < json->end && *at == (json->in_object ? '}' : ']'))
			return hx_json_close(json, at, ret, err);
		at = hx_json_read_before_value(json, at, is_first, ret, err);
		if (at == NULL)
			return NULL;
	} else if (!is_first) {
		return hx_json_read_end(json, at, ret, err);
	}
	return hx_json_read_value(json, at, ret, err);
}

static inline enum hapax_status hx_json_next_inline(
	struct hx_json *json, struct hx_json_token *ret, struct hapax_error *err)
{
	const unsigned char *at = hx_json_skip_blanks(json->at, json->end);

	ret->name = 0;
	ret->name_size = 0;
	ret->name_escaped = false;
	ret->escaped = 0;
	ret->marks = 0;
	at = hx_json_read_token(json, at, ret, err);
	if (at == NULL)
		return json->refusal;
	json->at = at;
	return HAPAX_OK;
}

#endif
