/* SPDX-License-Identifier: Apache-2.0 */
/* URLs: their parts, options as rows, and messages without secrets. */
#include "wire/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

static void check_part(struct hapax_bytes part, const char *expected)
{
	assert_int_equal(part.data == NULL, expected == NULL);
	assert_true(hx_bytes_equal(part, hapax_bytes_from_text(expected == NULL ? "" : expected)));
}

static void parts_are_found(void **state)
{
	static const struct {
		const char *text;
		const char *scheme, *user, *password, *hosts, *path, *rest, *query;
	} cases[] = {
		{"a://h", "a", NULL, NULL, "h", NULL, "h", NULL},
		{"a://u@h", "a", "u", NULL, "h", NULL, "u@h", NULL},
		{"a://:p@h/", "a", "", "p", "h", "/", ":p@h/", NULL},
		{"a+b://u@x:p:@q@h:1,g:2/d/e?f=g?h", "a+b", "u@x", "p:@q", "h:1,g:2", "/d/e",
		 "u@x:p:@q@h:1,g:2/d/e", "f=g?h"},
		{"a://h?u@x/y", "a", NULL, NULL, "h", NULL, "h", "u@x/y"},
		{"a:///p?", "a", NULL, NULL, "", "/p", "/p", ""},
		{"a:p@q/r?s", "a", NULL, NULL, NULL, "p@q/r", "p@q/r", "s"},
		{"a:", "a", NULL, NULL, NULL, NULL, "", NULL},
		{"a://", "a", NULL, NULL, "", NULL, "", NULL},
	};
	struct hx_url url;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(hx_url_split(cases[i].text, &url));
		check_part(url.scheme, cases[i].scheme);
		check_part(url.user, cases[i].user);
		check_part(url.password, cases[i].password);
		check_part(url.hosts, cases[i].hosts);
		check_part(url.path, cases[i].path);
		check_part(url.rest, cases[i].rest);
		check_part(url.query, cases[i].query);
		assert_int_equal(url.has_authority, cases[i].hosts != NULL);
		assert_true(hx_url_has_scheme(&url, cases[i].scheme));
		assert_false(hx_url_has_scheme(&url, "aa"));
	}
	assert_true(hx_url_split("HTTPs://h", &url) && hx_url_has_scheme(&url, "httpS"));
	assert_false(hx_url_split("", &url));
	assert_false(hx_url_split("host", &url));
	assert_false(hx_url_split("://h", &url));
}

static void characters_and_lists(void **state)
{
	struct hapax_bytes list = HX_BYTES_LIT("a,,b,"), part;
	static const char *const expected[] = {"a", "", "b", ""};

	(void)state;
	assert_true(hx_url_is_visible("http://h/~!"));
	assert_false(hx_url_is_visible("http://h/ "));
	assert_false(hx_url_is_visible("http://h/\x7f"));
	assert_false(hx_url_is_visible("http://h/\xc3\xa4"));
	for (size_t i = 0; i < 4; i++) {
		assert_true(hx_url_next(&list, ',', &part));
		check_part(part, expected[i]);
	}
	assert_false(hx_url_next(&list, ',', &part));
}

static void users_are_decoded(void **state)
{
	char user[4] = "me", password[4] = "pw";
	struct hx_url url;

	(void)state;
	assert_true(hx_url_split("a://h", &url) && hx_url_user(&url, user, password, 4));
	assert_string_equal(user, "me");
	assert_true(hx_url_split("a://u%40@h", &url) && hx_url_user(&url, user, password, 4));
	assert_string_equal(user, "u@");
	assert_string_equal(password, "pw");
	assert_true(hx_url_split("a://:%2f%3a@h", &url) && hx_url_user(&url, user, password, 4));
	assert_string_equal(user, "");
	assert_string_equal(password, "/:");
	assert_true(hx_url_split("a://long@h", &url) && !hx_url_user(&url, user, password, 4));
	assert_true(hx_url_split("a://u:%0@h", &url) && !hx_url_user(&url, user, password, 4));
	assert_true(hx_url_split("a://u:%00@h", &url) && !hx_url_user(&url, user, password, 4));
}

