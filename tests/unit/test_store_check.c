/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "store/core.h"
#include "support/stub_store.h"

static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {1};

static struct hapax_op op_of(enum hapax_op_type type, const char *tenant)
{
	return (struct hapax_op){
		.type = type,
		.tenant = hapax_bytes_from_text(tenant),
		.key = HX_BYTES_LIT("k"),
		.token = 1,
		.attempt_id = attempt_id};
}

/* A million lookups of unknown tenants leave the scopes for those who write. */
static void only_what_may_begin_brings_a_scope(void **state)
{
	struct stub_store stub;

	(void)state;
	stub_store_open(&stub, HAPAX_STORE_NO_HOUSEKEEPING);
	const struct hx_scope_table *scopes = hx_store_scopes(&stub.base);
	for (unsigned type = HAPAX_OP_CLAIM; type <= HAPAX_OP_EXPIRE; type++) {
		char tenant[] = {(char)('a' + type), '\0'};
		struct hapax_op op = op_of((enum hapax_op_type)type, tenant);
		uint32_t before = atomic_load(&scopes->count);
		bool begins =
			type == HAPAX_OP_CLAIM || type == HAPAX_OP_CHECK || type == HAPAX_OP_SET;

		assert_int_equal(hx_store_check_ops(&stub.base, &op, 1), 1);
		assert_int_equal(atomic_load(&scopes->count), before + begins);
		assert_int_equal(op.private_scope, begins ? before : HX_SCOPE_NOWHERE);
	}
	/* Once it is there, everybody finds it. */
	struct hapax_op op = op_of(HAPAX_OP_LOOKUP, "b");
	assert_int_equal(hx_store_check_ops(&stub.base, &op, 1), 1);
	assert_int_equal(op.private_scope, HX_SCOPE_NOWHERE + 1);
	hapax_store_close(&stub.base);
}

/* Where there is such a record, from an older version, it can be read, ended and copied. */
static void a_scope_that_cannot_be_written_does_not_begin(void **state)
{
	static const char *const names[] = {"a/b", "/", "*", "a*", "ab"};
	struct stub_store stub;

	(void)state;
	stub_store_open(&stub, HAPAX_STORE_NO_HOUSEKEEPING);
	for (size_t i = 0; i < HX_COUNT(names); i++) {
		for (unsigned type = HAPAX_OP_CLAIM; type <= HAPAX_OP_EXPIRE; type++) {
			struct hapax_op op = op_of((enum hapax_op_type)type, names[i]);
			bool begins = type == HAPAX_OP_CLAIM || type == HAPAX_OP_CHECK ||
				type == HAPAX_OP_SET;

			(void)hx_store_check_ops(&stub.base, &op, 1);
			assert_int_equal(op.status, begins && i < 3 ? HAPAX_ERR_INVALID : HAPAX_OK);
			op = op_of((enum hapax_op_type)type, "ab");
			op.group = hapax_bytes_from_text(names[i]);
			(void)hx_store_check_ops(&stub.base, &op, 1);
			assert_int_equal(op.status, begins && i < 3 ? HAPAX_ERR_INVALID : HAPAX_OK);
		}
	}
	hapax_store_close(&stub.base);
}

static void attempt_id_of_zeros_is_invalid(void **state)
{
	static const unsigned char zeros[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op = op_of(HAPAX_OP_CLAIM, "");
	struct stub_store stub;

	(void)state;
	stub_store_open(&stub, HAPAX_STORE_NO_HOUSEKEEPING);
	op.attempt_id = zeros;
	assert_int_equal(hx_store_check_ops(&stub.base, &op, 1), 0);
	assert_int_equal(op.status, HAPAX_ERR_INVALID);
	op.attempt_id = attempt_id;
	assert_int_equal(hx_store_check_ops(&stub.base, &op, 1), 1);
	hapax_store_close(&stub.base);
}

/* What a group says of its members: keys that cannot be read are not compared. */
static void group_is_checked_without_its_refused(void **state)
{
	struct hapax_op ops[3];
	struct stub_store stub;

	(void)state;
	stub_store_open(&stub, HAPAX_STORE_NO_HOUSEKEEPING);
	for (int i = 0; i < 3; i++) {
		ops[i] = op_of(HAPAX_OP_LOOKUP, (const char *[]){"a", "b", "c"}[i]);
		ops[i].flags = i < 2 ? HAPAX_OP_LINKED : 0;
	}
	/* Unknown scopes, all of them, but not the same. */
	assert_int_equal(hx_store_check_ops(&stub.base, ops, 3), 3);
	ops[1].key.data = NULL;
	assert_int_equal(hx_store_check_ops(&stub.base, ops, 3), 2);
	ops[0].key.data = NULL;
	assert_int_equal(hx_store_check_ops(&stub.base, ops, 3), 1);
	ops[0].flags |= HAPAX_OP_ALL_OR_NOTHING;
	assert_int_equal(hx_store_check_ops(&stub.base, ops, 3), 0);
	for (int i = 0; i < 3; i++) {
		ops[i] = op_of(HAPAX_OP_LOOKUP, "same");
		ops[i].flags = i < 2 ? HAPAX_OP_LINKED : 0;
	}
	assert_int_equal(hx_store_check_ops(&stub.base, ops, 3), 0);
	hapax_store_close(&stub.base);
}

static void bytes_need_data_and_bounds(void **state)
{
	(void)state;
	assert_true(hx_store_check_bytes(hx_bytes(NULL, 0), 0));
	assert_true(hx_store_check_bytes(HX_BYTES_LIT("abc"), 3));
	assert_false(hx_store_check_bytes(HX_BYTES_LIT("abc"), 2));
	assert_false(hx_store_check_bytes(hx_bytes(NULL, 1), 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_may_begin_brings_a_scope),
		cmocka_unit_test(a_scope_that_cannot_be_written_does_not_begin),
		cmocka_unit_test(attempt_id_of_zeros_is_invalid),
		cmocka_unit_test(group_is_checked_without_its_refused),
		cmocka_unit_test(bytes_need_data_and_bounds),
	};

	return cmocka_run_group_tests_name("store_check", tests, NULL, NULL);
}
