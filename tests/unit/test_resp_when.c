/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EX, PX, EXAT, PXAT and EXPIRE: which times are taken, and what they mean.
 */
#include "resp/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support/resp_case.h"
#include "support/virtual_clock.h"

#define INVALID  "-ERR invalid expire time in 'set' command\r\n"
#define NO_INT   "-ERR value is not an integer or out of range\r\n"
#define SYNTAX   "-ERR syntax error\r\n"
#define NOW_TEXT "1700000000"

static struct resp_case c;

static int begin(void **state)
{
	(void)state;
	return resp_case_begin(&c, NULL) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	resp_case_end(&c);
	return 0;
}

static void expect(const char *command, const char *reply)
{
	const char *got = resp_case_ask(&c, command);

	if (strcmp(got, reply) != 0)
		fail_msg("%s: '%s' instead of '%s'", command, got, reply);
}

static void what_is_taken(void **state)
{
	(void)state;
	expect("SET k v EX 10\r\nPTTL k\r\n", "+OK\r\n:10000\r\n");
	expect("SET k v px 10\r\nPTTL k\r\n", "+OK\r\n:10\r\n");
	expect("SET k v EXAT 1700000100\r\nTTL k\r\n", "+OK\r\n:100\r\n");
	expect("SET k v PXAT 1700000000500\r\nPTTL k\r\n", "+OK\r\n:500\r\n");
	expect("SET k v EX 10 EX 20\r\nTTL k\r\n", "+OK\r\n:20\r\n");
	expect("SET k v\r\nTTL k\r\n", "+OK\r\n:-1\r\n");
	/* A hundred years, and a millisecond more. */
	expect("SET k v PX 3155760000000\r\nPTTL k\r\n", "+OK\r\n:3155760000000\r\n");
	expect("SET k v PX 3155760000001\r\n", INVALID);
}

static void what_is_refused(void **state)
{
	(void)state;
	expect("SET k v EX 0\r\n", INVALID);
	expect("SET k v EX -1\r\n", INVALID);
	expect("SET k v PXAT -1\r\n", INVALID);
	expect("SET k v EX 9223372036854775807\r\n", INVALID);
	expect("SET k v PX 9223372036854775807\r\n", INVALID);
	expect("SET k v EX 9223372036854775808\r\n", NO_INT);
	expect("SET k v EX 1.5\r\n", NO_INT);
	expect("SET k v EX ''\r\n", NO_INT);
	expect("SET k v EX +1\r\n", NO_INT);
	expect("SET k v EX\r\n", SYNTAX);
	expect("SET k v EX 1 PX 1\r\n", SYNTAX);
	expect("SET k v KEEPTTL EX 1\r\n", SYNTAX);
	expect("SET k v EX 1 KEEPTTL\r\n", SYNTAX);
	expect("SETEX k 0 v\r\n", "-ERR invalid expire time in 'setex' command\r\n");
	expect("PSETEX k x v\r\n", NO_INT);
	expect("GET k\r\n", "$-1\r\n");
}

/* What has passed leaves nothing. */
static void what_has_passed(void **state)
{
	(void)state;
	expect("SET k v\r\nSET k w EXAT 1\r\nEXISTS k\r\n", "+OK\r\n+OK\r\n:0\r\n");
	expect("SET k v\r\nEXPIREAT k " NOW_TEXT "\r\nEXISTS k\r\n", "+OK\r\n:1\r\n:0\r\n");
	expect("SET k v\r\nEXPIRE k -1\r\nEXISTS k\r\n", "+OK\r\n:1\r\n:0\r\n");
	expect("SET k v\r\nPEXPIREAT k -9223372036854775808\r\nEXISTS k\r\n",
	       "+OK\r\n:1\r\n:0\r\n");
	expect("SET k v EX 10\r\n", "+OK\r\n");
	hx_virtual_clock_advance(&c.clock, 9999);
	expect("PTTL k\r\nTTL k\r\n", ":1\r\n:0\r\n");
	hx_virtual_clock_advance(&c.clock, 1);
	expect("PTTL k\r\nGET k\r\n", ":-2\r\n$-1\r\n");
}

/*
 * A point in time is kept as it was said, though the store's clock has moved on between planning and
 * writing, and whatever the door thinks of it: the clock goes on by a millisecond at every reading.
 */
