/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/thread.h"
#include "net/network.h"
#include "serve/daemon/origin.h"
#include "serve/daemon/peers.h"

#define SECOND INT64_C(1000000000)

enum { THREADS = 4, ROUNDS = 20000, MAX = 20 };

/* What is said to a password of Ann from address: how long it is ignored. */
static int64_t say(
	struct hx_peers *peers, const char *address, const char *secret, bool is_right, int64_t at)
{
	const struct hx_peers_credential credential = {
		HX_PEERS_PASSWORD, HX_BYTES_LIT("ann"), hapax_bytes_from_text(secret), is_right};

	return hx_peers_judge(peers, address, MAX, at, &credential);
}

/* The same for a wrong one that no client has sent before. */
static int64_t guess(struct hx_peers *peers, const char *address, int64_t at)
{
	static _Atomic unsigned number;
	char secret[16];

	(void)snprintf(secret, sizeof(secret), "%u", atomic_fetch_add(&number, 1));
	return say(peers, address, secret, false, at);
}

static void each_address_has_its_own(void **state)
{
	struct hx_peers peers;

	(void)state;
	hx_peers_init(&peers);
	assert_int_equal(hx_peers_take(&peers, "10.0.0.1", HX_PEERS_REQUESTS, 2), HAPAX_OK);
	assert_int_equal(hx_peers_take(&peers, "::ffff:10.0.0.1", HX_PEERS_REQUESTS, 2), HAPAX_OK);
	assert_int_equal(hx_peers_take(&peers, "10.0.0.1", HX_PEERS_REQUESTS, 2), HAPAX_ERR_LIMIT);
	assert_int_equal(hx_peers_take(&peers, "10.0.0.1", HX_PEERS_CONNECTIONS, 2), HAPAX_OK);
	assert_int_equal(hx_peers_take(&peers, "10.0.0.2", HX_PEERS_REQUESTS, 2), HAPAX_OK);
	/* A machine has 64 bits of IPv6 to choose from. */
	assert_int_equal(hx_peers_take(&peers, "2001:db8::1", HX_PEERS_REQUESTS, 1), HAPAX_OK);
	assert_int_equal(
		hx_peers_take(&peers, "2001:db8::9:1", HX_PEERS_REQUESTS, 1), HAPAX_ERR_LIMIT);
	assert_int_equal(hx_peers_take(&peers, "2001:db8:0:1::1", HX_PEERS_REQUESTS, 1), HAPAX_OK);
	/* 0 means no limit, and the empty address has no client. */
	assert_int_equal(hx_peers_take(&peers, "10.0.0.1", HX_PEERS_REQUESTS, 0), HAPAX_OK);
	for (int i = 0; i < 10; i++)
		assert_int_equal(hx_peers_take(&peers, "", HX_PEERS_REQUESTS, 1), HAPAX_OK);
	hx_peers_give(&peers, "", HX_PEERS_REQUESTS);
	for (int i = 0; i < 3; i++)
		hx_peers_give(&peers, "10.0.0.1", HX_PEERS_REQUESTS);
	assert_int_equal(hx_peers_take(&peers, "10.0.0.1", HX_PEERS_REQUESTS, 1), HAPAX_OK);
	hx_peers_done(&peers);
}

