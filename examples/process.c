/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - wrap a function: charge an order once, however often and from however
 * many threads and processes it is asked for.
 */
#include <stdio.h>

#include <hapax/hapax.h>

struct order {
	const char *id;
	int is_bank_open;
};

/* Knows nothing of duplicates. Pass the token to a service that can check it. */
static enum hapax_run_outcome charge(struct hapax_work *work, void *context)
{
	const struct order *order = context;

	if (!order->is_bank_open)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "the bank is closed");
	(void)printf("charging %s\n", order->id);
	if (hapax_work_write(work, "receipt 4711", 12) != HAPAX_OK)
		return hapax_work_fail(work, HAPAX_RUN_AMBIGUOUS, "no memory for the receipt");
	return HAPAX_RUN_OK;
}

static int charge_once(
	struct hapax_processor *processor, const struct order *order, struct hapax_buf *buf)
{
	struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct order copy = *order;
	struct hapax_error err;

	options.wait_ms = 10000; /* a second click waits for the first */
	request.key = hapax_bytes_from_text(order->id);
	request.options = &options;
	if (hapax_process(processor, &request, charge, &copy, &answer, buf, &err) != HAPAX_OK) {
		(void)printf("%s: try again later: %s\n", order->id, err.message);
		return 1;
	}
	if (answer.outcome != HAPAX_OUTCOME_ACQUIRED && !hapax_answer_was_replay(&answer)) {
		(void)printf("%s: %s\n", order->id, hapax_outcome_name(answer.outcome));
		return 1;
	}
	(void)printf(
		"%s: %s%.*s\n", order->id, hapax_answer_was_replay(&answer) ? "replayed: " : "",
		(int)answer.result.body.size, (const char *)answer.result.body.data);
	return 0;
}

int main(int argc, char **argv)
{
	struct order order = {argc > 2 ? argv[2] : "order-17", argc <= 3};
	struct hapax_processor *processor = NULL;
	struct hapax_store *store = NULL;
	struct hapax_buf *buf = hapax_buf_new(1 << 20);
	struct hapax_error err;
	int status = 1;

	if (hapax_store_open(argc > 1 ? argv[1] : "sqlite:orders.db", NULL, &store, &err) ==
		    HAPAX_OK &&
	    hapax_processor_new(store, NULL, &processor, &err) == HAPAX_OK)
		status = charge_once(processor, &order, buf);
	else
		(void)fprintf(
			stderr, "process: %s: %s\n", hapax_status_name(err.status), err.message);
	hapax_processor_free(processor);
	hapax_store_close(store);
	hapax_buf_free(buf);
	return status;
}
