/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client of the Redis door, from its bytes to its replies: order, pieces, transactions,
 * who it is, scripts, walks through its scope, and shortage of memory.
 */
#include "resp/resp_session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/sha256.h"
#include "resp/resp_job.h"
#include "support/resp_case.h"
#include "wire/resp/resp_reply.h"

static struct resp_case c;
static struct hx_resp_user users[3];

static int begin(void **state)
{
	(void)state;
	return resp_case_begin(&c, &(struct hx_resp_service_options){.flags = HX_RESP_ALLOW_FLUSH})
		? 0
		: -1;
}

static int begin_with_users(void **state)
{
	static const char *const names[] = {"default", "acme", "other"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		users[i] = (struct hx_resp_user){.name = hapax_bytes_from_text(names[i])};
		if (i > 0)
			users[i].tenant = users[i].name;
		hx_sha256("secret", 6, users[i].password_sha256);
	}
	return resp_case_begin(
		       &c,
		       &(struct hx_resp_service_options){
			       .flags = HX_RESP_ALLOW_FLUSH, .users = users, .user_count = 3})
		? 0
		: -1;
}

static int end(void **state)
{
	(void)state;
	resp_case_end(&c);
	return 0;
}

static void expect(const char *commands, const char *replies)
{
	const char *got = resp_case_ask(&c, commands);

	if (strcmp(got, replies) != 0)
		fail_msg("%s: '%s' instead of '%s'", commands, got, replies);
}

/* ---------------------------------------------------------------- one after the other */

/* A pipeline is one submit, and its replies come in its order, even if some could come at once. */
static void a_pipeline(void **state)
{
	(void)state;
	expect("SET a 1\r\nPING\r\nGET a\r\nECHO x\r\nGET b\r\nNOSUCH\r\nDEL a\r\n",
	       "+OK\r\n+PONG\r\n$1\r\n1\r\n$1\r\nx\r\n$-1\r\n"
	       "-ERR unknown command 'NOSUCH', with args beginning with: \r\n:1\r\n");
	assert_int_equal(c.submits, 1);
	assert_int_equal(c.largest, 4);
}

/* More than one batch takes, in rounds; nothing is lost at the seams. */
static void a_long_pipeline(void **state)
{
	struct hapax_buf bytes;

	(void)state;
	hx_buf_init(&bytes, 1 << 20);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(hx_buf_printf(&bytes, "SET k %d GET\r\n", i), HAPAX_OK);
	hx_buf_clear(&c.out);
	resp_case_feed(&c, bytes.data, bytes.size);
	hx_buf_clear(&bytes);
	(void)hx_buf_append(&bytes, "$-1\r\n", 5);
	for (int i = 0; i < 2999; i++)
		(void)hx_buf_printf(&bytes, "$%d\r\n%d\r\n", snprintf(NULL, 0, "%d", i), i);
	assert_int_equal(bytes.size, c.out.size);
	assert_memory_equal(bytes.data, c.out.data, bytes.size);
	assert_true(c.submits >= 3);
	hx_buf_done(&bytes);
}

/* However the bytes are cut, the replies are the same. */
static void split_everywhere(void **state)
{
	static const char bytes[] =
		"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n\r\n\r\n\r\nGET \"k\"\r\n*0\r\n\r\nMULTI\r\n"
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nDBSIZE\r\nEXEC\r\nSCAN 0\r\nPERSIST k\r\nDEL k\r\n"
		"*1\r\n$-1\r\n";
	static const char replies[] =
		"+OK\r\n$4\r\n\r\n\r\n\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$4\r\n\r\n\r\n\r\n:1\r\n"
		"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n:0\r\n:1\r\n"
		"-ERR Protocol error: invalid bulk length\r\n";

	(void)state;
	for (size_t cut = 0; cut < sizeof(bytes) - 1; cut++) {
		struct resp_case piece;

		assert_true(resp_case_begin(&piece, NULL));
		resp_case_feed(&piece, bytes, cut);
		for (size_t at = cut; at < sizeof(bytes) - 1; at++)
			resp_case_feed(&piece, bytes + at, 1);
		assert_int_equal(piece.out.size, sizeof(replies) - 1);
		assert_memory_equal(piece.out.data, replies, sizeof(replies) - 1);
		assert_true(piece.session.is_closing);
		resp_case_end(&piece);
	}
}

