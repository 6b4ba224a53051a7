/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch: what is added to it stays where it is told to be, and memory is used again.
 */
#include "resp/resp_batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"

/* Pointers are made when the arrays do not move any more. */
static void seal_makes_pointers(void **state)
{
	struct hx_resp_batch batch;

	(void)state;
	hx_resp_batch_init(&batch);
	for (size_t i = 0; i < 1000; i++) {
		struct hapax_op *op = hx_resp_batch_add(
			&batch, i % 2 == 0 ? HAPAX_OP_SET : HAPAX_OP_LOOKUP, i % 3 == 0);
		char text[16];
		struct hapax_bytes kept;

		assert_non_null(op);
		(void)snprintf(text, sizeof(text), "value %zu", i);
		assert_true(hx_resp_batch_keep(&batch, hapax_bytes_from_text(text), &kept));
		op->key = kept;
		if (op->type == HAPAX_OP_SET)
			hx_resp_batch_set_value(&batch, kept);
	}
	hx_resp_batch_seal(&batch);
	for (size_t i = 0; i < 1000; i++) {
		const struct hapax_op *op = &batch.ops[i];
		char text[16];

		(void)snprintf(text, sizeof(text), "value %zu", i);
		assert_true(hx_bytes_equal(op->key, hapax_bytes_from_text(text)));
		assert_int_equal(op->record != NULL, i % 3 == 0);
		assert_int_equal(op->buf != NULL, i % 3 == 0);
		assert_int_equal(op->result != NULL, i % 2 == 0);
		assert_int_equal(op->private_state, 0);
		if (op->result != NULL)
			assert_true(hx_bytes_equal(op->result->body, op->key));
		for (size_t j = 0; j < i && i < 50; j++) {
			if (op->record != NULL)
				assert_ptr_not_equal(op->record, batch.ops[j].record);
		}
	}
	hx_resp_batch_done(&batch);
}

/* What is taken back gives its place for a record back, too. */
static void cut(void **state)
{
	struct hx_resp_batch batch;

	(void)state;
	hx_resp_batch_init(&batch);
	assert_non_null(hx_resp_batch_add(&batch, HAPAX_OP_LOOKUP, true));
	assert_non_null(hx_resp_batch_add(&batch, HAPAX_OP_SET, false));
	assert_non_null(hx_resp_batch_add(&batch, HAPAX_OP_LOOKUP, true));
	hx_resp_batch_cut(&batch, 1);
	assert_int_equal(batch.count, 1);
	assert_int_equal(batch.slot_count, 1);
	assert_non_null(hx_resp_batch_add(&batch, HAPAX_OP_LOOKUP, true));
	hx_resp_batch_seal(&batch);
	assert_ptr_equal(batch.ops[0].record, &batch.slots[0].record);
	assert_ptr_equal(batch.ops[1].record, &batch.slots[1].record);
	hx_resp_batch_done(&batch);
}

/* A record is not written when there is none: what was read before must not be there. */
static void slots_are_empty_again(void **state)
{
	struct hx_resp_batch batch;

	(void)state;
	hx_resp_batch_init(&batch);
	assert_non_null(hx_resp_batch_add(&batch, HAPAX_OP_LOOKUP, true));
	hx_resp_batch_seal(&batch);
	batch.ops[0].record->state = HAPAX_STATE_DONE;
	hx_resp_batch_clear(&batch);
	assert_non_null(hx_resp_batch_add(&batch, HAPAX_OP_LOOKUP, true));
	hx_resp_batch_seal(&batch);
	assert_int_equal(batch.ops[0].record->state, HAPAX_STATE_ABSENT);
	hx_resp_batch_done(&batch);
}

static void round_trip(struct hx_resp_batch *batch, const char *bytes, size_t size)
{
	struct hapax_bytes kept[100];

	for (size_t i = 0; i < 100; i++) {
		assert_non_null(hx_resp_batch_add(batch, HAPAX_OP_SET, true));
		assert_true(hx_resp_batch_keep(batch, hx_bytes(bytes + i, size), &kept[i]));
	}
	hx_resp_batch_seal(batch);
	for (size_t i = 0; i < 100; i++)
		assert_memory_equal(kept[i].data, bytes + i, size);
	hx_resp_batch_clear(batch);
}

/* A busy door allocates nothing, and a large command is not held forever. */
static void memory_is_kept_within_bounds(void **state)
{
	static char bytes[1024 * 1024 + 100];
	struct hx_resp_batch batch;
	uint64_t count;
	int64_t live;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7);
	hx_resp_batch_init(&batch);
	round_trip(&batch, bytes, 1000);
	count = hx_alloc_count();
	live = hx_alloc_live();
	for (int i = 0; i < 10; i++)
		round_trip(&batch, bytes, 1000);
	assert_int_equal(hx_alloc_count(), count);
	round_trip(&batch, bytes, 1024 * 1024);
	assert_int_equal(hx_alloc_live(), live);
	hx_resp_batch_done(&batch);
}

static void as_many_as_the_store_takes(void **state)
{
	struct hx_resp_batch batch;

	(void)state;
	hx_resp_batch_init(&batch);
	for (size_t i = 0; i < HX_SUBMIT_OPS_MAX; i++)
		assert_non_null(hx_resp_batch_add(&batch, HAPAX_OP_LOOKUP, false));
	assert_null(hx_resp_batch_add(&batch, HAPAX_OP_LOOKUP, false));
	assert_int_equal(batch.count, HX_SUBMIT_OPS_MAX);
	hx_resp_batch_clear(&batch);
	assert_int_equal(batch.capacity, 0);
	hx_resp_batch_done(&batch);
}

static void no_memory(void **state)
{
	for (uint64_t nth = 1; nth < 12; nth++) {
		struct hx_resp_batch batch;
		struct hapax_bytes kept;

		(void)state;
		hx_resp_batch_init(&batch);
		hx_alloc_fail_at(nth, 0);
		for (size_t i = 0; i < 200; i++) {
			size_t before = batch.count;

			if (hx_resp_batch_add(&batch, HAPAX_OP_SET, true) == NULL)
				assert_int_equal(batch.count, before);
			(void)hx_resp_batch_keep(&batch, HX_BYTES_LIT("0123456789"), &kept);
		}
		hx_alloc_fail_at(0, 0);
		assert_true(batch.count >= 100);
		hx_resp_batch_seal(&batch);
		hx_resp_batch_done(&batch);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seal_makes_pointers),
		cmocka_unit_test(cut),
		cmocka_unit_test(slots_are_empty_again),
		cmocka_unit_test(memory_is_kept_within_bounds),
		cmocka_unit_test(as_many_as_the_store_takes),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests_name("resp_batch", tests, NULL, NULL);
}