static int64_t ticking_wall_ms(void *context)
{
	struct hx_virtual_clock *clock = context;

	hx_virtual_clock_advance(clock, 1);
	return clock->wall_ms;
}

static void a_point_in_time_is_given_back(void **state)
{
	struct hapax_clock ticking = *hx_virtual_clock_clock(&c.clock);

	(void)state;
	ticking.wall_ms = ticking_wall_ms;
	ticking.context = &c.clock;
	c.service.options.clock = &ticking;
	hx_resp_service_set_skew(&c.service, -7);
	expect("SET k v PXAT 1700000500123\r\nPEXPIRETIME k\r\n", "+OK\r\n:1700000500123\r\n");
	expect("SET k v EXAT 1700000500\r\nPEXPIRETIME k\r\n", "+OK\r\n:1700000500000\r\n");
	expect("EXPIRETIME k\r\n", ":1700000500\r\n");
	expect("PEXPIREAT k 1700000600001\r\nPEXPIRETIME k\r\n", ":1\r\n:1700000600001\r\n");
	expect("EXPIREAT k 1700000601\r\nPEXPIRETIME k\r\n", ":1\r\n:1700000601000\r\n");
	expect("GETEX k PXAT 1700000602003\r\nPEXPIRETIME k\r\n", "$1\r\nv\r\n:1700000602003\r\n");
	expect("GETEX k EXAT 1700000603\r\nPEXPIRETIME k\r\n", "$1\r\nv\r\n:1700000603000\r\n");
	/* Compared to the millisecond, too. */
	expect("PEXPIREAT k 1700000603000 GT\r\nPEXPIREAT k 1700000603000 LT\r\n", ":0\r\n:0\r\n");
	expect("PEXPIREAT k 1700000603001 GT\r\nPEXPIRETIME k\r\n", ":1\r\n:1700000603001\r\n");
	expect("PEXPIREAT k 1700000603000 LT\r\nPEXPIRETIME k\r\n", ":1\r\n:1700000603000\r\n");
	expect("SET k w KEEPTTL\r\nPEXPIRETIME k\r\n", "+OK\r\n:1700000603000\r\n");
	expect("SET k x IFEQ w PXAT 1700000700009\r\nPEXPIRETIME k\r\n",
	       "+OK\r\n:1700000700009\r\n");
}

static void conditions(void **state)
{
	(void)state;
	expect("SET k v\r\n", "+OK\r\n");
	expect("EXPIRE k 100 XX\r\nEXPIRE k 100 GT\r\nTTL k\r\n", ":0\r\n:0\r\n:-1\r\n");
	expect("EXPIRE k 100 LT\r\nTTL k\r\n", ":1\r\n:100\r\n");
	expect("EXPIRE k 100 GT\r\nEXPIRE k 100 LT\r\nEXPIRE k 200 NX\r\n", ":0\r\n:0\r\n:0\r\n");
	expect("EXPIRE k 101 GT\r\nTTL k\r\n", ":1\r\n:101\r\n");
	expect("EXPIRE k 99 LT\r\nTTL k\r\n", ":1\r\n:99\r\n");
	expect("PERSIST k\r\nPERSIST k\r\nTTL k\r\n", ":1\r\n:0\r\n:-1\r\n");
	expect("EXPIRE k 7 NX\r\nTTL k\r\n", ":1\r\n:7\r\n");
	expect("GETEX k PERSIST\r\nTTL k\r\n", "$1\r\nv\r\n:-1\r\n");
	expect("SET k w KEEPTTL EX 1\r\n", SYNTAX);
	expect("EXPIRE k 50\r\nSET k w KEEPTTL\r\nTTL k\r\nSET k w\r\nTTL k\r\n",
	       ":1\r\n+OK\r\n:50\r\n+OK\r\n:-1\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_taken, begin, end),
		cmocka_unit_test_setup_teardown(what_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(what_has_passed, begin, end),
		cmocka_unit_test_setup_teardown(a_point_in_time_is_given_back, begin, end),
		cmocka_unit_test_setup_teardown(conditions, begin, end),
	};

	return cmocka_run_group_tests_name("resp_when", tests, NULL, NULL);
}