/* A browser that was made to talk to this port gets no reply, and nothing behind it is done. */
static void a_browser(void **state)
{
	(void)state;
	expect("POST / HTTP/1.1\r\nSET k v\r\n", "");
	assert_true(c.session.is_closing && c.session.is_abrupt);
}

static void who_is_silent(void **state)
{
	(void)state;
	expect("CLIENT REPLY SKIP\r\nSET a 1\r\nGET a\r\n", "$1\r\n1\r\n");
	expect("CLIENT REPLY OFF\r\nSET a 2\r\nPING\r\n", "");
	expect("CLIENT REPLY ON\r\nGET a\r\n", "+OK\r\n$1\r\n2\r\n");
	/* ON is heard at once; RESET is a command like any other. */
	expect("CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING\r\n", "+OK\r\n+PONG\r\n");
	expect("CLIENT REPLY SKIP\r\nRESET\r\nPING\r\n", "+PONG\r\n");
	expect("CLIENT REPLY OFF\r\nRESET\r\nPING\r\n", "+RESET\r\n+PONG\r\n");
	expect("CLIENT REPLY OFF\r\n*1\r\n$x\r\n", "");
}

/* What would not fit is told, in its place; nothing is lost behind it. */
static void a_reply_that_is_too_large(void **state)
{
	struct hapax_buf bytes;

	(void)state;
	hx_buf_init(&bytes, 1 << 20);
	(void)hx_buf_printf(&bytes, "SET k %02000d\r\nMGET", 0);
	for (size_t i = 0; i < 20000; i++)
		assert_int_equal(hx_buf_append(&bytes, " k", 2), HAPAX_OK);
	(void)hx_buf_printf(&bytes, "\r\nSTRLEN k\r\n");
	hx_buf_done(&c.out);
	hx_buf_init(&c.out, 1 << 20);
	resp_case_feed(&c, bytes.data, bytes.size);
	assert_false(c.session.is_closing);
	assert_int_equal(hx_buf_append_byte(&c.out, '\0'), HAPAX_OK);
	assert_string_equal(
		c.out.data, "+OK\r\n-OOM the reply is too large; request fewer keys\r\n:2000\r\n");
	hx_buf_done(&bytes);
}

#define EXTEND_LOCK                                                                                 \
	"local token = redis.call('get', KEYS[1]) if not token or token ~= ARGV[1] then return 0 "  \
	"end local expiration = redis.call('pttl', KEYS[1]) if not expiration then expiration = 0 " \
	"end if expiration < 0 then return 0 end local newttl = ARGV[2] if ARGV[3] == '0' then "    \
	"newttl = ARGV[2] + expiration end redis.call('pexpire', KEYS[1], newttl) return 1"

/* A client that was busy once, and is idle now, takes little memory. */
static void what_is_given_back(void **state)
{
	struct hapax_buf bytes;
	char token[4096];

	(void)state;
	hx_buf_init(&bytes, 1 << 20);
	assert_int_equal(hx_buf_printf(&bytes, "EXISTS"), HAPAX_OK);
	for (size_t i = 0; i < 20000; i++)
		assert_int_equal(hx_buf_append(&bytes, " k", 2), HAPAX_OK);
	assert_int_equal(hx_buf_append(&bytes, "\r\n", 3), HAPAX_OK);
	expect((const char *)bytes.data, ":0\r\n");
	assert_true(c.session.argv_capacity <= 256);
	assert_true(c.session.request.capacity <= 256);
	assert_true(c.session.request.copy.capacity <= 1024);
	memset(token, 'x', sizeof(token));
	token[sizeof(token) - 1] = '\0';
	assert_string_equal(
		resp_case_command(&c, "EVAL", EXTEND_LOCK, "1", "k", token, "1000", "0", NULL),
		":0\r\n");
	assert_true(c.session.kept.capacity <= 1024);
	expect("PING\r\n", "+PONG\r\n");
	hx_buf_done(&bytes);
}

/* ---------------------------------------------------------------- transactions */

