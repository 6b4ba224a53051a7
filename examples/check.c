/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_check.c - ship an order at most once, however often its message arrives.
 *
 * The key is marked before the work: a crash in between loses the order. process.c
 * shows how nothing is lost.
 */
#include <stdio.h>

#include <hapax/hapax.h>

int main(int argc, char **argv)
{
	const char *url = argc > 1 ? argv[1] : "sqlite:orders.db";
	const char *order = argc > 2 ? argv[2] : "order-17";
	struct hapax_store *store = NULL;
	enum hapax_outcome outcome;
	struct hapax_error err;

	if (hapax_store_open(url, NULL, &store, &err) != HAPAX_OK ||
	    hapax_store_check(store, hapax_bytes_from_text(order), 0, &outcome, &err) != HAPAX_OK) {
		(void)fprintf(
			stderr, "check: %s: %s\n", hapax_status_name(err.status), err.message);
		hapax_store_close(store);
		return 1;
	}
	if (outcome == HAPAX_OUTCOME_ACQUIRED)
		(void)printf("%s: shipped\n", order);
	else
		(void)printf("%s: %s, nothing to do\n", order, hapax_outcome_name(outcome));
	hapax_store_close(store);
	return 0;
}
