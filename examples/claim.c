/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.c - charge an order once, and give every later delivery the same receipt.
 */
#include <stdio.h>

#include <hapax/hapax.h>

static int fail(struct hapax_store *store, const struct hapax_error *err)
{
	(void)fprintf(stderr, "claim: %s: %s\n", hapax_status_name(err->status), err->message);
	hapax_store_close(store);
	return 1;
}

int main(int argc, char **argv)
{
	struct hapax_bytes key = hapax_bytes_from_text(argc > 2 ? argv[2] : "charge-17");
	struct hapax_result receipt = {.kind = HAPAX_RESULT_BYTES};
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_buf *buf = hapax_buf_new(1 << 20);
	struct hapax_op complete = {.type = HAPAX_OP_COMPLETE};
	struct hapax_op claim = {.type = HAPAX_OP_CLAIM};
	struct hapax_store *store = NULL;
	struct hapax_record record;
	struct hapax_error err;

	if (hapax_store_open(argc > 1 ? argv[1] : "sqlite:orders.db", NULL, &store, &err) !=
	    HAPAX_OK)
		return fail(store, &err);

	hapax_attempt_id(attempt_id); /* one for each new claim */
	claim.key = key;
	claim.attempt_id = attempt_id;
	claim.record = &record;
	claim.buf = buf;
	if (hapax_store_run(store, &claim, 1, &err) != HAPAX_OK)
		return fail(store, &err);

	if (claim.outcome == HAPAX_OUTCOME_ACQUIRED) {
		/* This caller alone may charge now. Pass the token to a service that checks it. */
		receipt.body = hapax_bytes_from_text("receipt 4711");
		complete.key = key;
		complete.token = claim.token;
		complete.result = &receipt;
		if (hapax_store_run(store, &complete, 1, &err) != HAPAX_OK)
			return fail(store, &err);
		(void)printf(
			"charged: %.*s\n", (int)receipt.body.size, (const char *)receipt.body.data);
	} else if (claim.outcome == HAPAX_OUTCOME_REPLAY) {
		(void)printf(
			"replayed: %.*s\n", (int)record.result.body.size,
			(const char *)record.result.body.data);
	} else {
		(void)printf("%s: not now\n", hapax_outcome_name(claim.outcome));
	}
	hapax_store_close(store);
	hapax_buf_free(buf);
	return 0;
}