static void a_transaction(void **state)
{
	(void)state;
	expect("MULTI\r\nSET a 1 NX\r\nSET b 2 NX\r\nGET c\r\nEXEC\r\n",
	       "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n+OK\r\n$-1\r\n");
	/* In one step. */
	assert_int_equal(c.submits, 1);
	assert_true((c.last_flags & HAPAX_OP_LINKED) != 0);
	expect("MULTI\r\nSET a 1\r\nNOSUCH\r\nEXEC\r\nGET b\r\n",
	       "+OK\r\n+QUEUED\r\n-ERR unknown command 'NOSUCH', with args beginning with: \r\n"
	       "-EXECABORT Transaction discarded because of previous errors.\r\n$1\r\n2\r\n");
	expect("MULTI\r\nSET b 3\r\nDISCARD\r\nGET b\r\nEXEC\r\n",
	       "+OK\r\n+QUEUED\r\n+OK\r\n$1\r\n2\r\n-ERR EXEC without MULTI\r\n");
	expect("MULTI\r\nMULTI\r\nEXEC\r\n", "+OK\r\n-ERR MULTI calls can not be nested\r\n*0\r\n");
	expect("MULTI\r\nEXEC\r\n", "+OK\r\n*0\r\n");
	expect("MULTI\r\nSET b 4\r\nEXEC now\r\nGET b\r\n",
	       "+OK\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of: wrong number of "
	       "arguments for 'exec' command\r\n$1\r\n2\r\n");
}

static void run_transaction(const char *key, const char *options, size_t count)
{
	struct hapax_buf bytes;

	hx_buf_init(&bytes, 1 << 20);
	c.submits = c.largest = 0;
	assert_int_equal(hx_buf_printf(&bytes, "MULTI\r\n"), HAPAX_OK);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(
			hx_buf_printf(&bytes, "SET %s%zu 1 %s\r\n", key, i, options), HAPAX_OK);
	assert_int_equal(hx_buf_printf(&bytes, "EXEC\r\nPING\r\n"), HAPAX_OK);
	hx_buf_clear(&c.out);
	resp_case_feed(&c, bytes.data, bytes.size);
	assert_memory_equal(c.out.data + c.out.size - 7, "+PONG\r\n", 7);
	hx_buf_done(&bytes);
}

/* As many as one step can have go in one, with all that came before it, and with many values. */
static void transactions_in_one_step(void **state)
{
	(void)state;
	run_transaction("a", "NX", 1000);
	assert_int_equal(c.submits, 1);
	assert_int_equal(c.largest, 1000);
	assert_true((c.last_flags & HAPAX_OP_LINKED) != 0);
	run_transaction("b", "NX GET", 1024);
	assert_int_equal(c.submits, 1);
	assert_int_equal(c.largest, 1024);
	assert_true((c.last_flags & HAPAX_OP_LINKED) != 0);
	run_transaction("c", "NX", 3000);
	assert_true(c.submits > 1);
	assert_false((c.last_flags & HAPAX_OP_LINKED) != 0);
}

static int begin_with_large_values(void **state)
{
	(void)state;
	return resp_case_begin(&c, &(struct hx_resp_service_options){.value_size_max = 256 * 1024})
		? 0
		: -1;
}

/* What must be alone, or takes steps, is in its place in the reply. */
static void a_transaction_of_rounds(void **state)
{
	(void)state;
	expect("SET k v EX 10\r\n", "+OK\r\n");
	expect("MULTI\r\nSET j 1\r\nPERSIST k\r\nTTL k\r\nDBSIZE\r\nGET j\r\nEXEC\r\nPING\r\n",
	       "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
	       "*5\r\n+OK\r\n:1\r\n:-1\r\n:2\r\n$1\r\n1\r\n+PONG\r\n");
}

/* ---------------------------------------------------------------- scopes */

