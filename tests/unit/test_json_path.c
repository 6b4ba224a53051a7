/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json/json_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "wire/json/json_canonical.h"

static uint64_t scratch[8192];

static struct hx_json_tree read_ok(const char *text)
{
	struct hx_json_tree tree;
	bool is_short;

	assert_int_equal(
		hx_json_tree_read(
			&tree, hx_bytes(text, strlen(text)), scratch, sizeof(scratch), &is_short,
			NULL),
		HAPAX_OK);
	return tree;
}

static struct hx_json_path parse_ok(const char *text)
{
	struct hx_json_path path;
	struct hapax_error err = {HAPAX_OK, 0, ""};

	if (hx_json_path_parse(&path, hx_bytes(text, strlen(text)), &err) != HAPAX_OK)
		fail_msg("%s: %s", text, err.message);
	return path;
}

static const char document[] =
	"{\"a\":{\"b\":[10,{\"c\":\"x\"}],\"0\":\"zero\",\"*\":\"star\",\"\":\"empty\"},"
	"\"x.y\":1,\"p/q\":2,\"~\":3,\"e\":[],\"n\":null,\"back\\\\slash\":4,\"br[0]\":5,\"\":6}";

/* Path, and the text found there; NULL: nothing. */
static const char *const found[][2] = {
	{"", document},
	{"a.b.0", "10"},
	{"a.b[0]", "10"},
	{"/a/b/0", "10"},
	{"a.b.1.c", "\"x\""},
	{"a.b[1].c", "\"x\""},
	{"/a/b/1/c", "\"x\""},
	{"a.0", "\"zero\""},
	{"/a/0", "\"zero\""},
	{"a.\\*", "\"star\""},
	{"/a/~2", "\"star\""},
	{"/a/", "\"empty\""},
	{"/", "6"},
	{"x\\.y", "1"},
	{"/x.y", "1"},
	{"p/q", "2"},
	{"/p~1q", "2"},
	{"~", "3"},
	{"/~0", "3"},
	{"e", "[]"},
	{"n", "null"},
	{"back\\\\slash", "4"},
	{"/back\\slash", "4"},
	{"br\\[0]", "5"},
	{"/br[0]", "5"},
	{"x.y", NULL},
	{"a.c", NULL},
	{"a.b.2", NULL},
	{"a.b.01", NULL},
	{"a.b.-1", NULL},
	{"a.b.c", NULL},
	{"a.b.0.c", NULL},
	{"n.x", NULL},
	{"e.0", NULL},
	{"A", NULL},
	{"/a/b/-", NULL},
	{"/a//b", NULL},
};

static void paths_lead_to_values(void **state)
{
	struct hx_json_tree tree = read_ok(document);

	(void)state;
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		struct hx_json_path path = parse_ok(found[i][0]);
		const struct hx_json_node *node;

		assert_true(path.is_single);
		node = hx_json_path_find(&path, &tree);
		if ((node == NULL) != (found[i][1] == NULL))
			fail_msg("path '%s'", found[i][0]);
		if (node != NULL)
			assert_true(hx_bytes_equal(
				hx_json_node_text(&tree, node),
				hx_bytes(found[i][1], strlen(found[i][1]))));
	}
}

static const char *const refused[] = {
	".",         "a.",       ".a",       "a..b",  "a[",          "a[]",
	"a[x]",      "a[-1]",    "a[01]",    "a[0]b", "a.[0]",       "a\\",
	"/a~",       "/a~4",     "/~",       "[",     "[0",          "**.**",
	"a.**.b.**", "/**/x/**", "a[**]",    "a[0].", "a[0]..b",     "a[1234567890]",
	"user*",     "*.a*",     "a.*b",     "/a*",   "/*/b*",       "***",
	"**a",       "\\**",     "a|b",      "|",     "a|json|json", "a|jso",
	"a|json.",   "**|json",  "/a|json0",
};

static void what_is_no_path_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct hx_json_path path;
		struct hapax_error err;

		if (hx_json_path_parse(&path, hx_bytes(refused[i], strlen(refused[i])), &err) ==
		    HAPAX_OK)
			fail_msg("path '%s' was taken", refused[i]);
		assert_int_equal(err.status, HAPAX_ERR_INVALID);
		assert_non_null(strstr(err.message, refused[i]));
	}
}

/* A star that is only part of a step would be a name that no document has. */
static void stars_in_names_are_escaped(void **state)
{
	struct hx_json_path path;
	struct hapax_error err;

	(void)state;
	assert_int_equal(
		hx_json_path_parse(&path, HX_BYTES_LIT("a.user*"), &err), HAPAX_ERR_INVALID);
	assert_string_equal(
		err.message,
		"path 'a.user*', byte 8: * must be a whole step; write \\* for * in a name");
	assert_int_equal(
		hx_json_path_parse(&path, HX_BYTES_LIT("/user*"), &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "write ~2 for * in a name"));
	assert_int_equal(hx_json_path_parse(&path, HX_BYTES_LIT("a.us\\*er"), &err), HAPAX_OK);
	assert_true(path.is_single);
	assert_int_equal(hx_json_path_parse(&path, HX_BYTES_LIT("/us~2er/*"), &err), HAPAX_OK);
	assert_false(path.is_single);
}

static void length_and_steps_are_limits(void **state)
{
	char text[HX_JSON_PATH_SIZE_MAX + 2];
	struct hx_json_path path;
	struct hapax_error err;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(
		hx_json_path_parse(&path, hx_bytes(text, HX_JSON_PATH_SIZE_MAX), &err), HAPAX_OK);
	assert_int_equal(
		hx_json_path_parse(&path, hx_bytes(text, HX_JSON_PATH_SIZE_MAX + 1), &err),
		HAPAX_ERR_INVALID);
	for (size_t i = 1; i < sizeof(text); i += 2)
		text[i] = '.';
	assert_int_equal(
		hx_json_path_parse(&path, hx_bytes(text, 2 * HX_JSON_PATH_STEPS_MAX - 1), &err),
		HAPAX_OK);
	assert_int_equal(
		hx_json_path_parse(&path, hx_bytes(text, 2 * HX_JSON_PATH_STEPS_MAX + 1), &err),
		HAPAX_ERR_INVALID);
}

