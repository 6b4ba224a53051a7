/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 8259, text by text: what is JSON, what is not, and where that shows. C1.
 */
#include "wire/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Text that may hold NUL bytes. */
#define T(text)                        \
	{                              \
		text, sizeof(text) - 1 \
	}

struct text {
	const char *data;
	size_t size;
};

/* clang-format off */
static const struct text accepted[] = {
	T("null"),
	T("true"),
	T("false"),
	T("0"),
	T("1"),
	T("-1"),
	T("\"\""),
	T("\"a\""),
	T("[]"),
	T("{}"),
	T(" null"),
	T("null "),
	T("\tnull"),
	T("\nnull"),
	T("\rnull"),
	T(" \t\n\r null \t\n\r "),
	T("-0"),
	T("0.0"),
	T("-0.0"),
	T("0e0"),
	T("0E0"),
	T("0e+0"),
	T("0e-0"),
	T("0.0e0"),
	T("1.5"),
	T("10"),
	T("123456789"),
	T("1e5"),
	T("1E5"),
	T("1e+5"),
	T("1e-5"),
	T("1E+5"),
	T("1E-5"),
	T("1.0e5"),
	T("-1.0E-5"),
	T("0.1"),
	T("0.01"),
	T("0.000000000000000000000000000001"),
	T("1e400"),
	T("-1e400"),
	T("1e-400"),
	T("5e-324"),
	T("2.2250738585072014e-308"),
	T("1.7976931348623157e308"),
	T("9007199254740991"),
	T("9007199254740992"),
	T("9007199254740993"),
	T("-9007199254740993"),
	T("18446744073709551616"),
	T("1e000000000000005"),
	T("1e99999999999999999999"),
	T("12.50"),
	T("1e1"),
	T("100e-2"),
	T("4.9406564584124654e-324"),
	T("\"\\\"\""),
	T("\"\\\\\""),
	T("\"\\/\""),
	T("\"\\b\""),
	T("\"\\f\""),
	T("\"\\n\""),
	T("\"\\r\""),
	T("\"\\t\""),
	T("\"\\u0000\""),
	T("\"\\u001f\""),
	T("\"\\u0020\""),
	T("\"\\u00e9\""),
	T("\"\\u00E9\""),
	T("\"\\uABCD\""),
	T("\"\\uabcd\""),
	T("\"\\uffff\""),
	T("\"\\uFFFE\""),
	T("\"\\ud7ff\""),
	T("\"\\ue000\""),
	T("\"\\ud800\\udc00\""),
	T("\"\\uDBFF\\uDFFF\""),
	T("\"\\ud83d\\ude00\""),
	T("\"a\\ud83d\\ude00b\""),
	T("\"/\""),
	T("\" \""),
	T("\"\x7f\""),
	T("\"\xc3\xa9\""),
	T("\"\xe2\x82\xac\""),
	T("\"\xf0\x9f\x98\x80\""),
	T("\"\xc2\x80\""),
	T("\"\xdf\xbf\""),
	T("\"\xe0\xa0\x80\""),
	T("\"\xef\xbf\xbf\""),
	T("\"\xf0\x90\x80\x80\""),
	T("\"\xf4\x8f\xbf\xbf\""),
	T("\"\xe2\x80\xa8\xe2\x80\xa9\""),
	T("\"e\xcc\x81\""),
	T("\"\xef\xbb\xbf\""),
	T("\"\\u2028\""),
	T("\"'\""),
	T("\"//\""),
	T("\"/* */\""),
	T("\"{\""),
	T("\"]\""),
	T("\"null\""),
	T("\"\\\\u0041\""),
	T("\"aaaaaaaaaaaaaaa\""),
	T("\"aaaaaaaaaaaaaaaa\""),
	T("\"aaaaaaaaaaaaaaaaa\""),
	T("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""),
	T("\"aaaaaaaaaaaaaaa\\n\""),
	T("\"aaaaaaaaaaaaaa\xc3\xa9\""),
	T("[null]"),
	T("[1]"),
	T("[1,2]"),
	T("[ 1 , 2 ]"),
	T("[[]]"),
	T("[[],[]]"),
	T("[[[[[]]]]]"),
	T("[1,[2,[3]]]"),
	T("[\"a\",\"b\"]"),
	T("[true,false,null]"),
	T("[{}]"),
	T("[{},{}]"),
	T("[\n1,\n2\n]"),
	T("[-1]"),
	T("[1.5,-2e3]"),
	T("[\"\",\"\"]"),
	T("[ ]"),
	T("[\t]"),
	T("[[ ] , [ ]]"),
	T("{\"a\":1}"),
	T("{\"a\":1,\"b\":2}"),
	T("{\"\":1}"),
	T("{\"\":{\"\":{}}}"),
	T("{ \"a\" : 1 }"),
	T("{\n\"a\"\n:\n1\n}"),
	T("{\"a\":{\"a\":{\"a\":1}}}"),
	T("{\"a\":[1,2]}"),
	T("{\"a\":null}"),
	T("{\"a\":true,\"A\":false}"),
	T("{\"a \":1,\"a\":2}"),
	T("{\"\\u0061\":1}"),
	T("{\"a\\u0000\":1,\"a\":2}"),
	T("{\"\xc3\xa9\":1,\"e\xcc\x81\":2}"),
	T("{\"1\":1,\"01\":2}"),
	T("{\"a\":1,\"b\":{\"a\":1}}"),
	T("[{\"a\":1},{\"a\":1}]"),
	T("{\"null\":null}"),
	T("{\"\\\"\":1}"),
	T("{\"\\\\\":1,\"\\/\":2}"),
	T("{\"aaaaaaaa\":1,\"aaaaaaaab\":2}"),
	T("{\"b\":1,\"a\":2}"),
	T("{ }"),
	T("{\r\n}"),
	T("{\"x\":[{}],\"y\":{\"z\":[]}}"),
	T("{\"a\":{},\"b\":[]}"),
	T("{\"constructor\":1,\"__proto__\":2}"),
	T("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
};

static const struct {
	struct text text;
	size_t line;
	size_t column;
	const char *reason;
} refused[] = {
	{T(""), 1, 1, "the text ended where a value was expected"},
	{T("   "), 1, 4, "the text ended where a value was expected"},
	{T("\n\n"), 3, 1, "the text ended where a value was expected"},
	{T("nul"), 1, 1, "'n' found where a value was expected"},
	{T("nulll"), 1, 5, "'l' found where the end of the text was expected"},
	{T("Null"), 1, 1, "'N' found where a value was expected"},
	{T("NULL"), 1, 1, "'N' found where a value was expected"},
	{T("tru"), 1, 1, "'t' found where a value was expected"},
	{T("True"), 1, 1, "'T' found where a value was expected"},
	{T("truee"), 1, 5, "'e' found where the end of the text was expected"},
	{T("fals"), 1, 1, "'f' found where a value was expected"},
	{T("falsee"), 1, 6, "'e' found where the end of the text was expected"},
	{T("none"), 1, 1, "'n' found where a value was expected"},
	{T("undefined"), 1, 1, "'u' found where a value was expected"},
	{T("nan"), 1, 1, "'n' found where a value was expected"},
	{T("NaN"), 1, 1, "NaN is not JSON"},
	{T("-NaN"), 1, 2, "a digit was expected in a number"},
	{T("Infinity"), 1, 1, "Infinity is not JSON"},
	{T("-Infinity"), 1, 2, "a digit was expected in a number"},
	{T("inf"), 1, 1, "'i' found where a value was expected"},
	{T("-inf"), 1, 2, "a digit was expected in a number"},
	{T("+1"), 1, 1, "'+' found where a value was expected"},
	{T("+"), 1, 1, "'+' found where a value was expected"},
	{T("-"), 1, 2, "a digit was expected in a number"},
	{T("--1"), 1, 2, "a digit was expected in a number"},
	{T("- 1"), 1, 2, "a digit was expected in a number"},
	{T(".5"), 1, 1, "'.' found where a value was expected"},
	{T("-.5"), 1, 2, "a digit was expected in a number"},
	{T("5."), 1, 3, "a digit was expected in a number"},
	{T("-5."), 1, 4, "a digit was expected in a number"},
	{T("5.e1"), 1, 3, "a digit was expected in a number"},
	{T("1."), 1, 3, "a digit was expected in a number"},
	{T("1..2"), 1, 3, "a digit was expected in a number"},
	{T("1.2.3"), 1, 4, "'.' found where the end of the text was expected"},
	{T("01"), 1, 1, "a number must not begin with 0"},
	{T("-01"), 1, 2, "a number must not begin with 0"},
	{T("00"), 1, 1, "a number must not begin with 0"},
	{T("-00"), 1, 2, "a number must not begin with 0"},
	{T("007"), 1, 1, "a number must not begin with 0"},
	{T("0x10"), 1, 2, "'x' found where the end of the text was expected"},
	{T("0b1"), 1, 2, "'b' found where the end of the text was expected"},
	{T("0o7"), 1, 2, "'o' found where the end of the text was expected"},
	{T("1e"), 1, 3, "a digit was expected in a number"},
	{T("1e+"), 1, 4, "a digit was expected in a number"},
	{T("1e-"), 1, 4, "a digit was expected in a number"},
	{T("1E"), 1, 3, "a digit was expected in a number"},
	{T("1e1.5"), 1, 4, "'.' found where the end of the text was expected"},
	{T("1e1e1"), 1, 4, "'e' found where the end of the text was expected"},
	{T("1 2"), 1, 3, "'2' found where the end of the text was expected"},
	{T("1,2"), 1, 2, "',' found where the end of the text was expected"},
	{T("1_000"), 1, 2, "'_' found where the end of the text was expected"},
	{T("1,000"), 1, 2, "',' found where the end of the text was expected"},
	{T("\xef\xbc\x91"), 1, 1, "byte 0xef found where a value was expected"},
	{T("\xd9\xa3"), 1, 1, "byte 0xd9 found where a value was expected"},
	{T("1f"), 1, 2, "'f' found where the end of the text was expected"},
	{T("1L"), 1, 2, "'L' found where the end of the text was expected"},
	{T("0.e1"), 1, 3, "a digit was expected in a number"},
	{T("1e "), 1, 3, "a digit was expected in a number"},
	{T("1.5e"), 1, 5, "a digit was expected in a number"},
	{T("Infinit"), 1, 1, "'I' found where a value was expected"},
	{T("1a"), 1, 2, "'a' found where the end of the text was expected"},
	{T("--"), 1, 2, "a digit was expected in a number"},
	{T("-a"), 1, 2, "a digit was expected in a number"},
	{T("-e5"), 1, 2, "a digit was expected in a number"},
	{T("e5"), 1, 1, "'e' found where a value was expected"},
	{T("\""), 1, 2, "the string does not end"},
	{T("\"a"), 1, 3, "the string does not end"},
	{T("a\""), 1, 1, "'a' found where a value was expected"},
	{T("a"), 1, 1, "'a' found where a value was expected"},
	{T("'a'"), 1, 1, "''' found where a value was expected"},
	{T("\"a'"), 1, 4, "the string does not end"},
	{T("\"\\\""), 1, 4, "the string does not end"},
	{T("\"\\"), 1, 2, "the string does not end"},
	{T("\"\\x41\""), 1, 2, "no such escape in a string"},
	{T("\"\\a\""), 1, 2, "no such escape in a string"},
	{T("\"\\v\""), 1, 2, "no such escape in a string"},
	{T("\"\\0\""), 1, 2, "no such escape in a string"},
	{T("\"\\'\""), 1, 2, "no such escape in a string"},
	{T("\"\\U0041\""), 1, 2, "no such escape in a string"},
	{T("\"\\u\""), 1, 2, "\\u needs four hexadecimal digits"},
	{T("\"\\u0\""), 1, 2, "\\u needs four hexadecimal digits"},
	{T("\"\\u00\""), 1, 2, "\\u needs four hexadecimal digits"},
	{T("\"\\u004\""), 1, 2, "\\u needs four hexadecimal digits"},
	{T("\"\\u004g\""), 1, 2, "\\u needs four hexadecimal digits"},
	{T("\"\\u 041\""), 1, 2, "\\u needs four hexadecimal digits"},
	{T("\"\\u+041\""), 1, 2, "\\u needs four hexadecimal digits"},
	{T("\"\\u-041\""), 1, 2, "\\u needs four hexadecimal digits"},
	{T("\"\\u{41}\""), 1, 2, "\\u needs four hexadecimal digits"},
	{T("\"\\ud800\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\udbff\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\udc00\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\udfff\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\ud800a\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\ud800\\n\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\ud800\\u0041\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\ud800\\ud800\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\udc00\\ud800\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\ud800\\udbff\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\ud83d\\u\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\ud83d\\ude0\""), 1, 2, "a surrogate without its other half"},
	{T("\"\\ud83d \\ude00\""), 1, 2, "a surrogate without its other half"},
	{T("\"\n\""), 1, 2, "a control character in a string must be escaped"},
	{T("\"\t\""), 1, 2, "a control character in a string must be escaped"},
	{T("\"\r\""), 1, 2, "a control character in a string must be escaped"},
	{T("\"\x00\""), 1, 2, "a control character in a string must be escaped"},
	{T("\"\x01\""), 1, 2, "a control character in a string must be escaped"},
	{T("\"\x1f\""), 1, 2, "a control character in a string must be escaped"},
	{T("\"a\nb\""), 1, 3, "a control character in a string must be escaped"},
	{T("\"\" \"\""), 1, 4, "'\"' found where the end of the text was expected"},
	{T("\"\"a"), 1, 3, "'a' found where the end of the text was expected"},
	{T("\"a\" b"), 1, 5, "'b' found where the end of the text was expected"},
	{T("`a`"), 1, 1, "'`' found where a value was expected"},
	{T("\xe2\x80\x9c""a\xe2\x80\x9d"), 1, 1, "byte 0xe2 found where a value was expected"},
	{T("["), 1, 2, "the text ended where a value was expected"},
	{T("[1"), 1, 3, "the text ended where ',' or ']' was expected"},
	{T("[1,"), 1, 4, "the text ended where a value was expected"},
	{T("[1,]"), 1, 4, "']' found where a value was expected"},
	{T("[,1]"), 1, 2, "',' found where a value was expected"},
	{T("[,]"), 1, 2, "',' found where a value was expected"},
	{T("[1,,2]"), 1, 4, "',' found where a value was expected"},
	{T("[1 2]"), 1, 4, "'2' found where ',' or ']' was expected"},
	{T("[1;2]"), 1, 3, "';' found where ',' or ']' was expected"},
	{T("[1:2]"), 1, 3, "':' found where ',' or ']' was expected"},
	{T("[1}"), 1, 3, "'}' found where ',' or ']' was expected"},
	{T("[}"), 1, 2, "'}' found where a value was expected"},
	{T("]"), 1, 1, "']' found where a value was expected"},
	{T("[]]"), 1, 3, "']' found where the end of the text was expected"},
	{T("[[]"), 1, 4, "the text ended where ',' or ']' was expected"},
	{T("[["), 1, 3, "the text ended where a value was expected"},
	{T("[1]]"), 1, 4, "']' found where the end of the text was expected"},
	{T("[1],"), 1, 4, "',' found where the end of the text was expected"},
	{T("[1][2]"), 1, 4, "'[' found where the end of the text was expected"},
	{T("[\"a\""), 1, 5, "the text ended where ',' or ']' was expected"},
	{T("[\"a\","), 1, 6, "the text ended where a value was expected"},
	{T("[1,2"), 1, 5, "the text ended where ',' or ']' was expected"},
	{T("[1,\n2\n"), 3, 1, "the text ended where ',' or ']' was expected"},
	{T("['a']"), 1, 2, "''' found where a value was expected"},
	{T("[a]"), 1, 2, "'a' found where a value was expected"},
	{T("[1 ,]"), 1, 5, "']' found where a value was expected"},
	{T("[\n\n,1]"), 3, 1, "',' found where a value was expected"},
	{T("[1\x0c]"), 1, 3, "byte 0x0c found where ',' or ']' was expected"},
	{T("[\x0b]"), 1, 2, "byte 0x0b found where a value was expected"},
	{T("[\xc2\xa0]"), 1, 2, "byte 0xc2 found where a value was expected"},
	{T("[\xe2\x80\xa8]"), 1, 2, "byte 0xe2 found where a value was expected"},
	{T("[1,2,3"), 1, 7, "the text ended where ',' or ']' was expected"},
	{T("[nul]"), 1, 2, "'n' found where a value was expected"},
	{T("[//]"), 1, 2, "'/' found where a value was expected"},
	{T("[/**/]"), 1, 2, "'/' found where a value was expected"},
	{T("[#\n]"), 1, 2, "'#' found where a value was expected"},
	{T("[1]1"), 1, 4, "'1' found where the end of the text was expected"},
	{T("[1]/*x*/"), 1, 4, "'/' found where the end of the text was expected"},
	{T("[1]//"), 1, 4, "'/' found where the end of the text was expected"},
	{T("(1)"), 1, 1, "'(' found where a value was expected"},
	{T("<1>"), 1, 1, "'<' found where a value was expected"},
	{T("{"), 1, 2, "the text ended where a member name was expected"},
	{T("{\"a\""), 1, 5, "the text ended where ':' was expected"},
	{T("{\"a\":"), 1, 6, "the text ended where a value was expected"},
	{T("{\"a\":1"), 1, 7, "the text ended where ',' or '}' was expected"},
	{T("{\"a\":1,"), 1, 8, "the text ended where a member name was expected"},
	{T("{\"a\":1,}"), 1, 8, "'}' found where a member name was expected"},
	{T("{,}"), 1, 2, "',' found where a member name was expected"},
	{T("{,\"a\":1}"), 1, 2, "',' found where a member name was expected"},
	{T("{\"a\":1,,\"b\":2}"), 1, 8, "',' found where a member name was expected"},
	{T("{a:1}"), 1, 2, "'a' found where a member name was expected"},
	{T("{'a':1}"), 1, 2, "''' found where a member name was expected"},
	{T("{1:1}"), 1, 2, "'1' found where a member name was expected"},
	{T("{null:1}"), 1, 2, "'n' found where a member name was expected"},
	{T("{\"a\" 1}"), 1, 6, "'1' found where ':' was expected"},
	{T("{\"a\"=1}"), 1, 5, "'=' found where ':' was expected"},
	{T("{\"a\":=1}"), 1, 6, "'=' found where a value was expected"},
	{T("{\"a\"::1}"), 1, 6, "':' found where a value was expected"},
	{T("{\"a\":1 \"b\":2}"), 1, 8, "'\"' found where ',' or '}' was expected"},
	{T("{\"a\":1;\"b\":2}"), 1, 7, "';' found where ',' or '}' was expected"},
	{T("{\"a\",\"b\"}"), 1, 5, "',' found where ':' was expected"},
	{T("{\"a\":1]"), 1, 7, "']' found where ',' or '}' was expected"},
	{T("{]"), 1, 2, "']' found where a member name was expected"},
	{T("}"), 1, 1, "'}' found where a value was expected"},
	{T("{}}"), 1, 3, "'}' found where the end of the text was expected"},
	{T("{{}}"), 1, 2, "'{' found where a member name was expected"},
	{T("{[]:1}"), 1, 2, "'[' found where a member name was expected"},
	{T("{\"a\":}"), 1, 6, "'}' found where a value was expected"},
	{T("{\"a\":,\"b\":1}"), 1, 6, "',' found where a value was expected"},
	{T("{\"a\":1:2}"), 1, 7, "':' found where ',' or '}' was expected"},
	{T("{:1}"), 1, 2, "':' found where a member name was expected"},
	{T("{\"a\n\":1}"), 1, 4, "a control character in a string must be escaped"},
	{T("{\"a\":\"b}"), 1, 9, "the string does not end"},
	{T("{\"\\ud800\":1}"), 1, 3, "a surrogate without its other half"},
	{T("{\"\\x\":1}"), 1, 3, "no such escape in a string"},
	{T("{} {}"), 1, 4, "'{' found where the end of the text was expected"},
	{T("{}{}"), 1, 3, "'{' found where the end of the text was expected"},
	{T("{},"), 1, 3, "',' found where the end of the text was expected"},
	{T("{\"a\":1}x"), 1, 8, "'x' found where the end of the text was expected"},
	{T("{\"a\":1,b:2}"), 1, 8, "'b' found where a member name was expected"},
	{T("{\"a\":1,1}"), 1, 8, "'1' found where a member name was expected"},
	{T("{true:false}"), 1, 2, "'t' found where a member name was expected"},
	{T("{\"a\":1,\"b\"}"), 1, 11, "'}' found where ':' was expected"},
	{T("{\"a\":1,\"b\":}"), 1, 12, "'}' found where a value was expected"},
	{T("{ \"a\" : 1 , }"), 1, 13, "'}' found where a member name was expected"},
	{T("{\"a\":1,\"a\":2}"), 1, 8, "member \"a\" occurs twice"},
	{T("{\"a\":1,\"a\":1}"), 1, 8, "member \"a\" occurs twice"},
	{T("{\"a\":1,\"b\":2,\"a\":3}"), 1, 14, "member \"a\" occurs twice"},
	{T("{\"\":1,\"\":2}"), 1, 7, "member \"\" occurs twice"},
	{T("{\"a\":1,\"\\u0061\":2}"), 1, 8, "member \"\\u0061\" occurs twice"},
	{T("{\"\\u0061\":1,\"\\u0061\":2}"), 1, 13, "member \"\\u0061\" occurs twice"},
	{T("{\"x\":{\"a\":1,\"a\":2}}"), 1, 13, "member \"a\" occurs twice"},
	{T("[{\"a\":1,\"a\":2}]"), 1, 9, "member \"a\" occurs twice"},
	{T("{\"\xc3\xa9\":1,\"\\u00e9\":2}"), 1, 8, "member \"\\u00e9\" occurs twice"},
	{T("{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":2}"), 1, 8, "member \"\\ud83d\\ude00\" occurs twice"},
	{T("{\"/\":1,\"\\/\":2}"), 1, 8, "member \"\\/\" occurs twice"},
	{T("{\"b\":1,\"a\":2,\"c\":3,\"a\":4}"), 1, 20, "member \"a\" occurs twice"},
	{T("{\"longer than eight\":1,\"longer than eight\":2}"), 1, 24, "member \"longer than eight\" occurs twice"},
	{T("{\"a\":1,\"b\":{\"c\":1},\"b\":2}"), 1, 20, "member \"b\" occurs twice"},
	{T("{\"\\n\":1,\"\\u000a\":2}"), 1, 9, "member \"\\u000a\" occurs twice"},
	{T("{\"a\":\n1,\n\"a\":2}"), 3, 1, "member \"a\" occurs twice"},
	{T("{\"a\":1,\"c\":1,\"b\":1,\"c\":1}"), 1, 20, "member \"c\" occurs twice"},
	{T("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"), 1, 129, "nested deeper than 128 levels"},
	{T("\"\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xbf\""), 1, 2, "not UTF-8"},
	{T("\"\xc0\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xc1\xbf\""), 1, 2, "not UTF-8"},
	{T("\"\xc2\""), 1, 2, "not UTF-8"},
	{T("\"\xc2\""), 1, 2, "not UTF-8"},
	{T("\"\xc2\xc2\""), 1, 2, "not UTF-8"},
	{T("\"\xe0\x80\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xe0\x9f\xbf\""), 1, 2, "not UTF-8"},
	{T("\"\xe2\x82\""), 1, 2, "not UTF-8"},
	{T("\"\xe2(\xa1\""), 1, 2, "not UTF-8"},
	{T("\"\xe2\x82(\""), 1, 2, "not UTF-8"},
	{T("\"\xed\xa0\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xed\xbf\xbf\""), 1, 2, "not UTF-8"},
	{T("\"\xed\xa0\xbd\xed\xb8\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xf0\x80\x80\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xf0\x8f\xbf\xbf\""), 1, 2, "not UTF-8"},
	{T("\"\xf0\x9f\x98\""), 1, 2, "not UTF-8"},
	{T("\"\xf0(\x8c\xbc\""), 1, 2, "not UTF-8"},
	{T("\"\xf4\x90\x80\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xf5\x80\x80\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xf8\x88\x80\x80\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xfc\x84\x80\x80\x80\x80\""), 1, 2, "not UTF-8"},
	{T("\"\xfe\""), 1, 2, "not UTF-8"},
	{T("\"\xff\""), 1, 2, "not UTF-8"},
	{T("\"aaaaaaaaaaaaaaaaaaaa\xff\""), 1, 22, "not UTF-8"},
	{T("\xff"), 1, 1, "byte 0xff found where a value was expected"},
	{T("\x80"), 1, 1, "byte 0x80 found where a value was expected"},
	{T("{\"\xff\":1}"), 1, 3, "not UTF-8"},
	{T("{\"a\":\"\xc3\"}"), 1, 7, "not UTF-8"},
	{T("\xef\xbb\xbf"), 1, 1, "a byte order mark is not JSON"},
	{T("\xef\xbb\xbf{}"), 1, 1, "a byte order mark is not JSON"},
	{T("\xfe\xff\x00\""), 1, 1, "byte 0xfe found where a value was expected"},
	{T("\xff\xfe\"\x00"), 1, 1, "byte 0xff found where a value was expected"},
	{T("\"\xe9\""), 1, 2, "not UTF-8"},
	{T("\x00"), 1, 1, "byte 0x00 found where a value was expected"},
	{T("1\x00"), 1, 2, "byte 0x00 found where the end of the text was expected"},
	{T("[\x00]"), 1, 2, "byte 0x00 found where a value was expected"},
	{T("\"a\x00""b\""), 1, 3, "a control character in a string must be escaped"},
	{T("{}\x00"), 1, 3, "byte 0x00 found where the end of the text was expected"},
};
/* clang-format on */

enum {
	ACCEPTED_COUNT = sizeof(accepted) / sizeof(accepted[0]),
	REFUSED_COUNT = sizeof(refused) / sizeof(refused[0]),
	NAME_COUNT = 256,
};

/*
 * Read to the end. The text lies at the end of its own allocation, so that a
 * sanitizer sees a read beyond it.
 */
static enum hapax_status read_all(struct text text, size_t *ret_tokens, struct hapax_error *err)
{
	char *copy = malloc(text.size + 1);
	char *data = copy + 1; /* no alignment to rely on */
	struct hx_json_name names[NAME_COUNT];
	struct hx_json_token token = {.type = HX_JSON_NULL};
	struct hx_json json;
	enum hapax_status status;

	assert_non_null(copy);
	memcpy(data, text.data, text.size);
	*ret_tokens = 0;
	status = hx_json_init(&json, hx_bytes(data, text.size), names, NAME_COUNT, err);
	while (status == HAPAX_OK) {
		status = hx_json_next(&json, &token, err);
		if (status != HAPAX_OK || token.type == HX_JSON_END)
			break;
		(*ret_tokens)++;
		assert_in_range(token.text + token.size, 0, text.size);
		assert_in_range(token.name + token.name_size, 0, text.size);
	}
	free(copy);
	return status;
}

static void there_are_at_least_300_texts(void **state)
{
	(void)state;
	assert_true(ACCEPTED_COUNT + REFUSED_COUNT >= 300);
}

static void what_is_json_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ACCEPTED_COUNT; i++) {
		struct hapax_error err = {HAPAX_OK, 0, ""};
		size_t tokens;

		if (read_all(accepted[i], &tokens, &err) != HAPAX_OK)
			fail_msg("text %zu, '%s': %s", i, accepted[i].data, err.message);
		assert_true(tokens >= 1);
	}
}