static void everybody_has_a_scope(void **state)
{
	(void)state;
	expect("GET k\r\n", "-NOAUTH Authentication required.\r\n");
	expect("AUTH acme wrong\r\n",
	       "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
	expect("AUTH acme secret\r\nSET k acme NX\r\nSET l 1\r\n", "+OK\r\n+OK\r\n+OK\r\n");
	expect("AUTH other secret\r\nSET k other NX\r\nDBSIZE\r\nSCAN 0\r\n",
	       "+OK\r\n+OK\r\n:1\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n");
	expect("AUTH secret\r\nGET k\r\nDBSIZE\r\nSCAN 0\r\n",
	       "+OK\r\n$-1\r\n:0\r\n*2\r\n$1\r\n0\r\n*0\r\n");
	expect("FLUSHALL\r\nAUTH other secret\r\nFLUSHDB\r\nDBSIZE\r\n",
	       "+OK\r\n+OK\r\n+OK\r\n:0\r\n");
	expect("AUTH acme secret\r\nDBSIZE\r\nGET k\r\nRESET\r\nPING\r\n",
	       "+OK\r\n:2\r\n$4\r\nacme\r\n+RESET\r\n-NOAUTH Authentication required.\r\n");
}

/* FAILED is absent, a claim has no value and is not flushed. */
static void records_of_others(void **state)
{
	struct hapax_op ops[3];
	unsigned char attempt[HAPAX_ATTEMPT_ID_SIZE] = {1};

	(void)state;
	memset(ops, 0, sizeof(ops));
	for (size_t i = 0; i < 2; i++) {
		ops[i].type = HAPAX_OP_CLAIM;
		ops[i].key = i == 0 ? HX_BYTES_LIT("claimed") : HX_BYTES_LIT("failed");
		ops[i].attempt_id = attempt;
	}
	assert_int_equal(hapax_store_run(c.store, ops, 2, NULL), HAPAX_OK);
	ops[2].type = HAPAX_OP_RELEASE;
	ops[2].key = HX_BYTES_LIT("failed");
	ops[2].token = ops[1].token;
	assert_int_equal(hapax_store_run(c.store, &ops[2], 1, NULL), HAPAX_OK);
	expect("EXISTS claimed failed\r\nGET claimed\r\nDBSIZE\r\n", ":1\r\n$-1\r\n:1\r\n");
	expect("SET mine 1\r\nFLUSHALL\r\nDBSIZE\r\nSCAN 0\r\n",
	       "+OK\r\n+OK\r\n:1\r\n*2\r\n$1\r\n0\r\n*1\r\n$7\r\nclaimed\r\n");
	/* Null would say that it was set. */
	expect("SET claimed x NX GET\r\nSET claimed x NX GET PXAT 1\r\nSET failed y NX GET\r\n",
	       "-BUSYKEY key is claimed\r\n-BUSYKEY key is claimed\r\n$-1\r\n");
	expect("SET failed z NX GET\r\nDEL failed\r\n", "$1\r\ny\r\n:1\r\n");
	expect("DEL claimed\r\nSET claimed x NX\r\nSET failed x NX\r\n",
	       "-BUSYKEY key is claimed\r\n$-1\r\n+OK\r\n");
}

static void settings(
	struct hapax_bytes tenant, struct hapax_bytes group, struct hx_resp_scope *ret_scope,
	void *context)
{
	(void)context;
	assert_true(hx_bytes_equal(tenant, HX_BYTES_LIT("default")));
	assert_true(hx_bytes_equal(group, HX_BYTES_LIT("default")));
	*ret_scope = (struct hx_resp_scope){
		.lease_ms = 7000, .ttl_ms = 90000, .on_lapse = HAPAX_ON_LAPSE_PARK};
}

static int begin_with_settings(void **state)
{
	(void)state;
	return resp_case_begin(&c, &(struct hx_resp_service_options){.scope = settings}) ? 0 : -1;
}

/* Without its texts. */
static struct hapax_record look_at(const char *key, int64_t lease_ms)
{
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	struct hapax_buf buf;
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP, .record = &record, .buf = &buf};

	hx_buf_init(&buf, 1 << 16);
	op.key = hapax_bytes_from_text(key);
	assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.lease_left_ms, lease_ms);
	hx_buf_done(&buf);
	return record;
}