struct selection {
	const char *document;
	const char *include; /* NULL: all; several are separated by blanks */
	const char *exclude;
	const char *expected; /* NULL: something is missing */
};

static const struct selection selections[] = {
	{"{\"a\":1,\"b\":2}", "a", NULL, "{\"a\":1}"},
	{"{\"a\":1,\"b\":2}", "a b", NULL, "{\"a\":1,\"b\":2}"},
	{"{\"a\":1,\"b\":2}", NULL, "a", "{\"b\":2}"},
	{"{\"a\":1,\"b\":2}", NULL, "a b", "{}"},
	{"{\"a\":1,\"b\":2}", NULL, "c", "{\"a\":1,\"b\":2}"},
	{"{\"a\":1}", "b", NULL, NULL},
	{"{\"a\":null}", "a", NULL, "{\"a\":null}"},
	{"{\"a\":{\"b\":{\"c\":1,\"d\":2},\"e\":3},\"f\":4}", "a.b.c", NULL,
	 "{\"a\":{\"b\":{\"c\":1}}}"},
	{"{\"a\":{\"b\":{\"c\":1,\"d\":2},\"e\":3},\"f\":4}", NULL, "/a/b/c",
	 "{\"a\":{\"b\":{\"d\":2},\"e\":3},\"f\":4}"},
	{"{\"a\":{\"b\":{\"c\":1,\"d\":2},\"e\":3},\"f\":4}", "a", "a.b.d a.e",
	 "{\"a\":{\"b\":{\"c\":1}}}"},
	{"{\"items\":[{\"sku\":1,\"t\":9},{\"sku\":2,\"t\":8}],\"x\":0}", "items.*.sku", NULL,
	 "{\"items\":[{\"sku\":1},{\"sku\":2}]}"},
	{"{\"items\":[{\"sku\":1,\"t\":9},{\"sku\":2,\"t\":8}],\"x\":0}", NULL, "items[*].t x",
	 "{\"items\":[{\"sku\":1},{\"sku\":2}]}"},
	{"{\"items\":[]}", "items.*.sku", NULL, "{\"items\":[]}"},
	{"{\"items\":[{\"sku\":1},{}]}", "items.*.sku", NULL, NULL},
	{"{\"items\":7}", "items.*", NULL, NULL},
	{"{\"items\":[{\"sku\":1},{}]}", NULL, "items.*.sku", "{\"items\":[{},{}]}"},
	{"[1,2,3]", "1", NULL, "[2]"},
	{"[1,2,3]", NULL, "1", "[1,3]"},
	{"[1,2,3]", NULL, "*", "[]"},
	{"{\"a\":1,\"b\":2}", NULL, "*", "{}"},
	{"{\"ts\":1,\"a\":{\"ts\":2,\"b\":[{\"ts\":3,\"c\":4}]}}", NULL, "**.ts",
	 "{\"a\":{\"b\":[{\"c\":4}]}}"},
	{"{\"ts\":1,\"a\":{\"ts\":2,\"b\":[{\"ts\":3,\"c\":4}]}}", NULL, "a.**.ts",
	 "{\"a\":{\"b\":[{\"c\":4}]},\"ts\":1}"},
	{"{\"x\":{\"id\":1},\"y\":[{\"id\":2,\"z\":3}]}", "**.id", NULL,
	 "{\"x\":{\"id\":1},\"y\":[{\"id\":2}]}"},
	{"{\"x\":1}", "**.id", NULL, NULL},
	{"{\"a\":{\"b\":1},\"c\":2}", "a", "a", "{}"},
};

static void split_each(const char *texts, struct hx_json_tree *tree, bool keeps, bool *ret_found)
{
	while (texts != NULL && *texts != '\0') {
		size_t size = strcspn(texts, " ");
		struct hx_json_path path;

		assert_int_equal(hx_json_path_parse(&path, hx_bytes(texts, size), NULL), HAPAX_OK);
		if (keeps)
			*ret_found &= hx_json_path_keep(&path, tree);
		else
			hx_json_path_drop(&path, tree);
		texts += size + (texts[size] == ' ');
	}
}

/* C1: fields that do not matter, at any depth; E2: chosen fields. */
static void selections_keep_structure_and_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(selections) / sizeof(selections[0]); i++) {
		const struct selection *s = &selections[i];
		struct hx_json_tree tree = read_ok(s->document);
		unsigned char text[512];
		struct hx_json_target target = {text, 0, sizeof(text), false};
		bool is_found = true;

		split_each(s->include, &tree, true, &is_found);
		split_each(s->exclude, &tree, false, &is_found);
		assert_int_equal(is_found, s->expected != NULL);
		if (s->expected == NULL)
			continue;
		assert_int_equal(
			hx_json_canonical_write(
				&tree, tree.nodes, HX_JSON_LOSSLESS,
				s->include != NULL ? HX_JSON_MARKED : HX_JSON_REST, &target, NULL),
			HAPAX_OK);
		text[target.size] = '\0';
		assert_string_equal((const char *)text, s->expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_lead_to_values),
		cmocka_unit_test(what_is_no_path_is_refused),
		cmocka_unit_test(stars_in_names_are_escaped),
		cmocka_unit_test(length_and_steps_are_limits),
		cmocka_unit_test(selections_keep_structure_and_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