static void what_is_not_is_refused_where_it_shows(void **state)
{
	(void)state;
	for (size_t i = 0; i < REFUSED_COUNT; i++) {
		struct hapax_error err = {HAPAX_OK, 0, ""};
		char expected[HAPAX_ERROR_MESSAGE_SIZE];
		size_t tokens;
		enum hapax_status status = read_all(refused[i].text, &tokens, &err);

		if (status == HAPAX_OK)
			fail_msg("text %zu, '%s' was read", i, refused[i].text.data);
		(void)snprintf(
			expected, sizeof(expected), "line %zu, column %zu: %s", refused[i].line,
			refused[i].column, refused[i].reason);
		assert_string_equal(err.message, expected);
		assert_int_equal(err.status, status);
		assert_int_equal(
			status,
			strstr(err.message, "deeper") != NULL ? HAPAX_ERR_LIMIT
							      : HAPAX_ERR_INVALID);
	}
}

/* Whatever is cut off, what remains is no JSON, but for numbers. */
static void every_beginning_is_refused(void **state)
{
	static const char text[] =
		"{\"a\":[true,false,null,\"x\\n\\u00e9\\ud83d\\ude00\xc3\xa9\"],\"b\":{}}";

	(void)state;
	for (size_t size = 0; size < sizeof(text) - 1; size++) {
		struct hapax_error err;
		size_t tokens;

		assert_int_equal(
			read_all((struct text){text, size}, &tokens, &err), HAPAX_ERR_INVALID);
	}
}

