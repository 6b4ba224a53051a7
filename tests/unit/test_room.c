/* SPDX-License-Identifier: Apache-2.0 */
#include "store/room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

/* An operation with a record, in a buffer of at most size_max bytes. */
struct room_case {
	struct hapax_op op;
	struct hapax_record record;
	struct hapax_buf buf;
};

static void begin(struct room_case *c, enum hapax_op_type type, size_t size_max)
{
	memset(c, 0, sizeof(*c));
	hx_buf_init(&c->buf, size_max);
	c->op = (struct hapax_op){
		.type = type,
		.tenant = HX_BYTES_LIT("t"),
		.group = HX_BYTES_LIT("g"),
		.key = HX_BYTES_LIT("key"),
		.record = &c->record,
		.buf = &c->buf};
}

static void an_operation_without_a_record_needs_none(void **state)
{
	struct hapax_op op = {.type = HAPAX_OP_SET};

	(void)state;
	assert_int_equal(hx_room_reserve(&op), HAPAX_OK);
	assert_int_equal(hx_room_size(&op), 0);
	assert_false(hx_room_may_grow(&op));
	assert_false(hx_room_make(&op, 1));
}

static void the_record_of_a_completion_fits(void **state)
{
	struct hapax_result result = {.headers = HX_BYTES_LIT("h"), .body = HX_BYTES_LIT("body")};
	struct room_case c;

	(void)state;
	begin(&c, HAPAX_OP_COMPLETE, 1 << 20);
	c.op.result = &result;
	assert_int_equal(hx_room_reserve(&c.op), HAPAX_OK);
	assert_true(hx_room_size(&c.op) >= 5 + 1 + 4);
	assert_false(hx_room_is_all(&c.op));
	assert_false(hx_room_may_grow(&c.op));
	hx_buf_done(&c.buf);
}

/* A small buffer gives what it has, and cannot be asked for more. */
static void a_small_buffer_is_all_there_is(void **state)
{
	struct room_case c;

	(void)state;
	begin(&c, HAPAX_OP_SET, 16);
	assert_int_equal(hx_room_reserve(&c.op), HAPAX_OK);
	assert_int_equal(hx_room_size(&c.op), 16);
	assert_true(hx_room_is_all(&c.op));
	assert_false(hx_room_make(&c.op, 17));
	assert_int_equal(hx_room_status(&c.op), HAPAX_ERR_LIMIT);
	hx_buf_done(&c.buf);
}

static void room_grows_on_demand(void **state)
{
	struct room_case c;

	(void)state;
	begin(&c, HAPAX_OP_SET, 1 << 20);
	assert_int_equal(hx_room_reserve(&c.op), HAPAX_OK);
	assert_true(hx_room_may_grow(&c.op));
	assert_true(hx_room_size(&c.op) >= HX_ROOM_FIRST);
	assert_true(hx_room_make(&c.op, 100000));
	assert_true(hx_room_size(&c.op) >= 100000);
	assert_false(hx_room_is_all(&c.op));
	/* Beyond the limit: the next answer is final. */
	assert_true(hx_room_make(&c.op, (1 << 20) + 1));
	assert_true(hx_room_is_all(&c.op));
	assert_int_equal(hx_room_status(&c.op), HAPAX_ERR_LIMIT);
	assert_false(hx_room_make(&c.op, 1));
	hx_buf_done(&c.buf);
}

static void a_record_gets_its_name(void **state)
{
	struct room_case c;

	(void)state;
	begin(&c, HAPAX_OP_CLAIM, 1 << 20);
	c.op.attempt_id = (const unsigned char *)"0123456789abcdef";
	c.op.owner = HX_BYTES_LIT("me");
	c.op.token = 7;
	c.op.lease_ms = 10;
	c.op.ttl_ms = 1000;
	c.op.expires_ms = HAPAX_TIME_NEVER;
	hx_room_fill_made(&c.op, 5, 15);
	assert_int_equal(c.op.status, HAPAX_OK);
	assert_int_equal(c.record.state, HAPAX_STATE_CLAIMED);
	assert_int_equal(c.record.token, 7);
	assert_int_equal(c.record.lease_ends_ms, 15);
	assert_true(hx_bytes_equal(c.record.key, c.op.key));
	assert_true(hx_bytes_equal(c.record.owner, c.op.owner));
	hx_buf_done(&c.buf);
}

static void an_invalid_record_is_not_handed_out(void **state)
{
	struct hapax_record record = {.state = (enum hapax_state)99};
	struct room_case c;

	(void)state;
	begin(&c, HAPAX_OP_LOOKUP, 1 << 20);
	c.op.outcome = HAPAX_OUTCOME_FOUND;
	hx_room_fill(&c.op, &record);
	assert_int_equal(c.op.status, HAPAX_ERR_CORRUPT);
	assert_int_equal(c.op.outcome, HAPAX_OUTCOME_NONE);
	assert_int_equal(c.record.state, HAPAX_STATE_ABSENT);
	hx_buf_done(&c.buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_operation_without_a_record_needs_none),
		cmocka_unit_test(the_record_of_a_completion_fits),
		cmocka_unit_test(a_small_buffer_is_all_there_is),
		cmocka_unit_test(room_grows_on_demand),
		cmocka_unit_test(a_record_gets_its_name),
		cmocka_unit_test(an_invalid_record_is_not_handed_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