static void nobody_takes_memory_who_has_nothing(void **state)
{
	int64_t before = hx_alloc_live();
	struct hx_peers peers;
	char address[32];

	(void)state;
	hx_peers_init(&peers);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(address, sizeof(address), "10.0.%d.%d", i / 256, i % 256);
		assert_int_equal(hx_peers_take(&peers, address, HX_PEERS_CONNECTIONS, 1), HAPAX_OK);
		hx_peers_give(&peers, address, HX_PEERS_CONNECTIONS);
	}
	assert_int_equal(hx_alloc_live(), before);
	/* Wrong passwords are remembered of so many, and no longer than they count. */
	for (int i = 0; i < 4 * HX_PEERS_FAILED_MAX; i++) {
		(void)snprintf(
			address, sizeof(address), "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
		(void)guess(&peers, address, SECOND);
	}
	assert_true(atomic_load(&peers.failed_count) <= HX_PEERS_FAILED_MAX);
	assert_true(hx_alloc_live() - before <= HX_PEERS_FAILED_MAX);
	for (int i = 0; i < HX_PEERS_SHARDS * 64; i++) {
		(void)snprintf(address, sizeof(address), "11.0.%d.%d", i >> 8, i & 255);
		(void)guess(&peers, address, 3600 * SECOND);
	}
	assert_true(atomic_load(&peers.failed_count) <= HX_PEERS_SHARDS * 64);
	hx_peers_done(&peers);
	assert_int_equal(hx_alloc_live(), before);
}

static void guesses_are_slowed_down(void **state)
{
	const struct hx_peers_credential wrong = {.kind = HX_PEERS_API_TOKEN};
	struct hx_peers peers;
	int64_t now = 1000 * SECOND;
	unsigned looked_at = 0;

	(void)state;
	hx_peers_init(&peers);
	/* As fast as can be, for an hour: so many at once, then so many a minute. */
	for (int64_t at = now; at < now + 3600 * SECOND; at += SECOND / 10) {
		looked_at += guess(&peers, "10.0.0.1", at) == 0;
		if (at < now + SECOND)
			assert_true(looked_at <= MAX);
	}
	assert_in_range(looked_at, 60 * MAX, 61 * MAX);
	now += 3600 * SECOND;
	(void)guess(&peers, "10.0.0.1", now);
	assert_in_range(guess(&peers, "10.0.0.1", now), 1, 60 / MAX * SECOND);
	assert_int_equal(guess(&peers, "10.0.0.2", now), 0);
	/* Without a limit, or without an address. */
	assert_int_equal(hx_peers_judge(&peers, "10.0.0.1", 0, now, &wrong), 0);
	for (int i = 0; i < 2 * MAX; i++)
		assert_int_equal(guess(&peers, "", now), 0);
	/* A minute later all is paid. */
	now += 70 * SECOND;
	for (int i = 0; i < MAX; i++)
		assert_int_equal(guess(&peers, "10.0.0.1", now), 0);
	assert_true(guess(&peers, "10.0.0.1", now) > 0);
	hx_peers_done(&peers);
}

static void contend(void *arg)
{
	struct hx_peers *peers = arg;

	for (int i = 0; i < ROUNDS; i++) {
		const char *address = i % 3 == 0 ? "10.0.0.1" : "10.0.0.2";

		if (hx_peers_take(peers, address, HX_PEERS_REQUESTS, THREADS) == HAPAX_OK)
			hx_peers_give(peers, address, HX_PEERS_REQUESTS);
		if (i % 64 == 0)
			(void)guess(peers, address, i * SECOND);
		(void)say(peers, address, "right", true, i * SECOND);
	}
}

static void threads_share_it(void **state)
{
	struct hx_thread threads[THREADS];
	static struct hx_peers peers;

	(void)state;
	hx_peers_init(&peers);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(
			hx_thread_start(&threads[i], contend, &peers, "contend", NULL), HAPAX_OK);
	for (size_t i = 0; i < THREADS; i++)
		hx_thread_join(&threads[i]);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(
			hx_peers_take(&peers, "10.0.0.1", HX_PEERS_REQUESTS, THREADS), HAPAX_OK);
	hx_peers_done(&peers);
}

/* ---------------------------------------------------------------- origin */

struct from {
	const char *client;
	const char *fields[3]; /* of X-Forwarded-For, in order */
	bool is_trusted;
	const char *origin;
};