/* No byte in place of another makes it read beyond the end or loop. */
static void every_byte_everywhere(void **state)
{
	static const char text[] = "{\"a\":[1.5e3,\"\\u00e9\xc3\xa9\"],\"b\":null}";
	char changed[sizeof(text)];

	(void)state;
	for (size_t at = 0; at < sizeof(text) - 1; at++) {
		for (int byte = 0; byte < 256; byte++) {
			struct hapax_error err;
			size_t tokens;

			memcpy(changed, text, sizeof(text));
			changed[at] = (char)byte;
			(void)read_all((struct text){changed, sizeof(text) - 1}, &tokens, &err);
		}
	}
}

struct expected_token {
	enum hx_json_type type;
	const char *name;
	const char *text;
};

static void tokens_point_into_the_text(void **state)
{
	static const char text[] = " { \"a\" : [ 1.5, \"x\\n\" ], \"b\\u0041\":true } ";
	static const struct expected_token expected[] = {
		{HX_JSON_OBJECT, "", "{"},     {HX_JSON_ARRAY, "a", "["},
		{HX_JSON_NUMBER, "", "1.5"},   {HX_JSON_STRING, "", "x\\n"},
		{HX_JSON_ARRAY_END, "", "]"},  {HX_JSON_TRUE, "b\\u0041", "true"},
		{HX_JSON_OBJECT_END, "", "}"}, {HX_JSON_END, "", ""},
	};
	struct hx_json_name names[4];
	struct hx_json json;
	struct hx_json_token token;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, hx_bytes(text, sizeof(text) - 1), names, 4, NULL), HAPAX_OK);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(hx_json_next(&json, &token, NULL), HAPAX_OK);
		assert_int_equal(token.type, expected[i].type);
		assert_int_equal(token.size, strlen(expected[i].text));
		assert_memory_equal(text + token.text, expected[i].text, token.size);
		assert_int_equal(token.name_size, strlen(expected[i].name));
		assert_memory_equal(text + token.name, expected[i].name, token.name_size);
	}
	/* Once at the end it stays there. */
	assert_int_equal(hx_json_next(&json, &token, NULL), HAPAX_OK);
	assert_int_equal(token.type, HX_JSON_END);
}

