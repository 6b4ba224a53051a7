/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: canonical JSON (src/wire/json/json_canonical.c, json_python.c, json_number.c,
 * json_float.c).
 *
 * The canonical text of any JSON text is JSON with the same value, and its own
 * canonical text; but Python prints what no double can hold as Infinity, which cannot
 * be read again. With any room it is the same text or does not fit. Blanks around it
 * change nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/json/json_canonical.h"
#include "wire/json/json_number.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { INPUT_MAX = 4096, TEXT_MAX = 64 * INPUT_MAX };

static uint64_t scratch[TEXT_MAX * 4];
static uint64_t other_scratch[TEXT_MAX * 4];

static void must(int condition)
{
	if (!condition)
		abort();
}

/* The size of the text, or -1. */
static long write_text(
	struct hapax_bytes text, enum hx_json_dialect dialect, unsigned char *out, size_t room,
	bool *ret_short)
{
	struct hx_json_target target = {out, 0, room, false};
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hx_json_tree tree;
	bool tree_is_short;

	*ret_short = false;
	if (hx_json_tree_read(&tree, text, scratch, sizeof(scratch), &tree_is_short, &err) !=
	    HAPAX_OK)
		return -1;
	if (hx_json_canonical_write(&tree, tree.nodes, dialect, HX_JSON_ALL, &target, &err) !=
	    HAPAX_OK) {
		must(strncmp(err.message, "line ", 5) == 0);
		*ret_short = target.is_short;
		return -1;
	}
	must(target.size <= room);
	return (long)target.size;
}

/* Digit by digit, so that nothing is rounded. */
static bool is_same_value(struct hapax_bytes a, struct hapax_bytes b)
{
	struct hx_json_number x;
	struct hx_json_number y;
	size_t i = 0;
	size_t j = 0;

	if (!hx_json_number_read(a, &x) || !hx_json_number_read(b, &y))
		return false;
	if (x.negative != y.negative || x.digit_count != y.digit_count || x.exponent != y.exponent)
		return false;
	for (;;) {
		i += i < x.span && x.digits[i] == '.';
		j += j < y.span && y.digits[j] == '.';
		if (i >= x.span || j >= y.span)
			return i >= x.span && j >= y.span;
		if (x.digits[i++] != y.digits[j++])
			return false;
	}
}

/* To Python a number with a point or an exponent is a double, and else an integer. */
static bool is_same_number(struct hapax_bytes a, struct hapax_bytes b, enum hx_json_dialect dialect)
{
	static char x[TEXT_MAX + 1];
	static char y[TEXT_MAX + 1];

	if (dialect == HX_JSON_LOSSLESS)
		return is_same_value(a, b);
	memcpy(x, a.data, a.size);
	memcpy(y, b.data, b.size);
	x[a.size] = '\0';
	y[b.size] = '\0';
	if ((strpbrk(x, ".eE") == NULL) != (strpbrk(y, ".eE") == NULL))
		return false;
	if (strpbrk(x, ".eE") == NULL)
		return is_same_value(a, b);
	return strtod(x, NULL) == strtod(y, NULL) && (x[0] == '-') == (y[0] == '-');
}

static void must_be_same_string(struct hx_json_string a, struct hx_json_string b)
{
	must(hx_json_string_compare(a, b) == 0);
}

/* Members of both stand in the order of their names. */
static void must_be_same_tree(
	const struct hx_json_tree *a, uint32_t i, const struct hx_json_tree *b, uint32_t j,
	enum hx_json_dialect dialect)
{
	const struct hx_json_node *x = &a->nodes[i];
	const struct hx_json_node *y = &b->nodes[j];

	must(x->token.type == y->token.type);
	must((x->token.name == 0) == (y->token.name == 0));
	if (x->token.name != 0)
		must_be_same_string(hx_json_node_name(a, x), hx_json_node_name(b, y));
	if (x->token.type == HX_JSON_STRING)
		must_be_same_string(hx_json_node_string(a, x), hx_json_node_string(b, y));
	if (x->token.type == HX_JSON_NUMBER)
		must(is_same_number(hx_json_node_text(a, x), hx_json_node_text(b, y), dialect));
	i = x->child;
	j = y->child;
	while (i != 0 && j != 0) {
		must_be_same_tree(a, i, b, j, dialect);
		i = a->nodes[i].next;
		j = b->nodes[j].next;
	}
	must(i == 0 && j == 0);
}

/* Both read as JSON, and to one value. */
static void must_be_same(
	struct hapax_bytes text, struct hapax_bytes canonical, enum hx_json_dialect dialect)
{
	struct hx_json_tree a;
	struct hx_json_tree b;
	bool is_short;

	must(hx_json_tree_read(&a, text, scratch, sizeof(scratch), &is_short, NULL) == HAPAX_OK);
	must(hx_json_tree_read(
		     &b, canonical, other_scratch, sizeof(other_scratch), &is_short, NULL) ==
	     HAPAX_OK);
	must_be_same_tree(&a, 0, &b, 0, dialect);
}

/* Not within a string: the quotes before it come in pairs. */
static bool has_infinity(struct hapax_bytes text)
{
	const unsigned char *at = text.data;
	const unsigned char *end = at + text.size;
	bool in_string = false;

	for (; at < end; at++) {
		if (in_string && *at == '\\')
			at++;
		else if (*at == '"')
			in_string = !in_string;
		else if (*at == 'I' && !in_string)
			return true;
	}
	return false;
}

static void check(struct hapax_bytes text, enum hx_json_dialect dialect)
{
	static unsigned char first[TEXT_MAX];
	static unsigned char again[TEXT_MAX];
	bool is_short;
	long size = write_text(text, dialect, first, sizeof(first), &is_short);
	size_t room;
	unsigned char *exact;

	must(!is_short);
	if (size < 0)
		return;
	if (dialect == HX_JSON_LOSSLESS || !has_infinity(hx_bytes(first, (size_t)size))) {
		must_be_same(text, hx_bytes(first, (size_t)size), dialect);
		must(write_text(
			     hx_bytes(first, (size_t)size), dialect, again, sizeof(again),
			     &is_short) == size);
		must(memcmp(first, again, (size_t)size) == 0);
	}
	/* Room of just about the size: it fits or it does not, and nothing is overrun. */
	room = (size_t)size + (text.size % 128);
	exact = malloc(room);
	must(exact != NULL);
	if (write_text(text, dialect, exact, room, &is_short) >= 0)
		must(memcmp(exact, first, (size_t)size) == 0);
	else
		must(is_short);
	free(exact);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static unsigned char spaced[INPUT_MAX + 2];
	static unsigned char plain[TEXT_MAX];
	static unsigned char other[TEXT_MAX];
	bool is_short;
	long plain_size;

	if (size > INPUT_MAX)
		return 0;
	check(hx_bytes(data, size), HX_JSON_LOSSLESS);
	check(hx_bytes(data, size), HX_JSON_PYTHON);
	plain_size =
		write_text(hx_bytes(data, size), HX_JSON_LOSSLESS, plain, sizeof(plain), &is_short);
	if (plain_size < 0)
		return 0;
	spaced[0] = '\n';
	memcpy(spaced + 1, data, size);
	spaced[size + 1] = ' ';
	must(write_text(
		     hx_bytes(spaced, size + 2), HX_JSON_LOSSLESS, other, sizeof(other),
		     &is_short) == plain_size);
	must(memcmp(plain, other, (size_t)plain_size) == 0);
	return 0;
}