static void look(const struct hx_config_http *http, const struct from *from)
{
	struct hx_http_exchange *exchange = hx_alloc_zero(1, sizeof(*exchange));

	assert_non_null(exchange);
	(void)snprintf(exchange->client, sizeof(exchange->client), "%s", from->client);
	for (size_t i = 0; i < 3 && from->fields[i] != NULL; i++) {
		exchange->head.fields[exchange->head.field_count++] = (struct hapax_field){
			HX_BYTES_LIT("x-forwarded-FOR"), hapax_bytes_from_text(from->fields[i])};
		exchange->head.fields[exchange->head.field_count++] =
			(struct hapax_field){HX_BYTES_LIT("X-Other"), HX_BYTES_LIT("9.9.9.9")};
	}
	hx_origin_find(http, exchange);
	assert_int_equal(exchange->is_trusted, from->is_trusted);
	assert_string_equal(exchange->origin, from->origin);
	hx_free(exchange);
}

static void a_request_counts_for(void **state)
{
	static const struct from cases[] = {
		{"1.2.3.4", {NULL}, false, "1.2.3.4"},
		/* No other address is believed. */
		{"1.2.3.4", {"5.6.7.8"}, false, "1.2.3.4"},
		{"127.0.0.1", {NULL}, true, ""},
		{"::1", {"5.6.7.8"}, true, "5.6.7.8"},
		{"", {NULL}, true, ""},
		{"", {"5.6.7.8"}, true, "5.6.7.8"},
		{"10.1.2.3", {NULL}, true, ""},
		/* What stands before the last was sent by the last. */
		{"10.1.2.3", {"8.8.8.8, 5.6.7.8"}, true, "5.6.7.8"},
		{"10.1.2.3", {"8.8.8.8", "5.6.7.8"}, true, "5.6.7.8"},
		{"10.1.2.3", {"5.6.7.8, 10.9.9.9 ,127.0.0.1"}, true, "5.6.7.8"},
		{"10.1.2.3", {"5.6.7.8", "10.9.9.9", "2001:db8::7"}, true, "5.6.7.8"},
		{"10.1.2.3", {"10.9.9.9"}, true, ""},
		{"10.1.2.3", {"5.6.7.8:4711"}, true, "5.6.7.8"},
		{"10.1.2.3", {"[2001:db9::7]:4711"}, true, "2001:db9::7"},
		{"10.1.2.3", {"2001:db9::7"}, true, "2001:db9::7"},
		{"10.1.2.3", {"5.6.7.8, unknown"}, true, "unknown"},
		{"10.1.2.3",
		 {"5.6.7.8, _x-very-long-name-that-no-address-has-0123456789012345678901234"},
		 true,
		 "unknown"},
		{"10.1.2.3", {",, 5.6.7.8, ,"}, true, "5.6.7.8"},
		{"11.1.2.3", {"5.6.7.8"}, false, "11.1.2.3"},
	};
	struct hx_network networks[2];
	const struct hx_config_http http = {.trusted = networks, .trusted_count = 2};

	(void)state;
	assert_true(hx_network_parse("10.0.0.0/8", &networks[0]));
	assert_true(hx_network_parse("2001:db8::/32", &networks[1]));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		look(&http, &cases[i]);
	assert_string_equal(hx_origin_of_failure("1.2.3.4", "1.2.3.4"), "1.2.3.4");
	assert_string_equal(hx_origin_of_failure("127.0.0.1", ""), "127.0.0.1");
	assert_string_equal(hx_origin_of_failure("127.0.0.1", "5.6.7.8"), "5.6.7.8");
	assert_string_equal(hx_origin_of_failure("10.1.2.3", ""), "");
	assert_string_equal(hx_origin_of_failure("", ""), "");
}

/* Sends guesses until the address is locked. */
static void lock(struct hx_peers *peers, const char *address, int64_t at)
{
	int tries = 0;

	while (guess(peers, address, at) == 0)
		assert_true(++tries <= MAX);
}