static void flags_tell_escapes_and_fractions(void **state)
{
	static const char text[] = "[\"a\",\"\\n\",1,1.5,1e5,-7,{\"x\":0},{\"\\n\":0}]";
	struct hx_json_name names[4];
	struct hx_json_token tokens[16];
	struct hx_json json;
	size_t count = 0;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, hx_bytes(text, sizeof(text) - 1), names, 4, NULL), HAPAX_OK);
	do
		assert_int_equal(hx_json_next(&json, &tokens[count], NULL), HAPAX_OK);
	while (tokens[count++].type != HX_JSON_END);
	assert_false(tokens[1].escaped);
	assert_true(tokens[2].escaped);
	assert_false(tokens[3].escaped);
	assert_true(tokens[4].escaped);
	assert_true(tokens[5].escaped);
	assert_false(tokens[6].escaped);
	assert_false(tokens[8].name_escaped);
	assert_true(tokens[11].name_escaped);
}

static void closed_names_stand_in_order(void **state)
{
	static const char text[] = "{\"b\":{\"z\":1,\"y\":2},\"a\":3}";
	struct hx_json_name names[4];
	struct hx_json_name *closed;
	struct hx_json_token token;
	struct hx_json json;
	uint32_t tag = 0;
	size_t count;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, hx_bytes(text, sizeof(text) - 1), names, 4, NULL), HAPAX_OK);
	do {
		assert_int_equal(hx_json_next(&json, &token, NULL), HAPAX_OK);
		if (token.name != 0)
			hx_json_tag_name(&json, ++tag); /* b 1, z 2, y 3, a 4 */
		if (token.type != HX_JSON_OBJECT_END)
			continue;
		closed = hx_json_closed_names(&json, &count);
		assert_int_equal(count, 2);
		assert_int_equal(closed[0].tag, json.depth == 1 ? 3 : 4);
		assert_int_equal(closed[1].tag, json.depth == 1 ? 2 : 1);
	} while (token.type != HX_JSON_END);
}