/* Of claims: where nothing is said, what the scope says. Values of SET are Redis' own. */
static void settings_of_a_scope(void **state)
{
	struct hapax_record record;

	(void)state;
	(void)resp_case_ask(&c, "HAPAX.CLAIM a\r\nHAPAX.CHECK b\r\nSET d v\r\n");
	(void)resp_case_ask(&c, "HAPAX.CLAIM c LEASE 1000 TTL 2000 ON-LAPSE RETRY\r\n");
	record = look_at("a", 7000);
	assert_int_equal(record.ttl_ms, 90000);
	assert_int_equal(record.on_lapse, HAPAX_ON_LAPSE_PARK);
	assert_int_equal(look_at("b", 0).ttl_ms, 90000);
	record = look_at("c", 1000);
	assert_int_equal(record.ttl_ms, 2000);
	assert_int_equal(record.on_lapse, HAPAX_ON_LAPSE_RETRY);
	assert_int_equal(look_at("d", 0).expires_ms, HAPAX_TIME_NEVER);
}

/* ---------------------------------------------------------------- walks */

static void set_many(int count)
{
	for (int i = 0; i < count; i++) {
		char command[32];

		(void)snprintf(command, sizeof(command), "SET %s:%d v\r\n", i % 2 ? "a" : "b", i);
		(void)resp_case_ask(&c, command);
	}
}

/* One piece of a walk through what begins with a; returns how many keys were told. */
static size_t scan_on(uint64_t *cursor, size_t count_max)
{
	char command[64];
	struct hapax_bytes rest;
	struct hx_resp_value value;
	int64_t number;
	size_t told;

	(void)snprintf(
		command, sizeof(command), "SCAN %llu COUNT %zu MATCH a:*\r\n",
		(unsigned long long)*cursor, count_max);
	rest = hapax_bytes_from_text(resp_case_ask(&c, command));
	assert_true(hx_resp_next(&rest, &value) && hx_resp_next(&rest, &value));
	assert_true(hx_resp_integer(&value, &number));
	*cursor = (uint64_t)number;
	assert_true(hx_resp_next(&rest, &value));
	told = (size_t)value.integer;
	assert_true(told <= count_max);
	while (hx_resp_next(&rest, &value))
		assert_memory_equal(value.text.data, "a:", 2);
	return told;
}

/* Many keys: in pieces, by numbers that are good once the walk is over, too. */
static void scan(void **state)
{
	uint64_t cursor = 0;
	size_t seen = 0;

	(void)state;
	set_many(5000);
	expect("DBSIZE\r\n", ":5000\r\n");
	do
		seen += scan_on(&cursor, 300);
	while (cursor != 0);
	assert_int_equal(seen, 2500);
	assert_non_null(strstr(resp_case_ask(&c, "SCAN 0 TYPE hash COUNT 1000\r\n"), "\r\n*0\r\n"));
}

/* A slow client can continue its walk, however far others have walked since. */
static void a_slow_scan(void **state)
{
	uint64_t slow = 0;
	size_t seen;

	(void)state;
	set_many(2000);
	seen = scan_on(&slow, 10);
	while (slow != 0) {
		uint64_t fast = 0;
		size_t others = 0;

		do
			others += scan_on(&fast, 10);
		while (fast != 0);
		assert_int_equal(others, 1000);
		seen += scan_on(&slow, 400);
	}
	assert_int_equal(seen, 1000);
}

/* Without a waiter it ends after the piece that it is at, unless that is half of it. */
static void a_dropped_job(void **state)
{
	static const struct {
		struct hapax_bytes command;
		bool goes_on;
	} walks[] = {
		{HX_BYTES_LIT("DBSIZE\r\n"), false},
		{HX_BYTES_LIT("FLUSHALL\r\n"), true},
	};

	(void)state;
	for (int i = 0; i < 9000; i++) {
		char command[32];

		(void)snprintf(command, sizeof(command), "SET k%d v\r\n", i);
		(void)resp_case_ask(&c, command);
	}
	for (size_t i = 0; i < 2; i++) {
		struct hx_resp_job *job;

		(void)hx_resp_session_plan(&c.session, &c.batches[0], walks[i].command);
		assert_true(hx_resp_session_has_job(&c.session));
		job = c.session.job;
		assert_true(hx_resp_job_run(job));
		hx_resp_job_drop(job);
		assert_int_equal(hx_resp_job_run(job), walks[i].goes_on);
		while (walks[i].goes_on && hx_resp_job_run(job))
			;
		assert_true(
			hx_resp_session_finish(&c.session, &c.batches[0], &c.batches[1], &c.out));
		assert_false(hx_resp_session_has_job(&c.session));
	}
	expect("DBSIZE\r\n", ":0\r\n");
}