struct inner {
	int64_t wait_ms;
	uint16_t port;
	size_t held;
};

struct place {
	char name[8];
	size_t bytes;
	int db;
	bool is_late, is_durable;
	char ca[8];
	struct inner inner;
	unsigned others;
};

static bool is_lower(const char *text)
{
	return strpbrk(text, "ABC") == NULL;
}

static const struct hx_url_option inner_rows[] = {
	{"wait", HX_URL_TIME, "100ms..1h", HX_URL_MEMBER(struct inner, wait_ms), .min = 100,
	 .max = 3600000},
	{"port", HX_URL_NUMBER, NULL, HX_URL_MEMBER(struct inner, port), .min = 1, .max = 65535},
	{"held", HX_URL_NUMBER, "bytes", HX_URL_MEMBER(struct inner, held), .max = 64},
	{.kind = HX_URL_END},
};

static const struct hx_url_option rows[] = {
	{"name", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct place, name), .is_good = is_lower},
	{"bytes", HX_URL_NUMBER, "BYTES", HX_URL_MEMBER(struct place, bytes), .min = 1,
	 .max = INT64_MAX},
	{"db", HX_URL_NUMBER, NULL, HX_URL_MEMBER(struct place, db), .max = 15},
	{"start", HX_URL_WORD, "early|late", HX_URL_MEMBER(struct place, is_late)},
	{"require", HX_URL_WORD, "durable", HX_URL_MEMBER(struct place, is_durable), .min = true},
	{"ca", HX_URL_TEXT, "FILE", HX_URL_MEMBER(struct place, ca), .is_for_tls = true},
	{.kind = HX_URL_MORE, .offset = offsetof(struct place, inner), .more = inner_rows},
};

static const struct hx_url_options options = {.of = "a test", .rows = rows};

static enum hapax_status read_query(const char *query, struct place *place, struct hapax_error *err)
{
	*place = (struct place){.is_late = true};
	return hx_url_options_read(&options, hapax_bytes_from_text(query), true, place, err);
}

static void options_are_bound_to_members(void **state)
{
	struct place place;

	(void)state;
	assert_int_equal(
		read_query(
			"name=a%20b&&bytes=9223372036854775807&db=15&db=0&start=early&require=durable"
			"&ca=%2Fc&wait=1m30s&port=65535&held=0&",
			&place, NULL),
		HAPAX_OK);
	assert_string_equal(place.name, "a b");
	assert_true(place.bytes == (size_t)INT64_MAX);
	assert_int_equal(place.db, 0);
	assert_true(!place.is_late && place.is_durable);
	assert_string_equal(place.ca, "/c");
	assert_int_equal(place.inner.wait_ms, 90000);
	assert_int_equal(place.inner.port, 65535);
	assert_int_equal(read_query("start=late", &place, NULL), HAPAX_OK);
	assert_true(place.is_late);
}