static void without_names_members_may_repeat(void **state)
{
	struct hx_json_token token;
	struct hx_json json;
	size_t count;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, HX_BYTES_LIT("{\"a\":1,\"a\":2}"), NULL, 0, NULL), HAPAX_OK);
	do
		assert_int_equal(hx_json_next(&json, &token, NULL), HAPAX_OK);
	while (token.type != HX_JSON_END);
	assert_null(hx_json_closed_names(&json, &count));
}

static void too_many_names_are_a_limit(void **state)
{
	struct hapax_error err;
	struct hx_json_name names[2];
	struct hx_json_token token;
	struct hx_json json;
	enum hapax_status status;

	(void)state;
	/* Closed objects give their names back: only open ones count. */
	status = hx_json_init(
		&json, HX_BYTES_LIT("[{\"a\":1,\"b\":2},{\"c\":3,\"d\":4}]"), names, 2, &err);
	do {
		assert_int_equal(status, HAPAX_OK);
		status = hx_json_next(&json, &token, &err);
	} while (status == HAPAX_OK && token.type != HX_JSON_END);
	assert_int_equal(status, HAPAX_OK);
	status = hx_json_init(&json, HX_BYTES_LIT("{\"a\":1,\"b\":{\"c\":3}}"), names, 2, &err);
	while (status == HAPAX_OK)
		status = hx_json_next(&json, &token, &err);
	assert_int_equal(status, HAPAX_ERR_LIMIT);
	assert_string_equal(err.message, "line 1, column 13: more than 2 member names at once");
}

