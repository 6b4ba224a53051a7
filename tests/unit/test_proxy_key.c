/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of the proxy: what makes two requests the same, whose they are, and which bodies
 * are the same payload.
 */
#include "serve/http/proxy_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "config/config.h"
#include "net/http/http_body.h"
#include "wire/http1/http1.h"

static const char *const cookies[] = {"session", "device"};
static const char *const accounts[] = {"Stripe-Account", "X-Tenant-Id"};

static const struct hx_config_proxy_route by_default = {
	.header = "Idempotency-Key",
	.credential = "auto",
	.credential_cookies = cookies,
	.credential_cookie_count = 2,
	.fingerprint_headers = accounts,
	.fingerprint_header_count = 2};

static struct hx_http1_head head;

static void read_head(const char *text)
{
	struct hx_http1 http;
	struct hx_http1_event event;
	struct hapax_error err;

	hx_http1_init(&http, HX_HTTP1_SERVER, NULL);
	if (hx_http1_next(&http, hapax_bytes_from_text(text), &head, &event, &err) != HAPAX_OK)
		fail_msg("%s: %s", text, err.message);
	assert_int_equal(event.type, HX_HTTP1_HEAD);
}

static enum hx_proxy_key_end read_key(
	const struct hx_config_proxy_route *route, const char *text, const char *certificate,
	struct hx_proxy_key *key, struct hapax_error *err)
{
	struct hx_sha256 sha = {NULL};
	enum hx_proxy_key_end end;

	read_head(text);
	assert_int_equal(hx_sha256_init(&sha), HAPAX_OK);
	/* What was fed before does not matter. */
	hx_sha256_update(&sha, "x", 1);
	end = hx_proxy_key_read(route, &head, hapax_bytes_from_text(certificate), &sha, key, err);
	hx_sha256_done(&sha);
	return end;
}

/* A request: its first line's method and target, host, certificate, and more fields. */
struct request {
	const char *target;
	const char *host;
	const char *certificate;
	const char *fields;
};

static void make(const struct request *request, struct hx_proxy_key *key)
{
	char text[1024];
	struct hapax_error err;

	(void)snprintf(
		text, sizeof(text), "%s HTTP/1.1\r\nHost: %s\r\nIdempotency-Key: k\r\n%s\r\n",
		request->target, request->host, request->fields);
	assert_int_equal(
		read_key(&by_default, text, request->certificate, key, &err), HX_PROXY_KEY_FOUND);
	assert_int_equal(key->size, HX_PROXY_OPERATION_DIGITS + 2);
	assert_memory_equal(key->text + HX_PROXY_OPERATION_DIGITS, "/k", 2);
}

