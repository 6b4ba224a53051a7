/* SPDX-License-Identifier: Apache-2.0 */
#include "store/counting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "store/scope_table.h"
#include "support/stub_store.h"

static void run(struct stub_store *stub, enum hapax_op_type type, const char *tenant)
{
	struct hapax_op op = {
		.type = type,
		.tenant = hapax_bytes_from_text(tenant),
		.key = HX_BYTES_LIT("k"),
		.token = 1};

	(void)hapax_store_run(&stub->base, &op, 1, NULL);
}

/* What the store does not take stays, and is taken later, once. */
static void counts_are_given_back(void **state)
{
	struct stub_store stub;

	(void)state;
	stub_store_open(&stub, HAPAX_STORE_NO_HOUSEKEEPING);
	stub.outcome = HAPAX_OUTCOME_ACQUIRED;
	run(&stub, HAPAX_OP_CHECK, "t");
	run(&stub, HAPAX_OP_CHECK, "t");
	stub.count_status = HAPAX_ERR_UNAVAILABLE;
	assert_int_equal(hx_counting_flush(&stub.base, NULL), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(stub.kept[HAPAX_DECISION_ACQUIRED], 0);
	stub.count_status = HAPAX_OK;
	assert_int_equal(hx_counting_flush(&stub.base, NULL), HAPAX_OK);
	assert_int_equal(stub.kept[HAPAX_DECISION_ACQUIRED], 2);
	assert_int_equal(hx_counting_flush(&stub.base, NULL), HAPAX_OK);
	assert_int_equal(stub.kept[HAPAX_DECISION_ACQUIRED], 2);
	assert_string_equal(stub.names, "t/default ");
	hapax_store_close(&stub.base);
}

/*
 * A scope that this process has never written to counts under its name when the
 * store knew it, and as other when it did not.
 */
static void unknown_scopes_count_as_the_store_answers(void **state)
{
	struct stub_store stub;

	(void)state;
	stub_store_open(&stub, HAPAX_STORE_NO_HOUSEKEEPING);
	stub.outcome = HAPAX_OUTCOME_APPLIED;
	run(&stub, HAPAX_OP_COMPLETE, "known");
	run(&stub, HAPAX_OP_FORGET, "known");
	struct hapax_op fenced = {
		.type = HAPAX_OP_RELEASE,
		.status = HAPAX_ERR_FENCED,
		.private_scope = HX_SCOPE_NOWHERE,
		.tenant = HX_BYTES_LIT("unknown"),
		.group = HX_BYTES_LIT("default")};
	hx_counting_add(&stub.base, &fenced, 1);
	assert_int_equal(hx_counting_flush(&stub.base, NULL), HAPAX_OK);
	assert_string_equal(stub.names, "other/other known/default ");
	assert_int_equal(stub.kept[HAPAX_DECISION_COMPLETED], 1);
	assert_int_equal(stub.kept[HAPAX_DECISION_FORGOTTEN], 1);
	assert_int_equal(stub.kept[HAPAX_DECISION_FENCED], 1);
	hapax_store_close(&stub.base);
}

/* Neighbors are added up together, but not those of two unknown scopes. */
static void neighbors_count_each(void **state)
{
	struct stub_store stub;
	struct hapax_op ops[6];

	(void)state;
	stub_store_open(&stub, HAPAX_STORE_NO_HOUSEKEEPING);
	stub.outcome = HAPAX_OUTCOME_APPLIED;
	for (int i = 0; i < 6; i++)
		ops[i] = (struct hapax_op){
			.type = HAPAX_OP_COMPLETE,
			.tenant = i < 3 ? HX_BYTES_LIT("a") : HX_BYTES_LIT("b"),
			.key = HX_BYTES_LIT("k"),
			.token = 1};
	assert_int_equal(hapax_store_run(&stub.base, ops, 6, NULL), HAPAX_OK);
	assert_int_equal(hx_counting_flush(&stub.base, NULL), HAPAX_OK);
	assert_string_equal(stub.names, "a/default b/default ");
	assert_int_equal(stub.kept[HAPAX_DECISION_COMPLETED], 6);
	hapax_store_close(&stub.base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_given_back),
		cmocka_unit_test(unknown_scopes_count_as_the_store_answers),
		cmocka_unit_test(neighbors_count_each),
	};

	return cmocka_run_group_tests_name("counting", tests, NULL, NULL);
}