static void nesting_is_a_limit(void **state)
{
	char text[2 * HX_JSON_DEPTH_MAX + 2];
	struct hapax_error err;
	size_t tokens;

	(void)state;
	memset(text, '[', HX_JSON_DEPTH_MAX);
	memset(text + HX_JSON_DEPTH_MAX, ']', HX_JSON_DEPTH_MAX);
	assert_int_equal(
		read_all((struct text){text, 2 * (size_t)HX_JSON_DEPTH_MAX}, &tokens, &err),
		HAPAX_OK);
	assert_int_equal(tokens, 2 * HX_JSON_DEPTH_MAX);
	memset(text, '[', HX_JSON_DEPTH_MAX + 1);
	assert_int_equal(
		read_all((struct text){text, HX_JSON_DEPTH_MAX + 1}, &tokens, &err),
		HAPAX_ERR_LIMIT);
	assert_string_equal(err.message, "line 1, column 129: nested deeper than 128 levels");
}

static void objects_and_arrays_are_kept_apart_at_every_depth(void **state)
{
	char text[6 * HX_JSON_DEPTH_MAX + 1];
	size_t tokens;

	(void)state;
	/* [{"a":[{"a":... with a bracket of the wrong kind at each level in turn. */
	for (int wrong = -1; wrong < HX_JSON_DEPTH_MAX; wrong++) {
		struct hapax_error err;
		size_t size = 0;

		for (int i = 0; i < HX_JSON_DEPTH_MAX; i++) {
			const char *open = i % 2 == 0 ? "[" : "{\"a\":";

			memcpy(text + size, open, strlen(open));
			size += strlen(open);
		}
		text[size++] = '1';
		for (int i = HX_JSON_DEPTH_MAX - 1; i >= 0; i--)
			text[size++] = ((i % 2 == 0) != (i == wrong)) ? ']' : '}';
		assert_int_equal(
			read_all((struct text){text, size}, &tokens, &err),
			wrong < 0 ? HAPAX_OK : HAPAX_ERR_INVALID);
	}
}