/* A job that is left over would be run again, and its end taken for that of the next command. */
static void a_walk_without_room(void **state)
{
	(void)state;
	hx_buf_done(&c.out);
	hx_buf_init(&c.out, 512);
	for (size_t i = 0; i < 2; i++)
		expect(i == 0 ? "SCAN 0\r\n" : "DBSIZE\r\n",
		       "-OOM the reply is too large; request fewer keys\r\n");
	assert_false(hx_resp_session_has_job(&c.session));
}

/* ---------------------------------------------------------------- scripts */

#define LOCK                                                                                     \
	"for i, key in ipairs(KEYS) do if redis.call('exists', key) == 1 then return 0 end end " \
	"for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end "      \
	"return #KEYS"
#define EXTEND                                                                                  \
	"for i, key in ipairs(KEYS) do if redis.call('get', key) ~= ARGV[1] then return 0 end " \
	"end for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end " \
	"return #KEYS"
#define UNLOCK                                                                                \
	"local count = 0 for i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] " \
	"then redis.pcall('del', key) count = count + 1 end end return count"

static void locks_of_several_keys(void **state)
{
	(void)state;
	assert_string_equal(
		resp_case_command(&c, "EVAL", LOCK, "3", "a", "b", "a", "me", "1000", NULL),
		":3\r\n");
	assert_int_equal(c.largest, 2);
	assert_int_equal(c.last_flags, HAPAX_OP_LINKED | HAPAX_OP_ALL_OR_NOTHING);
	/* All or nothing: c is free, and stays so. */
	assert_string_equal(
		resp_case_command(&c, "EVAL", LOCK, "2", "c", "b", "you", "1000", NULL), ":0\r\n");
	expect("EXISTS c\r\nPTTL a\r\n", ":0\r\n:1000\r\n");
	assert_string_equal(
		resp_case_command(&c, "EVAL", EXTEND, "2", "a", "b", "me", "9000", NULL), ":2\r\n");
	expect("PTTL a\r\nSET b stolen\r\n", ":9000\r\n+OK\r\n");
	assert_string_equal(
		resp_case_command(&c, "EVAL", EXTEND, "2", "a", "b", "me", "20000", NULL),
		":0\r\n");
	expect("PTTL a\r\n", ":9000\r\n");
	assert_string_equal(
		resp_case_command(&c, "EVAL", UNLOCK, "3", "a", "b", "c", "me", NULL), ":1\r\n");
	expect("MGET a b\r\n", "*2\r\n$-1\r\n$6\r\nstolen\r\n");
	assert_string_equal(
		resp_case_command(&c, "EVAL", LOCK, "1", "d", "me", NULL),
		"-ERR this script has more arguments\r\n");
	assert_string_equal(
		resp_case_command(&c, "EVAL", LOCK, "0", "me", "1", NULL),
		"-ERR this script has one key\r\n");
}

#define CHECK_AND_SET                                                                             \
	"local key = KEYS[1] local value = ARGV[1] local ttl = ARGV[2] if redis.call('EXISTS', "  \
	"key) == 1 then return redis.call('GET', key) else redis.call('SETEX', key, ttl, value) " \
	"return nil end"
#define CHECK_AND_RESERVE                                                           \
	"local key = KEYS[1] local ttl = ARGV[1] local timestamp = ARGV[2] if "     \
	"redis.call('EXISTS', key) == 1 then redis.call('HINCRBY', 'dedup_stats', " \
	"'duplicates', 1) return 1 else redis.call('SETEX', key, ttl, timestamp) "  \
	"redis.call('HINCRBY', 'dedup_stats', 'processed', 1) return 0 end"

