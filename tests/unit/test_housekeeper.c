/* SPDX-License-Identifier: Apache-2.0 */
#include "store/core_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "support/stub_store.h"

/* It sweeps by itself, and stops when the store is closed, which flushes what was counted. */
static void housekeeper_sweeps_until_closed(void **state)
{
	struct hapax_op op = {.type = HAPAX_OP_CHECK, .key = HX_BYTES_LIT("k")};
	struct stub_store stub;

	(void)state;
	stub_store_open(&stub, 0);
	stub.outcome = HAPAX_OUTCOME_ACQUIRED;
	assert_true(stub.base.core->keeper_runs);
	assert_int_equal(hapax_store_run(&stub.base, &op, 1, NULL), HAPAX_OK);
	hx_event_wait(&stub.swept);
	hapax_store_close(&stub.base);
	assert_null(stub.base.core);
	assert_int_equal(stub.kept[HAPAX_DECISION_ACQUIRED], 1);
}

static void without_housekeeping_there_is_no_thread(void **state)
{
	struct stub_store stub;

	(void)state;
	stub_store_open(&stub, HAPAX_STORE_NO_HOUSEKEEPING);
	assert_false(stub.base.core->keeper_runs);
	/* Stopping what was never started, and twice, is nothing. */
	hx_housekeeper_stop(&stub.base);
	hx_housekeeper_stop(&stub.base);
	hapax_store_close(&stub.base);
	assert_false(hx_event_is_set(&stub.swept));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(housekeeper_sweeps_until_closed),
		cmocka_unit_test(without_housekeeping_there_is_no_thread),
	};

	return cmocka_run_group_tests_name("housekeeper", tests, NULL, NULL);
}