static void size_is_a_limit(void **state)
{
	struct hapax_error err;
	struct hx_json json;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, hx_bytes("", (size_t)HX_JSON_SIZE_MAX + 1), NULL, 0, &err),
		HAPAX_ERR_LIMIT);
	assert_non_null(strstr(err.message, "67108865 bytes"));
}

static void places_count_lines_and_characters(void **state)
{
	static const char text[] = "a\xc3\xa9"
				   "b\nc\xf0\x9f\x98\x80"
				   "d\r\ne";
	static const size_t places[][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 3}, {1, 4},
	                                   {2, 1}, {2, 2}, {2, 3}, {2, 3}, {2, 3},
	                                   {2, 3}, {2, 4}, {2, 5}, {3, 1}, {3, 2}};

	(void)state;
	for (size_t i = 0; i <= sizeof(text) - 1; i++) {
		size_t line;
		size_t column;

		hx_json_place(hx_bytes(text, sizeof(text) - 1), i, &line, &column);
		assert_int_equal(line, places[i][0]);
		assert_int_equal(column, places[i][1]);
	}
}

static void long_names_in_messages_are_cut_between_characters(void **state)
{
	char text[512];
	struct hapax_error err;
	size_t tokens;
	int size;

	(void)state;
	/* 63 letters, then characters of two bytes: the 64th byte is the first of one. */
	size = snprintf(
		text, sizeof(text), "{\"%063d\xc3\xa9\xc3\xa9\":1,\"%063d\xc3\xa9\xc3\xa9\":2}", 0,
		0);
	assert_int_equal(
		read_all((struct text){text, (size_t)size}, &tokens, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "000\" occurs twice"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_at_least_300_texts),
		cmocka_unit_test(what_is_json_is_read),
		cmocka_unit_test(what_is_not_is_refused_where_it_shows),
		cmocka_unit_test(every_beginning_is_refused),
		cmocka_unit_test(every_byte_everywhere),
		cmocka_unit_test(tokens_point_into_the_text),
		cmocka_unit_test(flags_tell_escapes_and_fractions),
		cmocka_unit_test(closed_names_stand_in_order),
		cmocka_unit_test(without_names_members_may_repeat),
		cmocka_unit_test(too_many_names_are_a_limit),
		cmocka_unit_test(nesting_is_a_limit),
		cmocka_unit_test(objects_and_arrays_are_kept_apart_at_every_depth),
		cmocka_unit_test(size_is_a_limit),
		cmocka_unit_test(places_count_lines_and_characters),
		cmocka_unit_test(long_names_in_messages_are_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
