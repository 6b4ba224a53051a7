/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_outbox.c - runs the cases of an outbox on a database: "sqlite:" or "postgres:".
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES_MAX = 64 };

static const struct outbox_test *const lists[] = {
	add_cases,    relay_cases,     backlog_cases, message_cases,
	manage_cases, retention_cases, trouble_cases, crowd_cases,
};

static const char *kind;
struct memory_log sunk;

static void on_report(void *context, enum hapax_relay_event event, const char *text)
{
	struct reports *reports = context;

	reports->counts[event]++;
	(void)snprintf(reports->last[event], sizeof(reports->last[event]), "%s", text);
}

struct hapax_relay_options relay_options(struct reports *reports)
{
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;

	options.retry_ms = 1;
	options.retry_ms_max = 4;
	options.poll_ms = 5;
	/* Nothing of what follows waits for the end of a lease, or for a part of it. */
	options.lease_ms = 3600 * 1000;
	options.is_finite = 1;
	options.report = reports == NULL ? NULL : on_report;
	options.context = reports;
	return options;
}

struct hapax_relay_stats drain_with(
	struct outbox_case *c, const struct hapax_relay_options *options)
{
	struct hapax_relay_stats stats = HAPAX_RELAY_STATS_INIT;
	struct hapax_relay *relay = NULL;
	struct hapax_error err;

	if (hx_relay_new(c->url, options, memory_sink_new(&sunk), &relay, &err) != HAPAX_OK ||
	    hapax_relay_run(relay, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	hapax_relay_stats(relay, &stats);
	hapax_relay_close(relay);
	return stats;
}

struct hapax_relay_stats drain(struct outbox_case *c)
{
	struct hapax_relay_options options = relay_options(NULL);

	return drain_with(c, &options);
}

static int set_up(void **state)
{
	struct outbox_case *c = calloc(1, sizeof(*c));

	outbox_case_init(c, kind);
	memory_log_init(&sunk);
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	outbox_case_done(*state);
	free(*state);
	return 0;
}

int main(int argc, char **argv)
{
	static struct CMUnitTest tests[CASES_MAX];
	size_t count = 0;

	if (argc < 2)
		return 64;
	kind = argv[1];
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		bool has_outbox = lists[i] != message_cases;

		for (const struct outbox_test *test = lists[i]; test->name != NULL; test++) {
			if (count == CASES_MAX)
				return 70;
			tests[count++] = (struct CMUnitTest){
				test->name, test->run, has_outbox ? set_up : NULL,
				has_outbox ? tear_down : NULL, NULL};
		}
	}
	return _cmocka_run_group_tests("outbox", tests, count, NULL, NULL);
}