/* Each differs from all others in what decides whose operation it is. */
static void different_requests_have_different_keys(void **state)
{
	static const struct request requests[] = {
		{"POST /a", "h", "c", ""},
		{"PATCH /a", "h", "c", ""},
		{"POST /b", "h", "c", ""},
		{"POST /a/", "h", "c", ""},
		{"POST /A", "h", "c", ""},
		{"POST /a", "i", "c", ""},
		{"POST /a", "h:8080", "c", ""},
		{"POST /a", "[::1]", "c", ""},
		{"POST /a", "[::1]:81", "c", ""},
		{"POST /a", "h.:81", "c", ""},
		{"POST /a/b", "h", "c", ""},
		{"POST /a%2Fb", "h", "c", ""},
		{"POST /a%20b", "h", "c", ""},
		{"POST /a", "h", "cert", ""},
		{"POST /a", "h", "", "Authorization: cert\r\n"},
		{"POST /a", "h", "", "Authorization: Bearer a\r\n"},
		{"POST /a", "h", "", "Cookie: session=cert\r\n"},
		{"POST /a", "h", "", "Cookie: device=cert\r\n"},
		{"POST /a", "h", "", "Cookie: session=a; device=b\r\n"},
		{"POST /a", "h", "", "Cookie: session=a; session=b\r\n"},
		{"POST /a", "h", "", "Cookie: session=b; session=a\r\n"},
		{"POST /a", "h", "", "Cookie: session=a=b\r\n"},
		/* One API key and another; in one field, in two, and in fields of other names. */
		{"POST /a", "h", "", "X-API-Key: a\r\n"},
		{"POST /a", "h", "", "X-API-Key: b\r\n"},
		{"POST /a", "h", "", "X-API-Key: a, b\r\n"},
		{"POST /a", "h", "", "X-API-Key: a\r\nX-API-Key: b\r\n"},
		{"POST /a", "h", "", "X-API-Key: b\r\nX-API-Key: a\r\n"},
		{"POST /a", "h", "", "X-API-Token: a\r\n"},
		{"POST /a", "h", "", "Api-Key: a\r\n"},
		{"POST /a", "h", "", "ApiKey: a\r\n"},
		{"POST /a", "h", "", "Ocp-Apim-Subscription-Key: a\r\n"},
		{"POST /a", "h", "", "PLAID-SECRET: a\r\n"},
		{"POST /a", "h", "", "X-API-Key: a\r\nX-Auth-Token: b\r\n"},
		{"POST /a", "h", "", "X-API-Key: b\r\nX-Auth-Token: a\r\n"},
		/* Beside one that is shared, each of the others counts. */
		{"POST /a", "h", "", "Authorization: Basic a\r\n"},
		{"POST /a", "h", "", "Authorization: Basic a\r\nX-API-Key: a\r\n"},
		{"POST /a", "h", "", "Authorization: Basic a\r\nCookie: session=a\r\n"},
		{"POST /a", "h", "", "Authorization: Basic a\r\nCookie: session=b\r\n"},
		{"POST /a", "h", "a", "Authorization: Basic a\r\n"},
		{"POST /a", "h", "b", "Authorization: Basic a\r\n"},
		/* What stands on one side of a border does not move to the other. */
		{"POST /a", "ha", "c", ""},
		{"POST /aa", "h", "c", ""},
		{"POSTA /a", "h", "c", ""},
	};
	enum { COUNT = sizeof(requests) / sizeof(requests[0]) };
	static struct hx_proxy_key keys[COUNT];

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		make(&requests[i], &keys[i]);
		for (size_t k = 0; k < i; k++) {
			if (memcmp(keys[i].text, keys[k].text, keys[i].size) == 0)
				fail_msg("%zu and %zu have the same key", k, i);
		}
	}
}