static void bad_values_are_refused_with_their_form(void **state)
{
	static const struct {
		const char *query;
		const char *form;
	} cases[] = {
		{"name", "'name' in the URL of a test: it must be name=NAME"},
		{"name=", "it must be name=NAME"},
		{"name=%zs3cret", "it must be name=NAME"},
		{"name=s3crets3cret", "it must be name=NAME"},
		{"name=a%00b", "it must be name=NAME"},
		{"name=A", "it must be name=NAME"},
		{"bytes=0", "it must be bytes=BYTES"},
		{"bytes=s3cret", "it must be bytes=BYTES"},
		{"bytes=9223372036854775808", "it must be bytes=BYTES"},
		{"db=16", "it must be db=0..15"},
		{"db=-1", "it must be db=0..15"},
		{"db=", "it must be db=0..15"},
		{"db", "it must be db=0..15"},
		{"start=", "it must be start=early|late"},
		{"start=early|late", "it must be start=early|late"},
		{"require=s3cret", "it must be require=durable"},
		{"wait=99ms", "it must be wait=100ms..1h"},
		{"wait=2h", "it must be wait=100ms..1h"},
		{"port=65536", "it must be port=1..65535"},
		{"held=65", "it must be held=0..64 bytes"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_error err = {0};
		struct place place;

		assert_int_equal(read_query(cases[i].query, &place, &err), HAPAX_ERR_INVALID);
		if (strstr(err.message, cases[i].form) == NULL)
			fail_msg("%s: %s", cases[i].query, err.message);
		assert_null(strstr(err.message, "s3cret"));
	}
}

/* A name that may be part of a password is not shown, nor is a value. */
static void unknown_options_are_refused_without_secrets(void **state)
{
	static const char known[] =
		"use name=NAME, bytes=BYTES, db=0..15, start=early|late,"
		" require=durable, ca=FILE, wait=100ms..1h, port=1..65535, held=0..64 bytes";
	static const char *const hidden[] = {
		"s3cret@h",     "s3cret",        "s3cret=1@h",
		"s3cret=1&x@h", "s3cret/=1",     "%s3cret=1",
		"=s3cret",      "db=1&s3cret=@", "s3cret-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1",
	};
	struct hapax_error err = {0};
	struct place place;

	(void)state;
	assert_int_equal(read_query("tll=s3cret", &place, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "unknown option 'tll' in the URL of a test; use"));
	assert_non_null(strstr(err.message, known));
	assert_null(strstr(err.message, "s3cret"));
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		assert_int_equal(read_query(hidden[i], &place, &err), HAPAX_ERR_INVALID);
		assert_null(strstr(err.message, "s3cret"));
		assert_non_null(strstr(err.message, "use name=NAME"));
	}
}

static void files_of_tls_need_tls(void **state)
{
	struct hapax_error err = {0};
	struct place place;

	(void)state;
	assert_int_equal(
		hx_url_options_read(&options, HX_BYTES_LIT("ca=s3cret"), false, &place, &err),
		HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "option 'ca' in the URL of a test needs TLS"));
	assert_null(strstr(err.message, "s3cret"));
}

static enum hapax_status take_other(
	void *context, struct hapax_bytes name, struct hapax_bytes value, struct hapax_error *err)
{
	struct place *place = context;

	(void)err;
	place->others++;
	assert_true(hx_bytes_equal(name, HX_BYTES_LIT("x.y")));
	assert_true(hx_bytes_equal(value, HX_BYTES_LIT("%7a")));
	return HAPAX_OK;
}

static void others_are_handed_on_as_they_stand(void **state)
{
	static const struct hx_url_options open = {
		.of = "a test", .rows = inner_rows, .also = "others", .other = take_other};
	struct place place = {.others = 0};
	struct hapax_error err = {0};

	(void)state;
	assert_int_equal(
		hx_url_options_read(&open, HX_BYTES_LIT("x.y=%7a&x.y=%7a"), true, &place, &err),
		HAPAX_OK);
	assert_int_equal(place.others, 2);
	assert_int_equal(
		hx_url_option_refuse(&open, HX_BYTES_LIT("x"), HX_BYTES_LIT(""), &err),
		HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "held=0..64 bytes and others"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_found),
		cmocka_unit_test(characters_and_lists),
		cmocka_unit_test(users_are_decoded),
		cmocka_unit_test(options_are_bound_to_members),
		cmocka_unit_test(bad_values_are_refused_with_their_form),
		cmocka_unit_test(unknown_options_are_refused_without_secrets),
		cmocka_unit_test(files_of_tls_need_tls),
		cmocka_unit_test(others_are_handed_on_as_they_stand),
	};

	return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
