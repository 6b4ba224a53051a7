/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consume.c - a consumer loop: messages come at least once, each takes effect once.
 *
 * A message is a line of standard input, its type and its JSON: order.paid {"order":17}.
 * Each line of output begins with the answer to the broker: ack, retry (the broker delivers
 * the message again) or reject.
 */
#include <stdio.h>
#include <string.h>

#include <hapax/hapax.h>

static enum hapax_run_outcome book_payment(struct hapax_work *work, void *context)
{
	int *booked = context;

	(void)work;
	++*booked;
	return HAPAX_RUN_OK;
}

static enum hapax_run_outcome ship(struct hapax_work *work, void *context)
{
	(void)context;
	/* The first attempt finds the van gone; the next delivery finds it back. */
	if (work->attempt == 1)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "no van");
	return HAPAX_RUN_OK;
}

/* May the broker forget the message? Only when what it led to is known to be kept. */
static const char *verdict(enum hapax_status status, const struct hapax_answer *answer)
{
	if (status == HAPAX_ERR_INVALID || status == HAPAX_ERR_UNSUPPORTED)
		return "reject";
	if (status != HAPAX_OK)
		return "retry";
	switch (answer->outcome) {
	case HAPAX_OUTCOME_ACQUIRED:
	case HAPAX_OUTCOME_REPLAY: return "ack";
	case HAPAX_OUTCOME_MISMATCH:
	case HAPAX_OUTCOME_PARKED: return "reject";
	default: return "retry"; /* in progress: that run may still fail */
	}
}

static void consume(struct hapax_registry *registry, char *line)
{
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_event event = HAPAX_EVENT_INIT;
	struct hapax_error err = {0};
	char *data = strchr(line, ' ');
	enum hapax_status status;

	if (data == NULL)
		return;
	*data++ = '\0';
	data[strcspn(data, "\n")] = '\0';
	event.data = hapax_bytes_from_text(data);
	status = hapax_registry_process(
		registry, hapax_bytes_from_text(line), &event, &answer, NULL, &err);
	(void)printf(
		"%s %s %s: %s\n", verdict(status, &answer), line, data,
		status == HAPAX_OK ? hapax_outcome_name(answer.outcome) : err.message);
}

int main(int argc, char **argv)
{
	int booked = 0;
	const struct hapax_registration rows[] = {
		{.size = sizeof(rows[0]),
		 .type = "order.paid",
		 .strategy = "field:data.order",
		 .handler = book_payment,
		 .context = &booked},
		{.size = sizeof(rows[0]),
		 .type = "order.packed",
		 .strategy = "composite:data.order,data.parcel",
		 .handler = ship},
	};
	struct hapax_processor *processor = NULL;
	struct hapax_registry *registry = NULL;
	struct hapax_store *store = NULL;
	struct hapax_error err;
	char line[4096];
	int status = 0;

	if (hapax_store_open(argc > 1 ? argv[1] : "sqlite:orders.db", NULL, &store, &err) !=
		    HAPAX_OK ||
	    hapax_processor_new(store, NULL, &processor, &err) != HAPAX_OK ||
	    hapax_registry_new(processor, rows, 2, &registry, &err) != HAPAX_OK) {
		(void)fprintf(
			stderr, "consume: %s: %s\n", hapax_status_name(err.status), err.message);
		status = 1;
	}
	while (status == 0 && fgets(line, sizeof(line), stdin) != NULL)
		consume(registry, line);
	(void)printf("%d payments booked\n", booked);
	hapax_registry_free(registry);
	hapax_processor_free(processor);
	hapax_store_close(store);
	return status;
}