static void reserving(void **state)
{
	struct hapax_op op;
	unsigned char attempt[HAPAX_ATTEMPT_ID_SIZE] = {1};

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_string_equal(
			resp_case_command(&c, "EVAL", CHECK_AND_SET, "1", "e", "job", "60", NULL),
			i == 0 ? "$-1\r\n" : "$3\r\njob\r\n");
	for (int i = 0; i < 2; i++)
		assert_string_equal(
			resp_case_command(
				&c, "EVAL", CHECK_AND_RESERVE, "1", "f", "60", "170", NULL),
			i == 0 ? ":0\r\n" : ":1\r\n");
	expect("TTL e\r\nTTL f\r\nGET f\r\n", ":60\r\n:60\r\n$3\r\n170\r\n");
	/* Of a claim there is no value to tell; "nothing was there" would be a second run. */
	memset(&op, 0, sizeof(op));
	op.type = HAPAX_OP_CLAIM;
	op.key = HX_BYTES_LIT("g");
	op.attempt_id = attempt;
	assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_OK);
	assert_string_equal(
		resp_case_command(&c, "EVAL", CHECK_AND_SET, "1", "g", "job", "60", NULL),
		"-BUSYKEY key is claimed\r\n");
	assert_string_equal(
		resp_case_command(&c, "EVAL", CHECK_AND_RESERVE, "1", "g", "60", "170", NULL),
		":1\r\n");
}

/* ---------------------------------------------------------------- shortage */

static bool is_whole(const struct hapax_buf *out)
{
	for (size_t at = 0; at < out->size;) {
		struct hx_resp_scan message = {0};

		if (hx_resp_scan(&message, hx_bytes(out->data + at, out->size - at), 1 << 26) !=
		    HX_RESP_DONE)
			return false;
		at += message.size;
	}
	return true;
}

/* Whatever cannot be had, replies are whole, or the client is sent away without any. */
static void no_memory(void **state)
{
	static const char bytes[] =
		"SET a 1\r\nMGET a b c\r\nMULTI\r\nSET b 2\r\nDBSIZE\r\nEXEC\r\nSCAN 0 MATCH *\r\n"
		"INFO\r\nCOMMAND DOCS\r\nEXPIRE a 100 NX\r\nFLUSHALL\r\nHELLO 3\r\nGET a\r\n";
	bool was_short = true;

	(void)state;
	for (uint64_t nth = 1; was_short; nth++) {
		struct resp_case piece;
		struct hx_resp_service_options options = {.flags = HX_RESP_ALLOW_FLUSH};
		uint64_t before;

		assert_true(nth < 10000);
		assert_true(resp_case_begin(&piece, &options));
		assert_int_equal(hx_buf_reserve(&piece.input, 4096), HAPAX_OK);
		before = hx_alloc_count();
		hx_alloc_fail_at(nth, 0);
		resp_case_feed(&piece, bytes, sizeof(bytes) - 1);
		was_short = hx_alloc_count() - before >= nth;
		hx_alloc_fail_at(0, 0);
		if (!piece.session.is_abrupt)
			assert_true(is_whole(&piece.out));
		resp_case_end(&piece);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_pipeline, begin, end),
		cmocka_unit_test_setup_teardown(a_long_pipeline, begin, end),
		cmocka_unit_test(split_everywhere),
		cmocka_unit_test_setup_teardown(a_browser, begin, end),
		cmocka_unit_test_setup_teardown(who_is_silent, begin, end),
		cmocka_unit_test_setup_teardown(a_reply_that_is_too_large, begin, end),
		cmocka_unit_test_setup_teardown(what_is_given_back, begin, end),
		cmocka_unit_test_setup_teardown(a_transaction, begin, end),
		cmocka_unit_test_setup_teardown(a_transaction_of_rounds, begin, end),
		cmocka_unit_test_setup_teardown(
			transactions_in_one_step, begin_with_large_values, end),
		cmocka_unit_test_setup_teardown(everybody_has_a_scope, begin_with_users, end),
		cmocka_unit_test_setup_teardown(records_of_others, begin, end),
		cmocka_unit_test_setup_teardown(settings_of_a_scope, begin_with_settings, end),
		cmocka_unit_test_setup_teardown(scan, begin, end),
		cmocka_unit_test_setup_teardown(a_slow_scan, begin, end),
		cmocka_unit_test_setup_teardown(a_dropped_job, begin, end),
		cmocka_unit_test_setup_teardown(a_walk_without_room, begin, end),
		cmocka_unit_test_setup_teardown(locks_of_several_keys, begin, end),
		cmocka_unit_test_setup_teardown(reserving, begin, end),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests_name("resp_session", tests, NULL, NULL);
}