static void equal_requests_have_equal_keys(void **state)
{
	static const struct request pairs[][2] = {
		{{"POST /a", "h", "c", ""}, {"POST /a?b=c", "H", "c", "Accept: x\r\n"}},
		{{"POST /a", "h", "c", ""}, {"POST http://h/a", "h", "c", "Cookie: x=y\r\n"}},
		{{"POST /a", "h", "", "Authorization: a\r\n"},
		 {"POST /a", "h", "", "authorization:  a \r\nCookie: _ga=b; session=\r\n"}},
		{{"POST /a", "h", "", "X-API-Key: a\r\n"},
		 {"POST /a", "h", "", "X-Auth-Token:\r\nx-api-key:a\r\nX-API-KEY:\r\n"}},
		{{"POST /a", "h", "", "X-API-Key: a\r\nX-Auth-Token: b\r\n"},
		 {"POST /a", "h", "", "X-Auth-Token: b\r\nX-API-Key: a\r\n"}},
		{{"POST /a", "h", "c", ""}, {"POST /a", "H.:80", "c", ""}},
		{{"POST /a", "h.", "c", ""}, {"POST /a", "h:443", "c", ""}},
		{{"POST /a", "h", "c", ""}, {"POST /a", "h:", "c", ""}},
		{{"POST /a", "h.:81", "c", ""}, {"POST /a", "h:81", "c", ""}},
		{{"POST /a", "[::1]:80", "c", ""}, {"POST /a", "[::1]", "c", ""}},
		{{"POST /a-b", "h", "c", ""}, {"POST /%61%2Db", "h", "c", ""}},
		{{"POST /%C3%A4", "h", "c", ""}, {"POST /%c3%a4", "h", "c", ""}},
		{{"POST /a", "h", "cert", ""}, {"POST /a", "h", "cert", "Cookie: sessions=b\r\n"}},
		{{"POST /a", "h", "", "Cookie: session=a; device=b\r\n"},
		 {"POST /a", "h", "",
		  "Cookie: x;device=b;;y=z\r\nCookie:  session = a ;sessions=c\r\n"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct hx_proxy_key keys[2];

		make(&pairs[i][0], &keys[0]);
		make(&pairs[i][1], &keys[1]);
		if (memcmp(keys[0].text, keys[1].text, keys[0].size) != 0)
			fail_msg("pair %zu has two keys", i);
	}
}

/* Known from outside: it must not change, or a new version knows no old key. */
static void the_key_is_a_fixed_function(void **state)
{
	static const struct request request = {
		"POST /v1/charges", "API.example", "", "Authorization: Bearer a\r\n"};
	struct hx_proxy_key key;
	unsigned char digest[HX_SHA256_SIZE];
	static const char parts[] = "\15\0\0\0\0\0\0\0Authorization\10\0\0\0\0\0\0\0Bearer a"
				    "\0\0\0\0\0\0\0\0"
				    "\4\0\0\0\0\0\0\0POST\13\0\0\0\0\0\0\0api.example"
				    "\13\0\0\0\0\0\0\0/v1/charges";
	char digits[HX_PROXY_OPERATION_DIGITS + 1];

	(void)state;
	make(&request, &key);
	hx_sha256(parts, sizeof(parts) - 1, digest);
	for (size_t i = 0; i < HX_PROXY_OPERATION_DIGITS / 2; i++)
		(void)snprintf(digits + 2 * i, 3, "%02x", digest[i]);
	assert_memory_equal(key.text, digits, HX_PROXY_OPERATION_DIGITS);
}

static void what_is_refused(void **state)
{
	static const struct hx_config_proxy_route by_user = {
		.header = "X-Key", .credential = "header:X-User"};
	static const struct hx_config_proxy_route by_nobody = {
		.header = "X-Key", .credential = "none"};
	static const struct {
		const struct hx_config_proxy_route *route;
		const char *fields;
		enum hx_proxy_key_end end;
		const char *message;
	} cases[] = {
		{&by_default, "", HX_PROXY_KEY_MISSING, ""},
		{&by_default, "X-Key: k\r\n", HX_PROXY_KEY_MISSING, ""},
		{&by_default, "Idempotency-Key: \r\n", HX_PROXY_KEY_INVALID, "byte 0: it is empty"},
		{&by_default, "Idempotency-Key: a\r\nIdempotency-Key: a\r\n", HX_PROXY_KEY_INVALID,
		 "the header 'Idempotency-Key' occurs twice"},
		{&by_default, "Idempotency-Key: a\r\nConnection: idempotency-key\r\n",
		 HX_PROXY_KEY_INVALID,
		 "Connection names the header 'Idempotency-Key'; send it as an end-to-end header"},
		{&by_default, "Idempotency-Key: a\r\nAuthorization: a\r\nAuthorization: b\r\n",
		 HX_PROXY_KEY_WHOSE_IS_UNKNOWN, "the header 'Authorization' occurs twice"},
		{&by_default,
		 "Idempotency-Key: a\r\nAuthorization: a\r\nConnection: Authorization\r\n",
		 HX_PROXY_KEY_WHOSE_IS_UNKNOWN,
		 "Connection names the header 'Authorization'; send it as an end-to-end header"},
		{&by_default, "Idempotency-Key: a\r\nCookie: session=a\r\nConnection: cookie\r\n",
		 HX_PROXY_KEY_WHOSE_IS_UNKNOWN,
		 "Connection names the header 'Cookie'; send it as an end-to-end header"},
		{&by_default, "Idempotency-Key: a\r\nX-API-Key: a\r\nConnection: x-api-key\r\n",
		 HX_PROXY_KEY_WHOSE_IS_UNKNOWN,
		 "Connection names the header 'X-API-Key'; send it as an end-to-end header"},
		/* Nothing says who asks: what is not named, or is empty, does not. */
		{&by_default, "Idempotency-Key: a\r\n", HX_PROXY_KEY_NO_CREDENTIAL, ""},
		{&by_default, "Idempotency-Key: a\r\nCookie: _ga=a; session=\r\n",
		 HX_PROXY_KEY_NO_CREDENTIAL, ""},
		{&by_default, "Idempotency-Key: a\r\nAuthorization:\r\nX-API-Key: \r\n",
		 HX_PROXY_KEY_NO_CREDENTIAL, ""},
		{&by_nobody, "X-Key: a\r\n", HX_PROXY_KEY_FOUND, ""},
		{&by_user, "X-Key: a\r\n", HX_PROXY_KEY_WHOSE_IS_UNKNOWN,
		 "the header 'X-User' is missing"},
		{&by_user, "X-Key: a\r\nX-User:\r\n", HX_PROXY_KEY_WHOSE_IS_UNKNOWN,
		 "the header 'X-User' is empty"},
		{&by_user, "X-Key: a\r\nX-User: a\r\nx-user: a\r\n", HX_PROXY_KEY_WHOSE_IS_UNKNOWN,
		 "the header 'X-User' occurs twice"},
		{&by_user, "X-Key: a\r\nX-User: a\r\n", HX_PROXY_KEY_FOUND, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_error err = {.message = ""};
		struct hx_proxy_key key;
		char text[512];

		(void)snprintf(
			text, sizeof(text), "POST / HTTP/1.1\r\nHost: h\r\n%s\r\n",
			cases[i].fields);
		assert_int_equal(read_key(cases[i].route, text, "", &key, &err), cases[i].end);
		assert_string_equal(err.message, cases[i].message);
	}
}

static void fingerprint(
	const char *target, const char *fields, struct hapax_bytes data, size_t memory_max,
	unsigned char ret[HAPAX_FINGERPRINT_SIZE])
{
	struct hx_http_body body;
	struct hx_sha256 sha = {NULL};
	char text[512];

	(void)snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: h\r\n%s\r\n", target, fields);
	read_head(text);
	assert_int_equal(hx_sha256_init(&sha), HAPAX_OK);
	hx_http_body_init(&body, "/tmp", memory_max);
	assert_int_equal(hx_http_body_add(&body, data, NULL), HAPAX_OK);
	assert_int_equal(hx_http_body_is_in_memory(&body), data.size <= memory_max);
	assert_int_equal(
		hx_proxy_key_fingerprint(&by_default, &head, &body, &sha, ret, NULL), HAPAX_OK);
	hx_http_body_done(&body);
	hx_sha256_done(&sha);
}

static void fingerprints(void **state)
{
	static const struct {
		const char *target;
		const char *fields;
		const char *body;
	} cases[] = {
		{"/", "", ""},
		{"/", "", "a"},
		{"/?", "", ""},
		{"/?a", "", ""},
		{"/?a", "", "a"},
		{"/", "Content-Type: a\r\n", ""},
		{"/", "Content-Type: a\r\n", "a"},
		{"/", "Content-Type: aa\r\n", ""},
		{"/", "Stripe-Account: a\r\n", ""},
		{"/", "Stripe-Account: b\r\n", ""},
		{"/", "X-Tenant-Id: a\r\n", ""},
		{"/", "Stripe-Account: a\r\nstripe-account: b\r\n", ""},
		{"/", "Stripe-Account: a, b\r\n", ""},
		{"/", "Stripe-Account: a\r\nX-Tenant-Id: a\r\n", ""},
	};
	enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
	unsigned char made[COUNT][HAPAX_FINGERPRINT_SIZE];
	unsigned char again[HAPAX_FINGERPRINT_SIZE];

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		fingerprint(
			cases[i].target, cases[i].fields, hapax_bytes_from_text(cases[i].body),
			1024, made[i]);
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(made[i], made[k], HAPAX_FINGERPRINT_SIZE);
	}
	/* Neither path nor other fields; who asks is in the key. */
	fingerprint("/other?a", "Accept: b\r\n", HX_BYTES_LIT("a"), 1024, again);
	assert_memory_equal(again, made[4], HAPAX_FINGERPRINT_SIZE);
	/* An account that does not reach the upstream is none. */
	fingerprint(
		"/", "Stripe-Account: b\r\nConnection: stripe-account\r\n", HX_BYTES_LIT(""), 1024,
		again);
	assert_memory_equal(again, made[0], HAPAX_FINGERPRINT_SIZE);
}

/* In a file it is the same as in memory, over the border of a piece, too. */
static void a_body_in_a_file(void **state)
{
	static unsigned char data[50000];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i % 251);
	for (size_t size = 16383; size <= sizeof(data); size += size < 16386 ? 1 : 11205) {
		unsigned char in_memory[HAPAX_FINGERPRINT_SIZE];
		unsigned char in_file[HAPAX_FINGERPRINT_SIZE];

		fingerprint("/", "", hx_bytes(data, size), sizeof(data), in_memory);
		fingerprint("/", "", hx_bytes(data, size), 100, in_file);
		assert_memory_equal(in_memory, in_file, HAPAX_FINGERPRINT_SIZE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(different_requests_have_different_keys),
		cmocka_unit_test(equal_requests_have_equal_keys),
		cmocka_unit_test(the_key_is_a_fixed_function),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(fingerprints),
		cmocka_unit_test(a_body_in_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