static void what_was_right_is_known(void **state)
{
	const struct hx_peers_credential bob = {
		HX_PEERS_PASSWORD, HX_BYTES_LIT("bob"), HX_BYTES_LIT("b"), true};
	const struct hx_peers_credential token = {
		HX_PEERS_API_TOKEN, HX_BYTES_LIT("ann"), HX_BYTES_LIT("a"), true};
	struct hx_peers peers;

	(void)state;
	hx_peers_init(&peers);
	assert_int_equal(say(&peers, "1.2.3.4", "a", true, SECOND), 0);
	lock(&peers, "1.2.3.4", SECOND);
	lock(&peers, "1.2.3.5", SECOND);
	assert_int_equal(say(&peers, "1.2.3.4", "a", true, SECOND), 0);
	/* Not the secret counts, but whose it is: a password may have changed meanwhile. */
	assert_int_equal(say(&peers, "1.2.3.4", "new", true, SECOND), 0);
	/* Another credential or address, and the same as often as it is tried. */
	for (int i = 0; i < 3; i++) {
		assert_true(hx_peers_judge(&peers, "1.2.3.4", MAX, SECOND, &bob) > 0);
		assert_true(hx_peers_judge(&peers, "1.2.3.4", MAX, SECOND, &token) > 0);
		assert_true(say(&peers, "1.2.3.5", "a", true, SECOND) > 0);
	}
	/* As in limits: a network of 64 bits is one address. */
	assert_int_equal(say(&peers, "2001:db8::1", "a", true, SECOND), 0);
	lock(&peers, "2001:db8::1", SECOND);
	assert_int_equal(say(&peers, "2001:db8::2", "a", true, SECOND), 0);
	hx_peers_done(&peers);
}

/* A token that is made cannot be guessed, so a flood of guesses does not keep it out. */
static void a_made_token_is_always_compared(void **state)
{
	static const char made[] =
		"hapax_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	struct hx_peers peers;

	(void)state;
	hx_peers_init(&peers);
	lock(&peers, "1.2.3.4", SECOND);
	assert_true(say(&peers, "1.2.3.4", made, false, SECOND) > 0);
	assert_true(say(&peers, "1.2.3.4", made + 1, true, SECOND) > 0);
	assert_int_equal(say(&peers, "1.2.3.4", made, true, SECOND), 0);
	/* Wrong ones with its form are counted as others are. */
	assert_int_equal(say(&peers, "1.2.3.5", made, false, SECOND), 0);
	lock(&peers, "1.2.3.5", SECOND);
	assert_true(say(&peers, "1.2.3.5", made, false, SECOND) > 0);
	hx_peers_done(&peers);
}

/* A client that repeats an old password does not guess. */
static void a_wrong_one_is_counted_once(void **state)
{
	struct hx_peers peers;

	(void)state;
	hx_peers_init(&peers);
	for (int i = 0; i < 100 * MAX; i++)
		assert_int_equal(say(&peers, "1.2.3.4", "old", false, SECOND), 0);
	assert_int_equal(say(&peers, "1.2.3.4", "right", true, SECOND), 0);
	/* It was counted: there is room for one less. */
	for (int i = 0; i < MAX - 1; i++)
		assert_int_equal(guess(&peers, "1.2.3.4", SECOND), 0);
	assert_true(guess(&peers, "1.2.3.4", SECOND) > 0);
	/* A locked address is told nothing by a repetition either. */
	assert_true(say(&peers, "1.2.3.4", "old", false, SECOND) > 0);
	/* It counts at each address. */
	for (int i = 0; i < MAX; i++)
		assert_int_equal(guess(&peers, "1.2.3.5", SECOND), 0);
	assert_true(say(&peers, "1.2.3.5", "old", false, SECOND) > 0);
	hx_peers_done(&peers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_has_its_own),
		cmocka_unit_test(nobody_takes_memory_who_has_nothing),
		cmocka_unit_test(guesses_are_slowed_down),
		cmocka_unit_test(what_was_right_is_known),
		cmocka_unit_test(a_made_token_is_always_compared),
		cmocka_unit_test(a_wrong_one_is_counted_once),
		cmocka_unit_test(threads_share_it),
		cmocka_unit_test(a_request_counts_for),
	};

	return cmocka_run_group_tests_name("serve_peers", tests, NULL, NULL);
}
